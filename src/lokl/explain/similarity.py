"""How alike samples are to a model: its learned kernel, and who is nearest.

What a learned kernel looks like: samples as a picture, and views beside each other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy import linalg, sparse

from lokl._arrays import Array, is_sparse
from lokl.base.delegation import unwrapped
from lokl.explain.views import Views, plain, views_of
from lokl.kernels.samples import split_missing

# Samples that are looked at together.
_BLOCK = 500


@dataclass(frozen=True, eq=False)
class Alignment:
    """How alike the kernels of views are: their centred alignment, from 0 to 1.

    Attributes
    ----------
    between : array of shape (n_views, n_views)
        NaN where too few samples have both views.
    target : array of shape (n_views,) or None
        With the kernel of the truth: samples of the same class, or of like values.
    """

    between: Array
    target: Array | None = None


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
    gate = np.asarray(model.weights(Z), dtype=float)
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


# Samples whose similarity to all others places them in the picture.
_LANDMARKS = 500
# Samples that are looked at together.
# Samples with both views that an alignment needs.
_FEWEST = 5


def stacked(first: Any, second: Any) -> Any:
    """Return samples of both, one below the other."""
    first, second = plain(first), plain(second)
    if is_sparse(first) or is_sparse(second):
        return sparse.vstack([first, second]).tocsr()
    return np.vstack([first, second])


def kernel_pca(alike: Likeness, n: int) -> tuple[Array, float | None]:
    """Place the first n samples in the plane in which the kernel varies most.

    Of many samples, some span the plane and the others are projected onto it. The second number
    is the share of the variation that the plane holds, None where nothing varies.
    """
    place = np.zeros((n, 2))
    if n < 2:
        return place, None
    marks = np.unique(np.linspace(0, n - 1, min(n, _LANDMARKS)).astype(np.intp))
    gram = alike.between(marks, marks)
    means = gram.mean(axis=0)
    centred = gram - means - means[:, np.newaxis] + gram.mean()
    total = float(np.trace(centred))
    if not total > 1e-12 * max(float(np.abs(np.diag(gram)).sum()), 1e-300):
        return place, None
    count = min(2, len(marks))
    sizes, vectors = linalg.eigh(centred, subset_by_index=[len(marks) - count, len(marks) - 1])
    sizes, vectors = sizes[::-1], vectors[:, ::-1]
    sizes = np.where(sizes > 1e-12 * total, sizes, np.inf)
    for start in range(0, n, _BLOCK):
        rows = np.arange(start, min(start + _BLOCK, n))
        block = alike.between(rows, marks)
        block = block - block.mean(axis=1, keepdims=True) - means + gram.mean()
        place[rows, :count] = block @ vectors / np.sqrt(sizes)
    # Which way is right is arbitrary; the farthest sample decides, so that it stays the same.
    far = np.abs(place).argmax(axis=0)
    place *= np.where(place[far, [0, 1]] < 0, -1.0, 1.0)
    return place, float(sizes[np.isfinite(sizes)].sum() / total)


def alignment(
    model: Any, Z: Any, truth: Array | None = None, views: Views | None = None
) -> Alignment | None:
    """Return how alike the kernels of the views of a fitted estimator are on some samples.

    Centred alignment: ``<K_i, K_j> / (|K_i| |K_j|)`` of centred matrices, on samples that have
    both views. Of many samples, some are taken, evenly spread. None where there are no two views
    with kernels of their own.
    """
    if not hasattr(model, "kernels_"):
        return None
    own = views_of(model, views)
    if len(own) < 2 or not all(view.kernels for view in own):
        return None
    values = plain(Z)
    rows = np.unique(
        np.linspace(0, values.shape[0] - 1, min(values.shape[0], _LANDMARKS)).astype(int)
    )
    filled, present = split_missing(model.kernels_, model.kernel_names_, values[rows])
    kernels = [_of_view([model.kernels_[k] for k in view.kernels], filled) for view in own]
    seen = np.ones((len(rows), len(model.kernels_)), bool) if present is None else present
    has = [seen[:, view.kernels].any(axis=1) for view in own]
    between = np.eye(len(own))
    for i, j in combinations(range(len(own)), 2):
        both = np.flatnonzero(has[i] & has[j])
        between[i, j] = between[j, i] = _aligned(kernels[i], kernels[j], both)
    if truth is None:
        return Alignment(between)
    wanted = _kernel_of(truth[rows])
    target = [_aligned(K, wanted, np.flatnonzero(has[i])) for i, K in enumerate(kernels)]
    return Alignment(between, np.array(target))


def _of_view(kernels: list[Any], filled: Any) -> Array:
    """Mean of the kernels of one view, each at unit diagonal."""
    total = np.zeros((filled.shape[0], filled.shape[0]))
    for kernel in kernels:
        size = np.sqrt(np.maximum(kernel.diag(filled), 1e-300))
        total += np.asarray(kernel(filled), dtype=float) / np.outer(size, size)
    return total / len(kernels)


def _kernel_of(y: Array) -> Array:
    """Kernel of targets: the same class or not, or the product of values."""
    if y.dtype.kind == "f":
        return np.outer(y, y)
    return np.asarray(y[:, np.newaxis] == y[np.newaxis, :], dtype=float)


def _aligned(K: Array, L: Array, rows: Array) -> float:
    if len(rows) < _FEWEST:
        return float("nan")
    centred = []
    for matrix in (K, L):
        part = matrix[np.ix_(rows, rows)]
        part = part - part.mean(axis=0)
        centred.append(part - part.mean(axis=1, keepdims=True))
    size = float(np.linalg.norm(centred[0]) * np.linalg.norm(centred[1]))
    return float((centred[0] * centred[1]).sum() / size) if size else float("nan")
