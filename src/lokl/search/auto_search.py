"""Kernels that are tried: for each view linear, quadratic, and RBF of several widths.

What is compared: a method with its kernels and its cost, and what cross-validation says.

All candidates so far, who leads, and the table that users see.

Where candidates meet: the same samples, folds, preparation and score for all of them.

In which order candidates are tried: cheap and promising ones first, each stage from the last.

Single kernels on a coarse grid come first, so that little time still gives a good model. What wins
there says around which width and cost to look closer, and at which costs mixes and learned methods
are worth their time.

The way from samples to a winner: stages of candidates within the time that there is.
"""

import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from lokl import methods
from lokl._arrays import Array
from lokl._methods import METHODS, method_of
from lokl._warnings import capture_warnings, warn_once
from lokl.kernels import RBF, Kernel, Linear, Polynomial
from lokl.kernels.dictionaries import named_kernels
from lokl.search.calibration import Calibration
from lokl.search.columns import PrepareColumns
from lokl.search.evaluation import Rounds, new_workers
from lokl.search.search import calibration_of
from lokl.search.tasks import Cell, Task, Worker, mean_score

Kernels = dict[str, Kernel]

# Powers of two, as multiples of the reciprocal of the median squared distance.
LOW, HIGH, STEP = -4, 2, 2
# The least power of kernels that are not off centre: of wider ones, all values are nearly the same,
# and samples that lack a view lean to one side.
CENTRED = -2


@dataclass(frozen=True, eq=False)
class View:
    """Columns that belong together, as they come out of the preparation."""

    name: str | None  # None where there is only one
    columns: slice | None  # None for all; a list of numbers would be copied one by one
    complete: bool = True  # whether every training sample has it
    # How many units the distances of the view are made of.
    units: int = 1

    def linear(self) -> Kernels:
        return self._named({"linear": Linear().normalized("mean_diag")})

    def quadratic(self) -> Kernels:
        # Squared norms are about one half: gamma 2 gives linear and quadratic part like shares.
        kernel = Polynomial(2, gamma=2.0 / self.units).normalized("mean_diag")
        return self._named({"quadratic": kernel})

    def rbf(self, power: int) -> Kernels:
        return self._named({f"rbf(2^{power})": RBF(2.0**power / self.units)})

    def ladder(self, low: int = LOW) -> Kernels:
        """All kernels of the view together, RBF from a least power on."""
        found = {**self.linear(), **self.quadratic()}
        for power in range(low, HIGH + 1, STEP):
            found.update(self.rbf(power))
        return found

    def _named(self, kernels: Mapping[str, Kernel]) -> Kernels:
        return {
            name if self.name is None else f"{self.name}: {name}": (
                kernel if self.columns is None else kernel.on(self.columns)
            )
            for name, kernel in kernels.items()
        }


def views_of(names: Sequence[str], widths: Sequence[int], complete: Sequence[bool]) -> list[View]:
    """Views side by side, with so many columns each."""
    found, start = [], 0
    for name, width, whole in zip(names, widths, complete, strict=True):
        found.append(View(name, slice(start, start + width), whole))
        start += width
    return found


def together(views: Sequence[View]) -> View:
    """All columns of several views as one."""
    return View("all", None, all(view.complete for view in views), len(views))


def one_by_one(kernels: Any) -> list[Kernels]:
    """Kernels that a user has given, each alone."""
    return [{name: kernel} for name, kernel in named_kernels(kernels).items()]


# From simple to complicated: nothing learned but the machine, one weight for each kernel, trust
# that differs between samples, and methods that are not of this library.
FIXED, GLOBAL, LOCAL, OTHER = range(4)
AUTO, AUTO_VIEWS = ("UniformMKL", "LpMKL", "SimpleMKL"), ("TrustedVote", "CLMKL")


