"""Where each kernel is trusted: the gate protocol.

Trust that something else has found, times weights of the kernels.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from lokl._arrays import Array, Samples


@dataclass(frozen=True, eq=False)
class SettledGate:
    """A gate at samples that stay while its parameters move."""

    values: Callable[[Array], Array]  # gate values of the samples at parameters
    pullback: Callable[
        [Array, Array, Array], Array
    ]  # (params, H, dJ/dH) -> gradient in the parameters


class Gate(BaseEstimator, ABC):
    """Trust ``h_i(x) >= 0`` of every kernel at every sample.

    The gated kernel is ``k(x, z) = sum_i <h_i(x), h_i(z)> k_i(x, z)``, where ``h_i(x)`` is a
    number (rank 1) or a vector of `r` numbers. A gate holds settings; what is learned are
    parameters, arrays that the caller keeps and hands back.

    Attributes
    ----------
    competes : bool
        Whether the trust of a sample in all kernels sums to one.
    same_everywhere : bool
        Whether all samples that have all views trust alike.
    """

    competes = False

    @property
    def same_everywhere(self) -> bool:
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
            NaN where a view is missing.
        params : array
            As made by :meth:`init`.
        present : boolean array of shape (n_samples, n_kernels), optional
            False where a sample lacks the view of a kernel: the gate is 0 there and the other
            gates of the sample share its part.
        """

    def at(self, samples: Samples, params: Array) -> Array:
        """Return gate values of samples."""
        return self(samples.given, params, samples.present)

    def settle(self, samples: Samples) -> SettledGate:
        """Return this gate at samples whose part of the work is done once, not at every step."""
        return SettledGate(
            lambda params: self.at(samples, params),
            lambda params, H, G: self.pullback(samples.given, params, H, G),
        )

    def pullback(self, X: Any, params: Array, H: Array, G: Array) -> Array:
        """Turn ``dJ/dH`` at gate values `H` into the gradient in the parameters."""
        raise TypeError(f"{type(self).__name__} gates are not learned by gradient")

    def project(self, params: Array) -> Array:
        """Return the nearest allowed parameters."""
        return params

    def on(self, columns: Any) -> "GateOn":
        """Return this gate on some columns: names, positions, slice, mask or selector."""
        return GateOn(self, columns)

    def trust(self, H: Array) -> Array:
        """Return the (n_samples, n_kernels) share of each kernel, from gate values."""
        return H if H.ndim == 2 else H.sum(axis=2)


class ComposedGate(Gate):
    """A gate that asks other learned functions about the samples.

    These need the samples both as given and as kernels read them, so :meth:`at` is what such a
    gate implements.
    """

    @abstractmethod
    def at(self, samples: Samples, params: Array) -> Array: ...

    def __call__(self, X: Any, params: Array, present: Array | None = None) -> Array:
        return self.at(Samples.of(X, present), params)


class GateOn(BaseEstimator):
    """A gate and the columns it shall look at: a setting of methods that learn gates.

    Parameters
    ----------
    gate : Gate
    columns : str, int, slice, sequence of them, boolean mask or selector
    """

    def __init__(self, gate: Gate, columns: Any):
        self.gate = gate
        self.columns = columns


def known(X: Any) -> Any:
    """Return samples with 0 for missing values: what a sample lacks has no say in its gate."""
    if isinstance(X, np.ndarray) and np.isnan(X).any():
        return np.where(np.isnan(X), 0.0, X)
    return X


def masked_softmax(scores: Array, present: Array | None) -> Array:
    """Row-wise softmax over the present kernels; absent ones get exactly 0."""
    if present is not None:
        scores = np.where(present, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def shares(trust: Array, present: Array | None) -> Array:
    """Scale the trust of every sample to sum one.

    A sample that trusts nothing, as gates without competition allow, has equal shares in the
    kernels it can see.
    """
    total = trust.sum(axis=1, keepdims=True)
    seen = np.ones(trust.shape) if present is None else present.astype(float)
    even = seen / seen.sum(axis=1, keepdims=True)
    return np.divide(trust, total, out=even, where=total > 0)


def softmax_pullback(H: Array, G: Array) -> Array:
    """Turn ``dJ/dH`` into ``dJ/dscores`` through a row-wise softmax."""
    return np.asarray(H * (G - (G * H).sum(axis=1, keepdims=True)))


class Weighted(ComposedGate):
    """``h_ir(x) = sqrt(w_gi) b_ir(x)``: known trust ``b``, learned weights ``w``.

    Memberships of clusters (C-LMKL), regressed success (SwMKL, LD-MKL), a choice of kernels for
    each sample (SAMKL), agreement of class probabilities (PCK-LMKL) and no trust at all (the
    global methods) differ in ``b`` only. Parameters are the weights, (n_groups, n_kernels).

    Parameters
    ----------
    base : callable
        Takes :class:`~lokl._arrays.Samples` and gives ``b``, (n_samples, n_kernels[, rank]), 0
        where a view is missing.
    by_rank : bool, default=False
        Whether each rank has its own group of weights; else all share one.
    """

    def __init__(self, base: Callable[[Samples], Array], by_rank: bool = False):
        self.base = base
        self.by_rank = by_rank

    @property
    def same_everywhere(self) -> bool:
        return isinstance(self.base, Everywhere)

    def init(self, X: Any, n_kernels: int, rng: np.random.RandomState) -> Array:
        groups = self.base(Samples.of(X[:1])).shape[2] if self.by_rank else 1
        return np.ones((groups, n_kernels))

    def at(self, samples: Samples, params: Array) -> Array:
        return weigh(self.base(samples), params)

    def project(self, params: Array) -> Array:
        return np.maximum(params, 0.0)

    def trust(self, H: Array) -> Array:
        return np.asarray((H**2).sum(axis=2) if H.ndim == 3 else H**2)


@dataclass(frozen=True)
class Everywhere:
    """The known part of a global gate: every kernel alike at every sample that has its view."""

    n_kernels: int

    def __call__(self, samples: Samples) -> Array:
        return share_missing(np.ones((samples.n_samples, self.n_kernels)), samples.present)


def weigh(base: Array, weights: Array) -> Array:
    """Return ``sqrt(w_gi) b_ir``; one group of weights serves every rank."""
    if base.ndim == 2:
        return np.asarray(base * np.sqrt(weights[0]))
    return np.asarray(base * np.sqrt(weights.T))


def share_missing(base: Array, present: Array | None) -> Array:
    """Trust with 0 where a view is missing, the rest scaled up so that its energy is kept.

    The factor ``sqrt(m / m_x)`` for a sample with ``m_x`` of ``m`` views does not depend on
    learned weights, so that problems that are convex in them stay so.
    """
    if present is None:
        return base
    kept = present.sum(axis=1)
    factor = present * np.sqrt(present.shape[1] / np.maximum(kept, 1))[:, np.newaxis]
    return np.asarray(base * (factor if base.ndim == 2 else factor[:, :, np.newaxis]))
