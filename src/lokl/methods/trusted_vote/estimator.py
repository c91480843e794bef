"""Trusted vote: calibrated experts, each trusted where it knows the sample and fits the others."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from lokl._arrays import Array
from lokl._frames import labelled, labelled_samples
from lokl.base import Classifier, KernelEstimator, Regressor, Training, setting, settings
from lokl.base.classifier import ProbabilityMixin
from lokl.base.model import Model, SupportSet
from lokl.base.settings import DOUBT, FLAG, count
from lokl.base.validation import checked_prediction
from lokl.methods.trusted_vote.calibration import Calibration, calibrate
from lokl.methods.trusted_vote.evidence import Heard, Panel, with_learned_weights
from lokl.methods.trusted_vote.experts import ExpertSchool, HeldOutExpert, Together, deduplicate
from lokl.methods.trusted_vote.model import TrustedVote, blank
from lokl.methods.trusted_vote.neighbourhood import LocalSuccess
from lokl.methods.trusted_vote.outcomes import Cells, Classes, Outcomes, log_softmax
from lokl.solvers.base import warn_if_saturated
from lokl.solvers.machines import folds_for


@dataclass(frozen=True, eq=False)
class _Question:
    """Outcomes, and which of them is right for each training sample."""

    outcomes: Outcomes
    truth: Array  # (n_samples,)
    weight: Array  # (n_samples,), 0 where no outcome is known


@settings
class _TrustedVote(KernelEstimator):
    """Held-out decisions, calibrated and bounded; trust from what all experts say together."""

    n_folds: int = setting(
        5,
        count(2),
        "Parts of the training samples. What an expert says about samples of one part is judged by "
        "machines learned from the others.",
    )
    novelty: bool = setting(
        True,
        FLAG,
        "Withdraw trust from a kernel where a sample is like none of its training samples.",
    )
    local_temperature: bool = setting(
        True,
        FLAG,
        "Take a kernel more seriously where samples nearby were predicted well, and less where "
        "they were not.",
    )
    n_neighbors: int = setting(
        20, count(1), "Samples nearby that are looked at; the novelty of a sample needs five."
    )
    noise_rate: float = setting(
        0.25,
        DOUBT,
        "Probability that what a kernel says means nothing. It bounds how far one kernel alone can "
        "speak against an outcome; 0 is no bound.",
    )
    joint_model: bool = setting(
        True,
        FLAG,
        "Ask the machine of all kernels at equal weights, too, each kernel in it as far as it is "
        "trusted: what only all of them together know. It has a say only where weights are "
        "learned, and needs two kernels.",
    )
    learn_weights: bool = setting(
        True, FLAG, "Learn how much each kernel counts in the vote; else all count alike."
    )
    n_corrupted_copies: int = setting(
        2,
        count(0),
        "Copies of the training samples, in each of which every sample has one view of a sample "
        "with another outcome: weights are learned from them, too.",
    )

    _model_class: ClassVar[type[Model]] = TrustedVote

    @abstractmethod
    def _questions(self, training: Training) -> list[_Question]:
        """What is voted on: the classes, or each target."""

    def _learn(self, training: Training) -> TrustedVote:
        training = deduplicate(training)
        rng = training.rng
        folds = folds_for(training.problems, self.n_folds, int(rng.randint(2**31 - 1)))
        asks_all = self.joint_model and training.n_kernels > 1
        together = Together.learn(training, folds) if asks_all else Together.unasked(training)
        looks = self.n_neighbors if self.novelty or self.local_temperature else 0
        school = ExpertSchool(training, folds, together, self.novelty, looks)
        made = school.experts(self.n_jobs)
        _warn(training, made)
        questions = self._questions(training)
        heard = _heard(training, made, together, len(questions))
        panels, successes = [], []
        for number, question in enumerate(questions):
            panel, success = self._panel(number, question, heard, made, training.weight)
            panels.append(self._weighed(panel, question, heard, rng))
            successes.append(success)
        experts = [
            replace(own.expert, success=tuple(s for s in learned if s is not None))
            for own, learned in zip(made, zip(*successes, strict=True), strict=True)
        ]
        support = [own.expert.support for own in made]
        support.append(np.flatnonzero((together.coef != 0).any(axis=1)))
        places = np.unique(np.concatenate(support))
        solved = [own.solution for own in made if own.solution is not None]
        return TrustedVote(
            experts,
            panels,
            together.intercept,
            SupportSet.at(
                places[np.argsort(training.rows[places])], training.samples, training.rows
            ),
            together.objective + sum(solution.objective for solution in solved),
            max(1, *(solution.n_iter for solution in solved)),
        )

    def _panel(
        self,
        number: int,
        question: _Question,
        heard: Heard,
        made: list[HeldOutExpert],
        weight: Array,
    ) -> tuple[Panel, list[LocalSuccess | None]]:
        """Calibrate all experts; local success of the training samples is written down."""
        outcomes, truth = question.outcomes, question.truth
        calibrations: list[Calibration] = []
        successes: list[LocalSuccess | None] = []
        for i, own in enumerate(made):
            rows, success = own.rows, None
            known = (truth[rows], question.weight[rows])
            found = calibrate(outcomes, own.decision, *known)
            if self.local_temperature and len(rows):
                chances = found.chances(outcomes, own.decision)
                right = chances[np.arange(len(rows)), truth[rows]]
                counts = np.where(question.weight[rows] > 0, weight[rows], 0.0)
                success = LocalSuccess.of(right, counts, own.neighbours)
                z = success(own.neighbours)
                found = calibrate(outcomes, own.decision, *known, z, found)
                heard.local[rows, i, number] = z
            calibrations.append(found)
            successes.append(success)
        panel = Panel(number, outcomes, self.noise_rate, calibrations, None, np.ones(len(made)))
        return panel, successes

    def _weighed(
        self, panel: Panel, question: _Question, heard: Heard, rng: np.random.RandomState
    ) -> Panel:
        """Calibrate the machine of all kernels, and learn how much each expert counts."""
        if not self.learn_weights:
            return panel
        testimony, known = panel.testimony(heard), (question.truth, question.weight)
        if self.joint_model and heard.decision.shape[1] > 1:
            trust = panel.opinion(testimony).trust
            together = testimony.together(trust)
            panel = replace(panel, joint=calibrate(question.outcomes, together, *known))
        return with_learned_weights(panel, testimony, *known, self.n_corrupted_copies, rng)

    def trust(self, X: Any, *, labels: bool = False) -> Any:
        """Probability that each kernel speaks to the matter at each sample.

        Unlike :meth:`gate`, which gives shares, all kernels of a sample may be trusted, or none.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        labels : bool, default=False
            Whether to return a data frame with the names of the kernels, and the index of `X`.

        Returns
        -------
        trust : array of shape (n_samples, n_kernels)
            From 0 to below 1; 0 where a sample lacks the view, near 0 where it is like no training
            sample or where the other kernels speak against it. The mean over several targets.
        """
        trust = checked_prediction(self._model.trust, self._validate_for_predict(X))
        return labelled(trust, X, self.kernel_names_, self._tasks()) if labels else trust

    def disagreement(self, X: Any, *, labels: bool = False) -> Any:
        """How far the kernels contradict each other at each sample, whomever the vote trusts.

        Two kernels that give an outcome the probabilities ``q_i(y)`` and ``q_k(y)`` contradict each
        other by ``sum_y |q_i(y) - q_k(y)| / 2``; this is the mean over all pairs of kernels,
        weighed by how familiar the sample is to both.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        labels : bool, default=False
            Whether to return a series (pandas) with the index of `X`.

        Returns
        -------
        disagreement : array of shape (n_samples,)
            0 where all kernels say the same, 1 where each rules out what the others say.
        """
        values = checked_prediction(self._model.disagreement, self._validate_for_predict(X))
        return labelled_samples(values, X, "disagreement") if labels else values

    def familiarity(self, X: Any, *, labels: bool = False) -> Any:
        """How far each kernel has seen samples like these in training.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        labels : bool, default=False
            Whether to return a data frame with the names of the kernels, and the index of `X`.

        Returns
        -------
        familiarity : array of shape (n_samples, n_kernels)
            From 0, like none of the training samples, to 1; 0 where a sample lacks the view, 1 for
            all others where `novelty` is off.
        """
        values = checked_prediction(self._model.familiar, self._validate_for_predict(X))
        return labelled(values, X, self.kernel_names_, self._tasks()) if labels else values


def _heard(
    training: Training, made: list[HeldOutExpert], together: Together, n_panels: int
) -> Heard:
    """What experts say about the training samples that they have not learned from."""
    n, m = training.n_samples, training.n_kernels
    present = training.samples.present
    present = np.ones((n, m), bool) if present is None else present
    heard = blank(present, len(training.problems), n_panels, together.base)
    gate = 1.0 / np.sqrt(present.sum(axis=1))
    for i, own in enumerate(made):
        rows = own.rows
        heard.decision[rows, i] = own.decision
        heard.part[rows, i] = gate[rows, np.newaxis] * own.part
        heard.familiar[rows, i] = own.expert.familiar(own.neighbours)
    return heard


def _warn(training: Training, made: list[HeldOutExpert]) -> None:
    solved = [(own, own.solution) for own in made if own.solution is not None]
    warn_if_saturated(
        [problem.take(own.rows) for own, _ in solved for problem in training.problems],
        [dual for _, solution in solved for dual in solution.duals],
        [own.diag for own, _ in solved for _ in training.problems],
    )


@settings
class TrustedVoteClassifier(_TrustedVote, ProbabilityMixin, Classifier):
    """A vote of experts that are believed as far as they deserve it, sample by sample.

    One expert for each kernel, a support vector machine, is judged by its decisions about samples
    that it has not learned from. They are calibrated to probabilities ``q_i(y|x)``, at a
    temperature that follows its success nearby; bounded, so that no expert alone can rule a class
    out; and hushed where a sample is like nothing the kernel has seen. The vote is
    ``S(y) = log prior(y) + sum_i w_i B_i(y)`` with bounded evidence ``B_i``, and a kernel is
    trusted as far as what it says fits what all others say. Weights ``w`` are learned, and how
    often the prior counts where kernels are heard: else of two kernels that contradict each other
    the rarer class would win.

    Notes
    -----
    For views that may be wrong at single samples: swapped, noisy or missing. With two kernels
    nobody can tell which of them is wrong.

    Parts of kernels are ``w_i B_i(y)``, a share of the evidence that only all kernels have
    together, divided by trust, and of what the prior counts for besides, divided by how familiar
    the sample is to each kernel. ``contributions(X).sum(-1) + intercept_`` is the decision, a log
    probability but for a constant; for two classes it is the log of the ratio of both.

    Draws depend on the distinct training samples only: a weight of 2 is a row written twice,
    whatever the order of the rows.

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

    def _questions(self, training: Training) -> list[_Question]:
        targets, weight = training.targets, training.problems[0].cost
        n_classes = max(targets.shape[1], 2)
        codes = (targets[:, 0] > 0).astype(np.intp) if n_classes == 2 else targets.argmax(axis=1)
        outcomes = Classes.of(codes, weight, n_classes)
        place = np.zeros(n_classes, dtype=np.intp)
        place[outcomes.known] = np.arange(len(outcomes.known))
        return [_Question(outcomes, place[codes], weight)]

    def _class_probabilities(self, X: Any, log: bool) -> Array:
        decision = self.decision_function(X)
        if decision.ndim == 1:
            decision = np.column_stack([np.zeros_like(decision), decision])
        logarithms = log_softmax(decision)
        return logarithms if log else np.exp(logarithms)

    def opinions(self, X: Any) -> Array:
        """Probability of each class by the word of each kernel alone.

        A kernel that cannot see a sample, or that has seen none like it, says how frequent the
        classes are.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        opinions : array of shape (n_samples, n_kernels, n_classes)
            In the order of ``kernel_names_`` and ``classes_``; sums over classes are one.
        """
        return checked_prediction(self._model.opinions, self._validate_for_predict(X))


@settings
class TrustedVoteRegressor(_TrustedVote, Regressor):
    """A vote of experts about one or several numeric targets, believed as far as they deserve it.

    The range of a target is divided into cells, and experts vote on them as on classes: an expert
    says that the target is near its prediction, with the error that it has on samples it has not
    learned from. The prediction is the mean of the voted distribution.

    Notes
    -----
    Predictions stay within the range of the training targets and a tenth beyond. Parts of kernels
    are how far each moves the mean on the way from the mean target to the prediction.

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

    n_cells: int = setting(200, count(10), "Cells that the range of a target is divided into.")

    def _questions(self, training: Training) -> list[_Question]:
        questions = []
        for task, problem in enumerate(training.problems):
            cells = Cells.of(problem.target, problem.cost, task, self.n_cells)
            questions.append(_Question(cells, cells.cell(problem.target), problem.cost))
        return questions
