"""The same trust everywhere: one SVM, the uniform combination, every global method."""

from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl.gates.base import Gate


class Constant(Gate):
    """Every sample trusts kernel ``i`` alike: ``h_i = sqrt(mu_i)``.

    Parameters are the weights ``mu`` themselves: the gradient in ``h`` is singular at 0, the one
    in ``mu`` is not.

    Parameters
    ----------
    weights : array-like of shape (n_kernels,), optional
        Start weights; None is ``1 / n_kernels`` each.
    """

    def __init__(self, weights: Any = None):
        self.weights = weights

    @property
    def same_everywhere(self) -> bool:
        return True

    def init(self, X: Any, n_kernels: int, rng: np.random.RandomState) -> Array:
        if self.weights is None:
            return np.full(n_kernels, 1.0 / n_kernels)
        weights = np.array(self.weights, dtype=float)
        if weights.shape != (n_kernels,) or not np.isfinite(weights).all() or (weights < 0).any():
            raise ValueError(
                f"Constant needs {n_kernels} finite weights >= 0, one a kernel, got {weights}"
            )
        return weights

    def __call__(self, X: Any, params: Array, present: Array | None = None) -> Array:
        mu = np.broadcast_to(params, (X.shape[0], len(params)))
        if present is not None:
            left = np.where(present, mu, 0.0)
            kept = left.sum(axis=1, keepdims=True)
            mu = left * np.divide(params.sum(), kept, out=np.zeros_like(kept), where=kept > 0)
        return np.sqrt(mu)

    def pullback(self, X: Any, params: Array, H: Array, G: Array) -> Array:
        # With h = sqrt(mu): dJ/dmu = dJ/dh / (2 h). Where h = 0 the quotient is 0/0: a weight of
        # zero stays there, as far as gradients in h can tell.
        slope = np.divide(0.5 * G, H, out=np.zeros_like(G), where=H > 0)
        # A sample that lacks views has mu_i T / P, with T the sum of all weights and P of those
        # present; for complete samples T = P and only the slope is left.
        present = (H > 0) | (params == 0)
        total, kept = params.sum(), (present * params).sum(axis=1, keepdims=True)
        share = np.divide(1.0, kept, out=np.zeros_like(kept), where=kept > 0)
        pull = (slope * params).sum(axis=1, keepdims=True) * share
        gradient = slope * total * share + pull * (1.0 - total * share * present)
        return np.asarray(gradient.sum(axis=0))

    def project(self, params: Array) -> Array:
        return np.maximum(params, 0.0)

    def trust(self, H: Array) -> Array:
        return np.asarray(H**2)