@dataclass(frozen=True, eq=False)
class Contender:
    """A method, as an estimator that is configured but for kernels and cost."""

    name: str
    estimator: Any
    level: int

    @property
    def takes_kernels(self) -> bool:
        return self.level != OTHER

    @property
    def is_uniform(self) -> bool:
        return self.level == FIXED


@dataclass(frozen=True, eq=False)
class Candidate:
    """A method with its kernels and its cost; other methods have neither."""

    contender: Contender
    kernels: Mapping[str, Kernel] | None = None
    cost: float | None = None

    @property
    def method(self) -> str:
        one = self.contender.is_uniform and self.kernels is not None and len(self.kernels) == 1
        return "one kernel" if one else self.contender.name

    @property
    def parameters(self) -> dict[str, Any]:
        """Settings of the pipeline."""
        if self.kernels is None:
            return {}
        return {"model__kernels": dict(self.kernels), "model__C": self.cost}

    @property
    def key(self) -> Any:
        """Equal for candidates that are the same."""
        names = () if self.kernels is None else tuple(self.kernels)
        return id(self.contender), names, self.cost


@dataclass(frozen=True, eq=False)
class Judged:
    """A candidate and its cells of all folds."""

    candidate: Candidate
    cells: Sequence[Cell]
    n_rows: int  # samples that took part

    @cached_property
    def mean(self) -> float:
        """Mean held-out score; NaN where a fold failed."""
        return float(mean_score(self.cells, None))

    @property
    def deviation(self) -> float:
        """Standard error of the mean."""
        scores = [cell.score(None) for cell in self.cells]
        return float(np.std(scores) / np.sqrt(len(scores)))

    @property
    def fit_seconds(self) -> float:
        """Of one fold."""
        return float(np.mean([cell.fit_seconds for cell in self.cells]))

    @property
    def seconds(self) -> float:
        return sum(cell.fit_seconds + cell.score_seconds for cell in self.cells)

    @property
    def error(self) -> str | None:
        """Last line of what went wrong."""
        traces = [cell.error for cell in self.cells if cell.error is not None]
        return traces[0].strip().splitlines()[-1] if traces else None


