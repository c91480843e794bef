"""Candidates of a comparison: methods of lokl, single views, and baselines.

Every candidate chooses its settings inside the samples that it is trained on.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
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
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from lokl._arrays import Array
from lokl._methods import METHODS, Method
from lokl._survival import event_times
from lokl._text import plain_name, suggestion
from lokl._threads import single_threaded
from lokl._warnings import capture_warnings
from lokl.base.model import unwrap
from lokl.base.survival import survival_at
from lokl.search import calibrated
from lokl.search.columns import ColumnScaler
from lokl.search.cross_validation import draw_rows, make_folds
from lokl.solvers.machines import Fold
from lokl.study.survival import CoxRegression, KaplanMeier
from lokl.tables import Table, TableError, TablePreparation
from lokl.tables.learning import (
    automatic_for,
    estimator_class,
    groups_of,
    learn_gene_sets,
    names_of,
    places_in,
    preparation_for,
    strata_of,
    target_of,
)
from lokl.tables.preparation import REGRESSION, SURVIVAL
from lokl.tables.table import CLASSIFICATION

# Roles of candidates.
OURS, VIEW, BASELINE = "ours", "view", "baseline"
AUTO, MIX, VOTE, GENE_SETS = "AutoMKL", "uniform mix", "trusted vote", "gene sets"
# Baselines with one prediction for all samples: of classification, regression and survival.
CONSTANT_BASELINES = ("majority class", "mean", "Kaplan-Meier")
# Names that stand for several candidates.
_ALL_VIEWS, _ALL_BASELINES = "views", "baselines"
_UNIFORM = next(method for method in METHODS if method.learns == "nothing")
_VOTE = next(method for method in METHODS if method.name == VOTE)

# With more samples than the limit, settings are chosen on a random subset.
TUNING_LIMIT, TUNING_ROWS = 4_000, 3_000
# Folds of the search, also for methods that learn more than an SVM and for baselines.
_TUNING_FOLDS, _FEW_FOLDS = 5, 3
# Kernels that are listed by name.
_FEW_KERNELS = 6
_TREES = 300
# Least samples in a leaf of a survival forest, which stores a curve for each leaf.
_LEAF = 10
# Boosting stops after this many rounds without gain, given enough samples to measure it.
_PATIENCE, _ENOUGH_TO_STOP = 10, 1_000


@dataclass(frozen=True, eq=False)
class TableSamples:
    """Samples of a table, to train on or to predict.

    Attributes
    ----------
    frame : data frame
    y : array of shape (n_samples,)
        Events and times for survival, see :func:`lokl.survival_target`.
    groups : array of shape (n_samples,), or None
    task : {"classification", "regression", "survival"}
    preparation : TablePreparation
        Not fitted.
    seed : int
    time_limit : float or None
        Seconds, for candidates that can stop early.
    classes : array or None
        Classes of all samples, also of those that are not among these; None for other tasks.
    times : array or None
        Times at which survival curves are recorded.
    gene_sets : mapping of str to sequence of str
        Columns of each gene set.
    """

    frame: Any
    y: Array
    groups: Array | None
    task: str
    preparation: TablePreparation
    seed: int
    time_limit: float | None = None
    classes: Array | None = None
    gene_sets: Mapping[str, Sequence[str]] = field(default_factory=dict)
    times: Array | None = None

    @property
    def columns(self) -> dict[str, list[int]]:
        """Prepared columns of each view."""
        return places_in(self.preparation)

    @property
    def strata(self) -> Array:
        """Classes, events or values, by which samples are divided."""
        return np.asarray(strata_of(self.y, self.task))

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
        return draw_rows(self.strata, TUNING_ROWS, self.task != REGRESSION, rng)

    def folds(self, n_folds: int, seed: int | None = None) -> list[Fold]:
        """Divide samples at random into stratified folds that keep groups together.

        There are fewer folds if there are fewer groups, or if a fold of a regression would have one
        sample, whose R squared is undefined.

        Parameters
        ----------
        n_folds : int
        seed : int, optional
            The seed of the samples if not given.

        Returns
        -------
        folds : list of (train, test)
            Sorted rows.
        """
        return make_folds(
            n_folds,
            self.strata,
            classification=self.task != REGRESSION,
            groups=self.groups,
            rng=np.random.RandomState(self.seed if seed is None else seed),
        )


def all_samples(table: Table, seed: int, time_limit: float | None = None) -> TableSamples:
    """Return all samples of a table, with the categories of all of them.

    Parameters
    ----------
    table : Table
        With a target.
    seed : int
    time_limit : float, optional
        Seconds, for candidates that can stop early.
    """
    y = target_of(table)
    return TableSamples(
        table.frame,
        y,
        groups_of(table),
        table.task or CLASSIFICATION,
        preparation_for(table),
        seed,
        time_limit,
        np.unique(y) if table.task == CLASSIFICATION else None,
        table.gene_sets,
        event_times(y) if table.task == SURVIVAL else None,
    )


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


@dataclass(frozen=True, kw_only=True, eq=False)
class StudyCandidate:
    """One candidate of a comparison.

    Attributes
    ----------
    name : str
        As tables show it.
    role : {"ours", "view", "baseline"}
    fit : callable
        Takes `TableSamples`, chooses settings, and returns a `FittedCandidate`.
    complexity : int
        0 for a fixed mix of kernels, 1 for learned weights, 2 for weights that differ between
        samples, 3 for trust in each view.
    aliases : frozenset of str
        Other names of the candidate on the command line.
    """

    name: str
    role: str
    fit: Callable[[TableSamples], FittedCandidate]
    complexity: int = 0
    aliases: Set[str] = frozenset()


def _fit_auto(
    samples: TableSamples, method: Method | None = None, view: str | None = None
) -> FittedCandidate:
    """Fit AutoMKL, which chooses everything, or a method with the best kernels and C.

    Parameters
    ----------
    samples : TableSamples
    method : Method, optional
        The only method to try.
    view : str, optional
        The only view that is used; all of them if not given.
    """
    columns = samples.columns if view is None else {view: samples.columns[view]}
    auto = automatic_for(
        columns if len(samples.columns) > 1 else None,
        samples.task,
        samples.seed,
        samples.time_limit,
    )
    if method is not None:
        # Methods that learn more than an SVM take longer.
        n_folds = _TUNING_FOLDS if method.learns == "nothing" else _FEW_FOLDS
        auto.set_params(methods=[method.stem], cv=n_folds, n_jobs=1)
    model = Pipeline([("preparation", clone(samples.preparation)), ("model", auto)])
    model.fit(samples.frame, samples.y, model__groups=samples.groups)
    cost = auto.best_estimator_[-1].get_params(deep=False).get("C")
    settings = _describe(cost, auto.kernel_names_ or ())
    if method is None:
        settings = f"{auto.best_method_}; {settings}"
    return FittedCandidate(model, float(auto.best_score_), settings)


def _fit_gene_sets(samples: TableSamples) -> FittedCandidate:
    """Fit SimpleMKL with one kernel for each gene set."""
    model = learn_gene_sets(
        clone(samples.preparation),
        samples.frame,
        samples.y,
        samples.gene_sets,
        groups=samples.groups,
        seed=samples.seed,
        n_jobs=1,
    )
    learner = unwrap(model)[0]
    used = int((np.asarray(learner.weights_) > 0).sum())
    text = f"C {learner.C:.4g}; {used} of {len(samples.gene_sets)} sets have a weight"
    return FittedCandidate(model, None, text)


def _describe(cost: float | None, kernels: Any) -> str:
    """Return C, if there is one, and names of kernels as text; many kernels are counted."""
    names = list(kernels)
    shown = ", ".join(names) if len(names) <= _FEW_KERNELS else f"{len(names)} kernels"
    return shown if cost is None else f"C {cost:.4g}; {shown}"


def _fit_single_view(samples: TableSamples, view: str) -> FittedCandidate:
    """Fit an SVM on one view; samples without the view get a constant prediction.

    Parameters
    ----------
    samples : TableSamples
    view : str

    Returns
    -------
    fitted : FittedCandidate
        Its inner score is the mean over samples with and without the view.
    """
    columns = list(samples.preparation.views[view])
    present = samples.frame[columns].notna().any(axis=1).to_numpy()
    fitted = _fit_auto(samples.take(np.flatnonzero(present)), _UNIFORM, view)
    fallback = _constant(samples)[0].fit(samples.frame, samples.y)
    # Expected score of the fallback; R squared of the mean is 0, concordance of equal risks 0.5.
    prior_score = {REGRESSION: 0.0, SURVIVAL: 0.5}.get(samples.task)
    if prior_score is None:
        prior_score = float(fallback.class_prior_.max())
    share = float(present.mean())
    inner_score = share * (fitted.inner_score or 0.0) + (1.0 - share) * prior_score
    model = WithViewFallback(fitted.model, columns, fallback)
    return FittedCandidate(model, inner_score, fitted.settings)


def probabilities_of(model: Any, frame: Any, classes: Array) -> Array:
    """Return probabilities of all classes by a model that may have seen fewer of them.

    Parameters
    ----------
    model : fitted classifier
    frame : data frame with n_samples rows
    classes : array of shape (n_classes,)
        Sorted.

    Returns
    -------
    probabilities : array of shape (n_samples, n_classes)
        Zero for classes that the model has not seen.
    """
    probabilities = np.zeros((len(frame), len(classes)))
    probabilities[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(frame)
    return probabilities


@dataclass(frozen=True, eq=False)
class WithViewFallback:
    """A model for samples that have its columns, and a constant model for other samples.

    Attributes
    ----------
    model : fitted estimator
        Takes data frames.
    columns : list of str
        Samples with a value in one of these columns get a prediction of `model`.
    fallback : fitted estimator
        Predicts all other samples.
    """

    model: Any
    columns: list[str]
    fallback: Any

    @property
    def classes_(self) -> Array:
        """Classes of all training samples."""
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
            known = frame[present]
            probabilities[present] = probabilities_of(self.model, known, self.classes_)
        return probabilities

    def survival_at(self, frame: Any, times: Array) -> Array:
        """Return survival curves; that of all training samples for samples without the view."""
        present = self._present(frame)
        curves = survival_at(self.fallback, frame, times)
        if present.any():
            curves[present] = survival_at(self.model, frame[present], times)
        return curves

    def _present(self, frame: Any) -> Array:
        """Return which samples have the view, an array of bool of shape (n_samples,)."""
        return np.asarray(frame[self.columns].notna().any(axis=1))


# Returns an estimator of scikit-learn and the grid to search, for samples with a number of columns.
_Make = Callable[[TableSamples, int], tuple[Any, dict[str, Any]]]


def _fit_baseline(samples: TableSamples, make: _Make, impute: bool) -> FittedCandidate:
    """Fit a model of scikit-learn.

    Parameters
    ----------
    samples : TableSamples
    make : callable
        Returns an estimator, and the grid to search; an empty grid for no search.
    impute : bool
        Whether columns are scaled and missing values replaced by means.

    Returns
    -------
    fitted : FittedCandidate
        Without an inner score if there is nothing to choose.
    """
    preparation, X = samples.prepared()
    steps: list[Any] = [("preparation", preparation)]
    if impute:
        scale = ColumnScaler(unit=False)
        X = scale.fit_transform(X)
        steps.append(("scale", scale))
    estimator, grid = make(samples, X.shape[1])
    inner_score, best = None, {}
    if grid:
        rows = samples.tuning_rows()
        part = samples.take(rows)
        search = GridSearchCV(estimator, grid, cv=part.folds(_FEW_FOLDS), refit=False)
        search.fit(X[rows], part.y)
        inner_score, best = float(search.best_score_), search.best_params_
        estimator.set_params(**best)
    settings = "; ".join(f"{name.rpartition('__')[2]} {best[name]:.4g}" for name in best)
    model = estimator.fit(X, samples.y)
    if samples.classes is not None and not hasattr(model, "predict_proba"):
        model = calibrated(model, X, samples.y, cv=_FEW_FOLDS, groups=samples.groups)
    return FittedCandidate(Pipeline([*steps, ("model", model)]), inner_score, settings)


def _constant(samples: TableSamples, n_columns: int = 0) -> tuple[Any, dict[str, Any]]:
    """Return a model that predicts the majority class, the mean, or the Kaplan-Meier estimate."""
    if samples.task == SURVIVAL:
        return KaplanMeier(), {}
    regression = samples.task == REGRESSION
    return DummyRegressor() if regression else DummyClassifier(strategy="prior"), {}


def _linear(samples: TableSamples, n_columns: int) -> tuple[Any, dict[str, Any]]:
    """Return logistic, ridge or Cox regression."""
    if samples.task == SURVIVAL:
        return CoxRegression(), {"alpha": np.logspace(-3, 1, 5).tolist()}
    if samples.task == REGRESSION:
        return Ridge(), {"alpha": np.logspace(-1, 4, 6).tolist()}
    return LogisticRegression(max_iter=1000), {"C": np.logspace(-3, 1, 5).tolist()}


def _svm(samples: TableSamples, n_columns: int) -> tuple[Any, dict[str, Any]]:
    """Return an SVM with an RBF kernel of all columns."""
    grid = {"C": [1.0, 10.0, 100.0], "gamma": [f / n_columns for f in (0.25, 1.0, 4.0)]}
    if samples.task == CLASSIFICATION:
        return SVC(), grid
    model = TransformedTargetRegressor(SVR(), transformer=StandardScaler())
    return model, {f"regressor__{name}": values for name, values in grid.items()}


def _forest(samples: TableSamples, n_columns: int) -> tuple[Any, dict[str, Any]]:
    """Return a random forest, which handles missing values itself."""
    forest: Any = RandomForestClassifier
    if samples.task == SURVIVAL:
        forest = partial(_survival_forest(), min_samples_leaf=_LEAF, n_jobs=1)
    elif samples.task == REGRESSION:
        forest = RandomForestRegressor
    return forest(_TREES, random_state=samples.seed), {}


def _boosting(samples: TableSamples, n_columns: int) -> tuple[Any, dict[str, Any]]:
    """Return gradient boosting, which stops early if there are samples to measure the gain."""
    regression = samples.task == REGRESSION
    trees: Any = HistGradientBoostingRegressor if regression else HistGradientBoostingClassifier
    stops = len(samples.y) >= _ENOUGH_TO_STOP
    return trees(early_stopping=stops, n_iter_no_change=_PATIENCE, random_state=samples.seed), {}


def _survival_forest() -> Any:
    """Return the class of scikit-survival's forest; None if it is not installed."""
    try:
        from sksurv.ensemble import RandomSurvivalForest
    except ImportError:
        return None
    return RandomSurvivalForest


