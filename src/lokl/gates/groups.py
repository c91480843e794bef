"""Samples of one group trust kernels alike."""

from collections.abc import Callable
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl._samples import Samples
from lokl.gates.base import ComposedGate, SettledGate


class Groups(ComposedGate):
    """``h_i(x) = w_{c(x), i}``: every group has its own shares of the kernels, summing to one.

    Parameters
    ----------
    assign : callable
        Takes :class:`~lokl._samples.Samples` and gives the number of each one's group,
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
