"""SimpleMKL's weights on the simplex: reduced gradient and level method, on cutting planes.

Every set of SVMs that was solved gives a plane below the convex objective. Both optimisers use
these planes: the reduced gradient to save trials along a direction, the level method to choose the
next point and to bound the optimum.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import linprog, minimize

from lokl._arrays import Array
from lokl.optimizers.objective import OptimizerStep
from lokl.optimizers.weights import Simplex, WeightObjectiveValue, best_weights

# A search along a direction ends with this share of the decrease that the planes allow, or after
# this many trials.
_SUFFICIENT, _TRIALS = 0.8, 12
# Decreases below this share of the objective are rounding.
_NOISE = 1e-10
# Position of the level between the lower bound (0) and the best value (1).
_LEVEL = 0.3
# If one more point reduces the gap by less than this share, the reduced gradient takes over.
_PROGRESS = 1e-3
# The reduced gradient drops about one kernel in each trial. From this many kernels on, it starts
# from those of the steepest slopes at equal weights, after some alternating steps.
_MANY_KERNELS, _FIRST_KERNELS, _FIRST_ROUNDS = 64, 32, 10
# Kernels without a weight that can get one in a round.
_MOST_ENTERING = 8


class Planes:
    """Cutting planes: lower bounds on the objective as a function of the weights.

    Coefficients `u` that are feasible once stay feasible for all weights ``d``, so the optimum at
    ``d`` is at least ``linear(u) - d'S(u) / 2``.
    """

    def __init__(self) -> None:
        self._linear: list[float] = []
        self._forms: list[Array] = []  # of shape (n_kernels,)
        self._minimizer: Array | None = None  # weights at which the last bound is attained

    def add(self, objective: float, weights: Array, forms: Array) -> None:
        """Add the plane of the SVMs that were solved at `weights`, (n_kernels,)."""
        self._linear.append(objective + 0.5 * float(weights @ forms))
        self._forms.append(forms)

    def along(self, start: Array, D: Array, longest: float) -> tuple[float, float]:
        """Return the step ``0 <= s <= longest`` that is lowest on ``start + s D``, and the value.

        The value at each point is the height of the highest plane.
        """
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
        """Return the minimum of the planes on the simplex; minus infinity if not found."""
        # Values are relative to the largest, so that tolerances are.
        unit = max(self._linear)
        forms, m = np.array(self._forms) / unit, len(self._forms[0])
        result: Any = linprog(
            np.append(np.zeros(m), 1.0),
            A_ub=np.hstack([-0.5 * forms, -np.ones((len(forms), 1))]),
            b_ub=-np.array(self._linear) / unit,
            A_eq=[np.append(np.ones(m), 0.0)],
            b_eq=[1.0],
            bounds=[(0.0, 1.0)] * m + [(None, None)],
        )
        if not result.success:
            return -np.inf
        self._minimizer = result.x[:-1]
        # Any mixture of planes is below the objective, however exactly the program was solved.
        mixture = np.maximum(-result.ineqlin.marginals, 0.0)
        mixture = mixture / mixture.sum()
        return float(mixture @ self._linear - 0.5 * (mixture @ np.array(self._forms)).max())

    def below(self, target: float, centre: Array) -> Array:
        """Return the weights on the simplex nearest to `centre` with all planes below a target."""
        start = centre if self._minimizer is None else self._minimizer
        # In units of the target.
        room = 1.0 - np.array(self._linear) / target
        slopes = 0.5 * np.array(self._forms) / target
        constraints: Any = [
            {"type": "eq", "fun": lambda d: d.sum() - 1.0, "jac": lambda d: np.ones(len(d))},
            {"type": "ineq", "fun": lambda d: room + slopes @ d, "jac": lambda d: slopes},
        ]

        def distance(d: Any) -> tuple[float, Any]:
            return 0.5 * float((d - centre) @ (d - centre)), d - centre

        result = minimize(
            distance,
            start,
            jac=True,
            method="SLSQP",
            bounds=[(0.0, 1.0)] * len(centre),
            constraints=constraints,
        )
        d = np.maximum(result.x if np.isfinite(result.x).all() else start, 0.0)
        return np.asarray(d / d.sum())


def reduced_gradient(objective: Simplex, tol: float = 0.01) -> Iterator[OptimizerStep]:
    """Descend along the reduced gradient on the simplex, to a certified relative gap.

    A step follows the direction while the objective decreases at the ends of the simplex, then to
    a point at which the slope along it is about zero.

    Parameters
    ----------
    objective : Simplex
        Function to minimise, with the point to start from.
    tol : float, default=0.01
        Relative duality gap that ends the search.

    Yields
    ------
    step : OptimizerStep
        Accepted point; the last one is the result.

    See Also
    --------
    lokl.optimizers.Simplex : Weights that sum to one.
    lokl.optimizers.level_method : Faster from a warm start.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.gram import GatedGram
    >>> from lokl.kernels import RBF, Linear
    >>> from lokl.optimizers import Simplex, reduced_gradient
    >>> from lokl.solvers import Exact, Machines, hinge
    >>> X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([1.0, -1.0, -1.0, 1.0])
    >>> base = np.full((4, 2), 1.0)
    >>> gram = GatedGram([Linear(), RBF(1.0)], X, base)
    >>> machines = Machines(Exact(tol=1e-6), [hinge(y, 1.0)])
    >>> steps = list(reduced_gradient(Simplex(machines=machines, gram=gram, base=base)))
    >>> steps[-1].params.round(2)
    array([[0., 1.]])
    """
    search = _DirectionSearch(objective)
    current = search.explore(objective.start()[0])
    if objective.shape[1] >= _MANY_KERNELS and objective.first is None:
        weights = np.zeros(objective.shape[1])
        weights[np.argsort(-current.forms[0], kind="stable")[:_FIRST_KERNELS]] = 1 / _FIRST_KERNELS
        current = search.explore(weights)
        for _ in range(_FIRST_ROUNDS):
            current = search.explore(best_weights(current.weights, current.forms, 1.0)[0])
    while True:
        gap = objective.gap(current)
        yield current.step(gap)
        if gap <= tol * abs(current.objective):
            return
        lower = search.descend(current)
        if lower.objective >= current.objective - _NOISE * abs(current.objective):
            return
        current = lower


class _DirectionSearch:
    """Searches along directions, on the planes of all points that were evaluated."""

    def __init__(self, objective: Simplex):
        self.objective = objective
        self.planes = Planes()

    def explore(self, weights: Array) -> WeightObjectiveValue:
        """Solve the SVMs at weights, (n_kernels,), and add their plane."""
        point = self.objective.evaluate(self.objective.project(weights[np.newaxis]))
        self.planes.add(point.objective, point.weights[0], point.forms[0])
        return point

    def descend(self, current: WeightObjectiveValue) -> WeightObjectiveValue:
        """Return the lowest point along the reduced gradient; weights may drop to zero on it."""
        D, top = _direction(current.weights[0], -0.5 * current.forms[0])
        best = current
        while True:
            falling = D < 0
            if not falling.any():
                return best
            ratios = np.where(falling, -best.weights[0] / np.where(falling, D, -1.0), np.inf)
            first = int(np.argmin(ratios))
            lowest, at_end = self._along(best, D, float(ratios[first]))
            if lowest.objective >= best.objective:
                return best
            best = lowest
            if not at_end or first == top:
                return best
            # The weight is zero now: the largest one takes over its part of the direction.
            D[top] += D[first]
            D[first] = 0.0
            if float(D @ best.forms[0]) <= 0.0:
                return best

    def _along(
        self, start: WeightObjectiveValue, D: Array, longest: float
    ) -> tuple[WeightObjectiveValue, bool]:
        """Return the lowest point of a segment, and whether it is the far end.

        Each trial is the point at which the planes are lowest, and adds a plane. Most trials are
        saved, because planes of earlier rounds show that there is nothing to gain.
        """
        best, best_at_end = start, False
        for _ in range(_TRIALS):
            s, lowest = self.planes.along(start.weights[0], D, longest)
            possible = start.objective - lowest
            if possible <= _NOISE * abs(start.objective):
                break
            if start.objective - best.objective >= _SUFFICIENT * possible:
                break
            at_end = s >= longest
            point = self.explore(start.weights[0] + s * D)
            if point.objective < best.objective:
                best, best_at_end = point, at_end
            if at_end and point.objective < start.objective:
                break
        return best, best_at_end


def _direction(d: Array, gradient: Array) -> tuple[Array, int]:
    """Return a descent direction that keeps the sum, and the weight that balances the others."""
    # Of equally large weights the most useful one, so that the order of kernels does not matter.
    top = int(np.lexsort((gradient, -d))[0])
    D = gradient[top] - gradient
    D[(d == 0) & (D < 0)] = 0.0
    entering = np.flatnonzero((d == 0) & (D > 0))
    # All at once they would each get a little weight, and be dropped one by one.
    D[entering[np.argsort(-D[entering], kind="stable")[_MOST_ENTERING:]]] = 0.0
    D[top] = 0.0
    D[top] = -D.sum()
    return D, top


def level_method(objective: Simplex, tol: float = 0.01) -> Iterator[OptimizerStep]:
    """Minimise on the simplex by the level method, to a certified relative gap.

    The next point is the nearest to the best one at which all planes are below a level. The lowest
    point of the planes bounds the optimum. It is slow at first, with few planes, and fast near the
    optimum, so it serves warm starts.

    Parameters
    ----------
    objective : Simplex
        Function to minimise, with weights to start from.
    tol : float, default=0.01
        Relative duality gap that ends the search.

    Yields
    ------
    step : OptimizerStep
        Accepted point; the last one is the result.

    See Also
    --------
    lokl.optimizers.Simplex : Weights that sum to one.
    lokl.optimizers.reduced_gradient : Without weights to start from.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.gram import GatedGram
    >>> from lokl.kernels import RBF, Linear
    >>> from lokl.optimizers import Simplex, level_method
    >>> from lokl.solvers import Exact, Machines, hinge
    >>> X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([1.0, -1.0, -1.0, 1.0])
    >>> base = np.full((4, 2), 1.0)
    >>> gram = GatedGram([Linear(), RBF(1.0)], X, base)
    >>> machines = Machines(Exact(tol=1e-6), [hinge(y, 1.0)])
    >>> first = np.array([[0.1, 0.9]])
    >>> steps = list(level_method(Simplex(machines=machines, gram=gram, base=base, first=first)))
    >>> steps[-1].params.round(2)
    array([[0., 1.]])
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
        # The point of an alternating step, which accounts for the scales of the kernels, corrected
        # by the planes.
        guess = best_weights(best.weights, best.forms, 1.0)
        current = objective.evaluate(objective.project(planes.below(target, guess[0])[np.newaxis]))
    path = reduced_gradient(replace(objective, first=best.weights), tol)
    next(path)
    yield from path
