"""Training samples laid out once, and one memory for all Gram matrices on them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lokl._arrays import Array
from lokl.gram.layouts import Remembered
from lokl.gram.plan import Family, Plan
from lokl.gram.points import Points
from lokl.gram.row_cache import RowCache
from lokl.gram.views import View, Views
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
        from lokl.gram.gated_gram import GatedGram

        return GatedGram.on(self, kernels, gates, pair_normalized=pair_normalized)

    def prepare(self, kernels: Sequence[Kernel], gates: Array, pair_normalized: bool) -> Points:
        """Make the samples ready for kernels; twice in a row for the same kernels is done once."""
        latest = self._latest
        if latest is not None and latest.plan.is_of(kernels, pair_normalized):
            return latest.regated(gates)
        plan = Plan.make(kernels, self._views, self.dtype, pair_normalized)
        points = Points.make(plan, self.X, gates, self._views)
        # Stretched views are rarely asked for again, and large.
        if all(family.view.stretch is None for family in plan.families):
            self._latest = points
        return points

    def take(self, rows: Array) -> "InnerProducts":
        """Return some of the samples, laid out as all of them are, with memory of their own."""
        part = InnerProducts(
            self.X[rows], cache_size=self.cache_size, dtype=self.dtype, keep=self.keep
        )
        part._views = self._views.take(rows)
        part.X = part._views.X
        return part

    def release(self) -> None:
        """Give the memory of all stored rows, matrices and inner products back."""
        self.memory = GramMemory(self.n_samples)


class GramMemory:
    """What is stored of the Gram matrix that asked last, and inner products for all of them.

    Memory that one Gram matrix leaves is used by the next: its first touch is dear.

    Attributes
    ----------
    whole : array of shape (n_samples, n_samples) or None
        The whole matrix.
    features : {array, CSR matrix} or None
        Explicit features ``F`` with ``K = F F'``.
    """

    def __init__(self, n_samples: int):
        self.n_samples = n_samples
        self.whole: Array | None = None
        self.features: Any = None
        self._owner: tuple[Plan, Array] | None = None
        self._rows: RowCache | None = None
        self._square: Array | None = None
        self._products: dict[tuple[View, Any], RowCache] = {}

    def belongs_to(self, points: Points) -> bool:
        """Whether what is stored is of these kernels under these gates."""
        if self._owner is None:
            return False
        plan, gates = self._owner
        same = gates is points.gates or np.array_equal(gates, points.gates)
        return plan is points.plan and same

    def claim(self, points: Points) -> None:
        """Make what is stored that of these kernels under these gates; forget any other."""
        if self.belongs_to(points):
            return
        self._owner = None
        self.whole = self.features = None
        if self._rows is not None:
            self._rows.clear()
        self._owner = (points.plan, points.gates)

    def rows(self, capacity: int, dtype: Any) -> RowCache:
        """Return the memory of rows."""
        rows = self._rows
        if rows is None or (rows.capacity, rows.slab.dtype) != (capacity, dtype):
            # The old slab goes before the new one comes.
            self._rows = rows = None
            self._rows = rows = RowCache(self.n_samples, self.n_samples, capacity, dtype)
        return rows

    @property
    def stored_rows(self) -> RowCache | None:
        """The memory of rows where there is one."""
        return self._rows

    def square(self, dtype: Any) -> Array:
        """Return memory for the whole matrix; who claimed it last writes into it."""
        if self._square is None or self._square.dtype != dtype:
            self._square = None
            self._square = np.empty((self.n_samples, self.n_samples), dtype=dtype)
        return self._square

    def products(self, points: Points, capacity: int) -> "StoredProducts":
        """Return the memory of inner products; its families share `capacity` rows."""
        views = {family.view for family in points.plan.families if remembers(family)}
        keys = {(view, points.plan.dtype) for view in views}
        if not keys <= self._products.keys():
            share = capacity // len(keys)
            kept = {
                key: cache
                for key, cache in self._products.items()
                if key in keys and cache.capacity == share
            }
            self._products = kept
            for key in keys - kept.keys():
                n = self.n_samples
                self._products[key] = RowCache(n, n, share, points.plan.dtype)
        return StoredProducts(points, self._products)

    def forget(self) -> None:
        """Forget all rows and inner products: some may be half-written."""
        for cache in (self._rows, *self._products.values()):
            if cache is not None:
                cache.clear()


class StoredProducts:
    """Inner products among all samples, computed where they are not stored."""

    def __init__(self, points: Points, caches: dict[tuple[View, Any], RowCache]):
        self._points = points
        self._caches = caches

    def __call__(self, family: Family) -> Remembered | None:
        """Return what hands out inner products of a family, None where they are not stored."""
        plan = self._points.plan
        if not remembers(family):
            return None
        cache = self._caches[family.view, plan.dtype]
        layout = self._points.layouts[plan.families.index(family)]

        def remembered(rows: Array) -> Array | None:
            if len(rows) > cache.capacity:
                return None
            slots, missing = cache.place(rows)
            if missing.any():
                dots = np.empty((int(missing.sum()), layout.n_samples), dtype=plan.dtype)
                layout.dots(rows[missing], layout, dots)
                cache.slab[slots[missing]] = dots
            return np.asarray(cache.slab[slots])

        return remembered


def remembers(family: Family) -> bool:
    """Whether inner products of a family are worth storing.

    Sparse rows are multiplied faster than their products are read back from memory, and stretched
    views are not asked for again.
    """
    return family.view.layout.remembers and family.view.stretch is None
