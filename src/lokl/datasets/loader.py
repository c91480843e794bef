"""From a name to samples and labels."""

import hashlib
import logging
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse as sp
from sklearn import datasets
from sklearn.utils import Bunch

from lokl._arrays import is_sparse
from lokl.datasets.download import fetch, locate, read
from lokl.datasets.errors import DatasetError, MissingDatasetError
from lokl.datasets.generators import digit_views
from lokl.datasets.readers import libsvm, parse
from lokl.datasets.registry import Record, info

logger = logging.getLogger("lokl")


def load(name: str, *, sparse: bool | None = None, download: bool = True) -> Bunch:
    """Load a data set by its name in the LIBSVM collection or in scikit-learn.

    Files are taken from the folder named by the environment variable LOKL_DATA, else from the
    cache (LOKL_CACHE or the usual place for caches), else they are downloaded into the cache.
    They may be compressed (.bz2, .gz, .xz).

    Parameters
    ----------
    name : str
        One of `available()`. ``breast_cancer`` is scikit-learn's, ``breast-cancer`` LIBSVM's.
    sparse : bool or None, default=None
        Whether samples come as CSR matrix or as array. None takes CSR for LIBSVM files with more
        than 64 columns of which less than a quarter is filled.
    download : bool, default=True
        Whether to download what is not on this machine; needs the extra ``data``.

    Returns
    -------
    bunch : Bunch
        ``data``, ``target``, ``name``, ``source``, ``licence``, ``sha256`` of the contents that
        were read (None for scikit-learn's) and ``checked``, whether it is the known one.
        Multi-view sets have ``views``, a mapping from names to slices of columns for
        `lokl.kernels.per_view`; ``breast_tcga`` has ``data_test`` and ``target_test``, too, and
        its test part lacks the protein view. scikit-learn's sets keep their ``target_names``.

    Raises
    ------
    ValueError
        The name is not known.
    MissingDatasetError
        The data is not here and cannot be downloaded.
    DatasetError
        The data cannot be read or stored, or has values that are not finite.

    Warns
    -----
    UserWarning
        A file of LOKL_DATA has other contents than the known one.

    Examples
    --------
    >>> from lokl.datasets import load
    >>> wine = load("wine")
    >>> wine.data.shape, wine.source
    ((178, 13), 'UCI Wine')
    """
    record = info(name)
    if record.format == "scikit-learn":
        found = _bundled(record)
    else:
        found = _stored(record, download, sparse)
    # Text has become what is asked for while it was read.
    for part in ("data", "data_test"):
        if part in found and sparse is not None:
            found[part] = _as_asked(found[part], sparse)
    return Bunch(name=record.name, source=record.source, licence=record.licence, **found)


def _bundled(record: Record) -> dict[str, Any]:
    if record.views:
        found = digit_views()
    else:
        theirs = getattr(datasets, f"load_{record.name}")()
        found = {key: theirs[key] for key in ("data", "target", "feature_names", "target_names")}
        found["feature_names"] = list(theirs.feature_names)
    return {**found, "sha256": None, "checked": False}


def _stored(record: Record, download: bool, sparse: bool | None) -> dict[str, Any]:
    place, paths = locate(record)
    if not paths and not download:
        or_fetch = f", or run `lokl datasets fetch {record.name}`" if record.url else ""
        raise MissingDatasetError(
            f"{record.name} is not on this machine: put {', '.join(record.files)} into a folder "
            f"and name it in LOKL_DATA{or_fetch}"
        )
    paths = paths or fetch(record.name)
    hashed = hashlib.sha256()
    try:
        if record.format == "libsvm":
            parsed = libsvm(record, paths[0], hashed, sparse=sparse)
        else:
            contents = {path: read(path) for path in paths}
            for content in contents.values():
                hashed.update(content)
            parsed = parse(record, contents)
    except DatasetError:
        if place == "cache":
            _refuse_damaged(record, paths[0], hashed.hexdigest())
        raise
    found = hashed.hexdigest()
    if place == "cache":
        _refuse_damaged(record, paths[0], found)
    if record.sha256 not in (None, found):
        _tell_other_content(record, paths[0], found, parsed["target"])
    return {**parsed, "sha256": found, "checked": found == record.sha256}


def _refuse_damaged(record: Record, path: Path, found: str) -> None:
    """Raise where a file of the cache is not the published one."""
    if record.published and record.sha256 not in (None, found):
        raise DatasetError(
            f"{path} is damaged: sha256 {found}, expected {record.sha256}; "
            f"`lokl datasets fetch {record.name}` replaces it"
        )


def _tell_other_content(record: Record, path: Path, found: str, labels: Any) -> None:
    """Warn of a file that is not the known one.

    Of some sets only a rebuilt file is known: the published one has other bytes and is no reason
    for a warning, unless its classes have other sizes.
    """
    if not record.published and _same_classes(record, labels):
        logger.info("%s has sha256 %s, the known file has %s", path, found, record.sha256)
        return
    warnings.warn(
        f"{path} is not the known {record.name}, whose contents have sha256 {record.sha256}, but "
        f"another version with {found}; results may differ from those on the known one",
        UserWarning,
        stacklevel=4,  # the caller of load
    )


def _same_classes(record: Record, labels: Any) -> bool:
    counts = dict(zip(*np.unique(labels, return_counts=True), strict=True))
    return counts.keys() == record.classes.keys() and all(
        known in (None, counts[label]) for label, known in record.classes.items()
    )


def _as_asked(X: Any, sparse: bool) -> Any:
    if is_sparse(X):
        return X if sparse else X.toarray()
    return sp.csr_matrix(X) if sparse else X
