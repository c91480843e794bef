"""The progress bar of fits and downloads, in terminals only.

Where data sets lie on this machine, and their contents without compression.

Downloads into the cache: checked first, then put in place in one step.
"""

import bz2
import contextlib
import gzip
import hashlib
import logging
import lzma
import os
import uuid
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lokl.datasets.errors import DatasetError, MissingDatasetError
from lokl.datasets.registry import Record, info


def progress_bar(*, of_bytes: bool = False) -> Any:
    """Return rich's display of progress on standard error, which must be entered.

    It shows nothing unless standard error is a terminal: a log has no use for it. It counts steps,
    or the bytes of a download.
    """
    from rich import progress
    from rich.console import Console

    console = Console(stderr=True)
    columns: list[Any] = [progress.MofNCompleteColumn(), progress.TimeElapsedColumn()]
    if of_bytes:
        columns = [progress.DownloadColumn(), progress.TransferSpeedColumn()]
    return progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        *columns,
        progress.TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


class Bar:
    """A bar with the methods that pooch calls during a download."""

    def __init__(self, progress: Any, name: str):
        self._progress = progress
        self._name = name
        self._task: Any = None

    @property
    def moved(self) -> bool:
        return self._task is not None

    @property
    def total(self) -> int:
        return 0

    @total.setter
    def total(self, size: int) -> None:
        # Begun here: what needs no download shows no bar. A server may not tell the size.
        self._task = self._progress.add_task(f"downloading {self._name}", total=size or None)

    def update(self, count: int) -> None:
        self._progress.advance(self._task, count)

    def reset(self) -> None:
        self._progress.reset(self._task)

    def close(self) -> None:
        self._progress.stop_task(self._task)


@contextmanager
def download_bar(name: str) -> Iterator[Bar]:
    """Yield a bar for the download of a data set."""
    with progress_bar(of_bytes=True) as progress:
        yield Bar(progress, name)


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


logger = logging.getLogger("lokl")


def fetch(name: str, *, progress: Any = None) -> tuple[Path, ...]:
    """Make sure that a data set is on this machine, and return the paths of its files.

    The folder named by the environment variable LOKL_DATA is searched first, then the cache: the
    folder named by LOKL_CACHE, or the usual place for caches. What is in neither is downloaded
    into the cache, and so is a file of the cache that is damaged.

    Parameters
    ----------
    name : str
        One of `available()`.
    progress : object, optional
        Progress bar as pooch takes it; True is that of tqdm. Without one, there is a bar where
        standard error is a terminal.

    Returns
    -------
    paths : tuple of Path
        Empty for data that is part of scikit-learn.
    """
    record = info(name)
    place, paths = locate(record)
    if place in ("scikit-learn", "LOKL_DATA") or (paths and fault(record, paths) is None):
        return paths
    return (download(record, cache_folder(), progress=progress),)


def fetch_missing(names: Iterable[str], download: bool) -> dict[str, str]:
    """Fetch what is not on this machine, if asked to `download`; return why sets are lacking.

    That all of them are lacking is a `MissingDatasetError`.
    """
    names = sorted(names)
    lacking = {}
    for name in names:
        if not locate(info(name))[0]:
            lacking[name] = f"not on this machine; see `lokl datasets fetch {name}`"
        if name in lacking and download:
            try:
                fetch(name)
                del lacking[name]
            except (DatasetError, ImportError) as reason:
                lacking[name] = str(reason)
    if names and len(lacking) == len(names):
        raise MissingDatasetError(
            f"{', '.join(names)}: not on this machine ({lacking[names[0]]}); name a folder of the "
            f"files in LOKL_DATA, or run `lokl datasets fetch {' '.join(names)}`"
        )
    return lacking


def download(record: Record, folder: Path | None, *, progress: Any = None) -> Path:
    """Download the file of a record into a folder and return its path.

    It is written beside its place under another name and moved when it is whole and checked.
    Several processes may do so at once: each moves a whole file, the last one stays.
    """
    if record.url is None:
        raise MissingDatasetError(
            f"{record.name} cannot be downloaded; put {', '.join(record.files)} into a folder "
            "and name it in LOKL_DATA"
        )
    try:
        import pooch
    except ImportError as reason:
        raise ImportError(
            "downloads need pooch; install it with: pip install 'lokl[data]'"
        ) from reason
    folder = folder or Path(pooch.os_cache("lokl"))
    place = folder / Path(urlsplit(record.url).path).name
    # The ending tells the compression, so it must stay the last part of the name.
    temporary = folder / f".{uuid.uuid4().hex}-{place.name}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if progress is None:
            # At the level of a warning, which users see without configuring logging.
            logger.warning("downloading %s from %s", record.name, record.url)
            with download_bar(record.name) as bar:
                _receive(record, temporary, bar)
        else:
            _receive(record, temporary, progress)
        problem = fault(record, (temporary,))
        if problem:
            raise DatasetError(
                f"the download of {record.name} from {record.url} {problem}; it was deleted. "
                "Try again, or put the file into a folder and name it in LOKL_DATA"
            )
        os.replace(temporary, place)
    except DatasetError:
        raise
    except OSError as reason:
        raise DatasetError(
            f"cannot write {record.name} into the cache {folder}: {reason.strerror or reason}; "
            "name another folder in LOKL_CACHE"
        ) from reason
    finally:
        # Where this fails the folder cannot be written, and the error of that is on its way.
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
    if not (record.sha256 and record.published):
        logger.warning(
            "%s: no sha256 of the published file is known, only its rows were counted", record.name
        )
    return place


def fault(record: Record, paths: tuple[Path, ...]) -> str | None:
    """Say what is wrong with the files of a record, or return None."""
    try:
        contents = [read(path) for path in paths]
    except DatasetError as reason:
        return f"is damaged ({reason.__cause__})"
    if record.sha256 and record.published:
        found = digest(contents)
        if found != record.sha256:
            return f"is damaged or not the known file: sha256 {found}, expected {record.sha256}"
        return None
    rows = sum(1 for line in contents[0].splitlines() if line.strip())
    return None if rows == record.n else f"is damaged: {rows} rows, expected {record.n}"


def _receive(record: Record, path: Path, progress: Any) -> None:
    """Write what the server sends; errors of the network become a `MissingDatasetError`."""
    import pooch
    import requests

    host = urlsplit(str(record.url)).netloc
    # A server that compresses the transfer announces another size than arrives.
    plain = {"Accept-Encoding": "identity"}
    receive = pooch.HTTPDownloader(
        progressbar=progress, chunk_size=1 << 16, timeout=30, headers=plain
    )
    try:
        with path.open("xb") as stream:
            receive(record.url, stream, None)
    except requests.RequestException as reason:
        answer = getattr(reason, "response", None)
        if answer is not None:
            # pooch leaves its connection open.
            answer.close()
            what = f"{host} answers {answer.status_code} to {record.url}"
        elif isinstance(reason, requests.Timeout):
            what = f"{host} does not answer"
        elif isinstance(reason, requests.exceptions.ChunkedEncodingError):
            what = f"the connection to {host} broke off"
        else:
            what = f"no connection to {host}"
        raise MissingDatasetError(
            f"cannot download {record.name}: {what}. Put {record.files[0]} into a folder and name "
            f"it in LOKL_DATA, or try `lokl datasets fetch {record.name}` later"
        ) from reason
