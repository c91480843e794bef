"""Kernels and gates as one Gram matrix, in blocks and inside a memory budget."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from lokl._arrays import Array, column, is_sparse
from lokl._compiled import CompiledModule
from lokl._threads import in_parallel, multiply
from lokl.gram.features import TILE
from lokl.gram.mixture import Mixture
from lokl.gram.points import as_rank
from lokl.gram.row_cache import RowCache
from lokl.kernels.base import Kernel

_tiles = CompiledModule("lokl.gram._tiles")

MEGABYTE = 2**20
# Rows that are worth a thread of their own where they are only copied.
_FEW_ROWS = 64


class GatedGram:
    """The training Gram matrix ``K = sum_i (h_i h_i') o K_i``, never stored whole unless it fits.

    Parameters
    ----------
    kernels : sequence of Kernel
        Bound kernels (see :meth:`lokl.kernels.Kernel.bind`).
    X : {array, CSR matrix} of shape (n_samples, n_features)
        Training samples, without NaN.
    gates : array of shape (n_samples, n_kernels) or (n_samples, n_kernels, rank), optional
        Gate values; None is ``1 / sqrt(n_kernels)``, the uniform combination.
    cache_size : float, default=512
        Megabytes for all stored rows together.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Of rows; "auto" is float32 unless large values would lose digits in it.
    pair_normalized : bool, default=False
        Divide by ``sum_i g_i(x) g_i(z)``.
    keep_inner : bool, default=False
        Spend half of the memory on inner products, which stay when gates move; only where they
        are dear, that is for dense samples.

    Notes
    -----
    A row of the matrix costs one inner product with every sample for each distinct view, however
    many kernels look at it. :meth:`move_gates` keeps features and inner products.
    """

    def __init__(
        self,
        kernels: Sequence[Kernel],
        X: Any,
        gates: Array | None = None,
        *,
        cache_size: float = 512,
        dtype: Any = "auto",
        pair_normalized: bool = False,
        keep_inner: bool = False,
    ):
        self.mixture = Mixture(kernels, X, dtype, pair_normalized)
        n, m = X.shape[0], len(self.mixture.kernels)
        if gates is None:
            gates = np.full((n, m), 1.0 / np.sqrt(m))
        if np.shape(gates)[:2] != (n, m):
            raise ValueError(
                f"gates of {n} samples and {m} kernels have shape ({n}, {m}[, rank]), "
                f"got {np.shape(gates)}"
            )
        self.points = self.mixture.points(X, gates)
        self.cache_size = cache_size
        # Sparse rows are multiplied faster than their products are read back from memory.
        self.keep_inner = keep_inner and any(g.layout == "dense" for g in self.mixture.groups)

    @property
    def n_samples(self) -> int:
        return self.points.n_samples

    @property
    def dtype(self) -> Any:
        return self.mixture.dtype

    @property
    def capacity(self) -> int:
        """How many rows the memory budget holds at a time."""
        share = 0.5 if self.keep_inner else 1.0
        row = self.n_samples * self.dtype.itemsize
        return int(min(share * self.cache_size * MEGABYTE // max(row, 1), self.n_samples))

    @property
    def fits(self) -> bool:
        """Whether the memory budget holds the whole matrix."""
        return self.n_samples**2 * self.dtype.itemsize <= self.cache_size * MEGABYTE

    @property
    def needs_rows(self) -> bool:
        """Whether products with the matrix go through its rows; linear kernels have features."""
        return not self.mixture.is_linear

    @cached_property
    def _cache(self) -> RowCache:
        n = self.n_samples
        if self.capacity < min(2, n):
            need = 2 * n * self.dtype.itemsize / MEGABYTE / (0.5 if self.keep_inner else 1.0)
            digit = 10.0 ** (np.floor(np.log10(need)) - 1)
            raise ValueError(
                f"cache_size={self.cache_size} MB does not hold two rows of the Gram matrix of "
                f"{n} samples; give at least {np.ceil(need / digit) * digit:.2g} MB"
            )
        return RowCache(n, n, self.capacity, self.dtype)

    @cached_property
    def _inner(self) -> list[RowCache]:
        n, views = self.n_samples, len(self.mixture.groups)
        return [RowCache(n, n, self.capacity // views, self.dtype) for _ in range(views)]

    @cached_property
    def _linear_features(self) -> Any:
        """Explicit features with ``K = F F'``, where all kernels are linear; else None."""
        if not self.mixture.is_linear:
            return None
        parts = []
        for features, group in zip(self.points.features, self.mixture.groups, strict=True):
            for i in group.members:
                for r in range(self.points.gates.shape[2]):
                    factor = self.points.gates[:, i, r] * self.points.scales[:, i]
                    X: Any = features.X.astype(np.float64)
                    if is_sparse(X):
                        parts.append(sparse.diags_array(factor) @ X)
                    else:
                        parts.append(factor[:, np.newaxis] * X)
        if any(is_sparse(part) for part in parts):
            return sparse.csr_matrix(sparse.hstack(parts))
        return parts[0] if len(parts) == 1 else np.hstack(parts)

    @cached_property
    def whole(self) -> Array:
        """The whole matrix, read-only: for problems so small that it is one working set."""
        matrix = self.mixture.symmetric(self.points)
        matrix.flags.writeable = False
        return matrix

    def move_gates(self, gates: Array) -> None:
        """Put other gate values in place; rows become stale, inner products stay."""
        gates = as_rank(gates)
        if gates.shape[:2] != self.points.gates.shape[:2]:
            raise ValueError(
                f"gates have shape {self.points.gates.shape[:2]}, got {gates.shape[:2]}"
            )
        if np.array_equal(gates, self.points.gates):
            return
        self.points = self.points.regated(gates)
        for stale in ("_linear_features", "whole"):
            self.__dict__.pop(stale, None)
        if "_cache" in self.__dict__:
            self._cache.clear()

    def release(self) -> None:
        """Give the memory of all stored rows back; they are computed anew when asked for."""
        for stored in ("_cache", "_inner", "_linear_features", "whole"):
            self.__dict__.pop(stored, None)

    def diag(self) -> Array:
        """``K[j, j]`` in float64."""
        return self.mixture.diag(self.points)

    def block(self, index: Array) -> Array:
        """``K[index][:, index]``."""
        return self.cross(index, index)

    def cross(self, rows: Array, columns: Array) -> Array:
        """``K[rows][:, columns]``, out of stored rows where they are there."""
        out = np.empty((len(rows), len(columns)), dtype=self.dtype)
        missing = np.arange(len(rows))
        if "_cache" in self.__dict__:
            slots = self._cache.slots(rows)
            held = np.flatnonzero(slots >= 0)
            work = (self._cache.slab, slots[held], columns, held, out)
            in_parallel(_tiles.gather, len(held), _FEW_ROWS, *work)
            missing = np.flatnonzero(slots < 0)
        if len(missing):
            # All samples on the left: what is laid out for them once serves every block.
            right = self.points.take(columns)
            self.mixture.fill(self.points, rows[missing], right, out, missing)
        return out

    def rows(self, index: Any, out: Array | None = None) -> Array:
        """``K[index, :]``, from memory where it is there."""
        index = np.asarray(index, dtype=np.intp)
        out = np.empty((len(index), self.n_samples), dtype=self.dtype) if out is None else out
        for start in range(0, len(index), max(self._cache.capacity, 1)):
            part = slice(start, start + self._cache.capacity)
            out[part] = self._cache.slab[self._fetch(index[part])]
        return out

    def rows_apart(self, index: Array) -> Array:
        """Rows of every gated kernel by itself, (len(index), n_kernels, n_samples), not stored."""
        return self.mixture.apart(self.points, np.asarray(index, dtype=np.intp), self.points)

    def store(self, index: Array) -> None:
        """Have some rows in memory, at most :attr:`capacity` of them."""
        self._fetch(np.asarray(index, dtype=np.intp))

    def stored(self) -> tuple[Array, Array]:
        """Return memory and place in it of every row, -1 where it is not there: read-only."""
        return self._cache.slab, self._cache.slots(np.arange(self.n_samples))

    def _fetch(self, index: Array) -> Array:
        """Slots of some rows, computing what is missing; `index` has no repetition."""
        slots, missing = self._cache.place(index)
        if missing.any():
            try:
                self._compute(index[missing], slots[missing])
            except BaseException:
                # An interrupted computation must not leave half-written rows that look valid.
                for cache in (self._cache, *(self._inner if self.keep_inner else [])):
                    cache.clear()
                raise
        return slots

    def _compute(self, index: Array, slots: Array) -> None:
        stored = self._stored_dots if self.keep_inner else None
        self.mixture.fill(self.points, index, self.points, self._cache.slab, slots, stored)

    def _stored_dots(self, k: int, rows: Array) -> Array | None:
        cache = self._inner[k]
        if len(rows) > cache.capacity or self.mixture.groups[k].layout == "panels":
            return None
        slots, missing = cache.place(rows)
        if missing.any():
            features = self.points.features[k]
            dots = np.empty((int(missing.sum()), self.n_samples), dtype=self.dtype)
            features.dots(rows[missing], features, dots)
            cache.slab[slots[missing]] = dots
        return np.asarray(cache.slab[slots])

    def subtract(self, index: Array, coef: Array, target: Array) -> None:
        """``target -= K[:, index] @ coef``, in float64: one round of a solver's gradient."""
        if len(index) == 0:
            return
        if self._linear_features is not None:
            F = self._linear_features
            target -= multiply(F, F[index].T @ coef)
            return
        for start in range(0, len(index), self._cache.capacity):
            part = slice(start, start + self._cache.capacity)
            work = (self._cache.slab, self._fetch(index[part]), coef[part], target)
            in_parallel(_tiles.subtract_rows, self.n_samples, TILE, *work)

    def subtract_whole(self, index: Array, coef: Array, target: Array) -> None:
        """Do the same on :attr:`whole`."""
        work = (self.whole, index, coef, target)
        in_parallel(_tiles.subtract_rows, self.n_samples, TILE, *work)

    def dot(self, coef: Array) -> Array:
        """``K @ coef`` for coefficients of shape (n_samples,) or (n_samples, n_columns)."""
        columns = column(coef)
        support = np.flatnonzero((columns != 0).any(axis=1))
        if self._linear_features is not None:
            F = self._linear_features
            product = multiply(F, F.T @ columns)
        else:
            part = self.points.take(support)
            product = self.mixture.product(self.points, part, columns[support])
        return product if coef.ndim == 2 else product[:, 0]

    def gate_gradient(self, coef: Array) -> Array:
        """``dJ/dH`` of the optimal dual value at signed coefficients (n_samples[, n_tasks]).

        ``dJ/dh_ir(j) = -sum_t u_jt sum_k u_kt h_ir(k) k_i(j, k)``; only support rows count.
        """
        if self.mixture.pair_normalized:
            raise TypeError("pair-normalised gates have no gradient; they are not learned by one")
        columns = column(coef)
        support = np.flatnonzero((columns != 0).any(axis=1))
        gradient = np.zeros(self.points.gates.shape)
        part = self.points.take(support)
        sums = self.mixture.kernel_sums(self.points, part, columns[support], support)
        gradient[support] = -np.einsum("jirt,jt->jir", sums, columns[support])
        return gradient

    def kernel_forms(self, coef: Array, gates: Array | None = None) -> Array:
        """``S_ir = sum_t (u_t o h_ir)' K_i (u_t o h_ir)``, (n_kernels, rank); they sum to ``u'Ku``.

        Parameters
        ----------
        coef : array of shape (n_samples,) or (n_samples, n_tasks)
        gates : array, optional
            Other gates than those in place, for the forms of kernels that count for nothing now.
        """
        columns = column(coef)
        support = np.flatnonzero((columns != 0).any(axis=1))
        points = self.points if gates is None else self.points.regated(gates)
        return self.mixture.forms(points, support, columns[support])
