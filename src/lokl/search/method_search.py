"""Search over named methods: kernels, widths and costs of each are compared by cross-validation."""

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.pipeline import Pipeline

from lokl import methods
from lokl._arrays import Array
from lokl._deadline import Deadline
from lokl._methods import METHODS, Method, method_of
from lokl._warnings import capture_warnings
from lokl.kernels import RBF, Kernel, Laplacian, Linear, Polynomial
from lokl.search.calibration import Calibration, calibrate_fold_results
from lokl.search.columns import ColumnScaler
from lokl.search.cross_validation import sample_weight_params, spread_rows
from lokl.search.evaluation import evaluate_candidates, new_backends
from lokl.search.families import TargetCoding
from lokl.search.results import LeaderboardRow, mean_score, standard_error
from lokl.search.tasks import FitBackend, FoldResult, SearchTask
from lokl.solvers.machines import Fold

logger = logging.getLogger("lokl")

Kernels = dict[str, Kernel]

# Powers of two of widths, in units of the reciprocal of the median distance, and of costs.
_WIDTHS, _COSTS, _LEARNED_COSTS = (-4, -2, 0, 2), range(-3, 10, 2), (-1, 2, 5)
# Least power of RBF kernels of views that samples may lack. The values of wider kernels are all
# nearly equal, so that samples without a view lean to one side.
CENTRED = -2
# Number of views from which learned methods get two kernels of each instead of the dictionary.
_MANY_VIEWS = 4
# Complexity of methods: only an SVM, one weight for each kernel, weights that differ between
# samples, and methods of other libraries.
FIXED, GLOBAL, LOCAL, OTHER = range(4)


@dataclass(frozen=True, eq=False)
class ViewKernels:
    """Kernels of one view: columns that stand side by side, with a median distance of one."""

    name: str | None  # None if there is only one
    columns: slice | None  # None for all

    def linear(self) -> Kernels:
        return self._named("linear", Linear().normalized("mean_diag"))

    def quadratic(self) -> Kernels:
        # Squared norms are about 1/2: gamma 2 gives linear and quadratic terms a similar share.
        return self._named("quadratic", Polynomial(2, gamma=2.0).normalized("mean_diag"))

    def rbf(self, power: int) -> Kernels:
        return self._named(f"rbf(2^{power})", RBF(2.0**power))

    def laplacian(self) -> Kernels:
        return self._named("laplacian", Laplacian("median"))

    def dictionary(self) -> Kernels:
        """Return all kernels of the view together."""
        rbfs = [self.rbf(power) for power in _WIDTHS if power >= CENTRED]
        return merged([self.linear(), self.quadratic(), *rbfs])

    def _named(self, name: str, kernel: Kernel) -> Kernels:
        return {
            name if self.name is None else f"{self.name}: {name}": (
                kernel if self.columns is None else kernel.on(self.columns)
            )
        }


def adjacent_views(names: Sequence[str], widths: Sequence[int]) -> list[ViewKernels]:
    """Return views whose columns follow one another, with `widths` columns each."""
    ends = np.cumsum(widths).tolist()
    pairs = zip(names, widths, ends, strict=True)
    return [ViewKernels(name, slice(end - width, end)) for name, width, end in pairs]


def draw_rows(y: Array, count: int, classes: Array | None, rng: np.random.RandomState) -> Array:
    """Return about `count` random rows, with all classes in proportion, in ascending order."""
    order = rng.permutation(len(y))
    return np.sort(spread_rows(order, TargetCoding.of(y, classes).codes, count))


def merged(parts: Sequence[Kernels]) -> Kernels:
    """Return one set of kernels from several."""
    return {name: kernel for kernels in parts for name, kernel in kernels.items()}


@dataclass(frozen=True, eq=False)
class MethodSpec:
    """A method: an estimator that is configured except for kernels and cost."""

    name: str
    estimator: Any
    level: int  # complexity
    learns_trust: bool = False


def method_specs(names: Any, kind: str, settings: Mapping[str, Any]) -> list[MethodSpec]:
    """Return the requested methods.

    Parameters
    ----------
    names : list of str and estimators
    kind : {"Classifier", "Regressor"}
    settings : mapping
        Settings of every estimator that is created here and has them.
    """
    if isinstance(names, str) or hasattr(names, "fit"):
        names = [names]
    if not isinstance(names, Sequence) or not len(names):
        raise ValueError(f'methods must be "auto" or a list of names and estimators, got {names!r}')
    return [
        _spec_by_name(item, kind, settings) if isinstance(item, str) else _spec_of(item, kind)
        for item in names
    ]


