"""What a model says about samples, and what each view has to do with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from lokl._arrays import Array, is_sparse
from lokl._notices import apart
from lokl.estimators._base.learner import Learner

Views = Mapping[str, Sequence[int]]
# Attributes in which estimators around others keep the fitted one.
_INNER = ("best_estimator_", "estimator_")


@dataclass(frozen=True, eq=False)
class ViewAnswers:
    """Answers about samples, with the share of each view in them.

    Attributes
    ----------
    views : list of str
    predicted : array of shape (n_samples,)
        Number of the class, or the value.
    probabilities : array of shape (n_samples, n_classes), or None for regressions
        Of models without, a ranking of the classes by their decisions.
    trust : array of shape (n_samples, n_views)
        Where the model has it, else shares of the views.
    parts : array of shape (n_samples, n_views)
        Of the decision for the predicted class against the runner-up, or of the prediction.
    start : array of shape (n_samples,)
        That decision before any view has spoken.
    says : array of shape (n_samples, n_views)
        Number of the class (or the value) that is predicted where only this view is there; -1 (or
        NaN) where it is missing.
    sure : array of shape (n_samples, n_views)
        Probability of that class; NaN where there is none.
    disagreement : array of shape (n_samples,)
        How far views contradict each other, from 0 to 1.
    present : boolean array of shape (n_samples, n_views)
    familiar : array of shape (n_samples, n_views)
        How far samples are like those of training, from 0 to 1; NaN where a model does not tell.
    """

    views: list[str]
    predicted: Array
    probabilities: Array | None
    trust: Array
    parts: Array
    start: Array
    says: Array
    sure: Array
    disagreement: Array
    present: Array
    familiar: Array


def layers_of(model: Any, X: Any) -> list[tuple[Any, Any]]:
    """Return estimators from the outermost to the innermost, each with samples as it sees them.

    Pipelines are walked through; searches and calibrated classifiers are layers.
    """
    layers = []
    while model is not None:
        if isinstance(model, Pipeline):
            X = model[:-1].transform(X) if len(model) > 1 else X
            model = model[-1]
            continue
        layers.append((model, X))
        model = next((vars(model)[name] for name in _INNER if name in vars(model)), None)
    return layers


def learner_in(model: Any, X: Any) -> tuple[Any, Any]:
    """Return the estimator of this library inside a model, and samples as it sees them."""
    for own, seen in layers_of(model, X):
        if isinstance(own, Learner):
            return own, seen
    raise ValueError(
        f"{type(model).__name__} has no parts that belong to views: it holds no estimator of lokl"
    )


def answers_by_view(model: Any, X: Any, views: Views | None = None) -> ViewAnswers:
    """Ask a fitted model about samples.

    Parameters
    ----------
    model : estimator of lokl, alone or inside pipelines, searches and calibrated classifiers
        Steps before the estimator must leave columns in their order.
    X : samples as the model takes them
    views : mapping of str to positions of columns, optional
        Without it every kernel is a view.
    """
    outer, seen = layers_of(model, X)[0]
    learner, own = learner_in(model, X)
    names, groups = _kernels_by_view(learner, views)
    columns = _columns(learner, groups, views)
    present = _present(own, columns)
    trust = np.where(present, _trust(learner, own, groups), 0.0)
    parts = parts_by_view(learner, own, views)
    intercept = np.atleast_1d(np.asarray(learner.intercept_, dtype=float))
    familiar = np.full(trust.shape, np.nan)
    if hasattr(learner, "familiarity"):
        familiar = _merged(np.asarray(learner.familiarity(own)), groups, np.max)
    can = learner._takes_missing_views() and all(kernel.is_view for kernel in learner.kernels_)
    # Columns are those of the estimator itself, and of others only where steps between keep them.
    can = can and (views is not None or seen is own)
    heard = np.array([bool(kernels) for kernels in groups])
    alone = _Alone(outer, seen, columns if can else None, present & heard)
    if is_classifier(outer):
        found = _of_classes(outer, seen, parts, intercept, alone)
    else:
        found = _of_numbers(outer, seen, parts, intercept, alone)
    if hasattr(learner, "disagreement"):
        found["disagreement"] = np.asarray(learner.disagreement(own))
    return ViewAnswers(names, trust=trust, present=present, familiar=familiar, **found)


def trust_by_view(model: Any, X: Any, views: Views | None = None) -> dict[str, Array]:
    """Return only how far each view is trusted; arguments are those of `answers_by_view`."""
    learner, own = learner_in(model, X)
    names, groups = _kernels_by_view(learner, views)
    present = _present(own, _columns(learner, groups, views))
    trust = np.where(present, _trust(learner, own, groups), 0.0)
    return dict(zip(names, trust.T, strict=True))


def parts_by_view(learner: Any, X: Any, views: Views | None = None) -> Array:
    """Return the part of each view in decisions, (n_samples, ..., n_views)."""
    _, groups = _kernels_by_view(learner, views)
    return _merged(np.asarray(learner.contributions(X), dtype=float), groups, np.sum)


def _trust(learner: Any, X: Any, groups: list[list[int]]) -> Array:
    """Trust of views where the model has it, else their shares."""
    if hasattr(learner, "trust"):
        return _merged(np.asarray(learner.trust(X)), groups, np.max)
    gate = np.asarray(learner.gate(X))
    return _merged(gate if gate.ndim == 2 else gate.mean(axis=1), groups, np.sum)


def _of_classes(
    outer: Any, X: Any, parts: Array, intercept: Array, alone: "_Alone"
) -> dict[str, Any]:
    probabilities = _probabilities(outer, X)
    predicted = _codes(outer, outer.predict(X))
    others = probabilities.copy()
    others[np.arange(len(others)), predicted] = -np.inf
    own, start = _between(parts, intercept, predicted, others.argmax(axis=1))
    chances = np.full((*alone.asked.shape, probabilities.shape[1]), np.nan)
    if parts.shape[-1] == 1:
        says = np.where(alone.asked, predicted[:, np.newaxis], -1)
        sure = probabilities[np.arange(len(predicted)), predicted][:, np.newaxis]
    elif alone.columns is None:
        spoken = (parts > 0).astype(int) if parts.ndim == 2 else parts.argmax(axis=1)
        says, sure = np.where(alone.asked, spoken, -1), np.full(alone.asked.shape, np.nan)
    else:
        says, chances = alone.classes(probabilities.shape[1])
        sure = np.take_along_axis(chances, np.maximum(says, 0)[..., np.newaxis], axis=2)[..., 0]
    return {
        "predicted": predicted,
        "probabilities": probabilities,
        "parts": own,
        "start": start,
        "says": says,
        "sure": sure,
        "disagreement": _disagreement(chances, alone.asked),
    }


def _of_numbers(
    outer: Any, X: Any, parts: Array, intercept: Array, alone: "_Alone"
) -> dict[str, Any]:
    n = X.shape[0]
    predicted = np.asarray(outer.predict(X), dtype=float).reshape(n, -1)[:, 0]
    says = predicted[:, np.newaxis] if parts.shape[-1] == 1 else alone.numbers()
    return {
        "predicted": predicted,
        "probabilities": None,
        "parts": parts if parts.ndim == 2 else parts[:, 0],
        "start": np.full(n, intercept[0]),
        "says": says,
        "sure": np.full(says.shape, np.nan),
        "disagreement": np.zeros(n),
    }


@dataclass(frozen=True, eq=False)
class _Alone:
    """Asks a model about samples that have one view only."""

    model: Any
    X: Any
    columns: list[Sequence[int]] | None  # None where views cannot be taken away
    asked: Array  # (n_samples, n_views), whether a view has anything to say

    def classes(self, n_classes: int) -> tuple[Array, Array]:
        """Return the class that each view speaks for, and probabilities of all."""
        says = np.full(self.asked.shape, -1)
        chances = np.full((*self.asked.shape, n_classes), np.nan)
        for view, rows, X in self._samples():
            chances[rows, view] = apart(_probabilities, self.model, X)[0]
            says[rows, view] = _codes(self.model, apart(self.model.predict, X)[0])
        return says, chances

    def numbers(self) -> Array:
        """Return what each view alone would predict."""
        says = np.full(self.asked.shape, np.nan)
        for view, rows, X in self._samples():
            found = np.asarray(apart(self.model.predict, X)[0], dtype=float)
            says[rows, view] = found.reshape(len(rows), -1)[:, 0]
        return says

    def _samples(self) -> Any:
        for view, columns in enumerate(self.columns or ()):
            rows = np.flatnonzero(self.asked[:, view])
            if len(rows):
                yield view, rows, _with_only(self.X, rows, columns)


def _with_only(X: Any, rows: Array, columns: Sequence[int]) -> Any:
    """Return samples that lack all columns but some."""
    if not hasattr(X, "iloc"):
        alone = np.full((len(rows), X.shape[1]), np.nan)
        alone[:, columns] = X[np.ix_(rows, np.asarray(columns))]
        return alone
    kept = np.isin(np.arange(X.shape[1]), columns)
    return X.iloc[rows].where(np.broadcast_to(kept, (len(rows), X.shape[1])))


def _kernels_by_view(learner: Any, views: Views | None) -> tuple[list[str], list[list[int]]]:
    """Return names of views, and the positions of the kernels of each."""
    names = list(learner.kernel_names_)
    if views is None:
        return names, [[i] for i in range(len(names))]
    if len(views) == 1:
        return list(views), [list(range(len(names)))]
    groups: dict[str, list[int]] = {view: [] for view in views}
    columns = {view: set(own) for view, own in views.items()}
    for i, kernel in enumerate(learner.kernels_):
        used = kernel.columns_used()
        home = next((v for v in columns if used is not None and set(used) <= columns[v]), None)
        if home is None:
            raise ValueError(
                f"kernel {names[i]!r} reads columns of several views, so that their parts cannot "
                "be told apart"
            )
        groups[home].append(i)
    return list(views), list(groups.values())


def _columns(learner: Any, groups: list[list[int]], views: Views | None) -> list[Sequence[int]]:
    """Columns of each view; none for a kernel of all columns."""
    if views is not None:
        return [list(own) for own in views.values()]
    return [list(learner.kernels_[own[0]].columns_used() or ()) for own in groups]


def _merged(values: Array, groups: list[list[int]], merge: Any) -> Array:
    """Return numbers of kernels, on the last axis, as numbers of views; 0 without kernels."""
    columns = [
        merge(values[..., own], axis=-1) if own else np.zeros(values.shape[:-1]) for own in groups
    ]
    return np.stack(columns, axis=-1)


def _present(X: Any, columns: list[Sequence[int]]) -> Array:
    values = X.to_numpy(dtype=float) if hasattr(X, "to_numpy") else X
    present = np.ones((values.shape[0], len(columns)), dtype=bool)
    if is_sparse(values) or not np.isnan(values).any():
        return present
    for view, own in enumerate(columns):
        if len(own):
            present[:, view] = ~np.isnan(values[:, np.asarray(own)]).all(axis=1)
    return present


def _between(parts: Array, intercept: Array, first: Array, second: Array) -> tuple[Array, Array]:
    """Parts and start of the decision for one class against another, for each sample."""
    if parts.ndim == 2:
        sign = np.where(first == 1, 1.0, -1.0)
        return sign[:, np.newaxis] * parts, sign * intercept[0]
    rows = np.arange(len(parts))
    start = np.broadcast_to(intercept, parts.shape[1])
    return parts[rows, first] - parts[rows, second], start[first] - start[second]


def _codes(model: Any, labels: Any) -> Array:
    place = {label: code for code, label in enumerate(np.asarray(model.classes_).tolist())}
    return np.array([place[label] for label in np.asarray(labels).tolist()], dtype=int)


def _probabilities(model: Any, X: Any) -> Array:
    """Return probabilities; of models without, a ranking of the classes by their decisions."""
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X))
    decision = np.asarray(model.decision_function(X))
    if decision.ndim == 1:
        decision = np.column_stack([-decision, decision])
    weight = np.exp(decision - decision.max(axis=1, keepdims=True))
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def _disagreement(chances: Array, asked: Array) -> Array:
    """Mean over pairs of views of half the distance of their probabilities."""
    total, count = np.zeros(len(asked)), np.zeros(len(asked))
    for i, k in combinations(range(asked.shape[1]), 2):
        both = asked[:, i] & asked[:, k] & np.isfinite(chances[:, [i, k]]).all(axis=(1, 2))
        total[both] += 0.5 * np.abs(chances[both, i] - chances[both, k]).sum(axis=1)
        count += both
    return np.asarray(total / np.maximum(count, 1))
