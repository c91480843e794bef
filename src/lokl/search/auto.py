"""Estimators that choose preparation, kernels, cost and method by cross-validation."""

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import check_scoring
from sklearn.pipeline import Pipeline
from sklearn.utils import (
    assert_all_finite,
    check_array,
    check_consistent_length,
    check_random_state,
    column_or_1d,
)
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from lokl._arrays import Array, is_sparse
from lokl._deadline import Deadline
from lokl._frames import table_of
from lokl._threads import single_threaded_blas
from lokl._warnings import DeferredWarnings
from lokl.base import setting, settings
from lokl.base.estimator import ExplanationMixin
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
from lokl.base.targets import _check_class_weight, target_spread
from lokl.base.training import check_weights
from lokl.search.auto_search import (
    SPARE,
    AutoSearch,
    CandidateSchedule,
    EvaluationData,
    LeaderboardRow,
    ViewKernels,
    adjacent_views,
    method_specs,
    single_kernels,
)
from lokl.search.calibration import CalibratedPredictions
from lokl.search.columns import ColumnEncoder, ColumnScaler
from lokl.search.cross_validation import make_folds
from lokl.search.results import RULES
from lokl.search.search import numeric_labels

# Tolerance of SVMs for targets with a standard deviation of one.
_TOLERANCE = 1e-3


def _if_best_model_has(name: str) -> Any:
    """Return the condition of methods that only some models have."""
    return lambda auto: auto._best_model_has(name)


def _check_views(name: str, value: Any) -> None:
    if value is not None and (not hasattr(value, "items") or not len(value)):
        raise ValueError(
            f"{name} must be a mapping of names to columns, such as {{'blood': ['iron', 'zinc']}}, "
            f"or None, got {value!r}"
        )


