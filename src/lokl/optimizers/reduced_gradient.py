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
# The search along a direction ends where the slope is this share of the first one.
_FLAT = 0.1
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
    current = evaluate(np.full(n_kernels, 1.0 / n_kernels))
    while True:
        yield current.step()
        if current.gap <= tol * abs(current.objective):
            return
        found = _search(evaluate, current)
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


def _search(evaluate: Callable[[Array], Point], current: Point) -> Point:
    D, top = _direction(current.weights, current.gradient)
    best = current
    while True:
        falling = D < 0
        if not falling.any():
            return best
        ratios = np.where(falling, -best.weights / np.where(falling, D, -1.0), np.inf)
        first = int(np.argmin(ratios))
        longest = float(ratios[first])
        corner = best.weights + longest * D
        corner[first] = 0.0
        trial = evaluate(_on_simplex(corner))
        if trial.objective >= best.objective:
            return _along(evaluate, best, trial, D, longest)
        best = trial
        # The weight is gone: the largest one takes over its part of the direction.
        if first == top:
            return best
        D[top] += D[first]
        D[first] = 0.0
        if float(D @ best.gradient) >= 0.0:
            return best


def _along(
    evaluate: Callable[[Array], Point], near: Point, far: Point, D: Array, longest: float
) -> Point:
    """Lowest point between two, by the secant rule on the slope of a convex function."""
    left, right = 0.0, longest
    slope_left, slope_right = float(D @ near.gradient), float(D @ far.gradient)
    first, best = slope_left, near
    if slope_left >= 0.0:
        return near
    for _ in range(_TRIALS):
        if slope_right <= 0.0:
            # Machines of finite precision: the slope does not say where, so the middle.
            s = 0.5 * (left + right)
        else:
            s = left + (right - left) * slope_left / (slope_left - slope_right)
        point = evaluate(_on_simplex(near.weights + s * D))
        if point.objective < best.objective:
            best = point
        slope = float(D @ point.gradient)
        if abs(slope) <= _FLAT * abs(first) and best is not near:
            return best
        if slope < 0.0:
            left, slope_left = s, slope
            # An end that stays put counts half, so that the other end moves too.
            slope_right *= 0.5
        else:
            right, slope_right = s, slope
            slope_left *= 0.5
    return best


def _on_simplex(d: Array) -> Array:
    d = np.where(d < _NONE, 0.0, d)
    return np.asarray(d / d.sum())
