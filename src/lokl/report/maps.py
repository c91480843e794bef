"""Pictures of all samples: whom the model trusts for whom, and which samples are alike."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lokl._arrays import Array
from lokl.report.content import Cases
from lokl.report.svg import SYMBOLS, drawing, number, symbol

# Steps of trust that have a shade of their own, and colours of views.
LEVELS, COLOURS = 10, 8
# Samples that are drawn at most.
MOST_ROWS, MOST_SYMBOLS = 400, 1500
# Height of the map of trust on the screen, and of one of its rows at most.
_TALL, _TALLEST_ROW, _WORDS = 480.0, 14.0, 15.0
# Size of the picture of samples, and room at its sides for half a symbol.
_WIDE, _LOW, _HIGH, _ROOM = 480.0, 240.0, 420.0, 12.0


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
    height = min(_TALL, max(_TALLEST_ROW * n, 3 * _WORDS))
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
        height = float(np.clip(_WIDE * size[1] / size[0], _LOW, _HIGH))
        unit = (place - low) / size
        unit[:, high <= low] = 0.5
        return cls(
            _ROOM + (_WIDE - 2 * _ROOM) * unit[:, 0],
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
    return drawing(_WIDE, places.height, label, parts, ' id="where-map"')


def leading(cases: Cases) -> Array:
    """Number of the view whose part in the decision is largest, for each sample."""
    parts = cases.parts if cases.classifies else np.abs(cases.parts)
    return np.asarray(np.where(cases.present, parts, -np.inf).argmax(axis=1))


def colour_of(view: int) -> str:
    """Class of the colour of a view in the style sheet; after the last colour, outlines only."""
    return f"v{view % COLOURS}" + (" hollow" if view // COLOURS % 2 else "")
