"""Where data sets lie on this machine, and their contents without compression."""

import bz2
import gzip
import hashlib
import lzma
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lokl.datasets.errors import DatasetError, MissingDatasetError
from lokl.datasets.registry import Record

_OPEN: dict[str, Any] = {"": open, ".bz2": bz2.open, ".gz": gzip.open, ".xz": lzma.open}


def data_folder() -> Path | None:
    """Return the user's own folder of data sets, which LOKL_DATA names."""
    name = os.environ.get("LOKL_DATA")
    if not name:
        return None
    folder = Path(name).expanduser()
    if not folder.is_dir():
        raise MissingDatasetError(f"LOKL_DATA is {name!r}, which is not a folder")
    return folder


def cache_folder() -> Path | None:
    """Return the folder of downloads, which may not exist yet.

    None where LOKL_CACHE is not set and pooch, which knows the usual place, is not installed.
    """
    name = os.environ.get("LOKL_CACHE")
    if name:
        return Path(name).expanduser()
    try:
        import pooch
    except ImportError:
        return None
    return Path(pooch.os_cache("lokl"))


def locate(record: Record) -> tuple[str, tuple[Path, ...]]:
    """Return the place of a data set, and the paths of its files.

    The place is "scikit-learn", of which it is a part without files, "LOKL_DATA", "cache", or empty
    where it is not on this machine.
    """
    if record.format == "scikit-learn":
        return "scikit-learn", ()
    own = data_folder()
    if own and (paths := find(record, own)):
        return "LOKL_DATA", paths
    # Asked for last: it may import pooch.
    cache = cache_folder()
    if cache and (paths := find(record, cache)):
        return "cache", paths
    return "", ()


def find(record: Record, folder: Path) -> tuple[Path, ...]:
    """Return the paths of all files of a record; no paths where one is missing."""
    found = []
    for file in record.files:
        there = [path for end in _OPEN if (path := folder / (file + end)).is_file()]
        if not there:
            return ()
        found.append(there[0])
    return tuple(found)


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """Open a file, decompressed by the ending of its name; what fails in the block names it."""
    try:
        with _OPEN.get(path.suffix, open)(path, "rb") as stream:
            yield stream
    except DatasetError:
        raise
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as reason:
        raise DatasetError(f"cannot read {path}: {reason}") from reason


def read(path: Path) -> bytes:
    """Return the contents of a file, decompressed by the ending of its name."""
    with opened(path) as stream:
        return bytes(stream.read())


def is_compressed(path: Path) -> bool:
    """Whether the ending of a name is that of a compression."""
    return path.suffix != "" and path.suffix in _OPEN


def digest(contents: Iterable[bytes]) -> str:
    """Return the sha256 of several contents, joined."""
    return hashlib.sha256(b"".join(contents)).hexdigest()
