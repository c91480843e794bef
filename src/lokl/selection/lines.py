"""Estimators of this library in lines: candidates that differ in their costs share a start."""

import time
from collections.abc import Iterator
from numbers import Real
from traceback import format_exc
from typing import Any

import numpy as np
from sklearn.model_selection._validation import _score
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _check_method_params, _num_samples

from lokl.estimators._base.earlier import Guide
from lokl.estimators._base.learner import Learner
from lokl.estimators._base.line import fit_line
from lokl.estimators._base.solver_choice import chosen_solver
from lokl.selection.grid import by_cost, group
from lokl.selection.in_step import in_step
from lokl.selection.judged import is_accuracy, judged, sees_predictions_only
from lokl.selection.stored_kernels import with_stored_kernels
from lokl.selection.work import Cell, Cells, Task, Worker
from lokl.solvers import Solver

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
        return chosen_solver(model)
    except (TypeError, ValueError):
        return None


class LineFits(Worker):
    """Candidates that differ only in their costs, in ascending order of `C`."""

    def takes(self, task: Task, candidate: int) -> bool:
        return set(task.fit_params) <= {"sample_weight"} and isinstance(
            task.configured(candidate), Learner
        )

    def lines(self, task: Task, candidates: list[int]) -> list[list[int]]:
        lines = group(task.candidates, candidates, apart_from=COSTS)
        return [by_cost(task.candidates, line) for line in lines]

    def tells_rows(self, task: Task, candidate: int) -> bool:
        return is_accuracy(task, task.estimator)

    def run(self, task: Task, line: list[int], threads: int) -> Cells:
        task = with_stored_kernels(task, line, COSTS) or task
        few = min(len(train) for train, _ in task.splits) < _ENOUGH_TO_LEAD
        lead = Guide()
        folds = [
            _fold(task, split, line, None if few else lead.follower() if split else lead)
            for split in range(len(task.splits))
        ]
        return in_step(folds, len(line), task.n_jobs, first_leads=not few)


def _fold(task: Task, split: int, line: list[int], guide: Guide | None) -> Iterator[Cell]:
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
        fits = fit_line(models, X, y, weight, tolerance=loose, guide=guide)
        fitted: Any = None
        for candidate in tuple(left):
            left.remove(candidate)
            if guide is not None:
                guide.step = candidate
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
        right = fitted._answers(decision) == np.asarray(scored[1])
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
