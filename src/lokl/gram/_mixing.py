"""Compiled loops that turn inner products into rows of one gated Gram matrix.

Columns are cut into tiles short enough to stay in the first-level cache while all kernels of a
program pass over them. A Gaussian whose gamma is twice the gamma of the one before is the square of
that one and needs no exponential of its own (`SQUARE`).

Denormal numbers, near the end of the range of a float, take a hundred times as long on some
processors. So values of Gaussians below ``2 ** -100`` (in float64 ``2 ** -900``) are 0, and values
whose square would be below that become 0 before they are squared.

Numba keeps compiled loops on disk until the file that defines them changes, and checks no other
file. Hence this module imports nothing from lokl: numbers from other files would become stale.
"""

from collections import namedtuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

# mypy: ignore-errors
# Types here are numba's, read at compile time; mypy cannot follow intrinsics and overloads.

# Printed while a loop is compiled.
PURPOSES = {
    "mix": "kernel values",
    "dots_sparse": "inner products of sparse samples",
    "kernel_sums": "the contributions of single kernels",
    "values_by_kernel": "the values of single kernels",
}

# Codes of the operations of kernels on an inner product, and of squaring the kernel before.
LINEAR, POLYNOMIAL, GAUSSIAN, TANH, SQUARE = range(5)
OPERATIONS = {"linear": LINEAR, "polynomial": POLYNOMIAL, "gaussian": GAUSSIAN, "tanh": TANH}

# Columns that are processed at a time.
TILE = 512

# Operations on an inner product, one entry for each kernel of a view: codes, their numbers, and
# the weights of kernels, which are used if gates are constant.
Program = namedtuple("Program", "operations gammas coefs degrees weights")
# Samples on one side of a block: squared norms (n,) and factors (n_kernels, rank, n). Rank 0 stands
# for constant gates, whose factors are the weights of the program.
Side = namedtuple("Side", "norms factors")
Sides = namedtuple("Sides", "left right")
# Entries of sparse rows, each row padded with zeros to a multiple of four.
Lists = namedtuple("Lists", "pointers indices entries")
# Left samples as lists, right samples transposed in panels (n_panels, n_features, width).
SparsePair = namedtuple("SparsePair", "lists panels")
# Inner products of some left samples with all right ones: stored (n_rows, n_right), or to be
# computed from a pair. The other of the two is empty.
Products = namedtuple("Products", "stored pair")
# Columns in tiles of one width (the width of the panels), and the order in which tiles are
# processed. With `half`, rows are all samples in order, and only entries on and above the diagonal
# and in the tile's own rows are written.
Tiles = namedtuple("Tiles", "order width half")
# The rows `rows` of the array `out` are written, or added to with `accumulate`.
Target = namedtuple("Target", "out rows accumulate")
# Coefficients (n_kernels, n_sums, n_columns) of sums over columns from `begin` on. `damping`
# (n_rows, n_columns) multiplies every kernel value; of shape (0, 0) it stands for none.
Loads = namedtuple("Loads", "coefs damping begin")

# No reassociation and no reciprocals: the rounding laws in the tests hold with these flags.
_FAST = {"nnan", "nsz", "contract"}
# Options of loops that Python calls, and of functions that only loops call. Without wrappers they
# compile in half the time.
_LOOP = {"cache": True, "nogil": True, "no_cfunc_wrapper": True, "fastmath": _FAST}
_INNER = {**_LOOP, "no_cpython_wrapper": True}

# ln(2)^k / k!, k = 12 .. 0
_POLYNOMIAL = (
    *(2.5678435993488206e-11, 4.4455382718708116e-10, 7.0549116208011234e-09),
    *(1.0178086009239699e-07, 1.3215486790144309e-06, 1.5252733804059841e-05),
    *(1.5403530393381610e-04, 1.3333558146428443e-03, 9.6181291076284772e-03),
    *(5.5504108664821580e-02, 2.4022650695910072e-01, 6.9314718055994531e-01, 1.0),
)


@intrinsic
def exp2_nonpositive(typing_context, t):
    """Compute ``2 ** t`` for ``t <= 0`` without a branch, so that loops around it vectorise.

    The integer part goes into the exponent bits, the rest through a polynomial; relative error
    3e-7 (float32), 4e-16 (float64). Below ``2 ** -100`` (``2 ** -900``) it is 0.

    Its instructions are written one by one: a Python function inlined for each precision takes
    four times as long to compile.
    """
    digits, bias, least = (23, 127, -100.0) if t == types.float32 else (52, 1023, -900.0)
    polynomial = _POLYNOMIAL[-7:] if t == types.float32 else _POLYNOMIAL
    rounder = 1.5 * 2.0**digits  # added, it rounds to an integer

    def codegen(context, builder, signature, arguments):
        number, bits = context.get_value_type(t), ir.IntType(t.bitwidth)

        def cut(value, relation, end):
            inside = builder.fcmp_ordered(relation, value, number(end))
            return builder.select(inside, value, number(end))

        power = cut(cut(arguments[0], "<", 0.0), ">", 1.0 - bias)
        shifted = builder.fadd(power, number(rounder))
        rest = builder.fsub(power, builder.fsub(shifted, number(rounder)))
        value = number(polynomial[0])
        for coefficient in polynomial[1:]:
            value = builder.fadd(builder.fmul(value, rest), number(coefficient))
        exponent = builder.add(builder.bitcast(shifted, bits), bits(bias))
        scale = builder.bitcast(builder.shl(exponent, bits(digits)), number)
        counts = builder.fcmp_ordered(">=", power, number(least))
        return builder.select(counts, builder.fmul(value, scale), number(0.0))

    return t(t), codegen


