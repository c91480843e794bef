"""Dots with their intervals, on one line for each row of a table.

One sample: from the prior over the views to the decision.

What each part of the page shows: numbers as words, and pictures.

The answer in two sentences, and the numbers behind it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl.explain.answers import DISAGREE
from lokl.explain.similarity import Alignment
from lokl.report import figures as curves
from lokl.report.content import Candidate, Cases, Interval, Report, ViewWorth
from lokl.report.figures import COLOURS, Axis, circle, drawing, line, polyline, text
from lokl.report.formatting import (
    FAMILIAR,
    Scale,
    Words,
    attention,
    chance,
    count,
    mean_interval,
    percent,
    seconds,
    sentence,
    wilson,
)
from lokl.report.reliability import Reliability

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


@dataclass(frozen=True)
class Step:
    """One bar of the way to a decision; places are in per cent of the width."""

    left: float
    width: float
    pull: str


@dataclass(frozen=True)
class Voice:
    """A view that has its say."""

    view: int
    missing: bool
    says: str
    trust: str
    step: Step


@dataclass(frozen=True)
class Neighbour:
    """A sample that is like the one on the card."""

    name: str
    case: bool  # whether it can be picked
    words: str


@dataclass(frozen=True)
class Card:
    """What is told about one sample."""

    name: str
    says: str
    truth: str
    wrong: bool
    disagreement: str  # empty where views agree
    strange: str  # views that the sample is unlike what was learned from in; empty for none
    axis: tuple[str, str]  # what bars to the left and to the right speak for
    zero: float | None  # place of the line between both
    start: Step
    voices: list[Voice]
    end: Step
    neighbours: list[Neighbour]


def card(cases: Cases, words: Words, names: list[str], k: int) -> Card:
    """Tell about sample number k; `names` are those of the views."""
    start, parts = float(cases.start[k]), np.where(cases.present[k], cases.parts[k], 0.0)
    stops = start + np.concatenate([[0.0], np.cumsum(parts)])
    # Numbers are far from zero, and only their changes count; decisions begin there.
    ends = stops if not words.classes else np.append(stops, 0.0)
    low, high = float(ends.min()), float(ends.max())
    span = (high - low) or 1.0

    def bar(a: float, b: float, pull: str) -> Step:
        return Step(100 * (min(a, b) - low) / span, 100 * abs(b - a) / span, pull)

    base = 0.0 if words.classes else None
    end = float(stops[-1])
    told = words.part if words.classes else words.outcome
    differ = float(cases.disagreement[k])
    return Card(
        cases.ids[k],
        headline(cases, words, k),
        words.outcome(float(cases.truth[k])),
        bool(cases.wrong[k]),
        chance(differ) if np.isfinite(differ) and differ >= DISAGREE else "",
        _strange(cases, names, k),
        _axis(cases, words, k),
        None if base is None else 100 * (base - low) / span,
        bar(start if base is None else base, start, told(start)),
        [
            Voice(
                v,
                not bool(cases.present[k, v]),
                _says(cases, words, k, v),
                chance(float(cases.trust[k, v])),
                bar(float(stops[v]), float(stops[v + 1]), words.part(float(parts[v]))),
            )
            for v in range(len(parts))
        ],
        bar(end if base is None else base, end, told(end)),
        neighbours(cases, words, k),
    )


def headline(cases: Cases, words: Words, k: int) -> str:
    """Return the answer with the probabilities of the likeliest classes."""
    said = words.outcome(float(cases.predicted[k]))
    if cases.probabilities is None:
        return said
    own = cases.probabilities[k]
    predicted = int(cases.predicted[k])
    others = [c for c in np.argsort(-own, kind="stable") if c != predicted][:3]
    rest = ", ".join(f"{words.classes[c]} {chance(float(own[c]))}" for c in others)
    return f"{said}, probability {chance(float(own[predicted]))} ({rest})"


def _says(cases: Cases, words: Words, k: int, view: int) -> str:
    said = words.outcome(float(cases.says[k, view]))
    sure = float(cases.sure[k, view])
    return f"{said} {chance(sure)}" if said and np.isfinite(sure) else said


def _strange(cases: Cases, names: list[str], k: int) -> str:
    if cases.familiar is None:
        return ""
    found = [
        f"{name} {chance(float(known))}"
        for name, known, here in zip(names, cases.familiar[k], cases.present[k], strict=True)
        if here and known < FAMILIAR
    ]
    return ", ".join(found)


def _axis(cases: Cases, words: Words, k: int) -> tuple[str, str]:
    if not words.classes:
        return "less", "more"
    others = np.arange(len(words.classes)) != int(cases.predicted[k])
    if cases.probabilities is None or len(words.classes) == 2:
        names = [name for name, other in zip(words.classes, others, strict=True) if other]
        rival = names[0] if len(names) == 1 else "the runner-up"
    else:
        chances = np.where(others, cases.probabilities[k], -1.0)
        rival = words.classes[int(chances.argmax())]
    return rival, words.classes[int(cases.predicted[k])]


def neighbours(cases: Cases, words: Words, k: int) -> list[Neighbour]:
    """Return the samples that are most like sample number k."""
    if cases.support is not None:
        known = set(cases.ids)
        own = cases.support
        return [
            Neighbour(own.ids[j], own.ids[j] in known, _like(words.outcome(float(own.truth[j])), a))
            for j, a in zip(own.near[k], own.alike[k], strict=True)
        ]
    return [
        Neighbour(
            cases.ids[j], True, words.outcome(float(cases.truth[j])) if cases.known[j] else ""
        )
        for j in cases.near[k]
    ]


def _like(outcome: str, alike: float) -> str:
    return ", ".join(part for part in (outcome, f"alike {chance(alike)}") if part)


# Samples in the list beside the card, and mistakes in theirs.
_LISTED = 8
# Classes whose confusion fits beside a picture, and whose matrix can be read at all.
_FEW_CLASSES, _MOST_CLASSES = 5, 40


@dataclass(frozen=True)
class BoardRow:
    """A row of the leaderboard."""

    row: Candidate
    score: Told
    behind: Told | None
    seconds: str
    support: str


@dataclass(frozen=True)
class Board:
    """The leaderboard, with the heads of its columns."""

    rows: list[BoardRow]
    head: str
    behind_head: str
    supported: bool


def board(report: Report, words: Words) -> Board:
    """Draw all candidates on one common line."""
    rows, scale = report.leaderboard, words.scale
    scores = Column.of([_inside(row.score, scale) for row in rows], scale, near_best=True)
    chosen = next((row.score.mean for row in rows if row.chosen and row.score), None)
    # What is far behind is drawn as an arrow in the column beside it, too.
    others = [row.behind for row in rows if not row.chosen]
    behind = Column.of(_turned(others), scale, [0.0], near_best=True) if any(others) else None
    return Board(
        [
            BoardRow(
                row,
                scores.told(_inside(row.score, scale), "chosen" if row.chosen else "", chosen),
                None if behind is None or row.chosen else _behind(behind, row.behind),
                seconds(row.seconds),
                percent(row.support, 0),
            )
            for row in rows
        ],
        scores.head,
        "" if behind is None else behind.head,
        any(row.support is not None for row in rows),
    )


def _inside(value: Interval | None, scale: Scale) -> Interval | None:
    """Return an interval that ends at 0 and 1, if it is of shares: there are none beyond."""
    if value is None or not scale.percent:
        return value
    ends = (None if end is None else min(max(end, 0.0), 1.0) for end in (value.low, value.high))
    return Interval(value.mean, *ends)


def _turned(values: Iterable[Interval | None]) -> list[Interval | None]:
    """Return how far candidates are ahead instead of behind: the better ones are to the right."""
    return [
        None
        if v is None
        else Interval(-v.mean, *(None if e is None else -e for e in (v.high, v.low)))
        for v in values
    ]


def _behind(column: Column, value: Interval | None) -> Told:
    return column.told(_turned([value])[0], "", 0.0)


@dataclass(frozen=True)
class WorthRow:
    """A row of the table of views."""

    view: ViewWorth
    alone: Told
    contribution: Told
    withheld: Told
    trust: str
    missing: str


@dataclass(frozen=True)
class SubsetRow:
    """A set of views."""

    has: list[bool]
    score: Told


@dataclass(frozen=True)
class Worth:
    """What views are worth: rows, heads of their columns, and sets of views."""

    rows: list[WorthRow]
    heads: tuple[str, str, str]  # alone, part, withheld
    known: tuple[bool, bool]  # whether there are scores alone, and withheld
    subsets: list[SubsetRow]
    subset_head: str


def worth(report: Report, words: Words) -> Worth:
    """Draw what views are worth alone, in the model, and when they are withheld."""
    views, scale = report.views, words.scale
    whole = next((row.score.mean for row in report.leaderboard if row.chosen and row.score), None)
    sizes = [_contribution(view, report.cases, k) for k, view in enumerate(views)]
    single = [_inside(view.alone, scale) for view in views]
    alone = Column.of(single, scale, [] if whole is None else [whole])
    part = Column.of(sizes, Scale(False), [0.0])
    lost = Column.of([view.withheld for view in views], scale, [0.0])
    rows = [
        WorthRow(
            view,
            alone.told(single[k], f"v{k % COLOURS}", whole),
            part.told(sizes[k], f"v{k % COLOURS}", 0.0),
            lost.told(view.withheld, f"v{k % COLOURS}", 0.0),
            chance(view.trust),
            percent(view.missing, _count(report)),
        )
        for k, view in enumerate(views)
    ]
    names = [view.name for view in views]
    scores = [_inside(subset.score, scale) for subset in report.subsets]
    sets = Column.of(scores, scale)
    subsets = [
        SubsetRow([name in subset.views for name in names], sets.told(score, "", whole))
        for subset, score in zip(report.subsets, scores, strict=True)
    ]
    known = (any(view.alone for view in views), any(view.withheld for view in views))
    return Worth(rows, (alone.head, part.head, lost.head), known, subsets, sets.head)


def _contribution(view: ViewWorth, cases: Cases | None, k: int) -> Interval:
    """Mean part of a view, with its interval over the samples that have it."""
    if cases is None or not cases.present[:, k].any():
        return Interval(view.contribution)
    found = mean_interval(np.abs(cases.parts[cases.present[:, k], k]).tolist())
    if found.low is None or found.high is None:
        return Interval(view.contribution)
    reach = (found.high - found.low) / 2
    return Interval(
        view.contribution, max(view.contribution - reach, 0.0), view.contribution + reach
    )


def _count(report: Report) -> int:
    return 0 if report.cases is None else len(report.cases.ids)


@dataclass(frozen=True)
class Listed:
    """A sample in the list beside the card."""

    name: str
    says: str
    truth: str
    why: str


def listed(cases: Cases, words: Words) -> list[Listed]:
    """Return the samples that are most worth a look."""
    order, much = attention(cases)
    return [listing(cases, words, int(k)) for k in order[much > 0][:_LISTED]]


def listing(cases: Cases, words: Words, k: int) -> Listed:
    """Return one line about a sample, and why it is worth a look."""
    why = []
    differ = float(cases.disagreement[k])
    if cases.wrong[k]:
        sure = (
            ""
            if cases.probabilities is None
            else chance(float(cases.probabilities[k, cases.predicted[k]]))
        )
        why.append(f"wrong at {sure}" if sure else "wrong")
    if not cases.classifies and cases.known[k]:
        why.append(f"off by {words.error(abs(float(cases.truth[k] - cases.predicted[k])))}")
    if np.isfinite(differ) and differ > 0:
        why.append(f"views differ {chance(differ)}")
    return Listed(
        cases.ids[k],
        words.outcome(float(cases.predicted[k])),
        words.outcome(float(cases.truth[k])),
        ", ".join(why),
    )


@dataclass(frozen=True)
class PatternRow:
    """Samples that lack the same views."""

    lacks: str  # names
    code: str  # numbers of the views
    n_samples: int
    score: Told


@dataclass(frozen=True)
class Belief:
    """How far answers can be believed, in pictures and tables."""

    found: Reliability
    calibration: str
    parity: str
    risk: str
    risks: list[tuple[str, Told]]
    patterns: list[PatternRow]
    pattern_head: str
    shades: list[list[int]]  # of the confusion, per cent of the true class
    mistakes: list[tuple[int, int, int]]  # true class, predicted class, samples
    score: Told

    @property
    def many(self) -> bool:
        """Whether there are so many classes that their matrix needs room."""
        return len(self.shades) > _FEW_CLASSES

    @property
    def drawn(self) -> bool:
        """Whether a matrix of all classes can still be read."""
        return len(self.shades) <= _MOST_CLASSES


def belief(report: Report, words: Words, found: Reliability) -> Belief:
    """Draw whether answers can be believed."""
    cases = report.cases
    assert cases is not None
    scale = Scale(bool(report.classes))
    risks = Column.of([value for _, value in found.risk], scale, [0.0])
    scores = Column.of([pattern.score for pattern in found.patterns], scale)
    title = "wrong, %" if report.classes else "mean error"
    known, n_classes = cases.known, len(report.classes)
    names = [view.name for view in report.views]
    patterns = [
        PatternRow(
            ", ".join(names[view] for view in pattern.lacks),
            ",".join(map(str, pattern.lacks)),
            pattern.n_samples,
            scores.told(pattern.score, "", found.score.mean),
        )
        for pattern in found.patterns
    ]
    confusion = np.array(found.confusion)
    totals = np.maximum(confusion.sum(axis=1, keepdims=True), 1) if confusion.size else 1
    stated = curves.calibration(found.calibration, found.stated, n_classes)
    return Belief(
        found,
        stated if found.calibration else "",
        "" if report.classes else curves.parity(cases.truth[known], cases.predicted[known]),
        curves.risk(found.curve, found.risk, title, scale.factor) if found.risk else "",
        [(percent(share, 0), risks.told(value)) for share, value in found.risk],
        patterns,
        scores.head,
        np.round(100 * confusion / totals).astype(int).tolist() if confusion.size else [],
        _mistakes(confusion),
        Column.of([found.score], scale).told(found.score),
    )


def _mistakes(confusion: Array) -> list[tuple[int, int, int]]:
    """Return pairs of classes that are taken for each other, the most frequent first."""
    pairs = [
        (int(true), int(said), int(confusion[true, said]))
        for true, said in np.argwhere(confusion)
        if true != said
    ]
    return sorted(pairs, key=lambda pair: (-pair[2], pair))[:_LISTED]


def aligned(found: Alignment | None, names: list[str]) -> tuple[list[str], list[list[str]]] | None:
    """Return the alignment of kernels as a table: names across, and words in cells."""
    if found is None:
        return None
    rows = [[chance(float(value)) or "–" for value in row] for row in np.asarray(found.between)]
    heads = list(names)
    if found.target is not None:
        heads.append("truth")
        rows = [[*row, chance(float(v)) or "–"] for row, v in zip(rows, found.target, strict=True)]
    return heads, rows


def audited(audit: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what was told about the making, as words."""
    return [(str(name), _words(value)) for name, value in audit.items()]


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_words(own)}" for name, own in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_words, value))
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


