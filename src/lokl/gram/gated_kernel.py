"""The learned gated kernel as a kernel for any samples, and functions that are sums of it."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lokl._arrays import Array, Samples, as_samples, squared_norms
from lokl._threads import limit_blas_for
from lokl.gates.base import ConstantGate, Gate
from lokl.gram import mixing
from lokl.gram.gated_gram import GatedGram, InnerProducts
from lokl.gram.plan import GramPlan, Points, ranks_of
from lokl.kernels.base import Kernel
from lokl.kernels.samples import read_samples

if TYPE_CHECKING:
    from lokl.gram.feature_maps import FeatureMap


@dataclass(eq=False, repr=False)
class GatedKernel(Kernel):
    """``k(x, z) = sum_i <h_i(x), h_i(z)> k_i(x, z)`` with learned gate parameters.

    The kernel of a low-rank SVM has ``<phi_i(x), phi_i(z)>`` instead of ``k_i(x, z)``.

    Parameters
    ----------
    kernels : sequence of Kernel
        Bound kernels.
    gate : Gate
        Gating function.
    params : array
        Learned parameters of the gate.
    pair_normalized : bool, default=False
        Divide by ``sum_i <h_i(x), h_i(z)>``.
    names : sequence of str, optional
        Names of the kernels.
    features : FeatureMap, optional
        Features ``phi_i`` that approximate the kernels.

    See Also
    --------
    lokl.gram.GatedGram : Gram matrix of gated kernels.
    lokl.gram.Expansion : Functions of samples under such a kernel.
    lokl.optimizers.GateObjective : Learns the parameters of a gate.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.gates import ConstantGate
    >>> from lokl.gram import GatedKernel
    >>> from lokl.kernels import RBF, Linear
    >>> kernel = GatedKernel([Linear(), RBF(1.0)], ConstantGate(), np.array([0.25, 0.75]))
    >>> kernel(np.array([[1.0], [2.0]])).round(3)
    array([[1.   , 0.776],
           [0.776, 1.75 ]])
    """

    kernels: Sequence[Kernel]
    gate: Gate
    params: Array
    pair_normalized: bool = False
    names: Sequence[str] | None = None
    features: "FeatureMap | None" = None

    def samples(self, X: Any) -> Samples:
        """Return rows as samples of its kernels; whole views may be missing."""
        X = as_samples(X)
        return read_samples(self.kernels, self._names(), Samples(X, X))

    def gates(self, samples: Samples) -> Array:
        """Return gate values, (n_samples, n_kernels) or (n_samples, n_kernels, rank)."""
        return self.gate.at(samples, self.params)

    @property
    def residual(self) -> Array:
        """Relative error of each kernel's approximation, (n_kernels,); zeros if exact."""
        return np.zeros(len(self.kernels)) if self.features is None else self.features.residual

    def gram(self, samples: Samples, dtype: Any = "auto") -> GatedGram:
        """Return its Gram matrix on samples."""
        if self.features is not None:
            raise TypeError(
                "a low-rank kernel has no exact matrix; call it on samples, or use its kernels"
            )
        inner = InnerProducts(samples.filled, dtype=dtype)
        gates = self.gates(samples)
        return inner.gated(self.kernels, gates, pair_normalized=self.pair_normalized)

    def __call__(self, X: Any, Z: Any = None) -> Array:
        left = self._points(X)
        right = left if Z is None else self._points(Z, left.plan)
        if self.features is None:
            return mixing.block(left, right)
        near = self.features.gated_features(left)
        far = near if Z is None else self.features.gated_features(right)
        return np.asarray(near @ far.T)

    def diag(self, X: Any) -> Array:
        points = self._points(X)
        if self.features is None:
            return mixing.diag(points)
        return squared_norms(self.features.gated_features(points))

    @property
    def label(self) -> str:
        prefix = "" if self.features is None else "low-rank "
        return f"{prefix}gated({', '.join(self._names())})"

    def _points(self, X: Any, plan: GramPlan | None = None) -> Points:
        """Prepare samples for the features, for a given plan, or for a plan of these samples."""
        samples = self.samples(X)
        plan = plan if self.features is None else self.features.plan
        if plan is not None:
            return Points.make(plan, samples.filled, self.gates(samples))
        inner = InnerProducts(samples.filled, dtype=np.float64)
        return inner.prepare(self.kernels, self.gates(samples), self.pair_normalized)

    def _names(self) -> list[str]:
        return list(self.names or [kernel.label for kernel in self.kernels])


def average_kernel(kernels: Sequence[Kernel], names: Sequence[str] | None = None) -> GatedKernel:
    """Return the average of bound kernels; of one kernel, that kernel."""
    params = np.full(len(kernels), 1.0 / len(kernels))
    return GatedKernel(kernels, ConstantGate(), params, names=names)


