"""What a kernel has seen near a sample: whether anything, and whether it was right there."""

from dataclasses import dataclass

import numpy as np

from lokl._arrays import Array

# How many of the closest samples say whether a sample is familiar, and the share of the training
# samples that count as less than familiar.
_FAMILIAR, _STRANGE = 5, 0.05
# Weight of the overall mean in that of the neighbours, as so many neighbours.
_PSEUDO = 5.0
_LEAST_CHANCE = 1e-3
_LARGEST_LOCAL = 3.0
# Relative differences of a diagonal that count as none.
_CONSTANT = 1e-6


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The closest training samples of each sample, the closest first."""

    index: Array  # (n_samples, n_neighbors)
    closeness: Array  # (n_samples, n_neighbors), not negative

    @classmethod
    def among(cls, closeness: Array, count: int) -> "Neighbours":
        """Find them in the rows of a matrix."""
        n = closeness.shape[1]
        count = min(count, n)
        if count == 0:
            return cls(np.empty((len(closeness), 0), np.intp), np.empty((len(closeness), 0)))
        index = np.argpartition(closeness, n - count, axis=1)[:, n - count :]
        values = np.take_along_axis(closeness, index, axis=1)
        order = np.argsort(-values, axis=1, kind="stable")
        return cls(
            np.take_along_axis(index, order, axis=1),
            np.take_along_axis(values, order, axis=1).astype(float),
        )

    @classmethod
    def joined(cls, parts: list["Neighbours"]) -> "Neighbours":
        """Put the samples of several blocks one below the other."""
        return cls(
            np.concatenate([part.index for part in parts]),
            np.concatenate([part.closeness for part in parts]),
        )

    def at(self, rows: Array) -> "Neighbours":
        """Return those of some samples."""
        return Neighbours(self.index[rows], self.closeness[rows])

    @property
    def familiarity(self) -> Array:
        """Mean closeness of the few closest."""
        if self.closeness.shape[1] == 0:
            return np.zeros(len(self.closeness))
        return np.asarray(self.closeness[:, :_FAMILIAR].mean(axis=1))


@dataclass(frozen=True)
class Closeness:
    """How close two samples are in the eyes of a kernel, from 0 to 1.

    With ``D`` the squared distance in feature space it is ``exp(-D / median D)``. A kernel whose
    diagonal is constant says so itself, but for a factor: ``1 - D / (2 diagonal)``, which is the
    kernel over its diagonal.
    """

    spread: float
    is_exponential: bool

    @classmethod
    def of(cls, diag: Array, some: Array, block: Array) -> "Closeness":
        """Choose it for training samples, by the values `block` of the kernel among `some`."""
        if diag[0] > 0 and (np.abs(diag - diag[0]) <= _CONSTANT * diag[0]).all():
            return cls(2.0 * float(diag[0]), False)
        own = diag[some]
        upper = np.triu_indices(len(some), 1)
        distances = (own[:, np.newaxis] + own - 2.0 * block)[upper]
        median = float(np.median(distances)) if distances.size else 0.0
        return cls(median if median > 0 else 1.0, True)

    def __call__(self, K: Array, diag: Array, others: Array) -> Array:
        """Closeness (n_samples, n_others) from kernel values and both diagonals."""
        relative = (-2.0 / self.spread) * K
        relative += ((diag / self.spread)[:, np.newaxis]).astype(K.dtype)
        relative += (others / self.spread).astype(K.dtype)
        np.maximum(relative, 0.0, out=relative)
        if self.is_exponential:
            return np.asarray(np.exp(-relative))
        return np.maximum(1.0 - relative, 0.0)


@dataclass(frozen=True)
class Novelty:
    """``nu(x) = min(1, familiarity(x) / threshold)``: 0 for what a kernel has never seen."""

    threshold: float

    @classmethod
    def of(cls, neighbours: Neighbours, weight: Array) -> "Novelty":
        """Take the threshold that few training samples are below, their own rows left out."""
        familiarity = neighbours.familiarity
        order = np.argsort(familiarity, kind="stable")
        mass = np.cumsum(weight[order])
        place = int(np.searchsorted(mass, _STRANGE * mass[-1]))
        return cls(float(familiarity[order][min(place, len(order) - 1)]))

    def __call__(self, neighbours: Neighbours) -> Array:
        if self.threshold <= 0:
            # Training samples know nothing of each other either: nobody is a stranger.
            return np.ones(len(neighbours.index))
        return np.minimum(1.0, neighbours.familiarity / self.threshold)


@dataclass(frozen=True, eq=False)
class LocalSuccess:
    """How well samples nearby were predicted: mean log probability of their true outcomes.

    Standardised on the training samples and limited to three deviations.
    """

    values: Array  # of each training sample
    weight: Array  # of each training sample, one on average
    mean: float
    centre: float
    deviation: float

    @classmethod
    def of(cls, chance: Array, weight: Array, neighbours: Neighbours) -> "LocalSuccess":
        """Learn it from held-out probabilities of the true outcome of each training sample."""
        values = np.log(np.maximum(chance, _LEAST_CHANCE))
        weight = weight / weight.mean() if weight.any() else np.ones(len(weight))
        mean = float(np.average(values, weights=weight))
        raw = cls(values, weight, mean, 0.0, 1.0)._raw(neighbours)
        centre = float(np.average(raw, weights=weight))
        deviation = float(np.sqrt(np.average((raw - centre) ** 2, weights=weight)))
        return cls(values, weight, mean, centre, deviation)

    def __call__(self, neighbours: Neighbours) -> Array:
        if self.deviation <= 1e-9:
            return np.zeros(len(neighbours.index))
        z = (self._raw(neighbours) - self.centre) / self.deviation
        return np.clip(z, -_LARGEST_LOCAL, _LARGEST_LOCAL)

    def _raw(self, neighbours: Neighbours) -> Array:
        near = neighbours.closeness
        if near.shape[1] == 0:
            return np.full(len(near), self.mean)
        relative = np.divide(near, near[:, :1], out=np.zeros_like(near), where=near[:, :1] > 0)
        share = relative * self.weight[neighbours.index]
        told = (share * self.values[neighbours.index]).sum(axis=1) + _PSEUDO * self.mean
        return np.asarray(told / (share.sum(axis=1) + _PSEUDO))
