"""Kernels of distances that are not functions of an inner product: Laplacian, chi-squared."""

from typing import Any

import numpy as np
from sklearn.metrics.pairwise import chi2_kernel, laplacian_kernel

from lokl._arrays import Array, as_dense, as_samples
from lokl._parameters import check_positive
from lokl.kernels.base import Kernel


class Laplacian(Kernel):
    """Exponential of the l_1 distance: ``k(x, z) = exp(-gamma |x - z|_1)``.

    Parameters
    ----------
    gamma : float, optional
        None is ``1 / n_features``.
    """

    label = "laplacian"

    def __init__(self, gamma: float | None = None):
        self.gamma = gamma

    def bind(self, X: Any, weight: Array | None = None, frame: Any = None) -> Kernel:
        if self.gamma is None:
            return Laplacian(1.0 / X.shape[1])
        check_positive("gamma", self.gamma)
        return self

    def __call__(self, X: Any, Z: Any = None) -> Array:
        X = as_samples(X)
        gamma = None if self.gamma is None else check_positive("gamma", self.gamma)
        return np.asarray(laplacian_kernel(X, None if Z is None else as_samples(Z), gamma=gamma))

    def diag(self, X: Any) -> Array:
        return np.ones(X.shape[0])


class Chi2(Kernel):
    """Similarity of histograms: ``k(x, z) = exp(-gamma sum_f (x_f - z_f)^2 / (x_f + z_f))``.

    Parameters
    ----------
    gamma : float, default=1.0
        Features must not be negative.
    """

    label = "chi2"

    def __init__(self, gamma: float = 1.0):
        self.gamma = gamma

    def bind(self, X: Any, weight: Array | None = None, frame: Any = None) -> Kernel:
        check_positive("gamma", self.gamma)
        _histograms(X)
        return self

    def __call__(self, X: Any, Z: Any = None) -> Array:
        left = _histograms(X)
        right = None if Z is None else _histograms(Z)
        return np.asarray(chi2_kernel(left, right, gamma=self.gamma))

    def diag(self, X: Any) -> Array:
        return np.ones(X.shape[0])


def _histograms(X: Any) -> Array:
    """Return samples as an array; raise ValueError if a value is negative."""
    # scikit-learn's compiled loop rejects read-only arrays.
    X = np.require(as_dense(as_samples(X)), requirements="W")
    lowest = float(X.min(initial=0.0))
    if lowest < 0:
        raise ValueError(
            f"Chi2 compares histograms: features must not be negative, got {lowest:.6g}; "
            "shift the features or choose another kernel"
        )
    return X
