"""Clusters in the feature space of the average kernel, by kernel k-means."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lokl._arrays import Array, Samples
from lokl._threads import multiply
from lokl._warnings import warn_once
from lokl.base.settings import count, one_of, setting
from lokl.base.training import Training
from lokl.gates.base import masked_softmax
from lokl.gram import Expansion, GatedGram
from lokl.gram.gated_kernel import average_kernel

__all__ = ["Clusters"]

Multiply = Callable[[Array], Array]

_ROUNDS = 100
# Largest number of clustered samples whose matrix is kept in memory.
_STORED = 4096
# Largest number of samples that are clustered in float64.
_EXACT = 2048


@dataclass(frozen=True, eq=False)
class KMeansResult:
    """Labels and centres of kernel k-means."""

    labels: Array  # (n_samples,)
    centres: Array  # (n_landmarks, n_clusters), each centre as a combination of landmarks
    distances: Array  # (n_samples, n_clusters), squared, in feature space


@dataclass(frozen=True, eq=False)
class Geometry:
    """Kernel values that Lloyd's iterations need."""

    diag: Array  # (n_samples,)
    column: Callable[[int], Array]  # kernel values of one sample with all
    combine: Multiply  # averages over samples (n_samples, L) -> combinations of landmarks
    # Inner products of combinations with samples, and squared norms of combinations.
    products: Callable[[Array], tuple[Array, Array]]

    def distances(self, centres: Array) -> Array:
        """Return squared distances (n_samples, n_clusters)."""
        products, norms = self.products(centres)
        return np.maximum(self.diag[:, np.newaxis] - 2.0 * products + norms, 0.0)


def exact_geometry(diag: Array, multiply: Multiply, column: Callable[[int], Array]) -> Geometry:
    """Return the geometry of exact kernel k-means; `multiply` is ``K @ coef``."""

    def products(centres: Array) -> tuple[Array, Array]:
        values = multiply(centres)
        return values, (centres * values).sum(axis=0)

    return Geometry(diag, column, lambda averages: averages, products)


def landmark_geometry(diag: Array, block: Array, landmarks: Array) -> Geometry:
    """Return the geometry with centres in the span of landmarks; `block` is ``K[landmarks]``."""
    between = block[:, landmarks]
    inverse = np.linalg.pinv(between, rcond=1e-10, hermitian=True)

    def products(centres: Array) -> tuple[Array, Array]:
        return block.T @ centres, (centres * (between @ centres)).sum(axis=0)

    def combine(averages: Array) -> Array:
        return np.asarray(inverse @ (block @ averages))

    def column(j: int) -> Array:
        # The inner product of the two samples' projections on the span.
        return np.asarray(block.T @ (inverse @ block[:, j]))

    return Geometry(diag, column, combine, products)


def kernel_kmeans(
    geometry: Geometry, weight: Array, n_clusters: int, rng: np.random.RandomState, n_init: int = 10
) -> KMeansResult:
    """Return the best of several runs of Lloyd's iterations, each from k-means++ centres.

    All runs share one product with the kernel matrix per round. A weight of 2 equals a repeated
    row, also in the random start: samples are drawn in the order of their distance from the mean.
    There are fewer clusters if there are fewer distinct samples.
    """
    share = weight / weight.sum()
    from_mean = geometry.distances(geometry.combine(share[:, np.newaxis]))[:, 0]
    order = np.argsort(from_mean, kind="stable")
    starts = [_spread_out(geometry, weight, n_clusters, order, rng) for _ in range(n_init)]
    # Leave out runs with fewer clusters than others.
    most = max(int(labels.max()) for labels in starts) + 1
    labels = np.array([start for start in starts if int(start.max()) + 1 == most])
    return _lloyd(geometry, weight, labels, most)


def _spread_out(
    geometry: Geometry, weight: Array, n_clusters: int, order: Array, rng: np.random.RandomState
) -> Array:
    """Return labels of the nearest k-means++ centre; each centre is drawn far from the others."""
    draws = rng.uniform(size=n_clusters)
    floor = 1e-10 * max(float(np.abs(geometry.diag).max()), np.finfo(float).tiny)
    near = np.ones(len(weight))
    nearest = np.full(len(weight), np.inf)
    labels = np.zeros(len(weight), dtype=np.intp)
    for k, draw in enumerate(draws):
        mass = np.cumsum((weight * near)[order])
        position = int(np.searchsorted(mass, draw * mass[-1], side="right"))
        chosen = int(order[min(position, len(order) - 1)])
        distance = geometry.diag - 2.0 * geometry.column(chosen) + geometry.diag[chosen]
        closer = distance < nearest
        labels[closer] = k
        nearest = np.where(closer, distance, nearest)
        near = np.where(nearest > floor, nearest, 0.0)
        if not (weight * near).any():
            break
    return np.asarray(np.unique(labels, return_inverse=True)[1])


