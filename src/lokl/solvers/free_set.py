"""From an approximate optimum to the exact one, where the problem is small.

At the optimum, the free coefficients (neither zero nor at a bound) satisfy a linear system. Once
the solver has found which they are, solving it gives the optimum to machine precision: the answer
no longer depends on the order of rows, on repeated rows or on the path.

Interior point steps: a small problem whose kernel values are too uneven for pair moves.

Pair moves follow the kernel's flat directions in tiny steps: with features of size 10,000 and few
dimensions they need billions. Interior point steps solve for all coefficients at once, so their
number, some dozens, does not depend on the scale of the kernel. Each costs a Cholesky factor.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, lapack

from lokl._arrays import Array
from lokl.solvers.problem import Problem

_LARGEST = 200
_POLISH_ROUNDS = 20
# By the bytes of a number, in units of the largest diagonal entry.
_RIDGES = {8: 1e-11, 4: 1e-7}


@dataclass
class Optimum:
    """Coefficients, the gradient that belongs to them, and the violation that is left."""

    coef: Array
    gradient: Array
    violation: float


def polish(
    matrix: Array, problem: Problem, coef: Array, gradient: Array, exact: float
) -> Optimum | None:
    """Solve for the free coefficients exactly; None where that does not apply.

    Parameters
    ----------
    matrix : array of shape (n, n)
        ``K + R`` in float64.
    problem : Problem
    coef, gradient : arrays of shape (n,)
        Near the optimum; left alone.
    exact : float
        Violation that counts as none.
    """
    best = None
    for u, slope, is_whole in _strides(matrix, problem, coef, gradient):
        if is_whole:
            up, down = problem.violations(u, slope)
            violation = float(up.max() - down.min())
            if best is not None and violation > 0.5 * best.violation:
                break
            best = Optimum(u, slope, violation)
            if violation <= exact:
                break
    return best


def climb(
    matrix: Array, problem: Problem, coef: Array, gradient: Array
) -> tuple[Array, Array] | None:
    """Go to the best values of the free coefficients, or to where too many have met a bound.

    The objective rises on the way. Pair moves need many steps where a few coefficients are free and
    their matrix is nearly singular, as under a linear kernel of large cost; there, this needs few.
    Returns coefficients and gradient; None where it does not apply.
    """
    found = None
    for u, slope, is_whole in _strides(matrix, problem, coef, gradient):
        found = u, slope
        if is_whole:
            break
    return found


# Coefficients and gradient, and whether no bound was met on the way to them.
Stride = tuple[Array, Array, bool]


def _strides(matrix: Array, problem: Problem, coef: Array, gradient: Array) -> Iterator[Stride]:
    """Yield step after step of the free coefficients, as long as one applies."""
    # Coefficients keep their sign where the slope jumps at zero.
    lower = np.where((coef > 0) & (problem.epsilon > 0), 0.0, problem.lower)
    upper = np.where((coef < 0) & (problem.epsilon > 0), 0.0, problem.upper)
    for _ in range(_POLISH_ROUNDS):
        stride = _stride(matrix, problem, coef, gradient, lower, upper)
        if stride is None:
            return
        yield stride
        coef, gradient, _ = stride


def _stride(
    matrix: Array, problem: Problem, coef: Array, gradient: Array, lower: Array, upper: Array
) -> Stride | None:
    """Newton's step of the free coefficients up to the nearest bound, and whether it was whole."""
    free = np.flatnonzero((coef > lower) & (coef < upper) & (coef != 0))
    if not 2 <= len(free) <= _LARGEST:
        return None
    change = _newton(matrix, problem, coef, gradient, free)
    if change is None:
        return None
    room = np.where(change > 0, upper[free] - coef[free], coef[free] - lower[free])
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.where(change != 0, room / np.abs(change), np.inf)
    step = min(1.0, float(reach.min()))
    moved = coef[free] + step * change
    if step < 1.0:
        # The nearest bound is hit: these coefficients are not free after all.
        blocked = reach <= step
        moved[blocked] = np.where(change > 0, upper[free], lower[free])[blocked]
    gradient = gradient - (moved - coef[free]) @ matrix[free]
    coef = coef.copy()
    coef[free] = moved
    return coef, gradient, step == 1.0


