# mypy: ignore-errors
# Types here are numba's, read at compile time; mypy cannot follow intrinsics and overloads.
"""Compiled loops that turn inner products into rows of one gated Gram matrix.

Columns are cut into tiles short enough to stay in the first-level cache while all kernels of a
program pass over them. A rung of an RBF ladder, whose gamma is twice that of the rung before, is
the square of that rung and needs no exponential of its own (`SQUARE`).
"""

from collections import namedtuple

import numpy as np
from numba import njit

from lokl.gram._exponential import exp2_nonpositive, keep_from, square

# Numba keeps compiled loops on disk until the file in which they are defined changes, and looks at
# no other. Hence everything they are made of stands here, also what other files define as well. The
# exponential does not: this digest of its file, which a test compares, changes with it.
EXPONENTIAL = "41611efc289f7619"

# Operation codes, as in lokl.kernels.base.
LINEAR, POLYNOMIAL, GAUSSIAN, TANH, SQUARE = range(5)

TILE = 512


# What the kernels of one view do with an inner product, one entry a kernel. At most four squares
# follow a Gaussian; `weights` count where gates are constant.
Program = namedtuple("Program", "operations gammas coefs degrees weights")
# Samples on one side of a block: squared norms (n,) and factors (n_kernels, rank, n). Rank 0 stands
# for constant gates, whose factors are the weights of the program. `small` says that products of
# factors come near the end of the range of the dtype.
Side = namedtuple("Side", "norms factors small")
Sides = namedtuple("Sides", "left right")
# Entries of sparse rows, each row padded with zeros to a multiple of four.
Lists = namedtuple("Lists", "pointers indices entries")
# Left samples as lists, right samples transposed in panels (n_panels, n_features, width).
SparsePair = namedtuple("SparsePair", "lists panels")
# The rows `rows` of the array `out` are written, or added to with `accumulate`.
Target = namedtuple("Target", "out rows accumulate")
# Coefficients (n_kernels, n_sums, n_columns) of sums over columns from `begin` on. `damping`
# (n_rows, n_columns) multiplies every kernel value; of shape (0, 0) it stands for none.
Loads = namedtuple("Loads", "coefs damping begin")

# No reassociation and no reciprocal tricks: the laws on rounding in the tests hold with these.
_FAST = {"nnan", "nsz", "contract"}


@njit(cache=True, nogil=True, forceinline=True)
def _step(program, i):
    """Return operation and numbers of one kernel: tuples of arrays are slow to hand around."""
    return program.operations[i], program.gammas[i], program.coefs[i], program.degrees[i]


@njit(cache=True, nogil=True, fastmath=_FAST)
def _kernel_values(step, dots, left_norm, right_norms, values):
    """Values of one kernel over one row of one tile.

    For `SQUARE`, `values` holds those of the kernel before on entry.
    """
    operation, gamma, coef0, degree = step
    n = dots.shape[0]
    if operation == SQUARE:
        for j in range(n):
            values[j] = square(values[j])
    elif operation == GAUSSIAN:
        # exp(-gamma d) = 2^(-gamma log2(e) d), all in the dtype of the data.
        scale = dots.dtype.type(gamma * 1.4426950408889634)
        twice = scale + scale
        start = -scale * left_norm
        for j in range(n):
            values[j] = exp2_nonpositive(start - scale * right_norms[j] + twice * dots[j])
    elif operation == LINEAR:
        for j in range(n):
            values[j] = dots[j]
    elif operation == POLYNOMIAL:
        for j in range(n):
            values[j] = gamma * dots[j] + coef0
        for _ in range(degree - 1):
            for j in range(n):
                values[j] = values[j] * (gamma * dots[j] + coef0)
    else:
        for j in range(n):
            values[j] = np.tanh(gamma * dots[j] + coef0)


@njit(cache=True, nogil=True, fastmath=_FAST)
def _add_squares(weights, values, out):
    """Add four rungs of an RBF ladder at once: `values` squared one to four times.

    One pass instead of four, with everything between in registers.
    """
    a, b, c, d = weights
    for j in range(out.shape[0]):
        first = square(values[j])
        second = square(first)
        third = square(second)
        fourth = square(third)
        out[j] += a * first + b * second + c * third + d * fourth


