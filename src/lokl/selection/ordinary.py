"""Fits that share nothing: each candidate on each split by itself, for any estimator."""

import warnings
from typing import Any

from joblib.parallel import get_active_backend
from sklearn.base import clone
from sklearn.model_selection._validation import _fit_and_score
from sklearn.utils.parallel import Parallel, delayed

from lokl.selection.work import Cell, Cells, Task, Worker


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
