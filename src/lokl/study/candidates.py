"""Samples that a candidate learns from, and what it makes of them.

What people would try first, tuned with care: scikit-learn's models on the same preparation.

Candidates of this library, each with settings chosen inside the samples it learns from.

Who is compared: methods of this library, single views, and what people would try first.

The chosen candidate, fitted to all samples.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, StratifiedGroupKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from lokl._arrays import Array
from lokl._methods import METHODS, Method
from lokl._threads import single_threaded
from lokl._warnings import capture_warnings
from lokl.search import KernelSearchCV
from lokl.search.auto_search import CENTRED, Kernels, View, some_rows, views_of
from lokl.search.calibration import calibrated
from lokl.search.columns import PrepareColumns
from lokl.search.cross_validation import class_splits
from lokl.solvers.machines import Fold
from lokl.study import candidates as baselines
from lokl.tables import Table, TableError, TablePreparation
from lokl.tables.learning import (
    automatic_for,
    estimator_class,
    groups_of,
    names_of,
    places_in,
    plain_name,
    preparation_for,
    target_of,
)

# With more samples than that, settings are chosen on a part of them.
MANY, ROWS_TO_TUNE = 4_000, 3_000


@dataclass(frozen=True, eq=False)
class Part:
    """Samples to learn from.

    Attributes
    ----------
    frame : data frame
    y : array of shape (n_samples,)
    groups : array of shape (n_samples,), or None
    numbers : bool
        Whether numbers are predicted, not classes.
    preparation : TablePreparation
        Not fitted.
    seed : int
    time_limit : float or None
        Seconds, for candidates that can do with less time.
    """

    frame: Any
    y: Array
    groups: Array | None
    numbers: bool
    preparation: TablePreparation
    seed: int
    time_limit: float | None = None

    @property
    def places(self) -> dict[str, list[int]]:
        """Columns of each view once they are prepared."""
        return places_in(self.preparation)

    def take(self, rows: Array) -> "Part":
        """Some of the samples."""
        return Part(
            self.frame.iloc[rows],
            self.y[rows],
            None if self.groups is None else self.groups[rows],
            self.numbers,
            self.preparation,
            self.seed,
            self.time_limit,
        )

    def prepared(self) -> tuple[TablePreparation, Array]:
        """Return the preparation, fitted, and the prepared samples."""
        preparation = clone(self.preparation)
        return preparation, preparation.fit_transform(self.frame, self.y)

    def to_tune(self) -> Array:
        """Rows that settings are chosen on: all of them unless there are many."""
        if len(self.y) <= MANY:
            return np.arange(len(self.y))
        rng = np.random.RandomState(self.seed)
        return some_rows(self.y, ROWS_TO_TUNE, not self.numbers, rng)

    def folds(self, count: int, rows: Array) -> list[Fold]:
        """Divide some of the samples; folds are numbers of these rows."""
        groups = None if self.groups is None else self.groups[rows]
        return divided(self.y[rows], groups, self.numbers, count, self.seed)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A candidate that has learned.

    Attributes
    ----------
    model : estimator
        Takes data frames.
    inner : float or None
        Held-out score inside the samples that it learned from.
    settings : str
        What was chosen, in words.
    """

    model: Any
    inner: float | None = None
    settings: str = ""


class Recipe(ABC):
    """How a candidate learns: preparation, settings and model, from nothing but its samples."""

    @abstractmethod
    def fit(self, part: Part) -> Fitted:
        """Choose settings and learn."""


