"""The way through the lines of a grid: cells as they come, until done or out of time."""

import logging
import math
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Any

from lokl.selection.assignment import Line
from lokl.selection.in_step import threads_for
from lokl.selection.progress import Progress
from lokl.selection.side_by_side import Walk, side_by_side
from lokl.selection.work import Cell, Task, mean_score

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
