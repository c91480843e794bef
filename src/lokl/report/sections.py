"""Sections of the page: values and figures for the templates, which write them as text."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import inf, isfinite, nan
from typing import Any

import numpy as np

from lokl._arrays import Array, evenly_spaced
from lokl._survival import kaplan_meier, steps_at
from lokl._text import shorten_list
from lokl.explain.columns import bootstrap_importance
from lokl.explain.explanation import (
    AGREE,
    CONTRADICT,
    DISAGREE,
    HINGES,
    UNSURE,
    Explanation,
    SampleExplanation,
    plain_value,
)
from lokl.explain.reliability import Reliability, mean_interval
from lokl.explain.results import Interval
from lokl.report import figures
from lokl.report.content import LeaderboardEntry, Report
from lokl.report.figures import Axis, Plot
from lokl.report.formatting import (
    Formatter,
    Scale,
    count,
    format_percent,
    format_probability,
)

# Values farther from the best than this many times the median are not drawn to scale.
_FAR = 4.0
# Characters that fit on the axis of a column.
_STRIP_CHARACTERS = 18
# Points of a plot of predicted against true values.
_DOTS = 600
# Samples in the list next to the card, and pairs of classes in the list of errors.
_LISTED = 8
# Views that have a column of samples that hinge on them, and samples that a sentence names.
_HINGES, _NAMED = 6, 5
# Columns of each view that are listed, bootstrap samples, and columns that the card of a sample
# names.
_COLUMNS, _BOOTSTRAPS, _LEADING = 8, 200, 5
# Groups of gene sets that are listed, and sets that are named next to the first one of a group.
_SETS, _SIMILAR = 20, 3
# Weights and trust that differ by less between samples count as constant.
_CONSTANT = 0.02
# What the parts of the head sentences that stand for samples have in common, by query.
QUERY_WORDS = {
    f"status={CONTRADICT}": "views contradict each other",
    f"status={HINGES}": "the prediction hinges on one view",
    f"status={UNSURE}": "no view is sure",
    "answer=wrong": "wrong predictions",
    "lacks=any": "samples that lack a view",
}
# Groups of samples by predicted risk, and least number of samples in one.
_RISK_GROUPS, _LEAST_GROUP = ("low risk", "medium risk", "high risk"), 5
# Classes whose confusion matrix fits next to a figure, and whose matrix can be read at all.
_FEW_CLASSES, _MOST_CLASSES = 5, 40


class Column:
    """Values with intervals that share their decimals and one axis.

    Parameters
    ----------
    values : iterable of Interval or None
    scale : Scale
    near_best : bool
        Whether a few values far worse than the others may lie outside, so as not to squeeze the
        rest.
    mark : float
        Position of a thin line on the axis to compare values with; NaN for none.
    parts : int
        Ticks are at most one more.
    """

    def __init__(
        self,
        values: Iterable[Interval | None],
        scale: Scale,
        *,
        near_best: bool = False,
        mark: float = nan,
        parts: int = 3,
    ):
        self.scale, self.mark = scale, mark
        self.values = [value for value in map(scale.bounded, values) if value is not None]
        ends = [end for value in self.values for end in value]
        if near_best and self.values:
            sign = -1.0 if scale.is_loss else 1.0
            worst = _worst_drawn(self.values, sign)
            ends = [end for end in ends if sign * end >= worst]
        self.places = scale.places(self.values)
        self.axis = Axis.over([*ends, mark], scale.factor, whole=True, parts=parts)

    def mean(self, value: Interval | None) -> str:
        """Return the mean as text; empty without a value."""
        return self.scale.mean(value, self.places)

    def limits(self, value: Interval | None) -> str:
        """Return the limits as text; empty without an interval."""
        return self.scale.limits(value, self.places)

    def x(self, value: float) -> float:
        """Return the position of a value on the axis in percent."""
        return round(100 * self.axis.share(value), 2)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Position and label of each tick."""
        return [(self.x(tick), label) for tick, label in self.axis.labels]


