"""All machines of a fit: one for each class or target, on the same Gram matrix."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lokl._arrays import Array
from lokl.gram import GatedGram
from lokl.solvers.base import Solver
from lokl.solvers.problem import Dual, Problem
from lokl.solvers.restart import restart, still_optimal


@dataclass(frozen=True, eq=False)
class Solution:
    """Machines that were solved together.

    Attributes
    ----------
    duals : list of Dual
        One for each class or target.
    gram : GatedGram
        The matrix they were solved on, with its gates.
    """

    duals: list[Dual]
    gram: GatedGram

    @property
    def objective(self) -> float:
        """Sum of the dual values."""
        return float(sum(dual.objective for dual in self.duals))

    @property
    def gap(self) -> float:
        """Sum of the certified gaps: the optimum is at most this much above the objective."""
        return float(sum(dual.gap for dual in self.duals))

    @cached_property
    def coef(self) -> Array:
        """Signed coefficients, (n_samples, n_tasks)."""
        return np.column_stack([dual.coef for dual in self.duals])

    @property
    def intercept(self) -> Array:
        """Intercepts, (n_tasks,)."""
        return np.array([dual.intercept for dual in self.duals])

    @property
    def decision(self) -> Array:
        """Decision values of the training samples, (n_samples, n_tasks)."""
        return np.column_stack([dual.decision for dual in self.duals])

    @property
    def n_iter(self) -> int:
        """Most steps that a machine took."""
        return max(1, *(dual.n_iter for dual in self.duals))


class Machines:
    """Solves all machines on one Gram matrix after the other, each from the last solution.

    Parameters
    ----------
    solver : Solver
    problems : sequence of Problem
    start : sequence of arrays, optional
        Coefficients that the first solve starts from, one array for each problem.
    """

    def __init__(
        self, solver: Solver, problems: Sequence[Problem], start: Sequence[Array] | None = None
    ):
        self.solver = solver
        self.problems = list(problems)
        self._finest = solver.tolerance
        self._last: list[Array | None] = [None] * len(self.problems) if start is None else [*start]
        self._solved: list[Dual] = []
        # Answers of the first solve that are known before it.
        self._known: list[Dual | None] = [None] * len(self.problems)

    def resume(self, earlier: "Machines", *, same_matrix: bool = False) -> "Machines":
        """Start the first solve where machines of the same samples at other costs have ended.

        Where it will be on the same matrix, an answer that the costs leave as good as it was is
        kept: nothing of the matrix is asked for.
        """
        ended = (earlier._solved, earlier.problems, self.problems)
        if len({len(part) for part in ended}) == 1:
            self._last = [restart(*own) for own in zip(*ended, strict=True)]
            if same_matrix:
                tolerance = self.solver.tolerance
                pairs = zip(earlier._solved, self.problems, strict=True)
                self._known = [still_optimal(last, now, tolerance) for last, now in pairs]
        return self

    def refine(self, tolerance: float) -> bool:
        """Leave this violation from now on, but no less than the solver was made for.

        Far from the end of an outer loop, rough machines point the same way as exact ones and cost
        less. Returns whether machines will now be solved to another tolerance than before.
        """
        tolerance = max(tolerance, self._finest)
        if self.solver.tolerance in (0.0, tolerance):
            return False
        self.solver = self.solver.with_tolerance(tolerance)
        return True

    def solve(self, gram: GatedGram) -> Solution:
        """Solve all machines."""
        solution = self.solve_below(gram, float("inf"))
        assert solution is not None
        return solution

    def solve_below(self, gram: GatedGram, ceiling: float) -> Solution | None:
        """Solve all machines, or give up once their objective is above the ceiling."""
        duals: list[Dual] = []
        known, self._known = self._known, [None] * len(self.problems)
        for problem, start, answer in zip(self.problems, self._last, known, strict=True):
            duals.append(answer or self.solver.solve(gram, problem, start, ceiling))
            # No dual optimum is below zero, so the machines still to come cannot bring it down.
            ceiling -= duals[-1].objective
            if ceiling < 0:
                return None
        self._last, self._solved = [dual.coef for dual in duals], duals
        return Solution(duals, gram)
