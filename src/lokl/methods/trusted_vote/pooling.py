"""Pooling of the experts: bounded evidence, trust, learned weights and the vote."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import softmax

from lokl._arrays import Array
from lokl.methods.trusted_vote.calibration import ExpertCalibration
from lokl.methods.trusted_vote.outcomes import Outcomes
from lokl.optimizers.newton import minimize_in_box

# Least argument of a logarithm.
_LEAST = 1e-30
# Ridge penalty that draws the weights of kernels and of the prior to one, and the weight of the
# joint model to zero.
_PENALTY = 0.005
# Weight of the unchanged samples relative to one corrupted copy. With a smaller value the
# probabilities of clean samples become too cautious (at 2, by 3 to 6 percentage points).
_CLEAN_WEIGHT = 4.0


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
    def zeros(cls, present: Array, n_pools: int, intercept: Array) -> "ExpertOutputs":
        """Return outputs of zero for samples with the given views.

        Parameters
        ----------
        present : array of bool of shape (n_samples, n_kernels)
        n_pools : int
        intercept : array of shape (n_tasks,) or (n_samples, n_tasks)
        """
        n, m = present.shape
        n_tasks = intercept.shape[-1]
        return cls(
            np.zeros((n, m, n_tasks)),
            np.zeros((n, m, n_tasks)),
            np.broadcast_to(intercept, (n, n_tasks)),
            np.zeros((n, m)),
            present,
            np.zeros((n, m, n_pools)),
        )

    def with_views_from(self, donors: Array) -> "ExpertOutputs":
        """Exchange views between samples; donors (n_samples, n_kernels) are sample indices."""
        kernels = np.arange(donors.shape[1])
        return replace(
            self,
            decision=self.decision[donors, kernels],
            contribution=self.contribution[donors, kernels],
            familiarity=self.familiarity[donors, kernels],
            present=self.present[donors, kernels],
            reliability=self.reliability[donors, kernels],
        )

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
class PooledEvidence:
    """Evidence of all experts about a set of samples.

    Attributes
    ----------
    bounded : array of shape (n_samples, n_kernels, n_outcomes)
        ``B_i(y) = log(e + (1 - e) A_i(y))``, ``A_i(y) = nu_i q_i(y) / prior(y) + 1 - nu_i`` with
        probabilities ``q``, familiarity ``nu`` and noise rate ``e``: 0 if the expert is
        uninformative, never below ``log e``.
    trust : array of shape (n_samples, n_kernels)
        Posterior probability that an expert is informative,
        ``t_i = sum_y P(y) (1 - e) nu_i q_i(y) / prior(y) / exp(B_i(y))`` with
        ``P = softmax(log prior + sum_i B_i)``.
    familiarity : array of shape (n_samples, n_kernels)
    joint : array of shape (n_samples, n_outcomes)
        Bounded evidence of the joint model; 0 without one.
    """

    bounded: Array
    trust: Array
    familiarity: Array
    joint: Array


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
    weights : array of shape (n_kernels,)
    joint_weight : float
    prior_weight : float
        Multiplier of the log prior for a sample that is familiar to all kernels. Evidence is a
        ratio to the prior, so kernels with a weight above one would divide by it too often, and of
        two conflicting kernels the rarer outcome would win. Without evidence it is one.
    """

    index: int
    outcomes: Outcomes
    noise_rate: float
    experts: Sequence[ExpertCalibration]
    joint: ExpertCalibration | None
    weights: Array
    joint_weight: float = 0.0
    prior_weight: float = 1.0

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

    def pool(self, outputs: ExpertOutputs, probabilities: Array | None = None) -> PooledEvidence:
        """Bound the evidence of each expert and compute its trust.

        Parameters
        ----------
        outputs : ExpertOutputs
        probabilities : array of shape (n_samples, n_kernels, n_outcomes), optional
            Result of :meth:`probabilities`, if it is available.
        """
        q = self.probabilities(outputs) if probabilities is None else probabilities
        prior, rate = self.outcomes.prior, self.noise_rate
        bounded, trust = bounded_evidence(q, outputs.familiarity, prior, rate)
        joint = np.zeros((len(trust), len(prior)))
        if self.joint is not None:
            # If no view is trusted, the joint model is not informative either.
            trusted = trust.sum(axis=1) > 0
            decision = outputs.joint_decision(trust)
            ratio = self.joint.probabilities(self.outcomes, decision) / prior
            joint[trusted] = np.log(np.maximum(rate + (1.0 - rate) * ratio, _LEAST))[trusted]
        return PooledEvidence(bounded, trust, outputs.familiarity, joint)

    def extra_prior(self, evidence: PooledEvidence) -> Array:
        """Log prior scaled by the mean familiarity, (n_samples, n_outcomes).

        It is centred, which changes no probability: equally frequent outcomes get zero.
        """
        log_prior = np.log(self.outcomes.prior)
        return np.outer(evidence.familiarity.mean(axis=1), log_prior - log_prior.mean())

    def terms(self, evidence: PooledEvidence) -> Array:
        """Weighted evidence of each kernel, (n_samples, n_kernels, n_outcomes).

        The evidence of the joint model is divided among the kernels by trust, and the extra prior
        by familiarity.
        """
        joint = self.joint_weight * evidence.joint[:, np.newaxis]
        terms = self.weights[:, np.newaxis] * evidence.bounded
        prior = (self.prior_weight - 1.0) * self.extra_prior(evidence)[:, np.newaxis]
        terms += normalize_rows(evidence.familiarity)[:, :, np.newaxis] * prior
        return np.asarray(terms + normalize_rows(evidence.trust)[:, :, np.newaxis] * joint)

    def decide(self, outputs: ExpertOutputs) -> Array:
        """Decisions of the vote, (n_samples, n_tasks) for the tasks of these outcomes."""
        evidence = self.pool(outputs)
        scores = np.einsum("i,niy->ny", self.weights, evidence.bounded)
        scores += (self.prior_weight - 1.0) * self.extra_prior(evidence)
        scores += self.joint_weight * evidence.joint + np.log(self.outcomes.prior)
        return self.outcomes.decide(scores)

    def contributions(self, outputs: ExpertOutputs) -> Array:
        """Contribution of each kernel to the decisions, (n_samples, n_kernels, n_tasks)."""
        evidence = self.pool(outputs)
        return self.outcomes.contributions(self.terms(evidence), normalize_rows(evidence.trust))

    def trust(self, outputs: ExpertOutputs) -> Array:
        """Probability that each kernel is informative, (n_samples, n_kernels)."""
        return self.pool(outputs).trust

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
    """Compute bounded evidence and trust; see :class:`PooledEvidence` for the formulas.

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
    terms = [_vote_terms(pool, pool.pool(outputs, q))]
    order = _order_by_loss(q, outputs.present, truth, weight)
    kernels = np.arange(q.shape[1])
    for _ in range(n_copies):
        donors = draw_donors(outputs.present, truth, weight, order, rng)
        copy = pool.pool(outputs.with_views_from(donors), q[donors, kernels])
        terms.append(_vote_terms(pool, copy))
    counts = np.array([_CLEAN_WEIGHT] + [1.0] * n_copies)
    sample_weight = np.outer(counts / counts.sum(), weight / weight.sum()).ravel()
    m = len(pool.weights)
    # Weights of the kernels, of the joint model, and of the prior beyond one.
    start = np.concatenate([np.ones(m), [0.0, 0.0]])
    lower = np.concatenate([np.zeros(m), [0.0, -1.0]])
    upper = np.full(m + 2, np.inf)
    upper[m] = 0.0 if pool.joint is None else np.inf
    if m == 1 or not pool.outcomes.allows_shift:
        # A single kernel predicts like its SVM, which has its own intercept. For numeric targets a
        # larger weight of frequent bins would bias the mean.
        lower[m + 1] = upper[m + 1] = 0.0
    log_prior = np.log(pool.outcomes.prior)
    loss = _VoteLoss(
        np.concatenate(terms), np.tile(truth, len(terms)), sample_weight, log_prior, start
    )
    solution = minimize_in_box(loss, start, lower, upper)
    return replace(
        pool,
        weights=solution[:m],
        joint_weight=float(solution[m]),
        prior_weight=1.0 + float(solution[m + 1]),
    )


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
    right = probabilities[np.arange(len(truth)), :, truth]
    log = np.log(np.maximum(right, np.finfo(float).tiny)) * present
    return np.argsort(weight @ log, kind="stable")


def _vote_terms(pool: EvidencePool, evidence: PooledEvidence) -> Array:
    """Stack the evidence of the kernels, of the joint model and of the prior.

    Returns
    -------
    terms : array of shape (n_samples, n_kernels + 2, n_outcomes)
    """
    others = np.stack([evidence.joint, pool.extra_prior(evidence)], axis=1)
    return np.concatenate([evidence.bounded, others], axis=1)


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
        rows, offset = np.arange(len(p)), w - self.start
        right = np.maximum(p[rows, self.truth], np.finfo(float).tiny)
        value = -self.weight @ np.log(right) + _PENALTY * float(offset @ offset)
        mean = np.einsum("ny,niy->ni", p, self.terms)
        gradient = self.weight @ (mean - self.terms[rows, :, self.truth]) + 2.0 * _PENALTY * offset
        root = np.sqrt(self.weight[:, np.newaxis] * p)[:, np.newaxis]
        centred = (self.terms - mean[:, :, np.newaxis]) * root
        tall = centred.transpose(1, 0, 2).reshape(len(w), -1)
        hessian = tall @ tall.T + 2.0 * _PENALTY * np.eye(len(w))
        return float(value), gradient, hessian
