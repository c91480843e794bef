"""Dots with their intervals, on one line for each row of a table."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite

from lokl.report.content import Interval
from lokl.report.numbers import Scale
from lokl.report.svg import Axis, circle, drawing, line, polyline, text

# Size of a strip, and room at its ends for half a dot.
_WIDE, _TALL, _ROOM = 120.0, 18.0, 7.0
# Signs that fit side by side on it.
_SIGNS = 18
# Values that are farther from the best than so many times the middle one are not drawn to scale.
_FAR = 4.0


@dataclass(frozen=True)
class Told:
    """A number in words, as a picture, and as it sorts."""

    mean: str
    limits: str
    picture: str
    value: float | None


@dataclass(frozen=True)
class Column:
    """Numbers of one kind: the same digits behind the point, and one line for all dots."""

    scale: Scale
    places: int
    axis: Axis

    @classmethod
    def of(
        cls,
        values: Iterable[Interval | None],
        scale: Scale,
        also: Iterable[float] = (),
        *,
        near_best: bool = False,
    ) -> "Column":
        """Return a column that all values, their intervals and some other numbers fit on.

        With `near_best`, a few values that are far below the others do not squeeze them.
        """
        known = [value for value in values if value is not None and isfinite(value.mean)]
        ends = [e for v in known for e in (v.mean, v.low, v.high) if e is not None]
        if near_best and known:
            lowest = _lowest(known)
            ends = [max(end, lowest) for end in ends]
        return cls(scale, scale.places(known), Axis.over([*ends, *also], 4))

    def told(self, value: Interval | None, css: str = "", mark: float | None = None) -> Told:
        """Return a number of the column; `mark` is a thin line that it is compared with."""
        return Told(
            self.scale.mean(value, self.places),
            self.scale.limits(value, self.places),
            self._strip(value, css, mark),
            value.mean if value is not None and isfinite(value.mean) else None,
        )

    @property
    def head(self) -> str:
        """Ticks of the line, for the head of the column."""
        axis, factor = self.axis, self.scale.factor
        shown = Axis(factor * axis.low, factor * axis.high, factor * axis.step)
        parts = [line(_ROOM, _TALL - 1, _WIDE - _ROOM, _TALL - 1, "frame")]
        words = [shown.shown(factor * tick) for tick in axis.ticks]
        # Words that would run into each other are left out in turn.
        every = 1 if sum(len(word) + 1 for word in words) <= _SIGNS else 2
        for k, (tick, word) in enumerate(zip(axis.ticks, words, strict=True)):
            x = self._at(tick)
            anchor = "start" if x < 12 else "end" if x > _WIDE - 12 else "middle"
            parts.append(line(x, _TALL - 4, x, _TALL, "frame"))
            if k % every == 0:
                parts.append(text(x, _TALL - 6, word, anchor, "tick"))
        return drawing(_WIDE, _TALL, "", parts, ' class="strip"')

    def _at(self, value: float) -> float:
        return _ROOM + (_WIDE - 2 * _ROOM) * self.axis.share(value)

    def _strip(self, value: Interval | None, css: str, mark: float | None) -> str:
        """Draw a dot; the number stands beside it, so that screen readers are spared it."""
        parts, middle = [], _TALL / 2
        if mark is not None and isfinite(mark):
            parts.append(line(self._at(mark), 0, self._at(mark), _TALL, "mark"))
        if value is None or not isfinite(value.mean):
            return drawing(_WIDE, _TALL, "", parts, ' class="strip"')
        if value.mean < self.axis.low:
            arrow = [(_ROOM + 1, middle - 5), (_ROOM - 5, middle), (_ROOM + 1, middle + 5)]
            parts.append(polyline(arrow, f"away {css}"))
            return drawing(_WIDE, _TALL, "", parts, ' class="strip"')
        if value.low is not None and value.high is not None:
            low, high = self._at(value.low), self._at(value.high)
            parts.append(line(low, middle, high, middle, f"whisker {css}"))
            parts += [line(x, middle - 3, x, middle + 3, f"whisker {css}") for x in (low, high)]
        parts.append(circle(self._at(value.mean), middle, 4.5, f"dot {css}"))
        return drawing(_WIDE, _TALL, "", parts, ' class="strip"')


def _lowest(values: Sequence[Interval]) -> float:
    """Return where the line ends, so that most values have room on it."""
    means = sorted((value.mean for value in values), reverse=True)
    reaches = sorted(means[0] - (v.mean if v.low is None else v.low) for v in values)
    usual = max(reaches[len(reaches) // 2], means[0] - means[len(means) // 2])
    if means[0] - means[-1] <= _FAR * usual or not usual:
        return min((v.mean if v.low is None else v.low) for v in values)
    near = [v for v in values if means[0] - v.mean <= _FAR * usual]
    return min((v.mean if v.low is None else v.low) for v in near)
