"""SAMKL: every sample switches kernels on and off."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl.estimators.base import Training
from lokl.estimators.learned_gate import LearnedGate
from lokl.estimators.machine import Fitted, GatedClassifier
from lokl.estimators.success import RegressedSuccess
from lokl.estimators.validation import check_choice, check_count, check_norm
from lokl.gates import Constant, Weighted
from lokl.gates.weighted import weigh
from lokl.gram import Expansion, GatedKernel, Mixture, Points
from lokl.kernels import Kernel
from lokl.kernels.presence import split_missing
from lokl.optimizers import Machines, Step, closed_form
from lokl.optimizers.assignment import choose, choose_together
from lokl.solvers import epsilon_insensitive

_LATENTS = ("confidence", "label", "structural")
_ASSIGNMENTS = ("score", "regression")
# Rounds of the weights between two choices of kernels.
_INNER_ROUNDS = 500
# Choices without labels may go round in circles: the best machines of so many rounds are taken.
_CHOICES = 10


@dataclass(frozen=True, eq=False)
class Scores:
    """Part of every kernel in the decision of any sample, were it switched on.

    Attributes
    ----------
    kernels : list of Kernel
    names : list of str
    mixture : Mixture
    points : Points
        Support samples under their own gates.
    coef : array of shape (n_support, n_tasks)
    weights : array of shape (n_kernels,)
    """

    kernels: list[Kernel]
    names: list[str]
    mixture: Mixture
    points: Points
    coef: Array
    weights: Array

    def __call__(self, X: Any) -> Array:
        filled, _ = split_missing(self.kernels, self.names, X)
        return self.at(self.mixture.points(filled, np.ones((X.shape[0], len(self.weights)))))

    def at(self, points: Points) -> Array:
        """Scores (n_samples, n_kernels, n_tasks) of prepared samples."""
        sums = self.mixture.kernel_sums(points, self.points, self.coef)[:, :, 0]
        return np.asarray(sums * np.sqrt(self.weights)[:, np.newaxis])


@dataclass(frozen=True)
class Rule:
    """How a sample chooses, from scores and intercepts.

    Attributes
    ----------
    least, most : int
        Bounds on the number of kernels that are on.
    latent : str
    """

    least: int
    most: int
    latent: str

    def __call__(self, scores: Array, intercept: Array, present: Array | None) -> Array:
        """Choose without labels: the kernels that make the sample most confident of a class."""
        gains, offsets = _votes(scores, intercept)
        choices = [choose(g, self.least, self.most, present) for g in gains]
        if self.latent == "structural":
            # Best completion of every class: the difference of two is a machine on their mean.
            return np.asarray(np.mean(choices, axis=0))
        values = [(h * g).sum(axis=1) + o for h, g, o in zip(choices, gains, offsets, strict=True)]
        best = np.argmax(values, axis=0)
        return np.asarray(np.array(choices)[best, np.arange(len(best))])

    def gains(self, scores: Array, intercept: Array, present: Array | None) -> Array:
        """Gain of every kernel towards the class of which the sample is most confident."""
        gains, offsets = _votes(scores, intercept)
        values = [
            (choose(g, self.least, self.most, present) * g).sum(axis=1) + o
            for g, o in zip(gains, offsets, strict=True)
        ]
        best = np.argmax(values, axis=0)
        return np.asarray(np.array(gains)[best, np.arange(len(best))])


def _votes(scores: Array, intercept: Array) -> tuple[list[Array], list[float]]:
    """Gains of every kernel for each class against the mean of the others."""
    if scores.shape[2] == 1:
        return [scores[:, :, 0], -scores[:, :, 0]], [float(intercept[0]), -float(intercept[0])]
    total, count = scores.sum(axis=2), scores.shape[2]
    gains, offsets = [], []
    for c in range(count):
        gains.append(scores[:, :, c] - (total - scores[:, :, c]) / (count - 1))
        offsets.append(float(intercept[c] - (intercept.sum() - intercept[c]) / (count - 1)))
    return gains, offsets


@dataclass(frozen=True, eq=False)
class Chosen:
    """Choice of new samples: by the rule of training on scores, or by regressors of the choice."""

    scores: Scores
    intercept: Array
    rule: Rule
    regressors: RegressedSuccess | None = None

    def __call__(self, X: Any, present: Array | None = None) -> Array:
        if self.regressors is not None:
            gains = self.regressors(X, present) - 0.5
            return choose(gains, self.rule.least, self.rule.most, present)
        return self.rule(self.scores(X), self.intercept, present)


@dataclass(eq=False, repr=False, kw_only=True)
class _SAMKL(LearnedGate):
    """Alternate between l_p-norm MKL on the kernels that are on, and the choice of kernels."""

    max_iter: int = 20
    p: float = 2.0
    k_min: int | None = None
    k_max: int | None = None
    latent: str = "confidence"
    assign: str = "score"
    least_uses: int = 0

    def _check(self) -> None:
        super()._check()
        check_norm("p", self.p)
        check_choice("latent", self.latent, _LATENTS)
        check_choice("assign", self.assign, _ASSIGNMENTS)
        check_count("least_uses", self.least_uses, 0)

    def _rule(self, m: int) -> Rule:
        least = -(-m // 2) if self.k_min is None else check_count("k_min", self.k_min)
        most = m if self.k_max is None else check_count("k_max", self.k_max)
        if self.k_min is None:
            least = min(least, most)
        if not least <= most <= m:
            raise ValueError(
                f"k_min <= k_max <= {m} (the number of kernels), got k_min={least}, k_max={most}"
            )
        return Rule(least, most, self.latent)

    def _learn(self, training: Training) -> Fitted:
        m = len(training.kernels)
        rule = self._rule(m)
        h = np.ones((training.n_samples, m))
        if training.present is not None:
            h = h * training.present
        machines = self._machines(training, h)
        path = _Alternation(self, training, machines, rule, h)
        # The gate of new samples needs the finished machines; it is put in place below.
        fitted = self._walk(path, machines.gram, Constant())
        self.weights_ = fitted.params[0]
        self.choices_ = path.best_choice
        chosen = Chosen(
            path.scores(fitted.solution.coef, fitted.params[0], path.best_choice),
            np.array([dual.intercept for dual in fitted.solution.duals]),
            rule,
            self._regressors(training, path.best_choice) if self.assign == "regression" else None,
        )
        fitted.gate = Weighted(chosen)
        return fitted

    def _regressors(self, training: Training, choices: Array) -> RegressedSuccess:
        """Regress every kernel's switch on the samples, with the kernel itself."""
        regressors = []
        for i, kernel in enumerate(training.kernels):
            rows = training.with_view(i)
            gram = training.solver.gram([kernel], training.X[rows], np.ones((len(rows), 1)))
            problem = epsilon_insensitive(choices[rows, i], training.weight[rows], 0.1)
            dual = training.solver.solve(gram, problem)
            learned = GatedKernel([kernel], Constant(), np.ones(1), names=[training.names[i]])
            regressors.append(
                Expansion.make(learned, gram, dual.coef[:, np.newaxis], dual.intercept)
            )
            gram.release()
        return RegressedSuccess(regressors)


