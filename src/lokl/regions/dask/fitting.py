"""Fits on collections: first pass, tree, shuffle by region, and one task per batch of regions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.utils import column_or_1d

from lokl._arrays import Array
from lokl._threads import single_threaded
from lokl._warnings import CountedWarning, DeferredWarnings, capture_warnings, reissue
from lokl.base.model import publish
from lokl.base.settings import check_settings
from lokl.base.targets import sorted_classes
from lokl.base.training import ALL_ZERO
from lokl.regions.dask.blocks import (
    SizedValue,
    align_rows,
    as_row_blocks,
    count_rows,
    group_neighbours,
)
from lokl.regions.dask.cluster import Cluster, shared, task
from lokl.regions.dask.summary import (
    BlockPosition,
    DataSummary,
    TrainingBlocks,
    first_pass,
    stack_rows,
    validate_block,
)
from lokl.regions.estimators import RegionEstimator, rounded_spread
from lokl.regions.fitting import (
    Fit,
    RegionBackend,
    RegionData,
    fit_region,
    limit_memory,
    region_seed,
)
from lokl.regions.model import RegionModel, take
from lokl.regions.tree import GrownTree, Membership, RegionTree, TreeGrower, attach_branches

# Most bytes of the samples of a batch. For a moment, they are in memory two or three times.
_BATCH_BYTES = 32 * 2**20
# Batches per thread of the cluster, so that the last ones do not keep it waiting.
_BATCHES_PER_THREAD = 4


def fit(model: Any, X: Any, y: Any, sample_weight: Any = None, client: Any = None) -> Any:
    """Fit an estimator in regions on collections that are larger than memory.

    The regions are found on a subsample of at most 50,000 rows. Rows are then shuffled by region,
    and one task fits the models of each batch of regions. The result is the same as that of
    ``model.fit`` with all samples in memory: regions and seeds depend on the positions of rows, not
    on chunks, workers or the order of work.

    Parameters
    ----------
    model : RegionClassifier or RegionRegressor
        A copy is fitted. Its `n_jobs` is ignored.
    X : dask array or dask data frame of shape (n_samples, n_features)
        Blocks may be arrays, CSR matrices or data frames; some may be empty. It is read twice for
        the first partition and once for every other, and once more if the sizes of its chunks are
        unknown. ``X.persist()`` avoids that if the cluster has the memory.
    y : dask array, dask series or array of shape (n_samples,), or (n_samples, n_targets)
        Its chunks may differ from those of `X`.
    sample_weight : dask array, dask series or array of shape (n_samples,), optional
        Within a region, a sample of weight 2 counts like two equal rows. Samples of weight 0 are
        ignored.
    client : distributed.Client or None, default=None
        None is the current client, or Dask's default scheduler if there is none.

    Returns
    -------
    fitted : RegionClassifier or RegionRegressor
        An ordinary estimator, which does not need Dask.

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
    model = _checked_copy(model)
    cluster, is_regression = Cluster(client), is_regressor(model)
    with DeferredWarnings():
        blocks = _training_blocks(cluster, model, X, y, sample_weight)
        seed = model._draw_seed()
        subsample = model._grower(seed, 0).subsample(blocks.n_counted)
        summary = first_pass(cluster, model, blocks, subsample, is_regression)
        attributes, spread = _target_attributes(model, summary, blocks.y.width)
        classes = attributes.get("classes_")
        divide = partial(DaskRegions, cluster, model, blocks, summary, classes)
        learned = model._learn(divide, seed, spread, len(summary.labels), blocks.y.width)
    model.n_features_in_ = summary.n_features
    if summary.columns is not None:
        model.feature_names_in_ = summary.columns
    publish(model, {**attributes, **learned})
    return model


def _checked_copy(model: Any) -> RegionEstimator:
    if not isinstance(model, RegionEstimator):
        is_class = isinstance(model, type)
        kind = "RegionRegressor" if not is_class and is_regressor(model) else "RegionClassifier"
        shown = f"the class {model.__name__}" if is_class else type(model).__name__
        raise ValueError(
            "model must be a RegionClassifier or a RegionRegressor, so that each region fits into "
            f"the memory of a worker, got {shown}; pass {kind}(estimator)"
        )
    copied: RegionEstimator = clone(model)
    check_settings(copied)
    if copied.scale_features is not None:
        raise ValueError(
            f"scale_features={copied.scale_features!r} needs samples in memory; fit on a part of "
            "the rows there, multiply the columns by its feature_scale_, and pass "
            "scale_features=None"
        )
    copied._check_estimator()
    return copied


