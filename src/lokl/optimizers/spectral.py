"""Spectral projected gradient with a non-monotone line search."""

from collections.abc import Callable, Iterator

import numpy as np

from lokl._arrays import Array
from lokl.optimizers.steps import Evaluation, Step

# The objective must fall by this share of what the slope promises.
_SUFFICIENT = 1e-4
_SHORTEST, _LONGEST = 1e-6, 1e6
_TINIEST_STEP = 1e-8
# How little the past may count.
_LEAST_MEMORY = 0.1
# Steps without a fall worth mentioning that end the search.
_PATIENCE = 5
# What is no fall where a certificate decides, relative to the objective.
_NOISE = 1e-9
# Violations that machines may leave: at first, and as a share of the distance from the optimum.
_ROUGH, _SHARE = 0.1, 0.1


def spectral(
    evaluate: Callable[[Array], Evaluation],
    start: Array,
    project: Callable[[Array], Array],
    tol: float = 1e-3,
    gap: Callable[[Evaluation], float] | None = None,
    demand: Callable[[float], bool] | None = None,
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
        Certified distance from the optimum, for convex problems; it then decides alone.
    demand : callable, optional
        Told the precision that evaluations need, and says whether that changed them
        (:meth:`Machines.demand`).
    """
    precision = _ROUGH
    if demand is not None:
        demand(precision)
    current = evaluate(start)
    gradient = current.gradient()
    memory, weight, reference = 1.0, 1.0, current.objective
    # Lengths of steps are meant for objectives of order one.
    unit = max(abs(current.objective), np.finfo(float).tiny)
    length = _first_length(gradient)
    lowest, best = [current.objective], current
    while True:
        left = float("nan") if gap is None else gap(current)
        yield current.step(left)
        projected = project(current.params - gradient / unit) - current.params
        if current.objective < best.objective:
            best = current
        lowest.append(min(lowest[-1], current.objective))
        before = lowest[max(len(lowest) - 1 - _PATIENCE, 0)]
        if gap is None:
            size = float(np.abs(projected).max())
            done = size < tol
            stalled = len(lowest) > _PATIENCE and before - lowest[-1] <= tol * abs(lowest[-1])
        else:
            size = left / max(abs(current.objective), np.finfo(float).tiny)
            done = size <= tol
            stalled = len(lowest) > _PATIENCE and before - lowest[-1] <= _NOISE * abs(lowest[-1])
        needed = 0.0 if done or stalled else _SHARE * size
        if demand is not None and needed < precision:
            precision = 10.0 ** np.floor(np.log10(needed)) if needed > 0 else 0.0
            if demand(precision):
                # Finer machines see another objective: old values no longer compare.
                current = evaluate(current.params)
                gradient = current.gradient()
                memory, weight, reference = 1.0, 1.0, current.objective
                lowest, best = [current.objective], current
                continue
        if done:
            return
        if stalled:
            if reference <= best.objective + max(tol, _NOISE) * abs(best.objective):
                break
            # The past allowed too much: back to the best point, and on from there downhill only.
            current, gradient = best, best.gradient()
            memory, weight, reference = _LEAST_MEMORY, 1.0, best.objective
            length = _first_length(gradient)
            lowest = [best.objective]
        direction = project(current.params - length * gradient) - current.params
        slope = float((direction * gradient).sum())
        if slope >= 0.0:
            break
        found, first = _search(evaluate, current, direction, slope, reference)
        if found is None:
            break
        # How well the slope predicts decides how long the past counts.
        predicted = -slope - float((direction**2).sum()) / (2.0 * length)
        quality = (current.objective - first) / predicted if predicted > 0 else 1.0
        if quality < 0.1:
            memory = max(_LEAST_MEMORY, memory - 0.025)
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
    if best is not current:
        yield best.step(float("nan") if gap is None else gap(best))


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