@dataclass(frozen=True)
class Tile:
    """A number at the head of the page.

    Attributes
    ----------
    value, label, detail : str
    select : str
        Which samples it counts, in the language of the page's filters; empty where it counts none.
    """

    value: str
    label: str
    detail: str = ""
    select: str = ""


def verdict(report: Report, words: Words, found: Reliability | None) -> str:
    """Return the sentences of the report, or make them from what it knows."""
    if report.verdict:
        return report.verdict
    chosen, baseline = chosen_of(report), baseline_of(report)
    if chosen is not None:
        return _of_candidates(report, words, chosen, baseline)
    if report.cases is None:
        return "Nothing was asked yet. There are no samples in this report."
    if found is None:
        n = len(report.cases.ids)
        return (
            f"The model has answered about {count(n, 'sample')} whose truth is not known. "
            "Nothing on this page can say how often it is right."
        )
    return _of_classes(report, found) if report.classes else _of_numbers(report.cases, words, found)


def chosen_of(report: Report) -> Candidate | None:
    """Return the candidate that was chosen and has a score."""
    return next((row for row in report.leaderboard if row.chosen and row.score), None)


def baseline_of(report: Report) -> Candidate | None:
    """Return the best of the simple candidates."""
    known = [row for row in report.leaderboard if row.baseline and row.score and not row.chosen]
    return max(known, key=lambda row: row.score.mean if row.score else 0.0, default=None)