def contenders(methods: Any, kind: str, several_views: bool, settings: Mapping[str, Any]) -> Any:
    """Estimators of the methods that are asked for.

    Parameters
    ----------
    methods : "auto", or a list of names and estimators
    kind : {"Classifier", "Regressor"}
    several_views : bool
    settings : mapping
        Settings of every estimator that is made here, and has them.
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
        _by_name(one, kind, settings) if isinstance(one, str) else _given(one, kind)
        for one in methods
    ]


def _by_name(name: str, kind: str, settings: Mapping[str, Any]) -> Contender:
    for method in METHODS:
        class_name = method.classifier if kind == "Classifier" else method.regressor
        known = {method.name, method.stem, class_name}
        if name.lower() in {str(word).lower() for word in known} and class_name:
            estimator = getattr(methods, class_name)()
            own = estimator.get_params(deep=False)
            estimator.set_params(**{k: value for k, value in settings.items() if k in own})
            return Contender(method.name, estimator, _level(method))
    stems = [m.stem for m in METHODS if kind == "Classifier" or m.regressor]
    raise ValueError(
        f'unknown method {name!r}; known are "auto", {", ".join(stems)}, and any estimator'
    )


def _level(method: Any) -> int:
    if method.learns == "nothing":
        return FIXED
    return LOCAL if method.can("localized") else GLOBAL


def _given(estimator: Any, kind: str) -> Contender:
    right = is_classifier if kind == "Classifier" else is_regressor
    if not isinstance(estimator, BaseEstimator) or not right(estimator):
        raise ValueError(
            f"methods has {estimator!r}, which is no {kind.lower()}; give names or {kind.lower()}s"
        )
    method = method_of(estimator)
    if method is not None:
        return Contender(method.name, clone(estimator), _level(method))
    return Contender(type(estimator).__name__, clone(estimator), OTHER)


# Costs of this ratio at most are next to each other: the first grid has steps of four.
_NEXT_COST = 4.0 + 1e-9


class LeaderboardRow(NamedTuple):
    """What cross-validation says of a candidate."""

    method: str
    kernels: str
    C: float | None
    score: float  # mean held-out score
    score_error: float  # its standard error
    seconds: float  # of all folds
    n_samples: int  # samples that took part
    error: str | None  # why it could not be fitted


@dataclass(eq=False)
class Leaderboard:
    """Candidates with their scores."""

    judged: list[Judged] = field(default_factory=list)
    may_win: Callable[[Candidate], bool] = lambda candidate: True

    def add(self, more: Iterable[Judged]) -> None:
        self.judged += more

    @property
    def fitted(self) -> list[Judged]:
        """Those that could be fitted."""
        return [one for one in self.judged if one.mean == one.mean]

    def knows(self, candidate: Candidate, n_rows: int) -> bool:
        keys = {one.candidate.key for one in self.judged if one.n_rows == n_rows}
        return candidate.key in keys

    def best(self, wanted: Callable[[Judged], bool] | None = None) -> Judged | None:
        """The best of all, or of some; of equal ones the simplest."""
        some = [one for one in self.fitted if wanted is None or wanted(one)]
        return min(some, key=lambda one: (-one.mean, *_complexity(one)), default=None)

    def winner(self, rule: str) -> Judged | None:
        """Who wins, of those that were judged on the most samples.

        With "one_se", the best of the simplest kind that is within one standard error of the best
        of all: single kernels and uniform mixes before learned weights before learned trust. The
        best of them is the one whose score is good at the next costs, too.
        """
        able = [one for one in self.fitted if self.may_win(one.candidate)]
        most = max((one.n_rows for one in able), default=0)
        final = Leaderboard([one for one in able if one.n_rows == most])
        best = final.best()
        if best is None or rule == "best":
            return best
        near = [one for one in final.fitted if one.mean >= best.mean - best.deviation]
        simplest = min(one.candidate.contender.level for one in near)
        kind = [one for one in final.fitted if one.candidate.contender.level == simplest]
        return min(kind, key=lambda one: (-_steady_mean(kind, one), -one.mean, *_complexity(one)))

    def survivors(self, count: int) -> list[Candidate]:
        """The best few, and the best of every kind of method among them."""
        able = [one for one in self.fitted if self.may_win(one.candidate)]
        ranked = sorted(able, key=lambda one: (-one.mean, *_complexity(one)))
        chosen = ranked[:count]
        simple = [one for one in ranked if one.candidate.contender.level < GLOBAL][:1]
        return [one.candidate for one in [*chosen, *(s for s in simple if s not in chosen)]]

    def rows(self) -> list[LeaderboardRow]:
        """Best first; those that could not be fitted last."""
        order = sorted(
            self.judged,
            key=lambda one: (one.mean != one.mean, -one.n_rows, -one.mean, *_complexity(one)),
        )
        return [_row(one) for one in order]


def cold_seconds(judged: Sequence[Judged], one: Judged) -> float:
    """Seconds of a fit from nothing: those of all smaller costs led to where this one began."""
    path = [
        other.fit_seconds
        for other in judged
        if other.n_rows == one.n_rows
        and other.candidate.key[:2] == one.candidate.key[:2]
        and (other.candidate.cost or 0.0) <= (one.candidate.cost or 0.0)
    ]
    return sum(path)


def _steady_mean(judged: Sequence[Judged], one: Judged) -> float:
    """Mean score of a candidate, counted twice, and of the same at the next costs.

    The score changes slowly along costs, the luck of a few folds does not: a lone peak is luck.
    """
    cost = one.candidate.cost
    if cost is None:
        return one.mean
    near = [
        other.mean
        for other in judged
        if other.candidate.key[:2] == one.candidate.key[:2]
        and other.candidate.cost is not None
        and cost / _NEXT_COST <= other.candidate.cost <= cost * _NEXT_COST
    ]
    return (one.mean + sum(near)) / (1 + len(near))


def _complexity(one: Judged) -> tuple[float, ...]:
    candidate = one.candidate
    n_kernels = 0 if candidate.kernels is None else len(candidate.kernels)
    return candidate.contender.level, candidate.cost or 0.0, n_kernels


def _row(one: Judged) -> LeaderboardRow:
    candidate = one.candidate
    kernels = "" if candidate.kernels is None else ", ".join(candidate.kernels)
    return LeaderboardRow(
        candidate.method,
        kernels,
        candidate.cost,
        one.mean,
        one.deviation,
        one.seconds,
        one.n_rows,
        one.error,
    )


@dataclass(frozen=True, eq=False)
class Arena:
    """Samples that candidates are judged on.

    Parameters
    ----------
    X : array or CSR matrix
        Numbers, not yet prepared.
    y : array
    weight : array or None
    splits : list of (learned from, scored)
        Numbers of samples.
    scorer : callable
    prepare : PrepareColumns
    n_jobs, verbose : as in ``KernelSearchCV``
    rows : array
        Numbers of the samples among those that were given.
    """

    X: Any
    y: Array
    weight: Array | None
    splits: list[tuple[Array, Array]]
    scorer: Any
    prepare: PrepareColumns
    n_jobs: int | None
    verbose: int
    rows: Array
    # Methods share the prepared samples.
    workers: list[Worker] = field(default_factory=new_workers)

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    def part(self, rows: Array) -> "Arena":
        """Some of the samples, in the same folds; a fold that has none of them is left out."""
        place = np.full(self.n_rows, -1)
        place[rows] = np.arange(len(rows))
        cut = [tuple(place[side][place[side] >= 0] for side in split) for split in self.splits]
        return replace(
            self,
            X=self.X[rows],
            y=self.y[rows],
            weight=None if self.weight is None else self.weight[rows],
            splits=[(train, test) for train, test in cut if len(train) and len(test)],
            rows=self.rows[rows],
        )

    def judge(self, candidates: Iterable[Candidate], seconds: float | None) -> list[Judged]:
        """Cross-validate candidates until time is over; those that were not tried are left out."""
        by_method: dict[int, list[Candidate]] = {}
        for candidate in candidates:
            by_method.setdefault(id(candidate.contender), []).append(candidate)
        judged = []
        for alike in by_method.values():
            task = self._task(alike)
            rounds = Rounds(None, True, False, seconds, None, self.verbose, self.workers)
            # What happens to candidates on the way is told by the leaderboard alone.
            rows, _ = capture_warnings(rounds.rows, task)
            judged += [
                Judged(alike[row.candidate], row.cells, self.n_rows)
                for row in rows
                if row.cells is not None
            ]
        return judged

    def fitted(self, candidate: Candidate) -> Pipeline:
        """Fit a candidate on all samples."""
        model = self._pipeline(candidate).set_params(**candidate.parameters)
        return model.fit(self.X, self.y, **self._fit_params(candidate))

    def calibration(self, judged: Judged) -> Calibration | None:
        """From held-out decisions of a candidate to probabilities; None where they are unknown."""
        return calibration_of(self._task([judged.candidate]), judged.cells)

    def _task(self, alike: Sequence[Candidate]) -> Task:
        """Candidates of one method."""
        return Task(
            estimator=self._pipeline(alike[0]),
            candidates=[candidate.parameters for candidate in alike],
            X=self.X,
            y=self.y,
            fit_params=self._fit_params(alike[0]),
            score_params={} if self.weight is None else {"sample_weight": self.weight},
            splits=self.splits,
            scorers=self.scorer,
            error_score=np.nan,
            return_train_score=False,
            n_jobs=self.n_jobs,
        )

    def _pipeline(self, candidate: Candidate) -> Pipeline:
        model = clone(candidate.contender.estimator)
        return Pipeline([("prepare", clone(self.prepare)), ("model", model)])

    def _fit_params(self, candidate: Candidate) -> dict[str, Any]:
        if self.weight is None:
            return {}
        if not has_fit_parameter(candidate.contender.estimator, "sample_weight"):
            name = type(candidate.contender.estimator).__name__
            raise ValueError(f"{name} takes no sample_weight; leave one of both out")
        return {"prepare__sample_weight": self.weight, "model__sample_weight": self.weight}


def some_rows(y: Array, count: int, is_classifier: bool, rng: np.random.RandomState) -> Array:
    """Row numbers of a random part, with all classes in their shares, at least two rows each."""
    if not is_classifier:
        return np.sort(rng.permutation(len(y))[:count])
    _, codes = np.unique(y, return_inverse=True)
    chosen = []
    for code in range(codes.max() + 1):
        own = np.flatnonzero(codes == code)
        least = min(len(own), 10)
        chosen.append(rng.permutation(own)[: max(least, round(count * len(own) / len(y)))])
    return np.sort(np.concatenate(chosen))


def take(values: Any, rows: Array) -> Any:
    """Some rows of anything that has rows; None stays None."""
    return None if values is None else _safe_indexing(values, rows)


Stage = list[Candidate]

# Powers of two; the finer ones between them are tried around the best.
_COSTS = range(-3, 10, 2)
_LEAST_COST, _LARGEST_COST = -3, 9
_FIRST_COST = 3
# Costs of a learned method of which nothing is known.
_LEARNED_COSTS = (-1, 2, 5)
# Views from which on learned methods get two kernels of each instead of the whole dictionary.
_MANY_VIEWS = 4


@dataclass(frozen=True, eq=False)
class Plan:
    """What there is to try.

    Parameters
    ----------
    contenders : sequence of Contender
    views : sequence of View
    given : list of kernels, each alone, or None
        Kernels of the user in the place of those of the views.
    unit_cost : float
        What a cost of one means: the spread of the targets of a regression, else 1.
    in_haste : bool
        Whether time may be over soon: a candidate that is seldom bad then comes first of all.
    every_view : bool
        Whether only candidates may win that have kernels of their own for each view.
    """

    contenders: Sequence[Contender]
    views: Sequence[View]
    given: list[Kernels] | None
    unit_cost: float
    in_haste: bool = False
    every_view: bool = False

    def may_win(self, candidate: Candidate) -> bool:
        """Whether a candidate is allowed to win, however good it is."""
        if not self.every_view or candidate.kernels is None:
            return True
        # Single kernels of views are still judged: they tell which width suits a view.
        seen = {str(getattr(kernel, "columns", None)) for kernel in candidate.kernels.values()}
        return seen == {str(view.columns) for view in self.views}

    def stages(self, board: Leaderboard) -> Iterator[Stage]:
        """Yield candidates, looking at what the board says of those before."""
        for uniform in self._of(0):
            yield from self._uniform(uniform, board)
        for level in (GLOBAL, LOCAL):
            for contender in self._of(level):
                yield from self._learned(contender, board)
        for contender in self._of(OTHER):
            yield [Candidate(contender)]

    @property
    def _low(self) -> int:
        """Least power of widths; samples that lack views need kernels that are not off centre."""
        return CENTRED if self.every_view else LOW

    def _beside_power(self, power: int) -> list[int]:
        return [p for p in (power - 1, power + 1) if p >= self._low or not self.every_view]

    def _of(self, level: int) -> list[Contender]:
        return [contender for contender in self.contenders if contender.level == level]

    def _at(self, contender: Contender, lists: Sequence[Kernels], powers: Sequence[float]) -> Stage:
        return [
            Candidate(contender, kernels, self.unit_cost * 2.0**power)
            for kernels in lists
            for power in powers
        ]

    def _uniform(self, uniform: Contender, board: Leaderboard) -> Iterator[Stage]:
        """Single kernels and uniform mixes."""
        if self.given is not None:
            yield self._at(uniform, [*self.given, _merged(self.given)], _COSTS)
            yield self._closer_costs(uniform, board)
            return
        alone = self._alone()
        coarse = range(self._low, HIGH + 1, STEP)
        if self.in_haste:
            first = self.views if self.every_view else alone[:1]
            yield self._at(uniform, [_merged([view.rbf(0) for view in first])], [_FIRST_COST])
        singles = [view.rbf(power) for view in alone for power in coarse]
        if len(self.views) > 1:
            singles += [_merged([view.rbf(power) for view in self.views]) for power in coarse]
        for view in alone:
            singles += [view.linear(), view.quadratic()]
        yield self._at(uniform, singles, _COSTS)
        yield [
            *self._closer_widths(uniform, board),
            *self._closer_costs(uniform, board),
            *self._at(uniform, self._mixes(board), self._costs_near_best(board)),
        ]

    def _alone(self) -> list[View]:
        """Views that a single kernel can be asked about, and all of them as one."""
        complete = [view for view in self.views if view.complete]
        several = len(complete) == len(self.views) > 1 and not self.every_view
        whole = [together(self.views)] if several else []
        return whole + complete

    def _closer_widths(self, uniform: Contender, board: Leaderboard) -> Stage:
        """Widths between those of the coarse grid, beside the best one."""
        best = board.best(_is_of(uniform))
        if best is None or best.candidate.kernels is None:
            return []
        names = set(best.candidate.kernels)
        for view in self._alone():
            for power in range(self._low, HIGH + 1, STEP):
                if names == set(view.rbf(power)):
                    near = [view.rbf(p) for p in self._beside_power(power)]
                    return self._at(uniform, near, self._costs_near_best(board))
        for power in range(self._low, HIGH + 1, STEP):
            if names == set(_merged([view.rbf(power) for view in self.views])):
                beside = self._beside_power(power)
                near = [_merged([view.rbf(p) for view in self.views]) for p in beside]
                return self._at(uniform, near, self._costs_near_best(board))
        return []

    def _closer_costs(self, uniform: Contender, board: Leaderboard) -> Stage:
        best = board.best(_is_of(uniform))
        if best is None or best.candidate.kernels is None:
            return []
        return [c for factor in (0.5, 2.0) if (c := self._beside(best, factor)) is not None]

    def _beside(self, best: Judged, factor: float) -> Candidate | None:
        """The same at another cost, where that is in the range of costs."""
        candidate = best.candidate
        assert candidate.cost is not None
        cost = factor * candidate.cost
        low, high = self.unit_cost * 2.0**_LEAST_COST, self.unit_cost * 2.0**_LARGEST_COST
        if not 0.99 * low <= cost <= 1.01 * high:
            return None
        return Candidate(candidate.contender, candidate.kernels, cost)

    def _costs_near_best(self, board: Leaderboard) -> list[float]:
        """Powers of costs around that of the best candidate so far."""
        best = board.best(lambda one: one.candidate.cost is not None)
        if best is None or best.candidate.cost is None:
            return list(_LEARNED_COSTS)
        power = math.log2(best.candidate.cost / self.unit_cost)
        near = {min(max(power + step, _LEAST_COST), _LARGEST_COST) for step in (-2, 0, 2)}
        return sorted(near)

    def _mixes(self, board: Leaderboard) -> list[Kernels]:
        """Uniform mixes: the whole dictionary, and the best kernels of each view."""
        best = [self._best_of(view, board) for view in self.views]
        with_linear = _merged([*best, *(view.linear() for view in self.views)])
        mixes = [self._dictionary(board), with_linear]
        return [*mixes, _merged(best)] if len(self.views) > 1 else mixes

    def _best_of(self, view: View, board: Leaderboard) -> Kernels:
        """The RBF kernel of a view that did best alone; the middle one if none was asked."""
        known = {tuple(view.rbf(p)): view.rbf(p) for p in range(LOW - 1, HIGH + 2)}
        best = board.best(
            lambda one: one.candidate.kernels is not None and tuple(one.candidate.kernels) in known
        )
        if best is None or best.candidate.kernels is None:
            return view.rbf(0)
        return known[tuple(best.candidate.kernels)]

    def _dictionary(self, board: Leaderboard) -> Kernels:
        """All kernels that a learned method may choose from."""
        if self.given is not None:
            return _merged(self.given)
        if len(self.views) < _MANY_VIEWS:
            return _merged([view.ladder(self._low) for view in self.views])
        return _merged([{**self._best_of(v, board), **v.linear()} for v in self.views])

    def _learned(self, contender: Contender, board: Leaderboard) -> Iterator[Stage]:
        """A method that learns weights or trust, at the cost of the best mix, then beside it."""
        kernels = self._dictionary(board)
        if contender.level == LOCAL and self.given is None and len(self.views) > 1:
            kernels = _merged([self._best_of(view, board) for view in self.views])
        mix = board.best(lambda one: len(one.candidate.kernels or ()) > 1)
        costs = [mix.candidate.cost] if mix is not None and mix.candidate.cost is not None else None
        if costs is None:
            yield self._at(contender, [kernels], _LEARNED_COSTS)
        else:
            yield [Candidate(contender, kernels, cost) for cost in costs]
        best, own = board.best(), board.best(_is_of(contender))
        # It wins only where it is better than what is simpler, so that others need no finer look.
        if own is None or own is not best:
            return
        yield [c for factor in (0.25, 4.0) if (c := self._beside(own, factor)) is not None]


def _is_of(contender: Contender) -> Callable[[Judged], bool]:
    return lambda one: one.candidate.contender is contender


def _merged(lists: Sequence[Kernels]) -> Kernels:
    return {name: kernel for kernels in lists for name, kernel in kernels.items()}


logger = logging.getLogger("lokl")

# With more samples than that, the search is on a part of them, and the best few are judged on all.
MANY_ROWS, ROWS_OF_PART, SURVIVORS = 6_000, 4_000, 4
# A fit from nothing and to the full tolerance takes longer than one of a search.
_SLOWER = 1.5
# Part of the time that is kept for what cannot be foreseen.
_SPARE = 0.05
# Machines that a learned method solves for each of its kernels, roughly.
_MACHINES_A_KERNEL = 5.0


@dataclass(eq=False)
class Deadline:
    """Seconds that are left."""

    limit: float | None
    start: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        if self.limit is None:
            return float("inf")
        return self.limit * (1.0 - _SPARE) - (time.monotonic() - self.start)


@dataclass(eq=False)
class Tournament:
    """Stages of candidates, and the fit of the winner."""

    arena: Arena
    plan: Plan
    rule: str
    deadline: Deadline
    is_classifier: bool
    rng: np.random.RandomState
    board: Leaderboard = field(default_factory=Leaderboard)

    def play(self) -> None:
        """Judge candidates until all were tried or time is over."""
        self._search(self._small_arena())
        if not self.board.fitted:
            self._all_failed()
        if self.arena.n_rows > MANY_ROWS:
            for candidate in self.board.survivors(SURVIVORS):
                if not self._judge(self.arena, [candidate]):
                    return

    def winner(self) -> Judged:
        found = self.board.winner(self.rule)
        assert found is not None
        return found

    def fitted(self, winner: Judged) -> tuple[Pipeline, Array]:
        """Fit the winner on all samples, or on as many as time allows; return which."""
        arena, n = self.arena, self.arena.n_rows
        expected = self._final_seconds(winner)
        left = max(self.deadline.left, 0.05 * (self.deadline.limit or 0.0))
        if expected > left:
            count = max(int(n * np.sqrt(left / expected)), min(n, 500))
            if count < n:
                rows = some_rows(arena.y, count, self.is_classifier, self.rng)
                arena = arena.part(rows)
                warn_once(
                    "fewer samples than given",
                    f"time_limit={self.deadline.limit:g} seconds are too few for a fit on all {n} "
                    f"samples: the model learned from {len(rows)} of them; raise time_limit",
                )
        return arena.fitted(winner.candidate), arena.rows

    def _search(self, arena: Arena) -> None:
        for stage in self._stages(arena):
            if not self._judge(arena, stage):
                return

    def _stages(self, arena: Arena) -> Iterator[list[Candidate]]:
        for stage in self.plan.stages(self.board):
            fresh: dict[object, Candidate] = {}
            for candidate in stage:
                if not self.board.knows(candidate, arena.n_rows):
                    fresh.setdefault(candidate.key, candidate)
            if fresh:
                yield list(fresh.values())

    def _judge(self, arena: Arena, stage: list[Candidate]) -> bool:
        """Judge candidates; False where time is over."""
        left = self.deadline.left - self._reserve()
        if self.board.judged and left <= 0:
            return False
        if self.board.fitted and self._expected(arena, stage[0]) > left:
            # A later, cheaper stage may still fit.
            return True
        judged = arena.judge(stage, None if self.deadline.limit is None else max(left, 1e-3))
        self.board.add(judged)
        best = self.board.best()
        logger.log(
            logging.INFO if arena.verbose else logging.DEBUG,
            "%s: %d of %d candidates tried, best score so far %.4g",
            stage[0].method,
            len(judged),
            len(stage),
            float("nan") if best is None else best.mean,
        )
        return self.deadline.left > 0

    def _expected(self, arena: Arena, candidate: Candidate) -> float:
        """Seconds that one candidate may take, where there is a limit."""
        best = self.board.best()
        if self.deadline.limit is None or best is None:
            return 0.0
        growth = (arena.n_rows / best.n_rows) ** 2
        seconds = growth * len(arena.splits) * cold_seconds(self.board.judged, best)
        if candidate.contender.level >= GLOBAL:
            seconds *= _MACHINES_A_KERNEL * len(candidate.kernels or (1,))
        return seconds

    def _reserve(self) -> float:
        """Seconds that the last fit will need."""
        best = self.board.winner(self.rule)
        if self.deadline.limit is None or best is None:
            return 0.0
        # A search that gets nothing is worse than a model of a part of the samples.
        return min(self._final_seconds(best), 0.5 * self.deadline.limit)

    def _final_seconds(self, winner: Judged) -> float:
        if self.deadline.limit is None:
            return 0.0
        train = np.mean([len(train) for train, _ in self._arena_of(winner).splits])
        growth = (self.arena.n_rows / float(train)) ** 2
        return _SLOWER * growth * cold_seconds(self.board.judged, winner)

    def _arena_of(self, judged: Judged) -> Arena:
        return self.arena if judged.n_rows == self.arena.n_rows else self._small_arena()

    def _small_arena(self) -> Arena:
        if self.arena.n_rows <= MANY_ROWS:
            return self.arena
        if self._small is None:
            rows: Array = some_rows(self.arena.y, ROWS_OF_PART, self.is_classifier, self.rng)
            self._small = self.arena.part(rows)
        return self._small

    _small: Arena | None = None

    def calibration(self, winner: Judged):  # type: ignore[no-untyped-def]
        """Probabilities from the held-out decisions of the winner."""
        return self._arena_of(winner).calibration(winner)

    def _all_failed(self) -> None:
        errors = [one.error for one in self.board.judged if one.error is not None]
        raise ValueError(
            f"none of the {len(self.board.judged)} candidates could be fitted; the first says: "
            f"{errors[0] if errors else 'no score is a number'}"
        )
