"""A best candidate on the edge of the grid: a better one may lie beyond.

``cv_results_``: what is known of all candidates, in scikit-learn's columns.

Which candidate wins: the best, or the simplest of those that are not clearly worse.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection._validation import (
    _insert_error_scores,
    _warn_or_raise_about_fit_failures,
)

from lokl._arrays import Array
from lokl._warnings import warn_once
from lokl.search.tasks import Candidate, Cell, Coordinates, coordinates, cost, is_number, last_part

# Of two values, each is an edge.
_FEWEST_VALUES = 3


def warn_of_edges(candidates: Sequence[Candidate], scores: Array) -> None:
    """Warn where the best candidate has the smallest or largest value of a number.

    Not where its neighbour inside the grid is as good: the score is flat there.

    Parameters
    ----------
    candidates : sequence of mappings
    scores : array of shape (n_candidates,)
        NaN where a candidate has none.
    """
    if np.isnan(scores).all():
        return
    places = [coordinates(candidate) for candidate in candidates]
    best = places[int(np.nanargmax(scores))]
    for name in [name for name, value in best.items() if is_number(value)]:
        line = _line(places, scores, best, name)
        values = sorted(line)
        if len(values) < _FEWEST_VALUES or best[name] not in (values[0], values[-1]):
            continue
        is_low = best[name] == values[0]
        neighbour = values[1] if is_low else values[-2]
        if line[neighbour] < line[best[name]]:
            side, end = ("below", "smallest") if is_low else ("above", "largest")
            warn_once(
                f"edge of the grid in {name}",
                f"the best {name} is {best[name]:g}, the {end} of the grid; a better one may lie "
                f"{side}: extend the grid {side} {best[name]:g}",
            )


def _line(
    places: Sequence[Coordinates], scores: Array, best: Coordinates, name: str
) -> dict[float, float]:
    """Best score for each value of a number, where all else is as in the best candidate."""
    others = {other: value for other, value in best.items() if other != name}
    line: dict[float, float] = {}
    for place, score in zip(places, scores, strict=True):
        value: Any = place.get(name)
        alike = {other: own for other, own in place.items() if other != name} == others
        if alike and is_number(value) and not np.isnan(score):
            line[value] = max(float(score), line.get(value, -np.inf))
    return line


@dataclass(frozen=True, eq=False)
class Row:
    """A candidate in one round of a search."""

    candidate: int
    params: dict[str, Any]
    cells: list[Cell] | None  # None where it was not evaluated
    iteration: int = 0
    n_resources: int = 0  # training rows
    skipped: str | None = None  # why it was known to be worse than others, where it was


def cv_results(search: Any, rows: Sequence[Row], n_splits: int, columns: Any) -> dict[str, Any]:
    """Return the columns of all rows, and warn of candidates that could not be fitted.

    Parameters
    ----------
    search : BaseSearchCV
    rows : sequence of Row
        At least one was evaluated.
    n_splits : int
    columns : mapping of str to list
        More columns.
    """
    tried = [row for row in rows if row.cells is not None]
    results = [_result(cell) for row in tried for cell in row.cells or ()]
    _warn_or_raise_about_fit_failures(results, search.error_score)
    if callable(search.scoring):
        # Only now it is known whether the function gives one score or several.
        _insert_error_scores(results, search.error_score)
    params = [row.params for row in tried]
    if len(tried) == len(rows):
        return search._format_results(params, n_splits, results, columns)
    # Those that were tried alone, to warn of theirs that are not finite; others are so by design.
    search._format_results(params, n_splits, results)
    known = {id(row): results[i * n_splits : (i + 1) * n_splits] for i, row in enumerate(tried)}
    unknown = [_unknown(results[0])] * n_splits
    every = [result for row in rows for result in known.get(id(row), unknown)]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "One or more of the", UserWarning)
        return search._format_results([row.params for row in rows], n_splits, every, columns)


def _result(cell: Cell) -> dict[str, Any]:
    """Return a cell as scikit-learn's functions want it."""
    result = {
        "test_scores": cell.test_scores,
        "fit_time": cell.fit_seconds,
        "score_time": cell.score_seconds,
        "fit_error": cell.error,
    }
    if cell.train_scores is not None:
        result["train_scores"] = cell.train_scores
    return result


def _unknown(like: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a candidate that was not evaluated."""
    return {
        name: dict.fromkeys(value, np.nan) if isinstance(value, dict) else np.nan
        for name, value in like.items()
    }


RULES = ("best", "one_se")


def choose(results: dict[str, Any], metric: str, rule: str, eligible: Sequence[int]) -> int:
    """Return the row of ``cv_results_`` that wins.

    Parameters
    ----------
    results : dict
        ``cv_results_``.
    metric : str
    rule : {"best", "one_se"}
        "one_se" takes the simplest whose mean is within one standard error of the best one.
    eligible : sequence of int
        Rows that may win.
    """
    rows = np.asarray(eligible)
    best = int(rows[results[f"rank_test_{metric}"][rows].argmin()])
    means, stds = results[f"mean_test_{metric}"], results[f"std_test_{metric}"]
    if rule == "best" or not np.isfinite(means[best]):
        return best
    n_splits = sum(
        name.startswith("split") and name.endswith(f"_test_{metric}") for name in results
    )
    bound = means[best] - stds[best] / np.sqrt(n_splits)
    near = [int(row) for row in rows if means[row] >= bound]
    return min(near, key=lambda row: (*_complexity(results["params"][row]), row))


def _complexity(candidate: Candidate) -> tuple[float, float, int]:
    """Cost, then width of the narrowest kernel, then number of kernels."""
    place = coordinates(candidate)
    return cost(place), _narrowest(place), _n_kernels(place)


def _narrowest(place: Coordinates) -> float:
    gammas = [float(v) for name, v in place.items() if last_part(name) == "gamma" and is_number(v)]
    return max(gammas, default=0.0)


def _n_kernels(place: Coordinates) -> int:
    return sum(int(v) for name, v in place.items() if last_part(name) == "kernels" and is_number(v))
