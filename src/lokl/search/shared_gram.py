"""Gram matrices of the samples of a search, in memory that one line hands on to the next.

Single machines on shared matrices: one matrix for all costs and folds of a list of kernels.

A fold leaves samples out by giving them no cost, and the gradient of a machine holds its decisions
about them. So a cell of the grid costs the moves from the solution of the next smaller cost to its
own, and nothing else; where the matrix does not fit into memory, also the rows that are not there.
"""

import time
from collections.abc import Callable, MutableMapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.model_selection._validation import _score
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _check_method_params

from lokl._arrays import Array, is_sparse
from lokl._methods import method_of
from lokl._threads import limit_blas_for
from lokl.base.templates import FixedKernel
from lokl.base.training import build_solver
from lokl.base.validation import check_costs
from lokl.gram import GatedGram, InnerProducts
from lokl.kernels import Kernel
from lokl.kernels.dictionaries import same_kernels
from lokl.kernels.samples import read_samples
from lokl.search.backends import COSTS, LineFits, coarse_tolerance, solver_of
from lokl.search.lockstep import in_threads, threads_for
from lokl.search.tasks import (
    Cell,
    Cells,
    Scores,
    Task,
    Worker,
    by_cost,
    group,
    is_accuracy,
    judged,
    sees_predictions_only,
)
from lokl.solvers import Exact
from lokl.solvers.cost_path import CostPath, RowCostPath, StoredCostPath


class Matrices:
    """Makes matrices of methods whose kernel is fixed, between all samples of a search."""

    def __init__(self) -> None:
        self._lock = Lock()
        # First touches of memory are dear, so what a line leaves is used by the next one.
        self._free: list[InnerProducts] = []

    def of_folds(
        self, model: FixedKernel, data: Any, bound: Sequence[list[Kernel]], megabytes: float
    ) -> list[GatedGram]:
        """Return the matrix of all samples for each fold, with nothing computed yet.

        Folds with the same kernels share one. Where not all matrices fit, each has memory for some
        of its rows.

        Parameters
        ----------
        model : FixedKernel
        data : checked data of the model
        bound : sequence of lists of kernels
            Of each fold, as :func:`bound_in_folds` gives them.
        megabytes : float
            For all of them together.
        """
        distinct = {id(kernels): kernels for kernels in bound}
        share = megabytes / len(distinct)
        made = {key: self._gram(model, data, kernels, share) for key, kernels in distinct.items()}
        return [made[id(kernels)] for kernels in bound]

    def give_back(self, grams: Sequence[GatedGram]) -> None:
        """Let other lines use the memory of whole matrices."""
        with self._lock:
            self._free += {id(gram.inner): gram.inner for gram in grams if gram.fits}.values()

    def _gram(
        self, model: FixedKernel, data: Any, kernels: list[Kernel], megabytes: float
    ) -> GatedGram:
        samples = read_samples(kernels, list(data.kernels), data.X)
        gate, params = model._gate(samples, len(kernels))
        inner = self._inner(samples.filled, data.solver.dtype)
        inner.cache_size = megabytes
        gram = inner.gated(kernels, gate.at(samples, params))
        if not gram.fits:
            # There is no room for rows beside the whole matrix of another line.
            inner.release()
        return gram

    def _inner(self, X: Any, dtype: Any) -> InnerProducts:
        with self._lock:
            for place, inner in enumerate(self._free):
                if inner.dtype == dtype and _equal(inner.X, X):
                    return self._free.pop(place)
            # Memory for other samples goes before that for these comes.
            del self._free[:1]
        return InnerProducts(X, dtype=dtype)


def bound_in_folds(data: Any, trains: Sequence[Array]) -> list[list[Kernel]]:
    """Bind kernels to the rows of each fold that count.

    Settings such as ``RBF("scale")`` depend on them; where folds bind all kernels alike, they are
    given the same list.

    Parameters
    ----------
    data : checked data of an estimator
    trains : sequence of arrays
        Rows that each fold learns from.
    """
    found: list[list[Kernel]] = []
    for train in trains:
        kernels = data.take(train).bind()
        found.append(next((known for known in found if same_kernels(known, kernels)), kernels))
    return found


