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

from lokl._arrays import Array, evenly_spaced
from lokl.explain.explanation import Explanation
from lokl.explain.results import Interval
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
# Colours from dark blue to yellow.
_RAMP = ("00224e", "35456c", "666970", "948e77", "c8b866", "fee838")
_ATTRIBUTES = {
    "line": ("x1", "y1", "x2", "y2"),
    "circle": ("cx", "cy", "r"),
    "rect": ("x", "y", "width", "height"),
}
# Size of a plot, and of the frame in it.
_WIDE, _TALL = 320.0, 260.0
_LEFT, _TOP, _RIGHT, _BOTTOM = 50.0, 8.0, 10.0, 42.0
_DOTS = 600
# Height of the trust map on the screen, of one of its rows at most, and of a line of text.
_MAP_TALL, _TALLEST_ROW, _LINE = 480.0, 14.0, 15.0
# Size of the map of samples, and room at its sides for half a symbol.
MAP_WIDTH, _LOW, _HIGH, _ROOM = 480.0, 240.0, 420.0, 12.0
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
    """Return a figure that scales with the page and has a label for screen readers.

    Parameters
    ----------
    width, height : float
        Size of the view box.
    label : str
        Text for screen readers, which skip the figure if it is empty.
    parts : iterable of str
        SVG elements.
    more : str
        More attributes of the figure.
    """
    name = f'role="img" aria-label="{escape(label)}"' if label else 'aria-hidden="true"'
    size = f"0 0 {number(width)} {number(height)}"
    return f'<svg viewBox="{size}" {name}{more}>{"".join(parts)}</svg>'


def shape(kind: str, css: str, *values: float) -> str:
    """Return a line, a circle or a rectangle with the values of its attributes."""
    pairs = zip(_ATTRIBUTES[kind], values, strict=True)
    given = " ".join(f'{name}="{number(value)}"' for name, value in pairs)
    return f'<{kind} {given} class="{css}"/>'


def text(x: float, y: float, words: str, anchor: str = "start", css: str = "") -> str:
    """Return a line of text; `anchor` is the end of it that is at x."""
    style = f' class="{css}"' if css else ""
    at = f'x="{number(x)}" y="{number(y)}"'
    return f'<text {at} text-anchor="{anchor}"{style}>{escape(words)}</text>'


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
        """Return an axis that contains all values; with `whole` it ends at ticks.

        Parameters
        ----------
        values : iterable of float
            NaN and infinite values are ignored; without any value the axis is from 0 to 1.
        count : int
            Most steps between ticks.
        whole : bool
        """
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

    def labels(self, factor: float) -> list[tuple[float, str]]:
        """Return ticks with their text, for values that are shown times `factor`."""
        places = max(0, -floor(log10(factor * self.step) + 1e-9))
        return [(tick, fixed(factor * tick, places)) for tick in self.ticks]


def _round_up(step: float) -> float:
    """Return the next of 1, 2, 5 and 10 times a power of ten."""
    power = 10.0 ** floor(log10(step))
    return next(power * k for k in (1, 2, 5, 10) if power * k >= step * (1 - 1e-9))


def ramp(count: int) -> list[str]:
    """Return colours from dark to light."""
    anchors = np.array([list(bytes.fromhex(colour)) for colour in _RAMP])
    at, known = np.linspace(0, len(anchors) - 1, count), np.arange(len(anchors))
    mixed = np.round([np.interp(at, known, values) for values in anchors.T]).astype(np.uint8)
    return [f"#{bytes(rgb).hex()}" for rgb in mixed.T]


def class_styles(n_classes: int) -> str:
    """Return the CSS rules for the colours of classes, or of steps of a regression."""
    return "".join(
        f"svg .c{k},.key.c{k}{{fill:{c}}}.swatch.c{k}{{background:{c}}}"
        for k, c in enumerate(ramp(n_classes or STEPS))
    )


