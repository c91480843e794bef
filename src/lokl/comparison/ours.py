"""Candidates of this library, each with settings chosen inside the samples it learns from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from lokl._arrays import Array
from lokl._methods import Method
from lokl.auto import PrepareColumns
from lokl.auto.dictionary import CENTRED, Kernels, View, views_of
from lokl.comparison.parts import Fitted, Part, Recipe
from lokl.selection import KernelSearchCV, calibrated
from lokl.tables.learning import automatic_for, estimator_class

# Powers of two of the cost, in units of the spread of numbers.
_COSTS, _FEW_COSTS = (-3, -1, 1, 3, 5, 7), (-4, -1, 2, 5)
# Powers of two of widths; see PrepareColumns for their unit.
_WIDTHS, _FEW_WIDTHS, _WIDTHS_OF_ONE = (CENTRED, 0, 2), (CENTRED, 0), (-4, -2, 0, 2, 4)
# Folds of the search, of methods that learn more than a machine, and of probabilities where the
# search was on a part of the samples.
_FOLDS, _FEW_FOLDS, _FOLDS_OF_MANY = 5, 3, 3
# Of numbers, in units of their spread.
_EPSILON, _TOLERANCE = 0.1, 1e-3
# Kernels that are named one by one.
_FEW_KERNELS = 6


class Automatic(Recipe):
    """Everything chosen by AutoMKL."""

    def fit(self, part: Part) -> Fitted:
        auto = automatic_for(part.places, part.numbers, part.seed, part.time_limit)
        model = Pipeline([("preparation", clone(part.preparation)), ("model", auto)])
        model.fit(part.frame, part.y, model__groups=part.groups)
        last = auto.best_estimator_[-1]
        words = _in_words(last.get_params(deep=False).get("C"), auto.kernel_names_ or ())
        return Fitted(model, float(auto.best_score_), f"{auto.best_method_}; {words}")


@dataclass(frozen=True)
class Searched(Recipe):
    """A method with widths of kernels and a cost chosen by cross-validation.

    Attributes
    ----------
    method : Method
    view : str or None
        The only view that is seen; None is all of them.
    """

    method: Method
    view: str | None = None

    def fit(self, part: Part) -> Fitted:
        preparation, X = part.prepared()
        places = part.places if self.view is None else {self.view: part.places[self.view]}
        unit = _spread(part.y) if part.numbers else 1.0
        # As arrays: numbers of a list are copied one by one with every copy of the pipeline.
        scale = PrepareColumns([np.array(own) for own in places.values()])
        pipeline = Pipeline([("scale", scale), ("model", self._estimator(part, unit))])
        kernels, costs = self._grid(places)
        grid = {"model__kernels": kernels, "model__C": [unit * 2.0**power for power in costs]}
        rows = part.to_tune()
        all_rows = len(rows) == len(X)
        kind: Any = KernelSearchCV
        search = kind(
            pipeline,
            grid,
            cv=part.folds(_FOLDS if self._is_plain else _FEW_FOLDS, rows),
            refit=all_rows,
            error_score="raise",
            n_jobs=1,
        ).fit(X[rows], part.y[rows])
        best = search.best_params_
        last = [("model", search)] if all_rows else _on_all(pipeline, best, X, part)
        return Fitted(
            Pipeline([("preparation", preparation), *last]),
            float(search.best_score_),
            _in_words(best["model__C"], best["model__kernels"]),
        )

    def _estimator(self, part: Part, unit: float) -> Any:
        kind = estimator_class(self.method.stem, part.numbers)
        settings: dict[str, Any] = {"random_state": part.seed}
        if part.numbers:
            settings |= {"epsilon": _EPSILON * unit, "tol": _TOLERANCE * unit}
        return kind(**settings)

    @property
    def _is_plain(self) -> bool:
        """Whether nothing is learned but machines."""
        return not self.method.abilities - {"regression"}

    def _grid(self, places: Mapping[str, Sequence[int]]) -> tuple[list[Kernels], Sequence[int]]:
        """Kernels and costs to try: few where a method learns more than a machine."""
        widths = [len(own) for own in places.values()]
        views = views_of(list(places), widths, [True] * len(widths))
        plain = self._is_plain
        if self.view is not None:
            (view,) = views
            return [*(view.rbf(power) for power in _WIDTHS_OF_ONE), view.linear()], _COSTS
        if len(views) == 1:
            return _mixes_of(views[0], plain), _COSTS if plain else _FEW_COSTS
        if not plain:
            return _of_each(views, _FEW_WIDTHS), _FEW_COSTS
        linear = _merged([view.linear() for view in views])
        both = _merged([{**view.linear(), **view.rbf(0)} for view in views])
        return [*_of_each(views, _WIDTHS), linear, both], _COSTS


def _mixes_of(view: View, plain: bool) -> list[Kernels]:
    """Kernels of a table by itself."""
    if not plain:
        return [view.ladder(CENTRED)]
    return [{**view.linear(), **view.quadratic(), **view.rbf(power)} for power in _WIDTHS_OF_ONE]


def _of_each(views: Sequence[View], widths: Sequence[int]) -> list[Kernels]:
    return [_merged([view.rbf(power) for view in views]) for power in widths]


def _merged(lists: Sequence[Kernels]) -> Kernels:
    return {name: kernel for kernels in lists for name, kernel in kernels.items()}


def _on_all(pipeline: Pipeline, best: dict[str, Any], X: Array, part: Part) -> list[Any]:
    """Fit the best settings to all samples, with probabilities where they are classes."""
    found = clone(pipeline).set_params(**clone(best, safe=False))
    scale, model = found[0], found[-1]
    Z = scale.fit_transform(X)
    model.fit(Z, part.y)
    if not part.numbers and not hasattr(model, "predict_proba"):
        folds = part.folds(_FOLDS_OF_MANY, np.arange(len(part.y)))
        model = calibrated(model, Z, part.y, cv=folds)
    return [("scale", scale), ("model", model)]


def _spread(y: Array) -> float:
    found = float(np.std(y))
    return found if found > 1e-12 * np.abs(y).max() else 1.0


def _in_words(cost: float | None, kernels: Any) -> str:
    names = list(kernels)
    shown = ", ".join(names) if len(names) <= _FEW_KERNELS else f"{len(names)} kernels"
    return shown if cost is None else f"C {cost:.4g}; {shown}"


@dataclass(frozen=True)
class OneView(Recipe):
    """A machine of one view; samples that lack the view get the most frequent class, or the mean.

    Attributes
    ----------
    method : Method
    view : str
    """

    method: Method
    view: str

    def fit(self, part: Part) -> Fitted:
        columns = list(part.preparation.views[self.view])
        has = part.frame[columns].notna().any(axis=1).to_numpy()
        found = Searched(self.method, self.view).fit(part.take(np.flatnonzero(has)))
        usual = Usual.of(part.y, part.numbers)
        share = float(has.mean())
        inner = share * (found.inner or 0.0) + (1.0 - share) * usual.score
        return Fitted(SeesSome(found.model, columns, usual), inner, found.settings)


@dataclass(frozen=True, eq=False)
class Usual:
    """What is said about samples of which nothing is known."""

    answer: Any  # the most frequent class, or the mean
    shares: dict[Any, float]  # of the classes
    score: float  # expected accuracy of saying it always; 0 for numbers, as R squared

    @classmethod
    def of(cls, y: Array, numbers: bool) -> "Usual":
        """Look at what training samples have."""
        if numbers:
            return cls(float(y.mean()), {}, 0.0)
        classes, counts = np.unique(y, return_counts=True)
        shares = dict(zip(classes.tolist(), (counts / len(y)).tolist(), strict=True))
        answer = max(shares, key=lambda label: shares[label])
        return cls(answer, shares, shares[answer])


@dataclass(frozen=True, eq=False)
class SeesSome:
    """A model that is asked only about samples that have its columns."""

    model: Any
    columns: list[str]
    usual: Usual

    @property
    def classes_(self) -> Array:
        return np.array(list(self.usual.shares))

    def predict(self, frame: Any) -> Array:
        """What the model predicts, or what is usual."""
        has = self._has(frame)
        said = np.full(len(frame), self.usual.answer, dtype=object)
        if has.any():
            said[has] = self.model.predict(frame[has])
        return said

    def predict_proba(self, frame: Any) -> Array:
        """Probabilities of the model, or the shares of the classes."""
        has, classes = self._has(frame), list(self.usual.shares)
        chances = np.tile(list(self.usual.shares.values()), (len(frame), 1))
        if has.any():
            places = [classes.index(label) for label in np.asarray(self.model.classes_).tolist()]
            own = np.zeros((int(has.sum()), len(classes)))
            own[:, places] = self.model.predict_proba(frame[has])
            chances[has] = own
        return chances

    def _has(self, frame: Any) -> Array:
        return np.asarray(frame[self.columns].notna().any(axis=1))
