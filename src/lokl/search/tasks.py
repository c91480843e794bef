"""Candidates of a search, their results on folds, and the interface of backends that fit them.

A candidate is a mapping of parameter names to values. Its coordinates are the same parameters in a
form that can be compared and hashed. A list of kernels is taken apart: ``[RBF(0.1)]`` and
``[RBF(1.0)]`` differ in one coordinate, ``kernels__0__gamma``.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.metrics import accuracy_score, r2_score
from sklearn.metrics._scorer import _BaseScorer, _MultimetricScorer, _PassthroughScorer
from sklearn.model_selection._validation import _score
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_method_params

from lokl._arrays import Array, column
from lokl.kernels import Kernel
from lokl.kernels.dictionaries import named_kernels

Params = Mapping[str, Any]
Coordinates = dict[str, Any]
Scores = dict[str, float] | float

# Settings that change the costs of a problem and nothing else.
COST_SETTINGS = ("C", "epsilon", "class_weight")


def coordinates(params: Params) -> Coordinates:
    """Return the parameters of a candidate by name, each hashable and comparable."""
    point: Coordinates = {}
    for name, value in params.items():
        if leaf_name(name) == "kernels":
            point.update(_kernel_coordinates(name, value))
        elif isinstance(value, Kernel):
            point.update(_nested_coordinates(name, value))
        else:
            point[name] = _comparable(value)
    return point


def leaf_name(name: str) -> str:
    """Return a parameter name without its prefix: ``"C"`` for ``"model__C"``."""
    return name.rpartition("__")[2]


def is_number(value: Any) -> bool:
    """Whether a coordinate has an order; True and False have none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def cost_paths(
    candidates: Sequence[Params], indices: Iterable[int], names: Sequence[str] = COST_SETTINGS
) -> list[list[int]]:
    """Group candidates that differ only in cost settings, each group by ascending `C`.

    Parameters
    ----------
    candidates : sequence of mappings
        All candidates.
    indices : iterable of int
        The candidates to group.
    names : sequence of str
        Names of the parameters that may differ, whatever their prefix.

    Returns
    -------
    groups : list of lists of int
        Equal costs keep the order of `indices`.
    """
    points = {index: coordinates(candidates[index]) for index in indices}
    groups: dict[Any, list[int]] = {}
    for index, point in points.items():
        key = frozenset((name, v) for name, v in point.items() if leaf_name(name) not in names)
        groups.setdefault(key, []).append(index)
    return [sorted(group, key=lambda i: largest_cost(points[i])) for group in groups.values()]


def largest_cost(point: Coordinates) -> float:
    """Return the largest `C` among coordinates, 0 without any."""
    costs = [float(v) for name, v in point.items() if leaf_name(name) == "C" and is_number(v)]
    return max(costs, default=0.0)


def _kernel_coordinates(name: str, value: Any) -> Coordinates:
    try:
        kernels = list(named_kernels(value).values())
    except (TypeError, ValueError):
        # The fit of this candidate raises the error.
        return {name: _comparable(value)}
    return _nested_coordinates(name, kernels)


def _nested_coordinates(name: str, value: Any) -> Coordinates:
    """Return the coordinates of kernels, lists of kernels, and kernels made of kernels."""
    if isinstance(value, list | tuple):
        point: Coordinates = {name: len(value)}
        for position, entry in enumerate(value):
            point.update(_nested_coordinates(f"{name}__{position}", entry))
        return point
    if isinstance(value, Kernel):
        point = {name: type(value).__name__}
        for parameter, setting in value.get_params(deep=False).items():
            point.update(_nested_coordinates(f"{name}__{parameter}", setting))
        return point
    return {name: _comparable(value)}


def _comparable(value: Any) -> Any:
    if isinstance(value, bool):
        # Otherwise equal to 1 or 0.
        return repr(value)
    if isinstance(value, str | Real | type(None)):
        return value
    # A grid repeats the objects that it was given.
    return f"{type(value).__name__} at {id(value)}"


