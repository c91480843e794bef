"""From samples to the models of regions: plain functions that can run anywhere.

Samples in regions, wherever they are.

Settings that are chosen once, on a few regions, or in every region by itself.

Samples in regions, all of them in the memory of this process.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import KFold, StratifiedKFold

from lokl._arrays import Array, column, is_sparse
from lokl._threads import run_calls, single_threaded
from lokl._warnings import capture_warnings, reissue
from lokl.kernels import RBF
from lokl.methods.uniformmkl import UniformMKLClassifier, UniformMKLRegressor
from lokl.regions.model import ClassRegion, ConstantRegion, RegionModel, TargetRegion, take
from lokl.regions.tree import Growth, RegionTree, grow_tree
from lokl.search.cross_validation import fit_options
from lokl.search.lockstep import threads_for
from lokl.search.results import warn_of_edges
from lokl.search.search import KernelSearchCV

_MEGABYTE = 2**20
# Memory for one region, in whole matrices of its samples.
_MATRICES = 2


Fit = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Learning:
    """Samples of all regions, or of one.

    Attributes
    ----------
    samples : {array, CSR matrix, data frame}
        As estimators take them.
    y : array
        As given.
    codes : array of int or None
        Numbers of the classes; None for targets.
    n_classes : int
    weight : array or None
        Of the samples.
    """

    samples: Any
    y: Array
    codes: Array | None
    n_classes: int
    weight: Array | None

    @property
    def n_tasks(self) -> int:
        """Decisions for a sample."""
        if self.codes is not None:
            return self.n_classes if self.n_classes > 2 else 1
        return 1 if self.y.ndim == 1 else int(self.y.shape[1])

    def targets(self) -> Array:
        """Targets (n_samples, n_tasks) on a common scale: signs, shares of classes or numbers."""
        if self.codes is None:
            y = column(self.y)
            spread = y.std(axis=0)
            return np.asarray((y - y.mean(axis=0)) / np.where(spread > 0, spread, 1.0))
        if self.n_classes == 2:
            return np.where(self.codes == 1, 1.0, -1.0)[:, np.newaxis]
        return np.asarray(np.eye(self.n_classes)[self.codes])

    def part(self, rows: Array, weight: Array | None) -> "Learning":
        """Return the samples of one region, which is all that a fit of it needs."""
        own = None if self.weight is None else self.weight[rows]
        if weight is not None:
            own = weight if own is None else own * weight
        codes = None if self.codes is None else self.codes[rows]
        return Learning(take(self.samples, rows), self.y[rows], codes, self.n_classes, own)


def fit_region(estimator: Any, region: Learning, seed: int, fit: Fit) -> RegionModel:
    """Learn from the samples of one region.

    Parameters
    ----------
    estimator : estimator
        It stays as it is.
    region : Learning
        Of this region only.
    seed : int
        For random choices, where the estimator leaves them open.
    fit : callable
        ``fit(estimator, X, y, seed, **options)`` returns a fitted estimator.
    """
    if region.codes is None:
        if len(region.y) < 2:
            return ConstantRegion(column(region.y).mean(axis=0), np.empty(0))
        return TargetRegion(_fitted(estimator, region, seed, fit))
    known = np.unique(region.codes)
    if len(known) < 2:
        probability = np.zeros(region.n_classes)
        probability[known] = 1.0
        signed = 2.0 * probability - 1.0
        return ConstantRegion(signed[1:] if region.n_classes == 2 else signed, probability)
    return ClassRegion(_fitted(estimator, region, seed, fit), known, region.n_classes)


def _fitted(estimator: Any, region: Learning, seed: int, fit: Fit) -> Any:
    options = fit_options(estimator, region.weight)
    return fit(seeded(estimator, seed), region.samples, region.y, seed, **options)


def fit_once(estimator: Any, X: Any, y: Array, seed: int, **options: Any) -> Any:
    """Fit an estimator as it is."""
    return estimator.fit(X, y, **options)


def fit_regions(
    estimator: Any,
    learning: Learning,
    shares: Sequence[tuple[Array, Array | None]],
    seed: tuple[int, ...],
    threads: int,
    fit: Fit,
) -> list[RegionModel]:
    """Learn in every region, the largest ones first, so that no thread waits long at the end."""
    seeds = [region_seed(seed, place) for place in range(len(shares))]
    sizes = np.array([len(rows) for rows, _ in shares])
    small, at_once = in_its_share(estimator, sizes)
    if len(shares) == 1:
        return [fit_region(small, learning.part(*shares[0]), seeds[0], fit)]
    order = np.argsort(-sizes, kind="stable")

    def learn(place: int) -> RegionModel:
        return fit_region(small, learning.part(*shares[place]), seeds[place], fit)

    if at_once == 1:
        # One region takes all the memory: then it takes all the cores.
        found = [learn(place) for place in order]
    else:
        calls = [partial(learn, place) for place in order]
        with single_threaded():
            found = run_calls(calls, min(threads, at_once))
    models: list[Any] = [None] * len(shares)
    for place, model in zip(order, found, strict=True):
        models[place] = model
    return models


def in_its_share(estimator: Any, sizes: Array) -> tuple[Any, int]:
    """Return the estimator with the memory that one region is given, and how many there are."""
    if len(sizes) == 1:
        return estimator, 1
    at_once = regions_in_memory(estimator, int(sizes.max()))
    return with_share_of_memory(estimator, 1.0 / at_once), at_once


def region_seed(seed: tuple[int, ...], place: int) -> int:
    """Seed of a region, from where it is: no order of work changes it."""
    return int(np.random.SeedSequence((*seed, place)).generate_state(1)[0])


def seeded(estimator: Any, seed: int) -> Any:
    """Return a copy that has a seed wherever the estimator leaves random choices open."""
    copied = clone(estimator)
    return copied.set_params(**dict.fromkeys(_open_seeds(copied), seed))


def _open_seeds(estimator: Any) -> list[str]:
    params = estimator.get_params()
    return [n for n, value in params.items() if _last(n) == "random_state" and value is None]


def regions_in_memory(estimator: Any, n_samples: int) -> int:
    """How many regions of so many samples are worked on at a time within ``cache_size``.

    The number of cores is not looked at: what a region is given must not depend on it.
    """
    params = estimator.get_params()
    budgets = [float(value) for name, value in params.items() if _last(name) == "cache_size"]
    needed = _MATRICES * 4 * n_samples**2 / _MEGABYTE
    return max(1, int(min(budgets, default=512.0) // needed))


def with_share_of_memory(estimator: Any, share: float) -> Any:
    """Return a copy that works in a part of its ``cache_size``."""
    copied = clone(estimator)
    params = copied.get_params()
    changed = {}
    for name, value in params.items():
        solver = params.get(name.removesuffix("cache_size") + "solver")
        # A solver that is an object has a memory of its own, and must be given that.
        if _last(name) == "cache_size" and (solver is None or isinstance(solver, str)):
            changed[name] = share * value
    return copied.set_params(**changed)


def _last(name: str) -> str:
    return name.rsplit("__", 1)[-1]


@dataclass(frozen=True, eq=False)
class Searched:
    """Scores of candidates in one region."""

    candidates: list[dict[str, Any]]
    scores: Array
    size: int  # samples of the region


class Divided(ABC):
    """One division of the samples, and what can be asked about its regions where they are.

    Attributes
    ----------
    tree : RegionTree
    sizes : array of int
        Samples of each region.
    """

    tree: RegionTree
    sizes: Array

    @abstractmethod
    def have_folds(self) -> Sequence[bool]:
        """Whether each region has enough samples for cross-validation."""

    @abstractmethod
    def spreads(self, places: Sequence[int]) -> list[float]:
        """Mean squared distance from the mean, in some regions."""

    @abstractmethod
    def searched(
        self, estimator: Any, grid: Any, places: Sequence[int], seed: tuple[int, ...]
    ) -> list[Searched]:
        """Cross-validate all candidates of a grid in some regions; seeds come from the place."""

    @abstractmethod
    def fitted(self, estimator: Any, fit: Fit, seed: tuple[int, ...]) -> list[RegionModel]:
        """Learn in every region; seeds come from the place."""


_FOLDS = 5
# Scores of fewer samples are mostly chance.
_FEWEST = 100
# Regions that tell for all.
_REGIONS = 4
# Costs and widths of the RBF kernel, the latter times what samples of one region are apart.
# Scores change slowly with the cost, so that costs are farther apart.
_COSTS = [0.5, 2.0, 8.0, 32.0, 128.0, 512.0]
_WIDTHS = [2.0**power for power in range(-3, 7)]
# Machines of regions are averaged over many: more digits of one do not show.
_TOLERANCE = 1e-2
# Residuals that cost nothing, in standard deviations of the target.
_EPSILON = 0.05
# Of these standard deviations.
_DIGITS = 6


def default_classifier() -> Any:
    """Return one RBF machine for classes."""
    # Types of constructors that come from declared settings are not known to type checkers.
    classifier: Any = UniformMKLClassifier
    return classifier([RBF()], tol=_TOLERANCE)


def default_regressor(spread: float) -> Any:
    """Return one RBF machine for targets, whose spread is the unit of its settings."""
    regressor: Any = UniformMKLRegressor
    spread = spread or 1.0
    scaled = {"C": spread, "epsilon": _EPSILON * spread, "tol": _TOLERANCE * spread}
    return regressor([RBF()], **scaled)


def rounded_spread(variance: Any) -> float:
    """Standard deviation of targets, from the variance of each of them.

    Digits that depend on the order of sums are left out: settings that come from it are then the
    same wherever the samples are.
    """
    return float(f"{np.sqrt(np.mean(variance)):.{_DIGITS}g}")


def spread_of_targets(y: Array, weight: Array | None) -> float:
    """Standard deviation of targets, over samples and targets."""
    mean = np.average(y, axis=0, weights=weight)
    return rounded_spread(np.average((y - mean) ** 2, axis=0, weights=weight))


def default_grid(estimator: Any, spreads: Sequence[float]) -> dict[str, Any]:
    """Costs and widths for the default estimator.

    Parameters
    ----------
    estimator : estimator
        Its cost is the unit of costs.
    spreads : sequence of float
        What samples of some regions are apart.
    """
    spread = float(np.mean(spreads))
    unit = 1.0 / spread if spread > 0 else 1.0
    return {
        "C": [estimator.C * cost for cost in _COSTS],
        "kernels": [[RBF(unit * width)] for width in _WIDTHS],
    }


def spread_of(X: Any) -> float:
    """Mean squared distance from the mean."""
    if is_sparse(X):
        squares = X.multiply(X).sum() / X.shape[0]
        return max(float(squares - np.square(np.asarray(X.mean(axis=0))).sum()), 0.0)
    with np.errstate(all="ignore"):
        spread = float(np.nanvar(np.asarray(X, dtype=float), axis=0).sum())
    return spread if np.isfinite(spread) else 0.0


def regions_to_tune(have_folds: Sequence[bool]) -> list[int]:
    """Return a few regions, spread over all of them, that have enough samples for folds."""
    fit = [place for place, enough in enumerate(have_folds) if enough]
    if len(fit) <= _REGIONS:
        return fit
    return [fit[len(fit) * (2 * k + 1) // (2 * _REGIONS)] for k in range(_REGIONS)]


def has_folds(n_samples: int, codes: Array | None) -> bool:
    """Whether samples are enough, and every fold has all classes of the region."""
    if n_samples < _FEWEST or codes is None:
        return n_samples >= _FEWEST
    counts = np.bincount(codes)
    return bool((counts > 0).sum() > 1 and counts[counts > 0].min() >= _FOLDS)


@dataclass(frozen=True)
class Choice:
    """What is chosen for all regions, and how each of them is fitted."""

    estimator: Any
    fit: Fit = fit_once
    best: dict[str, Any] = field(default_factory=dict)


def choose(
    estimator: Any, divided: Divided, tune: str | None, grid: Any, seed: tuple[int, ...]
) -> Choice:
    """Choose settings on a few regions, as `tune` of the estimators in regions says.

    `grid` is None where nothing is to be chosen, and ``"default"`` for that of the default
    estimator.
    """
    if tune is None or grid is None:
        return Choice(estimator)
    places, told = regions_to_tune(divided.have_folds()), grid != "default"
    if not told:
        if not places:
            return Choice(estimator)
        grid = default_grid(estimator, divided.spreads(places))
    if tune == "each":
        return Choice(estimator, partial(fit_tuned, grid))
    best = _best(divided.searched(estimator, grid, places, seed), told)
    return Choice(clone(estimator).set_params(**best), best=best)


def _best(searched: Sequence[Searched], told: bool) -> dict[str, Any]:
    """Return the parameters that are best in the mean over a few regions.

    `told` says whether to warn where they are on the edge of the grid.
    """
    if not searched:
        return {}
    scores = [one.scores for one in searched]
    mean = np.average(scores, axis=0, weights=[one.size for one in searched])
    candidates = searched[-1].candidates
    if told:
        warn_of_edges(candidates, mean)
    return dict(candidates[int(np.argmax(mean))])


def search_region(
    estimator: Any, grid: Any, region: Learning, seed: int, n_jobs: int | None
) -> Searched:
    """Cross-validate all candidates of a grid in one region."""
    search = _search(estimator, grid, region, seed, n_jobs, refit=False)
    options = fit_options(estimator, region.weight)
    _, notices = capture_warnings(partial(search.fit, region.samples, region.y, **options))
    reissue((None, _without_edges(notices)))
    scores = _all_scores(search.cv_results_, len(region.y))
    return Searched(search.cv_results_["params"], scores, len(region.y))


def _all_scores(results: dict[str, Any], size: int) -> Array:
    """Scores of all candidates: what was skipped was clearly behind, by a standard error at least.

    Half a sample is more where all folds of the best are alike.
    """
    mean = results["mean_test_score"]
    error = results["std_test_score"][np.nanargmax(mean)] / np.sqrt(_FOLDS)
    behind = np.nanmin(mean) - max(float(error), 0.5 / size)
    return np.where(np.isnan(mean), behind, mean)


def fit_tuned(grid: Any, estimator: Any, X: Any, y: Array, seed: int, **options: Any) -> Any:
    """Choose parameters and fit an estimator with them; as it is where samples are too few."""
    codes = np.unique(y, return_inverse=True)[1] if is_classifier(estimator) else None
    region = Learning(X, y, codes, 0, None)
    if not has_folds(len(y), codes):
        return estimator.fit(X, y, **options)
    search = _search(estimator, grid, region, seed, 1, refit=True)
    _, notices = capture_warnings(partial(search.fit, X, y, **options))
    reissue((None, _without_edges(notices)))
    return search.best_estimator_


def _search(
    estimator: Any, grid: Any, region: Learning, seed: int, n_jobs: int | None, *, refit: bool
) -> Any:
    splitter = KFold if region.codes is None else StratifiedKFold
    search: Any = KernelSearchCV
    return search(
        seeded(estimator, seed),
        grid,
        cv=splitter(_FOLDS, shuffle=True, random_state=seed % 2**32),
        adaptive=True,
        refit=refit,
        n_jobs=n_jobs,
    )


def _without_edges(notices: dict[str, Any]) -> dict[str, Any]:
    """Leave out what is said about the edge of a grid by one region."""
    return {kind: one for kind, one in notices.items() if not kind.startswith("edge of the grid")}


class InMemory(Divided):
    """All samples in one place.

    Parameters
    ----------
    X : {array, CSR matrix}
        What the tree looks at.
    learning : Learning
        The same samples as estimators take them.
    n_jobs : int or None
        Regions at a time.
    growth : Growth
    """

    def __init__(self, X: Any, learning: Learning, n_jobs: int | None, growth: Growth):
        self.tree, self._shares = grow_tree(X, growth)
        self.sizes = np.array([len(rows) for rows, _ in self._shares])
        self._learning, self._n_jobs = learning, n_jobs

    def rows(self, place: int) -> Array:
        """Numbers of the samples of a region."""
        return self._shares[place].rows

    def have_folds(self) -> Sequence[bool]:
        codes = self._learning.codes
        return [
            has_folds(len(rows), None if codes is None else codes[rows]) for rows, _ in self._shares
        ]

    def spreads(self, places: Sequence[int]) -> list[float]:
        samples = self._learning.samples
        return [spread_of(take(samples, self._shares[place].rows)) for place in places]

    def searched(
        self, estimator: Any, grid: Any, places: Sequence[int], seed: tuple[int, ...]
    ) -> list[Searched]:
        return [
            search_region(
                estimator,
                grid,
                self._learning.part(*self._shares[place]),
                region_seed(seed, place),
                self._n_jobs,
            )
            for place in places
        ]

    def fitted(self, estimator: Any, fit: Fit, seed: tuple[int, ...]) -> list[RegionModel]:
        threads = threads_for(self._n_jobs)
        return fit_regions(estimator, self._learning, self._shares, seed, threads, fit)
