"""Compiled steps of all free coefficients together, on a stored matrix."""

import numpy as np
from numba import njit

from lokl.gram._rows import subtract_rows

# mypy: ignore-errors
# Types here are numba's, read at compile time.


# Functions that only loops call are compiled without what would unpack their arguments, and nothing
# is compiled to be called from C.
_LOOP = {"cache": True, "nogil": True, "no_cfunc_wrapper": True}
_INNER = {**_LOOP, "no_cpython_wrapper": True}

# Told to users while a loop is compiled; this one is compiled within another.
PURPOSES: dict[str, str] = {}

# At most so many directions are tried.
_DIRECTIONS = 60
# Free coefficients for which it pays, and whose matrix is not too large.
_FEW, _MANY = 20, 2500


@njit(**_LOOP)
def climb(matrix, machine, box, epsilon, ridge, tol):
    """Move all free coefficients together, by conjugate gradients: the objective rises.

    Near the optimum of a large cost hundreds of coefficients are free, and pair moves need many
    steps to balance them. A direction costs one product with their matrix. A coefficient that
    meets a bound stays there, and directions begin anew.
    """
    coef, gradient = machine
    free, low, high = _free(coef, box, epsilon)
    count = free.shape[0]
    if not _FEW <= count <= _MANY:
        return
    small = np.empty((count, count), matrix.dtype)
    copy_out(matrix, free, count, ridge, small)
    u, slope, direction = np.empty(count), np.empty(count), np.zeros(count)
    for a in range(count):
        u[a] = coef[free[a]]
        slope[a] = gradient[free[a]] - (epsilon if u[a] > 0.0 else -epsilon)
    moving = np.ones(count, np.bool_)
    before = 0.0
    for _ in range(_DIRECTIONS):
        middle, length, width = _steepness(slope, moving)
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
    _take_over(matrix, machine, free, u, low, high, ridge)


@njit(**_INNER)
def _free(coef, box, epsilon):
    """Coefficients between their bounds, and these; zero is one where the slope jumps there."""
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


@njit(**_INNER)
def _steepness(slope, moving):
    """Mean of slopes, and around it their sum of squares and their range."""
    total, count = 0.0, 0
    for a in range(slope.shape[0]):
        if moving[a]:
            total += slope[a]
            count += 1
    middle = total / max(count, 1)
    squares, least, most = 0.0, 0.0, 0.0
    for a in range(slope.shape[0]):
        if moving[a]:
            own = slope[a] - middle
            squares += own * own
            least, most = min(least, own), max(most, own)
    return middle, squares, most - least


@njit(**_INNER, fastmath={"nsz", "contract", "reassoc"})
def _product(small, direction):
    """``small @ direction``, in the precision of the matrix."""
    count = small.shape[0]
    own = direction.astype(small.dtype)
    out = np.empty(count)
    for a in range(count):
        row, total = small[a], small.dtype.type(0.0)
        for b in range(count):
            total += row[b] * own[b]
        out[a] = total
    return out


@njit(**_INNER)
def _take_over(matrix, machine, free, u, low, high, ridge):
    """Carry new values of free coefficients over to all, with the sum of coefficients as it was."""
    coef, gradient = machine
    count, excess = free.shape[0], 0.0
    for a in range(count):
        excess += u[a] - coef[free[a]]
    for a in range(count):
        # What rounding added is taken from one that has room for it.
        if low[a] < u[a] < high[a] and low[a] < u[a] - excess < high[a]:
            u[a] -= excess
            excess = 0.0
            break
    index, change = np.empty(count, np.int64), np.empty(count)
    moved = 0
    for a in range(count):
        j = free[a]
        step = u[a] - coef[j]
        if step != 0.0:
            coef[j] = u[a]
            gradient[j] -= ridge[j] * step
            index[moved], change[moved] = j, step
            moved += 1
    subtract_rows(0, gradient.shape[0], matrix, index[:moved], change[:moved], gradient)


@njit(**_INNER)
def copy_out(matrix, index, count, ridge, small):
    """Write the rows and columns of a working set, with its ridge."""
    for a in range(count):
        source, target = matrix[index[a]], small[a]
        for b in range(count):
            target[b] = source[index[b]]
        target[a] += ridge[index[a]]