@dataclass(frozen=True, eq=False)
class Expansion(ABC):
    """Functions ``f(x) = sum_j k(x, x_j) a_j + b``, reduced to the data that new samples need.

    Made by :meth:`GatedGram.expansion`.

    Attributes
    ----------
    kernel : GatedKernel
    intercept : array of shape (n_functions,)
    plan : GramPlan
        Plan of the kernels between new samples and the stored ones.
    rank : int
        Rank of the gates.

    See Also
    --------
    lokl.gram.GatedGram : Gram matrix of gated kernels.
    lokl.gram.GatedKernel : The same kernel for any samples.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl._arrays import Samples
    >>> from lokl.gates import ConstantGate
    >>> from lokl.gram import GatedGram
    >>> from lokl.kernels import Linear
    >>> gram = GatedGram([Linear()], np.array([[-1.0], [1.0]]))
    >>> kernel = gram.kernel(ConstantGate(), np.array([1.0]))
    >>> function = gram.expansion(kernel, np.array([[-0.5], [0.5]]), np.array([0.25]))
    >>> function(Samples.of(np.array([[2.0], [-3.0]])))
    array([[ 2.25],
           [-2.75]])
    """

    kernel: GatedKernel
    intercept: Array
    plan: GramPlan
    rank: int

    @abstractmethod
    def contributions(self, points: Points) -> Array:
        """Return the contribution of each kernel, (n_samples, n_kernels, n_functions).

        They sum to the function without its intercept.
        """

    @abstractmethod
    def at(self, points: Points) -> Array:
        """Return values at prepared samples, (n_samples, n_functions)."""

    @property
    def residual(self) -> Array:
        """Relative error of each kernel's approximation, (n_kernels,); zeros if exact."""
        return np.zeros(self.plan.n_kernels)

    @property
    def n_functions(self) -> int:
        return len(self.intercept)

    def prepare(self, samples: Samples) -> Points:
        """Lay samples out and gate them; several calls then share the work."""
        return Points.make(self.plan, samples.filled, self.kernel.gates(samples))

    def prepare_ungated(self, samples: Samples) -> Points:
        """Prepare samples with all gates one."""
        gates = np.ones((samples.n_samples, self.plan.n_kernels, self.rank))
        return Points.make(self.plan, samples.filled, gates)

    def shares_layout_with(self, other: "Expansion") -> bool:
        """Whether samples prepared for one expansion serve the other.

        They do if layouts and gates are equal: gates of the same kernel, or constant gates.
        """
        left, right = self.kernel, other.kernel
        constant = isinstance(left.gate, ConstantGate) and isinstance(right.gate, ConstantGate)
        same_gate = left.gate is right.gate or constant
        if not same_gate or not np.array_equal(left.params, right.params):
            return False
        return bool(self.plan.preparation == other.plan.preparation)

    def __call__(self, samples: Samples) -> Array:
        return self.at(self.prepare(samples))


@dataclass(frozen=True, eq=False)
class SupportExpansion(Expansion):
    """The sum over the samples that have a coefficient.

    Attributes
    ----------
    points : Points
        The samples with a coefficient.
    coef : array of shape (n_points, n_functions)
    """

    points: Points
    coef: Array

    def at(self, points: Points) -> Array:
        product = np.zeros((points.n_samples, self.coef.shape[1]))
        with limit_blas_for(points.n_samples):
            for rows, near, far, coef in self._blocks(points):
                product[rows] = mixing.product(near, far, coef)
        return np.asarray(product + self.intercept)

    def contributions(self, points: Points) -> Array:
        out = np.zeros((*points.gates.shape[:2], self.coef.shape[1]))
        with limit_blas_for(points.n_samples):
            for rows, near, far, coef in self._blocks(points):
                sums = mixing.kernel_sums(near, np.arange(near.n_samples), far, coef)
                out[rows] = (near.gates[:, :, :, np.newaxis] * sums).sum(axis=2)
        return out

    def _blocks(self, points: Points) -> Iterator[tuple[Any, Points, Points, Array]]:
        """Yield blocks of samples and stored points that share a rank, if gates divide both.

        Each block is the positions of the samples, the samples, the stored points and their
        coefficients.
        """
        near, far = ranks_of(points.gates), ranks_of(self.points.gates)
        if near is None or far is None:
            yield slice(None), points, self.points, self.coef
            return
        for rank in np.intersect1d(near[near >= 0], far):
            rows, stored = np.flatnonzero(near == rank), np.flatnonzero(far == rank)
            near_points, far_points = points.in_rank(rows, rank), self.points.in_rank(stored, rank)
            yield rows, near_points, far_points, self.coef[stored]
