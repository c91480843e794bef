"""One machine after the other while costs rise, on a matrix that is stored as a whole."""

from dataclasses import dataclass

import numpy as np

from lokl._arrays import Array, read_only
from lokl._compiled import CompiledModule
from lokl.solvers.limits import enough_steps
from lokl.solvers.problem import Problem

_stored = CompiledModule("lokl.solvers._stored")
_raise_costs = CompiledModule("lokl.solvers._raise_costs")
_rows = CompiledModule("lokl.gram._rows")

# Samples of a working set: its small matrix stays in the caches of a core.
_WORKING_SET = 768


@dataclass(frozen=True, eq=False)
class Stop:
    """Where a path stands after a machine was solved."""

    decision: Array  # (n_samples,), of samples without cost as well
    coef: Array  # (n_samples,)
    intercept: float
    steps: int
    violation: float  # of the optimality conditions
    curvature: float  # the smallest that was met; clearly negative for indefinite kernels


class CostPath:
    """Solves problems of rising cost, each from the last solution.

    Samples without cost are left out, and still have decisions: a path of costs for each fold needs
    one matrix for all folds. Paths on the same matrix may run in threads side by side.

    Parameters
    ----------
    matrix : array of shape (n_samples, n_samples)
        ``K``; it is not changed.
    tol : float
        Violation of the optimality conditions that is left.
    working_set : int, default=768
        Samples of a working set.
    """

    def __init__(self, matrix: Array, tol: float, working_set: int = _WORKING_SET):
        self.matrix = read_only(matrix)
        self.tol = tol
        self.working_set = working_set
        self._machine: tuple[Array, Array] | None = None
        self._last: Problem | None = None

    def start(self, problem: Problem, coef: Array) -> None:
        """Stand at coefficients of a similar problem, moved into the boxes of this one."""
        coef = problem.feasible(coef)
        gradient = problem.target - problem.ridge * coef
        support = np.flatnonzero(coef)
        _rows.subtract_rows(0, len(coef), self.matrix, support, coef[support], gradient)
        self._machine, self._last = (coef, gradient), None

    def solve(self, problem: Problem, ratio: float = 0.0) -> Stop:
        """Solve a problem.

        Parameters
        ----------
        problem : Problem
        ratio : float, default=0
            Above 1 where all costs are so many times those of the last problem, and all else is the
            same; else the last solution is not used. That of :meth:`start` is.
        """
        n, box = len(problem.target), (problem.lower, problem.upper)
        before = self._last
        if self._machine is None or (before is not None and ratio <= 1.0):
            self._machine = np.zeros(n), problem.target.copy()
        elif before is not None:
            coef, gradient = self._machine
            gradient += (before.ridge - problem.ridge) * coef
            _raise_costs.raise_costs(
                self.matrix,
                self._machine,
                problem.target,
                (before.lower, before.upper),
                box,
                problem.epsilon,
                ratio,
                self.tol,
            )
        coef, gradient = self._machine
        violation, steps, curvature = _stored.solve_stored(
            self.matrix,
            self._machine,
            box,
            problem.epsilon,
            problem.ridge,
            self.tol,
            self.working_set,
            enough_steps(n, self.working_set),
        )
        self._last = problem
        if violation <= self.tol:
            intercept = problem.intercept(coef, gradient)
        else:
            intercept = problem.least_loss_intercept(coef, gradient)
        decision = problem.target - gradient - problem.ridge * coef + intercept
        return Stop(decision, coef.copy(), intercept, steps, violation, curvature)
