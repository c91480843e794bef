"""Steps that move all free coefficients of a small problem at once, on its whole matrix.

At the optimum, the free coefficients (neither zero nor at a bound) satisfy a linear system. There
are two ways to use this, for different starting points:

- :func:`newton_steps` solves the system for the coefficients that are free now. Near the optimum it
  gives the optimum to machine precision (:func:`polish`), so that the solution does not depend on
  the order of rows, on repeated rows or on the path.
- :func:`interior` finds out which coefficients are free. Pair moves follow flat directions of the
  kernel in tiny steps: features of size 10,000 in a few dimensions take billions. Interior point
  steps number some dozens whatever the scale of the kernel, and each costs a Cholesky factor.
"""

from collections.abc import Iterator

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, lapack

from lokl._arrays import Array
from lokl.solvers.problem import Problem

# Most free coefficients that Newton steps are taken for, and most steps.
MOST_FREE, _NEWTON_STEPS = 200, 20
# Ridge of a Newton step by the bytes of a number, relative to the largest diagonal entry.
_RIDGES = {8: 1e-11, 4: 1e-7}
# Limit on interior point steps, and steps without progress that end them: then only rounding is
# left. At first, far from balance, there is no progress either.
_INTERIOR_STEPS, _PATIENCE = 100, 25
# Fraction of the way to the nearest bound, so that the path stays inside.
_INSIDE = 0.995
# Complementarity relative to the value, at which the active bounds are known.
_CLOSE = 1e-10


def polish(
    matrix: Array, problem: Problem, coef: Array, gradient: Array, exact: float
) -> tuple[Array, Array, float] | None:
    """Solve for the free coefficients exactly; None if no whole Newton step is possible.

    Returns coefficients and gradient, of shape (n,), and the violation that is left.

    Parameters
    ----------
    matrix : array of shape (n, n)
        ``K`` in float64.
    problem : Problem
    coef, gradient : arrays of shape (n,)
        Near the optimum; they are not changed.
    exact : float
        Violation that counts as zero.
    """
    best = None
    for new_coef, new_gradient, is_whole in newton_steps(matrix, problem, coef, gradient):
        if is_whole:
            violation = problem.violation(new_coef, new_gradient)
            if best is not None and violation > 0.5 * best[2]:
                break
            best = new_coef, new_gradient, violation
            if violation <= exact:
                break
    return best


def newton_steps(
    matrix: Array, problem: Problem, coef: Array, gradient: Array
) -> Iterator[tuple[Array, Array, bool]]:
    """Yield Newton steps of the free coefficients, each up to the nearest bound.

    Each is given by coefficients, gradient and whether no bound was reached on the way. The
    objective does not fall. Arguments as in :func:`polish`.
    """
    lower, upper = problem.one_sided(coef)
    for _ in range(_NEWTON_STEPS):
        step = _newton_step(matrix, problem, coef, gradient, lower, upper)
        if step is None:
            return
        yield step
        coef, gradient, _ = step


def _newton_step(
    matrix: Array, problem: Problem, coef: Array, gradient: Array, lower: Array, upper: Array
) -> tuple[Array, Array, bool] | None:
    free = np.flatnonzero((coef > lower) & (coef < upper) & (coef != 0))
    if not 2 <= len(free) <= MOST_FREE:
        return None
    change = _newton_direction(matrix, problem, coef, gradient, free)
    if change is None:
        return None
    room = np.where(change > 0, upper[free] - coef[free], coef[free] - lower[free])
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.where(change != 0, room / np.abs(change), np.inf)
    step = min(1.0, float(reach.min()))
    moved = coef[free] + step * change
    if step < 1.0:
        # These coefficients reach a bound first, so they are not free after all.
        blocked = reach <= step
        moved[blocked] = np.where(change > 0, upper[free], lower[free])[blocked]
    change = moved - coef[free]
    gradient = gradient - change @ matrix[free]
    gradient[free] -= problem.ridge[free] * change
    coef = coef.copy()
    coef[free] = moved
    return coef, gradient, step == 1.0


def _newton_direction(
    matrix: Array, problem: Problem, coef: Array, gradient: Array, free: Array
) -> Array | None:
    """Return the change of the free coefficients that makes their slopes equal, (n_free,).

    With slopes ``s`` of the objective it solves ``K d + b 1 = s``, with ``b`` such that ``1'u`` is
    zero afterwards. Repeated rows make the matrix singular. A tiny ridge splits their change
    evenly, and further steps remove its effect on everything else.
    """
    ridge = _RIDGES[matrix.dtype.itemsize]
    system = matrix[free[:, np.newaxis], free].astype(np.float64, copy=False)
    system.flat[:: len(free) + 1] += problem.ridge[free]
    system.flat[:: len(free) + 1] += ridge * system.diagonal().max()
    sides = np.ones((len(free), 2), order="F")
    sides[:, 0] = gradient[free] - problem.epsilon * np.sign(coef[free])
    # LAPACK is called directly: the checks of scipy.linalg.solve take longer than the solution.
    _, solution, failure = lapack.dposv(system, sides, lower=1, overwrite_b=1)
    if failure:
        return None
    toward, level = solution.T
    change = toward - (toward.sum() + coef.sum()) / level.sum() * level
    return np.asarray(change) if np.isfinite(change).all() else None


