"""Regularisation paths: the same problem at rising costs, each solved from the last solution.

- :class:`StoredCostPath` solves on a matrix that is stored as a whole, each problem in one compiled
  call; :class:`RowCostPath` solves on rows, by any solver.
- :func:`solve_on_stored` solves problems that leave out different samples of one stored matrix, in
  threads. The solution with all samples is close, because most of its support stays. So each
  problem starts from it, with working sets little larger than its support.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from lokl._arrays import Array, read_only
from lokl._compiled import CompiledModule
from lokl._threads import limit_blas_for, run_chunked
from lokl._warnings import warn_once
from lokl.gram import GatedGram
from lokl.solvers.base import Solver, default_step_limit, is_indefinite, warn_indefinite
from lokl.solvers.machines import warm_start
from lokl.solvers.problem import Dual, Problem

_stored = CompiledModule("lokl.solvers._stored")
_rows = CompiledModule("lokl.gram._rows")

# Samples of a working set on a stored matrix: its block stays in the caches of a core.
_WORKING_SET = 768
# Samples of a working set relative to the support of a warm start, and the fewest.
_SET_PER_SUPPORT, _SMALLEST_SET = 1.25, 192


class CostPath(Protocol):
    """Solves problems of rising cost, each from the last solution."""

    def solve(self, problem: Problem, ratio: float = 0.0) -> Dual:
        """Solve a problem, and warn if the solution is not the optimum.

        Parameters
        ----------
        problem : Problem
        ratio : float, default=0
            Above 1 if all costs are this many times the last problem's and all else is equal.
            Otherwise the last solution is not used.
        """


class StoredCostPath(CostPath):
    """A cost path on a matrix that is stored as a whole.

    Absent samples still get decisions, so one matrix serves the paths of all folds. Paths on the
    same matrix may run in threads at the same time.

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
        # Coefficients and gradient of the last solution or of a warm start.
        self._state: tuple[Array, Array] | None = None
        self._last: Problem | None = None

    @cached_property
    def _scale(self) -> float:
        return float(np.abs(self.matrix.diagonal()).max(initial=0.0))

    def start_from(self, coef: Array, problem: Problem) -> None:
        """Start the next solve from coefficients of a similar problem, of shape (n_samples,)."""
        coef = problem.feasible(coef)
        gradient = problem.target - problem.ridge * coef
        support = np.flatnonzero(coef)
        _rows.subtract_rows(0, len(coef), self.matrix, support, coef[support], gradient)
        self._state, self._last = (coef, gradient), None

    def solve(self, problem: Problem, ratio: float = 0.0) -> Dual:
        dual, violation, curvature = self._advance(problem, ratio)
        if self._shows_indefinite(curvature):
            warn_indefinite()
        if not dual.converged:
            warn_once(
                "unconverged",
                f"the solver stopped after {dual.n_iter} steps with a violation of "
                f"{violation:.3g} > {self.tol:.3g}; scale the data or the kernels, or search "
                "smaller costs",
                ConvergenceWarning,
            )
        return dual

    def solve_if_convex(self, problem: Problem) -> Dual | None:
        """Solve a problem; None, without a warning, if another solver should try."""
        dual, _, curvature = self._advance(problem, 0.0)
        return dual if dual.converged and not self._shows_indefinite(curvature) else None

    def _advance(self, problem: Problem, ratio: float) -> tuple[Dual, float, float]:
        """Solve a problem; return its solution, the violation and the smallest curvature."""
        box, before = (problem.lower, problem.upper), self._last
        if self._state is None or (before is not None and ratio <= 1.0):
            self._state = np.zeros(len(problem.target)), problem.target.copy()
        elif before is not None:
            coef, gradient = self._state
            gradient += (before.ridge - problem.ridge) * coef
            _stored.raise_costs(
                self.matrix,
                self._state,
                problem.target,
                (before.lower, before.upper),
                box,
                problem.epsilon,
                ratio,
                self.tol,
            )
        coef, gradient = self._state
        start = coef.copy()
        violation, steps, curvature = _stored.solve_stored(
            self.matrix,
            self._state,
            box,
            problem.epsilon,
            problem.ridge,
            self.tol,
            self.working_set,
            default_step_limit(len(coef), self.working_set),
        )
        self._last = problem
        coef = problem.snap(coef, start, self._scale, self.tol)
        dual = problem.dual(coef, gradient, steps, bool(violation <= self.tol))
        return dual, violation, curvature

    def _shows_indefinite(self, curvature: float) -> bool:
        if curvature >= 0.0:
            return False
        return is_indefinite(curvature, self._scale, self.matrix.dtype == np.float32)


class RowCostPath(CostPath):
    """A cost path on a matrix of which only some rows are stored.

    Paths on the same matrix share these rows and must not run at the same time.

    Parameters
    ----------
    gram : GatedGram
    solver : Solver
    """

    def __init__(self, gram: GatedGram, solver: Solver):
        self.gram = gram
        self.solver = solver
        self._last: tuple[Dual, Problem] | None = None

    def solve(self, problem: Problem, ratio: float = 0.0) -> Dual:
        start = None if self._last is None or ratio <= 1.0 else warm_start(*self._last, problem)
        with limit_blas_for(self.gram.n_samples):
            dual = self.solver.solve(self.gram, problem, start)
        self._last = dual, problem
        return dual


def solve_on_stored(
    matrix: Array, problems: Sequence[Problem], starts: Sequence[Array] | None, tol: float
) -> list[Dual | None]:
    """Solve problems in threads; None stands for those that need another solver.

    Parameters
    ----------
    matrix : array of shape (n_samples, n_samples)
    problems : sequence of Problem
    starts : sequence of arrays of shape (n_samples,), or None
        Warm start of each problem.
    tol : float
        Violation of the optimality conditions that is left.
    """
    duals: list[Dual | None] = [None] * len(problems)

    def solve_range(begin: int, end: int) -> None:
        for i in range(begin, end):
            path = StoredCostPath(matrix, tol)
            if starts is not None:
                wanted = _SET_PER_SUPPORT * np.count_nonzero(starts[i])
                path.working_set = int(np.clip(wanted, _SMALLEST_SET, _WORKING_SET))
                path.start_from(starts[i], problems[i])
            duals[i] = path.solve_if_convex(problems[i])

    run_chunked(solve_range, len(problems), 1)
    return duals
