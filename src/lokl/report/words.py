"""Words of a report: outcomes, parts and probabilities with the digits they deserve."""

from dataclasses import dataclass
from math import isfinite

import numpy as np

from lokl._arrays import Array
from lokl.report.content import Cases, Report
from lokl.report.numbers import Scale, decimals, fixed

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
