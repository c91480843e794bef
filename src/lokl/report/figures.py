"""Figures as SVG text: readable without a script, small, coloured by the style sheet.

Views have the accent colours ``--v0`` and so on of the style sheet. Classes have symbols. In
figures that are coloured by class, colours run from dark blue to yellow, so that their order is
visible in print and to people with any kind of colour vision.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, isfinite, log10
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl.explain.explanation import Explanation
from lokl.report.content import Interval
from lokl.report.formatting import fixed
from lokl.report.reliability import CalibrationBin

# Shades of trust, colours of views, and steps of colour for values of a regression.
LEVELS, COLOURS, STEPS = 10, 8, 8
# Samples that are drawn at most.
MOST_ROWS, MOST_SYMBOLS = 400, 1500
# Outlines of symbols around the origin, one for each class in turn; the last one is for unknown
# classes.
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


_RAMP = (
    (0, 34, 78),
    (53, 69, 108),
    (102, 105, 112),
    (148, 142, 119),
    (200, 184, 102),
    (254, 232, 56),
)
# Size of a plot, and of the frame in it.
_WIDE, _TALL = 320.0, 260.0
_LEFT, _TOP, _RIGHT, _BOTTOM = 50.0, 8.0, 10.0, 42.0
_DOTS = 600
# Height of the trust map on the screen, of one of its rows at most, and of a line of text.
_MAP_TALL, _TALLEST_ROW, _LINE = 480.0, 14.0, 15.0
# Size of the map of samples, and room at its sides for half a symbol.
_MAP_WIDE, _LOW, _HIGH, _ROOM = 480.0, 240.0, 420.0, 12.0
# Size of a strip, room at its ends for half a dot, and characters that fit on it.
_STRIP_WIDE, _STRIP_TALL, _STRIP_ROOM, _STRIP_CHARACTERS = 120.0, 18.0, 7.0, 18


def number(value: float) -> str:
    """Return a coordinate with no more digits than a screen shows."""
    shown = f"{value:.1f}".rstrip("0").rstrip(".")
    return "0" if shown == "-0" else shown


def symbol(code: int) -> int:
    """Return the index of the outline of a class; below 0 the class is unknown."""
    return len(SYMBOLS) - 1 if code < 0 else code % (len(SYMBOLS) - 1)


def colour_of(view: int) -> str:
    """Return the CSS class of the colour of a view; after the last colour, outlines only."""
    return f"v{view % COLOURS}" + (" hollow" if view // COLOURS % 2 else "")


def drawing(width: float, height: float, label: str, parts: Iterable[str], more: str = "") -> str:
    """Return a figure that scales with the page and has a label for screen readers."""
    name = f'role="img" aria-label="{escape(label)}"' if label else 'aria-hidden="true"'
    size = f"0 0 {number(width)} {number(height)}"
    return f'<svg viewBox="{size}" {name}{more}>{"".join(parts)}</svg>'


def text(x: float, y: float, words: str, anchor: str = "start", css: str = "") -> str:
    """Return a line of text; `anchor` is the end of it that is at x."""
    style = f' class="{css}"' if css else ""
    at = f'x="{number(x)}" y="{number(y)}"'
    return f'<text {at} text-anchor="{anchor}"{style}>{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, css: str) -> str:
    """Return a straight line."""
    start = f'x1="{number(x1)}" y1="{number(y1)}"'
    return f'<line {start} x2="{number(x2)}" y2="{number(y2)}" class="{css}"/>'


def circle(x: float, y: float, radius: float, css: str) -> str:
    """Return a dot."""
    return f'<circle cx="{number(x)}" cy="{number(y)}" r="{number(radius)}" class="{css}"/>'


def rectangle(x: float, y: float, width: float, height: float, css: str) -> str:
    """Return a rectangle."""
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
        """Return an axis that contains all values; with `whole` it ends at ticks."""
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
        """Return the position of a value, from 0 to 1."""
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)

    @property
    def ticks(self) -> list[float]:
        first, last = ceil(self.low / self.step - 1e-9), floor(self.high / self.step + 1e-9)
        return [k * self.step for k in range(first, last + 1)]

    def labels(self, factor: float) -> list[str]:
        """Return the text at each tick, for values that are shown times `factor`."""
        places = max(0, -floor(log10(factor * self.step) + 1e-9))
        return [fixed(factor * tick, places) for tick in self.ticks]


def _round_up(step: float) -> float:
    """Return the next of 1, 2, 5 and 10 times a power of ten."""
    power = 10.0 ** floor(log10(step))
    return next(power * k for k in (1, 2, 5, 10) if power * k >= step * (1 - 1e-9))


def ramp(count: int) -> list[str]:
    """Return colours from dark to light."""
    anchors = np.array(_RAMP, dtype=float)
    at = np.linspace(0, len(anchors) - 1, count) if count > 1 else np.zeros(1)
    mixed = [np.interp(at, np.arange(len(anchors)), anchors[:, c]) for c in range(3)]
    return ["#" + "".join(f"{round(v):02x}" for v in rgb) for rgb in zip(*mixed, strict=True)]


def class_styles(n_classes: int) -> str:
    """Return the CSS rules for the colours of classes, or of steps of a regression."""
    return "".join(
        f"svg .c{k},.key.c{k}{{fill:{c}}}.swatch.c{k}{{background:{c}}}"
        for k, c in enumerate(ramp(n_classes or STEPS))
    )


class _Frame:
    """Two axes with ticks and titles."""

    def __init__(
        self, across: Axis, up: Axis, titles: tuple[str, str], factors: tuple[float, float]
    ):
        self.across, self.up, self.titles, self.factors = across, up, titles, factors

    def x(self, value: float) -> float:
        return _LEFT + (_WIDE - _LEFT - _RIGHT) * self.across.share(value)

    def y(self, value: float) -> float:
        return _TOP + (_TALL - _TOP - _BOTTOM) * (1 - self.up.share(value))

    def dots(self, points: Iterable[tuple[float, Interval]]) -> Iterable[str]:
        """Yield dots with their intervals as whiskers."""
        for at, value in points:
            if value.low is not None and value.high is not None:
                low, high = self.y(value.low), self.y(value.high)
                yield line(self.x(at), low, self.x(at), high, "whisker")
            yield circle(self.x(at), self.y(value.mean), 4, "dot")

    def draw(self, label: str, parts: Sequence[str]) -> str:
        base = _TALL - _BOTTOM
        found = [rectangle(_LEFT, _TOP, _WIDE - _LEFT - _RIGHT, base - _TOP, "frame")]
        for tick, label_ in zip(
            self.across.ticks, self.across.labels(self.factors[0]), strict=True
        ):
            found.append(line(self.x(tick), base, self.x(tick), base + 4, "frame"))
            found.append(text(self.x(tick), base + 16, label_, "middle", "tick"))
        for tick, label_ in zip(self.up.ticks, self.up.labels(self.factors[1]), strict=True):
            found.append(line(_LEFT - 4, self.y(tick), _LEFT, self.y(tick), "frame"))
            found.append(text(_LEFT - 7, self.y(tick) + 4, label_, "end", "tick"))
        found.append(text((_LEFT + _WIDE - _RIGHT) / 2, _TALL - 6, self.titles[0], "middle"))
        middle = (_TOP + base) / 2
        turned = f'<g transform="rotate(-90 12 {middle:g})">'
        found.append(f"{turned}{text(12, middle, self.titles[1], 'middle')}</g>")
        return drawing(_WIDE, _TALL, label, [*found, *parts], ' class="plot"')


def calibration_plot(
    bins: Sequence[CalibrationBin], stated: Sequence[float], n_classes: int
) -> str:
    """Draw the share of correct predictions by stated probability, with the diagonal."""
    low = 0.0 if n_classes > 2 else 0.5
    titles, up = ("stated probability, %", "right, %"), Axis(0.0, 1.0, 0.25)
    frame = _Frame(Axis(low, 1.0, 0.25), up, titles, (100.0, 100.0))
    tallest = max(stated, default=0.0) or 1.0
    width = 1.0 / len(stated) if stated else 1.0
    parts = []
    for k, share in enumerate(stated):
        if share > 0 and (k + 1) * width > low:
            # The histogram takes the lowest quarter of the frame.
            top = frame.y(0.25 * share / tallest)
            left, right = frame.x(k * width), frame.x((k + 1) * width)
            parts.append(rectangle(left, top, right - left - 0.5, frame.y(0) - top, "bars"))
    parts.append(line(frame.x(low), frame.y(low), frame.x(1), frame.y(1), "diagonal"))
    parts.append(polyline([(frame.x(b.stated), frame.y(b.right.mean)) for b in bins], "curve"))
    parts += frame.dots((b.stated, b.right) for b in bins)
    label = "Share of correct predictions by stated probability; the diagonal would be perfect."
    return frame.draw(label, parts)


def risk_plot(
    curve: Sequence[tuple[float, float]],
    marks: Sequence[tuple[float, Interval]],
    title: str,
    factor: float,
) -> str:
    """Draw the risk of the most confident predictions against their share."""
    ends = [value for _, value in curve[len(curve) // 20 :]]
    ends += [end for _, m in marks for end in (m.mean, m.high) if end is not None]
    up = Axis.over([0.0, *ends], 4, whole=True)
    frame = _Frame(Axis(0.0, 1.0, 0.25), up, ("predictions used, %", title), (100.0, factor))
    parts = [polyline([(frame.x(x), frame.y(y)) for x, y in curve], "curve"), *frame.dots(marks)]
    return frame.draw(f"{title} among the most confident predictions, by their share.", parts)


def parity_plot(truth: Array, predicted: Array) -> str:
    """Draw predicted values against true ones."""
    ends = [float(f(v)) for v in (truth, predicted) for f in (np.min, np.max)]
    axis = Axis.over(ends, 4)
    frame = _Frame(axis, axis, ("truth", "predicted"), (1.0, 1.0))
    low, high = axis.low, axis.high
    parts = [line(frame.x(low), frame.y(low), frame.x(high), frame.y(high), "diagonal")]
    for k in evenly_spaced(len(truth), _DOTS):
        parts.append(circle(frame.x(truth[k]), frame.y(predicted[k]), 2.5, "point"))
    return frame.draw("Predicted against true values; the diagonal would be perfect.", parts)


def strip_head(axis: Axis, factor: float) -> str:
    """Draw the ticks of an axis above a column of strips."""
    parts = [
        line(_STRIP_ROOM, _STRIP_TALL - 1, _STRIP_WIDE - _STRIP_ROOM, _STRIP_TALL - 1, "frame")
    ]
    labels = axis.labels(factor)
    # If labels would overlap, every second one is left out.
    every = 1 if sum(len(label) + 1 for label in labels) <= _STRIP_CHARACTERS else 2
    for k, (tick, label) in enumerate(zip(axis.ticks, labels, strict=True)):
        x = _strip_x(axis, tick)
        anchor = "start" if x < 12 else "end" if x > _STRIP_WIDE - 12 else "middle"
        parts.append(line(x, _STRIP_TALL - 4, x, _STRIP_TALL, "frame"))
        if k % every == 0:
            parts.append(text(x, _STRIP_TALL - 6, label, anchor, "tick"))
    return drawing(_STRIP_WIDE, _STRIP_TALL, "", parts, ' class="strip"')


def strip(axis: Axis, value: Interval | None, css: str = "", mark: float | None = None) -> str:
    """Draw a value with its interval, and a thin line at `mark`.

    Screen readers skip it, since the number stands next to it. A value far below the axis is an
    arrow.
    """
    parts, middle = [], _STRIP_TALL / 2
    if mark is not None and isfinite(mark):
        parts.append(line(_strip_x(axis, mark), 0, _strip_x(axis, mark), _STRIP_TALL, "mark"))
    if value is not None and isfinite(value.mean) and value.mean < axis.low:
        left = _STRIP_ROOM + 1
        arrow = [(left, middle - 5), (left - 6, middle), (left, middle + 5)]
        parts.append(polyline(arrow, f"away {css}"))
    elif value is not None and isfinite(value.mean):
        if value.low is not None and value.high is not None:
            low, high = _strip_x(axis, value.low), _strip_x(axis, value.high)
            parts.append(line(low, middle, high, middle, f"whisker {css}"))
            parts += [line(x, middle - 3, x, middle + 3, f"whisker {css}") for x in (low, high)]
        parts.append(circle(_strip_x(axis, value.mean), middle, 4.5, f"dot {css}"))
    return drawing(_STRIP_WIDE, _STRIP_TALL, "", parts, ' class="strip"')


def _strip_x(axis: Axis, value: float) -> float:
    return _STRIP_ROOM + (_STRIP_WIDE - 2 * _STRIP_ROOM) * axis.share(value)


def evenly_spaced(n: int, most: int) -> Array:
    """Return at most `most` of n positions."""
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).astype(np.intp)


def map_order(explanation: Explanation, grouped: bool) -> Array:
    """Return samples in the order of the trust map.

    Classes stand together. Within a class, samples whose lowest trust is in the same view are
    neighbours, lowest first.
    """
    trust, presence = explanation.trust_or_weights, explanation.presence
    keys = [(~presence).sum(axis=1)]
    if trust is not None:
        trust = np.where(presence, trust, np.inf)
        lowest = np.where(np.isfinite(trust), trust, 1.0).min(axis=1)
        keys = [lowest, trust.argmin(axis=1), *keys]
    if grouped:
        keys.append(np.where(explanation.known, explanation.truth_codes, np.inf))
    return np.lexsort(keys)


def trust_map(explanation: Explanation, classes: Sequence[str], order: Array) -> dict[str, Any]:
    """Draw trust or weights of samples (rows) in views (columns).

    Parameters
    ----------
    explanation : Explanation
    classes : sequence of str
        Names of the classes if samples are grouped by class, else empty.
    order : int array of shape (n_samples,)
        See :func:`map_order`.

    Returns
    -------
    figure : dict
        "cells": the drawing, "height": in pixels, "rows": samples from top to bottom, "groups":
        labels of classes.
    """
    rows = order[evenly_spaced(len(order), MOST_ROWS)]
    assert explanation.trust_or_weights is not None
    trust, presence = explanation.trust_or_weights[rows], explanation.presence[rows]
    n, m = trust.shape
    height = min(_MAP_TALL, max(_TALLEST_ROW * n, 3 * _LINE))
    cells: dict[tuple[int, str], str] = {}
    level = np.where(presence, np.minimum((trust * LEVELS).astype(int), LEVELS - 1), -1)
    for view in range(m):
        for start, end in _runs(level[:, view]):
            css = "absent" if level[start, view] < 0 else f"t{level[start, view]}"
            cell = f"M{100 * view + 1},{start}h98v{end - start}h-98z"
            cells[view, css] = cells.get((view, css), "") + cell
    # Lines of the hatching are some pixels apart, whatever the height of a row.
    high = max(1, round(6 * n / height))
    hatch = (
        f'<defs><pattern id="hatch" width="5" height="{high}" patternUnits="userSpaceOnUse">'
        f'<path d="M0,{high}L5,0" class="hatch"/></pattern></defs>'
    )
    paths = "".join(
        f'<path class="{css if css == "absent" else f"v{view % COLOURS} {css}"}" d="{path}"/>'
        for (view, css), path in sorted(cells.items())
    )
    label = f"{n} samples and {m} views; the table of samples has the values."
    parts = [hatch, f'<g id="trust-cells">{paths}</g>', '<g id="trust-here"></g>']
    more = ' id="trust-map" preserveAspectRatio="none"'
    groups = _groups(explanation.truth_codes[rows], classes, height) if classes else []
    return {
        "cells": drawing(100 * m, n, label, parts, more),
        "height": height,
        "rows": rows,
        "groups": groups,
    }


def _runs(values: Array) -> list[tuple[int, int]]:
    """Return start and end of each run of equal values."""
    ends = [*(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
    return list(zip([0, *ends[:-1]], ends, strict=True))


def _groups(codes: Array, classes: Sequence[str], height: float) -> list[dict[str, Any]]:
    """Return labels of runs of classes; top and height in percent, hidden without room."""
    groups: list[dict[str, Any]] = []
    free, n = 0.0, len(codes)
    for start, end in _runs(codes):
        middle = height * (start + end) / 2 / n
        shown = middle - _LINE / 2 >= free
        free = middle + _LINE / 2 if shown else free
        code = int(codes[start])
        groups.append(
            {
                "name": classes[code] if code >= 0 else "unknown",
                "code": code,
                "top": 100.0 * start / n,
                "height": 100.0 * (end - start) / n,
                "shown": shown,
            }
        )
    return groups


def map_layout(positions: Array) -> tuple[Array, float]:
    """Return coordinates of samples on the map, (n_samples, 2), and the height of the map.

    Both directions have the same scale if there is room.
    """
    low, high = positions.min(axis=0), positions.max(axis=0)
    size = np.where(high > low, high - low, 1.0)
    height = float(np.clip(_MAP_WIDE * size[1] / size[0], _LOW, _HIGH))
    unit = (positions - low) / size
    unit[:, high <= low] = 0.5
    x = _ROOM + (_MAP_WIDE - 2 * _ROOM) * unit[:, 0]
    return np.column_stack([x, _ROOM + (height - 2 * _ROOM) * (1 - unit[:, 1])]), height


def sample_plot(
    at: Array, height: float, drawn: Array, shapes: Array, colours: Sequence[str]
) -> str:
    """Draw samples as symbols of their class (`shapes`); `colours` are CSS classes."""
    outlines = "".join(f'<path id="s{k}" d="{d}"/>' for k, d in enumerate(SYMBOLS))
    marks = [
        f'<use href="#s{symbol(int(shapes[k]))}" x="{number(at[k, 0])}" y="{number(at[k, 1])}" '
        f'class="{colours[k]}"/>'
        for k in drawn
    ]
    parts = [f"<defs>{outlines}</defs>", f'<g id="where-marks">{"".join(marks)}</g>']
    label = f"{len(drawn)} samples; similar samples are close to each other."
    return drawing(_MAP_WIDE, height, label, parts, ' id="where-map"')


def leading_view(explanation: Explanation) -> Array:
    """Return the view with the largest contribution to each prediction, (n_samples,)."""
    sizes = explanation.contributions
    sizes = np.abs(sizes) if explanation.is_regression else sizes
    return np.asarray(np.where(explanation.presence, sizes, -np.inf).argmax(axis=1))
