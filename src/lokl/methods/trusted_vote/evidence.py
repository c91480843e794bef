"""What one expert may say at most, and how far it speaks to the matter.

All experts on one question: what they say, how far each is trusted, and the vote.

How much each expert counts, learned from held-out samples and samples with a wrong view.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lokl._arrays import Array
from lokl.methods.trusted_vote.calibration import Calibration, minimize_in_box
from lokl.methods.trusted_vote.outcomes import Outcomes, softmax

_LEAST = 1e-30


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the experts say about some samples, each within bounds.

    Attributes
    ----------
    bounded : array of shape (n_samples, n_experts, n_outcomes)
        ``B_i(y) = log(e + (1 - e) A_i(y))``, ``A_i(y) = nu_i q_i(y) / prior(y) + 1 - nu_i`` with
        probabilities ``q``, familiarity ``nu`` and noise rate ``e``: 0 if the expert is
        uninformative, never below ``log e``.
    trust : array of shape (n_samples, n_experts)
        Probability that an expert speaks to the matter, given all that is said:
        ``t_i = sum_y P(y) (1 - e) nu_i q_i(y) / prior(y) / exp(B_i(y))`` with
        ``P = softmax(log prior + sum_i B_i)``.
    """

    bounded: Array
    trust: Array

    @classmethod
    def of(cls, chances: Array, familiar: Array, prior: Array, noise_rate: float) -> "Evidence":
        """Weigh probabilities (n_samples, n_experts, n_outcomes) of views so familiar."""
        known = familiar[:, :, np.newaxis]
        spoken = (1.0 - noise_rate) * known * chances / prior
        whole = np.maximum(spoken + (1.0 - noise_rate) * (1.0 - known) + noise_rate, _LEAST)
        bounded = np.log(whole)
        posterior = softmax(np.log(prior) + bounded.sum(axis=1))
        trust = np.einsum("ny,niy->ni", posterior, spoken / whole)
        # Without noise_rate, it is one but for rounding.
        return cls(bounded, np.minimum(trust, 1.0))


def bound(chances: Array, prior: Array, noise_rate: float) -> Array:
    """Bounded evidence of one expert that knows all samples, (n_samples, n_outcomes)."""
    return np.log(np.maximum(noise_rate + (1.0 - noise_rate) * chances / prior, _LEAST))


def disagreement(chances: Array, familiar: Array) -> Array:
    """How far two experts contradict each other, on average over all pairs, weighed by familiarity.

    Of one pair it is ``sum_y |q_i(y) - q_k(y)| / 2``: 0 where both say the same, 1 where each rules
    out all that the other holds possible.
    """
    total, pairs = np.zeros(len(chances)), np.zeros(len(chances))
    for i in range(chances.shape[1]):
        for k in range(i):
            pair = familiar[:, i] * familiar[:, k]
            total += pair * 0.5 * np.abs(chances[:, i] - chances[:, k]).sum(axis=1)
            pairs += pair
    return np.divide(total, pairs, out=np.zeros_like(total), where=pairs > 0)


@dataclass(frozen=True, eq=False)
class Heard:
    """What the machines of all kernels say about some samples.

    Attributes
    ----------
    decision : array of shape (n_samples, n_kernels, n_tasks)
        Of the machine of each kernel alone.
    part : array of shape (n_samples, n_kernels, n_tasks)
        Of each kernel in the machine of all kernels together.
    base : array of shape (n_samples, n_tasks)
        Intercept of that machine.
    familiar : array of shape (n_samples, n_kernels)
        0 where a view is missing.
    present : array of shape (n_samples, n_kernels)
        Whether a sample has the view.
    local : array of shape (n_samples, n_kernels, n_panels)
        Local success of each kernel in each question.
    """

    decision: Array
    part: Array
    base: Array
    familiar: Array
    present: Array
    local: Array


