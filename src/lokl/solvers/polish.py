"""From an approximate optimum to the exact one, where the problem is small.

At the optimum, the free coefficients (neither zero nor at a bound) satisfy a linear system. Once
the solver has found which they are, solving it gives the optimum to machine precision: the answer
no longer depends on the order of rows, on repeated rows or on the path.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from lokl._arrays import Array
from lokl.solvers.problem import Problem

_LARGEST = 200
_ROUNDS = 20
_RIDGE = 1e-11


@dataclass
class Optimum:
    """Coefficients, the gradient that belongs to them, and the violation that is left."""

    coef: Array
    gradient: Array
    violation: float


def polish(
    matrix: Array, problem: Problem, coef: Array, gradient: Array, exact: float
) -> Optimum | None:
    """Solve for the free coefficients exactly; None where that does not apply.

    Parameters
    ----------
    matrix : array of shape (n, n)
        ``K + R`` in float64.
    problem : Problem
    coef, gradient : arrays of shape (n,)
        Near the optimum; left alone.
    exact : float
        Violation that counts as none.
    """
    coef = coef.copy()
    lower = np.where((coef > 0) & (problem.epsilon > 0), 0.0, problem.lower)
    upper = np.where((coef < 0) & (problem.epsilon > 0), 0.0, problem.upper)
    best = None
    for _ in range(_ROUNDS):
        free = np.flatnonzero((coef > lower) & (coef < upper) & (coef != 0))
        if not 2 <= len(free) <= _LARGEST:
            return best
        change = _newton(matrix, problem, coef, gradient, free)
        if change is None:
            return best
        room = np.where(change > 0, upper[free] - coef[free], coef[free] - lower[free])
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(change != 0, room / np.abs(change), np.inf)
        step = min(1.0, float(reach.min()))
        moved = coef[free] + step * change
        if step < 1.0:
            # The nearest bound is hit: these coefficients are not free after all.
            blocked = reach <= step
            moved[blocked] = np.where(change > 0, upper[free], lower[free])[blocked]
        gradient = gradient - (moved - coef[free]) @ matrix[free]
        coef[free] = moved
        if step == 1.0:
            up, down = problem.violations(coef, gradient)
            violation = float(up.max() - down.min())
            if best is not None and violation > 0.5 * best.violation:
                return best
            best = Optimum(coef.copy(), gradient, violation)
            if violation <= exact:
                return best
    return best


def _newton(
    matrix: Array, problem: Problem, coef: Array, gradient: Array, free: Array
) -> Array | None:
    """Change of the free coefficients towards equality in their optimality conditions.

    With ``s`` the slopes of the objective: ``K d + b 1 = s`` and ``1'd = 0`` restores the balance.
    Repeated rows make the matrix singular; a tiny ridge leaves the split between them symmetric,
    and repetition removes its effect on everything else.
    """
    system = matrix[free[:, np.newaxis], free]
    system.flat[:: len(free) + 1] += _RIDGE * system.diagonal().max()
    sides = np.ones((len(free), 2), order="F")
    sides[:, 0] = gradient[free] - problem.epsilon * np.sign(coef[free])
    # LAPACK is called directly: the checks of scipy.linalg.solve cost more than so small a system.
    _, solution, failure = lapack.dposv(system, sides, lower=1, overwrite_b=1)
    if failure:
        return None
    toward, level = solution.T
    change = toward - (toward.sum() + coef.sum()) / level.sum() * level
    return np.asarray(change) if np.isfinite(change).all() else None
