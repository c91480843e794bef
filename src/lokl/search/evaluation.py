"""Evaluation of the candidates of a search, completely or as far as they may be the best.

A group of candidates that differ only in `C` is a cost path. An adaptive search evaluates cost
paths in one of two ways.

Race over folds, if it is known which test rows each candidate predicts correctly. All candidates
start on the first fold. Two candidates disagree about some rows, which only one of them predicts
correctly. If they were equally good, each would be correct on about half of these rows, and the
standard error of the difference would be the square root of their number. Candidates too many
standard errors behind the best are skipped; the others continue with the next folds, which sharpens
the comparison. Along rising costs the score has one maximum: if it is clearly below the score of a
smaller cost, all larger costs are skipped as well. All candidates have completed a fold before any
is compared with the best, and groups do not depend on each other while they run, so the outcome
does not depend on threads.

Outwards from the best bandwidth, for other scores. If the mean score has decreased three times in a
row along a cost path, the rest of the path is skipped. Equal scores are not a decrease, and neither
is the score of a candidate that could not be fitted. Cost paths that differ in one number, such as
the bandwidth of a kernel, are evaluated together: the middle cost of each first, then whole paths
outwards from the best one. If the best score of a path has decreased three times in a row, the
paths beyond are skipped.
"""

import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
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
from lokl.search.lockstep import FitCoroutine, run_concurrently, run_coroutine
from lokl.search.results import SearchRow
from lokl.search.shared_gram import SharedGramBackend
from lokl.search.tasks import (
    CandidateGroup,
    Coordinates,
    FitBackend,
    FoldResult,
    SearchTask,
    coordinates,
    group_by_backend,
    is_number,
    leaf_name,
    mean_score,
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
    """

    groups_done: int
    n_groups: int
    done: int  # candidates evaluated
    n_candidates: int
    best_score: float  # NaN if no candidate could be fitted so far
    best_params: dict[str, Any] | None
    seconds: float  # since the start of the search


StopRule = Callable[[CandidateGroup, int], bool]


@dataclass(eq=False)
class SearchRound:
    """Results of candidates on one set of splits, as far as they are computed.

    Parameters
    ----------
    task : SearchTask
    deadline : Deadline
    metric : str or None
        Metric by which candidates are compared, if there are several; default the first.
    callback : callable or None
        Called with the progress after each candidate.
    verbose : int
        1 logs a line for each group of candidates.
    n_candidates : int
        Number of candidates of this round.
    require_one : bool
        Whether one candidate is evaluated even after the deadline.
    started : float
        Time of the start of the search, ``time.monotonic()``.
    """

    task: SearchTask
    deadline: Deadline
    metric: str | None
    callback: Callable[[Progress], Any] | None
    verbose: int
    n_candidates: int
    require_one: bool = True
    started: float = field(default_factory=time.monotonic)
    fold_results: dict[int, list[FoldResult]] = field(default_factory=dict)
    skipped: dict[int, str] = field(default_factory=dict)  # reason by candidate
    best: int | None = None
    n_groups: int = 0
    n_groups_done: int = 0

    @property
    def is_over(self) -> bool:
        """Whether no other candidate may be started."""
        return self.deadline.passed and (bool(self.fold_results) or not self.require_one)

    def mean(self, candidate: int) -> float:
        """Return the mean score of a candidate, NaN if it has none."""
        if candidate not in self.fold_results:
            return math.nan
        return mean_score(self.fold_results[candidate], self.metric)

    def evaluate_group(
        self, group: CandidateGroup, threads: int, stop: StopRule | None = None
    ) -> FitCoroutine[None]:
        """Evaluate the candidates of a group that have no results yet, in their order.

        Parameters
        ----------
        group : CandidateGroup
        threads : int
            Threads that the group may use.
        stop : function of the group and the number of its evaluated candidates, optional
            Whether to leave out the rest of the group.
        """
        fresh = [candidate for candidate in group.candidates if candidate not in self.fold_results]
        with closing(group.run(fresh, threads)) as results:
            for index, candidate in enumerate(group.candidates):
                if candidate not in self.fold_results:
                    if self.is_over:
                        return
                    self.record(candidate, (yield partial(next, results)))
                if stop is not None and stop(group, index + 1):
                    return

    def record(self, candidate: int, fold_results: list[FoldResult]) -> None:
        """Store the results of a candidate on all splits."""
        self.fold_results[candidate] = fold_results
        mean = self.mean(candidate)
        if not math.isnan(mean) and (self.best is None or mean > self.mean(self.best)):
            self.best = candidate
        self.report_progress()

    def skip(self, candidates: Iterable[int], reason: str) -> None:
        """Leave out candidates that have no results yet."""
        self.skipped.update({c: reason for c in candidates if c not in self.fold_results})

    def finish_group(self, group: CandidateGroup) -> None:
        """Count and log a group that is done."""
        self.n_groups_done += 1
        means = [self.mean(candidate) for candidate in group.candidates]
        logger.log(
            logging.INFO if self.verbose else logging.DEBUG,
            "group %d of %d: best score %.4g; %d of %d candidates after %.1f s",
            self.n_groups_done,
            self.n_groups,
            max((mean for mean in means if not math.isnan(mean)), default=math.nan),
            len(self.fold_results),
            self.n_candidates,
            self._seconds,
        )

    def report_progress(self) -> None:
        """Call the callback, if there is one."""
        if self.callback is None:
            return
        best = self.best
        self.callback(
            Progress(
                groups_done=self.n_groups_done,
                n_groups=self.n_groups,
                done=len(self.fold_results),
                n_candidates=self.n_candidates,
                best_score=math.nan if best is None else self.mean(best),
                best_params=None if best is None else dict(self.task.candidates[best]),
                seconds=self._seconds,
            )
        )

    @property
    def _seconds(self) -> float:
        return time.monotonic() - self.started

    def best_candidates(self, count: int) -> list[int]:
        """Return the best candidates; of equal scores, the first in the grid."""
        scored = [c for c in self.fold_results if not math.isnan(self.mean(c))]
        return sorted(scored, key=lambda c: (-self.mean(c), c))[:count]


def run_groups(
    round_: SearchRound,
    groups: Sequence[CandidateGroup],
    evaluate: Callable[[CandidateGroup, int], FitCoroutine[Any]],
) -> None:
    """Run a coroutine for each group, as many at a time as its backend allows.

    `evaluate` makes the coroutine of a group and the number of threads that it may use.
    """
    for _, same_backend in groupby(groups, key=lambda group: id(group.backend)):
        some = list(same_backend)
        max_concurrent = min(some[0].max_concurrent, len(some))
        threads = max(1, threads_for(round_.task.n_jobs) // max_concurrent)
        run_concurrently((evaluate(group, threads) for group in some), max_concurrent)


def evaluate_all(round_: SearchRound, groups: Sequence[CandidateGroup]) -> None:
    """Evaluate every candidate, group by group."""
    round_.n_groups = len(groups)

    def evaluate(group: CandidateGroup, threads: int) -> FitCoroutine[None]:
        if not round_.is_over:
            yield from round_.evaluate_group(group, threads)
            round_.finish_group(group)

    run_groups(round_, groups, evaluate)


def evaluate_outwards(round_: SearchRound, groups: Sequence[CandidateGroup]) -> None:
    """Evaluate cost paths outwards from the best bandwidth, until scores keep decreasing."""
    paths = [path for group in groups for path in group.cost_paths()]
    round_.n_groups += len(paths)
    threads = threads_for(round_.task.n_jobs)
    for same_kind in group_by_bandwidth(paths):
        if round_.is_over:
            return
        # With fewer paths than that, none could be skipped.
        if len(same_kind) > _DECREASES + 1:
            _evaluate_bandwidths(round_, same_kind, threads)
        else:
            for path in same_kind:
                run_coroutine(_evaluate_path(round_, path, threads))


def consecutive_decreases(scores: Iterable[float]) -> int:
    """Return the number of decreases at the end of a sequence of scores."""
    count, last = 0, None
    for score in scores:
        count = count + 1 if last is not None and score < last else 0
        last = score
    return count


def group_by_bandwidth(paths: Sequence[CandidateGroup]) -> list[list[CandidateGroup]]:
    """Group cost paths that differ in one number, sorted by it; other paths are alone.

    The number is the one with the most values, usually the bandwidth of a kernel.
    """
    points = [coordinates(path.task.candidates[path.candidates[0]]) for path in paths]
    name = _most_varied_number(points)
    groups: dict[object, list[int]] = {}
    for index, point in enumerate(points):
        has_number = name is not None and is_number(point.get(name))
        fixed = frozenset(
            (key, value)
            for key, value in point.items()
            if leaf_name(key) != "C" and (key != name or not has_number)
        )
        groups.setdefault(fixed if has_number else index, []).append(index)
    return [
        [paths[i] for i in sorted(group, key=lambda i: points[i].get(name or "", 0))]
        for group in groups.values()
    ]


def _most_varied_number(points: Sequence[Coordinates]) -> str | None:
    """Return the name of the number, other than `C`, that has the most values."""
    values: dict[str, set[object]] = {}
    for point in points:
        for name, value in point.items():
            if is_number(value) and leaf_name(name) != "C":
                values.setdefault(name, set()).add(value)
    return max(values, key=lambda name: len(values[name]), default=None)


def _evaluate_bandwidths(
    round_: SearchRound, paths: Sequence[CandidateGroup], threads: int
) -> None:
    """Evaluate the middle cost of each path, then whole paths from the best one to both sides."""
    middles = [path.candidates[len(path.candidates) // 2] for path in paths]
    alone = [replace(path, candidates=[c]) for path, c in zip(paths, middles, strict=True)]
    run_groups(round_, alone, round_.evaluate_group)
    evaluated = [index for index, c in enumerate(middles) if c in round_.fold_results]
    if not evaluated:
        return
    start = max(evaluated, key=lambda index: _or_lowest(round_.mean(middles[index])))
    best = run_coroutine(_evaluate_path(round_, paths[start], threads))
    sides = [side for side in (paths[start + 1 :], paths[:start][::-1]) if side]
    if sides:
        max_concurrent = min(paths[start].max_concurrent, len(sides))
        threads = max(1, threads // max_concurrent)
        coroutines = (_evaluate_side(round_, side, best, threads) for side in sides)
        run_concurrently(coroutines, max_concurrent)


def _evaluate_side(
    round_: SearchRound, paths: Sequence[CandidateGroup], best: float, threads: int
) -> FitCoroutine[None]:
    """Evaluate paths until the best score of a path has decreased too often."""
    scores = [best]
    for index, path in enumerate(paths):
        scores.append((yield from _evaluate_path(round_, path, threads)))
        if consecutive_decreases(scores) == _DECREASES:
            beyond = [candidate for path in paths[index + 1 :] for candidate in path.candidates]
            round_.skip(beyond, f"the score decreased {_DECREASES} times in a row towards them")
            return


def _evaluate_path(round_: SearchRound, path: CandidateGroup, threads: int) -> FitCoroutine[float]:
    """Evaluate a path until its score has decreased too often; return its best score."""
    if round_.is_over:
        return math.nan

    def stop(path: CandidateGroup, n_evaluated: int) -> bool:
        means = [round_.mean(candidate) for candidate in path.candidates[:n_evaluated]]
        if consecutive_decreases(means) < _DECREASES:
            return False
        rest = path.candidates[n_evaluated:]
        round_.skip(rest, f"the score decreased {_DECREASES} times in a row along C")
        return True

    yield from round_.evaluate_group(path, threads, stop)
    round_.finish_group(path)
    means = [round_.mean(candidate) for candidate in path.candidates]
    return max(map(_or_lowest, means), default=math.nan)


def _or_lowest(score: float) -> float:
    return -math.inf if math.isnan(score) else score


def rounds_of_folds(n_folds: int) -> Iterator[range]:
    """Yield the folds of each round of a race: the first, then each time twice as many."""
    start, count = 0, 1
    while start < n_folds:
        yield range(start, min(start + count, n_folds))
        start, count = start + count, 2 * count


def paired_z_score(correct: Array, best: Array) -> Array:
    """Return by how many standard errors predictions are behind others on the same rows.

    Parameters
    ----------
    correct : bool array of shape (..., n_rows)
        Whether rows are predicted correctly.
    best : bool array of shape (n_rows,)
        The same for the predictions to compare with.

    Returns
    -------
    z : array of shape (...)
        Positive if `best` is correct more often.
    """
    lost, won = (best & ~correct).sum(axis=-1), (correct & ~best).sum(axis=-1)
    return np.asarray((lost - won) / np.sqrt(np.maximum(lost + won, 1)))


def far_behind(correct: dict[int, Array]) -> set[int]:
    """Return the candidates too far behind the best, given which rows each predicts correctly."""
    if not correct:
        return set()
    rows = np.array([*correct.values()])
    behind = paired_z_score(rows, rows[rows.sum(axis=1).argmax()])
    return {candidate for candidate, z in zip(correct, behind, strict=True) if z > _BEHIND_BEST}


@dataclass(eq=False)
class FoldRace:
    """Race of candidates over folds; see the module."""

    round_: SearchRound
    groups: Sequence[CandidateGroup]
    results: dict[int, list[FoldResult]] = field(default_factory=dict)  # on the folds so far

    def __post_init__(self) -> None:
        self.paths = [path for group in self.groups for path in group.cost_paths()]
        # Backends keep data by the identity of a task, so that each task must live on.
        self.tasks: list[SearchTask] = []

    def run(self) -> None:
        """Run all rounds, or complete the best candidate so far after the deadline."""
        self.round_.n_groups += len(self.paths)
        n_folds = len(self.round_.task.splits)
        for folds in rounds_of_folds(n_folds):
            self._run_folds(folds)
            if self._is_over:
                break
            if folds.stop < n_folds:
                behind = far_behind(self._correct(self._remaining()))
                reason = f"{_BEHIND_BEST:g} standard errors behind the best after {folds.stop} of"
                self.round_.skip(sorted(behind), f"{reason} {n_folds} folds")
        if self.results and not self.round_.fold_results:
            self._complete_best()

    @property
    def _is_over(self) -> bool:
        round_ = self.round_
        return round_.deadline.passed and (bool(self.results) or not round_.require_one)

    def _remaining(self) -> list[int]:
        candidates = (candidate for path in self.paths for candidate in path.candidates)
        return [candidate for candidate in candidates if candidate not in self.round_.skipped]

    def _correct(self, candidates: Sequence[int]) -> dict[int, Array]:
        """Return the correctly predicted rows of the candidates that could be fitted."""
        known: dict[int, Array] = {}
        for candidate in candidates:
            correct = [r.correct for r in self.results[candidate] if r.correct is not None]
            if len(correct) == len(self.results[candidate]):
                known[candidate] = np.concatenate(correct)
        return known

    def _task_of(self, folds: Sequence[int]) -> SearchTask:
        task = self.round_.task
        self.tasks.append(replace(task, splits=[task.splits[fold] for fold in folds]))
        return self.tasks[-1]

    def _run_folds(self, folds: range) -> None:
        """Evaluate the remaining candidates on more folds."""
        remaining, task = set(self._remaining()), self._task_of(folds)
        paths = []
        for path in self.paths:
            candidates = [candidate for candidate in path.candidates if candidate in remaining]
            if candidates:
                paths.append(replace(path, task=task, candidates=candidates))
        run_groups(self.round_, paths, partial(self._run_path, folds))

    def _run_path(self, folds: range, path: CandidateGroup, threads: int) -> FitCoroutine[None]:
        """Evaluate a path until its score has clearly decreased."""
        is_last = folds.stop == len(self.round_.task.splits)
        best: Array | None = None
        with closing(path.run(path.candidates, threads)) as results:
            for index, candidate in enumerate(path.candidates):
                if self._is_over:
                    return
                self._record(candidate, folds, (yield partial(next, results)), is_last)
                correct = self._correct([candidate]).get(candidate)
                if correct is None:
                    continue
                if best is not None and paired_z_score(correct, best) > _BEHIND_ON_PATH:
                    reason = f"the score decreased by {_BEHIND_ON_PATH:g} standard errors along C"
                    self.round_.skip(path.candidates[index + 1 :], reason)
                    break
                best = correct if best is None or correct.sum() > best.sum() else best
        if is_last:
            self.round_.finish_group(path)

    def _record(
        self, candidate: int, folds: range, fold_results: list[FoldResult], is_last: bool
    ) -> None:
        more = [replace(result, split=folds[result.split]) for result in fold_results]
        self.results[candidate] = self.results.get(candidate, []) + more
        if is_last:
            self.round_.record(candidate, self.results[candidate])
        else:
            self.round_.report_progress()

    def _complete_best(self) -> None:
        """Evaluate the best of the most advanced candidates on its remaining folds."""
        round_, results = self.round_, self.results
        best = max(results, key=lambda c: (len(results[c]), _or_lowest(mean_score(results[c]))))
        folds = range(len(results[best]), len(round_.task.splits))
        path = next(path for path in self.paths if best in path.candidates)
        path = replace(path, task=self._task_of(folds))
        with closing(path.run([best], threads_for(round_.task.n_jobs))) as fold_results:
            self._record(best, folds, next(fold_results), is_last=True)


def rows_by_round(n_rows: int) -> list[int]:
    """Return the number of training rows in each round of successive halving; the last has all."""
    if n_rows <= _FEW_ROWS:
        return [n_rows]
    return [max(n_rows // _HALVING_FACTOR**2, _LEAST_ROWS), n_rows // _HALVING_FACTOR, n_rows]


def subsample(task: SearchTask, n_rows: int, of_rows: int, stratify: bool) -> SearchTask:
    """Return a task with a fraction of the training rows of each split.

    Smaller subsamples are subsets of larger ones. Test rows are the same.
    """
    if n_rows == of_rows:
        return task
    splits = []
    for train, test in task.splits:
        order = _random_order(len(train), _safe_indexing(task.y, train) if stratify else None)
        splits.append((np.sort(train[order[: max(1, len(train) * n_rows // of_rows)]]), test))
    return replace(task, splits=splits)


def _random_order(n_rows: int, labels: Any) -> Array:
    """Return a random order; with labels, any first rows contain all classes in proportion."""
    # A fixed seed: rounds, candidates and repeated searches use the same rows.
    rng = np.random.RandomState(0)
    if labels is None:
        return rng.permutation(n_rows)
    _, codes = np.unique(np.asarray(labels), return_inverse=True)
    position = np.empty(n_rows)
    for code in range(codes.max() + 1):
        members = np.flatnonzero(codes == code)
        position[members] = rng.permutation(len(members)) / len(members)
    return np.argsort(position, kind="stable")


def evaluate_candidates(
    task: SearchTask,
    *,
    metric: str | None = None,
    adaptive: bool = False,
    halving: bool = False,
    time_limit: float | None = None,
    callback: Callable[[Progress], Any] | None = None,
    verbose: int = 0,
    backends: Sequence[FitBackend] | None = None,
) -> list[SearchRow]:
    """Evaluate the candidates of a task.

    Parameters
    ----------
    task : SearchTask
    metric : str or None
        Metric by which candidates are compared, if there are several; default the first.
    adaptive, halving, time_limit, callback, verbose
        As in ``KernelSearchCV``.
    backends : sequence of FitBackend, optional
        Backends of an earlier search on the same samples, whose cached work is used again.

    Returns
    -------
    rows : list of SearchRow
        One for each candidate of each round.
    """
    n_rows, started = _num_samples(task.X), time.monotonic()
    deadline, backends = Deadline(time_limit), backends or new_backends()
    candidates = list(range(len(task.candidates)))
    rows: list[SearchRow] = []
    for iteration, count in enumerate(rows_by_round(n_rows) if halving else [n_rows]):
        part = subsample(task, count, n_rows, is_classifier(task.estimator))
        is_first = iteration == 0
        round_ = SearchRound(
            part, deadline, metric, callback, verbose, len(candidates), is_first, started
        )
        _evaluate_round(round_, group_by_backend(part, backends, candidates), adaptive)
        _warn_about_time_limit(round_, time_limit, iteration)
        rows += [
            SearchRow(
                c,
                task.candidates[c],
                round_.fold_results.get(c),
                iteration,
                count,
                round_.skipped.get(c),
            )
            for c in candidates
        ]
        candidates = sorted(round_.best_candidates(math.ceil(len(candidates) / _HALVING_FACTOR)))
        if deadline.passed:
            break
    return rows


def _evaluate_round(round_: SearchRound, groups: list[CandidateGroup], adaptive: bool) -> None:
    if not adaptive:
        evaluate_all(round_, groups)
        return
    racing = [group for group in groups if group.reports_correctness]
    FoldRace(round_, racing).run()
    evaluate_outwards(round_, [group for group in groups if group not in racing])
    _log_skipped(round_)


def _log_skipped(round_: SearchRound) -> None:
    level = logging.INFO if round_.verbose else logging.DEBUG
    for reason, count in Counter(round_.skipped.values()).items():
        params = [round_.task.candidates[c] for c, why in round_.skipped.items() if why == reason]
        logger.log(level, "skipped %d of %d, %s: %s", count, round_.n_candidates, reason, params)


def _warn_about_time_limit(round_: SearchRound, time_limit: float | None, iteration: int) -> None:
    tried = len(round_.fold_results)
    if tried < round_.n_candidates - len(round_.skipped):
        warn_once(
            "time limit of the search",
            f"time_limit={time_limit:g} seconds were over after {tried} of {round_.n_candidates} "
            f"candidates{f' in round {iteration}' if iteration else ''}; the best of them is "
            "chosen. Raise time_limit, or search fewer candidates",
        )
