"""Estimators that choose preparation, kernels, cost and method on held-out decisions."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.pipeline import Pipeline
from sklearn.utils import (
    assert_all_finite,
    check_array,
    check_consistent_length,
    check_random_state,
    column_or_1d,
)
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from lokl._arrays import Array
from lokl._deadline import Deadline
from lokl._frames import as_pandas, table_of
from lokl._survival import as_columns, read_target
from lokl._threads import single_threaded_blas
from lokl._warnings import DeferredWarnings, capture_warnings
from lokl.base import setting, settings
from lokl.base.model import FEATURE_ATTRIBUTES, atomic_fit, publish
from lokl.base.settings import (
    FLAG,
    JOBS,
    NOT_NEGATIVE,
    POSITIVE,
    SEED,
    Rule,
    anything,
    check_settings,
    one_of,
    or_none,
)
from lokl.base.survival import SurvivalMixin, check_any_event
from lokl.base.targets import _check_class_weight, learned_classes, target_spread
from lokl.base.training import check_weights
from lokl.kernels.dictionaries import named_kernels
from lokl.search.calibration import CalibratedPredictions, WrappedModel, calibrate_fold_results
from lokl.search.columns import ColumnEncoder, ColumnScaler, adjacent_slices
from lokl.search.cross_validation import (
    draw_rows,
    fit_weighted,
    make_folds,
    sample_weight_params,
    without_routing,
)
from lokl.search.expert_search import AutoData, Choice, ExpertSearch
from lokl.search.method_search import (
    complexity_of,
    leaderboard_row,
    method_grid,
    named_estimators,
)
from lokl.search.results import RULES, Candidate, LeaderboardRow, choose
from lokl.search.search import KernelSearchCV, numeric_labels
from lokl.solvers.machines import Fold

# With more samples, named methods are compared on a part of them.
MANY_ROWS, ROWS_OF_PART = 6_000, 4_000
# Tolerance of SVMs for targets with a standard deviation of one.
_TOLERANCE = 1e-3
# Part of the time that is kept in reserve.
_SPARE = 0.05


def _if_best_model_has(name: str, *, before_fit: bool = False) -> Any:
    """Return the condition of methods that only some models have.

    `before_fit` is the answer before the model is known.
    """
    return lambda auto: auto._best_model_has(name, before_fit)


def _check_views(name: str, value: Any) -> None:
    if value is not None and (not hasattr(value, "items") or not len(value)):
        raise ValueError(
            f"{name} must be a mapping of names to columns, such as {{'blood': ['iron', 'zinc']}}, "
            f"or None, got {value!r}"
        )


@settings
class AutoMKL(WrappedModel, BaseEstimator):
    """Search for a model, and predictions of the best one.

    Attributes
    ----------
    best_estimator_ : Pipeline
        The best model, fitted on all samples: reading, preparation, model. Fitted attributes of the
        model, such as ``intercept_`` or ``weights_``, are also available here. Its kernels and
        support vectors refer to prepared columns.
    best_method_ : str
        Its method, as in ``leaderboard_``.
    best_score_ : float
        Its mean held-out score.
    leaderboard_ : data frame, or list of LeaderboardRow without pandas
        All candidates, best first: method, kernels, C, held-out score and its standard error,
        seconds, number of samples, and the error of failed candidates.
    kernel_names_ : list of str or None
        Kernels of the best model.
    n_samples_fit_ : int
        Number of samples that the best model was fitted on.
    support_ : array of shape (n_support,)
        Row numbers of the support vectors among the training samples, if the best model has any.
    """

    views: Any = setting(
        None,
        Rule("mapping of str to columns, or None", _check_views),
        "Columns that belong together, by name, as :func:`lokl.join_views` returns them. Every "
        "view has kernels of its own. A sample with NaN in all columns of a view lacks the view. "
        "None: one view of all columns.",
        kw_only=False,
    )
    kernels: Any = setting(
        None,
        anything("list or mapping of kernels, or None"),
        "Kernels to try instead of linear, quadratic and RBF kernels of each view. They are "
        "computed from scaled columns; stored matrices are not scaled.",
        kw_only=False,
    )
    methods: Any = setting(
        "auto",
        anything('"auto", or list of str and estimators'),
        'Methods to try: names such as "UniformMKL", "SimpleMKL" or "TrustedVote", and estimators. '
        '"auto" averages SVMs with the squared loss or the squared hinge on the best kernels, and '
        "with several views fits a trusted vote of one expert for each view.",
    )
    views_policy: str = setting(
        "all",
        one_of("all", "any"),
        'Whether every view of `views` has a kernel of its own in the model ("all"), so that it '
        "predicts samples that lack any of them and contributions belong to views, or the most "
        'accurate kernels of views and of all columns together are used ("any"). Only for '
        '`methods="auto"`.',
    )
    cv: Any = setting(
        5,
        anything("int, splitter or iterable of splits"),
        "Folds of named methods. An int is the number of folds, shuffled; for classifiers, folds "
        'contain all classes as far as their samples go. With `methods="auto"`, an int stands for '
        "exact leave-one-out unless there are groups. Groups stay together.",
    )
    scoring: Any = setting(
        None,
        anything("str, callable or None"),
        "Score to compare candidates by, with folds. None: the score of the estimator; with "
        '`methods="auto"` the Brier score, or the squared error.',
    )
    rule: str = setting(
        "one_se",
        one_of(*RULES),
        'Rule for the choice: "best" is the best single candidate. "one_se" is the average of all '
        "kernels whose loss is within two standard errors of the best; of named methods, the best "
        "candidate of the simplest kind that is within one standard error of the best: single "
        "kernels and uniform averages, then learned weights, then weights that differ between "
        "samples.",
    )
    time_limit: float | None = setting(
        None,
        or_none(POSITIVE),
        "Seconds for search and final fit; the best candidate so far is chosen. If the final fit "
        "alone would take longer, it uses fewer samples, with a warning.",
    )
    random_state: Any = setting(
        None,
        SEED,
        'Seed of folds and of methods that draw. With `methods="auto"` the model of up to 5,000 '
        "samples does not depend on it.",
    )
    n_jobs: int | None = setting(None, JOBS, "Number of threads, None for one per core.")
    verbose: int = setting(
        0, anything("int"), "1 logs a line for every batch of candidates to the logger ``lokl``."
    )

    _kind: ClassVar[str]
    _results: ClassVar[Any] = ()
    _inner: ClassVar[str] = "best_estimator_"

    @abstractmethod
    def _check_targets(self, y: Any, weight: Array) -> tuple[Array, float, dict[str, Any]]:
        """Validate targets; return them, the unit of costs, and attributes of the targets."""

    @abstractmethod
    def _method_settings(self, unit_cost: float) -> dict[str, Any]:
        """Return settings of all methods that are given by name."""

    @atomic_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Any:
        """Choose a model and fit it.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            Numbers, strings, categories and booleans; missing values are NaN or None.
        y : array-like of shape (n_samples,)
            Labels of any type, two or more classes. For regressors numbers, also of shape
            (n_samples, n_targets).
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 is equivalent to repeating the row, 0 to omitting it.
        groups : array-like of shape (n_samples,), optional
            Samples of a group are in the same fold.

        Returns
        -------
        self
        """
        check_settings(self)
        X = as_pandas(X)
        deadline = Deadline(None if self.time_limit is None else (1 - _SPARE) * self.time_limit)
        with DeferredWarnings(), without_routing():
            # First, so that unknown names are reported before anything is read.
            is_named = not self._compares_families()
            if is_named:
                self._named_estimators(1.0)
            if y is None:
                raise ValueError(
                    f"{type(self).__name__} requires y to be passed, but the target y is None"
                )
            reader = ColumnEncoder().fit(X)
            numbers = reader.transform(X)
            check_consistent_length(numbers, y, groups)
            weight = check_weights(sample_weight, numbers)
            y, unit_cost, target_attributes = self._check_targets(y, weight)
            views = None
            if self.views is not None:
                views = {str(v): reader.positions(c, X) for v, c in self.views.items()}
            # A weight of zero is equivalent to omitting the row.
            rows = np.flatnonzero(weight > 0)
            given_weight = None if sample_weight is None else weight
            data = AutoData(numbers, y, given_weight, self._folds(y, groups), views).take(rows)
            if is_named:
                choice = self._best_method(data, unit_cost, deadline)
            else:
                settings = {"random_state": 0, **self._method_settings(unit_cost)}
                choice = ExpertSearch(self, data, settings, deadline).run()
            attributes = {
                **target_attributes,
                **self._model_attributes(reader, choice.model, rows[choice.rows]),
                "calibration_": choice.calibration,
                "best_score_": choice.score,
                "best_method_": choice.method,
                "_rows": choice.table,
            }
        publish(self, attributes)
        return self

    def _compares_families(self) -> bool:
        """Return whether families of kernels are compared, rather than named methods."""
        is_auto = isinstance(self.methods, str) and self.methods == "auto"
        return is_auto and self.scoring is None

    def _named_estimators(self, unit_cost: float, seed: int = 0) -> list[Any]:
        """Return the estimators of the named methods."""
        names = self.methods
        if isinstance(names, str) and names == "auto":
            names = ["UniformMKL", *(["TrustedVote"] if len(self.views or ()) > 1 else [])]
        settings = {"random_state": seed, **self._method_settings(unit_cost)}
        return named_estimators(names, self._kind, settings)

    def _folds(self, y: Array, groups: Any) -> list[Fold] | None:
        """Return the folds; None for exact leave-one-out."""
        is_deterministic = self._compares_families()
        if is_deterministic and isinstance(self.cv, Integral) and groups is None:
            return None
        rng = None if is_deterministic else check_random_state(self.random_state)
        strata = y[:, 0] if self._kind == "Survival" else y
        is_stratified = self._kind != "Regressor"
        return make_folds(self.cv, strata, classification=is_stratified, groups=groups, rng=rng)

    def _best_method(self, data: AutoData, unit_cost: float, deadline: Deadline) -> Choice:
        """Compare named methods by cross-validation, on a part of many samples."""
        rng = check_random_state(self.random_state)
        estimators = self._named_estimators(unit_cost, int(rng.randint(2**31 - 1)))
        part = data
        if data.n_samples > MANY_ROWS:
            rows = draw_rows(data.y, ROWS_OF_PART, self._kind == "Classifier", rng)
            part = data.take(rows)
        given = None if self.kernels is None else named_kernels(self.kernels)
        columns = None if data.views is None else [*data.views.values()]
        is_stored = any(kernel.is_stored for kernel in (given or {}).values())
        scaler = ColumnScaler(columns, unit=given is None, scale=not is_stored)
        slices = adjacent_slices([len(own) for own in columns or ()])
        views = dict(zip(data.views or (), slices, strict=True))
        for estimator in estimators:
            # Raises an error if it has no weights.
            sample_weight_params(estimator, data.weight)
        search_class: Any = KernelSearchCV
        search = search_class(
            Pipeline([("scale", scaler), ("model", estimators[0])]),
            [method_grid(estimator, views, given, unit_cost) for estimator in estimators],
            cv=part.folds,
            scoring=self.scoring,
            adaptive=True,
            time_limit=deadline.share(),
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        # Many small fits, which would wait for the threads of BLAS.
        with single_threaded_blas():
            weights = {} if part.weight is None else {"sample_weight": part.weight}
            task, _ = search._task(part.X, part.y, weights)
            # Errors and warnings of single candidates are shown by the leaderboard only.
            found, _ = capture_warnings(search._evaluated, task)
            tried = sorted((c for c in found if c.fold_results), key=complexity_of)
            best = self._best_candidate(tried)
            model = task.configured(best.index)
            fit_weighted(model, data.X, data.y, data.weight)
        table = [leaderboard_row(candidate, part.n_samples) for candidate in tried]
        return Choice(
            model,
            np.arange(data.n_samples),
            leaderboard_row(best, part.n_samples).method,
            best.mean(),
            calibrate_fold_results(task, model, best.fold_results or ()),
            sorted(table, key=lambda row: (math.isnan(row.score), -row.score)),
        )

    def _best_candidate(self, tried: Sequence[Candidate]) -> Candidate:
        """Return the chosen one of some candidates, which are sorted by complexity.

        With "one_se", the simplest kind of method is chosen that has a candidate within one
        standard error of the best: single kernels and uniform averages, then learned weights, then
        weights that differ between samples. Of this kind, the best candidate is chosen.
        """
        means = np.array([candidate.mean() for candidate in tried])
        if np.isnan(means).all():
            errors = [error for candidate in tried for error in candidate.errors]
            raise ValueError(
                f"none of the {len(tried)} candidates could be fitted; the first error is: "
                f"{errors[0].strip().splitlines()[-1] if errors else 'no score is a number'}"
            )
        standard_errors = np.array([candidate.standard_error() for candidate in tried])
        kinds = [complexity_of(candidate)[0] for candidate in tried]
        return tried[choose(means, standard_errors, self.rule, lambda i: (kinds[i], -means[i]))]

    def _model_attributes(
        self, reader: ColumnEncoder, fitted: Pipeline, rows: Array
    ) -> dict[str, Any]:
        """Return the attributes of the best model, fitted on some rows."""
        attributes = {
            "best_estimator_": Pipeline([("read", reader), *fitted.steps]),
            "kernel_names_": getattr(fitted[-1], "kernel_names_", None),
            "n_samples_fit_": len(rows),
            "n_features_in_": reader.n_features_in_,
        }
        if hasattr(fitted[-1], "support_"):
            attributes["support_"] = rows[fitted[-1].support_]
        if hasattr(reader, "feature_names_in_"):
            attributes["feature_names_in_"] = reader.feature_names_in_
        return attributes

    @property
    def leaderboard_(self) -> Any:
        """All candidates, best first: a data frame if pandas is installed, else a list of rows."""
        check_is_fitted(self)
        return table_of(self._rows, LeaderboardRow._fields)

    def _best_model_has(self, name: str, before_fit: bool = False) -> bool:
        if "best_estimator_" not in vars(self):
            return before_fit
        return hasattr(self.best_estimator_[-1], name)

    def __getattr__(self, name: str) -> Any:
        """Return fitted attributes of the best model, such as ``intercept_``."""
        if name.startswith("_") or not name.endswith("_") or name in FEATURE_ATTRIBUTES:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        check_is_fitted(self)
        return getattr(self.best_estimator_[-1], name)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags


@settings
class AutoMKLClassifier(ClassifierMixin, AutoMKL, CalibratedPredictions):
    """Classifier that chooses scaling, kernels, widths and costs.

    One table: SVMs with the squared loss are compared by their exact leave-one-out decisions, on
    L1 Laplacian, RBF, additive and linear kernels of differently scaled columns, at several widths
    and costs. All kernels whose Brier score is within two standard errors of the best form the
    model, an average of one SVM for each (:class:`ExpertAverageClassifier`). There are no folds, so
    the same samples give the same model. The best kernels are also tried with the squared hinge, by
    approximate leave-one-out decisions, and it is used if its Brier score is lower by more than
    four standard errors, as for a class between two others.

    Several `views`: the model is a trusted vote (:class:`TrustedVoteClassifier`), which can say
    which view to believe for each sample. Every view has one kernel, an L1 Laplacian, or an RBF if
    its Brier score is lower by more than two standard errors. Both decay with distance, so that
    samples unlike all training samples are recognised. All views have the cost at which their mean
    Brier score is lowest.

    Strings become indicators, and so may numbers with few values. Missing values are imputed.
    ``leaderboard_`` contains the scores of all candidates. With `methods`, `scoring` or a splitter
    `cv`, candidates are compared by folds instead.

    See Also
    --------
    lokl.AutoMKLRegressor : The same for numeric targets.
    lokl.AutoMKLSurvival : The same for censored times.
    lokl.search.KernelSearchCV : Grid search on shared work.
    lokl.explain.SearchDisplay : Figure of the candidates.

    Notes
    -----
    Widths are ``2^-8`` to ``2^2`` times the reciprocal of the median distance, costs ``2^-6`` to
    ``2^14``. With more than 600 samples, widths and costs are chosen on 600 of them, and the best
    families of kernels are compared on all. With more than 5,000, families are compared on 2,500,
    and the final SVMs have the hinge loss; with more than 30,000, there is one for each region
    (:class:`RegionClassifier`).

    Scales of columns are computed from all training samples; they do not depend on the targets.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from lokl import AutoMKLClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = AutoMKLClassifier().fit(X, y)
    >>> round(model.best_score_, 2)
    0.99
    >>> model.predict_proba(X).shape
    (178, 3)
    """

    class_weight: Any = setting(
        None,
        Rule('dict, "balanced" or None', _check_class_weight),
        "Factors of the cost by class. Estimators in `methods` with a class weight keep it.",
    )

    _kind: ClassVar[str] = "Classifier"

    def _check_targets(self, y: Any, weight: Array) -> tuple[Array, float, dict[str, Any]]:
        y = np.asarray(numeric_labels(column_or_1d(y, warn=True)))
        assert_all_finite(y, input_name="y")
        classes, _, _ = learned_classes(type(self).__name__, y, weight)
        return y, 1.0, {"classes_": classes}

    def _method_settings(self, unit_cost: float) -> dict[str, Any]:
        return {"class_weight": self.class_weight}

    # Meta-estimators of scikit-learn look for it before they fit.
    @available_if(_if_best_model_has("decision_function", before_fit=True))
    def decision_function(self, X: Any) -> Array:
        """Return the decision values of the best model.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)

        Returns
        -------
        decision : array of shape (n_samples,), or (n_samples, n_classes) for more than two
        """
        return np.asarray(self._call_model("decision_function", X))

    @available_if(_if_best_model_has("predict_proba_alone"))
    def predict_proba_alone(self, X: Any) -> Array:
        """Return the probability of each class given one kernel at a time.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)

        Returns
        -------
        probabilities : array of shape (n_samples, n_kernels, n_classes)
        """
        return np.asarray(self._call_model("predict_proba_alone", X))

    def _has_probabilities(self) -> bool:
        is_calibrated = getattr(self, "calibration_", None) is not None
        return is_calibrated or self._best_model_has("predict_proba", before_fit=True)


@settings
class AutoMKLRegressor(RegressorMixin, AutoMKL):
    """Regressor that chooses scaling, kernels, widths and costs.

    As :class:`AutoMKLClassifier`, with the squared error as the loss and the coefficient of
    determination as the score. The unit of the targets does not matter.

    See Also
    --------
    lokl.AutoMKLClassifier : The same for classes.
    lokl.search.KernelSearchCV : Grid search on shared work.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl import AutoMKLRegressor
    >>> X = np.linspace(0, 6, 60)[:, np.newaxis]
    >>> round(AutoMKLRegressor().fit(X, np.sin(X[:, 0])).best_score_, 2)
    1.0
    """

    epsilon: float = setting(
        0.05,
        NOT_NEGATIVE,
        "Errors below this many standard deviations of the target cost nothing.",
    )

    _kind: ClassVar[str] = "Regressor"

    def _check_targets(self, y: Any, weight: Array) -> tuple[Array, float, dict[str, Any]]:
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        if y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        if len(y) < 2:
            raise ValueError(f"{type(self).__name__} needs two samples or more, got 1 sample")
        return y, target_spread(y, weight), {}

    def _method_settings(self, unit_cost: float) -> dict[str, Any]:
        # The tolerance of an SVM is in the unit of its targets.
        return {"epsilon": self.epsilon * unit_cost, "tol": _TOLERANCE * unit_cost}


@settings
class AutoMKLSurvival(SurvivalMixin, AutoMKL):
    """Survival model that chooses scaling, kernels, widths and costs.

    As :class:`AutoMKLRegressor` on deviance residuals: for each sample, the signed root of twice
    the difference of log likelihoods between its own outcome and the Nelson-Aalen estimate for all
    samples. They depend on the order of the times only. Kernels are compared by the squared error
    of exact leave-one-out decisions; the score of the leaderboard is Harrell's concordance index.
    Survival curves of one table have proportional hazards in the leave-one-out decisions.

    Several `views`: a trusted vote (:class:`TrustedVoteSurvival`) of one kernel for each view, the
    one with the smallest error. More than 5,000 samples: censored machines (``loss="censored"``).

    See Also
    --------
    lokl.survival_target : Targets of censored times.
    lokl.metrics.concordance_index : The score.
    lokl.TrustedVoteSurvival : The model of several views.

    References
    ----------
    .. [1] T. M. Therneau, P. M. Grambsch, T. R. Fleming. Martingale-Based Residuals for Survival
       Models. Biometrika 77(1):147-160, 1990.

    Examples
    --------
    >>> import numpy as np
    >>> import lokl
    >>> rng = np.random.RandomState(0)
    >>> X, ends = rng.normal(size=(100, 3)), rng.exponential(size=(100, 2))
    >>> event, censored = ends[:, 0] * np.exp(-2 * X[:, 0]), 3 * ends[:, 1]
    >>> y = lokl.survival_target(event <= censored, np.minimum(event, censored))
    >>> model = lokl.AutoMKLSurvival().fit(X, y)
    >>> round(model.best_score_, 2)
    0.82
    """

    log_time: bool = setting(
        True,
        FLAG,
        "Whether methods that are given by name, and machines for more than 5,000 samples, predict "
        "the log of the time.",
    )

    _kind: ClassVar[str] = "Survival"

    def _check_targets(self, y: Any, weight: Array) -> tuple[Array, float, dict[str, Any]]:
        y = as_columns(read_target(y))
        check_any_event(self, y, weight)
        return y, 1.0, {}

    def _method_settings(self, unit_cost: float) -> dict[str, Any]:
        return {"log_time": self.log_time}

    def _decisions(self, X: Any) -> Array:
        return np.asarray(self._call_model("predict", X))[:, np.newaxis]

    def _cumulative_hazards(self, X: Any) -> Array:
        return np.asarray(self._call_model("_cumulative_hazards", X))
