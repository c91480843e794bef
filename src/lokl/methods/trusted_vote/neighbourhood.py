"""Neighbourhood of a sample under one kernel: how familiar it is and how reliable the expert."""

from dataclasses import dataclass

import numpy as np

from lokl._arrays import Array

# Neighbours that decide how familiar a sample is.
_FAMILIAR_NEIGHBOURS = 5
# Weighted fraction of training samples that count as less than fully familiar.
_UNFAMILIAR = 0.05
# The overall mean counts as this number of neighbours in a local mean.
_PSEUDO_COUNT = 5.0
_LEAST_PROBABILITY = 1e-3
# Standardised reliability is clipped to this number of standard deviations.
_LARGEST_DEVIATION = 3.0
# Largest relative variation of a diagonal that counts as constant.
_CONSTANT = 1e-6


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Nearest training samples of each sample, most similar first.

    Attributes
    ----------
    index : array of int of shape (n_samples, n_neighbors)
    similarity : array of shape (n_samples, n_neighbors)
        Non-negative.
    """

    index: Array
    similarity: Array

    @classmethod
    def none(cls, n_samples: int) -> "Neighbours":
        """Return zero neighbours for each sample."""
        return cls(np.empty((n_samples, 0), np.intp), np.empty((n_samples, 0)))

    @classmethod
    def nearest(cls, similarity: Array, count: int) -> "Neighbours":
        """Select the `count` largest entries of each row of a similarity matrix."""
        n = similarity.shape[1]
        count = min(count, n)
        if count == 0:
            return cls.none(len(similarity))
        index = np.argpartition(similarity, n - count, axis=1)[:, n - count :]
        values = np.take_along_axis(similarity, index, axis=1)
        order = np.argsort(-values, axis=1, kind="stable")
        return cls(
            np.take_along_axis(index, order, axis=1),
            np.take_along_axis(values, order, axis=1).astype(float),
        )

    @classmethod
    def concatenate(cls, blocks: list["Neighbours"]) -> "Neighbours":
        """Concatenate blocks of samples."""
        return cls(
            np.concatenate([block.index for block in blocks]),
            np.concatenate([block.similarity for block in blocks]),
        )

    def take(self, rows: Array) -> "Neighbours":
        """Return the neighbours of some samples."""
        return Neighbours(self.index[rows], self.similarity[rows])

    @property
    def mean_similarity(self) -> Array:
        """Mean similarity to the few nearest neighbours, of shape (n_samples,)."""
        if self.similarity.shape[1] == 0:
            return np.zeros(len(self.similarity))
        return np.asarray(self.similarity[:, :_FAMILIAR_NEIGHBOURS].mean(axis=1))


@dataclass(frozen=True)
class KernelSimilarity:
    """Similarity of two samples under a kernel, between 0 and 1.

    With ``D`` the squared distance in feature space it is ``exp(-D / median D)``. If the diagonal
    of the kernel is constant, it is ``1 - D / (2 diagonal)``, the kernel divided by its diagonal.
    """

    distance_scale: float
    is_exponential: bool

    @classmethod
    def from_training(cls, diag: Array, some: Array, block: Array) -> "KernelSimilarity":
        """Choose the formula and its scale.

        Parameters
        ----------
        diag : array of shape (n_samples,)
            Diagonal of the kernel matrix of the training samples.
        some : array of int of shape (n_some,)
            Training samples that estimate the median distance.
        block : array of shape (n_some, n_some)
            Kernel matrix of these samples.
        """
        if diag[0] > 0 and (np.abs(diag - diag[0]) <= _CONSTANT * diag[0]).all():
            return cls(2.0 * float(diag[0]), False)
        some_diag = diag[some]
        upper = np.triu_indices(len(some), 1)
        distances = (some_diag[:, np.newaxis] + some_diag - 2.0 * block)[upper]
        median = float(np.median(distances)) if distances.size else 0.0
        return cls(median if median > 0 else 1.0, True)

    def __call__(self, K: Array, diag: Array, training_diag: Array) -> Array:
        """Return similarities (n_samples, n_training) from a kernel matrix and both diagonals."""
        distance = (-2.0 / self.distance_scale) * K
        distance += ((diag / self.distance_scale)[:, np.newaxis]).astype(K.dtype)
        distance += (training_diag / self.distance_scale).astype(K.dtype)
        np.maximum(distance, 0.0, out=distance)
        if self.is_exponential:
            return np.asarray(np.exp(-distance))
        return np.maximum(1.0 - distance, 0.0)


@dataclass(frozen=True)
class Familiarity:
    """``nu(x) = min(1, mean similarity to the nearest / threshold)``; 0 for novel samples."""

    threshold: float

    @classmethod
    def from_training(cls, neighbours: Neighbours, weight: Array) -> "Familiarity":
        """Set the threshold to a low quantile of the training samples.

        Parameters
        ----------
        neighbours : Neighbours
            Of each training sample among the others.
        weight : array of shape (n_samples,)
        """
        similarity = neighbours.mean_similarity
        order = np.argsort(similarity, kind="stable")
        mass = np.cumsum(weight[order])
        position = int(np.searchsorted(mass, _UNFAMILIAR * mass[-1]))
        return cls(float(similarity[order][min(position, len(order) - 1)]))

    def __call__(self, neighbours: Neighbours) -> Array:
        """Return the familiarity of each sample, of shape (n_samples,)."""
        if self.threshold <= 0:
            # Training samples are not similar to each other either, so nothing counts as novel.
            return np.ones(len(neighbours.index))
        return np.minimum(1.0, neighbours.mean_similarity / self.threshold)


@dataclass(frozen=True, eq=False)
class LocalReliability:
    """Mean held-out log probability of the true outcomes of the neighbours.

    Standardised on the training samples and clipped to three standard deviations.
    """

    values: Array  # log probability for each training sample
    weight: Array  # of each training sample, mean one
    overall: float
    mean: float
    deviation: float

    @classmethod
    def from_training(
        cls, probability: Array, weight: Array, neighbours: Neighbours
    ) -> "LocalReliability":
        """Estimate it from held-out probabilities (n_samples,) of the true outcomes."""
        values = np.log(np.maximum(probability, _LEAST_PROBABILITY))
        weight = weight / weight.mean() if weight.any() else np.ones(len(weight))
        overall = float(np.average(values, weights=weight))
        raw = cls(values, weight, overall, 0.0, 1.0)._local_mean(neighbours)
        mean = float(np.average(raw, weights=weight))
        deviation = float(np.sqrt(np.average((raw - mean) ** 2, weights=weight)))
        return cls(values, weight, overall, mean, deviation)

    def __call__(self, neighbours: Neighbours) -> Array:
        """Return the standardised reliability at each sample, of shape (n_samples,)."""
        if self.deviation <= 1e-9:
            return np.zeros(len(neighbours.index))
        z = (self._local_mean(neighbours) - self.mean) / self.deviation
        return np.clip(z, -_LARGEST_DEVIATION, _LARGEST_DEVIATION)

    def _local_mean(self, neighbours: Neighbours) -> Array:
        near = neighbours.similarity
        if near.shape[1] == 0:
            return np.full(len(near), self.overall)
        relative = np.divide(near, near[:, :1], out=np.zeros_like(near), where=near[:, :1] > 0)
        weight = relative * self.weight[neighbours.index]
        total = (weight * self.values[neighbours.index]).sum(axis=1) + _PSEUDO_COUNT * self.overall
        return np.asarray(total / (weight.sum(axis=1) + _PSEUDO_COUNT))
