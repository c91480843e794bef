"""Regularisation paths: the same problem at rising costs, each solved from the last solution.

:class:`StoredCostPath` solves on a matrix that is stored as a whole; :class:`RowCostPath` solves on
rows, by any solver.
"""

from typing import Protocol

from lokl._arrays import Array, read_only
from lokl._compiled import CompiledModule
from lokl._threads import limit_blas_for
from lokl.gram import GatedGram
from lokl.solvers.base import Solver, warn_indefinite, warn_unconverged
from lokl.solvers.exact import STORED_SET, BlockSolver
from lokl.solvers.machines import warm_start
from lokl.solvers.problem import Dual, Problem
from lokl.solvers.squared import solve_squared

_smo = CompiledModule("lokl.solvers._smo")


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
    """

    def __init__(self, matrix: Array, tol: float):
        self.matrix = read_only(matrix)
        self.tol = tol
        # The last problem, and coefficients and gradient of its solution.
        self._last: tuple[Problem, tuple[Array, Array]] | None = None

    def solve(self, problem: Problem, ratio: float = 0.0) -> Dual:
        if problem.is_squared:
            # One system for each cost: there is nothing to start from.
            return solve_squared(self.matrix, [problem], self.tol)[0]
        blocks = BlockSolver(self.matrix, problem, STORED_SET, self.tol)
        if self._last is not None and ratio > 1.0:
            before, (coef, gradient) = self._last
            gradient += (before.ridge - problem.ridge) * coef
            state = coef, gradient
            boxes = before.box, problem.box
            target = read_only(problem.target)
            _smo.raise_costs(self.matrix, state, target, *boxes, ratio, self.tol)
            blocks.start_from(*state)
        violation = blocks.run()
        self._last = problem, blocks.state
        blocks.snap()
        if blocks.is_indefinite:
            warn_indefinite()
        if violation > self.tol:
            left = f"violation of {violation:.3g} > tol = {self.tol:.3g}"
            remedy = "scale the data or the kernels, or search smaller costs"
            warn_unconverged(f"{blocks.steps} steps", left, remedy)
        return problem.dual(*blocks.state, blocks.steps, violation <= self.tol)


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
