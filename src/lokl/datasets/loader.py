"""From a name to samples and labels."""

import logging
from typing import Any

from scipy import sparse as sp
from sklearn import datasets
from sklearn.utils import Bunch

from lokl._arrays import is_sparse
from lokl.datasets.download import fetch
from lokl.datasets.errors import DatasetError, MissingDatasetError
from lokl.datasets.formats import parse
from lokl.datasets.registry import Record, info
from lokl.datasets.storage import digest, locate, read

logger = logging.getLogger("lokl")

# Below this share of nonzero values and above this number of columns, CSR saves work.
_SHARE, _COLUMNS = 0.25, 64


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
        The data cannot be read or stored.

    Examples
    --------
    >>> from lokl.datasets import load
    >>> wine = load("wine")
    >>> wine.data.shape, wine.source
    ((178, 13), 'UCI Wine')
    """
    record = info(name)
    found = _bundled(record) if record.format == "scikit-learn" else _stored(record, download)
    X = found["data"]
    if sparse is None:
        sparse = is_sparse(X) and X.shape[1] > _COLUMNS and X.nnz < _SHARE * X.shape[0] * X.shape[1]
    for part in ("data", "data_test"):
        if part in found:
            found[part] = _as_asked(found[part], sparse)
    return Bunch(name=record.name, source=record.source, licence=record.licence, **found)


def _bundled(record: Record) -> dict[str, Any]:
    theirs = getattr(datasets, f"load_{record.name}")()
    found = {key: theirs[key] for key in ("data", "target", "feature_names", "target_names")}
    found["feature_names"] = list(theirs.feature_names)
    return {**found, "sha256": None, "checked": False}


def _stored(record: Record, download: bool) -> dict[str, Any]:
    place, paths = locate(record)
    if not paths and not download:
        or_fetch = f", or run `lokl datasets fetch {record.name}`" if record.url else ""
        raise MissingDatasetError(
            f"{record.name} is not on this machine: put {', '.join(record.files)} into a folder "
            f"and name it in LOKL_DATA{or_fetch}"
        )
    paths = paths or fetch(record.name)
    contents = [read(path) for path in paths]
    found = digest(contents)
    if place == "cache" and record.published and record.sha256 not in (None, found):
        raise DatasetError(
            f"{paths[0]} is damaged: sha256 {found}, expected {record.sha256}; "
            f"`lokl datasets fetch {record.name}` replaces it"
        )
    if record.sha256 not in (None, found):
        logger.info("%s has sha256 %s, the known file has %s", paths[0], found, record.sha256)
    parsed = parse(record, contents, paths[0])
    return {**parsed, "sha256": found, "checked": found == record.sha256}


def _as_asked(X: Any, sparse: bool) -> Any:
    if is_sparse(X):
        return X if sparse else X.toarray()
    return sp.csr_matrix(X) if sparse else X
