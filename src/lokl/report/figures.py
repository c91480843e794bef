"""Pictures as SVG text: readable without a script, small, in colours that a style sheet sets.

Colours of classes, which are never those of views.

Views have accents, the variables ``--v0`` and so on of the style sheet. Classes are told apart by
their symbols; where a picture is coloured by class, the colours run from dark blue to yellow, so
that every kind of sight and every printer sees their order.

Curves: stated against true, risk against coverage, predicted against true numbers.

Pictures of all samples: whom the model trusts for whom, and which samples are alike.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, isfinite, log10

import numpy as np

from lokl._arrays import Array
from lokl.report.content import Cases, Interval
from lokl.report.formatting import fixed
from lokl.report.reliability import Bin

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


_RAMP = (
    (0, 34, 78),
    (53, 69, 108),
    (102, 105, 112),
    (148, 142, 119),
    (200, 184, 102),
    (254, 232, 56),
)
# Steps of numbers, where there are no classes.
STEPS = 8


def ramp(count: int) -> list[str]:
    """Return colours from dark to light."""
    anchors = np.array(_RAMP, dtype=float)
    places = np.linspace(0, len(anchors) - 1, count) if count > 1 else np.zeros(1)
    mixed = [np.interp(places, np.arange(len(anchors)), anchors[:, c]) for c in range(3)]
    return ["#" + "".join(f"{round(v):02x}" for v in rgb) for rgb in zip(*mixed, strict=True)]


def class_styles(n_classes: int) -> str:
    """Return the rules of the style sheet for so many classes, or for steps of numbers."""
    colours = ramp(n_classes or STEPS)
    return "".join(
        f"svg .c{k},.key.c{k}{{fill:{c}}}.swatch.c{k}{{background:{c}}}"
        for k, c in enumerate(colours)
    )


# Size of a picture, and of the frame in it.
_WIDE, _TALL = 320.0, 260.0
_LEFT, _TOP, _RIGHT, _BOTTOM = 50.0, 8.0, 10.0, 42.0
_DOTS = 600


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

    def draw(self, label: str, parts: Sequence[str]) -> str:
        base = _TALL - _BOTTOM
        found = [rectangle(_LEFT, _TOP, _WIDE - _LEFT - _RIGHT, base - _TOP, "frame")]
        for axis, factor, ahead in (
            (self.across, self.factors[0], True),
            (self.up, self.factors[1], False),
        ):
            shown = Axis(factor * axis.low, factor * axis.high, factor * axis.step)
            for tick in axis.ticks:
                words = shown.shown(factor * tick)
                if ahead:
                    found.append(line(self.x(tick), base, self.x(tick), base + 4, "frame"))
                    found.append(text(self.x(tick), base + 16, words, "middle", "tick"))
                else:
                    found.append(line(_LEFT - 4, self.y(tick), _LEFT, self.y(tick), "frame"))
                    found.append(text(_LEFT - 7, self.y(tick) + 4, words, "end", "tick"))
        found.append(text((_LEFT + _WIDE - _RIGHT) / 2, _TALL - 6, self.titles[0], "middle"))
        middle = (_TOP + base) / 2
        turned = f'<g transform="rotate(-90 12 {middle:g})">'
        found.append(f"{turned}{text(12, middle, self.titles[1], 'middle')}</g>")
        return drawing(_WIDE, _TALL, label, [*found, *parts], ' class="plot"')


def calibration(bins: Sequence[Bin], stated: Sequence[float], n_classes: int) -> str:
    """Draw how often predictions of a probability are right, with the diagonal of honesty."""
    low = 0.0 if n_classes > 2 else 0.5
    across, up = Axis(low, 1.0, 0.25), Axis(0.0, 1.0, 0.25)
    frame = _Frame(across, up, ("stated probability, %", "right, %"), (100.0, 100.0))
    tallest = max(stated, default=0.0) or 1.0
    width = 1.0 / len(stated) if stated else 1.0
    parts = []
    for k, share in enumerate(stated):
        if share > 0 and (k + 1) * width > low:
            # The distribution takes the lowest quarter of the frame.
            top = frame.y(0.25 * share / tallest)
            left, right = frame.x(k * width), frame.x((k + 1) * width)
            parts.append(rectangle(left, top, right - left - 0.5, frame.y(0) - top, "bars"))
    parts.append(line(frame.x(low), frame.y(low), frame.x(1), frame.y(1), "diagonal"))
    parts.append(polyline([(frame.x(b.stated), frame.y(b.right.mean)) for b in bins], "curve"))
    for b in bins:
        parts.append(_whisker(frame, b.stated, b.right))
        parts.append(circle(frame.x(b.stated), frame.y(b.right.mean), 4, "dot"))
    label = "Share of right answers by stated probability; the diagonal would be perfect."
    return frame.draw(label, parts)


def risk(
    points: Sequence[tuple[float, float]],
    marks: Sequence[tuple[float, Interval]],
    title: str,
    factor: float,
) -> str:
    """Draw what is wrong among the surest answers, against how many of them are used."""
    ends = [value for _, value in points[len(points) // 20 :]]
    ends += [end for _, m in marks for end in (m.mean, m.high) if end is not None]
    up = Axis.over([0.0, *ends], 4, whole=True)
    frame = _Frame(Axis(0.0, 1.0, 0.25), up, ("answers used, %", title), (100.0, factor))
    parts = [polyline([(frame.x(x), frame.y(y)) for x, y in points], "curve")]
    for share, value in marks:
        parts.append(_whisker(frame, share, value))
        parts.append(circle(frame.x(share), frame.y(value.mean), 4, "dot"))
    return frame.draw(f"{title} among the surest answers, by how many are used.", parts)


def parity(truth: Array, predicted: Array) -> str:
    """Draw predicted numbers against true ones."""
    rows = np.arange(len(truth))
    if len(rows) > _DOTS:
        rows = np.linspace(0, len(truth) - 1, _DOTS).astype(np.intp)
    ends = [float(f(v)) for v in (truth, predicted) for f in (np.min, np.max)]
    axis = Axis.over(ends, 4)
    frame = _Frame(axis, axis, ("truth", "predicted"), (1.0, 1.0))
    parts = [
        line(
            frame.x(axis.low), frame.y(axis.low), frame.x(axis.high), frame.y(axis.high), "diagonal"
        )
    ]
    parts += [circle(frame.x(truth[k]), frame.y(predicted[k]), 2.5, "point") for k in rows]
    return frame.draw("Predicted against true values; the diagonal would be perfect.", parts)


def _whisker(frame: _Frame, x: float, value: Interval) -> str:
    if value.low is None or value.high is None:
        return ""
    return line(frame.x(x), frame.y(value.low), frame.x(x), frame.y(value.high), "whisker")


# Steps of trust that have a shade of their own, and colours of views.
LEVELS, COLOURS = 10, 8
# Samples that are drawn at most.
MOST_ROWS, MOST_SYMBOLS = 400, 1500
# Height of the map of trust on the screen, and of one of its rows at most.
_MAP_TALL, _TALLEST_ROW, _WORDS = 480.0, 14.0, 15.0
# Size of the picture of samples, and room at its sides for half a symbol.
_MAP_WIDE, _LOW, _HIGH, _ROOM = 480.0, 240.0, 420.0, 12.0


@dataclass(frozen=True)
class Group:
    """Rows of one class in the map of trust."""

    name: str
    code: int
    top: float  # in per cent of the height
    height: float
    shown: bool  # whether there is room for the name


@dataclass(frozen=True)
class TrustMap:
    """Cells as a drawing that stretches, and what stands beside it."""

    cells: str
    groups: list[Group]
    height: float  # in pixels
    rows: Array  # samples from top to bottom


def spread(n: int, most: int) -> Array:
    """Positions of at most so many of n things, evenly spread."""
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).astype(np.intp)


def in_order(cases: Cases, grouped: bool) -> Array:
    """Order of samples in which classes stand together, and in them those alike in trust.

    Samples that distrust the same view are neighbours, the least trusting first.
    """
    trust = np.where(cases.present & np.isfinite(cases.trust), cases.trust, np.inf)
    least = trust.argmin(axis=1)
    lowest = np.where(np.isfinite(trust), trust, 1.0).min(axis=1)
    lacks = (~cases.present).sum(axis=1)
    keys = [lowest, least, lacks]
    return np.lexsort([*keys, np.where(cases.known, cases.truth, np.inf)] if grouped else keys)


def trust_map(cases: Cases, classes: Sequence[str]) -> TrustMap:
    """Draw trust of samples (down) in views (across); samples of a class stand together."""
    grouped = bool(classes) and bool(cases.known.any())
    order = in_order(cases, grouped)
    rows = order[spread(len(order), MOST_ROWS)]
    trust, present = cases.trust[rows], cases.present[rows]
    n, m = trust.shape
    height = min(_MAP_TALL, max(_TALLEST_ROW * n, 3 * _WORDS))
    cells: dict[tuple[int, str], list[str]] = {}
    for view in range(m):
        shades = [
            shade(t) if p else "absent"
            for t, p in zip(trust[:, view], present[:, view], strict=True)
        ]
        start = 0
        for row in range(1, n + 1):
            if row == n or shades[row] != shades[start]:
                where = f"M{100 * view + 1},{start}h98v{row - start}h-98z"
                cells.setdefault((view, shades[start]), []).append(where)
                start = row
    # Lines of the hatching are some pixels apart, whatever the size of a row.
    high = max(1, round(6 * n / height))
    hatch = (
        f'<defs><pattern id="hatch" width="5" height="{high}" patternUnits="userSpaceOnUse">'
        f'<path d="M0,{high}L5,0" class="hatch"/></pattern></defs>'
    )
    paths = []
    for (view, kind), found in sorted(cells.items()):
        css = kind if kind == "absent" else f"v{view % COLOURS} {kind}"
        paths.append(f'<path class="{css}" d="{"".join(found)}"/>')
    label = f"Trust of {n} samples in {m} views; the table of samples has the numbers."
    more = ' id="trust-map" preserveAspectRatio="none"'
    parts = [hatch, f'<g id="trust-cells">{"".join(paths)}</g>', '<g id="trust-here"></g>']
    picture = drawing(100 * m, n, label, parts, more)
    codes = (
        [
            int(c) if known else -1
            for c, known in zip(cases.truth[rows], cases.known[rows], strict=True)
        ]
        if grouped
        else []
    )
    return TrustMap(picture, _groups(codes, classes, height), height, rows)


def shade(trust: float) -> str:
    """Return the class of a cell: t0 is no trust, the last one full trust."""
    return "unknown" if not np.isfinite(trust) else f"t{min(int(trust * LEVELS), LEVELS - 1)}"


def _groups(codes: Sequence[int], classes: Sequence[str], height: float) -> list[Group]:
    found: list[Group] = []
    start, n, free = 0, len(codes), 0.0
    for row in range(1, n + 1):
        if row == n or codes[row] != codes[start]:
            name = classes[codes[start]] if codes[start] >= 0 else "not known"
            top, high = 100.0 * start / n, 100.0 * (row - start) / n
            middle = height * (top + high / 2) / 100
            shown = middle - _WORDS / 2 >= free
            free = middle + _WORDS / 2 if shown else free
            found.append(Group(name, codes[start], top, high, shown))
            start = row
    return found


@dataclass(frozen=True)
class Places:
    """Where samples lie in the picture."""

    x: Array
    y: Array
    height: float

    @classmethod
    def of(cls, place: Array) -> "Places":
        """Fit places into the picture; both directions have one scale where there is room."""
        low, high = place.min(axis=0), place.max(axis=0)
        size = np.where(high > low, high - low, 1.0)
        height = float(np.clip(_MAP_WIDE * size[1] / size[0], _LOW, _HIGH))
        unit = (place - low) / size
        unit[:, high <= low] = 0.5
        return cls(
            _ROOM + (_MAP_WIDE - 2 * _ROOM) * unit[:, 0],
            _ROOM + (height - 2 * _ROOM) * (1 - unit[:, 1]),
            height,
        )


def where_map(
    places: Places, drawn: Array, shapes: Array, colours: Sequence[str], label: str
) -> str:
    """Draw samples as symbols of their class; `colours` are their classes in the style sheet."""
    outlines = "".join(f'<path id="s{k}" d="{d}"/>' for k, d in enumerate(SYMBOLS))
    marks = [
        f'<use href="#s{symbol(int(shapes[k]))}" x="{number(places.x[k])}" '
        f'y="{number(places.y[k])}" class="{colours[k]}"/>'
        for k in drawn
    ]
    parts = [f"<defs>{outlines}</defs>", f'<g id="where-marks">{"".join(marks)}</g>']
    return drawing(_MAP_WIDE, places.height, label, parts, ' id="where-map"')


def leading(cases: Cases) -> Array:
    """Number of the view whose part in the decision is largest, for each sample."""
    parts = cases.parts if cases.classifies else np.abs(cases.parts)
    return np.asarray(np.where(cases.present, parts, -np.inf).argmax(axis=1))


def colour_of(view: int) -> str:
    """Class of the colour of a view in the style sheet; after the last colour, outlines only."""
    return f"v{view % COLOURS}" + (" hollow" if view // COLOURS % 2 else "")
