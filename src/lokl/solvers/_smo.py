"""Compiled sequential minimal optimisation on one small matrix."""

import numpy as np
from numba import njit, types
from numba.extending import overload

# mypy: ignore-errors
# Types here are numba's, read at compile time.


# Told to users while a loop is compiled.
PURPOSES = {"smo": "the exact solver"}

# Functions that only loops call are compiled without what would unpack their arguments, and nothing
# is compiled to be called from C.
_LOOP = {"cache": True, "nogil": True, "no_cfunc_wrapper": True}
_INNER = {**_LOOP, "no_cpython_wrapper": True}
# Numbers among which the largest is found before it is looked up where it is.
_PIECE = 64


@njit(**_LOOP, fastmath={"nnan", "nsz", "contract"})
def smo(Q, coef, gradient, lower, upper, epsilon, tol, max_steps):
    """Move pairs of coefficients until no pair gains more than `tol`.

    Maximises ``t'u - epsilon |u| - u'Qu/2`` with ``1'u`` and the rest of the problem fixed; `coef`
    and ``gradient = t - Qu`` are updated in place. `Q` is the first rows and columns of a matrix
    that may be larger. The first of a pair gains most by rising, the
    second is the partner with the largest second-order gain. A coefficient stops at zero where
    the slope of ``epsilon |u|`` jumps.

    Bounds are kept as offsets of plus or minus infinity, so that the loops have no branches. All
    that is looked at in every step has the precision of `gradient`: in float32 twice as much of it
    is handled at a time. Any number may be added to the gradient beforehand.
    Returns the number of steps, the largest gain left (``max(up) - min(down)``, and 0 where that is
    negative) and the smallest ``Q_ii + Q_jj - 2 Q_ij`` met, which is negative where `Q` is
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
        first, own = Q[i], diag[i]
        for j in range(n):
            slope = max(best - (gradient[j] + fall[j]), none)
            slopes[j] = slope
            gain[j] = slope * slope / max(own + diag[j] - two * first[j], least)
        violation = slopes[_largest(slope_bits)]
        k = _largest(gain_bits)
        if violation <= tol or steps >= max_steps or gain[k] <= none:
            break
        curvature = own + diag[k] - two * first[k]
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
    """The bits of an array of floats, as integers of the same size."""
    raise NotImplementedError("for compiled code only")


@overload(_as_integers, inline="always")
def _bits(values):
    if values.dtype == types.float32:
        return lambda values: values.view(np.int32)
    return lambda values: values.view(np.int64)


@njit(**_INNER)
def _largest(bits):
    """Place of the first of the largest of floats that are not negative, given their bits.

    The bits of such floats have the order of the floats, and the largest of many integers is found
    eight at a time; of floats one by one, since these might be no numbers.
    """
    n, most, place = bits.shape[0], bits[0], 0
    for start in range(0, n, _PIECE):
        stop = min(start + _PIECE, n)
        own = bits[start]
        for j in range(start, stop):
            own = max(own, bits[j])
        if own > most:
            most, place = own, start
    while bits[place] != most:
        place += 1
    return place


@njit(**_INNER)
def _largest_signed(bits, room):
    """Do the same with floats of any sign; `room` is overwritten."""
    one = bits.dtype.type(1)
    shift = bits.dtype.type(8 * bits.itemsize - 1)
    # All bits but the sign.
    size = ~(one << shift)
    for j in range(bits.shape[0]):
        # The larger the size of a negative number, the smaller it is.
        room[j] = bits[j] ^ ((bits[j] >> shift) & size)
    return _largest(room)


@njit(**_INNER)
def _moved(move, rising, falling, upper, lower, epsilon):
    """Cut a move at the bounds; return it and the two coefficients after it."""
    ceiling = 0.0 if (epsilon > 0.0 and rising < 0.0) else upper
    floor = 0.0 if (epsilon > 0.0 and falling > 0.0) else lower
    room_up, room_down = ceiling - rising, falling - floor
    move = min(move, min(room_up, room_down))
    # Land exactly on a bound: "at the bound" is tested by equality.
    rising = ceiling if move >= room_up else rising + move
    falling = floor if move >= room_down else falling - move
    return move, rising, falling


@njit(**_INNER)
def _offsets(coef, lower, upper, epsilon):
    """What is added to the gradient for the gain of raising and of lowering a coefficient."""
    rise = -np.inf if coef >= upper else (-epsilon if coef >= 0.0 else epsilon)
    fall = np.inf if coef <= lower else (-epsilon if coef > 0.0 else epsilon)
    return rise, fall


@njit(**_LOOP)
def place_symmetric(matrix, places, block):
    """Write ``block`` (len(places), n) into rows of `matrix` and, mirrored, into its columns.

    Columns are written in stripes of a few rows: each cache line of the block is read once, and
    the lines of a stripe, which share a cache set, do not evict each other.
    """
    count = block.shape[1]
    for p in range(places.shape[0]):
        # Entry by entry: the assignment of a slice compiles its messages about shapes as well.
        row, source = matrix[places[p]], block[p]
        for i in range(count):
            row[i] = source[i]
    for first in range(0, count, 8):
        last = min(first + 8, count)
        for p in range(places.shape[0]):
            column = places[p]
            for i in range(first, last):
                matrix[i, column] = block[p, i]
