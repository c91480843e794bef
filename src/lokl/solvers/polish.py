"""From an approximate optimum to the exact one, where the problem is small.

At the optimum, the free coefficients (neither zero nor at a bound) satisfy a linear system. Once
the solver has found which they are, solving it gives the optimum to machine precision: the answer
no longer depends on the order of rows, on repeated rows or on the path.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from lokl._arrays import Array
from lokl.solvers.problem import Problem

_LARGEST = 200
_ROUNDS = 20
# By the bytes of a number, in units of the largest diagonal entry.
_RIDGES = {8: 1e-11, 4: 1e-7}


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
    best = None
    for u, slope, is_whole in _strides(matrix, problem, coef, gradient):
        if is_whole:
            up, down = problem.violations(u, slope)
            violation = float(up.max() - down.min())
            if best is not None and violation > 0.5 * best.violation:
                break
            best = Optimum(u, slope, violation)
            if violation <= exact:
                break
    return best


def climb(
    matrix: Array, problem: Problem, coef: Array, gradient: Array
) -> tuple[Array, Array] | None:
    """Go to the best values of the free coefficients, or to where too many have met a bound.

    The objective rises on the way. Pair moves need many steps where a few coefficients are free and
    their matrix is nearly singular, as under a linear kernel of large cost; there, this needs few.
    Returns coefficients and gradient; None where it does not apply.
    """
    found = None
    for u, slope, is_whole in _strides(matrix, problem, coef, gradient):
        found = u, slope
        if is_whole:
            break
    return found


# Coefficients and gradient, and whether no bound was met on the way to them.
Stride = tuple[Array, Array, bool]


def _strides(matrix: Array, problem: Problem, coef: Array, gradient: Array) -> Iterator[Stride]:
    """Yield step after step of the free coefficients, as long as one applies."""
    # Coefficients keep their sign where the slope jumps at zero.
    lower = np.where((coef > 0) & (problem.epsilon > 0), 0.0, problem.lower)
    upper = np.where((coef < 0) & (problem.epsilon > 0), 0.0, problem.upper)
    for _ in range(_ROUNDS):
        stride = _stride(matrix, problem, coef, gradient, lower, upper)
        if stride is None:
            return
        yield stride
        coef, gradient, _ = stride


def _stride(
    matrix: Array, problem: Problem, coef: Array, gradient: Array, lower: Array, upper: Array
) -> Stride | None:
    """Newton's step of the free coefficients up to the nearest bound, and whether it was whole."""
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
    moved = coef[free] + step * change
    if step < 1.0:
        # The nearest bound is hit: these coefficients are not free after all.
        blocked = reach <= step
        moved[blocked] = np.where(change > 0, upper[free], lower[free])[blocked]
    gradient = gradient - (moved - coef[free]) @ matrix[free]
    coef = coef.copy()
    coef[free] = moved
    return coef, gradient, step == 1.0


def _newton(
    matrix: Array, problem: Problem, coef: Array, gradient: Array, free: Array
) -> Array | None:
    """Change of the free coefficients towards equality in their optimality conditions.

    With ``s`` the slopes of the objective: ``K d + b 1 = s`` and ``1'd = 0`` restores the balance.
    Repeated rows make the matrix singular; a tiny ridge leaves the split between them symmetric,
    and repetition removes its effect on everything else.
    """
    ridge = _RIDGES[matrix.dtype.itemsize]
    system = matrix[free[:, np.newaxis], free].astype(np.float64, copy=False)
    system.flat[:: len(free) + 1] += ridge * system.diagonal().max()
    sides = np.ones((len(free), 2), order="F")
    sides[:, 0] = gradient[free] - problem.epsilon * np.sign(coef[free])
    # LAPACK is called directly: the checks of scipy.linalg.solve cost more than so small a system.
    _, solution, failure = lapack.dposv(system, sides, lower=1, overwrite_b=1)
    if failure:
        return None
    toward, level = solution.T
    change = toward - (toward.sum() + coef.sum()) / level.sum() * level
    return np.asarray(change) if np.isfinite(change).all() else None