@dataclass(frozen=True, eq=False)
class Testimony:
    """What experts say on one question, as probabilities."""

    chances: Array  # (n_samples, n_kernels, n_outcomes)
    familiar: Array  # (n_samples, n_kernels)
    part: Array  # as heard
    base: Array
    present: Array

    def with_views_of(self, donors: Array) -> "Testimony":
        """Return the same samples with some views those of other samples.

        `donors` (n_samples, n_kernels) is the number of the sample whose view is taken.
        """
        kernels = np.arange(donors.shape[1])
        return replace(
            self,
            chances=self.chances[donors, kernels],
            familiar=self.familiar[donors, kernels],
            part=self.part[donors, kernels],
            present=self.present[donors, kernels],
        )

    def together(self, trust: Array) -> Array:
        """Decisions (n_samples, n_tasks) of the machine of all kernels, each so far trusted.

        Where all views of a sample are trusted alike it is that machine as it was learned.
        """
        share = shares_of(trust) * self.present.sum(axis=1, keepdims=True)
        return np.einsum("ni,nit->nt", share, self.part) + self.base


@dataclass(frozen=True, eq=False)
class Opinion:
    """What a panel makes of samples."""

    evidence: Array  # bounded, (n_samples, n_kernels, n_outcomes)
    familiar: Array  # (n_samples, n_kernels)
    trust: Array  # (n_samples, n_kernels)
    joint: Array  # bounded evidence of all kernels together, (n_samples, n_outcomes)


@dataclass(frozen=True, eq=False)
class Panel:
    """Experts on one question.

    Attributes
    ----------
    number : int
        Of the question: there is one about classes, and one for each numeric target.
    outcomes : Outcomes
    noise_rate : float
        Probability that whatever an expert says means nothing.
    experts : sequence of Calibration
        One for each kernel.
    joint : Calibration or None
        Of the machine of all kernels together; None where it is not asked.
    weights : array of shape (n_kernels,)
    joint_weight : float
    prior_weight : float
        How often the log prior counts where all kernels are heard. Evidence is a ratio to the
        prior, so that kernels of a weight above one divide it out too often: of two kernels that
        contradict each other the rarer outcome would win. Where nothing is heard it counts once.
    """

    number: int
    outcomes: Outcomes
    noise_rate: float
    experts: Sequence[Calibration]
    joint: Calibration | None
    weights: Array
    joint_weight: float = 0.0
    prior_weight: float = 1.0

    def testimony(self, heard: Heard) -> Testimony:
        """Turn decisions into probabilities."""
        chances = np.stack(
            [
                expert.chances(self.outcomes, heard.decision[:, i], heard.local[:, i, self.number])
                for i, expert in enumerate(self.experts)
            ],
            axis=1,
        )
        return Testimony(chances, heard.familiar, heard.part, heard.base, heard.present)

    def opinion(self, testimony: Testimony) -> Opinion:
        """Bound what is said, and see how far each expert is trusted."""
        prior = self.outcomes.prior
        heard = Evidence.of(testimony.chances, testimony.familiar, prior, self.noise_rate)
        joint = np.zeros((len(heard.trust), len(prior)))
        if self.joint is not None:
            trusting = heard.trust.sum(axis=1) > 0
            chances = self.joint.chances(self.outcomes, testimony.together(heard.trust))
            # Where no view is trusted, all of them together know nothing either.
            joint[trusting] = bound(chances, prior, self.noise_rate)[trusting]
        return Opinion(heard.bounded, testimony.familiar, heard.trust, joint)

    def terms(self, opinion: Opinion) -> Array:
        """Weighed evidence of each kernel, (n_samples, n_kernels, n_outcomes).

        What all kernels know together is divided among them by trust, and what the prior counts
        for besides by how familiar the sample is to them.
        """
        joint = self.joint_weight * opinion.joint[:, np.newaxis]
        own = self.weights[:, np.newaxis] * opinion.evidence
        again = (self.prior_weight - 1.0) * self.prior_again(opinion)[:, np.newaxis]
        own += shares_of(opinion.familiar)[:, :, np.newaxis] * again
        return np.asarray(own + shares_of(opinion.trust)[:, :, np.newaxis] * joint)

    def prior_again(self, opinion: Opinion) -> Array:
        """The log prior once more, as far as kernels are heard, (n_samples, n_outcomes).

        It is centred, which changes no probability: of equally frequent outcomes it says nothing.
        """
        log = np.log(self.outcomes.prior)
        return np.outer(opinion.familiar.mean(axis=1), log - log.mean())

    def decide(self, heard: Heard) -> Array:
        """Decisions, (n_samples, n_tasks) of the question."""
        opinion = self.opinion(self.testimony(heard))
        scores = np.einsum("i,niy->ny", self.weights, opinion.evidence)
        scores += (self.prior_weight - 1.0) * self.prior_again(opinion)
        scores += self.joint_weight * opinion.joint + np.log(self.outcomes.prior)
        return self.outcomes.decide(scores)

    def parts(self, heard: Heard) -> Array:
        """Part of each kernel in the decisions, (n_samples, n_kernels, n_tasks)."""
        opinion = self.opinion(self.testimony(heard))
        return self.outcomes.parts(self.terms(opinion), shares_of(opinion.trust))

    def trust(self, heard: Heard) -> Array:
        """Probability that each kernel speaks to the matter, (n_samples, n_kernels)."""
        return self.opinion(self.testimony(heard)).trust

    def opinions(self, heard: Heard) -> Array:
        """Probabilities of the outcomes by each kernel alone, (n_samples, n_kernels, n_outcomes).

        A kernel that cannot see a sample, or knows none like it, says how frequent outcomes are.
        """
        testimony = self.testimony(heard)
        familiar = testimony.familiar[:, :, np.newaxis]
        return np.asarray(familiar * testimony.chances + (1.0 - familiar) * self.outcomes.prior)

    def disagreement(self, heard: Heard) -> Array:
        """How far the kernels contradict each other, (n_samples,)."""
        testimony = self.testimony(heard)
        return disagreement(testimony.chances, testimony.familiar)


