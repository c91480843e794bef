"""A list of kernels as one plan: which inner products are shared, and what is done with them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lokl._lazy import CompiledModule
from lokl._threads import in_parallel
from lokl.gram.features import TILE, Features, Layout, choose_layout
from lokl.kernels.base import GAUSSIAN, LINEAR, SQUARE, Kernel, Term
from lokl.kernels.columns import take_columns

_tiles = CompiledModule("lokl.gram._tiles")

Array = NDArray[Any]

# Inner products pass through a buffer of this many entries, small enough for the shared cache.
_BUFFER = 2**21
# Limits of float32: relative error of a kernel value near 1, and of large inner products.
_LARGEST_EXPONENT = 1e3
_LARGEST_VALUE = 1e4


@dataclass(frozen=True, eq=False)
class Group:
    """Kernels of one view: they share every inner product."""

    columns: tuple[int, ...] | None
    members: tuple[int, ...]
    terms: tuple[Term, ...]
    layout: Layout
    offset: Array | None

    def program(self, weights: Array, dtype: Any) -> tuple[Array, ...]:
        """Return operations and numbers for the compiled pass, in the order of `members`."""
        formulas = [term.formula for term in self.terms]
        operations = np.array([f.operation for f in formulas], dtype=np.int64)
        for k in range(1, len(formulas)):
            before, this = formulas[k - 1], formulas[k]
            if (
                this.operation == before.operation == GAUSSIAN
                and abs(this.gamma - 2.0 * before.gamma) <= 1e-12 * this.gamma
            ):
                operations[k] = SQUARE
        return (
            operations,
            np.array([f.gamma for f in formulas], dtype=dtype),
            np.array([f.coef0 for f in formulas], dtype=dtype),
            np.array([f.degree for f in formulas], dtype=np.int64),
            weights[list(self.members)].astype(dtype),
        )


@dataclass(eq=False)
class Points:
    """Samples made ready for a mixture: features of each view, and gates."""

    X: Any
    features: tuple[Features, ...]
    gates: Array  # (n_samples, n_kernels, rank)
    scales: Array  # (n_samples, n_kernels): normalisation of each kernel
    dtype: Any

    @property
    def n_samples(self) -> int:
        return int(self.gates.shape[0])

    @cached_property
    def factors(self) -> Array:
        """Gate times normalisation, (n_kernels, rank, n_samples)."""
        gated = self.gates * self.scales[:, :, np.newaxis]
        return np.ascontiguousarray(gated.transpose(1, 2, 0), dtype=self.dtype)

    @cached_property
    def weights(self) -> Array | None:
        """One factor for each kernel where it is the same for all samples, else None."""
        if self.gates.shape[2] != 1 or self.n_samples == 0:
            return None
        gated = self.gates[:, :, 0] * self.scales
        return gated[0] if (gated == gated[0]).all() else None

    def take(self, index: Array) -> "Points":
        """Return some of the samples."""
        return Points(
            self.X[index],
            tuple(f.take(index) for f in self.features),
            self.gates[index],
            self.scales[index],
            self.dtype,
        )

    def regated(self, gates: Array) -> "Points":
        """Return the same samples under other gates; features are shared."""
        return Points(self.X, self.features, as_rank(gates), self.scales, self.dtype)


class Mixture:
    """Bound kernels, grouped by view, with the layout that suits the training samples.

    Parameters
    ----------
    kernels : sequence of Kernel
        Bound: without data-dependent settings.
    X : {array, CSR matrix} of shape (n_samples, n_features)
        Training samples; they decide layouts and, with "auto", the dtype.
    dtype : {"auto", "float32", "float64"}
        "auto" is float32 unless large values would lose digits in it.
    pair_normalized : bool
        Divide by ``sum_i g_i(x) g_i(z)``, so that the trust of every pair sums to one.
    """

    def __init__(
        self,
        kernels: Sequence[Kernel],
        X: Any,
        dtype: Any = "auto",
        pair_normalized: bool = False,
    ):
        self.kernels = list(kernels)
        self.pair_normalized = pair_normalized
        terms = [kernel.term() for kernel in self.kernels]
        self.others = [i for i, term in enumerate(terms) if term is None]
        views: dict[tuple[int, ...] | None, list[tuple[int, Term]]] = {}
        for i, term in enumerate(terms):
            if term is not None:
                views.setdefault(term.columns, []).append((i, term))
        seen = {columns: _see(X, columns) for columns in views}
        self.dtype = np.dtype(np.float32 if dtype == "auto" else dtype)
        self.groups = [self._group(c, members, seen[c]) for c, members in views.items()]
        if dtype == "auto" and not all(_fits_single(g, seen[g.columns]) for g in self.groups):
            self.dtype = np.dtype(np.float64)

    def _group(
        self, columns: tuple[int, ...] | None, members: list[tuple[int, Term]], X: Any
    ) -> Group:
        members = sorted(members, key=lambda member: (member[1].formula.operation,
                                                      member[1].formula.gamma))
        terms = tuple(term for _, term in members)
        layout = choose_layout(X, self.dtype)
        offset = None
        movable = all(t.formula.operation == GAUSSIAN and t.factor is None for t in terms)
        if movable and isinstance(X, np.ndarray) and np.count_nonzero(X) > 0.5 * X.size:
            # Distances do not change when all samples move, but lose fewer digits near zero.
            offset = X.mean(axis=0, dtype=np.float64)
        return Group(columns, tuple(i for i, _ in members), terms, layout, offset)

    @property
    def n_kernels(self) -> int:
        return len(self.kernels)

    @property
    def is_linear(self) -> bool:
        """Whether the Gram matrix is one of explicit features as few as the inputs."""
        return (
            not self.others
            and not self.pair_normalized
            and all(t.formula.operation == LINEAR for g in self.groups for t in g.terms)
        )

    def points(self, X: Any, gates: Array) -> Points:
        """Prepare samples under gate values of shape (n, n_kernels) or (n, n_kernels, rank)."""
        features, scales = [], np.ones((X.shape[0], self.n_kernels))
        for group in self.groups:
            seen = _see(X, group.columns)
            for i, term in zip(group.members, group.terms, strict=True):
                if term.factor is not None:
                    scales[:, i] = term.factor(seen)
            features.append(Features.make(seen, group.layout, self.dtype, group.offset))
        return Points(X, tuple(features), as_rank(gates), scales, self.dtype)

    def fill(
        self, left: Points, rows: Array, right: Points, out: Array, out_rows: Array,
        inner: Any = None,
    ) -> None:
        """Write ``k(left[rows], right)`` into the rows `out_rows` of `out`.

        `inner` may hand over stored inner products: ``inner(group_number, rows)`` gives an array
        (len(rows), n) or None.
        """
        sides = self._sides(left, right)
        written = False
        for k, group in enumerate(self.groups):
            program = group.program(sides[0], self.dtype)
            members = list(group.members)
            near = (left.features[k].norms, sides[1][members])
            far = (right.features[k].norms, sides[2][members])
            if inner is None and group.layout == "panels":
                lists, panels = left.features[k].lists, right.features[k].panels

                def mix(s: int, e: int, written: bool = written) -> None:
                    _tiles.mix_sparse(
                        program, lists, panels, near, rows, far, s, e, out, out_rows, written
                    )

                in_parallel(mix, right.n_samples, TILE)
            else:
                self._fill_from_dots(
                    k, program, left, rows, right, near, far, out, out_rows, written, inner
                )
            written = True
        if not written:
            out[out_rows] = 0.0
        self._add_others(left, rows, right, out, out_rows)
        if self.pair_normalized:
            for part in _chunks(len(rows), right.n_samples):
                out[out_rows[part]] /= _pair_sums(left.gates[rows[part]], right.gates)

    def _fill_from_dots(
        self, k: int, program: Any, left: Points, rows: Array, right: Points,
        near: Any, far: Any, out: Array, out_rows: Array, written: bool, inner: Any,
    ) -> None:
        n = right.n_samples
        for part in _chunks(len(rows), n):
            chosen = rows[part]
            dots = None if inner is None else inner(k, chosen)
            if dots is None:
                dots = np.empty((len(chosen), n), dtype=self.dtype)
                left.features[k].dots(chosen, right.features[k], dots)
            targets = out_rows[part]

            def mix(s: int, e: int, dots: Array = dots, chosen: Array = chosen,
                    targets: Array = targets) -> None:
                _tiles.mix_dense(
                    program, dots, near, chosen, far, s, e, out, targets, written
                )

            in_parallel(mix, n, TILE)

    def _add_others(
        self, left: Points, rows: Array, right: Points, out: Array, out_rows: Array
    ) -> None:
        for i in self.others:
            for part in _chunks(len(rows), right.n_samples):
                chosen = rows[part]
                values = self.kernels[i](left.X[chosen], right.X)
                gates = _pair_gates(left.gates[chosen, i], right.gates[:, i])
                out[out_rows[part]] += (gates * values).astype(self.dtype, copy=False)

    def _sides(self, left: Points, right: Points) -> tuple[Array, Array, Array]:
        """Constant weights, or factors of both sides; the other is empty."""
        if left.weights is not None and right.weights is not None:
            none = np.empty((self.n_kernels, 0, 0), dtype=self.dtype)
            return left.weights * right.weights, none, none
        return np.zeros(self.n_kernels), left.factors, right.factors

    def block(self, left: Points, right: Points) -> Array:
        """Return ``k(left, right)`` as an array."""
        out = np.empty((left.n_samples, right.n_samples), dtype=self.dtype)
        rows = np.arange(left.n_samples)
        self.fill(left, rows, right, out, rows)
        return out

    def diag(self, points: Points) -> Array:
        """``k(x, x)`` of every sample, in float64."""
        values = np.empty((points.n_samples, self.n_kernels))
        for group, features in zip(self.groups, points.features, strict=True):
            norms = features.norms.astype(np.float64)
            for i, term in zip(group.members, group.terms, strict=True):
                values[:, i] = term.formula(norms, norms, norms)
        values *= points.scales**2
        for i in self.others:
            values[:, i] = self.kernels[i].diag(points.X)
        gates = (points.gates**2).sum(axis=2)
        if self.pair_normalized:
            gates = gates / gates.sum(axis=1, keepdims=True)
        return np.asarray((gates * values).sum(axis=1))

    def product(self, left: Points, right: Points, coef: Array) -> Array:
        """``k(left, right) @ coef`` in blocks of rows; `coef` is (n_right, n_columns)."""
        result = np.zeros((left.n_samples, coef.shape[1]))
        if right.n_samples == 0:
            return result
        weights = np.ascontiguousarray(coef, dtype=self.dtype)
        buffer = None
        for part in _chunks(left.n_samples, right.n_samples):
            rows = np.arange(part.start, part.stop)
            if buffer is None:
                buffer = np.empty((len(rows), right.n_samples), dtype=self.dtype)
            self.fill(left, rows, right, buffer, np.arange(len(rows)))
            result[part] = buffer[: len(rows)] @ weights
        return result

    def kernel_sums(self, left: Points, right: Points, coef: Array) -> Array:
        """Sums over the right samples, apart for each kernel.

        Returns ``R[p, i, r, t] = sum_j k_i(p, j) h_ir(j) coef[j, t]``, normalisation included on
        both sides and, with pair-normalised mixing, the pair's divisor. Everything that is asked
        of single kernels (contributions, gate gradients) is a sum of these.
        """
        n, rank, tasks = right.n_samples, right.gates.shape[2], coef.shape[1]
        result = np.zeros((left.n_samples, self.n_kernels, rank * tasks))
        gated = (right.gates * right.scales[:, :, np.newaxis])[:, :, :, np.newaxis]
        loads = (gated * coef[:, np.newaxis, np.newaxis, :]).reshape(n, self.n_kernels, -1)
        loads = np.ascontiguousarray(loads.transpose(1, 2, 0), dtype=self.dtype)
        for part in _chunks(left.n_samples, n) if n else []:
            rows = np.arange(part.start, part.stop)
            damping = np.empty((0, 0), dtype=self.dtype)
            if self.pair_normalized:
                sums = _pair_sums(left.gates[part], right.gates)
                damping = np.ascontiguousarray(1.0 / sums, dtype=self.dtype)
            for k, group in enumerate(self.groups):
                sums = self._group_sums(k, group, left, rows, right, damping, loads)
                result[part][:, list(group.members)] = sums
            for i in self.others:
                values = self.kernels[i](left.X[part], right.X)
                result[part][:, i] = (values * damping if damping.size else values) @ loads[i].T
        result *= left.scales[:, :, np.newaxis]
        return result.reshape(left.n_samples, self.n_kernels, rank, tasks)

    def _group_sums(
        self, k: int, group: Group, left: Points, rows: Array, right: Points,
        damping: Array, loads: Array,
    ) -> Array:
        dots = np.empty((len(rows), right.n_samples), dtype=self.dtype)
        left.features[k].dots(rows, right.features[k], dots)
        program = group.program(np.zeros(self.n_kernels), self.dtype)
        near, far = left.features[k].norms[rows], right.features[k].norms
        own = np.ascontiguousarray(loads[list(group.members)])
        sums = np.zeros((len(rows), len(group.members), loads.shape[1]))

        def task(start: int, stop: int) -> None:
            _tiles.kernel_sums(program, dots, near, far, damping, own, start, stop, sums)

        in_parallel(task, len(rows), 8)
        return sums

    def contributions(self, left: Points, right: Points, coef: Array) -> Array:
        """Signed part of each kernel in ``k(left, right) @ coef``: (n_left, n_kernels, columns)."""
        sums = self.kernel_sums(left, right, coef)
        return np.asarray((left.gates[:, :, :, np.newaxis] * sums).sum(axis=2))


def as_rank(gates: Array) -> Array:
    """Gate values with the rank as third axis."""
    gates = np.asarray(gates, dtype=np.float64)
    return gates[:, :, np.newaxis] if gates.ndim == 2 else gates


def _see(X: Any, columns: tuple[int, ...] | None) -> Any:
    return X if columns is None else take_columns(X, np.array(columns, dtype=np.intp))


def _chunks(n_rows: int, n_columns: int) -> list[slice]:
    step = int(np.clip(_BUFFER // max(n_columns, 1), 16, 1024))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def _pair_gates(left: Array, right: Array) -> Array:
    """``<h(x), h(z)>`` of one kernel."""
    return np.asarray(left @ right.T)


def _pair_sums(left: Array, right: Array) -> Array:
    """``sum_i <h_i(x), h_i(z)>``, the divisor of pair-normalised mixing."""
    return np.asarray(left.reshape(len(left), -1) @ right.reshape(len(right), -1).T)


def _fits_single(group: Group, X: Any) -> bool:
    """Whether float32 keeps enough digits of every kernel of the group."""
    from sklearn.utils.extmath import row_norms

    if X.shape[0] == 0:
        return True
    moved = X if group.offset is None else X - group.offset
    largest = float(row_norms(moved, squared=True).max())
    for term in group.terms:
        formula = term.formula
        if formula.operation == GAUSSIAN:
            if formula.gamma * largest > _LARGEST_EXPONENT:
                return False
        else:
            value = np.abs(formula(np.array(largest), np.array(largest), np.array(largest)))
            # Normalised kernels are small, but their inner products were not.
            if value > _LARGEST_VALUE and term.factor is None or largest > 1e6:
                return False
    return True
