"""Kernels and gates as one Gram matrix, in blocks and inside a memory budget."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse

from lokl._arrays import Array, column, is_sparse, read_only
from lokl._compiled import CompiledModule
from lokl._threads import multiply, run_chunked
from lokl.gates.base import Gate
from lokl.gram import mixing
from lokl.gram.inner_products import InnerProducts, frozen
from lokl.gram.layouts import TILE
from lokl.gram.memory import MEGABYTE, GramMemory, RowCache
from lokl.gram.plan import Points
from lokl.kernels.base import Kernel

if TYPE_CHECKING:
    from lokl.gram.gated_kernel import Expansion, GatedKernel

_rows = CompiledModule("lokl.gram._rows")

# Rows that are worth a thread of their own where they are only copied.
_FEW_ROWS = 64
# Megabytes of a matrix that is held whole whatever the budget: one of 45 samples in float64.
_ALWAYS = 1 / 64


class GatedGram:
    """The training Gram matrix ``K = sum_i (h_i h_i') o K_i``, never stored whole unless it fits.

    It does not change: other gates or kernels are another matrix on the same
    :class:`InnerProducts` (:meth:`regated`, :meth:`InnerProducts.gated`).

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

    Attributes
    ----------
    inner : InnerProducts
        The samples, and the memory for rows.
    gates : array of shape (n_samples, n_kernels, rank)
        Read-only.

    Notes
    -----
    A row of the matrix costs one inner product with every sample for each distinct view, however
    many kernels look at it. Memory is shared by all matrices on the same inner products and holds
    the rows of the one that asked last; another that asks computes its rows again.
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
    ):
        inner = InnerProducts(X, cache_size=cache_size, dtype=dtype)
        self._set(inner, inner.prepare(kernels, gates, pair_normalized))

    def _set(self, inner: InnerProducts, points: Points) -> None:
        plan = points.plan
        self.inner, self.points, self.plan = inner, points, plan
        self.kernels, self.dtype = plan.kernels, plan.dtype
        self.pair_normalized = plan.pair_normalized
        self.gates, self.n_samples = points.gates, points.n_samples

    @classmethod
    def of(cls, inner: InnerProducts, points: Points) -> Self:
        """Return the Gram matrix of samples that are prepared already."""
        gram = cls.__new__(cls)
        gram._set(inner, points)
        return gram

    def regated(self, gates: Array) -> "GatedGram":
        """Return the Gram matrix of the same kernels under other gates."""
        gates = frozen(gates, self.n_samples, self.plan.n_kernels)
        if np.array_equal(gates, self.gates):
            return self
        return self.of(self.inner, self.points.regated(gates))

    @property
    def exact(self) -> "GatedGram":
        """The matrix of the kernels themselves, where this one is of features in their place."""
        return self

    @property
    def is_low_rank(self) -> bool:
        """Whether features stand for the kernels."""
        return False

    def kernel(
        self, gate: Gate, params: Array, names: Sequence[str] | None = None
    ) -> "GatedKernel":
        """Return the kernel of the matrix for any samples, whose gates a gate finds."""
        from lokl.gram.gated_kernel import GatedKernel

        return GatedKernel(self.kernels, gate, params, self.pair_normalized, names)

    def expansion(self, kernel: "GatedKernel", coef: Array, intercept: Array) -> "Expansion":
        """Return the function of any sample with coefficients (n_samples, n_functions)."""
        from lokl.gram.gated_kernel import SupportExpansion

        support = support_of(coef)
        return SupportExpansion(kernel, intercept, self.points.take(support), coef[support])

    @property
    def _share(self) -> float:
        """Part of the memory that is for rows; inner products have the rest."""
        keeps = any(family.view.stores_products for family in self.plan.families)
        return 0.5 if self.inner.keep and keeps else 1.0

    @property
    def capacity(self) -> int:
        """How many rows the memory budget holds at a time, for :meth:`subtract`."""
        return self.storable

    @property
    def storable(self) -> int:
        """How many rows :meth:`store` can hold at a time, an entry for every sample."""
        row = self.n_samples * self.dtype.itemsize
        budget = self._share * self.inner.cache_size * MEGABYTE
        return int(min(budget // max(row, 1), self.n_samples))

    @property
    def megabytes(self) -> float:
        """Size of the whole matrix."""
        return float(self.n_samples**2 * self.dtype.itemsize / MEGABYTE)

    @property
    def fits(self) -> bool:
        """Whether the memory budget holds the whole matrix; a tiny one is held by any."""
        return self.megabytes <= max(self.inner.cache_size, _ALWAYS)

    @property
    def needs_rows(self) -> bool:
        """Whether products with the matrix go through its rows; linear kernels have features."""
        return not self.plan.is_linear

    @property
    def _memory(self) -> GramMemory:
        """The memory, with nothing in it but what belongs to this matrix."""
        self.inner.memory.claim(self.points)
        return self.inner.memory

    @property
    def _cache(self) -> RowCache:
        n, capacity = self.n_samples, self.storable
        if capacity < min(2, n):
            need = 2 * n * self.dtype.itemsize / MEGABYTE / self._share
            digit = 10.0 ** (np.floor(np.log10(need)) - 1)
            raise ValueError(
                f"cache_size={self.inner.cache_size} MB does not hold two rows of the Gram matrix "
                f"of {n} samples; give at least {np.ceil(need / digit) * digit:.2g} MB"
            )
        return self._memory.row_cache(capacity, self.dtype)

    @property
    def _linear_features(self) -> Any:
        """Explicit features with ``K = F F'``, where all kernels are linear; else None."""
        if not self.plan.is_linear:
            return None
        memory = self._memory
        if memory.features is None:
            memory.features = _explicit_features(self.points)
        return memory.features

    @property
    def whole(self) -> Array:
        """The whole matrix, read-only: for problems so small that it is one working set.

        It is valid until another Gram matrix on the same inner products asks for its own.
        """
        memory = self._memory
        if memory.whole is None:
            matrix = memory.square(self.dtype)
            mixing.fill_symmetric(self.points, matrix)
            memory.whole = read_only(matrix)
        return memory.whole

    def release(self) -> None:
        """Give the memory of all stored rows back; they are computed anew when asked for."""
        self.inner.release()

    def diag(self) -> Array:
        """``K[j, j]`` in float64, read-only."""
        return self._diag

    @cached_property
    def _diag(self) -> Array:
        # Every machine on the matrix asks for it.
        return read_only(mixing.diag(self.points))

    def block(self, index: Array) -> Array:
        """``K[index][:, index]``."""
        return self.cross(index, index)

    def cross(self, rows: Array, columns: Array) -> Array:
        """``K[rows][:, columns]``, out of the whole matrix or stored rows where they are there."""
        memory = self.inner.memory
        mine = memory.belongs_to(self.points)
        if mine and memory.whole is not None:
            return np.asarray(memory.whole[np.ix_(rows, columns)])
        out = np.empty((len(rows), len(columns)), dtype=self.dtype)
        missing = np.arange(len(rows))
        stored = memory.rows if mine else None
        if stored is not None:
            slots = stored.slots(rows)
            held = np.flatnonzero(slots >= 0)
            work = (stored.slab, slots[held], columns, held, out)
            run_chunked(_rows.gather, len(held), _FEW_ROWS, *work)
            missing = np.flatnonzero(slots < 0)
        if len(missing):
            # All samples on the left: what is laid out for them once serves every block.
            mixing.fill(self.points, rows[missing], self.points.take(columns), out, missing)
        return out

    def rows(self, index: Any, out: Array | None = None) -> Array:
        """``K[index, :]``, from memory where it is there."""
        index = np.asarray(index, dtype=np.intp)
        out = np.empty((len(index), self.n_samples), dtype=self.dtype) if out is None else out
        cache = self._cache
        for start in range(0, len(index), max(cache.capacity, 1)):
            part = slice(start, start + cache.capacity)
            out[part] = cache.slab[self.store(index[part])]
        return out

    def rows_apart(self, index: Array) -> Array:
        """Rows of every gated kernel by itself, (len(index), n_kernels, n_samples), not stored."""
        return mixing.apart(self.points, np.asarray(index, dtype=np.intp), self.points)

    def store(self, index: Array) -> Array:
        """Have some rows in memory, at most :attr:`storable` of them; return their places in it."""
        index = np.asarray(index, dtype=np.intp)
        cache, memory = self._cache, self.inner.memory
        slots, missing = cache.place(index)
        if missing.any():
            try:
                self._compute(index[missing], cache.slab, slots[missing])
            except BaseException:
                # An interrupted computation must not leave half-written rows that look valid.
                memory.forget()
                raise
        return slots

    def _compute(self, index: Array, slab: Array, slots: Array) -> None:
        """Write some rows into their slots."""
        kept = None
        if self._share < 1.0:
            kept = self.inner.memory.products(self.plan, self.storable)
        mixing.fill(self.points, index, self.points, slab, slots, kept)

    def stored(self) -> tuple[Array, Array]:
        """Return memory and place in it of every row, -1 where it is not there: read-only.

        They are valid until rows are asked for again, of this Gram matrix or of another on the same
        inner products.
        """
        cache = self._cache
        return cache.slab, cache.slots(np.arange(self.n_samples))

    def subtract(self, index: Array, coef: Array, target: Array) -> None:
        """``target -= K[:, index] @ coef``, in float64: one round of a solver's gradient."""
        if len(index) == 0:
            return
        F = self._linear_features
        if F is not None:
            target -= multiply(F, F[index].T @ coef)
            return
        cache = self._cache
        for start in range(0, len(index), cache.capacity):
            part = slice(start, start + cache.capacity)
            slots = self.store(index[part])
            work = (read_only(cache.slab), slots, coef[part], target)
            run_chunked(_rows.subtract_rows, self.n_samples, TILE, *work)

    def subtract_whole(self, index: Array, coef: Array, target: Array) -> None:
        """Do the same on :attr:`whole`."""
        work = (self.whole, index, coef, target)
        run_chunked(_rows.subtract_rows, self.n_samples, TILE, *work)

    def dot(self, coef: Array) -> Array:
        """``K @ coef`` for coefficients of shape (n_samples,) or (n_samples, n_columns)."""
        columns = column(coef)
        F = self._linear_features
        if F is not None:
            product = multiply(F, F.T @ columns)
        else:
            support = support_of(columns)
            part = self.points.take(support)
            product = mixing.product(self.points, part, columns[support])
        return product if coef.ndim == 2 else product[:, 0]

    def kernel_sums(self, coef: Array) -> Array:
        """Sums apart for each kernel, at all samples: ``sum_j k_i(p, j) h_ir(j) coef[j, t]``.

        Parameters
        ----------
        coef : array of shape (n_samples,) or (n_samples, n_tasks)

        Returns
        -------
        sums : array of shape (n_samples, n_kernels, rank, n_tasks)
            Normalisation of kernels and pairs is included, the gate of the sample itself is not.
        """
        columns = column(coef)
        support = support_of(columns)
        part, everyone = self.points.take(support), np.arange(self.n_samples)
        return mixing.kernel_sums(self.points, everyone, part, columns[support])

    def gate_gradient(self, coef: Array) -> Array:
        """``dJ/dH`` of the optimal dual value at signed coefficients (n_samples[, n_tasks]).

        ``dJ/dh_ir(j) = -sum_t u_jt sum_k u_kt h_ir(k) k_i(j, k)``; only support rows count.
        """
        if self.pair_normalized:
            raise TypeError("pair-normalised gates have no gradient; they are not learned by one")
        columns = column(coef)
        support = support_of(columns)
        gradient = np.zeros(self.gates.shape)
        part = self.points.take(support)
        sums = mixing.kernel_sums(self.points, support, part, columns[support])
        gradient[support] = -np.einsum("jirt,jt->jir", sums, columns[support])
        return gradient

    def kernel_forms(self, coef: Array) -> Array:
        """``S_ir = sum_t (u_t o h_ir)' K_i (u_t o h_ir)``, (n_kernels, rank); they sum to ``u'Ku``.

        Parameters
        ----------
        coef : array of shape (n_samples,) or (n_samples, n_tasks)
        """
        columns = column(coef)
        support = support_of(columns)
        return mixing.forms(self.points, support, columns[support])


def support_of(columns: Array) -> Array:
    """Return the samples with a coefficient in any column."""
    return np.flatnonzero((columns != 0).any(axis=1))


def _explicit_features(points: Points) -> Any:
    """Features of linear kernels, gates and normalisation included."""
    parts = []
    for family, layout in zip(points.plan.families, points.layouts, strict=True):
        X: Any = layout.X.astype(np.float64)
        for i in family.terms:
            for factor in (points.gates[:, i] * points.normalizers[:, [i]]).T:
                scaled = (
                    sparse.diags_array(factor) @ X if is_sparse(X) else factor[:, np.newaxis] * X
                )
                parts.append(scaled)
    if any(is_sparse(part) for part in parts):
        return sparse.csr_matrix(sparse.hstack(parts))
    return parts[0] if len(parts) == 1 else np.hstack(parts)
