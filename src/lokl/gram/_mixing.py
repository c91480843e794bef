"""Compiled loops: inner products into rows of one gated Gram matrix, copies and sums of rows.

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
    "dots_by_column": "overlaps of sparse samples",
    "kernel_sums": "the contributions of single kernels",
    "values_by_kernel": "the values of single kernels",
    "subtract_rows": "gradients",
    "look_up": "stored kernels",
    "mix_stored": "stored values of kernels",
    "stored_forms": "quadratic forms of stored kernels",
    "weigh_columns": "streamed features",
}

# Codes of the operations of kernels on an inner product, and of squaring the kernel before.
LINEAR, POLYNOMIAL, GAUSSIAN, TANH, SQUARE, MATERN = range(6)
OPERATIONS = {
    "linear": LINEAR,
    "polynomial": POLYNOMIAL,
    "gaussian": GAUSSIAN,
    "tanh": TANH,
    "matern": MATERN,
}

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
# Left samples as lists, right samples transposed in panels (n_panels, n_features, width). With
# `overlap`, the smaller of two entries is summed instead of their product; no entry is negative.
SparsePair = namedtuple("SparsePair", "lists panels overlap")
# Entries of sparse samples by column; column c has the entries ``pointers[c]:pointers[c + 1]``.
Columns = namedtuple("Columns", "pointers samples entries")
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
# Options of loops that copy and sum rows, of the other loops that Python calls, and of functions
# that only loops call. Without wrappers they compile in half the time.
_COPY = {"cache": True, "nogil": True, "no_cfunc_wrapper": True}
_LOOP = {**_COPY, "fastmath": _FAST}
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
    elif operation == MATERN:
        # (1 + t + t^2 / 3) exp(-t) with t = sqrt(2 nu) gamma |x - z|, and fewer terms of the sum.
        number = dots.dtype.type
        scale = number(gamma * np.sqrt(2.0 * degree + 1.0))
        linear, square = number(degree > 0), number((degree > 1) / 3.0)
        power = number(-1.4426950408889634)
        for j in range(n):
            squared = left_norm + right_norms[j] - (dots[j] + dots[j])
            t = scale * np.sqrt(squared if squared > number(0.0) else number(0.0))
            values[j] = (number(1.0) + t * (linear + square * t)) * exp2_nonpositive(power * t)
    else:
        for j in range(n):
            values[j] = np.tanh(gamma * dots[j] + coef0)


@njit(**_INNER)
def _add_squares(weights, gates, values, out):
    """Add up to four Gaussians of doubled gamma at once: `values` squared one to four times.

    One pass instead of four, with all intermediate values in registers. Fewer than four are given
    by weights of zero. `gates` are four arrays with a factor for each entry, or None for constant
    gates; a version is compiled for each.
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
        if gates is None:
            out[j] += a * first + b * second + c * third + d * fourth
        else:
            x, y, z, w = gates
            out[j] += a * x[j] * first + b * y[j] * second + c * z[j] * third + d * w[j] * fourth


@njit(**_INNER)
def _add_scaled(weight, values, out):
    """Compute ``out += weight * values``."""
    for j in range(out.shape[0]):
        out[j] += weight * values[j]


@njit(**_INNER)
def _scale(weight, out):
    """Compute ``out *= weight``."""
    for j in range(out.shape[0]):
        out[j] *= weight


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
            scale = left[:, 0, p] if rank else weights
            third = scale[k] if rungs > 2 else zero
            four = (scale[i], scale[i + 1], third, scale[m] if rungs > 3 else zero)
            if rank:
                # Contiguous pieces, each indexed separately: loops over them vectorise.
                x, y = right[i, 0, first:last], right[i + 1, 0, first:last]
                z, w = right[k, 0, first:last], right[m, 0, first:last]
                _add_squares(four, (x, y, z, w), values, out)
            else:
                _add_squares(four, None, values, out)
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
def _sparse_dots(pair, row, panel, dots):
    """Write inner products, or overlaps, of one sparse row with the first samples of one panel.

    The panel is (n_features, width). Four entries of the row are processed at a time, so each sum
    is loaded and stored a quarter as often.
    """
    lists = pair.lists
    indices, entries = lists.indices, lists.entries
    start, stop = lists.pointers[row], lists.pointers[row + 1]
    n = dots.shape[0]
    if start == stop or pair.overlap:
        dots[:] = 0.0
    for k in range(start, stop, 4):
        a, b, c, d = entries[k], entries[k + 1], entries[k + 2], entries[k + 3]
        x = panel[indices[k]]
        y = panel[indices[k + 1]]
        z = panel[indices[k + 2]]
        w = panel[indices[k + 3]]
        if pair.overlap:
            for j in range(n):
                first = (a if a < x[j] else x[j]) + (b if b < y[j] else y[j])
                dots[j] += first + ((c if c < z[j] else z[j]) + (d if d < w[j] else w[j]))
        elif k == start:
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
    stored, pair = products
    panels = pair.panels
    order, width, half = tiles
    matrix, places, accumulate = target
    buffer = np.empty(width, stored.dtype)
    values = np.empty(width, stored.dtype)
    # One kernel with constant gates needs neither sums nor a buffer.
    operations, gammas, coefs, degrees, weights = program
    is_single = not accumulate and operations.shape[0] == 1 and sides.left.factors.shape[1] == 0
    step = (operations[0], gammas[0], coefs[0], degrees[0])
    weight = weights[0]
    left_norms, right_norms = sides.left.norms, sides.right.norms
    # Stored products are read row by row, as they are in memory. A panel stays in the cache while
    # all rows pass over it.
    by_panel = panels.shape[0] > 0
    n_rows, n_tiles = rows.shape[0], stop - start
    for outer in range(n_tiles if by_panel else n_rows):
        for inner in range(n_rows if by_panel else n_tiles):
            k, p = (outer, inner) if by_panel else (inner, outer)
            tile = order[start + k]
            first = tile * width
            last = min(first + width, right_norms.shape[0])
            if half and p >= last:
                break
            out = matrix[places[p], first:last]
            if by_panel:
                dots = buffer[: last - first]
                _sparse_dots(pair, rows[p], panels[tile], dots)
            else:
                dots = stored[p, first:last]
            if is_single:
                _kernel_values(step, dots, left_norms[rows[p]], right_norms[first:last], out)
                if weight != 1.0:
                    _scale(weight, out)
                continue
            if not accumulate:
                out[:] = 0.0
            _mix_row(program, dots, sides, (rows[p], first, last), values, out)


