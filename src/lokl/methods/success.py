"""Where kernels succeed: a regressed function of the samples for each kernel.

A vote of experts: one machine for each kernel, weighed by how far each is trusted.

Where does each kernel succeed? One machine and one regressor of its success for each kernel.
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
    """Regressed success of every kernel at any sample."""

    regressors: list[Expansion]  # one for each kernel, on samples that have its view

    def __call__(self, samples: Samples) -> Array:
        """Values (n_samples, n_kernels), minus infinity where a view is missing."""
        return self.prepared(samples)[0]

    def prepared(self, samples: Samples) -> tuple[Array, list[Any]]:
        """Return the values, and for each kernel the samples as laid out to find them."""
        values = np.full((samples.n_samples, len(self.regressors)), -np.inf)
        laid_out = []
        for i, regressor in enumerate(self.regressors):
            points = regressor.prepare(samples.seen_by(i))
            values[samples.rows_seen_by(i), i] = regressor.at(points)[:, 0]
            laid_out.append(points)
        return values, laid_out


def softmax_trust(success: Array, temperature: float, clip: bool) -> Array:
    """Softmax over the kernels of their success; missing views (minus infinity) get 0."""
    missing = np.isneginf(success)
    values = np.clip(success, 0.0, 1.0) if clip else success
    return masked_softmax(np.where(missing, -np.inf, values) / temperature, ~missing)


# New samples are laid out for every kernel at once, so many of them at a time.
_BLOCK = 8192


@dataclass(frozen=True, eq=False)
class Expert:
    """The machine of one kernel, trained on the samples that trust it.

    Attributes
    ----------
    name : str
        Of the kernel.
    kernel : Kernel
    rows : array of int
        Training samples it was trained on.
    support : array of int
        Training samples that carry it.
    coef : array of shape (n_support, n_tasks)
        Signed coefficients.
    intercept : array of shape (n_tasks,)
    expansion : Expansion or None
        The function without the gate of the new sample, None where there is no machine: then the
        intercept is all, zero for an expert that abstains.
    gated : bool
        Whether the decision of a sample is scaled by its own gate.
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
        """How far features of low rank miss the kernel, (1,)."""
        return np.zeros(1) if self.expansion is None else self.expansion.residual

    def decide(self, X: Any, trust: Array) -> Array:
        """Decisions (n_samples, n_tasks) of samples that trust it so far (``m g``).

        Parameters
        ----------
        X : Samples, or {array, CSR matrix} of shape (n_samples, n_features)
            With its view.
        trust : array of shape (n_samples,)
        """
        samples = X if isinstance(X, Samples) else Samples.of(X)
        if self.expansion is None:
            return self.say(np.zeros((samples.n_samples, len(self.intercept))), trust)
        return self.say(self.expansion(samples), trust)

    def say(self, values: Array, trust: Array) -> Array:
        """Return the decisions of samples at which the expansion has been computed."""
        gated = values * trust[:, np.newaxis] if self.gated else values
        return np.asarray(gated + self.intercept)


@dataclass(frozen=True, eq=False)
class Vote(Model):
    """``f(x) = sum_i g_i(x) squash(f_i(x))`` with ``g`` a softmax of regressed success."""

    success: RegressedSuccess
    temperature: float  # of the softmax
    clip: bool  # whether success is limited to [0, 1] before the softmax
    experts: list[Expert]
    squash: Callable[[Array], Array] | None  # of decisions, before they are weighed
    support: SupportSet
    objective: float  # sum of the experts' dual values
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
            "Zero: the parts of the kernels are all of the decision.",
        ),
        "history_": ("array", "Dual objective, summed over the experts."),
    }

    @property
    def n_tasks(self) -> int:
        return len(self.experts[0].intercept)

    def decide(self, samples: Samples) -> Array:
        return np.asarray(self.contributions(samples).sum(axis=1))

    def weights(self, samples: Samples) -> Array:
        return softmax_trust(self.success(samples), self.temperature, self.clip)

    def contributions(self, samples: Samples) -> Array:
        parts = np.zeros((samples.n_samples, len(self.experts), self.n_tasks))
        for start in range(0, samples.n_samples, _BLOCK):
            rows = np.arange(start, min(start + _BLOCK, samples.n_samples))
            parts[rows] = self._parts(samples.take(rows))
        return parts

    def _parts(self, samples: Samples) -> Array:
        success, laid_out = self.success.prepared(samples)
        g = softmax_trust(success, self.temperature, self.clip)
        # A sample that lacks views shares its trust among fewer kernels.
        count = np.isfinite(success).sum(axis=1)
        parts = np.zeros((samples.n_samples, len(self.experts), self.n_tasks))
        for i, expert in enumerate(self.experts):
            rows = samples.rows_seen_by(i)
            values = self._expansion_at(i, samples, laid_out[i])
            said = expert.say(values, (count * g[:, i])[rows])
            parts[rows, i] = g[rows, i, np.newaxis] * (self.squash(said) if self.squash else said)
        return parts

    def _expansion_at(self, i: int, samples: Samples, points: Any) -> Array:
        """Expert `i`'s expansion, on the layout that its regressor has made where that serves."""
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