def tiles(report: Report, words: Words, found: Reliability | None) -> list[Tile]:
    """Return the numbers at the head of the page."""
    made = [*_scores(report, words, found)]
    cases = report.cases
    if cases is None:
        return made
    if report.classes and found is not None:
        wrong = int(cases.wrong.sum())
        made.append(
            Tile(
                str(wrong),
                "wrong answers",
                f"of {found.n_samples}",
                "answer=wrong" if wrong else "",
            )
        )
    told = np.isfinite(cases.disagreement)
    if told.any() and len(report.views) > 1:
        differ = np.nan_to_num(cases.disagreement)
        # The worst first, as the terminal names them.
        order = np.argsort(-differ, kind="stable")
        rows = order[differ[order] >= DISAGREE]
        names = [cases.ids[k] for k in rows]
        detail = sentence(names, 4) if names else f"of {len(cases.ids)}"
        made.append(
            Tile(
                str(len(rows)),
                "samples where views disagree",
                detail,
                "views=disagree" if names else "",
            )
        )
    lacking = int((~cases.present.all(axis=1)).sum())
    if lacking:
        made.append(
            Tile(str(lacking), "samples that lack a view", f"of {len(cases.ids)}", "lacks=any")
        )
    return made


def _scores(report: Report, words: Words, found: Reliability | None) -> list[Tile]:
    chosen, baseline = chosen_of(report), baseline_of(report)
    sign = words.scale.sign
    if chosen is not None and chosen.score is not None:
        made = [
            Tile(
                words.scale.mean(chosen.score) + sign,
                report.score_name,
                _limits(words, chosen.score),
            )
        ]
        if baseline is not None and baseline.score is not None:
            detail = "; ".join(filter(None, [baseline.name, _limits(words, baseline.score)]))
            made.append(Tile(words.scale.mean(baseline.score) + sign, "the best baseline", detail))
        return made
    if found is None or report.cases is None:
        return []
    if report.classes:
        n = found.n_samples
        limits = f"{percent(found.score.low, n)} to {percent(found.score.high, n)}, 95 % interval"
        return [Tile(f"{percent(found.score.mean, n)} %", "right", limits)]
    low, high = (words.error(end or 0.0) for end in (found.score.low, found.score.high))
    return [Tile(words.error(found.score.mean), "mean error", f"{low} to {high}, 95 % interval")]


