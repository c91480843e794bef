"""From an approximate optimum to the exact one, where the problem is small.

At the optimum, the free coefficients (neither zero nor at a bound) satisfy a linear system. Once
the solver has found which they are, solving it gives the optimum to machine precision: the answer
no longer depends on the order of rows, on repeated rows or on the path.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from lokl._arrays import Array
from lokl.solvers.problem import Problem

_LARGEST = 512
_ROUNDS = 20


@dataclass
class Optimum:
    """Coefficients, the gradient that belongs to them, and the violation that is left."""

    coef: Array
    gradient: Array
    violation: float


def polish(matrix: Array, problem: Problem, coef: Array, gradient: Array) -> Optimum | None:
    """Solve for the free coefficients exactly; None where that does not apply.

    Parameters
    ----------
    matrix : array of shape (n, n)
        ``K + R`` in float64.
    problem : Problem
    coef, gradient : arrays of shape (n,)
        Near the optimum; left alone.
    """
    coef = coef.copy()
    lower = np.where((coef > 0) & (problem.epsilon > 0), 0.0, problem.lower)
    upper = np.where((coef < 0) & (problem.epsilon > 0), 0.0, problem.upper)
    for _ in range(_ROUNDS):
        free = np.flatnonzero((coef > lower) & (coef < upper) & (coef != 0))
        if not 2 <= len(free) <= _LARGEST:
            return None
        change = _newton(matrix, problem, coef, gradient, free)
        if change is None:
            return None
        room = np.where(change > 0, upper[free] - coef[free], coef[free] - lower[free])
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(change != 0, room / np.abs(change), np.inf)
        step = min(1.0, float(reach.min()))
        coef[free] += step * change
        blocked = reach <= step
        if step < 1.0:
            # The nearest bound is hit: these coefficients are not free after all.
            at = np.where(change > 0, upper[free], lower[free])
            coef[free[blocked]] = at[blocked]
        gradient = problem.target - matrix @ coef
        if step == 1.0:
            up, down = problem.violations(coef, gradient)
            return Optimum(coef, gradient, float(up.max() - down.min()))
    return None


def _newton(
    matrix: Array, problem: Problem, coef: Array, gradient: Array, free: Array
) -> Array | None:
    """Change of the free coefficients that makes their optimality conditions equalities."""
    size = len(free)
    system = np.ones((size + 1, size + 1))
    system[:size, :size] = matrix[np.ix_(free, free)]
    system[size, size] = 0.0
    slopes = gradient[free] - problem.epsilon * np.sign(coef[free])
    wanted = np.append(slopes - slopes.mean(), -coef.sum())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", linalg.LinAlgWarning)
            solution = linalg.solve(system, wanted, assume_a="sym", check_finite=False)
    except (linalg.LinAlgError, linalg.LinAlgWarning):
        # Repeated rows leave the split between them open; the smallest change is symmetric.
        solution = linalg.lstsq(system, wanted, check_finite=False)[0]
    change = solution[:size]
    return np.asarray(change) if np.isfinite(change).all() else None