def _equal(left: Any, right: Any) -> bool:
    if left is right:
        return True
    if is_sparse(left) != is_sparse(right) or left.shape != right.shape:
        return False
    return not (left != right).nnz if is_sparse(left) else np.array_equal(left, right)


# Tolerances below this are for optima that are polished, which those of selection are not.
_FINE = 1e-4


class SharedMachines(Worker):
    """Machines on one kernel, or on the average of several."""

    takes_threads = True

    def __init__(self) -> None:
        self._matrices = Matrices()
        # Lines that share the memory, where they run at the same time.
        self._at_once = 1
        # By task, as long as it lives.
        self._models: MutableMapping[Task, dict[int, Any]] = WeakKeyDictionary()
        self._stated: MutableMapping[Task, dict[Any, Any]] = WeakKeyDictionary()
        # What cannot be shared after all, or fails, is fitted as other estimators are.
        self._others = LineFits()

    def takes(self, task: Task, candidate: int) -> bool:
        model = self._model(task, candidate)
        method = method_of(model)
        return (
            method is not None
            and method.can("fixed kernel")
            and set(task.fit_params) <= {"sample_weight"}
            and sees_predictions_only(task.scorers)
            and _is_shared(model)
        )

    def lines(self, task: Task, candidates: list[int]) -> list[list[int]]:
        lines = group(task.candidates, candidates, apart_from=COSTS)
        return [by_cost(task.candidates, line) for line in lines]

    def tells_rows(self, task: Task, candidate: int) -> bool:
        return is_accuracy(task, task.estimator)

    def lines_at_once(self, task: Task, line: list[int]) -> int:
        self._at_once = 1
        try:
            _, grams = self._prepared(task, line)
        except Exception:
            # Whatever is wrong is told when the line is run.
            return 1
        self._matrices.give_back(grams)
        needed = sum({id(gram): gram.megabytes for gram in grams}.values())
        fitting = int(_megabytes(task, self._model(task, line[0])) // needed)
        self._at_once = max(1, min(threads_for(task.n_jobs), fitting))
        return self._at_once

    def run(self, task: Task, line: list[int], threads: int) -> Cells:
        begin = time.perf_counter()
        try:
            data, grams = self._prepared(task, line)
            with limit_blas_for(data.X.shape[0]):
                for gram in grams:
                    if gram.fits:
                        # Computed once, here.
                        _ = gram.whole
        except Exception:
            # Whatever is wrong is told by ordinary fits, candidate by candidate.
            yield from self._others.run(task, line, threads)
            return
        shared = (time.perf_counter() - begin) / (len(line) * len(grams))
        try:
            stated = self._stated.setdefault(task, {})
            folds = [
                _Fold(task, split, gram, data, shared, stated) for split, gram in enumerate(grams)
            ]
            for candidate in line:
                yield self._cells(task, candidate, folds, threads)
        finally:
            self._matrices.give_back(grams)

    def _prepared(self, task: Task, line: list[int]) -> tuple[Any, list[GatedGram]]:
        """Return the data of a line, and the matrix of each fold with nothing computed yet."""
        model = self._model(task, line[0])
        data = copy(model)._validate(task.X, task.y, task.fit_params.get("sample_weight"))
        bound = bound_in_folds(data, [train for train, _ in task.splits])
        megabytes = _megabytes(task, model) / self._at_once
        return data, self._matrices.of_folds(model, data, bound, megabytes)

    def _model(self, task: Task, candidate: int) -> Any:
        """Return a configured estimator, which stays as it is."""
        models = self._models.setdefault(task, {})
        if candidate not in models:
            models[candidate] = task.configured(candidate)
        return models[candidate]

    def _cells(self, task: Task, candidate: int, folds: "list[_Fold]", threads: int) -> list[Cell]:
        try:
            model = self._model(task, candidate)
            # Settings of this candidate alone, such as its cost.
            model._check()
            if not all(fold.gram.fits for fold in folds):
                # Rows are stored for one fold at a time, and computed by all threads.
                threads = 1
            return in_threads(threads, [(fold.cell, candidate, copy(model)) for fold in folds])
        except Exception:
            (cells,) = self._others.run(task, [candidate], threads)
            return cells


def _is_shared(model: Any) -> bool:
    """Whether machines on shared matrices are those of the solver that a model asks for."""
    solver = solver_of(model)
    return isinstance(solver, Exact) and solver.max_iter < 0 and solver.tol >= _FINE


def _megabytes(task: Task, model: Any) -> float:
    """Memory for the matrices of all lines that run at the same time."""
    return task.memory * float(build_solver(model).cache_size)


@dataclass(eq=False)
class _Fold:
    """The machines of one fold, and where they stand."""

    task: Task
    split: int
    gram: GatedGram
    data: Any
    shared_seconds: float  # part of a cell in the time that the matrix took
    # Targets and relative costs, and what they tell, by split and what a line may vary beside the
    # cost: lines share them.
    stated: dict[Any, Any]
    # Paths of all classes or targets and the cost where they stand, by what a line may vary.
    paths: dict[Any, tuple[float, list[CostPath]]] = field(default_factory=dict)

    @cached_property
    def _learned(self) -> tuple[Any, Any]:
        """Samples and targets that the fold learns from, as scorers are given them."""
        train, _ = self.task.splits[self.split]
        return _safe_split(self.task.estimator, self.task.X, self.task.y, train)

    @cached_property
    def _scored(self) -> tuple[Any, Any]:
        """Samples and targets that the fold leaves out, as scorers are given them."""
        train, test = self.task.splits[self.split]
        return _safe_split(self.task.estimator, self.task.X, self.task.y, test, train)

    def cell(self, candidate: int, model: Any) -> Cell:
        """Solve the machines of a candidate, and score their decisions."""
        begin = time.perf_counter()
        decision, known = self._decide(model)
        vars(model).update(known)
        end = time.perf_counter()
        train, test = self.task.splits[self.split]
        scores, right = self._judge(model, test, decision, lambda: self._scored)
        done = time.perf_counter()
        train_scores = None
        if self.task.return_train_score:
            train_scores, _ = self._judge(model, train, decision, lambda: self._learned)
        return Cell(
            candidate,
            self.split,
            scores,
            train_scores,
            end - begin + self.shared_seconds,
            done - end,
            decision=decision[test],
            right=right,
        )

    def _decide(self, model: Any) -> tuple[Array, dict[str, Any]]:
        """Return the decisions of a candidate about all samples, and what the targets told."""
        data, (train, _) = self.data, self.task.splits[self.split]
        n_samples = len(data.weight)
        key = tuple(repr(getattr(model, name, None)) for name in COSTS if name != "C")
        whose = (self.split, key)
        if whose not in self.stated:
            # The cost itself comes later: classes are then looked at once.
            unit = copy(model).set_params(C=1.0)
            self.stated[whose] = unit._encode_targets(data.y[train], data.weight[train])
        targets, known = self.stated[whose]
        if key not in self.paths:
            self.paths[key] = np.inf, [self._path(model) for _ in targets]
        before, paths = self.paths[key]
        self.paths[key] = (model.C, paths)
        decisions = np.empty((n_samples, len(targets)))
        for task, (target, cost) in enumerate(targets):
            every_target, every_cost = np.zeros(n_samples), np.zeros(n_samples)
            every_target[train] = target
            every_cost[train] = check_costs(model.C, {"sample_weight": cost})
            problem = model._problem(every_target, every_cost, data.solver)
            decisions[:, task] = paths[task].solve(problem, model.C / before).decision
        return decisions, known

    def _path(self, model: Any) -> CostPath:
        solver = self.data.solver
        tolerance = coarse_tolerance(solver, self.gram.n_samples)
        assert tolerance is not None
        if self.gram.fits:
            return StoredCostPath(self.gram.whole, tolerance)
        return RowCostPath(self.gram, solver.with_tolerance(tolerance))

    def _judge(
        self, model: Any, rows: Array, decision: Array, samples: Callable[[], tuple[Any, Any]]
    ) -> tuple[Scores, Array | None]:
        """Return scores, and whether each row is answered rightly if that is the score."""
        task = self.task
        if is_accuracy(task, model):
            # Needs no copy of the samples.
            right = model._decode(decision[rows]) == self.data.y[rows]
            return float(np.mean(right)), right
        X, y = samples()
        of_rows = _check_method_params(task.X, task.score_params, rows)
        fitted = judged(model, [(X, decision[rows])])
        return _score(fitted, X, y, task.scorers, of_rows, task.error_score), None
