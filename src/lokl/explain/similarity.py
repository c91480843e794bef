"""Similarity of samples under a learned kernel: neighbours, kernel PCA, and alignment of views."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.decomposition import KernelPCA
from sklearn.preprocessing import KernelCenterer

from lokl._arrays import Array, evenly_spaced
from lokl.base.model import unwrap
from lokl.explain.views import Views, named_views, plain, views_of
from lokl.kernels import Kernel
from lokl.kernels.samples import split_missing

# Rows of a similarity matrix that are computed at a time.
_BLOCK = 500
# Samples that span the plane of kernel PCA, and samples of an alignment, at most.
_LANDMARKS = 500
# Samples with both views that an alignment needs.
_FEWEST = 5


@dataclass(frozen=True, eq=False)
class SampleSimilarity:
    """Values of a learned kernel between samples, which are given by their row numbers.

    Attributes
    ----------
    between : callable
        ``between(rows, columns)`` returns an array of shape (n_rows, n_columns).
    diag : array of shape (n_samples,)
    """

    between: Callable[[Array, Array], Array]
    diag: Array

    def cosine(self, rows: Array, columns: Array) -> Array:
        """Return similarities from -1 to 1 between two sets of samples."""
        size = np.sqrt(np.maximum(self.diag, 1e-300))
        return np.asarray(self.between(rows, columns) / np.outer(size[rows], size[columns]))


def sample_similarity(model: Any, X: Any) -> SampleSimilarity:
    """Return the similarity of samples to a fitted estimator.

    SVMs have a learned kernel. For votes it is the sum of the kernels at unit diagonal, weighted at
    both samples, ``sum_i sqrt(g_i(x) g_i(z)) k_i(x, z)``. For models without kernels of their own
    it is the inner product of contributions.
    """
    values = plain(X)
    if hasattr(model, "kernel_"):
        learned = model.kernel_
        return SampleSimilarity(
            lambda rows, columns: np.asarray(learned(values[rows], values[columns]), dtype=float),
            np.asarray(learned.diag(values), dtype=float),
        )
    if not hasattr(model, "kernels_"):
        parts = np.asarray(model.contributions(X), dtype=float).reshape(values.shape[0], -1)
        return SampleSimilarity(
            lambda rows, columns: parts[rows] @ parts[columns].T, (parts**2).sum(axis=1)
        )
    weights = np.asarray(model.weights(X), dtype=float)
    weights = weights if weights.ndim == 2 else weights.mean(axis=1)
    filled, _ = split_missing(model.kernels_, model.kernel_names_, values)
    return _weighted_sum(model.kernels_, filled, weights)


def _weighted_sum(kernels: Sequence[Kernel], filled: Any, weights: Array) -> SampleSimilarity:
    """Return the sum of kernels at unit diagonal with weights (n_samples, n_kernels)."""
    sizes = [np.sqrt(np.maximum(kernel.diag(filled), 1e-300)) for kernel in kernels]
    factors = [np.sqrt(weights[:, i]) / size for i, size in enumerate(sizes)]

    def between(rows: Array, columns: Array) -> Array:
        total = np.zeros((len(rows), len(columns)))
        for kernel, factor in zip(kernels, factors, strict=True):
            block = np.asarray(kernel(filled[rows], filled[columns]), dtype=float)
            total += factor[rows, np.newaxis] * block * factor[columns]
        return total

    return SampleSimilarity(between, weights.sum(axis=1))


def nearest_rows(
    similarity: SampleSimilarity, rows: Array, among: Array, same: Array, count: int
) -> tuple[list[list[int]], list[list[float]]]:
    """Find the most similar samples of some samples.

    Parameters
    ----------
    similarity : SampleSimilarity
    rows : int array of shape (n_rows,)
    among : int array of shape (n_candidates,)
        Rows that may be neighbours.
    same : int array of shape (n_samples,)
        Row of `rows` that is the same sample, which is not its own neighbour; -1 for none.
    count : int

    Returns
    -------
    positions : list of list of int
        Positions in `among`, most similar first.
    values : list of list of float
        Their cosine similarities.
    """
    positions: list[list[int]] = []
    values: list[list[float]] = []
    for start in range(0, len(rows), _BLOCK):
        some = rows[start : start + _BLOCK]
        block = similarity.cosine(some, among)
        block[same[among] == some[:, np.newaxis]] = -np.inf
        best = np.argsort(-block, axis=1, kind="stable")[:, :count]
        for row, order in zip(block, best, strict=True):
            kept = [int(k) for k in order if np.isfinite(row[k])]
            positions.append(kept)
            values.append([float(row[k]) for k in kept])
    return positions, values


def nearest_samples(model: Any, X: Any, row: int, count: int) -> list[tuple[int, float]]:
    """Return the samples that are most similar to one of them under the learned kernel.

    Parameters
    ----------
    model : fitted estimator of lokl, alone or inside pipelines and searches
        Model whose kernel is used.
    X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
    row : int
        Position of the sample in `X`.
    count : int
        Number of neighbours.

    Returns
    -------
    neighbours : list of (row, similarity)
        Most similar first. Similarity is 1 for a sample that is equal to the model.

    See Also
    --------
    lokl.explain.KernelMapDisplay : All samples in a plane.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from lokl import UniformMKLClassifier
    >>> from lokl.explain import nearest_samples
    >>> X, y = load_iris(return_X_y=True)
    >>> model = UniformMKLClassifier(["rbf"]).fit(X, y)
    >>> [row for row, similarity in nearest_samples(model, X, row=0, count=3)]
    [17, 4, 27]
    """
    similarity = sample_similarity(*unwrap(model, X))
    every = np.arange(len(similarity.diag))
    (rows,), (values,) = nearest_rows(similarity, every[[row]], every, every, count)
    return list(zip(rows, values, strict=True))


def kernel_pca(similarity: SampleSimilarity, n: int) -> tuple[Array, float | None]:
    """Project the first n samples onto the two principal components of the kernel.

    Of many samples, evenly spaced ones span the plane and the others are projected onto it.

    Returns
    -------
    positions : array of shape (n, 2)
    explained : float or None
        Share of the variance in the plane; None if the samples do not vary.
    """
    positions = np.zeros((n, 2))
    if n < 2:
        return positions, None
    marks = evenly_spaced(n, _LANDMARKS)
    gram = similarity.between(marks, marks)
    total = float(np.trace(KernelCenterer().fit_transform(gram)))
    if not total > 1e-12 * max(float(np.abs(np.diag(gram)).sum()), 1e-300):
        return positions, None
    pca = KernelPCA(min(2, len(marks)), kernel="precomputed", eigen_solver="dense").fit(gram)
    for start in range(0, n, _BLOCK):
        rows = np.arange(start, min(start + _BLOCK, n))
        block = pca.transform(similarity.between(rows, marks))
        positions[rows, : block.shape[1]] = block
    # The sign is arbitrary; the farthest sample fixes it, so that pictures are reproducible.
    far = np.abs(positions).argmax(axis=0)
    positions *= np.where(positions[far, [0, 1]] < 0, -1.0, 1.0)
    return positions, float(pca.eigenvalues_.sum() / total)


@dataclass(frozen=True, eq=False)
class KernelAlignment:
    """Centred alignment of the kernels of views, from 0 (unrelated) to 1 (equal).

    Attributes
    ----------
    between : array of shape (n_views, n_views)
        NaN if too few samples have both views.
    target : array of shape (n_views,) or None
        Alignment with the target: equal classes, or products of values.

    See Also
    --------
    lokl.explain.kernel_alignment : Computes it.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import UniformMKLClassifier
    >>> from lokl.explain import kernel_alignment
    >>> from lokl.kernels import RBF, per_view
    >>> X, y = load_wine(return_X_y=True)
    >>> X = scale(X)
    >>> kernels = per_view(RBF(), {"acids": slice(0, 5), "colours": slice(5, 13)})
    >>> model = UniformMKLClassifier(kernels).fit(X, y)
    >>> kernel_alignment(model, X, y).target.round(2)
    array([0.5 , 0.67])
    """

    between: Array
    target: Array | None = None


def kernel_alignment(
    model: Any, X: Any, truth: Array | None = None, views: Views | None = None
) -> KernelAlignment | None:
    """Return the alignment of the kernels of the views of a fitted estimator.

    Centred alignment is ``<K_i, K_j> / (|K_i| |K_j|)`` of centred matrices, on samples that have
    both views; of many samples, on evenly spaced ones.

    Parameters
    ----------
    model : fitted estimator of lokl, alone or inside pipelines and searches
        Model whose kernels are compared.
    X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
    truth : array of shape (n_samples,), optional
        Class codes, or float targets.
    views : mapping of str to positions of columns, optional
        Columns of each view; by default one view for all kernels on the same columns.

    Returns
    -------
    alignment : KernelAlignment or None
        None if the model does not have two views with kernels of their own.

    See Also
    --------
    lokl.explain.KernelAlignmentDisplay : Figure of it.
    lokl.explain.view_value : Whether views add to each other.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import UniformMKLClassifier
    >>> from lokl.explain import kernel_alignment
    >>> from lokl.kernels import RBF, per_view
    >>> X, y = load_wine(return_X_y=True)
    >>> X = scale(X)
    >>> kernels = per_view(RBF(), {"acids": slice(0, 5), "colours": slice(5, 13)})
    >>> model = UniformMKLClassifier(kernels).fit(X, y)
    >>> alignment = kernel_alignment(model, X, y)
    >>> alignment.between.round(2)
    array([[1.  , 0.43],
           [0.43, 1.  ]])
    """
    views = named_views(model, views)
    model, X = unwrap(model, X)
    if not hasattr(model, "kernels_"):
        return None
    own = views_of(model, views)
    if len(own) < 2 or not all(view.kernels for view in own):
        return None
    values = plain(X)
    rows = evenly_spaced(values.shape[0], _LANDMARKS)
    filled, present = split_missing(model.kernels_, model.kernel_names_, values[rows])
    grams = [_view_gram([model.kernels_[k] for k in view.kernels], filled) for view in own]
    if present is None:
        present = np.ones((len(rows), len(model.kernels_)), bool)
    has = [np.asarray(present[:, view.kernels].any(axis=1)) for view in own]
    between = np.eye(len(own))
    for i, j in combinations(range(len(own)), 2):
        between[i, j] = between[j, i] = _alignment(grams[i], grams[j], has[i] & has[j])
    if truth is None:
        return KernelAlignment(between)
    target = _target_gram(truth[rows])
    by_view = [_alignment(gram, target, own) for gram, own in zip(grams, has, strict=True)]
    return KernelAlignment(between, np.array(by_view))


def _view_gram(kernels: Sequence[Kernel], filled: Any) -> Array:
    """Return the mean of the kernels of one view, each at unit diagonal."""
    rows = np.arange(filled.shape[0])
    weights = np.full((len(rows), len(kernels)), 1.0 / len(kernels))
    return _weighted_sum(kernels, filled, weights).between(rows, rows)


def _target_gram(y: Array) -> Array:
    if y.dtype.kind == "f":
        return np.outer(y, y)
    return np.asarray(y[:, np.newaxis] == y[np.newaxis, :], dtype=float)


def _alignment(K: Array, L: Array, rows: Array) -> float:
    """Return the centred alignment of two matrices on some of their rows (bool)."""
    if rows.sum() < _FEWEST:
        return float("nan")
    K, L = (KernelCenterer().fit_transform(gram[np.ix_(rows, rows)]) for gram in (K, L))
    size = float(np.linalg.norm(K) * np.linalg.norm(L))
    return float((K * L).sum() / size) if size else float("nan")