class _Alternation:
    """The path of SAMKL: the best machines so far after every choice of kernels."""

    def __init__(
        self, learner: _SAMKL, training: Training, machines: Machines, rule: Rule, h: Array
    ):
        self.learner = learner
        self.training = training
        self.machines = machines
        self.rule = rule
        self.best_choice = h

    def __iter__(self) -> Iterator[Step]:
        h, best, rounds = self.best_choice, None, 0
        while self.learner.latent == "label" or rounds < _CHOICES:
            rounds += 1
            step = self._weights(h)
            if best is None or step.objective < best.objective:
                best, self.best_choice = step, h
            yield best
            new = self._next(step, h)
            if (new == h).all():
                return
            h = new

    def _weights(self, h: Array) -> Step:
        path = closed_form(self.machines, h, p=float(self.learner.p), tol=self.learner.learn_tol)
        for rounds, found in enumerate(path, 1):
            step = found
            if rounds == _INNER_ROUNDS:
                break
        return step

    def scores(self, coef: Array, weights: Array, h: Array) -> Scores:
        """Scores of any sample under machines solved with a choice of kernels."""
        gram, training = self.machines.gram, self.training
        gram.move_gates(weigh(h, weights[np.newaxis]))
        support = np.flatnonzero((coef != 0).any(axis=1))
        points = gram.points.take(support)
        return Scores(
            training.kernels, training.names, gram.mixture, points, coef[support], weights
        )

    def _next(self, step: Step, h: Array) -> Array:
        training, learner, rule = self.training, self.learner, self.rule
        scores = self.scores(step.solution.coef, step.params[0], h).at(self.machines.gram.points)
        intercept = np.array([dual.intercept for dual in step.solution.duals])
        if learner.latent != "label":
            if learner.least_uses and learner.latent == "confidence":
                gains = rule.gains(scores, intercept, training.present)
                return self._together(gains)
            return rule(scores, intercept, training.present)
        targets = np.column_stack([problem.target for problem in training.problems])
        gains = (scores * targets[:, np.newaxis, :]).sum(axis=2)
        new = (
            self._together(gains)
            if learner.least_uses
            else choose(gains, rule.least, rule.most, training.present)
        )
        # Equal losses keep the choice: the objective falls or the alternation ends.
        better = _losses(new, scores, intercept, targets) < _losses(h, scores, intercept, targets)
        keep_all = learner.least_uses and better.any()
        return new if keep_all else np.where(better[:, np.newaxis], new, h)

    def _together(self, gains: Array) -> Array:
        rule = self.rule
        return choose_together(
            gains, rule.least, rule.most, self.learner.least_uses, self.training.present
        )


