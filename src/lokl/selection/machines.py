"""Single machines on shared matrices: one matrix for all costs and folds of a list of kernels.

A fold leaves samples out by giving them no cost, and the gradient of a machine holds its decisions
about them. So a cell of the grid costs the moves from the solution of the next smaller cost to its
own, and nothing else.
"""

import time
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection._validation import _score
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _check_method_params, _num_samples

from lokl._arrays import Array
from lokl._notices import tell
from lokl._threads import one_pool
from lokl.estimators._base.finite import check_costs
from lokl.estimators._base.settings import check_settings
from lokl.estimators._base.solver_choice import chosen_solver
from lokl.estimators.uniformmkl import UniformMKLClassifier, UniformMKLRegressor
from lokl.kernels import Kernel
from lokl.selection.grid import by_cost, group
from lokl.selection.in_step import in_threads, threads_for
from lokl.selection.judged import is_accuracy, judged, sees_predictions_only
from lokl.selection.lines import COSTS, LineFits, coarse_tolerance, solver_of
from lokl.selection.matrices import (
    Matrices,
    bound_in_folds,
    count_distinct,
    matrices_that_fit,
)
from lokl.selection.work import Cell, Cells, Task, Worker
from lokl.solvers import Exact
from lokl.solvers.cost_path import CostPath

# Tolerances below this are for optima that are polished, which those of selection are not.
_FINE = 1e-4


