"""The low-rank twin of the Gram matrix: every product goes through explicit features.

``K = sum_i (h_i h_i') o K_i`` becomes ``sum_i (h_i h_i') o (Phi_i Phi_i')`` with features
``Phi_i``, (n_samples, features of the kernel), which do not depend on gates. A function of samples
has a vector of *weights* for each rank of the gates, (size, rank), where ``size`` counts the
features of all kernels: ``f(x) = sum_ir h_ir(x) <w_ir, phi_i(x)>``.

The classes mirror the exact ones: `LowRankProducts`, `LowRankGram` and `LowRankExpansion`.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from lokl._arrays import Array, column, read_only, slices
from lokl._threads import limit_blas_for, multiply
from lokl.gates.base import Gate
from lokl.gram import mixing
from lokl.gram.feature_maps import (
    FeatureMap,
    FourierMap,
    LandmarkMap,
    add_by_kernel,
    choose_landmarks,
    squared_norms_by_kernel,
    sum_by_kernel,
)
from lokl.gram.gated_gram import GatedGram, InnerProducts
from lokl.gram.gated_kernel import Expansion, GatedKernel
from lokl.gram.memory import MEGABYTE
from lokl.gram.plan import GramPlan, Points

logger = logging.getLogger("lokl")

# Samples on which the error of features is measured: by the diagonal, or by all kernel values for
# features whose diagonal is exact.
_MEASURED, _COMPARED = 4096, 500
# Least number of samples per landmark to choose from, if memory is short.
_CHOICE = 4
# Entries of one block of gated features, and the least rows of it.
_BLOCK, _FEWEST_ROWS = 2**24, 256


@dataclass(frozen=True)
class LowRank:
    """Settings of features.

    Attributes
    ----------
    rank : int
        Features of each kernel, at most.
    kind : {"landmarks", "fourier"}
        Kernel values with chosen samples, or random Fourier features.
    sample_size : int
        Samples that landmarks are chosen from, at most.
    seed : int
        Determines landmarks and random features.

    See Also
    --------
    lokl.gram.LowRankProducts : Features of low rank instead of inner products.
    lokl.solvers.Primal : The solver that uses them.

    Examples
    --------
    >>> from lokl.gram import LowRank
    >>> LowRank(rank=100)
    LowRank(rank=100, kind='landmarks', sample_size=50000, seed=0)
    """

    rank: int
    kind: str = "landmarks"
    sample_size: int = 50_000
    seed: int = 0


class LowRankProducts(InnerProducts):
    """Training samples with features of low rank instead of inner products.

    Parameters
    ----------
    X : {array, CSR matrix} of shape (n_samples, n_features)
        Without NaN.
    how : LowRank
        Number and kind of features.
    cache_size : float, default=512
        Megabytes for stored features. If they do not fit, columns are computed again for every
        product. Landmarks and their factors are not counted.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Of features; "auto" is float32 unless kernel values would lose digits in it.

    See Also
    --------
    lokl.gram.InnerProducts : The samples, and the memory for rows.
    lokl.gram.LowRankGram : Its Gram matrices.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.gram import LowRank, LowRankProducts
    >>> from lokl.kernels import RBF
    >>> X = np.linspace(0.0, 1.0, 50)[:, np.newaxis]
    >>> gram = LowRankProducts(X, LowRank(rank=10), dtype="float64").gated([RBF(1.0)])
    >>> gram.whole[0, :3].round(3), RBF(1.0)(X[:1], X[:3]).round(3)
    (array([1.   , 1.   , 0.998]), array([[1.   , 1.   , 0.998]]))
    """

    def __init__(self, X: Any, how: LowRank, *, cache_size: float = 512, dtype: Any = "auto"):
        super().__init__(X, cache_size=cache_size, dtype=dtype)
        self.how = how
        # They depend on the kernels, but not on gates or costs.
        self._maps: list[tuple[FeatureMap, FeatureMap]] = []
        self._stored: tuple[FeatureMap | None, Array] = (None, np.empty((0, 0)))

    def _gram(self, points: Points) -> "LowRankGram":
        if points.plan.pair_normalized:
            raise ValueError(
                "pair-normalised kernels have no features of low rank, because their matrix is not "
                "positive semidefinite; use solver='exact'"
            )
        # Made for all samples: parts that are taken of them share the maps.
        self.maps(points)
        return LowRankGram.of(self, points)

    def release(self) -> None:
        super().release()
        self._stored = (None, np.empty((0, 0)))

    def maps(self, points: Points) -> tuple[FeatureMap, FeatureMap]:
        """Return the feature map of the kernels of points in two precisions, made at first use.

        The first is in float64, for new samples; the second in the precision of the points.
        """
        for maps in self._maps:
            made_for, plan = maps[1].plan, points.plan
            if made_for.kernels == plan.kernels and made_for.preparation == plan.preparation:
                return maps
        maps = self._make(points)
        # Two lists of kernels in turn find both.
        self._maps = [*self._maps[-1:], maps]
        return maps

    def stored(self, features: FeatureMap, points: Points) -> Array | None:
        """Return features of all samples, computed once; None if they do not fit the memory."""
        size = points.n_samples * features.size * features.plan.dtype.itemsize
        if size > self.cache_size * MEGABYTE:
            return None
        if self._stored[0] is not features:
            # The old features are freed before the new ones are computed.
            self._stored = (None, np.empty((0, 0)))
            self._stored = (features, features.features(points))
        return self._stored[1]

    def _make(self, points: Points) -> tuple[FeatureMap, FeatureMap]:
        rng = np.random.RandomState(self.how.seed)
        n, plan, ungated = points.n_samples, points.plan, points.ungated()
        # Bound kernels are planned as before, in another precision.
        double = GramPlan.make(plan.kernels, self._layouts, np.float64, plan.pair_normalized)
        factor = np.empty((0, 0))
        if self.how.kind == "fourier":
            precise: FeatureMap = FourierMap.make(double, self.how.rank, points, rng)
            residual = _matrix_error(precise.cast(plan), ungated.take(_spaced(n, _COMPARED)))
        else:
            rows, factor = self._landmarks(ungated, rng)
            landmarks = Points.make(double, self.X[rows], np.ones((len(rows), plan.n_kernels)))
            precise = LandmarkMap.make(landmarks, rows, plan.dtype)
            residual = _trace_error(precise.cast(plan), ungated.take(_spaced(n, _MEASURED)))
            if not np.array_equal(precise.chosen, rows):
                factor = np.empty((0, 0))
        precise = replace(precise, residual=residual)
        training = precise.cast(plan)
        errors = ", ".join(f"{error:.2g}" for error in residual)
        logger.info("low rank: %s features, relative error %s", training.sizes, errors)
        # The factor of the landmarks is the features of all samples.
        if factor.size and factor.nbytes <= self.cache_size * MEGABYTE:
            self._stored = (training, factor)
        return precise, training

    def _landmarks(self, points: Points, rng: np.random.RandomState) -> tuple[Array, Array]:
        """Choose landmarks; all samples if they are few.

        Returns
        -------
        rows : array of int of shape (n_landmarks,)
        factor : array of shape (n_samples, n_landmarks)
            Features of the only kernel; empty if there are several, or if landmarks are chosen
            from some of the samples.
        """
        n, rank, no_factor = points.n_samples, self.how.rank, np.empty((0, 0))
        if n <= rank:
            return np.arange(n), no_factor
        room = int(self.cache_size * MEGABYTE // (points.plan.dtype.itemsize * rank))
        size = min(n, self.how.sample_size, max(room, _CHOICE * rank))
        sample = np.arange(n) if size == n else np.sort(rng.choice(n, size=size, replace=False))
        part = points.take(sample)
        # All kernels on one scale, because landmarks shall approximate each of them.
        means = np.maximum(mixing.diag_by_kernel(part).mean(axis=0), 0.0)
        gates = np.divide(1.0, np.sqrt(means), out=np.zeros_like(means), where=means > 0)
        scaled = part.regated(np.broadcast_to(gates, (size, len(gates))))
        rows, factor = choose_landmarks(scaled, rank, rng)
        if size < n or len(gates) > 1:
            return sample[rows], no_factor
        factor *= np.sqrt(means[0])
        return rows, factor


def _spaced(n: int, most: int) -> Array:
    """Return at most `most` evenly spaced indices below `n`."""
    return np.unique(np.linspace(0, max(n - 1, 0), min(n, most)).astype(np.intp))


def _trace_error(features: FeatureMap, points: Points) -> Array:
    """Return the share of each kernel's trace that features do not explain, (n_kernels,)."""
    trace = mixing.diag_by_kernel(points).sum(axis=0)
    explained = np.zeros(len(trace))
    for _, tile in features.feature_tiles(points, np.arange(points.n_samples)):
        explained += squared_norms_by_kernel(tile, features.spans).sum(axis=0)
    left = np.divide(trace - explained, trace, out=np.zeros_like(trace), where=trace > 0)
    return np.clip(left, 0.0, 1.0)


