"""Functions that are sums over kernel values: machines, regressors, cluster centres."""

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
from lokl.gram.points import Points


@dataclass(frozen=True, eq=False)
class Expansion:
    """``f(x) = sum_j k(x, x_j) a_j + b`` over the samples ``j`` with a coefficient.

    Attributes
    ----------
    kernel : GatedKernel
    points : Points
        The samples with a coefficient, and the plan that computes the kernel.
    coef : array of shape (n_points, n_functions)
    intercept : array of shape (n_functions,)
    """

    kernel: GatedKernel
    points: Points
    coef: Array
    intercept: Array

    @classmethod
    def make(cls, kernel: GatedKernel, gram: GatedGram, coef: Array, intercept: Any) -> "Expansion":
        """Keep what new samples need, for coefficients (n_samples, n_functions)."""
        support = np.flatnonzero((coef != 0).any(axis=1))
        return cls(
            kernel,
            gram.points.take(support),
            coef[support],
            np.broadcast_to(np.asarray(intercept, dtype=float), coef.shape[1]),
        )

    def prepare(self, samples: Samples) -> Points:
        """Lay samples out and gate them; several questions about them then share the work."""
        return Points.make(self.points.plan, samples.filled, self.kernel.gates(samples))

    def prepare_trusting(self, samples: Samples) -> Points:
        """Prepare samples that trust every kernel fully, as if all their gates were one."""
        gates = np.ones((samples.n_samples, *self.points.gates.shape[1:]))
        return Points.make(self.points.plan, samples.filled, gates)

    def shares_layout_with(self, other: "Expansion") -> bool:
        """Whether samples prepared for the one serve the other.

        They do where layouts are equal and gates are: those of the same kernel, or constant ones.
        """
        mine, yours = self.kernel, other.kernel
        constant = isinstance(mine.gate, Constant) and isinstance(yours.gate, Constant)
        same = mine.gate is yours.gate or constant
        if not same or not np.array_equal(mine.params, yours.params):
            return False
        return bool(self.points.plan.preparation == other.points.plan.preparation)

    def at(self, points: Points) -> Array:
        """Values at prepared samples, (n_samples, n_functions)."""
        with one_pool(points.n_samples):
            product = mixing.product(points, self.points, self.coef)
        return np.asarray(product + self.intercept)

    def parts(self, points: Points) -> Array:
        """Part of each kernel, without the intercept: (n_samples, n_kernels, n_functions)."""
        rows = np.arange(points.n_samples)
        with one_pool(points.n_samples):
            sums = mixing.kernel_sums(points, rows, self.points, self.coef)
        return np.asarray((points.gates[:, :, :, np.newaxis] * sums).sum(axis=2))

    def __call__(self, samples: Samples) -> Array:
        return self.at(self.prepare(samples))
