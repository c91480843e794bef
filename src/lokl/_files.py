"""Writing files atomically, and checking early that they can be written."""

import errno
import tempfile
from pathlib import Path


def check_writable(path: Path) -> None:
    """Raise the OSError that writing a file would raise, before the work whose result it gets."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a folder, not a file", str(path))
    folder = path.absolute().parent
    while not folder.exists():
        folder = folder.parent
    with tempfile.TemporaryFile(dir=folder):
        pass


def replace_file(path: Path, content: bytes) -> None:
    """Write a file under another name and then rename it, so that it is whole or unchanged."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".part")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
