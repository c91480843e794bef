"""Dense and sparse arrays, and `Samples`, the validated form of all data in the library."""

import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[Any]

# Entries of a table that are hashed at a time.
_BLOCK = 2**20
# Shifts and factors of the finaliser of splitmix64 (Steele, Lea and Flood, 2014).
_SPLITMIX = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


def is_sparse(X: Any) -> bool:
    """Return whether `X` is a sparse matrix or array."""
    return bool(sparse.issparse(X))


def as_samples(X: Any) -> Any:
    """Return rows in float64: CSR for sparse input, a 2-D array otherwise.

    Distances are differences of large numbers, so kernel values are computed in float64 whatever
    the precision of the samples. Only Gram rows of many samples are stored in float32.
    """
    if is_sparse(X):
        return narrow_indices(X.tocsr().astype(np.float64, copy=False))
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2:
        raise ValueError(f"samples must be rows of a 2-D array, got shape {X.shape}")
    return X


def narrow_indices(X: Any) -> Any:
    """Return a CSR matrix with 32-bit indices if they fit; `X` itself is not changed.

    Some compiled loops only accept 32-bit indices.
    """
    largest = np.iinfo(np.int32).max
    if X.indices.dtype == X.indptr.dtype == np.int32 or max(X.nnz, *X.shape) > largest:
        return X
    indices, indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return type(X)((X.data, indices, indptr), shape=X.shape)


def squared_norms(X: Any) -> Array:
    """Return the squared norms of the rows in float64, (n_samples,)."""
    if is_sparse(X):
        values = X.data.astype(np.float64, copy=False)
        squares = sparse.csr_matrix((values**2, X.indices, X.indptr), shape=X.shape)
        return np.asarray(squares.sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X, dtype=np.float64))


def absolute_norms(X: Any) -> Array:
    """Return the L1 norms of the rows in float64, (n_samples,)."""
    return np.asarray(abs(without_duplicates(X)).sum(axis=1, dtype=np.float64)).ravel()


def without_duplicates(X: Any) -> Any:
    """Return rows with one entry at most for each position; `X` itself is not changed."""
    if is_sparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def as_dense(X: Any) -> Array:
    """Return the rows as an array."""
    return np.asarray(X.toarray() if is_sparse(X) else X)


def slices(size: int, step: int) -> list[slice]:
    """Return slices of at most `step` indices that divide ``range(size)``."""
    return [slice(start, min(start + step, size)) for start in range(0, size, step)]


def stack_rows(parts: Sequence[Any]) -> Any:
    """Concatenate the rows of arrays, sparse matrices or data frames; a single part is not copied.

    Parts without rows are left out.
    """
    parts = [part for part in parts if part.shape[0]] or parts[:1]
    if len(parts) == 1:
        return parts[0]
    if any(map(is_sparse, parts)):
        return sparse.vstack(parts, format="csr")
    if hasattr(parts[0], "columns"):
        # pandas or polars.
        library = importlib.import_module(type(parts[0]).__module__.partition(".")[0])
        return library.concat(parts)
    return np.concatenate(parts)


def column(values: Array) -> Array:
    """Return values as columns: shape (n,) becomes (n, 1)."""
    return values if values.ndim == 2 else values[:, np.newaxis]


def evenly_spaced(n: int, most: int) -> Array:
    """Return at most `most` of n positions, at equal distances."""
    return np.linspace(0, n - 1, min(n, most)).astype(np.intp)


def row_keys(X: Any, target: Array) -> Array:
    """Return bytes that are equal for equal rows with equal targets, (n_samples,).

    Parameters
    ----------
    X : {array, CSR matrix} of shape (n_samples, n_features)
    target : array of shape (n_samples,) or (n_samples, n_tasks)
    """
    if is_sparse(X):
        starts, stops = X.indptr[:-1], X.indptr[1:]
        keys = [
            X.indices[a:b].tobytes() + X.data[a:b].tobytes() + t.tobytes()
            for a, b, t in zip(starts, stops, target, strict=True)
        ]
        return np.array(keys, dtype=object)
    # Adding zero turns minus zero into zero, which has different bytes.
    table = np.ascontiguousarray(np.column_stack([X, target]) + 0.0)
    return table.view(np.dtype((np.void, table.itemsize * table.shape[1]))).ravel()


