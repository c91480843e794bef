"""The learned kernel of low rank, and functions that are sums of few columns of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl._samples import Samples
from lokl._threads import one_pool
from lokl.gates.base import Gate
from lokl.gram.expansion import Expansion
from lokl.gram.feature_maps import FeatureMap
from lokl.gram.gated_gram import GatedGram
from lokl.gram.gated_kernel import GatedKernel
from lokl.gram.plan import Plan, Points
from lokl.kernels.base import Kernel


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
    def plan(self) -> Plan:
        return self.features.plan

    @property
    def rank(self) -> int:
        return int(self.loads.shape[1])

    @property
    def residual(self) -> Array:
        return self.features.residual

    def parts(self, points: Points) -> Array:
        with one_pool(points.n_samples):
            sums = self.features.sums(points, self.loads)
        return np.asarray(np.einsum("jir,jirt->jit", points.gates, sums))

    def at(self, points: Points) -> Array:
        return np.asarray(self.parts(points).sum(axis=1) + self.intercept)
