"""Where to start a machine whose last solve was at another cost."""

import numpy as np

from lokl._arrays import Array
from lokl.solvers.problem import Dual, Problem

# Share of the support at its bounds, below which most of a solution stays as it is.
_FEW = 0.2


def restart(last: Dual, before: Problem, now: Problem) -> Array:
    """Coefficients for a problem, from the solution of one with other costs.

    They are stretched by the best factor between 1 and the ratio of the costs, an exact search
    along ``u``: the ratio where all samples are at their bounds, 1 where none is. The solver moves
    them into the new boxes.
    """
    coef = last.coef
    at_bound = (coef != 0) & ((coef == before.lower) | (coef == before.upper))
    if at_bound.sum() < _FEW * np.count_nonzero(coef) and np.array_equal(before.ridge, now.ridge):
        # The cost hardly touches this solution.
        return coef
    # The sum of the coefficients is zero, so that the intercept has no part in it.
    curved = float(coef @ last.decision) + float(now.ridge @ coef**2)
    gain = float(now.target @ coef) - now.epsilon * float(np.abs(coef).sum())
    if curved <= 0.0 or gain <= 0.0:
        return coef
    ratio = _cost(now) / _cost(before)
    return np.asarray(coef * np.clip(gain / curved, min(1.0, ratio), max(1.0, ratio)))


def still_optimal(last: Dual, now: Problem, tolerance: float) -> Dual | None:
    """Return a solution as that of a problem with other costs, where these do not change it.

    So it is for rising costs once no sample is at its bound. Both problems are on the same matrix.
    """
    coef = last.coef
    if not last.converged or (coef < now.lower).any() or (coef > now.upper).any():
        return None
    gradient = now.target - (last.decision - last.intercept) - now.ridge * coef
    up, down = now.violations(coef, gradient)
    if up.max(initial=-np.inf) - down.min(initial=np.inf) > tolerance:
        return None
    return now.dual(coef, gradient, 0, True)


def _cost(problem: Problem) -> float:
    """Cost of the samples on average: where there is no bound, it is in the ridge."""
    bound = np.maximum(problem.upper, -problem.lower)
    if np.isfinite(bound).all():
        return float(bound.mean())
    ridge = problem.ridge[problem.ridge > 0]
    return float((1.0 / ridge).mean()) if len(ridge) else 1.0
