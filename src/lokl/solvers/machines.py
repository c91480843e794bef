"""All SVMs of a fit, one per class or target, on the same Gram matrix; and those of its folds.

A fold leaves samples out by making them absent. So the matrix, and every stored row of it, is the
same for all folds, and the gradient that a solver keeps of all samples gives the decisions about
those left out. The SVMs of all folds are passed to the solver together, which may solve them in
threads.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from lokl._arrays import Array
from lokl.gram import GatedGram
from lokl.solvers.base import Solver
from lokl.solvers.problem import Dual, Problem

# Indices of the training samples, and of the samples that are left out.
Fold = tuple[Array, Array]
# Fraction of the support at its bounds below which costs hardly change a solution.
_FEW_BOUNDED = 0.2


@dataclass(frozen=True, eq=False)
class Solution:
    """Solutions of all SVMs of a fit.

    Attributes
    ----------
    duals : list of Dual
        One for each class or target.
    gram : GatedGram
        The matrix they were solved on, with its gates.

    See Also
    --------
    lokl.solvers.Dual : Its solution.
    lokl.solvers.Machines : Computes it.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.gram import GatedGram
    >>> from lokl.kernels import Linear
    >>> from lokl.solvers import Exact, Machines, hinge
    >>> gram = GatedGram([Linear()], np.array([[-1.0], [1.0]]))
    >>> solution = Machines(Exact(), [hinge(np.array([-1.0, 1.0]), 10.0)]).solve(gram)
    >>> solution.objective, solution.intercept
    (0.5, array([0.]))
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
        """Largest number of steps of an SVM."""
        return max(1, *(dual.n_iter for dual in self.duals))


class Machines:
    """Solves all SVMs on one Gram matrix after the other, from the last solutions.

    Parameters
    ----------
    solver : Solver
        Solves one SVM.
    problems : sequence of Problem
        One for each class or target.
    start : sequence of arrays of shape (n_samples,), optional
        Warm start of the first solve, one array for each problem.

    See Also
    --------
    lokl.solvers.Solution : What it returns.
    lokl.solvers.Problem : The problem of an SVM.
    lokl.solvers.Solver : Solves each of them.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.gram import GatedGram
    >>> from lokl.kernels import Linear
    >>> from lokl.solvers import Exact, Machines, hinge
    >>> gram = GatedGram([Linear()], np.array([[-1.0], [1.0]]))
    >>> machines = Machines(Exact(), [hinge(np.array([-1.0, 1.0]), 10.0)])
    >>> machines.solve(gram).coef
    array([[-0.5],
           [ 0.5]])
    """

    def __init__(
        self, solver: Solver, problems: Sequence[Problem], start: Sequence[Array] | None = None
    ):
        self.solver = solver
        self.problems = list(problems)
        self._finest = solver.tolerance
        self._starts: list[Array | None] = (
            [None] * len(self.problems) if start is None else [*start]
        )
        self._solved: list[Dual] = []
        # Solutions that the next solve reuses.
        self._reused: list[Dual | None] = [None] * len(self.problems)

    def warm_start(self, earlier: "Machines", *, same_matrix: bool = False) -> "Machines":
        """Start the next solve from the solutions of the same samples at other costs.

        On the same matrix, a solution that is still optimal is reused: the matrix is not needed.
        """
        solutions = (earlier._solved, earlier.problems, self.problems)
        if len({len(items) for items in solutions}) == 1:
            self._starts = [warm_start(*case) for case in zip(*solutions, strict=True)]
            if same_matrix:
                tolerance = self.solver.tolerance
                pairs = zip(earlier._solved, self.problems, strict=True)
                self._reused = [still_optimal(last, now, tolerance) for last, now in pairs]
        return self

    def refine(self, tolerance: float) -> bool:
        """Change the tolerance, but not below the solver's own; return whether it changed.

        Far from the end of an outer loop, rough solutions give nearly the same direction as exact
        ones and cost less.
        """
        tolerance = max(tolerance, self._finest)
        if self.solver.tolerance in (0.0, tolerance):
            return False
        self.solver = self.solver.with_tolerance(tolerance)
        return True

    def solve(self, gram: GatedGram) -> Solution:
        """Solve all problems."""
        solution = self.solve_below(gram, float("inf"))
        assert solution is not None
        return solution

    def solve_below(self, gram: GatedGram, ceiling: float) -> Solution | None:
        """Solve all problems; None if the sum of their objectives exceeds the ceiling."""
        known, self._reused = self._reused, [None] * len(self.problems)
        missing = [k for k, dual in enumerate(known) if dual is None]
        if missing and (ceiling == np.inf or all(p.is_squared for p in self.problems)):
            problems = [self.problems[k] for k in missing]
            starts = [self._starts[k] for k in missing]
            together = self.solver.solve_together(gram, problems, starts)
            for k, solved in zip(missing, together, strict=True):
                known[k] = solved
        duals: list[Dual] = []
        for problem, start, dual in zip(self.problems, self._starts, known, strict=True):
            duals.append(dual or self.solver.solve(gram, problem, start, ceiling))
            # Dual optima are not negative, so the remaining problems cannot lower the sum.
            ceiling -= duals[-1].objective
            if ceiling < 0:
                return None
        self._starts, self._solved = [dual.coef for dual in duals], duals
        return Solution(duals, gram)