@settings
class AutoMKL(ExplanationMixin, BaseEstimator):
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
        '"auto" includes single kernels, uniform averages, l_p-norm MKL and SimpleMKL; with '
        "several views also the trusted vote and C-LMKL.",
    )
    every_view: bool = setting(
        False,
        FLAG,
        "Whether the chosen model must have kernels of its own for each of `views`, and no kernel "
        "of several. Contributions to its decisions can then be attributed to views, and it "
        "predicts samples that lack any of them. Ignored if `kernels` are given.",
    )
    cv: Any = setting(
        5,
        anything("int, splitter or iterable of splits"),
        "An int is the number of folds, shuffled. For classifiers, folds contain all classes as "
        "far as their samples go. Groups stay together.",
    )
    scoring: Any = setting(
        None,
        anything("str, callable or None"),
        "Score to compare candidates by. None: the score of the estimator.",
    )
    rule: str = setting(
        "one_se",
        one_of(*RULES),
        'Rule for the chosen candidate: "best" is the best mean score; "one_se" is the best '
        "candidate of the simplest kind of method that is within one standard error of it: single "
        "kernels and uniform averages, then learned weights, then weights that differ between "
        "samples. Of this kind, a candidate is preferred that is also good at neighbouring costs.",
    )
    time_limit: float | None = setting(
        None,
        or_none(POSITIVE),
        "Seconds for search and final fit; the best candidate so far is chosen. If the final fit "
        "alone would take longer, it uses fewer samples, with a warning.",
    )
    random_state: Any = setting(
        None, SEED, "Seed of folds, of parts of many samples, and of methods that draw."
    )
    n_jobs: int | None = setting(
        None,
        JOBS,
        "Number of threads for single SVMs, None for one per core; for other methods, number of "
        "folds in threads.",
    )
    verbose: int = setting(
        0, anything("int"), "1 logs a line for every batch of candidates to the logger ``lokl``."
    )

    _kind: ClassVar[str]
    _results: ClassVar[Any] = ()

    @abstractmethod
    def _check_targets(self, y: Any) -> tuple[Array, dict[str, Any]]:
        """Validate targets; return them and the attributes that follow from them."""

    @abstractmethod
    def _unit_cost(self, y: Array, weight: Array) -> float:
        """Return the factor of all costs."""

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
        deadline = Deadline(None if self.time_limit is None else (1 - SPARE) * self.time_limit)
        # Many small fits, which would wait for the threads of BLAS.
        with DeferredWarnings(), single_threaded_blas():
            # First, so that unknown names are reported before anything is read.
            method_specs(self.methods, self._kind, True, {})
            reader = ColumnEncoder().fit(X)
            numbers = reader.transform(X)
            y, target_attributes = self._check_targets(y)
            check_consistent_length(numbers, y, groups)
            search = self._make_search(X, numbers, y, sample_weight, groups, reader, deadline)
            search.run()
            best = search.best()
            fitted, rows = search.fit_best(best)
            attributes = {
                **target_attributes,
                **self._model_attributes(reader, fitted, rows),
                "calibration_": search.calibration(best),
                "best_score_": best.mean,
                "best_method_": best.candidate.method,
                "_rows": search.leaderboard.rows(),
            }
        publish(self, attributes)
        return self

    def _make_search(
        self,
        X: Any,
        numbers: Any,
        y: Array,
        sample_weight: Any,
        groups: Any,
        reader: ColumnEncoder,
        deadline: Deadline,
    ) -> AutoSearch:
        weight = check_weights(sample_weight, numbers)
        rng = check_random_state(self.random_state)
        is_classifier = self._kind == "Classifier"
        positions = None
        if self.views is not None:
            positions = [reader.positions(columns, X) for columns in self.views.values()]
        data = EvaluationData(
            numbers,
            y,
            None if sample_weight is None else weight,
            make_folds(self.cv, y, classification=is_classifier, groups=groups, rng=rng),
            check_scoring(self, self.scoring),
            self._preparation(positions),
            self.n_jobs,
            self.verbose,
            np.arange(len(y)),
        )
        if (weight <= 0).any():
            # A weight of zero is equivalent to omitting the row.
            data = data.subset(np.flatnonzero(weight > 0))
        views, unit_cost = self._view_kernels(numbers, positions), self._unit_cost(y, weight)
        schedule = self._schedule(views, unit_cost, int(rng.randint(2**31 - 1)))
        return AutoSearch(data, schedule, self.rule, self.time_limit, deadline, is_classifier, rng)

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

    def _schedule(self, views: list[ViewKernels], unit_cost: float, seed: int) -> CandidateSchedule:
        settings = {"random_state": seed, **self._method_settings(unit_cost)}
        given = None if self.kernels is None else single_kernels(self.kernels)
        return CandidateSchedule(
            method_specs(self.methods, self._kind, len(views) > 1, settings),
            views,
            given,
            unit_cost,
            is_time_limited=self.time_limit is not None,
            every_view=self.every_view and given is None and len(views) > 1,
        )

    def _preparation(self, positions: Any) -> ColumnScaler:
        if self.kernels is None:
            return ColumnScaler(positions)
        kernels = [kernel for each in single_kernels(self.kernels) for kernel in each.values()]
        is_stored = any(kernel.is_stored for kernel in kernels)
        return ColumnScaler(positions, unit=False, scale=not is_stored)

    def _view_kernels(self, numbers: Any, positions: Any) -> list[ViewKernels]:
        if positions is None:
            return [ViewKernels(None, None)]
        complete = [
            is_sparse(numbers) or not np.isnan(numbers[:, columns]).all(axis=1).any()
            for columns in positions
        ]
        widths = [len(columns) for columns in positions]
        return adjacent_views([*map(str, self.views)], widths, complete)

    @property
    def leaderboard_(self) -> Any:
        """All candidates, best first: a data frame if pandas is installed, else a list of rows."""
        check_is_fitted(self)
        return table_of(self._rows, LeaderboardRow._fields)

    def _call_model(self, name: str, X: Any, **options: Any) -> Any:
        """Return the result of a method of the last step, on samples that the others prepared."""
        check_is_fitted(self)
        prepared = self.best_estimator_[:-1].transform(X)
        result = getattr(self.best_estimator_[-1], name)(prepared, **options)
        # Prepared samples are arrays, without the index of a data frame.
        has_index = options.get("labels") and hasattr(X, "columns") and hasattr(X, "index")
        return result.set_axis(X.index) if has_index else result

    def predict(self, X: Any) -> Array:
        """Return the predictions of the best model.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)

        Returns
        -------
        predictions : array of shape (n_samples,), or (n_samples, n_targets)
        """
        return np.asarray(self._call_model("predict", X))

    def _best_model_has(self, name: str) -> bool:
        return "best_estimator_" in vars(self) and hasattr(self.best_estimator_[-1], name)

    def _explains(self, question: str) -> bool:
        return self._best_model_has(question)

    def _explained(self, question: str, X: Any, labels: bool) -> Any:
        return self._call_model(question, X, labels=labels)

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
    """Classifier that chooses scaling, kernels, cost and method by cross-validation.

    Columns are scaled, strings become indicators and missing values are imputed inside the folds,
    so that nothing is learned from held-out samples. Then single kernels, uniform averages and
    methods that learn weights are compared on the same folds, cheap ones first; with several
    `views` also methods whose weights differ between samples. ``leaderboard_`` contains the scores
    of all candidates.

    Probabilities come from the held-out decisions of the best model, without another fit.

    Attributes
    ----------
    calibration_ : Calibration or None
        Map from decisions of the best model to probabilities; None if unknown.
    classes_ : array of shape (n_classes,)

    Notes
    -----
    Kernels of a view are linear and quadratic ones with mean diagonal one, and RBF kernels with
    ``gamma`` from ``2^-5`` to ``2^3`` times the reciprocal of the median squared distance. Costs
    are ``2^-3`` to ``2^9``. With more than 6,000 samples the search uses 4,000 of them, and the
    best few candidates are evaluated on all.

    Results depend on `random_state` alone, unless there is a `time_limit`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from lokl import AutoMKLClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = AutoMKLClassifier(methods=["UniformMKL"], random_state=0).fit(X, y)
    >>> bool(model.best_score_ > 0.95)
    True
    >>> model.predict_proba(X).shape
    (178, 3)
    """

    class_weight: Any = setting(
        None,
        Rule('dict, "balanced" or None', _check_class_weight),
        "Factors of the cost by class, for methods that are given by name.",
    )

    _kind: ClassVar[str] = "Classifier"

    def _check_targets(self, y: Any) -> tuple[Array, dict[str, Any]]:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        y = np.asarray(numeric_labels(column_or_1d(y, warn=True)))
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        classes = np.unique(y)
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of two or more classes; the data has one "
                f"class: {classes[0]}"
            )
        return y, {"classes_": classes}

    def _unit_cost(self, y: Array, weight: Array) -> float:
        if len(np.unique(y[weight > 0])) < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of two or more classes; all samples of other "
                f"classes than {y[weight > 0][0]} have a sample_weight of 0"
            )
        return 1.0

    def _method_settings(self, unit_cost: float) -> dict[str, Any]:
        return {"class_weight": self.class_weight}

    @available_if(_if_best_model_has("decision_function"))
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
        return is_calibrated or self._best_model_has("predict_proba")


