"""Samples of one group trust kernels alike."""

from collections.abc import Callable
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl.gates.base import Gate


class Groups(Gate):
    """``h_i(x) = w_{c(x), i}``: every group has its own shares of the kernels, summing to one.

    Parameters
    ----------
    assign : callable
        Gives the number of each sample's group, ``0 .. n_groups - 1``.
    n_groups : int
    """

    competes = True

    def __init__(self, assign: Callable[[Any], Array], n_groups: int):
        self.assign = assign
        self.n_groups = n_groups

    def init(self, X: Any, n_kernels: int, rng: np.random.RandomState) -> Array:
        return np.full((self.n_groups, n_kernels), 1.0 / n_kernels)

    def __call__(self, X: Any, params: Array, present: Array | None = None) -> Array:
        H = params[self.assign(X)]
        if present is None:
            return H
        there = np.where(present, H, 0.0)
        kept = there.sum(axis=1, keepdims=True)
        even = present / np.maximum(present.sum(axis=1, keepdims=True), 1)
        # A group that trusts only what the sample lacks says nothing: what is left counts alike.
        shared = np.divide(there, kept, out=even.astype(float), where=kept > 0)
        return np.where(present.all(axis=1, keepdims=True), H, shared)

    def pullback(self, X: Any, params: Array, H: Array, G: Array) -> Array:
        labels = self.assign(X)
        shares = params[labels]
        there = (H > 0) | (shares == 0)
        kept = (shares * there).sum(axis=1, keepdims=True)
        inverse = np.divide(1.0, kept, out=np.zeros_like(kept), where=kept > 0)
        # Samples that lack views have shares divided by what is left of them.
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
