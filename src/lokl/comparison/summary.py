"""The few lines that most readers look at, as plain values."""

from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl.comparison.finish import Finished
from lokl.comparison.results import Results
from lokl.inspection.answers import DISAGREE, ViewAnswers

# Trust from which on a view counts, and the share of it that an equal part is taken for.
_TRUSTED, _ABOUT = 0.5, 0.9
# Shares that differ by less between samples are the same.
_SAME = 1e-3
_THIRDS = ("low values", "middle values", "high values")


def trusted_where(results: Results) -> dict[str, str]:
    """Return for which classes, or values, the chosen model trusts each view."""
    told = None if results.chosen is None else results.held_out(results.chosen.name, 0)
    if told is None:
        return {}
    names, code = _regions(results)
    limit = _ABOUT / len(told.views) if told.shares else _TRUSTED
    full = told.present.all(axis=1)
    if told.shares and full.any() and np.ptp(told.trust[full], axis=0).max() < _SAME:
        return dict.fromkeys(told.views, "the same for all")
    found = {}
    for place, view in enumerate(told.views):
        has = told.present[:, place]
        means = [_mean(told.trust[has & (code == k), place]) for k in range(len(names))]
        found[view] = _listed(names, [mean >= limit for mean in means], results)
    return found


def _regions(results: Results) -> tuple[list[str], Array]:
    question, y = results.bench.question, results.bench.part.y
    if question.classes:
        return [str(label) for label in question.classes], question.codes(y)
    low, high = np.quantile(y, [1 / 3, 2 / 3])
    return list(_THIRDS), (y > low).astype(int) + (y > high)


def _mean(values: Array) -> float:
    return float(values.mean()) if len(values) else 0.0


def _listed(names: list[str], trusted: list[bool], results: Results) -> str:
    if all(trusted):
        return "all classes" if results.bench.question.classes else "everywhere"
    return ", ".join(name for name, own in zip(names, trusted, strict=True) if own) or "little"


def disagreeing(results: Results) -> list[str]:
    """Return samples whose views speak for different classes, the worst first."""
    told = None if results.chosen is None else results.held_out(results.chosen.name, 0)
    if told is None or told.probabilities is None or len(told.views) < 2:
        return []
    rows = np.flatnonzero(_differ(told) & (told.disagreement >= DISAGREE))
    order = rows[np.argsort(-told.disagreement[rows], kind="stable")]
    return [results.table.ids[row] for row in order]


def _differ(told: ViewAnswers) -> Array:
    """Whether two views that are there speak for different classes."""
    known = told.says >= 0
    top = np.where(known, told.says, -1).max(axis=1)
    least = np.where(known, told.says, np.iinfo(int).max).min(axis=1)
    return np.asarray(known.any(axis=1) & (top != least))


def as_dict(finished: Finished) -> dict[str, Any]:
    """Return everything as plain values, for machines."""
    results, chosen = finished.results, finished.results.chosen
    where = trusted_where(results)
    return {
        "score": results.score_name,
        "samples": len(results.bench.part.y),
        "classes": results.bench.question.classes,
        "folds": len(results.splits),
        "chosen": None if chosen is None else chosen.name,
        "candidates": [
            {
                "name": row.name,
                "role": row.role,
                **_interval("score", None if row.failed else row.interval),
                "seconds": row.seconds,
                "support": row.support,
                "error": row.note or None,
            }
            for row in results.rows
        ],
        "views": [
            {
                "name": worth.view,
                **_interval("alone", worth.alone),
                **_interval("loss when withheld", worth.loss),
                "trusted where": where.get(worth.view),
            }
            for worth in results.worth()
        ],
        "views disagree": disagreeing(results),
        "findings": [vars(finding) for finding in finished.findings],
        "files": {name: str(path) for name, path in finished.files.items()},
    }


def _interval(name: str, values: tuple[float, float, float] | None) -> dict[str, float | None]:
    ends = (None, None, None) if values is None else values
    return dict(zip((name, f"{name} low", f"{name} high"), ends, strict=True))
