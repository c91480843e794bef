"""Compiled sequential minimal optimization (SMO): pair moves in a working set.

:func:`smo` solves one small matrix, and :func:`select` chooses its samples. :func:`climb` moves all
free coefficients by conjugate gradients if there are many. :func:`raise_costs` turns a solution
into a warm start for larger costs.

A `state` is the tuple of coefficients ``u`` and gradient ``t - (K + R) u``, both of shape (n,). A
`box` is the tuple of lower bounds, upper bounds, epsilon and the diagonal of ``R``.
"""

import numpy as np
from numba import njit, types
from numba.extending import overload

from lokl._compiled import INNER, LOOP
from lokl.gram._mixing import subtract_rows

# mypy: ignore-errors
# Types here are numba's, read at compile time.


# Shown to users while a loop is compiled.
PURPOSES = {"smo": "the exact solver", "select": "working sets", "raise_costs": "selection"}

# Length of the chunks whose largest value is found first, before its position.
_CHUNK = 64
# Limit on the conjugate directions of one climb.
_DIRECTIONS = 60
# Warm starts that `raise_costs` compares.
STAY, SCALE_ALL, RAISE_BOUNDED = 0, 1, 2


@njit(**LOOP, fastmath={"nnan", "nsz", "contract"})
def smo(Q, coef, gradient, lower, upper, epsilon, tol, max_steps):
    """Move pairs of coefficients until no pair gains more than `tol`.

    Maximises ``t'u - epsilon |u| - u'Qu/2`` with ``1'u`` fixed. The first of a pair gains most by
    rising; the second is the partner with the largest second-order gain. A coefficient stops at
    zero, where the slope of ``epsilon |u|`` jumps.

    Bounds are represented as offsets of plus or minus infinity, so that the loops have no branches.
    Everything read in each step has the precision of `gradient`: float32 halves the memory traffic.

    Parameters
    ----------
    Q : array of shape (>= n, >= n)
        Only the first n rows and columns are used.
    coef, gradient : arrays of shape (n,)
        ``u`` and ``t - Qu``, updated in place. Any constant may be added to the gradient.
    lower, upper : arrays of shape (n,)
    epsilon, tol : float
    max_steps : int

    Returns
    -------
    steps : int
    violation : float
        Largest gain that is left, ``max(up) - min(down)``, or 0 if that is negative.
    curvature : float
        Smallest ``Q_ii + Q_jj - 2 Q_ij`` of a pair that was moved. It is negative only if `Q` is
        indefinite.
    """
    n, real = coef.shape[0], gradient.dtype.type
    none, least, two, infinite = real(0.0), real(1e-12), real(2.0), real(np.inf)
    rise, fall = np.empty(n, gradient.dtype), np.empty(n, gradient.dtype)
    up, slopes = np.empty(n, gradient.dtype), np.empty(n, gradient.dtype)
    gain, diag = np.empty(n, gradient.dtype), np.empty(n, gradient.dtype)
    up_bits, slope_bits, gain_bits = _as_integers(up), _as_integers(slopes), _as_integers(gain)
    for j in range(n):
        rise[j], fall[j] = _offsets(coef[j], lower[j], upper[j], epsilon)
        diag[j] = Q[j, j]
    i = k = steps = 0
    move, violation, smallest = none, infinite, infinite
    while True:
        first, second = Q[i], Q[k]
        for j in range(n):
            g = gradient[j] - move * (first[j] - second[j])
            gradient[j] = g
            up[j] = g + rise[j]
        i = _largest_signed(up_bits, gain_bits)
        best = up[i]
        violation = -infinite
        if best == -infinite:
            break
        first, curve = Q[i], diag[i]
        for j in range(n):
            slope = max(best - (gradient[j] + fall[j]), none)
            slopes[j] = slope
            gain[j] = slope * slope / max(curve + diag[j] - two * first[j], least)
        violation = slopes[_largest(slope_bits)]
        k = _largest(gain_bits)
        if violation <= tol or steps >= max_steps or gain[k] <= none:
            break
        curvature = curve + diag[k] - two * first[k]
        smallest = min(smallest, curvature)
        slope = best - (gradient[k] + fall[k])
        wanted = float(slope) / max(float(curvature), 1e-12)
        moved, coef[i], coef[k] = _moved(wanted, coef[i], coef[k], upper[i], lower[k], epsilon)
        move = real(moved)
        rise[i], fall[i] = _offsets(coef[i], lower[i], upper[i], epsilon)
        rise[k], fall[k] = _offsets(coef[k], lower[k], upper[k], epsilon)
        steps += 1
    return steps, float(violation), float(smallest)


