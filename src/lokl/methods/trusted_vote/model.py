"""Model of the trusted vote: calibrated experts whose evidence is pooled sample by sample."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lokl._arrays import Array, Samples
from lokl._threads import multiply
from lokl.base.model import AttributeDocs, Model, SupportSet
from lokl.gram import Expansion, mixing
from lokl.gram.plan import Points
from lokl.kernels import Kernel
from lokl.methods.trusted_vote.neighbourhood import (
    Familiarity,
    KernelSimilarity,
    LocalReliability,
    Neighbours,
)
from lokl.methods.trusted_vote.outcomes import ClassOutcomes
from lokl.methods.trusted_vote.pooling import EvidencePool, ExpertOutputs

# Numbers in one block of samples: kernel values, and probabilities of all outcomes.
_BLOCK = 2**22
_FEWEST, _MOST = 16, 8192


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
    intercept : array of shape (n_tasks,)
    stored : Points or None
        Stored training samples: all that have the view if neighbours are used, else those with a
        coefficient. None if no training sample has the view.
    similarity : KernelSimilarity
    familiarity : Familiarity or None
        None if every sample counts as familiar.
    reliability : tuple of LocalReliability
        One for each pool, empty if the temperature is the same everywhere.
    n_neighbors : int
    expansion : Expansion or None
        Decision function on low-rank features, if these replace the kernel; the stored samples are
        then used for neighbours only.
    """

    name: str
    kernel: Kernel
    support: Array
    coef: Array
    joint_coef: Array
    intercept: Array
    stored: Points | None
    similarity: KernelSimilarity
    familiarity: Familiarity | None
    reliability: tuple[LocalReliability, ...]
    n_neighbors: int
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
        needs_neighbours = self.familiarity is not None or bool(self.reliability)
        count = self.n_neighbors if needs_neighbours else 0
        new = Points.make(self.stored.plan, samples.filled, np.ones((n, 1)))
        K = mixing.block(new, self.stored)
        if self.expansion is None:
            coef = np.hstack([self.coef, self.joint_coef]).astype(K.dtype)
            sums = multiply(K, np.ascontiguousarray(coef)).astype(float)
        else:
            sums = self.expansion(samples)
        near = self.similarity(K, mixing.diag(new), mixing.diag(self.stored)) if count else K
        decision = sums[:, :n_tasks] + self.intercept
        return decision, sums[:, n_tasks:], Neighbours.nearest(near, count)

    @property
    def residual(self) -> Array:
        """Approximation error of the low-rank features, of shape (1,); 0 for the exact kernel."""
        return np.zeros(1) if self.expansion is None else self.expansion.residual

    def familiarity_of(self, neighbours: Neighbours) -> Array:
        """Familiarity of samples with these neighbours, (n_samples,), between 0 and 1."""
        n = len(neighbours.index)
        if self.stored is None:
            return np.zeros(n)
        return np.ones(n) if self.familiarity is None else self.familiarity(neighbours)

    def reliability_of(self, neighbours: Neighbours, n_pools: int) -> Array:
        """Local reliability for each pool, (n_samples, n_pools)."""
        if not self.reliability:
            return np.zeros((len(neighbours.index), n_pools))
        return np.column_stack([local(neighbours) for local in self.reliability])