@dataclass(frozen=True)
class _Frame:
    """Two axes with ticks and titles; values are shown times `factors`."""

    across: Axis
    up: Axis
    titles: tuple[str, str]
    factors: tuple[float, float]

    def x(self, value: float) -> float:
        return _LEFT + (_WIDE - _LEFT - _RIGHT) * self.across.share(value)

    def y(self, value: float) -> float:
        return _TOP + (_TALL - _TOP - _BOTTOM) * (1 - self.up.share(value))

    def dots(self, points: Iterable[tuple[float, Interval]]) -> Iterable[str]:
        """Yield dots with their intervals as whiskers.

        Parameters
        ----------
        points : iterable of (float, Interval)
            Position on the horizontal axis, and value on the vertical one.
        """
        for at, value in points:
            x = self.x(at)
            if isfinite(value.reach):
                yield shape("line", "whisker", x, self.y(value.low), x, self.y(value.high))
            yield shape("circle", "dot", x, self.y(value.mean), 4)

    def diagonal(self, low: float, high: float) -> str:
        """Return the line of equal values on both axes."""
        ends = (self.x(low), self.y(low), self.x(high), self.y(high))
        return shape("line", "diagonal", *ends)

    def draw(self, label: str, parts: Iterable[str]) -> str:
        """Return the figure: the frame, ticks and titles, and `parts` in it."""
        base = _TALL - _BOTTOM
        found = [shape("rect", "frame", _LEFT, _TOP, _WIDE - _LEFT - _RIGHT, base - _TOP)]
        for value, words in self.across.labels(self.factors[0]):
            x = self.x(value)
            found.append(shape("line", "frame", x, base, x, base + 4))
            found.append(text(x, base + 16, words, "middle", "tick"))
        for value, words in self.up.labels(self.factors[1]):
            y = self.y(value)
            found.append(shape("line", "frame", _LEFT - 4, y, _LEFT, y))
            found.append(text(_LEFT - 7, y + 4, words, "end", "tick"))
        found.append(text((_LEFT + _WIDE - _RIGHT) / 2, _TALL - 6, self.titles[0], "middle"))
        middle = (_TOP + base) / 2
        turned = f'<g transform="rotate(-90 12 {middle:g})">'
        found.append(f"{turned}{text(12, middle, self.titles[1], 'middle')}</g>")
        return drawing(_WIDE, _TALL, label, [*found, *parts], ' class="plot"')


