"""Descent along the normalised gradient, with steps that double and halve."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl.optimizers.objective import Evaluation, Objective, Step

# A fall of the objective by less than this share of it counts as none. Gates that are full or
# none move no further, and such falls would lead to ever longer steps.
_NOISE = 1e-6


def line_search(objective: Objective[Any], tol: float = 1e-3) -> Iterator[Step]:
    """Yield points of strictly falling objective.

    The first search starts with a step of length one, later ones with the length that was last
    good; while the objective falls the step is doubled, else it is halved. Every trial solves the
    machines, so few trials matter more than a good direction.

    Parameters
    ----------
    objective : Objective
    tol : float, default=1e-3
        Relative fall of the objective, and length of a step, that end the search.
    """
    current, length = objective.evaluate(objective.start()), 1.0
    yield current.step()
    while True:
        gradient = current.gradient()
        norm = float(np.linalg.norm(gradient))
        # A slope that promises no more than noise has no direction.
        if not norm * max(length, 1.0) > _NOISE * abs(current.objective):
            return
        best, length = _search(objective, current, gradient / norm, length, tol)
        if best is None:
            return
        fall = current.objective - best.objective
        current = best
        yield current.step()
        if fall <= tol * abs(current.objective + fall):
            return


def _search(
    objective: Objective[Any], current: Evaluation, direction: Array, length: float, tol: float
) -> tuple[Evaluation | None, float]:
    """Best point along a direction and its distance, None where none is better for certain."""

    def better(length: float, than: Evaluation) -> Evaluation | None:
        params = objective.project(current.params - length * direction)
        found = objective.at(params, than.objective)
        return found if found is not None and _is_better(found, than) else None

    best = better(length, current)
    if best is not None:
        while (longer := better(2.0 * length, best)) is not None:
            best, length = longer, 2.0 * length
        return best, length
    while best is None and length >= tol:
        length *= 0.5
        best = better(length, current)
    return best, length


def _is_better(new: Evaluation, old: Evaluation) -> bool:
    """Whether the objective fell by more than the solver left open and rounding can explain."""
    return new.objective + new.slack < old.objective - _NOISE * abs(old.objective)
