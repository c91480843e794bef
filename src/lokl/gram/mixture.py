"""A list of kernels computed as one: every block, product and sum over a gated kernel."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl._compiled import CompiledModule
from lokl._threads import in_parallel, multiply
from lokl.gram.features import TILE
from lokl.gram.groups import LARGEST_VALUE, make_groups
from lokl.gram.points import Points, as_rank
from lokl.kernels.base import Kernel

_tiles = CompiledModule("lokl.gram._tiles")

# Inner products pass through a buffer of about this many entries, small enough to stay in a cache
# and to be touched without many page faults; never fewer rows than a matrix product is good at.
_BUFFER, _FEWEST_ROWS = 2**17, 32
# Where every kernel is summed by itself, more is done with an entry than fetching it costs.
_FORMS_BUFFER = 2**19

StoredDots = Callable[[int, Array], Array | None]


class Mixture:
    """Bound kernels as one plan, with the layout that suits the training samples.

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
        self.groups = make_groups(terms, X)
        if dtype == "auto":
            dtype = np.float32 if self._fits_single(X) else np.float64
        self.dtype = np.dtype(dtype)

    def _fits_single(self, X: Any) -> bool:
        """Whether float32 keeps enough digits of all kernels."""
        if X.shape[0] == 0:
            return True
        others = [np.abs(self.kernels[i].diag(X)).max() for i in self.others]
        return all(g.fits_single for g in self.groups) and max(others, default=0.0) <= LARGEST_VALUE

    @property
    def n_kernels(self) -> int:
        return len(self.kernels)

    @property
    def is_linear(self) -> bool:
        """Whether the Gram matrix is one of explicit features as few as the inputs."""
        return not (self.others or self.pair_normalized) and all(g.is_linear for g in self.groups)

    def points(self, X: Any, gates: Array) -> Points:
        """Prepare samples under gate values of shape (n, n_kernels) or (n, n_kernels, rank)."""
        scales = np.ones((X.shape[0], self.n_kernels))
        for group in self.groups:
            scales[:, list(group.members)] = group.scales(X)
        features = tuple(group.features(X, self.dtype) for group in self.groups)
        return Points(X, features, as_rank(gates), scales, self.dtype)

    def fill(
        self,
        left: Points,
        rows: Array,
        right: Points,
        out: Array,
        out_rows: Array,
        stored: StoredDots | None = None,
    ) -> None:
        """Write ``k(left[rows], right)`` into the rows `out_rows` of `out`.

        `stored` may hand over inner products: ``stored(group_number, rows)`` gives an array
        (len(rows), n_right), or None.
        """
        weights, near, far = self._sides(left, right)
        for k, group in enumerate(self.groups):
            program = group.program(weights, self.dtype)
            members, width = list(group.members), right.features[k].width
            sides = (
                (left.features[k].norms, near[members]),
                (right.features[k].norms, far[members]),
            )
            if stored is None and group.layout == "panels":
                lists, panels = left.features[k].lists, right.features[k].panels
                sparse_work = (
                    program,
                    lists,
                    panels,
                    sides[0],
                    rows,
                    sides[1],
                    out,
                    out_rows,
                    k > 0,
                )
                in_parallel(_tiles.mix_sparse, right.n_samples, width, *sparse_work)
                continue
            chunks = _chunks(len(rows), right.n_samples)
            buffer = self._buffer(chunks, right)
            for part in chunks:
                dots = self._dots(k, left, rows[part], right, buffer, stored)
                targets = out_rows[part]
                work = (program, dots, sides[0], rows[part], sides[1], out, targets, k > 0)
                in_parallel(_tiles.mix_dense, right.n_samples, width, *work)
        if not self.groups:
            out[out_rows] = 0.0
        self._add_others(left, rows, right, out, out_rows)
        if self.pair_normalized:
            for part in _chunks(len(rows), right.n_samples):
                out[out_rows[part]] *= _pair_shares(left.gates[rows[part]], right.gates)

    def _sides(self, left: Points, right: Points) -> tuple[Array, Array, Array]:
        """Constant weights, or factors of both sides; what does not apply is empty."""
        if left.weights is not None and right.weights is not None:
            none = np.empty((self.n_kernels, 0, 0), dtype=self.dtype)
            return left.weights * right.weights, none, none
        return np.zeros(self.n_kernels), left.factors, right.factors

    def _buffer(self, chunks: list[slice], right: Points) -> Array:
        size = chunks[0].stop if chunks else 0
        return np.empty((size, right.n_samples), dtype=self.dtype)

    def _dots(
        self,
        k: int,
        left: Points,
        rows: Array,
        right: Points,
        buffer: Array,
        stored: StoredDots | None = None,
        begin: int = 0,
    ) -> Array:
        dots = None if stored is None else stored(k, rows)
        if dots is None:
            dots = buffer[: len(rows)]
            left.features[k].dots(rows, right.features[k], dots, begin)
        return dots

    def _add_others(
        self, left: Points, rows: Array, right: Points, out: Array, out_rows: Array
    ) -> None:
        """Add the kernels that are no function of one inner product."""
        for i in self.others if right.n_samples else []:
            for part in _chunks(len(rows), right.n_samples):
                chosen = rows[part]
                values = self.kernels[i](left.X[chosen], right.X)
                gates = left.gates[chosen, i] @ right.gates[:, i].T
                out[out_rows[part]] += (gates * values).astype(self.dtype, copy=False)

    def block(self, left: Points, right: Points) -> Array:
        """Return ``k(left, right)`` as an array."""
        out = np.empty((left.n_samples, right.n_samples), dtype=self.dtype)
        rows = np.arange(left.n_samples)
        self.fill(left, rows, right, out, rows)
        return out

    def symmetric(self, points: Points) -> Array:
        """``k(points, points)``; of sparse layouts only half is computed."""
        panels = all(group.layout == "panels" for group in self.groups) and self.groups
        if not panels or self.others or self.pair_normalized:
            return self.block(points, points)
        n = points.n_samples
        out = np.empty((n, n), dtype=self.dtype)
        weights, factors, _ = self._sides(points, points)
        rows = np.arange(n)
        for k, group in enumerate(self.groups):
            features = points.features[k]
            count = -(-n // features.width)
            # Long and short columns in turn: equal shares of them are equal work.
            order = np.empty(count, dtype=np.int64)
            order[::2] = np.arange((count + 1) // 2)
            order[1::2] = np.arange(count - 1, (count + 1) // 2 - 1, -1)
            work = (
                order,
                group.program(weights, self.dtype),
                features.lists,
                features.panels,
                (features.norms, factors[list(group.members)]),
                rows,
                out,
                k > 0,
            )
            in_parallel(_tiles.mix_triangle, count, 1, *work)
        in_parallel(_tiles.mirror, n, 256, out)
        return out

    def diag(self, points: Points) -> Array:
        """``k(x, x)`` of every sample, in float64."""
        values = np.zeros((points.n_samples, self.n_kernels))
        for group, features in zip(self.groups, points.features, strict=True):
            norms = features.norms.astype(np.float64)
            for i, term in zip(group.members, group.terms, strict=True):
                values[:, i] = term.formula(norms, norms, norms)
        values *= points.scales**2
        for i in self.others:
            values[:, i] = self.kernels[i].diag(points.X)
        gates = (points.gates**2).sum(axis=2)
        if self.pair_normalized:
            gates = gates * _inverse(gates.sum(axis=1, keepdims=True))
        return np.asarray((gates * values).sum(axis=1))

    def product(self, left: Points, right: Points, coef: Array) -> Array:
        """``k(left, right) @ coef`` in blocks of rows; `coef` is (n_right, n_columns)."""
        result = np.zeros((left.n_samples, coef.shape[1]))
        if right.n_samples == 0:
            return result
        weights = np.ascontiguousarray(coef, dtype=self.dtype)
        chunks = _chunks(left.n_samples, right.n_samples)
        buffer = self._buffer(chunks, right)
        for part in chunks:
            rows = np.arange(part.start, part.stop)
            self.fill(left, rows, right, buffer, rows - part.start)
            result[part] = multiply(buffer[: len(rows)], weights)
        return result

    def kernel_sums(
        self, left: Points, right: Points, coef: Array, chosen: Array | None = None
    ) -> Array:
        """Sums over the right samples, apart for each kernel, at the chosen left samples.

        Returns ``R[p, i, r, t] = sum_j k_i(p, j) h_ir(j) coef[j, t]``, normalisation included on
        both sides and, with pair-normalised mixing, the pair's divisor. Everything that is asked
        of single kernels (contributions, gate gradients) is a sum of these.
        """
        n, rank, tasks = right.n_samples, right.gates.shape[2], coef.shape[1]
        chosen = np.arange(left.n_samples) if chosen is None else chosen
        result = np.zeros((len(chosen), self.n_kernels, rank * tasks))
        gated = (right.gates * right.scales[:, :, np.newaxis])[:, :, :, np.newaxis]
        shape = (n, self.n_kernels, rank * tasks)
        loads = (gated * coef[:, np.newaxis, np.newaxis, :]).reshape(shape)
        loads = np.ascontiguousarray(loads.transpose(1, 2, 0), dtype=self.dtype)
        chunks = _chunks(len(chosen), n) if n else []
        buffer = self._buffer(chunks, right)
        for part in chunks:
            rows = chosen[part]
            damping = np.empty((0, 0), dtype=self.dtype)
            if self.pair_normalized:
                shares = _pair_shares(left.gates[rows], right.gates)
                damping = np.ascontiguousarray(shares, dtype=self.dtype)
            for k, group in enumerate(self.groups):
                members = list(group.members)
                sums = np.zeros((len(rows), len(members), rank * tasks))
                work = (
                    0,
                    group.program(np.zeros(self.n_kernels), self.dtype),
                    self._dots(k, left, rows, right, buffer),
                    left.features[k].norms[rows],
                    right.features[k].norms,
                    damping,
                    loads[members],
                    sums,
                )
                in_parallel(_tiles.kernel_sums, len(rows), 8, *work)
                result[part][:, members] = sums
            for i in self.others:
                values = self.kernels[i](left.X[rows], right.X)
                result[part][:, i] = (values * damping if damping.size else values) @ loads[i].T
        result *= left.scales[chosen, :, np.newaxis]
        return result.reshape(len(chosen), self.n_kernels, rank, tasks)

    def forms(self, points: Points, chosen: Array, coef: Array) -> Array:
        """``S_ir = sum_t (u_t o h_ir)' K_i (u_t o h_ir)`` over the chosen samples, (m, rank).

        Kernels are symmetric: pairs are looked at once and count twice.
        """
        if self.pair_normalized or self.others:
            sums = self.kernel_sums(points, points.take(chosen), coef, chosen)
            return np.asarray(np.einsum("jir,jirt,jt->ir", points.gates[chosen], sums, coef))
        right = points.take(chosen)
        n, rank, tasks = len(chosen), right.gates.shape[2], coef.shape[1]
        gated = (right.gates * right.scales[:, :, np.newaxis])[:, :, :, np.newaxis]
        loads = (gated * coef[:, np.newaxis, np.newaxis, :]).reshape(
            n, self.n_kernels, rank * tasks
        )
        turned = np.ascontiguousarray(loads.transpose(1, 2, 0), dtype=self.dtype)
        result = np.zeros((self.n_kernels, rank * tasks))
        chunks = _chunks(n, n, _FORMS_BUFFER) if n else []
        buffer = self._buffer(chunks, right)
        for part in chunks:
            rows = chosen[part]
            # Columns before the rows have had their turn, those after count for both.
            once = turned.copy()
            once[:, :, : part.start] = 0.0
            once[:, :, part.stop :] *= 2.0
            for k, group in enumerate(self.groups):
                members = list(group.members)
                sums = np.zeros((len(rows), len(members), rank * tasks))
                begin = part.start // TILE * TILE
                work = (
                    begin,
                    group.program(np.zeros(self.n_kernels), self.dtype),
                    self._dots(k, points, rows, right, buffer, begin=begin),
                    points.features[k].norms[rows],
                    right.features[k].norms,
                    np.empty((0, 0), dtype=self.dtype),
                    once[members],
                    sums,
                )
                in_parallel(_tiles.kernel_sums, len(rows), 8, *work)
                result[members] += (loads[part][:, members] * sums).sum(axis=0)
        return result.reshape(self.n_kernels, rank, tasks).sum(axis=2)

    def apart(self, left: Points, rows: Array, right: Points) -> Array:
        """Rows of every gated kernel by itself, (len(rows), n_kernels, n_right); rank one only."""
        n = right.n_samples
        out = np.zeros((len(rows), self.n_kernels, n), dtype=self.dtype)
        chunks = _chunks(len(rows), n) if n else []
        buffer = self._buffer(chunks, right)
        for part in chunks:
            chosen = rows[part]
            for k, group in enumerate(self.groups):
                work = (
                    group.program(np.zeros(self.n_kernels), self.dtype),
                    self._dots(k, left, chosen, right, buffer),
                    left.features[k].norms[chosen],
                    right.features[k].norms,
                    np.array(group.members),
                    out[part],
                )
                in_parallel(_tiles.kernels_apart, len(chosen), 1, *work)
            for i in self.others:
                out[part][:, i] = self.kernels[i](left.X[chosen], right.X)
        out *= left.factors[:, 0, rows].T[:, :, np.newaxis]
        out *= right.factors[:, 0]
        return out

    def contributions(self, left: Points, right: Points, coef: Array) -> Array:
        """Signed part of each kernel in ``k(left, right) @ coef``: (n_left, n_kernels, columns)."""
        sums = self.kernel_sums(left, right, coef)
        return np.asarray((left.gates[:, :, :, np.newaxis] * sums).sum(axis=2))


def _chunks(n_rows: int, n_columns: int, buffer: int = _BUFFER) -> list[slice]:
    step = int(np.clip(buffer // max(n_columns, 1), _FEWEST_ROWS, 1024))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def _pair_shares(left: Array, right: Array) -> Array:
    """``1 / sum_i <h_i(x), h_i(z)>``, and 0 for pairs that trust no kernel in common."""
    size = left.shape[1] * left.shape[2]
    return _inverse(left.reshape(len(left), size) @ right.reshape(len(right), size).T)


def _inverse(values: Array) -> Array:
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)
