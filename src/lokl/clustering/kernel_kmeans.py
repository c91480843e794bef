"""Kernel k-means: Lloyd's iterations on inner products alone."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lokl._arrays import Array

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
