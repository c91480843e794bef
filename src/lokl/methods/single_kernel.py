"""SVMs on each kernel alone: votes of them, and regressions of their success on the samples.

Shared by SwMKL, LD-MKL, SAMKL and the trusted vote.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, TypeVar

import numpy as np

from lokl._arrays import Array, Samples, weighted_quantile
from lokl._threads import run_calls, threads_for
from lokl.base import KernelEstimator, Training, setting, settings
from lokl.base.model import Model, SupportSet
from lokl.base.settings import Rule, one_of
from lokl.gram import Expansion, GatedGram
from lokl.gram.gated_kernel import average_kernel
from lokl.kernels import Kernel
from lokl.solvers import Machines, Problem, Solution, Solver, epsilon_insensitive
from lokl.solvers.machines import folds_for, held_out_decisions
from lokl.solvers.solve import regression_loss

Result = TypeVar("Result")

# Share of the memory for matrices of single kernels that stay from one fit to the next.
KEPT_SHARE = 0.5
# Cost and epsilon of the regressors, the defaults of LibSVM and scikit-learn.
_COST, _TUBE = 1.0, 0.1
_FOLDS = 5
# Decisions that differ by less, in units of the largest one, are equal.
_TIE = 1e-9


def for_each_kernel(
    training: Training, n_jobs: int | None, fit: Callable[[int, Solver], Result]
) -> list[Result]:
    """Return ``fit(i, solver)`` for every kernel `i`, in threads that share the memory budget."""
    jobs = 1 if n_jobs is None else min(threads_for(n_jobs), training.n_kernels)
    solver = training.solver if jobs < 2 else training.solver.with_share_of_memory(1.0 / jobs)
    # numpy's error state belongs to a thread.
    quiet = np.errstate(all="ignore")(fit)
    return run_calls([partial(quiet, i, solver) for i in range(training.n_kernels)], jobs)


@dataclass(frozen=True, eq=False)
class SingleKernelFit:
    """SVMs of one kernel alone, on the training samples that have its view."""

    rows: Array  # these samples
    gram: GatedGram  # of these samples
    kept: bool  # whether rows of the matrix stay in memory for later fits
    problems: list[Problem]
    solution: Solution

    @classmethod
    def of(cls, training: Training, i: int, solver: Solver) -> "SingleKernelFit":
        """Train the SVMs of kernel `i`."""
        rows, cache = training.samples.rows_seen_by(i), training.cache.for_kernel(i)

        def make(solver: Solver) -> GatedGram:
            inner = solver.inner_products(training.samples.seen_by(i).filled)
            return inner.gated([training.kernels[i]])

        kept = None
        if cache.persistent:
            smaller = solver.with_share_of_memory(KEPT_SHARE / training.n_kernels)
            # The precision may depend on the cost.
            precision = getattr(solver, "dtype", "auto")
            kept = cache.cached("matrix", lambda: make(smaller), inputs=precision)
        is_kept = kept is not None and kept.fits
        gram = kept if kept is not None and is_kept else make(solver)
        problems = [problem.take(rows) for problem in training.problems]
        machines = cache.resume("machines", Machines(solver, problems), same_matrix=True)
        return cls(rows, gram, is_kept, problems, machines.solve(gram))


@dataclass(frozen=True, eq=False, kw_only=True)
class ExpertVote(Model):
    """Vote of one expert for each kernel.

    Attributes
    ----------
    experts : sequence
        Each has `name`, `kernel`, `support` (positions of its support vectors), `coef` of shape
        (n_stored, n_tasks), `intercept` of shape (n_tasks,) and `expansion`.
    support : SupportSet
        Of all experts.
    objective : float
        Sum of the dual objectives of all SVMs.
    n_iter : int
        Largest number of steps of an SVM.
    """

    experts: Sequence[Any]
    support: SupportSet
    objective: float
    n_iter: int

    shares_intercept: ClassVar[bool] = False

    @property
    def n_tasks(self) -> int:
        return len(self.experts[0].intercept)

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes by name.

        Attributes
        ----------
        experts_ : list
            One for each kernel: its SVM, with support and coefficients.
        dual_coef_ : array of shape (n_kernels, n_support) or (n_kernels, n_machines, n_support)
            Signed coefficients of the experts.
        history_ : array
            Dual objective, summed over the SVMs.
        """
        positions, expansions = self.support.positions, [item.expansion for item in self.experts]
        coef = np.zeros((len(self.experts), self.n_tasks, len(positions)))
        order = np.argsort(positions)
        for i, expert in enumerate(self.experts):
            columns = order[np.searchsorted(positions, expert.support, sorter=order)]
            coef[i][:, columns] = expert.coef[(expert.coef != 0).any(axis=1)].T
        residuals = [np.zeros(1) if item is None else item.residual for item in expansions]
        return {
            "experts_": self.experts,
            "kernels_": [expert.kernel for expert in self.experts],
            "kernel_names_": [expert.name for expert in self.experts],
            **self.support.attributes(),
            "dual_coef_": coef[:, 0] if self.n_tasks == 1 else coef,
            "kernel_residual_": np.concatenate(residuals),
            "history_": np.array([self.objective]),
            "n_iter_": self.n_iter,
        }


