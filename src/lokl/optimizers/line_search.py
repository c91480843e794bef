"""Descent along the normalised gradient, with steps that double and halve."""

from collections.abc import Callable, Iterator

import numpy as np

from lokl._arrays import Array
from lokl.optimizers.steps import Evaluation, Step

# Relative to the objective; gates that are full or none move no further, and falls smaller than
# this would decide about ever longer steps.
_NOISE = 1e-6


def line_search(
    evaluate: Callable[[Array], Evaluation],
    start: Array,
    project: Callable[[Array], Array],
    tol: float = 1e-3,
) -> Iterator[Step]:
    """Yield points of strictly falling objective.

    The first search starts with a step of length one, later ones with the length that was last
    good; while the objective falls the step is doubled, else it is halved. Every trial solves the
    machines, so few trials matter more than a good direction.

    Parameters
    ----------
    evaluate : callable
        Objective and gradient at parameters.
    start : array
        First parameters.
    project : callable
        Nearest allowed parameters.
    tol : float, default=1e-3
        Relative fall of the objective, and length of a step, that end the search.
    """
    current, length = evaluate(start), 1.0
    yield current.step()
    while True:
        gradient = current.gradient()
        norm = float(np.linalg.norm(gradient))
        # A slope that promises no more than noise has no direction.
        if not norm * max(length, 1.0) > _NOISE * abs(current.objective):
            return
        best, length = _search(evaluate, current, gradient / norm, length, project, tol)
        if best is None:
            return
        fall = current.objective - best.objective
        current = best
        yield current.step()
        if fall <= tol * abs(current.objective + fall):
            return


def _search(
    evaluate: Callable[[Array], Evaluation],
    current: Evaluation,
    direction: Array,
    length: float,
    project: Callable[[Array], Array],
    tol: float,
) -> tuple[Evaluation | None, float]:
    """Best point along a direction and its distance, None where none is better for certain."""

    def trial(length: float) -> Evaluation:
        return evaluate(project(current.params - length * direction))

    best = trial(length)
    if _is_better(best, current):
        while True:
            longer = trial(2.0 * length)
            if not _is_better(longer, best):
                return best, length
            best, length = longer, 2.0 * length
    while length >= tol:
        length *= 0.5
        best = trial(length)
        if _is_better(best, current):
            return best, length
    return None, length


def _is_better(new: Evaluation, old: Evaluation) -> bool:
    """Whether the objective fell by more than the solver left open and rounding can explain."""
    return new.objective + new.slack < old.objective - _NOISE * abs(old.objective)
