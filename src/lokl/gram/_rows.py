"""Compiled loops that copy rows of a matrix and sum them up.

This module imports nothing from lokl, for the reason given in ``_mixing``.
"""

import numpy as np
from numba import njit

# mypy: ignore-errors
# Types here are numba's, read at compile time.

# Printed while a loop is compiled.
PURPOSES = {
    "subtract_rows": "gradients",
    "look_up": "stored kernels",
    "weigh_columns": "streamed features",
}

# Columns that are processed at a time.
TILE = 512
# Nothing is compiled to be called from C.
_LOOP = {"cache": True, "nogil": True, "no_cfunc_wrapper": True}


@njit(**_LOOP)
def mirror(start, stop, matrix):
    """Copy the upper triangle of the columns ``start:stop`` below the diagonal."""
    block = 64
    for first in range(start, stop, block):
        last = min(first + block, stop)
        for above in range(0, last, block):
            end = min(above + block, last)
            # Pieces of rows are written: scattered writes are much slower than scattered reads.
            for j in range(first, last):
                row = matrix[j]
                for i in range(above, min(end, j)):
                    row[i] = matrix[i, j]


@njit(**_LOOP, fastmath={"nsz", "contract"})
def subtract_rows(start, stop, slab, slots, coef, target):
    """Compute ``target[start:stop] -= coef @ slab[slots, start:stop]``, summed in float64."""
    total = np.empty(TILE)
    count = slots.shape[0]
    for s in range(start, stop, TILE):
        e = min(s + TILE, stop)
        n = e - s
        total[:n] = 0.0
        k = 0
        while k + 4 <= count:
            a, b, c, d = coef[k], coef[k + 1], coef[k + 2], coef[k + 3]
            x = slab[slots[k], s:e]
            y = slab[slots[k + 1], s:e]
            z = slab[slots[k + 2], s:e]
            w = slab[slots[k + 3], s:e]
            for j in range(n):
                total[j] += a * x[j] + b * y[j] + c * z[j] + d * w[j]
            k += 4
        while k < count:
            a = coef[k]
            x = slab[slots[k], s:e]
            for j in range(n):
                total[j] += a * x[j]
            k += 1
        for j in range(n):
            target[s + j] -= total[j]


@njit(**_LOOP)
def gather(start, stop, slab, slots, columns, out_rows, out):
    """Write ``out[out_rows[p], q] = slab[slots[p], columns[q]]`` for ``start <= p < stop``."""
    for p in range(start, stop):
        source = slab[slots[p]]
        target = out[out_rows[p]]
        for q in range(columns.shape[0]):
            target[q] = source[columns[q]]


@njit(**_LOOP)
def look_up(start, stop, matrix, left, right, place):
    """Write values ``f[p] g[q] matrix[rows[p], columns[q]]`` for ``start <= p < stop``.

    `left` is (rows, f), `right` is (columns, g), and `place` is a ``Target`` of ``_mixing``.
    """
    rows, near = left
    columns, far = right
    for p in range(start, stop):
        source, factor = matrix[rows[p]], near[p]
        target = place.out[place.rows[p]]
        if place.accumulate:
            for q in range(columns.shape[0]):
                target[q] += factor * far[q] * source[columns[q]]
        else:
            for q in range(columns.shape[0]):
                target[q] = factor * far[q] * source[columns[q]]


@njit(**_LOOP, fastmath={"nsz", "contract", "reassoc"})
def weigh_columns(tile, starts, loads, out):
    """Write ``out[p, i, q] = <tile[p, columns of i], loads[q, columns of i]>``, in float64.

    The columns of `i` are ``starts[i]:starts[i + 1]``.
    """
    for p in range(tile.shape[0]):
        for i in range(starts.shape[0] - 1):
            row = tile[p, starts[i] : starts[i + 1]]
            for q in range(loads.shape[0]):
                load = loads[q, starts[i] : starts[i + 1]]
                total = 0.0
                for k in range(row.shape[0]):
                    total += row[k] * load[k]
                out[p, i, q] = total


@njit(**_LOOP, fastmath={"nsz", "contract"})
def add_columns(tile, starts, coef, sums):
    """Compute ``sums[q, columns of i] += coef[:, i, q] @ tile[:, columns of i]`` in float64."""
    count = tile.shape[0]
    for i in range(starts.shape[0] - 1):
        first, last = starts[i], starts[i + 1]
        for q in range(sums.shape[0]):
            total = sums[q, first:last]
            p = 0
            while p + 4 <= count:
                a, b, c, d = coef[p, i, q], coef[p + 1, i, q], coef[p + 2, i, q], coef[p + 3, i, q]
                x, y = tile[p, first:last], tile[p + 1, first:last]
                z, w = tile[p + 2, first:last], tile[p + 3, first:last]
                for k in range(last - first):
                    total[k] += a * x[k] + b * y[k] + c * z[k] + d * w[k]
                p += 4
            while p < count:
                a, x = coef[p, i, q], tile[p, first:last]
                for k in range(last - first):
                    total[k] += a * x[k]
                p += 1
