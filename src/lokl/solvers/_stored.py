# mypy: ignore-errors
# Types here are numba's, read at compile time.
"""Compiled solver for machines on a matrix that is stored as a whole.

One call solves one machine: it takes working sets, copies their small matrix out of the whole one,
moves pairs in it, and carries the moves over to the gradient of all samples. Nothing of it needs
the interpreter, so that threads solve machines side by side.
"""

import numpy as np
from numba import njit

from lokl.solvers._smo import _offsets, smo

# Told to users while a loop is compiled.
PURPOSES = {"solve_stored": "selection"}

# Functions that only loops call are compiled without what would unpack their arguments, and nothing
# is compiled to be called from C.
_LOOP = {"cache": True, "nogil": True, "no_cfunc_wrapper": True}
_INNER = {**_LOOP, "no_cpython_wrapper": True}
_SUMS = {"nsz", "contract"}

# Columns of the gradient that are updated at a time.
_TILE = 512
# Working sets are solved to this share of the violation, and never finer than half the tolerance.
_SHARE = 0.1
# Steps in one working set: far more than it needs.
_STEPS = 100_000
# Where the next solution is looked for, after the costs have risen.
STAY, SCALE_ALL, RAISE_BOUNDED = 0, 1, 2


@njit(**_LOOP)
def solve_stored(matrix, machine, box, epsilon, ridge, tol, size, max_steps):
    """Solve ``max_u t'u - epsilon |u| - u'(K + R)u / 2`` from any feasible point.

    Parameters
    ----------
    matrix : array of shape (n, n)
        ``K``.
    machine : tuple of arrays of shape (n,)
        Coefficients and gradient ``t - (K + R) u``, updated in place.
    box : tuple of arrays of shape (n,)
        Lower and upper bounds.
    epsilon : float
    ridge : array of shape (n,)
    tol : float
        Violation that is left.
    size : int
        Of working sets.
    max_steps : int

    Returns
    -------
    violation, steps, curvature
        As `smo` has them.
    """
    coef, gradient = machine
    lower, upper = box
    n = coef.shape[0]
    size = min(size, n)
    index, chosen = np.empty(size, np.int64), np.zeros(n, np.bool_)
    rank = np.zeros(n, np.int8)
    small = np.empty((size, size), matrix.dtype)
    own_coef, own_gradient = np.empty(size), np.empty(size, matrix.dtype)
    own_lower, own_upper = np.empty(size), np.empty(size)
    change = np.empty(size)
    count = steps = 0
    curvature = np.inf
    while True:
        best, low = _extremes(coef, gradient, lower, upper, epsilon)
        violation = best - low
        if violation <= tol or steps >= max_steps:
            break
        if count == 0:
            _rank_free(coef, lower, upper, rank)
        span = (best, low, 0.5 * tol)
        count = _choose(coef, gradient, lower, upper, epsilon, rank, span, chosen, index)
        _copy_out(matrix, index, count, ridge, small)
        middle = 0.5 * (best + low)
        for a in range(count):
            j = index[a]
            own_coef[a], own_gradient[a] = coef[j], gradient[j] - middle
            own_lower[a], own_upper[a] = lower[j], upper[j]
        taken, _, smallest = smo(
            small,
            own_coef[:count],
            own_gradient[:count],
            own_lower[:count],
            own_upper[:count],
            epsilon,
            max(0.5 * tol, _SHARE * violation),
            _STEPS,
        )
        steps += taken
        curvature = min(curvature, smallest)
        moved = 0
        for a in range(count):
            j, u = index[a], own_coef[a]
            step = u - coef[j]
            free = lower[j] < u < upper[j] and u != 0.0
            rank[j] = 2 if free else (1 if step != 0.0 else 0)
            if step != 0.0:
                coef[j] = u
                gradient[j] -= ridge[j] * step
                index[moved], change[moved] = j, step
                moved += 1
        if moved == 0:
            break
        subtract_stored(matrix, index[:moved], change[:moved], gradient)
    return violation, steps, curvature