@njit(**_INNER)
def _kernel_values(step, dots, left_norm, right_norms, values):
    """Write the values of one kernel over one row of one tile.

    `step` is (operation, gamma, coef0, degree); `dots`, `right_norms` and `values` are (n,). For
    `SQUARE`, `values` contains the values of the kernel before on entry.
    """
    operation, gamma, coef0, degree = step
    n = dots.shape[0]
    if operation == SQUARE:
        least = dots.dtype.type(2.0**-50 if dots.itemsize == 4 else 2.0**-450)
        for j in range(n):
            root = values[j] if values[j] >= least else dots.dtype.type(0.0)
            values[j] = root * root
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


@njit(**_INNER)
def _add_squares(weights, values, out):
    """Add up to four Gaussians of doubled gamma at once: `values` squared one to four times.

    One pass instead of four, with all intermediate values in registers. Fewer than four are given
    by weights of zero.
    """
    a, b, c, d = weights
    least = values.dtype.type(2.0**-50 if values.itemsize == 4 else 2.0**-450)
    zero = values.dtype.type(0.0)
    for j in range(out.shape[0]):
        root = values[j] if values[j] >= least else zero
        first = root * root
        root = first if first >= least else zero
        second = root * root
        root = second if second >= least else zero
        third = root * root
        root = third if third >= least else zero
        fourth = root * root
        values[j] = fourth
        out[j] += a * first + b * second + c * third + d * fourth


@njit(**_INNER)
def _add_gated_squares(weights, gates, values, out):
    """Add squares as :func:`_add_squares` does, with a gate for each of them."""
    a, b, c, d = weights
    x, y, z, w = gates
    least = values.dtype.type(2.0**-50 if values.itemsize == 4 else 2.0**-450)
    zero = values.dtype.type(0.0)
    for j in range(out.shape[0]):
        root = values[j] if values[j] >= least else zero
        first = root * root
        root = first if first >= least else zero
        second = root * root
        root = second if second >= least else zero
        third = root * root
        root = third if third >= least else zero
        fourth = root * root
        values[j] = fourth
        out[j] += a * x[j] * first + b * y[j] * second + c * z[j] * third + d * w[j] * fourth


@njit(**_INNER)
def _add_scaled(weight, values, out):
    """Compute ``out += weight * values``."""
    for j in range(out.shape[0]):
        out[j] += weight * values[j]


@njit(**_INNER)
def _add_gated(weight, gate, values, out):
    """Compute ``out += weight * gate * values``."""
    for j in range(out.shape[0]):
        out[j] += weight * gate[j] * values[j]


@njit(**_INNER)
def _add_quadratic(weight, gamma, coef0, dots, out):
    """Compute ``out += weight * (gamma * dots + coef0) ** 2`` in one pass."""
    for j in range(out.shape[0]):
        base = gamma * dots[j] + coef0
        out[j] += weight * base * base


@njit(**_INNER)
def _mix_row(program, dots, sides, place, values, out):
    """Add all gated kernels of a program to one row of one tile; `place` is (row, first, last).

    `dots` and `out` are (last - first,), `values` is a buffer of at least that length.
    """
    operations, gammas, coefs, degrees, weights = program
    p, first, last = place
    left, right = sides.left.factors, sides.right.factors
    values = values[: last - first]
    rank = left.shape[1]
    zero = dots.dtype.type(0.0)
    i, n = 0, operations.shape[0]
    while i < n:
        # Number of squares among the next four kernels, each of the one before.
        rungs = 0
        while rank < 2 and rungs < 4 and i + rungs < n and operations[i + rungs] == SQUARE:
            rungs += 1
        if rungs > 1:
            k, m = i + min(2, rungs - 1), i + min(3, rungs - 1)
            if rank:
                third = left[k, 0, p] if rungs > 2 else zero
                fourth = left[m, 0, p] if rungs > 3 else zero
                four = (left[i, 0, p], left[i + 1, 0, p], third, fourth)
                # Contiguous pieces, each indexed separately: loops over them vectorise.
                a, b = right[i, 0, first:last], right[i + 1, 0, first:last]
                c, d = right[k, 0, first:last], right[m, 0, first:last]
                _add_gated_squares(four, (a, b, c, d), values, out)
            else:
                third = weights[k] if rungs > 2 else zero
                fourth = weights[m] if rungs > 3 else zero
                four = (weights[i], weights[i + 1], third, fourth)
                _add_squares(four, values, out)
            i += rungs
            continue
        if rank == 0 and operations[i] == LINEAR:
            _add_scaled(weights[i], dots, out)
        elif rank == 0 and operations[i] == POLYNOMIAL and degrees[i] == 2:
            _add_quadratic(weights[i], gammas[i], coefs[i], dots, out)
        else:
            step = (operations[i], gammas[i], coefs[i], degrees[i])
            norms = sides.right.norms[first:last]
            _kernel_values(step, dots, sides.left.norms[p], norms, values)
            if rank == 0:
                _add_scaled(weights[i], values, out)
            for r in range(rank):
                _add_gated(left[i, r, p], right[i, r, first:last], values, out)
        i += 1


