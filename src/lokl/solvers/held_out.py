"""Decisions about every sample by machines that have not seen it, on one Gram matrix.

A fold leaves samples out by giving them no cost: the matrix, and every stored row of it, stays the
same for all folds, and the gradient that a solver keeps of all samples holds the decisions about
those it left out. Machines of all folds are handed to the solver together, which may solve them
side by side.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from lokl._arrays import Array
from lokl.gram import GatedGram
from lokl.solvers.base import Solver
from lokl.solvers.machines import Solution
from lokl.solvers.problem import Problem

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