def divided(y: Array, groups: Array | None, numbers: bool, count: int, seed: int) -> list[Fold]:
    """Divide samples at random: with all classes in each fold as far as they go, groups together.

    There are fewer folds where there are fewer groups, or where numbers would be judged by one
    sample alone.
    """
    if groups is not None:
        count = min(count, len(np.unique(groups)))
        rare = numbers or np.unique(y, return_counts=True)[1].min() < count
        kind: Any = GroupKFold if rare else StratifiedGroupKFold
        return list(kind(count, shuffle=True, random_state=seed).split(y, y, groups))
    order = np.random.RandomState(seed).permutation(len(y))
    if numbers:
        splits = list(KFold(max(2, min(count, len(y) // 2))).split(order))
    else:
        splits = class_splits(count, y[order])
    return [(np.sort(order[kept]), np.sort(order[left])) for kept, left in splits]


_FOLDS = 3
_TREES = 300
# Rounds of boosting without gain before it stops, where there are samples to judge by.
_PATIENCE, _ENOUGH_TO_STOP = 10, 1_000


@dataclass(frozen=True, eq=False)
class Baseline(Recipe):
    """A model of scikit-learn; missing views are filled with means unless it can do without.

    Attributes
    ----------
    make : callable
        Takes samples (`Part`) and their number of columns, and returns an estimator and the grid
        that is searched, empty for none.
    fills : bool
    """

    make: Callable[[Part, int], tuple[Any, dict[str, Any]]]
    fills: bool = True

    def fit(self, part: Part) -> Fitted:
        preparation, X = part.prepared()
        fill = []
        if self.fills:
            # Prepared columns have a mean of zero.
            zero = SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True)
            fill = [("fill", zero.fit(X))]
            X = zero.transform(X)
        estimator, grid = self.make(part, X.shape[1])
        inner, words = None, ""
        if grid:
            rows = part.to_tune()
            search = GridSearchCV(estimator, grid, cv=part.folds(_FOLDS, rows), refit=False)
            search.fit(X[rows], part.y[rows])
            estimator = clone(estimator).set_params(**search.best_params_)
            inner = float(search.best_score_)
            best = {name.rpartition("__")[2]: v for name, v in search.best_params_.items()}
            words = "; ".join(f"{name} {value:.4g}" for name, value in best.items())
        estimator.fit(X, part.y)
        steps = [("preparation", preparation), *fill, ("model", estimator)]
        return Fitted(Pipeline(steps), inner, words)


def guess(part: Part, width: int) -> tuple[Any, dict[str, Any]]:
    """Return what says the same about every sample."""
    return DummyRegressor() if part.numbers else DummyClassifier(strategy="prior"), {}


def linear(part: Part, width: int) -> tuple[Any, dict[str, Any]]:
    """Return ridge or logistic regression."""
    if part.numbers:
        return Ridge(), {"alpha": np.logspace(-1, 4, 6).tolist()}
    return LogisticRegression(max_iter=1000), {"C": np.logspace(-3, 1, 5).tolist()}


def machine(part: Part, width: int) -> tuple[Any, dict[str, Any]]:
    """Return a support vector machine with an RBF kernel of all columns."""
    grid = {"C": [1.0, 10.0, 100.0], "gamma": [f / width for f in (0.25, 1.0, 4.0)]}
    if not part.numbers:
        return SVC(), grid
    model = TransformedTargetRegressor(SVR(), transformer=StandardScaler())
    return model, {f"regressor__{name}": values for name, values in grid.items()}


def forest(part: Part, width: int) -> tuple[Any, dict[str, Any]]:
    """Return a random forest, which needs no tuning."""
    kind: Any = RandomForestRegressor if part.numbers else RandomForestClassifier
    return kind(_TREES, random_state=part.seed), {}


def boosting(part: Part, width: int) -> tuple[Any, dict[str, Any]]:
    """Return boosted trees, which stop by themselves where there are enough samples."""
    kind: Any = HistGradientBoostingRegressor if part.numbers else HistGradientBoostingClassifier
    enough = len(part.y) >= _ENOUGH_TO_STOP
    return kind(early_stopping=enough, n_iter_no_change=_PATIENCE, random_state=part.seed), {}


# Powers of two of the cost, in units of the spread of numbers.
_COSTS, _FEW_COSTS = (-3, -1, 1, 3, 5, 7), (-4, -1, 2, 5)
# Powers of two of widths; see PrepareColumns for their unit.
_WIDTHS, _FEW_WIDTHS, _WIDTHS_OF_ONE = (CENTRED, 0, 2), (CENTRED, 0), (-4, -2, 0, 2, 4)
# Folds of the search, of methods that learn more than a machine, and of probabilities where the
# search was on a part of the samples.
_TUNING_FOLDS, _FEW_FOLDS, _FOLDS_OF_MANY = 5, 3, 3
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
            cv=part.folds(_TUNING_FOLDS if self._is_plain else _FEW_FOLDS, rows),
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
        return self.method.learns == "nothing"

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


OURS, VIEW, BASELINE = "ours", "view", "baseline"
AUTO, MIX, VOTE = "AutoMKL", "uniform mix", "trusted vote"
# What says the same about every sample.
GUESSES = ("majority class", "mean")
# Words that stand for several candidates.
_ALL_VIEWS, _ALL_BASELINES = "views", "baselines"
_UNIFORM = next(method for method in METHODS if method.learns == "nothing")


@dataclass(frozen=True)
class Candidate:
    """One row of the comparison.

    Attributes
    ----------
    name : str
        As tables show it.
    role : {"ours", "view", "baseline"}
    recipe : Recipe
    complexity : int
        Of ours: machines on a fixed mix, learned weights, learned trust, everything chosen. Of two
        that are about as good the simpler one is taken.
    words : frozenset of str
        Other names by which it can be asked for.
    """

    name: str
    role: str
    recipe: Recipe
    complexity: int = 0
    words: frozenset[str] = frozenset()


def candidates_for(table: Table, methods: Sequence[str] = ()) -> list[Candidate]:
    """Return candidates for a table: the standard ones, or those that are asked for by name."""
    known = list(_standard(table))
    if not methods:
        return known
    chosen: dict[str, Candidate] = {}
    for given in (part.strip() for word in methods for part in word.split(",")):
        for found in _named(given, known, table):
            chosen.setdefault(found.name, found)
    return list(chosen.values())


def _standard(table: Table) -> Iterator[Candidate]:
    numbers, several = table.task == "numbers", len(table.views) > 1
    yield Candidate(AUTO, OURS, Automatic(), 3, frozenset({"auto"}))
    if several:
        yield _ours(next(method for method in METHODS if method.name == VOTE))
    yield _ours(_UNIFORM)
    if several:
        for view in table.views:
            yield Candidate(alone(view), VIEW, OneView(_UNIFORM, view), 0, frozenset({view}))
    for name, recipe, words in (
        (GUESSES[numbers], Baseline(baselines.guess), {"guess", "majority"}),
        (
            "ridge regression" if numbers else "logistic regression",
            Baseline(baselines.linear),
            {"linear", "ridge", "logistic"},
        ),
        ("SVR" if numbers else "SVC", Baseline(baselines.machine), {"svm", "svc", "svr"}),
        ("random forest", Baseline(baselines.forest, fills=False), {"forest"}),
        ("gradient boosting", Baseline(baselines.boosting, fills=False), {"boosting"}),
    ):
        yield Candidate(name, BASELINE, recipe, 0, frozenset(words))


def alone(view: str) -> str:
    """Name of the candidate that sees one view only."""
    return f"{view} alone"


def _ours(method: Method) -> Candidate:
    level = 0 if method is _UNIFORM else 2 if method.can("localized") else 1
    name = MIX if method is _UNIFORM else method.name
    return Candidate(name, OURS, Searched(method), level, frozenset(names_of(method)))


def _named(given: str, known: Sequence[Candidate], table: Table) -> list[Candidate]:
    wanted = plain_name(given)
    roles = {_ALL_VIEWS: VIEW, _ALL_BASELINES: BASELINE}
    if wanted in roles:
        return [one for one in known if one.role == roles[wanted]]
    for one in known:
        if wanted in {plain_name(one.name), *map(plain_name, one.words)}:
            return [one]
    for method in METHODS:
        if wanted in names_of(method):
            # Raises where the method predicts classes only.
            estimator_class(method.stem, table.task == "numbers")
            return [_ours(method)]
    names = [*(one.name for one in known), _ALL_VIEWS, _ALL_BASELINES]
    others = [method.name for method in METHODS if method.name not in names]
    raise TableError(f"unknown candidate {given!r}; known are {', '.join([*names, *others])}")


def everything(table: Table, seed: int, time_limit: float | None = None) -> Part:
    """Return all samples of a table as a candidate learns from them."""
    return Part(
        table.frame,
        target_of(table),
        groups_of(table),
        table.task == "numbers",
        preparation_for(table),
        seed,
        time_limit,
    )


def fit_candidate(table: Table, name: str, seed: int, time_limit: float | None = None) -> Any:
    """Fit a candidate of a comparison to a table, the same on every machine.

    What it has to warn of is among the findings of the comparison already.
    """
    candidate = candidates_for(table, [name])[0]
    with single_threaded():
        fitted, _ = capture_warnings(candidate.recipe.fit, everything(table, seed, time_limit))
    return fitted.model