@njit(**_INNER)
def _sparse_dots(lists, row, panel, dots):
    """Write inner products of one sparse row with the first samples of one panel.

    The panel is (n_features, width). Four entries of the row are processed at a time, so each sum
    is loaded and stored a quarter as often.
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


@njit(**_LOOP)
def mix(start, stop, program, products, rows, sides, target, tiles):
    """Write gated kernel values of the left samples `rows`, tiles ``order[start:stop]``.

    One loop serves stored inner products, and inner products of sparse rows that are computed on
    the way: most of it is common to both and is compiled once.
    """
    stored, (lists, panels) = products
    order, width, half = tiles
    buffer = np.empty(width, stored.dtype)
    values = np.empty(width, stored.dtype)
    # Stored products are read row by row, as they are in memory. A panel stays in the cache while
    # all rows pass over it.
    by_panel = panels.shape[0] > 0
    n_rows, n_tiles = rows.shape[0], stop - start
    for outer in range(n_tiles if by_panel else n_rows):
        for inner in range(n_rows if by_panel else n_tiles):
            k, p = (outer, inner) if by_panel else (inner, outer)
            tile = order[start + k]
            first = tile * width
            last = min(first + width, sides.right.norms.shape[0])
            if half and p >= last:
                break
            out = target.out[target.rows[p], first:last]
            if not target.accumulate:
                out[:] = 0.0
            if by_panel:
                dots = buffer[: last - first]
                _sparse_dots(lists, rows[p], panels[tile], dots)
            else:
                dots = stored[p, first:last]
            _mix_row(program, dots, sides, (rows[p], first, last), values, out)


@njit(**_LOOP)
def dots_sparse(start, stop, pair, rows, out):
    """Write inner products of the left samples `rows` with the right samples ``start:stop``."""
    width = pair.panels.shape[2]
    for first in range(start, stop, width):
        last = min(first + width, stop)
        for p in range(rows.shape[0]):
            _sparse_dots(pair.lists, rows[p], pair.panels[first // width], out[p, first:last])


@njit(**{**_INNER, "fastmath": _FAST | {"reassoc"}})
def _inner(a, b):
    total = a.dtype.type(0.0)
    for j in range(a.shape[0]):
        total += a[j] * b[j]
    return total


@njit(**_LOOP)
def kernel_sums(start, stop, program, dots, norms, loads, out):
    """Add sums over columns, kernel by kernel: ``out[p, i, q] += <k_i(p, :), coefs[i, q]>``.

    Processes the rows ``start:stop`` of `dots`; `norms` are the squared norms of its rows and of
    its columns. Tiles are summed in the dtype of the data, their sums in float64.
    """
    operations, gammas, coefs, degrees, _ = program
    left_norms, right_norms = norms
    n = dots.shape[1]
    values = np.empty(TILE, dots.dtype)
    damped = np.empty(TILE, dots.dtype)
    for p in range(start, stop):
        for first in range(loads.begin, n, TILE):
            last = min(first + TILE, n)
            size = last - first
            near, norm = dots[p, first:last], right_norms[first:last]
            for i in range(operations.shape[0]):
                step = (operations[i], gammas[i], coefs[i], degrees[i])
                _kernel_values(step, near, left_norms[p], norm, values[:size])
                summed = values[:size]
                if loads.damping.shape[0]:
                    for j in range(size):
                        damped[j] = values[j] * loads.damping[p, first + j]
                    summed = damped[:size]
                for q in range(loads.coefs.shape[1]):
                    out[p, i, q] += _inner(summed, loads.coefs[i, q, first:last])


@njit(**_LOOP)
def values_by_kernel(start, stop, program, dots, norms, members, out):
    """Write values kernel by kernel: ``out[p, members[i]] = k_i(p, :)``, ``start <= p < stop``."""
    operations, gammas, coefs, degrees, _ = program
    left_norms, right_norms = norms
    n = dots.shape[1]
    values = np.empty(TILE, dots.dtype)
    for p in range(start, stop):
        for first in range(0, n, TILE):
            last = min(first + TILE, n)
            part, norm = values[: last - first], right_norms[first:last]
            for i in range(operations.shape[0]):
                step = (operations[i], gammas[i], coefs[i], degrees[i])
                _kernel_values(step, dots[p, first:last], left_norms[p], norm, part)
                written = out[p, members[i], first:last]
                for j in range(last - first):
                    written[j] = part[j]
