"""Backends of a search, except single SVMs on shared Gram matrices.

- :class:`SklearnBackend`: any estimator, every candidate on every split by itself.
- :class:`WarmStartBackend`: estimators of this library along cost paths, each fit starting from the
  solution of the last one. Methods that train an SVM for each kernel alone need nothing of the
  samples but kernel values. These are stored once for all folds and costs if memory allows.
- :class:`PipelineBackend`: pipelines that end in an estimator of this library. Candidates that
  differ only in settings of the last step share transformed samples. Each fold becomes a task with
  the last step as its estimator and one split, for one of the other backends.
"""

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
from sklearn import get_config
from sklearn.base import clone
from sklearn.model_selection._validation import _fit_and_score
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_method_params, _num_samples

from lokl._arrays import Array, is_sparse, stack_rows
from lokl._methods import method_of
from lokl._parameters import params_equal
from lokl._threads import limit_blas_for
from lokl.base.estimator import KernelEstimator
from lokl.base.fit_cache import WarmStartExchange, fit_cost_path
from lokl.base.training import build_solver
from lokl.gram import InnerProducts
from lokl.gram.memory import MEGABYTE
from lokl.kernels import Kernel, Normalized, Precomputed
from lokl.kernels.samples import read_samples
from lokl.search.lockstep import run_folds_in_lockstep
from lokl.search.tasks import (
    COST_SETTINGS,
    FitBackend,
    FoldResult,
    FoldResults,
    SearchTask,
    choose_backend,
    coordinates,
    cost_paths,
    group_by_backend,
    row_score,
    score_decisions,
    uses_predictions_only,
)
from lokl.solvers import Solver

# Model selection only needs the ranking of candidates, so that SVMs of more than this many samples
# are solved to a tolerance this many times that of the estimator.
_MANY_SAMPLES, _COARSER = 1000, 10.0
# Fewest training samples of a fold for which the first fold leads the others. Kernel weights of
# folds then agree so closely that the number of iterations falls to two thirds or a half; with 300
# samples it rises.
_ENOUGH_TO_LEAD = 500
# Fraction of the memory of an estimator for stored kernels; the folds have the rest.
_STORED_FRACTION = 0.5
# Bytes of transformed samples to keep; a fold that exceeds them is computed again.
_KEPT_BYTES = 2**28


class SklearnBackend(FitBackend):
    """Every candidate on every split by itself, in processes, as in ``GridSearchCV``."""

    def supports(self, task: SearchTask, candidate: int) -> bool:
        return True

    def groups(self, task: SearchTask, candidates: list[int]) -> list[list[int]]:
        # One group, so that processes do not wait for each other between candidates.
        return [candidates] if candidates else []

    def run(self, task: SearchTask, candidates: list[int], threads: int) -> FoldResults:
        # Some joblib backends, which a caller may have chosen, return all results at once.
        can_generate = get_active_backend()[0].supports_return_generator
        parallel = Parallel(n_jobs=task.n_jobs, return_as="generator" if can_generate else "list")
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
            for candidate in candidates
            for train, test in task.splits
        )
        records = (record for record in parallel(fits))
        try:
            for candidate in candidates:
                yield [
                    _from_record(candidate, split, next(records))
                    for split in range(len(task.splits))
                ]
        finally:
            with warnings.catch_warnings():
                # joblib warns about unused fits, which are intended here.
                warnings.filterwarnings("ignore", r"\d+ tasks", UserWarning)
                records.close()


def _from_record(candidate: int, split: int, record: dict[str, Any]) -> FoldResult:
    """Return what scikit-learn's ``_fit_and_score`` returned as a fold result."""
    return FoldResult(
        candidate,
        split,
        record["test_scores"],
        record.get("train_scores"),
        record["fit_time"],
        record["score_time"],
        record["fit_error"],
    )


def coarse_tolerance(solver: Solver, n_samples: int) -> float | None:
    """Return a tolerance that suffices to compare candidates; None if a solver has none."""
    return solver.tolerance * (_COARSER if n_samples > _MANY_SAMPLES else 1.0) or None


def solver_of(model: Any) -> Solver | None:
    """Return the solver of an estimator, None if its settings are invalid."""
    try:
        return build_solver(model)
    except (TypeError, ValueError):
        return None