@dataclass(frozen=True, eq=False)
class RegressedSuccess:
    """Predicted success of every kernel at any sample."""

    regressors: list[Expansion]  # one per kernel, for samples that have its view

    def __call__(self, samples: Samples) -> Array:
        """Return success (n_samples, n_kernels), minus infinity for missing views."""
        return self.prepared(samples)[0]

    def prepared(self, samples: Samples) -> tuple[Array, list[Any]]:
        """Return the success, and the prepared samples of each kernel for further use."""
        points = [item.prepare(samples.seen_by(i)) for i, item in enumerate(self.regressors)]
        pairs = zip(self.regressors, points, strict=True)
        return samples.by_kernel([item.at(at)[:, 0] for item, at in pairs], -np.inf), points


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
        regression_loss("epsilon_insensitive", solver)

    def _learn_success(
        self, training: Training
    ) -> tuple[list[SingleKernelFit], Array, Array, RegressedSuccess]:
        """Train SVMs on every kernel alone, and regress their success on the samples.

        Kernels are independent: with ``n_jobs`` they run in threads that share the memory budget.

        Returns
        -------
        fits : list of SingleKernelFit
            One for each kernel.
        success : array of shape (n_samples, n_kernels)
            Between 0 and 1, NaN for missing views.
        regressed : array of shape (n_samples, n_kernels)
            Predicted success, minus infinity for missing views.
        regressors : RegressedSuccess
        """
        seed, targets = int(training.rng.randint(2**31 - 1)), training.targets

        def fit(i: int, solver: Solver) -> tuple[SingleKernelFit, Array]:
            single = SingleKernelFit.of(training, i, solver)
            gram, problems, decision = single.gram, single.problems, single.solution.decision
            if self.success == "cv":
                folds = folds_for(problems, _FOLDS, seed)
                decision = held_out_decisions(solver, gram, problems, folds, single.solution)
            if training.is_classification:
                return single, _correct(targets[single.rows], decision)
            if not single.kept:
                gram.release()
            return single, _residuals(problems, decision).mean(axis=1)

        def learn(i: int, solver: Solver) -> tuple[SingleKernelFit, Array, Array, Expansion]:
            # In classification, SVMs and regressor use the same stored rows.
            single, success = fit(i, solver) if fitted is None else fitted[i]
            return single, success, *self._regress(training, i, solver, single, success)

        fitted = None
        if not training.is_classification:
            fitted = self._closeness_of(training, for_each_kernel(training, self.n_jobs, fit))
        learned = for_each_kernel(training, self.n_jobs, learn)
        fits, success, regressed, regressors = map(list, zip(*learned, strict=True))
        join = training.samples.by_kernel
        return fits, join(success, np.nan), join(regressed, -np.inf), RegressedSuccess(regressors)

    def _closeness_of(
        self, training: Training, fits: list[tuple[SingleKernelFit, Array]]
    ) -> list[tuple[SingleKernelFit, Array]]:
        """Replace the residuals of all kernels, which have a common scale, by success."""
        if self.closeness == "within":
            return [(single, (size <= self.epsilon).astype(float)) for single, size in fits]
        sizes = np.concatenate([size for _, size in fits])
        weight = np.concatenate([training.weight[single.rows] for single, _ in fits])
        # If most residuals are zero, any other is large.
        scale = max(weighted_quantile(sizes, weight, 0.5), 1e-12)
        return [(single, np.exp(-size / scale)) for single, size in fits]

    def _regress(
        self, training: Training, i: int, solver: Solver, single: SingleKernelFit, success: Array
    ) -> tuple[Array, Expansion]:
        """Train the regressor of success, on the same rows unless it has another kernel."""
        gram, weight = single.gram, training.weight[single.rows]
        if isinstance(self.success_kernel, Kernel):
            gram = gram.inner.gated([self.success_kernel.bind(gram.inner.X, weight)])
        cache = training.cache.for_kernel(i)

        def make() -> tuple[Array, Expansion]:
            machines = cache.resume("regression", success_machine(solver, success, weight))
            return regress(machines, gram, training.names[i])

        # At many costs the same samples are classified correctly.
        regressed = cache.cached("success", make, inputs=success)
        if not single.kept:
            gram.release()
        return regressed


def success_machine(solver: Solver, values: Array, weight: Array) -> Machines:
    """Return an SVM that regresses values on samples."""
    return Machines(solver, [epsilon_insensitive(values, _COST * weight, _TUBE)])


def regress(machine: Machines, gram: GatedGram, name: str) -> tuple[Array, Expansion]:
    """Solve a regression under one kernel; return fitted values and the regressor."""
    dual = machine.solve(gram).duals[0]
    kernel = average_kernel(gram.kernels, [name])
    expansion = gram.expansion(kernel, dual.coef[:, np.newaxis], np.array([dual.intercept]))
    return dual.decision, expansion


def _residuals(problems: Sequence[Problem], decision: Array) -> Array:
    """Return the size of the residuals, (n_samples, n_tasks).

    A censored sample has one only if its decision is beyond its target.
    """
    error = decision - np.column_stack([problem.target for problem in problems])
    is_censored = np.column_stack([problem.present & (problem.upper == 0) for problem in problems])
    return np.where(is_censored, np.maximum(error, 0.0), np.abs(error))


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