_LINEAR = ("logistic regression", "ridge regression", "Cox regression")
_TASK_NUMBERS = {CLASSIFICATION: 0, REGRESSION: 1, SURVIVAL: 2}
# Names for classification, regression and survival, how to make it, whether columns are imputed,
# and aliases.
_BASELINES: list[tuple[tuple[str, ...], _Make, bool, set[str]]] = [
    (CONSTANT_BASELINES, _constant, True, {"guess", "majority", "constant"}),
    (_LINEAR, _linear, True, {"linear", "ridge", "logistic", "cox"}),
    (("SVC", "SVR", ""), _svm, True, {"svm", "svc", "svr"}),
    (("random forest", "random forest", "survival forest"), _forest, False, {"forest"}),
    (("gradient boosting", "gradient boosting", ""), _boosting, False, {"boosting"}),
]


def candidates_for(table: Table, names: Sequence[str] = ()) -> list[StudyCandidate]:
    """Return the candidates with these names, or the default ones.

    Parameters
    ----------
    table : Table
    names : sequence of str
        Names or aliases; each may be a list with commas.

    Returns
    -------
    candidates : list of StudyCandidate
        Each candidate once, in the order of the names.

    Raises
    ------
    TableError
        If a name is unknown, or its method does not fit the task.
    """
    default = list(_default_candidates(table))
    parts = [part.strip() for value in names for part in value.split(",")]
    chosen = [candidate for part in parts for candidate in _named(part, default, table)]
    # A candidate that is named twice is compared once.
    return list({candidate.name: candidate for candidate in chosen}.values()) or default


