"""Files that are whole or as they were before.

One run at a time in a folder: a second one would repeat the fits of the first.
"""

import errno
import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
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


logger = logging.getLogger("lokl")


class BusyError(OSError):
    """Another run is at work in the folder."""


@contextmanager
def only_run(folder: Path) -> Iterator[None]:
    """Keep other runs out of a folder meanwhile, or raise a `BusyError` if one is there.

    The lock is the operating system's, on the file ``running.lock``: it ends with the process,
    however that ends, and processes that the run starts do not inherit it.
    """
    path = folder / "running.lock"
    while True:
        with path.open("ab", buffering=0) as stream:
            try:
                _lock(stream)
            except (BlockingIOError, PermissionError) as reason:
                raise BusyError(
                    f"another run is at work in {folder}; wait until it ends, or name another "
                    "folder with --output"
                ) from reason
            except OSError as reason:
                logger.warning(
                    "files in %s cannot be locked (%s): do not start a second run there meanwhile",
                    folder,
                    reason.strerror or reason,
                )
            # A run that ended after the file was opened here has removed it.
            if not os.fstat(stream.fileno()).st_nlink:
                continue
            try:
                yield
            finally:
                # Windows does not remove a file that is open; an empty file does no harm.
                with suppress(OSError):
                    path.unlink()
            return


def _lock(stream: FileIO) -> None:
    """Lock an open file until it is closed, or raise at once if another process has the lock."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        return
    fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
