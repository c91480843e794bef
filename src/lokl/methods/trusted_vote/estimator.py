"""Trusted vote: calibrated experts, each weighted by its trust at the sample."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_softmax

from lokl._arrays import Array, evenly_spaced, row_keys, weighted_quantile
from lokl._parameters import number_check
from lokl._survival import as_target
from lokl.base import (
    Classifier,
    KernelEstimator,
    Regressor,
    Survival,
    Training,
    setting,
    settings,
)
from lokl.base.diagnostics import warn_if_saturated
from lokl.base.model import Model, SupportSet
from lokl.base.settings import FLAG, Rule, count
from lokl.base.targets import ProbabilityMixin
from lokl.base.training import checked_prediction
from lokl.gram import GatedGram
from lokl.gram.gated_kernel import average_kernel
from lokl.methods.single_kernel import SingleKernelFit, for_each_kernel
from lokl.methods.trusted_vote.evidence import (
    ClassOutcomes,
    EvidencePool,
    ExpertOutputs,
    Outcomes,
    TargetBins,
    TimeBins,
    calibrate,
    learn_weights,
    probability_of,
)
from lokl.methods.trusted_vote.model import (
    KernelSimilarity,
    LocalReliability,
    Neighbours,
    TrustedExpert,
    TrustedVote,
)
from lokl.solvers import Solver
from lokl.solvers.machines import (
    Fold,
    folds_for,
    held_out_decisions,
    held_out_solutions,
    restrict_folds,
)
from lokl.solvers.squared import bordered_inverse, leave_one_out

# Weighted fraction of training samples that count as less than fully familiar.
_UNFAMILIAR = 0.05
# Samples that estimate the median distance under a kernel.
_SUBSAMPLE = 500
# Kernel values in one block.
_BLOCK = 2**22
# Reliability if the temperature is the same everywhere.
_FLAT = LocalReliability(np.empty(0), np.empty(0), 0.0, 0.0, 0.0)


def deduplicate(training: Training) -> tuple[Training, Array, GatedGram]:
    """Merge equal samples and sort the rest by kernel values.

    Also return where each sample is, and the Gram matrix of the average of all kernels.

    Folds and other random draws depend on the position of a sample. On distinct samples in an order
    that only the kernels determine, they do not depend on the order of the rows, on their format
    (dense, sparse, or indices of a precomputed matrix), or on whether a row is repeated or has a
    weight of 2.
    """
    # A censored sample is not equal to an event at the same time.
    is_open = np.column_stack([problem.upper > 0 for problem in training.problems])
    names = row_keys(training.samples.given, np.hstack([training.targets, is_open]))
    _, first, inverse = np.unique(names, return_index=True, return_inverse=True)
    if len(first) < len(names):
        weight = np.bincount(inverse, weights=training.weight, minlength=len(first))
        problems = [problem.merged(first, inverse) for problem in training.problems]
        merged = training.take(first)
        samples = replace(merged.samples, weight=weight)
        training = replace(merged, problems=problems, samples=samples)
    else:
        inverse = np.arange(len(names))
    gram, weight = training.average_gram(), training.weight
    # Two matrices of all samples are stored for a moment.
    is_stored = gram.needs_rows and not gram.is_low_rank
    is_stored = is_stored and 2 * gram.megabytes <= gram.inner.cache_size
    order = np.argsort(gram.whole @ weight if is_stored else gram.dot(weight), kind="stable")
    training = training.take(order)
    gram = gram.take(order) if is_stored else training.average_gram()
    return training, np.argsort(order)[inverse], gram


@dataclass(frozen=True, eq=False)
class JointModel:
    """SVM on the average of all kernels, fitted on all samples and on each fold.

    Attributes
    ----------
    gates : array of shape (n_samples, n_kernels)
    held_out : list of (array of int, array of shape (n_samples, n_tasks))
        Indices of the samples of a fold, and the coefficients of the SVM fitted without them. With
        `inverse`, all samples and the coefficients of the SVM on all samples.
    held_out_intercept : array of shape (n_samples, n_tasks)
        Intercept of the SVM that was fitted without the sample.
    coef : array of shape (n_samples, n_tasks)
        Coefficients of the SVM on all samples.
    intercept : array of shape (n_tasks,)
    objective : float
    inverse : array of shape (n_samples, n_samples) or None
        With the squared loss, ``M``: without sample j the coefficients are
        ``coef - M[:, j] change[j]``.
    change : array of shape (n_samples, n_tasks) or None
    """

    gates: Array
    held_out: list[Fold]
    held_out_intercept: Array
    coef: Array
    intercept: Array
    objective: float
    inverse: Array | None = None
    change: Array | None = None

    @classmethod
    def fit(cls, training: Training, folds: Sequence[Fold], gram: GatedGram) -> "JointModel":
        """Solve all SVMs on the Gram matrix of the average of all kernels."""
        whole = training.machines().solve(gram)
        held_out = [] if folds else [(np.arange(training.n_samples), whole.coef)]
        intercept = np.tile(whole.intercept, (training.n_samples, 1))
        bordered = None
        if _is_left_one_out(training):
            bordered = bordered_inverse(gram, training.problems)
        if bordered is not None:
            inverse, loads = bordered
            diagonal = inverse.diagonal()[:, np.newaxis]
            change = np.zeros_like(whole.coef)
            np.divide(whole.coef, diagonal, out=change, where=diagonal > 0)
            return cls(
                gram.gates[:, :, 0],
                [(np.arange(training.n_samples), whole.coef)],
                intercept - loads[:, np.newaxis] * change,
                whole.coef,
                whole.intercept,
                whole.objective,
                inverse,
                change,
            )
        solutions = held_out_solutions(training.solver, gram, training.problems, folds, whole)
        for left_out, solution in solutions:
            intercept[left_out] = solution.intercept
            held_out.append((left_out, solution.coef))
        gates, coef = gram.gates[:, :, 0], whole.coef
        return cls(gates, held_out, intercept, coef, whole.intercept, whole.objective)

    @classmethod
    def zero(cls, training: Training) -> "JointModel":
        """Return a model whose decisions are zero, for votes without a joint model."""
        n, n_tasks = training.n_samples, len(training.problems)
        zeros = np.zeros((n, n_tasks))
        gates = np.zeros((n, training.n_kernels))
        return cls(gates, [(np.arange(n), zeros)], zeros, zeros, np.zeros(n_tasks), 0.0)


def _is_left_one_out(training: Training) -> bool:
    """Return whether decisions are held out by leave-one-out: all SVMs have the squared loss."""
    costs = [problem.cost for problem in training.problems]
    equal = all(np.array_equal(cost, costs[0]) for cost in costs)
    return equal and all(problem.is_squared for problem in training.problems)


@dataclass(frozen=True, eq=False)
class HeldOutExpert:
    """Expert with its held-out outputs for the training samples that have the view.

    Attributes
    ----------
    expert : TrustedExpert
    decision : array of shape (n_rows, n_tasks)
    contribution : array of shape (n_rows, n_tasks)
        To the held-out decisions of the joint model.
    neighbours : Neighbours
        Of each of these samples among the others.
    is_left_one_out : bool
        Whether each of these samples was left out alone, not a fold.
    single : SingleKernelFit or None
        SVM on all of these samples, None if there are none.
    """

    expert: TrustedExpert
    decision: Array
    contribution: Array
    neighbours: Neighbours
    is_left_one_out: bool
    single: SingleKernelFit | None = None


@settings
class _TrustedVote(KernelEstimator):
    """Held-out decisions, calibrated and bounded; trust from the agreement of all experts."""

    n_folds: int = setting(
        5,
        count(2),
        "Folds of the training samples. Experts are calibrated on decisions about held-out folds; "
        'with ``loss="squared"`` on exact leave-one-out decisions, without folds, unless the Gram '
        "matrix exceeds `cache_size`.",
    )
    novelty: bool = setting(
        True,
        FLAG,
        "Reduce the trust in a kernel for samples that are unlike all of its training samples.",
    )
    local_temperature: bool = setting(
        True,
        FLAG,
        "Give a kernel more weight near samples that it predicted well, and less near samples "
        "that it predicted badly.",
    )
    n_neighbors: int = setting(
        20, count(1), "Number of neighbours of a sample; its novelty needs five."
    )
    noise_rate: float = setting(
        0.25,
        Rule("float", number_check("at least 0 and below 1", lambda value: 0 <= value < 1)),
        "Prior probability that the output of a kernel is unrelated to the outcome. It bounds the "
        "evidence of a single kernel against an outcome; 0 is no bound.",
    )
    joint_model: bool = setting(
        True,
        FLAG,
        "Include an SVM on the average of all kernels, with each kernel weighted by its trust. It "
        "captures interactions between views. Requires two kernels and `learn_weights`.",
    )
    learn_weights: bool = setting(
        True, FLAG, "Learn the weight of each kernel in the vote; otherwise all weights are one."
    )
    n_corrupted_copies: int = setting(
        2,
        count(0),
        "Number of corrupted copies of the training samples from which weights are learned. In "
        "each copy, every sample has one view of a sample with another outcome.",
    )

    _model_class: ClassVar[type[Model]] = TrustedVote

    @abstractmethod
    def _outcomes(self, training: Training) -> Sequence[Outcomes]:
        """Return the outcomes to vote on: one entry for the classes, or one for each target."""

    def _known_outcomes(self, training: Training) -> Array:
        """Return what is known of the outcome of each sample, (n_samples, n_columns)."""
        return training.targets

    def _learn(self, training: Training) -> TrustedVote:
        needs_held_out = bool(training.folds)
        training, positions, gram = deduplicate(training)
        if _is_left_one_out(training):
            # The same data gives the same model for every random_state.
            training = replace(training, rng=np.random.RandomState(0))
        seed = int(training.rng.randint(2**31 - 1))
        folds = folds_for(training.problems, self.n_folds, seed)
        has_joint = self.joint_model and training.n_kernels > 1
        joint = JointModel.zero(training)
        if has_joint:
            joint = JointModel.fit(training, folds, gram)
        gram.release()
        fit = partial(self._fit_expert, training, folds, joint)
        trained = for_each_kernel(training, self.n_jobs, fit)
        targets = self._outcomes(training)
        parts = [
            (
                item.decision,
                item.contribution,
                item.expert.familiarity_of(item.neighbours),
                np.zeros((len(item.decision), len(targets))),  # filled in by calibration
            )
            for item in trained
        ]
        outputs = ExpertOutputs.collect(training.samples, parts, joint.held_out_intercept)
        learned = [
            self._learn_pool(index, outcomes, training, trained, outputs)
            for index, outcomes in enumerate(targets)
        ]
        pools, reliabilities = zip(*learned, strict=True)
        experts = [
            replace(item.expert, reliability=local)
            for item, local in zip(trained, zip(*reliabilities, strict=True), strict=True)
        ]
        left_out = None
        is_exact = _is_left_one_out(training) and all(item.is_left_one_out for item in trained)
        if is_exact or needs_held_out:
            decisions = [pool.decide(outputs) for pool in pools]
            left_out = np.concatenate(decisions, axis=1)[positions]
        support = [expert.support for expert in experts]
        support.append(np.flatnonzero((joint.coef != 0).any(axis=1)))
        positions = np.unique(np.concatenate(support))
        positions = positions[np.argsort(training.rows[positions])]
        fits = [item.single for item in trained if item.single is not None]
        warn_if_saturated((single.problems, single.solution) for single in fits)
        return TrustedVote(
            experts=experts,
            support=SupportSet.at(positions, training.samples, training.rows),
            objective=joint.objective + sum(single.solution.objective for single in fits),
            n_iter=max(1, *(single.solution.n_iter for single in fits)),
            pools=pools,
            joint_intercept=joint.intercept,
            left_out=left_out,
        )

    def _fit_expert(
        self, training: Training, folds: Sequence[Fold], joint: JointModel, i: int, solver: Solver
    ) -> HeldOutExpert:
        """Fit the expert of kernel `i`, and compute its held-out outputs."""
        rows, n_tasks = training.samples.rows_seen_by(i), len(training.problems)
        of_kernel = training.names[i], training.kernels[i]
        if len(rows) == 0:
            empty = np.zeros((0, n_tasks))
            expert = TrustedExpert(*of_kernel, rows, empty, empty, rows, np.zeros(n_tasks))
            return HeldOutExpert(expert, empty, empty, Neighbours.none(0), True)
        single = SingleKernelFit.of(training, i, solver)
        gram, solution, decision = single.gram, single.solution, single.solution.decision
        left_out = leave_one_out(gram, single.problems)
        if left_out is not None:
            decision = left_out
        elif folds:
            inside = restrict_folds(rows, folds)
            decision = held_out_decisions(solver, gram, single.problems, inside, solution)
        n_neighbors = self.n_neighbors if self.novelty or self.local_temperature else 0
        # Neighbours are those of the kernel itself, even if low-rank features replace it.
        some, exact = evenly_spaced(len(rows), _SUBSAMPLE), gram.exact
        similarity = KernelSimilarity.from_training(exact.diag(), some, exact.block(some))
        contribution, neighbours = _held_out_pass(i, single, joint, similarity, n_neighbors)
        exact.release()
        familiar = 0.0
        if self.novelty:
            nearest, weight = neighbours.mean_similarity, training.weight[rows]
            familiar = weighted_quantile(nearest, weight, _UNFAMILIAR)
        coef, joint_coef = solution.coef, joint.gates[rows, i, np.newaxis] * joint.coef[rows]
        both = np.hstack([coef, joint_coef])
        kept = np.arange(len(rows)) if n_neighbors else np.flatnonzero((both != 0).any(axis=1))
        expansion, stored = None, kept
        if gram.is_low_rank:
            expansion = gram.expansion(average_kernel(gram.kernels), both, np.zeros(both.shape[1]))
            stored = kept if n_neighbors else kept[:0]
        gram.release()
        expert = TrustedExpert(
            *of_kernel,
            support=rows[(coef != 0).any(axis=1)],
            coef=coef[kept],
            joint_coef=joint_coef[kept],
            joint_support=rows[(joint_coef != 0).any(axis=1)],
            intercept=solution.intercept,
            stored=gram.points.take(stored) if len(stored) < len(rows) else gram.points,
            similarity=similarity,
            familiar=familiar,
            n_neighbors=n_neighbors,
            expansion=expansion,
        )
        exactly = left_out is not None and (joint.inverse is not None or not joint.coef.any())
        return HeldOutExpert(expert, decision, contribution, neighbours, exactly, single)

    def _learn_pool(
        self,
        index: int,
        outcomes: Outcomes,
        training: Training,
        trained: list[HeldOutExpert],
        outputs: ExpertOutputs,
    ) -> tuple[EvidencePool, list[LocalReliability]]:
        """Calibrate all experts and learn their weights in the vote on some outcomes.

        Local reliabilities of the training samples are written to ``outputs.reliability``.
        """
        truth = outcomes.truth(self._known_outcomes(training))
        weight = training.problems[outcomes.tasks.start].cost
        calibrations, reliabilities = [], []
        for i, item in enumerate(trained):
            rows, local = training.samples.rows_seen_by(i), _FLAT
            true, cost = truth[rows], weight[rows]
            calibration = calibrate(outcomes, item.decision, true, cost)
            if self.local_temperature and len(rows):
                q = calibration.probabilities(outcomes, item.decision)
                right = probability_of(true, q)
                counted = np.where(cost > 0, training.weight[rows], 0.0)
                local = LocalReliability.from_training(right, counted, item.neighbours)
                z = local(item.neighbours)
                calibration = calibrate(outcomes, item.decision, true, cost, z, calibration)
                outputs.reliability[rows, i, index] = z
            calibrations.append(calibration)
            reliabilities.append(local)
        weights = np.concatenate([np.ones(len(trained)), [0.0, 0.0]])
        pool = EvidencePool(index, outcomes, self.noise_rate, calibrations, None, weights)
        if self.learn_weights:
            if self.joint_model and len(trained) > 1:
                decision = outputs.joint_decision(pool.trust(outputs))
                pool = replace(pool, joint=calibrate(outcomes, decision, truth, weight))
            copies, rng = self.n_corrupted_copies, training.rng
            pool = learn_weights(pool, outputs, truth, weight, copies, rng)
        return pool, reliabilities


def _held_out_pass(
    i: int, single: SingleKernelFit, joint: JointModel, similarity: KernelSimilarity, count: int
) -> tuple[Array, Neighbours]:
    """Compute contributions to the held-out joint decisions, and neighbours, block by block.

    Parameters
    ----------
    i : int
        Index of the kernel.
    single : SingleKernelFit
    joint : JointModel
    similarity : KernelSimilarity
    count : int
        Number of neighbours, if there are as many other samples.

    Returns
    -------
    contribution : array of shape (n_rows, n_tasks)
    neighbours : Neighbours
    """
    rows, gram, exact = single.rows, single.gram, single.gram.exact
    n, diag, columns = len(rows), exact.diag(), np.arange(len(rows))
    count = min(count, n - 1)
    contribution = np.zeros((n, joint.coef.shape[1]))
    neighbours = Neighbours(np.zeros((n, count), np.intp), np.zeros((n, count)))
    step = max(_BLOCK // n, 1)
    for left_out, coef in joint.held_out:
        fold = np.flatnonzero(np.isin(rows, left_out))
        load = joint.gates[rows, i, np.newaxis] * coef[rows]
        products = gram.dot(load) if gram.is_low_rank else None
        for start in range(0, len(fold), step):
            some = fold[start : start + step]
            K = exact.cross(some, columns)
            contribution[some] = K @ load.astype(K.dtype) if products is None else products[some]
            if joint.inverse is not None and joint.change is not None:
                # Without the sample itself.
                M = joint.inverse[rows[some]]
                M = M if len(rows) == len(joint.inverse) else M[:, rows]
                M *= K
                through = M @ joint.gates[rows, i].astype(M.dtype)
                contribution[some] -= through[:, np.newaxis] * joint.change[rows[some]]
            if count:
                K[np.arange(len(some)), some] = -np.inf
                nearest = similarity.neighbours(K, diag[some], diag, count)
                neighbours.index[some] = nearest.index
                neighbours.similarity[some] = nearest.similarity
    return contribution, neighbours


@settings
class TrustedVoteClassifier(_TrustedVote, ProbabilityMixin, Classifier):
    """Vote of calibrated experts, each trusted sample by sample.

    Each kernel has an expert, an SVM. Its held-out decisions are calibrated to probabilities
    ``q_i(y|x)`` with a temperature that depends on its reliability near the sample. The evidence of
    an expert is bounded, so that no expert alone can exclude a class, and reduced for samples that
    are unlike its training samples. The vote is ``S(y) = log prior(y) + sum_i w_i B_i(y)`` with
    bounded evidence ``B_i``. The trust in a kernel is the posterior probability that it is
    informative, given the evidence of all kernels. The weights ``w`` are learned, together with a
    multiplier of the log prior; without it, of two conflicting kernels the rarer class would win.

    Notes
    -----
    Use it if views may be wrong for single samples: swapped, noisy or missing. With two kernels no
    method can detect which of them is wrong.

    The contribution of a kernel is ``w_i B_i(y)``, plus its part of the evidence of the joint
    model, divided by trust, and of the extra prior, divided by familiarity.
    ``contributions(X).sum(-1) + intercept_`` is the decision, a log probability up to a constant;
    for two classes, it is the log of their ratio.

    Random draws depend only on the distinct training samples, not on the order of the rows. A
    sample weight of 2 gives the same model as repeating the row. With ``loss="squared"`` held-out
    decisions are exact leave-one-out decisions, from one factorisation for each kernel and one for
    the joint model instead of folds, and the model is the same for every `random_state`.
    `loo_decision_` is then the vote on these decisions, with calibration and weights as learned.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import TrustedVoteClassifier
    >>> from lokl.kernels import RBF
    >>> X, y = load_wine(return_X_y=True)
    >>> views = {"acids": RBF().on(slice(0, 5)), "colours": RBF().on(slice(5, 13))}
    >>> model = TrustedVoteClassifier(views, C=10, random_state=0).fit(scale(X), y)
    >>> round(model.score(scale(X), y), 2)
    1.0
    >>> model.predict_proba(scale(X)).shape
    (178, 3)
    """

    def _outcomes(self, training: Training) -> Sequence[Outcomes]:
        return [ClassOutcomes.from_training(training.targets, training.problems[0].cost)]

    def _class_probabilities(self, X: Any, log: bool) -> Array:
        decision = self.decision_function(X)
        if decision.ndim == 1:
            decision = np.column_stack([np.zeros_like(decision), decision])
        log_probabilities = np.asarray(log_softmax(decision, axis=-1))
        return log_probabilities if log else np.exp(log_probabilities)

    def predict_proba_alone(self, X: Any) -> Array:
        """Probability of each class given one kernel at a time.

        If a sample lacks the view of a kernel, or is unlike its training samples, these are the
        class frequencies.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        probabilities : array of shape (n_samples, n_kernels, n_classes)
            In the order of ``kernel_names_`` and ``classes_``; sums over classes are one.
        """
        return checked_prediction(self._model.probabilities_alone, self._validate_for_predict(X))


@settings
class TrustedVoteRegressor(_TrustedVote, Regressor):
    """Vote of calibrated experts on numeric targets, each trusted sample by sample.

    The range of a target is divided into bins, and the experts vote on the bins as on classes. The
    probabilities of an expert are centred at its prediction, with its error on held-out samples as
    the scale. The prediction is the mean of the pooled distribution.

    Notes
    -----
    Predictions stay within the range of the training targets, extended by a tenth on both sides.
    The contribution of a kernel is its effect on the mean, integrated along the path from the prior
    to the pooled distribution.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl import TrustedVoteRegressor
    >>> from lokl.kernels import RBF
    >>> X = np.linspace(0, 6, 60)[:, np.newaxis]
    >>> model = TrustedVoteRegressor([RBF(0.5), RBF(2.0)], C=10, random_state=0)
    >>> round(model.fit(X, np.sin(X[:, 0])).score(X, np.sin(X[:, 0])), 2)
    0.98
    """

    n_bins: int = setting(200, count(10), "Number of bins over the range of a target.")

    def _outcomes(self, training: Training) -> Sequence[Outcomes]:
        return [
            TargetBins.from_training(problem.target, problem.cost, task, self.n_bins)
            for task, problem in enumerate(training.problems)
        ]


@settings
class TrustedVoteSurvival(_TrustedVote, Survival):
    """Vote of calibrated experts on the time of an event, each trusted sample by sample.

    Time is divided into intervals with equal shares of the events, and one after all events. The
    experts vote on the intervals as on classes. Each expert has proportional hazards in its
    held-out risk, calibrated by the likelihood of events and censored samples: a censored sample
    belongs to any of the intervals after its time. The risk is minus the expected cumulative hazard
    (Nelson-Aalen estimate of the training samples) at the time of the event.

    Notes
    -----
    The contribution of a kernel is its effect on the risk, integrated along the path from the prior
    to the pooled distribution. Survival curves have proportional hazards in the held-out risk of
    the vote.

    Examples
    --------
    >>> import numpy as np
    >>> import lokl
    >>> from lokl.kernels import RBF
    >>> rng = np.random.RandomState(0)
    >>> X, ends = rng.normal(size=(100, 4)), rng.exponential(size=(100, 2))
    >>> event, censored = ends[:, 0] * np.exp(-X[:, 0] - X[:, 2]), 3 * ends[:, 1]
    >>> y = lokl.survival_target(event <= censored, np.minimum(event, censored))
    >>> views = {"blood": RBF(0.1).on([0, 1]), "scan": RBF(0.1).on([2, 3])}
    >>> model = lokl.TrustedVoteSurvival(views, loss="squared").fit(X, y)
    >>> round(model.score(X, y), 2)
    0.82
    >>> model.trust(X).shape
    (100, 2)
    """

    n_bins: int = setting(20, count(2), "Number of intervals of time at most.")

    _predicts_log_time = False

    def _outcomes(self, training: Training) -> Sequence[Outcomes]:
        (problem,) = training.problems
        neutral = float(np.average(problem.target, weights=training.weight))
        return [TimeBins.from_times(as_target(training.y), training.weight, neutral, self.n_bins)]

    def _known_outcomes(self, training: Training) -> Array:
        return np.asarray(training.y)

    def _log_hazard(self, risk: Array) -> Array:
        # With proportional hazards, the expected cumulative hazard is one over the hazard ratio.
        return -np.log(np.maximum(-risk, np.finfo(float).tiny))
