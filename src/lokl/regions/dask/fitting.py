"""Regions that were brought together, some in each batch, on the workers of a cluster.

Fits on collections: sample, tree, shuffle by region, one task for each batch of regions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.utils import column_or_1d

from lokl._arrays import Array
from lokl._threads import single_threaded
from lokl._warnings import CountedWarning, DeferredWarnings, capture_warnings, reissue
from lokl.base.classifier import sorted_classes
from lokl.base.estimator import publish
from lokl.base.settings import check_settings
from lokl.base.validation import ALL_ZERO
from lokl.regions import RegionClassifier
from lokl.regions.dask.blocks import aligned, beside, pickled_size, samples, with_lengths
from lokl.regions.dask.cluster import Cluster, need_dask
from lokl.regions.dask.summary import Block, Rows, Seen, checked, look, one_column, size_of, stacked
from lokl.regions.estimators import InRegions
from lokl.regions.fitting import (
    Divided,
    Fit,
    Learning,
    Searched,
    fit_region,
    has_folds,
    in_its_share,
    region_seed,
    rounded_spread,
    search_region,
    spread_of,
)
from lokl.regions.model import RegionModel, take
from lokl.regions.tree import Growth, RegionTree, Share, Trunk, with_branches

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
    with block.named(), single_threaded():
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
    with single_threaded():
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
) -> tuple[Searched, dict[str, CountedWarning]]:
    """Cross-validate candidates in one region of a batch; warnings come with the scores."""
    region = batch.learning.part(*batch.shares[place])
    with single_threaded():
        return capture_warnings(search_region, estimator, grid, region, seed, 1)


@dataclass(frozen=True, eq=False)
class Fitted:
    """Models of a batch, and what they warn of."""

    models: list[RegionModel]
    notices: dict[str, CountedWarning]
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

    with single_threaded():
        models, notices = capture_warnings(learn)
    return Fitted(models, notices, pickled_size(models))


# Samples of a batch are held two or three times for a moment.
_BYTES_OF_BATCH = 32 * 2**20
# Batches for each thread of the cluster, so that the last ones do not keep it waiting.
_BATCHES_A_THREAD = 4


def fit(model: Any, X: Any, y: Any, sample_weight: Any = None, client: Any = None) -> Any:
    """Fit an estimator in regions on collections larger than the memory of any machine.

    A sample of at most 50,000 rows tells where regions are. Rows are then brought together by
    region, and one task learns in each batch of regions. The model is the one that ``model.fit``
    would give for the same samples in memory: regions and seeds depend on places of rows, not on
    chunks, workers or the order of work.

    Parameters
    ----------
    model : RegionClassifier or RegionRegressor
        It stays as it is. Its `n_jobs` has no meaning here.
    X : dask array or dask data frame of shape (n_samples, n_features)
        Blocks may be arrays, CSR matrices or data frames; some may be empty. It is read twice for
        the first cover and once for every other, and once more where its chunks have unknown sizes:
        ``X.persist()`` spares that where the cluster has the memory.
    y : dask array, dask series or array of shape (n_samples,), or (n_samples, n_targets)
        Chunks may differ from those of `X`.
    sample_weight : dask array, dask series or array of shape (n_samples,), optional
        A weight of 2 counts like the row written twice in its region, 0 like no row.
    client : distributed.Client or None, default=None
        None is the current client, or Dask's default scheduler where there is none.

    Returns
    -------
    fitted : RegionClassifier or RegionRegressor
        An ordinary estimator, which needs no Dask.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import make_moons
    >>> from lokl import RegionClassifier, UniformMKLClassifier, distributed
    >>> X, y = make_moons(2000, noise=0.2, random_state=0)
    >>> model = RegionClassifier(UniformMKLClassifier(["rbf"], C=10), max_region_size=500)
    >>> fitted = distributed.fit(model, da.from_array(X, chunks=(300, 2)), y)
    >>> bool(fitted.score(X, y) > 0.95)
    True
    """
    model = _unfitted(model)
    cluster = Cluster(client)
    with DeferredWarnings():
        rows = _rows(cluster, model, X, y, sample_weight)
        seed = model._draw_seed()
        sampled = model._growth(seed, 0).sampled(rows.n_counted)
        seen = look(cluster, model, rows, sampled, not is_regressor(model))
        known, spread, n_tasks = _stated(model, seen, rows)

        def divide(growth: Growth) -> Divided:
            return InBatches(cluster, model, rows, seen, known.get("classes_"), growth)

        learned = model._learn(divide, seed, spread, n_tasks)
    model.n_features_in_ = seen.n_features
    if seen.columns is not None:
        model.feature_names_in_ = seen.columns
    publish(model, {**known, **learned})
    return model


def _unfitted(model: Any) -> InRegions:
    if not isinstance(model, InRegions):
        is_class = isinstance(model, type)
        kind = "RegionRegressor" if not is_class and is_regressor(model) else "RegionClassifier"
        shown = f"the class {model.__name__}" if is_class else type(model).__name__
        raise ValueError(
            "model must be a RegionClassifier or a RegionRegressor, each region of which fits "
            f"into a worker, got {shown}; give {kind}(estimator)"
        )
    fresh: InRegions = clone(model)
    check_settings(fresh)
    if fresh.stretch is not None:
        raise ValueError(
            f"stretch={fresh.stretch!r} is learned in memory only; fit a part of the rows there, "
            "multiply the columns by its feature_scale_, and give stretch=None"
        )
    fresh._check_estimator()
    return fresh


def _rows(cluster: Cluster, model: InRegions, X: Any, y: Any, sample_weight: Any) -> Rows:
    """Bring samples, targets and weights into blocks of the same rows."""
    if y is None:
        raise ValueError(f"{type(model).__name__} needs y, got None")
    given = [samples(X), beside(y, "y")]
    if isinstance(model, RegionClassifier) and given[1].width:
        # Warns of one column, and refuses several.
        column_or_1d(np.empty((1, *given[1].width)), warn=True)
    if sample_weight is not None:
        given.append(beside(sample_weight, "sample_weight"))
    known = with_lengths(cluster, given)
    own = known[0].without_empty()
    if own.n_rows == 0:
        raise ValueError("X has no rows; a model needs samples")
    others = aligned(own, *known[1:])
    if sample_weight is None:
        return Rows(own, others[0], None, tuple(int(length or 0) for length in own.lengths))
    count = need_dask().delayed(_n_counted, pure=False)
    counted = cluster.compute([count(part) for part in others[1].parts])
    if not any(counted):
        raise ValueError(ALL_ZERO)
    return Rows(own, others[0], others[1], tuple(counted))


def _n_counted(weight: Any) -> int:
    return int(np.count_nonzero(np.asarray(weight) > 0))


def _stated(model: InRegions, seen: Seen, rows: Rows) -> tuple[dict[str, Any], float, int]:
    """Attributes that labels or targets tell, the spread of targets, and the number of tasks."""
    width = rows.y.width
    if seen.moments is not None:
        nothing = np.empty((0, *width))
        _, _, known = model._stated(nothing, np.empty(0))
        return known, rounded_spread(seen.moments.variance), _empty(nothing, None, 0).n_tasks
    # Twice, so that no class seems to have one sample only.
    labels = np.repeat(seen.labels, 2)
    weight = np.column_stack([seen.label_weights, np.zeros(len(seen.labels))]).ravel()
    _, codes, known = model._stated(labels, weight)
    return known, 1.0, _empty(labels, codes, len(seen.labels)).n_tasks


def _empty(y: Array, codes: Array | None, n_classes: int) -> Learning:
    return Learning(None, y, codes, n_classes, None)


class InBatches(Divided):
    """Samples divided on the workers of a cluster, some regions in each batch."""

    def __init__(
        self,
        cluster: Cluster,
        model: InRegions,
        rows: Rows,
        seen: Seen,
        classes: Array | None,
        growth: Growth,
    ):
        self._cluster, self._delayed = cluster, need_dask().delayed
        trunk = growth.trunk(seen.points, rows.n_counted)
        met = np.array([len(own) for own, _ in trunk.tree.divide(seen.points)])
        sizes = met * (seen.n_bytes / seen.points.shape[0])
        batches = _batches(sizes, cluster.n_threads)
        plan = Plan(model, growth, trunk, batches, classes)
        self._batches = self._shuffled(plan, rows)
        facts = cluster.compute([self._task(facts_of)(batch) for batch in self._batches])
        self.sizes = np.concatenate([fact.sizes for fact in facts])
        self.tree = with_branches(trunk.tree, [branch for f in facts for branch in f.branches])
        self._folds = [folds for fact in facts for folds in fact.have_folds]
        self._firsts = np.cumsum([0, *(len(fact.sizes) for fact in facts)])

    def _task(self, function: Any, **options: Any) -> Any:
        return self._delayed(function, pure=False, **options)

    def _shared(self, value: Any) -> Any:
        """A value that is in the graph once, however many tasks take it."""
        return self._delayed(value, pure=False, traverse=False)

    def _shuffled(self, plan: Plan, rows: Rows) -> list[Any]:
        """Bring rows together by batch, and keep them on the workers."""
        n_batches = len(plan.batches)
        parts = [
            [self._task(_picked)(split, number) for number in range(n_batches)]
            for split in rows.tasks(split_block, plan)
        ]
        shared, join = self._shared(plan), self._task(join_parts)
        return self._cluster.persist(
            [join(shared, number, [own[number] for own in parts]) for number in range(n_batches)]
        )

    def _where(self, place: int) -> tuple[Any, int]:
        """The batch of a region, and its place there."""
        number = int(np.searchsorted(self._firsts, place, side="right")) - 1
        return self._batches[number], place - int(self._firsts[number])

    def have_folds(self) -> Sequence[bool]:
        return self._folds

    def spreads(self, places: Sequence[int]) -> list[float]:
        return self._cluster.compute(
            [self._task(spread_in)(*self._where(place)) for place in places]
        )

    def searched(
        self, estimator: Any, grid: Any, places: Sequence[int], seed: tuple[int, ...]
    ) -> list[Searched]:
        shared = [self._shared(estimator), self._shared(grid)]
        tasks = [
            self._task(search_in)(*shared, region_seed(seed, place), *self._where(place))
            for place in places
        ]
        return [reissue(told) for told in self._cluster.compute(tasks)]

    def fitted(self, estimator: Any, fit: Fit, seed: tuple[int, ...]) -> list[RegionModel]:
        small, _ = in_its_share(estimator, self.sizes)
        shared = [self._shared(small), self._shared(fit)]
        tasks = [
            self._task(fit_batch)(*shared, seed, batch, int(first))
            for batch, first in zip(self._batches, self._firsts[:-1], strict=True)
        ]
        found: list[Any] = [None] * len(tasks)
        # From here on a batch is needed by its task alone.
        self._batches = []
        done = self._cluster.completed(tasks)
        del tasks
        for place, told in done:
            found[place] = told
        return [model for told in found for model in reissue((told.models, told.notices))]


def _picked(parts: Sequence[Any], number: int) -> Any:
    return parts[number]


def _batches(sizes: Array, n_threads: int) -> list[tuple[int, int]]:
    """Neighbouring regions in batches of some bytes: first, and behind the last.

    Parameters
    ----------
    sizes : array
        Bytes that are expected in each region.
    n_threads : int
        Tasks that run at a time.
    """
    most = min(_BYTES_OF_BATCH, sizes.sum() / (_BATCHES_A_THREAD * n_threads))
    batches: list[tuple[int, int]] = []
    first, size = 0, 0.0
    for place, own in enumerate(sizes):
        if place > first and size + own > most:
            batches.append((first, place))
            first, size = place, 0.0
        size += own
    return [*batches, (first, len(sizes))]
