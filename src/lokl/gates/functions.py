"""Gating functions with parameters: constant, softmax, sigmoid, Gaussian and one row per group.

Shapes are those of :class:`~lokl.gates.Gate`: gate values and their gradients are
(n_samples, n_kernels). `X` has 0 instead of NaN before it is used.
"""

from typing import Any

import numpy as np
from scipy.special import expit

from lokl._arrays import Array, as_dense, squared_norms
from lokl.gates.base import (
    Gate,
    equal_weights,
    fill_missing,
    masked_softmax,
    softmax_pullback,
)
from lokl.gates.representation import CenteredSparse

# Smallest width of a Gaussian gate; scores divide by its square.
_MIN_WIDTH = 1e-3


class ConstantGate(Gate):
    """The same value at every sample: ``h_i = sqrt(mu_i)``.

    Parameters are the weights ``mu`` themselves, (n_kernels,). The gradient in ``h`` is singular
    at 0, the gradient in ``mu`` is not.

    Parameters
    ----------
    weights : array-like of shape (n_kernels,), optional
        Start weights; None is ``1 / n_kernels`` each.
    """

    def __init__(self, weights: Any = None):
        self.weights = weights

    @property
    def is_constant(self) -> bool:
        return True

    def init(self, X: Any, n_kernels: int, rng: np.random.RandomState) -> Array:
        if self.weights is None:
            return np.full(n_kernels, 1.0 / n_kernels)
        weights = np.array(self.weights, dtype=float)
        if weights.shape != (n_kernels,) or not np.isfinite(weights).all() or (weights < 0).any():
            raise ValueError(
                f"ConstantGate needs {n_kernels} finite weights >= 0, one per kernel, got {weights}"
            )
        return weights

    def __call__(self, X: Any, params: Array, present: Array | None = None) -> Array:
        mu = np.broadcast_to(params, (X.shape[0], len(params)))
        if present is not None:
            kept = np.where(present, mu, 0.0)
            total = kept.sum(axis=1, keepdims=True)
            mu = kept * np.divide(params.sum(), total, out=np.zeros_like(total), where=total > 0)
        return np.sqrt(mu)

    def pullback(self, X: Any, params: Array, H: Array, G: Array) -> Array:
        # With h = sqrt(mu): dJ/dmu = dJ/dh / (2 h). At h = 0 the quotient is 0/0; gradients in h
        # never move a weight away from zero.
        slope = np.divide(0.5 * G, H, out=np.zeros_like(G), where=H > 0)
        # A sample that lacks views has mu_i T / P, with T the sum of all weights and P the sum of
        # the present ones. For complete samples T = P, and only the slope is left.
        present = (H > 0) | (params == 0)
        total, kept = params.sum(), (present * params).sum(axis=1, keepdims=True)
        inverse = np.divide(1.0, kept, out=np.zeros_like(kept), where=kept > 0)
        common = (slope * params).sum(axis=1, keepdims=True) * inverse
        gradient = slope * total * inverse + common * (1.0 - total * inverse * present)
        return np.asarray(gradient.sum(axis=0))

    def project(self, params: Array) -> Array:
        return np.maximum(params, 0.0)

    def kernel_weights(self, H: Array) -> Array:
        return np.asarray(H**2)


class LinearGate(Gate):
    """Base of gates that are functions of linear scores ``<v_i, x> + v_i0``.

    Parameters of the gate are (n_features + 1, n_kernels) with the intercepts in the last row.

    Parameters
    ----------
    scale : float, default=1e-2
        Start values are uniform on ``[-scale, scale]``; the small noise breaks the symmetry of
        equal kernels.
    """

    def __init__(self, scale: float = 1e-2):
        self.scale = scale

    def init(self, X: Any, n_kernels: int, rng: np.random.RandomState) -> Array:
        size = (X.shape[1] + 1, n_kernels)
        return np.asarray(rng.uniform(-self.scale, self.scale, size=size))

    @staticmethod
    def scores(X: Any, params: Array) -> Array:
        """Return ``<v_i, x> + v_i0``, (n_samples, n_kernels)."""
        return np.asarray(fill_missing(X) @ params[:-1] + params[-1])

    @staticmethod
    def scores_pullback(X: Any, D: Array) -> Array:
        """Return the gradient in the parameters from the gradient `D` in the scores."""
        return np.vstack([fill_missing(X).T @ D, D.sum(axis=0)])


class SoftmaxGate(LinearGate):
    """Kernels compete: ``h_i(x) = softmax_i(<v_i, x> + v_i0)``.

    Parameters
    ----------
    scale : float, default=1e-2
        Start values are uniform on ``[-scale, scale]``; the small noise breaks the symmetry of
        equal kernels.
    """

    sums_to_one = True

    def __call__(self, X: Any, params: Array, present: Array | None = None) -> Array:
        return masked_softmax(self.scores(X, params), present)

    def pullback(self, X: Any, params: Array, H: Array, G: Array) -> Array:
        return self.scores_pullback(X, softmax_pullback(H, G))


