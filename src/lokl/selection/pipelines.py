"""Pipelines that end in an estimator of this library: transformers are fitted once a fold.

Candidates that differ only in settings of the last step see the same transformed samples. For each
fold these are a task of their own, with the last step as its estimator and one split, and the
workers for bare estimators compute it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from traceback import format_exc
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_method_params

from lokl.estimators._base.learner import Learner
from lokl.selection.assignment import assign, who_takes
from lokl.selection.grid import coordinates
from lokl.selection.in_step import in_step
from lokl.selection.judged import sees_predictions_only
from lokl.selection.transformed import Transformed
from lokl.selection.work import Cell, Cells, Task, Worker


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
            and isinstance(task.configured(candidate)[-1], Learner)
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
