"""Clusters in the feature space of the average kernel, for any sample."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl._checks import check_choice
from lokl._notices import tell
from lokl._samples import Samples, sample_weight
from lokl._threads import multiply
from lokl.clustering.kernel_kmeans import (
    Geometry,
    Partition,
    exact_geometry,
    kernel_kmeans,
    landmark_geometry,
)
from lokl.gates.base import masked_softmax
from lokl.gram import Expansion, GatedGram
from lokl.gram.gated_kernel import average_kernel
from lokl.kernels import Kernel

_WAYS = ("auto", "exact", "sample", "approximate")
# The matrix of up to so many clustered samples is kept in memory.
_STORED = 4096
# Up to so many samples are clustered in float64.
_EXACT = 2048


@dataclass(frozen=True, eq=False)
class Clusters:
    """Cluster centres, and how far a sample belongs to each.

    Attributes
    ----------
    centres : Expansion
        Inner products of the centres with a sample.
    square_norms : array of shape (n_clusters,)
        Of the centres.
    sharpness : float
        Memberships are ``softmax(-sharpness * distance)``; infinity makes them zero or one.
    """

    centres: Expansion
    square_norms: Array
    sharpness: float

    @property
    def n_clusters(self) -> int:
        return len(self.square_norms)

    def distances(self, X: Any) -> Array:
        """Squared distances to the centres, without the sample's own norm: (n, n_clusters)."""
        samples = X if isinstance(X, Samples) else self.centres.kernel.samples(X)
        return np.asarray(self.square_norms - 2.0 * self.centres(samples))

    def assign(self, X: Any) -> Array:
        """Number of the nearest centre of every sample."""
        return np.asarray(self.distances(X).argmin(axis=1))

    def memberships(self, X: Any) -> Array:
        """How far every sample belongs to every cluster; rows sum to one."""
        return self.shares(self.distances(X))

    def shares(self, distances: Array) -> Array:
        """Return memberships from squared distances."""
        if np.isinf(self.sharpness):
            return np.asarray(np.eye(self.n_clusters)[distances.argmin(axis=1)])
        return masked_softmax(-self.sharpness * distances, None)


@dataclass(frozen=True, eq=False)
class NearestCentre:
    """Number of the nearest centre of every sample.

    An object, not a method: models that are stored in files hold no code.
    """

    clusters: Clusters

    def __call__(self, X: Any) -> Array:
        return self.clusters.assign(X)


@dataclass(frozen=True)
class Clustering:
    """How samples are divided.

    Attributes
    ----------
    n_clusters : int
    how : {"auto", "exact", "sample", "approximate"}
        All samples; a random sample of them; or all samples with centres in the span of a random
        sample. "auto" is "exact" up to `sample_size` samples, "sample" beyond.
    sample_size : int
    sharpness : float or None
        Of the memberships; None is the reciprocal of the mean distance of the samples to their own
        centre.
    """

    n_clusters: int
    how: str = "auto"
    sample_size: int = 1000
    sharpness: float | None = None

    def __post_init__(self) -> None:
        check_choice("clustering", self.how, _WAYS)

    def find(
        self,
        kernels: Sequence[Kernel],
        names: Sequence[str],
        samples: Samples,
        rng: np.random.RandomState,
    ) -> tuple[Clusters, Array]:
        """Cluster samples by kernel k-means with the average of bound kernels.

        Returns the clusters and the samples' distances to their centres.
        """
        n, weight = samples.n_samples, sample_weight(samples)
        # Where so many samples are averaged over, float32 is exact enough.
        kernel = average_kernel(kernels, names)
        gram = kernel.gram(samples, dtype="float64" if n <= _EXACT else "auto")
        chosen, partition = self._partition(gram, weight, rng)
        found = partition.centres.shape[1]
        if found < self.n_clusters:
            tell(
                "clusters",
                f"there are only {found} distinct samples for {self.n_clusters} clusters; "
                f"{found} clusters are used",
            )
        coef = np.zeros((n, found))
        coef[chosen] = partition.centres
        products = gram.dot(coef)
        square_norms = (coef * products).sum(axis=0)
        distances = gram.diag()[:, np.newaxis] - 2.0 * products + square_norms
        sharpness = self.sharpness
        if sharpness is None:
            mean = float(weight @ np.maximum(distances.min(axis=1), 0.0)) / float(weight.sum())
            sharpness = 1.0 / mean if mean > 0 else 1.0
        centres = Expansion.make(kernel, gram, coef, np.zeros(found))
        return Clusters(centres, square_norms, sharpness), distances

    def _partition(
        self, gram: GatedGram, weight: Array, rng: np.random.RandomState
    ) -> tuple[Array, Partition]:
        """Which samples are landmarks, and the clusters as combinations of them."""
        n, chosen = gram.n_samples, np.arange(gram.n_samples)
        how = self.how
        if how == "auto":
            how = "exact" if n <= self.sample_size else "sample"
        if how != "exact" and n > self.sample_size:
            share = weight / weight.sum()
            chosen = np.sort(rng.choice(n, size=self.sample_size, replace=False, p=share))
        if how == "approximate":
            block = gram.cross(chosen, np.arange(n))
            geometry = landmark_geometry(gram.diag(), block, chosen)
            return chosen, kernel_kmeans(geometry, weight, self.n_clusters, rng)
        counted = weight if how == "exact" else np.ones(len(chosen))
        return chosen, kernel_kmeans(_geometry(gram, chosen), counted, self.n_clusters, rng)


def _geometry(gram: GatedGram, chosen: Array) -> Geometry:
    """Distances among the chosen samples in the feature space of a kernel."""
    diag = gram.diag()[chosen]
    if len(chosen) <= _STORED:
        K = gram.block(chosen)
        return exact_geometry(diag, lambda coef: multiply(K, coef.astype(K.dtype)), lambda j: K[j])

    # Too large to keep: the matrix is computed anew in every round.
    part = gram.inner.take(chosen).gated(gram.kernels, gram.gates[chosen])
    everyone = np.arange(len(chosen))
    return exact_geometry(diag, part.dot, lambda j: part.cross(everyone[j : j + 1], everyone)[0])
