"""Compiled projections of samples onto the direction of a split.

Every product is accumulated in four partial sums, column by column. Zeros do not change them, so
dense and sparse samples give identical sums, to the last bit. A training sample therefore always
reaches the same region again.
"""

import numpy as np
from numba import njit

from lokl._compiled import INNER, LOOP

# mypy: ignore-errors
# Types here are numba's, read at compile time.


# Shown to users while a loop is compiled.
PURPOSES = {"project_dense": "regions", "project_sparse": "regions"}


@njit(**LOOP)
def project_dense(start, stop, X, rows, direction, fill_values, out):
    """Compute inner products of ``X[rows[start:stop]]`` with a direction, NaN replaced."""
    n_columns = direction.shape[0]
    whole = n_columns - n_columns % 4
    for i in range(start, stop):
        row = X[rows[i]]
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        for j in range(0, whole, 4):
            a += _value(row, j, fill_values) * direction[j]
            b += _value(row, j + 1, fill_values) * direction[j + 1]
            c += _value(row, j + 2, fill_values) * direction[j + 2]
            d += _value(row, j + 3, fill_values) * direction[j + 3]
        if whole < n_columns:
            a += _value(row, whole, fill_values) * direction[whole]
        if whole + 1 < n_columns:
            b += _value(row, whole + 1, fill_values) * direction[whole + 1]
        if whole + 2 < n_columns:
            c += _value(row, whole + 2, fill_values) * direction[whole + 2]
        out[i] = (a + b) + (c + d)


@njit(**INNER)
def _value(row, j, fill_values):
    value = np.float64(row[j])
    return fill_values[j] if np.isnan(value) else value


@njit(**LOOP)
def project_sparse(start, stop, data, indices, indptr, rows, direction, fill_values, out):
    """Compute the same inner products for a CSR matrix with sorted indices."""
    sums = np.empty(4)
    for i in range(start, stop):
        sums[:] = 0.0
        for entry in range(indptr[rows[i]], indptr[rows[i] + 1]):
            j = indices[entry]
            value = np.float64(data[entry])
            if np.isnan(value):
                value = fill_values[j]
            sums[j % 4] += value * direction[j]
        out[i] = (sums[0] + sums[1]) + (sums[2] + sums[3])
