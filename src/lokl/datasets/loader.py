"""Data sets by name: folders, downloads into the cache, and loading."""

import csv
import hashlib
import io
import logging
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from scipy import sparse as sp
from scipy.io import loadmat
from sklearn import datasets
from sklearn.utils import Bunch

from lokl._arrays import Array, as_dense, is_sparse
from lokl._exports import need
from lokl.datasets.generators import column_slices, digit_views
from lokl.datasets.readers import (
    COMPRESSED_ENDINGS,
    DatasetError,
    LibsvmCounts,
    MissingDatasetError,
    dense_frame,
    is_sparse_layout,
    open_binary,
    parse_libsvm,
    rebased,
)
from lokl.datasets.registry import DatasetInfo, info

logger = logging.getLogger("lokl")

Contents = Mapping[Path, bytes]  # of the files of a data set, in the order of the registry


def load(
    name: str, *, sparse: bool | None = None, as_frame: bool = False, download: bool = True
) -> Bunch:
    """Load a data set by its name in the LIBSVM collection or in scikit-learn.

    Files are taken from the folder in the environment variable LOKL_DATA, then from the cache
    (LOKL_CACHE or the default folder for caches). If they are in neither, they are downloaded into
    the cache. They may be compressed (.bz2, .gz, .xz).

    Parameters
    ----------
    name : str
        One of `available()`. ``breast_cancer`` is scikit-learn's, ``breast-cancer`` LIBSVM's.
    sparse : bool or None, default=None
        Whether samples are a CSR matrix or an array. None selects CSR for LIBSVM files with more
        than 64 columns and less than a quarter of nonzero values.
    as_frame : bool, default=False
        Whether samples are a data frame, with the names of columns and, if known, of samples;
        needs the extra ``data``.
    download : bool, default=True
        Whether to download missing data; needs the extra ``data``.

    Returns
    -------
    bunch : Bunch
        ``data`` of shape (n_samples, n_features), ``target`` of shape (n_samples,), ``name``,
        ``source``, ``licence``, ``sha256`` of the contents that were read (None for
        scikit-learn's) and ``checked``, whether it is the expected one. All but LIBSVM sets have
        ``feature_names``. Multi-view sets have ``views``, a mapping from names to slices of
        columns for `lokl.kernels.per_view`; ``breast_tcga`` also has ``sample_names``, and
        patients without the protein view in ``data_test``, ``target_test`` and
        ``sample_names_test``. scikit-learn's sets keep their ``target_names``.

    Raises
    ------
    ValueError
        The name is unknown.
    MissingDatasetError
        The data is missing on this machine and cannot be downloaded.
    DatasetError
        The data cannot be read or stored, or has missing or infinite values; or it is too large
        for a data frame.

    Warns
    -----
    UserWarning
        A file of LOKL_DATA differs from the registered one.

    See Also
    --------
    lokl.datasets.available : Names.
    lokl.datasets.info : Size and licence.
    lokl.datasets.read : Files of one's own.

    Examples
    --------
    >>> from lokl.datasets import load
    >>> wine = load("wine")
    >>> wine.data.shape, wine.source
    ((178, 13), 'UCI Wine')
    """
    record = info(name)
    bundled = record.format == "scikit-learn"
    content = _bundled(record) if bundled else _stored(record, download)
    for part in content.keys() & {"data", "data_test"}:
        X, as_csr = content[part], sparse
        if as_frame:
            names = content.get("feature_names"), content.get(part.replace("data", "sample_names"))
            content[part] = dense_frame(record.name, X, *names)
            continue
        if as_csr is None:
            as_csr = is_sparse(X) and is_sparse_layout(X.shape[0], X.shape[1], X.nnz)
        content[part] = sp.csr_matrix(X) if as_csr else as_dense(X)
    return Bunch(name=record.name, source=record.source, licence=record.licence, **content)


def _bundled(record: DatasetInfo) -> dict[str, Any]:
    if record.views:
        content = digit_views()
    else:
        bunch = getattr(datasets, f"load_{record.name}")()
        content = {key: bunch[key] for key in ("data", "target", "target_names")}
        content["feature_names"] = list(bunch.feature_names)
    return {**content, "sha256": None, "checked": False}


def _stored(record: DatasetInfo, download: bool) -> dict[str, Any]:
    folder, paths = locate(record)
    if not paths and not download:
        or_fetch = f", or run `lokl datasets fetch {record.name}`" if record.url else ""
        raise MissingDatasetError(
            f"{record.name} is not on this machine: put {', '.join(record.files)} into a folder "
            f"and set LOKL_DATA to it{or_fetch}"
        )
    contents = {path: read_bytes(path) for path in paths or fetch(record.name)}
    path, checksum = next(iter(contents)), sha256_of(contents.values())
    differs = record.sha256 not in (None, checksum)
    if differs and folder == "cache" and record.published:
        raise DatasetError(
            f"{path} is damaged: sha256 {checksum}, expected {record.sha256}; "
            f"`lokl datasets fetch {record.name}` replaces it"
        )
    parsed = _parse(record, contents)
    if differs:
        _warn_of_other_contents(record, path, checksum, parsed["target"])
    return {**parsed, "sha256": checksum, "checked": checksum == record.sha256}


