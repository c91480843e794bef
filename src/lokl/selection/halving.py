"""Successive halving: all candidates on few rows, the best of them on more, few on all."""

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from lokl._arrays import Array
from lokl.selection.work import Task

# Each round has so many times more rows and so many times fewer candidates.
FACTOR = 3
# Rows below which all candidates on all rows are quick enough.
_FEW_ROWS = 10_000
# Rows below which the ranks of candidates say little about the ranks on all rows.
_LEAST_ROWS = 1_000


def row_counts(n_rows: int) -> list[int]:
    """Return the training rows of each round; the last has all."""
    if n_rows <= _FEW_ROWS:
        return [n_rows]
    return [max(n_rows // FACTOR**2, _LEAST_ROWS), n_rows // FACTOR, n_rows]


def on_part(task: Task, n_rows: int, of_rows: int, is_classifier: bool) -> Task:
    """Return a task that learns from a part of the training rows of each split.

    The rows of a smaller part are in every larger one. Rows to score stay as they are.
    """
    if n_rows == of_rows:
        return task
    splits = []
    for train, test in task.splits:
        order = _order(train, _safe_indexing(task.y, train) if is_classifier else None)
        splits.append((np.sort(train[order[: max(1, len(train) * n_rows // of_rows)]]), test))
    return replace(task, splits=splits)


def _order(rows: Array, labels: Any) -> Array:
    """Return a random order; with labels, the first rows of it have all classes in their shares."""
    # A fixed seed: rounds, candidates and repeated searches see the same rows.
    rng = np.random.RandomState(0)
    if labels is None:
        return rng.permutation(len(rows))
    _, codes = np.unique(np.asarray(labels), return_inverse=True)
    place = np.empty(len(rows))
    for code in range(codes.max() + 1):
        own = np.flatnonzero(codes == code)
        place[own] = rng.permutation(len(own)) / len(own)
    return np.argsort(place, kind="stable")
