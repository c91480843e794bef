"""Every kernel between all samples of a search, stored once for all folds and costs.

Methods that train a machine for each kernel by itself need nothing of the samples but the values of
single kernels. With these in memory, a fold reads its matrices instead of computing them, for
learning and for the samples that it leaves out.

Fits that share nothing: each candidate on each split by itself, for any estimator.

Estimators of this library in lines: candidates that differ in their costs share a start.

Samples of folds as the first steps of a pipeline leave them, made once.

Pipelines that end in an estimator of this library: transformers are fitted once a fold.

Candidates that differ only in settings of the last step see the same transformed samples. For each
fold these are a task of their own, with the last step as its estimator and one split, and the
workers for bare estimators compute it.
"""

import importlib
import time
import warnings
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from numbers import Real
from traceback import format_exc
from typing import Any

import numpy as np
from joblib.parallel import get_active_backend
from scipy import sparse
from sklearn import get_config
from sklearn.base import clone
from sklearn.model_selection._validation import _fit_and_score, _score
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_method_params, _num_samples

from lokl._arrays import Array, is_sparse
from lokl._methods import method_of
from lokl._threads import limit_blas_for
from lokl.base.estimator import KernelEstimator
from lokl.base.fit_cache import WarmStartExchange, fit_cost_path, params_equal
from lokl.base.training import build_solver
from lokl.gram import InnerProducts
from lokl.gram.memory import MEGABYTE
from lokl.kernels import Kernel, Normalized, Precomputed
from lokl.kernels.dictionaries import same_kernels
from lokl.kernels.samples import read_samples
from lokl.search.lockstep import in_step
from lokl.search.tasks import (
    Cell,
    Cells,
    Task,
    Worker,
    assign,
    by_cost,
    coordinates,
    group,
    is_accuracy,
    judged,
    sees_predictions_only,
    who_takes,
)
from lokl.solvers import Solver

# Share of the memory of an estimator for stored kernels; folds have the rest.
_SHARE = 0.5


class _Stored(Precomputed):
    """Values that were computed here: they need no check, and copies of it are itself."""

    def bind(self, X: Any, weight: Array | None = None, frame: Any = None) -> Kernel:
        return self

    def __sklearn_clone__(self) -> "_Stored":
        return self

    def __deepcopy__(self, memo: Any) -> "_Stored":
        return self


def with_stored_kernels(task: Task, line: Sequence[int], costs: Sequence[str]) -> Task | None:
    """Return the same task on numbers of samples and stored kernels; None where it would not do.

    Parameters
    ----------
    task : Task
    line : sequence of int
        Candidates that are equal apart from `costs`.
    costs : sequence of str
        Names of parameters.
    """
    model = task.configured(line[0])
    method = method_of(model)
    if method is None or not method.can("single-kernel machines"):
        return None
    # A fold by itself, as of a pipeline, does not know how many others need memory.
    if len(task.splits) < 2 or not sees_predictions_only(task.scorers):
        return None
    try:
        data = copy(model)._validate(task.X, task.y, task.fit_params.get("sample_weight"))
        stored = _store(task, model, data)
    except Exception:
        # Whatever is wrong is told by the fits, candidate by candidate.
        return None
    if stored is None:
        return None
    left = (1.0 - _SHARE) * model.cache_size
    return replace(
        task,
        estimator=model.set_params(kernels=stored, cache_size=left),
        candidates=[
            {name: value for name, value in candidate.items() if name in costs}
            for candidate in task.candidates
        ],
        X=np.arange(len(data.weight), dtype=float)[:, np.newaxis],
    )


