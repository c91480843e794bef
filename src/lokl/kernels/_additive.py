"""Compiled loop of additive kernels.

Numba keeps compiled loops on disk until the file that defines them changes, and checks no other
file. Hence this module imports nothing from lokl.
"""

from numba import njit

# mypy: ignore-errors
# Types here are numba's, read at compile time.

# Printed while a loop is compiled.
PURPOSES = {"add_minima": "additive kernels"}

# Columns of the result that are processed at a time: they stay in the first-level cache.
_TILE = 256


@njit(
    cache=True,
    nogil=True,
    no_cfunc_wrapper=True,
    fastmath={"nnan", "nsz", "contract"},
)
def add_minima(start, stop, left, right, out):
    """Compute ``out[p, j] += sum_c min(a[p, c] d[c, j], b[p, c] e[c, j])``, ``start <= p < stop``.

    `left` are ``a`` and ``b``, (2, n_rows, n_features), `right` are ``d`` and ``e``,
    (2, n_features, n_columns).
    """
    n = out.shape[1]
    for first in range(0, n, _TILE):
        last = min(first + _TILE, n)
        for p in range(start, stop):
            sums = out[p, first:last]
            c, count = 0, left.shape[2]
            while c + 2 <= count:
                a, b = left[0, p, c], left[1, p, c]
                s, t = left[0, p, c + 1], left[1, p, c + 1]
                d, e = right[0, c, first:last], right[1, c, first:last]
                u, v = right[0, c + 1, first:last], right[1, c + 1, first:last]
                for j in range(last - first):
                    x, y, z, w = a * d[j], b * e[j], s * u[j], t * v[j]
                    sums[j] += (x if x < y else y) + (z if z < w else w)
                c += 2
            while c < count:
                a, b = left[0, p, c], left[1, p, c]
                d, e = right[0, c, first:last], right[1, c, first:last]
                for j in range(last - first):
                    x, y = a * d[j], b * e[j]
                    sums[j] += x if x < y else y
                c += 1
