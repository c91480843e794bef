"""The search of AutoMKL: candidates, their scores, and the order in which they are tried.

Single kernels on a coarse grid come first, so that a short search still returns a good model. Their
scores determine which bandwidths and costs to refine, and the costs at which uniform averages and
learned methods are tried.
"""

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from lokl import methods
from lokl._arrays import Array
from lokl._deadline import Deadline
from lokl._methods import METHODS, method_of
from lokl._warnings import capture_warnings, warn_once
from lokl.kernels import RBF, Kernel, Linear, Polynomial
from lokl.kernels.dictionaries import named_kernels
from lokl.search.calibration import Calibration, calibrate_fold_results
from lokl.search.columns import ColumnScaler
from lokl.search.evaluation import evaluate_candidates, new_backends
from lokl.search.tasks import FitBackend, FoldResult, SearchTask, mean_score, standard_error

logger = logging.getLogger("lokl")

Kernels = dict[str, Kernel]

# Bandwidths of RBF kernels: powers of two, times the reciprocal of the median squared distance.
LOW, HIGH, STEP = -4, 2, 2
# Least power of RBF kernels that are centred. The values of wider kernels are all nearly
# equal, so that samples without a view lean to one side.
CENTRED = -2

# Complexity of methods: only an SVM, one weight for each kernel, weights that differ between
# samples, and methods of other libraries.
FIXED, GLOBAL, LOCAL, OTHER = range(4)
AUTO, AUTO_VIEWS = ("UniformMKL", "LpMKL", "SimpleMKL"), ("TrustedVote", "CLMKL")

# Costs are powers of two; finer ones are tried around the best.
_COSTS = range(-3, 10, 2)
_LEAST_COST, _LARGEST_COST = -3, 9
_FIRST_COST = 3
# Costs of a learned method if no uniform average has a score.
_LEARNED_COSTS = (-1, 2, 5)
# Costs up to this ratio are neighbours: the first grid has steps of four.
_NEXT_COST = 4.0 + 1e-9
# Number of views from which learned methods get two kernels of each instead of the dictionary.
_MANY_VIEWS = 4

# With more samples than that, the search uses a part of them, and the best few candidates are
# evaluated on all.
MANY_ROWS, ROWS_OF_PART, SURVIVORS = 6_000, 4_000, 4
# A fit without warm start and to the full tolerance takes this much longer than one of a search.
_SLOWER = 1.5
# Fraction of the time that is kept in reserve.
SPARE = 0.05
# Approximate number of SVMs that a learned method solves for each of its kernels.
_SVMS_PER_KERNEL = 5.0


@dataclass(frozen=True, eq=False)
class ViewKernels:
    """Kernels of one view: columns that belong together, after their preparation."""

    name: str | None  # None if there is only one
    columns: slice | None  # None for all; a list of numbers would be copied one by one
    complete: bool = True  # whether every training sample has the view
    # Number of views that the columns consist of, each with a median squared distance of one.
    n_units: int = 1

    def linear(self) -> Kernels:
        return self._named("linear", Linear().normalized("mean_diag"))

    def quadratic(self) -> Kernels:
        # Squared norms are about 1/2: gamma 2 gives linear and quadratic terms a similar share.
        kernel = Polynomial(2, gamma=2.0 / self.n_units).normalized("mean_diag")
        return self._named("quadratic", kernel)

    def rbf(self, power: int) -> Kernels:
        return self._named(f"rbf(2^{power})", RBF(2.0**power / self.n_units))

    def dictionary(self, low: int = LOW) -> Kernels:
        """Return all kernels of the view together, RBF kernels from the power `low` on."""
        rbfs = [self.rbf(power) for power in range(low, HIGH + 1, STEP)]
        return _merge([self.linear(), self.quadratic(), *rbfs])

    def _named(self, name: str, kernel: Kernel) -> Kernels:
        return {
            name if self.name is None else f"{self.name}: {name}": (
                kernel if self.columns is None else kernel.on(self.columns)
            )
        }