# Cost and tube of the regressors, the defaults of LibSVM and scikit-learn.
_COST, _TUBE = 1.0, 0.1
_FOLDS = 5
# Decisions that differ by less, in units of the largest one, are equal.
_TIE = 1e-9
# Share of the memory for matrices of single kernels that stay from one fit to the next.
_FOR_KERNELS_ALONE = 0.5
# What numpy may say is set for each thread.
_quiet = np.errstate(all="ignore")


def _check_success_kernel(name: str, value: Any) -> None:
    if not isinstance(value, Kernel) and value != "same":
        raise ValueError(f"{name} must be 'same' or a Kernel for the regressions, got {value!r}")


@settings
class SuccessEstimator(KernelEstimator):
    """Settings of methods that regress success."""

    _weights_use_labels = True

    success: str = setting(
        "train",
        one_of("train", "cv"),
        "Success of a kernel on the training samples themselves, or on samples left out in turn "
        "(five folds).",
    )
    success_kernel: Any = setting(
        "same",
        Rule('"same" or Kernel', _check_success_kernel),
        "Kernel of the regressions of success: that of the machine, or one for all.",
    )
    closeness: str = setting(
        "decay",
        one_of("decay", "within"),
        "Success in regression: ``exp(-residual / median residual)``, or whether the residual is "
        "within `epsilon`. Not used for classes.",
    )

    def _check_combinations(self, solver: Solver) -> None:
        super()._check_combinations(solver)
        check_regression(solver)


@dataclass(frozen=True, eq=False)
class KernelAlone:
    """The machines of one kernel by itself."""

    number: int  # of the kernel
    rows: Array  # training samples that have its view
    gram: GatedGram  # of these samples
    kept: bool  # whether its rows stay in memory for fits that follow
    solution: Solution
    decision: Array  # (len(rows), n_tasks), by which success is judged


@dataclass(frozen=True, eq=False)
class JudgedKernel:
    """One kernel's machines, where it was right, and the regressor of that."""

    alone: KernelAlone
    success: Array  # (len(rows),), between 0 and 1
    regressed: Array  # (len(rows),), the regressor at the training samples
    regressor: Expansion


def learn_success(learner: SuccessEstimator, training: Training) -> list[JudgedKernel]:
    """Fit every kernel alone, see where it succeeds, and regress that on the samples.

    Kernels are independent: with ``n_jobs`` they run in threads that share the memory budget.
    """
    jobs = effective_jobs(learner.n_jobs, training.n_kernels)
    solver = training.solver if jobs < 2 else training.solver.with_share_of_memory(1.0 / jobs)
    judge = _Judge(learner, training, solver, int(training.rng.randint(2**31 - 1)))
    kernels = range(training.n_kernels)
    if training.is_classification:
        return run_calls([partial(judge.classes, i) for i in kernels], jobs)
    # What counts as close is known only when all kernels have been tried.
    machines = run_calls([partial(judge.machines, i) for i in kernels], jobs)
    scale = _common_scale(training, machines)
    return run_calls([partial(judge.targets, alone, scale) for alone in machines], jobs)


