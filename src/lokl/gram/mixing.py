"""Products of tiles: columns or features of some rows, those of one kernel beside the other's.

Blocks, products and sums of a gated kernel between two sets of prepared samples.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from lokl._arrays import Array, read_only
from lokl._compiled import CompiledModule
from lokl._threads import multiply, run_chunked
from lokl.gram.layouts import TILE, ViewSpec, Work, in_pieces
from lokl.gram.memory import RowCache
from lokl.gram.plan import Points

_rows = CompiledModule("lokl.gram._rows")

# Sums over a tile that are too few to be worth a copy of it in another precision.
_FEW_SUMS = 8


def square_norms(tile: Array, spans: list[slice]) -> Array:
    """Squared norms of each kernel's features, (n_rows, n_kernels)."""
    norms = [np.einsum("jk,jk->j", tile[:, s], tile[:, s], dtype=np.float64) for s in spans]
    return np.stack(norms, axis=1)


def sum_kernels_apart(tile: Array, starts: Array, loads: Array) -> Array:
    """Products of a tile with loads, kernel by kernel: (n_rows, n_kernels, *loads.shape[1:]).

    The columns of a kernel are those from its start to that of the next.
    """
    flat, count = loads.reshape(len(loads), int(np.prod(loads.shape[1:]))), len(starts) - 1
    if _is_mixed(tile, flat):
        out = np.empty((len(tile), count, flat.shape[1]))
        _rows.weigh_columns(tile, starts, np.ascontiguousarray(flat.T), out)
    else:
        spans = [slice(*pair) for pair in pairwise(starts)]
        sums = [multiply(tile[:, span], np.ascontiguousarray(flat[span])) for span in spans]
        out = np.stack(sums, axis=1)
    return out.reshape(len(tile), count, *loads.shape[1:])


def add_up(tile: Array, starts: Array, coef: Array, sums: Array) -> None:
    """Add sums over the rows of a tile, kernel by kernel, to `sums`, (n_columns, size).

    Coefficients are (n_rows, n_kernels, n_columns).
    """
    if _is_mixed(tile, coef):
        _rows.add_columns(tile, starts, coef, sums)
        return
    for i, (first, last) in enumerate(pairwise(starts)):
        own = np.ascontiguousarray(coef[:, i])
        sums[:, first:last] += multiply(tile[:, first:last].T, own).T


def _is_mixed(tile: Array, factors: Array) -> bool:
    """Whether a product in double precision would copy the tile to take few sums of it."""
    return tile.dtype != factors.dtype and factors.shape[-1] <= _FEW_SUMS


_mixing = CompiledModule("lokl.gram._mixing")

# Rows that are worth a thread of their own.
_SUMMED_ROWS, _MIRRORED_ROWS = 8, 256


def fill(
    left: Points,
    rows: Array,
    right: Points,
    out: Array,
    out_rows: Array,
    kept: dict[ViewSpec, RowCache] | None = None,
) -> None:
    """Write ``k(left[rows], right)`` into the rows `out_rows` of `out`.

    `kept` stores inner products of views, where `left` and `right` are the same samples.
    """
    for k, work in enumerate(_families(left, right, out, out_rows)):
        cache = kept.get(right.plan.families[k].view) if kept else None
        left.layouts[k].mix(rows, right.layouts[k], work, cache)
    _finish(left, rows, right, out, out_rows)


def block(left: Points, right: Points) -> Array:
    """Return ``k(left, right)`` as an array."""
    out = np.empty((left.n_samples, right.n_samples), dtype=right.plan.dtype)
    rows = np.arange(left.n_samples)
    fill(left, rows, right, out, rows)
    return out


def fill_symmetric(points: Points, out: Array) -> None:
    """Write ``k(points, points)``; where layouts allow it, only half is computed."""
    rows = np.arange(points.n_samples)
    for k, work in enumerate(_families(points, points, out, rows)):
        points.layouts[k].mix_half(work)
    if any(layout.halves for layout in points.layouts):
        run_chunked(_rows.mirror, points.n_samples, _MIRRORED_ROWS, out)
    _finish(points, rows, points, out, rows)


def _families(left: Points, right: Points, out: Array, out_rows: Array) -> Iterator[Work]:
    """What the compiled loops do for each family."""
    plan = right.plan
    if left.weights is None or right.weights is None:
        weights, near, far = None, left.sides, right.sides
    else:
        # Constant gates are weights of the programs, and no factors of the samples.
        weights = left.weights * right.weights
        none = np.empty((plan.n_kernels, 0, 0), dtype=plan.dtype)
        near = [_mixing.Side(layout.norms, none) for layout in left.layouts]
        far = [_mixing.Side(layout.norms, none) for layout in right.layouts]
    for k, family in enumerate(plan.families):
        sides, target = _mixing.Sides(near[k], far[k]), _mixing.Target(out, out_rows, k > 0)
        yield family.program(plan.dtype, weights), sides, target