class SigmoidGate(LinearGate):
    """Kernels do not compete: ``h_i(x) = 1 / (1 + exp(-<v_i, x> - v_i0))``.

    Parameters
    ----------
    scale : float, default=1e-2
        Start values are uniform on ``[-scale, scale]``.
    """

    def __call__(self, X: Any, params: Array, present: Array | None = None) -> Array:
        H = expit(self.scores(X, params))
        return np.asarray(H if present is None else np.where(present, H, 0.0))

    def pullback(self, X: Any, params: Array, H: Array, G: Array) -> Array:
        return self.scores_pullback(X, G * H * (1.0 - H))


class GaussianGate(Gate):
    """Kernels compete by distance to a centre: ``h_i(x) = softmax_i(-|x - c_i|^2 / s_i^2)``.

    Parameters of the gate are the centres with the widths in the last row,
    (n_features + 1, n_kernels).

    Parameters
    ----------
    width : float, default=1.0
        Start value of every width ``s_i``. Centres start at distinct random samples.
    """

    sums_to_one = True

    def __init__(self, width: float = 1.0):
        self.width = width

    def init(self, X: Any, n_kernels: int, rng: np.random.RandomState) -> Array:
        rows = rng.choice(X.shape[0], size=n_kernels, replace=n_kernels > X.shape[0])
        centres = as_dense(fill_missing(X)[rows])
        return np.vstack([centres.T, np.full(n_kernels, float(self.width))])

    def __call__(self, X: Any, params: Array, present: Array | None = None) -> Array:
        X = fill_missing(X)
        return masked_softmax(-_squared_distances(X, params[:-1]) / params[-1] ** 2, present)

    def pullback(self, X: Any, params: Array, H: Array, G: Array) -> Array:
        X, centres, widths = fill_missing(X), params[:-1], params[-1]
        D = softmax_pullback(H, G)
        towards = X.T @ D - centres * D.sum(axis=0)
        spread = (D * _squared_distances(X, centres)).sum(axis=0)
        return np.vstack([2.0 * towards / widths**2, 2.0 * spread / widths**3])

    def project(self, params: Array) -> Array:
        projected = params.copy()
        projected[-1] = np.maximum(params[-1], _MIN_WIDTH)
        return projected


def _squared_distances(X: Any, centres: Array) -> Array:
    """Return squared distances (n_samples, n_kernels) to centres (n_features, n_kernels)."""
    norms = X.squared_norms() if isinstance(X, CenteredSparse) else squared_norms(X)
    norms = norms[:, np.newaxis] + (centres**2).sum(axis=0)
    return np.maximum(norms - 2.0 * (X @ centres), 0.0)


class GroupGate(Gate):
    """One row of weights for each group of samples: ``h_i(x) = w_{c(x), i}``, summing to one.

    Its input is the group ``c(x)`` of each sample, an array of integers of shape (n_samples,), as
    a :class:`~lokl.gates.RepresentationGate` provides it. Parameters are the weights,
    (n_groups, n_kernels).

    Parameters
    ----------
    n_groups : int
    """

    sums_to_one = True

    def __init__(self, n_groups: int):
        self.n_groups = n_groups

    def init(self, X: Any, n_kernels: int, rng: np.random.RandomState) -> Array:
        return np.full((self.n_groups, n_kernels), 1.0 / n_kernels)

    def __call__(self, X: Any, params: Array, present: Array | None = None) -> Array:
        H = params[X]
        if present is None:
            return np.asarray(H)
        kept = np.where(present, H, 0.0)
        total = kept.sum(axis=1, keepdims=True)
        # If the group has weights only for views that the sample lacks, its views count equally.
        shared = np.divide(kept, total, out=equal_weights(H.shape, present), where=total > 0)
        return np.where(present.all(axis=1, keepdims=True), H, shared)

    def pullback(self, X: Any, params: Array, H: Array, G: Array) -> Array:
        weights = params[X]
        present = (H > 0) | (weights == 0)
        total = (weights * present).sum(axis=1, keepdims=True)
        inverse = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        # The weights of a sample that lacks views are divided by the sum of the present ones.
        through = present * inverse * (G - (G * H).sum(axis=1, keepdims=True))
        slopes = np.where(present.all(axis=1, keepdims=True), G, through)
        gradient = np.zeros_like(params)
        np.add.at(gradient, X, slopes)
        return gradient

    def project(self, params: Array) -> Array:
        return project_simplex(params)


def project_simplex(rows: Array) -> Array:
    """Return the nearest points with non-negative entries that sum to one, row by row."""
    ordered = -np.sort(-rows, axis=1)
    excess = (np.cumsum(ordered, axis=1) - 1.0) / np.arange(1, rows.shape[1] + 1)
    last = (ordered > excess).sum(axis=1) - 1
    return np.maximum(rows - excess[np.arange(len(rows)), last][:, np.newaxis], 0.0)