@dataclass(frozen=True, eq=False)
class _Judge:
    """What is done for one kernel."""

    learner: Any
    training: Training
    solver: Solver
    seed: int

    @_quiet
    def machines(self, i: int) -> KernelAlone:
        """Solve the machines of kernel `i` alone, and give the memory of its rows back."""
        alone = self._alone(i)
        _release(alone, alone.gram)
        return alone

    @_quiet
    def classes(self, i: int) -> JudgedKernel:
        """Machines, correct decisions and their regressor, all on the same stored rows."""
        alone = self._alone(i)
        return self._regress(alone, _correct(self.training.targets[alone.rows], alone.decision))

    @_quiet
    def targets(self, alone: KernelAlone, scale: float) -> JudgedKernel:
        """Success of a regression machine, and its regressor."""
        residuals = np.abs(self.training.targets[alone.rows] - alone.decision).mean(axis=1)
        if self.learner.closeness == "within":
            success = (residuals <= self.learner.epsilon).astype(float)
        else:
            success = np.exp(-residuals / scale)
        return self._regress(alone, success)

    def _alone(self, i: int) -> KernelAlone:
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
        return KernelAlone(i, rows, gram, kept, solution, decision)

    def _gram(self, i: int) -> tuple[GatedGram, bool]:
        """Matrix of kernel `i`, and whether it stays in memory for fits that follow."""
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

    def _regress(self, alone: KernelAlone, success: Array) -> JudgedKernel:
        """Regress success, on the same rows unless another kernel is asked for."""
        training, gram = self.training, alone.gram
        weight = training.weight[alone.rows]
        kernel = self.learner.success_kernel
        if isinstance(kernel, Kernel):
            gram = gram.inner.gated([kernel.bind(gram.inner.X, weight)])
        name, cache = training.names[alone.number], training.cache.for_kernel(alone.number)

        def make() -> tuple[Array, Expansion]:
            machine = success_machine(self.solver, success, weight)
            return regress(cache.resume("regression", machine), gram, name)

        # At many costs a machine is right about the same samples.
        regressed, regressor = cache.cached("success", make, inputs=success)
        _release(alone, gram)
        return JudgedKernel(alone, success, regressed, regressor)


def _release(alone: KernelAlone, gram: GatedGram) -> None:
    """Give the memory of rows back, unless fits follow that have room for them."""
    if not alone.kept:
        gram.release()


def memory_left(judged: Sequence[JudgedKernel]) -> float:
    """Share of the memory that kernels alone leave to the rest of a fit."""
    return 1.0 - _FOR_KERNELS_ALONE if any(own.alone.kept for own in judged) else 1.0


def success_machine(solver: Solver, values: Array, weight: Array) -> Machines:
    """Return the machine that regresses values on samples."""
    return Machines(solver, [epsilon_insensitive(values, _COST * weight, _TUBE)])


def regress(machine: Machines, gram: GatedGram, name: str) -> tuple[Array, Expansion]:
    """Regress the values of a machine under one kernel; return them there, and anywhere."""
    dual = machine.solve(gram).duals[0]
    kernel = average_kernel(gram.kernels, [name])
    expansion = Expansion.make(kernel, gram, dual.coef[:, np.newaxis], dual.intercept)
    return dual.decision, expansion


def at_training(judged: Sequence[JudgedKernel], n_samples: int) -> Array:
    """Regressed success at the training samples, minus infinity where a view is missing."""
    values = np.full((n_samples, len(judged)), -np.inf)
    for i, own in enumerate(judged):
        values[own.alone.rows, i] = own.regressed
    return values


def _common_scale(training: Training, machines: Sequence[KernelAlone]) -> float:
    """Median absolute residual over all kernels: what counts as close."""
    residuals, weights = [], []
    for alone in machines:
        missed = np.abs(training.targets[alone.rows] - alone.decision)
        residuals.append(missed.mean(axis=1))
        weights.append(training.weight[alone.rows])
    values, weight = np.concatenate(residuals), np.concatenate(weights)
    order = np.argsort(values, kind="stable")
    mass = np.cumsum(weight[order])
    median = float(values[order][np.searchsorted(mass, 0.5 * mass[-1])])
    # Where most residuals are zero, any other is far away.
    return max(median, 1e-12)


def _correct(targets: Array, decision: Array) -> Array:
    """1 where the decision names the right class, else 0.

    Classes that tie name none: samples on the margins of two machines do, and rounding would name
    either.
    """
    if targets.shape[1] == 1:
        ahead = (targets * decision)[:, 0]
    else:
        right = targets > 0
        others = np.where(right, -np.inf, decision).max(axis=1)
        ahead = np.where(right, decision, -np.inf).max(axis=1) - others
    return np.asarray(ahead > _TIE * np.abs(decision).max(initial=0.0), dtype=float)
