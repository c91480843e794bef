"""Numbers and names as text, with no more digits than their intervals justify."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from math import floor, isfinite, log10
from typing import Any

import numpy as np
from scipy.stats import binomtest, sem

from lokl._arrays import Array
from lokl.explain.explanation import Explanation
from lokl.report.content import Interval, Report

# Two-sided 95 % quantile of the normal distribution.
_QUANTILE = 1.959964
_MOST_DECIMALS = 6


def decimals(reach: float, most: int = _MOST_DECIMALS) -> int:
    """Return the number of decimals for a value known to within +/- `reach`.

    One significant digit of the reach is shown, two if it begins with 1, 2 or 3, as is usual for
    uncertain values.
    """
    if not isfinite(reach) or reach <= 0:
        return min(2, most)
    power = floor(log10(reach))
    return max(0, min((1 if reach / 10.0**power <= 3.55 else 0) - power, most))


def fixed(value: float, places: int) -> str:
    """Return a number with `places` decimals and a minus sign as wide as a plus sign."""
    # Halves are rounded up, as in the script of the page; the context fits the longest float.
    exact = Decimal(value).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, Context(prec=400))
    shown = f"{exact:f}"
    if not float(shown):
        shown = shown.removeprefix("-")
    return shown.replace("-", "−")


def significant(value: float, digits: int = 2) -> str:
    """Return a number with `digits` significant digits, never as a power of ten."""
    return fixed(value, max(0, digits - 1 - floor(log10(abs(value))))) if value else "0"


def format_seconds(value: float) -> str:
    """Return a duration with at most two digits."""
    if not isfinite(value):
        return ""
    if value < 0.01:
        return "< 0.01"
    if value < 120:
        return significant(value, 1 if value < 0.1 else 2) if value < 10 else f"{value:.0f}"
    return f"{value / 60:.0f} min"


def format_probability(value: float) -> str:
    """Return a probability with two decimals, empty for NaN.

    It is first rounded to thousandths, which is what the script of the page stores.
    """
    return "" if not isfinite(value) else fixed(round(value, 3), 2)


def format_percent(value: float, n: int = 1000) -> str:
    """Return a share of n samples in percent, with one decimal from 200 samples on."""
    return fixed(100 * value, 0 if n < 200 else 1)


def format_any(value: Any) -> str:
    """Return a value of the audit as text; mappings and lists are flattened."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {format_any(own)}" for name, own in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(format_any, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def count(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is 1."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def short(text: str, most: int) -> str:
    """Return at most `most` characters; the middle is left out, since similar names end apart."""
    tail = int(0.4 * most)
    return text if len(text) <= most else f"{text[: most - tail - 1]}…{text[-tail:]}"


def first_names(names: list[str], most: int) -> str:
    """Return the first names, and the number of the others."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def share_interval(number: int, n: int) -> Interval:
    """Return a share of n samples with its 95 % Wilson interval, which stays inside 0 and 1."""
    if n == 0:
        return Interval(float("nan"))
    share, limits = number / n, binomtest(number, n).proportion_ci(method="wilson")
    # Rounding must not put the share outside.
    return Interval(share, min(float(limits.low), share), max(float(limits.high), share))


def mean_interval(values: Sequence[float] | Array) -> Interval:
    """Return a mean with its 95 % interval from the normal distribution."""
    if len(values) == 0:
        return Interval(float("nan"))
    mean = float(np.mean(values))
    if len(values) == 1:
        return Interval(mean)
    reach = _QUANTILE * float(sem(values))
    return Interval(mean, mean - reach, mean + reach)


@dataclass(frozen=True)
class Scale:
    """Scores as percentages, or as they are."""

    percent: bool = True

    @property
    def factor(self) -> float:
        return 100.0 if self.percent else 1.0

    @property
    def unit(self) -> str:
        return " %" if self.percent else ""

    def places(self, values: Iterable[Interval | None]) -> int:
        """Return the number of decimals that values of one column share."""
        known = [value for value in values if value is not None and isfinite(value.mean)]
        reaches = sorted(value.reach for value in known if value.reach > 0)
        if reaches:
            middle = self.factor * reaches[len(reaches) // 2]
            if not self.percent:
                return decimals(middle)
            return 0 if middle >= 10 else 1 if middle >= 0.05 else 2
        if self.percent or not known:
            return 1
        return decimals(max(abs(value.mean) for value in known) / 30)

    def mean(self, value: Interval | None, places: int | None = None) -> str:
        """Return the mean alone, empty if there is none."""
        if value is None or not isfinite(value.mean):
            return ""
        places = self.places([value]) if places is None else places
        return fixed(self.factor * value.mean, places)

    def limits(self, value: Interval | None, places: int | None = None) -> str:
        """Return both limits of the interval, empty if there are none."""
        if value is None or value.low is None or value.high is None:
            return ""
        places = self.places([value]) if places is None else places
        return " to ".join(fixed(self.factor * end, places) for end in (value.low, value.high))

    def with_limits(self, value: Interval | None) -> str:
        """Return the mean with its unit and its 95 % interval."""
        limits = self.limits(value)
        return self.mean(value) + self.unit + (f" ({limits}, 95 % interval)" if limits else "")


@dataclass(frozen=True)
class Formatter:
    """Formats of the values of one report.

    Attributes
    ----------
    classes : list of str
        Empty for regression.
    scale : Scale
        Scale of scores.
    value_places, contribution_places : int
        Decimals of targets and of contributions.
    """

    classes: list[str]
    scale: Scale
    value_places: int = 2
    contribution_places: int = 2

    @classmethod
    def of(cls, report: Report) -> "Formatter":
        """Choose decimals by the spread of the values."""
        scale = Scale(bool(report.classes) if report.percent is None else report.percent)
        explanation = report.explanation
        if explanation is None or not len(explanation):
            return cls(report.classes, scale)
        sizes = np.abs(explanation.contributions[np.isfinite(explanation.contributions)])
        contribution = decimals(float(sizes.mean()) if sizes.size else 1.0)
        if not explanation.is_regression:
            return cls(report.classes, scale, contribution_places=contribution)
        return cls([], scale, decimals(float(explanation.predictions.std()) / 10), contribution)

    def outcome(self, value: float) -> str:
        """Return the class of a code, or a target; empty if it is unknown."""
        if not isfinite(value) or (self.classes and value < 0):
            return ""
        return self.classes[int(value)] if self.classes else fixed(value, self.value_places)

    def contribution(self, value: float) -> str:
        """Return a contribution with its sign."""
        shown = fixed(value, self.contribution_places)
        return f"+{shown}" if value > 0 and float(shown) else shown

    def error(self, value: float) -> str:
        """Return an absolute error of a regression."""
        return fixed(value, self.value_places)

    def error_with_limits(self, value: Interval) -> str:
        """Return a mean absolute error with its 95 % interval."""
        if value.low is None or value.high is None:
            return self.error(value.mean)
        low, high = self.error(value.low), self.error(value.high)
        return f"{self.error(value.mean)} ({low} to {high}, 95 % interval)"


def rank_by_interest(explanation: Explanation) -> tuple[Array, Array]:
    """Return samples by how much they deserve a look, and that measure, largest first.

    It is large for confident errors, for large errors, and for views that disagree.
    """
    interest = np.nan_to_num(np.asarray(explanation.disagreement, dtype=float))
    if explanation.is_regression:
        error = absolute_errors(explanation)
        interest = interest + error / (error.max(initial=0.0) or 1.0)
    else:
        interest = interest + np.where(explanation.wrong, predicted_probability(explanation, 1), 0)
    order = np.argsort(-interest, kind="stable")
    return order, interest[order]


def absolute_errors(explanation: Explanation) -> Array:
    """Return absolute errors of a regression, 0 if the truth is unknown."""
    if explanation.truth is None:
        return np.zeros(len(explanation))
    return np.abs(np.nan_to_num(explanation.truth - explanation.predictions))


def predicted_probability(explanation: Explanation, default: float = float("nan")) -> Array:
    """Return the probability of each predicted class, `default` without probabilities."""
    if explanation.probabilities is None:
        return np.full(len(explanation), default)
    return explanation.probabilities[np.arange(len(explanation)), explanation.predicted_codes]
