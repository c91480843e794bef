# mypy: ignore-errors
# Types here are numba's, read at compile time.
"""Compiled loops over a symmetric matrix that is stored as a whole."""

import numpy as np
from numba import njit

# Functions that only loops call are compiled without what would unpack their arguments, and nothing
# is compiled to be called from C.
_LOOP = {"cache": True, "nogil": True, "no_cfunc_wrapper": True}
_INNER = {**_LOOP, "no_cpython_wrapper": True}

# Told to users while a loop is compiled.
PURPOSES = {"subtract_stored": "selection"}

# Columns of the gradient that are updated at a time.
_TILE = 512


@njit(**_INNER)
def copy_out(matrix, index, count, ridge, small):
    """Write the rows and columns of a working set, with its ridge."""
    for a in range(count):
        source, target = matrix[index[a]], small[a]
        for b in range(count):
            target[b] = source[index[b]]
        target[a] += ridge[index[a]]


@njit(**_LOOP, fastmath={"nsz", "contract"})
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