def bind_by_fold(
    data: Any, trains: Sequence[Array], kernels: Sequence[Kernel] | None = None
) -> list[list[Kernel]]:
    """Bind kernels to the training samples of each fold that have a weight.

    Settings such as ``RBF("scale")`` depend on these samples. Folds for which all kernels are equal
    share one list.

    Parameters
    ----------
    data : validated data of an estimator
    trains : sequence of int arrays
        Training rows of each fold.
    kernels : sequence of Kernel, optional
        Default: the kernels of the data.
    """
    bound: list[list[Kernel]] = []
    for train in trains:
        fold = data.take(train).bind(kernels)
        bound.append(next((equal for equal in bound if params_equal(equal, fold)), fold))
    return bound


class WarmStartBackend(FitBackend):
    """Candidates that differ only in cost settings, fitted in ascending order of `C`."""

    def supports(self, task: SearchTask, candidate: int) -> bool:
        return set(task.fit_params) <= {"sample_weight"} and isinstance(
            task.model(candidate), KernelEstimator
        )

    def groups(self, task: SearchTask, candidates: list[int]) -> list[list[int]]:
        return cost_paths(task.candidates, candidates)

    def reports_row_scores(self, task: SearchTask, candidate: int) -> bool:
        return row_score(task, task.estimator) is not None

    def run(self, task: SearchTask, candidates: list[int], threads: int) -> FoldResults:
        task = with_stored_kernels(task, candidates[0]) or task
        leads = min(len(train) for train, _ in task.splits) >= _ENOUGH_TO_LEAD
        first = WarmStartExchange()
        folds = [
            _fit_fold(
                task, split, candidates, (first.follower() if split else first) if leads else None
            )
            for split in range(len(task.splits))
        ]
        return run_folds_in_lockstep(folds, len(candidates), task.n_jobs, first_leads=leads)


def _fit_fold(
    task: SearchTask, split: int, candidates: list[int], exchange: WarmStartExchange | None
) -> Iterator[FoldResult]:
    """Yield the results of a cost path on one split; the path restarts after a failed candidate."""
    train, test = task.splits[split]
    training = X, y = _safe_split(task.estimator, task.X, task.y, train)
    testing = _safe_split(task.estimator, task.X, task.y, test, train)
    weight = _check_method_params(task.X, task.fit_params, train).get("sample_weight")
    remaining = list(candidates)
    while remaining:
        models = [_with_share_of_memory(task, candidate) for candidate in remaining]
        solver = solver_of(models[0])
        tolerance = None if solver is None else coarse_tolerance(solver, _num_samples(X))
        fits = fit_cost_path(models, X, y, weight, tolerance=tolerance, exchange=exchange)
        for candidate in tuple(remaining):
            remaining.remove(candidate)
            if exchange is not None:
                exchange.step = candidate
            start = time.perf_counter()
            try:
                fitted = next(fits)
            except Exception:
                if isinstance(task.error_score, str):
                    raise
                seconds = time.perf_counter() - start
                yield task.failure(candidate, split, seconds, format_exc())
                break
            seconds = time.perf_counter() - start
            yield _score_fit(task, candidate, split, fitted, training, testing, seconds)


def _with_share_of_memory(task: SearchTask, candidate: int) -> Any:
    """Return a configured estimator that leaves memory for the other folds."""
    model, share = task.configured(candidate), task.memory / len(task.splits)
    if isinstance(model.solver, Solver):
        return model.set_params(solver=model.solver.with_share_of_memory(share))
    if isinstance(model.cache_size, Real):
        model.set_params(cache_size=share * model.cache_size)
    return model


def _score_fit(
    task: SearchTask,
    candidate: int,
    split: int,
    fitted: Any,
    training: tuple[Any, Any],
    testing: tuple[Any, Any],
    fit_seconds: float,
) -> FoldResult:
    train, test = task.splits[split]
    start = time.perf_counter()
    decision = row_scores = None
    if uses_predictions_only(task.scorers):
        # Decisions are kept for calibration, and scorers need nothing else.
        decision = fitted._decisions(testing[0])
        scores, row_scores = score_decisions(task, fitted, test, decision, testing[0])
    else:
        scores = task.score(fitted, *testing, test)
    score_seconds = time.perf_counter() - start
    train_scores = task.score(fitted, *training, train) if task.return_train_score else None
    return FoldResult(
        candidate,
        split,
        scores,
        train_scores,
        fit_seconds,
        score_seconds,
        decision=decision,
        row_scores=row_scores,
    )


class _StoredKernel(Precomputed):
    """Kernel values computed here: they need no validation, and are never copied."""

    def bind(self, X: Any, weight: Array | None = None, frame: Any = None) -> Kernel:
        return self

    def __sklearn_clone__(self) -> "_StoredKernel":
        return self

    def __deepcopy__(self, memo: Any) -> "_StoredKernel":
        return self