@njit(cache=True, nogil=True, fastmath=_FAST)
def _add_gated_squares(weights, gates, values, out):
    """Like :func:`_add_squares`, with a gate for each rung."""
    a, b, c, d = weights
    x, y, z, w = gates
    for j in range(out.shape[0]):
        first = square(values[j])
        second = square(first)
        third = square(second)
        fourth = square(third)
        out[j] += a * x[j] * first + b * y[j] * second + c * z[j] * third + d * w[j] * fourth


@njit(cache=True, nogil=True, fastmath=_FAST)
def _add_scaled(weight, values, out):
    """``out += weight * values``."""
    for j in range(out.shape[0]):
        out[j] += weight * values[j]


@njit(cache=True, nogil=True, fastmath=_FAST)
def _add_gated(weight, gate, values, out):
    """``out += weight * gate * values``."""
    for j in range(out.shape[0]):
        out[j] += weight * gate[j] * values[j]


@njit(cache=True, nogil=True, fastmath=_FAST)
def _add_above(least, weight, values, out):
    """Add ``weight * values`` where `values` are at least `least`."""
    for j in range(out.shape[0]):
        out[j] += weight * keep_from(values[j], values[j], least)


@njit(cache=True, nogil=True, fastmath=_FAST)
def _add_gated_above(limits, weight, gate, values, out):
    """Add ``weight * gate * values`` where it is no denormal number, without making one.

    Products are formed many times as large as they are, and become 0 where they are too small to be
    brought back. `limits` are this factor, its inverse, and the least trust and least product.
    """
    large, back, least_trust, least = limits
    for j in range(out.shape[0]):
        trust = weight * large * gate[j]
        product = keep_from(trust, abs(trust), least_trust) * values[j]
        out[j] += keep_from(product, abs(product), least) * back


@njit(cache=True, nogil=True, fastmath=_FAST)
def _add_quadratic(weight, gamma, coef0, dots, out):
    """``out += weight * (gamma * dots + coef0) ** 2``, without a pass for the values."""
    for j in range(out.shape[0]):
        base = gamma * dots[j] + coef0
        out[j] += weight * base * base


@njit(cache=True, nogil=True)
def _rungs(operations, i):
    """Return how many kernels from `i` on are squares, one of the other."""
    count = 0
    while i + count < operations.shape[0] and operations[i + count] == SQUARE:
        count += 1
    return count


@njit(cache=True, nogil=True)
def _all_count(weights, least):
    """Whether weights are zero or at least `least`."""
    count = 0
    for weight in weights:
        count += weight == 0.0 or abs(weight) >= least
    return count == weights.shape[0]


@njit(cache=True, nogil=True, fastmath=_FAST, forceinline=True)
def _mix_weighted(program, dots, left_norm, right_norms, values, out):
    """Add all kernels of a program, under constant gates, to one row of one tile."""
    operations, weights = program.operations, program.weights
    number = dots.dtype.type
    single = dots.itemsize == 4
    smallest = number(2.0**-126 if single else 2.0**-1022)
    # Above it, the weight times the smallest value is a normal number.
    least_weight = number(2.0**-26 if single else 2.0**-122)
    zero = number(0.0)
    i = 0
    while i < operations.shape[0]:
        rungs = _rungs(operations, i)
        if rungs > 1 and _all_count(weights[i : i + rungs], least_weight):
            # Rungs that are not there have no weight.
            third = weights[i + 2] if rungs > 2 else zero
            fourth = weights[i + 3] if rungs > 3 else zero
            _add_squares((weights[i], weights[i + 1], third, fourth), values, out)
            i += rungs
            continue
        weight = weights[i]
        if operations[i] == LINEAR:
            _add_scaled(weight, dots, out)
        elif operations[i] == POLYNOMIAL and program.degrees[i] == 2:
            _add_quadratic(weight, program.gammas[i], program.coefs[i], dots, out)
        else:
            _kernel_values(_step(program, i), dots, left_norm, right_norms, values)
            gaussian = operations[i] == GAUSSIAN or operations[i] == SQUARE
            if gaussian and abs(weight) < least_weight:
                if abs(weight) > smallest:
                    _add_above(smallest / abs(weight), weight, values, out)
            else:
                _add_scaled(weight, values, out)
        i += 1


