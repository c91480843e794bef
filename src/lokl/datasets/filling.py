"""Samples that arrive block by block, in one array that is made once."""

from typing import Any

import numpy as np
from scipy import sparse as sp

from lokl._arrays import Array

# Below this share of nonzero values and above this number of columns, CSR saves work.
_SHARE, _COLUMNS = 0.25, 64


def as_csr(n_rows: int, n_features: int, n_values: int) -> bool:
    """Whether samples with so many values come as CSR matrix where nobody says otherwise."""
    return n_features > _COLUMNS and n_values < _SHARE * n_rows * n_features


class Filling:
    """Takes CSR matrices of some rows; gives one array, or one CSR matrix, of all rows.

    An array is filled in place. Parts of a CSR matrix are joined at the end, so that two thirds of
    it are held twice for a moment.

    Parameters
    ----------
    n_rows, n_features : int
    sparse : bool or None
        None takes CSR for samples with more than 64 columns of which less than a quarter is filled.
    dtype : dtype
    """

    def __init__(self, n_rows: int, n_features: int, sparse: bool | None, dtype: Any):
        self.shape, self.dtype = (n_rows, n_features), dtype
        self._sparse = sparse
        self._array: Array | None = None
        self._parts: list[Any] = []
        self._n_values = 0
        self.n_added = 0

    def add(self, part: Any) -> None:
        """Take the next rows; those beyond the announced number are counted only."""
        first, self.n_added = self.n_added, self.n_added + part.shape[0]
        if self.n_added > self.shape[0]:
            return
        self._n_values += part.nnz
        if self._array is None and self._is_array():
            self._array = np.empty(self.shape, dtype=self.dtype)
            self._pour()
        if self._array is None:
            self._parts.append(part)
        else:
            part.toarray(out=self._array[first : self.n_added])

    def _is_array(self) -> bool:
        """Whether it is certain that an array is wanted."""
        if self._sparse is None:
            return not as_csr(*self.shape, self._n_values)
        return not self._sparse

    def _pour(self) -> None:
        first = 0
        self._parts.reverse()
        while self._parts:
            part = self._parts.pop()
            part.toarray(out=self._array[first : first + part.shape[0]])  # type: ignore[index]
            first += part.shape[0]

    def finished(self) -> Any:
        """Return all rows; the announced number of them must have been added."""
        if self._array is None and self._is_array():
            self._array = np.empty(self.shape, dtype=self.dtype)
            self._pour()
        if self._array is not None:
            return self._array
        parts, self._parts = self._parts, []
        lengths = np.concatenate([np.zeros(1, np.int64), *(np.diff(p.indptr) for p in parts)])
        starts = np.cumsum(lengths)
        values, columns = [part.data for part in parts], [part.indices for part in parts]
        del parts
        data = np.concatenate([np.empty(0, self.dtype), *values])
        del values
        indices = np.concatenate([np.empty(0, np.int32), *columns])
        if starts[-1] <= np.iinfo(np.int32).max:
            starts = starts.astype(np.int32)
        return sp.csr_matrix((data, indices, starts), shape=self.shape)
