"""Single SVMs on shared Gram matrices: one matrix for all costs and folds of a list of kernels.

A fold leaves samples out by setting their cost to zero. The gradient of the SVM then contains its
decisions about them. So a candidate on a fold takes only the steps from the solution of the next
smaller cost to its own. If the matrix does not fit into memory, missing rows are computed as well.
"""

import time
from collections.abc import Callable, MutableMapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from lokl._arrays import Array, is_sparse
from lokl._methods import method_of
from lokl._threads import limit_blas_for, run_chunked, threads_for
from lokl._warnings import capture_warnings, reissue
from lokl.base.training import build_solver, check_costs
from lokl.gram import GatedGram, InnerProducts
from lokl.gram.gated_kernel import average_kernel
from lokl.kernels import Kernel
from lokl.kernels.samples import read_samples
from lokl.search.backends import (
    WarmStartBackend,
    bind_by_fold,
    coarse_tolerance,
    solver_of,
)
from lokl.search.tasks import (
    COST_SETTINGS,
    FoldResult,
    FoldResults,
    SearchTask,
    score_decisions,
    uses_predictions_only,
)
from lokl.solvers import Exact
from lokl.solvers.cost_path import CostPath, RowCostPath, StoredCostPath

# Below this tolerance solutions are polished, except on shared matrices.
_FINEST_TOLERANCE = 1e-4


