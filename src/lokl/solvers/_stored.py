"""Compiled solver of one SVM on a matrix that is stored as a whole.

One call of :func:`solve_stored` solves one problem. Each round takes a working set, copies its
block out of the matrix, moves pairs of coefficients in it, and updates the gradient of all samples.
The whole call releases the GIL, so threads solve several problems at the same time.

When many coefficients are free, :func:`climb` moves all of them by conjugate gradients.
:func:`raise_costs` turns a solution into a warm start for larger costs.

In all functions, `state` is the tuple of coefficients ``u`` and gradient ``t - (K + R) u``, both of
shape (n,), and `box` is the tuple of lower and upper bounds.
"""

import numpy as np
from numba import njit

from lokl._compiled import INNER, LOOP
from lokl.gram._rows import subtract_rows
from lokl.solvers._smo import _offsets, smo

# mypy: ignore-errors
# Types here are numba's, read at compile time.


# Shown to users while a loop is compiled.
PURPOSES = {"solve_stored": "selection", "raise_costs": "selection"}

# Working sets are solved to this fraction of the violation, but not below half the tolerance.
_INNER_FRACTION = 0.1
# Limit on the steps in one working set, far more than it needs.
_STEPS_PER_SET = 100_000
# Pair moves between two calls of `climb`.
_STEPS_TO_CLIMB = 5000
# Limit on the conjugate directions of one climb.
_DIRECTIONS = 60
# Fewest free coefficients for which a climb pays, and most whose matrix is copied.
_FEWEST_FREE, _MOST_FREE = 20, 2500
# Warm starts that `raise_costs` compares.
STAY, SCALE_ALL, RAISE_BOUNDED = 0, 1, 2


@njit(**LOOP)
def solve_stored(matrix, state, box, epsilon, ridge, tol, size, max_steps):
    """Solve ``max_u t'u - epsilon |u| - u'(K + R)u / 2`` from any feasible point.

    Parameters
    ----------
    matrix : array of shape (n, n)
        ``K``.
    state : tuple of arrays of shape (n,)
        Coefficients and gradient, updated in place.
    box : tuple of arrays of shape (n,)
    epsilon : float
    ridge : array of shape (n,)
        Diagonal of ``R``.
    tol : float
        Violation of the optimality conditions that is left.
    size : int
        Samples of a working set.
    max_steps : int

    Returns
    -------
    violation : float
    steps : int
    curvature : float
        Smallest ``Q_ii + Q_jj - 2 Q_ij`` of a pair that was moved.
    """
    n = state[0].shape[0]
    size = min(size, n)
    # Rank 2: free samples of the last working set. Rank 1: its other samples that moved.
    index, rank = np.empty(size, np.int64), np.empty(n, np.int8)
    small = np.empty((size, size), matrix.dtype)
    _rank_free(state[0], box, rank)
    steps, climb_at, curvature = 0, _STEPS_TO_CLIMB, np.inf
    while True:
        best, low = _extremes(state, box, epsilon)
        violation = best - low
        if violation <= tol or steps >= max_steps:
            break
        if steps >= climb_at:
            climb_at = steps + _STEPS_TO_CLIMB
            climb(matrix, state, box, epsilon, ridge, tol)
            continue
        count = _select(state, box, epsilon, rank, (best, low, 0.5 * tol), index)
        inner_tol = max(0.5 * tol, _INNER_FRACTION * violation)
        middle = 0.5 * (best + low)
        taken, moved, smallest = _improve(
            matrix, state, box, epsilon, ridge, index[:count], small, rank, middle, inner_tol
        )
        steps += taken
        curvature = min(curvature, smallest)
        if moved == 0:
            break
    return violation, steps, curvature


@njit(**INNER)
def _improve(matrix, state, box, epsilon, ridge, index, small, rank, middle, tol):
    """Solve a working set, and update coefficients and gradient of all samples.

    `middle` is subtracted from the gradient, so that single precision suffices for the rest.
    Returns the steps, the number of samples that moved, and the smallest curvature.
    """
    coef, gradient = state
    count = index.shape[0]
    _copy_block(matrix, index, ridge, small)
    set_coef, set_gradient = np.empty(count), np.empty(count, matrix.dtype)
    set_lower, set_upper = np.empty(count), np.empty(count)
    for a in range(count):
        j = index[a]
        set_coef[a], set_gradient[a] = coef[j], gradient[j] - middle
        set_lower[a], set_upper[a] = box[0][j], box[1][j]
    steps, _, curvature = smo(
        small, set_coef, set_gradient, set_lower, set_upper, epsilon, tol, _STEPS_PER_SET
    )
    for a in range(count):
        j, u = index[a], set_coef[a]
        free = set_lower[a] < u < set_upper[a] and u != 0.0
        rank[j] = 2 if free else (1 if u != coef[j] else 0)
    moved = _update(matrix, state, index, set_coef, ridge)
    return steps, moved, curvature


