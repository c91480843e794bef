"""Problems from which samples are absent, on one stored matrix, side by side in threads.

The machine of all samples is near: most of its support is that of a part as well. So a part starts
from its coefficients, in working sets that are little larger than its support. Each solve is one
compiled call, which threads make at the same time.
"""

from collections.abc import Sequence

import numpy as np

from lokl._arrays import Array
from lokl._threads import in_parallel
from lokl.solvers.cost_path import CostPath
from lokl.solvers.problem import Dual, Problem

# Samples of a working set for each sample of the support; at least, and at most.
_ROOM, _FEWEST, _MOST = 1.25, 192, 768


def solve_on_stored(
    matrix: Array, problems: Sequence[Problem], starts: Sequence[Array] | None, tol: float
) -> list[Dual | None]:
    """Solve problems; None stands for those that need another solver.

    Parameters
    ----------
    matrix : array of shape (n_samples, n_samples)
    problems : sequence of Problem
    starts : sequence of arrays or None
        Coefficients to start from, one array for each problem.
    tol : float
        Violation of the optimality conditions that is left.
    """
    solved: list[Dual | None] = [None] * len(problems)

    def some(begin: int, end: int) -> None:
        for place in range(begin, end):
            start = None if starts is None else starts[place]
            solved[place] = _solve(matrix, problems[place], start, tol)

    in_parallel(some, len(problems), 1)
    return solved


def _solve(matrix: Array, problem: Problem, start: Array | None, tol: float) -> Dual | None:
    size = _MOST
    if start is not None:
        size = int(np.clip(_ROOM * np.count_nonzero(start), _FEWEST, _MOST))
    path = CostPath(matrix, tol, size)
    if start is not None:
        path.start(problem, start)
    stop = path.solve_if_sound(problem)
    if stop is None:
        return None
    gradient = problem.target - stop.decision + stop.intercept - problem.ridge * stop.coef
    return problem.dual(stop.coef, gradient, stop.steps, True, stop.intercept)
