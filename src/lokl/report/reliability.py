"""Whether probabilities can be believed: calibration, confusion, risk against coverage."""

from dataclasses import dataclass

import numpy as np

from lokl._arrays import Array
from lokl.report.content import Cases

_BINS = 8
_COVERAGES = (1.0, 0.9, 0.8, 0.7, 0.5)


@dataclass(frozen=True)
class Pattern:
    """Score of the samples that lack the same views."""

    lacks: str
    n_samples: int
    score: float


@dataclass(frozen=True)
class Reliability:
    """What held-out answers say about the probabilities.

    Attributes
    ----------
    calibration : list of (stated probability, share that is right)
        Empty for regressions, and where no class is known.
    error : float or None
        Expected calibration error, the mean distance of both.
    confusion : list of list of int
        True classes down, predicted classes across.
    risk : list of (coverage, share that is wrong)
        If only the surest predictions are used.
    patterns : list of Pattern
    """

    calibration: list[tuple[float, float]]
    error: float | None
    confusion: list[list[int]]
    risk: list[tuple[float, float]]
    patterns: list[Pattern]


def reliability(cases: Cases, classes: list[str]) -> Reliability:
    """Judge probabilities of samples whose class is known."""
    if cases.probabilities is None:
        return Reliability([], None, [], [], [])
    known = cases.truth >= 0
    if not known.any():
        return Reliability([], None, [], [], [])
    truth, predicted = cases.truth[known].astype(int), cases.predicted[known].astype(int)
    sure = cases.probabilities[known, predicted]
    right = truth == predicted
    confusion = np.zeros((len(classes), len(classes)), dtype=int)
    np.add.at(confusion, (truth, predicted), 1)
    bins = _bins(sure, right)
    error = sum(n * abs(p - share) for n, p, share in bins) / len(sure)
    return Reliability(
        [(p, share) for _, p, share in bins],
        float(error),
        confusion.tolist(),
        _risk(sure, right),
        _patterns(cases.present[known], right),
    )


def _bins(sure: Array, right: Array) -> list[tuple[int, float, float]]:
    """Count, mean probability and share that is right, of samples with similar probabilities."""
    order = np.argsort(sure, kind="stable")
    parts = [part for part in np.array_split(order, min(_BINS, len(order))) if len(part)]
    return [(len(part), float(sure[part].mean()), float(right[part].mean())) for part in parts]


def _risk(sure: Array, right: Array) -> list[tuple[float, float]]:
    order = np.argsort(-sure, kind="stable")
    kept = [(share, order[: max(1, round(share * len(order)))]) for share in _COVERAGES]
    return [(share, float(1.0 - right[rows].mean())) for share, rows in kept]


def _patterns(present: Array, right: Array) -> list[Pattern]:
    """Score by which views samples lack; alone for those who lack none."""
    found, code = np.unique(present, axis=0, return_inverse=True)
    if len(found) == 1:
        return []
    code = code.ravel()
    return [
        Pattern(
            ",".join(str(view) for view in np.flatnonzero(~row)),
            int((code == k).sum()),
            float(right[code == k].mean()),
        )
        for k, row in enumerate(found)
    ]
