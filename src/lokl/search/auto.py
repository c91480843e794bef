"""What both estimators share: from samples to the winner, and what the winner has to say.

A classifier for which everything is chosen.

A regressor for which everything is chosen.
"""

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import check_scoring
from sklearn.model_selection import GroupKFold, KFold, check_cv
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

from lokl._arrays import Array, column, is_sparse
from lokl._frames import table_of
from lokl._threads import single_threaded_blas
from lokl._warnings import DeferredWarnings
from lokl.base import setting, settings
from lokl.base.classifier import _check_class_weight
from lokl.base.delegation import ExplanationMixin
from lokl.base.model import FEATURE_ATTRIBUTES, AttributeDocs, atomic_fit, publish
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
from lokl.base.validation import check_weights
from lokl.search.auto_search import (
    Arena,
    Contender,
    Deadline,
    Leaderboard,
    LeaderboardRow,
    Plan,
    Tournament,
    View,
    contenders,
    one_by_one,
    take,
    views_of,
)
from lokl.search.calibration import CalibratedAnswers
from lokl.search.columns import PrepareColumns, ReadColumns
from lokl.search.cross_validation import as_numbers, class_splits
from lokl.search.results import RULES
from lokl.search.search import _plain_labels


def _has(name: str) -> Any:
    return lambda auto: auto._wins_with(name)


def _check_views(name: str, value: Any) -> None:
    if value is not None and (not hasattr(value, "items") or not len(value)):
        raise ValueError(
            f"{name} must be a mapping of names to columns, such as {{'blood': ['iron', 'zinc']}}, "
            f"or None, got {value!r}"
        )


