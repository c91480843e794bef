"""Fits on collections: first pass, tree, shuffle by region, and one task per batch of regions.

The first pass validates every block, and summarises its targets.
"""

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import clone, is_regressor
from sklearn.utils import column_or_1d
from sklearn.utils.validation import _get_feature_names

from lokl._arrays import Array, column, is_sparse
from lokl._threads import single_threaded
from lokl._warnings import DeferredWarnings, capture_warnings, reissue
from lokl.base.model import publish
from lokl.base.settings import check_settings
from lokl.base.targets import sorted_classes, spread_of_moments
from lokl.base.training import ALL_ZERO
from lokl.regions.dask.blocks import (
    Cluster,
    SizedValue,
    align_rows,
    as_row_blocks,
    count_rows,
    group_neighbours,
    need_dask,
    shared,
    task,
)
from lokl.regions.estimators import RegionEstimator
from lokl.regions.fitting import (
    RegionBackend,
    RegionData,
    fit_region,
    limit_memory,
    region_seed,
)
from lokl.regions.model import RegionModel, take
from lokl.regions.tree import Membership, RegionTree, TreeGrower, attach_branches

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
    cluster = Cluster(client)
    with DeferredWarnings():
        blocks = _training_blocks(cluster, model, X, y, sample_weight)
        seed, model_node = model._draw_seed(), shared(model)
        sampled = blocks.sampled_rows(model._grower(seed, 0))
        summaries = cluster.compute(
            [
                task(_summarize_block)(model_node, rows, *block)
                for rows, block in zip(sampled, blocks.blocks, strict=True)
            ]
        )
        attributes, spread = _target_attributes(model, summaries, blocks.target_shape)
        classes = attributes.get("classes_")
        points = stack_rows([part.points for part in summaries if part.points.shape[0]])
        n_bytes = sum(part.n_bytes for part in summaries)
        divide = partial(DaskRegions, cluster, model, blocks, classes, points, n_bytes)
        learned = model._learn(divide, seed, spread, classes, blocks.target_shape)
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


class TrainingBlocks(NamedTuple):
    """Samples, targets and weights in blocks of the same rows.

    Attributes
    ----------
    blocks : list of (start, length, X, y, weight)
        Position of the first row of each block, number of its rows, and their samples, targets and
        weights (None for none) as Delayed.
    n_counted : list of int
        Rows of each block with positive weight.
    target_shape : tuple of int
        Shape of the targets of one sample.
    """

    blocks: list[tuple[Any, ...]]
    n_counted: list[int]
    target_shape: tuple[int, ...]

    def sampled_rows(self, grower: TreeGrower) -> list[Array]:
        """Return, for every block, positions among its counted rows from which trees grow."""
        firsts = np.cumsum([0, *self.n_counted])
        parts = np.split(rows := grower.subsample(firsts[-1]), np.searchsorted(rows, firsts[1:-1]))
        return [part - first for part, first in zip(parts, firsts[:-1], strict=True)]


def _training_blocks(
    cluster: Cluster, model: RegionEstimator, X: Any, y: Any, sample_weight: Any
) -> TrainingBlocks:
    """Return blocks of the same rows, and set the columns of the model."""
    if y is None:
        raise ValueError(f"{type(model).__name__} needs y, got None")
    collections = [as_row_blocks(X, "X"), as_row_blocks(y, "y")]
    model.n_features_in_, names = *collections[0].width, _get_feature_names(X._meta)
    if names is not None:
        model.feature_names_in_ = names
    target_shape = collections[1].width
    if not is_regressor(model) and target_shape:
        # A warning for one column, an error for several.
        column_or_1d(np.empty((1, *target_shape)), warn=True)
    if sample_weight is not None:
        collections.append(as_row_blocks(sample_weight, "sample_weight"))
    samples, *others = count_rows(cluster, collections)
    samples = samples.without_empty()
    if samples.n_rows == 0:
        raise ValueError("X has no rows; a model needs samples")
    aligned = [samples, *align_rows(samples, *others)]
    lengths = [length or 0 for length in samples.lengths]
    columns = [blocks.parts for blocks in aligned]
    counted = lengths
    if sample_weight is None:
        columns.append([None] * len(lengths))
    else:
        counted = cluster.compute([task(_count_positive)(part) for part in columns[2]])
    if not any(counted):
        raise ValueError(ALL_ZERO)
    starts = np.cumsum([0, *lengths[:-1]]).tolist()
    return TrainingBlocks([*zip(starts, lengths, *columns, strict=True)], counted, target_shape)


def _count_positive(weight: Any) -> int:
    return int(np.count_nonzero(np.asarray(weight) > 0))


