"""The level method on the simplex: for starts near the optimum, a few machines are enough."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from lokl.optimizers.objective import Step
from lokl.optimizers.planes import Planes
from lokl.optimizers.reduced_gradient import reduced_gradient
from lokl.optimizers.weight_objective import Simplex, best_weights

# Where between the lower bound and the best value the next point is looked for.
_LEVEL = 0.3
# A gap that one more machine reduces by less than this share is left to the reduced gradient.
_PROGRESS = 1e-3


def level(objective: Simplex, tol: float = 0.01) -> Iterator[Step]:
    """Yield points of falling objective on the simplex, to a certified relative gap.

    Every machine solved so far is a plane below the objective. The next point is the nearest to the
    best one at which all planes are below a level; the lowest point of the planes bounds the
    optimum. It is slow to begin with, when planes are few, and quick near the optimum.

    Parameters
    ----------
    objective : Simplex
        With weights to start from.
    tol : float, default=0.01
        Relative duality gap that ends the search.
    """
    planes = Planes()
    best = current = objective.evaluate(objective.project(objective.start()))
    smallest = np.inf
    while True:
        planes.add(current.objective, current.weights[0], current.forms[0])
        if current.objective < best.objective:
            best = current
        gap = objective.gap(best)
        if gap > tol * abs(best.objective):
            gap = min(gap, best.objective - planes.bound())
        yield best.step(gap)
        if gap <= tol * abs(best.objective):
            return
        if gap > (1.0 - _PROGRESS) * smallest:
            break
        smallest = gap
        target = best.objective - (1.0 - _LEVEL) * gap
        # The guess of an alternation, which knows scales of kernels, corrected by the planes.
        guess = best_weights(best.weights, best.forms, 1.0)
        current = objective.evaluate(objective.project(planes.below(target, guess[0])[np.newaxis]))
    path = reduced_gradient(replace(objective, first=best.weights), tol)
    next(path)
    yield from path