@dataclass(frozen=True, eq=False)
class TrustedVote(Model):
    """``S(y) = r log prior(y) + sum_i w_i B_i(y)`` with bounded evidence ``B_i`` of the kernels.

    ``r`` is learned for samples that are familiar to all kernels, and one without any evidence.
    """

    experts: list[TrustedExpert]
    pools: list[EvidencePool]
    joint_intercept: Array  # (n_tasks,)
    support: SupportSet
    objective: float  # sum of the dual objectives of all SVMs
    n_iter: int

    shares_intercept: ClassVar[bool] = False
    attribute_docs: ClassVar[AttributeDocs] = {
        "experts_": (
            "list of TrustedExpert",
            "One for each kernel: its SVM and the training samples that decide its trust.",
        ),
        **Model.attribute_docs,
        "dual_coef_": (
            "array of shape (n_kernels, n_support) or (n_kernels, n_machines, n_support)",
            "Signed dual coefficients of the experts.",
        ),
        "intercept_": (
            "array of shape (n_machines,)",
            "Decision without evidence: log frequencies of the classes (two classes: log of their "
            "ratio), or the mean target.",
        ),
        "weights_": (
            "array of shape (n_kernels,)",
            "Weight of each kernel in the vote, averaged over targets; 1 if not learned.",
        ),
        "joint_weight_": ("float", "Weight of the joint model."),
        "prior_weight_": (
            "float",
            "Multiplier of the log class frequencies for a sample that is familiar to all kernels. "
            "Without evidence it is one, and for numeric targets it is always one.",
        ),
        "history_": ("array", "Dual objective, summed over the SVMs."),
    }

    @property
    def n_tasks(self) -> int:
        return len(self.joint_intercept)

    def decide(self, samples: Samples) -> Array:
        return self._concatenated(samples, lambda pool, outputs: pool.decide(outputs))

    def contributions(self, samples: Samples) -> Array:
        return self._concatenated(samples, lambda pool, outputs: pool.contributions(outputs))

    def weights(self, samples: Samples) -> Array:
        return self.trust(samples)

    def trust(self, samples: Samples) -> Array:
        """Probability that each kernel is informative, averaged over targets."""
        return self._mean(samples, lambda pool, outputs: pool.trust(outputs))

    def disagreement(self, samples: Samples) -> Array:
        """Mean disagreement of pairs of kernels, (n_samples,)."""
        return self._mean(samples, lambda pool, outputs: pool.disagreement(outputs))

    def familiarity(self, samples: Samples) -> Array:
        """Similarity to the training samples under each kernel, (n_samples, n_kernels)."""
        return np.concatenate([outputs.familiarity for outputs in self._blocks(samples)])

    def probabilities_alone(self, samples: Samples) -> Array:
        """Class probabilities given one kernel at a time, (n_samples, n_kernels, n_classes)."""

        def alone(pool: EvidencePool, outputs: ExpertOutputs) -> Array:
            assert isinstance(pool.outcomes, ClassOutcomes), "numeric targets have no classes"
            return pool.outcomes.expand_probabilities(pool.probabilities_alone(outputs))

        return self._concatenated(samples, alone)

    def _concatenated(
        self, samples: Samples, compute: Callable[[EvidencePool, ExpertOutputs], Array]
    ) -> Array:
        """Results of all pools along the last axis, block by block."""
        blocks = [
            np.concatenate([compute(pool, outputs) for pool in self.pools], axis=-1)
            for outputs in self._blocks(samples)
        ]
        return np.concatenate(blocks)

    def _mean(
        self, samples: Samples, compute: Callable[[EvidencePool, ExpertOutputs], Array]
    ) -> Array:
        blocks = [
            np.mean([compute(pool, outputs) for pool in self.pools], axis=0)
            for outputs in self._blocks(samples)
        ]
        return np.concatenate(blocks)

    def _blocks(self, samples: Samples) -> Iterator[ExpertOutputs]:
        """Outputs of the experts for blocks of samples of bounded size."""
        stored = [expert.stored.n_samples for expert in self.experts if expert.stored is not None]
        n_outcomes = max(len(pool.outcomes.prior) for pool in self.pools)
        size = max(*stored, len(self.experts) * n_outcomes, 1)
        step = int(np.clip(_BLOCK // size, _FEWEST, _MOST))
        for start in range(0, max(samples.n_samples, 1), step):
            rows = np.arange(start, min(start + step, samples.n_samples))
            yield self.expert_outputs(samples.take(rows))

    def expert_outputs(self, samples: Samples) -> ExpertOutputs:
        """Evaluate all experts on one block of samples."""
        shape = (samples.n_samples, len(self.experts))
        present = np.ones(shape, bool) if samples.present is None else samples.present
        outputs = ExpertOutputs.zeros(present, len(self.pools), self.joint_intercept)
        # Gate of the joint model: the views of a sample have equal weights.
        gate = 1.0 / np.sqrt(present.sum(axis=1))
        for i, expert in enumerate(self.experts):
            rows = samples.rows_seen_by(i)
            decision, contribution, neighbours = expert.outputs(samples.seen_by(i))
            outputs.decision[rows, i] = decision
            outputs.contribution[rows, i] = gate[rows, np.newaxis] * contribution
            outputs.familiarity[rows, i] = expert.familiarity_of(neighbours)
            outputs.reliability[rows, i] = expert.reliability_of(neighbours, len(self.pools))
        return outputs

    def attributes(self) -> dict[str, Any]:
        positions = self.support.positions
        coef = np.zeros((len(self.experts), self.n_tasks, len(positions)))
        order = np.argsort(positions)
        for i, expert in enumerate(self.experts):
            columns = order[np.searchsorted(positions, expert.support, sorter=order)]
            coef[i][:, columns] = expert.coef[(expert.coef != 0).any(axis=1)].T
        return {
            "experts_": self.experts,
            "kernels_": [expert.kernel for expert in self.experts],
            "kernel_names_": [expert.name for expert in self.experts],
            **self.support.attributes(),
            "dual_coef_": coef[:, 0] if self.n_tasks == 1 else coef,
            "intercept_": np.concatenate([pool.outcomes.intercept for pool in self.pools]),
            "weights_": np.mean([pool.weights for pool in self.pools], axis=0),
            "joint_weight_": float(np.mean([pool.joint_weight for pool in self.pools])),
            "prior_weight_": float(np.mean([pool.prior_weight for pool in self.pools])),
            "kernel_residual_": np.concatenate([expert.residual for expert in self.experts]),
            "history_": np.array([self.objective]),
            "n_iter_": self.n_iter,
        }