def _limits(words: Words, value: Interval) -> str:
    limits = words.scale.limits(value)
    return f"{limits}, 95 % interval" if limits else ""


def _of_candidates(
    report: Report, words: Words, chosen: Candidate, baseline: Candidate | None
) -> str:
    limits = words.scale.limits(chosen.score)
    between = f" ({limits}, 95 % interval)" if limits else ""
    first = (
        f"The chosen model ({chosen.name}) reaches {words.scale.mean(chosen.score)}"
        f"{words.scale.sign} {report.score_name}{between} on samples that it has not learned from."
    )
    if baseline is None:
        return f"{first} It was not compared with anything simple."
    second = (
        f"The best baseline ({baseline.name}) reaches {words.scale.mean(baseline.score)}"
        f"{words.scale.sign}"
    )
    behind = baseline.behind
    if behind is None or behind.low is None or behind.high is None:
        return f"{first} {second}."
    clear = "which is not clearly less"
    if behind.low > 0:
        clear = "which is clearly less"
    elif behind.high < 0:
        clear = "which is clearly more"
    difference = f"{words.scale.mean(behind)}, interval {words.scale.limits(behind)}"
    return f"{first} {second}, {clear} (difference {difference})."


def _of_classes(report: Report, found: Reliability) -> str:
    counts = np.array(found.confusion).sum(axis=1)
    most = int(counts.argmax())
    n = found.n_samples
    share = wilson(int(counts[most]), n).mean
    low, high = percent(found.score.low, n), percent(found.score.high, n)
    return (
        f"The model is right about {percent(found.score.mean, n)} % of {count(n, 'sample')} "
        f"({low} to {high}, 95 % interval). Always naming the most frequent class, "
        f"{report.classes[most]}, would be right about {percent(share, n)} %."
    )


def _of_numbers(cases: Cases, words: Words, found: Reliability) -> str:
    truth = cases.truth[cases.known].astype(float)
    plain = float(np.abs(truth - np.median(truth)).mean())
    low, high = (words.error(end or 0.0) for end in (found.score.low, found.score.high))
    return (
        f"The model is off by {words.error(found.score.mean)} on average ({low} to {high}, 95 % "
        f"interval) over {count(found.n_samples, 'sample')}. Always naming their median would be "
        f"off by {words.error(plain)}."
    )
