"""SVMs on each kernel alone, and votes of them: shared by SwMKL, LD-MKL and the trusted vote."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, TypeVar

import numpy as np

from lokl._arrays import Array
from lokl._threads import effective_jobs, run_calls
from lokl.base.diagnostics import warn_if_saturated
from lokl.base.model import AttributeDocs, Model, SupportSet
from lokl.base.training import Training
from lokl.gram import GatedGram
from lokl.solvers import Machines, Problem, Solution, Solver

Result = TypeVar("Result")

# Share of the memory for matrices of single kernels that stay from one fit to the next.
KEPT_SHARE = 0.5


def for_each_kernel(
    training: Training, n_jobs: int | None, fit: Callable[[int, Solver], Result]
) -> list[Result]:
    """Return ``fit(i, solver)`` for every kernel `i`, in threads that share the memory budget."""
    jobs = effective_jobs(n_jobs, training.n_kernels)
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
            kept = cache.cached("matrix", lambda: make(smaller))
        is_kept = kept is not None and kept.fits
        gram = kept if kept is not None and is_kept else make(solver)
        problems = [problem.take(rows) for problem in training.problems]
        machines = cache.resume("machines", Machines(solver, problems), same_matrix=True)
        return cls(rows, gram, is_kept, problems, machines.solve(gram))


def warn_if_all_saturated(fits: Iterable[SingleKernelFit]) -> None:
    """Warn if the SVMs of all kernels predict one class for all samples."""
    warn_if_saturated(
        (problem, dual, fit.gram.diag)
        for fit in fits
        for problem, dual in zip(fit.problems, fit.solution.duals, strict=True)
    )


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
    attribute_docs: ClassVar[AttributeDocs] = {
        "experts_": ("list", "One for each kernel: its SVM, with support and coefficients."),
        **Model.attribute_docs,
        "dual_coef_": (
            "array of shape (n_kernels, n_support) or (n_kernels, n_machines, n_support)",
            "Signed coefficients of the experts.",
        ),
        "history_": ("array", "Dual objective, summed over the SVMs."),
    }

    @property
    def n_tasks(self) -> int:
        return len(self.experts[0].intercept)

    def attributes(self) -> dict[str, Any]:
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
