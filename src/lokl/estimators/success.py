"""Where does each kernel succeed? One machine and one regressor of its success for each kernel."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold

from lokl._arrays import Array
from lokl._checks import check_positive as positive
from lokl.estimators.base import KernelLearner, Training
from lokl.estimators.validation import check_choice
from lokl.gates import Constant
from lokl.gates.base import masked_softmax
from lokl.gram import Expansion, GatedGram, GatedKernel
from lokl.kernels import Kernel
from lokl.optimizers import Machines
from lokl.solvers import Dual, Problem, Solver, epsilon_insensitive

# Cost and tube of the regressors, the defaults of LibSVM and scikit-learn.
_COST, _TUBE = 1.0, 0.1
_FOLDS = 5
# Trust never falls below this, so that no sample is left without any kernel.
FLOOR = 1e-3


@dataclass(eq=False, repr=False, kw_only=True)
class SuccessLearner(KernelLearner):
    """Settings of methods that regress success."""

    success: str = "train"
    regressor: Any = "same"
    closeness: str = "decay"

    def _check(self) -> None:
        check_choice("success", self.success, ("train", "cv"))
        check_choice("closeness", self.closeness, ("decay", "within"))
        if not isinstance(self.regressor, Kernel) and self.regressor != "same":
            raise ValueError(
                f"regressor must be 'same' or a Kernel for the regressions, got {self.regressor!r}"
            )


@dataclass(eq=False)
class Single:
    """One kernel's machines, where it was right, and the regressor of that.

    Attributes
    ----------
    kernel : Kernel
    rows : array of int
        Training samples that have its view.
    gram : GatedGram
        Of these samples, with its stored rows.
    duals : list of Dual
        Machines on this kernel alone.
    success : array of shape (len(rows),)
        Between 0 and 1.
    regressed : array of shape (len(rows),)
        The regressor at the training samples.
    regressor : Expansion
    """

    kernel: Kernel
    rows: Array
    gram: GatedGram
    duals: list[Dual]
    success: Array
    regressed: Array
    regressor: Expansion


def learn_success(learner: Any, training: Training) -> list[Single]:
    """Fit every kernel alone, see where it succeeds, and regress that on the samples.

    Kernels are independent: with ``n_jobs`` they run in threads that share the memory budget.
    """
    jobs = 1 if learner.n_jobs is None else joblib.effective_n_jobs(learner.n_jobs)
    solver = share_memory(training.solver, min(jobs, len(training.kernels)))
    task = _Task(learner, training, solver, int(training.rng.randint(2**31 - 1)))
    parallel = joblib.Parallel(n_jobs=jobs, prefer="threads")
    numbers = range(len(training.kernels))
    if training.problems[0].is_classification:
        return list(parallel(joblib.delayed(task.classify)(i) for i in numbers))
    machines = list(parallel(joblib.delayed(task.machines)(i) for i in numbers))
    scale = _common_scale(training, machines)
    return list(parallel(joblib.delayed(task.judge)(machine, scale) for machine in machines))


def share_memory(solver: Solver, parts: int) -> Solver:
    """Return a solver whose memory budget leaves room for others at work beside it."""
    if parts < 2 or "cache_size" not in solver.get_params():
        return solver
    shared: Solver = clone(solver).set_params(cache_size=solver.cache_size / parts)
    return shared


@dataclass(frozen=True, eq=False)
class Alone:
    """One kernel by itself: number, samples that have its view, matrix, machines, decisions."""

    number: int
    rows: Array
    gram: GatedGram
    duals: list[Dual]
    decision: Array


@dataclass(frozen=True, eq=False)
class _Task:
    """What is done for one kernel."""

    learner: Any
    training: Training
    solver: Solver
    seed: int

    def machines(self, i: int) -> Alone:
        """Kernel `i` alone: its samples, matrix, machines and residuals."""
        alone = self._alone(i)
        alone.gram.release()
        return alone

    def classify(self, i: int) -> Single:
        """Machines, correct decisions and their regressor, all on the same stored rows."""
        alone = self._alone(i)
        return self._regress(alone, _correct(self._targets(alone.rows), alone.decision))

    def judge(self, alone: Alone, scale: float) -> Single:
        """Success of a regression machine, and its regressor."""
        residuals = np.abs(self._targets(alone.rows) - alone.decision).mean(axis=1)
        if self.learner.closeness == "within":
            success = (residuals <= self.learner.epsilon).astype(float)
        else:
            success = np.exp(-residuals / scale)
        return self._regress(alone, success)

    def _targets(self, rows: Array) -> Array:
        return np.column_stack([problem.target[rows] for problem in self.training.problems])

    def _alone(self, i: int) -> Alone:
        training, rows = self.training, self.training.with_view(i)
        X = training.X if len(rows) == training.n_samples else training.X[rows]
        gates = np.ones((len(rows), 1))
        gram = self.solver.gram([training.kernels[i]], X, gates)
        problems = [problem.take(rows) for problem in training.problems]
        duals = Machines(gram, self.solver, problems).solve(gates).duals
        if self.learner.success == "cv":
            decision = self._held_out(gram, problems)
        else:
            decision = np.column_stack([dual.decision for dual in duals])
        return Alone(i, rows, gram, duals, decision)

    def _held_out(self, gram: GatedGram, problems: list[Problem]) -> Array:
        """Decisions on samples left out in turn; all folds share the stored rows."""
        target = np.column_stack([problem.target for problem in problems])
        n, folds = len(target), min(_FOLDS, len(target))
        codes, kind = np.zeros(n), KFold
        if problems[0].is_classification:
            codes = target[:, 0] if target.shape[1] == 1 else target.argmax(axis=1)
            if np.unique(codes, return_counts=True)[1].min() >= folds:
                kind = StratifiedKFold
        decision = np.zeros(target.shape)
        splits = kind(folds, shuffle=True, random_state=self.seed) if folds > 1 else None
        for kept, left in splits.split(np.zeros((n, 1)), codes) if splits else ():
            for t, problem in enumerate(problems):
                held = self.solver.solve(gram, problem.only(kept))
                decision[left, t] = held.decision[left]
        return decision

    def _regress(self, alone: Alone, success: Array) -> Single:
        """Regress success, on the same rows unless another kernel is asked for."""
        training, i, rows = self.training, alone.number, alone.rows
        kernel, own = training.kernels[i], alone.gram
        if isinstance(self.learner.regressor, Kernel):
            X = training.X if len(rows) == training.n_samples else training.X[rows]
            kernel = self.learner.regressor.bind(X, training.weight[rows])
            own = self.solver.gram([kernel], X, np.ones((len(rows), 1)))
        problem = epsilon_insensitive(success, _COST * training.weight[rows], _TUBE)
        dual = self.solver.solve(own, problem)
        regressor = Expansion.make(
            GatedKernel([kernel], Constant(), np.ones(1), names=[training.names[i]]),
            own,
            dual.coef[:, np.newaxis],
            dual.intercept,
        )
        own.release()
        alone.gram.release()
        return Single(
            training.kernels[i],
            rows,
            alone.gram,
            alone.duals,
            success,
            dual.decision,
            regressor,
        )


def _common_scale(training: Training, machines: Sequence[Alone]) -> float:
    """Median absolute residual over all kernels: what counts as close."""
    residuals, weights = [], []
    for alone in machines:
        rows = alone.rows
        targets = np.column_stack([problem.target[rows] for problem in training.problems])
        residuals.append(np.abs(targets - alone.decision).mean(axis=1))
        weights.append(training.weight[rows])
    values, weight = np.concatenate(residuals), np.concatenate(weights)
    order = np.argsort(values, kind="stable")
    mass = np.cumsum(weight[order])
    median = float(values[order][np.searchsorted(mass, 0.5 * mass[-1])])
    # Without any residual at the median, whatever is left of others is far away.
    return max(median, 1e-12)


def _correct(targets: Array, decision: Array) -> Array:
    """1 where the decision names the right class, else 0."""
    if targets.shape[1] == 1:
        return np.asarray((targets * decision)[:, 0] > 0, dtype=float)
    return np.asarray(targets.argmax(axis=1) == decision.argmax(axis=1), dtype=float)


@dataclass(frozen=True, eq=False)
class RegressedSuccess:
    """Regressed success of every kernel at any sample, (n_samples, n_kernels).

    Attributes
    ----------
    regressors : list of Expansion
    """

    regressors: list[Expansion]

    def __call__(self, X: Any, present: Array | None = None) -> Array:
        values = np.full((X.shape[0], len(self.regressors)), -np.inf)
        for i, regressor in enumerate(self.regressors):
            rows = np.arange(X.shape[0]) if present is None else np.flatnonzero(present[:, i])
            if len(rows):
                values[rows, i] = regressor(X if len(rows) == X.shape[0] else X[rows])[:, 0]
        return values


def at_training(singles: Sequence[Single], n_samples: int) -> Array:
    """Regressed success at the training samples, minus infinity where a view is missing."""
    values = np.full((n_samples, len(singles)), -np.inf)
    for i, single in enumerate(singles):
        values[single.rows, i] = single.regressed
    return values


def clipped(success: Array) -> Array:
    """Trust between the floor and 1, and 0 where a view is missing."""
    return np.where(np.isneginf(success), 0.0, np.clip(success, FLOOR, 1.0))


def sharpened(success: Array, temperature: float, clip: bool) -> Array:
    """Softmax over the kernels; missing views get 0."""
    missing = np.isneginf(success)
    values = np.clip(success, 0.0, 1.0) if clip else success
    return masked_softmax(np.where(missing, -np.inf, values) / positive("t", temperature), ~missing)