def _training_blocks(
    cluster: Cluster, model: RegionEstimator, X: Any, y: Any, sample_weight: Any
) -> TrainingBlocks:
    """Return samples, targets and weights in blocks of the same rows."""
    if y is None:
        raise ValueError(f"{type(model).__name__} needs y, got None")
    collections = [as_row_blocks(X, "X"), as_row_blocks(y, "y")]
    if not is_regressor(model) and collections[1].width:
        # A warning for one column, an error for several.
        column_or_1d(np.empty((1, *collections[1].width)), warn=True)
    if sample_weight is not None:
        collections.append(as_row_blocks(sample_weight, "sample_weight"))
    samples, *others = count_rows(cluster, collections)
    samples = samples.without_empty()
    if samples.n_rows == 0:
        raise ValueError("X has no rows; a model needs samples")
    targets, *weights = align_rows(samples, *others)
    if not weights:
        lengths = tuple(length or 0 for length in samples.lengths)
        return TrainingBlocks(samples, targets, None, lengths)
    counted = cluster.compute([task(_count_positive)(part) for part in weights[0].parts])
    if not any(counted):
        raise ValueError(ALL_ZERO)
    return TrainingBlocks(samples, targets, weights[0], tuple(counted))


def _count_positive(weight: Any) -> int:
    return int(np.count_nonzero(np.asarray(weight) > 0))


def _target_attributes(
    model: RegionEstimator, summary: DataSummary, width: tuple[int, ...]
) -> tuple[dict[str, Any], float]:
    """Return the attributes that targets define, and the standard deviation of targets."""
    if summary.moments is not None:
        spread = rounded_spread(summary.moments.squares / summary.moments.weight)
        return model._encode_targets(np.empty((0, *width)), np.empty(0))[2], spread
    # Every class twice: almost as many classes as samples would look like regression targets.
    weight = np.column_stack([summary.label_weights, np.zeros(len(summary.labels))]).ravel()
    return model._encode_targets(np.repeat(summary.labels, 2), weight)[2], 1.0


@dataclass(frozen=True, eq=False)
class ShufflePlan:
    """Assignment of samples to batches of regions.

    Attributes
    ----------
    model : RegionEstimator
        Unfitted; its settings are used for validation.
    grower : TreeGrower
    trunk : GrownTree
    batches : list of (int, int)
        First region of the trunk of each batch, and the region after its last.
    classes : array or None
        None for regression.
    """

    model: RegionEstimator
    grower: TreeGrower
    trunk: GrownTree
    batches: list[tuple[int, int]]
    classes: Array | None


# Results of tasks are tuples because Dask can measure their items. It needs their sizes to decide
# when to spill to disk.


class BatchRows(NamedTuple):
    """Rows of one block that belong to one batch, in order."""

    samples: Any
    y: Array
    weight: Array | None


def split_block(
    plan: ShufflePlan, position: BlockPosition, X: Any, y: Any, weight: Any
) -> list[BatchRows | None]:
    """Return the rows of a block for each batch, None if there are none."""
    with position.in_errors(), single_threaded():
        position.check_lengths(X=X, y=y, sample_weight=weight)
        block = validate_block(plan.model, X, y, weight)
        members = plan.trunk.tree.divide(block.X)
    parts: list[BatchRows | None] = []
    for first, stop in plan.batches:
        # With overlap, a row may be in several regions of a batch.
        rows = np.unique(np.concatenate([rows for rows, _ in members[first:stop]]))
        weight = None if block.weight is None else block.weight[rows]
        part = BatchRows(take(block.samples, rows), block.y[rows], weight) if len(rows) else None
        parts.append(part)
    return parts


class RegionBatch(NamedTuple):
    """All samples of some regions, in the order of their rows.

    Attributes
    ----------
    data : RegionData
        Samples of all regions of the batch.
    branches : list of RegionTree
        Branch of each region of the trunk.
    members : list of Membership
        Samples of each region of these branches.
    """

    data: RegionData
    branches: list[RegionTree]
    members: list[Membership]


def join_batch(plan: ShufflePlan, index: int, parts: Sequence[BatchRows | None]) -> RegionBatch:
    """Concatenate the rows of a batch, and divide them into regions."""
    present = [part for part in parts if part is not None]
    weights = [part.weight for part in present if part.weight is not None]
    samples = stack_rows([part.samples for part in present])
    y = stack_rows([part.y for part in present])
    first, stop = plan.batches[index]
    with single_threaded():
        block = validate_block(plan.model, samples, y, stack_rows(weights) if weights else None)
        trunk, members = plan.trunk, plan.trunk.tree.divide(block.X)
        grown = [
            plan.grower.grow_branch(
                block.X, members[region], trunk.paths[region], trunk.tree.fill_values
            )
            for region in range(first, stop)
        ]
    n_classes, codes = 0, None
    if plan.classes is None:
        y = np.asarray(block.y, dtype=np.float64)
    else:
        n_classes, y = len(plan.classes), column_or_1d(block.y)
        labels, codes = sorted_classes(y)
        codes = np.searchsorted(plan.classes, labels)[codes]
    return RegionBatch(
        RegionData(block.samples, y, codes, n_classes, block.weight),
        [branch.tree for branch in grown],
        [region for branch in grown for region in branch.members],
    )


