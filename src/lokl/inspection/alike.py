"""Which samples a model finds alike."""

from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl.gram.gated_kernel import average_kernel
from lokl.inspection.by_view import learner_in


def most_alike(model: Any, X: Any, row: int, count: int) -> list[tuple[int, float]]:
    """Return the samples that a model finds most like one of them, the nearest first.

    Models of one learned kernel say how alike samples are; of votes it is the average of their
    kernels. Both are divided by the likeness of samples with themselves.

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
    learner, seen = learner_in(model, X)
    values = seen.to_numpy(dtype=float) if hasattr(seen, "to_numpy") else seen
    kernel = getattr(learner, "kernel_", None)
    if kernel is None:
        kernel = average_kernel(learner.kernels_, learner.kernel_names_)
    likeness = _normalised(kernel, values, row)
    order = [int(k) for k in np.argsort(-likeness, kind="stable") if k != row]
    return [(k, float(likeness[k])) for k in order[:count]]


def _normalised(kernel: Any, X: Any, row: int) -> Array:
    diag = np.asarray(kernel.diag(X), dtype=float)
    found = np.asarray(kernel(X, X[[row]]), dtype=float)[:, 0]
    scale = np.sqrt(np.maximum(diag * diag[row], np.finfo(float).tiny))
    return np.asarray(found / scale)