class SharedMachines(Worker):
    """Machines on one kernel, or on the average of several, whose matrix fits into memory."""

    takes_threads = True

    def __init__(self) -> None:
        self._matrices: Matrices | None = None
        self._models: dict[tuple[int, int, int], Any] = {}
        # What cannot be shared after all, or fails, is fitted as other estimators are.
        self._others = LineFits()

    def takes(self, task: Task, candidate: int) -> bool:
        model = self._model(task, candidate)
        return (
            type(model) in (UniformMKLClassifier, UniformMKLRegressor)
            and set(task.fit_params) <= {"sample_weight"}
            and sees_predictions_only(task.scorers)
            and _room(task, model) > 0
        )

    def lines(self, task: Task, candidates: list[int]) -> list[list[int]]:
        lines = group(task.candidates, candidates, apart_from=COSTS)
        return [by_cost(task.candidates, line) for line in lines]

    def lines_at_once(self, task: Task, line: list[int]) -> int:
        model = self._model(task, line[0])
        try:
            needed = count_distinct(_bound(task, _read(task, model)))
        except Exception:
            # Whatever is wrong is told when the line is run.
            return 1
        return max(1, min(threads_for(task.n_jobs), _room(task, model) // needed))

    def run(self, task: Task, line: list[int], threads: int) -> Cells:
        model = self._model(task, line[0])
        begin = time.perf_counter()
        try:
            data = _read(task, model)
            if self._matrices is None:
                self._matrices = Matrices(chosen_solver(model).dtype)
            bound = _bound(task, data)
            if count_distinct(bound) > _room(task, model):
                raise MemoryError("the matrices of all folds do not fit")
            with one_pool(data.X.shape[0]):
                grams = self._matrices.of_folds(data, bound)
        except Exception:
            # Whatever is wrong is told by ordinary fits, candidate by candidate.
            yield from self._others.run(task, line, threads)
            return
        shared = (time.perf_counter() - begin) / (len(line) * len(grams))
        try:
            folds = [
                _Fold(task, split, gram.whole, data, shared) for split, gram in enumerate(grams)
            ]
            for candidate in line:
                yield self._cells(task, candidate, folds, threads)
        finally:
            self._matrices.give_back(grams)

    def _model(self, task: Task, candidate: int) -> Any:
        """Return a configured estimator, which stays as it is."""
        # Folds of a pipeline are tasks of their own, with the same estimator and candidates.
        key = (id(task.estimator), id(task.candidates), candidate)
        if key not in self._models:
            # Whoever is known by its id is kept alive.
            self._models[key] = (task.configured(candidate), task.estimator, task.candidates)
        return self._models[key][0]

    def _cells(self, task: Task, candidate: int, folds: "list[_Fold]", threads: int) -> list[Cell]:
        try:
            model = self._model(task, candidate)
            # Settings of this candidate alone, such as its cost.
            check_settings(model)
            model._check_together()
            return in_threads(threads, [(fold.cell, candidate, copy(model)) for fold in folds])
        except Exception:
            (cells,) = self._others.run(task, [candidate], threads)
            return cells


def _read(task: Task, model: Any) -> Any:
    """Check the samples and the settings of a model."""
    return copy(model)._read(task.X, task.y, task.fit_params.get("sample_weight"))


def _room(task: Task, model: Any) -> int:
    """How many matrices may be held at a time."""
    solver = solver_of(model)
    if not isinstance(solver, Exact) or solver.max_iter >= 0 or solver.tol < _FINE:
        return 0
    return matrices_that_fit(_num_samples(task.X), solver.cache_size)


def _bound(task: Task, data: Any) -> list[list[Kernel]]:
    """Kernels of each fold, bound to the samples that it learns from."""
    return bound_in_folds(data, [train for train, _ in task.splits])


@dataclass(eq=False)
class _Fold:
    """The machines of one fold, and where they stand."""

    task: Task
    split: int
    matrix: Array
    data: Any
    shared_seconds: float  # part of a cell in the time that the matrix took
    # Targets and relative costs, and what they tell, by what a line may vary beside the cost.
    stated: dict[Any, Any] = field(default_factory=dict)
    # Paths of all classes or targets and the cost where they stand, likewise.
    paths: dict[Any, tuple[float, list[CostPath]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        task, (train, test) = self.task, self.task.splits[self.split]
        self.learned = _safe_split(task.estimator, task.X, task.y, train)
        self.scored = _safe_split(task.estimator, task.X, task.y, test, train)

    def cell(self, candidate: int, model: Any) -> Cell:
        """Solve the machines of a candidate, and score their decisions."""
        begin = time.perf_counter()
        decision, known = self._decide(model)
        vars(model).update(known)
        end = time.perf_counter()
        train, test = self.task.splits[self.split]
        scores = self._scores(model, self.scored, test, decision)
        done = time.perf_counter()
        train_scores = None
        if self.task.return_train_score:
            train_scores = self._scores(model, self.learned, train, decision)
        return Cell(
            candidate,
            self.split,
            scores,
            train_scores,
            end - begin + self.shared_seconds,
            done - end,
            decision=decision[test],
        )

    def _decide(self, model: Any) -> tuple[Array, dict[str, Any]]:
        """Return the decisions of a candidate about all samples, and what the targets told."""
        data, (train, _) = self.data, self.task.splits[self.split]
        n_samples = len(data.weight)
        tolerance = coarse_tolerance(chosen_solver(model), n_samples)
        assert tolerance is not None
        key = tuple(repr(getattr(model, name, None)) for name in COSTS if name != "C")
        if key not in self.stated:
            # The cost itself comes later: classes are then looked at once.
            unit = copy(model).set_params(C=1.0)
            self.stated[key] = unit._stated(data.y[train], data.weight[train])
            self.paths[key] = (
                np.inf,
                [CostPath(self.matrix, tolerance) for _ in self.stated[key][0]],
            )
        targets, known = self.stated[key]
        before, paths = self.paths[key]
        self.paths[key] = (model.C, paths)
        decisions = np.empty((n_samples, len(targets)))
        for task, (target, cost) in enumerate(targets):
            every_target, every_cost = np.zeros(n_samples), np.zeros(n_samples)
            every_target[train] = target
            every_cost[train] = check_costs(model.C, {"sample_weight": cost})
            problem = model._problem(every_target, every_cost)
            stop = paths[task].solve(problem, model.C / before)
            decisions[:, task] = stop.decision
            if stop.violation > tolerance:
                tell(
                    "unconverged",
                    f"the solver stopped after {stop.steps} steps with a violation of "
                    f"{stop.violation:.3g} > {tolerance:.3g}; scale the data or the kernels, or "
                    "search smaller costs",
                    ConvergenceWarning,
                )
        return decisions, known

    def _scores(self, model: Any, samples: Any, rows: Array, decision: Array) -> Any:
        task, (X, y) = self.task, samples
        if is_accuracy(task.scorers, model) and np.ndim(y) == 1 and not task.score_params:
            return float(np.mean(model._answers(decision[rows]) == np.asarray(y)))
        of_rows = _check_method_params(task.X, task.score_params, rows)
        fitted = judged(model, [(X, decision[rows])])
        return _score(fitted, X, y, task.scorers, of_rows, task.error_score)
