"""The answer in two sentences, and the numbers behind it."""

from dataclasses import dataclass

import numpy as np

from lokl.inspection.answers import DISAGREE
from lokl.report.content import Candidate, Cases, Interval, Report
from lokl.report.numbers import wilson
from lokl.report.reliability import Reliability
from lokl.report.words import Words, count, percent, sentence


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
