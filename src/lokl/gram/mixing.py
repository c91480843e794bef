"""Blocks, products and sums of a gated kernel between two sets of prepared samples.

Everything here goes through pieces of rows that fit a buffer. Kernels that are functions of one
inner product are computed by compiled loops, family by family. The other kernels are called.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lokl._arrays import Array, read_only
from lokl._compiled import CompiledModule
from lokl._threads import multiply, run_chunked
from lokl.gram.layouts import TILE, ViewSpec, Work, in_pieces
from lokl.gram.memory import RowCache
from lokl.gram.plan import Points

_mixing = CompiledModule("lokl.gram._mixing")

# Fewest entries of a product whose rows are divided among threads, and rows of a part.
_THREADED, _MOST_ROWS = 2**24, 64
# Rows that are worth a thread of their own.
_SUMMED_ROWS, _COPIED_ROWS = 8, 256


def fill(
    left: Points,
    rows: Array,
    right: Points,
    out: Array,
    out_rows: Array,
    products: dict[ViewSpec, RowCache] | None = None,
    half: bool = False,
) -> None:
    """Write ``k(left[rows], right)`` into the rows `out_rows` of `out`.

    Parameters
    ----------
    left, right : Points
        Prepared for the same plan.
    rows, out_rows : arrays of int of shape (n_rows,)
    out : array of shape (n_out, n_right)
    products : dict of ViewSpec to RowCache, optional
        Stored inner products, if `left` and `right` are the same samples.
    half : bool, default=False
        Compute only half of a symmetric matrix of all samples, if the layouts allow it.
    """
    for k, work in enumerate(_families(left, right, out, out_rows, half)):
        cache = products.get(right.plan.families[k].view) if products else None
        left.layouts[k].mix(rows, right.layouts[k], work, cache)
    if half and any(layout.halves for layout in left.layouts):
        run_chunked(_mixing.mirror, left.n_samples, _COPIED_ROWS, out)
    _finish(left, rows, right, out, out_rows)


def block(left: Points, right: Points) -> Array:
    """Return ``k(left, right)``, (n_left, n_right)."""
    out = np.empty((left.n_samples, right.n_samples), dtype=right.plan.dtype)
    rows = np.arange(left.n_samples)
    fill(left, rows, right, out, rows)
    return out


def fill_symmetric(points: Points, out: Array) -> None:
    """Write ``k(points, points)``; if the layouts allow it, only half is computed."""
    rows = np.arange(points.n_samples)
    fill(points, rows, points, out, rows, half=True)


def _families(
    left: Points, right: Points, out: Array, out_rows: Array, half: bool
) -> Iterator[Work]:
    """Yield the arguments of the compiled loops for each family."""
    plan = right.plan
    if left.weights is None or right.weights is None:
        weights, left_sides, right_sides = None, left.sides, right.sides
    else:
        # Constant gates are weights of the programs, and samples have no factors.
        weights = left.weights * right.weights
        none = np.empty((plan.n_kernels, 0, 0), dtype=plan.dtype)
        left_sides = [_mixing.Side(layout.norms, none) for layout in left.layouts]
        right_sides = [_mixing.Side(layout.norms, none) for layout in right.layouts]
    for k, family in enumerate(plan.families):
        sides = _mixing.Sides(left_sides[k], right_sides[k])
        target = _mixing.Target(out, out_rows, k > 0)
        yield family.program(plan.dtype, weights), sides, target, half


def _finish(left: Points, rows: Array, right: Points, out: Array, out_rows: Array) -> None:
    """Add the kernels that are not functions of an inner product; normalise pairs."""
    plan = right.plan
    looked_up = _look_up(left, rows, right, _mixing.Target(out, out_rows, bool(plan.families)))
    if not plan.families and not looked_up:
        out[out_rows] = 0.0
    for piece in _other_pieces(left, rows, right, skip=looked_up):
        i = piece.members[0]
        gates = left.gates[rows[piece.part], i] @ right.gates[:, i].T
        out[out_rows[piece.part]] += (gates * piece.values).astype(plan.dtype, copy=False)
    if plan.pair_normalized:
        for part in in_pieces(len(rows), right.n_samples):
            out[out_rows[part]] *= _pair_normalizers(left.gates[rows[part]], right.gates)


def _look_up(left: Points, rows: Array, right: Points, target: Any) -> list[int]:
    """Write the kernels that are rows of a stored matrix; return their indices."""
    if right.gates.shape[2] > 1:
        return []
    dtype, done = right.plan.dtype, []

    def side(points: Points, i: int, index: Any) -> tuple[Array, Array]:
        # Column indices of 32 bits halve the bytes to read, which saves a third of the time.
        lookup = points.lookups[i]
        factors = (lookup.normalizers * points.gates[:, i, 0])[index]
        return lookup.rows[index].astype(np.int32), factors.astype(dtype)

    for i, lookup in right.lookups.items():
        work = (read_only(lookup.matrix), side(left, i, rows), side(right, i, slice(None)), target)
        run_chunked(_mixing.look_up, len(rows), _COPIED_ROWS, *work)
        target = target._replace(accumulate=True)
        done.append(i)
    return done


def diag(points: Points) -> Array:
    """Return ``k(x, x)`` of every sample, (n_samples,), in float64."""
    gates = (points.gates**2).sum(axis=2)
    if points.plan.pair_normalized:
        gates = gates * _inverse(gates.sum(axis=1, keepdims=True))
    return np.asarray((gates * diag_by_kernel(points)).sum(axis=1))


def diag_by_kernel(points: Points) -> Array:
    """Return ``k_i(x, x)`` of every sample and kernel without gates, (n_samples, n_kernels)."""
    plan = points.plan
    values = np.zeros((points.n_samples, plan.n_kernels))
    for family, layout in zip(plan.families, points.layouts, strict=True):
        norms = layout.norms.astype(np.float64)
        for i, term in family.terms.items():
            values[:, i] = term.formula(norms, norms, norms)
    values *= points.normalizers**2
    for i in plan.others:
        values[:, i] = plan.kernels[i].diag(points.X)
    return values


def product(left: Points, right: Points, coef: Array) -> Array:
    """Return ``k(left, right) @ coef``, (n_left, n_columns), for `coef` (n_right, n_columns)."""
    result = np.zeros((left.n_samples, coef.shape[1]))
    if right.n_samples == 0:
        return result
    weights = np.ascontiguousarray(coef, dtype=right.plan.dtype)

    def task(begin: int, end: int) -> None:
        pieces = in_pieces(end - begin, right.n_samples)
        buffer = np.empty((pieces[0].stop, right.n_samples), right.plan.dtype)
        for piece in pieces:
            rows = np.arange(begin + piece.start, begin + piece.stop)
            fill(left, rows, right, buffer, rows - rows[0])
            result[rows] = multiply(buffer[: len(rows)], weights)

    # Kernels that are called as they are may not run in threads.
    is_large = left.n_samples * right.n_samples >= _THREADED and not right.plan.others
    grain = _MOST_ROWS if is_large else left.n_samples
    run_chunked(task, left.n_samples, grain, serial_tasks=is_large)
    return result


@dataclass(frozen=True, eq=False)
class _Piece:
    """Some kernels between some rows and all right samples.

    Attributes
    ----------
    part : slice
        Some of the rows.
    members : list of int
        Indices of the kernels.
    values : array of shape (n_rows, n_right)
        Inner products, or values of the only kernel if there is no program.
    program : Program or None
    norms : arrays of shape (n_rows,) and (n_right,)
        Squared norms; none without a program.
    """

    part: slice
    members: list[int]
    values: Array
    program: Any = None
    norms: tuple[Array, ...] = ()

    def sums(self, loads: Array, damping: Array, begin: int = 0) -> Array:
        """Return ``<k_i(p, :), loads[i, q]>``, (n_rows, n_members, n_sums).

        Columns before `begin` are left out.
        """
        if self.program is None:
            values = self.values * damping if damping.size else self.values
            return np.asarray(values[:, begin:] @ loads[0, :, begin:].T)[:, np.newaxis]
        out = np.zeros((len(self.values), len(self.members), loads.shape[1]))
        work = (self.program, self.values, self.norms, _mixing.Loads(loads, damping, begin), out)
        run_chunked(_mixing.kernel_sums, len(self.values), _SUMMED_ROWS, *work)
        return out

    def write(self, out: Array) -> None:
        """Write kernel values into ``out[:, members]``, (n_rows, n_kernels, n_right)."""
        if self.program is None:
            out[:, self.members[0]] = self.values
            return
        work = (self.program, self.values, self.norms, np.array(self.members), out)
        run_chunked(_mixing.values_by_kernel, len(self.values), 1, *work)


def _pieces(left: Points, rows: Array, right: Points, half: bool = False) -> Iterator[_Piece]:
    """Yield every kernel between the left samples `rows` and all right samples, in pieces."""
    if right.n_samples == 0:
        return
    for k, family in enumerate(right.plan.families):
        near, far = left.layouts[k], right.layouts[k]
        program = family.program(right.plan.dtype)
        for part, dots in near.products(rows, far, half):
            norms = (near.norms[rows[part]], far.norms)
            yield _Piece(part, list(family.terms), dots, program, norms)
    yield from _other_pieces(left, rows, right, half)


def _other_pieces(
    left: Points, rows: Array, right: Points, half: bool = False, skip: Collection[int] = ()
) -> Iterator[_Piece]:
    """Yield the kernels that are not functions of an inner product, except those in `skip`."""
    for i in right.plan.others if right.n_samples else ():
        if i in skip:
            continue
        for part in in_pieces(len(rows), right.n_samples, half):
            yield _Piece(part, [i], right.plan.kernels[i](left.X[rows[part]], right.X))


def kernel_sums(left: Points, rows: Array, right: Points, coef: Array) -> Array:
    """Return sums over the right samples for each kernel, at the left samples `rows`.

    Contributions of kernels and gradients of gates are sums of these.

    Parameters
    ----------
    left, right : Points
    rows : array of int of shape (n_rows,)
    coef : array of shape (n_right, n_tasks)

    Returns
    -------
    sums : array of shape (n_rows, n_kernels, rank, n_tasks)
        ``sum_j k_i(p, j) h_ir(j) coef[j, t]``, normalised on both sides and, with pair-normalised
        kernels, divided by the pair's normaliser.
    """
    loads = _samples_last(right.loads(coef), right.plan.dtype)
    result = np.zeros((len(rows), *loads.shape[:2]))
    for piece in _pieces(left, rows, right):
        damping = _damping(left, rows[piece.part], right)
        result[piece.part][:, piece.members] = piece.sums(loads[piece.members], damping)
    result *= left.normalizers[rows, :, np.newaxis]
    return result.reshape(len(rows), *right.gates.shape[1:], coef.shape[1])


def forms(points: Points, rows: Array, coef: Array) -> Array:
    """Return the quadratic forms of each kernel over the samples `rows`, (n_kernels, rank).

    ``S_ir = sum_t (u_t o h_ir)' K_i (u_t o h_ir)`` with `coef` ``u`` of shape (n_rows, n_tasks).
    Kernels are symmetric: pairs are computed once and count twice.
    """
    right = points.take(rows)
    loads = right.loads(coef)
    transposed = _samples_last(loads, right.plan.dtype)
    result = np.zeros(loads.shape[1:])
    for piece in _pieces(points, rows, right, half=True):
        part, members = piece.part, piece.members
        # Columns before the rows are counted already, columns after them count twice.
        once = transposed[members]
        once[:, :, : part.start] = 0.0
        once[:, :, part.stop :] *= 2.0
        damping = _damping(points, rows[part], right)
        sums = piece.sums(once, damping, part.start // TILE * TILE)
        result[members] += (loads[part][:, members] * sums).sum(axis=0)
    return result.reshape(*right.gates.shape[1:], coef.shape[1]).sum(axis=2)


def stored_values(points: Points, stored_as: Any) -> Array:
    """Return the values of all kernels without gates, for pairs of samples ``j >= k``.

    They are in one array of type `stored_as`, row by row; row j has
    ``k_0(j, 0), ..., k_0(j, j), k_1(j, 0), ...``.
    """
    n, m, dtype = points.n_samples, points.plan.n_kernels, points.plan.dtype
    values = np.empty(m * (n * (n + 1) // 2), dtype=stored_as)
    factors = points.normalizers.T.astype(dtype)
    rows = np.arange(n)
    for piece in _pieces(points, rows, points):
        part, members = piece.part, piece.members
        buffer = np.empty((part.stop - part.start, len(members), n), dtype=dtype)
        replace(piece, members=list(range(len(members)))).write(buffer)
        for j in range(part.start, part.stop):
            first, size = m * (j * (j + 1) // 2), j + 1
            for place, i in enumerate(members):
                scaled = buffer[j - part.start, place, :size] * factors[i, :size]
                values[first + i * size : first + (i + 1) * size] = factors[i, j] * scaled
    return values


def fill_stored(points: Points, values: Array, out: Array) -> None:
    """Write ``k(points, points)`` from the stored values of all kernels."""
    factors = np.ascontiguousarray(points.gates[:, :, 0].T, dtype=points.plan.dtype)
    run_chunked(_mixing.mix_stored, points.n_samples, _COPIED_ROWS, values, factors, out)


def forms_stored(points: Points, values: Array, coef: Array) -> Array:
    """Return the quadratic forms of each kernel, (n_kernels, 1), from its stored values.

    `coef` has the coefficients of all samples, (n_samples, n_tasks).
    """
    loads = points.gates * coef[:, np.newaxis, :]
    result = np.zeros(points.plan.n_kernels)
    work = (values, _samples_last(loads, values.dtype), result)
    run_chunked(_mixing.stored_forms, len(result), 1, *work)
    return result[:, np.newaxis]


def values_by_kernel(left: Points, rows: Array, right: Points) -> Array:
    """Return rows of every gated kernel, (n_rows, n_kernels, n_right); gates of rank one only."""
    out = np.zeros((len(rows), right.plan.n_kernels, right.n_samples), dtype=right.plan.dtype)
    for piece in _pieces(left, rows, right):
        piece.write(out[piece.part])
    out *= left.factors[:, 0, rows].T[:, :, np.newaxis]
    out *= right.factors[:, 0]
    return out


def _samples_last(loads: Array, dtype: Any) -> Array:
    """Return loads with the samples as last axis, over which the loops run."""
    return np.ascontiguousarray(loads.transpose(1, 2, 0), dtype=dtype)


def _damping(left: Points, rows: Array, right: Points) -> Array:
    """Return normalisers of pairs, (n_rows, n_right); of shape (0, 0) if there are none."""
    if not right.plan.pair_normalized:
        return np.empty((0, 0), dtype=right.plan.dtype)
    normalizers = _pair_normalizers(left.gates[rows], right.gates)
    return np.ascontiguousarray(normalizers, dtype=right.plan.dtype)


def _pair_normalizers(left: Array, right: Array) -> Array:
    """Return ``1 / sum_i <h_i(x), h_i(z)>``, and 0 for pairs without a common kernel."""
    size = left.shape[1] * left.shape[2]
    return _inverse(left.reshape(len(left), size) @ right.reshape(len(right), size).T)


def _inverse(values: Array) -> Array:
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)
