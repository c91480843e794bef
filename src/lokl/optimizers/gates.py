"""The optimal dual value as a function of a gate's parameters.

Descent along the normalised gradient, with steps that double and halve.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl.gates.base import SettledGate
from lokl.gram import GatedGram
from lokl.optimizers.objective import Evaluation, Objective, Step
from lokl.solvers import Machines


@dataclass(frozen=True, eq=False)
class GateObjective(Objective[Evaluation]):
    """``J(V) + ridge / 2 |V|^2``: machines under the gates that parameters ``V`` give."""

    machines: Machines
    gram: GatedGram  # the kernels on the training samples, under any gates
    gate: SettledGate
    first: Array  # parameters to start from
    nearest: Callable[[Array], Array]  # projects parameters onto those that are allowed
    ridge: float = 0.0

    def start(self) -> Array:
        return self.first

    def project(self, params: Array) -> Array:
        return self.nearest(params)

    def at(self, params: Array, ceiling: float = float("inf")) -> Evaluation | None:
        H = self.gate.values(params)
        penalty = 0.5 * self.ridge * float((params**2).sum())
        solution = self.machines.solve_below(self.gram.regated(H), ceiling - penalty)
        if solution is None:
            return None

        def gradient() -> Array:
            slopes = solution.gram.gate_gradient(solution.coef)[:, :, 0]
            return self.gate.pullback(params, H, slopes) + self.ridge * params

        return Evaluation(params, solution.objective + penalty, solution.gap, gradient, solution)


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
