"""Steps that move all free coefficients at once, on a stored matrix or on features.

At the optimum, the free coefficients (neither zero nor at a bound) satisfy a linear system. There
are two ways to use this, for different starting points:

- :func:`newton_steps` solves the system for the coefficients that are free now. Near the optimum it
  gives the optimum to machine precision (:func:`polish`), so that the solution does not depend on
  the order of rows, on repeated rows or on the path.
- :func:`interior` finds out which coefficients are free. Pair moves follow flat directions of the
  kernel in tiny steps: features of size 10,000 in a few dimensions take billions. Interior point
  steps number some dozens whatever the scale of the kernel, and each costs a Cholesky factor: of
  the matrix, or of the size of the features if the kernel is linear (:class:`FeatureMatrix`).
"""

from collections.abc import Callable, Iterator
from typing import Any, Protocol, Self

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, lapack

from lokl._arrays import Array, is_sparse, squared_norms
from lokl._threads import multiply
from lokl.solvers.problem import Problem

# Most free coefficients that Newton steps are taken for, and most steps.
MOST_FREE, _NEWTON_STEPS = 200, 20
# Limit on interior point steps, and steps without progress that end them: then only rounding is
# left. At first, far from balance, there is no progress either.
_INTERIOR_STEPS, _PATIENCE = 100, 25
# Fraction of the way to the nearest bound, so that the path stays inside.
_INSIDE = 0.995
# Complementarity relative to the value, at which the active bounds are known.
_CLOSE = 1e-10


class SystemMatrix(Protocol):
    """The matrix ``K`` of a problem, as the steps of this module use it.

    Attributes
    ----------
    rounding : float
        Relative rounding error of entries, which a ridge must exceed.
    """

    rounding: float

    def diagonal(self) -> Array:
        """Return ``K[j, j]``, (n,)."""

    def take(self, index: Array) -> Self:
        """Return the matrix of some samples."""

    def block(self, index: Array) -> Array:
        """Return ``K[index][:, index]`` in float64, a copy."""

    def dot(self, coef: Array, index: Any = slice(None)) -> Array:
        """Return ``K[:, index] @ coef``, (n,)."""

    def inverse(self, weight: Array) -> Callable[[Array], Array]:
        """Return the product with the inverse of ``K + diag(weight)``.

        LinAlgError if that is not positive definite.
        """


class StoredMatrix(SystemMatrix):
    """A matrix that is stored as a whole, of shape (n, n)."""

    def __init__(self, matrix: Array):
        self.matrix = matrix
        self.rounding = {8: 1e-11, 4: 1e-7}[matrix.dtype.itemsize]

    def diagonal(self) -> Array:
        return self.matrix.diagonal()

    def take(self, index: Array) -> Self:
        return type(self)(self.matrix[np.ix_(index, index)])

    def block(self, index: Array) -> Array:
        return self.matrix[np.ix_(index, index)].astype(np.float64, copy=False)

    def dot(self, coef: Array, index: Any = slice(None)) -> Array:
        return np.asarray(coef @ self.matrix[index])

    def inverse(self, weight: Array) -> Callable[[Array], Array]:
        system = self.matrix + np.diag(weight)
        factor = cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
        return lambda side: np.asarray(cho_solve(factor, side, check_finite=False))


class FeatureMatrix(SystemMatrix):
    """The matrix ``F F'`` of features of shape (n, n_columns), dense or a CSR matrix.

    With weights ``D``, ``(F F' + D)^-1 = D^-1 - D^-1 F (I + F' D^-1 F)^-1 F' D^-1``: the factor has
    the size of the columns. One step of refinement restores the digits that the difference loses
    if weights are small.
    """

    rounding = 1e-11

    def __init__(self, features: Any):
        self.features = features

    def diagonal(self) -> Array:
        return squared_norms(self.features)

    def take(self, index: Array) -> Self:
        return type(self)(self.features[index])

    def block(self, index: Array) -> Array:
        part = self.features[index]
        return multiply(part, part.T)

    def dot(self, coef: Array, index: Any = slice(None)) -> Array:
        return multiply(self.features, self.features[index].T @ coef)

    def inverse(self, weight: Array) -> Callable[[Array], Array]:
        F = self.features
        scale = 1.0 / weight
        scaled = F.multiply(scale[:, np.newaxis]).tocsr() if is_sparse(F) else F * scale[:, None]
        system = multiply(F.T, scaled)
        system.flat[:: len(system) + 1] += 1.0
        factor = cho_factor(system, lower=True, overwrite_a=True, check_finite=False)

        def once(side: Array) -> Array:
            inner = cho_solve(factor, scaled.T @ side, check_finite=False)
            return np.asarray(scale * side - scaled @ inner)

        def solve(side: Array) -> Array:
            solution = once(side)
            return solution + once(side - self.dot(solution) - weight * solution)

        return solve


