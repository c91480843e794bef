"""Sections of the page: values as text, and figures, ready for the templates."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl.explain.explanation import DISAGREE, FAMILIAR, Explanation
from lokl.explain.similarity import KernelAlignment
from lokl.report.content import Interval, LeaderboardEntry, Report, SampleMap
from lokl.report.figures import (
    COLOURS,
    MOST_SYMBOLS,
    Axis,
    calibration_plot,
    colour_of,
    evenly_spaced,
    leading_view,
    map_layout,
    map_order,
    parity_plot,
    risk_plot,
    sample_plot,
    strip,
    strip_head,
    trust_map,
)
from lokl.report.formatting import (
    Formatter,
    Scale,
    absolute_errors,
    count,
    first_names,
    format_percent,
    format_probability,
    format_seconds,
    mean_interval,
    predicted_probability,
    rank_by_interest,
)
from lokl.report.reliability import Reliability

# Values farther from the best than this many times the median are not drawn to scale.
_FAR = 4.0
# Samples in the list next to the card, and pairs of classes in the list of errors.
_LISTED = 8
# Classes whose confusion matrix fits next to a figure, and whose matrix can be read at all.
_FEW_CLASSES, _MOST_CLASSES = 5, 40


@dataclass(frozen=True)
class FormattedValue:
    """A value with its interval as text and as a figure, and the number that it sorts by."""

    mean: str
    limits: str
    picture: str
    value: float | None


class _Column:
    """Values that share their decimals and one axis.

    Parameters
    ----------
    values : iterable of Interval or None
    scale : Scale
    also : iterable of float
        Other numbers that the axis contains.
    near_best : bool
        Whether a few values far below the others may lie outside, so as not to squeeze the rest.
    """

    def __init__(
        self,
        values: Iterable[Interval | None],
        scale: Scale,
        also: Iterable[float] = (),
        *,
        near_best: bool = False,
    ):
        known = [value for value in values if value is not None and isfinite(value.mean)]
        ends = [e for v in known for e in (v.mean, v.low, v.high) if e is not None]
        if near_best and known:
            lowest = _lowest_drawn(known)
            ends = [max(end, lowest) for end in ends]
        self.scale, self.places = scale, scale.places(known)
        self.axis = Axis.over([*ends, *also], 4)
        self.head = strip_head(self.axis, scale.factor)

    def format(
        self, value: Interval | None, css: str = "", mark: float | None = None
    ) -> FormattedValue:
        """Return a value of the column; `mark` is a thin line to compare it with."""
        return FormattedValue(
            self.scale.mean(value, self.places),
            self.scale.limits(value, self.places),
            strip(self.axis, value, css, mark),
            value.mean if value is not None and isfinite(value.mean) else None,
        )


def _lowest_drawn(values: Sequence[Interval]) -> float:
    """Return the lower end of an axis that has room for most values."""
    best = max(value.mean for value in values)
    lows = [value.mean if value.low is None else value.low for value in values]
    gaps = sorted(best - value.mean for value in values)
    usual = max(sorted(best - low for low in lows)[len(lows) // 2], gaps[len(gaps) // 2])
    if gaps[-1] <= _FAR * usual or not usual:
        return min(lows)
    pairs = zip(values, lows, strict=True)
    return min(low for value, low in pairs if best - value.mean <= _FAR * usual)


def _clipped(value: Interval | None, scale: Scale) -> Interval | None:
    """Return an interval of a share that ends at 0 and 1."""
    if value is None or not scale.percent:
        return value
    ends = (None if end is None else min(max(end, 0.0), 1.0) for end in (value.low, value.high))
    return Interval(value.mean, *ends)


def chosen_row(report: Report) -> LeaderboardEntry | None:
    """Return the chosen model, if it has a score."""
    return next((row for row in report.leaderboard if row.chosen and row.score), None)


def best_baseline(report: Report) -> LeaderboardEntry | None:
    """Return the baseline with the best score."""
    known = [row for row in report.leaderboard if row.baseline and row.score and not row.chosen]
    return max(known, key=lambda row: row.score.mean if row.score else 0.0, default=None)


def leaderboard_section(report: Report, formatter: Formatter) -> dict[str, Any] | None:
    """Return all models on one axis."""
    rows, scale = report.leaderboard, formatter.scale
    if not rows:
        return None
    chosen = chosen_row(report)
    mark = None if chosen is None or chosen.score is None else chosen.score.mean
    scores = [_clipped(row.score, scale) for row in rows]
    column = _Column(scores, scale, near_best=True)
    ahead = [None if row.behind is None or row.chosen else -row.behind for row in rows]
    paired = _Column(ahead, scale, [0.0], near_best=True) if any(ahead) else None
    return {
        "rows": [
            {
                "row": row,
                "score": column.format(score, "chosen" if row.chosen else "", mark),
                "ahead": None
                if paired is None or row.chosen
                else paired.format(difference, "", 0.0),
                "seconds": format_seconds(row.seconds),
                "support": "" if row.support is None else format_percent(row.support, 0),
            }
            for row, score, difference in zip(rows, scores, ahead, strict=True)
        ],
        "head": column.head,
        "ahead_head": "" if paired is None else paired.head,
        "supported": any(row.support is not None for row in rows),
    }


def views_section(report: Report, formatter: Formatter) -> dict[str, Any] | None:
    """Return the value of views: alone, in the model, and when removed; and sets of views."""
    views, scale, explanation = report.views, formatter.scale, report.explanation
    if not views:
        return None
    chosen = chosen_row(report)
    mark = None if chosen is None or chosen.score is None else chosen.score.mean
    alone = [_clipped(view.alone, scale) for view in views]
    sizes, shares = _contributions(explanation, len(views))
    columns = (
        _Column(alone, scale, [] if mark is None else [mark]),
        _Column(sizes, Scale(False), [0.0]),
        _Column([view.loss for view in views], scale, [0.0]),
    )
    n_samples = 0 if explanation is None else len(explanation)
    rows = []
    for k, view in enumerate(views):
        css = f"v{k % COLOURS}"
        rows.append(
            {
                "view": view,
                "alone": columns[0].format(alone[k], css, mark),
                "contribution": columns[1].format(sizes[k], css, 0.0),
                "loss": columns[2].format(view.loss, css, 0.0),
                "trust": shares[k],
                "missing": format_percent(view.missing, n_samples),
            }
        )
    scores = [_clipped(subset.score, scale) for subset in report.subsets]
    sets = _Column(scores, scale)
    return {
        "rows": rows,
        "heads": [column.head for column in columns],
        "known": [any(view.alone for view in views), any(sizes), any(view.loss for view in views)],
        "subsets": [
            {
                "has": [view.name in subset.views for view in views],
                "score": sets.format(score, "", mark),
            }
            for subset, score in zip(report.subsets, scores, strict=True)
        ],
        "subset_head": sets.head,
    }


def _contributions(
    explanation: Explanation | None, m: int
) -> tuple[list[Interval | None], list[str]]:
    """Return mean absolute contributions of views, and mean trust or weights as text."""
    sizes: list[Interval | None] = [None] * m
    shares = [""] * m
    if explanation is None:
        return sizes, shares
    for k in range(m):
        has = explanation.presence[:, k]
        if not has.any():
            continue
        size = mean_interval(np.abs(explanation.contributions[has, k]))
        sizes[k] = size if size.low is None else Interval(size.mean, max(size.low, 0.0), size.high)
        if explanation.trust_or_weights is not None:
            shares[k] = format_probability(float(explanation.trust_or_weights[has, k].mean()))
    return sizes, shares


def samples_section(report: Report, explanation: Explanation) -> dict[str, Any]:
    """Return the figures of all samples: the trust map and the map of similar samples."""
    assert report.sample_map is not None
    classes = report.classes
    at, height = map_layout(np.asarray(report.sample_map.positions, dtype=float))
    drawn = evenly_spaced(len(explanation), MOST_SYMBOLS)
    grouped = bool(classes) and bool(explanation.known.any())
    shapes = np.zeros(len(explanation))
    if classes:
        shapes = explanation.truth_codes if grouped else explanation.predicted_codes
    lead, order = leading_view(explanation), map_order(explanation, grouped)
    varies = _varies(explanation)
    return {
        "at": at,
        "drawn": drawn,
        "grouped": grouped,
        "order": order,
        "varies": varies,
        "trust": trust_map(explanation, classes if grouped else (), order) if varies else None,
        "trust_name": "weight" if explanation.trust is None else "trust",
        "map": sample_plot(at, height, drawn, shapes, [colour_of(int(view)) for view in lead]),
        "present": explanation.presence.sum(axis=0).tolist(),
        "led": [int((lead == view).sum()) for view in range(len(report.views))],
        "classed": [int((shapes == code).sum()) for code in range(len(classes))],
    }


def _varies(explanation: Explanation) -> bool:
    """Return whether trust or weights differ between samples that have the same views."""
    trust = explanation.trust_or_weights
    if trust is None:
        return False
    if explanation.trust is not None or len(explanation) == 1:
        return True
    patterns, code = np.unique(explanation.presence, axis=0, return_inverse=True)
    groups = [trust[code.ravel() == k] for k in range(len(patterns))]
    return not all(np.allclose(group, group[0], atol=1e-6) for group in groups)


def sample_card(report: Report, formatter: Formatter, k: int) -> dict[str, Any]:
    """Return the explanation of sample k: bars from the base value over the views to the decision.

    Positions of bars are in percent of the width.
    """
    explanation, sample_map = report.explanation, report.sample_map
    assert explanation is not None
    assert sample_map is not None
    contributions = np.where(explanation.presence[k], explanation.contributions[k], 0.0)
    stops = explanation.base_values[k] + np.concatenate([[0.0], np.cumsum(contributions)])
    # Decisions begin at zero. Values of a regression may be far from it, so only changes count.
    ends = stops if not formatter.classes else np.append(stops, 0.0)
    low, span = float(ends.min()), float(np.ptp(ends)) or 1.0

    def bar(start: float, end: float, label: str) -> dict[str, Any]:
        left = 100 * (min(start, end) - low) / span
        return {"left": left, "width": 100 * abs(end - start) / span, "label": label}

    first, last = float(stops[0]), float(stops[-1])
    total = formatter.contribution if formatter.classes else formatter.outcome
    differ = float(explanation.disagreement[k])
    trust = explanation.trust_or_weights
    against, towards = "less", "more"
    if formatter.classes:
        against = formatter.outcome(explanation.runner_up_codes[k])
        towards = formatter.outcome(explanation.predicted_codes[k])
    return {
        "name": explanation.ids[k],
        "prediction": _prediction(explanation, formatter, k),
        "outcome": formatter.outcome(_outcomes(explanation)[k]),
        "truth": formatter.outcome(_truths(explanation)[k]),
        "wrong": bool(explanation.wrong[k]),
        "disagreement": format_probability(differ) if differ >= DISAGREE else "",
        "unfamiliar": _unfamiliar(explanation, k),
        "axis": (against, towards),
        "zero": -100 * low / span if formatter.classes else None,
        "base": bar(0.0 if formatter.classes else first, first, total(first)),
        "views": [
            {
                "missing": not explanation.presence[k, v],
                "alone": _alone(explanation, formatter, k, v),
                "trust": "" if trust is None else format_probability(float(trust[k, v])),
                "bar": bar(stops[v], stops[v + 1], formatter.contribution(contributions[v])),
            }
            for v in range(len(contributions))
        ],
        "end": bar(0.0 if formatter.classes else last, last, total(last)),
        "neighbours": _neighbours(explanation, sample_map, formatter, k),
    }


def _outcomes(explanation: Explanation) -> Array:
    """Return predicted class codes, or predicted values."""
    return explanation.predictions if explanation.is_regression else explanation.predicted_codes


def _truths(explanation: Explanation) -> Array:
    """Return true class codes, or true values; -1 or NaN if unknown."""
    if not explanation.is_regression:
        return explanation.truth_codes
    return np.full(len(explanation), np.nan) if explanation.truth is None else explanation.truth


def _prediction(explanation: Explanation, formatter: Formatter, k: int) -> str:
    """Return the prediction with the probabilities of the most probable classes."""
    outcome = formatter.outcome(_outcomes(explanation)[k])
    if explanation.probabilities is None:
        return outcome
    own, predicted = explanation.probabilities[k], int(explanation.predicted_codes[k])
    others = [c for c in np.argsort(-own, kind="stable") if c != predicted][:3]
    rest = ", ".join(f"{formatter.classes[c]} {format_probability(float(own[c]))}" for c in others)
    return f"{outcome}, probability {format_probability(float(own[predicted]))} ({rest})"


def _alone(explanation: Explanation, formatter: Formatter, k: int, view: int) -> str:
    codes = explanation.alone if explanation.is_regression else explanation.alone_codes
    outcome = formatter.outcome(float(codes[k, view]))
    probability = format_probability(float(explanation.alone_probabilities[k, view]))
    return f"{outcome} {probability}".strip() if outcome else ""


def _unfamiliar(explanation: Explanation, k: int) -> str:
    """Return the views in which a sample is unlike the training samples."""
    if explanation.familiarity is None:
        return ""
    values, presence = explanation.familiarity[k], explanation.presence[k]
    return ", ".join(
        f"{name} {format_probability(float(value))}"
        for name, value, present in zip(explanation.views, values, presence, strict=True)
        if present and value < FAMILIAR
    )


def _neighbours(
    explanation: Explanation, sample_map: SampleMap, formatter: Formatter, k: int
) -> list[tuple[str, str]]:
    """Return names of similar samples, with their truth and similarity as text."""
    support = sample_map.support
    if support is None:
        truths = _truths(explanation)
        return [
            (explanation.ids[j], formatter.outcome(truths[j])) for j in sample_map.neighbours[k]
        ]
    near = zip(support.neighbours[k], support.similarities[k], strict=True)
    return [
        (
            support.ids[j],
            ", ".join(
                filter(
                    None,
                    [
                        formatter.outcome(float(support.truth[j])),
                        f"similarity {format_probability(similarity)}",
                    ],
                )
            ),
        )
        for j, similarity in near
    ]


def interesting_samples(explanation: Explanation, formatter: Formatter) -> list[dict[str, str]]:
    """Return the samples that most deserve a look, with the reason."""
    order, interest = rank_by_interest(explanation)
    return [
        {
            "name": explanation.ids[k],
            "prediction": formatter.outcome(_outcomes(explanation)[k]),
            "truth": formatter.outcome(_truths(explanation)[k]),
            "why": ", ".join(_reasons(explanation, formatter, int(k))),
        }
        for k in order[interest > 0][:_LISTED]
    ]


def _reasons(explanation: Explanation, formatter: Formatter, k: int) -> Iterable[str]:
    if explanation.wrong[k]:
        probability = format_probability(float(predicted_probability(explanation)[k]))
        yield f"wrong at {probability}" if probability else "wrong"
    if explanation.is_regression and explanation.known[k]:
        yield f"off by {formatter.error(float(absolute_errors(explanation)[k]))}"
    if explanation.disagreement[k] > 0:
        yield f"views differ {format_probability(float(explanation.disagreement[k]))}"


def kinds_of_interest(report: Report, explanation: Explanation) -> str:
    """Return what makes samples deserve a look."""
    kinds = []
    if explanation.known.any():
        kinds.append("confident and wrong" if report.classes else "far off")
    if np.isfinite(explanation.disagreement).any() and len(report.views) > 1:
        kinds.append("with views that disagree")
    return ", or ".join(kinds) or "the first samples"


def reliability_section(report: Report, found: Reliability | None) -> dict[str, Any] | None:
    """Return calibration, risk, confusion and scores by missing views."""
    explanation, n_classes = report.explanation, len(report.classes)
    if explanation is None or found is None:
        return None
    scale, names = Scale(bool(n_classes)), explanation.views
    risks = _Column([value for _, value in found.risk], scale, [0.0])
    scores = _Column([pattern.score for pattern in found.patterns], scale)
    risk_name = "wrong, %" if n_classes else "mean error"
    known = explanation.known
    totals = np.maximum(found.confusion.sum(axis=1, keepdims=True), 1)
    return {
        "found": found,
        "score": _Column([found.score], scale).format(found.score),
        "calibration": calibration_plot(found.calibration, found.stated, n_classes)
        if found.calibration
        else "",
        "parity": ""
        if n_classes
        else parity_plot(_truths(explanation)[known], explanation.predictions[known]),
        "risk": risk_plot(found.curve, found.risk, risk_name, scale.factor) if found.risk else "",
        "risks": [(format_percent(share, 0), risks.format(value)) for share, value in found.risk],
        "patterns": [
            {
                "lacks": ", ".join(names[view] for view in pattern.views),
                "code": ",".join(map(str, pattern.views)),
                "n_samples": pattern.n_samples,
                "score": scores.format(pattern.score, "", found.score.mean),
            }
            for pattern in found.patterns
        ],
        "pattern_head": scores.head,
        "confusion": found.confusion.tolist(),
        "shades": np.round(100 * found.confusion / totals).astype(int).tolist(),
        "mistakes": _mistakes(found.confusion),
        "many": n_classes > _FEW_CLASSES,
        "drawn": n_classes <= _MOST_CLASSES,
    }


def _mistakes(confusion: Array) -> list[tuple[int, int, int]]:
    """Return (true class, predicted class, samples) of errors, most frequent first."""
    pairs = [(int(i), int(j), int(confusion[i, j])) for i, j in np.argwhere(confusion) if i != j]
    return sorted(pairs, key=lambda pair: (-pair[2], pair))[:_LISTED]


def alignment_section(
    alignment: KernelAlignment | None, names: list[str]
) -> tuple[list[str], list[list[str]]] | None:
    """Return the alignment of kernels as a table: heads of columns, and text of cells."""
    if alignment is None:
        return None
    values, heads = np.asarray(alignment.between), list(names)
    if alignment.target is not None:
        values, heads = np.column_stack([values, alignment.target]), [*heads, "truth"]
    return heads, [[format_probability(float(value)) or "–" for value in row] for row in values]


def headline_values(
    report: Report, formatter: Formatter, found: Reliability | None
) -> list[dict[str, str]]:
    """Return the values at the head of the page.

    "select" is the query of the samples that a value counts, in the language of the script.
    """
    tiles = list(_score_tiles(report, formatter, found))
    explanation = report.explanation
    if explanation is None:
        return tiles
    n = len(explanation)
    if report.classes and found is not None:
        wrong = int(explanation.wrong.sum())
        of = f"of {found.n_samples}"
        tiles.append(_tile(str(wrong), "wrong predictions", of, "answer=wrong" if wrong else ""))
    if np.isfinite(explanation.disagreement).any() and len(report.views) > 1:
        differ = np.nan_to_num(explanation.disagreement)
        order = np.argsort(-differ, kind="stable")
        names = [explanation.ids[k] for k in order[differ[order] >= DISAGREE]]
        detail = first_names(names, 4) if names else f"of {n}"
        label, query = "samples whose views disagree", "views=disagree" if names else ""
        tiles.append(_tile(str(len(names)), label, detail, query))
    lacking = int((~explanation.presence.all(axis=1)).sum())
    if lacking:
        tiles.append(_tile(str(lacking), "samples that lack a view", f"of {n}", "lacks=any"))
    return tiles


def _tile(value: str, label: str, detail: str = "", select: str = "") -> dict[str, str]:
    return {"value": value, "label": label, "detail": detail, "select": select}


def _score_tiles(
    report: Report, formatter: Formatter, found: Reliability | None
) -> Iterable[dict[str, str]]:
    chosen, baseline, scale = chosen_row(report), best_baseline(report), formatter.scale
    if chosen is not None:
        rows = [(report.score_name, "", chosen)]
        if baseline is not None:
            rows.append(("the best baseline", baseline.name, baseline))
        for label, name, row in rows:
            limits = scale.limits(row.score)
            interval = f"{limits}, 95 % interval" if limits else ""
            detail = "; ".join(filter(None, [name, interval]))
            yield _tile(scale.mean(row.score) + scale.unit, label, detail)
    elif found is not None:
        mean, _, limits = _score_text(report, formatter, found).partition(" (")
        label = "right" if report.classes else "mean error"
        yield _tile(mean, label, limits.removesuffix(")"))


def _score_text(report: Report, formatter: Formatter, found: Reliability) -> str:
    """Return the share of correct predictions, or the mean error, with its interval."""
    if not report.classes:
        return formatter.error_with_limits(found.score)
    n, score = found.n_samples, found.score
    low, high = (format_percent(end or 0.0, n) for end in (score.low, score.high))
    return f"{format_percent(score.mean, n)} % ({low} to {high}, 95 % interval)"


def verdict(report: Report, formatter: Formatter, found: Reliability | None) -> str:
    """Return the verdict of the report, or two sentences made from its content."""
    if report.verdict:
        return report.verdict
    chosen = chosen_row(report)
    if chosen is not None:
        return _leaderboard_verdict(report, formatter.scale, chosen)
    if report.explanation is None:
        return "This report contains no predictions."
    if found is None:
        n = count(len(report.explanation), "sample")
        return f"Predictions for {n}. Their truth is unknown, so accuracy cannot be estimated."
    text, n = _score_text(report, formatter, found), count(found.n_samples, "sample")
    if report.classes:
        counts = found.confusion.sum(axis=1)
        most = int(counts.argmax())
        share = format_percent(counts[most] / found.n_samples, found.n_samples)
        return (
            f"The model is right for {text} of {n}. Always predicting the most frequent class, "
            f"{report.classes[most]}, would be right for {share} %."
        )
    truth = _truths(report.explanation)[report.explanation.known]
    median = formatter.error(float(np.abs(truth - np.median(truth)).mean()))
    return (
        f"The mean absolute error is {text} over {n}. Always predicting the median would give "
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
    if behind is None or behind.low is None or behind.high is None:
        return f"{first} {second}."
    clear = "not clearly less"
    if behind.low > 0:
        clear = "clearly less"
    elif behind.high < 0:
        clear = "clearly more"
    difference = f"{scale.mean(behind)}, interval {scale.limits(behind)}"
    return f"{first} {second}, {clear} (difference {difference})."
