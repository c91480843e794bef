"""What a model says about samples, and what each view has to do with it."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from lokl._arrays import Array, is_sparse
from lokl._warnings import capture_warnings
from lokl.base.delegation import layers_with
from lokl.explain.views import (
    KernelView,
    Views,
    by_view,
    plain,
    present_in,
    trust_in_views,
    views_of,
)

# Views of a sample that contradict each other as far as this tell different stories.
DISAGREE = 0.5


@dataclass(frozen=True, eq=False)
class ViewAnswers:
    """Answers about samples, with the share of each view in them.

    Attributes
    ----------
    views : list of str
    predicted : array of shape (n_samples,)
        Number of the class, or the value.
    probabilities : array of shape (n_samples, n_classes) or None
        None for regressions, and for models that give none.
    trust : array of shape (n_samples, n_views)
        Where the model has it, else shares of the views; 0 where a view is missing.
    shares : bool
        Whether trust is divided between the views of a sample, so that it sums to one.
    parts : array of shape (n_samples, n_views)
        Of the decision for the predicted class against the runner-up, or of the prediction.
    start : array of shape (n_samples,)
        That decision before any view has spoken.
    says : array of shape (n_samples, n_views)
        Number of the class (or the value) that each view alone would predict; -1 (or NaN) where it
        is missing, or where a view cannot be asked alone.
    sure : array of shape (n_samples, n_views)
        Probability of that class; NaN where there is none.
    disagreement : array of shape (n_samples,)
        From 0, all views say the same, to 1; NaN where nobody can tell.
    present : boolean array of shape (n_samples, n_views)
    familiar : array of shape (n_samples, n_views) or None
        How far samples are like those of training, from 0 to 1; None where a model does not tell.
    """

    views: list[str]
    predicted: Array
    probabilities: Array | None
    trust: Array
    shares: bool
    parts: Array
    start: Array
    says: Array
    sure: Array
    disagreement: Array
    present: Array
    familiar: Array | None


def answers_by_view(model: Any, X: Any, views: Views | None = None) -> ViewAnswers:
    """Ask a fitted model about samples.

    Parameters
    ----------
    model : estimator of lokl, alone or inside pipelines, searches and calibrated classifiers
    X : samples as the model takes them
    views : mapping of str to positions of columns, optional
        Of samples as the first model sees them that is no step of a pipeline; steps inside of it
        must leave columns in their order. Without it, kernels on the same columns are one view.
    """
    layers = list(layers_with(model, X))
    outer, seen = layers[0]
    inner, Z = layers[-1]
    for name in ("contributions", "weights"):
        if not hasattr(inner, name):
            raise TypeError(
                f"{type(inner).__name__} does not tell which view its answers rest on, it has no "
                f"{name}(X): give an estimator of lokl"
            )
    own = views_of(inner, views)
    present = present_in(inner, Z, own)
    parts = by_view(np.asarray(inner.contributions(Z), dtype=float), own, np.sum)
    trust, shares = trust_in_views(inner, Z, own)
    familiar = None
    if hasattr(inner, "familiarity"):
        familiar = by_view(np.asarray(inner.familiarity(Z), dtype=float), own, np.max)
    # Columns are those of the estimator itself, and of others only where steps between keep them.
    asked = (outer, seen) if views is not None or seen is Z else (inner, Z)
    kind = _Classes if is_classifier(inner) else _Numbers
    found = kind(outer, seen, inner, Z, own, present, *asked).answers(parts)
    return ViewAnswers(
        [view.name for view in own],
        trust=np.where(present, trust, 0.0),
        shares=shares,
        present=present,
        familiar=familiar,
        **found,
    )


@dataclass(frozen=True, eq=False)
class _Asked:
    """A model around an estimator, and samples as each of them sees them."""

    outer: Any
    X: Any
    inner: Any
    Z: Any
    views: list[KernelView]
    present: Array
    alone: Any  # the model that is asked about samples that have one view only
    whole: Any  # samples as it sees them

    def one_by_one(self) -> Iterator[tuple[int, Array, Any]]:
        """Yield every view with its samples, as if they had only this one; none if that fails."""
        if not self._may_be_hidden():
            return
        for k, view in enumerate(self.views):
            rows = np.flatnonzero(self.present[:, k]) if view.kernels else np.empty(0, int)
            if len(rows):
                yield k, rows, _with_only(self.whole, rows, view, self.views)

    def _may_be_hidden(self) -> bool:
        """Whether the model answers about samples that lack views."""
        if is_sparse(self.whole) or any(view.columns is None for view in self.views):
            return False
        if len(self.views) == 1:
            return True
        views = all(kernel.is_view for kernel in getattr(self.inner, "kernels_", ()))
        return views and bool(self.inner._accepts_missing_views())

    def disagreement(self, differ: Array) -> Array:
        """Return what the estimator tells, else how far pairs of views differ."""
        if hasattr(self.inner, "disagreement"):
            return np.asarray(self.inner.disagreement(self.Z), dtype=float)
        return differ


class _Classes(_Asked):
    def answers(self, parts: Array) -> dict[str, Any]:
        decision = np.asarray(self.inner.decision_function(self.Z), dtype=float)
        if decision.ndim == 1:
            decision = np.column_stack([-decision, decision]) / 2
            parts = np.stack([-parts, parts], axis=1) / 2
        rows = np.arange(len(decision))
        first = self._codes(self.outer.predict(self.X))
        others = decision.copy()
        others[rows, first] = -np.inf
        second = others.argmax(axis=1)
        own = parts[rows, first] - parts[rows, second]
        margin = decision[rows, first] - decision[rows, second]
        heard = self.present & np.array([bool(view.kernels) for view in self.views])
        says, sure, chances = self._opinions(parts)
        says = np.where(heard, says, -1)
        differ = _different(says, heard) if chances is None else _apart(chances, heard)
        return {
            "predicted": first,
            "probabilities": _probabilities(self.outer, self.X),
            "parts": own,
            "start": margin - own.sum(axis=1),
            "says": says,
            "sure": np.where(heard, sure, np.nan),
            "disagreement": self.disagreement(differ),
        }

    def _opinions(self, parts: Array) -> tuple[Array, Array, Array | None]:
        """Return the class that each view speaks for, its probability, and those of all classes.

        Probabilities are NaN and None where a view has none.
        """
        if hasattr(self.inner, "predict_proba_alone") and all(
            len(v.kernels) == 1 for v in self.views
        ):
            said = np.asarray(self.inner.predict_proba_alone(self.Z))
            return said.argmax(axis=2), said.max(axis=2), said
        # Views that cannot be asked alone speak for the class that their part is largest for.
        says, sure = parts.argmax(axis=1), np.full(self.present.shape, np.nan)
        every: Array | None = None
        for k, rows, samples in self.one_by_one():
            says[rows, k] = self._codes(capture_warnings(self.alone.predict, samples)[0])
            chances = capture_warnings(_probabilities, self.alone, samples)[0]
            if chances is not None:
                sure[rows, k] = chances[np.arange(len(rows)), says[rows, k]]
                if every is None:
                    every = np.zeros((*self.present.shape, chances.shape[1]))
                every[rows, k] = chances
        return says, sure, every

    def _codes(self, labels: Any) -> Array:
        place = {label: code for code, label in enumerate(self.inner.classes_.tolist())}
        return np.array([place[label] for label in np.asarray(labels).tolist()], dtype=np.intp)


class _Numbers(_Asked):
    def answers(self, parts: Array) -> dict[str, Any]:
        n = len(self.present)
        predicted = np.asarray(self.outer.predict(self.X), dtype=float).reshape(n, -1)[:, 0]
        own = parts if parts.ndim == 2 else parts[:, 0]
        says = np.full(self.present.shape, np.nan)
        for k, rows, samples in self.one_by_one():
            alone = np.asarray(capture_warnings(self.alone.predict, samples)[0], dtype=float)
            says[rows, k] = alone.reshape(len(rows), -1)[:, 0]
        return {
            "predicted": predicted,
            "probabilities": None,
            "parts": own,
            "start": predicted - own.sum(axis=1),
            "says": says,
            "sure": np.full(self.present.shape, np.nan),
            "disagreement": self.disagreement(np.full(n, np.nan)),
        }


def _with_only(X: Any, rows: Array, view: KernelView, views: list[KernelView]) -> Any:
    """Return samples that lack the columns of all views but one."""
    others = {column for own in views for column in own.columns or ()} - set(view.columns or ())
    # Columns that no view reads stay: a gate may look at them.
    kept = ~np.isin(np.arange(X.shape[1]), list(others))
    if hasattr(X, "iloc"):
        return X.iloc[rows].where(np.broadcast_to(kept, (len(rows), X.shape[1])))
    return np.where(kept, plain(X)[rows], np.nan)


def _probabilities(model: Any, X: Any) -> Array | None:
    """Return probabilities of the classes, None where the model gives none."""
    return np.asarray(model.predict_proba(X)) if hasattr(model, "predict_proba") else None


def _different(says: Array, heard: Array) -> Array:
    """Share of the pairs of views of each sample that say different classes."""
    both = heard[:, :, np.newaxis] & heard[:, np.newaxis, :]
    both &= ~np.eye(heard.shape[1], dtype=bool)
    differ = both & (says[:, :, np.newaxis] != says[:, np.newaxis, :])
    return np.asarray(differ.sum(axis=(1, 2)) / np.maximum(both.sum(axis=(1, 2)), 1))


def _apart(chances: Array, heard: Array) -> Array:
    """Mean over pairs of views of half the distance between their probabilities."""
    total, count = np.zeros(len(heard)), np.zeros(len(heard))
    for i, k in combinations(range(heard.shape[1]), 2):
        both = heard[:, i] & heard[:, k]
        total[both] += 0.5 * np.abs(chances[both, i] - chances[both, k]).sum(axis=1)
        count += both
    return np.asarray(total / np.maximum(count, 1))
