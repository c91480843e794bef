"""What each part of the page shows: numbers as words, and pictures."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lokl.report import curves, strips
from lokl.report.content import Alignment, Candidate, Cases, Interval, Report, ViewWorth
from lokl.report.numbers import Scale, mean_interval, seconds
from lokl.report.reliability import Reliability
from lokl.report.strips import axis_of, scale_of, strip
from lokl.report.svg import Axis
from lokl.report.words import Words, attention, chance, percent

# Samples in the list beside the card.
_LISTED = 8


@dataclass(frozen=True)
class Told:
    """A number in words, as a picture, and as it sorts."""

    mean: str
    limits: str
    picture: str
    value: float | None

    @classmethod
    def of(
        cls, value: Interval | None, scale: Scale, axis: Axis, css: str = "", mark: float | None = None
    ) -> "Told":
        known = value is not None and np.isfinite(value.mean)
        picture = strip(value, axis, css, mark)
        return cls(
            scale.mean(value), scale.limits(value), picture, value.mean if known and value else None
        )


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
    """The leaderboard, with its axes."""

    rows: list[BoardRow]
    axis: str
    behind_axis: str
    supported: bool


def board(report: Report, words: Words) -> Board:
    """Draw all candidates on one common line."""
    rows, scale = report.leaderboard, words.scale
    axis = axis_of([row.score for row in rows])
    chosen = next((row.score.mean for row in rows if row.chosen and row.score), None)
    compared = any(row.behind is not None for row in rows)
    behind = axis_of([row.behind for row in rows], [0.0]) if compared else None
    return Board(
        [
            BoardRow(
                row,
                Told.of(row.score, scale, axis, "chosen" if row.chosen else "", chosen),
                None if behind is None else Told.of(row.behind, scale, behind, "", 0.0),
                seconds(row.seconds),
                percent(row.support, 0),
            )
            for row in rows
        ],
        scale_of(axis, scale),
        "" if behind is None else scale_of(behind, scale),
        any(row.support is not None for row in rows),
    )


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
    name: str
    score: Told


@dataclass(frozen=True)
class Worth:
    """What views are worth: rows, the axes of their columns, and sets of views."""

    rows: list[WorthRow]
    axes: tuple[str, str, str]
    known: tuple[bool, bool, bool]
    subsets: list[SubsetRow]
    subset_axis: str


def worth(report: Report, words: Words) -> Worth:
    """Draw what views are worth alone, in the model, and when they are withheld."""
    views, scale = report.views, words.scale
    whole = next((row.score.mean for row in report.leaderboard if row.chosen and row.score), None)
    parts = [_contribution(view, report.cases, k) for k, view in enumerate(views)]
    plain = Scale(False)
    alone = axis_of([view.alone for view in views], [] if whole is None else [whole])
    part = axis_of(parts, [0.0])
    lost = axis_of([view.withheld for view in views], [0.0])
    rows = []
    for k, view in enumerate(views):
        css = f"v{k % 8}"
        rows.append(
            WorthRow(
                view,
                Told.of(view.alone, scale, alone, css, whole),
                Told.of(parts[k], plain, part, css, 0.0),
                Told.of(view.withheld, scale, lost, css, 0.0),
                chance(view.trust),
                percent(view.missing, _count(report)),
            )
        )
    names = [view.name for view in views]
    sets = axis_of([subset.score for subset in report.subsets])
    subsets = [
        SubsetRow(
            [name in subset.views for name in names],
            " + ".join(subset.views),
            Told.of(subset.score, scale, sets, "", whole),
        )
        for subset in report.subsets
    ]
    known = (any(view.alone for view in views), bool(views), any(view.withheld for view in views))
    axes = (scale_of(alone, scale), scale_of(part, plain), scale_of(lost, scale))
    return Worth(rows, axes, known, subsets, scale_of(sets, scale) if subsets else "")


def _contribution(view: ViewWorth, cases: Cases | None, k: int) -> Interval:
    """Mean part of a view, with its interval over the samples that have it."""
    if cases is None or not cases.present[:, k].any():
        return Interval(view.contribution)
    found = mean_interval(np.abs(cases.parts[cases.present[:, k], k]).tolist())
    if found.low is None or found.high is None:
        return Interval(view.contribution)
    reach = (found.high - found.low) / 2
    return Interval(view.contribution, max(view.contribution - reach, 0.0), view.contribution + reach)


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
    return [listing(cases, words, int(k)) for k in attention(cases)[:_LISTED]]


def listing(cases: Cases, words: Words, k: int) -> Listed:
    """Return one line about a sample, and why it is worth a look."""
    why = []
    differ = float(cases.disagreement[k])
    if cases.wrong[k]:
        sure = "" if cases.probabilities is None else chance(float(cases.probabilities[k, cases.predicted[k]]))
        why.append(f"wrong at {sure}" if sure else "wrong")
    if not cases.classifies and cases.known[k]:
        why.append(f"off by {words.error(abs(float(cases.truth[k] - cases.predicted[k])))}")
    if np.isfinite(differ) and differ > 0:
        why.append(f"disagreement {chance(differ)}")
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
    pattern_axis: str
    shades: list[list[int]]  # of the confusion, per cent of the true class
    score: Told


def belief(report: Report, words: Words, found: Reliability) -> Belief:
    """Draw whether answers can be believed."""
    cases = report.cases
    assert cases is not None
    scale = Scale(bool(report.classes))
    marks = [value for _, value in found.risk]
    line = axis_of(marks, [0.0])
    axis = axis_of([pattern.score for pattern in found.patterns])
    title = "wrong, %" if report.classes else "mean error"
    known = cases.known
    names = [view.name for view in report.views]
    patterns = [
        PatternRow(
            ", ".join(names[view] for view in pattern.lacks),
            ",".join(map(str, pattern.lacks)),
            pattern.n_samples,
            Told.of(pattern.score, scale, axis, "", found.score.mean),
        )
        for pattern in found.patterns
    ]
    confusion = np.array(found.confusion)
    totals = np.maximum(confusion.sum(axis=1, keepdims=True), 1) if confusion.size else 1
    return Belief(
        found,
        curves.calibration(found.calibration, found.stated, len(report.classes)) if found.calibration else "",
        "" if report.classes else curves.parity(cases.truth[known], cases.predicted[known]),
        curves.risk(found.curve, found.risk, title, scale.factor) if found.risk else "",
        [(percent(share, 0), Told.of(value, scale, line)) for share, value in found.risk],
        patterns,
        strips.scale_of(axis, scale) if patterns else "",
        np.round(100 * confusion / totals).astype(int).tolist() if confusion.size else [],
        Told.of(found.score, scale, axis_of([found.score])),
    )


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
