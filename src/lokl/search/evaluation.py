"""All who compute cells, the most specialised first.

How far a search is, for callbacks and the log.

The way through the lines of a grid: cells as they come, until done or out of time.

Successive halving: all candidates on few rows, the best of them on more, few on all.

Candidates that cannot win are left out: the score falls ever further towards them.

For scores that say nothing of single rows; where they do, there is a race over folds.

A line has ascending costs. Where the mean score has fallen three times in a row, each time strictly
below the one before, the rest of the line is skipped; equal scores are no fall, and neither is the
score of a candidate that could not be fitted. Lines that differ in one number, such as the width of
a kernel, are a sheet. Its middle costs are evaluated first; then lines are followed outwards from
the best one, and where the best score of a line has fallen three times in a row, the lines beyond
are skipped.

A race over folds: who is far behind after some of them is not asked about the others.

All candidates start on the first fold. Two of them disagree about some of its rows: one is right
there and the other is not. Were they equally good, each would win about half of these rows, and one
would be ahead by the square root of their number, give or take: the standard error of the
difference. Who is too many standard errors behind the best leaves the race, and the others go on to
the next folds, where differences show more sharply.

Along rising costs the score has one summit: where it is clearly below that of a smaller cost, all
larger costs leave as well.

Everybody has run a fold before anybody is compared with the best, and lines do not look at each
other while they run: who leaves does not depend on threads.

A whole search: its rounds, and what is known of each candidate after them.
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
from lokl._warnings import warn_once
from lokl.search.backends import LastSteps, LineFits, OrdinaryFits
from lokl.search.lockstep import Walk, follow, side_by_side, threads_for
from lokl.search.results import Row
from lokl.search.shared_gram import SharedMachines
from lokl.search.tasks import (
    Cell,
    Coordinates,
    Line,
    Task,
    Worker,
    assign,
    coordinates,
    is_number,
    last_part,
    mean_score,
)

# For estimators that are no pipelines. A candidate belongs to the first that takes it; the last
# takes all.
WORKERS: tuple[type[Worker], ...] = (SharedMachines, LineFits, OrdinaryFits)


def new_workers() -> list[Worker]:
    """Return workers for one search."""
    bare = [kind() for kind in WORKERS]
    return [LastSteps(bare), *bare]


@dataclass(frozen=True)
class Progress:
    """State of a search after a candidate."""

    lines_done: int  # candidates are computed in lines that share work, several at a time
    n_lines: int
    done: int  # candidates that were evaluated
    n_candidates: int
    best_score: float  # NaN where no candidate could be fitted so far
    best_params: dict[str, Any] | None
    seconds: float  # since the start of the search


logger = logging.getLogger("lokl")

Stop = Callable[[Line, int], bool]


def never(line: Line, known: int) -> bool:
    """All candidates of a line are wanted."""
    return False


@dataclass(eq=False)
class Clock:
    """Seconds since the start of a search, and how many there are."""

    limit: float | None
    start: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.start

    @property
    def is_over(self) -> bool:
        return self.limit is not None and self.seconds >= self.limit


@dataclass(eq=False)
class Evaluation:
    """Cells of the candidates of a task, as far as they are known.

    Parameters
    ----------
    task : Task
    clock : Clock
    metric : str or None
        By which candidates are compared on the way, where there are several; else the first.
    callback : callable or None
        Is told the progress after each candidate.
    verbose : int
        1 logs a line for each line of the grid.
    n_candidates : int
        How many there are in this round.
    least_one : bool
        Whether one candidate is evaluated even if there is no time.
    """

    task: Task
    clock: Clock
    metric: str | None
    callback: Callable[[Progress], Any] | None
    verbose: int
    n_candidates: int
    least_one: bool = True
    cells: dict[int, list[Cell]] = field(default_factory=dict)
    skipped: dict[int, str] = field(default_factory=dict)  # candidates, and why
    best: int | None = None
    n_lines: int = 0
    n_done_lines: int = 0

    @property
    def is_over(self) -> bool:
        """Whether no other candidate may be started."""
        return self.clock.is_over and (bool(self.cells) or not self.least_one)

    def mean(self, candidate: int) -> float:
        """Mean score of a candidate; NaN where it has none."""
        if candidate not in self.cells:
            return math.nan
        return mean_score(self.cells[candidate], self.metric)

    def along(self, line: Line, threads: int, stop: Stop = never) -> Walk[None]:
        """Compute the candidates of a line that are not known yet, in their order.

        Parameters
        ----------
        line : Line
        threads : int
            That the line may use.
        stop : function of the line and the number of its candidates that are known, optional
            Whether the rest of the line is not wanted.
        """
        fresh = [candidate for candidate in line.candidates if candidate not in self.cells]
        with closing(line.run(fresh, threads)) as cells:
            for place, candidate in enumerate(line.candidates):
                if candidate not in self.cells:
                    if self.is_over:
                        return
                    self.note(candidate, (yield partial(next, cells)))
                if stop(line, place + 1):
                    return

    def finish_line(self, line: Line) -> None:
        """Note and log that a line is done."""
        self.n_done_lines += 1
        means = [self.mean(candidate) for candidate in line.candidates]
        best = max((mean for mean in means if not math.isnan(mean)), default=math.nan)
        logger.log(
            logging.INFO if self.verbose else logging.DEBUG,
            "line %d of %d: best score %.4g; %d of %d candidates after %.1f s",
            self.n_done_lines,
            self.n_lines,
            best,
            len(self.cells),
            self.n_candidates,
            self.clock.seconds,
        )

    def skip(self, candidates: list[int], reason: str) -> None:
        """Leave candidates out that are not known yet, and remember why."""
        self.skipped.update({c: reason for c in candidates if c not in self.cells})

    def note(self, candidate: int, cells: list[Cell]) -> None:
        """Note the cells of a candidate on all splits."""
        self.cells[candidate] = cells
        mean = self.mean(candidate)
        if not math.isnan(mean) and (self.best is None or mean > self.mean(self.best)):
            self.best = candidate
        self.tell_progress()

    def tell_progress(self) -> None:
        """Call back, where anybody wants to know."""
        if self.callback is not None:
            self.callback(self._progress())

    def _progress(self) -> Progress:
        best = self.best
        return Progress(
            lines_done=self.n_done_lines,
            n_lines=self.n_lines,
            done=len(self.cells),
            n_candidates=self.n_candidates,
            best_score=math.nan if best is None else self.mean(best),
            best_params=None if best is None else dict(self.task.candidates[best]),
            seconds=self.clock.seconds,
        )


def evaluate_all(evaluation: Evaluation, lines: list[Line]) -> None:
    """Evaluate every candidate, line by line."""
    evaluation.n_lines = len(lines)

    def whole(line: Line, threads: int) -> Walk[None]:
        if not evaluation.is_over:
            yield from evaluation.along(line, threads)
            evaluation.finish_line(line)

    run_lines(evaluation, lines, whole)


def run_lines(
    evaluation: Evaluation, lines: list[Line], walk: Callable[[Line, int], Walk[Any]]
) -> None:
    """Go a walk along each line, as many at a time as their worker allows.

    A walk is made of a line and the number of threads that it may use.
    """
    for _, alike in groupby(lines, key=lambda line: id(line.worker)):
        some = list(alike)
        at_once = min(some[0].at_once, len(some))
        threads = max(1, threads_for(evaluation.task.n_jobs) // at_once)
        side_by_side((walk(line, threads) for line in some), at_once)


# Each round has so many times more rows and so many times fewer candidates.
FACTOR = 3
# Rows below which all candidates on all rows are quick enough.
_FEW_ROWS = 10_000
# Rows below which the ranks of candidates say little about the ranks on all rows.
_LEAST_ROWS = 1_000


def row_counts(n_rows: int) -> list[int]:
    """Return the training rows of each round; the last has all."""
    if n_rows <= _FEW_ROWS:
        return [n_rows]
    return [max(n_rows // FACTOR**2, _LEAST_ROWS), n_rows // FACTOR, n_rows]


def on_part(task: Task, n_rows: int, of_rows: int, is_classifier: bool) -> Task:
    """Return a task that learns from a part of the training rows of each split.

    The rows of a smaller part are in every larger one. Rows to score stay as they are.
    """
    if n_rows == of_rows:
        return task
    splits = []
    for train, test in task.splits:
        order = _order(train, _safe_indexing(task.y, train) if is_classifier else None)
        splits.append((np.sort(train[order[: max(1, len(train) * n_rows // of_rows)]]), test))
    return replace(task, splits=splits)


def _order(rows: Array, labels: Any) -> Array:
    """Return a random order; with labels, the first rows of it have all classes in their shares."""
    # A fixed seed: rounds, candidates and repeated searches see the same rows.
    rng = np.random.RandomState(0)
    if labels is None:
        return rng.permutation(len(rows))
    _, codes = np.unique(np.asarray(labels), return_inverse=True)
    place = np.empty(len(rows))
    for code in range(codes.max() + 1):
        own = np.flatnonzero(codes == code)
        place[own] = rng.permutation(len(own)) / len(own)
    return np.argsort(place, kind="stable")


_FALLS = 3


def evaluate_promising(evaluation: Evaluation, lines: list[Line]) -> None:
    """Evaluate candidates line by line, as long as scores do not fall three times in a row."""
    costs = [part for line in lines for part in line.by_cost()]
    evaluation.n_lines += len(costs)
    for sheet in sheets(costs):
        if evaluation.is_over:
            return
        # Three falls and one line beyond, or nothing can be skipped.
        if len(sheet) > _FALLS + 1:
            _walk_outwards(evaluation, sheet)
        else:
            for line in sheet:
                follow(_promising(evaluation, line, threads_for(evaluation.task.n_jobs)))


def falls_in_a_row(scores: Iterable[float]) -> int:
    """How many times the scores have just fallen, one after the other."""
    falls, last = 0, None
    for score in scores:
        falls = falls + 1 if last is not None and score < last else 0
        last = score
    return falls


def sheets(lines: list[Line]) -> list[list[Line]]:
    """Put lines together that differ in one number, in its order; others are alone."""
    first = [coordinates(line.task.candidates[line.candidates[0]]) for line in lines]
    number = _most_varied(first)
    groups: dict[object, list[int]] = {}
    for index, place in enumerate(first):
        has = number is not None and is_number(place.get(number))
        fixed = frozenset(
            (name, value)
            for name, value in place.items()
            if last_part(name) != "C" and (name != number or not has)
        )
        groups.setdefault(fixed if has else index, []).append(index)
    return [
        [lines[i] for i in sorted(group, key=lambda i: first[i].get(number or "", 0))]
        for group in groups.values()
    ]


def _most_varied(places: list[Coordinates]) -> str | None:
    """Name of the number, other than the cost, that has the most values."""
    values: dict[str, set[object]] = {}
    for place in places:
        for name, value in place.items():
            if is_number(value) and last_part(name) != "C":
                values.setdefault(name, set()).add(value)
    return max(values, key=lambda name: len(values[name]), default=None)


def _walk_outwards(evaluation: Evaluation, sheet: list[Line]) -> None:
    """Follow the lines of a sheet from the best one to both sides."""
    middles = [replace(line, candidates=[_middle(line)]) for line in sheet]
    run_lines(evaluation, middles, evaluation.along)
    known = [place for place, line in enumerate(sheet) if _middle(line) in evaluation.cells]
    if not known:
        return
    start = max(known, key=lambda place: _or_lowest(evaluation.mean(_middle(sheet[place]))))
    threads = threads_for(evaluation.task.n_jobs)
    best = follow(_promising(evaluation, sheet[start], threads))
    sides = [side for side in (sheet[start + 1 :], sheet[:start][::-1]) if side]
    if sides:
        at_once = min(sheet[start].at_once, len(sides))
        threads = max(1, threads // at_once)
        side_by_side((_side(evaluation, side, best, threads) for side in sides), at_once)


def _middle(line: Line) -> int:
    return line.candidates[len(line.candidates) // 2]


def _side(evaluation: Evaluation, side: list[Line], best: float, threads: int) -> Walk[None]:
    """Follow lines until the best score of a line has fallen too often."""
    scores = [best]
    for place, line in enumerate(side):
        scores.append((yield from _promising(evaluation, line, threads)))
        if falls_in_a_row(scores) == _FALLS:
            for beyond in side[place + 1 :]:
                evaluation.skip(
                    beyond.candidates, f"the score fell {_FALLS} times in a row towards them"
                )
            return


def _promising(evaluation: Evaluation, line: Line, threads: int) -> Walk[float]:
    """Evaluate a line until its score has fallen too often; return its best score."""
    if evaluation.is_over:
        return float("nan")

    def stop(line: Line, known: int) -> bool:
        means = [evaluation.mean(candidate) for candidate in line.candidates[:known]]
        if falls_in_a_row(means) < _FALLS:
            return False
        rest = line.candidates[known:]
        evaluation.skip(rest, f"the score fell {_FALLS} times in a row along C")
        return True

    yield from evaluation.along(line, threads, stop)
    evaluation.finish_line(line)
    means = [evaluation.mean(candidate) for candidate in line.candidates]
    return max(map(_or_lowest, means), default=float("nan"))


def _or_lowest(score: float) -> float:
    return score if score == score else -float("inf")


# Standard errors behind the best of all at which a candidate leaves, ...
_BEHIND = 2.5
# ... and behind a smaller cost of the same line at which all larger ones leave.
_FALLEN = 2.0


def evaluate_by_folds(evaluation: Evaluation, lines: Sequence[Line]) -> None:
    """Evaluate candidates whose cells tell which rows are right, each as long as it may win."""
    _Race(evaluation, [part for line in lines for part in line.by_cost()]).run()


def rounds_of_folds(n_folds: int) -> Iterator[range]:
    """Yield the folds of each round: the first, then each time twice as many."""
    start, count = 0, 1
    while start < n_folds:
        yield range(start, min(start + count, n_folds))
        start, count = start + count, 2 * count


def errors_behind(right: Array, best: Array) -> Array:
    """How many standard errors answers are behind others.

    Parameters
    ----------
    right : bool array of shape (..., n_rows)
        Whether rows were answered rightly.
    best : bool array of shape (n_rows,)
        The same for those who are ahead.
    """
    lost, won = (best & ~right).sum(axis=-1), (right & ~best).sum(axis=-1)
    return np.asarray((lost - won) / np.sqrt(np.maximum(lost + won, 1)))


def far_behind(known: dict[int, Array]) -> set[int]:
    """Candidates too far behind the best, from the rows that each has answered rightly."""
    if not known:
        return set()
    right = np.array([*known.values()])
    behind = errors_behind(right, right[right.sum(axis=1).argmax()])
    return {candidate for candidate, far in zip(known, behind, strict=True) if far > _BEHIND}


@dataclass(eq=False)
class _Race:
    """Lines of costs that run together."""

    evaluation: Evaluation
    lines: list[Line]
    known: dict[int, list[Cell]] = field(default_factory=dict)  # of the folds so far
    # Workers know a task by what it is, so that each must last.
    parts: list[Task] = field(default_factory=list)

    def run(self) -> None:
        """Run all rounds, or finish the best so far when time is over."""
        self.evaluation.n_lines += len(self.lines)
        n_folds = len(self.evaluation.task.splits)
        for folds in rounds_of_folds(n_folds):
            self._round(folds)
            if self._is_over:
                break
            if folds.stop < n_folds:
                behind = far_behind(self._right(self._standing()))
                reason = f"{_BEHIND:g} standard errors behind the best after {folds.stop} of"
                self.evaluation.skip(sorted(behind), f"{reason} {n_folds} folds")
        if self.known and not self.evaluation.cells:
            self._finish_best()

    @property
    def _is_over(self) -> bool:
        evaluation = self.evaluation
        return evaluation.clock.is_over and (bool(self.known) or not evaluation.least_one)

    def _standing(self) -> list[int]:
        every = (candidate for line in self.lines for candidate in line.candidates)
        return [candidate for candidate in every if candidate not in self.evaluation.skipped]

    def _right(self, candidates: Sequence[int]) -> dict[int, Array]:
        """Rows that candidates have answered rightly; nothing of those that could not be fitted."""
        found: dict[int, Array] = {}
        for candidate in candidates:
            cells = self.known[candidate]
            told = [cell.right for cell in cells if cell.right is not None]
            if len(told) == len(cells):
                found[candidate] = np.concatenate(told)
        return found

    def _part(self, folds: Sequence[int]) -> Task:
        task = self.evaluation.task
        self.parts.append(replace(task, splits=[task.splits[fold] for fold in folds]))
        return self.parts[-1]

    def _round(self, folds: range) -> None:
        """Run all that are still there on some more folds."""
        standing, part = set(self._standing()), self._part(folds)
        lines = []
        for line in self.lines:
            own = [candidate for candidate in line.candidates if candidate in standing]
            if own:
                lines.append(replace(line, task=part, candidates=own))
        run_lines(self.evaluation, lines, partial(self._along, folds))

    def _along(self, folds: range, line: Line, threads: int) -> Walk[None]:
        """Run a line, as long as its score does not clearly fall."""
        is_last = folds.stop == len(self.evaluation.task.splits)
        best: Array | None = None
        with closing(line.run(line.candidates, threads)) as cells:
            for place, candidate in enumerate(line.candidates):
                if self._is_over:
                    return
                self._note(candidate, folds, (yield partial(next, cells)), is_last)
                right = self._right([candidate]).get(candidate)
                if right is None:
                    continue
                if best is not None and errors_behind(right, best) > _FALLEN:
                    reason = f"the score fell {_FALLEN:g} standard errors along C"
                    self.evaluation.skip(line.candidates[place + 1 :], reason)
                    break
                best = right if best is None or right.sum() > best.sum() else best
        if is_last:
            self.evaluation.finish_line(line)

    def _note(self, candidate: int, folds: range, cells: list[Cell], is_last: bool) -> None:
        more = [replace(cell, split=folds[cell.split]) for cell in cells]
        self.known[candidate] = self.known.get(candidate, []) + more
        if is_last:
            self.evaluation.note(candidate, self.known[candidate])
        else:
            self.evaluation.tell_progress()

    def _finish_best(self) -> None:
        """Run the best of those that came furthest on the folds that it has not seen."""
        evaluation, known = self.evaluation, self.known
        best = max(
            known,
            key=lambda c: (len(known[c]), np.nan_to_num(mean_score(known[c], None), nan=-np.inf)),
        )
        folds = range(len(known[best]), len(evaluation.task.splits))
        line = next(line for line in self.lines if best in line.candidates)
        line = replace(line, task=self._part(folds))
        with closing(line.run([best], threads_for(evaluation.task.n_jobs))) as cells:
            self._note(best, folds, next(cells), is_last=True)


@dataclass(frozen=True, eq=False)
class Rounds:
    """How a task is searched.

    Parameters
    ----------
    metric : str or None
        By which candidates are compared on the way, where there are several; else the first.
    adaptive, halving : bool
    time_limit : float or None
    callback : callable or None
    verbose : int
    workers : list of Worker, optional
        Where several searches on the same samples share what they have made of these.
    """

    metric: str | None
    adaptive: bool
    halving: bool
    time_limit: float | None
    callback: Callable[[Progress], Any] | None
    verbose: int
    workers: list[Worker] | None = None

    def rows(self, task: Task) -> list[Row]:
        """Search, and return a row for each candidate of each round."""
        n_rows = _num_samples(task.X)
        clock = Clock(self.time_limit)
        left = list(range(len(task.candidates)))
        rows: list[Row] = []
        for iteration, count in enumerate(row_counts(n_rows) if self.halving else [n_rows]):
            part = on_part(task, count, n_rows, is_classifier(task.estimator))
            round_ = Evaluation(
                part,
                clock,
                self.metric,
                self.callback,
                self.verbose,
                n_candidates=len(left),
                least_one=iteration == 0,
            )
            lines = assign(part, self.workers or new_workers(), left)
            if self.adaptive:
                racing = [line for line in lines if line.tells_rows]
                evaluate_by_folds(round_, racing)
                evaluate_promising(round_, [line for line in lines if line not in racing])
            else:
                evaluate_all(round_, lines)
            self._tell(round_, iteration)
            rows += [
                Row(
                    c,
                    task.candidates[c],
                    round_.cells.get(c),
                    iteration,
                    count,
                    round_.skipped.get(c),
                )
                for c in left
            ]
            left = sorted(_best(round_, math.ceil(len(left) / FACTOR)))
            if clock.is_over:
                break
        return rows

    def _tell(self, round_: Evaluation, iteration: int) -> None:
        """Say which candidates were skipped, and whether time was over before all were tried."""
        level = logging.INFO if self.verbose else logging.DEBUG
        for reason, count in Counter(round_.skipped.values()).items():
            some = [round_.task.candidates[c] for c, why in round_.skipped.items() if why == reason]
            logger.log(level, "skipped %d of %d, %s: %s", count, round_.n_candidates, reason, some)
        tried, unknown = len(round_.cells), round_.n_candidates - len(round_.skipped)
        if tried < unknown:
            warn_once(
                "time limit of the search",
                f"time_limit={self.time_limit:g} seconds were over after {tried} of "
                f"{round_.n_candidates} candidates{f' in round {iteration}' if iteration else ''}; "
                "the best of those that were tried is taken. Raise time_limit, or give fewer "
                "candidates",
            )


def _best(round_: Evaluation, count: int) -> list[int]:
    """Return the best candidates of a round, earlier ones first where scores are equal."""
    scored = [c for c in round_.cells if not math.isnan(round_.mean(c))]
    return sorted(scored, key=lambda c: (-round_.mean(c), c))[:count]


def final_scores(rows: list[Row], means: Array) -> dict[int, float]:
    """Return the last score of each candidate that came into the last round.

    Those that did not, and those that were skipped since they are worse, have minus infinity; NaN
    means that nothing is known.
    """
    final: dict[int, float] = {}
    for row in rows:
        known = final.get(row.candidate, math.nan)
        is_worse = row.cells is not None or row.skipped is not None
        final[row.candidate] = -math.inf if is_worse else known
    for place in last_round(rows):
        if rows[place].skipped is None:
            final[rows[place].candidate] = float(means[place])
    return final


def last_round(rows: list[Row]) -> list[int]:
    """Return the places of rows that may win: those of the last round in which any was tried."""
    last = max(row.iteration for row in rows if row.cells is not None)
    return [place for place, row in enumerate(rows) if row.iteration == last]
