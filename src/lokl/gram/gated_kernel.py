"""The learned gated kernel, a kernel like any other."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lokl._arrays import Array, as_samples
from lokl._samples import Samples
from lokl.gates.base import Gate
from lokl.gates.constant import Constant
from lokl.gram import mixing
from lokl.gram.gated_gram import GatedGram
from lokl.gram.inner_products import InnerProducts
from lokl.gram.plan import Points
from lokl.kernels.base import Kernel
from lokl.kernels.presence import read_samples


class GatedKernel(Kernel):
    """``k(x, z) = sum_i <h_i(x), h_i(z)> k_i(x, z)`` with learned gate parameters.

    Parameters
    ----------
    kernels : sequence of Kernel
        Bound kernels.
    gate : Gate
    params : array
        Learned parameters of the gate.
    pair_normalized : bool, default=False
    names : sequence of str, optional
        Of the kernels.
    """

    def __init__(
        self,
        kernels: Sequence[Kernel],
        gate: Gate,
        params: Array,
        pair_normalized: bool = False,
        names: Sequence[str] | None = None,
    ):
        self.kernels = kernels
        self.gate = gate
        self.params = params
        self.pair_normalized = pair_normalized
        self.names = names

    def samples(self, X: Any) -> Samples:
        """Return rows as samples of its kernels, whole views of which may be missing."""
        return read_samples(self.kernels, self._names(), as_samples(X))

    def gates(self, samples: Samples) -> Array:
        """Gate values of samples, (n_samples, n_kernels) or (n_samples, n_kernels, rank)."""
        return self.gate.at(samples, self.params)

    @property
    def residual(self) -> Array:
        """How far the machine's kernel misses each of the kernels: not at all."""
        return np.zeros(len(self.kernels))

    def gram(self, samples: Samples, dtype: Any = "auto") -> GatedGram:
        """Return its matrix on samples."""
        inner = InnerProducts(samples.filled, dtype=dtype)
        gates = self.gates(samples)
        return inner.gated(self.kernels, gates, pair_normalized=self.pair_normalized)

    def __call__(self, X: Any, Z: Any = None) -> Array:
        left = self._points(X)
        if Z is None:
            return mixing.block(left, left)
        samples = self.samples(Z)
        return mixing.block(left, Points.make(left.plan, samples.filled, self.gates(samples)))

    def diag(self, X: Any) -> Array:
        return mixing.diag(self._points(X))

    @property
    def label(self) -> str:
        return f"gated({', '.join(self._names())})"

    def _points(self, X: Any) -> Points:
        samples = self.samples(X)
        inner = InnerProducts(samples.filled, dtype=np.float64)
        return inner.prepare(self.kernels, self.gates(samples), self.pair_normalized)

    def _names(self) -> list[str]:
        return list(self.names or [kernel.label for kernel in self.kernels])


def average_kernel(kernels: Sequence[Kernel], names: Sequence[str] | None = None) -> GatedKernel:
    """Return the average of bound kernels; of one kernel, that kernel."""
    params = np.full(len(kernels), 1.0 / len(kernels))
    return GatedKernel(kernels, Constant(), params, names=names)
