"""Spectral projected gradient with a non-monotone line search."""

from collections.abc import Callable, Iterator

import numpy as np

from lokl._arrays import Array
from lokl.optimizers.steps import Evaluation, Step

# The objective must fall by this share of what the slope promises.
_SUFFICIENT = 1e-4
_SHORTEST, _LONGEST = 1e-2, 10.0
_TINIEST_STEP = 1e-8
# Steps without a fall worth mentioning that end the search.
_PATIENCE = 5


def spectral(
    evaluate: Callable[[Array], Evaluation],
    start: Array,
    project: Callable[[Array], Array],
    tol: float = 1e-3,
    gap: Callable[[Evaluation], float] | None = None,
) -> Iterator[Step]:
    """Yield accepted points; few evaluations, the objective may rise for a step.

    Parameters
    ----------
    evaluate : callable
        Objective and gradient at parameters.
    start : array
        Allowed parameters.
    project : callable
        Nearest allowed parameters.
    tol : float, default=1e-3
        Largest entry of the projected gradient, certified gap, or fall of the objective in five
        steps, relative to the objective, that ends the search.
    gap : callable, optional
        Certified distance from the optimum, for convex problems.
    """
    current = evaluate(start)
    gradient = current.gradient()
    memory, weight, reference = 1.0, 1.0, current.objective
    # Lengths of steps are meant for objectives of order one.
    unit = max(abs(current.objective), np.finfo(float).tiny)
    length = _first_length(gradient)
    lowest = [current.objective]
    while True:
        left = float("nan") if gap is None else gap(current)
        yield current.step(left)
        projected = project(current.params - gradient / unit) - current.params
        if np.abs(projected).max() < tol or left <= tol * abs(current.objective):
            return
        lowest.append(min(lowest[-1], current.objective))
        if len(lowest) > _PATIENCE and lowest[-_PATIENCE - 1] - lowest[-1] <= tol * abs(lowest[-1]):
            return
        direction = project(current.params - length * gradient) - current.params
        slope = float((direction * gradient).sum())
        if slope >= 0.0:
            return
        found, first = _search(evaluate, current, direction, slope, reference)
        if found is None:
            return
        # How well the slope predicts decides how long the past counts.
        predicted = -slope - float((direction**2).sum()) / (2.0 * length)
        quality = (current.objective - first) / predicted if predicted > 0 else 1.0
        if quality < 0.1:
            memory = max(0.1, memory - 0.025)
        elif quality > 0.9:
            memory = min(1.0, memory + 0.025)
        moved = found.params - current.params
        turned = found.gradient() - gradient
        current, gradient = found, gradient + turned
        curvature = float((moved * turned).sum())
        length = (
            float(np.clip((moved**2).sum() / curvature, _SHORTEST / unit, _LONGEST / unit))
            if curvature > 0
            else _first_length(gradient)
        )
        old, weight = weight, memory * weight + 1.0
        reference = (memory * old * reference + current.objective) / weight


def _first_length(gradient: Array) -> float:
    largest = float(np.abs(gradient).max())
    return 1.0 / largest if largest > 0 else 1.0


def _search(
    evaluate: Callable[[Array], Evaluation],
    current: Evaluation,
    direction: Array,
    slope: float,
    reference: float,
) -> tuple[Evaluation | None, float]:
    """First point along the direction that is good enough, and the objective of the first trial."""
    step, first = 1.0, None
    while step >= _TINIEST_STEP:
        found = evaluate(current.params + step * direction)
        first = found.objective if first is None else first
        if found.objective <= reference + _SUFFICIENT * step * slope:
            return found, first
        shorter = 0.5 * step
        if step > 0.1:
            curvature = found.objective - current.objective - step * slope
            lowest = -0.5 * step**2 * slope / curvature if curvature > 0 else 0.0
            shorter = lowest if 0.1 < lowest < 0.9 * step else shorter
        step = shorter
    return None, current.objective if first is None else first
