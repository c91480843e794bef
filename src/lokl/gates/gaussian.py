"""Every kernel has a home in the input space and is trusted near it."""

from typing import Any

import numpy as np
from sklearn.utils.extmath import row_norms

from lokl._arrays import Array, is_sparse
from lokl.gates.base import Gate, known, masked_softmax, softmax_pullback
from lokl.gates.representation import CenteredSparse

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
