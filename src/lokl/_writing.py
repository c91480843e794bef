"""Files that are whole or as they were before."""

import errno
import tempfile
from pathlib import Path


def check_writable(path: Path) -> None:
    """Raise the OSError that writing a file would meet, before the work that it is to hold."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "it is a folder", str(path))
    folder = path.absolute().parent
    while not folder.exists():
        folder = folder.parent
    with tempfile.TemporaryFile(dir=folder):
        pass


def replace_file(path: Path, content: bytes) -> None:
    """Write a file under another name, then move it to its place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".part")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
