"""Compiled sequential minimal optimization (SMO) on one small matrix."""

import numpy as np
from numba import njit, types
from numba.extending import overload

from lokl._compiled import INNER, LOOP

# mypy: ignore-errors
# Types here are numba's, read at compile time.


# Shown to users while a loop is compiled.
PURPOSES = {"smo": "the exact solver"}

# Length of the chunks whose largest value is found first, before its position.
_CHUNK = 64


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