def _matrix_error(features: FeatureMap, points: Points) -> Array:
    """Return the relative distance of each kernel's matrix from its features', (n_kernels,)."""
    K = mixing.values_by_kernel(points, np.arange(points.n_samples), points).astype(np.float64)
    Phi = features.features(points)
    approximate = np.stack([Phi[:, span] @ Phi[:, span].T for span in features.spans], axis=1)
    norm = np.linalg.norm(K, axis=(0, 2))
    error = np.linalg.norm(approximate - K, axis=(0, 2))
    return np.asarray(error / np.where(norm > 0, norm, 1.0))


@dataclass(frozen=True, eq=False)
class LowRankExpansion(Expansion):
    """The sum through features: ``f(x) = sum_ir h_ir(x) <a_ir, columns_i(x)> + b``.

    It costs as many kernel values as there are landmarks, however many samples have coefficients.

    Attributes
    ----------
    features : FeatureMap
        In float64, because loads are large and cancel.
    loads : array of shape (size, rank, n_functions)
    """

    features: FeatureMap
    loads: Array

    @property
    def residual(self) -> Array:
        return self.features.residual

    def contributions(self, points: Points) -> Array:
        with limit_blas_for(points.n_samples):
            sums = self.features.sums(points, self.loads)
        return np.asarray(np.einsum("jir,jirt->jit", points.gates, sums))

    def at(self, points: Points) -> Array:
        return np.asarray(self.contributions(points).sum(axis=1) + self.intercept)


