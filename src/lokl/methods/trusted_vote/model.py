"""Model of the trusted vote: calibrated experts whose evidence is pooled sample by sample.

The neighbourhood of a sample under a kernel decides how familiar the sample is and how reliable the
expert.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lokl._arrays import Array, Samples
from lokl._threads import multiply
from lokl.gram import Expansion, mixing
from lokl.gram.plan import Points
from lokl.kernels import Kernel
from lokl.methods.single_kernel import ExpertVote
from lokl.methods.trusted_vote.evidence import ClassOutcomes, EvidencePool, ExpertOutputs

# Neighbours that decide how familiar a sample is.
_FAMILIAR_NEIGHBOURS = 5
# The overall mean counts as this number of neighbours in a local mean.
_PSEUDO_COUNT = 5.0
_LEAST_PROBABILITY = 1e-3
# Standardised reliability is clipped to this number of standard deviations.
_LARGEST_DEVIATION = 3.0
# Largest relative variation of a diagonal that counts as constant.
_CONSTANT = 1e-6
# Numbers in one block of samples: kernel values, and probabilities of all outcomes.
_BLOCK = 2**22
_FEWEST, _MOST = 16, 8192


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

    @property
    def mean_similarity(self) -> Array:
        """Mean similarity to the few nearest neighbours, of shape (n_samples,)."""
        if self.similarity.shape[1] == 0:
            return np.zeros(len(self.similarity))
        return np.asarray(self.similarity[:, :_FAMILIAR_NEIGHBOURS].mean(axis=1))


def _largest(values: Array, count: int) -> Array:
    """Return the indices of the largest values in each row, in falling order."""
    n = values.shape[1]
    if count == 0:
        return np.empty((len(values), 0), dtype=np.intp)
    index = np.argpartition(values, n - count, axis=1)[:, n - count :]
    order = np.argsort(-np.take_along_axis(values, index, axis=1), axis=1, kind="stable")
    return np.take_along_axis(index, order, axis=1)


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

    def neighbours(self, K: Array, diag: Array, training_diag: Array, count: int) -> Neighbours:
        """Return the `count` most similar training samples of each sample.

        Parameters
        ----------
        K : array of shape (n_samples, n_training)
            Kernel matrix; minus infinity for training samples that are not considered.
        diag, training_diag : arrays of shape (n_samples,) and (n_training,)
            Diagonals of the kernel matrices of both.
        count : int
        """
        closeness = K
        if self.is_exponential:
            # In each row the order of the distances in feature space.
            closeness = K - (0.5 * training_diag).astype(K.dtype)
        index = _largest(closeness, min(count, K.shape[1]))
        values = np.take_along_axis(K, index, axis=1).astype(np.float64)
        distance = diag[:, np.newaxis] + training_diag[index] - 2.0 * values
        distance = np.maximum(distance / self.distance_scale, 0.0)
        if self.is_exponential:
            return Neighbours(index, np.exp(-distance))
        return Neighbours(index, np.maximum(1.0 - distance, 0.0))


@dataclass(frozen=True, eq=False)
class LocalReliability:
    """Mean held-out log probability of the true outcomes of the neighbours.

    Standardised on the training samples and clipped to three standard deviations. Without
    deviation it is zero everywhere.
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

    @property
    def is_flat(self) -> bool:
        return self.deviation <= 1e-9

    def __call__(self, neighbours: Neighbours) -> Array:
        """Return the standardised reliability at each sample, of shape (n_samples,)."""
        if self.is_flat:
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


@dataclass(frozen=True, eq=False)
class TrustedExpert:
    """SVM of one kernel, with the training samples that decide how far it is trusted.

    Attributes
    ----------
    name : str
        Name of the kernel.
    kernel : Kernel
    support : array of int of shape (n_support,)
        Indices of its support vectors.
    coef : array of shape (n_stored, n_tasks)
        Signed dual coefficients.
    joint_coef : array of shape (n_stored, n_tasks)
        Coefficients of this kernel in the joint model; zero without one.
    joint_support : array of int of shape (n_joint,)
        Indices of the training samples with a coefficient in it.
    intercept : array of shape (n_tasks,)
    stored : Points or None
        Stored training samples: all that have the view if neighbours are used, else those with a
        coefficient. None if no training sample has the view.
    similarity : KernelSimilarity
    familiar : float
        Mean similarity to the nearest training samples from which on a sample is fully familiar; 0
        if every sample is.
    reliability : tuple of LocalReliability
        One for each pool, flat if the temperature is the same everywhere.
    n_neighbors : int
    expansion : Expansion or None
        Decision function on low-rank features, if these replace the kernel; the stored samples are
        then used for neighbours only.

    See Also
    --------
    lokl.TrustedVoteClassifier : Its attribute ``experts_`` contains one for each kernel.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from lokl import TrustedVoteClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TrustedVoteClassifier(["linear", "rbf"], random_state=0).fit(X, y)
    >>> [expert.name for expert in model.experts_]
    ['linear', 'rbf']
    """

    name: str
    kernel: Kernel
    support: Array
    coef: Array
    joint_coef: Array
    joint_support: Array
    intercept: Array
    stored: Points | None = None
    similarity: KernelSimilarity = KernelSimilarity(1.0, True)
    familiar: float = 0.0
    reliability: tuple[LocalReliability, ...] = ()
    n_neighbors: int = 0
    expansion: Expansion | None = None

    def outputs(self, samples: Samples) -> tuple[Array, Array, Neighbours]:
        """Evaluate the SVM and find the neighbours of samples that all have the view.

        Returns
        -------
        decision : array of shape (n_samples, n_tasks)
        contribution : array of shape (n_samples, n_tasks)
            To the joint model, before the gate.
        neighbours : Neighbours
        """
        n, n_tasks = samples.n_samples, len(self.intercept)
        if self.stored is None or n == 0:
            return np.zeros((n, n_tasks)), np.zeros((n, n_tasks)), Neighbours.none(n)
        needs_neighbours = self.familiar > 0 or not all(r.is_flat for r in self.reliability)
        count = self.n_neighbors if needs_neighbours else 0
        new = Points.make(self.stored.plan, samples.filled, np.ones((n, 1)))
        K = mixing.block(new, self.stored)
        if self.expansion is None:
            coef = np.hstack([self.coef, self.joint_coef]).astype(K.dtype)
            sums = multiply(K, np.ascontiguousarray(coef)).astype(float)
        else:
            sums = self.expansion(samples)
        neighbours = Neighbours.none(n)
        if count:
            diagonals = mixing.diag(new), mixing.diag(self.stored)
            neighbours = self.similarity.neighbours(K, *diagonals, count)
        return sums[:, :n_tasks] + self.intercept, sums[:, n_tasks:], neighbours

    def familiarity_of(self, neighbours: Neighbours) -> Array:
        """Familiarity of samples with these neighbours, (n_samples,), between 0 and 1."""
        if self.stored is None:
            return np.zeros(len(neighbours.index))
        if self.familiar <= 0:
            return np.ones(len(neighbours.index))
        return np.minimum(1.0, neighbours.mean_similarity / self.familiar)