def with_stored_kernels(task: SearchTask, candidate: int) -> SearchTask | None:
    """Return the same task on row numbers and stored kernels, None if kernels cannot be stored.

    Parameters
    ----------
    task : SearchTask
    candidate : int
        One of the candidates to compute, which differ only in cost settings.
    """
    model = task.configured(candidate)
    method = method_of(model)
    if method is None or not method.can("single-kernel machines"):
        return None
    # A task of one fold, as of a pipeline, does not know how many others need memory.
    if len(task.splits) < 2 or not uses_predictions_only(task.scorers):
        return None
    try:
        data = copy(model)._validate(task.X, task.y, task.fit_params.get("sample_weight"))
        stored = _store_kernels(task, model, data)
    except Exception:
        # The fits report the error, candidate by candidate.
        return None
    if stored is None:
        return None
    cache_size = (1.0 - _STORED_FRACTION) * model.cache_size
    return replace(
        task,
        estimator=model.set_params(kernels=stored, cache_size=cache_size),
        candidates=[
            {name: value for name, value in params.items() if name in COST_SETTINGS}
            for params in task.candidates
        ],
        X=np.arange(data.n_samples, dtype=float)[:, np.newaxis],
    )


def _store_kernels(task: SearchTask, model: Any, data: Any) -> dict[str, Kernel] | None:
    """Compute the kernels of a model between all samples; None if they differ between folds."""
    if isinstance(model.success_kernel, Kernel) or model.solver != "exact":
        return None
    trains = [train for train, _ in task.splits]
    pairs = [_split_scale(kernel) for kernel in data.given_kernels]
    folds = bind_by_fold(data, trains, [kernel for kernel, _ in pairs])
    if any(kernels is not folds[0] for kernels in folds):
        return None
    dtype = data.solver.inner_products(data.samples.given[trains[0]]).dtype
    n_samples = data.n_samples
    n_bytes = len(pairs) * n_samples**2 * (8 if dtype == "float64" else 4)
    if n_bytes > _STORED_FRACTION * model.cache_size * MEGABYTE:
        return None
    samples = read_samples(folds[0], data.names, data.samples)
    if samples.present is not None:
        return None
    stored: dict[str, Kernel] = {}
    with limit_blas_for(n_samples):
        for name, kernel, (_, how) in zip(data.names, folds[0], pairs, strict=True):
            inner = InnerProducts(samples.filled, cache_size=np.inf, dtype=dtype)
            values = _StoredKernel(inner.gated([kernel]).whole)
            stored[name] = values if how is None else Normalized(values, how)
    return stored


def _split_scale(kernel: Kernel) -> tuple[Kernel, Any]:
    """Return a kernel without the scale that each fold learns, and the kind of scale or None."""
    if isinstance(kernel, Normalized) and kernel.how != "unit_diag" and kernel.scale is None:
        return kernel.kernel, kernel.how
    return kernel, None