def warm_start(last: Dual, before: Problem, now: Problem) -> Array:
    """Return coefficients to start a problem from, given the solution at other costs.

    They are scaled by the best factor between 1 and the ratio of the costs: the ratio if all
    samples are at their bounds, 1 if none is. The solver moves them into the new boxes.

    Parameters
    ----------
    last : Dual
        Solution of `before`.
    before, now : Problem
        The same problem at two costs.

    Returns
    -------
    coef : array of shape (n_samples,)
    """
    coef = last.coef
    at_bound = (coef != 0) & ((coef == before.lower) | (coef == before.upper))
    is_bounded = at_bound.sum() >= _FEW_BOUNDED * np.count_nonzero(coef)
    if not is_bounded and np.array_equal(before.ridge, now.ridge):
        return coef
    # The coefficients sum to zero, so the intercept does not matter.
    quadratic = float(coef @ last.decision) + float(now.ridge @ coef**2)
    linear = float(now.target @ coef) - now.epsilon * float(np.abs(coef).sum())
    if quadratic <= 0.0 or linear <= 0.0:
        return coef
    tiny = np.finfo(float).tiny
    ratio = max(float(now.cost.mean()), tiny) / max(float(before.cost.mean()), tiny)
    return np.asarray(coef * np.clip(linear / quadratic, min(1.0, ratio), max(1.0, ratio)))


def still_optimal(last: Dual, now: Problem, tolerance: float) -> Dual | None:
    """Return a solution as the solution at other costs on the same matrix, if it still is one.

    This is so for rising costs once no sample is at its bound.
    """
    coef = last.coef
    if not last.converged or (coef < now.lower).any() or (coef > now.upper).any():
        return None
    gradient = now.target - (last.decision - last.intercept) - now.ridge * coef
    if now.violation(coef, gradient) > tolerance:
        return None
    return now.dual(coef, gradient, 0, True)


def held_out_decisions(
    solver: Solver,
    gram: GatedGram,
    problems: Sequence[Problem],
    folds: Iterable[Fold],
    known: Solution | None = None,
) -> Array:
    """Return decisions about samples by SVMs that were not trained on them.

    Parameters
    ----------
    solver : Solver
    gram : GatedGram
        Of all samples.
    problems : sequence of Problem
        One for each class or target, of all samples. Their costs include sample weights.
    folds : iterable of (training samples, samples left out)
        Arrays of indices. A sample that is left out several times gets the mean of its decisions.
    known : Solution, optional
        Solution with all samples, used as a warm start.

    Returns
    -------
    decisions : array of shape (n_samples, n_tasks)
        0 for samples that are never left out.
    """
    solutions = held_out_solutions(solver, gram, problems, folds, known)
    decisions = ((left_out, solution.decision[left_out]) for left_out, solution in solutions)
    return mean_decisions(decisions, gram.n_samples, len(problems))


def held_out_solutions(
    solver: Solver,
    gram: GatedGram,
    problems: Sequence[Problem],
    folds: Iterable[Fold],
    known: Solution | None = None,
) -> Iterator[tuple[Array, Solution]]:
    """Yield the samples that a fold leaves out, and the solution without them.

    For callers that need more than decisions, such as the contributions of single kernels.
    Parameters as in :func:`held_out_decisions`.
    """
    folds = list(folds)
    for train, left_out in folds:
        check_fold(train, left_out)
    subsets = [problem.restrict(train) for train, _ in folds for problem in problems]
    starts = None if known is None else [dual.coef for dual in known.duals] * len(folds)
    duals = solver.solve_subsets(gram, subsets, starts)
    for i, (_, left_out) in enumerate(folds):
        yield left_out, Solution(duals[i * len(problems) : (i + 1) * len(problems)], gram)


def mean_decisions(decisions: Iterable[tuple[Array, Array]], n_samples: int, n_tasks: int) -> Array:
    """Return the mean decision about each sample, (n_samples, n_tasks), 0 without any.

    `decisions` are pairs of the samples that a fold leaves out and the decisions about them, of
    shape (n_left_out, n_tasks).
    """
    total, times = np.zeros((n_samples, n_tasks)), np.zeros((n_samples, 1))
    for left_out, decision in decisions:
        total[left_out] += decision
        times[left_out] += 1
    return total / np.maximum(times, 1)


def restrict_folds(rows: Array, folds: Iterable[Fold]) -> list[Fold]:
    """Restrict folds of all samples to some of them; folds with an empty side are dropped."""
    inside = [
        (np.flatnonzero(np.isin(rows, train)), np.flatnonzero(np.isin(rows, test)))
        for train, test in folds
    ]
    return [(train, test) for train, test in inside if len(train) and len(test)]


def check_fold(train: Array, left_out: Array) -> None:
    """Raise ValueError if a fold leaves samples out and has none to train on."""
    if len(left_out) and not len(train):
        raise ValueError(
            f"a fold leaves out {len(left_out)} samples, but none of its training samples has a "
            "positive weight; use other splits"
        )


def check_any_left(folds: Sequence[Fold]) -> None:
    """Raise ValueError if no fold leaves out a sample."""
    if not any(len(left_out) for _, left_out in folds):
        raise ValueError("no fold leaves out a sample with a positive weight; use other splits")


def folds_for(problems: Sequence[Problem], n_folds: int, seed: int) -> list[Fold]:
    """Return shuffled folds of the samples, stratified if every class is large enough.

    With fewer samples than folds, each fold leaves out one sample. A single sample has no fold.
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
