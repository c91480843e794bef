"""Folders of data sets, and downloads into the cache with their checks."""

import contextlib
import hashlib
import logging
import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lokl._exports import need
from lokl.datasets.readers import (
    COMPRESSED_ENDINGS,
    DatasetError,
    MissingDatasetError,
    open_binary,
)
from lokl.datasets.registry import DatasetInfo, info

logger = logging.getLogger("lokl")


def progress_bar(*, of_bytes: bool = False) -> Any:
    """Return rich's progress display on standard error, a context manager.

    It counts steps, or the bytes of a download. It is hidden unless standard error is a terminal.
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


class DownloadBar:
    """A progress bar with the methods that pooch calls during a download."""

    def __init__(self, progress: Any, name: str):
        self._progress = progress
        self._name = name
        self._task: Any = None

    @property
    def started(self) -> bool:
        """Whether anything was downloaded."""
        return self._task is not None

    @property
    def total(self) -> int:
        return 0

    @total.setter
    def total(self, size: int) -> None:
        # Started here, so that there is no bar without a download. The size may be unknown.
        self._task = self._progress.add_task(f"downloading {self._name}", total=size or None)

    def update(self, count: int) -> None:
        self._progress.advance(self._task, count)

    def reset(self) -> None:
        self._progress.reset(self._task)

    def close(self) -> None:
        self._progress.stop_task(self._task)


@contextmanager
def download_bar(name: str) -> Iterator[DownloadBar]:
    """Yield a progress bar for the download of a data set."""
    with progress_bar(of_bytes=True) as progress:
        yield DownloadBar(progress, name)


def data_folder() -> Path | None:
    """Return the user's folder of data sets, from the environment variable LOKL_DATA."""
    name = os.environ.get("LOKL_DATA")
    if not name:
        return None
    folder = Path(name).expanduser()
    if not folder.is_dir():
        raise MissingDatasetError(f"LOKL_DATA is {name!r}, which is not a folder; correct it")
    return folder


def cache_folder() -> Path | None:
    """Return the folder of downloads, which may not exist yet.

    None if LOKL_CACHE is not set and pooch, which has the default folder, is not installed.
    """
    name = os.environ.get("LOKL_CACHE")
    if name:
        return Path(name).expanduser()
    try:
        import pooch
    except ImportError:
        return None
    return Path(pooch.os_cache("lokl"))


def locate(record: DatasetInfo) -> tuple[str, tuple[Path, ...]]:
    """Return where a data set is stored, and the paths of its files.

    The first value is "scikit-learn", whose data sets have no files, "LOKL_DATA", "cache", or empty
    if the data set is not on this machine.
    """
    if record.format == "scikit-learn":
        return "scikit-learn", ()
    # The cache comes last: its folder may need an import of pooch.
    for name, folder_of in (("LOKL_DATA", data_folder), ("cache", cache_folder)):
        folder = folder_of()
        if folder and (paths := find(record, folder)):
            return name, paths
    return "", ()


def find(record: DatasetInfo, folder: Path) -> tuple[Path, ...]:
    """Return the paths of all files of a data set in a folder; empty if one is missing."""
    paths = []
    for file in record.files:
        candidates = (folder / (file + ending) for ending in COMPRESSED_ENDINGS)
        path = next((path for path in candidates if path.is_file()), None)
        if path is None:
            return ()
        paths.append(path)
    return tuple(paths)


def read_bytes(path: Path) -> bytes:
    """Return the decompressed contents of a file."""
    with open_binary(path) as stream:
        return bytes(stream.read())


def fetch(name: str, *, progress: Any = None) -> tuple[Path, ...]:
    """Make sure that a data set is on this machine, and return the paths of its files.

    The folder in the environment variable LOKL_DATA is searched first, then the cache: the folder
    in LOKL_CACHE, or the default folder for caches. Files that are in neither, and damaged files
    of the cache, are downloaded into the cache.

    Parameters
    ----------
    name : str
        One of `available()`.
    progress : object, optional
        Progress bar in pooch's sense; True is tqdm's. By default there is a bar if standard error
        is a terminal.

    Returns
    -------
    paths : tuple of Path
        Empty for data sets that are part of scikit-learn.
    """
    record = info(name)
    location, paths = locate(record)
    if location in ("scikit-learn", "LOKL_DATA") or (paths and damage(record, paths) is None):
        return paths
    return (download(record, cache_folder(), progress=progress),)