def _worst_drawn(values: Sequence[Interval], sign: float) -> float:
    """Return the worst end of an axis that has room for most values; higher is better."""
    means = [sign * value.mean for value in values]
    pairs = zip(values, means, strict=True)
    ends = [min(mean, *(sign * e for e in v[1:] if isfinite(e)), mean) for v, mean in pairs]
    best = max(means)
    far = _FAR * sorted(best - end for end in ends)[len(ends) // 2] or inf
    return min(end for end, mean in zip(ends, means, strict=True) if best - mean <= far)


def chosen_row(report: Report) -> LeaderboardEntry | None:
    """Return the chosen model, if it has a score."""
    return next((row for row in report.leaderboard if row.chosen and row.score), None)


def best_baseline(report: Report) -> LeaderboardEntry | None:
    """Return the baseline with the best score."""
    known = [row for row in report.leaderboard if row.baseline and row.score and not row.chosen]
    return max(known, key=lambda row: row.score.mean if row.score else 0.0, default=None)


def leaderboard_section(report: Report, formatter: Formatter) -> dict[str, Any] | None:
    """Return a board for each score; None without models.

    Returns
    -------
    section : dict or None
        "boards": each with the "name" of its score, its Column as "values", and "rows" of
        (LeaderboardEntry, Interval or None), best first. "ahead" is the Column of gains against the
        chosen model, None without comparisons; "supported", whether some model has support samples.
    """
    rows, scale = report.leaderboard, formatter.scale
    if not rows:
        return None
    ahead = Column([row.ahead for row in rows], scale.differences)
    names = list(dict.fromkeys(name for row in rows for name in row.other_scores))[
        : figures.BOARDS - 1
    ]
    boards = [_board(report.score_name, [(row, row.score) for row in rows], scale)]
    for name in names:
        own = Scale.of_score(name, n_samples=formatter.n_samples)
        boards.append(_board(name, [(row, row.other_scores.get(name)) for row in rows], own))
    return {
        "boards": boards,
        "ahead": ahead if ahead.values else None,
        "supported": any(row.support is not None for row in rows),
    }


def _board(
    name: str, rows: list[tuple[LeaderboardEntry, Interval | None]], scale: Scale
) -> dict[str, Any]:
    """Return the board of one score; rows without it come last."""
    sign = 1.0 if scale.is_loss else -1.0
    ranked = sorted(rows, key=lambda row: inf if row[1] is None else sign * row[1].mean)
    chosen = [value.mean for row, value in rows if row.chosen and value is not None]
    column = Column(
        [value for _, value in rows], scale, near_best=True, mark=(chosen or [nan])[0], parts=6
    )
    return {"name": name, "values": column, "rows": ranked}


def views_section(report: Report, formatter: Formatter) -> dict[str, Any] | None:
    """Return the columns of the value of views, and the scores of sets of views.

    Returns
    -------
    section : dict or None
        "alone" and "loss", or "contribution" without these, and "sets" are a Column each; None
        without values. "sizes" are mean absolute contributions (Interval) and "shares" mean trust
        or weight by view. "decisive" has the number of samples for which a view is decisive, and
        what they have in common; empty if unknown. "subsets" are in the order of their scores.
        None without views, and for a single view without scores.
    """
    views, scale, explanation = report.views, formatter.scale, report.explanation
    if len(views) < 2 and not any(view.alone or view.loss for view in views):
        # All that is known of a single view is in other sections.
        return None
    chosen = chosen_row(report)
    mark = nan if chosen is None or chosen.score is None else chosen.score.mean
    sizes, shares = [Interval(nan)] * len(views), [nan] * len(views)
    decisive: list[tuple[int, str]] = []
    if explanation is not None:
        rows = list(enumerate(explanation.presence.T))
        sizes = [mean_interval(np.abs(explanation.contributions[has, k])) for k, has in rows]
        trust = explanation.trust_or_weights
        if trust is not None:
            shares = [mean_interval(trust[has, k]).mean for k, has in rows]
        if explanation.decisive is not None and len(views) > 1:
            decisive = [_common_class(report, own) for own in explanation.decisive.T]
    columns: dict[str, Column | None] = {
        "alone": Column([view.alone for view in views], scale, mark=mark),
        "loss": Column([view.loss for view in views], scale.differences, mark=0.0),
        "sets": Column([subset.score for subset in report.subsets], scale, mark=mark, parts=6),
    }
    columns = {
        name: column if column and column.values else None for name, column in columns.items()
    }
    columns["contribution"] = None
    if columns["alone"] is None and columns["loss"] is None and explanation is not None:
        columns["contribution"] = Column(sizes, Scale(False, low=0.0), mark=0.0)
    sign = 1.0 if scale.is_loss else -1.0
    return {
        **columns,
        "sizes": sizes,
        "shares": shares,
        "decisive": decisive,
        "subsets": sorted(report.subsets, key=lambda subset: sign * subset.score.mean),
    }


def _common_class(report: Report, chosen: Array) -> tuple[int, str]:
    """Return the number of some samples, and the class that most of them are predicted to have."""
    assert report.explanation is not None
    codes = report.explanation.predicted_codes[chosen.astype(bool)]
    counts = np.bincount(codes, minlength=1)
    most = int(counts.argmax())
    mostly = len(codes) > 1 and counts[most] > len(codes) / 2
    return len(codes), f"mostly {report.classes[most]}" if mostly else ""


def columns_section(explanation: Explanation | None) -> dict[str, Any] | None:
    """Return the columns with the largest contributions of each view; None if they are unknown.

    Returns
    -------
    section : dict or None
        "rows" of (view, column, importance, selected): the first column of each view, then the
        second ones, so that all views are among the first rows; their Column as "values"; "count",
        the rank in its view up to which a column counts as selected; and "left", the number of
        columns that are not shown.
    """
    found = None if explanation is None else explanation.columns
    if found is None or not len(found.columns):
        return None
    rng, ranked = np.random.RandomState(0), []
    for view in range(len(found.views)):
        own = np.flatnonzero(found.view == view)
        sizes = np.abs(found.values[:, own])
        importance, selected = bootstrap_importance(
            sizes, _BOOTSTRAPS, min(_COLUMNS, len(own)), rng
        )
        order = np.argsort(-sizes.mean(axis=0), kind="stable")[:_COLUMNS].tolist()
        for rank, c in enumerate(order):
            row = (view, found.columns[own[c]], importance[c], float(selected[c]))
            ranked.append((rank, row))
    rows = [row for _, row in sorted(ranked, key=lambda pair: pair[0])]
    values = Column([row[2] for row in rows], Scale(False, low=0.0), parts=6)
    left = len(found.columns) - len(rows)
    return {"rows": rows, "values": values, "count": _COLUMNS, "left": left}


def gene_sets_section(report: Report) -> dict[str, Any] | None:
    """Return the most important gene sets, each with the sets that overlap with it.

    Returns
    -------
    section : dict or None
        "rows" of (name, importance, selected, number of columns, similar sets), most important
        first; their Column as "values"; and "left", the number of groups that are not shown. None
        without gene sets.
    """
    found = report.gene_sets
    if found is None:
        return None
    groups: dict[int, list[str]] = {}
    for name, group in zip(found.rows, found["group"].astype(int).tolist(), strict=True):
        groups.setdefault(group, []).append(name)
    rows = [
        (
            name,
            found.interval(name, "importance"),
            found.row(name)["selected"],
            round(found.row(name)["size"]),
            shorten_list(similar, _SIMILAR),
        )
        for name, *similar in list(groups.values())[:_SETS]
        if found.row(name)["importance"] > 0
    ]
    values = Column([row[1] for row in rows], Scale(False, low=0.0), parts=6)
    return {"rows": rows, "values": values, "left": len(groups) - len(rows)} if rows else None


def samples_section(
    report: Report, explanation: Explanation, formatter: Formatter
) -> dict[str, Any]:
    """Return the figures of all samples, the samples worth a look, and the card of the first.

    Returns
    -------
    section : dict
        Map of samples: coordinates "at" (n_samples, 2), "height", class codes as "shapes", "lead",
        the leading view, and the samples that are "drawn". Trust map: "trust", None unless trust
        "varies", "order" of all samples, whether they are "grouped" by class, and whether only
        those are drawn whose views "differ". "glance" is the picture of all samples. "listed" has
        (SampleExplanation, reasons) of samples worth a look; "card" explains the first of them.
    """
    assert report.sample_map is not None
    classes = report.classes
    at, height = figures.map_layout(np.asarray(report.sample_map.positions, dtype=float))
    grouped = bool(classes) and bool(explanation.known.any())
    shapes = np.zeros(len(explanation), dtype=int)
    if classes:
        shapes = explanation.truth_codes if grouped else explanation.predicted_codes
    lead, order = figures.leading_view(explanation), figures.map_order(explanation, grouped)
    ranked, interest = rank_by_interest(explanation)
    varies, trust, differ = _varies(explanation), None, _differing(explanation)
    if varies:
        rows = order[differ[order]] if differ.any() else order
        trust = figures.trust_map(explanation, classes if grouped else (), rows)
    return {
        "at": at,
        "height": height,
        "shapes": shapes,
        "lead": lead,
        "drawn": evenly_spaced(len(explanation), figures.MOST_SYMBOLS),
        "grouped": grouped,
        "order": order,
        "varies": varies,
        "equal": _weighs_equally(explanation),
        "trust": trust,
        "differ": int(differ.sum()),
        "trust_name": "weight" if explanation.trust is None else "trust",
        "compared": _has_disagreement(explanation),
        "glance": glance_section(report, explanation, lead),
        "listed": [
            (explanation.sample_at(k), ", ".join(_reasons(explanation, formatter, k)))
            for k in ranked[interest > 0][:_LISTED]
        ],
        "card": _sample_card(report, explanation, formatter, int(ranked[0])),
    }


def _differing(explanation: Explanation) -> Array:
    """Return the samples that the trust map shows, unless there are none: their views differ."""
    if explanation.status is not None:
        return np.asarray(explanation.status != AGREE)
    return np.asarray(np.nan_to_num(explanation.disagreement) >= DISAGREE)


def glance_section(report: Report, explanation: Explanation, lead: Array) -> dict[str, Any]:
    """Return the picture of all samples, in columns of their states.

    Parameters
    ----------
    report : Report
    explanation : Explanation
    lead : int array of shape (n_samples,)
        Leading view of each sample.

    Returns
    -------
    section : dict
        "picture", "columns" of (name, samples, wrong ones), "state", the column of each sample,
        "shapes" (0 right, 1 wrong, 2 not counted), "what" the height of a sample is, and "zero",
        the height of zero in pixels or None.
    """
    names, state = _states(report, explanation, lead)
    chances, zero = explanation.probabilities is not None, False
    if chances:
        values, what = explanation.predicted_probability, "probability of the prediction"
    elif not explanation.is_regression:
        values = explanation.base_values + explanation.contributions.sum(axis=1)
        what = "decision for the predicted class"
    elif explanation.judged.any():
        off = explanation.predicted_codes - explanation.truth_codes
        values, what, zero = np.where(explanation.judged, off, 0.0), "prediction minus truth", True
    else:
        values, what = explanation.predicted_codes, "prediction"
    picture = figures.glance(state, len(names), np.asarray(values, dtype=float), chances=chances)
    wrong = explanation.wrong
    counts = np.bincount(state, minlength=len(names)).tolist()
    return {
        "picture": picture,
        "columns": list(
            zip(
                names, counts, np.bincount(state[wrong], minlength=len(names)).tolist(), strict=True
            )
        ),
        "state": state,
        "shapes": np.where(explanation.judged, wrong.astype(int), 2),
        "what": what,
        "zero": next((top for top, label in picture.ticks if zero and not label.strip("0.")), None),
    }


def _states(report: Report, explanation: Explanation, lead: Array) -> tuple[list[str], Array]:
    """Return names of columns of the picture, and the column of each sample."""
    status, views = explanation.status, [view.name for view in report.views]
    if status is None:
        if len(views) < 2:
            return ["all samples"], np.zeros(len(explanation), dtype=int)
        return [f"led by {name}" for name in views], lead
    if len(views) < 2:
        return ["sure", "not sure"], (status == UNSURE).astype(int)
    decisive = np.zeros((len(explanation), len(views)), dtype=bool)
    if explanation.decisive is not None:
        decisive = explanation.decisive.astype(bool)
    several = decisive.sum(axis=1) > 1
    alone = np.where(several, -1, decisive.argmax(axis=1))
    hinges = status == HINGES
    # Rare views share the column of several views.
    counts = np.bincount(alone[hinges & ~several], minlength=len(views))
    common = [k for k in np.argsort(-counts, kind="stable")[:_HINGES].tolist() if counts[k]]
    common.sort()
    names, state = ["all agree"], np.zeros(len(explanation), dtype=int)
    for k in common:
        state[hinges & (alone == k)] = len(names)
        names.append(f"hinges on {views[k]}")
    rest = hinges & (state == 0)
    if rest.any():
        state[rest] = len(names)
        names.append("hinges on several" if several[rest].all() else "hinges on others")
    for kind, name in ((CONTRADICT, "views contradict"), (UNSURE, "no view is sure")):
        state[status == kind] = len(names)
        names.append(name)
    return names, state


def _varies(explanation: Explanation) -> bool:
    """Return whether trust or weights differ between samples that have the same views."""
    trust = explanation.trust_or_weights
    if trust is None or len(explanation.views) < 2:
        return False
    if len(explanation) == 1:
        return not _weighs_equally(explanation)
    patterns, code = np.unique(explanation.presence, axis=0, return_inverse=True)
    groups = [trust[code.ravel() == k] for k in range(len(patterns))]
    return not all(np.ptp(group, axis=0).max() < _CONSTANT for group in groups)


def _weighs_equally(explanation: Explanation) -> bool:
    """Return whether all present views of each sample have the same weight, as in a mix."""
    weights = explanation.trust_or_weights
    if weights is None or len(explanation.views) < 2:
        return False
    present = explanation.presence
    high = np.where(present, weights, -np.inf).max(axis=1)
    low = np.where(present, weights, np.inf).min(axis=1)
    return bool((high - low < _CONSTANT).all())


def _has_disagreement(explanation: Explanation) -> bool:
    return len(explanation.views) > 1 and bool(np.isfinite(explanation.disagreement).any())


def rank_by_interest(explanation: Explanation) -> tuple[Array, Array]:
    """Return samples by how much they deserve a look, and that measure, largest first.

    It is large for confident errors, for large errors, and for views that disagree.

    Returns
    -------
    order : int array of shape (n_samples,)
    interest : array of shape (n_samples,)
        In that order; 0 for samples that need no look.
    """
    if explanation.is_regression:
        errors = explanation.absolute_errors
        errors = errors / (errors.max(initial=0.0) or 1.0)
    else:
        errors = explanation.wrong * np.nan_to_num(explanation.predicted_probability, nan=1.0)
    interest = errors + np.nan_to_num(np.asarray(explanation.disagreement, dtype=float))
    order = np.argsort(-interest, kind="stable")
    return order, interest[order]


def _reasons(explanation: Explanation, formatter: Formatter, k: int) -> Iterator[str]:
    """Yield why sample k deserves a look."""
    if explanation.wrong[k]:
        probability = format_probability(explanation.predicted_probability[k])
        yield f"wrong at {probability}" if probability else "wrong"
    if explanation.is_regression and explanation.judged[k]:
        yield f"off by {formatter.outcome(explanation.absolute_errors[k])}"
    if explanation.disagreement[k] > 0:
        yield f"views differ {format_probability(explanation.disagreement[k])}"


def _sample_card(
    report: Report, explanation: Explanation, formatter: Formatter, k: int
) -> dict[str, Any]:
    """Return the explanation of sample k: bars from the base value over the views to the decision.

    Bars are (left, width) in percent of the width of the figure, neighbours are (id, truth,
    similarity).
    """
    assert report.sample_map is not None
    sample, similar = explanation.sample_at(k), report.sample_map
    # Views have the names of the report.
    named = zip(sample.views, report.views, strict=True)
    sample = replace(sample, views=tuple(replace(own, view=view.name) for own, view in named))
    contributions = [view.contribution or 0.0 for view in sample.views]
    stops = np.cumsum([sample.base_value, *contributions]).tolist()
    # Decisions begin at zero. Values of a regression may be far from it, so only changes count.
    first, last = (stops[0], stops[-1]) if explanation.is_regression else (0.0, 0.0)
    low, high = min(*stops, first), max(*stops, last)
    span = (high - low) or 1.0
    steps = [(first, stops[0]), *pairwise(stops), (last, stops[-1])]
    neighbours: list[tuple[str, Any, float | None]] = []
    support = similar.support
    for position, j in enumerate(similar.neighbours[k]):
        if support is None:
            neighbours.append((explanation.ids[j], explanation.sample_at(j).truth, None))
        else:
            truth = plain_value(support.truth[j])
            neighbours.append((support.ids[j], truth, support.similarities[k][position]))
    return {
        "sample": sample,
        "wrong": bool(explanation.wrong[k]),
        "disagrees": bool(explanation.disagreement[k] >= DISAGREE),
        "zero": None if explanation.is_regression else -100 * low / span,
        "stops": stops,
        "contributions": contributions,
        "bars": [
            (100 * (min(ends) - low) / span, 100 * abs(ends[1] - ends[0]) / span) for ends in steps
        ],
        "sentences": sample.view_sentences(formatter.outcome, formatter.contribution),
        "neighbours": neighbours,
        "columns": list(_column_texts(report, explanation, formatter, k)),
        "set": _set_text(sample, formatter),
    }


def _set_text(sample: SampleExplanation, formatter: Formatter) -> str:
    """Return the classes in the prediction set of a sample, or the limits of its interval."""
    ends = [formatter.outcome(value) for value in sample.prediction_set]
    return ", ".join(ends) or "no class" if formatter.names else " to ".join(ends)


def sets_sentence(explanation: Explanation, formatter: Formatter) -> str:
    """Return how many prediction sets contain the truth; empty without sets or truth."""
    sets, judged = explanation.sets, explanation.judged
    if sets is None or explanation.coverage is None or not judged.any():
        return ""
    truth, rows = explanation.truth_codes[judged], sets[judged]
    n, promised = len(truth), f"{100 * explanation.coverage:.3g} %"
    if explanation.is_regression:
        inside = float(((rows[:, 0] <= truth) & (truth <= rows[:, 1])).mean())
        width = formatter.outcome(float((rows[:, 1] - rows[:, 0]).mean()))
        return (
            f"{promised} prediction intervals contain the true value of "
            f"{format_percent(inside, n)} % of {n} samples; their mean width is {width}."
        )
    inside, single = float(rows[np.arange(n), truth].mean()), float((rows.sum(axis=1) == 1).mean())
    return (
        f"{promised} prediction sets contain the true class of {format_percent(inside, n)} % of "
        f"{n} samples; {format_percent(single, n)} % of them have a single class."
    )


def _column_texts(
    report: Report, explanation: Explanation, formatter: Formatter, k: int
) -> Iterator[str]:
    """Yield the columns that matter most for sample k, with their contributions."""
    found = explanation.columns
    if found is None:
        return
    for c in leading_columns(found.values)[k].tolist():
        name = found.columns[c]
        if len(report.views) > 1:
            name = f"{report.views[found.view[c]].name} {name}"
        yield f"{name} {formatter.contribution(float(found.values[k, c]))}"


def leading_columns(values: Array) -> Array:
    """Return the columns with the largest contributions to each sample, largest first.

    Parameters
    ----------
    values : array of shape (n_samples, n_columns)

    Returns
    -------
    columns : int array of shape (n_samples, n_leading)
    """
    return np.argsort(-np.abs(values), axis=1, kind="stable")[:, :_LEADING]


def error_scale(report: Report, formatter: Formatter) -> Scale:
    """Return the scale of shares of correct predictions, or of mean errors."""
    name = "accuracy" if report.classes else "mean error"
    return Scale.of_score(name, n_samples=formatter.n_samples)


def reliability_section(
    report: Report, formatter: Formatter, found: Reliability | None
) -> dict[str, Any] | None:
    """Return calibration, risk, confusion and scores by missing views.

    Parameters
    ----------
    report : Report
    formatter : Formatter
    found : Reliability or None
        Reliability of its explanation.

    Returns
    -------
    section : dict or None
        The "title", a Plot for each figure ("calibration", "parity", "risk"; None if they do not
        apply), the "points" of the second, a Column for each table, and the confusion matrix with
        its shades and its most frequent mistakes.
    """
    explanation, n_classes = report.explanation, len(report.classes)
    if explanation is None or found is None:
        return None
    scale = error_scale(report, formatter)
    confusion = found.confusion
    totals = np.maximum(confusion.sum(axis=1, keepdims=True), 1)
    pairs = [(int(confusion[i, j]), i, j) for i, j in np.argwhere(confusion).tolist() if i != j]
    # The score of the leaderboard has the only interval of the accuracy.
    known = chosen_row(report) is not None
    score = scale.mean(found.score) + scale.unit if known else scale.with_limits(found.score)
    if known:
        risk = [(used, Interval(value.mean) if used == 1 else value) for used, value in found.risk]
        found = replace(found, risk=risk)
    title = "How large are its errors?"
    if n_classes:
        title = "Can the probabilities be relied on?" if found.calibration else "When is it right?"
    return {
        "title": title,
        "found": found,
        "score": score,
        "sets": sets_sentence(explanation, formatter),
        "calibration": _calibration_plot(found) if found.calibration else None,
        "parity": None if n_classes else _parity_plot(explanation),
        "risk": _risk_plot(found, scale) if found.risk else None,
        "points": np.flatnonzero(explanation.judged)[evenly_spaced(found.n_samples, _DOTS)],
        "risks": Column([value for _, value in found.risk], scale),
        "patterns": Column([score for _, _, score in found.patterns], scale, mark=found.score.mean),
        "confusion": confusion.tolist(),
        "shades": np.round(100 * confusion / totals).astype(int).tolist(),
        "mistakes": sorted(pairs, key=lambda pair: (-pair[0], pair))[:_LISTED],
        "many": n_classes > _FEW_CLASSES,
        "drawn": 0 < n_classes <= _MOST_CLASSES,
    }


def survival_section(explanation: Explanation | None) -> dict[str, Any] | None:
    """Return Kaplan-Meier curves of samples by predicted risk, with the numbers at risk.

    Samples that the model has learned from are left out.

    Returns
    -------
    section : dict or None
        The "plot", the "ticks" of its times, the "horizon", and "groups" of equal size: "name",
        "points" of the curve, numbers "at_risk" at the ticks, "events", and the "predicted" and the
        "observed" probability of no event until the horizon. None without known outcomes.
    """
    if explanation is None or explanation.times is None or explanation.truth is None:
        return None
    learned = explanation.learned
    rows = np.arange(len(explanation)) if learned is None else np.flatnonzero(~learned)
    if len(rows) < _LEAST_GROUP * len(_RISK_GROUPS):
        return None
    y, risk = explanation.truth[rows], explanation.predictions[rows]
    place = len(explanation.times) // 2
    horizon = float(explanation.times[place])
    curves = np.asarray(explanation.survival)[rows, place]
    plot = Plot(Axis.over([0.0, float(y["time"].max())]), Axis(0.0, 1.0, 0.25, 100.0))
    ticks = [(value, label) for value, label in plot.across.labels]
    groups = []
    order = np.argsort(risk, kind="stable")
    for name, own in zip(_RISK_GROUPS, np.array_split(order, len(_RISK_GROUPS)), strict=True):
        found = kaplan_meier(y[own])
        x, height = np.repeat(found.x, 2), np.repeat(np.append(1.0, found.y), 2)[1:-1]
        times = y["time"][own]
        groups.append(
            {
                "name": name,
                "points": [(0.0, 1.0), *zip(x.tolist(), height.tolist(), strict=True)],
                "at_risk": [int((times >= value).sum()) for value, _ in ticks],
                "events": int(y["event"][own].sum()),
                "predicted": float(curves[own].mean()),
                "observed": float(steps_at(found.x, found.y, horizon, 1.0)),
            }
        )
    return {"plot": plot, "ticks": ticks, "horizon": horizon, "groups": groups}


def _calibration_plot(found: Reliability) -> Plot:
    stated = [end for own in found.calibration for end in (own.low, own.high)]
    low = min(end for own in found.calibration for end in (own.low, own.right.low))
    return Plot(Axis.over(stated, 100.0, whole=True), Axis.over([low, 1.0], 100.0, whole=True))


def _risk_plot(found: Reliability, scale: Scale) -> Plot:
    # The risk of few samples is uncertain, so the first twentieth of the curve may lie outside.
    ends = [risk for _, risk in found.curve[len(found.curve) // 20 :]]
    ends += [end for _, value in found.risk for end in (value.mean, value.high)]
    up = Axis.over([0.0, *ends], scale.factor, whole=True)
    return Plot(Axis(0.0, 1.0, 0.25, 100.0), up)


def _parity_plot(explanation: Explanation) -> Plot:
    known = explanation.judged
    values = np.concatenate([explanation.truth_codes[known], explanation.predicted_codes[known]])
    axis = Axis.over(values.tolist())
    return Plot(axis, axis)


def head_sentences(
    report: Report, formatter: Formatter, found: Reliability | None
) -> list[list[tuple[str, str]]]:
    """Return the sentences at the head of the page: how good, which views, which samples.

    Returns
    -------
    sentences : list of list of (text, query)
        A part with a query stands for the samples that match it, in the language of the script.
    """
    first = [(verdict(report, formatter, found), "")]
    explanation = report.explanation
    parts = [first]
    if len(report.views) > 1:
        parts.append([(_about_views(report, formatter), "")])
    if explanation is not None:
        parts.append(list(_about_samples(report, explanation, found)))
    return [part for part in parts if any(text for text, _ in part)]


def _about_views(report: Report, formatter: Formatter) -> str:
    """Return a sentence about the views that matter most; empty if nothing is known."""
    explanation, scale = report.explanation, formatter.scale.differences
    way = "higher" if formatter.scale.is_loss else "lower"
    known = [view for view in report.views if view.loss is not None and isfinite(view.loss.mean)]
    text = ""
    if known:
        most = max(known, key=lambda view: view.loss.mean if view.loss else 0.0)
        assert most.loss is not None
        falls, limits = scale.mean(most.loss), scale.limits(most.loss)
        points = f"{falls} points" if scale.percent else falls
        change = f"{report.score_name} is {points}" + (f" ({limits})" if limits else "") + f" {way}"
        if most.loss.low > 0:
            text = f"{most.name} matters most: without it, {change}"
        elif most.loss.mean > 0 and falls.strip("0."):
            text = f"No view is clearly needed: without {most.name}, {change}"
        else:
            text = (
                f"No view is needed alone: without any one of them, {report.score_name} is as good"
            )
    elif explanation is not None and len(explanation):
        sizes = [np.abs(explanation.contributions[has, k]).mean() if has.any() else 0.0
                 for k, has in enumerate(explanation.presence.T)]  # fmt: skip
        what = "values" if explanation.is_regression else "decisions"
        text = f"{report.views[int(np.argmax(sizes))].name} contributes most to the {what}"
    if explanation is not None and explanation.decisive is not None:
        counts = explanation.decisive.astype(bool).sum(axis=0).tolist()
        names = [(n, view.name) for n, view in zip(counts, report.views, strict=True)]
        shown = [f"{name} {n}" for n, name in sorted(names, reverse=True) if n]
        some = int(explanation.decisive.astype(bool).any(axis=1).sum())
        changes = f"removing one view changes the prediction of {count(some, 'sample')}"
        changes = changes if some else "no single view changes a prediction"
        text += f"; {changes}" + (f" ({shorten_list(shown, 4)})" if shown else "")
    return f"{text}." if text else ""


def _about_samples(
    report: Report, explanation: Explanation, found: Reliability | None
) -> Iterator[tuple[str, str]]:
    """Yield the parts of a sentence about the samples to check."""
    if not len(explanation):
        return
    if explanation.is_regression:
        if found is not None:
            order = np.argsort(-explanation.absolute_errors, kind="stable")[:_NAMED]
            names = ", ".join(explanation.ids[k] for k in order.tolist())
            yield f"Check the samples with the largest errors: {names}.", ""
        return
    parts: list[tuple[str, str]] = []
    status, several = explanation.status, len(report.views) > 1
    # Samples whose views disagree most come first.
    order = np.argsort(-np.nan_to_num(explanation.disagreement), kind="stable")
    kinds = [
        (CONTRADICT, "whose views contradict each other"),
        (HINGES, "whose prediction hinges on one view"),
        (UNSURE, "of which no view is sure" if several else "of which the model is not sure"),
    ]
    for kind, words in kinds if status is not None else ():
        rows = order[status[order] == kind] if status is not None else order
        if len(rows):
            names = shorten_list([explanation.ids[k] for k in rows.tolist()], _NAMED)
            shown = f" {words}" + (f" ({names})" if kind == CONTRADICT else "")
            # A sample has one state: another one may also have a decisive view.
            noun = "other sample" if parts else "sample"
            parts += [
                (", " if parts else "Check ", ""),
                (count(len(rows), noun), f"status={kind}"),
            ]
            parts.append((shown, ""))
    n_lacking = int((~explanation.presence.all(axis=1)).sum())
    if found is not None:
        n_wrong = int(explanation.wrong.sum())
        if parts:
            parts.append(("; ", ""))
        if n_wrong:
            parts.append((count(n_wrong, "prediction"), "answer=wrong"))
            parts.append((f" of {found.n_samples} {'is' if n_wrong == 1 else 'are'} wrong", ""))
        else:
            parts.append((f"none of {found.n_samples} predictions is wrong", ""))
    if n_lacking:
        parts += [(", " if parts else "", ""), (count(n_lacking, "sample"), "lacks=any")]
        parts.append((f" {'lacks' if n_lacking == 1 else 'lack'} a view", ""))
    yield from parts
    if parts:
        yield ".", ""


def verdict(report: Report, formatter: Formatter, found: Reliability | None) -> str:
    """Return the verdict of the report, or two sentences made from its content.

    They compare the chosen model with the best baseline, or the predictions with a constant: the
    most frequent class, or the median.
    """
    chosen, explanation = chosen_row(report), report.explanation
    if report.verdict:
        return report.verdict
    if chosen is not None:
        return _leaderboard_verdict(report, formatter.scale, chosen)
    if explanation is None:
        return "This report contains no predictions."
    learned = 0 if explanation.learned is None else int(explanation.learned.sum())
    if learned:
        return _training_verdict(report, explanation, learned, formatter, found)
    return _accuracy_verdict(report, explanation, formatter, found)


def _training_verdict(
    report: Report,
    explanation: Explanation,
    learned: int,
    formatter: Formatter,
    found: Reliability | None,
) -> str:
    """Return the verdict of a report with samples that the model has learned from."""
    n = len(explanation)
    which = f"all {n} samples" if learned == n else f"{learned} of {n} samples"
    first = f"The model has learned from {which}, so it predicts them better than new ones"
    if found is None:
        return f"{first}, and no accuracy is shown."
    return f"{first}: they do not count. {_accuracy_verdict(report, explanation, formatter, found)}"


def _accuracy_verdict(
    report: Report, explanation: Explanation, formatter: Formatter, found: Reliability | None
) -> str:
    """Return how good the predictions are, and how good a constant prediction would be."""
    if found is None:
        n = count(len(explanation), "sample")
        return f"Predictions for {n}. Their truth is unknown, so accuracy cannot be estimated."
    score = error_scale(report, formatter).with_limits(found.score)
    n = count(found.n_samples, "sample")
    if report.classes:
        counts = found.confusion.sum(axis=1)
        most = int(counts.argmax())
        share = format_percent(counts[most] / found.n_samples, found.n_samples)
        return (
            f"The model is right for {score} of {n}. Always predicting the most frequent class, "
            f"{report.classes[most]}, would be right for {share} %."
        )
    truth = explanation.truth_codes[explanation.judged]
    median = formatter.outcome(np.abs(truth - np.median(truth)).mean())
    return (
        f"The mean absolute error is {score} over {n}. Always predicting the median would give "
        f"{median}."
    )


def _leaderboard_verdict(report: Report, scale: Scale, chosen: LeaderboardEntry) -> str:
    baseline = best_baseline(report)
    score = scale.with_limits(chosen.score)
    first = f"The chosen model ({chosen.name}) reaches {report.score_name} {score}, held out."
    if baseline is None:
        return f"{first} It was not compared with a baseline."
    mean, behind = scale.mean(baseline.score) + scale.unit, baseline.behind
    second = f"The best baseline ({baseline.name}) reaches {mean}"
    if behind is None or not isfinite(behind.reach):
        return f"{first} {second}."
    clear = "clearly less" if behind.low > 0 else "not clearly less"
    clear = "clearly more" if behind.high < 0 else clear
    both = scale.differences
    difference = f"{both.mean(behind)}, interval {both.limits(behind)}"
    return f"{first} {second}, {clear} (difference {difference})."


def glossary(report: Report, explanation: Explanation | None) -> Iterator[tuple[str, str]]:
    """Yield the words of the page that not everybody knows, and their meanings."""
    if report.leaderboard:
        yield "held out", "predicted by a model that was not fitted on the sample"
        yield "95 % interval", "where the value may lie, given the differences between folds"
        yield "baseline", "a simple model that a good one has to beat"
    if len(report.views) > 1:
        yield "view", "columns that belong together, usually one table"
        yield "alone", "of a model, or a prediction, that uses this view only"
        if any(view.loss for view in report.views):
            yield "loss when removed", "how much worse the score is without the view"
    if explanation is None or not len(explanation.views):
        return
    if explanation.unit == "log-odds":
        yield (
            "log-odds",
            "logarithm of the ratio of two probabilities; 0 is even, 2.2 is 9 to 1, 4.6 is 99 to 1",
        )
    yield "adds, contribution", "what a view adds to the prediction, next to the other views"
    yield "base value", "the prediction before any view is added"
    if len(explanation.views) < 2:
        return
    if explanation.trust is not None:
        yield "trust", "probability that a view is informative for a sample"
    elif explanation.weights is not None:
        yield "weight", "share of a view in the decision about a sample; weights sum to one"
    if explanation.columns is not None:
        yield "selected", "share of random draws of the samples in which a column leads in its view"
    if explanation.decisive is not None:
        yield "decisive", "the prediction changes if the view is removed"
    if explanation.status is not None:
        yield "sure", "a view whose class is at least twice as probable as any other"
        yield "all agree", "no single view changes the prediction, and sure views predict the same"
        yield "hinges on", "removing this view changes the prediction"
        yield "contradict", "two sure views predict different classes"
        yield "no view is sure", "each view alone leaves the class open"