def _losses(h: Array, scores: Array, intercept: Array, targets: Array) -> Array:
    """Hinge loss of every sample under a choice of kernels."""
    decision = (h[:, :, np.newaxis] * scores).sum(axis=1) + intercept
    return np.asarray(np.maximum(0.0, 1.0 - targets * decision).sum(axis=1))


@dataclass(eq=False, repr=False)
class SAMKLClassifier(_SAMKL, GatedClassifier):
    """Sample-adaptive multiple kernel learning: every sample switches kernels on and off.

    ``k(x, z) = sum_i w_i s_i(x) s_i(z) k_i(x, z)`` with switches ``s_i`` in {0, 1}. Weights and
    machines (l_p-norm MKL) and switches are learned in turn.

    Parameters
    ----------
    kernels : list or mapping of kernels, str or None, default=None
        None is linear, quadratic and RBF on comparable scales (:func:`lokl.kernels.standard`).
        A mapping gives the kernels names.
    C : float, default=1.0
        Cost of margin violations.
    p : float, default=2.0
        Norm of the weights: 1 is sparse, larger is more even.
    k_min, k_max : int or None, default=None
        Bounds on the number of kernels a sample uses; None is half of them, rounded up, and all.
    latent : {"confidence", "label", "structural"}, default="confidence"
        A sample chooses the kernels that make it most confident of a class, as it does in
        prediction; those that suit its label, which memorises labels; or the mean of the best
        choices for each class.
    assign : {"score", "regression"}, default="score"
        New samples choose by their scores, or by regressors of the training samples' choices.
    least_uses : int, default=0
        Samples that must use every kernel, by an integer program ("confidence" and "label").
    solver : {"exact", "libsvm", "mwu"} or Solver, default="exact"
    tol : float, default=1e-3
        Largest violation of the optimality conditions that a machine leaves.
    max_iter : int, default=20
        Limit on the rounds of the method, -1 for none.
    learn_tol : float, default=1e-3
        Relative duality gap of the weights between two choices.
    callback : callable, optional
        Called with every :class:`~lokl.optimizers.Step`; the method stops when it returns True.
    cache_size : float, default=512
        Megabytes for rows of the Gram matrix.
    class_weight : dict, "balanced" or None, default=None
        Factors of `C` by class.
    random_state : int, RandomState or None, default=None
    n_jobs : int or None, default=None
        Not used by this method; common to all.
    verbose : int, default=0
        1 logs a line for every round to the logger ``lokl``.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    kernel_ : GatedKernel
        The learned kernel, usable wherever a kernel is: ``SVC(kernel=model.kernel_)``.
    kernels_, kernel_names_ : list
        Kernels with learned settings, and their names.
    support_ : array of shape (n_support,)
        Rows of the training samples that carry a machine.
    support_vectors_ : {array, CSR matrix} of shape (n_support, n_features)
    dual_coef_ : array of shape (n_machines, n_support)
        Signed coefficients; one machine for two classes, else one for each class.
    intercept_ : array of shape (n_machines,)
    support_fraction_ : float
    weights_ : array of shape (n_kernels,)
    choices_ : array of shape (n_samples, n_kernels)
        Switches of the training samples that count.
    history_ : array
        Least objective so far, after every round.
    duality_gap_ : float
        Certified, for weights and machines under the last choice.
    n_iter_ : int
        Rounds.
    n_features_in_ : int
    feature_names_in_ : array of str
        Where the training samples came with column names.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from lokl import SAMKLClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), SAMKLClassifier(random_state=0)).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """
