"""Results of a search: ``cv_results_``, the choice of a candidate, and the grid's boundary."""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection._validation import (
    _insert_error_scores,
    _warn_or_raise_about_fit_failures,
)

from lokl._arrays import Array
from lokl._warnings import warn_once
from lokl.search.tasks import (
    Coordinates,
    FoldResult,
    Params,
    coordinates,
    is_number,
    largest_cost,
    leaf_name,
)

RULES = ("best", "one_se")
# With two values, each is at the boundary.
_FEWEST_VALUES = 3


class LeaderboardRow(NamedTuple):
    """Held-out results of one candidate of AutoMKL.

    Attributes
    ----------
    method : str
        Name of the method.
    kernels : str
        Names of its kernels.
    C : float or None
        Cost.
    score, score_error : float
        Mean held-out score and its standard error.
    seconds : float
        Time of the candidate.
    n_samples : int
        Number of samples that it was compared on.
    error : str or None
        Reason of a failure.

    See Also
    --------
    lokl.AutoMKLClassifier : Chooses everything.

    Examples
    --------
    >>> from lokl.search import LeaderboardRow
    >>> LeaderboardRow("UniformMKL", "laplacian", 1.0, 0.97, 0.01, 0.2, 150)._fields[:4]
    ('method', 'kernels', 'C', 'score')
    """

    method: str
    kernels: str
    C: float | None
    score: float  # mean held-out score
    score_error: float  # its standard error
    seconds: float  # time of the evaluation
    n_samples: int  # number of samples that the score is of
    error: str | None = None  # why it could not be fitted


@dataclass(frozen=True, eq=False)
class Candidate:
    """One candidate in one round of a search: a row of ``cv_results_``."""

    index: int
    params: dict[str, Any]
    fold_results: list[FoldResult] | None  # None if it was not evaluated
    iteration: int = 0
    n_resources: int = 0  # training rows
    skipped: str | None = None  # reason, if it was skipped as worse than others

    def mean(self, metric: str | None = None) -> float:
        """Return the mean test score; NaN without results."""
        return mean_score(self.fold_results or (), metric)

    def standard_error(self, metric: str | None = None) -> float:
        """Return the standard error of the mean test score."""
        return standard_error([result.score(metric) for result in self.fold_results or ()])

    @property
    def held_out(self) -> FoldResult:
        """The result of a candidate with a single split."""
        assert self.fold_results is not None
        (result,) = self.fold_results
        return result

    @property
    def seconds(self) -> float:
        """Time of all fits and scores."""
        return sum(result.fit_seconds + result.score_seconds for result in self.fold_results or ())

    @property
    def errors(self) -> list[str]:
        """Tracebacks of the folds that could not be fitted."""
        return [result.error for result in self.fold_results or () if result.error is not None]


def mean_score(fold_results: Sequence[FoldResult], metric: str | None = None) -> float:
    """Return the mean test score of a candidate over its splits, NaN without any."""
    return fmean(result.score(metric) for result in fold_results) if fold_results else math.nan


def standard_error(scores: Any) -> float:
    """Return the standard error of the mean of fold scores, array-like of shape (n_folds,)."""
    return float(np.std(scores) / np.sqrt(len(scores)))


def errors_behind(scores: Array, best: Array, weight: Array | None = None) -> float:
    """Return by how many standard errors the mean of some scores is behind the best.

    The standard error is that of the sum of differences of independent rows with mean zero. For
    zeros and ones it is the square root of the number of rows that differ.

    Parameters
    ----------
    scores, best : array of shape (n_rows,)
        Scores of the same rows.
    weight : array of shape (n_rows,), optional
        A weight of 2 is equivalent to repeating the row.

    Returns
    -------
    errors : float
        Positive if `best` is better.
    """
    difference = np.subtract(best, scores, dtype=float)
    weighted = difference if weight is None else weight * difference
    variance = float(weighted @ difference)
    return float(weighted.sum() / np.sqrt(variance)) if variance > 0 else 0.0


def final_scores(rows: Sequence[Candidate], means: Array) -> dict[int, float]:
    """Return the score of each candidate in the last round, by index.

    Candidates that did not reach that round, and those skipped as worse than others, have minus
    infinity. Candidates without any evidence have NaN.
    """
    final: dict[int, float] = {}
    for row in rows:
        is_worse = row.fold_results is not None or row.skipped is not None
        final[row.index] = -math.inf if is_worse else final.get(row.index, math.nan)
    for index in last_round(rows):
        if rows[index].skipped is None:
            final[rows[index].index] = float(means[index])
    return final


def last_round(rows: Sequence[Candidate]) -> list[int]:
    """Return the indices of the rows in the last round in which any candidate was evaluated."""
    last = max(row.iteration for row in rows if row.fold_results is not None)
    return [index for index, row in enumerate(rows) if row.iteration == last]


