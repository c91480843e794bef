"""Reduced gradient on the simplex: SimpleMKL's descent."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from lokl._arrays import Array
from lokl.gates.weighted import weigh
from lokl.optimizers.machines import Machines, Solution
from lokl.optimizers.steps import Step

# Smaller weights are none.
_NONE = 1e-8
# The search along a direction ends with this share of what the planes say can be gained.
_ENOUGH = 0.8
_TRIALS = 12
# Falls of the objective below this share of it are rounding.
_NOISE = 1e-10


@dataclass(frozen=True, eq=False)
class Point:
    """Weights on the simplex, the machines there, and the forms ``S_i = u'K_i u``."""

    weights: Array
    objective: float
    solution: Solution
    S: Array

    @property
    def gradient(self) -> Array:
        return -0.5 * self.S

    @property
    def gap(self) -> float:
        """How far the optimum over the weights may lie below, the machines taken as exact."""
        return max(0.5 * float(self.S.max() - self.weights @ self.S), 0.0)

    def step(self) -> Step:
        """Return the point as an accepted step."""
        gap = self.gap + self.solution.gap
        return Step(self.weights[np.newaxis], self.objective, gap, self.solution)


class Planes:
    """What every machine solved so far says about all other weights.

    Coefficients `u` that are feasible once are so always, so the optimum at weights ``d`` is at
    least ``linear(u) - d'S(u) / 2``: a plane below a convex function.
    """

    def __init__(self) -> None:
        self._linear: list[float] = []
        self._forms: list[Array] = []

    def add(self, point: Point) -> None:
        """Remember a machine."""
        self._linear.append(point.objective + 0.5 * float(point.weights @ point.S))
        self._forms.append(point.S)

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


def reduced_gradient(machines: Machines, base: Array, *, tol: float = 0.01) -> Iterator[Step]:
    """Yield points of falling objective on the simplex, to a certified relative gap.

    Minimises the dual value of machines on ``sum_i d_i (b_i b_i') o K_i`` over ``d >= 0``,
    ``sum d = 1``. A step goes along the reduced gradient as far as the objective falls at the ends
    of the simplex, then to where the slope along it is about zero.

    Parameters
    ----------
    machines : Machines
    base : array of shape (n_samples, n_kernels)
        Known gates ``b``.
    tol : float, default=0.01
        Relative duality gap that ends the search.
    """

    def evaluate(weights: Array) -> Point:
        solution = machines.solve(weigh(base, weights[np.newaxis]))
        forms = machines.gram.kernel_forms(solution.coef, base).sum(axis=1)
        return Point(weights, solution.objective, solution, np.maximum(forms, 0.0))

    return descend(evaluate, base.shape[1], tol)


def descend(evaluate: Callable[[Array], Point], n_kernels: int, tol: float) -> Iterator[Step]:
    """Walk from equal weights, whatever solves the machines."""
    planes = Planes()

    def explore(weights: Array) -> Point:
        point = evaluate(_on_simplex(weights))
        planes.add(point)
        return point

    current = explore(np.full(n_kernels, 1.0 / n_kernels))
    while True:
        yield current.step()
        if current.gap <= tol * abs(current.objective):
            return
        found = _search(explore, planes, current)
        if found.objective >= current.objective - _NOISE * abs(current.objective):
            return
        current = found


def _direction(d: Array, gradient: Array) -> tuple[Array, int]:
    """Descent direction that keeps the sum, and the weight that pays for the others."""
    # Of equally large weights the most useful one, so that the order of kernels does not matter.
    top = int(np.lexsort((gradient, -d))[0])
    D = gradient[top] - gradient
    D[(d == 0) & (D < 0)] = 0.0
    D[top] = 0.0
    D[top] = -D.sum()
    return D, top


def _search(explore: Callable[[Array], Point], planes: Planes, current: Point) -> Point:
    """Lowest point along the reduced gradient, weights that reach zero leaving on the way."""
    D, top = _direction(current.weights, current.gradient)
    best = current
    while True:
        falling = D < 0
        if not falling.any():
            return best
        ratios = np.where(falling, -best.weights / np.where(falling, D, -1.0), np.inf)
        first = int(np.argmin(ratios))
        longest = float(ratios[first])
        found, reached = _along(explore, planes, best, D, longest)
        if found.objective >= best.objective:
            return best
        best = found
        if not reached or first == top:
            return best
        # The weight is gone: the largest one takes over its part of the direction.
        D[top] += D[first]
        D[first] = 0.0
        if float(D @ best.gradient) >= 0.0:
            return best


def _along(
    explore: Callable[[Array], Point], planes: Planes, near: Point, D: Array, longest: float
) -> tuple[Point, bool]:
    """Lowest point of a segment, and whether it is the far end.

    Each trial is where the planes are lowest, and adds a plane; most trials are spared because
    machines of earlier rounds have already said that nothing is to be gained there.
    """
    best, reached = near, False
    for _ in range(_TRIALS):
        s, lowest = planes.along(near.weights, D, longest)
        promised = near.objective - lowest
        if promised <= _NOISE * abs(near.objective):
            break
        if near.objective - best.objective >= _ENOUGH * promised:
            break
        at_end = s >= longest
        point = explore(near.weights + s * D)
        if point.objective < best.objective:
            best, reached = point, at_end
        if at_end and point.objective < near.objective:
            break
    return best, reached


def _on_simplex(d: Array) -> Array:
    d = np.where(d < _NONE, 0.0, d)
    return np.asarray(d / d.sum())