class LowRankGram(GatedGram):
    """A Gram matrix of explicit features under gates; methods as in :class:`GatedGram`.

    It is made by :meth:`LowRankProducts.gated`.

    Parameters
    ----------
    kernels, X, gates, cache_size, dtype, pair_normalized
        As for :class:`GatedGram`.

    Attributes
    ----------
    features : FeatureMap
        Features of all kernels, in the precision of the matrix.

    See Also
    --------
    lokl.gram.GatedGram : Gram matrix of gated kernels.
    lokl.gram.LowRankProducts : Features of low rank instead of inner products.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.gram import LowRank, LowRankProducts
    >>> from lokl.kernels import RBF
    >>> X = np.linspace(0.0, 1.0, 50)[:, np.newaxis]
    >>> gram = LowRankProducts(X, LowRank(rank=5)).gated([RBF(1.0)])
    >>> gram.is_low_rank, gram.n_weights
    (True, 5)
    """

    inner: LowRankProducts

    @cached_property
    def _maps(self) -> tuple[FeatureMap, FeatureMap]:
        return self.inner.maps(self.points)

    @property
    def features(self) -> FeatureMap:
        return self._maps[1]

    @cached_property
    def exact(self) -> GatedGram:
        inner = InnerProducts(self.inner.X, cache_size=self.inner.cache_size)
        return GatedGram.of(inner, self.points)

    @property
    def is_low_rank(self) -> bool:
        return True

    def kernel(self, gate: Gate, params: Array, names: Sequence[str] | None = None) -> GatedKernel:
        return GatedKernel(self.kernels, gate, params, names=names, features=self._maps[0])

    def expansion(self, kernel: GatedKernel, coef: Array, intercept: Array) -> Expansion:
        precise, rank = self._maps[0], self.gates.shape[2]
        loads = precise.loads(self.backward(coef))
        return LowRankExpansion(kernel, intercept, precise.plan, rank, precise, loads)

    @property
    def stored_features(self) -> Array | None:
        """Features of all samples without gates, (n_samples, size); None if they do not fit."""
        return self.inner.stored(self.features, self.points)

    @property
    def megabytes(self) -> float:
        """Size of the features of all samples."""
        return float(self.n_samples * self.features.size * self.dtype.itemsize / MEGABYTE)

    @property
    def fits(self) -> bool:
        """Whether the features of all samples fit the memory budget."""
        return self.megabytes <= self.inner.cache_size

    @property
    def needs_rows(self) -> bool:
        return False

    @property
    def n_weights(self) -> int:
        """Length of the weights of a function: features times the rank of the gates."""
        return int(self.features.size * self.gates.shape[2])

    def _reduce(self, coef: Callable[[slice, Array], Array], n_columns: int) -> Array:
        """Return sums of gated features times ``coef(part, tile)``, (size, rank, n_columns).

        Coefficients of a tile are (n_rows, n_columns).
        """
        size, rank = self.features.size, self.gates.shape[2]

        def visit(part: slice, tile: Array, sums: Array) -> None:
            gates = self.gates[part][:, :, :, np.newaxis]
            loads = gates * coef(part, tile)[:, np.newaxis, np.newaxis]
            flat = loads.reshape(*loads.shape[:2], -1)
            flat = flat.astype(tile.dtype if self.fits else np.float64, copy=False)
            add_by_kernel(tile, self.features.starts, flat, sums)

        zeros = np.zeros((rank * n_columns, size))
        sums = self.features.sweep(self.points, visit, zeros, self.stored_features)
        weights = np.ascontiguousarray(sums.T).reshape(size, rank, n_columns)
        return weights if self.fits else self.features.gathered(weights)

    def _loads(self, weights: Array) -> Array:
        """Return the factors of tiles from weights of features, in the precision they need."""
        if self.fits:
            return weights.astype(self.dtype, copy=False)
        # Loads are large and cancel: they are multiplied in double precision.
        return self.features.loads(weights)

    def _values(self, part: slice, tile: Array, loads: Array) -> Array:
        """Return values of functions at the samples of a tile, (n_rows, n_functions)."""
        sums = sum_by_kernel(tile, self.features.starts, loads)
        return np.asarray(np.einsum("jirt,jir->jt", sums, self.gates[part]))

    def forward_by_kernel(self, weights: Array) -> Array:
        """Return ``<w_ir, phi_i(x_j)>`` at all samples, (n_samples, n_kernels, ...).

        Weights are (size, ...).
        """
        return self.features.sums(self.points, self._loads(weights), self.stored_features)

    def forward(self, weights: Array) -> Array:
        """Return values of functions at all samples, (n_samples, n_functions).

        Weights are (size, rank, n_functions).
        """
        loads = self._loads(weights)
        return self._map(lambda part, tile: self._values(part, tile, loads), weights.shape[2])

    def _map(self, function: Callable[[slice, Array], Array], width: int) -> Array:
        """Return ``function(part, tile)`` of all tiles, (n_samples, width)."""
        return self.features.map(self.points, function, (width,), self.stored_features)

    def backward(self, coef: Array) -> Array:
        """Return ``w_ir = sum_j h_ir(j) coef_jt phi_i(x_j)``, (size, rank, n_columns)."""
        return self._reduce(lambda part, _: coef[part], coef.shape[1])

    def curved(self, weights: Array, scale: Array) -> Array:
        """Return :meth:`backward` of the values of one function times `scale`, in one pass.

        Weights and result are (size, rank, 1), `scale` is (n_samples,).
        """
        loads = self._loads(weights)
        return self._reduce(
            lambda part, tile: scale[part, np.newaxis] * self._values(part, tile, loads), 1
        )

    def gated_rows(self, index: Array) -> Array:
        """Return gated features of some samples, (len(index), n_weights)."""
        return self.features.gated(self._ungated_rows(index), self.gates[index])

    def _ungated_rows(self, index: Array) -> Array:
        """Return features of some samples without gates, (len(index), size)."""
        stored = self.stored_features
        return self.features.features(self.points, index) if stored is None else stored[index]

    def _squared_norms(self, tile: Array) -> Array:
        if not self.fits:
            self.features.whiten(tile)
        return squared_norms_by_kernel(tile, self.features.spans)

    @cached_property
    def _diag(self) -> Array:
        norms = self._map(lambda _, tile: self._squared_norms(tile), self.plan.n_kernels)
        return read_only(((self.gates**2).sum(axis=2) * norms).sum(axis=1))

    def _compute_whole(self, matrix: Array) -> None:
        rows = np.arange(self.n_samples)
        self._compute(rows, matrix, rows)

    def cross(self, rows: Array, columns: Array) -> Array:
        return multiply(self.gated_rows(rows), self.gated_rows(columns).T)

    def _compute(self, index: Array, slab: Array, slots: Array) -> None:
        near = self.gated_rows(index)
        step = max(_BLOCK // max(self.n_weights, 1), _FEWEST_ROWS)
        for part in slices(self.n_samples, step):
            far = self.gated_rows(np.arange(part.start, part.stop))
            slab[slots, part] = multiply(near, far.T)

    def rows_by_kernel(self, index: Array) -> Array:
        index = np.asarray(index, dtype=np.intp)
        rows = self.forward_by_kernel(self._ungated_rows(index).T).transpose(2, 1, 0)
        gates = self.gates[:, :, 0]
        return np.asarray((rows * gates[index][:, :, np.newaxis] * gates.T).astype(self.dtype))

    def subtract(self, index: Array, coef: Array, target: Array) -> None:
        if len(index):
            full = np.zeros(self.n_samples)
            full[index] = coef
            target -= self.dot(full)

    def dot(self, coef: Array) -> Array:
        product = self.forward(self.backward(column(coef)))
        return product if coef.ndim == 2 else product[:, 0]

    def kernel_sums(self, coef: Array) -> Array:
        return self.forward_by_kernel(self.backward(column(coef)))

    def gate_gradient(self, coef: Array) -> Array:
        sums = self.kernel_sums(coef)
        return np.asarray(-np.einsum("jirt,jt->jir", sums, column(coef)))

    def kernel_forms(self, coef: Array) -> Array:
        squares = (self.backward(column(coef)) ** 2).sum(axis=2)
        return np.stack([squares[span].sum(axis=0) for span in self.features.spans])
