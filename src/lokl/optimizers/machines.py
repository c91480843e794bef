"""The machines of all classes or targets on one Gram matrix whose gates move."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from lokl._arrays import Array
from lokl.gram import GatedGram
from lokl.solvers import Dual, Problem, Solver


@dataclass(frozen=True, eq=False)
class Solution:
    """All machines at one setting of the gates.

    Attributes
    ----------
    duals : list of Dual
        One for each class or target.
    gates : array
        Gate values they were solved under.
    """

    duals: list[Dual]
    gates: Array

    @property
    def objective(self) -> float:
        """Sum of the dual values."""
        return float(sum(dual.objective for dual in self.duals))

    @property
    def gap(self) -> float:
        """Sum of the certified gaps: the optimum is at most this much above the objective."""
        return float(sum(dual.gap for dual in self.duals))

    @property
    def coef(self) -> Array:
        """Signed coefficients, (n_samples, n_tasks)."""
        return np.column_stack([dual.coef for dual in self.duals])


class Machines:
    """Solves all machines again when the gates have moved, starting from the last solution.

    Parameters
    ----------
    gram : GatedGram
    solver : Solver
    problems : sequence of Problem
    """

    def __init__(self, gram: GatedGram, solver: Solver, problems: Sequence[Problem]):
        self.gram = gram
        self.solver = solver
        self._wanted = float(solver.get_params().get("tol", 0.0))
        self.problems = list(problems)
        self._last: list[Array | None] = [None] * len(self.problems)

    def demand(self, tol: float) -> bool:
        """Solve to this violation from now on, never finer than was asked; whether that is new.

        Far from the end of an outer loop, rough machines show the way as well.
        """
        tol = max(tol, self._wanted)
        if "tol" not in self.solver.get_params() or self.solver.tol == tol:
            return False
        self.solver = clone(self.solver).set_params(tol=tol)
        return True

    def start(self, coefs: Sequence[Array]) -> None:
        """Let the next solve start from these coefficients, one array for each problem."""
        self._last = list(coefs)

    def solve(self, gates: Array) -> Solution:
        """Solve under other gate values."""
        solution = self.solve_below(gates, float("inf"))
        assert solution is not None
        return solution

    def solve_below(self, gates: Array, ceiling: float) -> Solution | None:
        """Solve under other gate values, or give up once the objective is above the ceiling."""
        self.gram.move_gates(gates)
        duals: list[Dual] = []
        for problem, start in zip(self.problems, self._last, strict=True):
            duals.append(self.solver.solve(self.gram, problem, start, ceiling))
            # No dual optimum is below zero: what is left for the others only shrinks.
            ceiling -= duals[-1].objective
            if ceiling < 0:
                return None
        self._last = [dual.coef for dual in duals]
        return Solution(duals, gates)
