"""A race over folds: who is far behind after some of them is not asked about the others.

All candidates start on the first fold. Two of them disagree about some of its rows: one is right
there and the other is not. Were they equally good, each would win about half of these rows, and one
would be ahead by the square root of their number, give or take: the standard error of the
difference. Who is too many standard errors behind the best leaves the race, and the others go on to
the next folds, where differences show more sharply.

Along rising costs the score has one summit: where it is clearly below that of a smaller cost, all
larger costs leave as well.

Everybody has run a fold before anybody is compared with the best, and lines do not look at each
other while they run: who leaves does not depend on threads.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from lokl._arrays import Array
from lokl.selection.assignment import Line
from lokl.selection.evaluation import Evaluation, run_lines
from lokl.selection.in_step import threads_for
from lokl.selection.side_by_side import Walk
from lokl.selection.work import Cell, Task, mean_score

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
