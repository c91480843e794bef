"""The gated Gram matrix of training samples, in blocks and inside a memory budget.

The samples are laid out once, and all matrices on them share one memory.
"""

from collections.abc import Sequence
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse

from lokl._arrays import Array, column, is_sparse, read_only
from lokl._compiled import CompiledModule
from lokl._threads import multiply, run_chunked
from lokl.gates.base import Gate
from lokl.gram import mixing
from lokl.gram.layouts import TILE, SampleLayouts
from lokl.gram.memory import MEGABYTE, GramMemory, RowCache
from lokl.gram.plan import GramPlan, Points, ranks_of, with_rank
from lokl.kernels.base import Kernel

if TYPE_CHECKING:
    from lokl.gram.gated_kernel import Expansion, GatedKernel

_mixing = CompiledModule("lokl.gram._mixing")

# Rows that are worth a thread of their own if they are only copied.
_COPIED_ROWS = 64
# Multiply-adds that take as long as the rest of a kernel value.
_WORK_PER_KERNEL = 10
# Megabytes of a matrix that is stored whole whatever the budget: 45 samples in float64.
_ALWAYS_FITS = 1 / 64
# Values of single kernels are stored for at least so many views, and at most so many samples, for
# which a matrix is stored whole.
_MANY_VIEWS, _FEW_SAMPLES = 16, 1024


class InnerProducts:
    """Training samples laid out for inner products, with one memory for all Gram matrices on them.

    It lives as long as a fit, or as a search over many kernels: gates and kernels change, layouts
    stay. It is not safe to use from several threads at once.

    Parameters
    ----------
    X : {array, CSR matrix} of shape (n_samples, n_features)
        Without NaN.
    cache_size : float, default=512
        Megabytes for all stored rows together.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Of rows; "auto" is float32 unless kernel values would lose digits in it.
    keep : bool, default=False
        Use half of the memory for inner products, which stay when gates or kernels change; only
        for dense samples, whose inner products are expensive.

    See Also
    --------
    lokl.gram.GatedGram : Gram matrix of gated kernels.
    lokl.gram.LowRankProducts : Features of low rank instead of inner products.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.gram import InnerProducts
    >>> from lokl.kernels import RBF, Linear
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> inner = InnerProducts(X)
    >>> inner.gated([Linear(), RBF(1.0)]).whole.round(3)
    array([[0.5  , 0.184, 0.009],
           [0.184, 1.   , 1.184],
           [0.009, 1.184, 2.5  ]], dtype=float32)
    >>> inner.gated([Linear()]).diag()
    array([0., 1., 4.])
    """

    def __init__(self, X: Any, *, cache_size: float = 512, dtype: Any = "auto", keep: bool = False):
        self.X = X
        self.cache_size = cache_size
        self.dtype = dtype
        self.keep = keep
        self.memory = GramMemory(X.shape[0])
        self._layouts = SampleLayouts(X)
        self._latest: Points | None = None

    @property
    def n_samples(self) -> int:
        return int(self.X.shape[0])

    def gated(
        self,
        kernels: Sequence[Kernel],
        gates: Array | None = None,
        *,
        pair_normalized: bool = False,
    ) -> "GatedGram":
        """Return the Gram matrix of bound kernels under gates.

        Parameters
        ----------
        kernels : sequence of Kernel
        gates : array of shape (n_samples, n_kernels) or (n_samples, n_kernels, rank), optional
            None is ``1 / sqrt(n_kernels)``.
        pair_normalized : bool, default=False
            Divide by ``sum_i <h_i(x), h_i(z)>``.
        """
        return self._gram(self.prepare(kernels, gates, pair_normalized))

    def _gram(self, points: Points) -> "GatedGram":
        """Return the matrix of prepared samples."""
        ranks = ranks_of(points.gates)
        if ranks is None:
            return GatedGram.of(self, points)
        from lokl.gram.block_gram import BlockGram

        return BlockGram.divided(self, points, ranks)

    def prepare(self, kernels: Sequence[Kernel], gates: Any, pair_normalized: bool) -> Points:
        """Prepare the samples for kernels; the latest preparation is reused."""
        n, m, latest = self.n_samples, len(kernels), self._latest
        gates = frozen(np.full((n, m), 1.0 / np.sqrt(m)) if gates is None else gates, n, m)
        # Bound kernels do not change.
        wanted = (list(kernels), pair_normalized)
        if latest is not None and (latest.plan.kernels, latest.plan.pair_normalized) == wanted:
            return latest.regated(gates)
        plan = GramPlan.make(kernels, self._layouts, self.dtype, pair_normalized)
        points = Points.make(plan, self.X, gates, self._layouts)
        # Views with scaled columns are large and rarely used again.
        if all(family.view.column_scale is None for family in plan.families):
            self._latest = points
        return points

    def take(self, rows: Array) -> Self:
        """Return some of the samples in the same layouts, with their own memory."""
        part = copy(self)
        part.X, part._latest = self.X[rows], None
        part._layouts = self._layouts.take(rows, part.X)
        part.release()
        return part

    def release(self) -> None:
        """Free the memory of all stored rows, matrices and inner products."""
        self.memory = GramMemory(self.n_samples)


