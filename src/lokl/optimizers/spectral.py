"""Spectral projected gradient with a non-monotone line search."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl.optimizers.objective import Evaluation, Objective, Step

# The objective must fall by this share of what the slope promises.
_SUFFICIENT = 1e-4
_SHORTEST, _LONGEST = 1e-6, 1e6
_TINIEST_STEP = 1e-8
# Earlier objectives always count a little in the value that a step must stay below.
_LEAST_MEMORY = 0.1
# So many steps without a fall worth mentioning end the search.
_PATIENCE = 5
# A fall by less than this share of the objective is none, where a certificate decides.
_NOISE = 1e-9
# Violations that machines may leave: at first, and as a share of the distance from the optimum.
_ROUGH, _SHARE = 0.1, 0.1


def spectral(objective: Objective[Any], tol: float = 1e-3) -> Iterator[Step]:
    """Yield accepted points; few evaluations, the objective may rise for a step.

    Parameters
    ----------
    objective : Objective
    tol : float, default=1e-3
        What ends the search, relative to the objective: the certified gap where there is one, else
        the largest entry of the projected gradient, or the fall of the objective in five steps.
    """
    search = _Search(objective, tol)
    while True:
        search.look()
        yield search.current.step(search.gap)
        if search.refine():
            continue
        if search.done:
            return
        if (search.stalled and not search.return_to_best()) or not search.advance():
            break
    if search.best is not search.current:
        yield search.best.step(objective.gap(search.best))


class _Search:
    """Where the search is, how it got there, and how far it may rise."""

    def __init__(self, objective: Objective[Any], tol: float):
        self.objective = objective
        self.tol = tol
        self.precision = _ROUGH
        objective.refine(self.precision)
        self._begin(objective.evaluate(objective.start()))
        # Lengths of steps are meant for objectives of order one.
        self.unit = max(abs(self.current.objective), np.finfo(float).tiny)
        self.length = _first_length(self.gradient)

    def _begin(self, evaluation: Evaluation) -> None:
        """Start anew from a point: what came before no longer compares."""
        self.current = self.best = evaluation
        self.gradient = evaluation.gradient()
        self.memory, self.weight, self.reference = 1.0, 1.0, evaluation.objective
        self.lowest = [evaluation.objective]

    def look(self) -> None:
        """Find out how far the optimum may be, and whether the search has come to an end."""
        current, lowest = self.current, self.lowest
        if current.objective < self.best.objective:
            self.best = current
        lowest.append(min(lowest[-1], current.objective))
        fall = lowest[max(len(lowest) - 1 - _PATIENCE, 0)] - lowest[-1]
        self.gap = self.objective.gap(current)
        if self.objective.is_certified:
            self.distance = (self.gap + current.slack) / max(
                abs(current.objective), np.finfo(float).tiny
            )
            self.done = self.distance <= self.tol
            noise = _NOISE
        else:
            projected = self.objective.project(current.params - self.gradient / self.unit)
            self.distance = float(np.abs(projected - current.params).max())
            self.done = self.distance < self.tol
            noise = self.tol
        self.stalled = len(lowest) > _PATIENCE and fall <= noise * abs(lowest[-1])

    def refine(self) -> bool:
        """Ask for finer machines where they are due; whether the point was evaluated again."""
        needed = 0.0 if self.done or self.stalled else _SHARE * self.distance
        if needed >= self.precision:
            return False
        self.precision = 10.0 ** np.floor(np.log10(needed)) if needed > 0 else 0.0
        if not self.objective.refine(self.precision):
            return False
        self._begin(self.objective.evaluate(self.current.params))
        return True

    def return_to_best(self) -> bool:
        """Go back to the best point and allow no rise from there; False where that was tried.

        A search that may rise for a step can wander off for many.
        """
        best = self.best
        if self.reference <= best.objective + max(self.tol, _NOISE) * abs(best.objective):
            return False
        self._begin(best)
        self.memory = _LEAST_MEMORY
        self.length = _first_length(self.gradient)
        return True

    def advance(self) -> bool:
        """Take one step; False where no direction or no length of it is good enough."""
        current, gradient = self.current, self.gradient
        direction = self.objective.project(current.params - self.length * gradient) - current.params
        slope = float((direction * gradient).sum())
        if slope >= 0.0:
            return False
        found, first = self._along(direction, slope)
        if found is None:
            return False
        self._adapt_memory(current.objective - first, slope, direction)
        moved = found.params - current.params
        self.current, self.gradient = found, found.gradient()
        curvature = float((moved * (self.gradient - gradient)).sum())
        self.length = _first_length(self.gradient)
        if curvature > 0:
            length = float((moved**2).sum()) / curvature
            self.length = float(np.clip(length, _SHORTEST / self.unit, _LONGEST / self.unit))
        old, self.weight = self.weight, self.memory * self.weight + 1.0
        self.reference = (self.memory * old * self.reference + found.objective) / self.weight
        return True

    def _adapt_memory(self, fall: float, slope: float, direction: Array) -> None:
        """Let earlier objectives count for longer where the slope predicts well."""
        predicted = -slope - float((direction**2).sum()) / (2.0 * self.length)
        quality = fall / predicted if predicted > 0 else 1.0
        if quality < 0.1:
            self.memory = max(_LEAST_MEMORY, self.memory - 0.025)
        elif quality > 0.9:
            self.memory = min(1.0, self.memory + 0.025)

    def _along(self, direction: Array, slope: float) -> tuple[Evaluation | None, float]:
        """First point along a direction that is good enough, and the first trial's objective.

        Machines of other trials are given up as soon as their objective is too high, so that of
        the first one only what it exceeds may be known; the next ones start from the last machines
        that were good.
        """
        step, first = 1.0, self.reference + _SUFFICIENT * slope
        while step >= _TINIEST_STEP:
            enough = self.reference + _SUFFICIENT * step * slope
            found = self.objective.at(self.current.params + step * direction, enough)
            if found is not None:
                return found, found.objective if step == 1.0 else first
            step *= 0.5
        return None, first


def _first_length(gradient: Array) -> float:
    largest = float(np.abs(gradient).max())
    return 1.0 / largest if largest > 0 else 1.0
