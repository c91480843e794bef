"""Regions that were brought together, some in each batch, on the workers of a cluster."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl._notices import Notice, apart
from lokl._threads import one_thread
from lokl.clustering.region_splits import Share
from lokl.clustering.region_tree import Growth, RegionTree, Trunk
from lokl.distributed.sizes import pickled_size
from lokl.distributed.survey import Block, checked, one_column, size_of, stacked
from lokl.estimators._base.classes import sorted_classes
from lokl.models.regions import RegionModel, take
from lokl.regions.base import InRegions
from lokl.regions.divided import Searched
from lokl.regions.fitting import Fit, Learning, fit_region, region_seed
from lokl.regions.tuning import has_folds, search_region, spread_of

# What tasks hand each other says how large it is, so that Dask knows when to write it to disk.


@dataclass(frozen=True, eq=False)
class Plan:
    """How samples are brought together.

    Attributes
    ----------
    model : InRegions
        Its settings.
    growth : Growth
    trunk : Trunk
    batches : list of (int, int)
        First region of the trunk, and the one behind the last, of each batch.
    classes : array or None
        None for targets.
    """

    model: InRegions
    growth: Growth
    trunk: Trunk
    batches: list[tuple[int, int]]
    classes: Array | None


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of one block that belong to one batch, in their order."""

    samples: Any
    y: Array
    weight: Array | None

    def __sizeof__(self) -> int:
        weight = 0 if self.weight is None else self.weight.nbytes
        return size_of(self.samples) + int(self.y.nbytes) + int(weight)


def split_block(plan: Plan, block: Block, X: Any, y: Any, weight: Any) -> list[Part | None]:
    """Rows of a block for each batch, None for no rows."""
    with block.named(), one_thread():
        block.check_lengths(X=X, y=y, sample_weight=weight)
        found = checked(plan.model, X, y, weight)
        shares = plan.trunk.tree.divide(found.X)
    parts: list[Part | None] = []
    for first, behind in plan.batches:
        # With overlap, a row may be in several regions of a batch.
        rows = np.unique(np.concatenate([rows for rows, _ in shares[first:behind]]))
        own = None if found.weight is None else found.weight[rows]
        part = Part(take(found.samples, rows), found.y[rows], own) if len(rows) else None
        parts.append(part)
    return parts


@dataclass(frozen=True, eq=False)
class Batch:
    """All samples of some regions, in the order of their rows.

    Attributes
    ----------
    learning : Learning
    branches : list of RegionTree
        What has grown from each region of the trunk.
    shares : list of Share
        Of the regions at the ends of all branches.
    """

    learning: Learning
    branches: list[RegionTree]
    shares: list[Share]

    def __sizeof__(self) -> int:
        learning = self.learning
        others = (learning.y, learning.codes, learning.weight)
        shares = (values for share in self.shares for values in share)
        small = sum(int(values.nbytes) for values in (*others, *shares) if values is not None)
        return size_of(learning.samples) + small


def join_parts(plan: Plan, number: int, parts: Sequence[Part | None]) -> Batch:
    """Bring the rows of a batch together, and divide them into regions."""
    there = [part for part in parts if part is not None]
    weights = [part.weight for part in there if part.weight is not None]
    samples, y = stacked([part.samples for part in there]), stacked([part.y for part in there])
    weight = stacked(weights) if weights else None
    first, behind = plan.batches[number]
    with one_thread():
        found = checked(plan.model, samples, y, weight)
        codes, y = _codes(plan.classes, found.y)
        met = plan.trunk.tree.divide(found.X)
        branches, shares = [], []
        for place in range(first, behind):
            path, missing = plan.trunk.paths[place], plan.trunk.tree.missing
            branch, own = plan.growth.branch(found.X, met[place], path, missing)
            branches.append(branch)
            shares += own
    n_classes = 0 if plan.classes is None else len(plan.classes)
    return Batch(Learning(found.samples, y, codes, n_classes, found.weight), branches, shares)


def _codes(classes: Array | None, y: Array) -> tuple[Array | None, Array]:
    """Numbers of the classes, None for targets; and labels or targets."""
    if classes is None:
        return None, np.asarray(y, dtype=np.float64)
    y = one_column(y)
    labels, codes = sorted_classes(y)
    return np.searchsorted(classes, labels)[codes], y


@dataclass(frozen=True, eq=False)
class Facts:
    """What has to be known of a batch to go on; all of it is small."""

    branches: list[RegionTree]
    sizes: Array
    have_folds: list[bool]


def facts_of(batch: Batch) -> Facts:
    """Tell about the regions of a batch."""
    codes = batch.learning.codes
    folds = [
        has_folds(len(rows), None if codes is None else codes[rows]) for rows, _ in batch.shares
    ]
    return Facts(batch.branches, np.array([len(rows) for rows, _ in batch.shares]), folds)


def spread_in(batch: Batch, place: int) -> float:
    """Mean squared distance from the mean, in one region of a batch."""
    return spread_of(take(batch.learning.samples, batch.shares[place].rows))


def search_in(
    estimator: Any, grid: Any, seed: int, batch: Batch, place: int
) -> tuple[Searched, dict[str, Notice]]:
    """Cross-validate candidates in one region of a batch; warnings come with the scores."""
    region = batch.learning.part(*batch.shares[place])
    with one_thread():
        return apart(search_region, estimator, grid, region, seed, 1)


@dataclass(frozen=True, eq=False)
class Fitted:
    """Models of a batch, and what they warn of."""

    models: list[RegionModel]
    notices: dict[str, Notice]
    n_bytes: int

    def __sizeof__(self) -> int:
        return self.n_bytes


def fit_batch(estimator: Any, fit: Fit, seed: tuple[int, ...], batch: Batch, first: int) -> Fitted:
    """Learn in every region of a batch, of which `first` is the place of the first among all."""

    def learn() -> list[RegionModel]:
        return [
            fit_region(estimator, batch.learning.part(*share), region_seed(seed, place), fit)
            for place, share in enumerate(batch.shares, first)
        ]

    with one_thread():
        models, notices = apart(learn)
    return Fitted(models, notices, pickled_size(models))
