"""Evidence of calibrated experts: outcomes, calibration, bounded evidence, trust and the vote."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.special import softmax

from lokl._arrays import Array, Samples
from lokl._survival import risk_table
from lokl.optimizers.newton import minimize_in_box

# Prior probability of a class without training weight.
_NEVER = 1e-12
# Bins extend beyond the range of the training targets by this fraction of it.
_MARGIN = 0.1
# Uniform part of the prior over bins, so that no bin is impossible.
_UNIFORM = 0.1
# Least prior probability of an interval of time before all are divided by their sum.
_LEAST_SHARE = 1e-3
# Gauss-Legendre nodes and weights on the path from the prior to the posterior.
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(12)
# Penalties on the shifts of outcomes and on the slope of the log scale.
_SHIFT_PENALTY, _SLOPE_PENALTY = 0.01, 0.001
_LOG_SCALE_BOUNDS, _SLOPE_BOUNDS = (-3.0, 5.0), (0.0, 2.0)
# Least argument of a logarithm.
_LEAST = 1e-30
# Ridge penalty that draws the weights of kernels and of the prior to one, and the weight of the
# joint model to zero.
_PENALTY = 0.005
# Weight of the unchanged samples relative to one corrupted copy. With a smaller value the
# probabilities of clean samples become too cautious (at 2, by 3 to 6 percentage points).
_CLEAN_WEIGHT = 4.0


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

    # Whether the vote learns the weight of the prior; for numbers this would bias the mean.
    learns_prior: ClassVar[bool]

    @property
    def base(self) -> Array:
        """Constant part of the log probabilities before shifts, of shape (n_outcomes,)."""
        return np.zeros(len(self.prior))

    @property
    def shifts(self) -> Array:
        """Constants that calibration may add to the log probabilities, (n_shifts, n_outcomes)."""
        return np.zeros((0, len(self.prior)))

    @abstractmethod
    def truth(self, targets: Array) -> Array:
        """Return the indices of true outcomes, (n_samples,), from the targets of all SVMs.

        If it is only known that the outcome is ``k`` or a later one, the value is ``-1 - k``.
        """

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

    def error_scale(self, decision: Array, truth: Array, weight: Array) -> float:
        """Return the weighted root mean squared error of held-out decisions (1 for classes)."""
        return 1.0

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

    learns_prior = True

    @property
    def shifts(self) -> Array:
        return np.eye(len(self.prior))

    @classmethod
    def from_training(cls, targets: Array, weight: Array) -> "ClassOutcomes":
        """Estimate the prior from the targets of all SVMs and the weights of the samples.

        Parameters
        ----------
        targets : array of shape (n_samples, n_tasks)
            Positive for the class of a sample; one column for two classes.
        weight : array of shape (n_samples,)
        """
        codes, n_classes = cls._codes(targets), max(targets.shape[1], 2)
        counts = np.bincount(codes, weights=weight, minlength=n_classes)
        observed = np.flatnonzero(counts > 0)
        n_tasks = 1 if n_classes == 2 else n_classes
        return cls(slice(0, n_tasks), counts[observed] / counts.sum(), observed, n_classes)

    @staticmethod
    def _codes(targets: Array) -> Array:
        codes = targets[:, 0] > 0 if targets.shape[1] == 1 else targets.argmax(axis=1)
        return np.asarray(codes, dtype=np.intp)

    def truth(self, targets: Array) -> Array:
        index = np.zeros(self.n_classes, dtype=np.intp)
        index[self.observed] = np.arange(len(self.observed))
        return np.asarray(index[self._codes(targets)])

    def scores(self, decision: Array, error_scale: float) -> Array:
        both = np.hstack([-decision, decision]) if self.n_classes == 2 else decision
        return np.asarray(both[:, self.observed])

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

    learns_prior = False

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

    def truth(self, targets: Array) -> Array:
        index = np.rint((targets[:, self.tasks.start] - self.centres[0]) / self.width)
        return np.clip(index, 0, len(self.centres) - 1).astype(np.intp)

    def scores(self, decision: Array, error_scale: float) -> Array:
        return np.asarray(-0.5 * ((self.centres - decision) / error_scale) ** 2)

    def error_scale(self, decision: Array, truth: Array, weight: Array) -> float:
        error = self.centres[truth] - decision[:, 0]
        # Bins do not resolve errors below half their width.
        return max(float(np.sqrt(np.average(error**2, weights=weight))), 0.5 * self.width)

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


@dataclass(frozen=True, eq=False)
class TimeBins(TargetBins):
    """Intervals of time in which an event happens; the last one is after all known events.

    Centres are minus the mean cumulative hazard (Nelson-Aalen) of the training events in each
    interval. The score of an interval is the decision times its centre. With the log prior it gives
    proportional hazards: tilting an exponential distribution changes its rate.

    Attributes
    ----------
    limits : array of shape (n_outcomes - 1,)
        Last time of each interval but the last one.
    middles : array of shape (n_outcomes - 1,)
        Time at which half of the events of the interval have happened.
    neutral : float
        Decision that leaves the prior as it is.
    """

    limits: Array
    middles: Array
    neutral: float

    @classmethod
    def from_times(cls, y: Array, weight: Array, neutral: float, n_bins: int) -> "TimeBins":
        """Divide time so that about equal shares of events fall into each interval.

        Parameters
        ----------
        y : structured array of shape (n_samples,)
        weight : array of shape (n_samples,)
        neutral : float
        n_bins : int
            Number of intervals at most, without the last one.
        """
        times, events, _, at_risk = risk_table(y, weight)
        happens = events > 0
        rate = np.divide(events, at_risk, out=np.zeros_like(events), where=happens)
        survival = np.cumprod(1.0 - rate)
        mass = -np.diff(survival, prepend=1.0)[happens]
        hazard, times = np.cumsum(rate)[happens], times[happens]
        total = np.cumsum(mass)
        levels = total[-1] * np.arange(1, n_bins + 1) / n_bins
        ends = np.unique(np.searchsorted(total, levels * (1.0 - 1e-9)))
        own = np.searchsorted(ends, np.arange(len(times)))
        shares = np.bincount(own, weights=mass)
        centres = -np.bincount(own, weights=mass * hazard) / shares
        half = np.cumsum(shares) - 0.5 * shares
        middles = times[np.searchsorted(total, half * (1.0 - 1e-9))]
        prior = np.maximum(np.append(shares, survival[-1]), _LEAST_SHARE)
        # Without covariates, the hazard of an event after all others is larger by one on average.
        centres = np.append(centres, -hazard[-1] - 1.0)
        return cls(slice(0, 1), prior / prior.sum(), centres, times[ends], middles, neutral)

    @property
    def base(self) -> Array:
        return np.log(self.prior)

    @property
    def shifts(self) -> Array:
        # A factor of all hazards.
        return self.centres[np.newaxis]

    def truth(self, targets: Array) -> Array:
        """Return the interval of each event, or the first possible one of a censored sample.

        Parameters
        ----------
        targets : array of shape (n_samples, 2)
            Events and times.
        """
        is_event, time = targets[:, 0] > 0, targets[:, 1]
        of_event = np.minimum(np.searchsorted(self.limits, time), len(self.limits) - 1)
        return np.where(is_event, of_event, -1 - np.searchsorted(self.middles, time, side="right"))

    def scores(self, decision: Array, error_scale: float) -> Array:
        return np.asarray((decision - self.neutral) / error_scale * self.centres)

    def error_scale(self, decision: Array, truth: Array, weight: Array) -> float:
        """Return the standard deviation of held-out decisions, 1 if it is zero."""
        mean = np.average(decision[:, 0], weights=weight)
        scale = float(np.sqrt(np.average((decision[:, 0] - mean) ** 2, weights=weight)))
        return scale if scale > 1e-12 * max(1.0, abs(float(mean))) else 1.0


def _agreeing(truth: Array, n_outcomes: int) -> Array:
    """Return the outcomes that agree with what is known of each sample, (n_samples, n_outcomes)."""
    outcomes, first = np.arange(n_outcomes), np.where(truth < 0, -1 - truth, truth)[:, np.newaxis]
    return np.where((truth < 0)[:, np.newaxis], outcomes >= first, outcomes == first)


def probability_of(truth: Array, p: Array) -> Array:
    """Return the probability of what is known of each sample, (n_samples, ...).

    Parameters
    ----------
    truth : array of int of shape (n_samples,)
        From :meth:`Outcomes.truth`.
    p : array of shape (n_samples, ..., n_outcomes)
    """
    if (truth >= 0).all():
        return np.asarray(p[np.arange(len(truth)), ..., truth])
    return np.einsum("n...y,ny->n...", p, _agreeing(truth, p.shape[-1]))


def given(truth: Array, p: Array) -> Array:
    """Return probabilities (n_samples, n_outcomes), given what is known of each sample."""
    agreeing = p * _agreeing(truth, p.shape[1])
    return agreeing / np.maximum(agreeing.sum(axis=1, keepdims=True), np.finfo(float).tiny)


def mean_given(truth: Array, p: Array, values: Array) -> Array:
    """Return the mean of values under probabilities, given what is known of each sample.

    Parameters
    ----------
    truth : array of int of shape (n_samples,)
    p : array of shape (n_samples, n_outcomes)
    values : array of shape (n_samples, ..., n_outcomes)

    Returns
    -------
    means : array of shape (n_samples, ...)
    """
    if (truth >= 0).all():
        return probability_of(truth, values)
    return np.einsum("n...y,ny->n...", values, given(truth, p))


@dataclass(frozen=True, eq=False)
class ExpertCalibration:
    """``q(y|x) = softmax_y(exp(alpha + beta z(x)) F_y(x) + d_y)`` with scores ``F``.

    The temperature is local: the more reliable the expert is near a sample (``z``), the more a
    decision of the same size counts.

    Attributes
    ----------
    log_scale : float
        ``alpha``.
    slope : float
        ``beta``; 0 for one temperature everywhere.
    shift : array of shape (n_outcomes,)
        ``d``.
    error_scale : float
        Typical error of the expert, by which scores are divided.
    """

    log_scale: float
    slope: float
    shift: Array
    error_scale: float

    def probabilities(
        self, outcomes: Outcomes, decision: Array, reliability: Array | None = None
    ) -> Array:
        """Compute the probabilities of the outcomes.

        Parameters
        ----------
        outcomes : Outcomes
        decision : array of shape (n_samples, n_tasks)
        reliability : array of shape (n_samples,), optional
            Local reliability ``z``; None is zero.

        Returns
        -------
        probabilities : array of shape (n_samples, n_outcomes)
        """
        local = 0.0 if reliability is None else self.slope * reliability[:, np.newaxis]
        scores = outcomes.scores(decision[:, outcomes.tasks], self.error_scale)
        return np.asarray(softmax(np.exp(self.log_scale + local) * scores + self.shift, axis=-1))


def calibrate(
    outcomes: Outcomes,
    decision: Array,
    truth: Array,
    weight: Array,
    reliability: Array | None = None,
    start: ExpertCalibration | None = None,
) -> ExpertCalibration:
    """Fit a calibration to held-out decisions by penalised maximum likelihood.

    Parameters
    ----------
    outcomes : Outcomes
    decision : array of shape (n_samples, n_tasks)
    truth : array of int of shape (n_samples,)
        Index of the true outcome.
    weight : array of shape (n_samples,)
    reliability : array of shape (n_samples,), optional
        Local reliability; None fits one temperature for all samples.
    start : ExpertCalibration, optional
        Starting point.
    """
    decision = decision[:, outcomes.tasks]
    total = float(weight.sum())
    if total <= 0:
        return ExpertCalibration(0.0, 0.0, outcomes.base, 1.0)
    scale = outcomes.error_scale(decision, truth, weight) if start is None else start.error_scale
    scores = outcomes.scores(decision, scale)
    base, shifts = outcomes.base, outcomes.shifts
    loss = _CalibrationLoss(scores, base, shifts, truth, weight / total, reliability)
    n_shifts = len(shifts)
    initial = np.zeros(2 + n_shifts)
    if start is not None:
        amounts = np.linalg.lstsq(shifts.T, start.shift - base, rcond=None)[0]
        initial = np.concatenate([[start.log_scale, start.slope], amounts])
    slopes = (0.0, 0.0) if reliability is None else _SLOPE_BOUNDS
    lower = np.concatenate([[_LOG_SCALE_BOUNDS[0], slopes[0]], np.full(n_shifts, -np.inf)])
    upper = np.concatenate([[_LOG_SCALE_BOUNDS[1], slopes[1]], np.full(n_shifts, np.inf)])
    solution = minimize_in_box(loss, initial, lower, upper)
    shift = base + solution[2:] @ shifts
    return ExpertCalibration(float(solution[0]), float(solution[1]), shift, scale)


@dataclass(frozen=True, eq=False)
class _CalibrationLoss:
    """Penalised mean negative log likelihood as a function of ``(alpha, beta, d_1, ...)``."""

    scores: Array
    base: Array  # of each outcome, without shifts
    shifts: Array  # (n_shifts, n_outcomes)
    truth: Array
    weight: Array  # of each sample, summing to one
    reliability: Array | None

    def __call__(self, x: Array) -> tuple[float, Array, Array]:
        """Return value, gradient and a positive semidefinite approximation of the Hessian."""
        z = np.zeros(len(self.truth)) if self.reliability is None else self.reliability
        scaled = np.exp(x[0] + x[1] * z)[:, np.newaxis] * self.scores
        p = softmax(scaled + (self.base + x[2:] @ self.shifts), axis=-1)
        weight = self.weight
        right = np.maximum(probability_of(self.truth, p), np.finfo(float).tiny)
        value = -weight @ np.log(right) + 0.5 * _SLOPE_PENALTY * x[1] ** 2
        value += 0.5 * _SHIFT_PENALTY * float(x[2:] @ x[2:])
        # Derivatives with respect to the log scale of each sample.
        mean = (p * scaled).sum(axis=1)
        slope = mean - mean_given(self.truth, p, scaled)
        centred = scaled - mean[:, np.newaxis]
        spread = weight * (p * centred**2).sum(axis=1)
        factors = np.stack([np.ones_like(z), z])
        gradient, curvature = np.zeros_like(x), np.zeros((len(x), len(x)))
        gradient[:2] = factors @ (weight * slope)
        curvature[:2, :2] = (factors * spread) @ factors.T
        if len(self.shifts):
            expected = weight @ p
            weighted = weight[:, np.newaxis] * p
            gradient[2:] = self.shifts @ (expected - weight @ given(self.truth, p))
            curvature[:2, 2:] = factors @ (weighted * centred) @ self.shifts.T
            curvature[2:, :2] = curvature[:2, 2:].T
            curvature[2:, 2:] = self.shifts @ (np.diag(expected) - weighted.T @ p) @ self.shifts.T
        penalty = np.concatenate([[0.0, _SLOPE_PENALTY], np.full(len(x) - 2, _SHIFT_PENALTY)])
        return float(value), gradient + penalty * x, curvature + np.diag(penalty)


@dataclass(frozen=True, eq=False)
class ExpertOutputs:
    """Outputs of the SVMs of all kernels for a set of samples.

    Attributes
    ----------
    decision : array of shape (n_samples, n_kernels, n_tasks)
        Decisions of the SVM of each kernel.
    contribution : array of shape (n_samples, n_kernels, n_tasks)
        Contribution of each kernel to the decision of the joint model.
    intercept : array of shape (n_samples, n_tasks)
        Intercept of the joint model.
    familiarity : array of shape (n_samples, n_kernels)
        0 if the view is missing.
    present : array of bool of shape (n_samples, n_kernels)
        Whether the sample has the view.
    reliability : array of shape (n_samples, n_kernels, n_pools)
        Local reliability of each kernel, for each pool.
    """

    decision: Array
    contribution: Array
    intercept: Array
    familiarity: Array
    present: Array
    reliability: Array

    @classmethod
    def collect(
        cls, samples: Samples, parts: Iterable[Sequence[Array]], intercept: Array
    ) -> "ExpertOutputs":
        """Collect the outputs of single kernels for samples that have their view.

        Parameters
        ----------
        samples : Samples
        parts : iterable of (decision, contribution, familiarity, reliability)
            Of shape (n_seen, n_tasks) twice, (n_seen,) and (n_seen, n_pools), one for each kernel.
            Contributions to the joint model are those before the gate.
        intercept : array of shape (n_tasks,) or (n_samples, n_tasks)
        """
        columns = [samples.by_kernel(values) for values in zip(*parts, strict=True)]
        decision, contribution, familiarity, reliability = columns
        present = np.ones(familiarity.shape, bool) if samples.present is None else samples.present
        # Gate of the joint model: the views of a sample have equal weights.
        contribution *= (1.0 / np.sqrt(present.sum(axis=1)))[:, np.newaxis, np.newaxis]
        intercept = np.broadcast_to(intercept, (len(decision), decision.shape[2]))
        return cls(decision, contribution, intercept, familiarity, present, reliability)

    def with_views_from(self, donors: Array) -> "ExpertOutputs":
        """Exchange views between samples; donors (n_samples, n_kernels) are sample indices."""
        kernels = np.arange(donors.shape[1])
        names = ("decision", "contribution", "familiarity", "present", "reliability")
        return replace(self, **{name: getattr(self, name)[donors, kernels] for name in names})

    def joint_decision(self, trust: Array) -> Array:
        """Decisions of the joint model with each kernel weighted by its trust.

        If all views of a sample are equally trusted, this is the joint model as it was fitted.

        Parameters
        ----------
        trust : array of shape (n_samples, n_kernels)

        Returns
        -------
        decision : array of shape (n_samples, n_tasks)
        """
        weights = normalize_rows(trust) * self.present.sum(axis=1, keepdims=True)
        return np.einsum("ni,nit->nt", weights, self.contribution) + self.intercept


@dataclass(frozen=True, eq=False)
class EvidencePool:
    """Calibrated experts on one set of outcomes, and how they are combined.

    Attributes
    ----------
    index : int
        Index of the pool; there is one for the classes, or one for each numeric target.
    outcomes : Outcomes
    noise_rate : float
        Probability that the output of an expert is unrelated to the outcome.
    experts : sequence of ExpertCalibration
        One for each kernel.
    joint : ExpertCalibration or None
        Calibration of the joint model, None without one.
    weights : array of shape (n_kernels + 2,)
        Weights of the kernels, of the joint model, and of the extra log prior for a sample that is
        familiar to all kernels. Evidence is a ratio to the prior, so kernels with a weight above
        one would divide by it too often, and of two conflicting kernels the rarer outcome would
        win.
    """

    index: int
    outcomes: Outcomes
    noise_rate: float
    experts: Sequence[ExpertCalibration]
    joint: ExpertCalibration | None
    weights: Array

    def probabilities(self, outputs: ExpertOutputs) -> Array:
        """Calibrated probabilities of each expert, (n_samples, n_kernels, n_outcomes)."""
        reliability = outputs.reliability[:, :, self.index]
        return np.stack(
            [
                expert.probabilities(self.outcomes, outputs.decision[:, i], reliability[:, i])
                for i, expert in enumerate(self.experts)
            ],
            axis=1,
        )

    def evidence(
        self, outputs: ExpertOutputs, probabilities: Array | None = None
    ) -> tuple[Array, Array]:
        """Compute the terms of the vote before they are weighted, and the trust in each expert.

        Parameters
        ----------
        outputs : ExpertOutputs
        probabilities : array of shape (n_samples, n_kernels, n_outcomes), optional
            Result of :meth:`probabilities`, if it is available.

        Returns
        -------
        terms : array of shape (n_samples, n_kernels + 2, n_outcomes)
            Bounded evidence of each expert and of the joint model (0 without one), and the log
            prior times the mean familiarity. The latter is centred, which changes no probability:
            equally frequent outcomes get zero.
        trust : array of shape (n_samples, n_kernels)
        """
        q = self.probabilities(outputs) if probabilities is None else probabilities
        prior, rate, familiarity = self.outcomes.prior, self.noise_rate, outputs.familiarity
        bounded, trust = bounded_evidence(q, familiarity, prior, rate)
        joint, log_prior = np.zeros((len(trust), len(prior))), np.log(prior)
        if self.joint is not None:
            # If no view is trusted, the joint model is not informative either.
            trusted = trust.sum(axis=1) > 0
            decision = outputs.joint_decision(trust)
            ratio = self.joint.probabilities(self.outcomes, decision) / prior
            joint[trusted] = np.log(np.maximum(rate + (1.0 - rate) * ratio, _LEAST))[trusted]
        extra = np.outer(familiarity.mean(axis=1), log_prior - log_prior.mean())
        return np.concatenate([bounded, np.stack([joint, extra], axis=1)], axis=1), trust

    def decide(self, outputs: ExpertOutputs) -> Array:
        """Decisions of the vote, (n_samples, n_tasks) for the tasks of these outcomes."""
        votes = np.einsum("i,niy->ny", self.weights, self.evidence(outputs)[0])
        return self.outcomes.decide(votes + np.log(self.outcomes.prior))

    def contributions(self, outputs: ExpertOutputs) -> Array:
        """Contribution of each kernel to the decisions, (n_samples, n_kernels, n_tasks).

        The evidence of the joint model is divided among the kernels by trust, and the extra prior
        by familiarity.
        """
        terms, trust = self.evidence(outputs)
        terms *= self.weights[:, np.newaxis]
        shares = np.stack([normalize_rows(trust), normalize_rows(outputs.familiarity)], axis=2)
        return self.outcomes.contributions(terms[:, :-2] + shares @ terms[:, -2:], shares[:, :, 0])

    def trust(self, outputs: ExpertOutputs) -> Array:
        """Probability that each kernel is informative, (n_samples, n_kernels)."""
        return self.evidence(outputs)[1]

    def probabilities_alone(self, outputs: ExpertOutputs) -> Array:
        """Probabilities given one kernel at a time, (n_samples, n_kernels, n_outcomes).

        They are mixed with the prior as far as the sample is unfamiliar to the kernel.
        """
        familiarity = outputs.familiarity[:, :, np.newaxis]
        q = self.probabilities(outputs)
        return np.asarray(familiarity * q + (1.0 - familiarity) * self.outcomes.prior)

    def disagreement(self, outputs: ExpertOutputs) -> Array:
        """Mean disagreement of pairs of kernels, (n_samples,)."""
        return pairwise_disagreement(self.probabilities(outputs), outputs.familiarity)


def bounded_evidence(
    probabilities: Array, familiarity: Array, prior: Array, noise_rate: float
) -> tuple[Array, Array]:
    """Compute the bounded evidence of each expert, and its trust.

    With probabilities ``q``, familiarity ``nu`` and noise rate ``e`` the evidence is
    ``B_i(y) = log(e + (1 - e) A_i(y))`` with ``A_i(y) = nu_i q_i(y) / prior(y) + 1 - nu_i``: 0 if
    the expert is uninformative, never below ``log e``. Trust is the posterior probability that an
    expert is informative, ``t_i = sum_y P(y) (1 - e) nu_i q_i(y) / prior(y) / exp(B_i(y))`` with
    ``P = softmax(log prior + sum_i B_i)``.

    Parameters
    ----------
    probabilities : array of shape (n_samples, n_kernels, n_outcomes)
    familiarity : array of shape (n_samples, n_kernels)
    prior : array of shape (n_outcomes,)
    noise_rate : float

    Returns
    -------
    bounded : array of shape (n_samples, n_kernels, n_outcomes)
    trust : array of shape (n_samples, n_kernels)
    """
    nu = familiarity[:, :, np.newaxis]
    informative = (1.0 - noise_rate) * nu * probabilities / prior
    total = np.maximum(informative + (1.0 - noise_rate) * (1.0 - nu) + noise_rate, _LEAST)
    bounded = np.log(total)
    posterior = softmax(np.log(prior) + bounded.sum(axis=1), axis=-1)
    trust = np.einsum("ny,niy->ni", posterior, informative / total)
    # With a noise rate of zero, trust is one up to rounding.
    return bounded, np.minimum(trust, 1.0)


def pairwise_disagreement(probabilities: Array, familiarity: Array) -> Array:
    """Mean total variation distance of all pairs of experts, weighted by familiarity.

    For one pair it is ``sum_y |q_i(y) - q_k(y)| / 2``: 0 for equal probabilities, 1 if each expert
    excludes every outcome that the other considers possible.

    Parameters
    ----------
    probabilities : array of shape (n_samples, n_kernels, n_outcomes)
    familiarity : array of shape (n_samples, n_kernels)

    Returns
    -------
    disagreement : array of shape (n_samples,)
    """
    n_samples, n_kernels, _ = probabilities.shape
    total, weight = np.zeros(n_samples), np.zeros(n_samples)
    for i in range(n_kernels):
        for k in range(i):
            pair = familiarity[:, i] * familiarity[:, k]
            distance = np.abs(probabilities[:, i] - probabilities[:, k]).sum(axis=1)
            total += pair * 0.5 * distance
            weight += pair
    return np.divide(total, weight, out=np.zeros_like(total), where=weight > 0)


def normalize_rows(values: Array) -> Array:
    """Divide each row by its sum; rows of zeros stay zero."""
    total = values.sum(axis=1, keepdims=True)
    return np.divide(values, total, out=np.zeros_like(values), where=total > 0)


def learn_weights(
    pool: EvidencePool,
    outputs: ExpertOutputs,
    truth: Array,
    weight: Array,
    n_copies: int,
    rng: np.random.RandomState,
) -> EvidencePool:
    """Learn the weights that minimise the log loss of held-out outputs.

    The loss includes corrupted copies of the samples. In each copy every sample has one view of a
    sample with another outcome, so an expert that is easily misled gets a smaller weight.

    Parameters
    ----------
    pool : EvidencePool
    outputs : ExpertOutputs
        Held-out outputs for the training samples.
    truth : array of int of shape (n_samples,)
        Index of the true outcome.
    weight : array of shape (n_samples,)
    n_copies : int
    rng : RandomState

    Returns
    -------
    pool : EvidencePool
        With learned weights.
    """
    q = pool.probabilities(outputs)
    terms = [pool.evidence(outputs, q)[0]]
    order = _order_by_loss(q, outputs.present, truth, weight)
    kernels = np.arange(q.shape[1])
    for _ in range(n_copies):
        donors = draw_donors(outputs.present, truth, weight, order, rng)
        terms.append(pool.evidence(outputs.with_views_from(donors), q[donors, kernels])[0])
    counts = np.array([_CLEAN_WEIGHT] + [1.0] * n_copies)
    sample_weight = np.outer(counts / counts.sum(), weight / weight.sum()).ravel()
    m, start = q.shape[1], pool.weights
    lower, upper = np.zeros(m + 2), np.full(m + 2, np.inf)
    upper[m] = 0.0 if pool.joint is None else np.inf
    lower[m + 1] = -1.0
    if m == 1 or not pool.outcomes.learns_prior:
        # A single kernel predicts like its SVM, which has its own intercept. For numeric targets a
        # larger weight of frequent bins would bias the mean.
        lower[m + 1] = upper[m + 1] = 0.0
    log_prior, truths = np.log(pool.outcomes.prior), np.tile(truth, len(terms))
    loss = _VoteLoss(np.concatenate(terms), truths, sample_weight, log_prior, start)
    return replace(pool, weights=minimize_in_box(loss, start, lower, upper))


def draw_donors(
    present: Array, truth: Array, weight: Array, order: Array, rng: np.random.RandomState
) -> Array:
    """Draw the samples that donate views to a corrupted copy.

    Each sample keeps all views but one, which comes from a random sample that has the view and
    another outcome. A sample with one view stays as it is, since no vote could detect the change.

    Parameters
    ----------
    present : array of bool of shape (n_samples, n_kernels)
    truth : array of int of shape (n_samples,)
    weight : array of shape (n_samples,)
    order : array of int of shape (n_kernels,)
        Order of the kernels in which views are drawn.
    rng : RandomState

    Returns
    -------
    donors : array of int of shape (n_samples, n_kernels)
        Index of the sample that each view comes from.
    """
    n, m = present.shape
    donors = np.repeat(np.arange(n)[:, np.newaxis], m, axis=1)
    ordered = present[:, order]
    rank = (rng.uniform(size=n) * ordered.sum(axis=1)).astype(np.intp)
    position = (np.cumsum(ordered, axis=1) > rank[:, np.newaxis]).argmax(axis=1)
    view = np.where(present.sum(axis=1) > 1, order[position], -1)
    draw = np.asarray(rng.uniform(size=n))
    for i in range(m):
        available = np.where(present[:, i], weight, 0.0)
        for outcome in np.unique(truth[view == i]):
            rows = np.flatnonzero((view == i) & (truth == outcome))
            mass = np.cumsum(np.where(truth == outcome, 0.0, available))
            if mass[-1] > 0:
                donor = np.searchsorted(mass, draw[rows] * mass[-1], side="right")
                donors[rows, i] = np.minimum(donor, n - 1)
    return donors


def _order_by_loss(probabilities: Array, present: Array, truth: Array, weight: Array) -> Array:
    """Sort kernels by log loss, so that draws do not depend on the order of the kernels."""
    right = probability_of(truth, probabilities)
    log = np.log(np.maximum(right, np.finfo(float).tiny)) * present
    return np.argsort(weight @ log, kind="stable")


@dataclass(frozen=True, eq=False)
class _VoteLoss:
    """Penalised mean log loss of ``softmax(log prior + sum_i w_i terms_i)``, convex in ``w``."""

    terms: Array  # (n_samples, n_terms, n_outcomes)
    truth: Array
    weight: Array  # of each sample, summing to one
    log_prior: Array
    start: Array

    def __call__(self, w: Array) -> tuple[float, Array, Array]:
        """Return value, gradient and Hessian."""
        p = softmax(self.log_prior + np.einsum("i,niy->ny", w, self.terms), axis=-1)
        offset = w - self.start
        right = np.maximum(probability_of(self.truth, p), np.finfo(float).tiny)
        value = -self.weight @ np.log(right) + _PENALTY * float(offset @ offset)
        mean = np.einsum("ny,niy->ni", p, self.terms)
        gradient = (
            self.weight @ (mean - mean_given(self.truth, p, self.terms)) + 2.0 * _PENALTY * offset
        )
        root = np.sqrt(self.weight[:, np.newaxis] * p)[:, np.newaxis]
        centred = (self.terms - mean[:, :, np.newaxis]) * root
        tall = centred.transpose(1, 0, 2).reshape(len(w), -1)
        hessian = tall @ tall.T + 2.0 * _PENALTY * np.eye(len(w))
        return float(value), gradient, hessian
