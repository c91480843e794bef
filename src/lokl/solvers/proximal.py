"""Newton's method in the primal, for features that do not fit into the memory.

Let ``u_j(f)`` be the best coefficient of a sample at its decision value ``f``, when coefficients
are held near a *centre* ``a``: it maximises ``u (t - f) - epsilon |u| - ridge u^2 / 2 - hold (u -
a)^2 / 2`` in its box. The machine minimises ``|w|^2 / 2`` plus these maxima, which are smooth in
``w``: the gradient is ``w - sum_j u_j phi(x_j)``, and only samples whose coefficient is free have
a part in the second derivative. The squared hinge needs no holding. Other losses are held to the
coefficients that were found before, and less and less so: the proximal point method, which ends at
the machine itself.

The samples are passed over once for a gradient, and once for every conjugate direction of a
Newton step. A preconditioner from a sample of the free rows makes these few.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from lokl._arrays import Array
from lokl._compiled import CompiledModule
from lokl._threads import multiply
from lokl.gram import LowRankGram
from lokl.gram.gated_gram import MEGABYTE
from lokl.solvers.descent import balanced
from lokl.solvers.problem import Problem

_proximal = CompiledModule("lokl.solvers._proximal")

# Width of the margin within which coefficients are held at first, without and with a start, and how
# it changes: it falls, unless a search was too hard.
_FIRST_WIDTH, _NEXT_WIDTH, _NARROWER, _WIDER = 1.0, 0.1, 0.1, 10.0
# What a search leaves of the gradient, in terms of the tolerance, of the width and of the last move
# of the coefficients; and how many searches there are at most.
_LEFT, _LEFT_OF_WIDTH, _LEFT_OF_MOVE, _SEARCHES = 0.1, 0.01, 0.1, 30
# Steps in a row in which the objective may fall by no more than this, relative.
_PATIENCE, _NOTHING = 3, 1e-14
# Newton steps of one search, conjugate directions of a step, and what they leave of the gradient.
_MOST_STEPS, _MOST_DIRECTIONS, _FORCING = 60, 100, 0.05
# Share of the memory for rows whose coefficients are free.
_SHARE = 0.5
# Rows and numbers of the preconditioner, at most.
_MOST_ROWS, _MOST_NUMBERS = 4096, 2**25
# Trials of a search along a direction, and the share of the slope that is left.
_TRIALS, _FLAT = 30, 0.1


# From a vector of weights to another.
Map = Callable[[Array], Array]


@dataclass
class Point:
    """Weights, values at all samples, and what samples answer to them."""

    weights: Array  # (n_weights,)
    values: Array  # (n_samples,), without the intercept
    intercept: float
    coef: Array
    rates: Array
    loss: float = 0.0

    @property
    def objective(self) -> float:
        return 0.5 * float(self.weights @ self.weights) + self.loss


class Newton:
    """The search for one machine on features that are computed tile by tile.

    Parameters
    ----------
    gram : LowRankGram
    problem : Problem
        With samples of both signs.
    tol : float
    max_steps : int
        Limit on Newton steps.
    """

    def __init__(self, gram: LowRankGram, problem: Problem, tol: float, max_steps: int):
        self.gram = gram
        self.problem = problem
        self.tol = tol
        self.max_steps = max_steps
        self.steps = 0
        # No feature vector is longer: what a change of the weights can do to a decision.
        self._length = float(np.sqrt(gram.exact.diag().max(initial=0.0)))
        cost = problem.cost
        self._hold = np.where(np.isinf(np.maximum(-problem.lower, problem.upper)), 0.0, 1.0)
        self._hold /= np.where(cost > 0, cost, 1.0)
        lacks_ridge = (problem.ridge == 0) & (self._hold == 0)
        self._hold[lacks_ridge] = 1.0

    def solve(self, start: Array | None) -> tuple[Array, Array, bool]:
        """Return coefficients, their gradient, and whether violations are below the tolerance."""
        centre = np.zeros(self.gram.n_samples)
        if start is not None:
            centre = self.problem.feasible(np.asarray(start, dtype=np.float64))
        point = self._begin(centre)
        width, moved = _FIRST_WIDTH if start is None else _NEXT_WIDTH, np.inf
        for _ in range(_SEARCHES):
            left = max(_LEFT * self.tol, min(_LEFT_OF_WIDTH * width, _LEFT_OF_MOVE * moved))
            length = self._search(point, self._costs(centre, width), left)
            if length <= width:
                # Else it went astray, and the centre was better.
                moved = width * float(np.abs(self._hold * (point.coef - centre)).max(initial=0.0))
                centre = point.coef.copy()
            width *= _NARROWER if length <= left else _WIDER
            # Beyond the first width, rounding is all that is left to be found.
            ended = self.steps >= self.max_steps or width > _FIRST_WIDTH
            if ended or moved <= self.tol:
                coef, gradient, violation = self._certified(centre)
                if ended or violation <= self.tol:
                    return coef, gradient, violation <= self.tol
        coef, gradient, violation = self._certified(centre)
        return coef, gradient, violation <= self.tol

    def _certified(self, coef: Array) -> tuple[Array, Array, float]:
        """Coefficients that sum to zero, their gradient from two passes, and their violation."""
        problem = self.problem
        coef = balanced(problem, coef)
        gradient = problem.target - self.gram.dot(coef) - problem.ridge * coef
        up, down = problem.violations(coef, gradient)
        return coef, gradient, float(up.max(initial=-np.inf) - down.min(initial=np.inf))

    def _begin(self, coef: Array) -> Point:
        weights, values = np.zeros(self.gram.n_weights), np.zeros(len(coef))
        if coef.any():
            weights = self._back(coef[:, np.newaxis])[:, 0]
            values = self.gram.forward(self._shaped(weights))[:, 0]
        return Point(weights, values, 0.0, coef.copy(), np.zeros(len(coef)))

    def _shaped(self, weights: Array) -> Array:
        return weights.reshape(self.gram.features.size, self.gram.gates.shape[2], 1)

    def _back(self, coef: Array) -> Array:
        """Sums of features, (n_weights, n_columns)."""
        return self.gram.backward(coef).reshape(self.gram.n_weights, coef.shape[1])

    def _costs(self, centre: Array, width: float) -> Any:
        own = self.problem
        return _proximal.Costs(
            own.target, own.lower, own.upper, own.epsilon, own.ridge, centre, width * self._hold
        )

    def _answer(self, point: Point, costs: Any) -> None:
        """Find the intercept and what samples answer, at the values of a point."""
        point.intercept = _proximal.balance(costs, point.values, point.intercept)
        point.loss = _proximal.answers(
            costs, point.values, point.intercept, point.coef, point.rates
        )

    def _search(self, point: Point, costs: Any, left: float) -> float:
        """Go to the minimum for one centre and width by Newton's steps.

        Returns what is left of the gradient, as the change of a decision that it could make.
        """
        self._answer(point, costs)
        length, before, idle = np.inf, np.inf, 0
        for _ in range(min(_MOST_STEPS, self.max_steps - self.steps)):
            rate = float(point.rates.sum())
            both = self._back(np.column_stack([point.coef, point.rates]))
            gradient = point.weights - both[:, 0]
            length = self._length * float(np.linalg.norm(gradient))
            falls = point.objective < before - _NOTHING * abs(point.objective)
            before, idle = point.objective, 0 if falls else idle + 1
            if length <= left or idle > _PATIENCE:
                break
            self.steps += 1
            # The intercept goes with the weights: features count around their mean.
            mean = both[:, 1] / rate if rate > 0 else both[:, 1]
            direction = self._direction(point.rates, mean, gradient)
            change = self.gram.forward(self._shaped(direction))[:, 0]
            if not self._line(point, costs, direction, change):
                break
        return length

    def _direction(self, rates: Array, mean: Array, gradient: Array) -> Array:
        """Newton's direction, by conjugate gradients."""
        free = np.flatnonzero(rates)
        precondition = self._preconditioner(free, rates, mean)
        curve = self._curvature(free, rates, mean)
        found, residual = np.zeros_like(gradient), -gradient
        z = precondition(residual)
        search, product = z, float(residual @ z)
        first = np.linalg.norm(residual)
        for _ in range(_MOST_DIRECTIONS):
            curved = curve(search)
            step = product / float(search @ curved)
            found += step * search
            residual = residual - step * curved
            if np.linalg.norm(residual) <= _FORCING * first:
                break
            z = precondition(residual)
            before, product = product, float(residual @ z)
            search = z + product / before * search
        return found

    def _curvature(self, free: Array, rates: Array, mean: Array) -> Map:
        """Products with the second derivative, on stored rows where those that matter are few."""
        total = float(rates.sum())
        room = _SHARE * self.gram.inner.cache_size * MEGABYTE / self.gram.dtype.itemsize
        if len(free) * self.gram.n_weights <= room:
            rows, own = self.gram.gated_rows(free), rates[free]

            def sums(direction: Array) -> Array:
                values = multiply(rows, direction.astype(rows.dtype))
                return multiply(rows.T, (own * values).astype(rows.dtype))

        else:

            def sums(direction: Array) -> Array:
                return self.gram.curved(self._shaped(direction), rates).ravel()

        def curve(direction: Array) -> Array:
            shift = total * float(mean @ direction)
            return np.asarray(direction + sums(direction) - shift * mean)

        return curve

    def _preconditioner(self, free: Array, rates: Array, mean: Array) -> Map:
        """Inverse of the second derivative where a sample of the free rows stands for all."""
        size = self.gram.n_weights
        count = min(len(free), _MOST_ROWS, max(_MOST_NUMBERS // size, 1))
        some = free[np.linspace(0, len(free) - 1, count).astype(np.intp)] if count else free
        if len(some) == 0:
            return lambda residual: residual
        rows = self.gram.gated_rows(some).astype(np.float64) - mean
        rows *= np.sqrt(rates[some] * len(free) / len(some))[:, np.newaxis]
        if len(some) < size:
            small = multiply(rows, rows.T)
            small.flat[:: len(small) + 1] += 1.0
            factor = cho_factor(small, lower=True, overwrite_a=True, check_finite=False)
            return lambda r: r - rows.T @ cho_solve(factor, rows @ r, check_finite=False)
        small = multiply(rows.T, rows)
        small.flat[:: len(small) + 1] += 1.0
        factor = cho_factor(small, lower=True, overwrite_a=True, check_finite=False)
        return lambda r: np.asarray(cho_solve(factor, r, check_finite=False))

    def _line(self, point: Point, costs: Any, direction: Array, change: Array) -> bool:
        """Go along a direction to where the objective no longer falls; False: it never does.

        The objective is convex: between a falling and a rising slope lies the minimum.
        """
        begin, values = point.weights.copy(), point.values.copy()

        def slope(step: float) -> float:
            point.weights = begin + step * direction
            point.values = values + step * change
            self._answer(point, costs)
            return float(point.weights @ direction - point.coef @ change)

        first = float(begin @ direction - point.coef @ change)
        low, high = (0.0, first), (1.0, slope(1.0))
        if not first < 0.0:
            slope(0.0)
            return False
        step = 1.0
        for _ in range(_TRIALS):
            steep = slope(step) if step != 1.0 else high[1]
            if abs(steep) <= _FLAT * abs(first) or (step == 1.0 and steep <= 0.0):
                return True
            if steep < 0.0:
                low = step, steep
            else:
                high = step, steep
            share = low[1] / (low[1] - high[1])
            step = low[0] + np.clip(share, 0.1, 0.9) * (high[0] - low[0])
        return True
