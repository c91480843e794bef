"""Memory of Gram matrices: a cache of rows, and the memory that all matrices of a fit share."""

from typing import TYPE_CHECKING, Any

import numpy as np

from lokl._arrays import Array

if TYPE_CHECKING:
    from lokl.gram.layouts import ViewSpec
    from lokl.gram.plan import GramPlan, Points

MEGABYTE = 2**20
# If more than one in this many missing rows was evicted before, the cache uses more memory.
_RETURNING = 3


class RowCache:
    """At most `capacity` rows of one matrix, the least recently used evicted first.

    All rows are in one array, the slab, which is reserved at once and used step by step. The first
    touch of fresh memory costs more than computing a row, so more of the slab is used only when
    evicted rows are requested again.

    Parameters
    ----------
    n_rows : int
        Rows of the matrix.
    width : int
        Length of a row.
    capacity : int
    dtype : numpy dtype

    Attributes
    ----------
    slab : array of shape (capacity, width)
    """

    def __init__(self, n_rows: int, width: int, capacity: int, dtype: Any):
        self.capacity = min(capacity, n_rows)
        self.slab = np.empty((self.capacity, width), dtype=dtype)
        self._slot = np.full(n_rows, -1, dtype=np.intp)  # of each row
        self._row = np.full(self.capacity, -1, dtype=np.intp)  # in each slot
        self._used_at = np.zeros(self.capacity, dtype=np.int64)
        self._evicted = np.zeros(n_rows, dtype=bool)
        self._clock = 0
        self._n_filled = 0
        self._n_open = 0

    def clear(self) -> None:
        """Forget all rows; the slab stays."""
        self._slot[:] = -1
        self._row[:] = -1
        self._used_at[:] = 0
        self._evicted[:] = False
        self._n_filled = 0

    def slots(self, index: Array) -> Array:
        """Return the slots of rows, -1 for rows that are not stored."""
        return np.asarray(self._slot[index])

    def place(self, index: Array) -> tuple[Array, Array]:
        """Assign a slot to every row of `index`.

        Parameters
        ----------
        index : array of int of shape (n,)
            Distinct rows, at most `capacity`.

        Returns
        -------
        slots : array of int of shape (n,)
        missing : boolean array of shape (n,)
            Rows that the caller must compute and write into their slots.
        """
        if len(index) > self.capacity:
            raise ValueError(f"{len(index)} rows do not fit a slab of {self.capacity}")
        self._clock += 1
        slots = self._slot[index]
        missing = slots < 0
        self._used_at[slots[~missing]] = self._clock
        rows = index[missing]
        wanted = len(rows)
        self._widen(len(index), wanted, int(self._evicted[rows].sum()))
        fresh = min(wanted, self._n_open - self._n_filled)
        free = np.arange(self._n_filled, self._n_filled + fresh)
        self._n_filled += fresh
        self._used_at[free] = self._clock
        if fresh < wanted:
            oldest = np.argsort(self._used_at[: self._n_open], kind="stable")[: wanted - fresh]
            self._slot[self._row[oldest]] = -1
            self._evicted[self._row[oldest]] = True
            free = np.concatenate([free, oldest])
        slots[missing] = free
        self._slot[rows] = free
        self._row[free] = rows
        self._used_at[free] = self._clock
        return slots, missing

    def _widen(self, requested: int, missing: int, returning: int) -> None:
        """Use more of the slab for a larger request, or if evicted rows are requested again."""
        size = max(self._n_open, 2 * requested)
        if returning * _RETURNING > missing:
            size = max(size, 2 * self._n_open)
        self._n_open = min(size, self.capacity)


class GramMemory:
    """Stored values of the latest Gram matrix, and inner products that all matrices share.

    A Gram matrix reuses the memory of the one before it, because the first touch is expensive.

    Parameters
    ----------
    n_samples : int

    Attributes
    ----------
    rows : RowCache or None
    whole : array of shape (n_samples, n_samples) or None
        The whole matrix, read-only.
    features : {array, CSR matrix} or None
        Explicit features F with ``K = F F'``.
    solved : object or None
        Factorisation of the whole matrix, kept by a solver for its next call.
    """

    def __init__(self, n_samples: int):
        self.n_samples = n_samples
        self.rows: RowCache | None = None
        self.whole: Array | None = None
        self.features: Any = None
        self.solved: Any = None
        self._owner: tuple[Any, Any] = (None, None)  # plan and gates of the latest matrix
        self._square: Array | None = None  # memory of `whole`
        self._products: dict[ViewSpec, RowCache] = {}
        self._values: tuple[Any, Array | None] = (None, None)  # plan, and values of its kernels

    def values_of(self, plan: "GramPlan") -> Array | None:
        """Return the stored values of all kernels of a plan, if there are any."""
        return self._values[1] if self._values[0] is plan else None

    def keep_values(self, plan: "GramPlan", values: Array) -> None:
        """Store the values of all kernels of a plan, whatever their gates."""
        self._values = plan, values

    def belongs_to(self, points: "Points") -> bool:
        """Whether the stored values are of these kernels under these gates."""
        plan, gates = self._owner
        same = plan is points.plan
        return same and (gates is points.gates or np.array_equal(gates, points.gates))

    def claim(self, points: "Points") -> None:
        """Reserve the memory for these kernels under these gates; forget other values."""
        if self.belongs_to(points):
            return
        self._owner = (None, None)
        self.whole = self.features = self.solved = None
        if self.rows is not None:
            self.rows.clear()
        self._owner = (points.plan, points.gates)

    def row_cache(self, capacity: int, dtype: Any) -> RowCache:
        """Return the cache of rows."""
        if self.rows is None or (self.rows.capacity, self.rows.slab.dtype) != (capacity, dtype):
            # The old slab is freed before the new one is reserved.
            self.rows = None
            self.rows = RowCache(self.n_samples, self.n_samples, capacity, dtype)
        return self.rows

    def square(self, dtype: Any) -> Array:
        """Return memory for the whole matrix, which the latest owner writes."""
        if self._square is None or self._square.dtype != dtype:
            self._square = None
            self._square = np.empty((self.n_samples, self.n_samples), dtype=dtype)
        return self._square

    def products(self, plan: "GramPlan", capacity: int) -> "dict[ViewSpec, RowCache]":
        """Return caches of inner products, by view; views that store them share `capacity` rows."""
        n, caches = self.n_samples, self._products
        views = {family.view for family in plan.families if family.view.stores_products}
        if any(v not in caches or caches[v].slab.dtype != plan.dtype for v in views):
            wanted = (capacity // len(views), plan.dtype)
            self._products = caches = {
                view: cache
                for view, cache in caches.items()
                if view in views and (cache.capacity, cache.slab.dtype) == wanted
            }
            for view in views - caches.keys():
                caches[view] = RowCache(n, n, *wanted)
        return caches

    def forget(self) -> None:
        """Forget all rows and inner products, some of which may be half-written."""
        for cache in (self.rows, *self._products.values()):
            if cache is not None:
                cache.clear()
