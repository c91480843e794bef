"""Numbers as words: no digit that the interval does not deserve."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from math import floor, isfinite, log10, sqrt

from lokl.report.content import Interval

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
