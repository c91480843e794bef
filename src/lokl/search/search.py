"""Grid search with scikit-learn's interface, on work that candidates share."""

import time
from copy import deepcopy
from dataclasses import MISSING
from numbers import Real
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import clone, is_classifier
from sklearn.metrics._scorer import _MultimetricScorer
from sklearn.model_selection import ParameterGrid, check_cv
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import _check_method_params, indexable

from lokl._frames import as_pandas
from lokl._survival import read_target
from lokl._threads import single_threaded_blas
from lokl._warnings import DeferredWarnings
from lokl.base.model import atomic_fit, model_layers, publish
from lokl.base.settings import (
    CALLBACK,
    FLAG,
    JOBS,
    POSITIVE,
    Rule,
    anything,
    check_settings,
    one_of,
    or_none,
    setting,
    settings,
)
from lokl.base.survival import SurvivalMixin
from lokl.search.calibration import CalibratedPredictions, calibrate_fold_results
from lokl.search.cross_validation import as_indices, sample_weight_params
from lokl.search.evaluation import evaluate_candidates
from lokl.search.results import (
    RULES,
    Candidate,
    choose,
    cv_results,
    final_scores,
    grid_complexity,
    last_round,
    warn_at_grid_boundary,
)
from lokl.search.tasks import SearchTask
from lokl.solvers.machines import Fold


def _check_estimator(name: str, value: Any) -> None:
    if isinstance(value, type) or not hasattr(value, "fit"):
        raise ValueError(f"{name} must be an estimator, an object with a method fit, got {value!r}")


def _check_refit(name: str, value: Any) -> None:
    if not isinstance(value, bool | np.bool_ | str) and not callable(value):
        raise ValueError(
            f"{name} must be True, False, the name of a score or a function of cv_results_, "
            f"got {value!r}"
        )


def _check_error_score(name: str, value: Any) -> None:
    if value != "raise" and (isinstance(value, bool) or not isinstance(value, Real)):
        raise ValueError(f"{name} must be a number or 'raise', got {value!r}")


