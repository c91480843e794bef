"""Reduced gradient on the simplex: SimpleMKL's descent."""

from collections.abc import Iterator

import numpy as np

from lokl._arrays import Array
from lokl.optimizers.objective import Step
from lokl.optimizers.planes import Planes
from lokl.optimizers.weight_objective import Simplex, WeightEvaluation

# The search along a direction ends with this share of what the planes say can be gained.
_ENOUGH = 0.8
_TRIALS = 12
# Falls of the objective below this share of it are rounding.
_NOISE = 1e-10


def reduced_gradient(objective: Simplex, tol: float = 0.01) -> Iterator[Step]:
    """Yield points of falling objective on the simplex, to a certified relative gap.

    A step goes along the reduced gradient as far as the objective falls at the ends of the simplex,
    then to where the slope along it is about zero.

    Parameters
    ----------
    objective : Simplex
    tol : float, default=0.01
        Relative duality gap that ends the search.
    """
    search = _Search(objective)
    current = search.explore(objective.start()[0])
    while True:
        gap = objective.gap(current)
        yield current.step(gap)
        if gap <= tol * abs(current.objective):
            return
        found = search.descend(current)
        if found.objective >= current.objective - _NOISE * abs(current.objective):
            return
        current = found


class _Search:
    """Points explored so far, and the planes they gave."""

    def __init__(self, objective: Simplex):
        self.objective = objective
        self.planes = Planes()

    def explore(self, weights: Array) -> WeightEvaluation:
        """Solve the machines at weights, and remember their plane."""
        point = self.objective.evaluate(self.objective.project(weights[np.newaxis]))
        self.planes.add(point.objective, point.weights[0], point.forms[0])
        return point

    def descend(self, current: WeightEvaluation) -> WeightEvaluation:
        """Lowest point along the reduced gradient, weights that reach zero leaving on the way."""
        D, top = _direction(current.weights[0], -0.5 * current.forms[0])
        best = current
        while True:
            falling = D < 0
            if not falling.any():
                return best
            ratios = np.where(falling, -best.weights[0] / np.where(falling, D, -1.0), np.inf)
            first = int(np.argmin(ratios))
            found, reached = self._along(best, D, float(ratios[first]))
            if found.objective >= best.objective:
                return best
            best = found
            if not reached or first == top:
                return best
            # The weight is gone: the largest one takes over its part of the direction.
            D[top] += D[first]
            D[first] = 0.0
            if float(D @ best.forms[0]) <= 0.0:
                return best

    def _along(
        self, near: WeightEvaluation, D: Array, longest: float
    ) -> tuple[WeightEvaluation, bool]:
        """Lowest point of a segment, and whether it is the far end.

        Each trial is where the planes are lowest, and adds a plane; most trials are spared because
        machines of earlier rounds have already said that nothing is to be gained there.
        """
        best, reached = near, False
        for _ in range(_TRIALS):
            s, lowest = self.planes.along(near.weights[0], D, longest)
            promised = near.objective - lowest
            if promised <= _NOISE * abs(near.objective):
                break
            if near.objective - best.objective >= _ENOUGH * promised:
                break
            at_end = s >= longest
            point = self.explore(near.weights[0] + s * D)
            if point.objective < best.objective:
                best, reached = point, at_end
            if at_end and point.objective < near.objective:
                break
        return best, reached


def _direction(d: Array, gradient: Array) -> tuple[Array, int]:
    """Descent direction that keeps the sum, and the weight that pays for the others."""
    # Of equally large weights the most useful one, so that the order of kernels does not matter.
    top = int(np.lexsort((gradient, -d))[0])
    D = gradient[top] - gradient
    D[(d == 0) & (D < 0)] = 0.0
    D[top] = 0.0
    D[top] = -D.sum()
    return D, top
