"""Kernels compete at every point, along directions of the input space."""

from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl.gates.base import Gate, known, masked_softmax, softmax_pullback


class Softmax(Gate):
    """Kernels compete: ``h_i(x) = softmax_i(<v_i, x> + v_i0)``.

    Parameters
    ----------
    scale : float, default=1e-2
        Start values are uniform on ``[-scale, scale]``; the small noise breaks the symmetry of
        equal kernels.
    """

    competes = True

    def __init__(self, scale: float = 1e-2):
        self.scale = scale

    def init(self, X: Any, n_kernels: int, rng: np.random.RandomState) -> Array:
        return linear_init(X, n_kernels, rng, self.scale)

    def __call__(self, X: Any, params: Array, present: Array | None = None) -> Array:
        return masked_softmax(linear_scores(X, params), present)

    def pullback(self, X: Any, params: Array, H: Array, G: Array) -> Array:
        return linear_pullback(X, softmax_pullback(H, G))


def linear_init(X: Any, n_kernels: int, rng: np.random.RandomState, scale: float) -> Array:
    """Small random weights, the intercepts in the last row."""
    return np.asarray(rng.uniform(-scale, scale, size=(X.shape[1] + 1, n_kernels)))


def linear_scores(X: Any, params: Array) -> Array:
    """Return ``<v_i, x> + v_i0`` for every sample and kernel."""
    return np.asarray(known(X) @ params[:-1] + params[-1])


def linear_pullback(X: Any, D: Array) -> Array:
    """Turn the gradient in the scores into the gradient in weights and intercepts."""
    return np.vstack([known(X).T @ D, D.sum(axis=0)])
