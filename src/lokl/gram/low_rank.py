"""Training samples with features of low rank in the place of inner products.

The learned kernel of low rank, and functions that are sums of few columns of it.

The low-rank twin of the Gram matrix: every product goes through features.

``K = sum_i (h_i h_i') o K_i`` becomes ``sum_i (h_i h_i') o (Phi_i Phi_i')`` with explicit features
``Phi_i``, (n_samples, features of the kernel), which do not depend on gates. A function of samples
has a vector of *weights* for each rank of the gates, (n_features, rank): ``f(x) = sum_ir h_ir(x)
<w_ir, phi_i(x)>``.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from lokl._arrays import Array, Samples, column, read_only
from lokl._threads import limit_blas_for, multiply
from lokl.gates.base import Gate
from lokl.gram import mixing
from lokl.gram.feature_maps import FeatureMap, FourierMap, LandmarkMap, Visit
from lokl.gram.gated_gram import GatedGram
from lokl.gram.gated_kernel import Expansion, GatedKernel
from lokl.gram.inner_products import InnerProducts
from lokl.gram.landmarks import Landmarks, choose_landmarks
from lokl.gram.memory import MEGABYTE
from lokl.gram.mixing import add_up, square_norms, sum_kernels_apart
from lokl.gram.plan import GramPlan, Points
from lokl.kernels.base import Kernel

logger = logging.getLogger("lokl")

# Samples on which it is measured how far features miss a kernel; and those of which all kernel
# values are compared where the diagonal tells nothing.
_MEASURED, _COMPARED = 4096, 500
# Samples for each landmark that they are chosen from at least, where memory is short.
_CHOICE = 4


@dataclass(frozen=True)
class LowRank:
    """How features are made.

    Attributes
    ----------
    rank : int
        Features of each kernel, at most.
    kind : {"landmarks", "fourier"}
    sample_size : int
        Samples that landmarks are chosen from, at most.
    seed : int
    """

    rank: int
    kind: str = "landmarks"
    sample_size: int = 50_000
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Features:
    """Features of a list of kernels."""

    precise: FeatureMap  # in float64, in which new samples are decided
    own: FeatureMap  # in the precision of the training samples


class LowRankProducts(InnerProducts):
    """Training samples, and features of kernels in the place of inner products.

    Parameters
    ----------
    X : {array, CSR matrix} of shape (n_samples, n_features)
        Without NaN.
    how : LowRank
    cache_size : float, default=512
        Megabytes for stored features. Where they do not fit, columns are computed anew for every
        product; landmarks and their factors come on top.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Of features; "auto" is float32 unless values of the kernels would lose digits in it.
    """

    def __init__(self, X: Any, how: LowRank, *, cache_size: float = 512, dtype: Any = "auto"):
        super().__init__(X, cache_size=cache_size, dtype=dtype)
        self.how = how
        # They depend neither on gates nor on costs, only on the kernels.
        self._made: list[Features] = []
        self._stored: tuple[FeatureMap | None, Array] = (None, np.empty((0, 0)))

    def gated(
        self,
        kernels: Sequence[Kernel],
        gates: Array | None = None,
        *,
        pair_normalized: bool = False,
    ) -> "LowRankGram":

        if pair_normalized:
            raise ValueError(
                "kernels whose pairs are normalised have no features of low rank: their matrix is "
                "not positive semidefinite; use solver='exact'"
            )
        points = self.prepare(kernels, gates, pair_normalized)
        # Made here, where all samples are: parts that are taken of them share these.
        self.features(points)
        return LowRankGram.of(self, points)

    def take(self, rows: Array) -> "LowRankProducts":
        """Return some of the samples, with the features that were made for all of them."""
        part = LowRankProducts(self.X[rows], self.how, cache_size=self.cache_size, dtype=self.dtype)
        part._layouts = self._layouts.take(rows, part.X)
        part._made = list(self._made)
        return part

    def release(self) -> None:
        super().release()
        self._stored = (None, np.empty((0, 0)))

    def features(self, points: Points) -> Features:
        """Return the features of the kernels of some points, made when they are first needed."""
        plan = points.plan
        for made in self._made:
            if _serves(made.own.plan, plan):
                return made
        made = self._make(points)
        # A method that asks for other kernels in between finds both.
        self._made = [*self._made[-1:], made]
        return made

    def stored(self, own: FeatureMap, points: Points) -> Array | None:
        """Features of all samples, computed once; None where they do not fit into the memory."""
        size = points.n_samples * own.size * own.plan.dtype.itemsize
        if size > self.cache_size * MEGABYTE:
            return None
        if self._stored[0] is not own:
            # What was stored goes before the new comes.
            self._stored = (None, np.empty((0, 0)))
            features = np.empty((points.n_samples, own.size), dtype=own.plan.dtype)
            for part, tile in own.tiles(points, np.arange(points.n_samples)):
                own.whiten(tile)
                features[part] = tile
            self._stored = (own, features)
        return self._stored[1]

    def _make(self, points: Points) -> Features:
        rng = np.random.RandomState(self.how.seed)
        n, plan = points.n_samples, points.plan
        # Bound kernels are planned as before, in another precision.
        double = GramPlan.make(plan.kernels, self._layouts, np.float64, plan.pair_normalized)
        trusting = points.regated(np.ones((n, plan.n_kernels)))
        if self.how.kind == "fourier":
            precise: FeatureMap = FourierMap.make(double, self.how.rank, points, rng)
            residual = _distance(precise.cast(plan), trusting.take(_spaced(n, _COMPARED)))
        else:
            found = self._landmarks(trusting, rng)
            ones = np.ones((len(found.rows), plan.n_kernels))
            landmarks = Points.make(double, self.X[found.rows], ones)
            precise = LandmarkMap.make(landmarks, found.rows, plan.dtype)
            residual = _missed(precise.cast(plan), trusting.take(_spaced(n, _MEASURED)))
        precise = replace(precise, residual=residual)
        made = Features(precise, precise.cast(plan))
        missed = ", ".join(f"{share:.2g}" for share in residual)
        logger.info("low rank: %s features, missing %s of the kernels", made.own.sizes, missed)
        if self.how.kind != "fourier":
            self._keep(made.own, found)
        return made

    def _landmarks(self, points: Points, rng: np.random.RandomState) -> Landmarks:
        """Choose landmarks: all samples where they are few."""
        n, rank, none = points.n_samples, self.how.rank, np.empty((0, 0))
        if n <= rank:
            return Landmarks(np.arange(n), 0.0, none)
        room = int(self.cache_size * MEGABYTE // (points.plan.dtype.itemsize * rank))
        size = min(n, self.how.sample_size, max(room, _CHOICE * rank))
        sample = np.arange(n) if size == n else np.sort(rng.choice(n, size=size, replace=False))
        part = points.take(sample)
        # All kernels on one scale: landmarks shall tell the values of each of them.
        means = np.maximum(mixing.diag_apart(part).mean(axis=0), 0.0)
        factors = np.divide(1.0, np.sqrt(means), out=np.zeros_like(means), where=means > 0)
        scaled = part.regated(np.broadcast_to(factors, (size, len(factors))))
        found = choose_landmarks(scaled, rank, rng)
        if size < n or len(factors) > 1:
            return replace(found, rows=sample[found.rows], factor=none)
        found.factor[...] *= np.sqrt(means[0])
        return found

    def _keep(self, own: FeatureMap, found: Landmarks) -> None:
        """Store the factor of the search as features, where it is of all samples and one kernel."""
        fits = found.factor.nbytes <= self.cache_size * MEGABYTE
        if found.factor.size and fits and np.array_equal(own.landmarks, found.rows):
            self._stored = (own, found.factor)


def _serves(known: GramPlan, asked: GramPlan) -> bool:
    """Whether features that were made for one plan are those of another."""
    views = [[family.view for family in plan.families] for plan in (known, asked)]
    same = known.kernels == asked.kernels and known.dtype == asked.dtype
    return same and views[0] == views[1]


def _spaced(n: int, most: int) -> Array:
    return np.unique(np.linspace(0, max(n - 1, 0), min(n, most)).astype(np.intp))


def _missed(features: FeatureMap, points: Points) -> Array:
    """Share of the trace of each kernel that features do not have."""
    trace = mixing.diag_apart(points).sum(axis=0)
    found = np.zeros(len(trace))
    for _, tile in features.tiles(points, np.arange(points.n_samples)):
        features.whiten(tile)
        found += square_norms(tile, features.spans).sum(axis=0)
    left = np.divide(trace - found, trace, out=np.zeros_like(trace), where=trace > 0)
    return np.clip(left, 0.0, 1.0)


def _distance(features: FeatureMap, points: Points) -> Array:
    """Distance of each kernel's matrix from that of features, relative to its norm."""
    everyone = np.arange(points.n_samples)
    K = mixing.apart(points, everyone, points).astype(np.float64)
    Phi = np.concatenate([tile.copy() for _, tile in features.tiles(points, everyone)])
    found = np.stack([Phi[:, span] @ Phi[:, span].T for span in features.spans], axis=1)
    norm = np.linalg.norm(K, axis=(0, 2))
    return np.asarray(np.linalg.norm(found - K, axis=(0, 2)) / np.where(norm > 0, norm, 1.0))


