"""Evaluation of the candidates of a search, completely or as far as they may be the best.

A group of candidates that differ only in `C` is a cost path. An adaptive search evaluates cost
paths in ascending order of `C`.

If the score is a mean over rows (accuracy, R squared), candidates race over folds. All start on the
first fold. The standard error of the difference of two candidates follows from the differences on
the same rows. Candidates too many standard errors behind the best are skipped; the others continue
with the next folds, which sharpens the comparison. Along rising costs the score has one maximum: if
it is clearly below the score of a smaller cost, all larger costs are skipped as well. All
candidates have completed a fold before any is compared with the best, and paths do not depend on
each other while they run, so the outcome does not depend on threads.

With other scores there is one round with all folds, and the rest of a path is skipped if the mean
score has decreased three times in a row. Equal scores are not a decrease, and neither is the score
of a candidate that could not be fitted.
"""

import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from lokl._arrays import Array
from lokl._deadline import Deadline
from lokl._threads import threads_for
from lokl._warnings import warn_once
from lokl.search.backends import PipelineBackend, SklearnBackend, WarmStartBackend
from lokl.search.cross_validation import draw_rows
from lokl.search.lockstep import interleaved
from lokl.search.results import Candidate, errors_behind, mean_score
from lokl.search.shared_gram import SharedGramBackend
from lokl.search.tasks import (
    CandidateGroup,
    FitBackend,
    FoldResult,
    SearchTask,
    group_by_backend,
)

logger = logging.getLogger("lokl")

# Standard errors behind the best candidate at which a candidate is skipped, ...
_BEHIND_BEST = 2.5
# ... and behind a smaller cost of the same path at which all larger costs are.
_BEHIND_ON_PATH = 2.0
# Decreases of the mean score after which the rest of a path is skipped.
_DECREASES = 3
# Successive halving: each round has this many times more rows and fewer candidates.
_HALVING_FACTOR = 3
# Up to this many rows, all candidates on all rows are fast enough.
_FEW_ROWS = 10_000
# With fewer rows, the ranks of candidates say little about the ranks on all rows.
_LEAST_ROWS = 1_000


def new_backends() -> list[FitBackend]:
    """Return the backends for one search, the most specialised first; the last supports all."""
    single_step = [SharedGramBackend(), WarmStartBackend(), SklearnBackend()]
    return [PipelineBackend(single_step), *single_step]


@dataclass(frozen=True)
class Progress:
    """State of a search after a candidate.

    Candidates are computed in groups that share work, several groups at a time.

    Attributes
    ----------
    groups_done, n_groups : int
        Groups of candidates.
    done, n_candidates : int
        Candidates.
    best_score : float
        Best mean score so far.
    best_params : dict or None
        Its parameters.
    seconds : float
        Time since the start.

    See Also
    --------
    lokl.search.KernelSearchCV : Grid search on shared work.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from lokl import KernelSearchCV, UniformMKLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> seen = []
    >>> grid = {"C": [1, 10, 100]}
    >>> search = KernelSearchCV(UniformMKLClassifier(["rbf"]), grid, callback=seen.append)
    >>> _ = search.fit(X, y)
    >>> seen[-1].done, seen[-1].n_candidates
    (3, 3)
    """

    groups_done: int
    n_groups: int
    done: int  # candidates evaluated
    n_candidates: int
    best_score: float  # NaN if no candidate could be fitted so far
    best_params: dict[str, Any] | None
    seconds: float  # since the start of the search


