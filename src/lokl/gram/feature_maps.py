"""Explicit features of kernels: ``k_i(x, z)`` is close to ``<phi_i(x), phi_i(z)>``.

Two things are computed of samples. *Columns* are kernel values with landmarks, or waves. *Features*
are columns times a small triangular matrix: ``phi(x) = L^-1 k(M, x)`` with ``K(M, M) = L L'``. A
function ``<w, phi(x)>`` needs the columns only: it is ``<L^-T w, k(M, x)>``, and ``L^-T w`` are its
*loads*. So learning may store features, which are well conditioned, or compute columns again, which
is far cheaper than features. New samples only need their columns.

Columns and features of all kernels are side by side in *tiles* of some rows, (n_rows, size). The
columns of kernel ``i`` are ``starts[i]:starts[i + 1]``.

Landmarks
---------
Randomly pivoted Cholesky draws a sample with a probability in proportion to the residual of its
diagonal entry, after subtracting the part that the samples drawn before explain. Samples similar to
a drawn one are hardly ever drawn, outliers early. Only the diagonal of the matrix and the columns
of the drawn samples are computed.

Samples are drawn in blocks: many proposals at once, of which those are rejected that the accepted
ones before them explain. Accepted samples are distributed as if they had been drawn one by one, and
the columns of a block are updated by one matrix product.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.linalg import lapack, solve_triangular

from lokl._arrays import Array, slices
from lokl._compiled import CompiledModule
from lokl._threads import multiply, run_chunked
from lokl._warnings import warn_once
from lokl.gram import mixing
from lokl.gram.plan import GramPlan, Points

_mixing = CompiledModule("lokl.gram._mixing")

# Smallest pivots of a kernel's factor, relative to its largest entry, by the bytes of a number.
# Below it features would be rounding, because columns have only this precision.
_LEAST_PIVOT = {4: 1e-6, 8: 1e-11}
# If factor and matrix differ by more than this share of the largest entry, the kernel is not
# positive semidefinite. Checked in this many rows.
_INDEFINITE, _CHECKED_ROWS = 1e-3, 200
# Entries of one tile, bounds on the rows of a tile of columns, and least rows of stored features.
_TILE, _FEWEST_ROWS, _MOST_ROWS, _FEWEST_STORED = 2**20, 32, 1024, 256
# Columns of a triangular matrix that are solved at once; rows worth a thread of their own.
_SOLVED_COLUMNS, _SOLVED_ROWS = 128, 32
# Share of the landmarks that are proposed at once; at least, and at most.
_SHARE, _FEWEST, _MOST = 0.1, 16, 256
# Residual share of the trace that counts as zero, by the bytes of a number.
_NOTHING = {4: 1e-7, 8: 1e-13}
# Pivots below this share of the diagonal residual are rounding.
_LEAST_SHARE = 1e-12
# After this many blocks in a row without an accepted sample, the residual is rounding.
_PATIENCE = 3
# For at most this many sums, a copy of the tile in another precision is not worth its cost.
_FEW_SUMS = 8

# Receives the rows of a tile, the tile, and an array of sums to add to.
Visit = Callable[[slice, Array, Array], None]


def sum_by_kernel(tile: Array, starts: Array, loads: Array) -> Array:
    """Return products of a tile with loads for each kernel.

    Parameters
    ----------
    tile : array of shape (n_rows, size)
    starts : array of int of shape (n_kernels + 1,)
    loads : array of shape (size, ...)

    Returns
    -------
    sums : array of shape (n_rows, n_kernels, ...)
    """
    flat, count = loads.reshape(len(loads), int(np.prod(loads.shape[1:]))), len(starts) - 1
    if _is_mixed(tile, flat):
        out = np.empty((len(tile), count, flat.shape[1]))
        _mixing.weigh_columns(tile, starts, np.ascontiguousarray(flat.T), out)
    else:
        spans = [slice(*pair) for pair in pairwise(starts)]
        sums = [multiply(tile[:, span], np.ascontiguousarray(flat[span])) for span in spans]
        out = np.stack(sums, axis=1)
    return out.reshape(len(tile), count, *loads.shape[1:])


def add_by_kernel(tile: Array, starts: Array, coef: Array, sums: Array) -> None:
    """Add sums over the rows of a tile for each kernel.

    Parameters
    ----------
    tile : array of shape (n_rows, size)
    starts : array of int of shape (n_kernels + 1,)
    coef : array of shape (n_rows, n_kernels, n_columns)
    sums : array of shape (n_columns, size)
    """
    if _is_mixed(tile, coef):
        _mixing.add_columns(tile, starts, coef, sums)
        return
    for i, (first, last) in enumerate(pairwise(starts)):
        sums[:, first:last] += multiply(tile[:, first:last].T, np.ascontiguousarray(coef[:, i])).T


def _is_mixed(tile: Array, factors: Array) -> bool:
    """Whether a product in double precision would copy the tile to compute few sums."""
    return tile.dtype != factors.dtype and factors.shape[-1] <= _FEW_SUMS


def squared_norms_by_kernel(tile: Array, spans: list[slice]) -> Array:
    """Return squared norms of each kernel's features, (n_rows, n_kernels)."""
    norms = [np.einsum("jk,jk->j", tile[:, s], tile[:, s], dtype=np.float64) for s in spans]
    return np.stack(norms, axis=1)


