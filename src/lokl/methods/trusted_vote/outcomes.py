"""Outcomes that the experts vote on: the classes, or bins of the range of a numeric target."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from lokl._arrays import Array

# Prior probability of a class without training weight.
_NEVER = 1e-12
# Bins extend beyond the range of the training targets by this fraction of it.
_MARGIN = 0.1
# Uniform part of the prior over bins, so that no bin is impossible.
_UNIFORM = 0.1
# Gauss-Legendre nodes and weights on the path from the prior to the posterior.
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(12)


@dataclass(frozen=True, eq=False)
class Outcomes(ABC):
    """Mutually exclusive outcomes of a sample.

    Attributes
    ----------
    tasks : slice
        The SVM outputs (classes or targets) that concern these outcomes.
    prior : array of shape (n_outcomes,)
        Weighted frequencies in the training samples, all positive.
    """

    tasks: slice
    prior: Array

    @abstractmethod
    def scores(self, decision: Array, error_scale: float) -> Array:
        """Return unnormalised log probabilities of the outcomes before calibration.

        Parameters
        ----------
        decision : array of shape (n_samples, n_tasks)
        error_scale : float
            Typical error of the expert; ignored for classes.

        Returns
        -------
        scores : array of shape (n_samples, n_outcomes)
        """

    @abstractmethod
    def error_scale(self, decision: Array, truth: Array, weight: Array) -> float:
        """Return the weighted root mean squared error of held-out decisions (1 for classes)."""

    @property
    @abstractmethod
    def allows_shift(self) -> bool:
        """Whether calibration may add a constant to the score of each outcome."""

    @property
    @abstractmethod
    def intercept(self) -> Array:
        """Decision in the absence of evidence, of shape (n_tasks,)."""

    @abstractmethod
    def decide(self, scores: Array) -> Array:
        """Convert log probabilities (n_samples, n_outcomes) to decisions (n_samples, n_tasks)."""

    @abstractmethod
    def contributions(self, terms: Array, weights: Array) -> Array:
        """Divide the decision, less the intercept, among the terms of the log probabilities.

        Parameters
        ----------
        terms : array of shape (n_samples, n_terms, n_outcomes)
            Together with the log prior they add up to the log probabilities.
        weights : array of shape (n_samples, n_terms)
            Distribution of the rounding error among the terms; rows sum to one.

        Returns
        -------
        contributions : array of shape (n_samples, n_terms, n_tasks)
        """


@dataclass(frozen=True, eq=False)
class ClassOutcomes(Outcomes):
    """Classes with positive training weight."""

    observed: Array  # indices of these classes
    n_classes: int

    @classmethod
    def from_training(cls, codes: Array, weight: Array, n_classes: int) -> "ClassOutcomes":
        """Estimate the prior from class codes (n_samples,) and sample weights (n_samples,)."""
        counts = np.bincount(codes, weights=weight, minlength=n_classes)
        observed = np.flatnonzero(counts > 0)
        n_tasks = 1 if n_classes == 2 else n_classes
        return cls(slice(0, n_tasks), counts[observed] / counts.sum(), observed, n_classes)

    def scores(self, decision: Array, error_scale: float) -> Array:
        both = np.hstack([-decision, decision]) if self.n_classes == 2 else decision
        return np.asarray(both[:, self.observed])

    def error_scale(self, decision: Array, truth: Array, weight: Array) -> float:
        return 1.0

    @property
    def allows_shift(self) -> bool:
        return True

    @property
    def intercept(self) -> Array:
        prior = np.full(self.n_classes, _NEVER)
        prior[self.observed] = self.prior
        return self._by_task(np.log(prior))

    def decide(self, scores: Array) -> Array:
        evidence = self._for_all_classes(scores - np.log(self.prior))
        return self._by_task(evidence) + self.intercept

    def contributions(self, terms: Array, weights: Array) -> Array:
        return self._by_task(self._for_all_classes(terms))

    def expand_probabilities(self, probabilities: Array) -> Array:
        """Insert zeros for classes without training weight; the last axis is over classes."""
        full = np.zeros((*probabilities.shape[:-1], self.n_classes))
        full[..., self.observed] = probabilities
        return full

    def _for_all_classes(self, values: Array) -> Array:
        """Give classes without training weight the smallest value of the others."""
        full = np.repeat(values.min(axis=-1, keepdims=True), self.n_classes, axis=-1)
        full[..., self.observed] = values
        return full

    def _by_task(self, values: Array) -> Array:
        """Reduce two classes to one decision, the second class against the first."""
        return values[..., 1:] - values[..., :1] if self.n_classes == 2 else values


@dataclass(frozen=True, eq=False)
class TargetBins(Outcomes):
    """Bins of equal width over the range of one target; the decision is the posterior mean."""

    centres: Array

    @classmethod
    def from_training(cls, target: Array, weight: Array, task: int, n_bins: int) -> "TargetBins":
        """Divide the range of a target into bins; the prior is a kernel density estimate."""
        low, high = float(target.min()), float(target.max())
        span = max(high - low, 1e-6 * max(abs(low), abs(high)), np.finfo(float).tiny * 1e6)
        centres = np.linspace(low - _MARGIN * span, high + _MARGIN * span, n_bins)
        mean = np.average(target, weights=weight)
        deviation = np.sqrt(np.average((target - mean) ** 2, weights=weight))
        bandwidth = max(deviation * len(target) ** -0.2, centres[1] - centres[0])
        density = np.exp(-0.5 * ((centres[:, np.newaxis] - target) / bandwidth) ** 2) @ weight
        prior = (1.0 - _UNIFORM) * density / density.sum() + _UNIFORM / n_bins
        return cls(slice(task, task + 1), prior, centres)

    @property
    def width(self) -> float:
        return float(self.centres[1] - self.centres[0])

    def bin_index(self, target: Array) -> Array:
        """Return the index of the bin of each target, of shape (n_samples,)."""
        index = np.rint((target - self.centres[0]) / self.width)
        return np.clip(index, 0, len(self.centres) - 1).astype(np.intp)

    def scores(self, decision: Array, error_scale: float) -> Array:
        return np.asarray(-0.5 * ((self.centres - decision) / error_scale) ** 2)

    def error_scale(self, decision: Array, truth: Array, weight: Array) -> float:
        error = self.centres[truth] - decision[:, 0]
        # Bins do not resolve errors below half their width.
        return max(float(np.sqrt(np.average(error**2, weights=weight))), 0.5 * self.width)

    @property
    def allows_shift(self) -> bool:
        return False

    @property
    def intercept(self) -> Array:
        return np.array([self.prior @ self.centres])

    def decide(self, scores: Array) -> Array:
        return self._mean(softmax(scores, axis=-1))

    def contributions(self, terms: Array, weights: Array) -> Array:
        """Integrate the effect of each term on the mean from the prior to the posterior.

        Along ``p_s ~ prior exp(s sum_i terms_i)`` the derivative of the mean is the sum over the
        terms of their covariance with the target. The contribution of a term is the integral of its
        covariance over ``s`` from 0 to 1.
        """
        total, log_prior = terms.sum(axis=1), np.log(self.prior)
        integral = np.zeros((*terms.shape[:2], 1))
        for node, node_weight in zip(_NODES, _NODE_WEIGHTS, strict=True):
            p = softmax(log_prior + 0.5 * (1.0 + node) * total, axis=-1)
            deviation = p * (self.centres - self._mean(p))
            integral += 0.5 * node_weight * (terms @ deviation[:, :, np.newaxis])
        rest = self.decide(log_prior + total) - self.intercept - integral.sum(axis=1)
        return integral + weights[:, :, np.newaxis] * rest[:, np.newaxis]

    def _mean(self, p: Array) -> Array:
        return np.asarray(p @ self.centres)[:, np.newaxis]
