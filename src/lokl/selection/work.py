"""What a search asks and what it is answered: a task, its cells, and who computes them."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, ClassVar

from sklearn.base import clone
from sklearn.metrics._scorer import _MultimetricScorer

from lokl._arrays import Array

Scores = dict[str, float] | float


@dataclass(frozen=True, eq=False)
class Task:
    """Candidates to be fitted and scored on the same splits of the same samples."""

    estimator: Any  # unfitted; stays as it is
    candidates: Sequence[dict[str, Any]]  # parameters of each
    X: Any
    y: Any
    fit_params: dict[str, Any]  # of all samples; what has their length is cut by split
    score_params: dict[str, Any]  # likewise, for the scorers
    splits: list[tuple[Array, Array]]  # rows to learn from, rows to score
    scorers: Any  # scorer(estimator, X, y) gives a number, or a dict of numbers by name
    error_score: Any  # score of a candidate that cannot be fitted; "raise" raises its error
    return_train_score: bool
    n_jobs: int | None
    memory: float = 1.0  # share of an estimator's memory that its fits may use together

    def configured(self, candidate: int) -> Any:
        """Return an unfitted estimator with the parameters of a candidate."""
        # Parameters may be estimators themselves, which a fit must not share.
        parameters = clone(self.candidates[candidate], safe=False)
        return clone(self.estimator).set_params(**parameters)

    def failed_scores(self) -> Scores:
        """Scores of a candidate that cannot be fitted."""
        if isinstance(self.scorers, _MultimetricScorer):
            return dict.fromkeys(self.scorers._scorers, self.error_score)
        return float(self.error_score)


@dataclass(frozen=True, eq=False)
class Cell:
    """One candidate on one split."""

    candidate: int
    split: int
    test_scores: Scores
    train_scores: Scores | None  # None where nobody asked
    fit_seconds: float
    score_seconds: float
    error: str | None = None  # the trace, where the candidate could not be fitted
    decision: Array | None = None  # of the rows to score, where the worker had them at hand
    right: Array | None = None  # whether each row is answered rightly, where that is the score

    def score(self, metric: str | None) -> float:
        """Return the score on the held-out rows by one of several metrics, else the first."""
        scores = self.test_scores
        if not isinstance(scores, dict):
            return scores
        return scores[metric] if metric in scores else next(iter(scores.values()))


# For each candidate of a line, its cells of all splits; closed where the rest is not wanted.
Cells = Generator[list[Cell], None, None]


def mean_score(cells: Sequence[Cell], metric: str | None) -> float:
    """Mean of the scores of a candidate over its splits."""
    return fmean(cell.score(metric) for cell in cells)


class Worker(ABC):
    """Computes cells. It lives for one search, and may keep what its lines share.

    Attributes
    ----------
    takes_threads : bool
        Whether it computes in the threads that it is given; else ``n_jobs`` decides.
    """

    takes_threads: ClassVar[bool] = False

    @abstractmethod
    def takes(self, task: Task, candidate: int) -> bool:
        """Whether the worker can compute a candidate."""

    @abstractmethod
    def lines(self, task: Task, candidates: list[int]) -> list[list[int]]:
        """Divide candidates that it takes into lines, which share work.

        Each line is in the order in which its candidates are computed. The search may ask for any
        part of a line, in the same order.
        """

    def tells_rows(self, task: Task, candidate: int) -> bool:
        """Whether the cells of a candidate tell which rows are answered rightly."""
        return False

    def lines_at_once(self, task: Task, line: list[int]) -> int:
        """How many lines like this one may run at the same time, each in a thread of its own."""
        return 1

    @abstractmethod
    def run(self, task: Task, line: list[int], threads: int) -> Cells:
        """Yield, for each candidate of a line, its cells of all splits.

        Whoever iterates may stop: nothing is then begun any more. `threads` are those that a line
        may use, of a worker that takes them.
        """