def _lloyd(geometry: Geometry, weight: Array, labels: Array, n_clusters: int) -> KMeansResult:
    """Iterate all runs until no label changes, and return the best; labels (n_runs, n_samples)."""
    runs, n = labels.shape
    labels, rows = labels.copy(), np.arange(n)
    results: list[Any] = [None] * runs
    active = np.arange(runs)
    for _ in range(_ROUNDS):
        mass = np.zeros((n, len(active), n_clusters))
        for k, run in enumerate(active):
            mass[rows, k, labels[run]] = weight
        shares = (mass / mass.sum(axis=0)).reshape(n, len(active) * n_clusters)
        centres = geometry.combine(shares)
        distances = geometry.distances(centres).reshape(n, len(active), n_clusters)
        centres = centres.reshape(len(centres), len(active), n_clusters)
        moving = []
        for k, run in enumerate(active):
            new = _fill_empty(distances[:, k].argmin(axis=1), distances[:, k], n_clusters)
            results[run] = KMeansResult(new, centres[:, k], distances[:, k])
            if (new != labels[run]).any():
                moving.append(run)
            labels[run] = new
        active = np.array(moving, dtype=np.intp)
        if not len(active):
            break
    inertia = np.array([weight @ result.distances[rows, result.labels] for result in results])
    # The first of runs that differ by rounding only.
    best: KMeansResult = results[np.flatnonzero(inertia <= inertia.min() * (1.0 + 1e-9))[0]]
    return best


def _fill_empty(labels: Array, distances: Array, n_clusters: int) -> Array:
    """Assign the sample farthest from its centre to every empty cluster."""
    counts = np.bincount(labels, minlength=n_clusters)
    empty_clusters = np.flatnonzero(counts == 0)
    if not len(empty_clusters):
        return labels
    labels = labels.copy()
    for empty in empty_clusters:
        distance = distances[np.arange(len(labels)), labels]
        movable = np.where(counts[labels] > 1, distance, -np.inf)
        mover = int(movable.argmax())
        counts[labels[mover]] -= 1
        labels[mover] = empty
        counts[empty] = 1
    return labels


@dataclass(frozen=True, eq=False)
class Clusters:
    """Cluster centres, and memberships of samples in the clusters.

    Calling the object is :meth:`assign`, so that it can be the input of a gate.

    Attributes
    ----------
    centres : Expansion
        Inner products of the centres with a sample.
    square_norms : array of shape (n_clusters,)
        Squared norms of the centres.
    sharpness : float
        Memberships are ``softmax(-sharpness * distance)``; infinity makes them zero or one.

    See Also
    --------
    lokl.CLMKLClassifier : Weights for each cluster.
    lokl.GSMKLClassifier : Weights for each group.
    lokl.gates.GroupGate : A gate on the index of the cluster.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from lokl import CLMKLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clusters = CLMKLClassifier(["rbf"], random_state=0).fit(X, y).clusters_
    >>> clusters.n_clusters
    3
    >>> clusters.memberships(X[:2]).shape
    (2, 3)
    """

    centres: Expansion
    square_norms: Array
    sharpness: float

    @property
    def n_clusters(self) -> int:
        return len(self.square_norms)

    def distances(self, X: Any) -> Array:
        """Return squared distances to the centres minus the norm of the sample, (n, n_clusters)."""
        samples = X if isinstance(X, Samples) else self.centres.kernel.samples(X)
        return np.asarray(self.square_norms - 2.0 * self.centres(samples))

    def assign(self, X: Any) -> Array:
        """Return the index of the nearest centre of every sample, (n_samples,)."""
        return np.asarray(self.distances(X).argmin(axis=1))

    __call__ = assign

    def memberships(self, X: Any) -> Array:
        """Return memberships (n_samples, n_clusters); rows sum to one."""
        return self.shares(self.distances(X))

    def shares(self, distances: Array) -> Array:
        """Return memberships from squared distances."""
        if np.isinf(self.sharpness):
            return np.asarray(np.eye(self.n_clusters)[distances.argmin(axis=1)])
        return masked_softmax(-self.sharpness * distances, None)


