"""One view of some samples, laid out for inner products.

Three layouts give the same numbers; the training data decides which is fastest:

- *dense*: rows of an array, products by BLAS;
- *panels*: sparse (or very short) rows against dense transposed panels, products in the compiled
  mixing pass itself, without a detour through memory;
- *sparse*: rows of a CSR matrix too wide for panels, products by scipy.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import row_norms

from lokl._arrays import Array, as_dense, is_sparse
from lokl._compiled import CompiledModule
from lokl._threads import in_parallel, multiply

_tiles = CompiledModule("lokl.gram._tiles")

Layout = Literal["dense", "panels", "sparse"]

TILE = 512
# Measured per entry of a Gram row on one thread, in nanoseconds: one BLAS multiply-add, one
# multiply-add of the panel loop, and the detour of BLAS products through memory.
_DENSE_COST, _PANEL_COST, _DETOUR_COST = 0.032, 0.095, 0.6
_LARGEST_PANELS = 128 * 2**20
# BLAS wakes its threads for every product; for few samples of few columns that never pays.
_FEW_SAMPLES, _FEW_COLUMNS = 2048, 64


def choose_layout(X: Any) -> Layout:
    """Return the fastest layout for inner products among samples like `X`."""
    n, d = X.shape
    filled = (X.nnz if is_sparse(X) else np.count_nonzero(X)) / max(n, 1)
    fits = 4 * n * d <= _LARGEST_PANELS
    few = n <= _FEW_SAMPLES and d <= _FEW_COLUMNS
    if few or (fits and filled * _PANEL_COST < d * _DENSE_COST + _DETOUR_COST):
        return "panels"
    return "sparse" if is_sparse(X) and not (fits and filled > d / 4) else "dense"


@dataclass(eq=False)
class Features:
    """Samples of one view in one layout and dtype."""

    X: Any
    layout: Layout

    @classmethod
    def make(cls, X: Any, layout: Layout, dtype: Any, offset: Array | None) -> "Features":
        """Lay out samples, moved by `offset` where every kernel of the view allows it."""
        if offset is not None:
            X = as_dense(X) - offset
        if layout == "dense":
            return cls(np.ascontiguousarray(as_dense(X), dtype=dtype), layout)
        if layout == "panels" and not is_sparse(X):
            return cls(np.ascontiguousarray(X, dtype=dtype), layout)
        return cls(sparse.csr_matrix(X, dtype=dtype), layout)

    @property
    def n_samples(self) -> int:
        return int(self.X.shape[0])

    @cached_property
    def norms(self) -> Array:
        """Squared norms, in the dtype of the samples."""
        return np.asarray(row_norms(self.X, squared=True), dtype=self.X.dtype)

    @cached_property
    def lists(self) -> tuple[Array, Array, Array]:
        """Entries of each row that are not zero, padded with zeros to a multiple of four."""
        if not is_sparse(self.X):
            pointers, indices, entries = _tiles.list_entries(self.X)
            return pointers, indices, entries
        rows = self.X
        counts = np.diff(rows.indptr)
        pointers = np.concatenate([[0], np.cumsum(-(-counts // 4) * 4)]).astype(np.int64)
        indices = np.zeros(pointers[-1], dtype=np.int32)
        entries = np.zeros(pointers[-1], dtype=rows.dtype)
        place = np.arange(rows.nnz) + np.repeat(pointers[:-1] - rows.indptr[:-1], counts)
        indices[place] = rows.indices
        entries[place] = rows.data
        return pointers, indices, entries

    @property
    def width(self) -> int:
        """Columns that one thread takes at a time; narrow where there are few, so that all work."""
        return TILE if self.n_samples > _FEW_SAMPLES else TILE // 4

    @cached_property
    def panels(self) -> Array:
        """Transposed samples in pieces: (n_panels, n_features, width)."""
        n, d = self.X.shape
        width = self.width
        count = max(-(-n // width), 1)
        panels = np.zeros((count, d, width), dtype=self.X.dtype)
        for k in range(count):
            piece = self.X[k * width : (k + 1) * width]
            dense = as_dense(piece)
            panels[k, :, : dense.shape[0]] = dense.T
        return panels

    def take(self, index: Array) -> "Features":
        """Return some of the samples."""
        part = Features(self.X[index], self.layout)
        part.norms = self.norms[index]
        return part

    def dots(self, rows: Array, right: "Features", out: Array, begin: int = 0) -> int:
        """Write the inner products of the samples `rows` with the samples of `right`.

        Samples of `right` before `begin` may be left out; returns the first that was not.
        """
        if self.layout == "panels":
            begin = begin // right.width * right.width

            def task(start: int, stop: int) -> None:
                work = (self.lists, right.panels, rows, out)
                _tiles.dots_sparse(begin + start, begin + stop, *work)

            in_parallel(task, right.n_samples - begin, right.width)
            return begin
        if self.layout == "dense":
            multiply(self.X[rows], right.X[begin:].T, out[:, begin:])
            return begin
        multiply(self.X[rows], right.X.T, out)
        return 0