def calibration_plot(
    bins: Sequence[CalibrationBin], stated: Sequence[float], n_classes: int
) -> str:
    """Draw the share of correct predictions by stated probability; empty without bins.

    Parameters
    ----------
    bins : sequence of CalibrationBin
    stated : sequence of float
        Histogram of the probabilities of all predicted classes, as shares.
    n_classes : int
        With two classes the axis begins at one half, the lowest probability of a predicted class.
    """
    if not bins:
        return ""
    low = 0.0 if n_classes > 2 else 0.5
    titles, up = ("stated probability, %", "right, %"), Axis(0.0, 1.0, 0.25)
    frame = _Frame(Axis(low, 1.0, 0.25), up, titles, (100.0, 100.0))
    tallest, width = max(stated), 1.0 / len(stated)
    parts = []
    for k, share in enumerate(stated):
        if share > 0 and (k + 1) * width > low:
            # The histogram takes the lowest quarter of the frame.
            top = frame.y(0.25 * share / tallest)
            left, right = frame.x(k * width), frame.x((k + 1) * width)
            parts.append(shape("rect", "bars", left, top, right - left - 0.5, frame.y(0) - top))
    parts.append(frame.diagonal(low, 1))
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
    """Draw the risk of the most confident predictions against their share; empty without any.

    Parameters
    ----------
    curve : sequence of (coverage, risk)
        Points of the line.
    marks : sequence of (coverage, Interval)
        Dots with whiskers.
    title : str
        Name of the risk.
    factor : float
        Factor by which risks are multiplied in labels: 100 for percentages, else 1.
    """
    if not marks:
        return ""
    ends = [value for _, value in curve[len(curve) // 20 :]]
    ends += [end for _, value in marks for end in (value.mean, value.high)]
    up = Axis.over([0.0, *ends], 4, whole=True)
    frame = _Frame(Axis(0.0, 1.0, 0.25), up, ("predictions used, %", title), (100.0, factor))
    parts = [polyline([(frame.x(x), frame.y(y)) for x, y in curve], "curve"), *frame.dots(marks)]
    return frame.draw(f"{title} among the most confident predictions, by their share.", parts)


def parity_plot(truth: Array, predicted: Array) -> str:
    """Draw predicted values against true ones.

    Parameters
    ----------
    truth, predicted : arrays of shape (n_samples,)
        Of many samples, evenly spaced ones are drawn.
    """
    ends = [float(f(v)) for v in (truth, predicted) for f in (np.min, np.max)]
    axis = Axis.over(ends, 4)
    frame = _Frame(axis, axis, ("truth", "predicted"), (1.0, 1.0))
    parts = [frame.diagonal(axis.low, axis.high)]
    for k in evenly_spaced(len(truth), _DOTS):
        parts.append(shape("circle", "point", frame.x(truth[k]), frame.y(predicted[k]), 2.5))
    return frame.draw("Predicted against true values; the diagonal would be perfect.", parts)


def strip_head(axis: Axis, factor: float) -> str:
    """Draw the ticks of an axis above a column of strips."""
    y, labels = _STRIP_TALL - 1, axis.labels(factor)
    parts = [shape("line", "frame", _STRIP_ROOM, y, _STRIP_WIDE - _STRIP_ROOM, y)]
    # If labels would overlap, every second one is left out.
    every = 1 if sum(len(label) + 1 for _, label in labels) <= _STRIP_CHARACTERS else 2
    for k, (tick, label) in enumerate(labels):
        x = _strip_x(axis, tick)
        anchor = "start" if x < 12 else "end" if x > _STRIP_WIDE - 12 else "middle"
        parts.append(shape("line", "frame", x, _STRIP_TALL - 4, x, _STRIP_TALL))
        if k % every == 0:
            parts.append(text(x, _STRIP_TALL - 6, label, anchor, "tick"))
    return drawing(_STRIP_WIDE, _STRIP_TALL, "", parts, ' class="strip"')


def strip(axis: Axis, value: Interval | None, css: str = "", mark: float | None = None) -> str:
    """Draw a value with its interval, and a thin line at `mark`.

    Screen readers skip it, since the number stands next to it.

    Parameters
    ----------
    axis : Axis
    value : Interval or None
        An arrow if it is below the axis; None draws the mark only.
    css : str
        CSS classes of the value.
    mark : float, optional
    """
    parts, middle = [], _STRIP_TALL / 2
    if mark is not None and isfinite(mark):
        x = _strip_x(axis, mark)
        parts.append(shape("line", "mark", x, 0, x, _STRIP_TALL))
    if value is not None and value.mean < axis.low:
        left = _STRIP_ROOM + 1
        arrow = [(left, middle - 5), (left - 6, middle), (left, middle + 5)]
        parts.append(polyline(arrow, f"away {css}"))
    elif value is not None and isfinite(value.mean):
        if isfinite(value.reach):
            low, high = _strip_x(axis, value.low), _strip_x(axis, value.high)
            ends = ((low, 0, high, 0), (low, -3, low, 3), (high, -3, high, 3))
            for x1, up, x2, down in ends:
                parts.append(shape("line", f"whisker {css}", x1, middle + up, x2, middle + down))
        parts.append(shape("circle", f"dot {css}", _strip_x(axis, value.mean), middle, 4.5))
    return drawing(_STRIP_WIDE, _STRIP_TALL, "", parts, ' class="strip"')


def _strip_x(axis: Axis, value: float) -> float:
    return _STRIP_ROOM + (_STRIP_WIDE - 2 * _STRIP_ROOM) * axis.share(value)


def map_order(explanation: Explanation, grouped: bool) -> Array:
    """Return samples in the order of the trust map.

    Within a class, samples whose lowest trust is in the same view are neighbours, lowest first.

    Parameters
    ----------
    explanation : Explanation
    grouped : bool
        Whether samples of a class are neighbours. Samples of unknown class come last.

    Returns
    -------
    order : int array of shape (n_samples,)
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
    """Return the map of trust or weights: samples in rows, views in columns.

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
        "cells": outlines by CSS class, in units of a row and a hundredth of a column; "height": in
        pixels; "rows": samples from top to bottom; "groups": labels of classes; "hatch": distance
        of the lines that mark missing views, in rows.
    """
    rows = order[evenly_spaced(len(order), MOST_ROWS)]
    presence, trust = explanation.presence[rows], np.asarray(explanation.trust_or_weights)[rows]
    height = min(_MAP_TALL, max(_TALLEST_ROW * len(rows), 3 * _LINE))
    cells: dict[tuple[int, str], str] = {}
    level = np.where(presence, np.minimum((trust * LEVELS).astype(int), LEVELS - 1), -1)
    for view in range(trust.shape[1]):
        for start, end in _runs(level[:, view]):
            shade = level[start, view]
            key = view, "absent" if shade < 0 else f"v{view % COLOURS} t{shade}"
            cells[key] = cells.get(key, "") + f"M{100 * view + 1},{start}h98v{end - start}h-98z"
    groups = _groups(explanation.truth_codes[rows], classes, height) if classes else []
    paths = [(css, path) for (_, css), path in sorted(cells.items())]
    # Lines of the hatching are some pixels apart, whatever the height of a row.
    hatch = max(1, round(6 * len(rows) / height))
    return {"cells": paths, "height": height, "rows": rows, "groups": groups, "hatch": hatch}


def _runs(values: Array) -> list[tuple[int, int]]:
    """Return start and end of each run of equal values."""
    ends = [*(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
    return list(zip([0, *ends[:-1]], ends, strict=True))


def _groups(codes: Array, classes: Sequence[str], height: float) -> list[dict[str, Any]]:
    """Return labels of runs of classes; top and height in percent, hidden without room.

    Parameters
    ----------
    codes : int array of shape (n_rows,)
        Class of each row of the map, -1 if unknown.
    classes : sequence of str
    height : float
        Height of the map in pixels.
    """
    groups: list[dict[str, Any]] = []
    free, n = 0.0, len(codes)
    for start, end in _runs(codes):
        middle, code = height * (start + end) / 2 / n, int(codes[start])
        shown = middle - _LINE / 2 >= free
        free = middle + _LINE / 2 if shown else free
        name = classes[code] if code >= 0 else "unknown"
        at = {"top": 100.0 * start / n, "height": 100.0 * (end - start) / n}
        groups.append({"name": name, "code": code, "shown": shown, **at})
    return groups


def map_layout(positions: Array) -> tuple[Array, float]:
    """Return coordinates of samples on the map, (n_samples, 2), and the height of the map.

    Both directions have the same scale if there is room.
    """
    low, high = positions.min(axis=0), positions.max(axis=0)
    size = np.where(high > low, high - low, 1.0)
    height = float(np.clip(MAP_WIDTH * size[1] / size[0], _LOW, _HIGH))
    unit = np.where(high > low, (positions - low) / size, 0.5)
    room = np.array([MAP_WIDTH, height]) - 2 * _ROOM
    return _ROOM + room * np.column_stack([unit[:, 0], 1 - unit[:, 1]]), height


def leading_view(explanation: Explanation) -> Array:
    """Return the view with the largest contribution to each prediction, (n_samples,)."""
    sizes = explanation.contributions
    sizes = np.abs(sizes) if explanation.is_regression else sizes
    return np.asarray(np.where(explanation.presence, sizes, -np.inf).argmax(axis=1))