def _spec_by_name(name: str, kind: str, settings: Mapping[str, Any]) -> MethodSpec:
    for method in METHODS:
        class_name = method.classifier if kind == "Classifier" else method.regressor
        names = {method.name, method.stem, class_name}
        if class_name and name.lower() in {str(known).lower() for known in names}:
            estimator = getattr(methods, class_name)()
            available = estimator.get_params(deep=False)
            estimator.set_params(**{k: v for k, v in settings.items() if k in available})
            return _spec_with(method, estimator)
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
    return _spec_with(method, clone(estimator))


def _spec_with(method: Method, estimator: Any) -> MethodSpec:
    level = LOCAL if method.can("localized") else GLOBAL
    if method.learns == "nothing":
        level = FIXED
    return MethodSpec(method.name, estimator, level, method.learns == "trust")


@dataclass(frozen=True, eq=False)
class MethodCandidate:
    """A method with kernels and cost; methods of other libraries have neither."""

    spec: MethodSpec
    kernels: Kernels | None = None
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
    def complexity(self) -> tuple[float, ...]:
        return self.spec.level, self.cost or 0.0, len(self.kernels or ())


@dataclass(frozen=True, eq=False)
class CandidateScore:
    """A candidate with its results on all folds."""

    candidate: MethodCandidate
    fold_results: Sequence[FoldResult]
    n_rows: int

    @cached_property
    def mean(self) -> float:
        """Mean held-out score; NaN if a fold failed."""
        return float(mean_score(self.fold_results))

    @property
    def standard_error(self) -> float:
        return standard_error([result.score(None) for result in self.fold_results])

    @property
    def rank(self) -> tuple[float, ...]:
        """Sort key: best score first, the simplest of equal ones."""
        return -self.mean, *self.candidate.complexity

    def as_row(self) -> LeaderboardRow:
        """Return the row of the leaderboard."""
        traces = [result.error for result in self.fold_results if result.error is not None]
        candidate = self.candidate
        return LeaderboardRow(
            candidate.method,
            ", ".join(candidate.kernels or ()),
            candidate.cost,
            self.mean,
            self.standard_error,
            sum(result.fit_seconds + result.score_seconds for result in self.fold_results),
            self.n_rows,
            traces[0].strip().splitlines()[-1] if traces else None,
        )


def best_score(scores: Sequence[CandidateScore], rule: str) -> CandidateScore:
    """Return the chosen candidate.

    With "one_se", the simplest kind of method is chosen that has a candidate within one standard
    error of the best: single kernels and uniform averages, then learned weights, then weights that
    differ between samples. Of this kind, the best candidate is chosen.
    """
    fitted = [score for score in scores if not math.isnan(score.mean)]
    if not fitted:
        errors = [row.error for row in map(CandidateScore.as_row, scores) if row.error is not None]
        raise ValueError(
            f"none of the {len(scores)} candidates could be fitted; the first error is: "
            f"{errors[0] if errors else 'no score is a number'}"
        )
    best = min(fitted, key=lambda score: score.rank)
    if rule == "best":
        return best
    near = [score for score in fitted if score.mean >= best.mean - best.standard_error]
    level = min(score.candidate.spec.level for score in near)
    return min(
        (score for score in near if score.candidate.spec.level == level), key=lambda s: s.rank
    )


@dataclass(frozen=True, eq=False)
class KernelSets:
    """Sets of kernels that methods are compared on.

    Attributes
    ----------
    views : sequence of ViewKernels
    given : dict of str to Kernel, or None
        Kernels of the user instead.
    """

    views: Sequence[ViewKernels]
    given: Kernels | None = None

    def for_svm(self) -> Iterator[Kernels]:
        """Yield kernels for methods that learn nothing about kernels: every view is in each."""
        if self.given is not None:
            yield from ({name: kernel} for name, kernel in self.given.items())
            if len(self.given) > 1:
                yield self.given
            return
        yield merged([view.laplacian() for view in self.views])
        for power in _WIDTHS:
            if power >= CENTRED or len(self.views) == 1:
                yield merged([view.rbf(power) for view in self.views])
        yield merged([view.linear() for view in self.views])
        yield merged([view.dictionary() for view in self.views])

    def for_trust(self) -> Iterator[Kernels]:
        """Yield one kernel for each view: with two, a wrong view would have two votes."""
        if self.given is not None:
            yield self.given
            return
        yield merged([view.laplacian() for view in self.views])
        for power in (CENTRED, 0):
            yield merged([view.rbf(power) for view in self.views])

    def for_learning(self) -> Iterator[Kernels]:
        """Yield kernels for methods that learn weights."""
        if self.given is not None:
            yield self.given
        elif len(self.views) == 1:
            yield self.views[0].dictionary()
        else:
            yield merged([view.laplacian() for view in self.views])
            if len(self.views) < _MANY_VIEWS:
                yield merged([view.dictionary() for view in self.views])
            else:
                yield merged([{**view.linear(), **view.rbf(0)} for view in self.views])