def _store(task: Task, model: Any, data: Any) -> dict[str, Kernel] | None:
    """Compute the kernels of a model between all samples; None where folds would differ."""
    if isinstance(model.success_kernel, Kernel) or model.solver != "exact":
        return None
    trains = [train for train, _ in task.splits]
    pairs = [_without_scale(kernel) for kernel in data.kernels.values()]
    cores = [core for core, _ in pairs]
    folds = [data.take(train).bind(cores) for train in trains]
    if not all(same_kernels(folds[0], bound) for bound in folds[1:]):
        return None
    dtype = data.solver.inner_products(data.X[trains[0]]).dtype
    room = _SHARE * model.cache_size * MEGABYTE
    n_samples = len(data.weight)
    if len(cores) * n_samples**2 * (8 if dtype == "float64" else 4) > room:
        return None
    samples = read_samples(folds[0], list(data.kernels), data.X)
    if samples.present is not None:
        return None
    stored: dict[str, Kernel] = {}
    with limit_blas_for(n_samples):
        for name, kernel, (_, how) in zip(data.kernels, folds[0], pairs, strict=True):
            inner = InnerProducts(samples.filled, cache_size=np.inf, dtype=dtype)
            values = _Stored(inner.gated([kernel]).whole)
            stored[name] = values if how is None else Normalized(values, how)
    return stored


def _without_scale(kernel: Kernel) -> tuple[Kernel, Any]:
    """Return a kernel without the scale that each fold learns for itself, and what scale it is."""
    if isinstance(kernel, Normalized) and kernel.how != "unit_diag" and kernel.scale is None:
        return kernel.kernel, kernel.how
    return kernel, None


class OrdinaryFits(Worker):
    """What scikit-learn's ``GridSearchCV`` does, in processes."""

    def takes(self, task: Task, candidate: int) -> bool:
        return True

    def lines(self, task: Task, candidates: list[int]) -> list[list[int]]:
        # One line, so that processes need not wait for each other between candidates.
        return [candidates] if candidates else []

    def run(self, task: Task, line: list[int], threads: int) -> Cells:
        # Some backends, which a caller may have chosen, hand over all results at once.
        by_and_by = get_active_backend()[0].supports_return_generator
        parallel = Parallel(n_jobs=task.n_jobs, return_as="generator" if by_and_by else "list")
        fits = (
            delayed(_fit_and_score)(
                clone(task.estimator),
                task.X,
                task.y,
                scorer=task.scorers,
                train=train,
                test=test,
                verbose=0,
                parameters=task.candidates[candidate],
                fit_params=task.fit_params,
                score_params=task.score_params,
                return_train_score=task.return_train_score,
                return_times=True,
                error_score=task.error_score,
            )
            for candidate in line
            for train, test in task.splits
        )
        results = (result for result in parallel(fits))
        try:
            for candidate in line:
                yield [_cell(candidate, split, next(results)) for split in range(len(task.splits))]
        finally:
            with warnings.catch_warnings():
                # joblib warns of fits under way that nobody will use; to stop was the wish.
                warnings.filterwarnings("ignore", r"\d+ tasks", UserWarning)
                results.close()


def _cell(candidate: int, split: int, result: dict[str, Any]) -> Cell:
    return Cell(
        candidate,
        split,
        result["test_scores"],
        result.get("train_scores"),
        result["fit_time"],
        result["score_time"],
        result["fit_error"],
    )


# Settings that change the costs of a problem and nothing else.
COSTS = ("C", "epsilon", "class_weight")

# Selection needs ranks, not digits: machines of many samples are solved to so many times the
# tolerance of the estimator.
_MANY_SAMPLES, _COARSER = 1000, 10.0
# With so many samples, folds agree so far on the weights of kernels that one can lead the others:
# rounds fall to two thirds or a half; with 300 they rise.
_ENOUGH_TO_LEAD = 500


def coarse_tolerance(solver: Solver, n_samples: int) -> float | None:
    """Tolerance of a solver that is enough to compare candidates; None for one that has none."""
    return solver.tolerance * (_COARSER if n_samples > _MANY_SAMPLES else 1.0) or None


def solver_of(model: Any) -> Solver | None:
    """Solver of an estimator; None where its settings are not allowed, as its fit will tell."""
    try:
        return build_solver(model)
    except (TypeError, ValueError):
        return None


