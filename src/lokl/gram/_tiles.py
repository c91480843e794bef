# mypy: ignore-errors
# Types here are numba's, read at compile time; mypy cannot follow intrinsics and overloads.
"""Compiled loops over tiles of one gated Gram matrix.

A *program* is what a list of kernels of one view does with an inner product: operation codes
and their numbers, one entry a kernel. Gaussians come in rising order of gamma; one whose gamma is
twice that of the one before is its square and needs no exponential of its own (`SQUARE`).

Columns are cut into tiles short enough to stay in the first-level cache while all kernels
of the program pass over them.
"""

import numpy as np
from numba import njit, types
from numba.extending import intrinsic, overload

# Operation codes, as in lokl.kernels.base. Written out: numba's cache on disk looks at this file
# only, and would go on with old numbers after a change elsewhere.
LINEAR, POLYNOMIAL, GAUSSIAN, TANH, SQUARE = range(5)

TILE = 512

# No reassociation and no reciprocal tricks: the laws on rounding in the tests hold with these.
_FAST = {"nnan", "nsz", "contract"}


@intrinsic
def _as_float(typing_context, bits):
    """Reinterpret integer bits as a float of the same size."""
    result = types.float32 if bits == types.int32 else types.float64

    def codegen(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(signature.return_type))

    return result(bits), codegen


@intrinsic
def _as_bits(typing_context, number):
    """Reinterpret a float as integer bits of the same size."""
    result = types.int32 if number == types.float32 else types.int64

    def codegen(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(signature.return_type))

    return result(number), codegen


def exp2_nonpositive(t):
    """``2 ** t`` for ``t <= 0`` without a branch, so that loops around it vectorise.

    The integer part goes into the exponent bits, the rest through a polynomial; relative error
    3e-7 (float32), 4e-16 (float64). Results below the smallest normal number become it.
    """
    return np.exp2(t)


@overload(exp2_nonpositive, inline="always")
def _exp2_nonpositive(t):
    if t == types.float32:

        def single(t):
            t = max(min(t, np.float32(0.0)), np.float32(-126.0))
            shifted = t + np.float32(12582912.0)  # 1.5 * 2^23: rounds to an integer
            f = t - (shifted - np.float32(12582912.0))
            p = np.float32(1.5403530e-4)
            p = p * f + np.float32(1.3333558e-3)
            p = p * f + np.float32(9.6181291e-3)
            p = p * f + np.float32(5.5504109e-2)
            p = p * f + np.float32(2.4022651e-1)
            p = p * f + np.float32(6.9314718e-1)
            p = p * f + np.float32(1.0)
            bits = np.int32(np.int32(_as_bits(shifted) + np.int32(127)) << np.int32(23))
            return p * _as_float(bits)

        return single

    def double(t):
        t = max(min(t, 0.0), -1022.0)
        shifted = t + 6755399441055744.0  # 1.5 * 2^52
        f = t - (shifted - 6755399441055744.0)
        p = 2.5678435993488206e-11  # ln(2)^k / k!, k = 12 .. 1
        p = p * f + 4.4455382718708116e-10
        p = p * f + 7.0549116208011234e-09
        p = p * f + 1.0178086009239699e-07
        p = p * f + 1.3215486790144309e-06
        p = p * f + 1.5252733804059841e-05
        p = p * f + 1.5403530393381610e-04
        p = p * f + 1.3333558146428443e-03
        p = p * f + 9.6181291076284772e-03
        p = p * f + 5.5504108664821580e-02
        p = p * f + 2.4022650695910072e-01
        p = p * f + 6.9314718055994531e-01
        p = p * f + 1.0
        return p * _as_float((_as_bits(shifted) + 1023) << 52)

    return double


