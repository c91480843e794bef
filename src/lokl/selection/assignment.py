"""Who computes which candidates, in which lines."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lokl.selection.grid import by_cost, group
from lokl.selection.work import Cells, Task, Worker


@dataclass(frozen=True, eq=False)
class Line:
    """Candidates that a worker computes together, in their order."""

    worker: Worker
    task: Task
    candidates: list[int]

    def run(self, candidates: list[int], threads: int) -> Cells:
        """Yield the cells of some of the candidates."""
        return self.worker.run(self.task, candidates, threads)

    @property
    def tells_rows(self) -> bool:
        """Whether cells of the line tell which rows are answered rightly."""
        return self.worker.tells_rows(self.task, self.candidates[0])

    @property
    def at_once(self) -> int:
        """How many lines like this one may run at the same time."""
        return self.worker.lines_at_once(self.task, self.candidates)

    def by_cost(self) -> "list[Line]":
        """Divide the line into lines that differ in nothing but `C`, in ascending order."""
        every = self.task.candidates
        parts = group(every, self.candidates, apart_from=("C",))
        return [replace(self, candidates=by_cost(every, part)) for part in parts]


def who_takes(task: Task, workers: Sequence[Worker], candidate: int) -> Worker:
    """Return the first worker that takes a candidate; the last takes all."""
    return next(worker for worker in workers if worker.takes(task, candidate))


def assign(task: Task, workers: Sequence[Worker], candidates: Sequence[int]) -> list[Line]:
    """Give each candidate to the first worker that takes it, and divide them into its lines."""
    takers = [who_takes(task, workers, candidate) for candidate in candidates]
    lines = []
    for worker in workers:
        pairs = zip(candidates, takers, strict=True)
        own = [candidate for candidate, taker in pairs if taker is worker]
        lines += [Line(worker, task, line) for line in worker.lines(task, own)]
    return lines