def _as_integers(values):
    """Return the bits of an array of floats, as integers of the same size."""
    raise NotImplementedError("for compiled code only")


@overload(_as_integers, inline="always")
def _bits(values):
    if values.dtype == types.float32:
        return lambda values: values.view(np.int32)
    return lambda values: values.view(np.int64)


@njit(**INNER)
def _largest(bits):
    """Return the first position of the largest of non-negative floats, given their bits.

    Such floats are ordered like their bits. The maximum of integers is vectorised; the maximum of
    floats is not, because they might be NaN.
    """
    n, most, position = bits.shape[0], bits[0], 0
    for start in range(0, n, _CHUNK):
        stop = min(start + _CHUNK, n)
        chunk_most = bits[start]
        for j in range(start, stop):
            chunk_most = max(chunk_most, bits[j])
        if chunk_most > most:
            most, position = chunk_most, start
    while bits[position] != most:
        position += 1
    return position


@njit(**INNER)
def _largest_signed(bits, room):
    """Return the first position of the largest of floats of any sign; overwrites `room`."""
    one = bits.dtype.type(1)
    shift = bits.dtype.type(8 * bits.itemsize - 1)
    # All bits except the sign.
    size = ~(one << shift)
    for j in range(bits.shape[0]):
        # Negative floats are ordered against their bits.
        room[j] = bits[j] ^ ((bits[j] >> shift) & size)
    return _largest(room)


@njit(**INNER)
def _moved(move, rising, falling, upper, lower, epsilon):
    """Clip a move at the bounds; return it and the two coefficients after it."""
    ceiling = 0.0 if (epsilon > 0.0 and rising < 0.0) else upper
    floor = 0.0 if (epsilon > 0.0 and falling > 0.0) else lower
    room_up, room_down = ceiling - rising, falling - floor
    move = min(move, min(room_up, room_down))
    # Land exactly on a bound: "at the bound" is tested by equality.
    rising = ceiling if move >= room_up else rising + move
    falling = floor if move >= room_down else falling - move
    return move, rising, falling


@njit(**INNER)
def _offsets(coef, lower, upper, epsilon):
    """Return what to add to the gradient for the gain of raising and of lowering a coefficient."""
    rise = -np.inf if coef >= upper else (-epsilon if coef >= 0.0 else epsilon)
    fall = np.inf if coef <= lower else (-epsilon if coef > 0.0 else epsilon)
    return rise, fall


@njit(**LOOP)
def place_symmetric(matrix, places, block):
    """Write `block`, of shape (len(places), n), into rows and columns of a symmetric `matrix`.

    Columns are written a few rows at a time: each cache line of the block is read once, and the
    lines of these rows, which share a cache set, do not evict each other.
    """
    count = block.shape[1]
    for p in range(places.shape[0]):
        # Entry by entry: assigning a slice would also compile numba's messages about shapes.
        row, source = matrix[places[p]], block[p]
        for i in range(count):
            row[i] = source[i]
    for first in range(0, count, 8):
        last = min(first + 8, count)
        for p in range(places.shape[0]):
            column = places[p]
            for i in range(first, last):
                matrix[i, column] = block[p, i]