def adjacent_views(
    names: Sequence[str], widths: Sequence[int], complete: Sequence[bool]
) -> list[ViewKernels]:
    """Return views whose columns follow one another, with `widths` columns each."""
    ends = np.cumsum(widths).tolist()
    return [
        ViewKernels(name, slice(end - width, end), is_complete)
        for name, width, end, is_complete in zip(names, widths, ends, complete, strict=True)
    ]


def single_kernels(kernels: Any) -> list[Kernels]:
    """Return the kernels of a user, each alone."""
    return [{name: kernel} for name, kernel in named_kernels(kernels).items()]


def _merge(lists: Sequence[Kernels]) -> Kernels:
    return {name: kernel for kernels in lists for name, kernel in kernels.items()}


@dataclass(frozen=True, eq=False)
class MethodSpec:
    """A method: an estimator that is configured except for kernels and cost."""

    name: str
    estimator: Any
    level: int  # complexity


@dataclass(frozen=True, eq=False)
class Candidate:
    """A method with kernels and cost; methods of other libraries have neither."""

    spec: MethodSpec
    kernels: Mapping[str, Kernel] | None = None
    cost: float | None = None

    @property
    def method(self) -> str:
        """Name of the method, as the leaderboard shows it."""
        is_single = self.spec.level == FIXED and len(self.kernels or ()) == 1
        return "one kernel" if is_single else self.spec.name

    @property
    def params(self) -> dict[str, Any]:
        """Parameters of the pipeline."""
        if self.kernels is None:
            return {}
        return {"model__kernels": dict(self.kernels), "model__C": self.cost}

    @property
    def key(self) -> Any:
        """A value that is equal for equal candidates."""
        return *self.path_key, self.cost

    @property
    def path_key(self) -> Any:
        """A value that is equal for candidates that differ only in their cost."""
        return id(self.spec), tuple(self.kernels or ())

    @property
    def complexity(self) -> tuple[float, ...]:
        return self.spec.level, self.cost or 0.0, len(self.kernels or ())


@dataclass(frozen=True, eq=False)
class CandidateScore:
    """A candidate with its results on all folds."""

    candidate: Candidate
    fold_results: Sequence[FoldResult]
    n_rows: int  # number of samples in the folds

    @cached_property
    def mean(self) -> float:
        """Mean held-out score; NaN if a fold failed."""
        return float(mean_score(self.fold_results))

    @property
    def standard_error(self) -> float:
        return standard_error([result.score(None) for result in self.fold_results])

    @property
    def fit_seconds(self) -> float:
        """Mean time of the fit of one fold."""
        return float(np.mean([result.fit_seconds for result in self.fold_results]))

    @property
    def seconds(self) -> float:
        """Time of all folds."""
        return sum(result.fit_seconds + result.score_seconds for result in self.fold_results)

    @property
    def error(self) -> str | None:
        """Last line of the traceback of the first failed fit."""
        traces = [result.error for result in self.fold_results if result.error is not None]
        return traces[0].strip().splitlines()[-1] if traces else None

    def as_row(self) -> "LeaderboardRow":
        candidate = self.candidate
        return LeaderboardRow(
            candidate.method,
            ", ".join(candidate.kernels or ()),
            candidate.cost,
            self.mean,
            self.standard_error,
            self.seconds,
            self.n_rows,
            self.error,
        )


def method_specs(
    methods: Any, kind: str, several_views: bool, settings: Mapping[str, Any]
) -> list[MethodSpec]:
    """Return the requested methods.

    Parameters
    ----------
    methods : "auto", or a list of names and estimators
    kind : {"Classifier", "Regressor"}
    several_views : bool
        Whether "auto" includes methods for several views.
    settings : mapping
        Settings of every estimator that is created here and has them.
    """
    if isinstance(methods, str) and methods == "auto":
        methods = [*AUTO, *(AUTO_VIEWS if several_views else ())]
    elif isinstance(methods, str) or hasattr(methods, "fit"):
        methods = [methods]
    if not isinstance(methods, Sequence) or not len(methods):
        raise ValueError(
            f'methods must be "auto" or a list of names and estimators, got {methods!r}'
        )
    return [
        _spec_by_name(item, kind, settings) if isinstance(item, str) else _spec_of(item, kind)
        for item in methods
    ]


