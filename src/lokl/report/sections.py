"""What each part of the page shows: numbers as words, and pictures."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl.report import curves
from lokl.report.content import Alignment, Candidate, Cases, Interval, Report, ViewWorth
from lokl.report.maps import COLOURS
from lokl.report.numbers import Scale, mean_interval, seconds
from lokl.report.reliability import Reliability
from lokl.report.strips import Column, Told
from lokl.report.words import Words, attention, chance, percent

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
