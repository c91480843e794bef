"""Training samples laid out once, and one memory for all Gram matrices on them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lokl._arrays import Array
from lokl.gram.layouts import RowCache, View, Views
from lokl.gram.plan import Plan, Points, as_rank
from lokl.kernels.base import Kernel

if TYPE_CHECKING:
    from lokl.gram.gated_gram import GatedGram


class InnerProducts:
    """Training samples laid out for inner products, with one memory for all Gram matrices on them.

    It lives as long as a fit, or as a search over many kernels: gates and kernels change, what is
    laid out stays. It is not for several threads at once.

    Parameters
    ----------
    X : {array, CSR matrix} of shape (n_samples, n_features)
        Without NaN.
    cache_size : float, default=512
        Megabytes for all stored rows together.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Of rows; "auto" is float32 unless values of the kernels would lose digits in it.
    keep : bool, default=False
        Spend half of the memory on inner products, which stay when gates or kernels change; only
        where they are dear, that is for dense samples.
    """

    def __init__(self, X: Any, *, cache_size: float = 512, dtype: Any = "auto", keep: bool = False):
        self.X = X
        self.cache_size = cache_size
        self.dtype = dtype
        self.keep = keep
        self.memory = GramMemory(X.shape[0])
        self._views = Views(X)
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
        """Return the Gram matrix of bound kernels under gates; None is ``1 / sqrt(n_kernels)``."""
        from lokl.gram.block_gram import BlockGram, ranks_of
        from lokl.gram.gated_gram import GatedGram

        points = self.prepare(kernels, gates, pair_normalized)
        ranks = ranks_of(points.gates)
        if ranks is None:
            return GatedGram.of(self, points)
        return BlockGram.divided(self, points, ranks)

    def prepare(self, kernels: Sequence[Kernel], gates: Any, pair_normalized: bool) -> Points:
        """Make the samples ready for kernels; twice in a row for the same kernels is done once."""
        n, m, latest = self.n_samples, len(kernels), self._latest
        gates = frozen(np.full((n, m), 1.0 / np.sqrt(m)) if gates is None else gates, n, m)
        # Bound kernels do not change.
        asked = (list(kernels), pair_normalized)
        if latest is not None and (latest.plan.kernels, latest.plan.pair_normalized) == asked:
            return latest.regated(gates)
        plan = Plan.make(kernels, self._views, self.dtype, pair_normalized)
        points = Points.make(plan, self.X, gates, self._views)
        # Stretched views are rarely asked for again, and large.
        if all(family.view.stretch is None for family in plan.families):
            self._latest = points
        return points

    def take(self, rows: Array) -> "InnerProducts":
        """Return some of the samples, laid out as all of them are, with memory of their own."""
        views = self._views.take(rows)
        part = InnerProducts(views.X, cache_size=self.cache_size, dtype=self.dtype, keep=self.keep)
        part._views = views
        return part

    def release(self) -> None:
        """Give the memory of all stored rows, matrices and inner products back."""
        self.memory = GramMemory(self.n_samples)


class GramMemory:
    """What is stored of the Gram matrix that asked last, and inner products for all of them.

    Memory that one Gram matrix leaves is used by the next: its first touch is dear.
    """

    def __init__(self, n_samples: int):
        self.n_samples = n_samples
        self.rows: RowCache | None = None
        self.whole: Array | None = None  # the whole matrix, read-only
        self.features: Any = None  # explicit features F with K = F F'
        self._owner: tuple[Any, Any] = (None, None)  # plan and gates of who asked last
        self._square: Array | None = None  # what `whole` is a view of
        self._products: dict[View, RowCache] = {}

    def belongs_to(self, points: Points) -> bool:
        """Whether what is stored is of these kernels under these gates."""
        plan, gates = self._owner
        same = plan is points.plan
        return same and (gates is points.gates or np.array_equal(gates, points.gates))

    def claim(self, points: Points) -> None:
        """Make what is stored that of these kernels under these gates; forget any other."""
        if self.belongs_to(points):
            return
        self._owner = (None, None)
        self.whole = self.features = None
        if self.rows is not None:
            self.rows.clear()
        self._owner = (points.plan, points.gates)

    def row_cache(self, capacity: int, dtype: Any) -> RowCache:
        """Return the memory of rows."""
        if self.rows is None or (self.rows.capacity, self.rows.slab.dtype) != (capacity, dtype):
            # The old slab goes before the new one comes.
            self.rows = None
            self.rows = RowCache(self.n_samples, self.n_samples, capacity, dtype)
        return self.rows

    def square(self, dtype: Any) -> Array:
        """Return memory for the whole matrix; who claimed it last writes into it."""
        if self._square is None or self._square.dtype != dtype:
            self._square = None
            self._square = np.empty((self.n_samples, self.n_samples), dtype=dtype)
        return self._square

    def products(self, plan: Plan, capacity: int) -> dict[View, RowCache]:
        """Return the memory of inner products; views that keep them share `capacity` rows."""
        n, caches = self.n_samples, self._products
        views = {family.view for family in plan.families if family.view.keeps_products}
        if any(v not in caches or caches[v].slab.dtype != plan.dtype for v in views):
            share = capacity // len(views)
            like = (share, plan.dtype)
            self._products = caches = {
                view: cache
                for view, cache in caches.items()
                if view in views and (cache.capacity, cache.slab.dtype) == like
            }
            for view in views - caches.keys():
                caches[view] = RowCache(n, n, share, plan.dtype)
        return caches

    def forget(self) -> None:
        """Forget all rows and inner products: some may be half-written."""
        for cache in (self.rows, *self._products.values()):
            if cache is not None:
                cache.clear()


def frozen(gates: Any, n: int, m: int) -> Array:
    """Return a copy of gate values that nobody can write to."""
    if np.shape(gates)[:2] != (n, m):
        raise ValueError(
            f"gates of {n} samples and {m} kernels have shape ({n}, {m}[, rank]), "
            f"got {np.shape(gates)}"
        )
    gates = as_rank(np.array(gates, dtype=np.float64))
    gates.flags.writeable = False
    return np.asarray(gates)