def _spec_by_name(name: str, kind: str, settings: Mapping[str, Any]) -> MethodSpec:
    for method in METHODS:
        class_name = method.classifier if kind == "Classifier" else method.regressor
        names = {method.name, method.stem, class_name}
        if class_name and name.lower() in {str(known).lower() for known in names}:
            estimator = getattr(methods, class_name)()
            available = estimator.get_params(deep=False)
            estimator.set_params(**{k: v for k, v in settings.items() if k in available})
            return MethodSpec(method.name, estimator, _level(method))
    stems = [m.stem for m in METHODS if kind == "Classifier" or m.regressor]
    raise ValueError(
        f'unknown method {name!r}; choose "auto", {", ".join(stems)}, or pass an estimator'
    )


def _spec_of(estimator: Any, kind: str) -> MethodSpec:
    is_right_kind = is_classifier if kind == "Classifier" else is_regressor
    if not isinstance(estimator, BaseEstimator) or not is_right_kind(estimator):
        raise ValueError(
            f"methods contains {estimator!r}, which is not a {kind.lower()}; pass names or "
            f"{kind.lower()}s"
        )
    method = method_of(estimator)
    if method is None:
        return MethodSpec(type(estimator).__name__, clone(estimator), OTHER)
    return MethodSpec(method.name, clone(estimator), _level(method))


def _level(method: Any) -> int:
    if method.learns == "nothing":
        return FIXED
    return LOCAL if method.can("localized") else GLOBAL


class LeaderboardRow(NamedTuple):
    """Cross-validation results of a candidate."""

    method: str
    kernels: str
    C: float | None
    score: float  # mean held-out score
    score_error: float  # its standard error
    seconds: float  # time of all folds
    n_samples: int  # number of samples in the folds
    error: str | None  # why it could not be fitted


@dataclass(eq=False)
class Leaderboard:
    """Scores of all candidates so far.

    Parameters
    ----------
    scores : list of CandidateScore
    is_eligible : callable
        Whether a candidate may be chosen.
    """

    scores: list[CandidateScore] = field(default_factory=list)
    is_eligible: Callable[[Candidate], bool] = lambda candidate: True

    def add(self, scores: Iterable[CandidateScore]) -> None:
        self.scores += scores

    @property
    def fitted(self) -> list[CandidateScore]:
        """Scores of the candidates that could be fitted."""
        return [score for score in self.scores if not math.isnan(score.mean)]

    def contains(self, candidate: Candidate, n_rows: int) -> bool:
        """Whether a candidate was evaluated on this number of samples."""
        return candidate.key in {s.candidate.key for s in self.scores if s.n_rows == n_rows}

    def best(
        self, condition: Callable[[CandidateScore], bool] | None = None
    ) -> CandidateScore | None:
        """Return the best score that meets a condition; the simplest of equal ones."""
        some = [score for score in self.fitted if condition is None or condition(score)]
        return min(some, key=_rank, default=None)

    def best_candidate(self, rule: str) -> CandidateScore | None:
        """Choose a candidate among those that were evaluated on the most samples.

        With "one_se", the simplest kind of method is chosen that has a candidate within one
        standard error of the best: single kernels and uniform averages, then learned weights, then
        weights that differ between samples. Of this kind, the candidate is chosen whose score is
        also high at neighbouring costs.
        """
        eligible = [score for score in self.fitted if self.is_eligible(score.candidate)]
        most_rows = max((score.n_rows for score in eligible), default=0)
        final = [score for score in eligible if score.n_rows == most_rows]
        best = min(final, key=_rank, default=None)
        if best is None or rule == "best":
            return best
        near = [score for score in final if score.mean >= best.mean - best.standard_error]
        simplest = min(score.candidate.spec.level for score in near)
        kind = [score for score in final if score.candidate.spec.level == simplest]
        return min(kind, key=lambda score: (-_smoothed_mean(kind, score), *_rank(score)))

    def survivors(self, count: int) -> list[Candidate]:
        """Return the best few candidates, with at least one that learns no weights."""
        eligible = [score for score in self.fitted if self.is_eligible(score.candidate)]
        ranked = [score.candidate for score in sorted(eligible, key=_rank)]
        simplest = [candidate for candidate in ranked if candidate.spec.level == FIXED][:1]
        return [*ranked[:count], *(c for c in simplest if c not in ranked[:count])]

    def rows(self) -> list[LeaderboardRow]:
        """Return all candidates, best first, those that could not be fitted last."""
        order = sorted(
            self.scores, key=lambda score: (math.isnan(score.mean), -score.n_rows, *_rank(score))
        )
        return [score.as_row() for score in order]

    def cold_fit_seconds(self, score: CandidateScore) -> float:
        """Return the time of a fit without warm start: the sum over all smaller costs."""
        return sum(
            other.fit_seconds
            for other in self.scores
            if other.n_rows == score.n_rows
            and other.candidate.path_key == score.candidate.path_key
            and (other.candidate.cost or 0.0) <= (score.candidate.cost or 0.0)
        )