def _newton(
    matrix: Array, problem: Problem, coef: Array, gradient: Array, free: Array
) -> Array | None:
    """Change of the free coefficients towards equality in their optimality conditions.

    With ``s`` the slopes of the objective: ``K d + b 1 = s`` and ``1'd = 0`` restores the balance.
    Repeated rows make the matrix singular; a tiny ridge leaves the split between them symmetric,
    and repetition removes its effect on everything else.
    """
    ridge = _RIDGES[matrix.dtype.itemsize]
    system = matrix[free[:, np.newaxis], free].astype(np.float64, copy=False)
    system.flat[:: len(free) + 1] += ridge * system.diagonal().max()
    sides = np.ones((len(free), 2), order="F")
    sides[:, 0] = gradient[free] - problem.epsilon * np.sign(coef[free])
    # LAPACK is called directly: the checks of scipy.linalg.solve cost more than so small a system.
    _, solution, failure = lapack.dposv(system, sides, lower=1, overwrite_b=1)
    if failure:
        return None
    toward, level = solution.T
    change = toward - (toward.sum() + coef.sum()) / level.sum() * level
    return np.asarray(change) if np.isfinite(change).all() else None


_INTERIOR_ROUNDS = 100
# Rounds without progress that end the steps: rounding is all that is left. At first, while the path
# is far from balance, there is none either.
_PATIENCE = 25
# Share of the way to the nearest bound, so that the path stays inside.
_INSIDE = 0.995
# Complementarity relative to the value, at which the active bounds are known.
_CLOSE = 1e-10


@dataclass
class _Path:
    """A point inside the bounds, written as ``u = sum of signed halves z``, with its multipliers.

    Halves are the positive and the negative part of a coefficient, where the bounds allow both;
    ``0 < z < cap``, with multipliers `low` and `high` of these bounds and `level` of ``1'u = 0``.
    """

    sign: Array
    owner: Array  # number of the sample of each half
    cost: Array
    cap: Array
    z: Array
    low: Array
    high: Array
    level: float = 0.0

    @classmethod
    def begin(cls, problem: Problem, scale: float) -> "_Path":
        up, down = np.flatnonzero(problem.upper > 0), np.flatnonzero(problem.lower < 0)
        owner = np.concatenate([up, down])
        sign = np.concatenate([np.ones(len(up)), -np.ones(len(down))])
        cost = problem.epsilon - sign * problem.target[owner]
        cap = np.concatenate([problem.upper[up], -problem.lower[down]])
        # Coefficients of this size give decision values of the size of the targets.
        z = np.minimum(0.5 * cap, 1.0 / scale)
        size = max(1.0, float(np.abs(cost).max()))
        high = np.where(np.isfinite(cap), size, 0.0)
        return cls(sign, owner, cost, cap, z, np.full(len(z), size), high)

    def coef(self, n: int, z: Array | None = None) -> Array:
        z = self.z if z is None else z
        return np.bincount(self.owner, weights=self.sign * z, minlength=n)

    @property
    def room(self) -> Array:
        return self.cap - self.z

    def products(self) -> Array:
        """Bound times multiplier, of all bounds; all fall to zero."""
        finite = np.isfinite(self.cap)
        return np.concatenate([self.z * self.low, self.room[finite] * self.high[finite]])

    def at_bounds(self) -> Array:
        """Halves, with those at a bound put there: their multiplier is the larger of the two."""
        size = max(float(self.z.max()), np.finfo(float).tiny)
        z = np.where(self.z / size < self.low, 0.0, self.z)
        full = np.isfinite(self.cap) & (self.room / size < self.high) & (z > 0)
        return np.where(full, self.cap, z)


