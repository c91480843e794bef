"""Numbers as words: no digit that the interval does not deserve.

Words of a report: outcomes, parts and probabilities with the digits they deserve.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from math import floor, isfinite, log10, sqrt

import numpy as np

from lokl._arrays import Array
from lokl.report.content import Cases, Interval, Report

# Two-sided 95 % of the normal distribution.
_DEVIATIONS = 1.959964
_MOST_DECIMALS = 6


def decimals(reach: float, most: int = _MOST_DECIMALS) -> int:
    """Digits behind the point of a number that is known to plus or minus `reach`.

    One significant digit of the reach is shown, two where it begins with 1, 2 or 3: the usual rule
    for uncertain numbers.
    """
    if not isfinite(reach) or reach <= 0:
        return min(2, most)
    power = floor(log10(reach))
    return max(0, min((1 if reach / 10.0**power <= 3.55 else 0) - power, most))


def percent_decimals(reach: float) -> int:
    """The same of percentages, which people read with one digit behind the point."""
    return 0 if reach >= 10 else 1 if reach >= 0.05 else 2


def fixed(value: float, places: int) -> str:
    """Return a number with so many digits behind the point and a minus as wide as a plus."""
    # Halves are rounded up, as the script of the page does; room for the longest of all numbers.
    exact = Decimal(value).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, Context(prec=400))
    shown = f"{exact:f}"
    if not float(shown):
        shown = shown.removeprefix("-")
    return shown.replace("-", "−")


def significant(value: float | None, digits: int = 2) -> str:
    """Return a number with so many significant digits, never as a power of ten."""
    if value is None or not isfinite(value):
        return ""
    if value == 0:
        return "0"
    return fixed(value, max(0, digits - 1 - floor(log10(abs(value)))))


def seconds(value: float | None) -> str:
    """Return a time; below a hundredth nobody cares."""
    if value is None or not isfinite(value):
        return ""
    if value < 0.01:
        return "< 0.01"
    if value < 120:
        return significant(value, 1 if value < 0.1 else 2) if value < 10 else f"{value:.0f}"
    return f"{value / 60:.0f} min"


@dataclass(frozen=True)
class Scale:
    """How scores are told: as percentages, or as they are."""

    percent: bool = True

    @property
    def factor(self) -> float:
        return 100.0 if self.percent else 1.0

    @property
    def sign(self) -> str:
        return " %" if self.percent else ""

    def places(self, values: Iterable[Interval | None]) -> int:
        """Digits behind the point that numbers of one kind deserve together."""
        known = [value for value in values if value is not None and isfinite(value.mean)]
        reaches = sorted(reach for value in known if (reach := _reach(value)) > 0)
        if reaches:
            middle = self.factor * reaches[len(reaches) // 2]
            return percent_decimals(middle) if self.percent else decimals(middle)
        if self.percent or not known:
            return 1
        return decimals(max(abs(value.mean) for value in known) / 30)

    def mean(self, value: Interval | None, places: int | None = None) -> str:
        """Return the number alone."""
        if value is None or not isfinite(value.mean):
            return ""
        places = self.places([value]) if places is None else places
        return fixed(self.factor * value.mean, places)

    def limits(self, value: Interval | None, places: int | None = None) -> str:
        """Return both ends of the interval, nothing where there is none."""
        if value is None or value.low is None or value.high is None:
            return ""
        places = self.places([value]) if places is None else places
        ends = (fixed(self.factor * end, places) for end in (value.low, value.high))
        return " to ".join(ends)

    def span(self, value: Interval | None) -> str:
        """Return the number and, in parentheses, its interval."""
        limits = self.limits(value)
        return self.mean(value) + (f" ({limits})" if limits else "")


def _reach(value: Interval) -> float:
    if value.low is None or value.high is None:
        return 0.0
    return (value.high - value.low) / 2


def wilson(right: float, n: int) -> Interval:
    """Share of n samples with its 95 % interval after Wilson, which stays inside 0 and 1."""
    if n == 0:
        return Interval(float("nan"))
    share, z = right / n, _DEVIATIONS
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    reach = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    # Rounding must not put the share outside.
    low, high = max(0.0, min(middle - reach, share)), min(1.0, max(middle + reach, share))
    return Interval(share, low, high)


def mean_interval(values: Sequence[float]) -> Interval:
    """Mean of numbers with its 95 % interval, by the normal distribution."""
    n = len(values)
    if n == 0:
        return Interval(float("nan"))
    mean = float(sum(values)) / n
    if n == 1:
        return Interval(mean)
    spread = sqrt(sum((v - mean) ** 2 for v in values) / (n - 1) / n)
    return Interval(
        float(mean), float(mean - _DEVIATIONS * spread), float(mean + _DEVIATIONS * spread)
    )


# Views in which a sample is less like those of training than this are told.
FAMILIAR = 0.5


@dataclass(frozen=True)
class Words:
    """How the numbers of one report are told.

    Attributes
    ----------
    classes : list of str
        Empty for regressions.
    scale : Scale
        Of scores.
    value_places, part_places : int
        Digits behind the point of targets, and of parts in a decision.
    """

    classes: list[str]
    scale: Scale
    value_places: int = 2
    part_places: int = 2

    @classmethod
    def of(cls, report: Report) -> "Words":
        """Find out how many digits numbers deserve."""
        percent = bool(report.classes) if report.percent is None else report.percent
        cases = report.cases
        if cases is None or not len(cases.ids):
            return cls(report.classes, Scale(percent))
        values = decimals(_typical(cases.predicted) / 10)
        parts = decimals(_typical(cases.parts, about=0.0))
        return cls(report.classes, Scale(percent), values, parts)

    def outcome(self, value: float) -> str:
        """Return the name of a class or a number; nothing where it is not known."""
        if not isfinite(value) or (self.classes and value < 0):
            return ""
        return self.classes[int(value)] if self.classes else fixed(value, self.value_places)

    def part(self, value: float) -> str:
        """Return a part of a decision with its sign."""
        shown = fixed(value, self.part_places)
        return f"+{shown}" if value > 0 and float(shown) else shown

    def error(self, value: float) -> str:
        """Return how far a number is from the truth."""
        return fixed(value, self.value_places)


def chance(value: float) -> str:
    """Return a probability; two digits say more than anybody knows.

    The script of the page knows thousandths, so that these are what is rounded here, too.
    """
    return "" if not isfinite(value) else fixed(round(value, 3), 2)


def percent(value: float | None, n: int = 1000) -> str:
    """Return a share of n samples as a percentage, with a digit behind the point for many."""
    if value is None or not isfinite(value):
        return ""
    return fixed(100 * value, 0 if n < 200 else 1)


def attention(cases: Cases) -> tuple[Array, Array]:
    """Samples from the one most worth a look, and how much they are.

    Those are sure and wrong, or far off, or have views that disagree.
    """
    rows = np.arange(len(cases.ids))
    worth = np.nan_to_num(np.asarray(cases.disagreement, dtype=float))
    if cases.classifies:
        sure = 1.0 if cases.probabilities is None else cases.probabilities[rows, cases.predicted]
        worth = worth + np.where(cases.wrong, sure, 0.0)
    else:
        error = np.abs(np.nan_to_num(cases.truth.astype(float) - cases.predicted))
        worth = worth + error / (error.max() or 1.0)
    order = np.argsort(-worth, kind="stable")
    return order, worth[order]


def count(number: int, what: str) -> str:
    """Return how many there are of something."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def short(words: str, most: int) -> str:
    """Return words of at most so many signs: names of a kind often differ at their ends."""
    tail = int(0.4 * most)
    return words if len(words) <= most else f"{words[: most - tail - 1]}…{words[-tail:]}"


def sentence(names: list[str], most: int = 3) -> str:
    """Return some names as words, the others as a count."""
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"


def _typical(values: Array, about: float | None = None) -> float:
    """Size of numbers, or of how they vary."""
    values = np.asarray(values, dtype=float)
    finite = values[np.isfinite(values)]
    if not finite.size:
        return 1.0
    return float(finite.std()) if about is None else float(np.abs(finite - about).mean())
