"""Planes below an objective of weights, one for all machines that were solved together.

Reduced gradient on the simplex: SimpleMKL's descent.

The level method on the simplex: for starts near the optimum, a few machines are enough.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import linprog, minimize

from lokl._arrays import Array
from lokl.optimizers.objective import Step
from lokl.optimizers.weights import Simplex, WeightEvaluation, best_weights


class Planes:
    """What every machine solved so far says about all other weights.

    Coefficients `u` that are feasible once are so always, so the optimum at weights ``d`` is at
    least ``linear(u) - d'S(u) / 2``: a plane below a convex function.
    """

    def __init__(self) -> None:
        self._linear: list[float] = []
        self._forms: list[Array] = []
        self._lowest: Array | None = None  # where the last bound was found

    def add(self, objective: float, weights: Array, forms: Array) -> None:
        """Remember the machines that were solved at some weights."""
        self._linear.append(objective + 0.5 * float(weights @ forms))
        self._forms.append(forms)

    def along(self, start: Array, D: Array, longest: float) -> tuple[float, float]:
        """Where on ``start + s D`` the planes are lowest, and how low."""
        forms = np.array(self._forms)
        heights = np.array(self._linear) - 0.5 * forms @ start
        slopes = -0.5 * forms @ D
        s = 0.0
        while True:
            # The steepest of the planes that are highest here; the next one to rise above it.
            top = float((heights + s * slopes).max())
            touching = heights + s * slopes >= top - 1e-12 * abs(top)
            slope = float(slopes[touching].max())
            if slope >= 0.0:
                return s, top
            steeper = slopes > slope
            with np.errstate(divide="ignore", invalid="ignore"):
                crossing = (top - s * slope - heights[steeper]) / (slopes[steeper] - slope)
            crossing = crossing[crossing > s]
            if not len(crossing) or crossing.min() >= longest:
                return longest, float((heights + longest * slopes).max())
            s = float(crossing.min())

    def bound(self) -> float:
        """Lowest value of the planes on the simplex; minus infinity where it was not found."""
        # Values are relative to the largest, so that tolerances are.
        unit = max(self._linear)
        forms, m = np.array(self._forms) / unit, len(self._forms[0])
        found: Any = linprog(
            np.append(np.zeros(m), 1.0),
            A_ub=np.hstack([-0.5 * forms, -np.ones((len(forms), 1))]),
            b_ub=-np.array(self._linear) / unit,
            A_eq=[np.append(np.ones(m), 0.0)],
            b_eq=[1.0],
            bounds=[(0.0, 1.0)] * m + [(None, None)],
        )
        if not found.success:
            return -np.inf
        self._lowest = found.x[:-1]
        # Any mixture of planes is below the objective, however exact the program was solved.
        shares = np.maximum(-found.ineqlin.marginals, 0.0)
        shares = shares / shares.sum()
        return float(shares @ self._linear - 0.5 * (shares @ np.array(self._forms)).max())

    def below(self, target: float, centre: Array) -> Array:
        """Weights on the simplex nearest to some at which no plane is above the target."""
        start = centre if self._lowest is None else self._lowest
        # In units of the target.
        room = 1.0 - np.array(self._linear) / target
        slopes = 0.5 * np.array(self._forms) / target
        constraints: Any = [
            {"type": "eq", "fun": lambda d: d.sum() - 1.0, "jac": lambda d: np.ones(len(d))},
            {"type": "ineq", "fun": lambda d: room + slopes @ d, "jac": lambda d: slopes},
        ]

        def distance(d: Any) -> tuple[float, Any]:
            return 0.5 * float((d - centre) @ (d - centre)), d - centre

        found = minimize(
            distance,
            start,
            jac=True,
            method="SLSQP",
            bounds=[(0.0, 1.0)] * len(centre),
            constraints=constraints,
        )
        d = np.maximum(found.x if np.isfinite(found.x).all() else start, 0.0)
        return np.asarray(d / d.sum())


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
