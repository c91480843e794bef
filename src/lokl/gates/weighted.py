"""Trust that something else has found, times weights of the kernels."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl._samples import Samples
from lokl.gates.base import ComposedGate


class Weighted(ComposedGate):
    """``h_ir(x) = sqrt(w_gi) b_ir(x)``: known trust ``b``, learned weights ``w``.

    Memberships of clusters (C-LMKL), regressed success (SwMKL, LD-MKL), a choice of kernels for
    each sample (SAMKL), agreement of class probabilities (PCK-LMKL) and no trust at all (the
    global methods) differ in ``b`` only. Parameters are the weights, (n_groups, n_kernels).

    Parameters
    ----------
    base : callable
        Takes :class:`~lokl._samples.Samples` and gives ``b``, (n_samples, n_kernels[, rank]), 0
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
