"""Reliability of predictions: calibration, confusion, risk against coverage, missing views."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binomtest, sem
from sklearn.metrics import confusion_matrix
from sklearn.utils import check_consistent_length

from lokl._arrays import Array, evenly_spaced
from lokl.explain.explanation import Explanation
from lokl.explain.results import Interval
from lokl.search.calibration import expected_calibration_error

# Steps of probability, least number of samples in a bin of them, points of the risk curve.
_STEPS, _LEAST, _POINTS = 20, 20, 80
_COVERAGES = (1.0, 0.9, 0.8, 0.7, 0.5)
# Two-sided 95 % quantile of the normal distribution.
_QUANTILE = 1.959964


def mean_interval(values: Any) -> Interval:
    """Return a mean with its 95 % interval.

    Parameters
    ----------
    values : array-like of shape (n_samples,)
        For booleans the mean is the share of True, and the interval is Wilson's, which stays in
        [0, 1]. Otherwise it is from the normal distribution.

    Returns
    -------
    interval : Interval
        NaN without values; a mean without limits for a single number.
    """
    values = np.asarray(values)
    if len(values) == 0:
        return Interval(np.nan)
    mean = float(np.mean(values))
    if values.dtype == bool:
        ends = binomtest(int(values.sum()), len(values)).proportion_ci(method="wilson")
        # Rounding must not put the share outside.
        return Interval(mean, min(float(ends.low), mean), max(float(ends.high), mean))
    if len(values) == 1:
        return Interval(mean)
    reach = _QUANTILE * float(sem(values))
    return Interval(mean, mean - reach, mean + reach)


@dataclass(frozen=True)
class CalibrationBin:
    """Samples with similar probabilities of their predicted class.

    Attributes
    ----------
    low, high : float
        Limits of the probability.
    stated : float
        Mean probability.
    right : Interval
        Share of correct predictions.
    n_samples : int
    """

    low: float
    high: float
    stated: float
    right: Interval
    n_samples: int


@dataclass(frozen=True)
class Reliability:
    """Quality of the predictions for samples whose truth is known.

    Attributes
    ----------
    n_samples : int
        Samples whose truth is known.
    score : Interval
        Share of correct predictions, or mean absolute error.
    ranking : str
        Measure that ranks predictions from the most to the least confident.
    risk : list of (coverage, Interval)
        Error rate, or mean absolute error, of the most confident predictions; empty if nothing
        ranks them.
    curve : list of (coverage, risk)
        The same at many coverages.
    patterns : list of (views, number of samples, Interval)
        Score of the samples that lack the same views (by position), most frequent first; empty if
        no sample lacks a view.
    calibration : list of CalibrationBin
        Empty for regression and for models without probabilities.
    error : float or None
        Expected calibration error.
    confusion : array of shape (n_classes, n_classes)
        True classes in rows, predicted classes in columns; empty for regression.
    """

    n_samples: int
    score: Interval
    ranking: str
    risk: list[tuple[float, Interval]]
    curve: list[tuple[float, float]]
    patterns: list[tuple[list[int], int, Interval]]
    calibration: list[CalibrationBin] = field(default_factory=list)
    error: float | None = None
    confusion: Array = field(default_factory=lambda: np.zeros((0, 0), dtype=int))

    @property
    def mean_stated(self) -> float:
        """Mean probability of the predicted classes."""
        return sum(b.n_samples * b.stated for b in self.calibration) / max(self.n_samples, 1)


def reliability(explanation: Explanation) -> Reliability | None:
    """Return the reliability on samples whose predictions count; None without such samples.

    Their truth is known, and the model has not learned from them.
    """
    known = explanation.judged
    if not known.any():
        return None
    truth, predicted = explanation.truth_codes[known], explanation.predicted_codes[known]
    presence = explanation.presence[known]
    if explanation.classes is None:
        errors, confidence = explanation.absolute_errors[known], -explanation.disagreement[known]
        risk = _risk(errors, confidence) if np.ptp(confidence) else ([], [])
        patterns = _patterns(presence, errors)
        score, ranking = mean_interval(errors), "by how far their views agree"
        return Reliability(len(errors), score, ranking, *risk, patterns)
    codes, right = np.arange(len(explanation.classes)), truth == predicted
    more: dict[str, Any] = {"confusion": confusion_matrix(truth, predicted, labels=codes)}
    confidence = (explanation.base_values + explanation.contributions.sum(axis=1))[known]
    ranking = "by the size of their decision"
    if explanation.probabilities is not None:
        confidence, ranking = explanation.predicted_probability[known], "by their probability"
        error = expected_calibration_error(truth, explanation.probabilities[known], classes=codes)
        more |= {"calibration": calibration_bins(confidence, right), "error": error}
    risk, patterns = _risk(~right, confidence), _patterns(presence, right)
    return Reliability(len(right), mean_interval(right), ranking, *risk, patterns, **more)


class RiskCoverage(NamedTuple):
    """Risk of the most confident predictions.

    Attributes
    ----------
    coverage : array of shape (n_samples,)
        Share of the samples whose predictions are used, ``1 / n_samples`` to 1.
    risk : array of shape (n_samples,)
        Their mean loss.

    See Also
    --------
    lokl.explain.risk_coverage : Computes it.

    Examples
    --------
    >>> from lokl.explain import risk_coverage
    >>> curve = risk_coverage([False, True, False, False], [0.9, 0.6, 0.8, 0.7])
    >>> curve.coverage.tolist()
    [0.25, 0.5, 0.75, 1.0]
    """

    coverage: Array
    risk: Array


def risk_coverage(loss: Any, confidence: Any) -> RiskCoverage:
    """Return the risk of the most confident predictions, at every coverage.

    A model that abstains from its least confident predictions has a coverage below 1. If the
    confidence is useful, the risk decreases with the coverage.

    Parameters
    ----------
    loss : array-like of shape (n_samples,)
        Loss of each prediction: whether it is wrong, or its absolute error.
    confidence : array-like of shape (n_samples,)
        Any score that ranks predictions, such as the probability of the predicted class.

    Returns
    -------
    curve : RiskCoverage
        Arrays ``coverage`` and ``risk``.

    See Also
    --------
    lokl.explain.RiskCoverageDisplay : Figure of it.
    lokl.explain.PredictionSets : Sets instead of abstaining.

    Examples
    --------
    >>> from lokl.explain import risk_coverage
    >>> wrong, probability = [False, True, False, False], [0.9, 0.6, 0.8, 0.7]
    >>> risk_coverage(wrong, probability).risk.tolist()
    [0.0, 0.0, 0.0, 0.25]
    """
    loss, confidence = np.asarray(loss), np.asarray(confidence, dtype=float)
    check_consistent_length(loss, confidence)
    if not np.isfinite(confidence).all():
        raise ValueError("confidence must be finite; leave out samples without a confidence")
    ranked = loss[np.argsort(-confidence, kind="stable")]
    count = np.arange(1, len(loss) + 1)
    return RiskCoverage(count / len(loss), np.cumsum(ranked) / count)


def _risk(
    loss: Array, confidence: Array
) -> tuple[list[tuple[float, Interval]], list[tuple[float, float]]]:
    """Return the risk at some coverages with intervals, and at many coverages.

    Parameters
    ----------
    loss : array of shape (n_samples,)
        Whether each prediction is wrong (bool), or its absolute error.
    confidence : array of shape (n_samples,)

    Returns
    -------
    risk : list of (coverage, Interval)
    curve : list of (coverage, risk)
        Both are empty if some confidence is unknown.
    """
    if not np.isfinite(confidence).all():
        return [], []
    n, ranked = len(loss), loss[np.argsort(-confidence, kind="stable")]
    risk = [(share, mean_interval(ranked[: max(1, round(share * n))])) for share in _COVERAGES]
    points = np.column_stack(risk_coverage(loss, confidence))
    return risk, [(float(x), float(y)) for x, y in points[evenly_spaced(n, _POINTS)]]


def calibration_bins(stated: Array, right: Array) -> list[CalibrationBin]:
    """Group samples by probability; neighbouring steps are joined until a bin has 20 samples.

    Parameters
    ----------
    stated : array of shape (n_samples,)
        Probability of each predicted class.
    right : bool array of shape (n_samples,)

    Returns
    -------
    bins : list of CalibrationBin
        From low to high probabilities. There are fewer than 20 samples in a bin only if it is the
        only one.
    """
    code = np.minimum((stated * _STEPS).astype(int), _STEPS - 1)
    counts, edges, n_samples = np.bincount(code, minlength=_STEPS), [_STEPS], 0
    for step in reversed(range(_STEPS)):
        n_samples += int(counts[step])
        if n_samples >= _LEAST:
            edges.append(step)
            n_samples = 0
    if n_samples:
        # Samples that are left over join the lowest bin.
        edges[max(len(edges) - 1, 1) :] = [int(code.min())]
    bins = []
    for low, high in pairwise(sorted(edges)):
        rows = (code >= low) & (code < high)
        share, mean = mean_interval(right[rows]), float(stated[rows].mean())
        bins.append(CalibrationBin(low / _STEPS, high / _STEPS, mean, share, int(rows.sum())))
    return bins


def _patterns(presence: Array, values: Array) -> list[tuple[list[int], int, Interval]]:
    """Return missing views, samples and mean value of each pattern of missing views."""
    if presence.all():
        return []
    patterns, code = np.unique(presence, axis=0, return_inverse=True)
    groups = [values[code.ravel() == k] for k in range(len(patterns))]
    found = [
        (np.flatnonzero(~row).tolist(), len(group), mean_interval(group))
        for row, group in zip(patterns, groups, strict=True)
    ]
    return sorted(found, key=lambda pattern: (-pattern[1], pattern[0]))