def interior(matrix: Array, problem: Problem) -> Array | None:
    """Coefficients near the optimum, with those at bounds put there; None where it failed.

    Parameters
    ----------
    matrix : array of shape (n, n)
        ``K + R`` in float64.
    problem : Problem
        Some sample can rise and some can fall.
    """
    path = _Path.begin(problem, max(float(matrix.diagonal().max()), 1e-300))
    taken = np.zeros(len(matrix), dtype=bool)
    taken[path.owner] = True
    part = np.flatnonzero(taken)
    place = np.cumsum(taken) - 1
    path.owner = place[path.owner]
    system = matrix if len(part) == len(matrix) else matrix[np.ix_(part, part)]
    best, worse = np.inf, 0
    for _ in range(_INTERIOR_ROUNDS):
        if not _advance(path, system):
            break
        products = float(path.products().sum())
        worse = worse + 1 if products >= best else 0
        if worse == _PATIENCE or products <= _CLOSE * abs(float(path.cost @ path.z)):
            break
        best = min(best, products)
    if not np.isfinite(path.z).all():
        return None
    coef = np.zeros(len(matrix))
    coef[part] = path.coef(len(part), path.at_bounds())
    return coef


def _advance(path: _Path, Q: Array) -> bool:
    """One predictor and corrector step (Mehrotra); whether the linear system could be solved."""
    n = len(Q)
    finite = np.isfinite(path.cap)
    # Where there is no upper bound, any room will do: its multiplier is zero and stays so.
    room = np.where(finite, path.room, 1.0)
    u = path.coef(n)
    slope = path.cost + path.sign * ((Q @ u) - path.level)[path.owner] - path.low + path.high
    theta = path.low / path.z + path.high / room
    weight = 1.0 / np.bincount(path.owner, weights=1.0 / theta, minlength=n)
    try:
        factor = cho_factor(Q + np.diag(weight), lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return False
    flat = cho_solve(factor, np.ones(n), check_finite=False)

    def direction(low_rest: Array, high_rest: Array) -> tuple[Array, Array, Array, float]:
        """Newton's step for what is left of the products of bounds and multipliers."""
        rest = -slope - low_rest / path.z + high_rest / room
        side = weight * np.bincount(path.owner, weights=path.sign * rest / theta, minlength=n)
        du = cho_solve(factor, side, check_finite=False)
        level = -(u.sum() + du.sum()) / flat.sum()
        du = du + level * flat
        pull = (side - weight * du + level)[path.owner]  # Q du
        dz = (rest - path.sign * (pull - level)) / theta
        low = -(low_rest + path.low * dz) / path.z
        high = (-high_rest + path.high * dz) / room
        return dz, low, high, level

    products = path.products()
    mean = products.mean()
    dz, dlow, dhigh, level = direction(path.z * path.low, room * path.high)
    step = min(_reach(path.z, dz), _reach(room[finite], -dz[finite]))
    dual = min(_reach(path.low, dlow), _reach(path.high, dhigh))
    ahead = (path.z + step * dz) @ (path.low + dual * dlow)
    ahead += (room - step * dz) @ (path.high + dual * dhigh)
    centre = mean * (ahead / products.sum()) ** 3
    low_rest = path.z * path.low + dz * dlow - centre
    high_rest = np.where(finite, room * path.high - dz * dhigh - centre, 0.0)
    dz, dlow, dhigh, level = direction(low_rest, high_rest)
    if not np.isfinite(dz).all():
        return False
    step = min(_reach(path.z, dz), _reach(room[finite], -dz[finite]))
    step = _INSIDE * min(step, _reach(path.low, dlow), _reach(path.high, dhigh))
    path.z = path.z + step * dz
    path.low = path.low + step * dlow
    path.high = path.high + step * dhigh
    path.level += step * level
    return True


def _reach(values: Array, change: Array) -> float:
    """Largest step of at most one that keeps the values from falling below zero."""
    falling = change < 0
    if not falling.any():
        return 1.0
    return min(1.0, float((values[falling] / -change[falling]).min()))
