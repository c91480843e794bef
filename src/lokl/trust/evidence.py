"""What one expert may say at most, and how far it speaks to the matter."""

from dataclasses import dataclass

import numpy as np

from lokl._arrays import Array
from lokl.trust.outcomes import softmax

_LEAST = 1e-30


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the experts say about some samples, each within bounds.

    Attributes
    ----------
    bounded : array of shape (n_samples, n_experts, n_outcomes)
        ``B_i(y) = log(e + (1 - e) A_i(y))``, ``A_i(y) = nu_i q_i(y) / prior(y) + 1 - nu_i`` with
        probabilities ``q``, familiarity ``nu`` and the doubt ``e`` that any expert meets: 0 where
        it says nothing, never below ``log e``.
    trust : array of shape (n_samples, n_experts)
        Probability that an expert speaks to the matter, given all that is said:
        ``t_i = sum_y P(y) (1 - e) nu_i q_i(y) / prior(y) / exp(B_i(y))`` with
        ``P = softmax(log prior + sum_i B_i)``.
    """

    bounded: Array
    trust: Array

    @classmethod
    def of(cls, chances: Array, familiar: Array, prior: Array, doubt: float) -> "Evidence":
        """Weigh probabilities (n_samples, n_experts, n_outcomes) of views so familiar."""
        known = familiar[:, :, np.newaxis]
        spoken = (1.0 - doubt) * known * chances / prior
        whole = np.maximum(spoken + (1.0 - doubt) * (1.0 - known) + doubt, _LEAST)
        bounded = np.log(whole)
        posterior = softmax(np.log(prior) + bounded.sum(axis=1))
        trust = np.einsum("ny,niy->ni", posterior, spoken / whole)
        # Without doubt, it is one but for rounding.
        return cls(bounded, np.minimum(trust, 1.0))


def bound(chances: Array, prior: Array, doubt: float) -> Array:
    """Bounded evidence of one expert that knows all samples, (n_samples, n_outcomes)."""
    return np.log(np.maximum(doubt + (1.0 - doubt) * chances / prior, _LEAST))


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
