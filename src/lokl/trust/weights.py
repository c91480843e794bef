"""How much each expert counts, learned from held-out samples and samples with a wrong view."""

from dataclasses import dataclass, replace

import numpy as np

from lokl._arrays import Array
from lokl.trust.newton import minimize_in_box
from lokl.trust.outcomes import softmax
from lokl.trust.panel import Panel, Testimony

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
