"""The learned gated kernel, a kernel like any other."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lokl._arrays import Array, as_samples
from lokl.gates.base import Gate
from lokl.gram.mixture import Mixture
from lokl.gram.points import Points
from lokl.kernels.base import Kernel
from lokl.kernels.presence import split_missing


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

    def gates(self, X: Any) -> tuple[Any, Array]:
        """Samples without NaN, and their gate values."""
        X = as_samples(X)
        names = self.names or [kernel.label for kernel in self.kernels]
        filled, present = split_missing(self.kernels, names, X)
        return filled, self.gate(X, self.params, present)

    def mixture(self, X: Any, dtype: Any = np.float64) -> Mixture:
        """Return the plan to compute this kernel on samples like `X`."""
        return Mixture(self.kernels, X, dtype, self.pair_normalized)

    def points(self, mixture: Mixture, X: Any) -> Points:
        """Samples made ready for the mixture."""
        X, H = self.gates(X)
        return mixture.points(X, H)

    def __call__(self, X: Any, Z: Any = None) -> Array:
        filled, _ = self.gates(X)
        mixture = self.mixture(filled)
        left = self.points(mixture, X)
        return mixture.block(left, left if Z is None else self.points(mixture, Z))

    def diag(self, X: Any) -> Array:
        filled, _ = self.gates(X)
        mixture = self.mixture(filled)
        return mixture.diag(self.points(mixture, X))

    @property
    def label(self) -> str:
        return f"gated({', '.join(self.names or [k.label for k in self.kernels])})"