def _default_candidates(table: Table) -> Iterator[StudyCandidate]:
    """Yield AutoMKL, the uniform mix, single views and baselines.

    AutoMKL of several views is a trusted vote, and has its name.
    """
    several = len(table.views) > 1
    aliases = {AUTO, "auto", *(names_of(_VOTE) if several else ())}
    name, complexity = (VOTE, 3) if several else (AUTO, 1)
    yield StudyCandidate(
        name=name, role=OURS, fit=_fit_auto, complexity=complexity, aliases=aliases
    )
    if table.gene_sets:
        yield StudyCandidate(
            name=GENE_SETS, role=OURS, fit=_fit_gene_sets, complexity=1, aliases={"sets"}
        )
    yield _tuned(_UNIFORM)
    for view in table.views if several else ():
        fit = partial(_fit_single_view, view=view)
        yield StudyCandidate(name=single_view_name(view), role=VIEW, fit=fit, aliases={view})
    for both, make, impute, aliases in _BASELINES:
        fit = partial(_fit_baseline, make=make, impute=impute)
        name = both[_TASK_NUMBERS[table.task or CLASSIFICATION]]
        if not name or (table.task == SURVIVAL and make is _forest and not _survival_forest()):
            continue
        yield StudyCandidate(name=name, role=BASELINE, fit=fit, aliases=aliases)