def _rank(score: CandidateScore) -> tuple[float, ...]:
    return -score.mean, *score.candidate.complexity


def _smoothed_mean(scores: Sequence[CandidateScore], score: CandidateScore) -> float:
    """Return the average of the mean score, counted twice, and those at neighbouring costs.

    The true score changes slowly with the cost, so that a lone peak is chance.
    """
    cost = score.candidate.cost
    if cost is None:
        return score.mean
    near = [
        other.mean
        for other in scores
        if other.candidate.path_key == score.candidate.path_key
        and other.candidate.cost is not None
        and cost / _NEXT_COST <= other.candidate.cost <= cost * _NEXT_COST
    ]
    return (score.mean + sum(near)) / (1 + len(near))


@dataclass(frozen=True, eq=False)
class EvaluationData:
    """Samples, folds, preparation and score that all candidates share.

    Parameters
    ----------
    X : array or CSR matrix
        Numeric columns, not yet prepared.
    y : array
    weight : array or None
    splits : list of (train, test)
        Row numbers.
    scorer : callable
    prepare : ColumnScaler
    n_jobs, verbose
        As in ``KernelSearchCV``.
    rows : array
        Row numbers of these samples among all samples passed to `fit`.
    """

    X: Any
    y: Array
    weight: Array | None
    splits: list[tuple[Array, Array]]
    scorer: Any
    prepare: ColumnScaler
    n_jobs: int | None
    verbose: int
    rows: Array
    # Candidates share prepared samples.
    backends: list[FitBackend] = field(default_factory=new_backends)

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    def subset(self, rows: Array) -> "EvaluationData":
        """Return some of the samples, in the same folds; folds that become empty are dropped."""
        position = np.full(self.n_rows, -1)
        position[rows] = np.arange(len(rows))

        def positions(selected: Array) -> Array:
            return position[selected][position[selected] >= 0]

        splits = [(positions(train), positions(test)) for train, test in self.splits]
        return replace(
            self,
            X=self.X[rows],
            y=self.y[rows],
            weight=None if self.weight is None else self.weight[rows],
            splits=[(train, test) for train, test in splits if len(train) and len(test)],
            rows=self.rows[rows],
        )

    def evaluate(
        self, candidates: Iterable[Candidate], seconds: float | None
    ) -> list[CandidateScore]:
        """Cross-validate candidates within a time limit; return those that were evaluated."""
        by_method: dict[int, list[Candidate]] = {}
        for candidate in candidates:
            by_method.setdefault(id(candidate.spec), []).append(candidate)
        scores = []
        for same_method in by_method.values():
            evaluate = partial(
                evaluate_candidates,
                self._task(same_method),
                adaptive=True,
                time_limit=seconds,
                verbose=self.verbose,
                backends=self.backends,
            )
            # Errors and warnings of single candidates are shown by the leaderboard only.
            rows, _ = capture_warnings(evaluate)
            scores += [
                CandidateScore(same_method[row.candidate], row.fold_results, self.n_rows)
                for row in rows
                if row.fold_results is not None
            ]
        return scores

    def fit(self, candidate: Candidate) -> Pipeline:
        """Fit a candidate on all samples."""
        model = self._pipeline(candidate).set_params(**candidate.params)
        return model.fit(self.X, self.y, **self._fit_params(candidate))

    def calibration(self, score: CandidateScore) -> Calibration | None:
        """Return the calibration of a candidate, None if decisions are unknown."""
        return calibrate_fold_results(self._task([score.candidate]), score.fold_results)

    def _task(self, same_method: Sequence[Candidate]) -> SearchTask:
        return SearchTask(
            estimator=self._pipeline(same_method[0]),
            candidates=[candidate.params for candidate in same_method],
            X=self.X,
            y=self.y,
            fit_params=self._fit_params(same_method[0]),
            score_params={} if self.weight is None else {"sample_weight": self.weight},
            splits=self.splits,
            scorers=self.scorer,
            error_score=np.nan,
            return_train_score=False,
            n_jobs=self.n_jobs,
        )

    def _pipeline(self, candidate: Candidate) -> Pipeline:
        model = clone(candidate.spec.estimator)
        return Pipeline([("prepare", clone(self.prepare)), ("model", model)])

    def _fit_params(self, candidate: Candidate) -> dict[str, Any]:
        if self.weight is None:
            return {}
        if not has_fit_parameter(candidate.spec.estimator, "sample_weight"):
            name = type(candidate.spec.estimator).__name__
            raise ValueError(f"{name} does not support sample_weight; omit one of both")
        return {"prepare__sample_weight": self.weight, "model__sample_weight": self.weight}