@settings
class AutoMKLRegressor(RegressorMixin, AutoMKL):
    """Regressor that chooses scaling, kernels, cost and method by cross-validation.

    As :class:`AutoMKLClassifier`, with the coefficient of determination as the score. Costs and the
    width of the epsilon tube are multiples of the standard deviation of the targets, so that the
    unit of the targets does not matter.

    Notes
    -----
    Kernels of a view are linear and quadratic ones with mean diagonal one, and RBF kernels with
    ``gamma`` from ``2^-5`` to ``2^3`` times the reciprocal of the median squared distance. With
    more than 6,000 samples the search uses 4,000 of them, and the best few candidates are evaluated
    on all.

    Results depend on `random_state` alone, unless there is a `time_limit`.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl import AutoMKLRegressor
    >>> X = np.linspace(0, 6, 60)[:, np.newaxis]
    >>> model = AutoMKLRegressor(methods=["UniformMKL"], random_state=0)
    >>> bool(model.fit(X, np.sin(X[:, 0])).best_score_ > 0.9)
    True
    """

    epsilon: float = setting(
        0.05,
        NOT_NEGATIVE,
        "Errors below this many standard deviations of the target cost nothing.",
    )

    _kind: ClassVar[str] = "Regressor"

    def _check_targets(self, y: Any) -> tuple[Array, dict[str, Any]]:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        if y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        if len(y) < 2:
            raise ValueError(f"{type(self).__name__} needs two samples or more, got 1 sample")
        return y, {}

    def _unit_cost(self, y: Array, weight: Array) -> float:
        return target_spread(y, weight)

    def _method_settings(self, unit_cost: float) -> dict[str, Any]:
        # The tolerance of an SVM is in the unit of its targets.
        return {"epsilon": self.epsilon * unit_cost, "tol": _TOLERANCE * unit_cost}