class GramPool:
    """Gram matrices of methods with a fixed kernel, between all samples of a search.

    The first access to new memory is slow, so that memory is handed on from group to group.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._free: list[InnerProducts] = []

    def by_fold(
        self, data: Any, kernels: Sequence[list[Kernel]], megabytes: float
    ) -> list[GatedGram]:
        """Return the matrix of all samples for each fold, with nothing computed yet.

        Folds with the same kernels share one. If the matrices do not fit, each has memory for some
        of its rows.

        Parameters
        ----------
        data : validated data of the method
        kernels : sequence of lists of Kernel
            Kernels of each fold, from :func:`bind_by_fold`.
        megabytes : float
            Memory for all matrices together.
        """
        distinct = {id(bound): bound for bound in kernels}
        share = megabytes / len(distinct)
        grams = {key: self._gram(data, bound, share) for key, bound in distinct.items()}
        return [grams[id(bound)] for bound in kernels]

    def release(self, grams: Sequence[GatedGram]) -> None:
        """Make the memory of whole matrices available to other groups."""
        with self._lock:
            self._free += {id(gram.inner): gram.inner for gram in grams if gram.fits}.values()

    def _gram(self, data: Any, kernels: list[Kernel], megabytes: float) -> GatedGram:
        samples = read_samples(kernels, data.names, data.samples)
        inner = self._inner_products(samples.filled, data.solver.dtype)
        inner.cache_size = megabytes
        gram = inner.gated(kernels, average_kernel(kernels).gates(samples))
        if not gram.fits:
            # The whole matrix of another group leaves no room for rows.
            inner.release()
        return gram

    def _inner_products(self, X: Any, dtype: Any) -> InnerProducts:
        with self._lock:
            for index, inner in enumerate(self._free):
                if inner.dtype == dtype and _equal(inner.X, X):
                    return self._free.pop(index)
            # Free memory for other samples before allocating memory for these.
            del self._free[:1]
        return InnerProducts(X, dtype=dtype)


def _equal(left: Any, right: Any) -> bool:
    if left is right:
        return True
    if is_sparse(left) != is_sparse(right) or left.shape != right.shape:
        return False
    return not (left != right).nnz if is_sparse(left) else np.array_equal(left, right)


class SharedGramBackend(WarmStartBackend):
    """SVMs on one kernel, or on the average of several.

    Candidates that cannot be shared after all, or fail, are fitted one after the other.
    """

    uses_given_threads = True

    def __init__(self) -> None:
        self._pool = GramPool()
        # Number of groups that share the memory.
        self._n_concurrent = 1
        # Encoded targets (see _Fold) by task, as long as it lives.
        self._encoded: MutableMapping[SearchTask, dict[Any, Any]] = WeakKeyDictionary()

    def supports(self, task: SearchTask, candidate: int) -> bool:
        model = task.model(candidate)
        method = method_of(model)
        return (
            method is not None
            and method.can("fixed kernel")
            and set(task.fit_params) <= {"sample_weight"}
            and uses_predictions_only(task.scorers)
            and _has_exact_solver(model)
        )

    def max_concurrent_groups(self, task: SearchTask, candidates: list[int]) -> int:
        self._n_concurrent = 1
        try:
            _, grams = self._prepare(task, candidates)
        except Exception:
            # Reported when the group is run.
            return 1
        self._pool.release(grams)
        needed = sum({id(gram): gram.megabytes for gram in grams}.values())
        n_fitting = int(_megabytes(task, task.model(candidates[0])) // needed)
        self._n_concurrent = max(1, min(threads_for(task.n_jobs), n_fitting))
        return self._n_concurrent

    def run(self, task: SearchTask, candidates: list[int], threads: int) -> FoldResults:
        start = time.perf_counter()
        try:
            data, grams = self._prepare(task, candidates)
            with limit_blas_for(data.n_samples):
                for gram in grams:
                    if gram.fits:
                        # Computed once, here.
                        _ = gram.whole
        except Exception:
            # Other fits report the error, candidate by candidate.
            yield from super().run(task, candidates, threads)
            return
        shared_seconds = (time.perf_counter() - start) / (len(candidates) * len(grams))
        try:
            encoded = self._encoded.setdefault(task, {})
            folds = [
                _Fold(task, split, gram, data, shared_seconds, encoded)
                for split, gram in enumerate(grams)
            ]
            for candidate in candidates:
                yield self._fit(task, candidate, folds, threads)
        finally:
            self._pool.release(grams)

    def _prepare(self, task: SearchTask, candidates: list[int]) -> tuple[Any, list[GatedGram]]:
        """Return the validated data of a group, and the matrix of each fold, not yet computed."""
        model = task.model(candidates[0])
        data = copy(model)._validate(task.X, task.y, task.fit_params.get("sample_weight"))
        kernels = bind_by_fold(data, [train for train, _ in task.splits])
        megabytes = _megabytes(task, model) / self._n_concurrent
        return data, self._pool.by_fold(data, kernels, megabytes)

    def _fit(
        self, task: SearchTask, candidate: int, folds: "Sequence[_Fold]", threads: int
    ) -> list[FoldResult]:
        try:
            model = task.model(candidate)
            # Settings of this candidate alone, such as its cost.
            model._check()
            if not all(fold.gram.fits for fold in folds):
                # Rows are stored for one fold at a time, and computed by all threads.
                threads = 1
            fits = [partial(fold.fit_and_score, candidate, copy(model)) for fold in folds]
            return [fit() for fit in fits] if threads == 1 else _run_in_pool(fits)
        except Exception:
            (results,) = super().run(task, [candidate], threads)
            return results


def _run_in_pool(fits: Sequence[Callable[[], FoldResult]]) -> list[FoldResult]:
    """Run fits in the shared pool: one is too short to start threads for."""
    captured: list[Any] = [None] * len(fits)

    def run(start: int, stop: int) -> None:
        for index in range(start, stop):
            captured[index] = capture_warnings(fits[index])

    run_chunked(run, len(fits), 1)
    return [reissue(pair) for pair in captured]


def _has_exact_solver(model: Any) -> bool:
    """Whether the solver of a model finds the same solutions as paths on shared matrices."""
    solver = solver_of(model)
    return isinstance(solver, Exact) and solver.max_iter < 0 and solver.tol >= _FINEST_TOLERANCE


def _megabytes(task: SearchTask, model: Any) -> float:
    """Return the memory for the matrices of all groups that run at the same time."""
    return task.memory * float(build_solver(model).cache_size)


@dataclass(eq=False)
class _Fold:
    """SVMs of one fold along a cost path."""

    task: SearchTask
    split: int
    gram: GatedGram
    data: Any
    shared_seconds: float  # part of this fold and candidate in the time for the matrix
    # Encoded targets with unit costs, and the attributes that follow from the targets, by split and
    # cost settings other than C. Groups share them.
    encoded: dict[Any, Any]
    # Cost paths of all classes or targets, and their current cost, by cost settings other than C.
    paths: dict[Any, tuple[float, list[CostPath]]] = field(default_factory=dict)

    def fit_and_score(self, candidate: int, model: Any) -> FoldResult:
        """Solve the SVMs of a candidate, and score their decisions."""
        task, (train, test) = self.task, self.task.splits[self.split]
        start = time.perf_counter()
        decision, attributes = self._decide(model)
        vars(model).update(attributes)
        fitted = time.perf_counter()
        # Scorers only pass samples on to the model, whose decisions are known.
        decisions = decision[test]
        scores, row_scores = score_decisions(task, model, test, decisions, decisions)
        scored = time.perf_counter()
        train_scores = None
        if task.return_train_score:
            train_scores, _ = score_decisions(task, model, train, decision[train], decision[train])
        return FoldResult(
            candidate,
            self.split,
            scores,
            train_scores,
            fitted - start + self.shared_seconds,
            scored - fitted,
            decision=decisions,
            row_scores=row_scores,
        )

    def _decide(self, model: Any) -> tuple[Array, dict[str, Any]]:
        """Return decisions (n_samples, n_tasks), and attributes that follow from the targets."""
        data, (train, _) = self.data, self.task.splits[self.split]
        n_samples = data.n_samples
        settings = tuple(repr(getattr(model, name, None)) for name in COST_SETTINGS if name != "C")
        key = (self.split, settings)
        if key not in self.encoded:
            # With unit cost, so that all costs share the encoded targets.
            unit = copy(model).set_params(C=1.0)
            self.encoded[key] = unit._encode_targets(data.y[train], data.weight[train])
        targets, attributes = self.encoded[key]
        if settings not in self.paths:
            self.paths[settings] = np.inf, [self._path(model) for _ in targets]
        last_cost, paths = self.paths[settings]
        self.paths[settings] = (model.C, paths)
        decisions = np.empty((n_samples, len(targets)))
        for index, (target, cost) in enumerate(targets):
            all_targets, all_costs = np.zeros(n_samples, target.dtype), np.zeros(n_samples)
            all_targets[train] = target
            all_costs[train] = check_costs(model.C, {"sample_weight": cost})
            problem = model._problem(all_targets, all_costs, data.solver)
            decisions[:, index] = paths[index].solve(problem, model.C / last_cost).decision
        return decisions, attributes

    def _path(self, model: Any) -> CostPath:
        solver = self.data.solver
        tolerance = coarse_tolerance(solver, self.gram.n_samples)
        assert tolerance is not None
        if self.gram.fits:
            return StoredCostPath(self.gram.whole, tolerance)
        return RowCostPath(self.gram, solver.with_tolerance(tolerance))
