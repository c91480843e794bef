"""What is voted on: the classes, or cells of the range of a numeric target."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from lokl._arrays import Array

# A class that no training sample counts for.
_NEVER = 1e-12
# Cells reach beyond the targets by this share of their range.
_BEYOND = 0.1
# Part of the prior that is spread evenly, so that no cell is ruled out.
_EVEN = 0.1
# Points of the path from the prior to the posterior, at which parts are summed.
_NODES, _SHARES = np.polynomial.legendre.leggauss(12)


@dataclass(frozen=True, eq=False)
class Outcomes(ABC):
    """Answers that a sample may have, of which one is right.

    Attributes
    ----------
    tasks : slice
        The machines whose decisions are about these outcomes.
    prior : array of shape (n_outcomes,)
        Frequencies among the training samples, all above zero.
    """

    tasks: slice
    prior: Array

    @abstractmethod
    def scores(self, decision: Array, unit: float) -> Array:
        """Scores (n_samples, n_outcomes) of decisions (n_samples, n_tasks); higher is likelier."""

    @abstractmethod
    def unit(self, decision: Array, truth: Array, weight: Array) -> float:
        """Return the size of an error, by which scores are divided."""

    @property
    @abstractmethod
    def shifts(self) -> bool:
        """Whether calibration may prefer some outcomes whatever the decision."""

    @property
    @abstractmethod
    def intercept(self) -> Array:
        """What is decided without any evidence, (n_tasks,)."""

    @abstractmethod
    def decide(self, scores: Array) -> Array:
        """Decisions (n_samples, n_tasks) at log probabilities (n_samples, n_outcomes)."""

    @abstractmethod
    def parts(self, terms: Array, shares: Array) -> Array:
        """Part of each term in the decision, (n_samples, n_terms, n_tasks).

        `terms` (n_samples, n_terms, n_outcomes) and the log prior add up to log probabilities;
        `shares` (n_samples, n_terms) divide what rounding leaves.
        """


@dataclass(frozen=True, eq=False)
class Classes(Outcomes):
    """Classes that training samples count for."""

    known: Array  # numbers of these classes
    n_classes: int

    @classmethod
    def of(cls, codes: Array, weight: Array, n_classes: int) -> "Classes":
        """Count the classes of training samples."""
        counts = np.bincount(codes, weights=weight, minlength=n_classes)
        known = np.flatnonzero(counts > 0)
        n_tasks = 1 if n_classes == 2 else n_classes
        return cls(slice(0, n_tasks), counts[known] / counts.sum(), known, n_classes)

    def scores(self, decision: Array, unit: float) -> Array:
        both = np.hstack([-decision, decision]) if self.n_classes == 2 else decision
        return np.asarray(both[:, self.known])

    def unit(self, decision: Array, truth: Array, weight: Array) -> float:
        return 1.0

    @property
    def shifts(self) -> bool:
        return True

    @property
    def intercept(self) -> Array:
        prior = np.full(self.n_classes, _NEVER)
        prior[self.known] = self.prior
        return self._of_tasks(np.log(prior))

    def decide(self, scores: Array) -> Array:
        evidence = self._of_all(scores - np.log(self.prior))
        return self._of_tasks(evidence) + self.intercept

    def parts(self, terms: Array, shares: Array) -> Array:
        return self._of_tasks(self._of_all(terms))

    def of_all_classes(self, chances: Array) -> Array:
        """Probabilities of all classes; those that nobody knows have none."""
        full = np.zeros((*chances.shape[:-1], self.n_classes))
        full[..., self.known] = chances
        return full

    def _of_all(self, values: Array) -> Array:
        """Values of all classes; one that nobody knows is never likelier than any other."""
        full = np.repeat(values.min(axis=-1, keepdims=True), self.n_classes, axis=-1)
        full[..., self.known] = values
        return full

    def _of_tasks(self, values: Array) -> Array:
        """Two classes have one decision, for the second against the first."""
        return values[..., 1:] - values[..., :1] if self.n_classes == 2 else values


@dataclass(frozen=True, eq=False)
class Cells(Outcomes):
    """Cells of equal width; the decision is the mean of their centres."""

    centres: Array

    @classmethod
    def of(cls, target: Array, weight: Array, task: int, count: int) -> "Cells":
        """Divide the range of a target; the prior is a smooth histogram."""
        low, high = float(target.min()), float(target.max())
        span = max(high - low, 1e-6 * max(abs(low), abs(high)), np.finfo(float).tiny * 1e6)
        centres = np.linspace(low - _BEYOND * span, high + _BEYOND * span, count)
        mean = np.average(target, weights=weight)
        deviation = np.sqrt(np.average((target - mean) ** 2, weights=weight))
        bandwidth = max(deviation * len(target) ** -0.2, centres[1] - centres[0])
        near = np.exp(-0.5 * ((centres[:, np.newaxis] - target) / bandwidth) ** 2) @ weight
        prior = (1.0 - _EVEN) * near / near.sum() + _EVEN / count
        return cls(slice(task, task + 1), prior, centres)

    @property
    def width(self) -> float:
        return float(self.centres[1] - self.centres[0])

    def cell(self, target: Array) -> Array:
        """Number of the cell of each target."""
        place = np.rint((target - self.centres[0]) / self.width)
        return np.clip(place, 0, len(self.centres) - 1).astype(np.intp)

    def scores(self, decision: Array, unit: float) -> Array:
        return np.asarray(-0.5 * ((self.centres - decision) / unit) ** 2)

    def unit(self, decision: Array, truth: Array, weight: Array) -> float:
        missed = self.centres[truth] - decision[:, 0]
        # Errors smaller than half a cell cannot be told apart.
        return max(float(np.sqrt(np.average(missed**2, weights=weight))), 0.5 * self.width)

    @property
    def shifts(self) -> bool:
        return False

    @property
    def intercept(self) -> Array:
        return np.array([self.prior @ self.centres])

    def decide(self, scores: Array) -> Array:
        return self._mean(softmax(scores))

    def parts(self, terms: Array, shares: Array) -> Array:
        """How far each term moves the mean on the way from the prior to the posterior.

        Along ``p_s ~ prior exp(s sum_i terms_i)`` the mean moves at the sum of the covariances of
        the terms with the target: the part of a term is its own covariance, summed over the way.
        """
        total, prior = terms.sum(axis=1), np.log(self.prior)
        parts = np.zeros((*terms.shape[:2], 1))
        for node, share in zip(_NODES, _SHARES, strict=True):
            p = softmax(prior + 0.5 * (1.0 + node) * total)
            lever = p * (self.centres - self._mean(p))
            parts += 0.5 * share * (terms @ lever[:, :, np.newaxis])
        rest = self.decide(prior + total) - self.intercept - parts.sum(axis=1)
        return parts + shares[:, :, np.newaxis] * rest[:, np.newaxis]

    def _mean(self, p: Array) -> Array:
        return np.asarray(p @ self.centres)[:, np.newaxis]


def softmax(scores: Array) -> Array:
    """Probabilities of log probabilities, over the last axis."""
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    return np.asarray(p)


def log_softmax(scores: Array) -> Array:
    """Logs of these probabilities, finite where the probability itself is rounded to zero."""
    below = scores - scores.max(axis=-1, keepdims=True)
    return np.asarray(below - np.log(np.exp(below).sum(axis=-1, keepdims=True)))
