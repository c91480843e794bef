"""All experts on one question: what they say, how far each is trusted, and the vote."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lokl._arrays import Array
from lokl.trust.calibration import Calibration
from lokl.trust.evidence import Evidence, bound, disagreement
from lokl.trust.outcomes import Outcomes


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
    doubt : float
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
    doubt: float
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
        heard = Evidence.of(testimony.chances, testimony.familiar, prior, self.doubt)
        joint = np.zeros((len(heard.trust), len(prior)))
        if self.joint is not None:
            trusting = heard.trust.sum(axis=1) > 0
            chances = self.joint.chances(self.outcomes, testimony.together(heard.trust))
            # Where no view is trusted, all of them together know nothing either.
            joint[trusting] = bound(chances, prior, self.doubt)[trusting]
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
