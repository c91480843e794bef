"""Coordinates and colours of the figures, which the templates write as SVG.

Views have the accent colours ``--v0`` and so on of the style sheet. Classes have symbols. In
figures that are coloured by class, colours run from dark blue to yellow, so that their order is
visible in print and to people with any kind of colour vision.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10
from typing import Any

import numpy as np

from lokl._arrays import Array, evenly_spaced
from lokl.explain.explanation import Explanation
from lokl.report.formatting import fixed

# Shades of trust, colours of views, and steps of colour for values of a regression.
LEVELS, COLOURS, STEPS = 50, 8, 8
# Scores of the leaderboard that can be chosen.
BOARDS = 16
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
# Height of the trust map on the screen, of one of its rows at most, and of a line of text.
_MAP_TALL, _TALLEST_ROW, _LINE = 480.0, 14.0, 15.0
# Height of the picture of all samples, and height and width of the place of a sample in it, if the
# picture has its usual width.
GLANCE_HEIGHT, _PLACE, _GLANCE_WIDTH = 280.0, 7.0, 1000.0
# Probabilities at the ticks of this picture; certain predictions are drawn at the last one.
_CHANCES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)
# Least distance of its ticks, and least share of a column in the width of the widest one.
_TICKS_APART, _NARROW = 22.0, 0.36
# Size of the map of samples, and room at its sides for half a symbol.
MAP_WIDTH, _LOW, _HIGH, _ROOM = 480, 240.0, 420.0, 12.0


def symbol(code: int) -> int:
    """Return the index of the outline of a class; below 0 the class is unknown."""
    return len(SYMBOLS) - 1 if code < 0 else code % (len(SYMBOLS) - 1)


def colour_of(view: int) -> str:
    """Return the CSS class of the colour of a view; after the last colour, outlines only."""
    return f"v{view % COLOURS}" + (" hollow" if view // COLOURS % 2 else "")


@dataclass(frozen=True)
class Axis:
    """Values along a line, with ticks at round numbers; labels are values times `factor`."""

    low: float
    high: float
    step: float
    factor: float = 1.0

    @classmethod
    def over(
        cls, values: Iterable[float], factor: float = 1.0, *, whole: bool = False, parts: int = 4
    ) -> "Axis":
        """Return an axis with about `parts` ticks that contains all values.

        Parameters
        ----------
        values : iterable of float
            NaN and infinite values are ignored; without any value the axis is from 0 to 1.
        factor : float
        whole : bool
            Whether the axis ends at ticks.
        parts : int
            Number of steps, or one more if it ends at ticks.
        """
        known = [v for v in values if isfinite(v)] or [0.0, 1.0]
        low, high = min(known), max(known)
        if high - low <= 1e-9 * max(abs(low), abs(high)):
            margin = abs(low) / 2 or 0.5
            low, high = low - margin, high + margin
        step = _round_up((high - low) / parts)
        if whole:
            low = min(low, step * floor(low / step + 1e-9))
            high = max(high, step * ceil(high / step - 1e-9))
        return cls(low, high, step, factor)

    def share(self, value: float) -> float:
        """Return the position of a value, from 0 to 1."""
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)

    @property
    def labels(self) -> list[tuple[float, str]]:
        """Ticks with their text."""
        first, last = ceil(self.low / self.step - 1e-9), floor(self.high / self.step + 1e-9)
        places = max(0, -floor(log10(self.factor * self.step) + 1e-9))
        ticks = [k * self.step for k in range(first, last + 1)]
        return [(tick, fixed(self.factor * tick, places)) for tick in ticks]


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


def styles(n_classes: int) -> str:
    """Return CSS rules: colours of classes or steps of a regression, and the chosen board."""
    boards = "".join(
        f'#better:has(input[value="{k}"]:checked) .board[data-score="{k}"],' for k in range(BOARDS)
    )
    return f"{boards}.board:only-of-type{{display:block}}" + "".join(
        f"svg .c{k},.key.c{k}{{fill:{c}}}.swatch.c{k}{{background:{c}}}"
        for k, c in enumerate(ramp(n_classes or STEPS))
    )


@dataclass(frozen=True)
class Plot:
    """Coordinates of values in a frame with two axes."""

    across: Axis
    up: Axis
    # Size of the frame in the units of the template.
    width = 260.0
    height = 210.0

    def x(self, value: float) -> float:
        return round(self.width * self.across.share(value), 1)

    def y(self, value: float) -> float:
        return round(self.height * (1 - self.up.share(value)), 1)


@dataclass(frozen=True, eq=False)
class Glance:
    """Picture of all samples in columns.

    Attributes
    ----------
    edges : list of float
        Left edges of the columns and the right edge of the last one, in percent.
    ticks : list of (float, str)
        Distance from the top in pixels, and label.
    drawn : int array
        Samples that are drawn, column by column, from the top.
    x, y : arrays
        Their positions in percent and in pixels.
    """

    edges: list[float]
    ticks: list[tuple[float, str]]
    drawn: Array
    x: Array
    y: Array


def glance(column: Array, n_columns: int, values: Array, *, chances: bool) -> Glance:
    """Return the picture of all samples in columns, at the height of a value.

    Parameters
    ----------
    column : int array of shape (n_samples,)
        Column of each sample.
    n_columns : int
    values : array of shape (n_samples,)
    chances : bool
        Whether the values are probabilities, which are drawn in log-odds.

    Returns
    -------
    picture : Glance
        Of more samples than can be drawn, all samples of small columns are drawn, and evenly
        spaced ones of the others.
    """
    if chances:
        values = np.log(np.clip(values, 0.01, _CHANCES[-1]))
        values = values - np.log1p(-np.exp(values))
        steps = np.log(_CHANCES) - np.log1p(-np.array(_CHANCES))
        axis = Axis(min(float(values.min()), steps[3]), steps[-1], 1.0)
        labels = [(step, f"{p:g}") for step, p in zip(steps.tolist(), _CHANCES, strict=True)]
    else:
        axis = Axis.over(values.tolist(), whole=True)
        labels = axis.labels
    heights = np.round(GLANCE_HEIGHT * (1 - np.array([axis.share(v) for v in values])), 1)
    counts = np.bincount(column, minlength=n_columns)
    widths = np.maximum(np.sqrt(counts), _NARROW * np.sqrt(counts.max()))
    edges = np.concatenate([[0.0], 100 * np.cumsum(widths) / widths.sum()])
    ticks: list[tuple[float, str]] = []
    for value, label in reversed(labels):
        top = round(GLANCE_HEIGHT * (1 - axis.share(value)), 1)
        if axis.low <= value and (not ticks or top - ticks[-1][0] >= _TICKS_APART):
            ticks.append((top, label))
    most, drawn, across = _most_by_group(counts, MOST_SYMBOLS), [], []
    for code in range(n_columns):
        rows = np.flatnonzero(column == code)
        rows = rows[np.lexsort([rows, heights[rows]])]
        rows = rows[evenly_spaced(len(rows), most)]
        drawn.append(rows)
        left, right = edges[code : code + 2]
        across.append((left + right) / 2 + _swarm(heights[rows], right - left))
    chosen = np.concatenate(drawn)
    return Glance(
        np.round(edges, 2).tolist(), ticks, chosen, np.round(np.concatenate(across), 2),
        heights[chosen],
    )  # fmt: skip


def _most_by_group(counts: Array, total: int) -> int:
    """Return how many of each group can be chosen, so that at most `total` are chosen."""
    low, high = 0, int(counts.max(initial=0))
    while low < high:
        middle = (low + high + 1) // 2
        if np.minimum(counts, middle).sum() <= total:
            low = middle
        else:
            high = middle - 1
    return low


def _swarm(heights: Array, width: float) -> Array:
    """Return distances from the middle of a column, in percent of the picture.

    Samples of about the same height are next to each other, closer if the column has no room.

    Parameters
    ----------
    heights : array of shape (n_samples,)
        In pixels, sorted.
    width : float
        Width of the column in percent of the picture.
    """
    away = np.zeros(len(heights))
    bins = np.floor(heights / _PLACE)
    for level in np.unique(bins):
        rows = np.flatnonzero(bins == level)
        step = min(100 * _PLACE / _GLANCE_WIDTH, 0.92 * width / len(rows))
        # From the middle to both sides in turn.
        turn = np.arange(len(rows))
        away[rows] = step * ((turn + 1) // 2) * np.where(turn % 2, 1, -1)
    return away


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
        "cells": outlines by CSS class and opacity, in units of a row and a hundredth of a column;
        "height": in pixels; "rows": samples from top to bottom; "groups": labels of classes;
        "hatch": distance of the lines that mark missing views, in rows.
    """
    rows = order[evenly_spaced(len(order), MOST_ROWS)]
    presence, trust = explanation.presence[rows], np.asarray(explanation.trust_or_weights)[rows]
    height = min(_MAP_TALL, max(_TALLEST_ROW * len(rows), 3 * _LINE))
    cells: dict[tuple[int, int], str] = {}
    level = np.where(presence, np.minimum((trust * LEVELS).astype(int), LEVELS - 1), -1)
    for view in range(trust.shape[1]):
        for start, end in _runs(level[:, view]):
            shade = level[start, view]
            key = view, int(shade)
            cells[key] = cells.get(key, "") + f"M{100 * view + 1},{start}h98v{end - start}h-98z"
    groups = _groups(explanation.truth_codes[rows], classes, height) if classes else []
    paths = [(*_shade(view, shade), path) for (view, shade), path in sorted(cells.items())]
    # Lines of the hatching are some pixels apart, whatever the height of a row.
    hatch = max(1, round(6 * len(rows) / height))
    return {"cells": paths, "height": height, "rows": rows, "groups": groups, "hatch": hatch}


def _shade(view: int, level: int) -> tuple[str, float]:
    """Return the CSS class of a cell of the trust map, and its opacity."""
    if level < 0:
        return "absent", 1.0
    return f"v{view % COLOURS}", round((level + 0.5) / LEVELS, 2)


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
    height = round(float(np.clip(MAP_WIDTH * size[1] / size[0], _LOW, _HIGH)), 1)
    unit = np.where(high > low, (positions - low) / size, 0.5)
    room = np.array([MAP_WIDTH, height]) - 2 * _ROOM
    return np.round(_ROOM + room * np.column_stack([unit[:, 0], 1 - unit[:, 1]]), 1), height


def leading_view(explanation: Explanation) -> Array:
    """Return the view with the largest contribution to each prediction, (n_samples,)."""
    sizes = explanation.contributions
    sizes = np.abs(sizes) if explanation.is_regression else sizes
    return np.asarray(np.where(explanation.presence, sizes, -np.inf).argmax(axis=1))