def draw_rows(y: Array, count: int, stratify: bool, rng: np.random.RandomState) -> Array:
    """Return the numbers of random rows, with all classes in proportion but at least ten rows."""
    if not stratify:
        return np.sort(rng.permutation(len(y))[:count])
    _, codes = np.unique(y, return_inverse=True)
    chosen = []
    for code in range(codes.max() + 1):
        members = np.flatnonzero(codes == code)
        least = min(len(members), 10)
        n_drawn = max(least, round(count * len(members) / len(y)))
        chosen.append(rng.permutation(members)[:n_drawn])
    return np.sort(np.concatenate(chosen))


Batch = list[Candidate]


@dataclass(frozen=True, eq=False)
class CandidateSchedule:
    """Candidates in the order in which they are tried: cheap and promising ones first.

    Parameters
    ----------
    specs : sequence of MethodSpec
    views : sequence of ViewKernels
    given : list of kernels, each alone, or None
        Kernels of the user instead of those of the views.
    unit_cost : float
        Factor of all costs: the spread of the targets of a regression, else 1.
    is_time_limited : bool
        Whether to start with one candidate that is seldom bad.
    every_view : bool
        Whether only candidates with kernels of their own for each view may be chosen.
    """

    specs: Sequence[MethodSpec]
    views: Sequence[ViewKernels]
    given: list[Kernels] | None
    unit_cost: float
    is_time_limited: bool = False
    every_view: bool = False

    def is_eligible(self, candidate: Candidate) -> bool:
        """Whether a candidate may be chosen."""
        if not self.every_view or candidate.kernels is None:
            return True
        # Single kernels of views are still evaluated: they show which bandwidth suits a view.
        used = {str(getattr(kernel, "columns", None)) for kernel in candidate.kernels.values()}
        return used == {str(view.columns) for view in self.views}

    def batches(self, leaderboard: Leaderboard) -> Iterator[Batch]:
        """Yield candidates, each batch depending on the scores of those before."""
        for spec in self._at_level(FIXED):
            yield from self._uniform(spec, leaderboard)
        for level in (GLOBAL, LOCAL):
            for spec in self._at_level(level):
                yield from self._learned(spec, leaderboard)
        for spec in self._at_level(OTHER):
            yield [Candidate(spec)]

    @property
    def _powers(self) -> range:
        """Powers of bandwidths; samples without a view need centred kernels."""
        return range(CENTRED if self.every_view else LOW, HIGH + 1, STEP)

    def _at_level(self, level: int) -> list[MethodSpec]:
        return [spec for spec in self.specs if spec.level == level]

    def _at_costs(
        self, spec: MethodSpec, lists: Sequence[Kernels], powers: Sequence[float]
    ) -> Batch:
        return [
            Candidate(spec, kernels, self.unit_cost * 2.0**power)
            for kernels in lists
            for power in powers
        ]

    def _uniform(self, spec: MethodSpec, leaderboard: Leaderboard) -> Iterator[Batch]:
        """Yield single kernels and uniform averages."""
        if self.given is not None:
            yield self._at_costs(spec, [*self.given, _merge(self.given)], _COSTS)
            yield self._finer_costs(spec, leaderboard)
            return
        alone = self._alone()
        if self.is_time_limited:
            first = self.views if self.every_view else alone[:1]
            yield self._at_costs(spec, [_merge([view.rbf(0) for view in first])], [_FIRST_COST])
        kernels = [view.rbf(power) for view in alone for power in self._powers]
        if len(self.views) > 1:
            kernels += [self._same_power(power) for power in self._powers]
        for view in alone:
            kernels += [view.linear(), view.quadratic()]
        yield self._at_costs(spec, kernels, _COSTS)
        yield [
            *self._finer_bandwidths(spec, leaderboard),
            *self._finer_costs(spec, leaderboard),
            *self._at_costs(spec, self._averages(leaderboard), self._costs_near_best(leaderboard)),
        ]

    def _alone(self) -> list[ViewKernels]:
        """Return the views for single kernels: all as one, and each that no sample lacks."""
        complete = [view for view in self.views if view.complete]
        if self.every_view or not len(complete) == len(self.views) > 1:
            return complete
        return [ViewKernels("all", None, n_units=len(self.views)), *complete]

    def _same_power(self, power: int) -> Kernels:
        """Return an RBF kernel of the same power for each view."""
        return _merge([view.rbf(power) for view in self.views])

    def _finer_bandwidths(self, spec: MethodSpec, leaderboard: Leaderboard) -> Batch:
        """Return bandwidths between those of the coarse grid, next to the best one."""
        best = leaderboard.best(_is_of(spec))
        if best is None or best.candidate.kernels is None:
            return []
        names = set(best.candidate.kernels)
        for kernels_at in [*(view.rbf for view in self._alone()), self._same_power]:
            for power in self._powers:
                if names == set(kernels_at(power)):
                    powers = (power - 1, power + 1)
                    allowed = [p for p in powers if p >= CENTRED or not self.every_view]
                    near = [kernels_at(p) for p in allowed]
                    return self._at_costs(spec, near, self._costs_near_best(leaderboard))
        return []

    def _finer_costs(self, spec: MethodSpec, leaderboard: Leaderboard) -> Batch:
        best = leaderboard.best(_is_of(spec))
        if best is None or best.candidate.kernels is None:
            return []
        return self._at_factors(best.candidate, (0.5, 2.0))

    def _at_factors(self, candidate: Candidate, factors: Sequence[float]) -> Batch:
        """Return a candidate at multiples of its cost that are in the range of costs."""
        assert candidate.cost is not None
        low, high = self.unit_cost * 2.0**_LEAST_COST, self.unit_cost * 2.0**_LARGEST_COST
        costs = [factor * candidate.cost for factor in factors]
        return [replace(candidate, cost=c) for c in costs if 0.99 * low <= c <= 1.01 * high]

    def _costs_near_best(self, leaderboard: Leaderboard) -> list[float]:
        """Return powers of costs around the cost of the best candidate so far."""
        best = leaderboard.best(lambda score: score.candidate.cost is not None)
        if best is None or best.candidate.cost is None:
            return list(_LEARNED_COSTS)
        power = math.log2(best.candidate.cost / self.unit_cost)
        near = {min(max(power + step, _LEAST_COST), _LARGEST_COST) for step in (-2, 0, 2)}
        return sorted(near)

    def _averages(self, leaderboard: Leaderboard) -> list[Kernels]:
        """Return kernels to average: the whole dictionary, and the best kernels of each view."""
        best = [self._best_of(view, leaderboard) for view in self.views]
        with_linear = _merge([*best, *(view.linear() for view in self.views)])
        averages = [self._dictionary(leaderboard), with_linear]
        return [*averages, _merge(best)] if len(self.views) > 1 else averages

    def _best_of(self, view: ViewKernels, leaderboard: Leaderboard) -> Kernels:
        """Return the RBF kernel of a view with the best score alone; by default the middle one."""
        by_names = {tuple(view.rbf(p)): view.rbf(p) for p in range(LOW - 1, HIGH + 2)}
        best = leaderboard.best(lambda score: tuple(score.candidate.kernels or ()) in by_names)
        if best is None or best.candidate.kernels is None:
            return view.rbf(0)
        return by_names[tuple(best.candidate.kernels)]

    def _dictionary(self, leaderboard: Leaderboard) -> Kernels:
        """Return all kernels that a learned method may choose from."""
        if self.given is not None:
            return _merge(self.given)
        if len(self.views) < _MANY_VIEWS:
            return _merge([view.dictionary(self._powers.start) for view in self.views])
        return _merge([{**self._best_of(v, leaderboard), **v.linear()} for v in self.views])

    def _learned(self, spec: MethodSpec, leaderboard: Leaderboard) -> Iterator[Batch]:
        """Yield a method that learns weights, at the cost of the best average, then around it."""
        kernels = self._dictionary(leaderboard)
        if spec.level == LOCAL and self.given is None and len(self.views) > 1:
            kernels = _merge([self._best_of(view, leaderboard) for view in self.views])
        average = leaderboard.best(lambda score: len(score.candidate.kernels or ()) > 1)
        if average is None or average.candidate.cost is None:
            yield self._at_costs(spec, [kernels], _LEARNED_COSTS)
        else:
            yield [Candidate(spec, kernels, average.candidate.cost)]
        best = leaderboard.best()
        # Costs are refined only if the method is better than everything simpler.
        if best is not None and best.candidate.spec is spec:
            yield self._at_factors(best.candidate, (0.25, 4.0))


