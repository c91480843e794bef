"""Trusted vote: calibrated experts, each weighted by its trust at the sample."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_softmax

from lokl._arrays import Array
from lokl.base import Classifier, KernelEstimator, Regressor, Training, setting, settings
from lokl.base.diagnostics import warn_if_saturated
from lokl.base.model import Model, SupportSet
from lokl.base.settings import FLAG, NOISE_RATE, count
from lokl.base.targets import ProbabilityMixin
from lokl.base.training import checked_prediction
from lokl.methods.trusted_vote.calibration import ExpertCalibration, calibrate
from lokl.methods.trusted_vote.experts import (
    ExpertTrainer,
    HeldOutExpert,
    JointModel,
    deduplicate,
)
from lokl.methods.trusted_vote.model import TrustedVote
from lokl.methods.trusted_vote.neighbourhood import LocalReliability
from lokl.methods.trusted_vote.outcomes import ClassOutcomes, Outcomes, TargetBins
from lokl.methods.trusted_vote.pooling import EvidencePool, ExpertOutputs, learn_weights
from lokl.solvers.machines import folds_for


@dataclass(frozen=True, eq=False)
class _TrainingOutcomes:
    """Outcomes of the training samples.

    Attributes
    ----------
    outcomes : Outcomes
    truth : array of int of shape (n_samples,)
        Index of the true outcome.
    weight : array of shape (n_samples,)
        0 if the outcome is unknown.
    """

    outcomes: Outcomes
    truth: Array
    weight: Array


@settings
class _TrustedVote(KernelEstimator):
    """Held-out decisions, calibrated and bounded; trust from the agreement of all experts."""

    n_folds: int = setting(
        5,
        count(2),
        "Folds of the training samples. Experts are calibrated on decisions about held-out folds.",
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
        NOISE_RATE,
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
    def _training_outcomes(self, training: Training) -> list[_TrainingOutcomes]:
        """Return the outcomes to vote on: one entry for the classes, or one for each target."""

    def _learn(self, training: Training) -> TrustedVote:
        training = deduplicate(training)
        rng = training.rng
        folds = folds_for(training.problems, self.n_folds, int(rng.randint(2**31 - 1)))
        has_joint = self.joint_model and training.n_kernels > 1
        joint = JointModel.fit(training, folds) if has_joint else JointModel.zero(training)
        n_neighbors = self.n_neighbors if self.novelty or self.local_temperature else 0
        trainer = ExpertTrainer(training, folds, joint, self.novelty, n_neighbors)
        trained = trainer.fit(self.n_jobs)
        targets = self._training_outcomes(training)
        outputs = _held_out_outputs(training, trained, joint, len(targets))
        pools, reliabilities = [], []
        for index, target in enumerate(targets):
            pool, reliability = self._calibrate(index, target, outputs, trained, training.weight)
            pools.append(self._learn_weights(pool, target, outputs, rng))
            reliabilities.append(reliability)
        experts = [
            replace(item.expert, reliability=tuple(r for r in local if r is not None))
            for item, local in zip(trained, zip(*reliabilities, strict=True), strict=True)
        ]
        support = [item.expert.support for item in trained]
        support.append(np.flatnonzero((joint.coef != 0).any(axis=1)))
        positions = np.unique(np.concatenate(support))
        positions = positions[np.argsort(training.rows[positions])]
        solutions = [item.solution for item in trained if item.solution is not None]
        warn_if_saturated(
            (problem.take(item.rows), dual, item.diag)
            for item in trained
            if item.solution is not None
            for problem, dual in zip(training.problems, item.solution.duals, strict=True)
        )
        return TrustedVote(
            experts,
            pools,
            joint.intercept,
            SupportSet.at(positions, training.samples, training.rows),
            joint.objective + sum(solution.objective for solution in solutions),
            max(1, *(solution.n_iter for solution in solutions)),
        )

    def _calibrate(
        self,
        index: int,
        target: _TrainingOutcomes,
        outputs: ExpertOutputs,
        trained: list[HeldOutExpert],
        weight: Array,
    ) -> tuple[EvidencePool, list[LocalReliability | None]]:
        """Calibrate all experts; local reliabilities are written to ``outputs.reliability``."""
        outcomes, truth = target.outcomes, target.truth
        calibrations: list[ExpertCalibration] = []
        reliabilities: list[LocalReliability | None] = []
        for i, item in enumerate(trained):
            rows, reliability = item.rows, None
            truth_of_rows = (truth[rows], target.weight[rows])
            calibration = calibrate(outcomes, item.decision, *truth_of_rows)
            if self.local_temperature and len(rows):
                q = calibration.probabilities(outcomes, item.decision)
                right = q[np.arange(len(rows)), truth[rows]]
                counted = np.where(target.weight[rows] > 0, weight[rows], 0.0)
                reliability = LocalReliability.from_training(right, counted, item.neighbours)
                z = reliability(item.neighbours)
                calibration = calibrate(outcomes, item.decision, *truth_of_rows, z, calibration)
                outputs.reliability[rows, i, index] = z
            calibrations.append(calibration)
            reliabilities.append(reliability)
        weights = np.ones(len(trained))
        pool = EvidencePool(index, outcomes, self.noise_rate, calibrations, None, weights)
        return pool, reliabilities

    def _learn_weights(
        self,
        pool: EvidencePool,
        target: _TrainingOutcomes,
        outputs: ExpertOutputs,
        rng: np.random.RandomState,
    ) -> EvidencePool:
        """Calibrate the joint model and learn the weights of the vote."""
        if not self.learn_weights:
            return pool
        truth = (target.truth, target.weight)
        if self.joint_model and outputs.decision.shape[1] > 1:
            decision = outputs.joint_decision(pool.trust(outputs))
            pool = replace(pool, joint=calibrate(target.outcomes, decision, *truth))
        return learn_weights(pool, outputs, *truth, self.n_corrupted_copies, rng)


def _held_out_outputs(
    training: Training, trained: list[HeldOutExpert], joint: JointModel, n_pools: int
) -> ExpertOutputs:
    """Collect the held-out outputs of all experts; local reliability is filled in later."""
    present = training.samples.present
    if present is None:
        present = np.ones((training.n_samples, training.n_kernels), bool)
    outputs = ExpertOutputs.zeros(present, n_pools, joint.held_out_intercept)
    gate = 1.0 / np.sqrt(present.sum(axis=1))
    for i, item in enumerate(trained):
        rows = item.rows
        outputs.decision[rows, i] = item.decision
        outputs.contribution[rows, i] = gate[rows, np.newaxis] * item.contribution
        outputs.familiarity[rows, i] = item.expert.familiarity_of(item.neighbours)
    return outputs


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
    sample weight of 2 gives the same model as repeating the row.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import TrustedVoteClassifier
    >>> from lokl.kernels import RBF
    >>> X, y = load_wine(return_X_y=True)
    >>> views = {"acids": RBF().on(slice(0, 5)), "colours": RBF().on(slice(5, 13))}
    >>> model = TrustedVoteClassifier(views, C=10, random_state=0).fit(scale(X), y)
    >>> bool(model.score(scale(X), y) > 0.95)
    True
    >>> model.predict_proba(scale(X)).shape
    (178, 3)
    """

    def _training_outcomes(self, training: Training) -> list[_TrainingOutcomes]:
        targets, weight = training.targets, training.problems[0].cost
        n_classes = max(targets.shape[1], 2)
        codes = (targets[:, 0] > 0).astype(np.intp) if n_classes == 2 else targets.argmax(axis=1)
        outcomes = ClassOutcomes.from_training(codes, weight, n_classes)
        index = np.zeros(n_classes, dtype=np.intp)
        index[outcomes.observed] = np.arange(len(outcomes.observed))
        return [_TrainingOutcomes(outcomes, index[codes], weight)]

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
    >>> bool(model.fit(X, np.sin(X[:, 0])).score(X, np.sin(X[:, 0])) > 0.9)
    True
    """

    n_bins: int = setting(200, count(10), "Number of bins over the range of a target.")

    def _training_outcomes(self, training: Training) -> list[_TrainingOutcomes]:
        targets = []
        for task, problem in enumerate(training.problems):
            bins = TargetBins.from_training(problem.target, problem.cost, task, self.n_bins)
            index = bins.bin_index(problem.target)
            targets.append(_TrainingOutcomes(bins, index, problem.cost))
        return targets
