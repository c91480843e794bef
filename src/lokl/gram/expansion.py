"""Functions that are sums over kernel values: machines, regressors, cluster centres."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl._threads import one_pool
from lokl.gram.gated import GatedGram
from lokl.gram.learned import GatedKernel
from lokl.gram.mixture import Mixture
from lokl.gram.points import Points


@dataclass(frozen=True, eq=False)
class Expansion:
    """``f(x) = sum_j k(x, x_j) a_j + b`` over the samples ``j`` with a coefficient.

    Attributes
    ----------
    kernel : GatedKernel
    mixture : Mixture
        The plan that computes the kernel on samples like those of training.
    points : Points
        The samples with a coefficient.
    coef : array of shape (n_points, n_functions)
    intercept : array of shape (n_functions,)
    """

    kernel: GatedKernel
    mixture: Mixture
    points: Points
    coef: Array
    intercept: Array

    @classmethod
    def make(cls, kernel: GatedKernel, gram: GatedGram, coef: Array, intercept: Any) -> "Expansion":
        """Keep what new samples need, for coefficients (n_samples, n_functions)."""
        support = np.flatnonzero((coef != 0).any(axis=1))
        return cls(
            kernel,
            gram.mixture,
            gram.points.take(support),
            coef[support],
            np.broadcast_to(np.asarray(intercept, dtype=float), coef.shape[1]),
        )

    def prepare(self, X: Any) -> Points:
        """Make samples ready; several questions about them then share the work."""
        return self.kernel.points(self.mixture, X)

    def at(self, points: Points) -> Array:
        """Values at prepared samples, (n_samples, n_functions)."""
        with one_pool(points.n_samples):
            product = self.mixture.product(points, self.points, self.coef)
        return np.asarray(product + self.intercept)

    def parts(self, points: Points) -> Array:
        """Part of each kernel, without the intercept: (n_samples, n_kernels, n_functions)."""
        with one_pool(points.n_samples):
            return self.mixture.contributions(points, self.points, self.coef)

    def __call__(self, X: Any) -> Array:
        return self.at(self.prepare(X))