class _InteriorPoint:
    """A point inside the bounds, written as ``u = sum of signed halves z``, with its multipliers.

    Halves are the positive and the negative part of a coefficient, if the bounds allow both.
    ``0 < z < cap``, with multipliers `low` and `high` of these bounds and `level` of ``1'u = 0``.
    All arrays have shape (n_halves,); `owner` are the samples of the halves.
    """

    def __init__(self, problem: Problem, scale: float):
        up, down = np.flatnonzero(problem.upper > 0), np.flatnonzero(problem.lower < 0)
        self.owner = np.concatenate([up, down])
        self.sign = np.concatenate([np.ones(len(up)), -np.ones(len(down))])
        self.cost = problem.epsilon - self.sign * problem.target[self.owner]
        self.cap = np.concatenate([problem.upper[up], -problem.lower[down]])
        # Coefficients of this size give decision values of the size of the targets.
        self.z = np.minimum(0.5 * self.cap, 1.0 / scale)
        size = max(1.0, float(np.abs(self.cost).max()))
        self.low = np.full(len(self.z), size)
        self.high = np.where(np.isfinite(self.cap), size, 0.0)
        self.level = 0.0

    def coef(self, n: int, z: Array | None = None) -> Array:
        z = self.z if z is None else z
        return np.bincount(self.owner, weights=self.sign * z, minlength=n)

    @property
    def room(self) -> Array:
        return self.cap - self.z

    def products(self) -> Array:
        """Return distance times multiplier of all bounds, which are zero at the optimum."""
        finite = np.isfinite(self.cap)
        return np.concatenate([self.z * self.low, self.room[finite] * self.high[finite]])

    def at_bounds(self) -> Array:
        """Return the halves, with those at a bound put there: their multiplier is the larger."""
        size = max(float(self.z.max()), np.finfo(float).tiny)
        z = np.where(self.z / size < self.low, 0.0, self.z)
        full = np.isfinite(self.cap) & (self.room / size < self.high) & (z > 0)
        return np.where(full, self.cap, z)


def interior(matrix: Array, problem: Problem) -> Array | None:
    """Return coefficients near the optimum, of shape (n,), with those at bounds put there.

    None if the steps fail.

    Parameters
    ----------
    matrix : array of shape (n, n)
        ``K`` in float64.
    problem : Problem
        With at least one sample that can rise and one that can fall.
    """
    index = np.flatnonzero(problem.present)
    point = _InteriorPoint(problem.take(index), max(float(matrix.diagonal().max()), 1e-300))
    system = matrix[np.ix_(index, index)]
    system.flat[:: len(index) + 1] += problem.ridge[index]
    best, worse = np.inf, 0
    for _ in range(_INTERIOR_STEPS):
        if not _advance(point, system):
            break
        products = float(point.products().sum())
        worse = worse + 1 if products >= best else 0
        if worse == _PATIENCE or products <= _CLOSE * abs(float(point.cost @ point.z)):
            break
        best = min(best, products)
    if not np.isfinite(point.z).all():
        return None
    coef = np.zeros(len(matrix))
    coef[index] = point.coef(len(index), point.at_bounds())
    return coef


def _advance(point: _InteriorPoint, Q: Array) -> bool:
    """Take one predictor-corrector step (Mehrotra); return whether the linear system was solved."""
    n = len(Q)
    finite = np.isfinite(point.cap)
    # Without an upper bound the multiplier is zero and stays zero, whatever the room.
    room = np.where(finite, point.room, 1.0)
    u = point.coef(n)
    slope = point.cost + point.sign * ((Q @ u) - point.level)[point.owner] - point.low + point.high
    theta = point.low / point.z + point.high / room
    weight = 1.0 / np.bincount(point.owner, weights=1.0 / theta, minlength=n)
    try:
        factor = cho_factor(Q + np.diag(weight), lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return False
    flat = cho_solve(factor, np.ones(n), check_finite=False)

    def direction(low_rest: Array, high_rest: Array) -> tuple[Array, Array, Array, float]:
        """Return the Newton step for the remaining products of distances and multipliers."""
        rest = -slope - low_rest / point.z + high_rest / room
        side = weight * np.bincount(point.owner, weights=point.sign * rest / theta, minlength=n)
        du = cho_solve(factor, side, check_finite=False)
        level = -(u.sum() + du.sum()) / flat.sum()
        du = du + level * flat
        pull = (side - weight * du + level)[point.owner]  # Q du
        dz = (rest - point.sign * (pull - level)) / theta
        low = -(low_rest + point.low * dz) / point.z
        high = (-high_rest + point.high * dz) / room
        return dz, low, high, level

    products = point.products()
    mean = products.mean()
    dz, dlow, dhigh, level = direction(point.z * point.low, room * point.high)
    step = min(_reach(point.z, dz), _reach(room[finite], -dz[finite]))
    dual = min(_reach(point.low, dlow), _reach(point.high, dhigh))
    ahead = (point.z + step * dz) @ (point.low + dual * dlow)
    ahead += (room - step * dz) @ (point.high + dual * dhigh)
    centre = mean * (ahead / products.sum()) ** 3
    low_rest = point.z * point.low + dz * dlow - centre
    high_rest = np.where(finite, room * point.high - dz * dhigh - centre, 0.0)
    dz, dlow, dhigh, level = direction(low_rest, high_rest)
    if not np.isfinite(dz).all():
        return False
    step = min(_reach(point.z, dz), _reach(room[finite], -dz[finite]))
    step = _INSIDE * min(step, _reach(point.low, dlow), _reach(point.high, dhigh))
    point.z = point.z + step * dz
    point.low = point.low + step * dlow
    point.high = point.high + step * dhigh
    point.level += step * level
    return True


def _reach(values: Array, change: Array) -> float:
    """Return the largest step of at most one that keeps the values non-negative."""
    falling = change < 0
    if not falling.any():
        return 1.0
    return min(1.0, float((values[falling] / -change[falling]).min()))