def _warn_of_other_contents(record: DatasetInfo, path: Path, checksum: str, labels: Array) -> None:
    """Warn that a file differs from the registered one.

    For some sets only the checksum of a rebuilt file is registered. The published file then has
    other bytes, and only other class sizes are a reason for a warning.
    """
    counts = dict(zip(*np.unique(labels, return_counts=True), strict=True))
    same_classes = counts.keys() == record.classes.keys() and all(
        expected in (None, counts[label]) for label, expected in record.classes.items()
    )
    if not record.published and same_classes:
        logger.info("%s has sha256 %s, expected %s", path, checksum, record.sha256)
        return
    warnings.warn(
        f"{path} differs from the registered {record.name}: sha256 {checksum}, expected "
        f"{record.sha256}; results may differ",
        UserWarning,
        stacklevel=4,  # the caller of load
    )


def _parse(record: DatasetInfo, contents: Contents) -> dict[str, Any]:
    path = next(iter(contents))
    parse = {"libsvm": _parse_libsvm, "mat": _parse_mat, "tcga": _parse_tcga}[record.format]
    try:
        parsed = parse(record, contents)
    except (MemoryError, DatasetError):
        raise
    except Exception as reason:
        # scipy fails with many kinds of errors on damaged bytes.
        raise DatasetError(f"{path} cannot be read as {record.name}: {reason}") from reason
    n_rows, n_columns = parsed["data"].shape
    if (n_rows, n_columns) != (record.n, record.d):
        raise DatasetError(
            f"{path} has {n_rows} rows and {n_columns} columns, but {record.name} has {record.n} "
            f"and {record.d}; it is damaged or another version"
        )
    return parsed


def _parse_libsvm(record: DatasetInfo, contents: Contents) -> dict[str, Any]:
    ((path, content),) = contents.items()
    label = f"{path} (data set {record.name})"
    X, target = parse_libsvm(content, label=label)
    counts = LibsvmCounts.of(X)
    _, n_features = counts.layout(record.d, label)
    data = rebased(X, n_features, counts.first_column)
    check_finite(path, data)
    check_finite(path, target[:, np.newaxis], "the labels")
    return {"data": data, "target": target}


def _parse_mat(record: DatasetInfo, contents: Contents) -> dict[str, Any]:
    """Parse MATLAB's cells ``X``, one for each view, and labels ``y`` or ``gt``.

    Samples are rows; in some files they are columns.
    """
    ((path, content),) = contents.items()
    # scipy also reads streams, but its type stubs only allow paths.
    file = loadmat(io.BytesIO(content))  # type: ignore[arg-type]
    labels = np.asarray(file["y"] if "y" in file else file["gt"]).reshape(-1, 1)
    blocks = [np.asarray(cell, dtype=float) for cell in file["X"].ravel()]
    blocks = [block if len(block) == len(labels) else block.T for block in blocks]
    for name, block in zip(record.views, blocks, strict=True):
        check_finite(path, block, name)
    check_finite(path, labels, "the labels")
    names = [
        f"{view} {k}"
        for view, X in zip(record.views, blocks, strict=True)
        for k in range(X.shape[1])
    ]
    return _side_by_side(record.views, blocks, labels.ravel().astype(int), names)


def _parse_tcga(record: DatasetInfo, contents: Contents) -> dict[str, Any]:
    """Parse tables of three views and the subtypes, then of two views and the subtypes."""
    mrna, mirna, protein, subtype, mrna_test, mirna_test, subtype_test = contents.items()
    tables = [_named_numbers(*file) for file in (mrna, mirna, protein)]
    test = [_named_numbers(*file) for file in (mrna_test, mirna_test)]
    no_protein = np.full((len(test[0][0]), len(tables[2][2])), np.nan)
    blocks, names = [table[0] for table in tables], [name for table in tables for name in table[2]]
    return {
        **_side_by_side(record.views, blocks, _cells(subtype[1])[1:, 0], names),
        "sample_names": tables[0][1],
        "data_test": np.hstack([test[0][0], test[1][0], no_protein]),
        "target_test": _cells(subtype_test[1])[1:, 0],
        "sample_names_test": test[0][1],
    }


def _side_by_side(
    views: Sequence[str], blocks: list[Array], target: Array, names: list[str]
) -> dict[str, Any]:
    slices = column_slices(views, [block.shape[1] for block in blocks])
    data = np.hstack(blocks)
    return {"data": data, "target": target, "feature_names": names, "views": slices}


def _cells(content: bytes) -> Array:
    """Return the cells of a table, the header first."""
    return np.array(list(csv.reader(io.StringIO(content.decode()))))


def _named_numbers(path: Path, content: bytes) -> tuple[Array, list[str], list[str]]:
    """Return the values of a table, and the names of its samples (first column) and columns."""
    cells = _cells(content)
    values = cells[1:, 1:].astype(float)
    check_finite(path, values)
    return values, cells[1:, 0].tolist(), cells[0, 1:].tolist()