@dataclass(frozen=True, eq=False, kw_only=True)
class TrustedVote(ExpertVote):
    """``S(y) = r log prior(y) + sum_i w_i B_i(y)`` with bounded evidence ``B_i`` of the kernels.

    ``r`` is learned for samples that are familiar to all kernels, and one without any evidence.
    """

    pools: Sequence[EvidencePool]
    joint_intercept: Array  # (n_tasks,)

    def decide(self, samples: Samples) -> Array:
        return self._pooled(samples, EvidencePool.decide)

    def contributions(self, samples: Samples) -> Array:
        return self._pooled(samples, EvidencePool.contributions)

    def weights(self, samples: Samples) -> Array:
        return self.trust(samples)

    def trust(self, samples: Samples) -> Array:
        """Probability that each kernel is informative, averaged over targets."""
        return self._pooled(samples, EvidencePool.trust, np.mean, 0)

    def disagreement(self, samples: Samples) -> Array:
        """Mean disagreement of pairs of kernels, (n_samples,)."""
        return self._pooled(samples, EvidencePool.disagreement, np.mean, 0)

    def familiarity(self, samples: Samples) -> Array:
        """Similarity to the training samples under each kernel, (n_samples, n_kernels)."""
        return np.concatenate([outputs.familiarity for outputs in self._blocks(samples)])

    def probabilities_alone(self, samples: Samples) -> Array:
        """Class probabilities given one kernel at a time, (n_samples, n_kernels, n_classes)."""

        def alone(pool: EvidencePool, outputs: ExpertOutputs) -> Array:
            assert isinstance(pool.outcomes, ClassOutcomes), "numeric targets have no classes"
            return pool.outcomes.expand_probabilities(pool.probabilities_alone(outputs))

        return self._pooled(samples, alone)

    def _pooled(
        self,
        samples: Samples,
        compute: Callable[[EvidencePool, ExpertOutputs], Array],
        combine: Callable[..., Array] = np.concatenate,
        axis: int = -1,
    ) -> Array:
        """Results of all pools, combined along an axis, block by block."""
        return np.concatenate(
            [
                combine([compute(pool, outputs) for pool in self.pools], axis=axis)
                for outputs in self._blocks(samples)
            ]
        )

    def _blocks(self, samples: Samples) -> Iterator[ExpertOutputs]:
        """Outputs of the experts for blocks of samples of bounded size."""
        stored = [expert.stored.n_samples for expert in self.experts if expert.stored is not None]
        n_outcomes = max(len(pool.outcomes.prior) for pool in self.pools)
        size = max(*stored, len(self.experts) * n_outcomes, 1)
        step = int(np.clip(_BLOCK // size, _FEWEST, _MOST))
        for block in samples.blocks(step):
            yield ExpertOutputs.collect(block, self._outputs(block), self.joint_intercept)

    def _outputs(self, samples: Samples) -> Iterator[tuple[Array, Array, Array, Array]]:
        """Outputs of each expert for the samples that have its view."""
        for i, expert in enumerate(self.experts):
            decision, contribution, neighbours = expert.outputs(samples.seen_by(i))
            reliability = np.column_stack([local(neighbours) for local in expert.reliability])
            yield decision, contribution, expert.familiarity_of(neighbours), reliability

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes by name.

        Attributes
        ----------
        intercept_ : array of shape (n_machines,)
            Decision without evidence: log frequencies of the classes (two classes: log of their
            ratio), or the mean target.
        weights_ : array of shape (n_kernels,)
            Weight of each kernel in the vote, averaged over targets; 1 if not learned.
        joint_weight_ : float
            Weight of the joint model.
        prior_weight_ : float
            Multiplier of the log class frequencies for a sample that is familiar to all kernels.
            Without evidence it is one, and for numeric targets it is always one.
        """
        weights = np.mean([pool.weights for pool in self.pools], axis=0)
        return {
            **super().attributes(),
            "intercept_": np.concatenate([pool.outcomes.intercept for pool in self.pools]),
            "weights_": weights[:-2],
            "joint_weight_": float(weights[-2]),
            "prior_weight_": 1.0 + float(weights[-1]),
        }