class LineFits(Worker):
    """Candidates that differ only in their costs, in ascending order of `C`."""

    def takes(self, task: Task, candidate: int) -> bool:
        return set(task.fit_params) <= {"sample_weight"} and isinstance(
            task.configured(candidate), KernelEstimator
        )

    def lines(self, task: Task, candidates: list[int]) -> list[list[int]]:
        lines = group(task.candidates, candidates, apart_from=COSTS)
        return [by_cost(task.candidates, line) for line in lines]

    def tells_rows(self, task: Task, candidate: int) -> bool:
        return is_accuracy(task, task.estimator)

    def run(self, task: Task, line: list[int], threads: int) -> Cells:
        task = with_stored_kernels(task, line, COSTS) or task
        few = min(len(train) for train, _ in task.splits) < _ENOUGH_TO_LEAD
        lead = WarmStartExchange()
        folds = [
            _fold(task, split, line, None if few else lead.follower() if split else lead)
            for split in range(len(task.splits))
        ]
        return in_step(folds, len(line), task.n_jobs, first_leads=not few)


def _fold(
    task: Task, split: int, line: list[int], exchange: WarmStartExchange | None
) -> Iterator[Cell]:
    """Yield the cells of a line on one split; after a candidate that fails the line starts anew."""
    train, test = task.splits[split]
    learned = X, y = _safe_split(task.estimator, task.X, task.y, train)
    scored = _safe_split(task.estimator, task.X, task.y, test, train)
    weight = _check_method_params(task.X, task.fit_params, train).get("sample_weight")
    left = list(line)
    while left:
        models = [_with_share_of_memory(task, candidate) for candidate in left]
        solver = solver_of(models[0])
        loose = None if solver is None else coarse_tolerance(solver, _num_samples(X))
        fits = fit_cost_path(models, X, y, weight, tolerance=loose, exchange=exchange)
        fitted: Any = None
        for candidate in tuple(left):
            left.remove(candidate)
            if exchange is not None:
                exchange.step = candidate
            start = time.perf_counter()
            try:
                fitted = next(fits)
            except Exception:
                if isinstance(task.error_score, str):
                    raise
                yield _failed(task, candidate, split, time.perf_counter() - start)
                break
            yield _scored(task, candidate, split, fitted, learned, scored, start)


def _with_share_of_memory(task: Task, candidate: int) -> Any:
    """Return a configured estimator that leaves memory to all folds, which advance together."""
    model, share = task.configured(candidate), task.memory / len(task.splits)
    if isinstance(model.solver, Solver):
        return model.set_params(solver=model.solver.with_share_of_memory(share))
    if isinstance(model.cache_size, Real):
        model.set_params(cache_size=share * model.cache_size)
    return model


def _scored(
    task: Task, candidate: int, split: int, fitted: Any, learned: Any, scored: Any, start: float
) -> Cell:
    train, test = task.splits[split]
    end = time.perf_counter()
    decision = None
    if sees_predictions_only(task.scorers):
        # Decisions are worth keeping, and scorers need nothing else.
        decision = fitted._decisions(scored[0])
    right = None
    if is_accuracy(task, fitted) and decision is not None:
        right = fitted._decode(decision) == np.asarray(scored[1])
    test_scores = _scores(task, fitted, scored, test, decision)
    score_seconds = time.perf_counter() - end
    train_scores = _scores(task, fitted, learned, train) if task.return_train_score else None
    return Cell(
        candidate,
        split,
        test_scores,
        train_scores,
        end - start,
        score_seconds,
        decision=decision,
        right=right,
    )


def _scores(task: Task, fitted: Any, samples: Any, rows: Any, decision: Any = None) -> Any:
    of_rows = _check_method_params(task.X, task.score_params, rows)
    model = fitted if decision is None else judged(fitted, [(samples[0], decision)])
    return _score(model, *samples, task.scorers, of_rows, task.error_score)