def _finish(left: Points, rows: Array, right: Points, out: Array, out_rows: Array) -> None:
    """Add the kernels that are no function of an inner product; normalise pairs."""
    plan = right.plan
    stored = _look_up(left, rows, right, _mixing.Target(out, out_rows, bool(plan.families)))
    if not plan.families and not stored:
        out[out_rows] = 0.0
    for piece in _other_pieces(left, rows, right, apart_from=stored):
        i = piece.members[0]
        trust = left.gates[rows[piece.part], i] @ right.gates[:, i].T
        out[out_rows[piece.part]] += (trust * piece.values).astype(plan.dtype, copy=False)
    if plan.pair_normalized:
        for part in in_pieces(len(rows), right.n_samples):
            out[out_rows[part]] *= _pair_shares(left.gates[rows[part]], right.gates)


def _look_up(left: Points, rows: Array, right: Points, place: Any) -> list[int]:
    """Write the kernels of which it takes no more than to read a stored matrix; return them."""
    if right.gates.shape[2] > 1:
        return []
    dtype, done = right.plan.dtype, []
    for i, far in right.lookups.items():
        near = left.lookups[i]
        # Half the bytes to read of the numbers of columns, which takes a third of the time away.
        sides = [
            (
                found.rows[taken].astype(np.int32),
                (found.normalizers * points.gates[:, i, 0])[taken].astype(dtype),
            )
            for found, points, taken in ((near, left, rows), (far, right, slice(None)))
        ]
        work = (read_only(far.matrix), *sides, place)
        run_chunked(_rows.look_up, len(rows), _MIRRORED_ROWS, *work)
        place = place._replace(accumulate=True)
        done.append(i)
    return done


def diag(points: Points) -> Array:
    """``k(x, x)`` of every sample, in float64."""
    gates = (points.gates**2).sum(axis=2)
    if points.plan.pair_normalized:
        gates = gates * _inverse(gates.sum(axis=1, keepdims=True))
    return np.asarray((gates * diag_apart(points)).sum(axis=1))


def diag_apart(points: Points) -> Array:
    """``k_i(x, x)`` of every sample and kernel without gates, (n_samples, n_kernels)."""
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
    """``k(left, right) @ coef`` in pieces of rows; `coef` is (n_right, n_columns)."""
    result = np.zeros((left.n_samples, coef.shape[1]))
    if right.n_samples == 0:
        return result
    weights = np.ascontiguousarray(coef, dtype=right.plan.dtype)
    pieces = in_pieces(left.n_samples, right.n_samples)
    buffer = np.empty((pieces[0].stop if pieces else 0, right.n_samples), right.plan.dtype)
    for part in pieces:
        rows = np.arange(part.start, part.stop)
        fill(left, rows, right, buffer, rows - part.start)
        result[part] = multiply(buffer[: len(rows)], weights)
    return result


@dataclass(frozen=True, eq=False)
class _DotsPiece:
    """Inner products of some rows with all right samples, and what a family does with them."""

    part: slice
    members: list[int]
    program: Any
    dots: Array
    norms: tuple[Array, Array]

    def sums(self, loads: Array, damping: Array, begin: int = 0) -> Array:
        """``<k_i(p, :), loads[i, q]>``, columns from `begin` on: (n_rows, n_members, n_sums)."""
        out = np.zeros((len(self.dots), len(self.members), loads.shape[1]))
        work = (self.program, self.dots, self.norms, _mixing.Loads(loads, damping, begin), out)
        run_chunked(_mixing.kernel_sums, len(self.dots), _SUMMED_ROWS, *work)
        return out

    def put(self, out: Array) -> None:
        """Write kernel values into ``out[:, members]``."""
        work = (self.program, self.dots, self.norms, np.array(self.members), out)
        run_chunked(_mixing.kernels_apart, len(self.dots), 1, *work)


@dataclass(frozen=True, eq=False)
class _ValuesPiece:
    """Values of one other kernel; methods as those of inner products."""

    part: slice
    members: list[int]
    values: Array

    def sums(self, loads: Array, damping: Array, begin: int = 0) -> Array:
        values = self.values * damping if damping.size else self.values
        return np.asarray(values[:, begin:] @ loads[0, :, begin:].T)[:, np.newaxis]

    def put(self, out: Array) -> None:
        out[:, self.members[0]] = self.values