@dataclass(frozen=True, eq=False)
class SearchTask:
    """Candidates to fit and score on the same splits of the same samples."""

    estimator: Any  # unfitted, never modified
    candidates: Sequence[dict[str, Any]]  # parameters of each
    X: Any
    y: Any
    splits: list[tuple[Array, Array]]  # training rows, test rows
    # For all samples; arrays of their length are indexed by split.
    fit_params: dict[str, Any] = field(default_factory=dict)
    score_params: dict[str, Any] = field(default_factory=dict)  # likewise, for the scorers
    scorers: Any = None  # scorer(estimator, X, y) returns a number, or a dict of numbers by name
    error_score: Any = np.nan  # score of candidates that cannot be fitted; "raise" raises the error
    return_train_score: bool = False
    n_jobs: int | None = None
    memory: float = 1.0  # fraction of the estimator's memory that all of its fits may use together

    # Configured estimators with what they were made of; tasks on other samples share them.
    _models: dict[tuple[int, int], tuple[Any, Any, Any]] = field(default_factory=dict)

    def model(self, candidate: int) -> Any:
        """Return the unfitted estimator of a candidate, which callers must not modify.

        Copying an estimator with its kernels takes as long as a fit of a hundred samples.
        """
        made_of = self.estimator, self.candidates[candidate]
        key = id(made_of[0]), id(made_of[1])
        *known, model = self._models.get(key, (None, None, None))
        # Another process, or later objects, may have the same identities.
        if not all(one is other for one, other in zip(known, made_of, strict=True)):
            model = self.configured(candidate)
            self._models[key] = (*made_of, model)
        return model

    def configured(self, candidate: int) -> Any:
        """Return a new unfitted estimator with the parameters of a candidate."""
        # Parameters may be estimators themselves, which fits must not share.
        parameters = clone(self.candidates[candidate], safe=False)
        return clone(self.estimator).set_params(**parameters)

    def score(self, fitted: Any, X: Any, y: Any, rows: Array) -> Scores:
        """Return the scores of a fitted estimator on samples and targets, some rows of the task."""
        params = _check_method_params(self.X, self.score_params, rows)
        scores: Scores = _score(fitted, X, y, self.scorers, params, self.error_score)
        return scores

    def failure(self, candidate: int, split: int, seconds: float, error: str) -> "FoldResult":
        """Return the result of a candidate that cannot be fitted."""
        scores: Scores
        if isinstance(self.scorers, _MultimetricScorer):
            scores = dict.fromkeys(self.scorers._scorers, self.error_score)
        else:
            scores = float(self.error_score)
        train_scores = scores if self.return_train_score else None
        return FoldResult(candidate, split, scores, train_scores, seconds, 0.0, error)


@dataclass(frozen=True, eq=False)
class FoldResult:
    """Scores and times of one candidate on one split."""

    candidate: int
    split: int
    test_scores: Scores
    train_scores: Scores | None  # None unless requested
    fit_seconds: float
    score_seconds: float
    error: str | None = None  # traceback, if the candidate could not be fitted
    decision: Array | None = None  # (n_test, n_tasks), if the backend computed it
    # (n_test,), if the score is the mean of a score of each row and the backend computed it
    row_scores: Array | None = None

    def score(self, metric: str | None) -> float:
        """Return the test score by one of several metrics, the first one by default."""
        scores = self.test_scores
        if not isinstance(scores, dict):
            return scores
        return scores[metric] if metric in scores else next(iter(scores.values()))


# One item per candidate: its results on all splits. Closed early once the rest is useless.
FoldResults = Generator[list[FoldResult], None, None]


class FitBackend(ABC):
    """A way to fit and score candidates. It lasts for one search and may cache shared work.

    Attributes
    ----------
    uses_given_threads : bool
        Whether `run` computes in the threads that it is given; otherwise ``n_jobs`` applies.
    """

    uses_given_threads: ClassVar[bool] = False

    @abstractmethod
    def supports(self, task: SearchTask, candidate: int) -> bool:
        """Whether the backend can compute a candidate."""

    @abstractmethod
    def groups(self, task: SearchTask, candidates: list[int]) -> list[list[int]]:
        """Divide supported candidates into groups that share work.

        Each group is in the order in which its candidates are computed. The search may request any
        part of a group, in the same order.
        """

    def reports_row_scores(self, task: SearchTask, candidate: int) -> bool:
        """Whether results contain a score of each test row."""
        return False

    def max_concurrent_groups(self, task: SearchTask, candidates: list[int]) -> int:
        """Return how many groups like this one may run at the same time, one thread each."""
        return 1

    @abstractmethod
    def run(self, task: SearchTask, candidates: list[int], threads: int) -> FoldResults:
        """Yield the results of each candidate of a group on all splits.

        The caller may close the generator; no further fit is started then. `threads` applies to
        backends with `uses_given_threads`.
        """