@njit(**LOOP)
def copy_block(matrix, index, box, small):
    """Copy the rows and columns of some samples, and add their ridge to the diagonal."""
    count, ridge = index.shape[0], box[3]
    for a in range(count):
        source, target = matrix[index[a]], small[a]
        for b in range(count):
            target[b] = source[index[b]]
        target[a] += ridge[index[a]]


@njit(**LOOP)
def extremes(state, box):
    """Return the largest gain of raising a coefficient and the smallest loss of lowering one."""
    coef, gradient = state
    lower, upper, epsilon, _ = box
    best, low = -np.inf, np.inf
    for j in range(coef.shape[0]):
        rise, fall = _offsets(coef[j], lower[j], upper[j], epsilon)
        best = max(best, gradient[j] + rise)
        low = min(low, gradient[j] + fall)
    return best, low


@njit(**LOOP)
def select(state, box, rank, span, size, chosen):
    """Select a working set: half from the last set, half the worst violators.

    Parameters
    ----------
    state, box : tuples
    rank : array of int8 of shape (n,)
        Of the last set: 4 for free samples that moved, 3 for other free ones, 2 for others that
        moved, 1 for the rest, whose entries need not be computed again.
    span : tuple of float
        Largest gain, smallest loss, and the smallest violation that counts.
    size : int
    chosen : boolean array of shape (n,)
        Receives the mask of at most `size` samples.
    """
    coef, gradient = state
    lower, upper, epsilon, _ = box
    n = coef.shape[0]
    best, low, least = span
    count = 0
    for j in range(n):
        chosen[j] = False
    # The pair with the largest gain must fit in addition to the kept samples.
    most = size // 2 if size >= 4 else 0
    for wanted in (4, 3, 2, 1):
        for j in range(n):
            if rank[j] == wanted and count < most:
                chosen[j] = True
                count += 1
    values, candidates = np.empty(n), np.empty(n, np.int64)
    for rising in (True, False):
        n_found = 0
        for j in range(n):
            rise, fall = _offsets(coef[j], lower[j], upper[j], epsilon)
            value = gradient[j] + rise - low if rising else best - gradient[j] - fall
            if value > least and not chosen[j]:
                values[n_found], candidates[n_found] = value, j
                n_found += 1
        room = (size - count) // 2 if rising else size - count
        count += _take_largest(values[:n_found], candidates, room, chosen)