def row_hashes(X: Any) -> Array:
    """Return 64-bit hashes that are equal for equal rows, (n_samples,).

    Values are compared in single precision, so that a table that was stored in it has the same
    hashes. Zeros add nothing: a sparse matrix has the hashes of the same dense array.

    Parameters
    ----------
    X : {array, sparse matrix} of shape (n_samples, n_features)
        NaN equals NaN.

    Examples
    --------
    >>> import numpy as np
    >>> first, second, third = row_hashes(np.array([[0.1, np.nan], [0.1, np.nan], [np.nan, 0.1]]))
    >>> bool(first == second), bool(first == third)
    (True, False)
    """
    hashes = np.zeros(X.shape[0], dtype=np.uint64)
    if is_sparse(X):
        entries = without_duplicates(X.tocsr())
        rows = np.repeat(np.arange(X.shape[0]), np.diff(entries.indptr))
        np.add.at(hashes, rows, _mixed(entries.data, entries.indices))
        return hashes
    table, positions = np.asarray(X), np.arange(X.shape[1])
    for part in slices(len(table), max(1, _BLOCK // max(1, len(positions)))):
        hashes[part] = _mixed(table[part], positions).sum(axis=1, dtype=np.uint64)
    return hashes


def _mixed(values: Array, positions: Any) -> Array:
    """Return hashes of numbers at positions of a row, 0 for zeros (splitmix64)."""
    with np.errstate(over="ignore", under="ignore"):
        single = np.asarray(values).astype(np.float32)
        single[np.isnan(single)] = np.nan
        bits = single.view(np.uint32).astype(np.uint64)
        bits += np.asarray(positions).astype(np.uint64) << np.uint64(32)
        for shift, factor in _SPLITMIX:
            bits ^= bits >> np.uint64(shift)
            bits *= np.uint64(factor)
        bits ^= bits >> np.uint64(31)
    bits[single == 0] = 0
    return bits


def read_only(values: Array) -> Array:
    """Return a read-only view of an array.

    Numba compiles a separate version for read-only arrays; pass all of them read-only, or none.
    """
    view = values.view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True, eq=False)
class Samples:
    """Rows of data, and the views that each of them has.

    Attributes
    ----------
    given : {array, CSR matrix} of shape (n_samples, n_features)
        Input of gates. All columns of a missing view are NaN.
    filled : {array, CSR matrix} of shape (n_samples, n_features)
        Input of kernels: the same rows with 0 for NaN.
    present : array of shape (n_samples, n_kernels) or None
        Whether a sample has the view of a kernel; None if no view is missing.
    weight : array of shape (n_samples,) or None
        Sample weights in training.
    frame : DataFrame or None
        The user's table, for the selection of columns by name.
    """

    given: Any
    filled: Any
    present: Array | None = None
    weight: Array | None = None
    frame: Any = None

    @classmethod
    def of(cls, X: Any, present: Array | None = None) -> "Samples":
        """Return rows as samples, with NaN filled with 0."""
        if is_sparse(X) or not np.isnan(X).any():
            return cls(X, X, present)
        return cls(X, np.where(np.isnan(X), 0.0, X), present)

    @property
    def table(self) -> Any:
        """The user's table, or the rows as given if they have no column names."""
        return self.given if self.frame is None else self.frame

    @property
    def n_samples(self) -> int:
        return int(self.given.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.given.shape[1])

    def take(self, rows: Array) -> "Samples":
        """Return some of the samples, or this object if they are all samples in order."""
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

    def blocks(self, size: int) -> Iterator["Samples"]:
        """Yield blocks of at most `size` samples; one empty block if there are no samples."""
        for start in range(0, max(self.n_samples, 1), size):
            yield self.take(np.arange(start, min(start + size, self.n_samples)))

    def rows_seen_by(self, kernel: int) -> Array:
        """Return the indices of the samples that have the view of a kernel."""
        if self.present is None:
            return np.arange(self.n_samples)
        return np.flatnonzero(self.present[:, kernel])

    def seen_by(self, kernel: int) -> "Samples":
        """Return the samples that have the view of a kernel, for this kernel only."""
        if self.present is None:
            return self
        samples = self.take(self.rows_seen_by(kernel))
        return Samples(samples.filled, samples.filled, None, samples.weight, samples.frame)

    def by_kernel(self, values: Sequence[Array], missing: float = 0.0) -> Array:
        """Return values of each kernel for samples that have its view, as one array.

        Parameters
        ----------
        values : sequence of arrays of shape (n_seen_by_kernel, ...), one for each kernel
        missing : float
            Value for samples without the view.

        Returns
        -------
        array of shape (n_samples, n_kernels, ...)
        """
        joined = np.full((self.n_samples, len(values), *values[0].shape[1:]), missing)
        for i, value in enumerate(values):
            joined[self.rows_seen_by(i), i] = value
        return joined


def sample_weight(samples: Samples) -> Array:
    """Return the weights of training samples, (n_samples,), 1 by default."""
    return np.ones(samples.n_samples) if samples.weight is None else samples.weight


def weighted_quantile(values: Array, weight: Array, share: float) -> float:
    """Return the least of the values (n,) that reaches a share of the total weight (n,)."""
    order = np.argsort(values, kind="stable")
    mass = np.cumsum(weight[order])
    return float(values[order[np.searchsorted(mass, share * mass[-1])]])