@njit(**INNER)
def _update(matrix, state, index, values, ridge):
    """Set coefficients of some samples, update the gradient of all; return how many changed."""
    coef, gradient = state
    count, moved = index.shape[0], 0
    positions, change = np.empty(count, np.int64), np.empty(count)
    for a in range(count):
        j = index[a]
        step = values[a] - coef[j]
        if step != 0.0:
            coef[j] = values[a]
            gradient[j] -= ridge[j] * step
            positions[moved], change[moved] = j, step
            moved += 1
    subtract_rows(0, gradient.shape[0], matrix, positions[:moved], change[:moved], gradient)
    return moved


@njit(**INNER)
def _copy_block(matrix, index, ridge, small):
    """Copy the rows and columns of some samples, and add their ridge to the diagonal."""
    count = index.shape[0]
    for a in range(count):
        source, target = matrix[index[a]], small[a]
        for b in range(count):
            target[b] = source[index[b]]
        target[a] += ridge[index[a]]


@njit(**INNER)
def _extremes(state, box, epsilon):
    """Return the largest gain of raising a coefficient and the smallest loss of lowering one."""
    coef, gradient = state
    best, low = -np.inf, np.inf
    for j in range(coef.shape[0]):
        rise, fall = _offsets(coef[j], box[0][j], box[1][j], epsilon)
        best = max(best, gradient[j] + rise)
        low = min(low, gradient[j] + fall)
    return best, low


@njit(**INNER)
def _rank_free(coef, box, rank):
    """Rank samples of a warm start: the free ones are likely to move."""
    for j in range(coef.shape[0]):
        rank[j] = 2 if (box[0][j] < coef[j] < box[1][j] and coef[j] != 0.0) else 0


@njit(**INNER)
def _select(state, box, epsilon, rank, span, index):
    """Select a working set: half from the last set, half the worst violators.

    `span` is the largest gain, the smallest loss and the smallest violation that counts. Ranks are
    reset. Writes indices in increasing order, and returns their number.
    """
    coef, gradient = state
    n, size = coef.shape[0], index.shape[0]
    best, low, least = span
    count, chosen = 0, np.zeros(n, np.bool_)
    for wanted in (2, 1):
        for j in range(n):
            if rank[j] == wanted and count < size // 2:
                chosen[j] = True
                count += 1
    for j in range(n):
        rank[j] = 0
    values, candidates = np.empty(n), np.empty(n, np.int64)
    for rising in (True, False):
        n_found = 0
        for j in range(n):
            rise, fall = _offsets(coef[j], box[0][j], box[1][j], epsilon)
            value = gradient[j] + rise - low if rising else best - gradient[j] - fall
            if value > least and not chosen[j]:
                values[n_found], candidates[n_found] = value, j
                n_found += 1
        room = (size - count) // 2 if rising else size - count
        count += _take_largest(values[:n_found], candidates, room, chosen)
    position = 0
    for j in range(n):
        if chosen[j]:
            index[position] = j
            position += 1
    return position


@njit(**INNER)
def _take_largest(values, candidates, room, chosen):
    """Mark the `room` candidates with the largest values, or all; return how many."""
    count = values.shape[0]
    if count <= room:
        for q in range(count):
            chosen[candidates[q]] = True
        return count
    if room <= 0:
        return 0
    last = np.partition(values, count - room)[count - room]
    taken = 0
    # Values above the last one come first, because many may be equal to it.
    for above in (True, False):
        for q in range(count):
            fits = values[q] > last if above else values[q] == last
            if fits and taken < room:
                chosen[candidates[q]] = True
                taken += 1
    return taken


@njit(**LOOP)
def climb(matrix, state, box, epsilon, ridge, tol):
    """Move all free coefficients by conjugate gradients, which raises the objective.

    Near the optimum of a large cost hundreds of coefficients are free, and pair moves need many
    steps to balance them. A direction costs one product with their matrix. A coefficient that
    reaches a bound stays there, and the directions start again.
    """
    coef, gradient = state
    free, low, high = _free(coef, box, epsilon)
    count = free.shape[0]
    if not _FEWEST_FREE <= count <= _MOST_FREE:
        return
    small = np.empty((count, count), matrix.dtype)
    _copy_block(matrix, free, ridge, small)
    u, slope, direction = np.empty(count), np.empty(count), np.zeros(count)
    for a in range(count):
        u[a] = coef[free[a]]
        slope[a] = gradient[free[a]] - (epsilon if u[a] > 0.0 else -epsilon)
    moving = np.ones(count, np.bool_)
    before = 0.0
    for _ in range(_DIRECTIONS):
        middle, length, width = _slope_spread(slope, moving)
        if width <= 0.5 * tol:
            break
        share = length / before if before > 0.0 else 0.0
        for a in range(count):
            direction[a] = slope[a] - middle + share * direction[a] if moving[a] else 0.0
        product = _product(small, direction)
        rise = curve = 0.0
        reach = np.inf
        for a in range(count):
            rise += (slope[a] - middle) * direction[a]
            curve += direction[a] * product[a]
            if direction[a] > 0.0:
                reach = min(reach, (high[a] - u[a]) / direction[a])
            elif direction[a] < 0.0:
                reach = min(reach, (low[a] - u[a]) / direction[a])
        if curve <= 0.0 or rise <= 0.0:
            break
        step = min(rise / curve, reach)
        before = length if step < reach else 0.0
        for a in range(count):
            u[a] += step * direction[a]
            slope[a] -= step * product[a]
            if step == reach and moving[a]:
                room = high[a] - u[a] if direction[a] > 0.0 else u[a] - low[a]
                if room <= 1e-9 * abs(direction[a]) * reach:
                    u[a] = high[a] if direction[a] > 0.0 else low[a]
                    moving[a] = False
    _keep_sum(u, coef, free, low, high)
    _update(matrix, state, free, u, ridge)


