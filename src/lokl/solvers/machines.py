"""All machines of a fit: one for each class or target, on the same Gram matrix.

Decisions about every sample by machines that have not seen it, on one Gram matrix.

A fold leaves samples out by giving them no cost: the matrix, and every stored row of it, stays the
same for all folds, and the gradient that a solver keeps of all samples holds the decisions about
those it left out. Machines of all folds are handed to the solver together, which may solve them
side by side.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from lokl._arrays import Array
from lokl.gram import GatedGram
from lokl.solvers.base import Solver
from lokl.solvers.cost_path import restart, still_optimal
from lokl.solvers.problem import Dual, Problem


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


# Numbers of the samples that are learned from, and of those that are left out.
Fold = tuple[Array, Array]


def held_out_decisions(
    solver: Solver,
    gram: GatedGram,
    problems: Sequence[Problem],
    folds: Iterable[Fold],
    known: Solution | None = None,
) -> Array:
    """Decisions about samples that were left out.

    Parameters
    ----------
    solver : Solver
    gram : GatedGram
        Of all samples.
    problems : sequence of Problem
        One for each class or target, of all samples. Weights and groups are the caller's: weights
        are in the costs, and folds keep groups together.
    folds : iterable of (learned from, left out)
        Numbers of samples. A sample that is left out several times gets the mean of its decisions.
    known : Solution, optional
        The machines of all samples, from which others may start.

    Returns
    -------
    decisions : array of shape (n_samples, n_tasks)
        0 for samples that are never left out.
    """
    machines = held_out_machines(solver, gram, problems, folds, known)
    told = ((left, solution.decision[left]) for left, solution in machines)
    return mean_decisions(told, gram.n_samples, len(problems))


def mean_decisions(told: Iterable[tuple[Array, Array]], n_samples: int, n_tasks: int) -> Array:
    """Gather what folds tell about the samples that they leave out, (n_samples, n_tasks)."""
    total, times = np.zeros((n_samples, n_tasks)), np.zeros((n_samples, 1))
    for left, decision in told:
        total[left] += decision
        times[left] += 1
    return total / np.maximum(times, 1)


def check_fold(kept: Array, left: Array) -> None:
    """Raise where a fold leaves samples out and has none to learn from."""
    if len(left) and not len(kept):
        raise ValueError(
            f"a fold leaves out {len(left)} samples and learns from none that has a weight; give "
            "other splits"
        )


def check_any_left(folds: Sequence[Fold]) -> None:
    """Raise where nothing is left out that could be decided on."""
    if not any(len(left) for _, left in folds):
        raise ValueError("no fold leaves out a sample that has a weight; give other splits")


def folds_for(problems: Sequence[Problem], n_folds: int, seed: int) -> list[Fold]:
    """Divide the samples of some problems evenly, and classes too where they are large enough.

    Fewer samples than folds are left out one by one; of a single sample nothing is left to learn
    from, and there is no fold.
    """
    target = np.column_stack([problem.target for problem in problems])
    n, codes, kind = len(target), np.zeros(len(target)), KFold
    count = min(n_folds, n)
    if count < 2:
        return []
    if problems[0].is_classification:
        codes = target[:, 0] if target.shape[1] == 1 else target.argmax(axis=1)
        if np.unique(codes, return_counts=True)[1].min() >= count:
            kind = StratifiedKFold
    return list(kind(count, shuffle=True, random_state=seed).split(np.zeros((n, 1)), codes))


def held_out_machines(
    solver: Solver,
    gram: GatedGram,
    problems: Sequence[Problem],
    folds: Iterable[Fold],
    known: Solution | None = None,
) -> Iterator[tuple[Array, Solution]]:
    """Yield the samples that a fold leaves out, and all machines that have not seen them.

    For those who ask more of these machines than their decisions, such as the parts of single
    kernels; arguments as in :func:`held_out_decisions`.
    """
    folds = list(folds)
    for kept, left in folds:
        check_fold(kept, left)
    parts = [problem.only(kept) for kept, _ in folds for problem in problems]
    starts = None if known is None else [dual.coef for dual in known.duals] * len(folds)
    duals = solver.solve_parts(gram, parts, starts)
    for number, (_, left) in enumerate(folds):
        own = slice(number * len(problems), (number + 1) * len(problems))
        yield left, Solution(duals[own], gram)
