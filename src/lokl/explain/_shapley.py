"""Compiled loop of Shapley values of columns under product kernels.

Numba keeps compiled loops on disk until the file that defines them changes, and checks no other
file. Hence this module imports nothing from lokl.
"""

import math

import numpy as np
from numba import njit

# mypy: ignore-errors
# Types here are numba's, read at compile time.

# Printed while a loop is compiled.
PURPOSES = {"product_values": "contributions of columns"}

# Smallest factor of a column: the product of four of them is not zero.
LEAST = 1e-60


@njit(
    cache=True,
    nogil=True,
    no_cfunc_wrapper=True,
    fastmath={"nnan", "nsz", "contract", "reassoc"},
)
def product_values(start, stop, left, right, absent, coef, squared, absolute, rules, out):
    """Add the Shapley values of columns of ``sum_j coef[j, t] k(x_p, z_j)`` to ``out[p, t]``.

    ``k(x, z)`` is the product over columns of ``w_c = exp(-(a_c (x_c - z_c)^2 + b_c |x_c - z_c|))``
    with `squared` ``a`` and `absolute` ``b``; ``absent[j, c]`` takes the place of ``w_c`` if the
    column is absent. With ``d_c = w_c - absent_c`` the value of column ``c`` is
    ``sum_j coef[j] d_c int_0^1 prod_{e != c} (absent_e + t d_e) dt``. The integral is a sum over
    the nodes of one of the `rules`, (limits, offsets, nodes, weights): rule ``r`` serves sums of
    ``|d_c|`` up to ``limits[r]`` and has the nodes ``offsets[r]:offsets[r + 1]``, a multiple of
    four.
    """
    limits, offsets, nodes, weights = rules
    n_columns, n_tasks = left.shape[1], coef.shape[1]
    change = np.empty(n_columns)
    values = np.empty(n_columns)
    parts = np.empty(np.max(offsets[1:] - offsets[:-1]))
    for p in range(start, stop):
        for j in range(right.shape[0]):
            for c in range(n_columns):
                step = abs(left[p, c] - right[j, c])
                present = math.exp(-step * (squared[c] * step + absolute[c]))
                change[c] = max(present, LEAST) - absent[j, c]
            total = 0.0
            for c in range(n_columns):
                total += abs(change[c])
            rule = 0
            while limits[rule] < total:
                rule += 1
            first, last = offsets[rule], offsets[rule + 1]
            for q in range(first, last):
                product, node = weights[q], nodes[q]
                for c in range(n_columns):
                    product *= absent[j, c] + node * change[c]
                parts[q - first] = product
            values[:] = 0.0
            for q in range(first, last, 4):
                # Four fractions on one denominator: divisions take most of the time.
                s, t, u, v = nodes[q], nodes[q + 1], nodes[q + 2], nodes[q + 3]
                i = q - first
                e, f, g, h = parts[i], parts[i + 1], parts[i + 2], parts[i + 3]
                for c in range(n_columns):
                    a, d = absent[j, c], change[c]
                    k, m, n, o = a + s * d, a + t * d, a + u * d, a + v * d
                    near, far = k * m, n * o
                    top = (e * m + f * k) * far + (g * o + h * n) * near
                    values[c] += top / (near * far)
            for task in range(n_tasks):
                factor = coef[j, task]
                for c in range(n_columns):
                    out[p, task, c] += factor * change[c] * values[c]