@settings
class KernelSearchCV(CalibratedPredictions, BaseSearchCV):
    """Cross-validated search over a grid, with the interface of ``GridSearchCV``.

    Candidates of estimators of this library, alone or at the end of a pipeline, share work. Single
    SVMs (``UniformMKL``) use one Gram matrix for all costs and folds, or as many of its rows as fit
    into memory. For other methods, candidates that differ only in their costs are fitted one after
    the other, each from the solution of the last one. Transformers of a pipeline are fitted once
    for each fold. Other estimators are fitted as in ``GridSearchCV``.

    Classifiers without probabilities of their own get them from the held-out decisions of the best
    candidate.

    A warning is issued if the best candidate is at the boundary of the grid.

    Attributes
    ----------
    best_estimator_ : estimator
        Best candidate, fitted on all samples.
    best_params_ : dict
        Its parameters.
    best_score_ : float
        Its mean held-out score. Not available if `refit` is a function.
    best_index_ : int
        Its index in ``cv_results_``.
    cv_results_ : dict of arrays
        All scores and times, as in ``GridSearchCV``.
    scorer_ : function or dict
        Scorer, or scorers by name.
    n_splits_ : int
        Number of folds.
    calibration_ : Calibration or None
        Map from decisions of the best candidate to probabilities; None if unknown.
    refit_time_ : float
        Seconds of the final fit.
    multimetric_ : bool
        Whether there are several scores.
    classes_ : array of shape (n_classes,)

    See Also
    --------
    sklearn.model_selection.GridSearchCV : The same interface for any estimator.
    lokl.AutoMKLClassifier : Chooses everything.
    lokl.explain.SearchDisplay : Figure of the candidates.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from lokl import KernelSearchCV, UniformMKLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> grid = {"C": [0.1, 1.0, 10.0, 100.0], "kernels": ["rbf", "linear"]}
    >>> search = KernelSearchCV(UniformMKLClassifier(), grid, rule="one_se").fit(X, y)
    >>> search.best_params_
    {'C': 10.0, 'kernels': 'rbf'}
    """

    estimator: Any = setting(
        MISSING,
        Rule("estimator", _check_estimator),
        "Estimator or pipeline to search.",
        kw_only=False,
    )
    param_grid: Any = setting(
        MISSING,
        anything("dict or list of dict"),
        "Values to try by parameter name. A list of such grids is searched one after the other.",
        kw_only=False,
    )
    cv: Any = setting(
        5,
        anything("int, splitter or iterable of splits"),
        "An int is the number of folds, stratified for classifiers, and by event for censored "
        "times.",
    )
    scoring: Any = setting(
        None,
        anything("str, callable, list, tuple, dict or None"),
        "As in ``GridSearchCV``: one score, or several by name. None: the score of the estimator.",
    )
    refit: Any = setting(
        True,
        Rule("bool, str or callable", _check_refit),
        "Whether to fit the best candidate on all samples. With several scores, the name of the "
        "one that decides. A function of ``cv_results_`` returns the index of the best row.",
    )
    rule: str = setting(
        "best",
        one_of(*RULES),
        'Rule for the best candidate: "best" is the best mean score; "one_se" is the simplest '
        "candidate within one standard error of it (smallest `C`, then widest kernel, then fewest "
        "kernels). Ignored if `refit` is a function.",
    )
    adaptive: bool = setting(
        False,
        FLAG,
        "Whether to skip candidates that are unlikely to be the best. Estimators of this library "
        "scored by accuracy or R squared race over the folds: candidates 2.5 standard errors "
        "behind the best after some folds are skipped. Otherwise larger costs are skipped if the "
        "score has decreased three times in a row along `C`. Skipped candidates have NaN scores "
        "and True in the column ``skipped``.",
    )
    halving: bool = setting(
        False,
        FLAG,
        "Whether, above 10,000 samples, to fit all candidates on a ninth of the training rows, the "
        "best third of them on a third, and the best third of those on all.",
    )
    time_limit: float | None = setting(
        None,
        or_none(POSITIVE),
        "Seconds after which no other candidate is started, with a warning. The best candidate so "
        "far is chosen.",
    )
    n_jobs: int | None = setting(
        None,
        JOBS,
        "Number of threads for single SVMs, None for one per core; for other estimators of this "
        "library, number of folds in threads; otherwise number of processes.",
    )
    error_score: Any = setting(
        np.nan,
        Rule('"raise" or number', _check_error_score),
        'Score of a candidate that cannot be fitted, with a warning. "raise" raises the error.',
    )
    return_train_score: bool = setting(
        False, FLAG, "Whether to include scores on the training rows in ``cv_results_``."
    )
    verbose: int = setting(
        0, anything("int"), "1 logs a line for every group of candidates to the logger ``lokl``."
    )
    callback: Any = setting(
        None, CALLBACK, "Called with a :class:`Progress` after every candidate."
    )

    @atomic_fit
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Any:
        """Evaluate the candidates, and fit the best one on all samples.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional
            For the estimator, or the steps of a pipeline that support weights, and for scores that
            do.
        **params
            For the ``fit`` of the estimator, and ``groups`` for the splitter. Arrays with a value
            for each sample are indexed by fold.

        Returns
        -------
        self
        """
        if sample_weight is not None:
            params["sample_weight"] = sample_weight
        # Many small fits, which would wait for the threads of BLAS.
        with DeferredWarnings(), single_threaded_blas():
            task, metric = self._task(X, y, params)
            rows, n_splits = self._evaluated(task), len(task.splits)
            results = cv_results(self, rows, n_splits, self._more_columns(rows))
            fitted = self._choose_and_refit(task, metric, rows, results)
            single = not isinstance(task.scorers, _MultimetricScorer)
            fitted["scorer_"] = task.scorers if single else task.scorers._scorers
        publish(self, {**fitted, "cv_results_": results, "n_splits_": n_splits})
        return self

    def _task(self, X: Any, y: Any, params: dict[str, Any]) -> tuple[SearchTask, Any]:
        """Check all input, and return the task and the name of the score that decides."""
        check_settings(self)
        scorers, metric = self._get_scorers()
        if y is None and get_tags(self.estimator).target_tags.required:
            name = type(self.estimator).__name__
            raise ValueError(f"{name} requires y to be passed, but the target y is None")
        y = numeric_labels(y) if is_classifier(self.estimator) else y
        X, y = indexable(as_pandas(X), y)
        routed = self._get_routed_params_for_fit(_check_method_params(X, params=params))
        fit_params = dict(routed.estimator.fit)
        if isinstance(self.estimator, Pipeline) and not get_config()["enable_metadata_routing"]:
            weight = fit_params.pop("sample_weight", None)
            fit_params.update(sample_weight_params(self.estimator, weight))
        task = SearchTask(
            estimator=clone(self.estimator),
            candidates=_candidates(self.param_grid),
            X=X,
            y=y,
            fit_params=fit_params,
            score_params=dict(routed.scorer.score),
            splits=self._splits(X, y, routed.splitter.split),
            scorers=scorers,
            error_score=self.error_score,
            return_train_score=self.return_train_score,
            n_jobs=self.n_jobs,
        )
        return task, metric

    def _evaluated(self, task: SearchTask) -> list[Candidate]:
        """Return the evaluated candidates of all rounds."""
        return evaluate_candidates(
            task,
            metric=self.refit if isinstance(self.refit, str) else None,
            adaptive=self.adaptive,
            halving=self.halving,
            time_limit=self.time_limit,
            callback=self.callback,
            verbose=self.verbose,
        )

    def _is_survival(self) -> bool:
        # A pipeline may have no model yet, which a candidate then sets.
        model, _ = next(model_layers(self.estimator), (None, None))
        return isinstance(model, SurvivalMixin)

    def _check_scorers_accept_sample_weight(self) -> bool:
        # Concordance has no weights. A warning about every search with weights would not help.
        if self.scoring is None and self._is_survival():
            return False
        return bool(super()._check_scorers_accept_sample_weight())

    def _splits(self, X: Any, y: Any, split_params: Any) -> list[Fold]:
        stratified = is_classifier(self.estimator)
        if self._is_survival():
            y, stratified = read_target(y)["event"], True
        # The estimator checks for infinite targets and NaN.
        with np.errstate(invalid="ignore"):
            cv = check_cv(self.cv, y, classifier=stratified)
        expected = cv.get_n_splits(X, y, **split_params)
        splits = as_indices(cv.split(X, y, **split_params))
        if len(splits) != expected:
            raise ValueError(
                f"cv.split and cv.get_n_splits return inconsistent results. Expected {expected} "
                f"splits, got {len(splits)}"
            )
        if not splits:
            raise ValueError(f"cv={self.cv!r} gives no splits; at least one is needed")
        return splits

    def _more_columns(self, rows: list[Candidate]) -> dict[str, list[Any]]:
        columns: dict[str, list[Any]] = {}
        if self.halving:
            columns["iter"] = [row.iteration for row in rows]
            columns["n_resources"] = [row.n_resources for row in rows]
        if self.adaptive or self.time_limit is not None:
            columns["skipped"] = [row.fold_results is None for row in rows]
        return columns

    def _choose_and_refit(
        self, task: SearchTask, metric: Any, rows: list[Candidate], results: dict[str, Any]
    ) -> dict[str, Any]:
        """Choose the best candidate and fit it; return fitted attributes."""
        # Only a fit that succeeded shows whether a function returns one score or several.
        fold_results = [result for row in rows for result in row.fold_results or ()]
        scores = next(result.test_scores for result in fold_results if result.error is None)
        fitted: dict[str, Any] = {"multimetric_": isinstance(scores, dict)}
        if callable(self.scoring) and fitted["multimetric_"]:
            self._check_refit_for_multimetric(scores)
            metric = self.refit
        if not self.refit and fitted["multimetric_"]:
            return fitted
        if callable(self.refit):
            best = self._select_best_index(self.refit, metric, results)
        else:
            means = results[f"mean_test_{metric}"]
            best = self._best_row(results, metric, last_round(rows))
            fitted["best_score_"] = means[best]
            final = final_scores(rows, means)
            candidates = [task.candidates[candidate] for candidate in final]
            warn_at_grid_boundary(candidates, np.array([*final.values()]))
        params = results["params"][best]
        fitted.update(best_index_=best, best_params_=params)
        if self.refit:
            fitted.update(_refit(task, params))
            fitted["calibration_"] = calibrate_fold_results(
                task, fitted["best_estimator_"], rows[best].fold_results or []
            )
        return fitted

    def _best_row(self, results: dict[str, Any], metric: str, rows: list[int]) -> int:
        """Return the index of the chosen row of ``cv_results_`` among some of them."""
        means = results[f"mean_test_{metric}"][rows]
        if np.isnan(means).all():
            return rows[0]
        n_splits = sum(f"split{k}_test_{metric}" in results for k in range(len(results)))
        errors = results[f"std_test_{metric}"][rows] / np.sqrt(n_splits)
        params = results["params"]
        return rows[choose(means, errors, self.rule, lambda i: grid_complexity(params[rows[i]]))]

    def _has_probabilities(self) -> bool:
        if not self.refit:
            raise AttributeError(
                f"{type(self).__name__} has refit=False, but probabilities are those of the best "
                "model, fitted on all samples; set refit=True"
            )
        if getattr(self, "calibration_", None) is not None:
            return True
        return hasattr(getattr(self, "best_estimator_", self.estimator), "predict_proba")

    def _call_model(self, name: str, X: Any) -> Any:
        return getattr(self.best_estimator_, name)(X)

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the samples."""
        return int(super().n_features_in_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags = deepcopy(get_tags(self.estimator).target_tags)
        return tags


def _candidates(param_grid: Any) -> list[dict[str, Any]]:
    candidates = list(ParameterGrid(param_grid))
    if not candidates:
        raise ValueError(f"param_grid={param_grid!r} has no candidates; give at least one")
    return candidates


def numeric_labels(y: Any) -> Any:
    """Return numeric labels of dtype object as a numeric array, because scorers reject these."""
    if getattr(y, "dtype", None) == np.dtype(object) and all(
        isinstance(label, Real) for label in y
    ):
        return np.array(list(y))
    return y


def _refit(task: SearchTask, params: dict[str, Any]) -> dict[str, Any]:
    best = clone(task.estimator).set_params(**clone(params, safe=False))
    start = time.perf_counter()
    if task.y is None:
        best.fit(task.X, **task.fit_params)
    else:
        best.fit(task.X, task.y, **task.fit_params)
    fitted = {"best_estimator_": best, "refit_time_": time.perf_counter() - start}
    if hasattr(best, "feature_names_in_"):
        fitted["feature_names_in_"] = best.feature_names_in_
    return fitted