def fetch_missing(names: Iterable[str], download: bool) -> dict[str, str]:
    """Fetch data sets that are not on this machine, if `download`; return why sets are missing.

    Raises
    ------
    MissingDatasetError
        All of them are missing.
    """
    names = sorted(names)
    missing = {}
    for name in names:
        if locate(info(name))[0]:
            continue
        missing[name] = f"not on this machine; see `lokl datasets fetch {name}`"
        if download:
            try:
                fetch(name)
                del missing[name]
            except (DatasetError, ImportError) as reason:
                missing[name] = str(reason)
    if names and len(missing) == len(names):
        raise MissingDatasetError(
            f"{', '.join(names)}: not on this machine ({missing[names[0]]}); set LOKL_DATA to a "
            f"folder with the files, or run `lokl datasets fetch {' '.join(names)}`"
        )
    return missing


def download(record: DatasetInfo, folder: Path | None, *, progress: Any = None) -> Path:
    """Download the file of a data set into a folder and return its path.

    The file is written under another name and moved once it is complete and checked. Several
    processes may do so at once: each moves a complete file, and the last one stays. pooch's own
    check does not serve, because our checksums belong to the decompressed contents.
    """
    if record.url is None:
        raise MissingDatasetError(
            f"{record.name} cannot be downloaded; put {', '.join(record.files)} into a folder "
            "and set LOKL_DATA to it"
        )
    pooch = need("pooch", "a download")
    folder = folder or Path(pooch.os_cache("lokl"))
    path = folder / Path(urlsplit(record.url).path).name
    # The name keeps its ending, from which the compression is inferred.
    temporary = folder / f".{uuid.uuid4().hex}-{path.name}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if progress is None:
            # A warning, since other levels are hidden unless logging is configured.
            logger.warning("downloading %s from %s", record.name, record.url)
            with download_bar(record.name) as bar:
                _receive(record, temporary, bar)
        else:
            _receive(record, temporary, progress)
        problem = damage(record, (temporary,))
        if problem:
            raise DatasetError(
                f"the download of {record.name} from {record.url} {problem}; it was deleted. "
                "Try again, or put the file into a folder and set LOKL_DATA to it"
            )
        os.replace(temporary, path)
    except DatasetError:
        raise
    except OSError as reason:
        raise DatasetError(
            f"cannot write {record.name} into the cache {folder}: {reason.strerror or reason}; "
            "set LOKL_CACHE to another folder"
        ) from reason
    finally:
        # If this fails, the folder cannot be written, and that error is being raised.
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
    if not (record.sha256 and record.published):
        logger.warning(
            "%s: the sha256 of the published file is unknown; only its rows were counted",
            record.name,
        )
    return path


def damage(record: DatasetInfo, paths: tuple[Path, ...]) -> str | None:
    """Describe the damage of the files of a data set, or return None."""
    try:
        contents = [read_bytes(path) for path in paths]
    except DatasetError as reason:
        return f"is damaged ({reason.__cause__})"
    if record.sha256 and record.published:
        checksum = hashlib.sha256(b"".join(contents)).hexdigest()
        if checksum == record.sha256:
            return None
        return f"is damaged or another file: sha256 {checksum}, expected {record.sha256}"
    rows = sum(1 for line in contents[0].splitlines() if line.strip())
    return None if rows == record.n else f"is damaged: {rows} rows, expected {record.n}"


def _receive(record: DatasetInfo, path: Path, progress: Any) -> None:
    """Write the response of the server to a file; network errors become `MissingDatasetError`."""
    import pooch
    import requests

    host = urlsplit(str(record.url)).netloc
    # With a compressed transfer the announced size would differ from the received one.
    headers = {"Accept-Encoding": "identity"}
    receive = pooch.HTTPDownloader(
        progressbar=progress, chunk_size=1 << 16, timeout=30, headers=headers
    )
    try:
        with path.open("xb") as stream:
            receive(record.url, stream, None)
    except requests.RequestException as reason:
        response = getattr(reason, "response", None)
        if response is not None:
            # pooch leaves its connection open.
            response.close()
            what = f"{host} returned status {response.status_code} for {record.url}"
        elif isinstance(reason, requests.Timeout):
            what = f"{host} does not respond"
        elif isinstance(reason, requests.exceptions.ChunkedEncodingError):
            what = f"the connection to {host} broke off"
        else:
            what = f"no connection to {host}"
        raise MissingDatasetError(
            f"cannot download {record.name}: {what}. Put {record.files[0]} into a folder and set "
            f"LOKL_DATA to it, or try `lokl datasets fetch {record.name}` later"
        ) from reason
