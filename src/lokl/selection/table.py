"""``cv_results_``: what is known of all candidates, in scikit-learn's columns."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection._validation import (
    _insert_error_scores,
    _warn_or_raise_about_fit_failures,
)

from lokl.selection.work import Cell


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
