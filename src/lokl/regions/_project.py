"""Compiled projections of samples onto the direction of a split.

The terms of a product are added in the order of the columns. Zeros do not change the sum, so dense
and sparse samples give identical sums, to the last bit. A training sample therefore always reaches
the same region again.
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
    for i in range(start, stop):
        row = X[rows[i]]
        total = 0.0
        for j in range(direction.shape[0]):
            total += _value(row[j], fill_values[j]) * direction[j]
        out[i] = total


@njit(**LOOP)
def project_sparse(start, stop, data, indices, indptr, rows, direction, fill_values, out):
    """Compute the same inner products for a CSR matrix with sorted indices."""
    for i in range(start, stop):
        total = 0.0
        for entry in range(indptr[rows[i]], indptr[rows[i] + 1]):
            j = indices[entry]
            total += _value(data[entry], fill_values[j]) * direction[j]
        out[i] = total


@njit(**INNER)
def _value(value, fill_value):
    return fill_value if np.isnan(value) else np.float64(value)
