"""Training data of regions, and fits of one model per region in the memory of this process."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from lokl._arrays import Array, column
from lokl._threads import run_calls, single_threaded
from lokl.regions.model import ClassifierRegion, ConstantRegion, RegionModel, RegressorRegion, take
from lokl.regions.tree import Membership, RegionTree, TreeGrower
from lokl.search.cross_validation import sample_weight_params
from lokl.search.lockstep import threads_for

N_FOLDS = 5
# Cross-validation scores of fewer samples are mostly noise.
_FEWEST_TO_VALIDATE = 100
# Regions that stand for all of them when settings are chosen.
_TUNING_REGIONS = 4
_MEGABYTE = 2**20
# Memory for one region, in Gram matrices of its samples.
_MATRICES = 2


class RegionData(NamedTuple):
    """Training samples of one region, or of all of them.

    Attributes
    ----------
    samples : {array, CSR matrix, data frame} of shape (n_samples, n_features)
        Samples for the estimators.
    y : array of shape (n_samples,) or (n_samples, n_targets)
        Labels or targets.
    codes : array of int, of shape (n_samples,), or None
        Indices of the classes; None for regression.
    n_classes : int
        Number of classes in all regions; 0 for regression.
    weight : array of shape (n_samples,) or None
    """

    samples: Any
    y: Array
    codes: Array | None
    n_classes: int
    weight: Array | None

    def select(self, members: Membership) -> "RegionData":
        """Return the samples of one region, weighted by their membership."""
        rows, weight = members
        if self.weight is not None:
            weight = self.weight[rows] if weight is None else self.weight[rows] * weight
        codes = None if self.codes is None else self.codes[rows]
        return RegionData(take(self.samples, rows), self.y[rows], codes, self.n_classes, weight)

    def has_folds(self, rows: Array) -> bool:
        """Whether cross-validation on some rows has enough samples, and all classes per fold."""
        if len(rows) < _FEWEST_TO_VALIDATE or self.codes is None:
            return len(rows) >= _FEWEST_TO_VALIDATE
        counts = np.bincount(self.codes[rows])
        return bool((counts > 0).sum() > 1 and counts[counts > 0].min() >= N_FOLDS)


Fit = Callable[[Any, RegionData, int], Any]


def fit_estimator(estimator: Any, data: RegionData, seed: int) -> Any:
    """Fit an estimator with its own settings. `seed` is not used: the estimator has it already."""
    return estimator.fit(data.samples, data.y, **sample_weight_params(estimator, data.weight))


def fit_region(estimator: Any, fit: Fit, data: RegionData, seed: int) -> RegionModel:
    """Fit the model of one region.

    Parameters
    ----------
    estimator : estimator
        A copy is fitted.
    fit : callable
        ``fit(estimator, data, seed)`` returns a fitted estimator.
    data : RegionData
        Samples of this region.
    seed : int
        Used for every ``random_state`` that the estimator leaves at None.
    """
    if data.codes is None:
        if len(data.y) < 2:
            return ConstantRegion(column(data.y).mean(axis=0), np.empty(0))
        return RegressorRegion(fit(with_seed(estimator, seed), data, seed))
    codes = np.unique(data.codes)
    if len(codes) < 2:
        probability = np.zeros(data.n_classes)
        probability[codes] = 1.0
        signed = 2.0 * probability - 1.0
        return ConstantRegion(signed[1:] if data.n_classes == 2 else signed, probability)
    return ClassifierRegion(fit(with_seed(estimator, seed), data, seed), codes, data.n_classes)


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


def limit_memory(estimator: Any, sizes: Array) -> tuple[Any, int]:
    """Return the estimator with the memory for one region, and the regions at a time.

    The result does not depend on the number of cores.

    Parameters
    ----------
    estimator : estimator
        All regions that are fitted at a time share its ``cache_size``.
    sizes : array of int
        Samples of each region.
    """
    if len(sizes) == 1:
        return estimator, 1
    at_a_time = regions_in_memory(estimator, int(sizes.max()))
    return with_memory_share(estimator, 1.0 / at_a_time), at_a_time


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
    def map(self, function: Callable[[RegionData, int], Any], regions: Sequence[int]) -> list[Any]:
        """Return ``function(data, seed)`` for some regions, which are given by index."""

    @abstractmethod
    def fit(self, estimator: Any, fit: Fit) -> list[RegionModel]:
        """Fit a model in every region; see :func:`fit_region`."""

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
        self.tree, _, self._members = grower.grow(X)
        self.sizes = np.array([len(rows) for rows, _ in self._members])
        self.have_folds = [data.has_folds(rows) for rows, _ in self._members]
        self.n_jobs, self._data, self._seed = n_jobs, data, grower.seed

    def _call(self, function: Callable[[RegionData, int], Any], region: int) -> Any:
        return function(self._data.select(self._members[region]), region_seed(self._seed, region))

    def map(self, function: Callable[[RegionData, int], Any], regions: Sequence[int]) -> list[Any]:
        return [self._call(function, region) for region in regions]

    def fit(self, estimator: Any, fit: Fit) -> list[RegionModel]:
        limited, at_a_time = limit_memory(estimator, self.sizes)
        function = partial(fit_region, limited, fit)
        # The largest regions first, so that no thread is left with a long task at the end.
        order = np.argsort(-self.sizes, kind="stable").tolist()
        if at_a_time == 1:
            # One region takes all the memory, so it may also use all cores.
            fitted = self.map(function, order)
        else:
            calls = [partial(self._call, function, region) for region in order]
            with single_threaded():
                fitted = run_calls(calls, min(threads_for(self.n_jobs), at_a_time))
        return [model for _, model in sorted(zip(order, fitted, strict=True), key=lambda m: m[0])]
