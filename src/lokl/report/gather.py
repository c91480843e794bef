"""From a fitted model and samples to the cases of a report."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.neighbors import NearestNeighbors

from lokl._arrays import Array
from lokl.inspection.by_view import ViewAnswers, answers_by_view, layers_of, learner_in
from lokl.report.content import Cases

# Samples whose similarity to all others places them in the picture.
_LANDMARKS = 500
# Directions that similarity is measured in, and similar samples that are named.
_DIRECTIONS, _NEAR = 10, 3


def cases_of(
    model: Any,
    X: Any,
    y: Any = None,
    ids: Any = None,
    views: Mapping[str, Sequence[int]] | None = None,
) -> Cases:
    """Ask a fitted model about samples.

    Parameters
    ----------
    model : fitted estimator of this library, alone or inside pipelines and searches
    X : samples as the model takes them
    y : array of shape (n_samples,), default=None
        Classes or targets where they are known; None or NaN where a sample has none.
    ids : sequence, default=None
        Names of the samples, their numbers if not given.
    views : mapping of str to positions of columns, optional
        As for :func:`lokl.inspection.answers_by_view`; without it every kernel is a view.
    """
    return cases_from(answers_by_view(model, X, views), model, X, y, ids)


def cases_from(found: ViewAnswers, model: Any, X: Any, y: Any = None, ids: Any = None) -> Cases:
    """Return cases of answers that are known; the model says only which samples are alike."""
    n = len(found.predicted)
    names = [str(name) for name in (range(n) if ids is None else ids)]
    place, near = picture(*learner_in(model, X))
    told = {name: value for name, value in vars(found).items() if name in Cases.__annotations__}
    truth = _truth(layers_of(model, X)[0][0], y, n)
    return Cases(ids=names, truth=truth, place=place, near=near, **told)


def _truth(model: Any, y: Any, n: int) -> Array:
    classifies = is_classifier(model)
    if y is None:
        return np.full(n, -1) if classifies else np.full(n, np.nan)
    y = np.asarray(y)
    if not classifies:
        return np.asarray(y, dtype=float)
    place = {label: code for code, label in enumerate(model.classes_.tolist())}
    return np.array([place.get(label, -1) for label in y.tolist()])


def picture(model: Any, X: Any) -> tuple[Array, list[list[int]]]:
    """Place samples so that those which the model finds alike lie together; name the nearest.

    Models with one learned kernel say how alike samples are; of votes, samples are alike whose
    parts are.
    """
    n = X.shape[0]
    if hasattr(model, "kernel_"):
        values = X.to_numpy(dtype=float) if hasattr(X, "to_numpy") else X
        marks = np.linspace(0, n - 1, min(n, _LANDMARKS)).astype(int)
        features = np.asarray(model.kernel_(values, values[marks]), dtype=float)
    else:
        said = np.asarray(model.contributions(X), dtype=float)
        features = said.reshape(n, -1)
    features = features - features.mean(axis=0)
    left, size, _ = np.linalg.svd(features, full_matrices=False)
    scores = left[:, :_DIRECTIONS] * size[:_DIRECTIONS]
    place = np.zeros((n, 2))
    place[:, : min(2, scores.shape[1])] = scores[:, :2]
    count = min(_NEAR, n - 1)
    if count < 1:
        return place, [[] for _ in range(n)]
    order = NearestNeighbors(n_neighbors=count).fit(scores).kneighbors(return_distance=False)
    return place, order.tolist()