def validate_block(
    model: RegionEstimator, start: int, length: int, X: Any, y: Any, weight: Any
) -> tuple[Any, RegionData]:
    """Check a block as ``model.fit`` checks all samples; errors name the rows of the block.

    Returns
    -------
    X : {array, CSR matrix}
        Samples of positive weight, for the trees.
    data : RegionData
        The same samples for the estimators. Its classes are those of this block.
    """
    try:
        for name, values in (("X", X), ("y", y), ("sample_weight", weight)):
            if values is not None and values.shape[0] != length:
                raise ValueError(
                    f"{name} has {values.shape[0]} rows here, but its chunks announced {length}; "
                    "correct the chunks, or persist a collection that changes between readings"
                )
        expected = getattr(model, "feature_names_in_", np.arange(model.n_features_in_))
        names = _get_feature_names(X)
        names = np.arange(X.shape[1]) if names is None else names
        if not np.array_equal(names, expected):
            raise ValueError(
                f"X has the columns {list(expected)}, but {list(names)} here; give all blocks the "
                "same columns in the same order"
            )
        # Validation by scikit-learn sets attributes of the estimator, which threads share.
        X, data = copy.copy(model)._validate_training(X, y, weight, part=True)
        if is_regressor(model):
            data = data._replace(y=np.asarray(data.y, dtype=np.float64))
        else:
            classes, codes = sorted_classes(column_or_1d(data.y))
            data = data._replace(y=codes, classes=classes)
    except ValueError as error:
        raise ValueError(f"rows {start} to {start + length - 1} of X: {error}") from error
    return data.with_weight(X)


@dataclass(frozen=True, eq=False)
class Moments:
    """Weight, mean and sum of squared deviations of each column, which can be merged.

    Attributes
    ----------
    weight : float
    mean : array of shape (n_columns,)
    squares : array of shape (n_columns,)
    """

    weight: float
    mean: Array
    squares: Array

    @classmethod
    def of(cls, values: Array, weight: Array) -> "Moments":
        """Compute the moments of rows with a positive total weight."""
        mean = np.average(values, axis=0, weights=weight)
        return cls(float(weight.sum()), mean, weight @ (values - mean) ** 2)

    def merge(self, other: "Moments") -> "Moments":
        """Return the moments of all rows, precise even if means are far from zero."""
        weight = self.weight + other.weight
        difference, share = other.mean - self.mean, other.weight / weight
        squares = self.squares + other.squares + difference**2 * self.weight * share
        return Moments(weight, self.mean + difference * share, squares)


class BlockSummary(NamedTuple):
    """Summary of one block.

    Attributes
    ----------
    classes : array of shape (n_classes,) or None
        Classes of the block; None for regression.
    class_weights : array of shape (n_classes,) or None
        Total sample weight of each class.
    moments : Moments or None
        Moments of the targets; None for classification, and without samples.
    n_bytes : int
        Size of the samples.
    points : {array, CSR matrix}
        Samples from which the trunk of a tree is grown.
    """

    classes: Array | None
    class_weights: Array | None
    moments: Moments | None
    n_bytes: int
    points: Any


def _summarize_block(model: RegionEstimator, rows: Array, *block: Any) -> BlockSummary:
    X, data = validate_block(model, *block)
    weight = np.ones(len(data.y)) if data.weight is None else data.weight
    class_weights = moments = None
    if data.classes is not None:
        class_weights = np.bincount(data.y, weights=weight, minlength=len(data.classes))
    elif len(weight):
        moments = Moments.of(column(data.y), weight)
    size = need_dask().sizeof.sizeof(data.samples)
    return BlockSummary(data.classes, class_weights, moments, size, take(X, rows))


def _target_attributes(
    model: RegionEstimator, summaries: Sequence[BlockSummary], shape: tuple[int, ...]
) -> tuple[dict[str, Any], float]:
    """Return the attributes that targets define, and the standard deviation of targets."""
    if is_regressor(model):
        parts = [summary.moments for summary in summaries if summary.moments is not None]
        moments = reduce(Moments.merge, parts)
        spread = spread_of_moments(moments.mean, moments.squares / moments.weight)
        return model._encode_targets(np.empty((0, *shape)), None)[1], spread
    classes: list[Any] = [summary.classes for summary in summaries]
    weights: list[Any] = [summary.class_weights for summary in summaries]
    if len({labels.dtype.kind in "US" for labels in classes if len(labels)}) > 1:
        raise ValueError(
            "labels are numbers in some blocks of y and text in others; convert them to one type, "
            "for instance with y.astype(str)"
        )
    labels, weight = np.concatenate(classes), np.concatenate(weights)
    # Every label twice: almost as many classes as samples would look like regression targets.
    twice = np.concatenate([weight, np.zeros(len(weight))])
    return model._encode_targets(np.tile(labels, 2), twice)[1], 1.0


def stack_rows(parts: Sequence[Any]) -> Any:
    """Concatenate the rows of arrays, CSR matrices or data frames; None for None."""
    if len(parts) == 1 or parts[0] is None:
        return parts[0]
    if hasattr(parts[0], "iloc"):
        import pandas

        return pandas.concat(parts)
    if is_sparse(parts[0]):
        return sparse.vstack(parts, format="csr")
    return np.concatenate(parts)


# Results of tasks are tuples because Dask can measure their items. It needs their sizes to decide
# when to spill to disk.


