"""What a learned kernel looks like: samples as a picture, and views beside each other."""

from itertools import combinations
from typing import Any

import numpy as np
from scipy import linalg, sparse

from lokl._arrays import Array, is_sparse
from lokl.inspection.alike import Likeness
from lokl.inspection.kernel_views import Views, plain, views_of
from lokl.kernels.presence import split_missing
from lokl.report.content import Alignment

# Samples whose similarity to all others places them in the picture.
_LANDMARKS = 500
# Samples that are looked at together.
_BLOCK = 500
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