def _failed(task: Task, candidate: int, split: int, seconds: float) -> Cell:
    scores = task.failed_scores()
    train_scores = scores if task.return_train_score else None
    return Cell(candidate, split, scores, train_scores, seconds, 0.0, format_exc())


# Bytes of transformed samples that are kept; of more, no fold is.
_KEPT = 2**28


@dataclass(frozen=True, eq=False)
class _Source:
    """What transformed samples come from."""

    steps: Pipeline  # unfitted
    X: Any
    y: Any
    weights: dict[str, Any]

    def is_like(self, other: "_Source") -> bool:
        same = (
            self.X is other.X and self.y is other.y and self.weights.keys() == other.weights.keys()
        )
        same = same and all(other.weights[name] is own for name, own in self.weights.items())
        return same and params_equal(self.steps, other.steps)


@dataclass(eq=False)
class Transformed:
    """Transformed samples of the folds of one source, as long as it stays the same."""

    _source: _Source | None = None
    # By the rows to learn from; with both kinds of rows, which keeps them from being others.
    _known: dict[int, tuple[Array, Array, Any]] = field(default_factory=dict)

    def come_from(self, steps: Pipeline, X: Any, y: Any, weights: dict[str, Any]) -> None:
        """Say what samples are to be transformed, and how; what came from others is forgotten."""
        source = _Source(steps, X, y, weights)
        if self._source is None or not self._source.is_like(source):
            self._source, self._known = source, {}

    def rows(self, train: Array, test: Array) -> Any:
        """Rows that the steps learn from, and others below them."""
        found = self._known.get(id(train))
        if found is not None and found[0] is train and found[1] is test:
            return found[2]
        assert self._source is not None
        X = _fit_transform(self._source, train, test)
        if _bytes(X) + sum(_bytes(own) for *_, own in self._known.values()) <= _KEPT:
            self._known[id(train)] = train, test, X
        return X


def _fit_transform(source: _Source, train: Array, test: Array) -> Any:
    steps = clone(source.steps)
    X_train, y_train = _safe_split(steps, source.X, source.y, train)
    X_test, _ = _safe_split(steps, source.X, source.y, test, train)
    weights = _check_method_params(source.X, source.weights, train)
    # Not fit and transform: some transformers treat the rows they learn from in another way.
    return _stacked([steps.fit_transform(X_train, y_train, **weights), steps.transform(X_test)])


def _stacked(parts: list[Any]) -> Any:
    """Put rows below rows, of arrays, sparse matrices or data frames."""
    if all(map(is_sparse, parts)):
        return sparse.vstack(parts, format="csr")
    if all(hasattr(part, "columns") for part in parts):
        # pandas or polars, whichever the transformers gave.
        library = importlib.import_module(type(parts[0]).__module__.partition(".")[0])
        return library.concat(parts)
    return np.concatenate(parts)