def split_block(
    model: RegionEstimator,
    trunk: RegionTree,
    batches: Sequence[tuple[int, int]],
    classes: Array | None,
    *block: Any,
) -> list[RegionData | None]:
    """Return the rows of a block for each batch of regions of the trunk, None without rows."""
    with single_threaded():
        X, data = validate_block(model, *block)
        members = trunk.divide(X)
    if data.classes is not None and classes is not None:
        data = data._replace(y=np.searchsorted(classes, data.classes)[data.y], classes=classes)
    parts: list[RegionData | None] = []
    for first, stop in batches:
        # With overlap, a row may be in several regions of a batch.
        rows = np.unique(np.concatenate([rows for rows, _ in members[first:stop]]))
        parts.append(data.take(rows) if len(rows) else None)
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


def join_batch(
    model: RegionEstimator,
    grower: TreeGrower,
    trunk: RegionTree,
    regions: Sequence[int],
    parts: Sequence[RegionData | None],
) -> RegionBatch:
    """Concatenate the rows of a batch, and divide them into regions."""
    present = [part for part in parts if part is not None]
    samples, y, weight = (stack_rows([part[k] for part in present]) for k in range(3))
    with single_threaded():
        X, data = copy.copy(model)._validate_training(samples, y, weight)
        branches, members = grower.grow_branches(X, trunk, regions)
    return RegionBatch(data._replace(classes=present[0].classes), branches, members)


def summarize_batch(batch: RegionBatch) -> tuple[list[RegionTree], list[int], list[bool]]:
    """Return the branches, and the size of each region and whether it has enough samples."""
    rows = [members.rows for members in batch.members]
    return batch.branches, [*map(len, rows)], [*map(batch.data.has_folds, rows)]


def call_in_batch(
    function: Callable[[RegionData, int], Any],
    seed: tuple[int, ...],
    batch: RegionBatch,
    first: int,
    regions: Sequence[int],
) -> SizedValue:
    """Return ``function(data, seed)`` of some regions of a batch, with their warnings.

    `first` is the index of the first region of the batch among all regions.
    """

    def call_all() -> list[Any]:
        return [
            function(batch.data.select(batch.members[region - first]), region_seed(seed, region))
            for region in regions
        ]

    with single_threaded():
        return SizedValue.of(capture_warnings(call_all))


class DaskRegions(RegionBackend):
    """Regions of samples on the workers of a cluster, in batches.

    Parameters
    ----------
    cluster : Cluster
    model : RegionEstimator
        Unfitted, with valid settings.
    blocks : TrainingBlocks
    classes : array or None
        None for regression.
    points : {array, CSR matrix}
        Samples from which the trunk is grown.
    n_bytes : int
        Size of all samples.
    grower : TreeGrower
    """

    n_jobs = 1

    def __init__(
        self,
        cluster: Cluster,
        model: RegionEstimator,
        blocks: TrainingBlocks,
        classes: Array | None,
        points: Any,
        n_bytes: int,
        grower: TreeGrower,
    ):
        self._cluster, self._seed = cluster, grower.seed
        trunk, members = grower.grow_trunk(points, sum(blocks.n_counted))
        sizes = [n_bytes / points.shape[0] * len(rows) for rows, _ in members]
        batches = batches_of(sizes, cluster.n_threads)
        nodes = shared(model), shared(trunk)
        split = [task(split_block)(*nodes, batches, classes, *block) for block in blocks.blocks]
        # The rows of every batch are brought together, and stay on the workers.
        self._batches = cluster.persist(
            [
                task(join_batch)(nodes[0], grower, nodes[1], range(*batch), [s[k] for s in split])
                for k, batch in enumerate(batches)
            ]
        )
        summaries = cluster.compute([task(summarize_batch)(batch) for batch in self._batches])
        branches, counts, have_folds = map(_flat, zip(*summaries, strict=True))
        self.tree, self.sizes = attach_branches(trunk, branches), np.array(counts)
        self.have_folds = have_folds
        self._firsts = np.cumsum([0, *(len(part) for _, part, _ in summaries)]).tolist()

    def map(self, function: Callable[[RegionData, int], Any], regions: Sequence[int]) -> list[Any]:
        function_node, tasks = shared(function), []
        for region, batch in zip(regions, np.digitize(regions, self._firsts) - 1, strict=True):
            place = self._batches[batch], self._firsts[batch], [region]
            tasks.append(task(call_in_batch)(function_node, self._seed, *place))
        return _flat(reissue(result.value) for result in self._cluster.compute(tasks))

    def fit(self, estimator: Any, grid: Any) -> list[RegionModel]:
        limited, _ = limit_memory(estimator, self.sizes)
        function_node = shared(partial(fit_region, limited, grid))
        tasks = [
            task(call_in_batch)(function_node, self._seed, batch, first, range(first, stop))
            for batch, (first, stop) in zip(self._batches, pairwise(self._firsts), strict=True)
        ]
        # Only its own task may keep a batch on the workers from now on.
        self._batches = []
        return _flat(reissue(result.value) for result in self._cluster.compute(tasks))


def _flat(parts: Iterable[Iterable[Any]]) -> list[Any]:
    return [value for part in parts for value in part]


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
