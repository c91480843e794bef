"""The learned gated kernel, a kernel like any other.

Functions of any sample that are sums of a kernel over training samples.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lokl._arrays import Array, Samples, as_samples
from lokl._threads import limit_blas_for
from lokl.gates.base import Gate
from lokl.gates.functions import ConstantGate
from lokl.gram import mixing
from lokl.gram.block_gram import in_rank, ranks_of
from lokl.gram.gated_gram import GatedGram
from lokl.gram.inner_products import InnerProducts
from lokl.gram.plan import GramPlan, Points
from lokl.kernels.base import Kernel
from lokl.kernels.samples import read_samples


class GatedKernel(Kernel):
    """``k(x, z) = sum_i <h_i(x), h_i(z)> k_i(x, z)`` with learned gate parameters.

    Parameters
    ----------
    kernels : sequence of Kernel
        Bound kernels.
    gate : Gate
    params : array
        Learned parameters of the gate.
    pair_normalized : bool, default=False
    names : sequence of str, optional
        Of the kernels.
    """

    def __init__(
        self,
        kernels: Sequence[Kernel],
        gate: Gate,
        params: Array,
        pair_normalized: bool = False,
        names: Sequence[str] | None = None,
    ):
        self.kernels = kernels
        self.gate = gate
        self.params = params
        self.pair_normalized = pair_normalized
        self.names = names

    def samples(self, X: Any) -> Samples:
        """Return rows as samples of its kernels, whole views of which may be missing."""
        return read_samples(self.kernels, self._names(), as_samples(X))

    def gates(self, samples: Samples) -> Array:
        """Gate values of samples, (n_samples, n_kernels) or (n_samples, n_kernels, rank)."""
        return self.gate.at(samples, self.params)

    @property
    def residual(self) -> Array:
        """How far the machine's kernel misses each of the kernels: not at all."""
        return np.zeros(len(self.kernels))

    def gram(self, samples: Samples, dtype: Any = "auto") -> GatedGram:
        """Return its matrix on samples."""
        inner = InnerProducts(samples.filled, dtype=dtype)
        gates = self.gates(samples)
        return inner.gated(self.kernels, gates, pair_normalized=self.pair_normalized)

    def __call__(self, X: Any, Z: Any = None) -> Array:
        left = self._points(X)
        if Z is None:
            return mixing.block(left, left)
        samples = self.samples(Z)
        return mixing.block(left, Points.make(left.plan, samples.filled, self.gates(samples)))

    def diag(self, X: Any) -> Array:
        return mixing.diag(self._points(X))

    @property
    def label(self) -> str:
        return f"gated({', '.join(self._names())})"

    def _points(self, X: Any) -> Points:
        samples = self.samples(X)
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
    """``f(x) = sum_j k(x, x_j) a_j + b``, with all that new samples need and nothing else.

    Attributes
    ----------
    kernel : GatedKernel
    intercept : array of shape (n_functions,)
    """

    kernel: GatedKernel
    intercept: Array

    @staticmethod
    def make(kernel: GatedKernel, gram: GatedGram, coef: Array, intercept: Any) -> "Expansion":
        """Keep what new samples need, for coefficients (n_samples, n_functions)."""
        intercept = np.broadcast_to(np.asarray(intercept, dtype=float), coef.shape[1])
        return gram.expansion(kernel, coef, intercept)

    @property
    @abstractmethod
    def plan(self) -> GramPlan:
        """How the kernels are computed between new samples and those that are kept."""

    @property
    @abstractmethod
    def rank(self) -> int:
        """Rank of the gates."""

    @abstractmethod
    def parts(self, points: Points) -> Array:
        """Part of each kernel, without the intercept: (n_samples, n_kernels, n_functions)."""

    @abstractmethod
    def at(self, points: Points) -> Array:
        """Values at prepared samples, (n_samples, n_functions)."""

    @property
    def residual(self) -> Array:
        """How far each kernel is missed where few columns stand for it; zeros otherwise."""
        return np.zeros(self.plan.n_kernels)

    @property
    def n_functions(self) -> int:
        return len(self.intercept)

    def prepare(self, samples: Samples) -> Points:
        """Lay samples out and gate them; several questions about them then share the work."""
        return Points.make(self.plan, samples.filled, self.kernel.gates(samples))

    def prepare_trusting(self, samples: Samples) -> Points:
        """Prepare samples that trust every kernel fully, as if all their gates were one."""
        gates = np.ones((samples.n_samples, self.plan.n_kernels, self.rank))
        return Points.make(self.plan, samples.filled, gates)

    def shares_layout_with(self, other: "Expansion") -> bool:
        """Whether samples prepared for the one serve the other.

        They do where layouts are equal and gates are: those of the same kernel, or constant ones.
        """
        mine, yours = self.kernel, other.kernel
        constant = isinstance(mine.gate, ConstantGate) and isinstance(yours.gate, ConstantGate)
        same = mine.gate is yours.gate or constant
        if not same or not np.array_equal(mine.params, yours.params):
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
        The samples with a coefficient, and the plan that computes the kernel.
    coef : array of shape (n_points, n_functions)
    """

    points: Points
    coef: Array

    @property
    def plan(self) -> GramPlan:
        return self.points.plan

    @property
    def rank(self) -> int:
        return int(self.points.gates.shape[2])

    def at(self, points: Points) -> Array:
        product = np.zeros((points.n_samples, self.coef.shape[1]))
        with limit_blas_for(points.n_samples):
            for rows, near, far, coef in self._blocks(points):
                product[rows] = mixing.product(near, far, coef)
        return np.asarray(product + self.intercept)

    def parts(self, points: Points) -> Array:
        parts = np.zeros((*points.gates.shape[:2], self.coef.shape[1]))
        with limit_blas_for(points.n_samples):
            for rows, near, far, coef in self._blocks(points):
                sums = mixing.kernel_sums(near, np.arange(near.n_samples), far, coef)
                parts[rows] = (near.gates[:, :, :, np.newaxis] * sums).sum(axis=2)
        return parts

    def _blocks(self, points: Points) -> Iterator[tuple[Any, Points, Points, Array]]:
        """Yield samples with all that they share anything with: of one rank, where gates divide.

        These are the places of the samples, the samples, and the points with their coefficients.
        """
        near, far = ranks_of(points.gates), ranks_of(self.points.gates)
        if near is None or far is None:
            yield slice(None), points, self.points, self.coef
            return
        for rank in np.intersect1d(near[near >= 0], far):
            rows, own = np.flatnonzero(near == rank), np.flatnonzero(far == rank)
            yield rows, in_rank(points, rows, rank), in_rank(self.points, own, rank), self.coef[own]
