"""Candidates of a search, their results on folds, and the backends that compute them."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from statistics import fmean
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.metrics import accuracy_score
from sklearn.metrics._scorer import _BaseScorer, _MultimetricScorer, _PassthroughScorer

from lokl._arrays import Array
from lokl.kernels import Kernel
from lokl.kernels.dictionaries import named_kernels

Candidate = Mapping[str, Any]
Coordinates = dict[str, Any]


def coordinates(candidate: Candidate) -> Coordinates:
    """Return the parameters of a candidate by name; each is hashable and can be compared."""
    found: Coordinates = {}
    for name, value in candidate.items():
        if last_part(name) == "kernels":
            found.update(_kernel_coordinates(name, value))
        elif isinstance(value, Kernel):
            found.update(_inside(name, value))
        else:
            found[name] = _comparable(value)
    return found


def last_part(name: str) -> str:
    """Return the name of a parameter without the names of the parts that it is in."""
    return name.rpartition("__")[2]


def is_number(value: Any) -> bool:
    """Whether a coordinate has an order; True and False have none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def group(
    candidates: Sequence[Candidate], some: Iterable[int], apart_from: Iterable[str]
) -> list[list[int]]:
    """Put candidates together that are equal apart from some parameters, wherever these are.

    Parameters
    ----------
    candidates : sequence of mappings
        All candidates.
    some : iterable of int
        Those that are put together.
    apart_from : iterable of str
        Last parts of the names of parameters.
    """
    free = set(apart_from)
    groups: dict[Any, list[int]] = {}
    for index in some:
        fixed = coordinates(candidates[index]).items()
        key = frozenset((name, value) for name, value in fixed if last_part(name) not in free)
        groups.setdefault(key, []).append(index)
    return list(groups.values())


def by_cost(candidates: Sequence[Candidate], some: Iterable[int]) -> list[int]:
    """Sort candidates by ascending `C`; those of equal cost stay in the order of the grid."""
    return sorted(some, key=lambda index: cost(coordinates(candidates[index])))


def cost(place: Coordinates) -> float:
    """Largest `C` of a candidate; 0 where none is varied."""
    costs = [float(v) for name, v in place.items() if last_part(name) == "C" and is_number(v)]
    return max(costs, default=0.0)


def _kernel_coordinates(name: str, value: Any) -> Coordinates:
    try:
        kernels = list(named_kernels(value).values())
    except (TypeError, ValueError):
        # The fit of this candidate will say what is wrong with them.
        return {name: _comparable(value)}
    return _inside(name, kernels)


def _inside(place: str, value: Any) -> Coordinates:
    """Take kernels apart, and lists of kernels, and kernels that are made of kernels."""
    if isinstance(value, list | tuple):
        found: Coordinates = {place: len(value)}
        for position, entry in enumerate(value):
            found.update(_inside(f"{place}__{position}", entry))
        return found
    if isinstance(value, Kernel):
        found = {place: type(value).__name__}
        for own, setting in value.get_params(deep=False).items():
            found.update(_inside(f"{place}__{own}", setting))
        return found
    return {place: _comparable(value)}


def _comparable(value: Any) -> Any:
    if isinstance(value, bool):
        # Equal to 1 or 0 otherwise.
        return repr(value)
    if isinstance(value, str | Real | type(None)):
        return value
    # A grid repeats the very objects that it was given.
    return f"{type(value).__name__} at {id(value)}"


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


class _Judged(BaseEstimator):
    """Answers for samples whose decisions are known already.

    Parameters
    ----------
    estimator : KernelEstimator
        Configured, and with the attributes that targets tell, such as classes.
    known : list of (samples, array of shape (n_samples, n_tasks))
        Scorers hand over the very samples they are given, so that these are known by identity.
    """

    def __init__(self, estimator: Any, known: list[tuple[Any, Array]]):
        self.estimator = estimator
        self.known = known

    def decisions(self, X: Any) -> Array:
        """Decisions about samples, (n_samples, n_tasks)."""
        return next(decision for samples, decision in self.known if samples is X)

    def predict(self, X: Any) -> Array:
        return np.asarray(self.estimator._decode(self.decisions(X)))

    def __sklearn_is_fitted__(self) -> bool:
        return True


class _JudgedClassifier(ClassifierMixin, _Judged):
    """Adds what scorers ask of classifiers."""

    @property
    def classes_(self) -> Array:
        return np.asarray(self.estimator.classes_)

    def decision_function(self, X: Any) -> Array:
        decision = self.decisions(X)
        return decision[:, 0] if self.estimator._is_flat() else decision


class _JudgedRegressor(RegressorMixin, _Judged):
    """Adds what scorers ask of regressors."""


def judged(estimator: Any, known: list[tuple[Any, Array]]) -> Any:
    """Return a stand-in for an estimator that has decided about some samples."""
    is_classifier = isinstance(estimator, ClassifierMixin)
    return (_JudgedClassifier if is_classifier else _JudgedRegressor)(estimator, known)


def sees_predictions_only(scorers: Any) -> bool:
    """Whether scorers ask for predictions and decisions alone; a function may look inside."""
    each = scorers._scorers.values() if isinstance(scorers, _MultimetricScorer) else [scorers]
    return all(isinstance(scorer, _BaseScorer | _PassthroughScorer) for scorer in each)


def is_accuracy(task: Task, estimator: Any) -> bool:
    """Whether the score is the share of right answers, which needs no scorer."""
    if task.score_params or np.ndim(task.y) != 1 or not isinstance(estimator, ClassifierMixin):
        return False
    scorer = task.scorers
    if isinstance(scorer, _PassthroughScorer):
        return type(estimator).score is ClassifierMixin.score
    return (
        isinstance(scorer, _BaseScorer)
        and scorer._score_func is accuracy_score
        and scorer._sign > 0
        and not scorer._kwargs
    )


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
