"""Success of each kernel as a function of the samples, and a vote of one SVM per kernel.

LD-MKL and SwMKL train SVMs on each kernel alone and regress their success on the samples.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from lokl._arrays import Array, Samples
from lokl._threads import effective_jobs, run_calls
from lokl.base.estimator import KernelEstimator
from lokl.base.model import AttributeDocs, FitDetails, Model, SupportSet
from lokl.base.settings import Rule, one_of, setting, settings
from lokl.base.training import Training
from lokl.gates.base import masked_softmax
from lokl.gram import Expansion, GatedGram
from lokl.gram.gated_kernel import average_kernel
from lokl.kernels import Kernel
from lokl.solvers import Machines, Solution, Solver, epsilon_insensitive
from lokl.solvers.machines import folds_for, held_out_decisions
from lokl.solvers.solve import check_regression


@dataclass(frozen=True, eq=False)
class RegressedSuccess:
    """Predicted success of every kernel at any sample."""

    regressors: list[Expansion]  # one per kernel, for samples that have its view

    def __call__(self, samples: Samples) -> Array:
        """Return success (n_samples, n_kernels), minus infinity for missing views."""
        return self.prepared(samples)[0]

    def prepared(self, samples: Samples) -> tuple[Array, list[Any]]:
        """Return the success, and the prepared samples of each kernel for further use."""
        values = np.full((samples.n_samples, len(self.regressors)), -np.inf)
        prepared = []
        for i, regressor in enumerate(self.regressors):
            points = regressor.prepare(samples.seen_by(i))
            values[samples.rows_seen_by(i), i] = regressor.at(points)[:, 0]
            prepared.append(points)
        return values, prepared


def softmax_weights(success: Array, temperature: float, clip: bool) -> Array:
    """Return the softmax of success over the kernels; 0 for missing views (minus infinity)."""
    missing = np.isneginf(success)
    values = np.clip(success, 0.0, 1.0) if clip else success
    return masked_softmax(np.where(missing, -np.inf, values) / temperature, ~missing)


# New samples that are prepared for all kernels at a time.
_BLOCK = 8192


@dataclass(frozen=True, eq=False)
class Expert:
    """SVMs of one kernel, trained on the samples where its weight is high.

    Attributes
    ----------
    name : str
        Of the kernel.
    kernel : Kernel
    rows : array of int
        Training samples it was trained on.
    support : array of int
        Training samples that are its support vectors.
    coef : array of shape (n_support, n_tasks)
        Signed coefficients.
    intercept : array of shape (n_tasks,)
    expansion : Expansion or None
        Decision function without the gate of the new sample. None if no SVM could be trained; the
        decision is then the intercept, which is zero for an expert that abstains.
    gated : bool
        Whether the kernel sum of a sample is scaled by its own gate.
    """

    name: str
    kernel: Kernel
    rows: Array
    support: Array
    coef: Array
    intercept: Array
    expansion: Expansion | None
    gated: bool

    @property
    def residual(self) -> Array:
        """Error of low-rank features for the kernel, (1,)."""
        return np.zeros(1) if self.expansion is None else self.expansion.residual

    def decide(self, X: Any, gate: Array) -> Array:
        """Return decisions (n_samples, n_tasks) of samples with its view.

        Parameters
        ----------
        X : Samples, or {array, CSR matrix} of shape (n_samples, n_features)
        gate : array of shape (n_samples,)
            Weight of the expert times the number of kernels.
        """
        samples = X if isinstance(X, Samples) else Samples.of(X)
        if self.expansion is None:
            return self.decide_from(np.zeros((samples.n_samples, len(self.intercept))), gate)
        return self.decide_from(self.expansion(samples), gate)

    def decide_from(self, values: Array, gate: Array) -> Array:
        """Return decisions from known kernel sums, (n_samples, n_tasks)."""
        gated = values * gate[:, np.newaxis] if self.gated else values
        return np.asarray(gated + self.intercept)


@dataclass(frozen=True, eq=False)
class Vote(Model):
    """``f(x) = sum_i g_i(x) squash(f_i(x))`` with ``g`` a softmax of regressed success."""

    success: RegressedSuccess
    temperature: float  # of the softmax
    clip: bool  # whether success is clipped to [0, 1] before the softmax
    experts: list[Expert]
    squash: Callable[[Array], Array] | None  # applied to decisions before they are weighted
    support: SupportSet
    objective: float  # sum of the dual objectives of the experts
    n_iter: int
    details: FitDetails | None = None

    shares_intercept: ClassVar[bool] = False
    attribute_docs: ClassVar[AttributeDocs] = {
        "experts_": (
            "list of Expert",
            "One for each kernel: the samples it was trained on, its support and coefficients.",
        ),
        **Model.attribute_docs,
        "dual_coef_": (
            "array of shape (n_kernels, n_support) or (n_kernels, n_machines, n_support)",
            "Signed coefficients of the experts.",
        ),
        "intercept_": (
            "array of shape (n_machines,)",
            "Zero: the contributions of the kernels are the whole decision.",
        ),
        "history_": ("array", "Dual objective, summed over the experts."),
    }

    @property
    def n_tasks(self) -> int:
        return len(self.experts[0].intercept)

    def decide(self, samples: Samples) -> Array:
        return np.asarray(self.contributions(samples).sum(axis=1))

    def weights(self, samples: Samples) -> Array:
        return softmax_weights(self.success(samples), self.temperature, self.clip)

    def contributions(self, samples: Samples) -> Array:
        parts = np.zeros((samples.n_samples, len(self.experts), self.n_tasks))
        for start in range(0, samples.n_samples, _BLOCK):
            rows = np.arange(start, min(start + _BLOCK, samples.n_samples))
            parts[rows] = self._parts(samples.take(rows))
        return parts

    def _parts(self, samples: Samples) -> Array:
        success, prepared = self.success.prepared(samples)
        g = softmax_weights(success, self.temperature, self.clip)
        # The weights of a sample without some views are divided among fewer kernels.
        count = np.isfinite(success).sum(axis=1)
        parts = np.zeros((samples.n_samples, len(self.experts), self.n_tasks))
        for i, expert in enumerate(self.experts):
            rows = samples.rows_seen_by(i)
            values = self._expansion_at(i, samples, prepared[i])
            decision = expert.decide_from(values, (count * g[:, i])[rows])
            squashed = self.squash(decision) if self.squash else decision
            parts[rows, i] = g[rows, i, np.newaxis] * squashed
        return parts

    def _expansion_at(self, i: int, samples: Samples, points: Any) -> Array:
        """Return kernel sums of expert `i`, on the points of its regressor if possible."""
        expansion = self.experts[i].expansion
        if expansion is None:
            return np.zeros((points.n_samples, self.n_tasks))
        if expansion.shares_layout_with(self.success.regressors[i]):
            return expansion.at(points)
        return expansion(samples.seen_by(i))

    def attributes(self) -> dict[str, Any]:
        places = self.support.positions
        coef = np.zeros((len(self.experts), self.n_tasks, len(places)))
        for i, expert in enumerate(self.experts):
            coef[i][:, np.searchsorted(places, expert.support)] = expert.coef.T
        return {
            "experts_": self.experts,
            "kernels_": [expert.kernel for expert in self.experts],
            "kernel_names_": [expert.name for expert in self.experts],
            **self.support.attributes(),
            "dual_coef_": coef[:, 0] if self.n_tasks == 1 else coef,
            "intercept_": np.zeros(self.n_tasks),
            "kernel_residual_": np.concatenate([expert.residual for expert in self.experts]),
            "history_": np.array([self.objective]),
            "n_iter_": self.n_iter,
        }


# Cost and epsilon of the regressors, the defaults of LibSVM and scikit-learn.
_COST, _TUBE = 1.0, 0.1
_FOLDS = 5
# Decisions that differ by less, in units of the largest one, are equal.
_TIE = 1e-9
# Share of the memory for matrices of single kernels that stay from one fit to the next.
_FOR_KERNELS_ALONE = 0.5
# numpy's error state belongs to a thread.
_quiet = np.errstate(all="ignore")


def _check_success_kernel(name: str, value: Any) -> None:
    if not isinstance(value, Kernel) and value != "same":
        raise ValueError(f"{name} must be 'same' or a Kernel for the regressions, got {value!r}")


@settings
class SuccessEstimator(KernelEstimator):
    """Settings of methods that regress the success of each kernel."""

    _weights_use_labels = True

    success: str = setting(
        "train",
        one_of("train", "cv"),
        "Whether success is measured on the training samples or on held-out samples (five folds).",
    )
    success_kernel: Any = setting(
        "same",
        Rule('"same" or Kernel', _check_success_kernel),
        "Kernel of the regressions of success: the kernel itself, or one for all.",
    )
    closeness: str = setting(
        "decay",
        one_of("decay", "within"),
        "Success in regression: ``exp(-residual / median residual)``, or whether the residual is "
        "at most `epsilon`. Not used in classification.",
    )

    def _check_combinations(self, solver: Solver) -> None:
        super()._check_combinations(solver)
        check_regression(solver)


@dataclass(frozen=True, eq=False)
class SingleKernelFit:
    """SVMs of one kernel single."""

    index: int  # of the kernel
    rows: Array  # training samples that have its view
    gram: GatedGram  # of these samples
    kept: bool  # whether its rows stay in memory for later fits
    solution: Solution
    decision: Array  # (len(rows), n_tasks), from which success is computed


@dataclass(frozen=True, eq=False)
class KernelSuccess:
    """SVMs of one kernel, their success at the training samples, and its regressor."""

    single: SingleKernelFit
    success: Array  # (len(rows),), between 0 and 1
    regressed: Array  # (len(rows),), the regressor at the training samples
    regressor: Expansion


def learn_success(learner: SuccessEstimator, training: Training) -> list[KernelSuccess]:
    """Train SVMs on every kernel alone, and regress their success on the samples.

    Kernels are independent: with ``n_jobs`` they run in threads that share the memory budget.
    """
    jobs = effective_jobs(learner.n_jobs, training.n_kernels)
    solver = training.solver if jobs < 2 else training.solver.with_share_of_memory(1.0 / jobs)
    trainer = _SuccessTrainer(learner, training, solver, int(training.rng.randint(2**31 - 1)))
    kernels = range(training.n_kernels)
    if training.is_classification:
        return run_calls([partial(trainer.classes, i) for i in kernels], jobs)
    # The scale of residuals depends on all kernels.
    machines = run_calls([partial(trainer.machines, i) for i in kernels], jobs)
    scale = _common_scale(training, machines)
    return run_calls([partial(trainer.targets, single, scale) for single in machines], jobs)


@dataclass(frozen=True, eq=False)
class _SuccessTrainer:
    """Training of SVMs and regressors, one kernel at a time."""

    learner: Any
    training: Training
    solver: Solver
    seed: int

    @_quiet
    def machines(self, i: int) -> SingleKernelFit:
        """Train the SVMs of kernel `i`, and free the memory of its rows."""
        single = self._fit_alone(i)
        _release(single, single.gram)
        return single

    @_quiet
    def classes(self, i: int) -> KernelSuccess:
        """Train SVMs and the regressor of correct decisions, all on the same stored rows."""
        single = self._fit_alone(i)
        return self._regress(single, _correct(self.training.targets[single.rows], single.decision))

    @_quiet
    def targets(self, single: SingleKernelFit, scale: float) -> KernelSuccess:
        """Compute the success of a regression SVM, and train its regressor."""
        residuals = np.abs(self.training.targets[single.rows] - single.decision).mean(axis=1)
        if self.learner.closeness == "within":
            success = (residuals <= self.learner.epsilon).astype(float)
        else:
            success = np.exp(-residuals / scale)
        return self._regress(single, success)

    def _fit_alone(self, i: int) -> SingleKernelFit:
        training = self.training
        rows = training.samples.rows_seen_by(i)
        gram, kept = self._gram(i)
        problems = [problem.take(rows) for problem in training.problems]
        machines = Machines(self.solver, problems)
        machines = training.cache.for_kernel(i).resume("machines", machines, same_matrix=True)
        solution = machines.solve(gram)
        decision = solution.decision
        if self.learner.success == "cv":
            folds = folds_for(problems, _FOLDS, self.seed)
            decision = held_out_decisions(self.solver, gram, problems, folds, solution)
        return SingleKernelFit(i, rows, gram, kept, solution, decision)

    def _gram(self, i: int) -> tuple[GatedGram, bool]:
        """Return the Gram matrix of kernel `i`, and whether it stays in memory for later fits."""
        training = self.training

        def make(solver: Solver) -> GatedGram:
            inner = solver.inner_products(training.samples.seen_by(i).filled)
            return inner.gated([training.kernels[i]])

        if training.cache.persistent:
            smaller = self.solver.with_share_of_memory(_FOR_KERNELS_ALONE / training.n_kernels)
            gram = training.cache.for_kernel(i).cached("matrix", lambda: make(smaller))
            if gram.fits:
                return gram, True
        return make(self.solver), False

    def _regress(self, single: SingleKernelFit, success: Array) -> KernelSuccess:
        """Train the regressor of success, on the same rows unless it has another kernel."""
        training, gram = self.training, single.gram
        weight = training.weight[single.rows]
        kernel = self.learner.success_kernel
        if isinstance(kernel, Kernel):
            gram = gram.inner.gated([kernel.bind(gram.inner.X, weight)])
        name, cache = training.names[single.index], training.cache.for_kernel(single.index)

        def make() -> tuple[Array, Expansion]:
            machine = success_machine(self.solver, success, weight)
            return regress(cache.resume("regression", machine), gram, name)

        # At many costs the same samples are classified correctly.
        regressed, regressor = cache.cached("success", make, inputs=success)
        _release(single, gram)
        return KernelSuccess(single, success, regressed, regressor)


def _release(single: SingleKernelFit, gram: GatedGram) -> None:
    """Free the memory of rows unless later fits use them."""
    if not single.kept:
        gram.release()


def memory_left(successes: Sequence[KernelSuccess]) -> float:
    """Return the share of the memory that single kernels leave to the rest of a fit."""
    return 1.0 - _FOR_KERNELS_ALONE if any(success.single.kept for success in successes) else 1.0


def success_machine(solver: Solver, values: Array, weight: Array) -> Machines:
    """Return an SVM that regresses values on samples."""
    return Machines(solver, [epsilon_insensitive(values, _COST * weight, _TUBE)])


def regress(machine: Machines, gram: GatedGram, name: str) -> tuple[Array, Expansion]:
    """Solve a regression under one kernel; return fitted values and the regressor."""
    dual = machine.solve(gram).duals[0]
    kernel = average_kernel(gram.kernels, [name])
    expansion = gram.expansion(kernel, dual.coef[:, np.newaxis], np.array([dual.intercept]))
    return dual.decision, expansion


def success_at_training(successes: Sequence[KernelSuccess], n_samples: int) -> Array:
    """Return predicted success at the training samples, minus infinity for missing views."""
    values = np.full((n_samples, len(successes)), -np.inf)
    for i, success in enumerate(successes):
        values[success.single.rows, i] = success.regressed
    return values


def _common_scale(training: Training, machines: Sequence[SingleKernelFit]) -> float:
    """Return the median absolute residual over all kernels."""
    residuals, weights = [], []
    for single in machines:
        missed = np.abs(training.targets[single.rows] - single.decision)
        residuals.append(missed.mean(axis=1))
        weights.append(training.weight[single.rows])
    values, weight = np.concatenate(residuals), np.concatenate(weights)
    order = np.argsort(values, kind="stable")
    mass = np.cumsum(weight[order])
    median = float(values[order][np.searchsorted(mass, 0.5 * mass[-1])])
    # If most residuals are zero, any other is large.
    return max(median, 1e-12)


def _correct(targets: Array, decision: Array) -> Array:
    """Return 1 for samples with the correct class ahead, otherwise 0.

    Ties count as wrong: samples on the margins of two SVMs are tied up to rounding.
    """
    if targets.shape[1] == 1:
        ahead = (targets * decision)[:, 0]
    else:
        right = targets > 0
        others = np.where(right, -np.inf, decision).max(axis=1)
        ahead = np.where(right, decision, -np.inf).max(axis=1) - others
    return np.asarray(ahead > _TIE * np.abs(decision).max(initial=0.0), dtype=float)