def _bytes(X: Any) -> float:
    """Memory of arrays and sparse matrices; that of anything else is too much."""
    if is_sparse(X):
        return float(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    return float(getattr(X, "nbytes", np.inf))


class LastSteps(Worker):
    """Lines of the last step, on samples that the other steps have transformed.

    Parameters
    ----------
    workers : sequence of Worker
        For the last step alone.
    """

    def __init__(self, workers: Sequence[Worker]):
        self._workers = workers
        # Folds of the last transformers only: those of all would be many copies of the samples.
        self._folds: tuple[Any, list[_Fold]] = (None, [])
        self._transformed = Transformed()

    def takes(self, task: Task, candidate: int) -> bool:
        pipeline = task.estimator
        return (
            isinstance(pipeline, Pipeline)
            and len(pipeline.steps) > 1
            and isinstance(task.configured(candidate)[-1], KernelEstimator)
            and all(name.endswith("__sample_weight") for name in task.fit_params)
            and not get_config()["enable_metadata_routing"]
            and sees_predictions_only(task.scorers)
        )

    def lines(self, task: Task, candidates: list[int]) -> list[list[int]]:
        groups: dict[Any, list[int]] = {}
        for candidate in candidates:
            groups.setdefault(_transformers(task, candidate), []).append(candidate)
        return [
            line.candidates
            for alike in groups.values()
            for line in assign(_last_step(task, alike[0]), self._workers, alike)
        ]

    def tells_rows(self, task: Task, candidate: int) -> bool:
        last = _last_step(task, candidate)
        return who_takes(last, self._workers, candidate).tells_rows(last, candidate)

    def run(self, task: Task, line: list[int], threads: int) -> Cells:
        # The task itself, not its number: that of a task that is gone may be another's.
        key = (task, _transformers(task, line[0]))
        if self._folds[0] != key:
            self._folds = (None, [])
            self._folds = (key, _folds(task, line[0], self._transformed))
        worker = who_takes(_last_step(task, line[0]), self._workers, line[0])
        folds = [fold.cells(worker, line) for fold in self._folds[1]]
        return in_step(folds, len(line), threads if worker.takes_threads else task.n_jobs)


@dataclass(frozen=True, eq=False)
class _Fold:
    """Samples of one split, transformed; or why they could not be."""

    split: int
    task: Task
    error: str | None = None

    def cells(self, worker: Worker, line: list[int]) -> Iterator[Cell]:
        if self.error is None:
            for (cell,) in worker.run(self.task, line, 1):
                yield replace(cell, split=self.split)
            return
        scores = self.task.failed_scores()
        train_scores = scores if self.task.return_train_score else None
        for candidate in line:
            yield Cell(candidate, self.split, scores, train_scores, 0.0, 0.0, self.error)


def _prefix(task: Task) -> str:
    return f"{task.estimator.steps[-1][0]}__"


def _transformers(task: Task, candidate: int) -> Any:
    """What a candidate says of the other steps, as a key."""
    prefix = _prefix(task)
    places = coordinates(task.candidates[candidate]).items()
    return frozenset((name, value) for name, value in places if not name.startswith(prefix))


def _last_step(task: Task, candidate: int) -> Task:
    """Return the task of the last step alone, for candidates with the same other steps."""
    prefix = _prefix(task)
    own = [
        {name[len(prefix) :]: value for name, value in params.items() if name.startswith(prefix)}
        for params in task.candidates
    ]
    weights = {
        name[len(prefix) :]: value
        for name, value in task.fit_params.items()
        if name.startswith(prefix)
    }
    last = task.configured(candidate)[-1]
    # The folds have the jobs.
    return replace(task, estimator=last, candidates=own, fit_params=weights, n_jobs=1)


def _folds(task: Task, candidate: int, transformed: Transformed) -> list[_Fold]:
    """Fit the other steps on each fold, unless that was done before."""
    bare = _last_step(task, candidate)
    prefix = _prefix(task)
    weights = {name: own for name, own in task.fit_params.items() if not name.startswith(prefix)}
    transformed.come_from(task.configured(candidate)[:-1], task.X, task.y, weights)
    folds = []
    for split, (train, test) in enumerate(task.splits):
        try:
            X = transformed.rows(train, test)
        except Exception:
            if isinstance(task.error_score, str):
                raise
            folds.append(_Fold(split, bare, format_exc()))
        else:
            folds.append(_Fold(split, _task_of_fold(task, bare, split, X)))
    return folds


def _task_of_fold(task: Task, bare: Task, split: int, X: Any) -> Task:
    """Return the task of the last step on one fold: first the rows to learn, then to score."""
    train, test = task.splits[split]
    rows = np.concatenate([np.asarray(train), np.asarray(test)])
    places = np.arange(len(rows))
    return replace(
        bare,
        X=X,
        y=_safe_indexing(task.y, rows),
        fit_params=_check_method_params(task.X, bare.fit_params, rows),
        score_params=_check_method_params(task.X, bare.score_params, rows),
        splits=[(places[: len(train)], places[len(train) :])],
        # Folds advance together.
        memory=task.memory / len(task.splits),
    )
