"""Every kernel is switched on or off by itself."""

from typing import Any

import numpy as np
from scipy.special import expit

from lokl._arrays import Array
from lokl.gates.base import Gate
from lokl.gates.softmax import linear_init, linear_pullback, linear_scores


class Sigmoid(Gate):
    """Kernels do not compete: ``h_i(x) = 1 / (1 + exp(-<v_i, x> - v_i0))``.

    Parameters
    ----------
    scale : float, default=1e-2
        Start values are uniform on ``[-scale, scale]``.
    """

    def __init__(self, scale: float = 1e-2):
        self.scale = scale

    def init(self, X: Any, n_kernels: int, rng: np.random.RandomState) -> Array:
        return linear_init(X, n_kernels, rng, self.scale)

    def __call__(self, X: Any, params: Array, present: Array | None = None) -> Array:
        H = expit(linear_scores(X, params))
        return np.asarray(H if present is None else np.where(present, H, 0.0))

    def pullback(self, X: Any, params: Array, H: Array, G: Array) -> Array:
        return linear_pullback(X, G * H * (1.0 - H))
