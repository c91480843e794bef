"""Where each kernel is trusted: the gate protocol."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from lokl._arrays import Array


class Gate(BaseEstimator, ABC):
    """Trust ``h_i(x) >= 0`` of every kernel at every sample.

    The gated kernel is ``k(x, z) = sum_i <h_i(x), h_i(z)> k_i(x, z)``, where ``h_i(x)`` is a
    number (rank 1) or a vector of `r` numbers. A gate holds settings; what is learned are
    parameters, arrays that the caller keeps and hands back.
    """

    @abstractmethod
    def init(self, X: Any, n_kernels: int, rng: np.random.RandomState) -> Array:
        """Return start parameters for gating samples like `X`."""

    @abstractmethod
    def __call__(self, X: Any, params: Array, present: Array | None = None) -> Array:
        """Return gate values, (n_samples, n_kernels) or (n_samples, n_kernels, rank).

        Parameters
        ----------
        X : {array, CSR matrix} of shape (n_samples, n_features)
        params : array
            As made by :meth:`init`.
        present : boolean array of shape (n_samples, n_kernels), optional
            False where a sample lacks the view of a kernel: the gate is 0 there and the other
            gates of the sample share its part.
        """

    def pullback(self, X: Any, params: Array, H: Array, G: Array) -> Array:
        """Turn ``dJ/dH`` at gate values `H` into the gradient in the parameters."""
        raise TypeError(f"{type(self).__name__} gates are not learned by gradient")

    def project(self, params: Array) -> Array:
        """Return the nearest allowed parameters."""
        return params

    def trust(self, H: Array) -> Array:
        """Return the (n_samples, n_kernels) share of each kernel, from gate values."""
        return H if H.ndim == 2 else H.sum(axis=2)


def masked_softmax(scores: Array, present: Array | None) -> Array:
    """Row-wise softmax over the present kernels; absent ones get exactly 0."""
    if present is not None:
        scores = np.where(present, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def softmax_pullback(H: Array, G: Array) -> Array:
    """Turn ``dJ/dH`` into ``dJ/dscores`` through a row-wise softmax."""
    return np.asarray(H * (G - (G * H).sum(axis=1, keepdims=True)))
