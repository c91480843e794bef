"""Curves: stated against true, risk against coverage, predicted against true numbers."""

from collections.abc import Sequence

import numpy as np

from lokl._arrays import Array
from lokl.report.content import Interval
from lokl.report.reliability import Bin
from lokl.report.svg import Axis, circle, drawing, line, polyline, rectangle, text

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