@njit(cache=True, nogil=True, fastmath=_FAST, forceinline=True)
def _mix_gated(program, dots, sides, place, values, out):
    """Add all gated kernels of a program to one row of one tile; `place` is (row, first, last)."""
    p, first, last = place
    operations = program.operations
    left, right = sides.left.factors, sides.right.factors
    number = dots.dtype.type
    if dots.itemsize == 4:
        limits = (number(2.0**74), number(2.0**-74), number(2.0**-26), number(2.0**-52))
    else:
        limits = (number(2.0**778), number(2.0**-778), number(2.0**-122), number(2.0**-244))
    small = sides.left.small or sides.right.small
    zero = number(0.0)
    i = 0
    while i < operations.shape[0]:
        rungs = _rungs(operations, i)
        if rungs > 1 and left.shape[1] == 1 and not small:
            # Rungs that are not there have no weight.
            k, m = i + min(2, rungs - 1), i + min(3, rungs - 1)
            third = left[k, 0, p] if rungs > 2 else zero
            fourth = left[m, 0, p] if rungs > 3 else zero
            gates = (
                right[i, 0, first:last],
                right[i + 1, 0, first:last],
                right[k, 0, first:last],
                right[m, 0, first:last],
            )
            weights = (left[i, 0, p], left[i + 1, 0, p], third, fourth)
            _add_gated_squares(weights, gates, values, out)
            i += rungs
            continue
        right_norms = sides.right.norms[first:last]
        _kernel_values(_step(program, i), dots, sides.left.norms[p], right_norms, values)
        gaussian = operations[i] == GAUSSIAN or operations[i] == SQUARE
        for r in range(left.shape[1]):
            gate = right[i, r, first:last]
            if gaussian and small:
                _add_gated_above(limits, left[i, r, p], gate, values, out)
            else:
                _add_gated(left[i, r, p], gate, values, out)
        i += 1


@njit(cache=True, nogil=True, fastmath=_FAST, forceinline=True)
def _mix_row(program, dots, sides, place, values, out):
    """Add all gated kernels of a program to one row of one tile; `place` is (row, first, last)."""
    p, first, last = place
    values = values[: last - first]
    if sides.left.factors.shape[1]:
        _mix_gated(program, dots, sides, place, values, out)
    else:
        norms = sides.right.norms[first:last]
        _mix_weighted(program, dots, sides.left.norms[p], norms, values, out)


@njit(cache=True, nogil=True, fastmath=_FAST)
def _sparse_dots(lists, row, panel, dots):
    """Inner products of one sparse row with the first samples of one panel (n_features, width).

    Four entries of the row at a time: each sum is loaded and stored a quarter as often.
    """
    indices, entries = lists.indices, lists.entries
    start, stop = lists.pointers[row], lists.pointers[row + 1]
    n = dots.shape[0]
    if start == stop:
        dots[:] = 0.0
    for k in range(start, stop, 4):
        a, b, c, d = entries[k], entries[k + 1], entries[k + 2], entries[k + 3]
        x = panel[indices[k]]
        y = panel[indices[k + 1]]
        z = panel[indices[k + 2]]
        w = panel[indices[k + 3]]
        if k == start:
            for j in range(n):
                dots[j] = a * x[j] + b * y[j] + c * z[j] + d * w[j]
        else:
            for j in range(n):
                dots[j] += a * x[j] + b * y[j] + c * z[j] + d * w[j]


