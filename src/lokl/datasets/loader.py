"""Loading data sets by name."""

import csv
import hashlib
import io
import logging
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse as sp
from scipy.io import loadmat
from sklearn import datasets
from sklearn.utils import Bunch

from lokl._arrays import Array, is_sparse
from lokl.datasets.download import fetch, locate, read_bytes
from lokl.datasets.generators import column_slices, digit_views
from lokl.datasets.readers import DatasetError, LibsvmText, MissingDatasetError
from lokl.datasets.registry import DatasetInfo, info

logger = logging.getLogger("lokl")

Contents = Mapping[Path, bytes]  # of the files of a data set, in the order of the registry


def load(name: str, *, sparse: bool | None = None, download: bool = True) -> Bunch:
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
        than 64 columns of which less than a quarter is nonzero.
    download : bool, default=True
        Whether to download data that is not on this machine; needs the extra ``data``.

    Returns
    -------
    bunch : Bunch
        ``data`` of shape (n_samples, n_features), ``target`` of shape (n_samples,), ``name``,
        ``source``, ``licence``, ``sha256`` of the contents that were read (None for
        scikit-learn's) and ``checked``, whether it is the expected one. Multi-view sets have
        ``views``, a mapping from names to slices of columns for `lokl.kernels.per_view`;
        ``breast_tcga`` also has ``data_test`` and ``target_test``, without the protein view.
        scikit-learn's sets keep their ``target_names``.

    Raises
    ------
    ValueError
        The name is unknown.
    MissingDatasetError
        The data is not on this machine and cannot be downloaded.
    DatasetError
        The data cannot be read or stored, or has values that are not finite.

    Warns
    -----
    UserWarning
        A file of LOKL_DATA differs from the registered one.

    Examples
    --------
    >>> from lokl.datasets import load
    >>> wine = load("wine")
    >>> wine.data.shape, wine.source
    ((178, 13), 'UCI Wine')
    """
    record = info(name)
    if record.format == "scikit-learn":
        content = _bundled(record)
    else:
        content = _stored(record, download, sparse)
    for part in ("data", "data_test"):
        if part in content and sparse is not None:
            content[part] = _as_layout(content[part], sparse)
    return Bunch(name=record.name, source=record.source, licence=record.licence, **content)


def _as_layout(X: Any, sparse: bool) -> Any:
    if is_sparse(X):
        return X if sparse else X.toarray()
    return sp.csr_matrix(X) if sparse else X


def _bundled(record: DatasetInfo) -> dict[str, Any]:
    if record.views:
        content = digit_views()
    else:
        bunch = getattr(datasets, f"load_{record.name}")()
        content = {key: bunch[key] for key in ("data", "target", "target_names")}
        content["feature_names"] = list(bunch.feature_names)
    return {**content, "sha256": None, "checked": False}


def _stored(record: DatasetInfo, download: bool, sparse: bool | None) -> dict[str, Any]:
    folder, paths = locate(record)
    if not paths and not download:
        or_fetch = f", or run `lokl datasets fetch {record.name}`" if record.url else ""
        raise MissingDatasetError(
            f"{record.name} is not on this machine: put {', '.join(record.files)} into a folder "
            f"and set LOKL_DATA to it{or_fetch}"
        )
    paths = paths or fetch(record.name)
    hashed = hashlib.sha256()
    try:
        if record.format == "libsvm":
            parsed = _read_libsvm(record, paths[0], sparse, hashed)
        else:
            contents = {path: read_bytes(path) for path in paths}
            hashed.update(b"".join(contents.values()))
            parsed = _parse(record, contents)
    except DatasetError:
        if folder == "cache":
            checksum = hashlib.sha256(read_bytes(paths[0])).hexdigest()
            _check_cached(record, paths[0], checksum)
        raise
    checksum = hashed.hexdigest()
    if folder == "cache":
        _check_cached(record, paths[0], checksum)
    if record.sha256 not in (None, checksum):
        _warn_of_other_contents(record, paths[0], checksum, parsed["target"])
    return {**parsed, "sha256": checksum, "checked": checksum == record.sha256}


def _check_cached(record: DatasetInfo, path: Path, checksum: str) -> None:
    """Raise `DatasetError` if a file of the cache is not the published one."""
    if record.published and record.sha256 not in (None, checksum):
        raise DatasetError(
            f"{path} is damaged: sha256 {checksum}, expected {record.sha256}; "
            f"`lokl datasets fetch {record.name}` replaces it"
        )


def _warn_of_other_contents(record: DatasetInfo, path: Path, checksum: str, labels: Array) -> None:
    """Warn that a file is not the registered one.

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


def _read_libsvm(
    record: DatasetInfo, path: Path, sparse: bool | None, hashed: Any
) -> dict[str, Any]:
    file = LibsvmText(path, f"{path} (data set {record.name})")
    bunch = file.samples(shape=(record.n, record.d), sparse=sparse, seen=hashed.update)
    check_finite(path, bunch.data)
    check_finite(path, bunch.target[:, np.newaxis], "the labels")
    return {"data": bunch.data, "target": bunch.target}


def _parse(record: DatasetInfo, contents: Contents) -> dict[str, Any]:
    parsers = {"mat": _parse_mat, "tcga": _parse_tcga}
    path = next(iter(contents))
    try:
        parsed = parsers[record.format](record, contents)
    except (MemoryError, DatasetError):
        raise
    except Exception as reason:
        # scipy fails with many kinds of errors on damaged bytes.
        raise DatasetError(f"{path} cannot be read as {record.name}: {reason}") from reason
    if parsed["data"].shape != (record.n, record.d):
        raise DatasetError(
            f"{path} has shape {parsed['data'].shape}, but {record.name} has "
            f"{(record.n, record.d)}; it is damaged or another version"
        )
    return parsed


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
    return _side_by_side(record.views, blocks, labels.ravel().astype(int))


def _parse_tcga(record: DatasetInfo, contents: Contents) -> dict[str, Any]:
    """Parse tables of three views and the subtypes, then of two views and the subtypes."""
    mrna, mirna, protein, subtype, mrna_test, mirna_test, subtype_test = contents.items()
    blocks = [_numbers(*file) for file in (mrna, mirna, protein)]
    test = [_numbers(*file) for file in (mrna_test, mirna_test)]
    no_protein = np.full((len(test[0]), blocks[2].shape[1]), np.nan)
    return {
        **_side_by_side(record.views, blocks, _cells(subtype[1])[:, 0]),
        "data_test": np.hstack([*test, no_protein]),
        "target_test": _cells(subtype_test[1])[:, 0],
    }


def _side_by_side(names: Sequence[str], blocks: list[Array], target: Array) -> dict[str, Any]:
    views = column_slices(names, [block.shape[1] for block in blocks])
    return {"data": np.hstack(blocks), "target": target, "views": views}


def _cells(content: bytes) -> Array:
    """Return the cells of a table without its header."""
    return np.array(list(csv.reader(io.StringIO(content.decode())))[1:])


def _numbers(path: Path, content: bytes) -> Array:
    """Return the values of a table whose first column names the samples."""
    values = _cells(content)[:, 1:].astype(float)
    check_finite(path, values)
    return values


def check_finite(path: Path, values: Any, part: str = "") -> None:
    """Raise `DatasetError` for the first value that is not finite; rows and columns from 1."""
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