class GatedGram:
    """The training Gram matrix ``K = sum_i (h_i h_i') o K_i``, stored whole only if it fits.

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
        Divide by ``sum_i <h_i(x), h_i(z)>``.

    Attributes
    ----------
    inner : InnerProducts
        The samples, and the memory for rows.
    gates : array of shape (n_samples, n_kernels, rank)
        Read-only.

    See Also
    --------
    lokl.gram.InnerProducts : The samples, and the memory for rows.
    lokl.gram.GatedKernel : The same kernel for any samples.
    lokl.gram.LowRankGram : Of features of low rank.

    Notes
    -----
    A row of the matrix costs one inner product with every sample for each distinct view, however
    many kernels use it. Memory is shared by all matrices on the same inner products and contains
    the rows of the latest one; another matrix computes its rows again.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.gram import GatedGram
    >>> from lokl.kernels import RBF, Linear
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> gates = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> gram = GatedGram([Linear(), RBF(1.0)], X, gates)
    >>> gram.whole
    array([[0., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    >>> gram.dot(np.ones((3, 1))).ravel()
    array([0., 1., 1.])
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
        return self._with(self.points.regated(gates))

    def _with(self, points: Points) -> "GatedGram":
        """Return the matrix of the same samples under other gates."""
        return self.of(self.inner, points)

    @property
    def exact(self) -> "GatedGram":
        """The matrix of the kernels themselves, if this one approximates them by features."""
        return self

    @property
    def is_low_rank(self) -> bool:
        """Whether features approximate the kernels."""
        return False

    def kernel(
        self, gate: Gate, params: Array, names: Sequence[str] | None = None
    ) -> "GatedKernel":
        """Return the kernel of the matrix for any samples, gated by `gate` at `params`."""
        from lokl.gram.gated_kernel import GatedKernel

        return GatedKernel(self.kernels, gate, params, self.pair_normalized, names)

    def expansion(self, kernel: "GatedKernel", coef: Array, intercept: Array) -> "Expansion":
        """Return ``f(x) = sum_j k(x, x_j) a_j + b`` as functions of any sample.

        Parameters
        ----------
        kernel : GatedKernel
        coef : array of shape (n_samples, n_functions)
            The coefficients ``a`` of the training samples.
        intercept : array of shape (n_functions,)
        """
        from lokl.gram.gated_kernel import SupportExpansion

        support, points = self._support(coef)
        rank = self.gates.shape[2]
        return SupportExpansion(kernel, intercept, self.plan, rank, points, coef[support])

    @property
    def _row_share(self) -> float:
        """Share of the memory for rows; the rest is for inner products."""
        stores = any(family.view.stores_products for family in self.plan.families)
        return 0.5 if self.inner.keep and stores else 1.0

    @property
    def storable(self) -> int:
        """Number of rows that :meth:`store` can keep at a time."""
        row = self.n_samples * self.dtype.itemsize
        budget = self._row_share * self.inner.cache_size * MEGABYTE
        return int(min(budget // max(row, 1), self.n_samples))

    @property
    def capacity(self) -> int:
        """Number of rows that :meth:`subtract` can keep at a time."""
        return self.storable

    @property
    def megabytes(self) -> float:
        """Size of the whole matrix."""
        return float(self.n_samples**2 * self.dtype.itemsize / MEGABYTE)

    @property
    def fits(self) -> bool:
        """Whether the whole matrix fits the memory budget; a tiny matrix always does."""
        return self.megabytes <= max(self.inner.cache_size, _ALWAYS_FITS)

    @property
    def needs_rows(self) -> bool:
        """Whether products with the matrix need its rows; linear kernels have features."""
        return not self.plan.is_linear

    @property
    def entry_work(self) -> float:
        """Multiply-adds of one entry, about; infinite with kernels that are called as they are."""
        if self.plan.others:
            return np.inf
        samples = [layout.X for layout in self.points.layouts]
        products = sum(X.nnz / X.shape[0] if is_sparse(X) else X.shape[1] for X in samples)
        return float(products + _WORK_PER_KERNEL * self.plan.n_kernels)

    @property
    def _memory(self) -> GramMemory:
        """The memory, claimed for this matrix."""
        self.inner.memory.claim(self.points)
        return self.inner.memory

    @property
    def _cache(self) -> RowCache:
        n, capacity = self.n_samples, self.storable
        if capacity < min(2, n):
            need = 2 * n * self.dtype.itemsize / MEGABYTE / self._row_share
            digit = 10.0 ** (np.floor(np.log10(need)) - 1)
            raise ValueError(
                f"cache_size={self.inner.cache_size} MB is too small for two rows of the Gram "
                f"matrix of {n} samples; give at least {np.ceil(need / digit) * digit:.2g} MB"
            )
        return self._memory.row_cache(capacity, self.dtype)

    @property
    def linear_features(self) -> Any:
        """Explicit features with ``K = F F'`` if all kernels are linear, else None."""
        if not self.plan.is_linear:
            return None
        memory = self._memory
        if memory.features is None:
            memory.features = _explicit_features(self.points)
        return memory.features

    @property
    def whole(self) -> Array:
        """The whole matrix, read-only: for problems so small that it is one working set.

        It is valid until another Gram matrix on the same inner products uses the memory.
        """
        memory = self._memory
        if memory.whole is None:
            matrix = memory.square(self.dtype)
            self._compute_whole(matrix)
            memory.whole = read_only(matrix)
        return memory.whole

    def _compute_whole(self, matrix: Array) -> None:
        """Write the whole matrix."""
        values = self.inner.memory.values_of(self.plan)
        if values is not None and self.gates.shape[2] == 1:
            mixing.fill_stored(self.points, values, matrix)
        else:
            mixing.fill_symmetric(self.points, matrix)

    @property
    def _kernel_values(self) -> Array | None:
        """Values of all kernels, stored if they fit; only for many views of few samples.

        A kernel of its own view costs an inner product for each pair of samples. Methods that ask
        for quadratic forms ask again under other gates. Values that do not fit in float64 are
        rounded to float32.
        """
        n, memory = self.n_samples, self.inner.memory
        is_worth = len(self.plan.families) >= _MANY_VIEWS and n <= _FEW_SAMPLES
        if not is_worth or self.pair_normalized or self.gates.shape[2] > 1:
            return None
        if memory.values_of(self.plan) is None:
            count = self.plan.n_kernels * n * (n + 1) // 2
            budget = (self.inner.cache_size - self.megabytes) * MEGABYTE
            for dtype in dict.fromkeys([self.dtype, np.dtype(np.float32)]):
                if count * dtype.itemsize <= budget:
                    memory.keep_values(self.plan, mixing.stored_values(self.points, dtype))
                    break
        return memory.values_of(self.plan)

    def take(self, rows: Array) -> "GatedGram":
        """Return the matrix of some samples; a whole matrix that is stored is copied."""
        inner, points = self.inner.take(rows), self.points.take(rows)
        memory, part = self.inner.memory, inner._gram(points)
        if memory.belongs_to(self.points) and memory.whole is not None:
            inner.memory.claim(points)
            inner.memory.whole = read_only(memory.whole.take(rows, 0).take(rows, 1))
        return part

    def release(self) -> None:
        """Free the memory of all stored rows; they are computed again when needed."""
        self.inner.release()

    def diag(self) -> Array:
        """Return ``K[j, j]``, (n_samples,), in float64, read-only."""
        return self._diag

    @cached_property
    def _diag(self) -> Array:
        return read_only(mixing.diag(self.points))

    def block(self, index: Array) -> Array:
        """Return ``K[index][:, index]``."""
        return self.cross(index, index)

    def cross(self, rows: Array, columns: Array) -> Array:
        """Return ``K[rows][:, columns]``, from the whole matrix or stored rows if possible."""
        memory = self.inner.memory
        is_own = memory.belongs_to(self.points)
        if is_own and memory.whole is not None:
            if np.array_equal(columns, np.arange(self.n_samples)):
                return memory.whole[rows]
            return np.asarray(memory.whole[np.ix_(rows, columns)])
        out = np.empty((len(rows), len(columns)), dtype=self.dtype)
        missing = np.arange(len(rows))
        cache = memory.rows if is_own else None
        if cache is not None:
            slots = cache.slots(rows)
            stored = np.flatnonzero(slots >= 0)
            work = (cache.slab, slots[stored], columns, stored, out)
            run_chunked(_mixing.gather, len(stored), _COPIED_ROWS, *work)
            missing = np.flatnonzero(slots < 0)
        if len(missing):
            # All samples on the left: their layouts are made once and serve every block.
            mixing.fill(self.points, rows[missing], self.points.take(columns), out, missing)
        return out

    def rows(self, index: Any, out: Array | None = None) -> Array:
        """Return ``K[index, :]``, (len(index), n_samples), from memory if stored."""
        index = np.asarray(index, dtype=np.intp)
        out = np.empty((len(index), self.n_samples), dtype=self.dtype) if out is None else out
        cache = self._cache
        for start in range(0, len(index), max(cache.capacity, 1)):
            part = slice(start, start + cache.capacity)
            out[part] = cache.slab[self.store(index[part])]
        return out

    def rows_by_kernel(self, index: Array) -> Array:
        """Return rows of every gated kernel, (len(index), n_kernels, n_samples), not stored."""
        return mixing.values_by_kernel(self.points, np.asarray(index, np.intp), self.points)

    def store(self, index: Array) -> Array:
        """Store rows, at most :attr:`storable` of them; return their slots, (len(index),)."""
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
        """Write rows into their slots."""
        products = None
        if self._row_share < 1.0:
            products = self.inner.memory.products(self.plan, self.storable)
        mixing.fill(self.points, index, self.points, slab, slots, products)

    def stored(self) -> tuple[Array, Array]:
        """Return the slab of stored rows and the slot of every row, -1 if not stored.

        They are read-only, and valid until rows are requested again, of this Gram matrix or of
        another on the same inner products.
        """
        cache = self._cache
        return cache.slab, cache.slots(np.arange(self.n_samples))

    def subtract(self, index: Array, coef: Array, target: Array) -> None:
        """Compute ``target -= K[:, index] @ coef`` in float64: one update of a gradient.

        Parameters
        ----------
        index : array of int of shape (n_index,)
        coef : array of shape (n_index,)
        target : array of shape (n_samples,)
        """
        if len(index) == 0:
            return
        F = self.linear_features
        if F is not None:
            target -= multiply(F, F[index].T @ coef)
            return
        cache = self._cache
        for start in range(0, len(index), cache.capacity):
            part = slice(start, start + cache.capacity)
            slots = self.store(index[part])
            arguments = (read_only(cache.slab), slots, coef[part], target)
            run_chunked(_mixing.subtract_rows, self.n_samples, TILE, *arguments)

    def dot(self, coef: Array) -> Array:
        """Return ``K @ coef`` for coefficients (n_samples,) or (n_samples, n_columns)."""
        columns = column(coef)
        F = self.linear_features
        if F is not None:
            product = multiply(F, F.T @ columns)
        else:
            support, part = self._support(columns)
            product = mixing.product(self.points, part, columns[support])
        return product if coef.ndim == 2 else product[:, 0]

    def _support(self, columns: Array) -> tuple[Array, Points]:
        """Return the samples with a coefficient, as indices and prepared."""
        support = support_of(columns)
        return support, self.points.take(support)

    def kernel_sums(self, coef: Array) -> Array:
        """Return sums for each kernel at all samples: ``sum_j k_i(p, j) h_ir(j) coef[j, t]``.

        Parameters
        ----------
        coef : array of shape (n_samples,) or (n_samples, n_tasks)

        Returns
        -------
        sums : array of shape (n_samples, n_kernels, rank, n_tasks)
            Normalisation of kernels and pairs is included, the gate of the sample itself is not.
        """
        columns = column(coef)
        support, part = self._support(columns)
        return mixing.kernel_sums(self.points, np.arange(self.n_samples), part, columns[support])

    def gate_gradient(self, coef: Array) -> Array:
        """Return ``dJ/dH`` of the optimal dual value at signed coefficients (n_samples[, n_tasks]).

        ``dJ/dh_ir(j) = -sum_t u_jt sum_k u_kt h_ir(k) k_i(j, k)``, (n_samples, n_kernels, rank); 0
        outside the support.
        """
        if self.pair_normalized:
            raise TypeError("pair-normalised gates have no gradient; they are not learned by one")
        columns = column(coef)
        support, part = self._support(columns)
        gradient = np.zeros(self.gates.shape)
        sums = mixing.kernel_sums(self.points, support, part, columns[support])
        gradient[support] = -np.einsum("jirt,jt->jir", sums, columns[support])
        return gradient

    def kernel_forms(self, coef: Array) -> Array:
        """Return ``S_ir = sum_t (u_t o h_ir)' K_i (u_t o h_ir)``, which sum to ``u'Ku``.

        Parameters
        ----------
        coef : array of shape (n_samples,) or (n_samples, n_tasks)

        Returns
        -------
        forms : array of shape (n_kernels, rank)
        """
        columns = column(coef)
        if (values := self._kernel_values) is not None:
            return mixing.forms_stored(self.points, values, columns)
        support = support_of(columns)
        return mixing.forms(self.points, support, columns[support])


