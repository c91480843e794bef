"""Numbers and names as text, with no more digits than their intervals justify."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from math import floor, inf, isfinite, log10
from typing import Any

import numpy as np

from lokl.explain.explanation import SampleExplanation, ViewContribution
from lokl.explain.results import Interval
from lokl.report.content import Report

_MOST_DECIMALS = 6


def decimals(reach: float) -> int:
    """Return the number of decimals for a value known to within +/- `reach`.

    One significant digit of the reach is shown, two if it begins with 1, 2 or 3, as is usual for
    uncertain values.
    """
    if not isfinite(reach) or reach <= 0:
        return 2
    power = floor(log10(reach))
    return max(0, min((1 if reach / 10.0**power <= 3.55 else 0) - power, _MOST_DECIMALS))


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


def format_probability(value: float | None) -> str:
    """Return a probability with two decimals, empty for NaN and None.

    It is first rounded to thousandths, which is what the script of the page stores.
    """
    return "" if value is None or not isfinite(value) else fixed(round(float(value), 3), 2)


def format_percent(value: float, n: int = 1000) -> str:
    """Return a share of n samples in percent."""
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


# Scores that are shares of samples, and scores of which lower values are better.
_SHARES = ("accuracy", "sensitivity", "specificity", "precision", "recall")
_LOSSES = ("loss", "error", "Brier")
# Samples from which on a percentage has a decimal.
_MANY = 200


@dataclass(frozen=True)
class Scale:
    """Values as percentages, or as they are, with decimals chosen by their intervals.

    Attributes
    ----------
    percent : bool
    whole : bool
        Whether percentages have no decimals, because there are few samples.
    low, high : float
        Bounds of the values: intervals end there.
    is_loss : bool
        Whether lower values are better.
    """

    percent: bool = True
    whole: bool = False
    low: float = -inf
    high: float = inf
    is_loss: bool = False

    @classmethod
    def of_score(cls, name: str, *, percent: bool | None = None, n_samples: int = _MANY) -> "Scale":
        """Return the scale of a score; by its name, it may be a share of samples, or a loss."""
        is_loss = any(word in name for word in _LOSSES)
        percent = any(word in name for word in _SHARES) if percent is None else percent
        low = 0.0 if percent or is_loss or name == "AUROC" else -inf
        return cls(percent, n_samples < _MANY, low, inf if is_loss else 1.0, is_loss)

    @property
    def differences(self) -> "Scale":
        """Scale of differences between values."""
        return Scale(self.percent, self.whole)

    @property
    def factor(self) -> float:
        return 100.0 if self.percent else 1.0

    @property
    def unit(self) -> str:
        return " %" if self.percent else ""

    def bounded(self, value: Interval | None) -> Interval | None:
        """Return a value whose interval ends at the bounds; None without a value."""
        if value is None or not isfinite(value.mean):
            return None
        return Interval(value.mean, *np.clip(value[1:], self.low, self.high).tolist())

    def places(self, values: Iterable[Interval | None]) -> int:
        """Return the number of decimals that values of one column share."""
        if self.percent:
            return 0 if self.whole else 1
        known = [value for value in values if value is not None and isfinite(value.mean)]
        reaches = sorted(value.reach for value in known if value.reach > 0)
        if reaches:
            return decimals(reaches[len(reaches) // 2])
        return decimals(max(abs(value.mean) for value in known) / 30) if known else 1

    def mean(self, value: Interval | None, places: int | None = None) -> str:
        """Return the mean alone; empty without a value."""
        if value is None or not isfinite(value.mean):
            return ""
        places = self.places([value]) if places is None else places
        return fixed(self.factor * value.mean, places)

    def limits(self, value: Interval | None, places: int | None = None) -> str:
        """Return both limits of the interval; empty if they do not differ from the mean."""
        value = self.bounded(value)
        if value is None or not isfinite(value.reach):
            return ""
        places = self.places([value]) if places is None else places
        shown = [fixed(self.factor * end, places) for end in value]
        return "" if len(set(shown)) == 1 else f"{shown[1]} to {shown[2]}"

    def with_limits(self, value: Interval | None) -> str:
        """Return the mean with its unit and its 95 % interval."""
        limits = self.limits(value)
        return self.mean(value) + self.unit + (f" ({limits})" if limits else "")


@dataclass(frozen=True)
class Formatter:
    """Formats of the values of one report.

    Attributes
    ----------
    names : dict of class to str
        Empty for regression.
    scale : Scale
        Scale of scores.
    value_places, contribution_places : int
        Decimals of targets and of contributions.
    n_samples : int
        Number of samples, for the decimals of percentages.
    """

    names: Mapping[Any, str]
    scale: Scale
    value_places: int = 2
    contribution_places: int = 2
    n_samples: int = _MANY

    @classmethod
    def of(cls, report: Report) -> "Formatter":
        """Choose decimals by the spread of the values."""
        explanation = report.explanation
        n_samples = _MANY if explanation is None else len(explanation)
        percent = bool(report.classes) if report.percent is None else report.percent
        scale = Scale.of_score(report.score_name, percent=percent, n_samples=n_samples)
        if explanation is None or not len(explanation):
            return cls({}, scale)
        sizes = np.abs(explanation.contributions[np.isfinite(explanation.contributions)])
        # Log-odds have the decimals of the terminal.
        fine = explanation.unit == "log-odds" or not sizes.size
        places = {"contribution_places": 2 if fine else decimals(float(sizes.mean()))}
        if explanation.classes is None:
            names, spread = {}, float(explanation.predictions.std())
            places["value_places"] = decimals(spread / 10)
        else:
            names = dict(zip(explanation.classes.tolist(), report.classes, strict=True))
        return cls(names, scale, n_samples=n_samples, **places)

    def outcome(self, value: Any) -> str:
        """Return the name of a class, or a target; empty if it is unknown."""
        if self.names:
            return self.names.get(value, "")
        if isinstance(value, tuple):
            # A censored sample was observed longer than its time.
            event, value = value
            return fixed(value, self.value_places) + ("" if event else "+")
        return "" if value is None or not isfinite(value) else fixed(value, self.value_places)

    def contribution(self, value: float) -> str:
        """Return a contribution with its sign."""
        shown = fixed(value, self.contribution_places)
        return f"+{shown}" if value > 0 and float(shown) else shown

    def evidence(self, value: float | None) -> str:
        """Return log-odds of a view alone with one decimal; empty without a value."""
        if value is None:
            return ""
        # The script of the page stores tenths.
        shown = fixed(round(value, 1), 1)
        return f"+{shown}" if value > 0 and float(shown) else shown

    def total(self, value: float) -> str:
        """Return a sum of contributions: a margin between classes, or a target."""
        return self.contribution(value) if self.names else self.outcome(value)

    def prediction(self, sample: SampleExplanation) -> str:
        """Return the prediction of a sample with the probabilities of the most probable classes."""
        if not sample.probabilities:
            return self.outcome(sample.prediction)
        shown = {c: format_probability(p) for c, p in sample.probabilities.items()}
        first = f"{self.outcome(sample.prediction)}, probability {shown.pop(sample.prediction)}"
        others = [f"{self.outcome(c)} {p}" for c, p in list(shown.items())[:3]]
        return f"{first} ({', '.join(others)})"

    def alone(self, view: ViewContribution) -> str:
        """Return the prediction of a view alone, with its probability."""
        outcome = self.outcome(view.predicts)
        return f"{outcome} {format_probability(view.probability)}".strip() if outcome else ""
