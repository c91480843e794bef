"""Which candidate wins: the best, or the simplest of those that are not clearly worse."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lokl.selection.grid import Candidate, Coordinates, coordinates, cost, is_number, last_part

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
