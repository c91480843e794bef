"""Candidates of a comparison: methods of lokl, single views, and baselines of scikit-learn.

Every candidate chooses its settings inside the samples that it is trained on.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedGroupKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from lokl._arrays import Array
from lokl._methods import METHODS, Method
from lokl._threads import single_threaded
from lokl._warnings import capture_warnings
from lokl.base.targets import target_spread
from lokl.search import KernelSearchCV, cross_validation
from lokl.search.auto_search import CENTRED, Kernels, ViewKernels, adjacent_views, draw_rows
from lokl.search.calibration import calibrated
from lokl.search.columns import ColumnScaler
from lokl.solvers.machines import Fold
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

# Roles of candidates.
OURS, VIEW, BASELINE = "ours", "view", "baseline"
AUTO, MIX, VOTE = "AutoMKL", "uniform mix", "trusted vote"
# Baselines with one prediction for all samples: of classification and of regression.
CONSTANT_BASELINES = ("majority class", "mean")
# Names that stand for several candidates.
_ALL_VIEWS, _ALL_BASELINES = "views", "baselines"
_UNIFORM = next(method for method in METHODS if method.learns == "nothing")

# With more samples than the limit, settings are chosen on a random subset.
TUNING_LIMIT, TUNING_ROWS = 4_000, 3_000
# Powers of two of C, in units of the standard deviation of a regression target.
_COSTS, _FEW_COSTS = (-3, -1, 1, 3, 5, 7), (-4, -1, 2, 5)
# Powers of two of widths; see ColumnScaler for their unit.
_WIDTHS, _FEW_WIDTHS, _SINGLE_VIEW_WIDTHS = (CENTRED, 0, 2), (CENTRED, 0), (-4, -2, 0, 2, 4)
# Folds of the search, also for methods that learn more than an SVM and for baselines, and folds of
# the probabilities if the search had a subset of the samples.
_TUNING_FOLDS, _FEW_FOLDS, _CALIBRATION_FOLDS = 5, 3, 3
# Settings of regressions, in units of the standard deviation of the target.
_EPSILON, _TOLERANCE = 0.1, 1e-3
# Kernels that are listed by name.
_FEW_KERNELS = 6
_TREES = 300
# Boosting stops after this many rounds without gain, given enough samples to measure it.
_PATIENCE, _ENOUGH_TO_STOP = 10, 1_000


@dataclass(frozen=True, eq=False)
class TableSamples:
    """Samples of a table, to train on or to predict.

    Attributes
    ----------
    frame : data frame
    y : array of shape (n_samples,)
    groups : array of shape (n_samples,), or None
    is_regression : bool
    preparation : TablePreparation
        Not fitted.
    seed : int
    time_limit : float or None
        Seconds, for candidates that can stop early.
    """

    frame: Any
    y: Array
    groups: Array | None
    is_regression: bool
    preparation: TablePreparation
    seed: int
    time_limit: float | None = None

    @property
    def columns(self) -> dict[str, list[int]]:
        """Prepared columns of each view."""
        return places_in(self.preparation)

    def take(self, rows: Array) -> "TableSamples":
        """Return a subset of the samples."""
        groups = None if self.groups is None else self.groups[rows]
        return replace(self, frame=self.frame.iloc[rows], y=self.y[rows], groups=groups)

    def prepared(self) -> tuple[TablePreparation, Array]:
        """Return the fitted preparation, and the prepared samples."""
        preparation = clone(self.preparation)
        return preparation, preparation.fit_transform(self.frame, self.y)

    def tuning_rows(self) -> Array:
        """Return the rows on which settings are chosen: all of them unless there are many."""
        if len(self.y) <= TUNING_LIMIT:
            return np.arange(len(self.y))
        rng = np.random.RandomState(self.seed)
        return draw_rows(self.y, TUNING_ROWS, not self.is_regression, rng)

    def folds(self, n_folds: int, rows: Array) -> list[Fold]:
        """Return folds of a subset of the samples, as indices into `rows`."""
        groups = None if self.groups is None else self.groups[rows]
        return make_folds(self.y[rows], groups, self.is_regression, n_folds, self.seed)


def all_samples(table: Table, seed: int, time_limit: float | None = None) -> TableSamples:
    """Return all samples of a table."""
    return TableSamples(
        table.frame,
        target_of(table),
        groups_of(table),
        table.is_regression,
        preparation_for(table),
        seed,
        time_limit,
    )


def make_folds(
    y: Array, groups: Array | None, is_regression: bool, n_folds: int, seed: int
) -> list[Fold]:
    """Divide samples at random into stratified folds that keep groups together.

    There are fewer folds if there are fewer groups, or if a fold of a regression would have one
    sample, whose R squared is undefined.

    Returns
    -------
    folds : list of (train, test)
        Sorted row indices.
    """
    if groups is None:
        rng = np.random.RandomState(seed)
        return cross_validation.make_folds(n_folds, y, classification=not is_regression, rng=rng)
    # The folds of the search do not shuffle groups, and repeats would be equal.
    n_folds = min(n_folds, len(np.unique(groups)))
    rare = is_regression or np.unique(y, return_counts=True)[1].min() < n_folds
    splitter: Any = GroupKFold if rare else StratifiedGroupKFold
    return list(splitter(n_folds, shuffle=True, random_state=seed).split(y, y, groups))


@dataclass(frozen=True, eq=False)
class FittedCandidate:
    """A trained candidate.

    Attributes
    ----------
    model : estimator
        Takes data frames.
    inner_score : float or None
        Cross-validated score inside the training samples.
    settings : str
        Description of the chosen settings.
    """

    model: Any
    inner_score: float | None = None
    settings: str = ""


@dataclass(frozen=True, kw_only=True)
class StudyCandidate(ABC):
    """One candidate of a comparison.

    Attributes
    ----------
    name : str
        As tables show it.
    role : {"ours", "view", "baseline"}
    complexity : int
        0 for a fixed mix of kernels, 1 for learned weights, 2 for weights that differ between
        samples, 3 if everything is chosen. The simplest of equally good candidates is chosen.
    aliases : frozenset of str
        Other names of the candidate on the command line.
    """

    name: str
    role: str
    complexity: int = 0
    aliases: frozenset[str] = frozenset()

    @abstractmethod
    def fit(self, samples: TableSamples) -> FittedCandidate:
        """Choose settings and train on samples."""


class AutoCandidate(StudyCandidate):
    """AutoMKL, which chooses everything."""

    def fit(self, samples: TableSamples) -> FittedCandidate:
        auto = automatic_for(
            samples.columns, samples.is_regression, samples.seed, samples.time_limit
        )
        model = Pipeline([("preparation", clone(samples.preparation)), ("model", auto)])
        model.fit(samples.frame, samples.y, model__groups=samples.groups)
        cost = auto.best_estimator_[-1].get_params(deep=False).get("C")
        settings = f"{auto.best_method_}; {_describe(cost, auto.kernel_names_ or ())}"
        return FittedCandidate(model, float(auto.best_score_), settings)


@dataclass(frozen=True, kw_only=True)
class TunedMethod(StudyCandidate):
    """A method with widths of kernels and C chosen by cross-validation.

    Attributes
    ----------
    method : Method
    view : str or None
        The only view that is used; None uses all of them.
    """

    method: Method
    view: str | None = None

    def fit(self, samples: TableSamples) -> FittedCandidate:
        preparation, X = samples.prepared()
        columns = samples.columns
        if self.view is not None:
            columns = {self.view: columns[self.view]}
        unit = target_spread(samples.y) if samples.is_regression else 1.0
        # As arrays: every clone of the pipeline would copy a list number by number.
        scale = ColumnScaler([np.array(indices) for indices in columns.values()])
        pipeline = Pipeline([("scale", scale), ("model", self._estimator(samples, unit))])
        kernels, costs = self._grid(columns)
        rows = samples.tuning_rows()
        all_rows = len(rows) == len(X)
        search_class: Any = KernelSearchCV
        search = search_class(
            pipeline,
            {"model__kernels": kernels, "model__C": [unit * 2.0**power for power in costs]},
            cv=samples.folds(_TUNING_FOLDS if self._learns_nothing else _FEW_FOLDS, rows),
            refit=all_rows,
            error_score="raise",
            n_jobs=1,
        ).fit(X[rows], samples.y[rows])
        best = search.best_params_
        last = [("model", search)] if all_rows else _fit_to_all(pipeline, best, X, samples)
        return FittedCandidate(
            Pipeline([("preparation", preparation), *last]),
            float(search.best_score_),
            _describe(best["model__C"], best["model__kernels"]),
        )

    def _estimator(self, samples: TableSamples, unit: float) -> Any:
        settings: dict[str, Any] = {"random_state": samples.seed}
        if samples.is_regression:
            settings |= {"epsilon": _EPSILON * unit, "tol": _TOLERANCE * unit}
        return estimator_class(self.method.stem, samples.is_regression)(**settings)

    @property
    def _learns_nothing(self) -> bool:
        return self.method.learns == "nothing"

    def _grid(self, columns: Mapping[str, Sequence[int]]) -> tuple[list[Kernels], Sequence[int]]:
        """Return kernels and costs to try: fewer for methods that learn more than an SVM."""
        widths = [len(indices) for indices in columns.values()]
        views = adjacent_views(list(columns), widths, [True] * len(widths))
        many = self._learns_nothing
        if self.view is not None:
            (view,) = views
            return [*(view.rbf(power) for power in _SINGLE_VIEW_WIDTHS), view.linear()], _COSTS
        if len(views) == 1:
            return _single_table_kernels(views[0], many), _COSTS if many else _FEW_COSTS
        if not many:
            return [_merged(view.rbf(power) for view in views) for power in _FEW_WIDTHS], _FEW_COSTS
        mixes = [_merged(view.rbf(power) for view in views) for power in _WIDTHS]
        linear = _merged(view.linear() for view in views)
        both = _merged({**view.linear(), **view.rbf(0)} for view in views)
        return [*mixes, linear, both], _COSTS


def _single_table_kernels(view: ViewKernels, many: bool) -> list[Kernels]:
    if not many:
        return [view.dictionary(CENTRED)]
    return [
        {**view.linear(), **view.quadratic(), **view.rbf(power)} for power in _SINGLE_VIEW_WIDTHS
    ]


def _merged(parts: Iterator[Kernels]) -> Kernels:
    return {name: kernel for kernels in parts for name, kernel in kernels.items()}


def _fit_to_all(
    pipeline: Pipeline, best: dict[str, Any], X: Array, samples: TableSamples
) -> list[Any]:
    """Fit the best settings to all samples, with probabilities for classes."""
    tuned = clone(pipeline).set_params(**clone(best, safe=False))
    scale, model = tuned[0], tuned[-1]
    Z = scale.fit_transform(X)
    model.fit(Z, samples.y)
    if not samples.is_regression and not hasattr(model, "predict_proba"):
        folds = samples.folds(_CALIBRATION_FOLDS, np.arange(len(samples.y)))
        model = calibrated(model, Z, samples.y, cv=folds)
    return [("scale", scale), ("model", model)]


def _describe(cost: float | None, kernels: Any) -> str:
    names = list(kernels)
    shown = ", ".join(names) if len(names) <= _FEW_KERNELS else f"{len(names)} kernels"
    return shown if cost is None else f"C {cost:.4g}; {shown}"


@dataclass(frozen=True, kw_only=True)
class SingleView(StudyCandidate):
    """An SVM on one view; samples without the view get the majority class, or the mean.

    Attributes
    ----------
    view : str
    """

    view: str

    def fit(self, samples: TableSamples) -> FittedCandidate:
        columns = list(samples.preparation.views[self.view])
        present = samples.frame[columns].notna().any(axis=1).to_numpy()
        method = TunedMethod(name=self.name, role=self.role, method=_UNIFORM, view=self.view)
        fitted = method.fit(samples.take(np.flatnonzero(present)))
        fallback = _prior(samples).fit(samples.frame, samples.y)
        # Expected score of the fallback; R squared of the mean is 0.
        prior_score = 0.0 if samples.is_regression else float(fallback.class_prior_.max())
        share = float(present.mean())
        inner_score = share * (fitted.inner_score or 0.0) + (1.0 - share) * prior_score
        model = WithViewFallback(fitted.model, columns, fallback)
        return FittedCandidate(model, inner_score, fitted.settings)


@dataclass(frozen=True, eq=False)
class WithViewFallback:
    """A model for samples that have its columns, and a constant model for other samples."""

    model: Any
    columns: list[str]
    fallback: Any

    @property
    def classes_(self) -> Array:
        return np.asarray(self.fallback.classes_)

    def predict(self, frame: Any) -> Array:
        """Return predictions of the model, or of the fallback."""
        present = self._present(frame)
        predicted = np.array(self.fallback.predict(frame), dtype=object)
        if present.any():
            predicted[present] = self.model.predict(frame[present])
        return predicted

    def predict_proba(self, frame: Any) -> Array:
        """Return probabilities of the model, or the frequencies of the classes."""
        present = self._present(frame)
        probabilities = np.asarray(self.fallback.predict_proba(frame))
        if present.any():
            # The model may have seen fewer classes.
            known = np.searchsorted(self.classes_, self.model.classes_)
            full = np.zeros((int(present.sum()), len(self.classes_)))
            full[:, known] = self.model.predict_proba(frame[present])
            probabilities[present] = full
        return probabilities

    def _present(self, frame: Any) -> Array:
        return np.asarray(frame[self.columns].notna().any(axis=1))


@dataclass(frozen=True, kw_only=True, eq=False)
class Baseline(StudyCandidate):
    """A model of scikit-learn.

    Attributes
    ----------
    make : callable
        Takes samples and their number of columns, and returns an estimator and the grid to search,
        empty for none.
    impute : bool
        Whether columns are scaled and missing values replaced by means.
    """

    make: Callable[[TableSamples, int], tuple[Any, dict[str, Any]]]
    impute: bool = True

    def fit(self, samples: TableSamples) -> FittedCandidate:
        preparation, X = samples.prepared()
        steps: list[Any] = [("preparation", preparation)]
        if self.impute:
            scale = ColumnScaler(unit=False)
            X = scale.fit_transform(X)
            steps.append(("scale", scale))
        estimator, grid = self.make(samples, X.shape[1])
        inner_score, settings = None, ""
        if grid:
            rows = samples.tuning_rows()
            folds = samples.folds(_FEW_FOLDS, rows)
            search = GridSearchCV(estimator, grid, cv=folds, refit=False)
            search.fit(X[rows], samples.y[rows])
            estimator = clone(estimator).set_params(**search.best_params_)
            inner_score = float(search.best_score_)
            settings = "; ".join(
                f"{name.rpartition('__')[2]} {value:.4g}"
                for name, value in search.best_params_.items()
            )
        estimator.fit(X, samples.y)
        return FittedCandidate(Pipeline([*steps, ("model", estimator)]), inner_score, settings)


def _prior(samples: TableSamples) -> Any:
    return DummyRegressor() if samples.is_regression else DummyClassifier(strategy="prior")


def _constant(samples: TableSamples, n_columns: int) -> tuple[Any, dict[str, Any]]:
    return _prior(samples), {}


def _linear(samples: TableSamples, n_columns: int) -> tuple[Any, dict[str, Any]]:
    if samples.is_regression:
        return Ridge(), {"alpha": np.logspace(-1, 4, 6).tolist()}
    return LogisticRegression(max_iter=1000), {"C": np.logspace(-3, 1, 5).tolist()}


def _svm(samples: TableSamples, n_columns: int) -> tuple[Any, dict[str, Any]]:
    """Return an SVM with an RBF kernel of all columns."""
    grid = {"C": [1.0, 10.0, 100.0], "gamma": [f / n_columns for f in (0.25, 1.0, 4.0)]}
    if not samples.is_regression:
        return SVC(), grid
    model = TransformedTargetRegressor(SVR(), transformer=StandardScaler())
    return model, {f"regressor__{name}": values for name, values in grid.items()}


def _forest(samples: TableSamples, n_columns: int) -> tuple[Any, dict[str, Any]]:
    forest: Any = RandomForestRegressor if samples.is_regression else RandomForestClassifier
    return forest(_TREES, random_state=samples.seed), {}


def _boosting(samples: TableSamples, n_columns: int) -> tuple[Any, dict[str, Any]]:
    regression = samples.is_regression
    trees: Any = HistGradientBoostingRegressor if regression else HistGradientBoostingClassifier
    stops = len(samples.y) >= _ENOUGH_TO_STOP
    return trees(early_stopping=stops, n_iter_no_change=_PATIENCE, random_state=samples.seed), {}


def candidates_for(table: Table, names: Sequence[str] = ()) -> list[StudyCandidate]:
    """Return the candidates with these names, or the default ones.

    Parameters
    ----------
    table : Table
    names : sequence of str
        Names or aliases; each may be a list with commas.
    """
    default = list(_default_candidates(table))
    if not names:
        return default
    chosen: dict[str, StudyCandidate] = {}
    for name in (part.strip() for value in names for part in value.split(",")):
        for candidate in _named(name, default, table):
            chosen.setdefault(candidate.name, candidate)
    return list(chosen.values())


def _default_candidates(table: Table) -> Iterator[StudyCandidate]:
    regression, several = table.is_regression, len(table.views) > 1
    yield AutoCandidate(name=AUTO, role=OURS, complexity=3, aliases=frozenset({"auto"}))
    if several:
        yield _tuned(next(method for method in METHODS if method.name == VOTE))
    yield _tuned(_UNIFORM)
    if several:
        for view in table.views:
            yield SingleView(
                name=single_view_name(view), role=VIEW, view=view, aliases=frozenset({view})
            )
    for name, make, impute, aliases in (
        (CONSTANT_BASELINES[regression], _constant, True, {"guess", "majority"}),
        (
            "ridge regression" if regression else "logistic regression",
            _linear,
            True,
            {"linear", "ridge", "logistic"},
        ),
        ("SVR" if regression else "SVC", _svm, True, {"svm", "svc", "svr"}),
        ("random forest", _forest, False, {"forest"}),
        ("gradient boosting", _boosting, False, {"boosting"}),
    ):
        yield Baseline(
            name=name, role=BASELINE, aliases=frozenset(aliases), make=make, impute=impute
        )


def single_view_name(view: str) -> str:
    """Return the name of the candidate that uses one view only."""
    return f"{view} alone"


def _tuned(method: Method) -> TunedMethod:
    uniform = method is _UNIFORM
    return TunedMethod(
        name=MIX if uniform else method.name,
        role=OURS,
        complexity=0 if uniform else 2 if method.can("localized") else 1,
        aliases=frozenset(names_of(method)),
        method=method,
    )


def _named(name: str, default: Sequence[StudyCandidate], table: Table) -> list[StudyCandidate]:
    wanted = plain_name(name)
    roles = {_ALL_VIEWS: VIEW, _ALL_BASELINES: BASELINE}
    if wanted in roles:
        return [candidate for candidate in default if candidate.role == roles[wanted]]
    for candidate in default:
        if wanted in {plain_name(candidate.name), *map(plain_name, candidate.aliases)}:
            return [candidate]
    for method in METHODS:
        if wanted in names_of(method):
            # Raises if the method is for classification only.
            estimator_class(method.stem, table.is_regression)
            return [_tuned(method)]
    names = [*(candidate.name for candidate in default), _ALL_VIEWS, _ALL_BASELINES]
    others = [method.name for method in METHODS if method.name not in names]
    raise TableError(f"unknown candidate {name!r}; choose among {', '.join([*names, *others])}")


def fit_candidate(table: Table, name: str, seed: int, time_limit: float | None = None) -> Any:
    """Fit a candidate to all samples of a table, with the same result on every machine.

    Warnings of the fit are dropped: they are among the findings of the comparison.
    """
    (candidate,) = candidates_for(table, [name])
    with single_threaded():
        fitted, _ = capture_warnings(candidate.fit, all_samples(table, seed, time_limit))
    return fitted.model
