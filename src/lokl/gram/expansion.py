"""Functions of any sample that are sums of a kernel over training samples."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl._samples import Samples
from lokl._threads import one_pool
from lokl.gates.constant import Constant
from lokl.gram import mixing
from lokl.gram.gated_gram import GatedGram
from lokl.gram.gated_kernel import GatedKernel
from lokl.gram.plan import Plan, Points


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
    def plan(self) -> Plan:
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
        constant = isinstance(mine.gate, Constant) and isinstance(yours.gate, Constant)
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
    def plan(self) -> Plan:
        return self.points.plan

    @property
    def rank(self) -> int:
        return int(self.points.gates.shape[2])

    def at(self, points: Points) -> Array:
        with one_pool(points.n_samples):
            product = mixing.product(points, self.points, self.coef)
        return np.asarray(product + self.intercept)

    def parts(self, points: Points) -> Array:
        rows = np.arange(points.n_samples)
        with one_pool(points.n_samples):
            sums = mixing.kernel_sums(points, rows, self.points, self.coef)
        return np.asarray((points.gates[:, :, :, np.newaxis] * sums).sum(axis=2))