def _n_bytes(X: Any) -> float:
    """Return the memory of an array or sparse matrix; infinity for anything else."""
    if is_sparse(X):
        return float(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    return float(getattr(X, "nbytes", np.inf))


class PipelineBackend(FitBackend):
    """Candidates of the last step of a pipeline, on samples that the other steps transform.

    Parameters
    ----------
    backends : sequence of FitBackend
        Backends for the last step alone.
    """

    def __init__(self, backends: Sequence[FitBackend]):
        self._backends = backends
        # Folds of the latest transformers only: those of all would be many copies of the samples.
        self._transformers: Any = None
        # By the identity of the training rows. They are kept as well, so that it stays theirs.
        self._folds: dict[int, _TransformedFold] = {}

    def supports(self, task: SearchTask, candidate: int) -> bool:
        pipeline = task.estimator
        return (
            isinstance(pipeline, Pipeline)
            and len(pipeline.steps) > 1
            and isinstance(task.model(candidate)[-1], KernelEstimator)
            and all(name.endswith("__sample_weight") for name in task.fit_params)
            and not get_config()["enable_metadata_routing"]
            and uses_predictions_only(task.scorers)
        )

    def groups(self, task: SearchTask, candidates: list[int]) -> list[list[int]]:
        by_steps: dict[Any, list[int]] = {}
        for candidate in candidates:
            by_steps.setdefault(_steps(task, candidate), []).append(candidate)
        return [
            group.candidates
            for same in by_steps.values()
            for group in group_by_backend(_last_step_task(task, same[0]), self._backends, same)
        ]

    def reports_row_scores(self, task: SearchTask, candidate: int) -> bool:
        last = _last_step_task(task, candidate)
        backend = choose_backend(last, self._backends, candidate)
        return backend.reports_row_scores(last, candidate)

    def run(self, task: SearchTask, candidates: list[int], threads: int) -> FoldResults:
        transformers, step = _steps(task, candidates[0])
        if self._transformers != transformers:
            self._transformers, self._folds = transformers, {}
        last = _last_step_task(task, candidates[0])
        backend = choose_backend(last, self._backends, candidates[0])
        folds = [
            self._fold_results(task, split, candidates, last, step, backend)
            for split in range(len(task.splits))
        ]
        n_jobs = threads if backend.uses_given_threads else task.n_jobs
        return run_folds_in_lockstep(folds, len(candidates), n_jobs)

    def _fold_results(
        self,
        task: SearchTask,
        split: int,
        candidates: list[int],
        last: SearchTask,
        step: Any,
        backend: FitBackend,
    ) -> Iterator[FoldResult]:
        """Yield the results of the last step on one split."""
        try:
            fold = self._transformed(task, split, candidates[0])
        except Exception:
            if isinstance(task.error_score, str):
                raise
            for candidate in candidates:
                yield task.failure(candidate, split, 0.0, format_exc())
            return
        # Backends keep data by the identity of a task.
        of_fold = fold.tasks.setdefault(step, fold.task(task, last))
        for (result,) in backend.run(of_fold, candidates, 1):
            yield replace(result, split=split)

    def _transformed(self, task: SearchTask, split: int, candidate: int) -> "_TransformedFold":
        """Return a split on which the steps before the last one are fitted."""
        train, test = task.splits[split]
        fold = self._folds.get(id(train))
        if fold is None or fold.train is not train or fold.test is not test:
            fold = _TransformedFold(train, test, _transform(task, split, candidate))
            if sum(_n_bytes(kept.X) for kept in [*self._folds.values(), fold]) <= _KEPT_BYTES:
                self._folds[id(train)] = fold
        return fold


@dataclass(eq=False)
class _TransformedFold:
    """Transformed training rows of one split, followed by its test rows."""

    train: Array
    test: Array
    X: Any
    tasks: dict[Any, SearchTask] = field(default_factory=dict)  # by the key of the last step

    def task(self, task: SearchTask, last: SearchTask) -> SearchTask:
        """Return the task of the last step on this split alone."""
        rows = np.concatenate([np.asarray(self.train), np.asarray(self.test)])
        positions = np.arange(len(rows))
        return replace(
            last,
            X=self.X,
            y=_safe_indexing(task.y, rows),
            fit_params=_check_method_params(task.X, last.fit_params, rows),
            score_params=_check_method_params(task.X, last.score_params, rows),
            splits=[(positions[: len(self.train)], positions[len(self.train) :])],
            # The folds share the memory.
            memory=task.memory / len(task.splits),
        )


def _steps(task: SearchTask, candidate: int) -> tuple[Any, Any]:
    """Return keys of the steps before the last one, and of the last one if it is in the grid."""
    name = task.estimator.steps[-1][0]
    point = coordinates(task.candidates[candidate])
    last = point.pop(name, None)
    return frozenset(kv for kv in point.items() if not kv[0].startswith(f"{name}__")), last


def _last_step_task(task: SearchTask, candidate: int) -> SearchTask:
    """Return the task of the last step, for candidates with the same steps."""
    prefix = f"{task.estimator.steps[-1][0]}__"

    def of_last_step(params: dict[str, Any]) -> dict[str, Any]:
        return {
            name.removeprefix(prefix): value
            for name, value in params.items()
            if name.startswith(prefix)
        }

    return replace(
        task,
        estimator=task.model(candidate)[-1],
        candidates=[of_last_step(params) for params in task.candidates],
        fit_params=of_last_step(task.fit_params),
        # The folds run in parallel instead.
        n_jobs=1,
    )


def _transform(task: SearchTask, split: int, candidate: int) -> Any:
    """Fit the steps before the last one on a split; return training rows, followed by test rows."""
    steps, (train, test) = task.configured(candidate)[:-1], task.splits[split]
    X_train, y_train = _safe_split(steps, task.X, task.y, train)
    X_test, _ = _safe_split(steps, task.X, task.y, test, train)
    prefix = f"{task.estimator.steps[-1][0]}__"
    params = {name: v for name, v in task.fit_params.items() if not name.startswith(prefix)}
    params = _check_method_params(task.X, params, train)
    # Not fit and transform: some transformers treat training rows differently.
    return stack_rows([steps.fit_transform(X_train, y_train, **params), steps.transform(X_test)])