@njit(**INNER)
def _free(coef, box, epsilon):
    """Return the free coefficients and their bounds, which are 0 where the slope jumps there."""
    n = coef.shape[0]
    free, low, high = np.empty(n, np.int64), np.empty(n), np.empty(n)
    count = 0
    for j in range(n):
        u = coef[j]
        if box[0][j] < u < box[1][j] and u != 0.0:
            free[count] = j
            low[count] = 0.0 if (epsilon > 0.0 and u > 0.0) else box[0][j]
            high[count] = 0.0 if (epsilon > 0.0 and u < 0.0) else box[1][j]
            count += 1
    return free[:count], low[:count], high[:count]


@njit(**INNER)
def _slope_spread(slope, moving):
    """Return the mean of the moving slopes, their sum of squares around it, and their range."""
    total, count = 0.0, 0
    for a in range(slope.shape[0]):
        if moving[a]:
            total += slope[a]
            count += 1
    middle = total / max(count, 1)
    squares, least, most = 0.0, 0.0, 0.0
    for a in range(slope.shape[0]):
        if moving[a]:
            centred = slope[a] - middle
            squares += centred * centred
            least, most = min(least, centred), max(most, centred)
    return middle, squares, most - least


@njit(**INNER, fastmath={"nsz", "contract", "reassoc"})
def _product(small, direction):
    """Return ``small @ direction``, computed in the precision of the matrix."""
    count = small.shape[0]
    rounded = direction.astype(small.dtype)
    out = np.empty(count)
    for a in range(count):
        row, total = small[a], small.dtype.type(0.0)
        for b in range(count):
            total += row[b] * rounded[b]
        out[a] = total
    return out


@njit(**INNER)
def _keep_sum(u, coef, free, low, high):
    """Restore the sum of the coefficients, which rounding has changed, in one with enough room."""
    count, excess = free.shape[0], 0.0
    for a in range(count):
        excess += u[a] - coef[free[a]]
    for a in range(count):
        if low[a] < u[a] < high[a] and low[a] < u[a] - excess < high[a]:
            u[a] -= excess
            break


@njit(**LOOP)
def raise_costs(matrix, state, target, before, box, epsilon, ratio, tol):
    """Move a solution towards the solution of the same problem with all bounds multiplied.

    Three points are compared: the solution itself, all coefficients scaled as far as the objective
    grows, and only those at their bounds raised as far as it grows. The first is right if no
    coefficient is at its bound, the second if all are, the third in between. The point with the
    fewest violations is taken.

    Parameters
    ----------
    matrix, state, epsilon, tol
        As in :func:`solve_stored`.
    target : array of shape (n,)
    before, box : tuple of arrays of shape (n,)
        Bounds of the solution, and the new bounds, which are `ratio` times as large.
    ratio : float
        Above 1.

    Returns
    -------
    way : {STAY, SCALE_ALL, RAISE_BOUNDED}
    """
    coef, gradient = state
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
    raised, raised_gradient = _raise_bounded(matrix, state, before, box, epsilon, ratio)
    if _violators(raised, raised_gradient, box, epsilon, tol) < fewest:
        way = RAISE_BOUNDED
    for j in range(n):
        if way == SCALE_ALL:
            coef[j], gradient[j] = scaled[j], scaled_gradient[j]
        elif way == RAISE_BOUNDED:
            coef[j], gradient[j] = raised[j], raised_gradient[j]
    return way


@njit(**INNER)
def _raise_bounded(matrix, state, before, box, epsilon, ratio):
    """Raise the coefficients at their bounds; the side with the smaller sum goes all the way."""
    coef, gradient = state
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
    subtract_rows(0, product.shape[0], matrix, index[:count], change[:count], product)
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


@njit(**INNER)
def _violators(coef, gradient, box, epsilon, tol):
    """Count samples that violate optimality at the intercept of the free samples."""
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
