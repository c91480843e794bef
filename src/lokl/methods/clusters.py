"""Kernel k-means: Lloyd's iterations on inner products alone.

Clusters in the feature space of the average kernel, for any sample.

Settings of methods that divide the samples into clusters first.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lokl._arrays import Array, Samples, sample_weight
from lokl._parameters import check_choice
from lokl._threads import multiply
from lokl._warnings import warn_once
from lokl.base.settings import count, one_of, setting
from lokl.base.training import Training
from lokl.gates.base import masked_softmax
from lokl.gram import Expansion, GatedGram
from lokl.gram.gated_kernel import average_kernel
from lokl.kernels import Kernel

Multiply = Callable[[Array], Array]

_ROUNDS = 100


@dataclass(frozen=True, eq=False)
class Partition:
    """A partition of the samples."""

    labels: Array  # (n_samples,)
    centres: Array  # (n_landmarks, n_clusters), each centre as a combination of landmarks
    distances: Array  # (n_samples, n_clusters), squared, in feature space
    inertia: float  # weighted sum of the distances to the own centres


@dataclass(frozen=True, eq=False)
class Geometry:
    """What Lloyd's iterations ask of a kernel."""

    diag: Array  # (n_samples,)
    column: Callable[[int], Array]  # kernel values of one sample with all
    combine: Multiply  # averages over samples (n_samples, L) -> combinations of landmarks
    products: Callable[[Array], tuple[Array, Array]]  # of combinations with samples, and own norms

    def distances(self, centres: Array) -> Array:
        """Squared distances of every sample to every centre."""
        products, norms = self.products(centres)
        return np.maximum(self.diag[:, np.newaxis] - 2.0 * products + norms, 0.0)


def exact_geometry(diag: Array, multiply: Multiply, column: Callable[[int], Array]) -> Geometry:
    """Every sample is a landmark: kernel k-means proper; `multiply` is ``K @ coef``."""

    def products(centres: Array) -> tuple[Array, Array]:
        values = multiply(centres)
        return values, (centres * values).sum(axis=0)

    return Geometry(diag, column, lambda averages: averages, products)


def landmark_geometry(diag: Array, block: Array, landmarks: Array) -> Geometry:
    """Centres live in the span of some landmarks; `block` is ``K[landmarks]``."""
    own = block[:, landmarks]
    inverse = np.linalg.pinv(own, rcond=1e-10, hermitian=True)

    def products(centres: Array) -> tuple[Array, Array]:
        return block.T @ centres, (centres * (own @ centres)).sum(axis=0)

    def combine(averages: Array) -> Array:
        return np.asarray(inverse @ (block @ averages))

    def column(j: int) -> Array:
        # The inner product of the two samples' projections on the span.
        return np.asarray(block.T @ (inverse @ block[:, j]))

    return Geometry(diag, column, combine, products)


def kernel_kmeans(
    geometry: Geometry, weight: Array, n_clusters: int, rng: np.random.RandomState, n_init: int = 10
) -> Partition:
    """Best of several runs of Lloyd's iterations, each from k-means++ centres.

    All runs go on together: one product with the kernel matrix serves them all. A sample of weight
    2 counts like one written twice, also in the random start: draws go through the samples in the
    order of their distance from the common mean. Fewer clusters come back where there are fewer
    distinct samples.
    """
    share = weight / weight.sum()
    from_mean = geometry.distances(geometry.combine(share[:, np.newaxis]))[:, 0]
    order = np.argsort(from_mean, kind="stable")
    starts = [_spread_out(geometry, weight, n_clusters, order, rng) for _ in range(n_init)]
    # Runs that find fewer distinct samples than others have fewer clusters: they are left out.
    most = max(int(labels.max()) for labels in starts) + 1
    labels = np.array([found for found in starts if int(found.max()) + 1 == most])
    return _lloyd(geometry, weight, labels, most)


