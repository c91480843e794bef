"""What a fitted model says about samples, view by view."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from lokl._arrays import Array, is_sparse

Views = Mapping[str, Sequence[int]]
# Attributes in which estimators around others keep the fitted one.
_INNER = ("best_estimator_", "estimator_")


def unwrapped(model: Any, X: Any) -> tuple[Any, Any]:
    """Return the estimator that explains itself, and what it sees of samples.

    Pipelines, searches and classifiers that add probabilities are taken off. Samples may be None.
    """
    while True:
        if isinstance(model, Pipeline):
            X = model[:-1].transform(X) if X is not None and len(model) > 1 else X
            model = model[-1]
            continue
        inner = next((vars(model)[name] for name in _INNER if name in vars(model)), None)
        if inner is None:
            return model, X
        model = inner


def plain(X: Any) -> Any:
    """Return samples without the names of their columns."""
    return X.to_numpy(dtype=float) if hasattr(X, "to_numpy") else X


@dataclass(frozen=True)
class KernelView:
    """One view of a fitted model: kernels on the same columns."""

    name: str
    kernels: tuple[int, ...]  # none where the model has dropped them all
    columns: tuple[int, ...] | None  # None for all


def views_of(model: Any, views: Views | None = None) -> list[KernelView]:
    """Return the views of an estimator.

    Parameters
    ----------
    model : fitted estimator
    views : mapping of str to positions of columns, optional
        A kernel belongs to the view that has all its columns. Without it, kernels on the same
        columns are a view, which kernels that are called "view: kind" name; others are views by
        themselves.
    """
    names = [str(name) for name in model.kernel_names_]
    kernels = getattr(model, "kernels_", None)
    if views is not None and len(views) == 1:
        ((name, columns),) = views.items()
        return [KernelView(name, tuple(range(len(names))), tuple(columns))]
    if kernels is None:
        return [KernelView(name, (k,), None) for k, name in enumerate(names)]
    if views is not None:
        return _by_columns(names, kernels, views)
    groups: dict[Any, list[int]] = {}
    for k, kernel in enumerate(kernels):
        used = kernel.columns_used()
        own: Any = k if used is None or kernel.is_stored or not kernel.is_view else tuple(used)
        groups.setdefault(own, []).append(k)
    return [
        KernelView(_common([names[k] for k in own]), tuple(own), kernels[own[0]].columns_used())
        for own in groups.values()
    ]


def _by_columns(names: list[str], kernels: Any, views: Views) -> list[KernelView]:
    groups: dict[str, list[int]] = {view: [] for view in views}
    for k, kernel in enumerate(kernels):
        used = kernel.columns_used()
        home = next((v for v, own in views.items() if used and set(used) <= set(own)), None)
        if home is None:
            raise ValueError(
                f"kernel {names[k]!r} reads columns of several views, so that their parts cannot "
                f"be told apart; the views are {', '.join(map(repr, views))}"
            )
        groups[home].append(k)
    return [KernelView(view, tuple(own), tuple(views[view])) for view, own in groups.items()]


def _common(names: list[str]) -> str:
    begins = {name.partition(": ")[0] for name in names}
    return begins.pop() if len(begins) == 1 and len(names) > 1 else ", ".join(names)


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
    shares: bool
    familiar: Array | None

    @classmethod
    def of(cls, model: Any, X: Any, views: Views | None = None) -> "Answers":
        """Ask the model; it may be in a pipeline, a search, or a calibrated classifier."""
        inner, Z = unwrapped(model, X)
        for name in ("contributions", "gate"):
            if not hasattr(inner, name):
                raise TypeError(
                    f"a report needs a model that explains itself, with {name}(X); "
                    f"{type(inner).__name__} has none: give an estimator of lokl"
                )
        seen = views_of(inner, views)
        parts = _by_view(np.asarray(inner.contributions(Z), dtype=float), seen, np.sum)
        present = _present(inner, Z, seen)
        kind = _Classes if is_classifier(inner) else _Numbers
        found = kind(model, X, inner, Z, seen, present).answers(parts)
        trust, divided = _trust(inner, Z, seen)
        familiar = None
        if hasattr(inner, "familiarity"):
            familiar = _by_view(np.asarray(inner.familiarity(Z), dtype=float), seen, np.max)
        return cls(**found, trust=trust, shares=divided, present=present, familiar=familiar)


@dataclass(frozen=True, eq=False)
class _Asked:
    """A model around an estimator, and samples as each of them sees them."""

    model: Any
    X: Any
    inner: Any
    Z: Any
    views: list[KernelView]
    present: Array

    def alone(self) -> Iterator[tuple[int, Any]]:
        """Yield every view with its samples as if they had only this one; none where that fails."""
        values = plain(self.Z)
        if is_sparse(values) or any(view.columns is None for view in self.views):
            return
        for k, view in enumerate(self.views):
            rows = np.flatnonzero(self.present[:, k]) if view.kernels else np.empty(0, int)
            hidden = np.full((len(rows), values.shape[1]), np.nan)
            own = list(view.columns or ())
            hidden[:, own] = values[rows][:, own]
            # Columns that no view reads may still be looked at by a gate.
            free = sorted(
                set(range(values.shape[1])) - {c for v in self.views for c in v.columns or ()}
            )
            hidden[:, free] = values[rows][:, free]
            if len(rows):
                yield k, hidden

    def disagreement(self, apart: Array) -> Array:
        """Return what the estimator tells, else the part of the pairs of views that are apart."""
        if hasattr(self.inner, "disagreement"):
            return np.asarray(self.inner.disagreement(self.Z), dtype=float)
        return apart


class _Classes(_Asked):
    def answers(self, parts: Array) -> dict[str, Any]:
        decision = np.asarray(self.inner.decision_function(self.Z), dtype=float)
        if decision.ndim == 1:
            decision = np.column_stack([-decision, decision]) / 2
            parts = np.stack([-parts, parts], axis=1) / 2
        rows = np.arange(len(decision))
        place = {label: code for code, label in enumerate(self.inner.classes_.tolist())}
        said = np.asarray(self.model.predict(self.X)).tolist()
        first = np.array([place[label] for label in said], dtype=np.intp)
        others = decision.copy()
        others[rows, first] = -np.inf
        second = others.argmax(axis=1)
        own = parts[rows, first] - parts[rows, second]
        margin = decision[rows, first] - decision[rows, second]
        says, sure = self._opinions(parts)
        return {
            "predicted": first,
            "probabilities": probabilities(self.model, self.X),
            "parts": own,
            "start": margin - own.sum(axis=1),
            "says": np.where(self.present, says, -1),
            "sure": np.where(self.present, sure, np.nan),
            "disagreement": self.disagreement(_different(says, self.present)),
        }

    def _opinions(self, parts: Array) -> tuple[Array, Array]:
        """Return the class that each view speaks for, and its probability where it has one."""
        n, m = self.present.shape
        if hasattr(self.inner, "opinions") and all(len(v.kernels) == 1 for v in self.views):
            said = np.asarray(self.inner.opinions(self.Z))
            return said.argmax(axis=2), said.max(axis=2)
        says, sure = parts.argmax(axis=1), np.full((n, m), np.nan)
        for k, hidden in self.alone():
            rows = self.present[:, k]
            decision = np.asarray(self.inner.decision_function(hidden))
            says[rows, k] = decision > 0 if decision.ndim == 1 else decision.argmax(axis=1)
            chances = probabilities(self.inner, hidden)
            if chances is not None:
                sure[rows, k] = chances[np.arange(len(chances)), says[rows, k]]
        return says, sure


class _Numbers(_Asked):
    def answers(self, parts: Array) -> dict[str, Any]:
        n = len(self.present)
        predicted = np.asarray(self.inner.predict(self.Z), dtype=float).reshape(n, -1)[:, 0]
        own = parts if parts.ndim == 2 else parts[:, 0]
        says = np.full(self.present.shape, np.nan)
        for k, hidden in self.alone():
            alone = np.asarray(self.inner.predict(hidden), dtype=float)
            says[self.present[:, k], k] = alone.reshape(len(hidden), -1)[:, 0]
        return {
            "predicted": predicted,
            "probabilities": None,
            "parts": own,
            "start": predicted - own.sum(axis=1),
            "says": says,
            "sure": np.full(self.present.shape, np.nan),
            "disagreement": self.disagreement(np.full(n, np.nan)),
        }


def probabilities(model: Any, X: Any) -> Array | None:
    """Return probabilities of the classes, None where the model gives none."""
    return np.asarray(model.predict_proba(X)) if hasattr(model, "predict_proba") else None


def _different(says: Array, present: Array) -> Array:
    """Share of the pairs of views of each sample that say different classes."""
    both = present[:, :, np.newaxis] & present[:, np.newaxis, :]
    both &= ~np.eye(present.shape[1], dtype=bool)
    apart = both & (says[:, :, np.newaxis] != says[:, np.newaxis, :])
    return np.asarray(apart.sum(axis=(1, 2)) / np.maximum(both.sum(axis=(1, 2)), 1))


def _by_view(values: Array, views: list[KernelView], merge: Any) -> Array:
    """Return numbers of kernels, on the last axis, as numbers of views; 0 without kernels."""
    found = [
        merge(values[..., view.kernels], axis=-1) if view.kernels else np.zeros(values.shape[:-1])
        for view in views
    ]
    return np.stack(found, axis=-1)


def _trust(model: Any, Z: Any, views: list[KernelView]) -> tuple[Array, bool]:
    """Trust by view, and whether it is divided between them."""
    own = hasattr(model, "trust")
    trust = np.asarray(model.trust(Z) if own else model.gate(Z), dtype=float)
    trust = trust if trust.ndim == 2 else trust.mean(axis=1)
    # Shares of kernels add up; a view is trusted as far as the best of its kernels.
    return _by_view(trust, views, np.max if own else np.sum), not own


def _present(model: Any, Z: Any, views: list[KernelView]) -> Array:
    """Whether samples have views: not where all of its columns are NaN."""
    values = plain(Z)
    present = np.ones((values.shape[0], len(views)), dtype=bool)
    if is_sparse(values) or not np.isnan(values).any():
        return present
    if not hasattr(model, "kernels_"):
        # Who knows no kernels of its own gives no part to a view that is not there.
        return np.asarray(_trust(model, Z, views)[0] > 0)
    for k, view in enumerate(views):
        if view.columns:
            present[:, k] = ~np.isnan(values[:, list(view.columns)]).all(axis=1)
    return present
