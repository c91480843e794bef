"""A whole search: its rounds, and what is known of each candidate after them."""

import logging
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sklearn.base import is_classifier
from sklearn.utils.validation import _num_samples

from lokl._arrays import Array
from lokl._notices import tell
from lokl.selection.adaptive import evaluate_promising
from lokl.selection.assignment import assign
from lokl.selection.evaluation import Clock, Evaluation, evaluate_all
from lokl.selection.halving import FACTOR, on_part, row_counts
from lokl.selection.progress import Progress
from lokl.selection.race import evaluate_by_folds
from lokl.selection.table import Row
from lokl.selection.work import Task, Worker
from lokl.selection.workers import new_workers

logger = logging.getLogger("lokl")


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
            tell(
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