def _geometry(gram: GatedGram, chosen: Array) -> Geometry:
    """Return the geometry of chosen samples in the feature space of a kernel."""
    diag = gram.diag()[chosen]
    if len(chosen) <= _STORED:
        K = gram.block(chosen)
        return exact_geometry(diag, lambda coef: multiply(K, coef.astype(K.dtype)), lambda j: K[j])

    # Too large to keep: every round computes the matrix again.
    part = gram.inner.take(chosen).gated(gram.kernels, gram.gates[chosen])
    rows = np.arange(len(chosen))
    return exact_geometry(diag, part.dot, lambda j: part.cross(rows[j : j + 1], rows)[0])


# Settings of methods with weights for each cluster.
N_CLUSTERS = setting(3, count(), "Number of clusters.")
CLUSTERING = setting(
    "auto",
    one_of("auto", "exact", "sample", "approximate"),
    "Cluster all samples; a random subset; or all with centres in the span of a random subset. "
    '"auto" is "exact" up to `sample_size` samples, "sample" for more.',
)
SAMPLE_SIZE = setting(1000, count(), "Number of samples drawn for clustering.")


def find_clusters(
    learner: Any, training: Training, sharpness: float | None
) -> tuple[Clusters, Array]:
    """Cluster the training samples by kernel k-means with the average of all kernels.

    Parameters
    ----------
    learner : estimator
        With the settings `n_clusters`, `clustering` and `sample_size`.
    training : Training
    sharpness : float or None
        Of the memberships; None is one over the mean squared distance of the samples to their
        centres.

    Returns
    -------
    clusters : Clusters
    distances : array of shape (n_samples, n_clusters)
        Squared distances of the samples to the centres.
    """
    return training.cache.cached(
        "clusters", lambda: _cluster(learner, training, sharpness), training.rng
    )


def _cluster(learner: Any, training: Training, sharpness: float | None) -> tuple[Clusters, Array]:
    samples, weight, n = training.samples, training.weight, training.n_samples
    kernel = average_kernel(training.kernels, training.names)
    # Averages over many samples are accurate enough in float32.
    gram = kernel.gram(samples, dtype="float64" if n <= _EXACT else "auto")
    chosen, centres = _partition(learner, gram, weight, training.rng)
    coef = np.zeros((n, centres.shape[1]))
    coef[chosen] = centres
    products = gram.dot(coef)
    square_norms = (coef * products).sum(axis=0)
    distances = gram.diag()[:, np.newaxis] - 2.0 * products + square_norms
    if sharpness is None:
        mean = float(weight @ np.maximum(distances.min(axis=1), 0.0)) / float(weight.sum())
        sharpness = 1.0 / mean if mean > 0 else 1.0
    functions = gram.expansion(kernel, coef, np.zeros(coef.shape[1]))
    return Clusters(functions, square_norms, sharpness), distances


def _partition(
    learner: Any, gram: GatedGram, weight: Array, rng: np.random.RandomState
) -> tuple[Array, Array]:
    """Return the landmarks, and the centres as combinations of them."""
    n, how = gram.n_samples, learner.clustering
    if how == "auto":
        how = "exact" if n <= learner.sample_size else "sample"
    chosen = np.arange(n)
    if how != "exact" and n > learner.sample_size:
        share = weight / weight.sum()
        chosen = np.sort(rng.choice(n, size=learner.sample_size, replace=False, p=share))
    if how == "approximate":
        geometry = landmark_geometry(gram.diag(), gram.cross(chosen, np.arange(n)), chosen)
    else:
        geometry = _geometry(gram, chosen)
        weight = weight if how == "exact" else np.ones(len(chosen))
    centres = kernel_kmeans(geometry, weight, learner.n_clusters, rng).centres
    n_distinct = centres.shape[1]
    if n_distinct < learner.n_clusters:
        warn_once(
            "clusters",
            f"there are only {n_distinct} distinct samples for {learner.n_clusters} clusters; "
            f"{n_distinct} clusters are used",
        )
    return chosen, centres
