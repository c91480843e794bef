"""Compiled loops that see on which side of a split samples lie.

Sums run over four partial sums, column by column. Zeros do not change them, so that sparse samples
end where dense ones do, to the last digit: a sample of training always finds its region again.
"""

import numpy as np
from numba import njit

# mypy: ignore-errors
# Types here are numba's, read at compile time.


# Told to users while a loop is compiled.
PURPOSES = {"project_dense": "regions", "project_sparse": "regions"}

_LOOP = {"cache": True, "nogil": True, "no_cfunc_wrapper": True}


@njit(**_LOOP)
def project_dense(start, stop, X, rows, direction, missing, out):
    """Inner products of some rows with a direction; NaN is read as the column's `missing`."""
    n_columns = direction.shape[0]
    whole = n_columns - n_columns % 4
    for place in range(start, stop):
        row = X[rows[place]]
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        for j in range(0, whole, 4):
            a += _read(row, j, missing) * direction[j]
            b += _read(row, j + 1, missing) * direction[j + 1]
            c += _read(row, j + 2, missing) * direction[j + 2]
            d += _read(row, j + 3, missing) * direction[j + 3]
        if whole < n_columns:
            a += _read(row, whole, missing) * direction[whole]
        if whole + 1 < n_columns:
            b += _read(row, whole + 1, missing) * direction[whole + 1]
        if whole + 2 < n_columns:
            c += _read(row, whole + 2, missing) * direction[whole + 2]
        out[place] = (a + b) + (c + d)


@njit(cache=True, nogil=True, no_cfunc_wrapper=True, no_cpython_wrapper=True)
def _read(row, j, missing):
    value = np.float64(row[j])
    return missing[j] if np.isnan(value) else value


@njit(**_LOOP)
def project_sparse(start, stop, data, indices, indptr, rows, direction, missing, out):
    """Do the same for rows of a CSR matrix with sorted indices."""
    sums = np.empty(4)
    for place in range(start, stop):
        sums[:] = 0.0
        for entry in range(indptr[rows[place]], indptr[rows[place] + 1]):
            j = indices[entry]
            value = np.float64(data[entry])
            if np.isnan(value):
                value = missing[j]
            sums[j % 4] += value * direction[j]
        out[place] = (sums[0] + sums[1]) + (sums[2] + sums[3])
