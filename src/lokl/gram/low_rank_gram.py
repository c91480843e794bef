"""The low-rank twin of the Gram matrix: every product goes through features.

``K = sum_i (h_i h_i') o K_i`` becomes ``sum_i (h_i h_i') o (Phi_i Phi_i')`` with explicit features
``Phi_i``, (n_samples, features of the kernel), which do not depend on gates. A function of samples
has a vector of *weights* for each rank of the gates, (n_features, rank): ``f(x) = sum_ir h_ir(x)
<w_ir, phi_i(x)>``.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from lokl._arrays import Array, column, read_only
from lokl._threads import multiply
from lokl.gates.base import Gate
from lokl.gram.expansion import Expansion
from lokl.gram.feature_maps import FeatureMap, Visit
from lokl.gram.gated_gram import MEGABYTE, GatedGram
from lokl.gram.gated_kernel import GatedKernel
from lokl.gram.inner_products import InnerProducts
from lokl.gram.low_rank import Features, LowRankProducts
from lokl.gram.low_rank_kernel import LowRankExpansion, LowRankKernel
from lokl.gram.tiles import add_up, apart, square_norms

# Numbers of one tile of stored features, and of one block of gated ones.
_TILE, _BLOCK, _FEWEST_ROWS = 2**20, 2**24, 256
# Of sweeps that write what they find.
_NO_SUMS = np.empty(0)


class LowRankGram(GatedGram):
    """A Gram matrix of explicit features under gates; questions as those of the exact one.

    It is made by :meth:`LowRankProducts.gated`.

    Attributes
    ----------
    features : FeatureMap
        Features of all kernels, in the precision of the matrix.
    """

    inner: LowRankProducts

    @cached_property
    def _made(self) -> Features:
        return self.inner.features(self.points)

    @property
    def features(self) -> FeatureMap:
        return self._made.own

    @cached_property
    def exact(self) -> GatedGram:
        own = self.inner
        return GatedGram.of(InnerProducts(own.X, cache_size=own.cache_size), self.points)

    @property
    def is_low_rank(self) -> bool:
        return True

    def kernel(self, gate: Gate, params: Array, names: Sequence[str] | None = None) -> GatedKernel:
        return LowRankKernel(self.kernels, gate, params, self._made.precise, names)

    def expansion(self, kernel: GatedKernel, coef: Array, intercept: Array) -> Expansion:
        precise = self._made.precise
        return LowRankExpansion(kernel, intercept, precise, precise.loads(self.backward(coef)))

    @property
    def stored_features(self) -> Array | None:
        """Features of all samples without gates; None where they do not fit into the memory."""
        return self.inner.stored(self.features, self.points)

    @property
    def fits(self) -> bool:
        """Whether the memory budget holds the features of all samples."""
        return self.megabytes <= self.inner.cache_size

    @property
    def megabytes(self) -> float:
        """Size of the features of all samples."""
        numbers = self.n_samples * self.features.size
        return float(numbers * self.dtype.itemsize / MEGABYTE)

    @property
    def needs_rows(self) -> bool:
        return False

    @property
    def n_weights(self) -> int:
        """Length of the weights of a function: features times the rank of the gates."""
        return int(self.features.size * self.gates.shape[2])

    def _sweep(self, visit: Visit, sums: Array) -> Array:
        """Show features of all samples where they are stored, else columns, some rows at a time.

        Returns what visitors add to `sums`.
        """
        stored = self.stored_features
        if stored is None:
            return self.features.sweep(self.points, visit, sums)
        step = max(_TILE // max(self.features.size, 1), _FEWEST_ROWS)
        for begin in range(0, self.n_samples, step):
            part = slice(begin, min(begin + step, self.n_samples))
            visit(part, stored[part], sums)
        return sums

    def _forth(self, weights: Array) -> Array:
        """What tiles are multiplied by, in the precision that this takes."""
        if self.fits:
            return weights.astype(self.dtype, copy=False)
        # Loads are large and cancel: they are multiplied in double precision.
        return self.features.loads(weights)

    def _values(self, tile: Array, part: slice, loads: Array) -> Array:
        """Values of functions at the samples of a tile, (n_rows, n_functions)."""
        sums = apart(tile, self.features.starts, loads)
        return np.asarray(np.einsum("jirt,jir->jt", sums, self.gates[part]))

    def _add(self, sums: Array, tile: Array, part: slice, coef: Array) -> None:
        """Add the products of a tile with gated coefficients, (n_rows, n_columns)."""
        loads = self.gates[part][:, :, :, np.newaxis] * coef[:, np.newaxis, np.newaxis]
        flat = loads.reshape(*loads.shape[:2], -1)
        flat = flat.astype(tile.dtype if self.fits else np.float64, copy=False)
        add_up(tile, self.features.starts, flat, sums)

    def _back(self, sums: Array, columns: int) -> Array:
        """Weights, (n_features, rank, n_columns), from sums over tiles, one row for each."""
        shape = (self.features.size, self.gates.shape[2], columns)
        weights = np.ascontiguousarray(sums.T).reshape(shape)
        return weights if self.fits else self.features.gathered(weights)

    def forward_apart(self, weights: Array) -> Array:
        """``<w_ir, phi_i(x_j)>`` at all samples: (n_samples, n_kernels) and axes of the weights."""
        out = np.zeros((self.n_samples, self.plan.n_kernels, *weights.shape[1:]))
        loads = self._forth(weights)

        def visit(part: slice, tile: Array, _: Array) -> None:
            out[part] = apart(tile, self.features.starts, loads)

        self._sweep(visit, _NO_SUMS)
        return out

    def forward(self, weights: Array) -> Array:
        """Values at all samples of functions, of weights (n_features, rank, n_functions)."""
        out = np.zeros((self.n_samples, weights.shape[2]))
        loads = self._forth(weights)

        def visit(part: slice, tile: Array, _: Array) -> None:
            out[part] = self._values(tile, part, loads)

        self._sweep(visit, _NO_SUMS)
        return out

    def backward(self, coef: Array) -> Array:
        """``w_ir = sum_j h_ir(j) coef_jt phi_i(x_j)``, (n_features, rank, n_columns)."""
        columns = coef.shape[1]

        def visit(part: slice, tile: Array, sums: Array) -> None:
            self._add(sums, tile, part, coef[part])

        blank = np.zeros((self.gates.shape[2] * columns, self.features.size))
        return self._back(self._sweep(visit, blank), columns)

    def curved(self, weights: Array, scale: Array) -> Array:
        """:meth:`backward` of the values of one function times `scale`, in one pass.

        Weights are (n_features, rank, 1), and so is what is returned.
        """
        loads = self._forth(weights)

        def visit(part: slice, tile: Array, sums: Array) -> None:
            values = self._values(tile, part, loads)
            self._add(sums, tile, part, scale[part, np.newaxis] * values)

        blank = np.zeros((self.gates.shape[2], self.features.size))
        return self._back(self._sweep(visit, blank), 1)

    def gated_rows(self, index: Array) -> Array:
        """Features of some samples times their gates, side by side: (len(index), n_weights).

        In the order of flat weights.
        """
        stored, rank = self.stored_features, self.gates.shape[2]
        out = np.empty((len(index), self.features.size, rank), dtype=self.dtype)
        if stored is not None:
            out[:, :, 0] = stored[index]
        else:
            for part, tile in self.features.tiles(self.points, index):
                self.features.whiten(tile)
                out[part, :, 0] = tile
        for r in reversed(range(rank)):
            for i, span in enumerate(self.features.spans):
                out[:, span, r] = out[:, span, 0] * self.gates[index, i, r, np.newaxis]
        return out.reshape(len(index), self.n_weights)

    def square_norms(self) -> Array:
        """Squared norms of the features of each kernel, without gates: (n_samples, n_kernels)."""
        norms = np.zeros((self.n_samples, self.plan.n_kernels))

        def visit(part: slice, tile: Array, _: Array) -> None:
            if not self.fits:
                self.features.whiten(tile)
            norms[part] = square_norms(tile, self.features.spans)

        self._sweep(visit, _NO_SUMS)
        return norms

    @cached_property
    def _diag(self) -> Array:
        squares = (self.gates**2).sum(axis=2)
        return read_only((squares * self.square_norms()).sum(axis=1))

    @property
    def whole(self) -> Array:
        memory = self._memory
        if memory.whole is None:
            matrix, everyone = memory.square(self.dtype), np.arange(self.n_samples)
            self._compute(everyone, matrix, everyone)
            memory.whole = read_only(matrix)
        return memory.whole

    def cross(self, rows: Array, columns: Array) -> Array:
        return multiply(self.gated_rows(rows), self.gated_rows(columns).T)

    def _compute(self, index: Array, slab: Array, slots: Array) -> None:
        near = self.gated_rows(index)
        step = max(_BLOCK // max(self.n_weights, 1), _FEWEST_ROWS)
        for begin in range(0, self.n_samples, step):
            part = np.arange(begin, min(begin + step, self.n_samples))
            slab[slots, begin : part[-1] + 1] = multiply(near, self.gated_rows(part).T)

    def regated(self, gates: Array) -> "LowRankGram":
        gram = super().regated(gates)
        assert isinstance(gram, LowRankGram)
        return gram

    def rows_apart(self, index: Array) -> Array:
        index = np.asarray(index, dtype=np.intp)
        ungated = self.regated(np.ones((self.n_samples, self.plan.n_kernels)))
        near = ungated.gated_rows(index).T[:, np.newaxis]
        rows = ungated.forward_apart(near)[:, :, 0].transpose(2, 1, 0)
        gates = self.gates[:, :, 0]
        return np.asarray((rows * gates[index][:, :, np.newaxis] * gates.T).astype(self.dtype))

    def subtract(self, index: Array, coef: Array, target: Array) -> None:
        if len(index):
            every = np.zeros(self.n_samples)
            every[index] = coef
            target -= self.dot(every)

    def dot(self, coef: Array) -> Array:
        product = self.forward(self.backward(column(coef)))
        return product if coef.ndim == 2 else product[:, 0]

    def kernel_sums(self, coef: Array) -> Array:
        return self.forward_apart(self.backward(column(coef)))

    def gate_gradient(self, coef: Array) -> Array:
        sums = self.kernel_sums(coef)
        return np.asarray(-np.einsum("jirt,jt->jir", sums, column(coef)))

    def kernel_forms(self, coef: Array) -> Array:
        squares = (self.backward(column(coef)) ** 2).sum(axis=2)
        return np.stack([squares[span].sum(axis=0) for span in self.features.spans])