def check_finite(path: Path, values: Any, part: str = "") -> None:
    """Raise `DatasetError` for the first missing or infinite value; rows and columns from 1."""
    stored = values.data if is_sparse(values) else values
    if np.isfinite(stored).all():
        return
    entries = sp.coo_matrix(values)
    bad = np.flatnonzero(~np.isfinite(entries.data))[0]
    of_part = f" of {part}" if part else ""
    raise DatasetError(
        f"{path}: row {entries.row[bad] + 1}, column {entries.col[bad] + 1}{of_part} is "
        f"{entries.data[bad]}, not a finite number; correct the file, or fetch it again"
    )


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

    None without LOKL_CACHE if pooch, which has the default folder, is missing.
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
    """Return the location of a data set, and the paths of its files.

    The first value is "scikit-learn", whose data sets have no files, "LOKL_DATA", "cache", or empty
    if the data set is missing on this machine.
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


def sha256_of(contents: Iterable[bytes]) -> str:
    """Return the checksum of joined contents."""
    hashed = hashlib.sha256()
    for content in contents:
        hashed.update(content)
    return hashed.hexdigest()


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

    See Also
    --------
    lokl.datasets.load : Also reads the files.

    Examples
    --------
    >>> from lokl.datasets import fetch
    >>> fetch("wine")
    ()
    """
    record = info(name)
    location, paths = locate(record)
    if location in ("scikit-learn", "LOKL_DATA") or (paths and damage(record, paths) is None):
        return paths
    return (download(record, cache_folder(), progress=progress),)


def fetch_missing(names: Iterable[str], download: bool) -> dict[str, str]:
    """Fetch data sets that are missing on this machine, if `download`; return why sets are missing.

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
        cause = f" ({missing[names[0]]})" if download else ""
        raise MissingDatasetError(
            f"{', '.join(names)}: not on this machine{cause}; set LOKL_DATA to a folder with the "
            f"files, or run `lokl datasets fetch {' '.join(names)}`"
        )
    return missing


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
    """A progress bar with the methods that pooch calls during a download.

    Parameters
    ----------
    progress : rich.progress.Progress
    name : str
        Name of the data set.

    Attributes
    ----------
    total : int
        Announced size, which pooch sets; 0 if it is unknown.
    task : int or None
        None if nothing was downloaded.
    """

    total = 0
    task: Any = None

    def __init__(self, progress: Any, name: str):
        self._progress = progress
        self._name = name

    def update(self, count: int) -> None:
        # Started here, so that there is no bar without a download.
        if self.task is None:
            text = f"downloading {self._name}"
            self.task = self._progress.add_task(text, total=self.total or None)
        self._progress.advance(self.task, count)

    def reset(self) -> None:
        if self.task is not None:
            self._progress.reset(self.task)

    def close(self) -> None:
        """Do nothing; the display ends with its context."""


def download(record: DatasetInfo, folder: Path | None, *, progress: Any = None) -> Path:
    """Download the file of a data set into a folder and return its path.

    The file is written into a folder of its own and moved once it is complete and checked. Several
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
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".", dir=folder, ignore_cleanup_errors=True) as own_folder:
            # The name keeps its ending, from which the compression is inferred.
            temporary = Path(own_folder, path.name)
            _receive(record, temporary, progress)
            problem = damage(record, (temporary,))
            if problem:
                raise DatasetError(
                    f"the download of {record.name} from {record.url} {problem}; it was deleted. "
                    "Try again, or put the file into a folder and set LOKL_DATA to it"
                )
            temporary.replace(path)
    except DatasetError:
        raise
    except OSError as reason:
        raise DatasetError(
            f"cannot write {record.name} into the cache {folder}: {reason.strerror or reason}; "
            "set LOKL_CACHE to another folder"
        ) from reason
    if not (record.sha256 and record.published):
        text = "%s: the sha256 of the published file is unknown; only its rows were counted"
        logger.warning(text, record.name)
    return path


def damage(record: DatasetInfo, paths: tuple[Path, ...]) -> str | None:
    """Describe the damage of the files of a data set, or return None."""
    try:
        contents = [read_bytes(path) for path in paths]
    except DatasetError as reason:
        return f"is damaged ({reason.__cause__})"
    if record.sha256 and record.published:
        checksum = sha256_of(contents)
        if checksum == record.sha256:
            return None
        return f"is damaged or another file: sha256 {checksum}, expected {record.sha256}"
    rows = sum(1 for line in contents[0].splitlines() if line.strip())
    return None if rows == record.n else f"is damaged: {rows} rows, expected {record.n}"


def _receive(record: DatasetInfo, path: Path, progress: Any) -> None:
    """Write the response of the server to a file; network errors become `MissingDatasetError`."""
    import pooch
    import requests

    if progress is None:
        # A warning, since other levels are hidden unless logging is configured.
        logger.warning("downloading %s from %s", record.name, record.url)
        with progress_bar(of_bytes=True) as bar:
            return _receive(record, path, DownloadBar(bar, record.name))
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
