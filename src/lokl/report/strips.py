"""Dots with their intervals, on one line for each row of a table."""

from collections.abc import Iterable
from math import isfinite

from lokl.report.content import Interval
from lokl.report.numbers import Scale
from lokl.report.svg import Axis, circle, drawing, line, text

# Size of a strip, and room at its ends for half a dot.
_WIDE, _TALL, _ROOM = 120.0, 18.0, 7.0


def axis_of(values: Iterable[Interval | None], also: Iterable[float] = ()) -> Axis:
    """Return a line that all values, their intervals and some other numbers fit on."""
    ends = [
        end
        for value in values
        if value is not None
        for end in (value.mean, value.low, value.high)
        if end is not None
    ]
    return Axis.over([*ends, *also], 2)


def _at(axis: Axis, value: float) -> float:
    return _ROOM + (_WIDE - 2 * _ROOM) * axis.share(value)


def strip(value: Interval | None, axis: Axis, css: str = "", mark: float | None = None) -> str:
    """Draw a dot with its interval; `mark` is a thin line that the dot is compared with.

    The number stands beside it, so that screen readers are spared the picture.
    """
    parts = []
    if mark is not None and isfinite(mark):
        parts.append(line(_at(axis, mark), 0, _at(axis, mark), _TALL, "mark"))
    if value is not None and isfinite(value.mean):
        middle = _TALL / 2
        if value.low is not None and value.high is not None:
            low, high = _at(axis, value.low), _at(axis, value.high)
            parts.append(line(low, middle, high, middle, f"whisker {css}"))
            parts += [line(x, middle - 3, x, middle + 3, f"whisker {css}") for x in (low, high)]
        parts.append(circle(_at(axis, value.mean), middle, 4.5, f"dot {css}"))
    return drawing(_WIDE, _TALL, "", parts, ' class="strip"')


def scale_of(axis: Axis, scale: Scale) -> str:
    """Draw the ticks of an axis, for the head of the column."""
    shown = Axis(scale.factor * axis.low, scale.factor * axis.high, scale.factor * axis.step)
    parts = [line(_ROOM, _TALL - 1, _WIDE - _ROOM, _TALL - 1, "frame")]
    for tick in axis.ticks:
        x = _at(axis, tick)
        anchor = "start" if x < 14 else "end" if x > _WIDE - 14 else "middle"
        parts.append(line(x, _TALL - 4, x, _TALL, "frame"))
        parts.append(text(x, _TALL - 6, shown.shown(scale.factor * tick), anchor, "tick"))
    return drawing(_WIDE, _TALL, "", parts, ' class="strip"')