@dataclass(eq=False)
class MethodSearch:
    """Cross-validation of methods with their kernels and costs.

    Attributes
    ----------
    X : array or CSR matrix
        Encoded columns.
    y : array
    weight : array or None
    splits : list of (train, test)
    scorer : callable
    scaler : ColumnScaler
        Not fitted.
    specs : list of MethodSpec
    kernels : KernelSets
    unit_cost : float
        Factor of all costs: the spread of the targets of a regression, else 1.
    deadline : Deadline
    n_jobs, verbose
        As in ``KernelSearchCV``.
    """

    X: Any
    y: Array
    weight: Array | None
    splits: list[Fold]
    scorer: Any
    scaler: ColumnScaler
    specs: Sequence[MethodSpec]
    kernels: KernelSets
    unit_cost: float
    deadline: Deadline
    n_jobs: int | None
    verbose: int
    # Candidates share prepared samples.
    backends: list[FitBackend] = field(default_factory=new_backends)

    def run(self) -> list[CandidateScore]:
        """Return the scores of all candidates, or of those that the deadline allows."""
        scores: list[CandidateScore] = []
        for index, spec in enumerate(self.specs):
            if scores and self.deadline.passed:
                break
            left = self.deadline.remaining() / (len(self.specs) - index)
            candidates = list(self._candidates(spec))
            evaluate = partial(
                evaluate_candidates,
                self._task(candidates),
                adaptive=True,
                time_limit=None if math.isinf(left) else max(left, 1e-3),
                verbose=self.verbose,
                backends=self.backends,
            )
            # Errors and warnings of single candidates are shown by the leaderboard only.
            rows, _ = capture_warnings(evaluate)
            scores += [
                CandidateScore(candidates[row.index], row.fold_results, self.X.shape[0])
                for row in rows
                if row.fold_results is not None
            ]
            level = logging.INFO if self.verbose else logging.DEBUG
            logger.log(level, "%s: %d candidates tried", spec.name, len(candidates))
        return scores

    def fit(self, candidate: MethodCandidate, X: Any, y: Array, weight: Array | None) -> Pipeline:
        """Fit a candidate on samples."""
        model = self._pipeline(candidate.spec).set_params(**candidate.params)
        return model.fit(X, y, **self._fit_params(candidate.spec, weight))

    def calibration(self, score: CandidateScore) -> Calibration | None:
        """Return the calibration of a candidate, None if decisions are unknown."""
        return calibrate_fold_results(self._task([score.candidate]), score.fold_results)

    def _candidates(self, spec: MethodSpec) -> Iterator[MethodCandidate]:
        if spec.level == OTHER:
            yield MethodCandidate(spec)
            return
        is_svm = spec.level == FIXED
        sets = self.kernels.for_svm() if is_svm else self.kernels.for_learning()
        if spec.learns_trust:
            sets = self.kernels.for_trust()
        for kernels in sets:
            for power in _COSTS if is_svm else _LEARNED_COSTS:
                yield MethodCandidate(spec, kernels, self.unit_cost * 2.0**power)

    def _task(self, candidates: Sequence[MethodCandidate]) -> SearchTask:
        spec = candidates[0].spec
        return SearchTask(
            estimator=self._pipeline(spec),
            candidates=[candidate.params for candidate in candidates],
            X=self.X,
            y=self.y,
            fit_params=self._fit_params(spec, self.weight),
            score_params={} if self.weight is None else {"sample_weight": self.weight},
            splits=self.splits,
            scorers=self.scorer,
            error_score=np.nan,
            return_train_score=False,
            n_jobs=self.n_jobs,
        )

    def _pipeline(self, spec: MethodSpec) -> Pipeline:
        return Pipeline([("scale", clone(self.scaler)), ("model", clone(spec.estimator))])

    def _fit_params(self, spec: MethodSpec, weight: Array | None) -> dict[str, Any]:
        params = sample_weight_params(self._pipeline(spec), weight)
        return {**params, "scale__sample_weight": weight} if params else params
