"""Pictures as SVG text: readable without a script, small, in colours that a style sheet sets."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, isfinite, log10

from lokl.report.numbers import fixed

# Outlines of symbols around the origin, one for each class in turn; the last one means not known.
SYMBOLS = (
    "M-4.4,0a4.4,4.4 0 1,0 8.8,0a4.4,4.4 0 1,0 -8.8,0z",
    "M-4,-4h8v8h-8z",
    "M0,-5.2L5,3.8H-5z",
    "M0,-5.6L5.6,0L0,5.6L-5.6,0z",
    "M-5,-1.7h3.3v-3.3h3.4v3.3h3.3v3.4h-3.3v3.3h-3.4v-3.3h-3.3z",
    "M0,5.2L5,-3.8H-5z",
    "M-5.6,-2.2h11.2v4.4h-11.2z",
    "M-2.2,-5.6h4.4v11.2h-4.4z",
    "M-5,-2.6L-2.6,-5L0,-2.4L2.6,-5L5,-2.6L2.4,0L5,2.6L2.6,5L0,2.4L-2.6,5L-5,2.6L-2.4,0z",
    "M0,-5.6L1.6,-1.6L5.6,-1.6L2.4,1L3.6,5L0,2.6L-3.6,5L-2.4,1L-5.6,-1.6L-1.6,-1.6z",
    "M-5,3A5,5 0 0,1 5,3z",
    "M-5.2,-3H2.2L5.2,0L2.2,3H-5.2L-2.4,0z",
    "M-4.4,0a4.4,4.4 0 1,0 8.8,0a4.4,4.4 0 1,0 -8.8,0z"
    "M-2.4,0a2.4,2.4 0 1,1 4.8,0a2.4,2.4 0 1,1 -4.8,0z",
)


def number(value: float) -> str:
    """Return a coordinate with no more digits than a screen shows."""
    shown = f"{value:.1f}".rstrip("0").rstrip(".")
    return "0" if shown == "-0" else shown


def symbol(code: int) -> int:
    """Return the number of the outline of a class; below 0 the class is not known."""
    return len(SYMBOLS) - 1 if code < 0 else code % (len(SYMBOLS) - 1)


def drawing(width: float, height: float, label: str, parts: Iterable[str], more: str = "") -> str:
    """Put parts into a picture that scales with the page and has a name for screen readers."""
    name = f'role="img" aria-label="{escape(label)}"' if label else 'aria-hidden="true"'
    size = f"0 0 {number(width)} {number(height)}"
    return f'<svg viewBox="{size}" {name}{more}>{"".join(parts)}</svg>'


def text(x: float, y: float, words: str, anchor: str = "start", css: str = "") -> str:
    """Return a line of text; `anchor` says which end of it is at x."""
    style = f' class="{css}"' if css else ""
    place = f'x="{number(x)}" y="{number(y)}"'
    return f'<text {place} text-anchor="{anchor}"{style}>{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, css: str) -> str:
    """Return a straight line."""
    start = f'x1="{number(x1)}" y1="{number(y1)}"'
    return f'<line {start} x2="{number(x2)}" y2="{number(y2)}" class="{css}"/>'


def circle(x: float, y: float, radius: float, css: str) -> str:
    """Return a dot."""
    return f'<circle cx="{number(x)}" cy="{number(y)}" r="{number(radius)}" class="{css}"/>'


def rectangle(x: float, y: float, width: float, height: float, css: str) -> str:
    """Return a box."""
    size = f'width="{number(width)}" height="{number(height)}"'
    return f'<rect x="{number(x)}" y="{number(y)}" {size} class="{css}"/>'


def polyline(points: Sequence[tuple[float, float]], css: str) -> str:
    """Return a line through points."""
    path = "L".join(f"{number(x)},{number(y)}" for x, y in points)
    return f'<path d="M{path}" class="{css}"/>' if points else ""


@dataclass(frozen=True)
class Axis:
    """Values along a line, with ticks at round numbers."""

    low: float
    high: float
    step: float

    @classmethod
    def over(cls, values: Iterable[float], count: int = 3, *, whole: bool = False) -> "Axis":
        """Return an axis that all values lie on; `whole` ends it at ticks."""
        known = [v for v in values if isfinite(v)] or [0.0, 1.0]
        low, high = min(known), max(known)
        if high - low <= 1e-9 * max(abs(low), abs(high)):
            margin = abs(low) / 2 or 0.5
            low, high = low - margin, high + margin
        step = _round_up((high - low) / count)
        if whole:
            low = min(low, step * floor(low / step + 1e-9))
            high = max(high, step * ceil(high / step - 1e-9))
        return cls(low, high, step)

    def share(self, value: float) -> float:
        """Where a value lies, from 0 to 1."""
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)

    @property
    def ticks(self) -> list[float]:
        first, last = ceil(self.low / self.step - 1e-9), floor(self.high / self.step + 1e-9)
        return [k * self.step for k in range(first, last + 1)]

    def shown(self, value: float) -> str:
        """Return the words at a tick."""
        return fixed(value, max(0, -floor(log10(self.step) + 1e-9)))


def _round_up(step: float) -> float:
    """Return the next of 1, 2, 2.5 and 5 times a power of ten."""
    power = 10.0 ** floor(log10(step))
    return next(power * k for k in (1, 2, 5, 10) if power * k >= step * (1 - 1e-9))
