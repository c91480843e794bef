"""The same trust everywhere: one SVM, the uniform combination, every global method.

Kernels compete at every point, along directions of the input space.

Every kernel is switched on or off by itself.

Every kernel has a home in the input space and is trusted near it.

Samples of one group trust kernels alike.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.utils.extmath import row_norms

from lokl._arrays import Array, Samples, is_sparse
from lokl.gates.base import ComposedGate, Gate, SettledGate, known, masked_softmax, softmax_pullback
from lokl.gates.representation import CenteredSparse


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


_NARROWEST = 1e-3


class Gaussian(Gate):
    """Kernels compete by closeness to a centre: ``h_i(x) = softmax_i(-|x - c_i|^2 / s_i^2)``.

    Parameters are the centres with the widths in the last row, (n_features + 1, n_kernels).

    Parameters
    ----------
    width : float, default=1.0
        Start value of every width ``s_i``. Centres start at distinct random samples.
    """

    competes = True

    def __init__(self, width: float = 1.0):
        self.width = width

    def init(self, X: Any, n_kernels: int, rng: np.random.RandomState) -> Array:
        distinct = n_kernels <= X.shape[0]
        chosen = rng.choice(X.shape[0], size=n_kernels, replace=not distinct)
        centres = _rows(known(X), chosen)
        return np.vstack([centres.T, np.full(n_kernels, float(self.width))])

    def __call__(self, X: Any, params: Array, present: Array | None = None) -> Array:
        X = known(X)
        return masked_softmax(-_squared_distances(X, params[:-1]) / params[-1] ** 2, present)

    def pullback(self, X: Any, params: Array, H: Array, G: Array) -> Array:
        X, centres, widths = known(X), params[:-1], params[-1]
        D = softmax_pullback(H, G)
        pull = X.T @ D - centres * D.sum(axis=0)
        spread = (D * _squared_distances(X, centres)).sum(axis=0)
        return np.vstack([2.0 * pull / widths**2, 2.0 * spread / widths**3])

    def project(self, params: Array) -> Array:
        projected = params.copy()
        projected[-1] = np.maximum(params[-1], _NARROWEST)
        return projected


def _squared_distances(X: Any, centres: Array) -> Array:
    norms = X.square_norms() if isinstance(X, CenteredSparse) else row_norms(X, squared=True)
    norms = norms[:, np.newaxis] + (centres**2).sum(axis=0)
    return np.maximum(norms - 2.0 * (X @ centres), 0.0)


def _rows(X: Any, index: Array) -> Array:
    if isinstance(X, CenteredSparse):
        return X.rows(index)
    return np.asarray(X[index].toarray() if is_sparse(X) else X[index])


class Groups(ComposedGate):
    """``h_i(x) = w_{c(x), i}``: every group has its own shares of the kernels, summing to one.

    Parameters
    ----------
    assign : callable
        Takes :class:`~lokl._arrays.Samples` and gives the number of each one's group,
        ``0 .. n_groups - 1``.
    n_groups : int
    """

    competes = True

    def __init__(self, assign: Callable[[Samples], Array], n_groups: int):
        self.assign = assign
        self.n_groups = n_groups

    def init(self, X: Any, n_kernels: int, rng: np.random.RandomState) -> Array:
        return np.full((self.n_groups, n_kernels), 1.0 / n_kernels)

    def at(self, samples: Samples, params: Array) -> Array:
        return self._values(self.assign(samples), samples.present, params)

    def settle(self, samples: Samples) -> SettledGate:
        return self.settled(self.assign(samples), samples.present)

    def settled(self, labels: Array, present: Array | None) -> SettledGate:
        """Return the gate at samples whose groups are known."""
        return SettledGate(
            lambda params: self._values(labels, present, params),
            lambda params, H, G: self._pullback(labels, params, H, G),
        )

    def pullback(self, X: Any, params: Array, H: Array, G: Array) -> Array:
        return self._pullback(self.assign(Samples.of(X)), params, H, G)

    @staticmethod
    def _values(labels: Array, present: Array | None, params: Array) -> Array:
        H = params[labels]
        if present is None:
            return np.asarray(H)
        there = np.where(present, H, 0.0)
        kept = there.sum(axis=1, keepdims=True)
        even = present / np.maximum(present.sum(axis=1, keepdims=True), 1)
        # A group that trusts only views the sample lacks says nothing about it: its views count
        # alike.
        shared = np.divide(there, kept, out=even.astype(float), where=kept > 0)
        return np.where(present.all(axis=1, keepdims=True), H, shared)

    @staticmethod
    def _pullback(labels: Array, params: Array, H: Array, G: Array) -> Array:
        shares = params[labels]
        there = (H > 0) | (shares == 0)
        kept = (shares * there).sum(axis=1, keepdims=True)
        inverse = np.divide(1.0, kept, out=np.zeros_like(kept), where=kept > 0)
        # The shares of a sample that lacks views are divided by the sum of those it has.
        complete = there.all(axis=1, keepdims=True)
        through = there * inverse * (G - (G * H).sum(axis=1, keepdims=True))
        slopes = np.where(complete, G, through)
        gradient = np.zeros_like(params)
        np.add.at(gradient, labels, slopes)
        return gradient

    def project(self, params: Array) -> Array:
        return project_simplex(params)


def project_simplex(rows: Array) -> Array:
    """Nearest points with entries not negative and sum one, row by row."""
    ordered = -np.sort(-rows, axis=1)
    excess = (np.cumsum(ordered, axis=1) - 1.0) / np.arange(1, rows.shape[1] + 1)
    last = (ordered > excess).sum(axis=1) - 1
    return np.maximum(rows - excess[np.arange(len(rows)), last][:, np.newaxis], 0.0)