def _is_of(spec: MethodSpec) -> Callable[[CandidateScore], bool]:
    return lambda score: score.candidate.spec is spec


@dataclass(eq=False)
class AutoSearch:
    """Evaluation of scheduled candidates within a time limit, and the final fit.

    Parameters
    ----------
    data : EvaluationData
    schedule : CandidateSchedule
    rule : {"best", "one_se"}
    time_limit : float or None
        Seconds for search and final fit.
    deadline : Deadline
        End of the search, some time before that of the time limit.
    stratify : bool
        Whether parts of the samples contain all classes in proportion.
    rng : RandomState
    """

    data: EvaluationData
    schedule: CandidateSchedule
    rule: str
    time_limit: float | None
    deadline: Deadline
    stratify: bool
    rng: np.random.RandomState

    def __post_init__(self) -> None:
        self.leaderboard = Leaderboard(is_eligible=self.schedule.is_eligible)

    def run(self) -> None:
        """Evaluate candidates until all were tried or time is over."""
        self._run_schedule(self._search_data)
        if not self.leaderboard.fitted:
            self._raise_all_failed()
        if self.data.n_rows > MANY_ROWS:
            for candidate in self.leaderboard.survivors(SURVIVORS):
                if not self._evaluate(self.data, [candidate]):
                    return

    def best(self) -> CandidateScore:
        """Return the chosen candidate."""
        best = self.leaderboard.best_candidate(self.rule)
        assert best is not None
        return best

    def fit_best(self, best: CandidateScore) -> tuple[Pipeline, Array]:
        """Fit a candidate on all samples, or on as many as time allows; return also their rows."""
        data, n = self.data, self.data.n_rows
        expected = self._final_seconds(best)
        left = max(self.deadline.remaining(), 0.05 * (self.time_limit or 0.0))
        if expected > left:
            count = max(int(n * np.sqrt(left / expected)), min(n, 500))
            if count < n:
                rows = draw_rows(data.y, count, self.stratify, self.rng)
                data = data.subset(rows)
                warn_once(
                    "fewer samples than given",
                    f"time_limit={self.time_limit:g} seconds are too few for a fit on all {n} "
                    f"samples: the model was fitted on {len(rows)} of them; raise time_limit",
                )
        return data.fit(best.candidate), data.rows

    def calibration(self, best: CandidateScore) -> Calibration | None:
        """Return the calibration of a candidate from its held-out decisions."""
        return self._data_of(best).calibration(best)

    def _run_schedule(self, data: EvaluationData) -> None:
        for batch in self.schedule.batches(self.leaderboard):
            fresh: dict[object, Candidate] = {}
            for candidate in batch:
                if not self.leaderboard.contains(candidate, data.n_rows):
                    fresh.setdefault(candidate.key, candidate)
            if fresh and not self._evaluate(data, list(fresh.values())):
                return

    def _evaluate(self, data: EvaluationData, batch: Batch) -> bool:
        """Evaluate candidates; return False if time is over."""
        left = self.deadline.remaining() - self._reserved_seconds()
        if self.leaderboard.scores and left <= 0:
            return False
        if self.leaderboard.fitted and self._expected_seconds(data, batch[0]) > left:
            # There may be time for a later, cheaper batch.
            return True
        scores = data.evaluate(batch, None if self.time_limit is None else max(left, 1e-3))
        self.leaderboard.add(scores)
        best = self.leaderboard.best()
        logger.log(
            logging.INFO if data.verbose else logging.DEBUG,
            "%s: %d of %d candidates tried, best score so far %.4g",
            batch[0].method,
            len(scores),
            len(batch),
            math.nan if best is None else best.mean,
        )
        return not self.deadline.passed

    def _expected_seconds(self, data: EvaluationData, candidate: Candidate) -> float:
        """Return the time that a candidate may take; 0 without a time limit."""
        best = self.leaderboard.best()
        if self.time_limit is None or best is None:
            return 0.0
        growth = (data.n_rows / best.n_rows) ** 2
        seconds = growth * len(data.splits) * self.leaderboard.cold_fit_seconds(best)
        if candidate.spec.level >= GLOBAL:
            seconds *= _SVMS_PER_KERNEL * len(candidate.kernels or (1,))
        return seconds

    def _reserved_seconds(self) -> float:
        """Return the time to reserve for the final fit."""
        best = self.leaderboard.best_candidate(self.rule)
        if self.time_limit is None or best is None:
            return 0.0
        # A search without candidates is worse than a model of a part of the samples.
        return min(self._final_seconds(best), 0.5 * self.time_limit)

    def _final_seconds(self, best: CandidateScore) -> float:
        """Return the expected time of the final fit; 0 without a time limit."""
        if self.time_limit is None:
            return 0.0
        n_train = np.mean([len(train) for train, _ in self._data_of(best).splits])
        growth = (self.data.n_rows / float(n_train)) ** 2
        return _SLOWER * growth * self.leaderboard.cold_fit_seconds(best)

    def _data_of(self, score: CandidateScore) -> EvaluationData:
        return self.data if score.n_rows == self.data.n_rows else self._search_data

    @cached_property
    def _search_data(self) -> EvaluationData:
        """All samples, or a random part of many."""
        if self.data.n_rows <= MANY_ROWS:
            return self.data
        return self.data.subset(draw_rows(self.data.y, ROWS_OF_PART, self.stratify, self.rng))

    def _raise_all_failed(self) -> None:
        errors = [score.error for score in self.leaderboard.scores if score.error is not None]
        raise ValueError(
            f"none of the {len(self.leaderboard.scores)} candidates could be fitted; the first "
            f"error is: {errors[0] if errors else 'no score is a number'}"
        )
