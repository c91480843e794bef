"""Scores of held-out predictions, with standard errors over the samples.

Every score is a function of predictions and of weights of the samples. Its standard error is that
of the jackknife: it is computed again without each sample, or without each group of samples. That
serves all scores, differences of scores, and a fixed test cohort alike.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf, isfinite, sqrt
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit, logit
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer, get_scorer_names

from lokl._arrays import Array
from lokl._survival import censoring_survival, kaplan_meier, steps_at
from lokl._text import plain_name, suggestion
from lokl.explain.results import QUANTILE, Interval, ScoreLimits, interval_within
from lokl.tables import TableError
from lokl.tables.preparation import REGRESSION, SURVIVAL
from lokl.tables.table import CLASSIFICATION

# Recorded probabilities have six decimals.
_LEAST_PROBABILITY = 1e-6
# Parts of the samples that the jackknife leaves out in turn, for scorers of scikit-learn, and
# numbers in memory.
_MOST_PARTS, _FEW_PARTS, _MOST_WEIGHTS = 500, 50, 10_000_000
# Steps of Newton's method for the calibration line, and the largest slope that is shown.
_STEPS, _STEEPEST = 30, 100.0
# Risks that differ by at most this are tied; records have six decimals.
_TIED = 1e-8


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Predictions of one candidate for samples that it was not trained on.

    Attributes
    ----------
    truth, predicted : arrays of shape (n_samples,)
        Indices of classes, or values. For survival, events and times, and risks.
    probabilities : array of shape (n_samples, n_classes) or None
        For survival, probabilities of no event until each of `times`.
    fold : int array of shape (n_samples,)
        Samples of one fold were predicted by one model.
    classes : list
        Sorted; empty for regression.
    positive : int or None
        Index of the positive class.
    times : array of shape (n_times,) or None
    """

    truth: Array
    predicted: Array
    probabilities: Array | None
    fold: Array
    classes: list[Any]
    positive: int | None = None
    times: Array | None = None

    def take(self, rows: Array) -> "HeldOut":
        """Return some of the samples."""
        probabilities = None if self.probabilities is None else self.probabilities[rows]
        return replace(
            self,
            truth=self.truth[rows],
            predicted=self.predicted[rows],
            probabilities=probabilities,
            fold=self.fold[rows],
        )

    def confusion(self, weights: Array) -> Array:
        """Return weights by true and predicted class, (n_weights, n_classes, n_classes)."""
        n_classes, n = len(self.classes), len(self.truth)
        cells = self.truth * n_classes + self.predicted
        members = csr_array((np.ones(n), (np.arange(n), cells)), shape=(n, n_classes**2))
        return np.asarray(weights @ members).reshape(-1, n_classes, n_classes)


# Returns a score for each row of weights, NaN where it is undefined.
_Compute = Callable[[HeldOut, Array], Array]


@dataclass(frozen=True, eq=False)
class Score:
    """A score of predictions.

    Attributes
    ----------
    name : str
    compute : callable
        Takes `HeldOut` and weights of shape (n_weights, n_samples), and returns n_weights scores.
    low, high : float
        Limits of the score.
    is_loss : bool
        Whether lower values are better.
    percent : bool
        Whether it is shown as a percentage.
    probabilities : bool
        Whether it needs probabilities.
    most_parts : int
        Parts of the samples that the jackknife leaves out at most.
    """

    name: str
    compute: _Compute
    low: float = -inf
    high: float = inf
    is_loss: bool = False
    percent: bool = False
    probabilities: bool = False
    most_parts: int = _MOST_PARTS

    @property
    def sign(self) -> float:
        """Factor that makes higher values better."""
        return -1.0 if self.is_loss else 1.0

    def __call__(self, held_out: HeldOut) -> float:
        """Return the score of predictions; NaN if it is undefined."""
        if self.probabilities and held_out.probabilities is None:
            return np.nan
        return float(self.compute(held_out, np.ones((1, len(held_out.truth))))[0])

    def interval(self, estimate: "Estimate") -> Interval:
        """Return an estimate with a 95 % interval inside the limits of the score."""
        limits = ScoreLimits(self.low, self.high)
        return interval_within(estimate.value, estimate.error, limits, estimate.n_samples)


