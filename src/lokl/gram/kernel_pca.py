"""Kernel PCA: coordinates of samples from kernel values alone."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lokl._arrays import Array, Samples, sample_weight
from lokl.gates.representation import Standardized
from lokl.gram.gated_kernel import Expansion, average_kernel
from lokl.kernels.base import Kernel

# Samples that span the components; of more samples, some are drawn.
_MOST_SAMPLES = 500
# Components with less than this share of the largest variance are rounding.
_NOISE = 1e-9


@dataclass(frozen=True, eq=False)
class PrincipalComponents:
    """Leading principal components in feature space.

    The scores of a sample with kernel values ``k``, (n_samples,), are ``k @ coef + offset``.

    Attributes
    ----------
    coef : array of shape (n_samples, n_components)
    offset : array of shape (n_components,)
    variance : array of shape (n_components,)
        Variance of the scores, largest first.
    total : float
        Variance of all components together.
    """

    coef: Array
    offset: Array
    variance: Array
    total: float


def kernel_pca(K: Array, weight: Array | None = None, n_components: int = 2) -> PrincipalComponents:
    """Compute principal components from a kernel matrix.

    Parameters
    ----------
    K : array of shape (n_samples, n_samples)
    weight : array of shape (n_samples,), optional
        A weight of 2 counts like the sample written twice.
    n_components : int, default=2
        Number of components at most; components without variance are left out.
    """
    weight = np.ones(len(K)) if weight is None else weight
    share = weight / weight.sum()
    means = K @ share
    centred = K - means - means[:, np.newaxis] + share @ means
    root = np.sqrt(share)
    values, vectors = np.linalg.eigh(root[:, np.newaxis] * centred * root)
    keep = np.flatnonzero(values > _NOISE * max(values[-1], 0.0))[::-1][:n_components]
    loads = root[:, np.newaxis] * vectors[:, keep] / np.sqrt(values[keep])
    # Signs of eigenvectors are arbitrary: the largest score is made positive. Scores, unlike loads,
    # do not depend on whether a row is written twice or has a weight of 2.
    scores = loads / share[:, np.newaxis]
    loads *= np.sign(scores[np.abs(scores).argmax(axis=0), np.arange(len(keep))])
    coef = loads - np.outer(share, loads.sum(axis=0))
    return PrincipalComponents(coef, -(means @ coef), values[keep], float(values.sum()))


@dataclass(frozen=True, eq=False)
class KernelScores:
    """Leading kernel-PCA scores under the average kernel, standardised.

    Attributes
    ----------
    components : Expansion
        Scores of a sample.
    scale : Standardized
    """

    components: Expansion
    scale: Standardized

    @classmethod
    def learn(
        cls,
        kernels: Sequence[Kernel],
        samples: Samples,
        rng: np.random.RandomState,
        n_components: int = 10,
    ) -> "KernelScores":
        """Learn components from at most 500 samples, drawn by their weight."""
        n, weight = samples.n_samples, sample_weight(samples)
        kernel = average_kernel(kernels)
        gram = kernel.gram(samples, dtype="float64")
        rows, row_weight = np.arange(n), weight
        if n > _MOST_SAMPLES:
            share = weight / weight.sum()
            rows = np.sort(rng.choice(n, size=_MOST_SAMPLES, replace=False, p=share))
            row_weight = np.ones(_MOST_SAMPLES)
        pca = kernel_pca(gram.block(rows), row_weight, n_components)
        coef = np.zeros((n, pca.coef.shape[1]))
        coef[rows] = pca.coef
        components = Expansion.make(kernel, gram, coef, pca.offset)
        return cls(components, Standardized.learn(components(samples), weight))

    def __call__(self, samples: Samples) -> Array:
        return np.asarray(self.scale(self.components(samples)))