def _pieces(
    left: Points, rows: Array, right: Points, half: bool = False
) -> Iterator[_DotsPiece | _ValuesPiece]:
    """Every kernel between the left samples `rows` and all right samples, some rows at a time."""
    if right.n_samples == 0:
        return
    for k, family in enumerate(right.plan.families):
        near, far = left.layouts[k], right.layouts[k]
        program = family.program(right.plan.dtype)
        for part, dots in near.products(rows, far, half):
            norms = (near.norms[rows[part]], far.norms)
            yield _DotsPiece(part, list(family.terms), program, dots, norms)
    yield from _other_pieces(left, rows, right, half)


def _other_pieces(
    left: Points,
    rows: Array,
    right: Points,
    half: bool = False,
    apart_from: Collection[int] = (),
) -> Iterator[_ValuesPiece]:
    for i in right.plan.others if right.n_samples else ():
        if i in apart_from:
            continue
        for part in in_pieces(len(rows), right.n_samples, half):
            values = right.plan.kernels[i](left.X[rows[part]], right.X)
            yield _ValuesPiece(part, [i], values)


def kernel_sums(left: Points, rows: Array, right: Points, coef: Array) -> Array:
    """Sums over the right samples, apart for each kernel, at the left samples `rows`.

    Returns ``R[p, i, r, t] = sum_j k_i(p, j) h_ir(j) coef[j, t]``, normalisation included on both
    sides and, with pair-normalised mixing, the pair's divisor. Everything that is asked of single
    kernels (contributions, gate gradients) is a sum of these.
    """
    loads = _turned(right.loads(coef), right.plan.dtype)
    result = np.zeros((len(rows), *loads.shape[:2]))
    for piece in _pieces(left, rows, right):
        damping = _damping(left, rows[piece.part], right)
        result[piece.part][:, piece.members] = piece.sums(loads[piece.members], damping)
    result *= left.normalizers[rows, :, np.newaxis]
    return result.reshape(len(rows), *right.gates.shape[1:], coef.shape[1])


def forms(points: Points, rows: Array, coef: Array) -> Array:
    """``S_ir = sum_t (u_t o h_ir)' K_i (u_t o h_ir)`` over the samples `rows`, (n_kernels, rank).

    Kernels are symmetric: pairs are looked at once and count twice.
    """
    right = points.take(rows)
    loads = right.loads(coef)
    turned = _turned(loads, right.plan.dtype)
    result = np.zeros(loads.shape[1:])
    for piece in _pieces(points, rows, right, half=True):
        part, members = piece.part, piece.members
        # Columns before the rows have had their turn, those after count for both.
        once = turned[members]
        once[:, :, : part.start] = 0.0
        once[:, :, part.stop :] *= 2.0
        damping = _damping(points, rows[part], right)
        sums = piece.sums(once, damping, part.start // TILE * TILE)
        result[members] += (loads[part][:, members] * sums).sum(axis=0)
    return result.reshape(*right.gates.shape[1:], coef.shape[1]).sum(axis=2)


def apart(left: Points, rows: Array, right: Points) -> Array:
    """Rows of every gated kernel by itself, (len(rows), n_kernels, n_right); rank one only."""
    out = np.zeros((len(rows), right.plan.n_kernels, right.n_samples), dtype=right.plan.dtype)
    for piece in _pieces(left, rows, right):
        piece.put(out[piece.part])
    out *= left.factors[:, 0, rows].T[:, :, np.newaxis]
    out *= right.factors[:, 0]
    return out


def _turned(loads: Array, dtype: Any) -> Array:
    """Loads with the samples last, as loops go over them."""
    return np.ascontiguousarray(loads.transpose(1, 2, 0), dtype=dtype)


def _damping(left: Points, rows: Array, right: Points) -> Array:
    """Divisors of pairs, inverted; an array of shape (0, 0) stands for none."""
    if not right.plan.pair_normalized:
        return np.empty((0, 0), dtype=right.plan.dtype)
    shares = _pair_shares(left.gates[rows], right.gates)
    return np.ascontiguousarray(shares, dtype=right.plan.dtype)


def _pair_shares(left: Array, right: Array) -> Array:
    """``1 / sum_i <h_i(x), h_i(z)>``, and 0 for pairs that trust no kernel in common."""
    size = left.shape[1] * left.shape[2]
    return _inverse(left.reshape(len(left), size) @ right.reshape(len(right), size).T)


def _inverse(values: Array) -> Array:
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)
