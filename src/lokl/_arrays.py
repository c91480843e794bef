"""Arrays and sparse matrices, as all parts take them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[Any]


def is_sparse(X: Any) -> bool:
    """Whether `X` is a sparse matrix or array."""
    return bool(sparse.issparse(X))


def as_samples(X: Any) -> Any:
    """Rows in float64: CSR for sparse input, a 2-D array otherwise.

    Distances are differences of large numbers, so values of a kernel are computed in float64
    whatever the samples are; only Gram rows of many samples are worth float32.
    """
    if is_sparse(X):
        return narrow_indices(X.tocsr().astype(np.float64, copy=False))
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2:
        raise ValueError(f"samples are rows of a 2-D array, got shape {X.shape}")
    return X


def narrow_indices(X: Any) -> Any:
    """Return a CSR matrix with indices of 32 bits where they fit.

    Some compiled loops know no other. The matrix that was given is left as it is.
    """
    largest = np.iinfo(np.int32).max
    if X.indices.dtype == X.indptr.dtype == np.int32 or max(X.nnz, *X.shape) > largest:
        return X
    indices, indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return type(X)((X.data, indices, indptr), shape=X.shape)


def squared_norms(X: Any) -> Array:
    """Squared norms of the rows, in float64 whatever the samples are."""
    if is_sparse(X):
        values = X.data.astype(np.float64, copy=False)
        squares = sparse.csr_matrix((values**2, X.indices, X.indptr), shape=X.shape)
        return np.asarray(squares.sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X, dtype=np.float64))


def as_dense(X: Any) -> Array:
    """Return the rows as an array."""
    return np.asarray(X.toarray() if is_sparse(X) else X)


def column(values: Array) -> Array:
    """Return coefficients as columns: (n,) becomes (n, 1)."""
    return values if values.ndim == 2 else values[:, np.newaxis]


def read_only(values: Array) -> Array:
    """Return the same memory as an array that must not be written.

    Loops are compiled anew for arrays that are locked: where some are, all had better be.
    """
    view = values.view()
    view.flags.writeable = False
    return view
