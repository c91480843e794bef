"""The solver that the settings of an estimator ask for.

What a method learns from.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from lokl._arrays import Array, Samples, sample_weight
from lokl.base.fit_cache import FitCache
from lokl.base.model import GatedMachine, SupportSet
from lokl.gates import Gate
from lokl.gram import Expansion, GatedGram
from lokl.kernels import Kernel
from lokl.solvers import Machines, Problem, Solution, Solver
from lokl.solvers.base import warn_if_saturated
from lokl.solvers.solve import resolve_solver


def chosen_solver(learner: Any) -> Solver:
    """Make the solver by its name with the settings of the learner, or take the object given.

    An object has settings of its own: what was changed in the learner for the solver's sake would
    have no effect, which is an error.
    """
    names = ["tol", "cache_size"] if learner._counts_rounds else ["tol", "cache_size", "max_iter"]
    if isinstance(learner.solver, Solver):
        defaults = {known.name: known.default for known in fields(learner)}
        if learner._stores_rows:
            names.remove("cache_size")
        names = [name for name in names if getattr(learner, name) != defaults[name]]
    return resolve_solver(learner.solver, **{name: getattr(learner, name) for name in names})


@dataclass(frozen=True, eq=False)
class Training:
    """The samples that count, bound kernels, and one problem for each class or target."""

    samples: Samples
    rows: Array  # numbers of the samples among the rows of the data as given
    kernels: list[Kernel]
    names: list[str]  # of the kernels
    problems: list[Problem]
    solver: Solver
    rng: np.random.RandomState
    cache: FitCache = field(default_factory=FitCache)

    @property
    def n_samples(self) -> int:
        return self.samples.n_samples

    @property
    def n_kernels(self) -> int:
        return len(self.kernels)

    @property
    def work(self) -> int:
        """Samples, each counted once for every kernel and every class or target."""
        return self.n_samples * self.n_kernels * len(self.problems)

    @property
    def weight(self) -> Array:
        """How much each sample counts."""
        return sample_weight(self.samples)

    @property
    def targets(self) -> Array:
        """Targets of all problems, (n_samples, n_tasks)."""
        return np.column_stack([problem.target for problem in self.problems])

    @property
    def is_classification(self) -> bool:
        return self.problems[0].is_classification

    def gram(
        self,
        gates: Array,
        *,
        keep: bool = False,
        share: float = 1.0,
        pair_normalized: bool = False,
    ) -> GatedGram:
        """Make the matrix of all kernels under some gates, in a share of the memory.

        With `keep`, gates will move.
        """
        solver = self.solver if share == 1.0 else self.solver.with_share_of_memory(share)
        inner = self.cache.cached(
            "inner products", lambda: solver.inner_products(self.samples.filled, keep=keep)
        )
        return inner.gated(self.kernels, gates, pair_normalized=pair_normalized)

    def machines(
        self, problems: Sequence[Problem] | None = None, *, resume: Hashable = None
    ) -> Machines:
        """Return the machines of these problems, of all classes or targets where None.

        In a line of fits they begin where machines of the name `resume` have ended: only for
        methods whose answer does not depend on where they begin.
        """
        machines = Machines(self.solver, self.problems if problems is None else problems)
        return machines if resume is None else self.cache.resume(resume, machines)

    def model(
        self,
        gate: Gate,
        params: Array,
        solution: Solution,
        *,
        history: Sequence[float] | None = None,
        gap: float | None = None,
        rounds: int | None = None,
        names: list[str] | None = None,
        gates: Array | None = None,
        **learned: Any,
    ) -> GatedMachine:
        """Make a model of machines on one gated kernel.

        The gate is for any samples, under learned parameters. History, gap and number of rounds are
        those of the machines where None; names are given where other kernels were learned than
        those of the training; `gates` are given where the gate would say something else of the
        training samples than their Gram matrix was made with; `learned` are attributes that only
        the method has.
        """
        gram = solution.gram
        warn_if_saturated(self.problems, solution.duals, [gram.diag] * len(solution.duals))
        kernel = gram.kernel(gate, params, self.names if names is None else names)
        support = SupportSet.of(solution.coef, self.samples, self.rows)
        return GatedMachine(
            kernel,
            Expansion.make(kernel, gram, solution.coef, solution.intercept),
            support,
            solution.coef[support.places].T,
            np.array([solution.objective] if history is None else history),
            solution.gap if gap is None else gap,
            solution.n_iter if rounds is None else rounds,
            learned,
            gram.gates if gates is None else gates,
        )
