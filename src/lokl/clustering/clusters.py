"""Clusters in the feature space of the average kernel, for any sample."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl._threads import multiply
from lokl.clustering.kernel_kmeans import (
    Partition,
    exact_geometry,
    kernel_kmeans,
    landmark_geometry,
)
from lokl.gates import Constant
from lokl.gates.base import masked_softmax
from lokl.gram import Expansion, GatedGram, GatedKernel
from lokl.kernels import Kernel

# Up to here the matrix of the clustered samples is kept in memory.
_STORED = 4096
# Up to here everything is float64.
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
        return np.asarray(self.square_norms - 2.0 * self.centres(X))

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


def find_clusters(
    kernels: Sequence[Kernel],
    X: Any,
    filled: Any,
    present: Array | None,
    weight: Array,
    *,
    n_clusters: int,
    rng: np.random.RandomState,
    how: str = "auto",
    sample_size: int = 1000,
    sharpness: float | None = None,
    names: Sequence[str] | None = None,
) -> tuple[Clusters, Array]:
    """Cluster samples by kernel k-means with the average of the kernels.

    Returns the clusters and the samples' distances to their centres.

    Parameters
    ----------
    kernels : sequence of bound Kernel
    X : {array, CSR matrix} of shape (n_samples, n_features)
        NaN where a view is missing.
    filled, present : as from :func:`lokl.kernels.presence.split_missing`
    weight : array of shape (n_samples,)
    n_clusters : int
    rng : RandomState
    how : {"auto", "exact", "sample", "approximate"}, default="auto"
        All samples; a random sample of them; or all samples with centres in the span of a random
        sample. "auto" is "exact" up to `sample_size` samples, "sample" beyond.
    sample_size : int, default=1000
    sharpness : float or None, default=None
        None is the reciprocal of the mean distance of the samples to their own centre.
    names : sequence of str, optional
        Of the kernels.
    """
    n, m = X.shape[0], len(kernels)
    if how == "auto":
        how = "exact" if n <= sample_size else "sample"
    if how not in ("exact", "sample", "approximate"):
        raise ValueError(
            f"clustering must be 'auto', 'exact', 'sample' or 'approximate', got {how!r}"
        )
    gate = Constant()
    params = gate.init(X, m, rng)
    chosen = np.arange(n)
    if how != "exact" and n > sample_size:
        chosen = np.sort(rng.choice(n, size=sample_size, replace=False, p=weight / weight.sum()))
    # Where so many samples are averaged over, float32 is exact enough.
    dtype = "float64" if n <= _EXACT else "auto"
    gram = GatedGram(kernels, filled, gate(X, params, present), dtype=dtype)
    if how == "approximate":
        block = gram.cross(chosen, np.arange(n))
        geometry = landmark_geometry(gram.diag(), block, chosen)
        partition = kernel_kmeans(geometry, weight, n_clusters, rng)
    else:
        sampled = weight if how == "exact" else np.ones(len(chosen))
        partition = _partition(gram, chosen, sampled, n_clusters, rng)
    found = partition.centres.shape[1]
    if found < n_clusters:
        warnings.warn(
            f"there are only {found} distinct samples for {n_clusters} clusters; "
            f"{found} clusters are used",
            UserWarning,
            stacklevel=4,
        )
    coef = np.zeros((n, found))
    coef[chosen] = partition.centres
    kernel = GatedKernel(kernels, gate, params, names=names)
    centres = Expansion.make(kernel, gram, coef, np.zeros(found))
    products = gram.mixture.product(gram.points, centres.points, centres.coef)
    square_norms = (coef * products).sum(axis=0)
    distances = gram.diag()[:, np.newaxis] - 2.0 * products + square_norms
    if sharpness is None:
        mean = float(weight @ np.maximum(distances.min(axis=1), 0.0)) / float(weight.sum())
        sharpness = 1.0 / mean if mean > 0 else 1.0
    return Clusters(centres, square_norms, sharpness), distances


def _partition(
    gram: GatedGram, chosen: Array, weight: Array, n_clusters: int, rng: np.random.RandomState
) -> Partition:
    """Kernel k-means proper on the chosen samples."""
    diag = gram.diag()[chosen]
    if len(chosen) <= _STORED:
        K = gram.block(chosen)
        geometry = exact_geometry(
            diag, lambda coef: multiply(K, coef.astype(K.dtype)), lambda j: K[j]
        )
    else:
        # Too large to keep: the matrix is computed anew in every round.
        part = gram.points.take(chosen)
        geometry = exact_geometry(
            diag,
            lambda coef: gram.mixture.product(part, part, coef),
            lambda j: gram.mixture.block(part.take(np.array([j])), part)[0],
        )
    return kernel_kmeans(geometry, weight, n_clusters, rng)
