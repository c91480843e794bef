"""Writing files atomically, and checking early that they can be written."""

import errno
import os
import stat
import tempfile
from pathlib import Path

_DEVICES = Path("/dev")


def check_writable(path: Path) -> None:
    """Raise the OSError that writing a file would raise, before the work whose result it gets.

    Files are written into existing folders only: a misspelt folder is not created.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a folder, not a file", str(path))
    if not is_ordinary(path):
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return
    folder = path.absolute().parent
    if not folder.is_dir():
        raise missing_folder(path.parent)
    with tempfile.TemporaryFile(dir=folder):
        pass


def missing_folder(folder: Path) -> OSError:
    """Return the error about a folder in which something is to be written and that is not there."""
    if folder.exists():
        return NotADirectoryError(errno.ENOTDIR, "is a file, not a folder", str(folder))
    return FileNotFoundError(errno.ENOENT, "there is no such folder; create it first", str(folder))


def replace_file(path: Path, content: bytes) -> None:
    """Write a file under another name and then rename it, so that it is whole or unchanged.

    Devices, pipes and names of open files are written in place: renaming would replace them by a
    file.
    """
    if not is_ordinary(path):
        with path.open("ab") as stream:
            stream.write(content)
        return
    # A link stays a link.
    path = path.resolve()
    temporary = path.with_name(path.name + ".part")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def is_ordinary(path: Path) -> bool:
    """Return whether a path is an ordinary file, or can become one.

    Devices, pipes and names of open files, such as ``/dev/stdout``, are not: they may lead to an
    ordinary file, but another process writes into it, too.
    """
    folder = path.absolute().parent.resolve()
    if folder in (_DEVICES, _DEVICES / "fd") or folder.match("/proc/*/fd"):
        return not path.exists()
    return not path.exists() or stat.S_ISREG(path.stat().st_mode)