class LowRankKernel(GatedKernel):
    """``k(x, z) = sum_i <h_i(x), h_i(z)> <phi_i(x), phi_i(z)>``: what a low-rank machine sees.

    Parameters
    ----------
    kernels : sequence of Kernel
        Bound kernels, which the features stand for.
    gate : Gate
    params : array
        Learned parameters of the gate.
    features : FeatureMap
        Features of the kernels.
    names : sequence of str, optional
        Of the kernels.
    """

    def __init__(
        self,
        kernels: Sequence[Kernel],
        gate: Gate,
        params: Array,
        features: FeatureMap,
        names: Sequence[str] | None = None,
    ):
        super().__init__(kernels, gate, params, False, names)
        self.features = features

    @property
    def residual(self) -> Array:
        return self.features.residual

    def gram(self, samples: Samples, dtype: Any = "auto") -> GatedGram:
        raise TypeError(
            "a low-rank kernel has no exact matrix; call it on samples, or use its kernels"
        )

    def __call__(self, X: Any, Z: Any = None) -> Array:
        left = self._features(X)
        right = left if Z is None else self._features(Z)
        return np.asarray(left @ right.T)

    def diag(self, X: Any) -> Array:
        features = self._features(X)
        return np.asarray(np.einsum("jk,jk->j", features, features))

    @property
    def label(self) -> str:
        return f"low-rank {super().label}"

    def _features(self, X: Any) -> Array:
        """Gated features of samples, (n_samples, n_features * rank)."""
        samples, own = self.samples(X), self.features
        points = Points.make(own.plan, samples.filled, self.gates(samples))
        rank = points.gates.shape[2]
        out = np.zeros((points.n_samples, rank, own.size))
        for part, tile in own.tiles(points, np.arange(points.n_samples)):
            own.whiten(tile)
            for i, span in enumerate(own.spans):
                gates = points.gates[part, i]
                out[part, :, span] = gates[:, :, np.newaxis] * tile[:, np.newaxis, span]
        return out.reshape(points.n_samples, rank * own.size)


@dataclass(frozen=True, eq=False)
class LowRankExpansion(Expansion):
    """The same sum through features: ``f(x) = sum_ir h_ir(x) <a_ir, columns_i(x)> + b``.

    It costs as many kernel values as there are landmarks, however many samples have coefficients.

    Attributes
    ----------
    features : FeatureMap
        In float64: the loads are large and cancel.
    loads : array of shape (n_features, rank, n_functions)
    """

    features: FeatureMap
    loads: Array

    @property
    def plan(self) -> GramPlan:
        return self.features.plan

    @property
    def rank(self) -> int:
        return int(self.loads.shape[1])

    @property
    def residual(self) -> Array:
        return self.features.residual

    def parts(self, points: Points) -> Array:
        with limit_blas_for(points.n_samples):
            sums = self.features.sums(points, self.loads)
        return np.asarray(np.einsum("jir,jirt->jit", points.gates, sums))

    def at(self, points: Points) -> Array:
        return np.asarray(self.parts(points).sum(axis=1) + self.intercept)


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
        sums = sum_kernels_apart(tile, self.features.starts, loads)
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
            out[part] = sum_kernels_apart(tile, self.features.starts, loads)

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
