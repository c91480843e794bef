"""Gating functions: how much each kernel counts at each sample.

A gate gives values ``h_i(x) >= 0`` with which the kernels are combined. This module has the
protocol of all gates, gates whose shape is known and whose weights are learned, and the helpers
that treat missing views.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator

from lokl._arrays import Array, Samples


class Gate(BaseEstimator, ABC):
    """Gating function ``h_i(x) >= 0`` of every kernel at every sample.

    The gated kernel is ``k(x, z) = sum_i <h_i(x), h_i(z)> k_i(x, z)``, where ``h_i(x)`` is a
    number (rank 1) or a vector of `rank` numbers. A gate stores settings only. Learned parameters
    are arrays that the caller keeps and passes to every call.

    Attributes
    ----------
    sums_to_one : bool
        Whether the gate values of a sample sum to one over the kernels.
    is_constant : bool
        Whether gate values are equal for all samples that have all views.
    """

    sums_to_one = False

    @property
    def is_constant(self) -> bool:
        return False

    @abstractmethod
    def init(self, X: Any, n_kernels: int, rng: np.random.RandomState) -> Array:
        """Return start parameters for gating samples like `X`."""

    @abstractmethod
    def __call__(self, X: Any, params: Array, present: Array | None = None) -> Array:
        """Return gate values, (n_samples, n_kernels) or (n_samples, n_kernels, rank).

        Parameters
        ----------
        X : {array, CSR matrix} of shape (n_samples, n_features)
            NaN for missing views.
        params : array
            As made by :meth:`init`.
        present : boolean array of shape (n_samples, n_kernels), optional
            False if a sample lacks the view of a kernel. The gate is 0 there, and the other gates
            of the sample are scaled up to make up for it.
        """

    def at(self, samples: Samples, params: Array) -> Array:
        """Return gate values of samples, shaped as in :meth:`__call__`."""
        return self(samples.given, params, samples.present)

    def pullback(self, X: Any, params: Array, H: Array, G: Array) -> Array:
        """Return the gradient in the parameters from the gradient in the gate values.

        Parameters
        ----------
        X : {array, CSR matrix} of shape (n_samples, n_features)
        params : array
        H : array of shape (n_samples, n_kernels)
            Gate values at `params`.
        G : array of shape (n_samples, n_kernels)
            Gradient ``dJ/dH``.

        Returns
        -------
        gradient : array with the shape of `params`
        """
        raise TypeError(f"{type(self).__name__} gates are not learned by gradient")

    def project(self, params: Array) -> Array:
        """Return the nearest feasible parameters."""
        return params

    def on(self, columns: Any) -> "GateOn":
        """Return this gate on some columns: names, positions, slice, mask or selector."""
        return GateOn(self, columns)

    def kernel_weights(self, H: Array) -> Array:
        """Return the weight of each kernel, (n_samples, n_kernels), from gate values.

        Weights are not negative. They sum to one only after :func:`normalized_weights`.
        """
        return H if H.ndim == 2 else H.sum(axis=2)


class GateOn(BaseEstimator):
    """A gate and the columns it reads: a setting of methods that learn gates.

    Parameters
    ----------
    gate : Gate
    columns : str, int, slice, sequence of them, boolean mask or selector
    """

    def __init__(self, gate: Gate, columns: Any):
        self.gate = gate
        self.columns = columns


class ComposedGate(Gate):
    """Base of gates that call other learned functions of the samples.

    Such functions need the samples both as given and as the kernels read them. A subclass
    therefore implements :meth:`at` instead of :meth:`__call__`.
    """

    @abstractmethod
    def at(self, samples: Samples, params: Array) -> Array: ...

    def __call__(self, X: Any, params: Array, present: Array | None = None) -> Array:
        return self.at(Samples.of(X, present), params)


class WeightedGate(ComposedGate):
    """Known gate values times learned weights: ``h_ir(x) = sqrt(w_gi) b_ir(x)``.

    Several methods differ only in the known values ``b``: memberships of clusters (C-LMKL),
    regressed success (SwMKL, LD-MKL), a choice of kernels for each sample (SAMKL), agreement of
    class probabilities (PCK-LMKL), or equal values (the global methods). Parameters are the
    weights, (n_groups, n_kernels).

    Parameters
    ----------
    base : callable
        Takes :class:`~lokl._arrays.Samples` and returns ``b`` of shape (n_samples, n_kernels) or
        (n_samples, n_kernels, rank), 0 for missing views.
    by_rank : bool, default=False
        Whether each rank has its own group of weights. Otherwise all ranks share one group.
    """

    def __init__(self, base: Callable[[Samples], Array], by_rank: bool = False):
        self.base = base
        self.by_rank = by_rank

    @property
    def is_constant(self) -> bool:
        return isinstance(self.base, EqualGates)

    def init(self, X: Any, n_kernels: int, rng: np.random.RandomState) -> Array:
        groups = self.base(Samples.of(X[:1])).shape[2] if self.by_rank else 1
        return np.ones((groups, n_kernels))

    def at(self, samples: Samples, params: Array) -> Array:
        return apply_weights(self.base(samples), params)

    def project(self, params: Array) -> Array:
        return np.maximum(params, 0.0)

    def kernel_weights(self, H: Array) -> Array:
        return np.asarray((H**2).sum(axis=2) if H.ndim == 3 else H**2)


@dataclass(frozen=True)
class EqualGates:
    """Gate values of 1 for all kernels at all samples: the known part of a global gate."""

    n_kernels: int

    def __call__(self, samples: Samples) -> Array:
        return rescale_missing(np.ones((samples.n_samples, self.n_kernels)), samples.present)


def apply_weights(base: Array, weights: Array) -> Array:
    """Return ``sqrt(w_gi) b_ir``.

    Parameters
    ----------
    base : array of shape (n_samples, n_kernels) or (n_samples, n_kernels, rank)
    weights : array of shape (n_groups, n_kernels)
        One group for each rank, or one group for all ranks.
    """
    if base.ndim == 2:
        return np.asarray(base * np.sqrt(weights[0]))
    return np.asarray(base * np.sqrt(weights.T))


def rescale_missing(base: Array, present: Array | None) -> Array:
    """Return gate values with 0 for missing views and the rest scaled up to the same norm.

    The factor is ``sqrt(m / m_x)`` for a sample with ``m_x`` of ``m`` views. It does not depend on
    learned weights, so problems that are convex in the weights stay convex.

    Parameters
    ----------
    base : array of shape (n_samples, n_kernels) or (n_samples, n_kernels, rank)
    present : boolean array of shape (n_samples, n_kernels), optional
    """
    if present is None:
        return base
    n_present = present.sum(axis=1)
    factor = present * np.sqrt(present.shape[1] / np.maximum(n_present, 1))[:, np.newaxis]
    return np.asarray(base * (factor if base.ndim == 2 else factor[:, :, np.newaxis]))


def normalized_weights(weights: Array, present: Array | None) -> Array:
    """Scale the kernel weights of every sample, (n_samples, n_kernels), to sum one.

    If all weights of a sample are zero, which gates that do not sum to one allow, the kernels
    whose views the sample has get equal weights.
    """
    total = weights.sum(axis=1, keepdims=True)
    return np.divide(weights, total, out=equal_weights(weights.shape, present), where=total > 0)


def equal_weights(shape: tuple[int, ...], present: Array | None) -> Array:
    """Return equal weights of the kernels whose views a sample has; rows sum to one."""
    present = np.ones(shape, dtype=bool) if present is None else present
    return np.asarray(present / np.maximum(present.sum(axis=1, keepdims=True), 1))


def fill_missing(X: Any) -> Any:
    """Return samples with 0 for NaN: a view that a sample lacks does not affect its gate."""
    if isinstance(X, np.ndarray) and np.isnan(X).any():
        return np.where(np.isnan(X), 0.0, X)
    return X


def masked_softmax(scores: Array, present: Array | None) -> Array:
    """Return the row-wise softmax of scores over the present kernels, exactly 0 for the others."""
    if present is not None:
        scores = np.where(present, scores, -np.inf)
    return np.asarray(softmax(scores, axis=1))


def softmax_pullback(H: Array, G: Array) -> Array:
    """Return ``dJ/dscores`` from ``dJ/dH`` for a row-wise softmax `H`, (n_samples, n_kernels)."""
    return np.asarray(H * (G - (G * H).sum(axis=1, keepdims=True)))