class BatchSummary(NamedTuple):
    """Branches of a batch, and sizes of its regions."""

    branches: list[RegionTree]
    sizes: list[int]
    have_folds: list[bool]


def summarize_batch(batch: RegionBatch) -> BatchSummary:
    """Return a summary of a batch, which is small enough for the client."""
    sizes = [len(rows) for rows, _ in batch.members]
    have_folds = [batch.data.has_folds(rows) for rows, _ in batch.members]
    return BatchSummary(batch.branches, sizes, have_folds)


def call_in_region(
    function: Callable[[RegionData, int], Any], seed: int, batch: RegionBatch, region: int
) -> tuple[Any, dict[str, CountedWarning]]:
    """Return ``function(data, seed)`` of one region of a batch, with its warnings."""
    with single_threaded():
        return capture_warnings(function, batch.data.select(batch.members[region]), seed)


def fit_batch(
    function: Callable[[RegionData, int], RegionModel],
    seed: tuple[int, ...],
    batch: RegionBatch,
    first: int,
) -> SizedValue:
    """Return the models of a batch, with their warnings.

    `first` is the index of the first region of the batch among all regions.
    """

    def fit_all() -> list[RegionModel]:
        return [
            function(batch.data.select(members), region_seed(seed, region))
            for region, members in enumerate(batch.members, first)
        ]

    with single_threaded():
        return SizedValue.of(capture_warnings(fit_all))


class DaskRegions(RegionBackend):
    """Regions of samples on the workers of a cluster, in batches.

    Parameters
    ----------
    cluster : Cluster
    model : RegionEstimator
        Unfitted, with valid settings.
    blocks : TrainingBlocks
    summary : DataSummary
        Summary of `blocks`.
    classes : array or None
        None for regression.
    grower : TreeGrower
    """

    n_jobs = 1

    def __init__(
        self,
        cluster: Cluster,
        model: RegionEstimator,
        blocks: TrainingBlocks,
        summary: DataSummary,
        classes: Array | None,
        grower: TreeGrower,
    ):
        self._cluster, self._seed = cluster, grower.seed
        trunk = grower.grow_trunk(summary.points, blocks.n_counted)
        bytes_per_point = summary.n_bytes / summary.points.shape[0]
        sizes = [bytes_per_point * len(rows) for rows, _ in trunk.members]
        plan = ShufflePlan(
            model, grower, trunk._replace(members=[]), batches_of(sizes, cluster.n_threads), classes
        )
        self._batches = self._shuffle(plan, blocks)
        summaries = cluster.compute([task(summarize_batch)(batch) for batch in self._batches])
        self.sizes = np.concatenate([batch.sizes for batch in summaries])
        self.have_folds = [enough for batch in summaries for enough in batch.have_folds]
        self.tree = attach_branches(trunk.tree, [tree for b in summaries for tree in b.branches])
        self._firsts = np.cumsum([0, *(len(batch.sizes) for batch in summaries)])

    def _shuffle(self, plan: ShufflePlan, blocks: TrainingBlocks) -> list[Any]:
        """Bring the rows of every batch together, and keep them on the workers."""
        split, plan_node = blocks.tasks(split_block, plan), shared(plan)
        return self._cluster.persist(
            [
                task(join_batch)(plan_node, index, [parts[index] for parts in split])
                for index in range(len(plan.batches))
            ]
        )

    def map(self, function: Callable[[RegionData, int], Any], regions: Sequence[int]) -> list[Any]:
        function_node, tasks = shared(function), []
        for region in regions:
            batch = int(np.searchsorted(self._firsts, region, side="right")) - 1
            place = (self._batches[batch], region - int(self._firsts[batch]))
            seed = region_seed(self._seed, region)
            tasks.append(task(call_in_region)(function_node, seed, *place))
        return [reissue(result) for result in self._cluster.compute(tasks)]

    def fit(self, estimator: Any, fit: Fit) -> list[RegionModel]:
        limited, _ = limit_memory(estimator, self.sizes)
        function_node = shared(partial(fit_region, limited, fit))
        tasks = [
            task(fit_batch)(function_node, self._seed, batch, int(first))
            for batch, first in zip(self._batches, self._firsts[:-1], strict=True)
        ]
        fitted: list[Any] = [None] * len(tasks)
        # Only its own task may keep a batch on the workers from now on.
        self._batches = []
        completed = self._cluster.completed(tasks)
        del tasks
        for index, result in completed:
            fitted[index] = result
        return [model for batch in fitted for model in reissue(batch.value)]


def batches_of(sizes: Sequence[float], n_threads: int) -> list[tuple[int, int]]:
    """Group neighbouring regions into batches, as :func:`group_neighbours` returns them.

    Parameters
    ----------
    sizes : sequence of float
        Expected bytes of each region.
    n_threads : int
        Tasks that run at a time.
    """
    limit = min(_BATCH_BYTES, sum(sizes) / (_BATCHES_PER_THREAD * n_threads))
    return group_neighbours(sizes, limit)