def _spread_out(
    geometry: Geometry, weight: Array, n_clusters: int, order: Array, rng: np.random.RandomState
) -> Array:
    """Labels by the nearest of k-means++ centres: each new one is drawn far from those before."""
    draws = rng.uniform(size=n_clusters)
    floor = 1e-10 * max(float(np.abs(geometry.diag).max()), np.finfo(float).tiny)
    near = np.ones(len(weight))
    nearest = np.full(len(weight), np.inf)
    labels = np.zeros(len(weight), dtype=np.intp)
    for k, draw in enumerate(draws):
        mass = np.cumsum((weight * near)[order])
        place = int(np.searchsorted(mass, draw * mass[-1], side="right"))
        chosen = int(order[min(place, len(order) - 1)])
        distance = geometry.diag - 2.0 * geometry.column(chosen) + geometry.diag[chosen]
        closer = distance < nearest
        labels[closer] = k
        nearest = np.where(closer, distance, nearest)
        near = np.where(nearest > floor, nearest, 0.0)
        if not (weight * near).any():
            break
    return np.asarray(np.unique(labels, return_inverse=True)[1])


def _lloyd(geometry: Geometry, weight: Array, labels: Array, n_clusters: int) -> Partition:
    """Iterate all runs, (n_runs, n_samples) labels, until none changes; return the best."""
    runs, n = labels.shape
    labels, everyone = labels.copy(), np.arange(n)
    found: list[Any] = [None] * runs
    active = np.arange(runs)
    for _ in range(_ROUNDS):
        mass = np.zeros((n, len(active), n_clusters))
        for place, run in enumerate(active):
            mass[everyone, place, labels[run]] = weight
        shares = (mass / mass.sum(axis=0)).reshape(n, len(active) * n_clusters)
        centres = geometry.combine(shares)
        distances = geometry.distances(centres).reshape(n, len(active), n_clusters)
        centres = centres.reshape(len(centres), len(active), n_clusters)
        moving = []
        for place, run in enumerate(active):
            own = distances[:, place]
            new = _fill_empty(own.argmin(axis=1), own, n_clusters)
            found[run] = (new, centres[:, place], own)
            if (new != labels[run]).any():
                moving.append(run)
            labels[run] = new
        active = np.array(moving, dtype=np.intp)
        if not len(active):
            break
    inertia = np.array([weight @ own[everyone, new] for new, _, own in found])
    # Of runs that differ by rounding only, the first is taken.
    best = int(np.flatnonzero(inertia <= inertia.min() * (1.0 + 1e-9))[0])
    labels_found, centres_found, own = found[best]
    return Partition(labels_found, centres_found, own, float(inertia[best]))


def _fill_empty(labels: Array, distances: Array, n_clusters: int) -> Array:
    """Give every empty cluster the sample that is farthest from its own centre."""
    counts = np.bincount(labels, minlength=n_clusters)
    empty_ones = np.flatnonzero(counts == 0)
    if not len(empty_ones):
        return labels
    labels = labels.copy()
    for empty in empty_ones:
        own = distances[np.arange(len(labels)), labels]
        movable = np.where(counts[labels] > 1, own, -np.inf)
        mover = int(movable.argmax())
        counts[labels[mover]] -= 1
        labels[mover] = empty
        counts[empty] = 1
    return labels


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
            warn_once(
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


N_CLUSTERS: Any = setting(3, count(), "Number of clusters.")
CLUSTERING: Any = setting(
    "auto",
    one_of("auto", "exact", "sample", "approximate"),
    "Cluster all samples; a random sample of them; or all with centres in the span of a random "
    'sample. "auto" is "exact" up to `sample_size` samples, "sample" beyond.',
)
SAMPLE_SIZE: Any = setting(1000, count(), "Number of samples that are drawn for clustering.")


def find_clusters(
    learner: Any, training: Training, sharpness: float | None
) -> tuple[Clusters, Array]:
    """Divide the training samples as the settings of a method say."""
    how = Clustering(learner.n_clusters, learner.clustering, learner.sample_size, sharpness)
    rng = training.rng
    return training.cache.cached(
        "clusters",
        lambda: how.find(training.kernels, training.names, training.samples, rng),
        rng,
    )
