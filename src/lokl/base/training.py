"""Data of a fit: validated samples, bound kernels, dual problems and the solver."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from lokl._arrays import Array, Samples, sample_weight
from lokl.base.diagnostics import all_saturated
from lokl.base.fit_cache import FitCache
from lokl.base.model import FitDetails, GatedMachine, SupportSet
from lokl.gates import Gate
from lokl.gram import Expansion, GatedGram
from lokl.kernels import Kernel
from lokl.kernels.samples import read_samples
from lokl.solvers import Machines, Problem, Solution, Solver
from lokl.solvers.solve import resolve_solver


def build_solver(estimator: Any) -> Solver:
    """Return the solver of an estimator: the object given, or one by name with its settings.

    A solver object has settings of its own. Settings of the estimator that it would ignore must
    have their defaults; other values raise an error.
    """
    names = ["tol", "cache_size"] if estimator._counts_rounds else ["tol", "cache_size", "max_iter"]
    if isinstance(estimator.solver, Solver):
        defaults = {declared.name: declared.default for declared in fields(estimator)}
        if estimator._stores_rows:
            names.remove("cache_size")
        names = [name for name in names if getattr(estimator, name) != defaults[name]]
    return resolve_solver(estimator.solver, **{name: getattr(estimator, name) for name in names})


@dataclass(frozen=True, eq=False)
class ValidatedData:
    """Samples, targets and kernels that passed all checks; kernels are not bound yet."""

    X: Any  # {array, CSR matrix} of shape (n_samples, n_features)
    y: Any  # (n_samples,) or (n_samples, n_targets)
    weight: Array  # (n_samples,), may contain zeros
    kernels: dict[str, Kernel]
    solver: Solver
    frame: Any = None  # X as given, if it has column names
    feature_info: dict[str, Any] = field(default_factory=dict)  # n_features_in_, feature_names_in_
    cache: FitCache = field(default_factory=FitCache)

    def take(self, rows: Array) -> "ValidatedData":
        """Return some of the samples, with an empty cache."""
        frame = None if self.frame is None else self.frame.iloc[rows]
        y, weight = _safe_indexing(self.y, rows), self.weight[rows]
        return replace(self, X=self.X[rows], y=y, weight=weight, frame=frame, cache=FitCache())

    def bind(self, kernels: Iterable[Kernel] | None = None) -> list[Kernel]:
        """Bind kernels, by default its own, to the samples that have a weight."""
        rows = np.flatnonzero(self.weight > 0)
        # A weight of zero equals a missing row, for scales of kernels and for the solver.
        data = self if len(rows) == len(self.weight) else self.take(rows)
        kernels = self.kernels.values() if kernels is None else kernels
        with np.errstate(all="ignore"):
            return [kernel.bind(data.X, data.weight, data.frame) for kernel in kernels]

    def bound(self) -> tuple[Array, list[Kernel], Samples]:
        """Return the rows that have a weight, the kernels bound to them, and their samples."""
        rows = np.flatnonzero(self.weight > 0)
        data = self if len(rows) == len(self.weight) else self.take(rows)
        kernels = data.bind()
        samples = read_samples(
            kernels,
            list(self.kernels),
            data.X,
            columns=self.feature_info.get("feature_names_in_"),
            rows=rows,
            weight=data.weight,
            frame=data.frame,
            training=True,
        )
        return rows, kernels, samples


@dataclass(frozen=True, eq=False)
class Training:
    """Input of a learning method: samples that have a weight, bound kernels, problems, solver.

    There is one problem for each output: for two classes one, for more classes one per class, and
    one for each target of a regression.
    """

    samples: Samples
    rows: Array  # positions of the samples among the rows of X
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
        """Number of samples times kernels times outputs, to decide on the number of threads."""
        return self.n_samples * self.n_kernels * len(self.problems)

    @property
    def weight(self) -> Array:
        """Weight of each sample, (n_samples,)."""
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
        """Return the Gram matrix of all kernels under gates.

        Parameters
        ----------
        gates : array of shape (n_samples, n_kernels) or (n_samples, n_kernels, rank)
        keep : bool, default=False
            Whether inner products are stored because the gates will change.
        share : float, default=1.0
            Share of the solver's memory budget.
        pair_normalized : bool, default=False
            Whether weights are divided by their sum for each pair of samples.
        """
        solver = self.solver if share == 1.0 else self.solver.with_share_of_memory(share)
        inner = self.cache.cached(
            "inner products", lambda: solver.inner_products(self.samples.filled, keep=keep)
        )
        return inner.gated(self.kernels, gates, pair_normalized=pair_normalized)

    def machines(
        self, problems: Sequence[Problem] | None = None, *, resume: Hashable = None
    ) -> Machines:
        """Return the machines of some problems, by default of all outputs.

        With a name `resume`, machines of a cost path start where the machines of that name ended in
        the previous fit. Use it only if the solution does not depend on the start.
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
        """Return the model of machines on one gated kernel.

        Parameters
        ----------
        gate : Gate
            Gate for any samples.
        params : array
            Learned parameters of the gate.
        solution : Solution
        history, gap, rounds : optional
            Objective after every round, duality gap and number of rounds of the method; by default
            the objective, gap and steps of the machines.
        names : list of str, optional
            Names of the learned kernels, if these are not the kernels of the training.
        gates : array, optional
            Values of the gate at the training samples, if they differ from the gates of the Gram
            matrix.
        **learned
            Fitted attributes that only this method has.
        """
        gram = solution.gram
        machines = zip(self.problems, solution.duals, strict=True)
        saturated = all_saturated((problem, dual, gram.diag) for problem, dual in machines)
        kernel = gram.kernel(gate, params, self.names if names is None else names)
        support = SupportSet.of(solution.coef, self.samples, self.rows)
        return GatedMachine(
            kernel,
            Expansion.make(kernel, gram, solution.coef, solution.intercept),
            support,
            solution.coef[support.positions].T,
            np.array([solution.objective] if history is None else history),
            solution.gap if gap is None else gap,
            solution.n_iter if rounds is None else rounds,
            learned,
            FitDetails(gram.gates if gates is None else gates, saturated),
        )
