"""Training samples laid out once, and one memory for all Gram matrices on them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lokl._arrays import Array
from lokl.gram.layouts import SampleLayouts
from lokl.gram.memory import GramMemory
from lokl.gram.plan import GramPlan, Points, with_rank
from lokl.kernels.base import Kernel

if TYPE_CHECKING:
    from lokl.gram.gated_gram import GatedGram


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
        from lokl.gram.block_gram import BlockGram, ranks_of
        from lokl.gram.gated_gram import GatedGram

        points = self.prepare(kernels, gates, pair_normalized)
        ranks = ranks_of(points.gates)
        if ranks is None:
            return GatedGram.of(self, points)
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

    def take(self, rows: Array) -> "InnerProducts":
        """Return some of the samples in the same layouts, with their own memory."""
        part = InnerProducts(
            self.X[rows], cache_size=self.cache_size, dtype=self.dtype, keep=self.keep
        )
        part._layouts = self._layouts.take(rows, part.X)
        return part

    def release(self) -> None:
        """Free the memory of all stored rows, matrices and inner products."""
        self.memory = GramMemory(self.n_samples)


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