def cv_results(
    search: Any, rows: Sequence[Candidate], n_splits: int, columns: Any
) -> dict[str, Any]:
    """Return ``cv_results_``, and warn about candidates that could not be fitted.

    Parameters
    ----------
    search : BaseSearchCV
    rows : sequence of Candidate
        At least one was evaluated.
    n_splits : int
    columns : mapping of str to list
        Additional columns.
    """
    tried = [row for row in rows if row.fold_results is not None]
    records = [_as_record(result) for row in tried for result in row.fold_results or ()]
    _warn_or_raise_about_fit_failures(records, search.error_score)
    if callable(search.scoring):
        # Only now it is known whether the function returns one score or several.
        _insert_error_scores(records, search.error_score)
    params = [row.params for row in tried]
    if len(tried) == len(rows):
        return search._format_results(params, n_splits, records, columns)
    # Called for its warning about scores of NaN, which all skipped rows have.
    search._format_results(params, n_splits, records)
    by_row = {id(row): records[i * n_splits : (i + 1) * n_splits] for i, row in enumerate(tried)}
    skipped = [_skipped_record(records[0])] * n_splits
    all_records = [record for row in rows for record in by_row.get(id(row), skipped)]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "One or more of the", UserWarning)
        return search._format_results([row.params for row in rows], n_splits, all_records, columns)


def _as_record(result: FoldResult) -> dict[str, Any]:
    """Return a fold result in the form of scikit-learn's ``_fit_and_score``."""
    record = {
        "test_scores": result.test_scores,
        "fit_time": result.fit_seconds,
        "score_time": result.score_seconds,
        "fit_error": result.error,
    }
    if result.train_scores is not None:
        record["train_scores"] = result.train_scores
    return record


def _skipped_record(template: dict[str, Any]) -> dict[str, Any]:
    """Return the record of a candidate that was not evaluated, with NaN scores and times."""
    return {
        name: dict.fromkeys(value, np.nan) if isinstance(value, dict) else np.nan
        for name, value in template.items()
    }


def choose(
    means: Array, errors: Array, rule: str, complexity: Callable[[int], tuple[float, ...]]
) -> int:
    """Return the index of the chosen candidate.

    Parameters
    ----------
    means, errors : array of shape (n_candidates,)
        Mean scores, at least one of which is a number, and their standard errors.
    rule : {"best", "one_se"}
        "one_se" chooses the simplest candidate whose mean is within one standard error of the best.
    complexity : callable
        Sort key by index, the simplest first.
    """
    best = int(np.nanargmax(means))
    if rule == "best" or not np.isfinite(means[best]):
        return best
    near = np.flatnonzero(means >= means[best] - errors[best]).tolist()
    return min(near, key=lambda index: (*complexity(index), index))


def grid_complexity(params: Params) -> tuple[float, float, int]:
    """Return the cost, the `gamma` of the narrowest kernel, and the number of kernels."""
    point = {name: value for name, value in coordinates(params).items() if is_number(value)}
    gammas = [float(value) for name, value in point.items() if leaf_name(name) == "gamma"]
    counts = [int(value) for name, value in point.items() if leaf_name(name) == "kernels"]
    return largest_cost(point), max(gammas, default=0.0), sum(counts)


def warn_at_grid_boundary(candidates: Sequence[Params], scores: Array) -> None:
    """Warn if the best candidate has the smallest or largest value of a numeric parameter.

    An equal score of the next value inside the grid suppresses the warning.

    Parameters
    ----------
    candidates : sequence of mappings
    scores : array of shape (n_candidates,)
        NaN for candidates without a score.
    """
    if np.isnan(scores).all():
        return
    points = [coordinates(params) for params in candidates]
    best = points[int(np.nanargmax(scores))]
    for name in [name for name, value in best.items() if is_number(value)]:
        side = grid_boundary(_scores_along(points, scores, best, name), best[name])
        if side is not None:
            end = "smallest" if side == "below" else "largest"
            warn_once(
                f"edge of the grid in {name}",
                f"the best {name} is {best[name]:g}, the {end} of the grid; extend the grid {side} "
                f"{best[name]:g}",
            )


def grid_boundary(scores: dict[float, float], best: float) -> str | None:
    """Return the side on which a grid should be extended.

    Parameters
    ----------
    scores : dict
        Score of each value of a parameter.
    best : float
        Value with the best score.

    Returns
    -------
    side : {"below", "above"} or None
        None inside the grid, if the score is flat, or if there are fewer than three values.
    """
    values = sorted(scores)
    if len(values) < _FEWEST_VALUES or best not in (values[0], values[-1]):
        return None
    side, neighbour = ("below", values[1]) if best == values[0] else ("above", values[-2])
    return side if scores[neighbour] < scores[best] else None


def _scores_along(
    points: Sequence[Coordinates], scores: Array, best: Coordinates, name: str
) -> dict[float, float]:
    """Return the best score for each value of a parameter, all others equal to those of `best`."""
    fixed = {key: value for key, value in best.items() if key != name}
    along: dict[float, float] = {}
    for point, score in zip(points, scores, strict=True):
        value: Any = point.get(name)
        is_equal = {key: v for key, v in point.items() if key != name} == fixed
        if is_equal and is_number(value) and not np.isnan(score):
            along[value] = max(float(score), along.get(value, -np.inf))
    return along