def polish(
    matrix: SystemMatrix, problem: Problem, coef: Array, gradient: Array, exact: float
) -> tuple[Array, Array, float] | None:
    """Solve for the free coefficients exactly; None if no whole Newton step is possible.

    Returns coefficients and gradient, of shape (n,), and the violation that is left.

    Parameters
    ----------
    matrix : SystemMatrix
        ``K`` in double precision.
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
    matrix: SystemMatrix, problem: Problem, coef: Array, gradient: Array
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
    matrix: SystemMatrix, problem: Problem, coef: Array, gradient: Array, lower: Array, upper: Array
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
    gradient = gradient - matrix.dot(change, free)
    gradient[free] -= problem.ridge[free] * change
    coef = coef.copy()
    coef[free] = moved
    return coef, gradient, step == 1.0


def _newton_direction(
    matrix: SystemMatrix, problem: Problem, coef: Array, gradient: Array, free: Array
) -> Array | None:
    """Return the change of the free coefficients that makes their slopes equal, (n_free,).

    With slopes ``s`` of the objective it solves ``K d + b 1 = s``, with ``b`` such that ``1'u`` is
    zero afterwards. Repeated rows make the matrix singular. A tiny ridge splits their change
    evenly, and further steps remove its effect on everything else.
    """
    system = matrix.block(free)
    system.flat[:: len(free) + 1] += problem.ridge[free]
    system.flat[:: len(free) + 1] += matrix.rounding * system.diagonal().max()
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


def interior(matrix: SystemMatrix, problem: Problem) -> Array | None:
    """Return coefficients near the optimum, of shape (n,), with those at bounds put there.

    None if the steps fail.

    Parameters
    ----------
    matrix : SystemMatrix
        ``K`` in double precision.
    problem : Problem
        With at least one sample that can rise and one that can fall.
    """
    index = np.flatnonzero(problem.present)
    point = _InteriorPoint(problem.take(index), max(float(matrix.diagonal().max()), 1e-300))
    system, ridge = matrix.take(index), problem.ridge[index]
    least, worse, best = np.inf, 0, point.at_bounds()
    for _ in range(_INTERIOR_STEPS):
        # A distance that is rounded to zero ends the steps.
        with np.errstate(divide="ignore", invalid="ignore"):
            if not _advance(point, system, ridge):
                break
        left = float(point.products().sum()) / max(abs(float(point.cost @ point.z)), 1e-300)
        worse = 0 if left < least else worse + 1
        if left < least:
            # Beyond the precision of the factor, steps lead away again.
            least, best = left, point.at_bounds()
        if worse == _PATIENCE or left <= _CLOSE:
            break
    if not np.isfinite(best).all():
        return None
    coef = np.zeros(len(problem.target))
    coef[index] = point.coef(len(index), best)
    return coef


def _advance(point: _InteriorPoint, matrix: SystemMatrix, ridge: Array) -> bool:
    """Take one predictor-corrector step (Mehrotra); return whether the linear system was solved."""
    n = len(ridge)
    finite = np.isfinite(point.cap)
    # Without an upper bound the multiplier is zero and stays zero, whatever the room.
    room = np.where(finite, point.room, 1.0)
    u = point.coef(n)
    values = matrix.dot(u) + ridge * u - point.level
    slope = point.cost + point.sign * values[point.owner] - point.low + point.high
    theta = point.low / point.z + point.high / room
    weight = 1.0 / np.bincount(point.owner, weights=1.0 / theta, minlength=n)
    try:
        solve = matrix.inverse(ridge + weight)
    except LinAlgError:
        return False
    flat = solve(np.ones(n))

    def direction(low_rest: Array, high_rest: Array) -> tuple[Array, Array, Array, float]:
        """Return the Newton step for the remaining products of distances and multipliers."""
        rest = -slope - low_rest / point.z + high_rest / room
        side = weight * np.bincount(point.owner, weights=point.sign * rest / theta, minlength=n)
        du = solve(side)
        level = -(u.sum() + du.sum()) / flat.sum()
        du = du + level * flat
        pull = (side - weight * du + level)[point.owner]  # (K + R) du
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