def single_view_name(view: str) -> str:
    """Return the name of the candidate that uses one view only."""
    return f"{view} alone"


def _tuned(method: Method) -> StudyCandidate:
    """Return the candidate of a method with settings chosen by cross-validation."""
    simple = method is _UNIFORM
    levels = {"nothing": 0, "weights": 2 if method.can("localized") else 1, "trust": 3}
    return StudyCandidate(
        name=MIX if simple else method.name,
        role=OURS,
        fit=partial(_fit_auto, method=method),
        complexity=levels[method.learns],
        aliases=names_of(method),
    )


def _named(name: str, default: Sequence[StudyCandidate], table: Table) -> list[StudyCandidate]:
    """Return the candidates that a name stands for, which may be all of a role."""
    wanted = plain_name(name)
    roles = {_ALL_VIEWS: VIEW, _ALL_BASELINES: BASELINE}
    if wanted in roles:
        return [candidate for candidate in default if candidate.role == roles[wanted]]
    for candidate in default:
        if wanted in {plain_name(alias) for alias in (candidate.name, *candidate.aliases)}:
            return [candidate]
    for method in METHODS:
        if wanted in names_of(method):
            # Raises if the method is not for the task.
            estimator_class(method.stem, table.task)
            return [_tuned(method)]
    known = dict.fromkeys([*(candidate.name for candidate in default), AUTO])
    known |= dict.fromkeys([_ALL_VIEWS, _ALL_BASELINES])
    known |= dict.fromkeys(method.name for method in METHODS)
    hint = suggestion(name, known) or f"; choose among {', '.join(known)}"
    raise TableError(f"unknown candidate {name!r}{hint}")


def fit_candidate(table: Table, name: str, seed: int, time_limit: float | None = None) -> Any:
    """Fit a candidate to all samples of a table, with the same result on every machine.

    Warnings of the fit are dropped: they are among the findings of the comparison.

    Parameters
    ----------
    table : Table
    name : str
        Name of a candidate.
    seed : int
    time_limit : float, optional
        Seconds, for candidates that can stop early.

    Returns
    -------
    model : Pipeline
        Takes data frames.
    """
    (candidate,) = candidates_for(table, [name])
    with single_threaded():
        fitted, _ = capture_warnings(candidate.fit, all_samples(table, seed, time_limit))
    return fitted.model