def uses_predictions_only(scorers: Any) -> bool:
    """Whether scorers use only predictions and decisions; other functions may inspect the model."""
    each = scorers._scorers.values() if isinstance(scorers, _MultimetricScorer) else [scorers]
    return all(isinstance(scorer, _BaseScorer | _PassthroughScorer) for scorer in each)


def score_decisions(
    task: SearchTask, model: Any, rows: Array, decision: Array, X: Any
) -> tuple[Scores, Array | None]:
    """Return the scores of a model whose decisions about some rows are known.

    Parameters
    ----------
    task : SearchTask
    model : KernelEstimator
        Configured, with the attributes that follow from the targets, such as ``classes_``.
    rows : array of int of shape (n,)
        Among the samples of the task.
    decision : array of shape (n, n_tasks)
    X : samples
        Those of the rows. Scorers pass them on to the model, which does not read them unless it has
        probabilities.

    Returns
    -------
    scores : float or dict of str to float
    row_scores : array of shape (n,), or None
        As in :class:`FoldResult`.
    """
    by_row = row_score(task, model)
    if by_row is not None:
        row_scores = by_row(np.asarray(task.y)[rows], model._decode(decision))
        if row_scores is not None:
            return float(np.mean(row_scores)), row_scores
    known = copy(model)
    vars(known)["_decisions"] = lambda X: decision
    return task.score(known, X, _safe_indexing(task.y, rows), rows), None


RowScore = Callable[[Array, Array], Array | None]


def row_score(task: SearchTask, model: Any) -> RowScore | None:
    """Return the function of targets and predictions whose mean over rows is the score.

    None for scores other than accuracy and R squared. The function returns None if the score of
    these targets is not defined.
    """
    scorer = task.scorers
    if task.score_params:
        return None
    if isinstance(scorer, _PassthroughScorer):
        score = _OWN_SCORES.get(type(model).score)
    elif isinstance(scorer, _BaseScorer) and scorer._sign > 0 and not scorer._kwargs:
        score = scorer._score_func
    else:
        return None
    if score is accuracy_score and isinstance(model, ClassifierMixin) and np.ndim(task.y) == 1:
        return np.equal
    return _shares_of_r2 if score is r2_score and isinstance(model, RegressorMixin) else None


_OWN_SCORES: dict[Any, Any] = {
    ClassifierMixin.score: accuracy_score,
    RegressorMixin.score: r2_score,
}


def _shares_of_r2(y: Array, predicted: Array) -> Array | None:
    """Return the share of each row in R squared, the mean over the targets."""
    y = column(y)
    spread = ((y - y.mean(axis=0)) ** 2).mean(axis=0)
    if not (spread > 0).all():
        return None
    return np.asarray((1.0 - (column(predicted) - y) ** 2 / spread).mean(axis=1))


@dataclass(frozen=True, eq=False)
class CandidateGroup:
    """Candidates that a backend computes together, in their order."""

    backend: FitBackend
    task: SearchTask
    candidates: list[int]

    def run(self, threads: int) -> FoldResults:
        """Yield the results of all candidates."""
        return self.backend.run(self.task, self.candidates, threads)

    @property
    def reports_row_scores(self) -> bool:
        """Whether results contain a score of each test row."""
        return self.backend.reports_row_scores(self.task, self.candidates[0])

    @property
    def max_concurrent(self) -> int:
        """Number of groups like this one that may run at the same time."""
        return self.backend.max_concurrent_groups(self.task, self.candidates)

    def cost_paths(self) -> "list[CandidateGroup]":
        """Divide the group into groups that differ only in `C`, in ascending order."""
        paths = cost_paths(self.task.candidates, self.candidates, ("C",))
        return [replace(self, candidates=path) for path in paths]


def choose_backend(task: SearchTask, backends: Sequence[FitBackend], candidate: int) -> FitBackend:
    """Return the first backend that supports a candidate; the last one supports all."""
    return next(backend for backend in backends if backend.supports(task, candidate))


def group_by_backend(
    task: SearchTask, backends: Sequence[FitBackend], candidates: Sequence[int]
) -> list[CandidateGroup]:
    """Assign each candidate to the first backend that supports it, and divide them into groups."""
    chosen = [choose_backend(task, backends, candidate) for candidate in candidates]
    groups = []
    for backend in backends:
        pairs = zip(candidates, chosen, strict=True)
        supported = [candidate for candidate, choice in pairs if choice is backend]
        groups += [CandidateGroup(backend, task, g) for g in backend.groups(task, supported)]
    return groups
