"""How alike samples are to a model: its learned kernel, and who is nearest."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl._layers import unwrapped
from lokl.inspection.kernel_views import plain
from lokl.kernels.presence import split_missing

# Samples that are looked at together.
_BLOCK = 500


@dataclass(frozen=True, eq=False)
class Likeness:
    """Values of a learned kernel between samples, which are called by their numbers."""

    between: Callable[[Array, Array], Array]
    diag: Array

    @property
    def n_samples(self) -> int:
        return len(self.diag)

    def cosine(self, rows: Array, columns: Array) -> Array:
        """Similarity from -1 to 1 between some samples and others."""
        size = np.sqrt(np.maximum(self.diag, 1e-300))
        return np.asarray(self.between(rows, columns) / np.outer(size[rows], size[columns]))


def likeness(model: Any, Z: Any) -> Likeness:
    """Return how alike samples are to a fitted estimator.

    Machines have learned a kernel. For votes it is the sum of the kernels, each as far as both
    samples trust it: ``sum_i sqrt(g_i(x) g_i(z)) k_i(x, z)`` with kernels of unit diagonal. Samples
    of models without kernels of their own are alike whose parts in the decision are.
    """
    values = plain(Z)
    if hasattr(model, "kernel_"):
        kernel = model.kernel_
        return Likeness(
            lambda rows, columns: np.asarray(kernel(values[rows], values[columns]), dtype=float),
            np.asarray(kernel.diag(values), dtype=float),
        )
    if not hasattr(model, "kernels_"):
        parts = np.asarray(model.contributions(Z), dtype=float).reshape(values.shape[0], -1)
        return Likeness(
            lambda rows, columns: parts[rows] @ parts[columns].T, (parts**2).sum(axis=1)
        )
    gate = np.asarray(model.gate(Z), dtype=float)
    gate = gate if gate.ndim == 2 else gate.mean(axis=1)
    filled, _ = split_missing(model.kernels_, model.kernel_names_, values)
    size = [np.sqrt(np.maximum(kernel.diag(filled), 1e-300)) for kernel in model.kernels_]
    weights = [np.sqrt(gate[:, i]) / own for i, own in enumerate(size)]

    def between(rows: Array, columns: Array) -> Array:
        total = np.zeros((len(rows), len(columns)))
        for kernel, weight in zip(model.kernels_, weights, strict=True):
            block = np.asarray(kernel(filled[rows], filled[columns]), dtype=float)
            total += weight[rows, np.newaxis] * block * weight[columns]
        return total

    return Likeness(between, gate.sum(axis=1))


def nearest(
    alike: Likeness, n: int, among: Array, same: Array, count: int
) -> tuple[list[list[int]], list[list[float]]]:
    """Find the samples `among` some that are most like each of the first n, and how alike.

    Answers are places in `among`; `same` has the number of the sample that may not be its own
    neighbour there, -1 for none.
    """
    near: list[list[int]] = []
    how: list[list[float]] = []
    count = min(count, len(among))
    for start in range(0, n, _BLOCK):
        rows = np.arange(start, min(start + _BLOCK, n))
        if not count:
            near += [[] for _ in rows]
            how += [[] for _ in rows]
            continue
        block = alike.cosine(rows, among)
        block[same[among][np.newaxis, :] == rows[:, np.newaxis]] = -np.inf
        best = np.argsort(-block, axis=1, kind="stable")[:, :count]
        for own, places in zip(block, best, strict=True):
            kept = [int(k) for k in places if np.isfinite(own[k])]
            near.append(kept)
            how.append([float(own[k]) for k in kept])
    return near, how


def most_alike(model: Any, X: Any, row: int, count: int) -> list[tuple[int, float]]:
    """Return the samples that a model finds most like one of them, the nearest first.

    Parameters
    ----------
    model : fitted estimator of lokl, alone or inside pipelines and searches
    X : samples as the model takes them
    row : int
    count : int

    Returns
    -------
    alike : list of (row, likeness)
        Likeness is 1 for a sample that is the same to the model.
    """
    alike = likeness(*unwrapped(model, X))
    found = alike.cosine(np.array([row]), np.arange(alike.n_samples))[0]
    order = [int(k) for k in np.argsort(-found, kind="stable") if k != row]
    return [(k, float(found[k])) for k in order[:count]]
