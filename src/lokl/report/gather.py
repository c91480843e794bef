"""From a fitted model and samples to the cases of a report."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import Pipeline

from lokl._arrays import Array
from lokl.kernels.presence import split_missing
from lokl.report.content import Cases

# Samples whose similarity to all others places them in the picture.
_LANDMARKS = 500
# Directions that similarity is measured in, and similar samples that are named.
_DIRECTIONS, _NEAR = 10, 3


def cases_of(model: Any, X: Any, y: Any = None, ids: Any = None) -> Cases:
    """Ask a fitted model about samples.

    Parameters
    ----------
    model : fitted estimator of this library, or a pipeline that ends in one
    X : samples as the model takes them
    y : array of shape (n_samples,), default=None
        Classes or targets where they are known; None or NaN where a sample has none.
    ids : sequence, default=None
        Names of the samples, their numbers if not given.
    """
    last, Z = unwrapped(model, X)
    found = Answers.of(last, Z)
    n = len(found.predicted)
    names = [str(name) for name in (range(n) if ids is None else ids)]
    place, near = picture(last, Z)
    truth = _truth(last, y, n)
    return Cases(names, truth, place=place, near=near, **vars(found))


def unwrapped(model: Any, X: Any) -> tuple[Any, Any]:
    """Return the last step of a pipeline and what it sees of samples; other models as they are."""
    if not isinstance(model, Pipeline):
        return model, X
    return model[-1], model[:-1].transform(X) if len(model) > 1 else X


@dataclass(frozen=True, eq=False)
class Answers:
    """What a model says about samples, with the names of `Cases`."""

    predicted: Array
    probabilities: Array | None
    trust: Array
    parts: Array
    start: Array
    says: Array
    sure: Array
    disagreement: Array
    present: Array

    @classmethod
    def of(cls, model: Any, X: Any) -> "Answers":
        """Ask the model."""
        parts = np.asarray(model.contributions(X), dtype=float)
        trust = np.asarray(model.trust(X) if hasattr(model, "trust") else model.gate(X))
        trust = trust if trust.ndim == 2 else trust.mean(axis=1)
        present = _present(model, X, trust.shape)
        n = len(trust)
        if hasattr(model, "disagreement"):
            disagreement = np.asarray(model.disagreement(X))
        else:
            disagreement = np.zeros(n)
        intercept = np.atleast_1d(np.asarray(model.intercept_, dtype=float))
        if not is_classifier(model):
            own = parts if parts.ndim == 2 else parts[:, 0]
            predicted = np.asarray(model.predict(X), dtype=float).reshape(n, -1)[:, 0]
            nothing = np.full(trust.shape, np.nan)
            return cls(
                predicted, None, trust, own, np.full(n, intercept[0]), nothing, nothing,
                disagreement, present,
            )  # fmt: skip
        probabilities = _probabilities(model, X)
        ranked = np.argsort(probabilities, axis=1, kind="stable")
        first, second = ranked[:, -1], ranked[:, -2]
        own, start = _between(parts, intercept, first, second)
        says, sure = _opinions(model, X, parts)
        says = np.where(present, says, -1)
        return cls(first, probabilities, trust, own, start, says, sure, disagreement, present)


def _between(parts: Array, intercept: Array, first: Array, second: Array) -> tuple[Array, Array]:
    """Parts and start of the decision for one class against another, for each sample."""
    if parts.ndim == 2:
        sign = np.where(first == 1, 1.0, -1.0)
        return sign[:, np.newaxis] * parts, sign * intercept[0]
    rows = np.arange(len(parts))
    start = np.broadcast_to(intercept, parts.shape[1])
    return parts[rows, first] - parts[rows, second], start[first] - start[second]


def _opinions(model: Any, X: Any, parts: Array) -> tuple[Array, Array]:
    """Return the class that each kernel speaks for most, and its probability where it has one."""
    if hasattr(model, "opinions"):
        said = np.asarray(model.opinions(X))
        return said.argmax(axis=2), said.max(axis=2)
    if parts.ndim == 2:
        return (parts > 0).astype(int), np.full(parts.shape, np.nan)
    return parts.argmax(axis=1), np.full((len(parts), parts.shape[2]), np.nan)


def _probabilities(model: Any, X: Any) -> Array:
    """Return probabilities; of models without, a ranking of the classes by their decisions."""
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X))
    decision = np.asarray(model.decision_function(X))
    if decision.ndim == 1:
        decision = np.column_stack([-decision, decision])
    weight = np.exp(decision - decision.max(axis=1, keepdims=True))
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def _present(model: Any, X: Any, shape: tuple[int, ...]) -> Array:
    values = X.to_numpy(dtype=float) if hasattr(X, "to_numpy") else X
    _, present = split_missing(model.kernels_, model.kernel_names_, values)
    return np.ones(shape, dtype=bool) if present is None else present


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