@dataclass(eq=False)
class Evaluation:
    """Fold results of the candidates of a task, as far as they are computed.

    Parameters
    ----------
    task : SearchTask
    deadline : Deadline
    metric : str or None
        Metric by which candidates are compared, if there are several; default the first.
    adaptive : bool
        Whether candidates that are unlikely to be the best are skipped; see the module.
    required : collection of int or None
        Candidates that are evaluated even after the deadline; None for the first one.
    callback : callable or None
        Called with the progress after each candidate.
    verbose : int
        1 logs a line for each group of candidates.
    started : float
        Time of the start of the search, ``time.monotonic()``.

    Attributes
    ----------
    results : dict of int to list of FoldResult
        Results of each candidate on the folds so far.
    skipped : dict of int to str
        Reason by candidate.
    best : int or None
        The best candidate that is complete.
    """

    task: SearchTask
    deadline: Deadline
    metric: str | None = None
    adaptive: bool = False
    required: Collection[int] | None = None
    callback: Callable[[Progress], Any] | None = None
    verbose: int = 0
    started: float = field(default_factory=time.monotonic)
    results: dict[int, list[FoldResult]] = field(default_factory=dict)
    skipped: dict[int, str] = field(default_factory=dict)
    best: int | None = None

    def run(self, groups: Sequence[CandidateGroup]) -> None:
        """Evaluate the candidates of all groups."""
        if self.adaptive:
            groups = [path for group in groups for path in group.cost_paths()]
        self._n_candidates = sum(len(group.candidates) for group in groups)
        self._n_groups, self._n_groups_done = len(groups), 0
        # Backends keep data by the identity of a task, so that each task must live on.
        self._tasks: list[SearchTask] = []
        racing = [group for group in groups if self.adaptive and group.reports_row_scores]
        if racing:
            self._race(racing)
        others = [group for group in groups if group not in racing]
        self._run_folds(others, range(self.n_folds))
        if self.results and self.best is None and self.deadline.passed:
            self._complete_best(racing)
        level = logging.INFO if self.verbose else logging.DEBUG
        for reason, count in Counter(self.skipped.values()).items():
            params = [self.task.candidates[c] for c, why in self.skipped.items() if why == reason]
            logger.log(level, "skipped %d of %d, %s: %s", count, self._n_candidates, reason, params)

    @property
    def n_folds(self) -> int:
        return len(self.task.splits)

    @property
    def complete(self) -> dict[int, list[FoldResult]]:
        """Results of the candidates that were evaluated on all folds."""
        return {c: done for c, done in self.results.items() if len(done) == self.n_folds}

    def mean(self, candidate: int) -> float:
        """Return the mean score of a candidate on the folds so far, NaN if it has none."""
        results = self.results.get(candidate)
        return mean_score(results, self.metric) if results else math.nan

    def best_candidates(self, count: int) -> list[int]:
        """Return the best complete candidates; of equal scores, the first in the grid."""
        scored = [c for c in self.complete if not math.isnan(self.mean(c))]
        return sorted(scored, key=lambda c: (-self.mean(c), c))[:count]

    def _is_over(self, candidate: int | None = None) -> bool:
        """Whether no other candidate is evaluated, or not the given one."""
        if self.required is None:
            return self.deadline.passed and bool(self.results)
        return candidate not in self.required and self.deadline.passed

    def _race(self, paths: Sequence[CandidateGroup]) -> None:
        """Evaluate candidates on more and more folds, and skip those far behind the best."""
        for folds in rounds_of_folds(self.n_folds):
            self._run_folds(paths, folds)
            if self._is_over():
                return
            if folds.stop < self.n_folds:
                candidates = (c for path in paths for c in path.candidates)
                behind = far_behind(self._row_scores(candidates))
                reason = f"{_BEHIND_BEST:g} standard errors behind the best after {folds.stop} of"
                self._skip(sorted(behind), f"{reason} {self.n_folds} folds")

    def _run_folds(self, groups: Sequence[CandidateGroup], folds: range) -> None:
        """Evaluate the remaining candidates of some groups on some folds."""
        task = self._task_of(folds)
        remaining = []
        for group in groups:
            candidates = [c for c in group.candidates if c not in self.skipped]
            if candidates:
                remaining.append(replace(group, task=task, candidates=candidates))
        for _, same_backend in groupby(remaining, key=lambda group: id(group.backend)):
            some = list(same_backend)
            max_concurrent = min(some[0].max_concurrent, len(some))
            threads = max(1, threads_for(self.task.n_jobs) // max_concurrent)
            runs = (self._run_group(group, folds, threads) for group in some)
            with closing(interleaved(runs, max_concurrent)) as uses:
                for use in uses:
                    use()

    def _run_group(
        self, group: CandidateGroup, folds: range, threads: int
    ) -> Generator[Callable[[], None], None, None]:
        """Yield functions that store the results of a group, one candidate after the other.

        The iterator may run in another thread than these functions.
        """
        with closing(group.run(threads)) as results:
            for index, candidate in enumerate(group.candidates):
                if self._is_over(candidate):
                    return
                if candidate in self.skipped:
                    break
                yield partial(self._record, group, index, folds, next(results))
        if folds.stop == self.n_folds:
            yield partial(self._finish_group, group)

    def _task_of(self, folds: range) -> SearchTask:
        """Return the task on some folds."""
        if len(folds) == self.n_folds:
            return self.task
        self._tasks.append(replace(self.task, splits=[self.task.splits[fold] for fold in folds]))
        return self._tasks[-1]

    def _record(
        self, group: CandidateGroup, index: int, folds: range, fold_results: list[FoldResult]
    ) -> None:
        """Store the results of a candidate of a group on some folds."""
        candidate = group.candidates[index]
        more = [replace(result, split=folds[result.split]) for result in fold_results]
        self.results.setdefault(candidate, []).extend(more)
        mean = self.mean(candidate)
        is_complete = len(self.results[candidate]) == self.n_folds
        if is_complete and not math.isnan(mean):
            self.best = candidate if self.best is None or mean > self.mean(self.best) else self.best
        if self.callback is not None:
            self.callback(self._progress())
        if self.adaptive and (reason := self._decrease(group.candidates[: index + 1])):
            self._skip(group.candidates[index + 1 :], reason)

    def _decrease(self, path: Sequence[int]) -> str | None:
        """Return why larger costs than those of a path are skipped, None if they are not."""
        known = self._row_scores(path)
        last = known.pop(path[-1], None)
        if known and last is not None:
            best = max(known.values(), key=lambda scores: float(scores.sum()))
            if errors_behind(last, best) > _BEHIND_ON_PATH:
                return f"the score decreased by {_BEHIND_ON_PATH:g} standard errors along C"
        elif last is None and consecutive_decreases(map(self.mean, path)) == _DECREASES:
            return f"the score decreased {_DECREASES} times in a row along C"
        return None

    def _row_scores(self, candidates: Iterable[int]) -> dict[int, Array]:
        """Return the row scores of the remaining candidates that have them on all folds so far."""
        known: dict[int, Array] = {}
        for candidate in candidates:
            results = [] if candidate in self.skipped else self.results[candidate]
            scores = [r.row_scores for r in results if r.row_scores is not None]
            if scores and len(scores) == len(results):
                known[candidate] = np.concatenate(scores)
        return known

    def _skip(self, candidates: Iterable[int], reason: str) -> None:
        self.skipped.update(dict.fromkeys(candidates, reason))

    def _complete_best(self, paths: Sequence[CandidateGroup]) -> None:
        """Evaluate the best of the most advanced candidates on its remaining folds."""
        done = self.results
        best = max(done, key=lambda c: (len(done[c]), _or_lowest(self.mean(c))))
        folds = range(len(done[best]), self.n_folds)
        path = next(path for path in paths if best in path.candidates)
        path = replace(path, task=self._task_of(folds), candidates=[best])
        with closing(path.run(threads_for(self.task.n_jobs))) as results:
            self._record(path, 0, folds, next(results))

    def _finish_group(self, group: CandidateGroup) -> None:
        """Count and log a group that is done."""
        self._n_groups_done += 1
        means = [self.mean(candidate) for candidate in group.candidates]
        logger.log(
            logging.INFO if self.verbose else logging.DEBUG,
            "group %d of %d: best score %.4g; %d of %d candidates after %.1f s",
            self._n_groups_done,
            self._n_groups,
            max((mean for mean in means if not math.isnan(mean)), default=math.nan),
            len(self.complete),
            self._n_candidates,
            time.monotonic() - self.started,
        )

    def _progress(self) -> Progress:
        best = self.best
        return Progress(
            groups_done=self._n_groups_done,
            n_groups=self._n_groups,
            done=len(self.complete),
            n_candidates=self._n_candidates,
            best_score=math.nan if best is None else self.mean(best),
            best_params=None if best is None else dict(self.task.candidates[best]),
            seconds=time.monotonic() - self.started,
        )


def _or_lowest(score: float) -> float:
    return -math.inf if math.isnan(score) else score


def consecutive_decreases(scores: Iterable[float]) -> int:
    """Return the number of decreases at the end of a sequence of scores."""
    count, last = 0, None
    for score in scores:
        count = count + 1 if last is not None and score < last else 0
        last = score
    return count


def rounds_of_folds(n_folds: int) -> Iterator[range]:
    """Yield the folds of each round of a race: the first, then each time twice as many."""
    start, count = 0, 1
    while start < n_folds:
        yield range(start, min(start + count, n_folds))
        start, count = start + count, 2 * count


def far_behind(scores: Mapping[int, Array]) -> set[int]:
    """Return the candidates too far behind the best, given their scores of the same rows."""
    if not scores:
        return set()
    best = max(scores.values(), key=lambda rows: float(rows.sum()))
    return {c for c, rows in scores.items() if errors_behind(rows, best) > _BEHIND_BEST}


def rows_by_round(n_rows: int) -> list[int]:
    """Return the number of training rows in each round of successive halving; the last has all."""
    if n_rows <= _FEW_ROWS:
        return [n_rows]
    return [max(n_rows // _HALVING_FACTOR**2, _LEAST_ROWS), n_rows // _HALVING_FACTOR, n_rows]


def subsample(task: SearchTask, n_rows: int, of_rows: int, stratify: bool) -> SearchTask:
    """Return a task with a fraction of the training rows of each split, and the same test rows."""
    if n_rows == of_rows:
        return task
    splits = []
    for train, test in task.splits:
        labels = np.zeros(len(train)) if task.y is None else _safe_indexing(task.y, train)
        count = max(1, len(train) * n_rows // of_rows)
        # A fixed seed: rounds, candidates and repeated searches use the same rows.
        kept = draw_rows(np.asarray(labels), count, stratify, np.random.RandomState(0))
        splits.append((train[kept], test))
    return replace(task, splits=splits)


def evaluate_candidates(
    task: SearchTask,
    *,
    metric: str | None = None,
    adaptive: bool = False,
    halving: bool = False,
    time_limit: float | None = None,
    callback: Callable[[Progress], Any] | None = None,
    verbose: int = 0,
) -> list[Candidate]:
    """Evaluate the candidates of a task.

    Parameters
    ----------
    task : SearchTask
    metric : str or None
        Metric by which candidates are compared, if there are several; default the first.
    adaptive, halving, time_limit, callback, verbose
        As in ``KernelSearchCV``.

    Returns
    -------
    rows : list of Candidate
        One for each candidate of each round.
    """
    n_rows, reporting = _num_samples(task.X), (callback, verbose, time.monotonic())
    deadline, backends = Deadline(time_limit), new_backends()
    candidates = list(range(len(task.candidates)))
    rows: list[Candidate] = []
    for iteration, count in enumerate(rows_by_round(n_rows) if halving else [n_rows]):
        part = subsample(task, count, n_rows, is_classifier(task.estimator))
        # The best of an earlier round is there if the time is over.
        required = None if iteration == 0 else ()
        evaluation = Evaluation(part, deadline, metric, adaptive, required, *reporting)
        evaluation.run(group_by_backend(part, backends, candidates))
        complete, skipped = evaluation.complete, evaluation.skipped
        if len(complete) + len(skipped) < len(candidates):
            of_round = f" in round {iteration}" if iteration else ""
            warn_once(
                "time limit of the search",
                f"time_limit={time_limit:g} seconds were over after {len(complete)} of "
                f"{len(candidates)} candidates{of_round}; the best of them is chosen. Raise "
                "time_limit, or search fewer candidates",
            )
        rows += [
            Candidate(c, task.candidates[c], complete.get(c), iteration, count, skipped.get(c))
            for c in candidates
        ]
        candidates = sorted(
            evaluation.best_candidates(math.ceil(len(candidates) / _HALVING_FACTOR))
        )
        if deadline.passed:
            break
    return rows