@njit(**_INNER)
def _extremes(coef, gradient, lower, upper, epsilon):
    """Largest gain of raising a coefficient, and smallest loss of lowering one."""
    best, low = -np.inf, np.inf
    for j in range(coef.shape[0]):
        rise, fall = _offsets(coef[j], lower[j], upper[j], epsilon)
        best = max(best, gradient[j] + rise)
        low = min(low, gradient[j] + fall)
    return best, low


@njit(**_INNER)
def _rank_free(coef, lower, upper, rank):
    """In a start from another solution, the free samples are those that will move."""
    for j in range(coef.shape[0]):
        rank[j] = 2 if (lower[j] < coef[j] < upper[j] and coef[j] != 0.0) else 0


@njit(**_INNER)
def _choose(coef, gradient, lower, upper, epsilon, rank, span, chosen, index):
    """Choose a working set, in rising order: half of it the last one's, half violators.

    `rank` is 2 for free samples of the last set and 1 for others that moved. Returns their number.
    """
    n, size = coef.shape[0], index.shape[0]
    best, low, least = span
    count = 0
    for j in range(n):
        chosen[j] = False
    for wanted in (2, 1):
        for j in range(n):
            if rank[j] == wanted and count < size // 2:
                chosen[j] = True
                count += 1
    for j in range(n):
        rank[j] = 0
    values, who = np.empty(n), np.empty(n, np.int64)
    for rising in (True, False):
        found = 0
        for j in range(n):
            rise, fall = _offsets(coef[j], lower[j], upper[j], epsilon)
            value = gradient[j] + rise - low if rising else best - gradient[j] - fall
            if value > least and not chosen[j]:
                values[found], who[found] = value, j
                found += 1
        room = (size - count) // 2 if rising else size - count
        count += _take_largest(values, who, found, room, chosen)
    place = 0
    for j in range(n):
        if chosen[j]:
            index[place] = j
            place += 1
    return place


@njit(**_INNER)
def _take_largest(values, who, found, room, chosen):
    """Choose those with the largest values, `room` of them or all; return how many."""
    if found <= room:
        for q in range(found):
            chosen[who[q]] = True
        return found
    if room <= 0:
        return 0
    last = np.partition(values[:found], found - room)[found - room]
    taken = 0
    # Those above the last one first: many may be equal to it.
    for above in (True, False):
        for q in range(found):
            fits = values[q] > last if above else values[q] == last
            if fits and taken < room:
                chosen[who[q]] = True
                taken += 1
    return taken


@njit(**_INNER)
def _copy_out(matrix, index, count, ridge, small):
    """Write the rows and columns of a working set, with its ridge."""
    for a in range(count):
        source, target = matrix[index[a]], small[a]
        for b in range(count):
            target[b] = source[index[b]]
        target[a] += ridge[index[a]]


@njit(**_LOOP, fastmath=_SUMS)
def subtract_stored(matrix, index, change, gradient):
    """``gradient -= matrix[:, index] @ change`` for a symmetric matrix.

    Four rows are added up in the precision of the matrix, whose own rounding is as large, and then
    in float64.
    """
    n, count, real = gradient.shape[0], index.shape[0], matrix.dtype.type
    total = np.empty(_TILE)
    for start in range(0, n, _TILE):
        stop = min(start + _TILE, n)
        width = stop - start
        for j in range(width):
            total[j] = 0.0
        k = 0
        while k + 4 <= count:
            a, b, c, d = (
                real(change[k]),
                real(change[k + 1]),
                real(change[k + 2]),
                real(change[k + 3]),
            )
            x = matrix[index[k], start:stop]
            y = matrix[index[k + 1], start:stop]
            z = matrix[index[k + 2], start:stop]
            w = matrix[index[k + 3], start:stop]
            for j in range(width):
                total[j] += a * x[j] + b * y[j] + c * z[j] + d * w[j]
            k += 4
        while k < count:
            a = real(change[k])
            x = matrix[index[k], start:stop]
            for j in range(width):
                total[j] += a * x[j]
            k += 1
        for j in range(width):
            gradient[start + j] -= total[j]


