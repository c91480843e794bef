"""Kernel PCA: coordinates of samples that are known by kernel values only."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lokl._arrays import Array
from lokl._samples import Samples, sample_weight
from lokl.gates.representation import Standardized
from lokl.gram.expansion import Expansion
from lokl.gram.gated_kernel import average_kernel
from lokl.kernels.base import Kernel

_LANDMARKS = 500
# Directions with less than this share of the largest variance are rounding.
_NOISE = 1e-9


@dataclass(frozen=True, eq=False)
class KernelScores:
    """Leading kernel-PCA scores under the average kernel, standardised."""

    directions: Expansion  # scores of a sample
    scale: Standardized

    @classmethod
    def learn(
        cls,
        kernels: Sequence[Kernel],
        samples: Samples,
        rng: np.random.RandomState,
        n_components: int = 10,
    ) -> "KernelScores":
        """Learn directions from at most 500 samples, drawn by their weight."""
        n, weight = samples.n_samples, sample_weight(samples)
        kernel = average_kernel(kernels)
        gram = kernel.gram(samples, dtype="float64")
        chosen, share = np.arange(n), weight / weight.sum()
        if n > _LANDMARKS:
            chosen = np.sort(rng.choice(n, size=_LANDMARKS, replace=False, p=share))
            share = np.full(_LANDMARKS, 1.0 / _LANDMARKS)
        K = gram.block(chosen)
        means = K @ share
        centred = K - means - means[:, np.newaxis] + share @ means
        root = np.sqrt(share)
        values, vectors = np.linalg.eigh(root[:, np.newaxis] * centred * root)
        keep = np.flatnonzero(values > _NOISE * values[-1])[::-1][:n_components]
        loads = root[:, np.newaxis] * vectors[:, keep]
        # Signs of eigenvectors are arbitrary: the largest score shall be positive. Scores, unlike
        # loads, do not depend on whether a row is written twice or has a weight of 2.
        scores = loads / share[:, np.newaxis]
        loads *= np.sign(scores[np.abs(scores).argmax(axis=0), np.arange(len(keep))])
        coef = np.zeros((n, len(keep)))
        coef[chosen] = loads - np.outer(share, loads.sum(axis=0))
        directions = Expansion.make(kernel, gram, coef, np.zeros(len(keep)))
        return cls(directions, Standardized.learn(directions(samples), weight))

    def __call__(self, samples: Samples) -> Array:
        return np.asarray(self.scale(self.directions(samples)))
