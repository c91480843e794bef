"""Reliability of predictions: calibration, confusion, risk against coverage, missing views."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from sklearn.metrics import confusion_matrix

from lokl._arrays import Array
from lokl.explain.explanation import Explanation
from lokl.report.content import Interval
from lokl.report.formatting import (
    absolute_errors,
    mean_interval,
    predicted_probability,
    share_interval,
)
from lokl.search import expected_calibration_error

# Bins of the calibration curve, bars of the histogram, points of the risk curve.
_BINS, _BARS, _POINTS = 10, 20, 80
_COVERAGES = (1.0, 0.9, 0.8, 0.7, 0.5)


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
class MissingPattern:
    """Score of the samples that lack the same views (by position)."""

    views: tuple[int, ...]
    n_samples: int
    score: Interval


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
    patterns : list of MissingPattern
        Empty if no sample lacks a view.
    calibration : list of CalibrationBin
        Empty for regression and for models without probabilities.
    error : float or None
        Expected calibration error.
    stated : list of float
        Histogram of the probabilities of the predicted classes, as shares.
    confusion : array of shape (n_classes, n_classes)
        True classes in rows, predicted classes in columns; empty for regression.
    """

    n_samples: int
    score: Interval
    ranking: str
    risk: list[tuple[float, Interval]]
    curve: list[tuple[float, float]]
    patterns: list[MissingPattern]
    calibration: list[CalibrationBin] = field(default_factory=list)
    error: float | None = None
    stated: list[float] = field(default_factory=list)
    confusion: Array = field(default_factory=lambda: np.zeros((0, 0), dtype=int))

    @property
    def mean_stated(self) -> float:
        """Mean probability of the predicted classes."""
        return sum(b.n_samples * b.stated for b in self.calibration) / max(self.n_samples, 1)


def reliability(explanation: Explanation) -> Reliability | None:
    """Return the reliability on samples whose truth is known, None if there are none."""
    known = explanation.known
    if not known.any():
        return None
    if explanation.classes is None:
        confidence, ranking = -explanation.disagreement[known], "by how far their views agree"
        return _ranked(
            explanation, absolute_errors(explanation)[known], mean_interval, confidence, ranking
        )
    probabilities, codes = explanation.probabilities, np.arange(len(explanation.classes))
    truth, predicted = explanation.truth_codes[known], explanation.predicted_codes[known]
    matrix = confusion_matrix(truth, predicted, labels=codes)
    wrong = truth != predicted
    if probabilities is None:
        margin = (explanation.base_values + explanation.contributions.sum(axis=1))[known]
        how = "by the size of their decision"
        return _ranked(explanation, wrong, _error_rate, margin, how, confusion=matrix)
    stated = predicted_probability(explanation)[known]
    histogram, _ = np.histogram(np.clip(stated, 0.0, 1.0), bins=_BARS, range=(0.0, 1.0))
    return _ranked(
        explanation,
        wrong,
        _error_rate,
        stated,
        "by their probability",
        confusion=matrix,
        calibration=_calibration(stated, ~wrong),
        error=expected_calibration_error(truth, probabilities[known], classes=codes),
        stated=(histogram / len(stated)).tolist(),
    )


def _ranked(
    explanation: Explanation,
    loss: Array,
    interval: Callable[[Array], Interval],
    confidence: Array,
    ranking: str,
    **found: object,
) -> Reliability:
    """Return the reliability of predictions with a loss and a confidence for each of them."""
    risk: list[tuple[float, Interval]] = []
    curve: list[tuple[float, float]] = []
    if np.isfinite(confidence).all() and (explanation.classes is not None or np.ptp(confidence)):
        order = np.argsort(-confidence, kind="stable")
        sizes = [max(1, round(share * len(order))) for share in _COVERAGES]
        pairs = zip(_COVERAGES, sizes, strict=True)
        risk = [(share, interval(loss[order[:size]])) for share, size in pairs]
        means = np.cumsum(loss[order]) / np.arange(1, len(order) + 1)
        ends = np.unique(np.linspace(0, len(order) - 1, min(len(order), _POINTS)).astype(int))
        curve = [((k + 1) / len(order), float(means[k])) for k in ends.tolist()]
    score = _right if explanation.classes is not None else interval
    patterns = [
        MissingPattern(views, len(rows), score(loss[rows]))
        for views, rows in _missing_patterns(explanation.presence[explanation.known])
    ]
    return Reliability(len(loss), score(loss), ranking, risk, curve, patterns, **found)  # type: ignore[arg-type]


def _error_rate(wrong: Array) -> Interval:
    return share_interval(int(wrong.sum()), len(wrong))


def _right(wrong: Array) -> Interval:
    return _error_rate(~wrong)


def _calibration(stated: Array, right: Array) -> list[CalibrationBin]:
    """Group samples by probability, in the bins of the expected calibration error."""
    code = np.minimum((stated * _BINS).astype(int), _BINS - 1)
    bins = []
    for k in np.unique(code).tolist():
        rows = code == k
        share = share_interval(int(right[rows].sum()), int(rows.sum()))
        mean = float(stated[rows].mean())
        bins.append(CalibrationBin(k / _BINS, (k + 1) / _BINS, mean, share, int(rows.sum())))
    return bins


def _missing_patterns(presence: Array) -> list[tuple[tuple[int, ...], Array]]:
    """Return rows by the views that they lack, most frequent first; nothing if none are missing."""
    if presence.all():
        return []
    patterns, code = np.unique(presence, axis=0, return_inverse=True)
    groups = [
        (tuple(np.flatnonzero(~row).tolist()), np.flatnonzero(code.ravel() == k))
        for k, row in enumerate(patterns)
    ]
    return sorted(groups, key=lambda group: (-len(group[1]), group[0]))
