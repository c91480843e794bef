"""From samples to the models of regions: plain functions that can run anywhere."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from lokl._arrays import Array, column
from lokl._side_by_side import side_by_side
from lokl.models.regions import (
    ClassRegion,
    ConstantRegion,
    RegionModel,
    TargetRegion,
    take,
)
from lokl.selection.decisions import fit_options

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
        found = side_by_side(calls, min(threads, at_once))
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