@njit(cache=True, nogil=True, fastmath=_FAST)
def _kernel_values(step, dots, left_norm, right_norms, values):
    """Values of one kernel over one row of one tile; ``step`` is (operation, gamma, coef0, degree).

    For `SQUARE`, `values` holds those of the kernel before on entry.
    """
    operation, gamma, coef0, degree = step
    n = dots.shape[0]
    if operation == SQUARE:
        for j in range(n):
            values[j] = values[j] * values[j]
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
        for _ in range(degree - 2):
            for j in range(n):
                values[j] = values[j] * (gamma * dots[j] + coef0)
        if degree > 1:
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
        first = values[j] * values[j]
        second = first * first
        third = second * second
        fourth = third * third
        values[j] = fourth
        out[j] += a * first + b * second + c * third + d * fourth


@njit(cache=True, nogil=True, fastmath=_FAST)
def _add_gated_squares(weights, gates, values, out):
    """Like :func:`_add_squares`, with a gate for each rung."""
    a, b, c, d = weights
    x, y, z, w = gates
    for j in range(out.shape[0]):
        first = values[j] * values[j]
        second = first * first
        third = second * second
        fourth = third * third
        values[j] = fourth
        out[j] += a * x[j] * first + b * y[j] * second + c * z[j] * third + d * w[j] * fourth


@njit(cache=True, nogil=True, fastmath=_FAST)
def _add_scaled(weight, values, out):
    """``out += weight * values``."""
    for j in range(out.shape[0]):
        out[j] += weight * values[j]


@njit(cache=True, nogil=True, fastmath=_FAST)
def _add_quadratic(weight, gamma, coef0, dots, out):
    """``out += weight * (gamma * dots + coef0) ** 2``, without a pass for the values."""
    for j in range(out.shape[0]):
        base = gamma * dots[j] + coef0
        out[j] += weight * base * base


@njit(cache=True, nogil=True, fastmath=_FAST)
def _mix_row(program, dots, left, right, p, first, last, values, out):
    """Add all gated kernels of a program to one row of one tile."""
    operations, gammas, coefs, degrees, weights = program
    left_norms, left_factors = left
    right_norms, right_factors = right
    values = values[: last - first]
    rank = left_factors.shape[1]
    count = operations.shape[0]
    i = 0
    while i < count:
        if rank < 2 and i + 4 <= count and (operations[i : i + 4] == SQUARE).all():
            if rank:
                _add_gated_squares(
                    (
                        left_factors[i, 0, p],
                        left_factors[i + 1, 0, p],
                        left_factors[i + 2, 0, p],
                        left_factors[i + 3, 0, p],
                    ),
                    (
                        right_factors[i, 0, first:last],
                        right_factors[i + 1, 0, first:last],
                        right_factors[i + 2, 0, first:last],
                        right_factors[i + 3, 0, first:last],
                    ),
                    values,
                    out,
                )
            else:
                four = (weights[i], weights[i + 1], weights[i + 2], weights[i + 3])
                _add_squares(four, values, out)
            i += 4
            continue
        if rank == 0 and operations[i] == LINEAR:
            _add_scaled(weights[i], dots, out)
            i += 1
            continue
        if rank == 0 and operations[i] == POLYNOMIAL and degrees[i] == 2:
            _add_quadratic(weights[i], gammas[i], coefs[i], dots, out)
            i += 1
            continue
        step = (operations[i], gammas[i], coefs[i], degrees[i])
        _kernel_values(step, dots, left_norms[p], right_norms[first:last], values)
        if rank == 0:
            _add_scaled(weights[i], values, out)
        for r in range(rank):
            weight = left_factors[i, r, p]
            gate = right_factors[i, r, first:last]
            for j in range(out.shape[0]):
                out[j] += weight * gate[j] * values[j]
        i += 1


