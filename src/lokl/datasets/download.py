"""Downloads into the cache: checked first, then put in place in one step."""

import contextlib
import logging
import os
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lokl.datasets.errors import DatasetError, MissingDatasetError
from lokl.datasets.progress import download_bar
from lokl.datasets.registry import Record, info
from lokl.datasets.storage import cache_folder, digest, locate, read

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
