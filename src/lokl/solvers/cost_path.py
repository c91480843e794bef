"""Where to start a machine whose last solve was at another cost.

One machine after the other while costs rise, on one matrix.

Problems from which samples are absent, on one stored matrix, side by side in threads.

The machine of all samples is near: most of its support is that of a part as well. So a part starts
from its coefficients, in working sets that are little larger than its support. Each solve is one
compiled call, which threads make at the same time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from lokl._arrays import Array, read_only
from lokl._compiled import CompiledModule
from lokl._threads import limit_blas_for, run_chunked
from lokl._warnings import warn_once
from lokl.gram import GatedGram
from lokl.solvers.base import Solver, enough_steps, is_indefinite, tell_of_indefinite_kernels
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
    converged: bool


class Path(Protocol):
    """Solves problems of rising cost, each from the last solution."""

    def solve(self, problem: Problem, ratio: float = 0.0) -> Stop:
        """Solve a problem, and warn of what keeps its solution from being the optimum.

        Parameters
        ----------
        problem : Problem
        ratio : float, default=0
            Above 1 where all costs are so many times those of the last problem, and all else is the
            same; else the last solution is not used. One that a path was told to start from is.
        """


class CostPath(Path):
    """A path on a matrix that is stored as a whole.

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

    @cached_property
    def _scale(self) -> float:
        return float(np.abs(self.matrix.diagonal()).max(initial=0.0))

    def start(self, problem: Problem, coef: Array) -> None:
        """Stand at coefficients of a similar problem, moved into the boxes of this one."""
        coef = problem.feasible(coef)
        gradient = problem.target - problem.ridge * coef
        support = np.flatnonzero(coef)
        _rows.subtract_rows(0, len(coef), self.matrix, support, coef[support], gradient)
        self._machine, self._last = (coef, gradient), None

    def solve(self, problem: Problem, ratio: float = 0.0) -> Stop:
        stop, violation, curvature = self._advance(problem, ratio)
        if self._shows_indefinite(curvature):
            tell_of_indefinite_kernels()
        if not stop.converged:
            warn_once(
                "unconverged",
                f"the solver stopped after {stop.steps} steps with a violation of "
                f"{violation:.3g} > {self.tol:.3g}; scale the data or the kernels, or search "
                "smaller costs",
                ConvergenceWarning,
            )
        return stop

    def solve_if_sound(self, problem: Problem) -> Stop | None:
        """Solve a problem; None, without a warning, where another solver should try."""
        stop, _, curvature = self._advance(problem, 0.0)
        return stop if stop.converged and not self._shows_indefinite(curvature) else None

    def _advance(self, problem: Problem, ratio: float) -> tuple[Stop, float, float]:
        """Solve a problem; tell the violation that is left and the least curvature met, too."""
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
        start = coef.copy()
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
        coef = problem.settled(coef, start, self._scale, self.tol)
        converged = violation <= self.tol
        if converged:
            intercept = problem.intercept(coef, gradient)
        else:
            intercept = problem.least_loss_intercept(coef, gradient)
        decision = problem.target - gradient - problem.ridge * coef + intercept
        stop = Stop(decision, coef, intercept, steps, converged)
        return stop, violation, curvature

    def _shows_indefinite(self, curvature: float) -> bool:
        if curvature >= 0.0:
            return False
        return is_indefinite(curvature, self._scale, self.matrix.dtype == np.float32)


class RowPath(Path):
    """A path on a matrix of which memory holds some rows.

    Paths on the same matrix share these rows, and hence take turns: they must not run side by side.

    Parameters
    ----------
    gram : GatedGram
    solver : Solver
    """

    def __init__(self, gram: GatedGram, solver: Solver):
        self.gram = gram
        self.solver = solver
        self._last: tuple[Dual, Problem] | None = None

    def solve(self, problem: Problem, ratio: float = 0.0) -> Stop:
        start = None if self._last is None or ratio <= 1.0 else restart(*self._last, problem)
        with limit_blas_for(self.gram.n_samples):
            dual = self.solver.solve(self.gram, problem, start)
        self._last = dual, problem
        return Stop(dual.decision, dual.coef, dual.intercept, dual.n_iter, dual.converged)


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

    run_chunked(some, len(problems), 1)
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
