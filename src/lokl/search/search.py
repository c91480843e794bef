"""Probabilities of the winner of a search, from decisions that the search has made already.

Search over a grid with scikit-learn's contract, on work that candidates share.
"""

import time
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import MISSING
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.metrics._scorer import _MultimetricScorer
from sklearn.model_selection import ParameterGrid, check_cv
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import get_tags
from sklearn.utils.validation import _check_method_params, indexable

from lokl._arrays import Array
from lokl._threads import single_threaded_blas
from lokl._warnings import DeferredWarnings
from lokl.base.model import FEATURE_ATTRIBUTES, AttributeDocs, atomic_fit, publish
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
from lokl.search.calibration import CalibratedAnswers, Calibration
from lokl.search.evaluation import Rounds, final_scores, last_round
from lokl.search.results import RULES, Row, choose, cv_results, warn_of_edges
from lokl.search.tasks import Cell, Task


def calibration_of(task: Task, cells: Sequence[Cell]) -> Calibration | None:
    """Calibrate the held-out decisions of a candidate.

    Parameters
    ----------
    task : Task
    cells : sequence of Cell
        Of one candidate, one for each split.

    Returns
    -------
    calibration : Calibration or None
        None where the classifier has probabilities of its own, where decisions are not known,
        where a fold has not seen all classes, or where the candidate was fitted on a part of the
        samples only.
    """
    if not is_classifier(task.estimator) or hasattr(task.estimator, "predict_proba"):
        return None
    classes, codes = np.unique(np.ravel(task.y), return_inverse=True)
    tasks = 1 if len(classes) == 2 else len(classes)
    known = [cell.decision for cell in cells if cell.decision is not None]
    tests = [task.splits[cell.split][1] for cell in cells]
    expected = [(len(test), tasks) for test in tests]
    if not known or [decision.shape for decision in known] != expected:
        return None
    rows = np.concatenate(tests)
    weight = next(
        (v for name, v in task.fit_params.items() if name.endswith("sample_weight")), None
    )
    return Calibration.learn(
        np.concatenate(known),
        codes[rows],
        len(classes),
        None if weight is None else np.asarray(weight, dtype=float)[rows],
    )


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
class KernelSearchCV(CalibratedAnswers, BaseSearchCV):
    """Cross-validated search over a grid, with the contract of scikit-learn's ``GridSearchCV``.

    Candidates of estimators of this library, alone or at the end of a pipeline, share work. Single
    machines (``UniformMKL``) have one matrix for all costs and folds, or as many rows of it as
    their memory holds; of other methods, candidates that differ only in their costs are fitted one
    after the other, each from where the last one ended. Transformers of a pipeline are fitted once
    for each fold. Other estimators are fitted as ``GridSearchCV`` does.

    Classifiers without probabilities of their own get them from the held-out decisions of the
    winner.

    A warning tells where the best candidate lies on the edge of the grid.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from lokl import UniformMKLClassifier
    >>> from lokl.search import KernelSearchCV
    >>> X, y = load_iris(return_X_y=True)
    >>> grid = {"C": [0.1, 1.0, 10.0, 100.0], "kernels": ["rbf", "linear"]}
    >>> search = KernelSearchCV(UniformMKLClassifier(), grid, rule="one_se").fit(X, y)
    >>> search.best_params_
    {'C': 10.0, 'kernels': 'rbf'}
    """

    estimator: Any = setting(
        MISSING, Rule("estimator", _check_estimator), "What is fitted.", kw_only=False
    )
    param_grid: Any = setting(
        MISSING,
        anything("dict or list of dict"),
        "Values to try by name of parameter; a list of such grids is searched one after the other.",
        kw_only=False,
    )
    cv: Any = setting(
        5,
        anything("int, splitter or iterable of splits"),
        "A number is that of folds, stratified for classifiers.",
    )
    scoring: Any = setting(
        None,
        anything("str, callable, list, tuple, dict or None"),
        "As in ``GridSearchCV``: one score, or several by name; None is the estimator's own.",
    )
    refit: Any = setting(
        True,
        Rule("bool, str or callable", _check_refit),
        "Whether the winner is fitted on all samples. With several scores, the name of the one that"
        " decides. A function of ``cv_results_`` returns the row that wins.",
    )
    rule: str = setting(
        "best",
        one_of(*RULES),
        'Who wins: the best mean score, or with "one_se" the simplest within one standard error of '
        "it: smallest `C`, then widest kernel, then fewest kernels. A function `refit` decides "
        "alone.",
    )
    adaptive: bool = setting(
        False,
        FLAG,
        "Whether candidates are skipped that can hardly win. Classifiers of this library judged by "
        "accuracy race over the folds: who is 2.5 standard errors behind the best after some of "
        "them leaves. Else candidates are skipped where the score has fallen three times in a row "
        "towards them, along `C` or along the width. They have NaN scores, and the column "
        "``skipped`` says so.",
    )
    halving: bool = setting(
        False,
        FLAG,
        "Whether, above 10,000 samples, all candidates are fitted on a ninth of the training rows, "
        "the best third of them on a third, and the best third of those on all.",
    )
    time_limit: float | None = setting(
        None,
        or_none(POSITIVE),
        "Seconds after which no other candidate is started, with a warning; the best so far wins.",
    )
    n_jobs: int | None = setting(
        None,
        JOBS,
        "Threads of single machines, None for one a core; for other estimators of this library, "
        "folds in threads; else processes.",
    )
    error_score: Any = setting(
        np.nan,
        Rule('"raise" or number', _check_error_score),
        'Score of a candidate that cannot be fitted, with a warning; "raise" raises its error.',
    )
    return_train_score: bool = setting(
        False, FLAG, "Whether ``cv_results_`` has scores on the training rows, too."
    )
    verbose: int = setting(
        0, anything("int"), "1 logs a line about every line of the grid to the logger ``lokl``."
    )
    callback: Any = setting(
        None, CALLBACK, "Called with a :class:`Progress` after every candidate."
    )

    @atomic_fit
    def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Evaluate the candidates, and fit the winner on all samples.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        **params
            For the ``fit`` of the estimator, such as ``sample_weight``, and ``groups`` for the
            splitter. What has a value for each sample is divided among the folds.

        Returns
        -------
        self
        """
        check_settings(self)
        if y is None and get_tags(self.estimator).target_tags.required:
            name = type(self.estimator).__name__
            raise ValueError(f"{name} requires y to be passed, but the target y is None")
        # Many fits, none of which should wait for threads of BLAS.
        with DeferredWarnings(), single_threaded_blas():
            scorers, metric = self._get_scorers()
            X, y = indexable(X, _plain_labels(y) if is_classifier(self.estimator) else y)
            routed = self._get_routed_params_for_fit(_check_method_params(X, params=params))
            task = Task(
                estimator=clone(self.estimator),
                candidates=_candidates(self.param_grid),
                X=X,
                y=y,
                fit_params=dict(routed.estimator.fit),
                score_params=dict(routed.scorer.score),
                splits=self._splits(X, y, routed.splitter.split),
                scorers=scorers,
                error_score=self.error_score,
                return_train_score=self.return_train_score,
                n_jobs=self.n_jobs,
            )
            rows = self._rounds().rows(task)
            n_splits = len(task.splits)
            results = cv_results(self, rows, n_splits, self._more_columns(rows))
            found = self._found(task, metric, rows, results)
            single = not isinstance(scorers, _MultimetricScorer)
            found["scorer_"] = scorers if single else scorers._scorers
        publish(self, {**found, "cv_results_": results, "n_splits_": n_splits})
        return self

    def _splits(self, X: Any, y: Any, split_params: Any) -> list[tuple[Array, Array]]:
        # Targets that are not finite are looked for by the estimator.
        with np.errstate(invalid="ignore"):
            cv = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        expected = cv.get_n_splits(X, y, **split_params)
        splits = [(_rows(train), _rows(test)) for train, test in cv.split(X, y, **split_params)]
        if len(splits) != expected:
            raise ValueError(
                f"cv.split and cv.get_n_splits return inconsistent results. Expected {expected} "
                f"splits, got {len(splits)}"
            )
        if not splits:
            raise ValueError(f"cv={self.cv!r} gives no splits; at least one is needed")
        return splits

    def _rounds(self) -> Rounds:
        return Rounds(
            self.refit if isinstance(self.refit, str) else None,
            self.adaptive,
            self.halving,
            self.time_limit,
            self.callback,
            self.verbose,
        )

    def _more_columns(self, rows: list[Row]) -> dict[str, list[Any]]:
        columns: dict[str, list[Any]] = {}
        if self.halving:
            columns["iter"] = [row.iteration for row in rows]
            columns["n_resources"] = [row.n_resources for row in rows]
        if self.adaptive or self.time_limit is not None:
            columns["skipped"] = [row.cells is None for row in rows]
        return columns

    def _found(
        self, task: Task, metric: Any, rows: list[Row], results: dict[str, Any]
    ) -> dict[str, Any]:
        """Choose the winner and fit it; return what is published."""
        # A function may give one score or several: only those that did not fail tell.
        cells = [cell for row in rows for cell in row.cells or ()]
        scores = next(cell.test_scores for cell in cells if cell.error is None)
        found: dict[str, Any] = {"multimetric_": isinstance(scores, dict)}
        if callable(self.scoring) and found["multimetric_"]:
            self._check_refit_for_multimetric(scores)
            metric = self.refit
        if not self.refit and found["multimetric_"]:
            return found
        if callable(self.refit):
            best = self._select_best_index(self.refit, metric, results)
        else:
            best = choose(results, metric, self.rule, last_round(rows))
            means = results[f"mean_test_{metric}"]
            found["best_score_"] = means[best]
            final = final_scores(rows, means)
            warn_of_edges([task.candidates[c] for c in final], np.array([*final.values()]))
        params = results["params"][best]
        found.update(best_index_=best, best_params_=params)
        if self.refit:
            found.update(_refitted(task, params))
            found["calibration_"] = calibration_of(task, rows[best].cells or [])
        return found

    def _has_probabilities(self) -> bool:
        if getattr(self, "calibration_", None) is not None:
            return True
        return hasattr(getattr(self, "best_estimator_", self.estimator), "predict_proba")

    def _answer(self, name: str, X: Any) -> Any:
        return getattr(self.best_estimator_, name)(X)

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the samples."""
        return int(super().n_features_in_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags = deepcopy(get_tags(self.estimator).target_tags)
        return tags

    @classmethod
    def _attribute_docs(cls) -> AttributeDocs:
        """Type and meaning of every fitted attribute."""
        return {
            "best_estimator_": ("estimator", "The winner, fitted on all samples."),
            "best_params_": ("dict", "Its parameters."),
            "best_score_": (
                "float",
                "Its mean held-out score; not with a function `refit`.",
            ),
            "best_index_": ("int", "Its row in ``cv_results_``."),
            "cv_results_": ("dict of arrays", "All scores and times, as in ``GridSearchCV``."),
            "scorer_": ("function or dict", "What scored."),
            "n_splits_": ("int", "Number of folds."),
            "calibration_": (
                "Calibration or None",
                "Turns decisions of the winner into probabilities; None where these are unknown.",
            ),
            "refit_time_": ("float", "Seconds that the last fit took."),
            "multimetric_": ("bool", "Whether there are several scores."),
            "classes_": ("array of shape (n_classes,)", ""),
            **FEATURE_ATTRIBUTES,
        }


def _candidates(param_grid: Any) -> list[dict[str, Any]]:
    candidates = list(ParameterGrid(param_grid))
    if not candidates:
        raise ValueError(f"param_grid={param_grid!r} has no candidates; give at least one")
    return candidates


def _plain_labels(y: Any) -> Any:
    """Make numbers of numbers typed as objects, as some tables have them; scorers refuse these."""
    if getattr(y, "dtype", None) == np.dtype(object) and all(
        isinstance(label, Real) for label in y
    ):
        return np.array(list(y))
    return y


def _rows(chosen: Any) -> Array:
    """Row numbers, also where a splitter gives a mask."""
    chosen = np.asarray(chosen)
    return np.flatnonzero(chosen) if chosen.dtype == bool else chosen


def _refitted(task: Task, params: dict[str, Any]) -> dict[str, Any]:
    best = clone(task.estimator).set_params(**clone(params, safe=False))
    start = time.perf_counter()
    if task.y is None:
        best.fit(task.X, **task.fit_params)
    else:
        best.fit(task.X, task.y, **task.fit_params)
    found = {"best_estimator_": best, "refit_time_": time.perf_counter() - start}
    if hasattr(best, "feature_names_in_"):
        found["feature_names_in_"] = best.feature_names_in_
    return found