@settings
class AutoMKL(ExplanationMixin, BaseEstimator):
    """The search for a model, and its answers."""

    views: Any = setting(
        None,
        Rule("mapping of str to columns, or None", _check_views),
        "Columns that belong together, by name, as :func:`lokl.join_views` gives them. Every view "
        "has kernels of its own; a sample that has NaN in all columns of a view lacks it. None is "
        "one view of all columns.",
        kw_only=False,
    )
    kernels: Any = setting(
        None,
        anything("list or mapping of kernels, or None"),
        "What to try in the place of linear, quadratic and RBF kernels of each view. They see the "
        "scaled columns; stored matrices are left as they are.",
        kw_only=False,
    )
    methods: Any = setting(
        "auto",
        anything('"auto", or list of str and estimators'),
        'What is tried: names such as "UniformMKL", "SimpleMKL" or "TrustedVote", and estimators. '
        '"auto" is single kernels, uniform mixes, l_p-norm MKL and SimpleMKL; with several views '
        "also the trusted vote and C-LMKL.",
    )
    every_view: bool = setting(
        False,
        FLAG,
        "Whether the winner must have kernels of its own for each of `views`, and no kernel of "
        "several: parts of its decisions can then be told apart by view, and a sample is answered "
        "whichever views it lacks. Kernels that a user gives are not looked at.",
    )
    cv: Any = setting(
        5,
        anything("int, splitter or iterable of splits"),
        "A number is that of folds, shuffled; those of classifiers have all classes as far as they "
        "go, and groups stay together.",
    )
    scoring: Any = setting(
        None, anything("str, callable or None"), "What decides; None is the estimator's own score."
    )
    rule: str = setting(
        "one_se",
        one_of(*RULES),
        'Who wins: "best" is the best mean score; "one_se" is the best of the simplest kind of '
        "method that is within one standard error of it: single kernels and uniform mixes, then "
        "learned weights, then learned trust; of this kind the one that is good at the next costs, "
        "too.",
    )
    time_limit: float | None = setting(
        None,
        or_none(POSITIVE),
        "Seconds for search and final fit; the best so far wins. Where even the final fit takes "
        "too long, it learns from fewer samples, with a warning.",
    )
    random_state: Any = setting(
        None, SEED, "Of folds, of parts of many samples, and of methods that draw."
    )
    n_jobs: int | None = setting(
        None, JOBS, "Threads of single machines, None for one a core; for others folds in threads."
    )
    verbose: int = setting(
        0, anything("int"), "1 logs a line about every stage to the logger ``lokl``."
    )

    _kind: ClassVar[str]
    _results: ClassVar[Any] = ()

    @abstractmethod
    def _targets(self, y: Any) -> tuple[Array, dict[str, Any]]:
        """Check targets; return them and what they tell."""

    @abstractmethod
    def _splits(self, y: Array, groups: Any, rng: np.random.RandomState) -> list[Any]:
        """Folds of samples."""

    @abstractmethod
    def _unit_cost(self, y: Array, weight: Array) -> float:
        """What a cost of one means."""

    def _settings_of_methods(self, unit_cost: float, seed: int) -> dict[str, Any]:
        """Settings of all methods that are made here."""
        return {"random_state": seed}

    @atomic_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Any:
        """Choose a model and fit it.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            Numbers, words, categories and truth values; missing values are NaN or None.
        y : array-like of shape (n_samples,)
            Labels of any type, two or more classes; of regressors numbers, also of shape
            (n_samples, n_targets).
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts like the row written twice, 0 like no row.
        groups : array-like of shape (n_samples,), optional
            Samples of one group are in one fold.

        Returns
        -------
        self
        """
        check_settings(self)
        deadline = Deadline(self.time_limit)
        # Many fits, none of which should wait for threads of BLAS.
        with DeferredWarnings(), single_threaded_blas():
            # Before anything is read, so that a wrong name is told at once.
            contenders(self.methods, self._kind, True, {})
            reader = ReadColumns().fit(X)
            numbers = reader.transform(X)
            y, told = self._targets(y)
            check_consistent_length(numbers, y)
            tournament = self._tournament(X, numbers, y, sample_weight, groups, reader, deadline)
            tournament.play()
            winner = tournament.winner()
            fitted, rows = tournament.fitted(winner)
            results = {
                **told,
                **self._known(reader, fitted, rows),
                "calibration_": tournament.calibration(winner),
                "best_score_": winner.mean,
                "best_method_": winner.candidate.method,
                "_rows": tournament.board.rows(),
            }
        publish(self, results)
        return self

    def _known(self, reader: ReadColumns, fitted: Pipeline, rows: Array) -> dict[str, Any]:
        """What is known of a winner that has learned from some rows."""
        known = {
            "best_estimator_": Pipeline([("read", reader), *fitted.steps]),
            "kernel_names_": getattr(fitted[-1], "kernel_names_", None),
            "n_samples_fit_": len(rows),
            "n_features_in_": reader.n_features_in_,
        }
        if hasattr(fitted[-1], "support_"):
            known["support_"] = rows[fitted[-1].support_]
        if hasattr(reader, "feature_names_in_"):
            known["feature_names_in_"] = reader.feature_names_in_
        return known

    def _tournament(
        self,
        X: Any,
        numbers: Any,
        y: Array,
        sample_weight: Any,
        groups: Any,
        reader: ReadColumns,
        deadline: Deadline,
    ) -> Tournament:
        weight = check_weights(sample_weight, numbers)
        rng = check_random_state(self.random_state)
        places = None
        if self.views is not None:
            places = [reader.places(columns, X) for columns in self.views.values()]
        arena = Arena(
            numbers,
            y,
            None if sample_weight is None else weight,
            self._splits(y, take(groups, np.arange(len(y))), rng),
            check_scoring(self, self.scoring),
            self._preparation(places),
            self.n_jobs,
            self.verbose,
            np.arange(len(y)),
        )
        if (weight <= 0).any():
            # A weight of zero is the same as no row at all.
            arena = arena.part(np.flatnonzero(weight > 0))
        unit_cost = self._unit_cost(y, weight)
        made = self._contenders(unit_cost, int(rng.randint(2**31 - 1)))
        given = None if self.kernels is None else one_by_one(self.kernels)
        views = self._dictionary_views(numbers, places)
        every_view = self.every_view and given is None and len(views) > 1
        plan = Plan(made, views, given, unit_cost, self.time_limit is not None, every_view)
        board = Leaderboard(may_win=plan.may_win)
        is_classifier = self._kind == "Classifier"
        return Tournament(arena, plan, self.rule, deadline, is_classifier, rng, board)

    def _contenders(self, unit_cost: float, seed: int) -> list[Contender]:
        several = self.views is not None and len(self.views) > 1
        own = self._settings_of_methods(unit_cost, seed)
        return list(contenders(self.methods, self._kind, several, own))

    def _preparation(self, places: Any) -> PrepareColumns:
        if self.kernels is None:
            return PrepareColumns(places)
        stored = any(k.is_stored for one in one_by_one(self.kernels) for k in one.values())
        return PrepareColumns(places, unit=False, scale=not stored)

    def _dictionary_views(self, numbers: Any, places: Any) -> list[View]:
        if places is None:
            return [View(None, None)]
        complete = [
            is_sparse(numbers) or not np.isnan(numbers[:, own]).all(axis=1).any() for own in places
        ]
        return views_of([*map(str, self.views)], [len(own) for own in places], complete)

    @property
    def leaderboard_(self) -> Any:
        """All candidates, best first: a data frame where pandas is there, else a list of rows."""
        check_is_fitted(self)
        return table_of(self._rows, LeaderboardRow._fields)

    def _answer(self, name: str, X: Any, **options: Any) -> Any:
        """Ask the last step about samples that the others have prepared."""
        check_is_fitted(self)
        prepared = self.best_estimator_[:-1].transform(X)
        told = getattr(self.best_estimator_[-1], name)(prepared, **options)
        # Prepared samples are arrays, without the index of a data frame.
        has_index = options.get("labels") and hasattr(X, "columns") and hasattr(X, "index")
        return told.set_axis(X.index) if has_index else told

    def predict(self, X: Any) -> Array:
        """What the winner predicts.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)

        Returns
        -------
        predictions : array of shape (n_samples,), or (n_samples, n_targets)
        """
        return np.asarray(self._answer("predict", X))

    def _wins_with(self, name: str) -> bool:
        """Whether the winner has a method."""
        return "best_estimator_" in vars(self) and hasattr(self.best_estimator_[-1], name)

    def _explains(self, question: str) -> bool:
        return self._wins_with(question)

    def _explained(self, question: str, X: Any, labels: bool) -> Any:
        return self._answer(question, X, labels=labels)

    def __getattr__(self, name: str) -> Any:
        """What the winner has learned, such as ``intercept_``, is known of the whole."""
        if name.startswith("_") or not name.endswith("_") or name in FEATURE_ATTRIBUTES:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        check_is_fitted(self)
        return getattr(self.best_estimator_[-1], name)

    @classmethod
    def _attribute_docs(cls) -> AttributeDocs:
        return {
            "best_estimator_": (
                "Pipeline",
                "The winner, fitted on all samples: reading, preparation, model. What the model "
                "has learned, such as ``intercept_`` or ``weights_``, is found here, too; its "
                "kernels and support vectors are those of prepared columns.",
            ),
            "best_method_": ("str", "Its method, as in ``leaderboard_``."),
            "best_score_": ("float", "Its mean held-out score."),
            "leaderboard_": (
                "data frame, or list of LeaderboardRow without pandas",
                "All candidates, best first: method, kernels, C, held-out score and its standard "
                "error, seconds, samples that took part, and the error of those that failed.",
            ),
            "kernel_names_": ("list of str or None", "Kernels of the winner."),
            "n_samples_fit_": ("int", "Samples that the winner learned from."),
            "support_": (
                "array of shape (n_support,)",
                "Rows of the training samples, as given, that carry the winner, where it has any.",
            ),
            **FEATURE_ATTRIBUTES,
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags


@settings
class AutoMKLClassifier(ClassifierMixin, AutoMKL, CalibratedAnswers):
    """Scaling, kernels, cost and method chosen by cross-validation, for classes.

    Columns are scaled, words become indicators and missing values are filled in inside the folds,
    so that nothing is learned from samples that judge. Then single kernels, uniform mixes and
    methods that learn weights are compared on the same folds, cheap ones first; with several
    `views` also methods that learn whom to trust where. ``leaderboard_`` tells how all of them did.

    Probabilities come from the held-out decisions of the winner, without another fit.

    Notes
    -----
    Kernels of a view are linear and quadratic ones with mean diagonal one, and RBF kernels with
    ``gamma`` from ``2^-5`` to ``2^3`` times the reciprocal of the median squared distance. Costs
    are ``2^-3`` to ``2^9``. With more than 6,000 samples the search is on 4,000 of them, and the
    best few candidates are judged on all.

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
        "Factors of the cost by class, of methods that are given by name.",
    )

    _kind: ClassVar[str] = "Classifier"

    def _targets(self, y: Any) -> tuple[Array, dict[str, Any]]:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        y = np.asarray(_plain_labels(column_or_1d(y, warn=True)))
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        classes = np.unique(y)
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of two or more classes; the data has one "
                f"class: {classes[0]}"
            )
        return y, {"classes_": classes}

    def _splits(self, y: Array, groups: Any, rng: np.random.RandomState) -> list[Any]:
        if not isinstance(self.cv, int | np.integer):
            return class_splits(self.cv, y, groups)
        order = rng.permutation(len(y))
        shuffled = None if groups is None else np.asarray(groups)[order]
        splits = class_splits(self.cv, y[order], shuffled)
        return [(np.sort(order[kept]), np.sort(order[left])) for kept, left in splits]

    def _unit_cost(self, y: Array, weight: Array) -> float:
        if len(np.unique(y[weight > 0])) < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of two or more classes; all samples of other "
                f"classes than {y[weight > 0][0]} have a sample_weight of 0"
            )
        return 1.0

    def _settings_of_methods(self, unit_cost: float, seed: int) -> dict[str, Any]:
        return {"random_state": seed, "class_weight": self.class_weight}

    @available_if(_has("decision_function"))
    def decision_function(self, X: Any) -> Array:
        """Decision values of the winner.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)

        Returns
        -------
        decision : array of shape (n_samples,), or (n_samples, n_classes) for more than two
        """
        return np.asarray(self._answer("decision_function", X))

    @available_if(_has("predict_proba_alone"))
    def predict_proba_alone(self, X: Any) -> Array:
        """Probability of each class given one kernel at a time, if the best model has it.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)

        Returns
        -------
        probabilities : array of shape (n_samples, n_kernels, n_classes)
        """
        return np.asarray(self._answer("predict_proba_alone", X))

    def _has_probabilities(self) -> bool:
        known = getattr(self, "calibration_", None) is not None
        return known or self._wins_with("predict_proba")

    @classmethod
    def _attribute_docs(cls) -> AttributeDocs:
        return {
            **super()._attribute_docs(),
            "calibration_": (
                "Calibration or None",
                "Turns decisions of the winner into probabilities; None where these are unknown.",
            ),
            "classes_": ("array of shape (n_classes,)", ""),
        }


# Of targets with a standard deviation of one.
_TOLERANCE = 1e-3


@settings
class AutoMKLRegressor(RegressorMixin, AutoMKL):
    """Scaling, kernels, cost and method chosen by cross-validation, for numbers.

    As :class:`AutoMKLClassifier`, with the coefficient of determination as the score. Costs and
    the width of the tube are multiples of the standard deviation of the targets, so that these may
    be in any unit.

    Notes
    -----
    Kernels of a view are linear and quadratic ones with mean diagonal one, and RBF kernels with
    ``gamma`` from ``2^-5`` to ``2^3`` times the reciprocal of the median squared distance. With
    more than 6,000 samples the search is on 4,000 of them, and the best few candidates are judged
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

    def _targets(self, y: Any) -> tuple[Array, dict[str, Any]]:
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

    def _splits(self, y: Array, groups: Any, rng: np.random.RandomState) -> list[Any]:
        X, cv = np.zeros((len(y), 1)), self.cv
        if isinstance(cv, int | np.integer):
            if cv < 2:
                raise ValueError(
                    f"cv must be two or more folds, a splitter or a list of splits, got {cv}"
                )
            if groups is None:
                # A score needs two samples.
                count = min(int(cv), max(2, len(y) // 2))
                cv = KFold(count, shuffle=True, random_state=rng.randint(2**31 - 1))
            else:
                n_groups = len(np.unique(np.asarray(groups)))
                if n_groups < 2:
                    raise ValueError(
                        f"groups name {n_groups} group; folds that keep groups together need two"
                    )
                cv = GroupKFold(min(int(cv), n_groups))
        return as_numbers(check_cv(cv, y, classifier=False).split(X, y, groups))

    def _unit_cost(self, y: Array, weight: Array) -> float:
        targets = column(y)
        mean = np.average(targets, axis=0, weights=weight)
        spread = np.sqrt(np.average((targets - mean) ** 2, axis=0, weights=weight)).mean()
        # Targets that do not differ, but for rounding, need no particular cost.
        return float(spread) if spread > 1e-12 * np.abs(mean).max() else 1.0

    def _settings_of_methods(self, unit_cost: float, seed: int) -> dict[str, Any]:
        # A machine is solved to a tolerance in the unit of its targets.
        return {
            "random_state": seed,
            "epsilon": self.epsilon * unit_cost,
            "tol": _TOLERANCE * unit_cost,
        }
