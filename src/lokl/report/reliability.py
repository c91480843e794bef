"""Whether answers can be believed: calibration, confusion, risk against coverage, missing views."""

from dataclasses import dataclass

import numpy as np

from lokl._arrays import Array
from lokl.report.content import Cases, Interval
from lokl.report.formatting import mean_interval, wilson

# Steps of the probability, and bars of its distribution.
_BINS, _BARS = 10, 20
_COVERAGES = (1.0, 0.9, 0.8, 0.7, 0.5)
# Points of a curve that is drawn.
_POINTS = 80


@dataclass(frozen=True)
class Bin:
    """Samples with similar probabilities of their predicted class."""

    low: float
    high: float
    stated: float  # their mean
    right: Interval  # share of right answers
    n_samples: int


@dataclass(frozen=True)
class Pattern:
    """Score of the samples that lack the same views."""

    lacks: tuple[int, ...]
    n_samples: int
    score: Interval  # share that is right, or mean error of a regression


@dataclass(frozen=True)
class Reliability:
    """What answers about samples of known truth say about the model.

    Attributes
    ----------
    n_samples : int
        Samples whose truth is known.
    score : Interval
        Share of right answers, or mean absolute error.
    calibration : list of Bin
        Empty for regressions, and where there are no probabilities.
    error : float or None
        Expected calibration error, the mean distance of what is stated from what is right.
    stated : list of float
        Distribution of the probabilities of the predicted classes: parts in bars of equal width.
    confusion : list of list of int
        True classes down, predicted classes across; empty for regressions.
    risk : list of (coverage, Interval)
        Share that is wrong, or mean error, if only the surest answers are used; empty where
        nothing tells which are surer.
    curve : list of (coverage, risk)
        The same at many coverages.
    sureness : str
        What tells which answers are surer.
    patterns : list of Pattern
        Empty where no sample lacks a view.
    """

    n_samples: int
    score: Interval
    calibration: list[Bin]
    error: float | None
    stated: list[float]
    confusion: list[list[int]]
    risk: list[tuple[float, Interval]]
    curve: list[tuple[float, float]]
    sureness: str
    patterns: list[Pattern]

    @property
    def mean_stated(self) -> float:
        """Mean probability of the predicted classes."""
        return sum(b.n_samples * b.stated for b in self.calibration) / max(self.n_samples, 1)


def reliability(cases: Cases, classes: list[str]) -> Reliability | None:
    """Judge answers about samples whose truth is known; None where there are none."""
    known = cases.known
    if not known.any():
        return None
    return _of_classes(cases, known, len(classes)) if classes else _of_numbers(cases, known)


def _of_classes(cases: Cases, known: Array, n_classes: int) -> Reliability:
    truth, predicted = cases.truth[known].astype(int), cases.predicted[known].astype(int)
    right = truth == predicted
    n = len(right)
    confusion = np.zeros((n_classes, n_classes), dtype=int)
    np.add.at(confusion, (truth, predicted), 1)
    bins: list[Bin] = []
    stated: list[float] = []
    if cases.probabilities is not None:
        sure = cases.probabilities[known, predicted]
        bins = _bins(sure, right)
        counts, _ = np.histogram(np.clip(sure, 0.0, 1.0), bins=_BARS, range=(0.0, 1.0))
        stated = (counts / n).tolist()
        sureness = "by their probability"
    else:
        sure = (cases.start + cases.parts.sum(axis=1))[known]
        sureness = "by the size of their decision"
    error = sum(b.n_samples * abs(b.stated - b.right.mean) for b in bins) / n if bins else None
    wrong = ~right
    return Reliability(
        n,
        wilson(int(right.sum()), n),
        bins,
        error,
        stated,
        confusion.tolist(),
        [(share, wilson(float(wrong[rows].sum()), len(rows))) for share, rows in _surest(sure)],
        _curve(sure, wrong.astype(float)),
        sureness,
        [
            Pattern(lacks, len(rows), wilson(int(right[rows].sum()), len(rows)))
            for lacks, rows in _patterns(cases.present[known])
        ],
    )


def _of_numbers(cases: Cases, known: Array) -> Reliability:
    error = np.abs(cases.truth[known].astype(float) - cases.predicted[known])
    sure = -np.asarray(cases.disagreement, dtype=float)[known]
    told = bool(np.isfinite(sure).all()) and float(np.ptp(sure)) > 0
    return Reliability(
        len(error),
        mean_interval(error),
        [],
        None,
        [],
        [],
        [(share, mean_interval(error[rows])) for share, rows in _surest(sure)] if told else [],
        _curve(sure, error) if told else [],
        "by how far their views agree",
        [
            Pattern(lacks, len(rows), mean_interval(error[rows]))
            for lacks, rows in _patterns(cases.present[known])
        ],
    )


def _bins(sure: Array, right: Array) -> list[Bin]:
    """Groups of samples in steps of the probability, as the expected calibration error has them."""
    step = np.minimum((sure * _BINS).astype(int), _BINS - 1)
    return [
        Bin(
            k / _BINS,
            (k + 1) / _BINS,
            float(sure[step == k].mean()),
            wilson(int(right[step == k].sum()), int((step == k).sum())),
            int((step == k).sum()),
        )
        for k in np.unique(step).tolist()
    ]


def _surest(sure: Array) -> list[tuple[float, Array]]:
    order = np.argsort(-sure, kind="stable")
    return [(share, order[: max(1, round(share * len(order)))]) for share in _COVERAGES]


def _curve(sure: Array, loss: Array) -> list[tuple[float, float]]:
    """Mean loss of the surest samples, at many coverages."""
    order = np.argsort(-sure, kind="stable")
    means = np.cumsum(loss[order]) / np.arange(1, len(order) + 1)
    places = np.unique(np.linspace(0, len(order) - 1, min(len(order), _POINTS)).astype(int))
    return [((int(k) + 1) / len(order), float(means[k])) for k in places]


def _patterns(present: Array) -> list[tuple[tuple[int, ...], Array]]:
    """Samples by which views they lack, the most frequent pattern first; none where nobody does."""
    if present.all():
        return []
    found, code = np.unique(present, axis=0, return_inverse=True)
    groups = [
        (tuple(int(view) for view in np.flatnonzero(~row)), np.flatnonzero(code.ravel() == k))
        for k, row in enumerate(found)
    ]
    return sorted(groups, key=lambda group: (-len(group[1]), group[0]))
