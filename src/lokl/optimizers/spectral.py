"""Spectral projected gradient with a non-monotone line search."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl.optimizers.objective import Objective, ObjectiveValue, OptimizerStep

# The objective must decrease by this share of the decrease that the slope predicts.
_SUFFICIENT = 1e-4
# Bounds on the spectral step length, for objectives of order one, and on a step along a direction.
_SHORTEST, _LONGEST, _SHORTEST_STEP = 1e-6, 1e6, 1e-8
# Least weight of earlier objectives in the reference value that a step must stay below.
_LEAST_MEMORY = 0.1
# This many steps without a notable decrease end the search.
_PATIENCE = 5
# A decrease by less than this share of the objective counts as none, if a certificate decides.
_NOISE = 1e-9
# Precision of the SVMs: at first, and as a share of the distance from the optimum.
_FIRST_PRECISION, _PRECISION_SHARE = 0.1, 0.1


def spectral_gradient(objective: Objective[Any], tol: float = 1e-3) -> Iterator[OptimizerStep]:
    """Minimise by spectral projected gradient; the objective may rise for a step.

    Parameters
    ----------
    objective : Objective
        Function to minimise, with the point to start from.
    tol : float, default=1e-3
        Limit that ends the search, relative to the objective: on the certified gap if there is
        one, otherwise on the largest entry of the projected gradient, or on the decrease of the
        objective in five steps.

    Yields
    ------
    step : OptimizerStep
        Accepted point; the last one is the result.

    See Also
    --------
    lokl.optimizers.Penalised : Weights under a penalty.
    lokl.optimizers.line_search : Decreases in every step.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.gram import GatedGram
    >>> from lokl.kernels import RBF, Linear
    >>> from lokl.optimizers import HalfSquaredNorm, Penalised, spectral_gradient
    >>> from lokl.solvers import Exact, Machines, hinge
    >>> X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([1.0, -1.0, -1.0, 1.0])
    >>> base = np.full((4, 2), 1.0)
    >>> gram = GatedGram([Linear(), RBF(1.0)], X, base)
    >>> machines = Machines(Exact(tol=1e-6), [hinge(y, 1.0)])
    >>> penalty = HalfSquaredNorm()
    >>> objective = Penalised(machines=machines, gram=gram, base=base, regularizer=penalty)
    >>> steps = list(spectral_gradient(objective))
    >>> steps[-1].params.round(2)
    array([[0.  , 1.28]])
    """
    search = _SpectralSearch(objective, tol)
    while True:
        search.assess()
        yield search.current.step(search.gap)
        if search.refine():
            continue
        if search.done:
            return
        if (search.stalled and not search.return_to_best()) or not search.advance():
            break
    if search.best is not search.current:
        yield search.best.step(objective.gap(search.best))


class _SpectralSearch:
    """State of the search: the current and the best point, and the reference value.

    The reference value is a weighted mean of earlier objectives (Zhang and Hager, 2004); `memory`
    is the factor by which their weight decays.
    """

    def __init__(self, objective: Objective[Any], tol: float):
        self.objective = objective
        self.tol = tol
        self.precision = _FIRST_PRECISION
        objective.refine(self.precision)
        self._restart(objective.evaluate(objective.start()))
        # Bounds on step lengths are meant for objectives of order one.
        self.unit = max(abs(self.current.objective), np.finfo(float).tiny)
        self.length = _first_length(self.gradient)

    def _restart(self, value: ObjectiveValue) -> None:
        """Restart from a point: earlier objectives are no longer comparable."""
        self.current = self.best = value
        self.gradient = value.gradient()
        self.memory, self.weight, self.reference = 1.0, 1.0, value.objective
        self.lowest = [value.objective]

    def assess(self) -> None:
        """Compute the gap, and whether the search is done or has stalled."""
        current, lowest = self.current, self.lowest
        if current.objective < self.best.objective:
            self.best = current
        lowest.append(min(lowest[-1], current.objective))
        decrease = lowest[max(len(lowest) - 1 - _PATIENCE, 0)] - lowest[-1]
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
        self.stalled = len(lowest) > _PATIENCE and decrease <= noise * abs(lowest[-1])

    def refine(self) -> bool:
        """Solve the SVMs more precisely if due; return whether the point was evaluated again."""
        needed = 0.0 if self.done or self.stalled else _PRECISION_SHARE * self.distance
        if needed >= self.precision:
            return False
        self.precision = 10.0 ** np.floor(np.log10(needed)) if needed > 0 else 0.0
        if not self.objective.refine(self.precision):
            return False
        self._restart(self.objective.evaluate(self.current.params))
        return True

    def return_to_best(self) -> bool:
        """Restart from the best point without allowing a rise; return False if already tried.

        A search that may rise for a step can wander off for many.
        """
        best = self.best
        if self.reference <= best.objective + max(self.tol, _NOISE) * abs(best.objective):
            return False
        self._restart(best)
        self.memory = _LEAST_MEMORY
        self.length = _first_length(self.gradient)
        return True

    def advance(self) -> bool:
        """Take one step; return False if no step along the direction is acceptable."""
        current, gradient = self.current, self.gradient
        direction = self.objective.project(current.params - self.length * gradient) - current.params
        slope = float((direction * gradient).sum())
        if slope >= 0.0:
            return False
        accepted, first_objective = self._along(direction, slope)
        if accepted is None:
            return False
        self._adapt_memory(current.objective - first_objective, slope, direction)
        moved = accepted.params - current.params
        self.current, self.gradient = accepted, accepted.gradient()
        curvature = float((moved * (self.gradient - gradient)).sum())
        self.length = _first_length(self.gradient)
        if curvature > 0:
            length = float((moved**2).sum()) / curvature
            self.length = float(np.clip(length, _SHORTEST / self.unit, _LONGEST / self.unit))
        old, self.weight = self.weight, self.memory * self.weight + 1.0
        self.reference = (self.memory * old * self.reference + accepted.objective) / self.weight
        return True

    def _adapt_memory(self, decrease: float, slope: float, direction: Array) -> None:
        """Let earlier objectives count for longer if the slope predicts the decrease well."""
        predicted = -slope - float((direction**2).sum()) / (2.0 * self.length)
        quality = decrease / predicted if predicted > 0 else 1.0
        if quality < 0.1:
            self.memory = max(_LEAST_MEMORY, self.memory - 0.025)
        elif quality > 0.9:
            self.memory = min(1.0, self.memory + 0.025)

    def _along(self, direction: Array, slope: float) -> tuple[ObjectiveValue | None, float]:
        """Return the first acceptable point along a direction, and the first trial's objective.

        SVMs of rejected trials stop as soon as their objective is too high. If the first trial is
        rejected, a lower bound stands for its objective.
        """
        step, first = 1.0, self.reference + _SUFFICIENT * slope
        while step >= _SHORTEST_STEP:
            limit = self.reference + _SUFFICIENT * step * slope
            value = self.objective.at(self.current.params + step * direction, limit)
            if value is not None:
                return value, value.objective if step == 1.0 else first
            step *= 0.5
        return None, first


def _first_length(gradient: Array) -> float:
    """Return the step length at which the largest entry of the gradient moves by one."""
    largest = float(np.abs(gradient).max())
    return 1.0 / largest if largest > 0 else 1.0