@njit(**_LOOP)
def raise_costs(matrix, machine, target, before, box, epsilon, ratio, tol):
    """Move a solution towards that of the same problem with all bounds multiplied.

    Tried are to stay; to scale all coefficients, as far as the objective grows; and to raise those
    at their bounds alone, as far as it grows. Each is right somewhere: the first where no
    coefficient is at its bound, the second where all are, the third in between. The one with the
    fewest violations is taken.

    Parameters
    ----------
    matrix, machine, epsilon, tol
        As in `solve_stored`.
    target : array of shape (n,)
    before, box : tuple of arrays of shape (n,)
        Bounds of the solution, and those that hold now: `ratio` times larger.
    ratio : float
        Above 1.
    """
    coef, gradient = machine
    n = coef.shape[0]
    linear = quadratic = 0.0
    for j in range(n):
        linear += target[j] * coef[j] - epsilon * abs(coef[j])
        quadratic += coef[j] * (target[j] - gradient[j])
    fewest, way = _violators(coef, gradient, box, epsilon, tol), STAY
    scaled, scaled_gradient = np.empty(n), np.empty(n)
    factor = min(max(linear / quadratic, 1.0), ratio) if quadratic > 0.0 else 1.0
    if factor > 1.0:
        for j in range(n):
            scaled[j] = min(max(factor * coef[j], box[0][j]), box[1][j])
            scaled_gradient[j] = target[j] - factor * (target[j] - gradient[j])
        count = _violators(scaled, scaled_gradient, box, epsilon, tol)
        if count < fewest:
            fewest, way = count, SCALE_ALL
    raised, raised_gradient = _raise_bounded(matrix, machine, before, box, epsilon, ratio)
    if _violators(raised, raised_gradient, box, epsilon, tol) < fewest:
        way = RAISE_BOUNDED
    for j in range(n):
        if way == SCALE_ALL:
            coef[j], gradient[j] = scaled[j], scaled_gradient[j]
        elif way == RAISE_BOUNDED:
            coef[j], gradient[j] = raised[j], raised_gradient[j]
    return way


@njit(**_INNER)
def _raise_bounded(matrix, machine, before, box, epsilon, ratio):
    """Raise the coefficients that were at their bounds, those of the weaker side all the way."""
    coef, gradient = machine
    n = coef.shape[0]
    step = np.zeros(n)
    plus = minus = 0.0
    for j in range(n):
        if coef[j] != 0.0 and (coef[j] <= before[0][j] or coef[j] >= before[1][j]):
            step[j] = (ratio - 1.0) * coef[j]
            plus += max(step[j], 0.0)
            minus -= min(step[j], 0.0)
    raised, raised_gradient = coef.copy(), gradient.copy()
    if plus == 0.0 or minus == 0.0:
        return raised, raised_gradient
    index, change = np.empty(n, np.int64), np.empty(n)
    count = 0
    for j in range(n):
        if step[j] != 0.0:
            # The sum of all coefficients stays zero.
            step[j] *= min(1.0, minus / plus) if step[j] > 0.0 else min(1.0, plus / minus)
            index[count], change[count] = j, step[j]
            count += 1
    product = np.zeros(n)
    subtract_stored(matrix, index[:count], change[:count], product)
    slope = curve = 0.0
    for k in range(count):
        j = index[k]
        slope += change[k] * gradient[j] - epsilon * abs(change[k])
        curve -= change[k] * product[j]
    length = min(max(slope / curve, 0.0), 1.0) if curve > 0.0 else 1.0
    for j in range(n):
        raised[j] = min(max(coef[j] + length * step[j], box[0][j]), box[1][j])
        raised_gradient[j] = gradient[j] + length * product[j]
    return raised, raised_gradient


@njit(**_INNER)
def _violators(coef, gradient, box, epsilon, tol):
    """Number of samples that do not agree with the intercept of the free ones."""
    n = coef.shape[0]
    free = np.empty(n)
    count = 0
    for j in range(n):
        if box[0][j] < coef[j] < box[1][j] and coef[j] != 0.0:
            free[count] = gradient[j] - (epsilon if coef[j] > 0.0 else -epsilon)
            count += 1
    if count == 0:
        return n
    intercept = np.median(free[:count])
    violators = 0
    for j in range(n):
        rise, fall = _offsets(coef[j], box[0][j], box[1][j], epsilon)
        if gradient[j] + rise - intercept > tol or intercept - gradient[j] - fall > tol:
            violators += 1
    return violators