@njit(**INNER)
def _order_statistic(values, k):
    """Return the value at position `k` of the sorted values, whose order changes.

    Numba takes five seconds to compile ``np.partition``.
    """
    first, last = 0, values.shape[0] - 1
    while first < last:
        pivot = values[(first + last) // 2]
        i, j = first, last
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if k <= j:
            last = j
        elif k >= i:
            first = i
        else:
            break
    return values[k]


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
    last = _order_statistic(values.copy(), count - room)
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
def climb(system, coef, slope, low, high, tol):
    """Move free coefficients by conjugate gradients, which raises the objective.

    Near the optimum of a large cost hundreds of coefficients are free, and pair moves need many
    steps to balance them. A direction costs one product with their matrix. A coefficient that
    reaches a bound stays there, and the directions start again. The sum stays the same.

    Parameters
    ----------
    system : array of shape (n_free, n_free)
        ``K + R`` of the free coefficients.
    coef, slope : arrays of shape (n_free,)
        Updated in place.
    low, high : arrays of shape (n_free,)
        Bounds between which the slope does not jump.
    tol : float
        Twice the range of slopes that is left.
    """
    start, moving = coef.copy(), np.ones(coef.shape[0])
    direction, before = np.zeros_like(coef), 0.0
    for _ in range(_DIRECTIONS):
        centred = (slope - (slope * moving).sum() / max(moving.sum(), 1.0)) * moving
        if centred.max() - centred.min() <= 0.5 * tol:
            break
        length = (centred * centred).sum()
        share = length / before if before > 0.0 else 0.0
        direction = (centred + share * direction) * moving
        product = _product(system, direction)
        rise, curve, reach = (centred * direction).sum(), (direction * product).sum(), np.inf
        if curve <= 0.0 or rise <= 0.0:
            break
        for a in range(coef.shape[0]):
            if direction[a] != 0.0:
                bound = high[a] if direction[a] > 0.0 else low[a]
                reach = min(reach, (bound - coef[a]) / direction[a])
        step = min(rise / curve, reach)
        before = length if step < reach else 0.0
        coef += step * direction
        slope -= step * product
        for a in range(coef.shape[0] if step == reach else 0):
            bound = high[a] if direction[a] > 0.0 else low[a]
            if moving[a] and abs(bound - coef[a]) <= 1e-9 * abs(direction[a]) * reach:
                coef[a], moving[a] = bound, 0.0
    # Rounding has changed the sum; a coefficient with enough room restores it.
    excess = (coef - start).sum()
    for a in range(coef.shape[0]):
        if low[a] < coef[a] < high[a] and low[a] < coef[a] - excess < high[a]:
            coef[a] -= excess
            break


@njit(**INNER, fastmath={"nsz", "contract", "reassoc"})
def _product(system, direction):
    """Return ``system @ direction``, computed in the precision of the matrix."""
    count = system.shape[0]
    rounded = direction.astype(system.dtype)
    out = np.empty(count)
    for a in range(count):
        row, total = system[a], system.dtype.type(0.0)
        for b in range(count):
            total += row[b] * rounded[b]
        out[a] = total
    return out


@njit(**LOOP)
def raise_costs(matrix, state, target, before, box, ratio, tol):
    """Move a solution towards the solution of the same problem with all bounds multiplied.

    Three points are compared: the solution itself, all coefficients scaled as far as the objective
    grows, and only those at their bounds raised as far as it grows. The first is right if no
    coefficient is at its bound, the second if all are, the third in between. The point with the
    fewest violations is taken.

    Parameters
    ----------
    matrix : array of shape (n, n)
    state : tuple
        Updated in place.
    target : array of shape (n,)
    before, box : tuples
        Of the solution, and with bounds that are `ratio` times as large.
    ratio : float
        Above 1.
    tol : float

    Returns
    -------
    way : {STAY, SCALE_ALL, RAISE_BOUNDED}
    """
    coef, gradient = state
    n, epsilon = coef.shape[0], box[2]
    linear = quadratic = 0.0
    for j in range(n):
        linear += target[j] * coef[j] - epsilon * abs(coef[j])
        quadratic += coef[j] * (target[j] - gradient[j])
    fewest, way = _violators(coef, gradient, box, tol), STAY
    scaled, scaled_gradient = np.empty(n), np.empty(n)
    factor = min(max(linear / quadratic, 1.0), ratio) if quadratic > 0.0 else 1.0
    if factor > 1.0:
        for j in range(n):
            scaled[j] = min(max(factor * coef[j], box[0][j]), box[1][j])
            scaled_gradient[j] = target[j] - factor * (target[j] - gradient[j])
        count = _violators(scaled, scaled_gradient, box, tol)
        if count < fewest:
            fewest, way = count, SCALE_ALL
    raised, raised_gradient = _raise_bounded(matrix, state, before, box, ratio)
    if _violators(raised, raised_gradient, box, tol) < fewest:
        way = RAISE_BOUNDED
    for j in range(n):
        if way == SCALE_ALL:
            coef[j], gradient[j] = scaled[j], scaled_gradient[j]
        elif way == RAISE_BOUNDED:
            coef[j], gradient[j] = raised[j], raised_gradient[j]
    return way


@njit(**INNER)
def _raise_bounded(matrix, state, before, box, ratio):
    """Raise the coefficients at their bounds; the side with the smaller sum goes all the way."""
    coef, gradient = state
    n, epsilon = coef.shape[0], box[2]
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
def _violators(coef, gradient, box, tol):
    """Count samples that violate optimality at the intercept of the free samples."""
    n, epsilon = coef.shape[0], box[2]
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
