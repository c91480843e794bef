"""How something was made: versions, checksums, and rows that are on both sides of a split."""

import hashlib
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from lokl._arrays import is_sparse

_LIBRARIES = ("lokl", "numpy", "scipy", "scikit-learn", "numba")
_BLOCK = 1 << 20


def versions() -> dict[str, str]:
    """Return the versions that results depend on, by name."""
    own = {"Python": platform.python_version()}
    return {"versions": ", ".join(f"{name} {v}" for name, v in {**own, **_installed()}.items())}


def _installed() -> dict[str, str]:
    import lokl

    return {name: lokl.__version__ if name == "lokl" else version(name) for name in _LIBRARIES}


def sha256(path: str | Path) -> str:
    """Return the checksum of a file."""
    found = hashlib.sha256()
    with Path(path).open("rb") as file:
        while block := file.read(_BLOCK):
            found.update(block)
    return found.hexdigest()


def duplicates(learned: Any, asked: Any) -> int:
    """Return how many of the samples that a model is asked about equal one it has learned from."""
    known = set(_rows(learned))
    return sum(row in known for row in _rows(asked))


def n_rows(X: Any) -> int:
    """Return the number of samples of a table of any kind."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _rows(X: Any) -> list[bytes]:
    """Return every row as something that equals only its like."""
    if is_sparse(X):
        rows = X.tocsr().copy()
        rows.sum_duplicates()
        rows.eliminate_zeros()
        parts = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
        return [
            rows.indices[a:b].astype(np.int64).tobytes() + rows.data[a:b].astype(float).tobytes()
            for a, b in parts
        ]
    values = np.asarray(X)
    if values.dtype.kind == "O":
        return [repr(row.tolist()).encode() for row in values]
    # Minus zero equals zero, and all NaN mean the same here.
    values = np.where(np.isnan(values), np.nan, values.astype(float) + 0.0)
    return [row.tobytes() for row in values]