@dataclass(frozen=True, eq=False)
class FeatureMap(ABC):
    """Columns and features of all kernels of a plan.

    Attributes
    ----------
    plan : GramPlan
        Kernels, and the precision of columns.
    residual : array of shape (n_kernels,)
        Relative error of the features of each kernel.
    """

    plan: GramPlan
    residual: Array

    @property
    @abstractmethod
    def sizes(self) -> tuple[int, ...]:
        """Number of features of each kernel."""

    @abstractmethod
    def columns(self, points: Points, rows: Array, out: Array) -> None:
        """Write the columns of some ungated samples into `out`, (len(rows), size)."""

    @abstractmethod
    def cast(self, plan: GramPlan) -> "FeatureMap":
        """Return the same map in the precision of another plan of its kernels."""

    def loads(self, weights: Array) -> Array:
        """Return loads of columns, (size, ...), from weights of features."""
        return weights

    def gathered(self, sums: Array) -> Array:
        """Return sums over features, (size, ...), from sums over columns."""
        return sums

    def whiten(self, columns: Array) -> None:  # noqa: B027
        """Turn columns into features, in place; the default is for columns that are features."""

    @property
    def size(self) -> int:
        return sum(self.sizes)

    @cached_property
    def starts(self) -> Array:
        """Position of the first feature of each kernel, and the total, (n_kernels + 1,)."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.intp)

    @property
    def spans(self) -> list[slice]:
        """Positions of each kernel's features."""
        return [slice(*pair) for pair in pairwise(self.starts)]

    @property
    def _tile_rows(self) -> int:
        return int(np.clip(_TILE // max(self.size, 1), _FEWEST_ROWS, _MOST_ROWS))

    def features(self, points: Points, rows: Array | None = None) -> Array:
        """Return the features of samples without gates, (n_rows, size)."""
        rows = np.arange(points.n_samples) if rows is None else rows
        out = np.empty((len(rows), self.size), dtype=self.plan.dtype)
        for part, tile in self.feature_tiles(points, rows):
            out[part] = tile
        return out

    def feature_tiles(self, points: Points, rows: Array) -> Iterator[tuple[slice, Array]]:
        """Yield the features of samples, some rows at a time, in an array that is reused."""
        for part, tile in self._tiles(points.ungated(), rows):
            self.whiten(tile)
            yield part, tile

    def sweep(self, points: Points, visit: Visit, sums: Array, stored: Array | None) -> Array:
        """Call `visit` with tiles of columns of all samples; return the sums it adds up.

        Threads share the samples, and each has its own sums. If features of all samples are
        `stored`, (n_samples, size), the tiles are pieces of them.
        """
        if stored is not None:
            step = max(_TILE // max(self.size, 1), _FEWEST_STORED)
            for part in slices(len(stored), step):
                visit(part, stored[part], sums)
            return sums
        ungated, sums_by_start = points.ungated(), dict[int, Array]()

        def visit_some(start: int, stop: int) -> None:
            own_sums = np.zeros_like(sums)
            for part, tile in self._tiles(ungated, np.arange(start, stop)):
                visit(slice(start + part.start, start + part.stop), tile, own_sums)
            sums_by_start[start] = own_sums

        run_chunked(visit_some, points.n_samples, self._tile_rows, serial_tasks=True)
        for start in sorted(sums_by_start):
            sums += sums_by_start[start]
        return sums

    def map(
        self,
        points: Points,
        function: Callable[[slice, Array], Array],
        shape: tuple[int, ...],
        stored: Array | None = None,
    ) -> Array:
        """Return ``function(part, tile)`` of all tiles of :meth:`sweep`, (n_samples, *shape)."""
        out = np.zeros((points.n_samples, *shape))

        def visit(part: slice, tile: Array, _: Array) -> None:
            out[part] = function(part, tile)

        self.sweep(points, visit, np.empty(0), stored)
        return out

    def sums(self, points: Points, loads: Array, stored: Array | None = None) -> Array:
        """Return ``<columns_i(x), loads_i>`` at all samples, (n_samples, n_kernels, ...)."""
        shape = (self.plan.n_kernels, *loads.shape[1:])
        starts = self.starts
        return self.map(points, lambda _, tile: sum_by_kernel(tile, starts, loads), shape, stored)

    def gated_features(self, points: Points) -> Array:
        """Return the features of samples times their gates, (n_samples, size * rank)."""
        return self.gated(self.features(points), points.gates)

    def gated(self, Phi: Array, gates: Array) -> Array:
        """Return features times gates, (n_samples, size * rank), in the order of flat weights.

        `Phi` are features without gates, (n_samples, size), and `gates` (n_samples, n_kernels,
        rank).
        """
        out = np.empty((*Phi.shape, gates.shape[2]), dtype=Phi.dtype)
        for i, span in enumerate(self.spans):
            for r in range(gates.shape[2]):
                out[:, span, r] = Phi[:, span] * gates[:, i, r, np.newaxis]
        return out.reshape(len(Phi), Phi.shape[1] * gates.shape[2])

    def _tiles(self, ungated: Points, rows: Array) -> Iterator[tuple[slice, Array]]:
        """Yield columns of samples, some rows at a time, in an array that is reused."""
        step = self._tile_rows
        buffer = np.empty((min(step, len(rows)), self.size), dtype=self.plan.dtype)
        for part in slices(len(rows), step):
            tile = buffer[: part.stop - part.start]
            self.columns(ungated, rows[part], tile)
            yield part, tile

    def __getstate__(self) -> dict[str, Any]:
        # Cached properties are computed again when needed.
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, eq=False)
class LandmarkMap(FeatureMap):
    """``phi_i(x) = L_i^-1 k_i(M_i, x)`` with landmarks ``M_i``, a subset of all chosen ones.

    Attributes
    ----------
    points : Points
        The landmarks, without gates.
    chosen : array of int of shape (n_landmarks,)
        Their indices among the training samples.
    positions : tuple of arrays of int
        Landmarks that each kernel uses; the others are explained by them.
    factors : tuple of arrays
        Lower triangular matrices ``L_i`` of each kernel.
    """

    points: Points
    chosen: Array
    positions: tuple[Array, ...]
    factors: tuple[Array, ...]

    @classmethod
    def make(cls, points: Points, chosen: Array, precision: Any) -> "LandmarkMap":
        """Factor every kernel among landmarks, which are in float64.

        `precision` is the dtype in which columns of other samples will be computed.
        """
        m, least = points.plan.n_kernels, _LEAST_PIVOT[np.dtype(precision).itemsize]
        positions, factors = [], []
        for i, K in enumerate(_matrices(points)):
            used, factor = _factor(K, least, points.plan.kernels[i].label)
            positions.append(used)
            factors.append(factor)
        if m == 1:
            # In the order of the factor: columns then need not be reordered.
            points, chosen = points.take(positions[0]), chosen[positions[0]]
            positions = [np.arange(points.n_samples)]
        return cls(points.plan, np.zeros(m), points, chosen, tuple(positions), tuple(factors))

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(map(len, self.factors))

    def cast(self, plan: GramPlan) -> "LandmarkMap":
        if plan.dtype == self.plan.dtype:
            return self
        layouts = tuple(layout.astype(plan.dtype) for layout in self.points.layouts)
        return replace(self, plan=plan, points=replace(self.points, plan=plan, layouts=layouts))

    def columns(self, points: Points, rows: Array, out: Array) -> None:
        if len(self.positions) == 1:
            mixing.fill(points, rows, self.points, out, np.arange(len(rows)))
            return
        values = mixing.values_by_kernel(points, rows, self.points)
        for i, span in enumerate(self.spans):
            np.take(values[:, i], self.positions[i], axis=1, out=out[:, span], mode="clip")

    def loads(self, weights: Array) -> Array:
        return self._solve(weights, transposed=True)

    def gathered(self, sums: Array) -> Array:
        return self._solve(sums, transposed=False)

    def _solve(self, values: Array, transposed: bool) -> Array:
        """Return ``L_i^-1`` (or ``L_i^-T``) times the values of each kernel, (size, ...)."""
        flat = values.reshape(len(values), int(np.prod(values.shape[1:]))).astype(np.float64)
        out = np.empty_like(flat)
        for span, factor in zip(self.spans, self.factors, strict=True):
            out[span] = solve_triangular(
                factor, flat[span], lower=True, trans="T" if transposed else "N", check_finite=False
            )
        return out.reshape(values.shape)

    def whiten(self, columns: Array) -> None:
        for span, blocks in zip(self.spans, self._inverses, strict=True):
            run_chunked(_substitute, len(columns), _SOLVED_ROWS, columns[:, span], blocks)

    @cached_property
    def _inverses(self) -> list[list[tuple[slice, Array, Array]]]:
        """Blocks of each factor: positions, transposed entries before them, transposed inverse."""
        inverses = []
        for factor in self.factors:
            blocks = []
            for span in slices(len(factor), _SOLVED_COLUMNS):
                square = factor[span, span]
                inverse = solve_triangular(square, np.eye(len(square)), lower=True)
                before = np.ascontiguousarray(factor[span, : span.start].T, self.plan.dtype)
                blocks.append((span, before, np.ascontiguousarray(inverse.T, self.plan.dtype)))
            inverses.append(blocks)
        return inverses


def _substitute(start: int, stop: int, columns: Array, blocks: Any) -> None:
    """Multiply rows by ``L^-T``, block by block: matrix products, as accurate as substitution."""
    rows = columns[start:stop]
    for span, before, inverse in blocks:
        rest = rows[:, span] - rows[:, : span.start] @ before
        rows[:, span] = rest @ inverse


@dataclass(frozen=True, eq=False)
class FourierMap(FeatureMap):
    """Waves of random directions, whose products are Gaussian kernels in expectation.

    ``phi(x) = (cos <w_q, x>, sin <w_q, x>) / sqrt(Q)`` with ``w_q`` drawn from the normal
    distribution of variance ``2 gamma``; directions of a block are orthogonal.

    Attributes
    ----------
    frequencies : tuple of arrays of shape (n_columns, n_features / 2)
    """

    frequencies: tuple[Array, ...]

    @classmethod
    def make(cls, plan: GramPlan, rank: int, points: Points, rng: np.random.RandomState) -> Any:
        """Draw waves for Gaussian kernels."""
        frequencies = []
        for i, kernel in enumerate(plan.kernels):
            term = kernel.term()
            if term is None or not term.is_rbf:
                raise ValueError(
                    f"features='fourier' are for RBF kernels, got {kernel.label!r}; use "
                    "features='landmarks', which are for all kernels"
                )
            width = points.layouts[_family_of(plan, i)].X.shape[1]
            waves = _orthogonal(width, (rank + 1) // 2, rng)
            frequencies.append(np.sqrt(2.0 * term.formula.gamma) * waves)
        return cls(plan, np.zeros(plan.n_kernels), tuple(frequencies))

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(2 * waves.shape[1] for waves in self.frequencies)

    def cast(self, plan: GramPlan) -> "FourierMap":
        frequencies = tuple(waves.astype(plan.dtype) for waves in self.frequencies)
        return replace(self, plan=plan, frequencies=frequencies)

    def columns(self, points: Points, rows: Array, out: Array) -> None:
        for i, span in enumerate(self.spans):
            X, waves = points.layouts[_family_of(self.plan, i)].X, self.frequencies[i]
            angles = multiply(X[rows], waves)
            values, half = out[:, span], waves.shape[1]
            values[:, :half], values[:, half:] = np.cos(angles), np.sin(angles)
            values *= (points.normalizers[rows, i, np.newaxis] / np.sqrt(half)).astype(out.dtype)


def _family_of(plan: GramPlan, kernel: int) -> int:
    """Return the index of the family of a kernel."""
    return next(k for k, family in enumerate(plan.families) if kernel in family.terms)


def _orthogonal(width: int, count: int, rng: np.random.RandomState) -> Array:
    """Return normal vectors, (width, count), orthogonal within blocks: less error per vector."""
    blocks = []
    for part in slices(count, width):
        size = part.stop - part.start
        directions, _ = np.linalg.qr(rng.normal(size=(width, size)))
        blocks.append(directions * np.sqrt(rng.chisquare(width, size=size)))
    return np.hstack(blocks)


def _matrices(points: Points) -> Iterator[Array]:
    """Yield the matrix of every kernel among landmarks."""
    m = points.plan.n_kernels
    for i in range(m):
        gates = np.zeros((points.n_samples, m, 1))
        gates[:, i] = 1.0
        single = points.regated(gates)
        K = mixing.block(single, single)
        yield 0.5 * (K + K.T)


def _factor(K: Array, least: float, label: str) -> tuple[Array, Array]:
    """Return a pivoted Cholesky factor, and the rows it uses; small pivots are left out.

    Parameters
    ----------
    K : array of shape (n, n)
    least : float
        Smallest pivot, relative to the largest entry.
    label : str
        Name of the kernel in warnings.

    Returns
    -------
    rows : array of int of shape (rank,)
    factor : array of shape (rank, rank)
        Lower triangular.
    """
    scale = float(np.abs(K.diagonal()).max(initial=0.0))
    if scale == 0.0:
        return np.empty(0, dtype=np.intp), np.empty((0, 0))
    # In the given order, unless a pivot is too small.
    factor, failure = lapack.dpotrf(K, lower=1, clean=1)
    if not failure and (factor.diagonal() ** 2).min() > least * scale:
        return np.arange(len(K)), np.ascontiguousarray(factor)
    # LAPACK writes into the array: it gets a copy in its own order.
    packed, pivots, rank, _ = lapack.dpstrf(K.T.copy(order="F"), lower=1, tol=least * scale)
    order = pivots - 1
    columns = np.tril(packed)[:, :rank]
    some = np.linspace(0, len(K) - 1, min(len(K), _CHECKED_ROWS)).astype(np.intp)
    error = np.abs(columns[some] @ columns.T - K[np.ix_(order[some], order)]).max()
    if error > max(_INDEFINITE, 10.0 * least) * scale:
        warn_once(
            f"indefinite {label}",
            f"the kernel {label!r} is not positive semidefinite: no features have its values, and "
            "the low-rank SVM uses the part of it that landmarks explain",
        )
    return order[:rank].astype(np.intp), np.ascontiguousarray(columns[:rank])


def choose_landmarks(points: Points, most: int, rng: np.random.RandomState) -> tuple[Array, Array]:
    """Choose at most `most` samples by blocked randomly pivoted Cholesky.

    Parameters
    ----------
    points : Points
        Samples under the kernels and gates of the matrix.
    most : int
    rng : RandomState

    Returns
    -------
    rows : array of int of shape (n_landmarks,)
        In the order in which they were drawn.
    factor : array of shape (n_samples, n_landmarks)
        ``F`` with ``K`` close to ``F F'``.
    """
    n, dtype = points.n_samples, points.plan.dtype
    diag = np.maximum(mixing.diag(points), 0.0)
    trace, nothing = float(diag.sum()), _NOTHING[dtype.itemsize]
    all_rows, left = np.arange(n), diag.copy()
    # Columns of the factor are filled block by block.
    factor = np.empty((n, min(most, n)), dtype=dtype)
    rows: list[int] = []
    size = int(np.clip(_SHARE * most, _FEWEST, _MOST))
    idle = 0
    while len(rows) < factor.shape[1] and left.sum() > nothing * trace and idle < _PATIENCE:
        proposed = rng.choice(n, size=size, p=left / left.sum())
        part = points.take(proposed)
        explained = factor[proposed, : len(rows)].astype(np.float64)
        block = mixing.block(part, part) - explained @ explained.T
        chosen = _accepted(block, left[proposed], rng)[: factor.shape[1] - len(rows)]
        idle = 0 if len(chosen) else idle + 1
        if not len(chosen):
            continue
        new = proposed[chosen]
        columns = np.empty((n, len(new)), dtype=dtype)
        mixing.fill(points, all_rows, points.take(new), columns, all_rows)
        columns -= multiply(factor[:, : len(rows)], factor[new, : len(rows)].T)
        small, failure = lapack.dpotrf(block[np.ix_(chosen, chosen)], lower=1, clean=1)
        if failure:
            # The residual of these samples is rounding.
            left[new] = 0.0
            continue
        inverse = solve_triangular(small, np.eye(len(new)), lower=True)
        columns = multiply(columns, inverse.T.astype(dtype))
        factor[:, len(rows) : len(rows) + len(new)] = columns
        rows += new.tolist()
        left -= np.einsum("ij,ij->i", columns, columns, dtype=np.float64)
        np.maximum(left, 0.0, out=left)
        left[new] = 0.0
    return np.array(rows, dtype=np.intp), factor[:, : len(rows)]


def _accepted(block: Array, density: Array, rng: np.random.RandomState) -> Array:
    """Return the positions of accepted proposals, each tested against the accepted ones before it.

    Parameters
    ----------
    block : array of shape (n_proposed, n_proposed)
        Residual of the matrix among the proposals.
    density : array of shape (n_proposed,)
        Residual of the diagonal, to which the proposals were drawn in proportion.
    rng : RandomState
    """
    left, accepted = block.astype(np.float64), []
    threshold = rng.uniform(size=len(density)) * density
    for k in range(len(density)):
        pivot = left[k, k]
        if pivot <= threshold[k] or pivot <= _LEAST_SHARE * density[k]:
            continue
        accepted.append(k)
        row = left[k, k:] / np.sqrt(pivot)
        left[k:, k:] -= np.outer(row, row)
    return np.array(accepted, dtype=np.intp)
