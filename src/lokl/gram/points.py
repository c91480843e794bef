"""Samples made ready for a list of kernels."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl.gram.features import Features


@dataclass(eq=False)
class Points:
    """Samples: features of each view, gates, and the normalisation of each kernel.

    Attributes
    ----------
    X : {array, CSR matrix} of shape (n_samples, n_features)
    features : tuple of Features
        One for each view.
    gates : array of shape (n_samples, n_kernels, rank)
    scales : array of shape (n_samples, n_kernels)
    """

    X: Any
    features: tuple[Features, ...]
    gates: Array
    scales: Array
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
        part = Points(
            self.X[index],
            tuple(features.take(index) for features in self.features),
            self.gates[index],
            self.scales[index],
            self.dtype,
        )
        if self.weights is not None and part.n_samples:
            part.weights = self.weights
        return part

    def regated(self, gates: Array) -> "Points":
        """Return the same samples under other gates; features are shared."""
        return Points(self.X, self.features, as_rank(gates), self.scales, self.dtype)


def as_rank(gates: Array) -> Array:
    """Gate values with the rank as third axis."""
    gates = np.asarray(gates, dtype=np.float64)
    return gates[:, :, np.newaxis] if gates.ndim == 2 else gates