@njit(cache=True, nogil=True, fastmath=_FAST)
def mix_dense(start, stop, program, dots, rows, sides, target):
    """Gated kernel values of some rows, columns ``start:stop``, from stored inner products.

    `dots` (len(rows), n_columns) are the inner products of the left samples `rows` with all right
    samples.
    """
    values = np.empty(TILE, dots.dtype)
    for p in range(rows.shape[0]):
        for first in range(start, stop, TILE):
            last = min(first + TILE, stop)
            out = target.out[target.rows[p], first:last]
            if not target.accumulate:
                out[:] = 0.0
            _mix_row(program, dots[p, first:last], sides, (rows[p], first, last), values, out)


@njit(cache=True, nogil=True, fastmath=_FAST)
def mix_sparse(start, stop, program, pair, rows, sides, target):
    """Like :func:`mix_dense`, with inner products of sparse rows computed on the way.

    `start` is a multiple of the width of a panel, which is read off the array: compiled code
    outlives a changed constant.
    """
    lists, panels = pair.lists, pair.panels
    width = panels.shape[2]
    dots = np.empty(width, panels.dtype)
    values = np.empty(width, panels.dtype)
    for first in range(start, stop, width):
        last = min(first + width, stop)
        panel = panels[first // width]
        for p in range(rows.shape[0]):
            out = target.out[target.rows[p], first:last]
            if not target.accumulate:
                out[:] = 0.0
            part = dots[: last - first]
            _sparse_dots(lists, rows[p], panel, part)
            _mix_row(program, part, sides, (rows[p], first, last), values, out)


@njit(cache=True, nogil=True, fastmath=_FAST)
def dots_sparse(start, stop, pair, rows, out):
    """Inner products of the left samples `rows` with the right samples ``start:stop``."""
    width = pair.panels.shape[2]
    for first in range(start, stop, width):
        last = min(first + width, stop)
        for p in range(rows.shape[0]):
            _sparse_dots(pair.lists, rows[p], pair.panels[first // width], out[p, first:last])


@njit(cache=True, nogil=True, fastmath=_FAST | {"reassoc"})
def _inner(a, b):
    total = a.dtype.type(0.0)
    for j in range(a.shape[0]):
        total += a[j] * b[j]
    return total


@njit(cache=True, nogil=True, fastmath=_FAST)
def kernel_sums(start, stop, program, dots, norms, loads, out):
    """Sums over columns, kernel by kernel: ``out[p, i, q] += <k_i(p, :), coefs[i, q]>``.

    Rows ``start:stop`` of `dots`; `norms` are those of its rows and of its columns. Tiles are
    summed in the dtype of the data, their sums in float64.
    """
    left_norms, right_norms = norms
    n = dots.shape[1]
    values = np.empty(TILE, dots.dtype)
    damped = np.empty(TILE, dots.dtype)
    for p in range(start, stop):
        for first in range(loads.begin, n, TILE):
            last = min(first + TILE, n)
            size = last - first
            near, norm = dots[p, first:last], right_norms[first:last]
            for i in range(program.operations.shape[0]):
                _kernel_values(_step(program, i), near, left_norms[p], norm, values[:size])
                summed = values[:size]
                if loads.damping.shape[0]:
                    for j in range(size):
                        damped[j] = values[j] * loads.damping[p, first + j]
                    summed = damped[:size]
                for q in range(loads.coefs.shape[1]):
                    out[p, i, q] += _inner(summed, loads.coefs[i, q, first:last])


@njit(cache=True, nogil=True, fastmath=_FAST)
def kernels_apart(start, stop, program, dots, norms, members, out):
    """Values kernel by kernel: ``out[p, members[i], :] = k_i(p, :)`` for ``start <= p < stop``."""
    left_norms, right_norms = norms
    n = dots.shape[1]
    values = np.empty(TILE, dots.dtype)
    for p in range(start, stop):
        for first in range(0, n, TILE):
            last = min(first + TILE, n)
            part, norm = values[: last - first], right_norms[first:last]
            for i in range(program.operations.shape[0]):
                _kernel_values(_step(program, i), dots[p, first:last], left_norms[p], norm, part)
                out[p, members[i], first:last] = part