@njit(**_LOOP)
def dots_sparse(start, stop, pair, rows, out):
    """Write inner products of the left samples `rows` with the right samples ``start:stop``."""
    width = pair.panels.shape[2]
    for first in range(start, stop, width):
        last = min(first + width, stop)
        for p in range(rows.shape[0]):
            _sparse_dots(pair, rows[p], pair.panels[first // width], out[p, first:last])


@njit(**_COPY)
def dots_by_column(start, stop, lists, columns, rows, out):
    """Write overlaps of the left samples ``rows[start:stop]`` with all right samples.

    Only pairs of entries in the same column are visited.
    """
    for p in range(start, stop):
        sums = out[p]
        sums[:] = 0.0
        for k in range(lists.pointers[rows[p]], lists.pointers[rows[p] + 1]):
            entry, column = lists.entries[k], lists.indices[k]
            for q in range(columns.pointers[column], columns.pointers[column + 1]):
                sums[columns.samples[q]] += min(entry, columns.entries[q])


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


@njit(**_COPY)
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


@njit(**_COPY, fastmath={"nsz", "contract"})
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


@njit(**_COPY)
def gather(start, stop, slab, slots, columns, out_rows, out):
    """Write ``out[out_rows[p], q] = slab[slots[p], columns[q]]`` for ``start <= p < stop``."""
    for p in range(start, stop):
        source = slab[slots[p]]
        target = out[out_rows[p]]
        for q in range(columns.shape[0]):
            target[q] = source[columns[q]]


@njit(**_COPY)
def look_up(start, stop, matrix, left, right, place):
    """Write values ``f[p] g[q] matrix[rows[p], columns[q]]`` for ``start <= p < stop``.

    `left` is (rows, f), `right` is (columns, g), and `place` is a :class:`Target`.
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


@njit(**_LOOP)
def mix_stored(start, stop, values, factors, out):
    """Write row ``start <= j < stop`` of gated kernels up to the diagonal, and its mirror image.

    ``out[j, k] = sum_i factors[i, j] factors[i, k] k_i(j, k)``; `values` are in the order of
    ``stored_values``: row by row, in each row kernel by kernel.
    """
    m = factors.shape[0]
    for j in range(start, stop):
        row, first = out[j, : j + 1], m * (j * (j + 1) // 2)
        row[:] = 0.0
        for i in range(m):
            if factors[i, j] != 0.0:
                part = values[first + i * (j + 1) : first + (i + 1) * (j + 1)]
                _add_gated(factors[i, j], factors[i, : j + 1], part, row)
        for k in range(j):
            out[k, j] = row[k]


@njit(**_LOOP)
def stored_forms(start, stop, values, loads, forms):
    """Add quadratic forms of the kernels ``start:stop``, whose values are stored as above.

    ``forms[i] += loads[i, q] K_i loads[i, q]`` for all `q`; pairs count twice.
    """
    m, n = loads.shape[0], loads.shape[2]
    for j in range(n):
        first = m * (j * (j + 1) // 2)
        for i in range(start, stop):
            part = values[first + i * (j + 1) : first + (i + 1) * (j + 1)]
            for q in range(loads.shape[1]):
                near = loads[i, q, j]
                if near != 0.0:
                    twice = 2.0 * np.float64(_inner(part[:j], loads[i, q, :j]))
                    forms[i] += near * (twice + near * part[j])


@njit(**_COPY, fastmath={"nsz", "contract", "reassoc"})
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


@njit(**_COPY, fastmath={"nsz", "contract"})
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
