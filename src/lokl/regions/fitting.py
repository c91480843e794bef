"""Training data of regions, fits of one model per region, and the choice of their settings.

Settings are chosen by cross-validation: once on a few regions, or in every region.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler

from lokl._arrays import Array, column
from lokl._survival import as_columns, nelson_aalen
from lokl._threads import run_calls, single_threaded, threads_for
from lokl._warnings import capture_warnings, reissue
from lokl.base.survival import ProportionalHazards, folds_by_time, risk_of_time
from lokl.kernels import RBF
from lokl.regions.model import ConstantRegion, FittedRegion, RegionModel, take
from lokl.regions.tree import Membership, RegionTree, TreeGrower
from lokl.search.cross_validation import fit_weighted, sample_weight_params, without_routing
from lokl.search.results import warn_at_grid_boundary
from lokl.search.search import KernelSearchCV

_N_FOLDS = 5
# Cross-validation scores of fewer samples are mostly noise.
_FEWEST_TO_VALIDATE = 100
# Regions that stand for all of them when settings are chosen.
_TUNING_REGIONS = 4
_MEGABYTE = 2**20
# Memory for one region, in Gram matrices of its samples.
_MATRICES = 2
# Costs and widths of the RBF kernel for the default estimator; widths are in units of the
# reciprocal variance of a region. Scores change slowly with the cost, so few costs are enough.
_COSTS = [0.5, 2.0, 8.0, 32.0, 128.0, 512.0]
_WIDTHS = [2.0**power for power in range(-3, 7)]


class RegionData(NamedTuple):
    """Training samples of one region, or of all of them.

    Attributes
    ----------
    samples : {array, CSR matrix, data frame} of shape (n_samples, n_features)
        Samples for the estimators.
    y : array of shape (n_samples,) or (n_samples, n_targets)
        Indices of the classes, or targets; structured for censored times.
    weight : array of shape (n_samples,) or None
    classes : array of shape (n_classes,) or None
        Classes of all regions; None for regression and censored times.
    """

    samples: Any
    y: Array
    weight: Array | None = None
    classes: Array | None = None

    @property
    def labels(self) -> Array:
        """Labels of classification or targets of regression, for the estimators."""
        return self.y if self.classes is None else self.classes[self.y]

    @property
    def is_censored(self) -> bool:
        """Whether targets are events and censored times."""
        return self.y.dtype.names is not None

    def take(self, rows: Array) -> "RegionData":
        """Return some of the samples."""
        weight = None if self.weight is None else self.weight[rows]
        return RegionData(take(self.samples, rows), self.y[rows], weight, self.classes)

    def with_weight(self, X: Any) -> tuple[Any, "RegionData"]:
        """Return samples of positive weight only, for the trees (`X`) and for the estimators."""
        if self.weight is None:
            return X, self
        rows = np.flatnonzero(self.weight > 0)
        return take(X, rows), self.take(rows)

    def select(self, members: Membership) -> "RegionData":
        """Return the samples of one region, weighted by their membership."""
        data, degree = self.take(members.rows), members.weight
        if degree is None:
            return data
        return data._replace(weight=degree if data.weight is None else data.weight * degree)

    def has_folds(self, rows: Any = slice(None)) -> bool:
        """Whether some rows are enough for folds with all classes, or with events."""
        y = self.y[rows]
        if self.is_censored and y["event"].sum() < _N_FOLDS:
            return False
        if len(y) < _FEWEST_TO_VALIDATE or self.classes is None:
            return len(y) >= _FEWEST_TO_VALIDATE
        counts = np.bincount(y)
        return bool((counts > 0).sum() > 1 and counts[counts > 0].min() >= _N_FOLDS)


def fit_region(estimator: Any, grid: Any, data: RegionData, seed: int) -> RegionModel:
    """Fit the model of one region.

    Parameters
    ----------
    estimator : estimator
        A copy is fitted.
    grid : dict, list of dict or None
        Values among which cross-validation in this region chooses, if it has enough samples.
    data : RegionData
        Samples of this region.
    seed : int
        Used for every ``random_state`` that the estimator leaves at None.
    """
    if data.is_censored and (len(data.y) < 2 or not data.y["event"].any()):
        # Without an event, any later time has no loss either.
        latest = risk_of_time(data.y["time"]).min(keepdims=True)
        hazard = nelson_aalen(data.y, data.weight)
        hazards = ProportionalHazards(hazard.x, hazard.y, slope=0.0, centre=0.0)
        return ConstantRegion(latest, np.empty(0), hazards)
    if data.classes is None:
        if len(data.y) < 2:
            return ConstantRegion(column(data.y).mean(axis=0), np.empty(0))
        return FittedRegion(_fit(estimator, grid, data, seed))
    codes, n_classes = np.unique(data.y), len(data.classes)
    if len(codes) < 2:
        probability = np.zeros(n_classes)
        probability[codes] = 1.0
        signed = 2.0 * probability - 1.0
        return ConstantRegion(signed[1:] if n_classes == 2 else signed, probability)
    return FittedRegion(_fit(estimator, grid, data, seed), codes, n_classes)


def _fit(estimator: Any, grid: Any, data: RegionData, seed: int) -> Any:
    if grid is not None and data.has_folds():
        return _search(estimator, grid, data, seed, 1, refit=True).best_estimator_
    return fit_weighted(with_seed(estimator, seed), data.samples, data.labels, data.weight)


def region_seed(seed: tuple[int, ...], region: int) -> int:
    """Return the seed of a region, which depends on its index but not on the order of work."""
    return int(np.random.SeedSequence((*seed, region)).generate_state(1)[0])


def with_seed(estimator: Any, seed: int) -> Any:
    """Return a copy with a seed for every ``random_state`` that is None."""
    copied = clone(estimator)
    unset = [name for name, value in _parameters(copied, "random_state") if value is None]
    return copied.set_params(**dict.fromkeys(unset, seed))


def _parameters(estimator: Any, name: str) -> list[tuple[str, Any]]:
    """Return the parameters of this name of an estimator and of its parts, by full name."""
    params = estimator.get_params().items()
    return [(full, value) for full, value in params if full.rsplit("__", 1)[-1] == name]


def regions_in_memory(estimator: Any, n_samples: int) -> int:
    """Return how many regions of `n_samples` samples fit into ``cache_size`` at a time."""
    budgets = [float(value) for _, value in _parameters(estimator, "cache_size")]
    needed = _MATRICES * 4 * n_samples**2 / _MEGABYTE
    return max(1, int(min(budgets, default=512.0) // needed))


def with_memory_share(estimator: Any, share: float) -> Any:
    """Return a copy that uses a share of its ``cache_size``."""
    copied = clone(estimator)
    params = copied.get_params()
    changed = {}
    for name, value in _parameters(copied, "cache_size"):
        solver = params.get(name.removesuffix("cache_size") + "solver")
        # If the solver is an object, its own cache_size counts instead.
        if solver is None or isinstance(solver, str):
            changed[name] = share * value
    return copied.set_params(**changed)


RegionFunction = Callable[[RegionData, int], Any]


class RegionBackend(ABC):
    """Samples divided into regions, and computations on them wherever they are stored.

    Attributes
    ----------
    tree : RegionTree
    sizes : array of int, of shape (n_regions,)
        Samples of each region.
    have_folds : list of bool
        Whether each region has enough samples for cross-validation.
    n_jobs : int or None
        Threads for a computation in one region.
    """

    tree: RegionTree
    sizes: Array
    have_folds: list[bool]
    n_jobs: int | None

    @abstractmethod
    def map(
        self, function: RegionFunction, regions: Sequence[int] | None = None, at_a_time: int = 1
    ) -> list[Any]:
        """Return ``function(data, seed)`` for some regions, which are given by index.

        None is all regions, at most `at_a_time` of them in the memory of one machine. It must be
        the last call, since samples may be released then.
        """

    def fit(self, estimator: Any, grid: Any) -> list[RegionModel]:
        """Fit a model in every region; see :func:`fit_region`.

        All regions that are fitted at a time share the ``cache_size`` of the estimator. The result
        does not depend on the number of cores.
        """
        at_a_time = 1
        if len(self.sizes) > 1:
            at_a_time = regions_in_memory(estimator, int(self.sizes.max()))
            estimator = with_memory_share(estimator, 1.0 / at_a_time)
        return self.map(partial(fit_region, estimator, grid), at_a_time=at_a_time)

    def tuning_regions(self) -> list[int]:
        """Return a few regions, spread evenly over all that have enough samples for folds."""
        enough = np.flatnonzero(self.have_folds).tolist()
        if len(enough) <= _TUNING_REGIONS:
            return enough
        steps = range(_TUNING_REGIONS)
        return [enough[len(enough) * (2 * k + 1) // (2 * _TUNING_REGIONS)] for k in steps]


class LocalRegions(RegionBackend):
    """Regions of samples that are all in the memory of this process.

    Parameters
    ----------
    X : {array, CSR matrix} of shape (n_samples, n_features)
        Samples for the tree.
    data : RegionData
        The same samples for the estimators.
    n_jobs : int or None
        Regions at a time.
    grower : TreeGrower
    """

    def __init__(self, X: Any, data: RegionData, n_jobs: int | None, grower: TreeGrower):
        self.tree, self._members = grower.grow(X)
        self.sizes = np.array([len(rows) for rows, _ in self._members])
        self.have_folds = [data.has_folds(rows) for rows, _ in self._members]
        self.n_jobs, self._data, self._seed = n_jobs, data, grower.seed

    def map(
        self, function: RegionFunction, regions: Sequence[int] | None = None, at_a_time: int = 1
    ) -> list[Any]:
        def call(region: int) -> Any:
            seed = region_seed(self._seed, region)
            return function(self._data.select(self._members[region]), seed)

        regions = range(len(self.sizes)) if regions is None else regions
        # The largest regions first, so that no thread is left with a long task at the end.
        order = sorted(regions, key=lambda region: -self.sizes[region])
        # If one region takes all the memory, it may also use all cores.
        with single_threaded() if at_a_time > 1 else nullcontext():
            calls = [partial(call, region) for region in order]
            results = run_calls(calls, min(threads_for(self.n_jobs), at_a_time))
        by_region = dict(zip(order, results, strict=True))
        return [by_region[region] for region in regions]


def tune_regions(
    estimator: Any, backend: RegionBackend, tune: str | None, grid: Any, *, default: bool
) -> tuple[Any, Any, dict[str, Any]]:
    """Choose settings as the parameter `tune` of the estimators demands.

    Parameters
    ----------
    estimator : estimator
    backend : RegionBackend
    tune : {"shared", "each"} or None
    grid : dict, list of dict or None
        Values to try; None for none.
    default : bool
        Whether to use the grid of the default estimator if `grid` is None.

    Returns
    -------
    estimator : estimator
        With the settings that were chosen for all regions.
    grid : dict, list of dict or None
        Values from which each region chooses.
    best_params : dict
        Settings that were chosen for all regions.
    """
    is_given = grid is not None
    regions = [] if tune is None else backend.tuning_regions()
    if default and not is_given and regions:
        grid = _default_grid(estimator, backend.map(_total_variance, regions))
    if tune == "each":
        return estimator, grid, {}
    if grid is None or not regions:
        return estimator, None, {}
    searched = backend.map(partial(_search_region, estimator, grid, backend.n_jobs), regions)
    candidates, scores, sizes = zip(*searched, strict=True)
    mean = np.average(scores, axis=0, weights=sizes)
    if is_given:
        warn_at_grid_boundary(candidates[0], mean)
    best = dict(candidates[0][int(np.argmax(mean))])
    return clone(estimator).set_params(**best), None, best


def _default_grid(estimator: Any, variances: Sequence[float]) -> dict[str, Any]:
    """Return costs, in units of the cost of the estimator, and widths for the default estimator."""
    variance = float(np.mean(variances))
    unit = 1.0 / variance if variance > 0 else 1.0
    return {
        "C": [estimator.C * cost for cost in _COSTS],
        "kernels": [[RBF(unit * width)] for width in _WIDTHS],
    }


def _total_variance(data: RegionData, seed: int) -> float:
    """Return the sum of the variances of all columns, 0 if it overflows."""
    with np.errstate(all="ignore"):
        variance = float(np.nansum(StandardScaler(with_mean=False).fit(data.samples).var_))
    return variance if np.isfinite(variance) else 0.0


def _search_region(
    estimator: Any, grid: Any, n_jobs: int | None, data: RegionData, seed: int
) -> tuple[list[dict[str, Any]], Array, int]:
    """Cross-validate a grid in one region; return candidates, scores and number of samples."""
    results = _search(estimator, grid, data, seed, n_jobs, refit=False).cv_results_
    mean, size = results["mean_test_score"], len(data.y)
    # Skipped candidates were clearly behind, by a standard error at least. If all folds of the best
    # candidate have the same score, half a sample is larger.
    error = results["std_test_score"][np.nanargmax(mean)] / np.sqrt(_N_FOLDS)
    behind = np.nanmin(mean) - max(float(error), 0.5 / size)
    return results["params"], np.where(np.isnan(mean), behind, mean), size


def _search(
    estimator: Any, grid: Any, data: RegionData, seed: int, n_jobs: int | None, *, refit: bool
) -> Any:
    """Search a grid in one region, without warnings about the edge of the grid there."""
    splitter = KFold if data.classes is None else StratifiedKFold
    cv: Any = splitter(_N_FOLDS, shuffle=True, random_state=seed % 2**32)
    if data.is_censored:
        cv = folds_by_time(as_columns(data.y), _N_FOLDS)
    make: Any = KernelSearchCV
    search = make(
        with_seed(estimator, seed),
        grid,
        cv=cv,
        adaptive=True,
        refit=refit,
        n_jobs=n_jobs,
    )
    options = sample_weight_params(estimator, data.weight)
    with without_routing():
        _, notices = capture_warnings(partial(search.fit, data.samples, data.labels, **options))
    kept = {kind: notice for kind, notice in notices.items() if not kind.startswith("edge of")}
    reissue((None, kept))
    return search