def shares_of(trust: Array) -> Array:
    """Trust, or familiarity, as shares that sum to one, or 0 where there is none."""
    total = trust.sum(axis=1, keepdims=True)
    return np.divide(trust, total, out=np.zeros_like(trust), where=total > 0)


# Pull towards one for each kernel and for the prior, zero for all kernels together.
_PULL = 0.005
# Samples as they are count so often, each copy with a wrong view once. The more the copies count,
# the more timid the vote is about sound samples: at 2, by 3 to 6 points of probability.
_AS_THEY_ARE = 4.0


def with_learned_weights(
    panel: Panel,
    testimony: Testimony,
    truth: Array,
    weight: Array,
    copies: int,
    rng: np.random.RandomState,
) -> Panel:
    """Return the panel with the weights of the least log loss on held-out testimony.

    In each copy of the samples every sample has one view of a sample with another outcome: an
    expert that is easily misled counts for less.
    """
    terms = [_terms(panel, testimony)]
    order = _by_quality(testimony, truth, weight)
    for _ in range(copies):
        donors = wrong_views(testimony.present, truth, weight, order, rng)
        terms.append(_terms(panel, testimony.with_views_of(donors)))
    counts = np.array([_AS_THEY_ARE] + [1.0] * copies)
    share = np.outer(counts / counts.sum(), weight / weight.sum()).ravel()
    m = len(panel.weights)
    # Kernels, what they know together, and how often the prior counts besides.
    start = np.concatenate([np.ones(m), [0.0, 0.0]])
    lower = np.concatenate([np.zeros(m), [0.0, -1.0]])
    upper = np.full(m + 2, np.inf)
    upper[m] = 0.0 if panel.joint is None else np.inf
    if m == 1 or not panel.outcomes.shifts:
        # One kernel predicts like its machine, which has an intercept of its own; and the mean of
        # cells, which is what numbers are predicted by, suffers where likely cells count for more.
        lower[m + 1] = upper[m + 1] = 0.0
    loss = _VoteLoss(
        np.concatenate(terms),
        np.tile(truth, len(terms)),
        share,
        np.log(panel.outcomes.prior),
        start,
    )
    found = minimize_in_box(loss, start, lower, upper)
    return replace(
        panel,
        weights=found[:m],
        joint_weight=float(found[m]),
        prior_weight=1.0 + float(found[m + 1]),
    )


