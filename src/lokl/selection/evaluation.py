"""The way through the lines of a grid: cells as they come, until done or out of time."""

import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from lokl.selection.assignment import Line
from lokl.selection.progress import Progress
from lokl.selection.work import Cell, Task, mean_score

logger = logging.getLogger("lokl")


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

    def evaluate(self, line: Line, candidates: list[int]) -> None:
        """Compute some candidates of a line, as far as there is time."""
        with closing(line.run(candidates)) as cells:
            for candidate in candidates:
                if self.is_over:
                    return
                self._note(candidate, next(cells))

    def means_along(self, line: Line) -> Iterator[float]:
        """Yield the mean score of each candidate of a line, computed where it is not known yet.

        Ends early where time is over; whoever iterates may stop, too.
        """
        fresh = [candidate for candidate in line.candidates if candidate not in self.cells]
        self.n_done_lines += 1
        with closing(line.run(fresh)) as cells:
            for candidate in line.candidates:
                if candidate not in self.cells:
                    if self.is_over:
                        return
                    self._note(candidate, next(cells))
                yield self.mean(candidate)

    def finish_line(self, line: Line) -> None:
        """Log that a line is done."""
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

    def _note(self, candidate: int, cells: list[Cell]) -> None:
        self.cells[candidate] = cells
        mean = self.mean(candidate)
        if not math.isnan(mean) and (self.best is None or mean > self.mean(self.best)):
            self.best = candidate
        if self.callback is not None:
            self.callback(self._progress())

    def _progress(self) -> Progress:
        best = self.best
        return Progress(
            line=self.n_done_lines,
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
    for line in lines:
        if evaluation.is_over:
            return
        for _ in evaluation.means_along(line):
            pass
        evaluation.finish_line(line)
