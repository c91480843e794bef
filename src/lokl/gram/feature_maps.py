"""Explicit features of kernels: ``k_i(x, z)`` is nearly ``<phi_i(x), phi_i(z)>``.

What is computed of samples are *columns*: kernel values with landmarks, or waves. Features are
columns times a small triangular matrix, ``phi(x) = L^-1 k(M, x)`` with ``K(M, M) = L L'``. A
function ``<w, phi(x)>`` needs the columns only: it is ``<L^-T w, k(M, x)>``. So learning may store
features, which are well conditioned, or compute columns anew, which is far cheaper than features;
and new samples are asked for their columns alone.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import lapack, solve_triangular

from lokl._arrays import Array
from lokl._threads import multiply, run_chunked
from lokl._warnings import warn_once
from lokl.gram import mixing
from lokl.gram.mixing import sum_kernels_apart
from lokl.gram.plan import GramPlan, Points

# Pivots of a kernel's own factor, relative to its largest entry, below which features would be
# rounding: their columns are known to so many digits only. By the bytes of a number.
_LEAST_PIVOT = {4: 1e-6, 8: 1e-11}
# Part of the largest entry that factor and matrix differ by only if the kernel is not definite.
_INDEFINITE = 1e-3
# Rows in which that is looked for.
_LOOKED_AT = 200
# Numbers of one tile of columns, and its rows.
_TILE, _FEWEST_ROWS, _MOST_ROWS = 2**20, 32, 1024
# Columns of a triangular matrix that are solved for at once; rows worth a thread of their own.
_SOLVED, _FEW_ROWS = 128, 32

# Is shown rows of all samples, their columns, and sums to add to.
Visit = Callable[[slice, Array, Array], None]


@dataclass(frozen=True, eq=False)
class FeatureMap(ABC):
    """Columns and features of all kernels of a plan, those of one kernel beside the other's.

    Attributes
    ----------
    plan : GramPlan
        Kernels, and the precision in which columns are computed.
    residual : array of shape (n_kernels,)
        How far the features miss each kernel, relative.
    """

    plan: GramPlan
    residual: Array

    @property
    @abstractmethod
    def sizes(self) -> tuple[int, ...]:
        """Number of features of each kernel."""

    @abstractmethod
    def columns(self, points: Points, rows: Array, out: Array) -> None:
        """Write the columns of some samples, which trust every kernel fully."""

    @abstractmethod
    def cast(self, plan: GramPlan) -> "FeatureMap":
        """Return the same map for samples in the precision of another plan of its kernels."""

    @abstractmethod
    def loads(self, weights: Array) -> Array:
        """What columns are multiplied by where features are by weights, (size, ...)."""

    @abstractmethod
    def gathered(self, sums: Array) -> Array:
        """Sums over features where they were taken over columns: the transposed of `loads`."""

    @abstractmethod
    def whiten(self, columns: Array) -> None:
        """Turn columns into features, in place."""

    @property
    def landmarks(self) -> Array:
        """Numbers of the landmarks among the samples that they were chosen from."""
        return np.empty(0, dtype=np.intp)

    @property
    def size(self) -> int:
        return sum(self.sizes)

    @cached_property
    def starts(self) -> Array:
        """Where the features of each kernel begin, and where those of the last end."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.intp)

    @property
    def spans(self) -> list[slice]:
        """Places of each kernel's features."""
        return [slice(*pair) for pair in zip(self.starts, self.starts[1:], strict=False)]

    @property
    def _tile_rows(self) -> int:
        return int(np.clip(_TILE // max(self.size, 1), _FEWEST_ROWS, _MOST_ROWS))

    def tiles(self, points: Points, rows: Array) -> Iterator[tuple[slice, Array]]:
        """Columns of samples, some rows at a time, in an array that the next step overwrites."""
        return self._tiles(self._trusting(points), rows)

    def sweep(self, points: Points, visit: Visit, sums: Array) -> Array:
        """Show the columns of all samples, some rows at a time; return what visitors add to `sums`.

        Threads share the samples out, and each has sums of its own.
        """
        trusting, found = self._trusting(points), dict[int, Array]()

        def some(start: int, stop: int) -> None:
            own = np.zeros_like(sums)
            for part, tile in self._tiles(trusting, np.arange(start, stop)):
                visit(slice(start + part.start, start + part.stop), tile, own)
            found[start] = own

        run_chunked(some, points.n_samples, self._tile_rows, serial_tasks=True)
        for start in sorted(found):
            sums += found[start]
        return sums

    def sums(self, points: Points, loads: Array) -> Array:
        """``<columns_i(x), loads_i>`` at all samples, (n_samples, n_kernels, *loads.shape[1:])."""
        out = np.zeros((points.n_samples, self.plan.n_kernels, *loads.shape[1:]))

        def visit(part: slice, tile: Array, _: Array) -> None:
            out[part] = sum_kernels_apart(tile, self.starts, loads)

        self.sweep(points, visit, np.empty(0))
        return out

    def _trusting(self, points: Points) -> Points:
        return points.regated(np.ones((points.n_samples, self.plan.n_kernels)))

    def _tiles(self, trusting: Points, rows: Array) -> Iterator[tuple[slice, Array]]:
        step = self._tile_rows
        buffer = np.empty((min(step, len(rows)), self.size), dtype=self.plan.dtype)
        for begin in range(0, len(rows), step):
            part = slice(begin, min(begin + step, len(rows)))
            tile = buffer[: part.stop - part.start]
            self.columns(trusting, rows[part], tile)
            yield part, tile

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "starts"}


@dataclass(frozen=True, eq=False)
class LandmarkMap(FeatureMap):
    """``phi_i(x) = L_i^-1 k_i(M_i, x)`` with landmarks ``M_i`` of all that were chosen.

    Attributes
    ----------
    points : Points
        The landmarks, under full trust.
    chosen : array of shape (n_landmarks,)
        Their numbers among the samples that they were chosen from.
    places : tuple of arrays
        Which of the landmarks each kernel uses: those that the others do not explain.
    factors : tuple of arrays
        Lower triangular matrices ``L_i`` of each kernel.
    """

    points: Points
    chosen: Array
    places: tuple[Array, ...]
    factors: tuple[Array, ...]

    @classmethod
    def make(cls, points: Points, chosen: Array, precision: Any) -> "LandmarkMap":
        """Factor every kernel among landmarks, which are in float64.

        `precision` is the dtype in which columns of other samples will be computed.
        """
        m, least = points.plan.n_kernels, _LEAST_PIVOT[np.dtype(precision).itemsize]
        places, factors = [], []
        for i, K in enumerate(_matrices(points)):
            own, factor = _factor(K, least, points.plan.kernels[i].label)
            places.append(own)
            factors.append(factor)
        if m == 1:
            # In the order of the factor: columns then need not be put in order.
            points, chosen = points.take(places[0]), chosen[places[0]]
            places = [np.arange(points.n_samples)]
        return cls(points.plan, np.zeros(m), points, chosen, tuple(places), tuple(factors))

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(map(len, self.factors))

    @property
    def landmarks(self) -> Array:
        return self.chosen

    def cast(self, plan: GramPlan) -> "LandmarkMap":
        if plan.dtype == self.plan.dtype:
            return self
        layouts = tuple(type(own)(own.X.astype(plan.dtype)) for own in self.points.layouts)
        return replace(self, plan=plan, points=replace(self.points, plan=plan, layouts=layouts))

    def columns(self, points: Points, rows: Array, out: Array) -> None:
        if len(self.places) == 1:
            mixing.fill(points, rows, self.points, out, np.arange(len(rows)))
            return
        values = mixing.apart(points, rows, self.points)
        for i, span in enumerate(self.spans):
            np.take(values[:, i], self.places[i], axis=1, out=out[:, span], mode="clip")

    def loads(self, weights: Array) -> Array:
        return self._solved(weights, transposed=True)

    def gathered(self, sums: Array) -> Array:
        return self._solved(sums, transposed=False)

    def _solved(self, values: Array, transposed: bool) -> Array:
        flat = values.reshape(len(values), int(np.prod(values.shape[1:]))).astype(np.float64)
        out = np.empty_like(flat)
        for span, factor in zip(self.spans, self.factors, strict=True):
            out[span] = solve_triangular(
                factor, flat[span], lower=True, trans="T" if transposed else "N", check_finite=False
            )
        return out.reshape(values.shape)

    def whiten(self, columns: Array) -> None:
        for span, solve in zip(self.spans, self._substitutions, strict=True):
            own = columns[:, span]
            run_chunked(solve, len(own), _FEW_ROWS, own)

    @cached_property
    def _substitutions(self) -> list["_Substitution"]:
        return [_Substitution.of(factor, self.plan.dtype) for factor in self.factors]

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_substitutions"}


@dataclass(frozen=True, eq=False)
class _Substitution:
    """Rows times ``L^-T`` block by block: matrix products, and as accurate as substitution."""

    blocks: list[tuple[slice, Array, Array]]  # places, entries before them, inverted entries

    @classmethod
    def of(cls, factor: Array, dtype: Any) -> "_Substitution":
        blocks = []
        for begin in range(0, len(factor), _SOLVED):
            own = slice(begin, min(begin + _SOLVED, len(factor)))
            square = factor[own, own]
            inverse = solve_triangular(square, np.eye(len(square)), lower=True)
            before = np.ascontiguousarray(factor[own, :begin].T, dtype=dtype)
            blocks.append((own, before, np.ascontiguousarray(inverse.T, dtype=dtype)))
        return cls(blocks)

    def __call__(self, start: int, stop: int, columns: Array) -> None:
        rows = columns[start:stop]
        for own, before, inverse in self.blocks:
            rest = rows[:, own] - rows[:, : own.start] @ before
            rows[:, own] = rest @ inverse


@dataclass(frozen=True, eq=False)
class FourierMap(FeatureMap):
    """Waves of random directions, whose products are Gaussian kernels in the mean.

    ``phi(x) = (cos <w_q, x>, sin <w_q, x>) / sqrt(Q)`` with ``w_q`` drawn from the normal
    distribution of variance ``2 gamma``, directions of a block at right angles to each other.

    Attributes
    ----------
    frequencies : tuple of arrays of shape (n_columns, n_features / 2)
    """

    frequencies: tuple[Array, ...]

    @classmethod
    def make(cls, plan: GramPlan, rank: int, points: Points, rng: np.random.RandomState) -> Any:
        """Draw waves for Gaussian kernels."""
        drawn = []
        for i, kernel in enumerate(plan.kernels):
            term = kernel.term()
            if term is None or term.formula.operation != "gaussian":
                raise ValueError(
                    f"features='fourier' are for RBF kernels, got {kernel.label!r}; use "
                    "features='landmarks', which are for all kernels"
                )
            width = points.layouts[_family_of(plan, i)].X.shape[1]
            waves = _orthogonal(width, (rank + 1) // 2, rng)
            drawn.append(np.sqrt(2.0 * term.formula.gamma) * waves)
        return cls(plan, np.zeros(plan.n_kernels), tuple(drawn))

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(2 * own.shape[1] for own in self.frequencies)

    def cast(self, plan: GramPlan) -> "FourierMap":
        own = tuple(waves.astype(plan.dtype) for waves in self.frequencies)
        return replace(self, plan=plan, frequencies=own)

    def columns(self, points: Points, rows: Array, out: Array) -> None:
        for i, span in enumerate(self.spans):
            X, waves = points.layouts[_family_of(self.plan, i)].X, self.frequencies[i]
            angles = multiply(X[rows], waves)
            own, half = out[:, span], waves.shape[1]
            own[:, :half], own[:, half:] = np.cos(angles), np.sin(angles)
            own *= (points.normalizers[rows, i, np.newaxis] / np.sqrt(half)).astype(out.dtype)

    def loads(self, weights: Array) -> Array:
        return weights

    def gathered(self, sums: Array) -> Array:
        return sums

    def whiten(self, columns: Array) -> None:
        pass


def _family_of(plan: GramPlan, kernel: int) -> int:
    return next(k for k, family in enumerate(plan.families) if kernel in family.terms)


def _orthogonal(width: int, count: int, rng: np.random.RandomState) -> Array:
    """Normal vectors of which those of a block are at right angles: less error at equal number."""
    blocks = []
    for begin in range(0, count, width):
        size = min(width, count - begin)
        directions, _ = np.linalg.qr(rng.normal(size=(width, size)))
        blocks.append(directions * np.sqrt(rng.chisquare(width, size=size)))
    return np.hstack(blocks)


def _matrices(points: Points) -> Iterator[Array]:
    """Every kernel among landmarks by itself."""
    m = points.plan.n_kernels
    for i in range(m):
        alone = np.zeros((points.n_samples, m, 1))
        alone[:, i] = 1.0
        own = points.regated(alone)
        K = mixing.block(own, own)
        yield 0.5 * (K + K.T)


def _factor(K: Array, least: float, label: str) -> tuple[Array, Array]:
    """Pivoted Cholesky factor, up to pivots that are rounding; also which rows it is of."""
    scale = float(np.abs(K.diagonal()).max(initial=0.0))
    if scale == 0.0:
        return np.empty(0, dtype=np.intp), np.empty((0, 0))
    # As they were chosen, where no pivot is too small.
    factor, failure = lapack.dpotrf(K, lower=1, clean=1)
    if not failure and (factor.diagonal() ** 2).min() > least * scale:
        return np.arange(len(K)), np.ascontiguousarray(factor)
    # LAPACK writes into the array: it is given a copy in its own order.
    packed, pivots, rank, _ = lapack.dpstrf(K.T.copy(order="F"), lower=1, tol=least * scale)
    order = pivots - 1
    columns = np.tril(packed)[:, :rank]
    some = np.linspace(0, len(K) - 1, min(len(K), _LOOKED_AT)).astype(np.intp)
    missed = np.abs(columns[some] @ columns.T - K[np.ix_(order[some], order)]).max()
    if missed > max(_INDEFINITE, 10.0 * least) * scale:
        warn_once(
            f"indefinite {label}",
            f"the kernel {label!r} is not positive semidefinite: no features have its values, and "
            "the low-rank machine is that of the part that landmarks explain",
        )
    return order[:rank].astype(np.intp), np.ascontiguousarray(columns[:rank])