def wrong_views(
    present: Array, truth: Array, weight: Array, order: Array, rng: np.random.RandomState
) -> Array:
    """Numbers (n_samples, n_kernels) of the samples whose view each sample gets.

    It is its own but for one view that it has, which comes from a random sample with another
    outcome that has it, too; a sample with one view only stays as it is, since nobody could tell.
    Views are drawn in a given order of the kernels.
    """
    n, m = present.shape
    donors = np.repeat(np.arange(n)[:, np.newaxis], m, axis=1)
    ranked = present[:, order]
    chosen = (rng.uniform(size=n) * ranked.sum(axis=1)).astype(np.intp)
    place = (np.cumsum(ranked, axis=1) > chosen[:, np.newaxis]).argmax(axis=1)
    view = np.where(present.sum(axis=1) > 1, order[place], -1)
    draw = np.asarray(rng.uniform(size=n))
    for i in range(m):
        has = np.where(present[:, i], weight, 0.0)
        for outcome in np.unique(truth[view == i]):
            rows = np.flatnonzero((view == i) & (truth == outcome))
            mass = np.cumsum(np.where(truth == outcome, 0.0, has))
            if mass[-1] > 0:
                wanted = draw[rows] * mass[-1]
                found = np.searchsorted(mass, wanted, side="right")
                donors[rows, i] = np.minimum(found, n - 1)
    return donors


def _by_quality(testimony: Testimony, truth: Array, weight: Array) -> Array:
    """Kernels by their log loss, so that draws do not depend on the order in which they came."""
    right = testimony.chances[np.arange(len(truth)), :, truth]
    log = np.log(np.maximum(right, np.finfo(float).tiny)) * testimony.present
    return np.argsort(weight @ log, kind="stable")


def _terms(panel: Panel, testimony: Testimony) -> Array:
    """Evidence of all kernels, of all together, and the prior once more."""
    opinion = panel.opinion(testimony)
    others = np.stack([opinion.joint, panel.prior_again(opinion)], axis=1)
    return np.concatenate([opinion.evidence, others], axis=1)


@dataclass(frozen=True, eq=False)
class _VoteLoss:
    """Mean log loss of ``softmax(log prior + sum_i w_i terms_i)`` with a pull; convex in ``w``."""

    terms: Array  # (n_samples, n_terms, n_outcomes)
    truth: Array
    share: Array  # of each sample, summing to one
    log_prior: Array
    start: Array

    def __call__(self, w: Array) -> tuple[float, Array, Array]:
        p = softmax(self.log_prior + np.einsum("i,niy->ny", w, self.terms))
        rows, away = np.arange(len(p)), w - self.start
        right = np.maximum(p[rows, self.truth], np.finfo(float).tiny)
        value = -self.share @ np.log(right) + _PULL * float(away @ away)
        mean = np.einsum("ny,niy->ni", p, self.terms)
        gradient = self.share @ (mean - self.terms[rows, :, self.truth]) + 2.0 * _PULL * away
        centred = (self.terms - mean[:, :, np.newaxis]) * np.sqrt(self.share[:, np.newaxis] * p)[
            :, np.newaxis
        ]
        tall = centred.transpose(1, 0, 2).reshape(len(w), -1)
        curvature = tall @ tall.T + 2.0 * _PULL * np.eye(len(w))
        return float(value), gradient, curvature