@njit(cache=True, nogil=True)
def list_entries(X):
    """Entries of each row that are not zero, padded to a multiple of four: lists of sparse rows."""
    n, d = X.shape
    pointers = np.zeros(n + 1, np.int64)
    for p in range(n):
        count = 0
        for j in range(d):
            count += X[p, j] != 0.0
        pointers[p + 1] = pointers[p] + (count + 3) // 4 * 4
    indices = np.zeros(pointers[n], np.int32)
    entries = np.zeros(pointers[n], X.dtype)
    for p in range(n):
        k = pointers[p]
        for j in range(d):
            if X[p, j] != 0.0:
                indices[k] = j
                entries[k] = X[p, j]
                k += 1
    return pointers, indices, entries


@njit(cache=True, nogil=True, fastmath=_FAST)
def _sparse_dots(indices, entries, start, stop, panel, n, dots):
    """Inner products of one sparse row with the samples of one panel (n_features, width).

    The row's entries are padded with zeros to a multiple of four; four at a time, each sum is
    loaded and stored a quarter as often.
    """
    if start == stop:
        for j in range(n):
            dots[j] = 0.0
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
def mix_dense(s, e, program, dots, left, rows, right, out, out_rows, accumulate):
    """Gated kernel values of some rows, from stored inner products.

    Parameters
    ----------
    program : tuple of arrays
        Operations, gammas, coefs, degrees, weights.
    dots : array (len(rows), columns)
        Inner products of the left samples `rows` with the right samples, of which the columns
        ``s:e`` are read.
    left, right : tuple (norms, factors)
        Squared norms (n,) and gate factors (n_kernels, rank, n); rank 0 means constant weights.
    rows : array of int
        Which left samples.
    out : array (rows, columns)
        Row ``out_rows[p]``, columns ``s:e`` are written, or added to with `accumulate`.
    """
    values = np.empty(TILE, dots.dtype)
    for p in range(rows.shape[0]):
        for first in range(s, e, TILE):
            last = min(first + TILE, e)
            target = out[out_rows[p], first:last]
            if not accumulate:
                target[:] = 0.0
            source = dots[p, first:last]
            _mix_row(program, source, left, right, rows[p], first, last, values, target)


