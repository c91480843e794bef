"""Pictures as SVG text: readable without a script, small, in colours that a style sheet sets."""

from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

from lokl._arrays import Array
from lokl.report.content import Interval

# Steps of trust that have a colour of their own.
LEVELS = 12
# Outlines of symbols around the origin, one for each class in turn.
SYMBOLS = (
    "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0z",
    "M-3.5,-3.5h7v7h-7z",
    "M0,-4.6L4.4,3.4H-4.4z",
    "M0,-4.8L4.8,0L0,4.8L-4.8,0z",
    "M-4,-1.4h2.6v-2.6h2.8v2.6h2.6v2.8h-2.6v2.6h-2.8v-2.6h-2.6z",
    "M0,4.6L4.4,-3.4H-4.4z",
    "M-4.6,-2h9.2v4h-9.2z",
    "M-2,-4.6h4v9.2h-4z",
)


def number(value: float) -> str:
    """Return a coordinate with no more digits than a screen shows."""
    return f"{value:.1f}".rstrip("0").rstrip(".")


def drawing(width: float, height: float, label: str, parts: Iterable[str], more: str = "") -> str:
    """Put parts into a picture that scales with the page and has a name for screen readers."""
    return (
        f'<svg viewBox="0 0 {number(width)} {number(height)}" role="img" '
        f'aria-label="{escape(label)}"{more}>{"".join(parts)}</svg>'
    )


def text(x: float, y: float, words: str, anchor: str = "start", css: str = "") -> str:
    """Return a line of text; `anchor` says which end of it is at x."""
    style = f' class="{css}"' if css else ""
    place = f'x="{number(x)}" y="{number(y)}"'
    return f'<text {place} text-anchor="{anchor}"{style}>{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, css: str) -> str:
    """Return a straight line."""
    start = f'x1="{number(x1)}" y1="{number(y1)}"'
    return f'<line {start} x2="{number(x2)}" y2="{number(y2)}" class="{css}"/>'


def interval(value: Interval | None, low: float, high: float, label: str, css: str = "") -> str:
    """Draw a dot with its interval on a line from `low` to `high`."""
    if value is None or not np.isfinite(value.mean):
        return ""
    span = (high - low) or 1.0

    def at(x: float) -> float:
        return 6 + 108 * min(max((x - low) / span, 0.0), 1.0)

    parts = []
    if value.low is not None and value.high is not None:
        parts.append(line(at(value.low), 8, at(value.high), 8, "whisker"))
    parts.append(f'<circle cx="{number(at(value.mean))}" cy="8" r="4" class="dot {css}"/>')
    return drawing(120, 16, label, parts, ' class="spark"')


def trust_map(trust: Array, present: Array, names: Sequence[str], groups: Sequence[str]) -> str:
    """Draw trust of samples (down) in views (across); rows of a group stand together.

    `groups` names the group of every row, in the order of the rows.
    """
    n, m = trust.shape
    tall = max(1.0, min(8.0, 480.0 / max(n, 1)))
    left, top, wide = 90.0, 22.0, max(40.0, min(120.0, 520.0 / m))
    cells: dict[str, list[str]] = {}
    for row in range(n):
        for view in range(m):
            level = f"t{min(int(trust[row, view] * LEVELS), LEVELS - 1)}"
            kind = level if present[row, view] else "absent"
            x, y = number(left + wide * view), number(top + tall * row)
            cells.setdefault(kind, []).append(
                f"M{x},{y}h{number(wide)}v{number(tall)}h-{number(wide)}z"
            )
    parts = [
        '<defs><pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse">'
        '<path d="M0,5L5,0" class="hatch"/></pattern></defs>'
    ]
    parts += [
        f'<path class="{kind}" d="{"".join(where)}"/>' for kind, where in sorted(cells.items())
    ]
    for view, name in enumerate(names):
        parts.append(text(left + wide * (view + 0.5), top - 7, _short(name, wide / 6.5), "middle"))
    start = 0
    for row in range(1, n + 1):
        if row == n or groups[row] != groups[start]:
            middle = top + tall * (start + row) / 2
            parts.append(text(left - 8, middle + 4, _short(groups[start], 12), "end"))
            if row < n:
                y = top + tall * row
                parts.append(line(left - 4, y, left + wide * m, y, "between"))
            start = row
    label = f"Trust of {n} samples in {m} views"
    size = f' data-left="{left}" data-top="{top}" data-wide="{wide}" data-tall="{tall}"'
    height = top + tall * n + 6
    return drawing(left + wide * m + 8, height, label, parts, f' id="trust-map"{size}')


def scatter(place: Array, symbol: Array, colour: Array, names: Sequence[str]) -> str:
    """Draw samples as symbols of their class in the colour of their leading view."""
    low, high = place.min(axis=0), place.max(axis=0)
    unit = (place - low) / np.where(high > low, high - low, 1.0)
    shapes = "".join(f'<path id="s{k}" d="{d}"/>' for k, d in enumerate(SYMBOLS))
    marks = [
        f'<use href="#s{int(s) % len(SYMBOLS)}" x="{number(14 + 572 * x)}" '
        f'y="{number(14 + 372 * (1 - y))}" class="v{int(c) % 6}"/>'
        for (x, y), s, c in zip(unit, symbol, colour, strict=True)
    ]
    label = f"{len(place)} samples, similar ones together, by class and leading view: " + ", ".join(
        names
    )
    return drawing(600, 400, label, [f"<defs>{shapes}</defs>", *marks], ' id="where-map"')


def curve(points: Sequence[tuple[float, float]], label: str, across: str, up: str) -> str:
    """Draw a curve in the unit square, with its diagonal."""
    left, top, side = 44.0, 10.0, 220.0
    parts = [
        line(left, top + side, left + side, top, "diagonal"),
        f'<rect x="{left}" y="{top}" width="{side}" height="{side}" class="frame"/>',
    ]
    placed = [(left + side * x, top + side * (1 - y)) for x, y in points]
    if placed:
        path = "L".join(f"{number(x)},{number(y)}" for x, y in placed)
        parts.append(f'<path d="M{path}" class="curve"/>')
        parts += [
            f'<circle cx="{number(x)}" cy="{number(y)}" r="3" class="dot"/>' for x, y in placed
        ]
    for value in (0.0, 0.5, 1.0):
        parts.append(text(left + side * value, top + side + 15, f"{value:g}", "middle"))
        parts.append(text(left - 6, top + side * (1 - value) + 4, f"{value:g}", "end"))
    parts.append(text(left + side / 2, top + side + 32, across, "middle"))
    turned = f'transform="rotate(-90 12 {top + side / 2})"'
    parts.append(f"<g {turned}>{text(12, top + side / 2, up, 'middle')}</g>")
    return drawing(left + side + 12, top + side + 40, label, parts)


def _short(words: str, most: float) -> str:
    count = max(int(most), 3)
    return words if len(words) <= count else words[: count - 1] + "…"