def support_of(columns: Array) -> Array:
    """Return the indices of samples with a coefficient in any column."""
    return np.flatnonzero((columns != 0).any(axis=1))


def _explicit_features(points: Points) -> Any:
    """Return features of linear kernels, (n_samples, n_columns), gates and normalisation included.

    They are side by side: for each family, for each of its kernels, for each rank.
    """
    parts = []
    for family, layout in zip(points.plan.families, points.layouts, strict=True):
        X: Any = layout.X.astype(np.float64)
        for i in family.terms:
            for factor in (points.gates[:, i] * points.normalizers[:, [i]]).T:
                scaled = sparse.diags_array(factor) @ X if is_sparse(X) else factor[:, None] * X
                parts.append(scaled)
    if any(is_sparse(part) for part in parts):
        return sparse.csr_matrix(sparse.hstack(parts))
    return parts[0] if len(parts) == 1 else np.hstack(parts)


def frozen(gates: Any, n_samples: int, n_kernels: int) -> Array:
    """Return a read-only copy of gate values, (n_samples, n_kernels, rank)."""
    if np.shape(gates)[:2] != (n_samples, n_kernels):
        raise ValueError(
            f"gates of {n_samples} samples and {n_kernels} kernels have shape "
            f"({n_samples}, {n_kernels}[, rank]), got {np.shape(gates)}"
        )
    gates = with_rank(np.array(gates, dtype=np.float64))
    gates.flags.writeable = False
    return np.asarray(gates)