@dataclass(frozen=True, eq=False)
class Estimate:
    """A score, and its values without each part of the samples.

    Attributes
    ----------
    value : float
    without : array of shape (n_parts,)
    n_samples : int
    """

    value: float
    without: Array
    n_samples: int

    @property
    def error(self) -> float:
        """Standard error by the jackknife."""
        without = self.without[np.isfinite(self.without)]
        n_parts = len(without)
        if n_parts < 2:
            return np.nan
        return float(sqrt((n_parts - 1) * np.var(without)))

    def __sub__(self, other: "Estimate") -> "Estimate":
        return Estimate(self.value - other.value, self.without - other.without, self.n_samples)

    def difference(self) -> Interval:
        """Return a difference of scores with its 95 % interval."""
        reach = QUANTILE * self.error
        return Interval(self.value, self.value - reach, self.value + reach)


def jackknife_parts(n_samples: int, groups: Array | None = None, most: int = _MOST_PARTS) -> Array:
    """Return the part of each sample: samples of one part are left out together.

    Parameters
    ----------
    n_samples : int
    groups : array of shape (n_samples,), optional
        Samples of one group are in one part.
    most : int

    Returns
    -------
    parts : int array of shape (n_samples,)
        Parts of about equal size if there are more samples, or groups, than `most`.
    """
    most = max(min(most, _MOST_WEIGHTS // max(n_samples, 1)), 2)
    codes = np.arange(n_samples)
    if groups is not None:
        codes = np.unique(groups, return_inverse=True)[1]
    n_codes = int(codes.max(initial=-1)) + 1
    if n_codes <= most:
        return codes
    order = np.random.RandomState(0).permutation(n_codes)
    return np.asarray(order[codes] * most // n_codes)


def estimate(
    score: Score, repeats: Sequence[HeldOut], rows: Sequence[Array], groups: Array | None = None
) -> Estimate | None:
    """Return the mean score over repeats, with its values without each part of the samples.

    Parameters
    ----------
    score : Score
    repeats : sequence of HeldOut
        Predictions of each repeat of the cross-validation.
    rows : sequence of int arrays
        Samples of each repeat, as rows of the table.
    groups : array of shape (n_rows,), optional
        Group of each row of the table.

    Returns
    -------
    estimate : Estimate or None
        None if the score is undefined, or needs probabilities and there are none.
    """
    if score.probabilities and any(held_out.probabilities is None for held_out in repeats):
        return None
    known = np.unique(np.concatenate(list(rows)))
    parts = jackknife_parts(len(known), None if groups is None else groups[known], score.most_parts)
    n_parts = int(parts.max()) + 1
    values = []
    for held_out, own in zip(repeats, rows, strict=True):
        part = parts[np.searchsorted(known, own)]
        weights = np.ones((n_parts + 1, len(own)))
        weights[1:][part, np.arange(len(own))] = 0.0
        values.append(score.compute(held_out, weights))
    mean = np.mean(values, axis=0)
    return Estimate(float(mean[0]), mean[1:], len(known)) if isfinite(mean[0]) else None


def _share(numerator: Array, denominator: Array) -> Array:
    """Return quotients, NaN for a denominator of zero."""
    safe = np.where(denominator > 0, denominator, 1.0)
    return np.asarray(np.where(denominator > 0, numerator / safe, np.nan))


def _mean_over_classes(values: Array) -> Array:
    """Return the mean of the classes for which a score is defined."""
    known = np.isfinite(values)
    return _share(np.where(known, values, 0.0).sum(axis=1), known.sum(axis=1).astype(float))


def _accuracy(held_out: HeldOut, weights: Array) -> Array:
    return _share(weights @ (held_out.truth == held_out.predicted), weights.sum(axis=1))


def _balanced_accuracy(held_out: HeldOut, weights: Array) -> Array:
    cells = held_out.confusion(weights)
    return _mean_over_classes(_share(np.einsum("bii->bi", cells), cells.sum(axis=2)))


def _f1(held_out: HeldOut, weights: Array) -> Array:
    cells = held_out.confusion(weights)
    right, totals = np.einsum("bii->bi", cells), cells.sum(axis=2) + cells.sum(axis=1)
    by_class = _share(2 * right, totals)
    if held_out.positive is not None:
        return np.asarray(by_class[:, held_out.positive])
    return _mean_over_classes(by_class)


def _matthews(held_out: HeldOut, weights: Array) -> Array:
    cells = held_out.confusion(weights)
    total, right = cells.sum(axis=(1, 2)), np.einsum("bii->b", cells)
    true, predicted = cells.sum(axis=2), cells.sum(axis=1)
    covariance = right * total - (true * predicted).sum(axis=1)
    spread = (total**2 - (predicted**2).sum(axis=1)) * (total**2 - (true**2).sum(axis=1))
    # Constant predictions are not correlated with anything.
    return np.where(spread > 0, covariance / np.sqrt(np.where(spread > 0, spread, 1.0)), 0.0)


def _log_loss(held_out: HeldOut, weights: Array) -> Array:
    probabilities = np.asarray(held_out.probabilities)
    own = probabilities[np.arange(len(probabilities)), held_out.truth]
    losses = -np.log(np.clip(own, _LEAST_PROBABILITY, 1.0))
    return _share(weights @ losses, weights.sum(axis=1))


def _brier(held_out: HeldOut, weights: Array) -> Array:
    is_class = held_out.truth[:, None] == np.arange(len(held_out.classes))
    losses = ((np.asarray(held_out.probabilities) - is_class) ** 2).sum(axis=1)
    # As usual, the squared error of one of two classes, and the sum over more classes.
    losses = losses / 2 if len(held_out.classes) == 2 else losses
    return _share(weights @ losses, weights.sum(axis=1))


def _within_folds(score: _Compute) -> _Compute:
    """Return a score that compares samples of one fold only, since models differ between folds.

    Folds have weights by their numbers of samples; folds in which it is undefined do not count.
    """

    def compute(held_out: HeldOut, weights: Array) -> Array:
        total, size = np.zeros(len(weights)), np.zeros(len(weights))
        for fold in np.unique(held_out.fold):
            rows = np.flatnonzero(held_out.fold == fold)
            values = score(held_out.take(rows), weights[:, rows])
            known = np.isfinite(values)
            total += np.where(known, values * len(rows), 0.0)
            size += known * len(rows)
        return _share(total, size)

    return compute


def _of_classes(score: Callable[[Array, Array, Array], Array]) -> _Compute:
    """Return the mean of a score of each class against all others, or that of one class.

    Two classes without a positive one are represented by the second.
    """

    def compute(held_out: HeldOut, weights: Array) -> Array:
        codes = list(range(len(held_out.classes)))
        if held_out.positive is not None:
            codes = [held_out.positive]
        elif len(codes) == 2:
            codes = codes[1:]
        probabilities = np.asarray(held_out.probabilities)
        by_class = [score(held_out.truth == c, probabilities[:, c], weights) for c in codes]
        return _mean_over_classes(np.stack(by_class, axis=1))

    return compute


def _area(positive: Array, values: Array, weights: Array) -> Array:
    """Return the area under the ROC curve of values, whose ties count half."""
    order = np.argsort(values, kind="stable")
    ranked, is_positive = values[order], positive[order]
    # Cumulated weights of the others, and the first and last sample of each group of ties.
    others = np.cumsum(weights[:, order] * ~is_positive, axis=1)
    others = np.concatenate([np.zeros((len(weights), 1)), others], axis=1)
    rows = np.flatnonzero(is_positive)
    first = np.searchsorted(ranked, ranked[rows], side="left")
    last = np.searchsorted(ranked, ranked[rows], side="right")
    own = weights[:, order[rows]]
    below = (own * (others[:, first] + others[:, last]) / 2).sum(axis=1)
    return _share(below, own.sum(axis=1) * others[:, -1])


def _average_precision(positive: Array, values: Array, weights: Array) -> Array:
    """Return the mean precision at each threshold, weighted by the gain of recall."""
    order = np.argsort(-values, kind="stable")
    ranked = values[order]
    ends = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True))
    right = np.cumsum(weights[:, order] * positive[order], axis=1)[:, ends]
    selected = np.cumsum(weights[:, order], axis=1)[:, ends]
    gains = np.diff(right, axis=1, prepend=0.0)
    precision = np.nan_to_num(_share(right, selected))
    return _share((gains * precision).sum(axis=1), right[:, -1])


def _rate(positive: bool, predicted: bool) -> _Compute:
    """Return the share of right predictions among samples of a true, or of a predicted, class.

    Parameters
    ----------
    positive : bool
        Whether the class is the positive one, or any other.
    predicted : bool
        Whether the samples are those that are predicted to be of the class.
    """

    def compute(held_out: HeldOut, weights: Array) -> Array:
        truth, predictions = (
            (codes == held_out.positive) == positive
            for codes in (held_out.truth, held_out.predicted)
        )
        among = predictions if predicted else truth
        return _share(weights @ (truth & predictions), weights @ among)

    return compute


def _calibration(held_out: HeldOut, weights: Array, with_slope: bool) -> Array:
    """Return slope or intercept of a logistic regression of the truth on predicted log-odds.

    Parameters
    ----------
    held_out : HeldOut
    weights : array of shape (n_weights, n_samples)
    with_slope : bool
        Whether the slope is returned; otherwise the intercept for a slope of one.

    Returns
    -------
    values : array of shape (n_weights,)
        NaN if the classes are separated, so that there is no finite value.
    """
    probability = np.asarray(held_out.probabilities)[:, held_out.positive]
    odds = logit(np.clip(probability, _LEAST_PROBABILITY, 1 - _LEAST_PROBABILITY))
    y = (held_out.truth == held_out.positive).astype(float)
    intercept, slope = np.zeros(len(weights)), np.ones(len(weights))
    for _ in range(_STEPS):
        fitted = expit(intercept[:, None] + slope[:, None] * odds)
        gradient, curvature = weights * (y - fitted), weights * fitted * (1 - fitted)
        sums = [(gradient * x).sum(axis=1) for x in (1.0, odds)]
        a, b, c = ((curvature * x).sum(axis=1) for x in (1.0, odds, odds**2))
        if with_slope:
            determinant = np.maximum(a * c - b**2, 1e-12)
            intercept = intercept + (c * sums[0] - b * sums[1]) / determinant
            slope = np.clip(
                slope + (a * sums[1] - b * sums[0]) / determinant, -_STEEPEST, _STEEPEST
            )
        else:
            intercept = intercept + sums[0] / np.maximum(a, 1e-12)
        intercept = np.clip(intercept, -_STEEPEST, _STEEPEST)
    values = slope if with_slope else intercept
    return np.where(np.maximum(np.abs(slope), np.abs(intercept)) < _STEEPEST, values, np.nan)


def _residuals(held_out: HeldOut) -> Array:
    return np.asarray(held_out.truth - held_out.predicted, dtype=float)


def _r_squared(held_out: HeldOut, weights: Array) -> Array:
    total = weights.sum(axis=1, keepdims=True)
    mean = _share(weights @ held_out.truth[:, None], total)
    spread = (weights * (held_out.truth - mean) ** 2).sum(axis=1)
    return 1 - _share(weights @ _residuals(held_out) ** 2, spread)


def _absolute_error(held_out: HeldOut, weights: Array) -> Array:
    return _share(weights @ np.abs(_residuals(held_out)), weights.sum(axis=1))


def _root_squared_error(held_out: HeldOut, weights: Array) -> Array:
    return np.asarray(np.sqrt(_share(weights @ _residuals(held_out) ** 2, weights.sum(axis=1))))


def _spearman(held_out: HeldOut, weights: Array) -> Array:
    """Return the correlation of ranks; 0 for constant predictions."""
    ranks = [rankdata(values) for values in (held_out.truth, held_out.predicted)]
    total = weights.sum(axis=1, keepdims=True)
    x, y = (values - _share(weights @ values[:, None], total) for values in ranks)
    covariance = (weights * x * y).sum(axis=1)
    spread = (weights * x**2).sum(axis=1) * (weights * y**2).sum(axis=1)
    if len(held_out.truth) < 2:
        return np.full(len(weights), np.nan)
    return np.where(spread > 0, covariance / np.sqrt(np.where(spread > 0, spread, 1.0)), 0.0)


def _inverse_censoring(held_out: HeldOut, times: Array) -> Array:
    """Return the inverse probabilities of not being censored until some times.

    They are estimated from all predicted samples, and do not change in the jackknife.
    """
    curve = censoring_survival(held_out.truth)
    known = np.asarray(steps_at(curve.x, curve.y, times, 1.0))
    return np.asarray(np.where(known > 0, 1.0 / np.where(known > 0, known, 1.0), 0.0))


def _concordance(is_weighted: bool) -> _Compute:
    """Return Harrell's concordance, or Uno's, which weights events for censoring.

    Only samples of one fold are compared, since models differ between folds.
    """

    def compute(held_out: HeldOut, weights: Array) -> Array:
        truth, risk = held_out.truth, held_out.predicted
        inverse = np.ones(len(truth))
        if is_weighted:
            inverse = _inverse_censoring(held_out, truth["time"]) ** 2
        right, pairs = np.zeros(len(weights)), np.zeros(len(weights))
        for fold in np.unique(held_out.fold):
            rows = np.flatnonzero(held_out.fold == fold)
            time, event, own = truth["time"][rows], truth["event"][rows], weights[:, rows]
            # A sample that is censored at the time of an event was observed longer.
            later = (time[:, None] < time) | ((time[:, None] == time) & ~event)
            comparable = (later & event[:, None]) * inverse[rows, None]
            difference = risk[rows, None] - risk[rows]
            won = comparable * ((difference > _TIED) + 0.5 * (np.abs(difference) <= _TIED))
            right += ((own @ won) * own).sum(axis=1)
            pairs += ((own @ comparable) * own).sum(axis=1)
        return _share(right, pairs)

    return compute


def _integrated_brier(held_out: HeldOut, weights: Array) -> Array:
    """Return the squared error of survival curves, weighted for censoring, over the times."""
    truth, times = held_out.truth, np.asarray(held_out.times)
    curves, time = np.asarray(held_out.probabilities), truth["time"][:, None]
    had_event = (truth["event"][:, None]) & (time <= times)
    own = _inverse_censoring(held_out, truth["time"])[:, None]
    losses = curves**2 * had_event * own
    losses += (1.0 - curves) ** 2 * (time > times) * _inverse_censoring(held_out, times)
    steps = np.diff(times)
    areas = (losses[:, 1:] + losses[:, :-1]) @ steps / 2 / steps.sum()
    return _share(weights @ areas, weights.sum(axis=1))


def _dynamic_area(held_out: HeldOut, weights: Array) -> Array:
    """Return the area under the ROC curve of events until each time against later ones.

    The mean over the times has weights by the decrease of the Kaplan-Meier estimate.
    """
    truth, times = held_out.truth, np.asarray(held_out.times)
    inverse = _inverse_censoring(held_out, truth["time"])
    curve = kaplan_meier(truth)
    drops = -np.diff(np.asarray(steps_at(curve.x, curve.y, times, 1.0)), prepend=1.0)
    total, size = np.zeros(len(weights)), np.zeros(len(weights))
    for time, drop in zip(times, drops, strict=True):
        is_case, is_control = truth["event"] & (truth["time"] <= time), truth["time"] > time
        factor = np.where(is_case, inverse, is_control.astype(float))
        for fold in np.unique(held_out.fold):
            rows = np.flatnonzero(held_out.fold == fold)
            area = _area(is_case[rows], held_out.predicted[rows], (weights * factor)[:, rows])
            known = np.isfinite(area)
            total += np.where(known, area * drop * len(rows), 0.0)
            size += known * drop * len(rows)
    return _share(total, size)


CLASSIFICATION_SCORES = (
    Score("accuracy", _accuracy, low=0.0, high=1.0, percent=True),
    Score("balanced accuracy", _balanced_accuracy, low=0.0, high=1.0, percent=True),
    Score("AUROC", _within_folds(_of_classes(_area)), low=0.0, high=1.0, probabilities=True),
    Score(
        "average precision",
        _within_folds(_of_classes(_average_precision)),
        low=0.0,
        high=1.0,
        probabilities=True,
    ),
    Score("log loss", _log_loss, low=0.0, is_loss=True, probabilities=True),
    Score("Brier score", _brier, low=0.0, is_loss=True, probabilities=True),
    Score("F1", _f1, low=0.0, high=1.0),
    Score("MCC", _matthews, low=-1.0, high=1.0),
)
REGRESSION_SCORES = (
    Score("R squared", _r_squared, high=1.0),
    Score("mean absolute error", _absolute_error, low=0.0, is_loss=True),
    Score("root mean squared error", _root_squared_error, low=0.0, is_loss=True),
    Score("Spearman correlation", _within_folds(_spearman), low=-1.0, high=1.0),
)
# Scores of a positive class.
POSITIVE_SCORES = (
    Score("sensitivity", _rate(True, False), low=0.0, high=1.0, percent=True),
    Score("specificity", _rate(False, False), low=0.0, high=1.0, percent=True),
    Score("precision", _rate(True, True), low=0.0, high=1.0, percent=True),
    Score("calibration slope", lambda h, w: _calibration(h, w, True), probabilities=True),
    Score("calibration intercept", lambda h, w: _calibration(h, w, False), probabilities=True),
)
_ALIASES = {
    "AUROC": ("auc", "roc_auc", "rocauc", "roc_auc_ovr"),
    "balanced accuracy": ("bacc",),
    "average precision": ("ap", "auprc"),
    "Brier score": ("brier",),
    "MCC": ("matthews", "matthews_corrcoef"),
    "F1": ("f1_macro",),
    "R squared": ("r2",),
    "mean absolute error": ("mae",),
    "root mean squared error": ("rmse",),
    "Spearman correlation": ("spearman",),
    "concordance": ("harrell", "concordance index", "cindex", "c-index"),
    "Uno's concordance": ("uno", "concordance ipcw"),
    "integrated Brier score": ("ibs", "integrated brier"),
    "time-dependent AUC": ("auc", "dynamic auc", "cumulative dynamic auc"),
}


SURVIVAL_SCORES = (
    Score("concordance", _concordance(False), low=0.0, high=1.0),
    Score("Uno's concordance", _concordance(True), low=0.0, high=1.0, most_parts=_FEW_PARTS),
    Score("integrated Brier score", _integrated_brier, low=0.0, is_loss=True, probabilities=True),
    Score("time-dependent AUC", _dynamic_area, low=0.0, high=1.0, most_parts=_FEW_PARTS),
)
_SCORES = {
    CLASSIFICATION: CLASSIFICATION_SCORES,
    REGRESSION: REGRESSION_SCORES,
    SURVIVAL: SURVIVAL_SCORES,
}


def scores_of(task: str) -> tuple[Score, ...]:
    """Return the scores of a task; the first is the default one."""
    return _SCORES[task]


def score_named(name: str | None, task: str) -> Score:
    """Return a score by its name, or by the name of a scorer of scikit-learn.

    Parameters
    ----------
    name : str or None
        None for the default score.
    task : {"classification", "regression", "survival"}

    Raises
    ------
    TableError
        If the name is unknown, or the score is for another task.
    """
    known = scores_of(task)
    if name is None:
        return known[0]
    wanted = plain_name(name)
    for score in known:
        if wanted in {plain_name(one) for one in (score.name, *_ALIASES.get(score.name, ()))}:
            return score
    if name in get_scorer_names() and task != SURVIVAL:
        return _of_scorer(name)
    other = [s.name for own in _SCORES.values() for s in own]
    names = [score.name for score in known]
    if wanted in {plain_name(one) for one in other} or name in get_scorer_names():
        raise TableError(f"--score {name} is not a score of {task}; use one of {', '.join(names)}")
    hint = suggestion(name, [*get_scorer_names(), *names]) or f"; use one of {', '.join(names)}"
    raise TableError(f"unknown score {name!r}{hint}")


class _Recorded(BaseEstimator):
    """Recorded predictions in the form of a fitted estimator, for scorers of scikit-learn.

    Samples are positions among the recorded predictions.
    """

    def __init__(self, held_out: HeldOut):
        self.held_out = held_out
        self.classes_ = np.array(held_out.classes)

    def predict(self, X: Any) -> Array:
        """Return the recorded predictions."""
        return np.asarray(self.held_out.predicted[X[:, 0]])


class _RecordedRegressor(RegressorMixin, _Recorded):
    """Recorded values."""


class _RecordedClassifier(ClassifierMixin, _Recorded):
    """Recorded classes and probabilities."""

    def predict(self, X: Any) -> Array:
        """Return the recorded classes."""
        return np.asarray(self.classes_[super().predict(X)])

    def predict_proba(self, X: Any) -> Array:
        """Return the recorded probabilities."""
        probabilities = np.asarray(self.held_out.probabilities)[X[:, 0]]
        return np.asarray(probabilities / probabilities.sum(axis=1, keepdims=True))


def _of_scorer(name: str) -> Score:
    """Return the score of a scorer of scikit-learn, computed in each fold."""
    scorer = get_scorer(name)

    def compute(held_out: HeldOut, weights: Array) -> Array:
        kind = _RecordedClassifier if held_out.classes else _RecordedRegressor
        model, truth = kind(held_out), held_out.truth
        truth = model.classes_[truth] if held_out.classes else truth
        values = np.full(len(weights), np.nan)
        for k, own in enumerate(weights):
            rows = np.repeat(np.arange(len(truth)), own.astype(int))
            # Undefined, for instance, for samples of one class.
            with suppress(ValueError):
                values[k] = scorer(model, rows[:, None], truth[rows]) if len(rows) else np.nan
        return values

    needed = scorer._response_method != "predict"
    return Score(name, _within_folds(compute), probabilities=needed, most_parts=_FEW_PARTS)
