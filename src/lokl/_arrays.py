"""Arrays and sparse matrices, as all parts take them.

Samples as every part takes them: made once, when data enters the library.
"""

from dataclasses import dataclass
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


@dataclass(frozen=True, eq=False)
class Samples:
    """Rows of data, and which kernels can look at which of them.

    A view that a sample lacks is NaN in all its columns as `given`, which gates look at; kernels
    look at the same rows `filled` with 0 for NaN.
    """

    given: Any  # {array, CSR matrix} of shape (n_samples, n_features)
    filled: Any
    present: Array | None = (
        None  # (n_samples, n_kernels), False where a view is missing; None: nowhere
    )
    weight: Array | None = None  # (n_samples,), how much each sample counts in training
    frame: Any = None  # as the user gave them, for selections of columns by name

    @classmethod
    def of(cls, X: Any, present: Array | None = None) -> "Samples":
        """Return rows as samples, NaN filled with 0."""
        if is_sparse(X) or not np.isnan(X).any():
            return cls(X, X, present)
        return cls(X, np.where(np.isnan(X), 0.0, X), present)

    @property
    def n_samples(self) -> int:
        return int(self.given.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.given.shape[1])

    def take(self, rows: Array) -> "Samples":
        """Return some of the samples; all of them in their order are returned as they are."""
        if len(rows) == self.n_samples and (rows == np.arange(self.n_samples)).all():
            return self
        given = self.given[rows]
        return Samples(
            given,
            given if self.filled is self.given else self.filled[rows],
            None if self.present is None else self.present[rows],
            None if self.weight is None else self.weight[rows],
            None if self.frame is None else self.frame.iloc[rows],
        )

    def rows_seen_by(self, kernel: int) -> Array:
        """Numbers of the samples that have the view of a kernel."""
        if self.present is None:
            return np.arange(self.n_samples)
        return np.flatnonzero(self.present[:, kernel])

    def seen_by(self, kernel: int) -> "Samples":
        """Return the samples that have the view of a kernel, for that kernel alone."""
        if self.present is None:
            return self
        part = self.take(self.rows_seen_by(kernel))
        return Samples(part.filled, part.filled, None, part.weight, part.frame)


def sample_weight(samples: Samples) -> Array:
    """Return the weights of training samples, one each where none were given."""
    return np.ones(samples.n_samples) if samples.weight is None else samples.weight