@njit(cache=True, nogil=True, fastmath=_FAST)
def mix_sparse(s, e, program, lists, panels, left, rows, right, out, out_rows, accumulate):
    """Like :func:`mix_dense`, with inner products of sparse rows computed on the way.

    ``lists`` is (pointers, indices, entries) of the left samples, padded to multiples of four;
    ``panels`` the right samples, transposed, in pieces: (n_panels, n_features, width). `s` is a
    multiple of the width, which is read off the array: compiled code outlives a changed constant.
    """
    pointers, indices, entries = lists
    width = panels.shape[2]
    dots = np.empty(width, panels.dtype)
    values = np.empty(width, panels.dtype)
    for first in range(s, e, width):
        last = min(first + width, e)
        n = last - first
        panel = panels[first // width]
        for p in range(rows.shape[0]):
            row = rows[p]
            target = out[out_rows[p], first:last]
            if not accumulate:
                target[:] = 0.0
            _sparse_dots(indices, entries, pointers[row], pointers[row + 1], panel, n, dots)
            _mix_row(program, dots[:n], left, right, row, first, last, values, target)


@njit(cache=True, nogil=True, fastmath=_FAST)
def mix_triangle(start, stop, order, program, lists, panels, side, rows, out, accumulate):
    """Upper triangle of the matrix of all samples with themselves, by panels of columns.

    ``order[start:stop]`` are the panels; other arguments as in :func:`mix_sparse`, `side` being
    both sides. Entries below the diagonal are written only inside a panel's own rows.
    """
    width = panels.shape[2]
    n = rows.shape[0]
    for place in range(start, stop):
        first = order[place] * width
        last = min(first + width, n)
        above = rows[:last]
        mix_sparse(first, last, program, lists, panels, side, above, side, out, above, accumulate)


@njit(cache=True, nogil=True)
def mirror(start, stop, matrix):
    """Copy the upper triangle of the columns ``start:stop`` below the diagonal."""
    block = 32
    for first in range(start, stop, block):
        last = min(first + block, stop)
        for above in range(0, last, block):
            for i in range(above, min(above + block, last)):
                for j in range(max(first, i + 1), last):
                    matrix[j, i] = matrix[i, j]


@njit(cache=True, nogil=True, fastmath=_FAST)
def dots_sparse(s, e, lists, panels, rows, out):
    """Inner products of the sparse samples `rows` with the samples ``s:e`` of some panels."""
    pointers, indices, entries = lists
    width = panels.shape[2]
    for first in range(s, e, width):
        last = min(first + width, e)
        panel = panels[first // width]
        for p in range(rows.shape[0]):
            start, stop = pointers[rows[p]], pointers[rows[p] + 1]
            _sparse_dots(indices, entries, start, stop, panel, last - first, out[p, first:last])


@njit(cache=True, nogil=True, fastmath=_FAST | {"reassoc"})
def _inner(a, b):
    total = a.dtype.type(0.0)
    for j in range(a.shape[0]):
        total += a[j] * b[j]
    return total


@njit(cache=True, nogil=True, fastmath=_FAST)
def kernel_sums(start, stop, begin, program, dots, left_norms, right_norms, damping, coefs, out):
    """Sums over the right samples, kernel by kernel: ``out[p, i, q] += <k_i(p, :), coefs[i, q]>``.

    Rows ``start:stop`` and columns from `begin` on only. `damping` (rows, columns) multiplies every
    kernel value where given (pair-normalised mixing); one of shape (0, 0) stands for none. Tiles
    are summed in the dtype of the data, their sums in float64.
    """
    operations, gammas, coefs0, degrees, _ = program
    n = dots.shape[1]
    values = np.empty(TILE, dots.dtype)
    damped = np.empty(TILE, dots.dtype)
    for p in range(start, stop):
        for first in range(begin, n, TILE):
            last = min(first + TILE, n)
            size = last - first
            for i in range(operations.shape[0]):
                step = (operations[i], gammas[i], coefs0[i], degrees[i])
                _kernel_values(
                    step, dots[p, first:last], left_norms[p], right_norms[first:last], values[:size]
                )
                if damping.shape[0]:
                    for j in range(size):
                        damped[j] = values[j] * damping[p, first + j]
                    for q in range(coefs.shape[1]):
                        out[p, i, q] += _inner(damped[:size], coefs[i, q, first:last])
                else:
                    for q in range(coefs.shape[1]):
                        out[p, i, q] += _inner(values[:size], coefs[i, q, first:last])


@njit(cache=True, nogil=True, fastmath=_FAST)
def kernels_apart(start, stop, program, dots, left_norms, right_norms, members, out):
    """Values kernel by kernel: ``out[p, members[i], :] = k_i(p, :)`` for ``start <= p < stop``."""
    operations, gammas, coefs0, degrees, _ = program
    n = dots.shape[1]
    values = np.empty(TILE, dots.dtype)
    for p in range(start, stop):
        for first in range(0, n, TILE):
            last = min(first + TILE, n)
            size = last - first
            for i in range(operations.shape[0]):
                step = (operations[i], gammas[i], coefs0[i], degrees[i])
                _kernel_values(
                    step, dots[p, first:last], left_norms[p], right_norms[first:last], values[:size]
                )
                out[p, members[i], first:last] = values[:size]


@njit(cache=True, nogil=True, fastmath={"nsz", "contract"})
def subtract_rows(start, stop, slab, slots, coef, target):
    """``target[start:stop] -= coef @ slab[slots, start:stop]``, summed in float64."""
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


@njit(cache=True, nogil=True)
def gather(start, stop, slab, slots, columns, out_rows, out):
    """``out[out_rows[p], q] = slab[slots[p], columns[q]]`` for ``start <= p < stop``."""
    for p in range(start, stop):
        source = slab[slots[p]]
        target = out[out_rows[p]]
        for q in range(columns.shape[0]):
            target[q] = source[columns[q]]
