"""SAMKL: every sample switches kernels on and off."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from lokl._arrays import Array, Samples
from lokl.base import Classifier, IterativeEstimator, Training, setting, settings
from lokl.base.model import GatedMachine
from lokl.base.settings import NORM, POSITIVE, count, one_of, or_none
from lokl.gates import ConstantGate, WeightedGate
from lokl.gates.base import apply_weights
from lokl.gram import Expansion, GatedKernel
from lokl.methods.single_kernel import RegressedSuccess, regress, success_machine
from lokl.optimizers import NormBall, OptimizerStep, alternating
from lokl.solvers import Solver
from lokl.solvers.solve import regression_loss


def choose(gains: Array, least: int, most: int, present: Array | None = None) -> Array:
    """Switch on the kernels of largest gain, sample by sample.

    Maximises ``sum_i h_i gain_i`` over ``h`` in {0, 1} with ``least <= sum h <= most``. Ties go to
    the first kernel.

    Parameters
    ----------
    gains : array of shape (n_samples, n_kernels)
    least, most : int
        Bounds on the number of kernels of a sample.
    present : boolean array of shape (n_samples, n_kernels), optional
        Kernels of missing views stay off; bounds are limited to the available kernels.

    Returns
    -------
    switches : array of shape (n_samples, n_kernels)
        0 or 1.
    """
    if present is not None:
        gains = np.where(present, gains, -np.inf)
    order = np.argsort(-gains, axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(gains.shape[1])[np.newaxis], axis=1)
    on = ((gains > 0) & (rank < most)) | (rank < least)
    return np.asarray(on if present is None else on & present, dtype=float)


def choose_together(
    gains: Array, least: int, most: int, uses: int, present: Array | None = None
) -> Array:
    """Solve :func:`choose` with every kernel used by at least `uses` samples: an integer program.

    Raises
    ------
    ValueError
        If no choice satisfies all bounds.
    """
    n, m = gains.shape
    available = np.ones((n, m), dtype=bool) if present is None else present
    counts = available.sum(axis=1)
    by_sample = sparse.kron(sparse.eye_array(n), np.ones((1, m)), format="csr")
    by_kernel = sparse.kron(np.ones((1, n)), sparse.eye_array(m), format="csr")
    result = milp(
        -gains.ravel(),
        integrality=np.ones(n * m),
        bounds=Bounds(0, available.astype(float).ravel()),
        constraints=[
            LinearConstraint(by_sample, np.minimum(least, counts), np.minimum(most, counts)),
            LinearConstraint(by_kernel, np.full(m, uses), np.full(m, np.inf)),
        ],
    )
    if result.x is None:
        raise ValueError(
            f"no choice of at most {most} of {m} kernels for each of {n} samples uses every kernel "
            f"{uses} times; lower least_uses, or raise k_max"
        )
    return np.asarray(np.round(result.x).reshape(n, m))


# Rounds of the weights between two choices of kernels.
_INNER_ROUNDS = 500
# Choices without labels may cycle: the best SVMs of this many rounds are used.
_CHOICES = 10


@dataclass(frozen=True)
class SwitchRule:
    """Choice of kernels from scores and intercepts."""

    least: int  # bounds on the number of kernels
    most: int
    latent: str

    def __call__(
        self, scores: Array, intercept: Array, present: Array | None, uses: int = 0
    ) -> Array:
        """Choose without labels: the kernels of the most confident class.

        Parameters
        ----------
        scores : array of shape (n_samples, n_kernels, n_tasks)
        intercept : array of shape (n_tasks,)
        present : boolean array of shape (n_samples, n_kernels) or None
        uses : int, default=0
            Least number of samples of every kernel, for the most confident class.
        """
        # Gains for each class against the mean of the others, (n_classes, n_samples, n_kernels).
        if scores.shape[2] == 1:
            gains = np.array([scores[:, :, 0], -scores[:, :, 0]])
            offsets = np.array([intercept[0], -intercept[0]])
        else:
            others = scores.shape[2] - 1
            rest = scores.sum(axis=2, keepdims=True) - scores
            gains = (scores - rest / others).transpose(2, 0, 1)
            offsets = intercept - (intercept.sum() - intercept) / others
        choices = np.array([self.choose(gain, present) for gain in gains])
        if self.latent == "structural":
            # Each class has its best choice; the margin between two classes equals the margin of an
            # SVM on the mean of their choices.
            return np.asarray(np.mean(choices, axis=0))
        values = (choices * gains).sum(axis=2) + offsets[:, np.newaxis]
        best, rows = np.argmax(values, axis=0), np.arange(len(scores))
        return self.choose(gains[best, rows], present, uses) if uses else choices[best, rows]

    def choose(self, gains: Array, present: Array | None, uses: int = 0) -> Array:
        """Switch on the kernels of largest gain within the bounds, (n_samples, n_kernels)."""
        if uses:
            return choose_together(gains, self.least, self.most, uses, present)
        return choose(gains, self.least, self.most, present)


@dataclass(frozen=True, eq=False)
class Switches:
    """Switches of any samples: by the rule of training, or by regressors of the choices."""

    machines: Expansion  # SVMs with the gates of their support vectors
    weights: Array  # (n_kernels,)
    rule: SwitchRule
    regressors: RegressedSuccess | None = None

    def __call__(self, samples: Samples) -> Array:
        evaluate = self.scores if self.regressors is None else self.regressors
        return self.of(evaluate(samples), samples.present)

    def scores(self, samples: Samples) -> Array:
        """Return contributions of all kernels if switched on, (n_samples, n_kernels, n_tasks)."""
        parts = self.machines.contributions(self.machines.prepare_ungated(samples))
        return np.asarray(parts * np.sqrt(self.weights)[:, np.newaxis])

    def of(self, values: Array, present: Array | None) -> Array:
        """Choose by scores, or by predicted switches if there are regressors."""
        if self.regressors is not None:
            return self.rule.choose(values - 0.5, present)
        return self.rule(values, self.machines.intercept, present)


@settings
class SAMKLClassifier(IterativeEstimator, Classifier):
    """Sample-adaptive multiple kernel learning: every sample switches kernels on and off.

    ``k(x, z) = sum_i w_i s_i(x) s_i(z) k_i(x, z)`` with switches ``s_i`` in {0, 1}. Weights and
    SVMs (l_p-norm MKL) and the switches of all samples are updated in turn. The problem is not
    convex.

    Attributes
    ----------
    weights_ : array of shape (n_kernels,)
        Weight of each kernel, of norm one.
    choices_ : array of shape (n_samples, n_kernels)
        Kernels of the training samples with a weight, 0 or 1.
    history_ : array
        Best objective so far after every choice of kernels.
    duality_gap_ : float
        Of weights and SVMs, for the final choices.

    References
    ----------
    .. [1] X. Liu, L. Wang, J. Zhang, J. Yin. Sample-Adaptive Multiple Kernel Learning. AAAI
       Conference on Artificial Intelligence, 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import SAMKLClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = SAMKLClassifier(random_state=0).fit(scale(X), y)
    >>> round(model.score(scale(X), y), 2)
    1.0
    """

    p: float = setting(2.0, NORM, "Norm of the weights: 1 is sparse, larger values are more even.")
    min_kernels: int | None = setting(
        None,
        or_none(count()),
        "Least number of kernels of a sample; None is half of all kernels, rounded up.",
    )
    k_max: int | None = setting(
        None, or_none(count()), "Largest number of kernels of a sample; None is all kernels."
    )
    latent: str = setting(
        "confidence",
        one_of("confidence", "label", "structural"),
        "Kernels of a training sample: those of its most confident class, as in prediction; those "
        "of its label, which memorises labels; or the mean of the best choices for each class.",
    )
    assign: str = setting(
        "score",
        one_of("score", "regression"),
        "Kernels of new samples: by their scores, or by regressors of the training choices.",
    )
    least_uses: int = setting(
        0,
        count(0),
        'Least samples of every kernel, by an integer program ("confidence" and "label").',
    )
    learn_tol: float = setting(
        1e-3, POSITIVE, "Relative duality gap of the weights before the next choice of kernels."
    )
    max_iter: int = 20

    _weights_use_labels = True

    def _check_combinations(self, solver: Solver) -> None:
        super()._check_combinations(solver)
        if self.assign == "regression":
            regression_loss("epsilon_insensitive", solver)

    def _rule(self, m: int) -> SwitchRule:
        most = m if self.k_max is None else self.k_max
        least = min(-(-m // 2), most) if self.min_kernels is None else self.min_kernels
        if not least <= most <= m:
            raise ValueError(
                f"min_kernels <= k_max <= {m} (the number of kernels) must hold, got "
                f"min_kernels={least}, k_max={most}"
            )
        return SwitchRule(least, most, self.latent)

    def _learn(self, training: Training) -> GatedMachine:
        rule = self._rule(training.n_kernels)
        path = _Alternation(self, training, rule)
        trace = self._run(path)
        params, solution, choices = trace.last.params, trace.last.solution, path.best_choice
        regressors, values = None, path.best_scores
        if self.assign == "regression":
            regressors, values = _regress_switches(training, choices)
        # Scores assume that every kernel is on, so gates of new samples are not needed.
        kernel = GatedKernel(training.kernels, ConstantGate(), params[0], names=training.names)
        machines = solution.gram.expansion(kernel, solution.coef, solution.intercept)
        switches = Switches(machines, params[0], rule, regressors)
        model = trace.model(training, WeightedGate(switches), weights_=params[0], choices_=choices)
        # The SVMs were trained on the previous choices, or on choices by labels.
        gates = apply_weights(switches.of(values, training.samples.present), params)
        return replace(model, training_gates=gates)


def _regress_switches(training: Training, choices: Array) -> tuple[RegressedSuccess, Array]:
    """Regress the switches of every kernel on the samples, with the kernel itself.

    Returns the regressors, and their values at the training samples, (n_samples, n_kernels).
    """
    pairs = []
    for i, kernel in enumerate(training.kernels):
        rows = training.samples.rows_seen_by(i)
        gram = training.solver.inner_products(training.samples.seen_by(i).filled).gated([kernel])
        machine = success_machine(training.solver, choices[rows, i], training.weight[rows])
        pairs.append(regress(machine, gram, training.names[i]))
        gram.release()
    regressed, regressors = map(list, zip(*pairs, strict=True))
    return RegressedSuccess(regressors), training.samples.by_kernel(regressed, -np.inf)


class _Alternation:
    """Steps of SAMKL: the best SVMs so far after every choice of kernels."""

    def __init__(self, learner: SAMKLClassifier, training: Training, rule: SwitchRule):
        self.learner, self.training, self.rule = learner, training, rule
        h, present = np.ones((training.n_samples, training.n_kernels)), training.samples.present
        self.best_choice = h if present is None else h * present
        self.best_scores: Array = np.empty(0)  # of the training samples, under the best SVMs

    def __iter__(self) -> Iterator[OptimizerStep]:
        h, best, rounds, p = self.best_choice, None, 0, float(self.learner.p)
        machines, gram = self.training.machines(), self.training.gram(h, keep=True)
        while self.learner.latent == "label" or rounds < _CHOICES:
            rounds += 1
            objective = NormBall(machines=machines, gram=gram.regated(h), base=h, p=p)
            *_, step = islice(alternating(objective, self.learner.learn_tol), _INNER_ROUNDS)
            sums = step.solution.gram.kernel_sums(step.solution.coef)[:, :, 0]
            scores = sums * np.sqrt(step.params[0])[:, np.newaxis]
            if best is None or step.objective < best.objective:
                best, self.best_choice, self.best_scores = step, h, scores
            yield best
            new = self._next(h, scores, step.solution.intercept)
            if (new == h).all():
                return
            h = new

    def _next(self, h: Array, scores: Array, intercept: Array) -> Array:
        present, uses = self.training.samples.present, self.learner.least_uses
        if self.learner.latent != "label":
            return self.rule(scores, intercept, present, uses)
        targets = self.training.targets
        new = self.rule.choose((scores * targets[:, np.newaxis, :]).sum(axis=2), present, uses)
        # Equal losses keep the choice: the objective decreases or the alternation stops.
        losses = [self._losses(switches, scores, intercept) for switches in (new, h)]
        better = losses[0] < losses[1]
        return new if uses and better.any() else np.where(better[:, np.newaxis], new, h)

    def _losses(self, h: Array, scores: Array, intercept: Array) -> Array:
        """Return the loss of every sample under a choice of kernels, (n_samples,)."""
        decision = (h[:, :, np.newaxis] * scores).sum(axis=1) + intercept
        tasks = zip(self.training.problems, decision.T, strict=True)
        return np.sum([problem.losses(values) for problem, values in tasks], axis=0)
