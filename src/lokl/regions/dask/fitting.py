"""Fits on collections: first pass, tree, shuffle by region, and one task per batch of regions.

The first pass validates every block, and summarises its targets.
"""

import copy
from bisect import bisect
from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.utils import column_or_1d
from sklearn.utils.validation import _get_feature_names

from lokl._arrays import Array, column, row_hashes, stack_rows
from lokl._threads import single_threaded
from lokl._warnings import DeferredWarnings, capture_warnings, reissue
from lokl.base.model import publish
from lokl.base.settings import check_settings
from lokl.base.survival import SurvivalMixin
from lokl.base.targets import sorted_classes, spread_of_moments
from lokl.base.training import ALL_ZERO
from lokl.regions.dask import graph
from lokl.regions.estimators import RegionEstimator
from lokl.regions.fitting import RegionBackend, RegionData, RegionFunction, region_seed
from lokl.regions.model import take
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

    See Also
    --------
    lokl.distributed.predict : Predictions for collections.
    lokl.RegionClassifier : The estimator, in memory.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import make_moons
    >>> from lokl import RegionClassifier, UniformMKLClassifier, distributed
    >>> X, y = make_moons(2000, noise=0.2, random_state=0)
    >>> model = RegionClassifier(UniformMKLClassifier(["rbf"], C=10), max_region_size=500)
    >>> fitted = distributed.fit(model, da.from_array(X, chunks=(300, 2)), y)
    >>> round(fitted.score(X, y), 2)
    0.98
    """
    model = _checked_copy(model)
    cluster = graph.Cluster(client)
    with DeferredWarnings():
        blocks, n_counted, n_targets = _training_blocks(cluster, model, X, y, sample_weight)
        seed, model_node = model._draw_seed(), graph.shared(model)
        sampled = _sampled_rows(model._grower(seed, 0), n_counted)
        calls = [(model_node, *block) for block in zip(sampled, blocks, strict=True)]
        summaries = cluster.compute(_summarize_block, calls)
        targets, sizes, points, hashes = zip(*summaries, strict=True)
        attributes, spread = _target_attributes(model, targets, n_targets)
        classes, points = attributes.get("classes_"), stack_rows(points)

        def divide(grower: TreeGrower) -> DaskRegions:
            trunk, members = grower.grow_trunk(points, sum(n_counted))
            n_bytes = [sum(sizes) / points.shape[0] * len(rows) for rows, _ in members]
            batches = batches_of(n_bytes, cluster.n_threads)
            nodes = model_node, graph.shared(trunk)
            split = [graph.task(split_block)(*nodes, batches, classes, *block) for block in blocks]
            calls = [
                (*nodes, grower, range(*batch), [parts[k] for parts in split])
                for k, batch in enumerate(batches)
            ]
            # The rows of every batch are brought together, and stay on the workers.
            return DaskRegions(cluster, trunk, cluster.persist(join_batch, calls), grower.seed)

        learned = model._learn(divide, seed, spread, classes, n_targets or 1)
    publish(model, {**attributes, **learned, "_row_hashes": np.concatenate(hashes)})
    return model


def _checked_copy(model: Any) -> RegionEstimator:
    if isinstance(model, SurvivalMixin):
        raise ValueError(
            f"{type(model).__name__} is not supported on Dask collections; fit it on samples in "
            "memory, for example on a part of the rows"
        )
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
    cluster: graph.Cluster, model: RegionEstimator, X: Any, y: Any, sample_weight: Any
) -> tuple[list[tuple[Any, ...]], list[int], int | None]:
    """Set the columns of the model, and divide its training samples into blocks.

    Returns
    -------
    blocks : list of (start, length, X, y[, weight])
        Position of the first row of each block, number of its rows, and their samples, targets and
        weights as Delayed.
    n_counted : list of int
        Rows of each block with positive weight.
    n_targets : int or None
        None if `y` has one axis.
    """
    if y is None:
        raise ValueError(f"{type(model).__name__} needs y, got None")
    target_shape = graph.as_row_blocks(y, "y").width
    if not is_regressor(model) and target_shape:
        # A warning for one column, an error for several.
        column_or_1d(np.empty((1, *target_shape)), warn=True)
    collections = graph.align_blocks(cluster, X, y, sample_weight)
    lengths = collections[0].lengths
    if not any(lengths):
        raise ValueError("X has no rows; a model needs samples")
    model.n_features_in_, names = *collections[0].width, _get_feature_names(X._meta)
    if names is not None:
        model.feature_names_in_ = names
    starts = np.cumsum([0, *lengths[:-1]]).tolist()
    columns = [part.parts for part in collections]
    blocks = [block for block in zip(starts, lengths, *columns, strict=True) if block[1]]
    n_counted = [block[1] for block in blocks]
    if sample_weight is not None:
        n_counted = cluster.compute(np.count_nonzero, [block[-1:] for block in blocks])
    if not any(n_counted):
        raise ValueError(ALL_ZERO)
    return blocks, n_counted, next(iter(target_shape), None)


def _sampled_rows(grower: TreeGrower, n_counted: Sequence[int]) -> list[Array]:
    """Return, for every block, positions among its counted rows from which trees grow."""
    firsts = np.cumsum([0, *n_counted])
    rows = grower.subsample(firsts[-1])
    parts = np.split(rows, np.searchsorted(rows, firsts[1:-1]))
    return [part - first for part, first in zip(parts, firsts[:-1], strict=True)]


def validate_block(
    model: RegionEstimator, start: int, length: int, X: Any, y: Any, weight: Any = None
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


class Moments(NamedTuple):
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


# Results of tasks are tuples because Dask can measure their items. It needs their sizes to decide
# when to spill to disk.


def _summarize_block(
    model: RegionEstimator, rows: Array, block: Any
) -> tuple[Any, int, Any, Array]:
    """Validate and summarise a block.

    Returns
    -------
    targets : Moments, (array, array) or None
        Moments of the targets, None without samples; or the classes and their total weights.
    size : int
        Bytes of the samples.
    points : {array, CSR matrix}
        Samples of positive weight at `rows`, from which the trunk of a tree is grown.
    hashes : array of uint64
        Hashes of all samples of positive weight.
    """
    X, data = validate_block(model, *block)
    weight = np.ones(len(data.y)) if data.weight is None else data.weight
    targets: Any = None
    if data.classes is not None:
        weights = np.bincount(data.y, weights=weight, minlength=len(data.classes))
        targets = data.classes, weights
    elif len(weight):
        targets = Moments.of(column(data.y), weight)
    size = graph.need_dask().sizeof.sizeof(data.samples)
    return targets, size, take(X, rows), row_hashes(X)


def _target_attributes(
    model: RegionEstimator, targets: Sequence[Any], n_targets: int | None
) -> tuple[dict[str, Any], float]:
    """Return the attributes that targets define, and the standard deviation of targets."""
    if is_regressor(model):
        moments = reduce(Moments.merge, [part for part in targets if part is not None])
        spread = spread_of_moments(moments.mean, moments.squares / moments.weight)
        shape = (0,) if n_targets is None else (0, n_targets)
        return model._encode_targets(np.empty(shape), None)[1], spread
    if len({classes.dtype.kind in "US" for classes, _ in targets if len(classes)}) > 1:
        raise ValueError(
            "labels are numbers in some blocks of y and text in others; convert them to one type, "
            "for instance with y.astype(str)"
        )
    classes, weight = map(np.concatenate, zip(*targets, strict=True))
    # Every label twice: almost as many classes as samples would look like regression targets.
    twice = np.concatenate([weight, np.zeros(len(weight))])
    return model._encode_targets(np.tile(classes, 2), twice)[1], 1.0


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
    trunk: RegionTree,
    grower: TreeGrower,
    regions: Sequence[int],
    parts: Sequence[RegionData | None],
) -> RegionBatch:
    """Concatenate the rows of a batch, and divide them into regions."""
    present = [part for part in parts if part is not None]
    samples, y = (stack_rows([part[k] for part in present]) for k in range(2))
    weight = None if present[0].weight is None else stack_rows([part.weight for part in present])
    with single_threaded():
        X, data = copy.copy(model)._validate_training(samples, y, weight)
        branches, members = grower.grow_branches(X, trunk, regions)
    return RegionBatch(data._replace(classes=present[0].classes), branches, members)


def summarize_batch(batch: RegionBatch) -> tuple[list[RegionTree], list[int], list[bool]]:
    """Return the branches, and the size of each region and whether it has enough samples."""
    rows = [members.rows for members in batch.members]
    return batch.branches, [*map(len, rows)], [*map(batch.data.has_folds, rows)]


def call_in_batch(
    function: RegionFunction,
    seed: tuple[int, ...],
    batch: RegionBatch,
    first: int,
    regions: Sequence[int],
) -> graph.SizedValue:
    """Return ``function(data, seed)`` of some regions of a batch, with their warnings.

    `first` is the index of the first region of the batch among all regions.
    """

    def call_all() -> list[Any]:
        return [
            function(batch.data.select(batch.members[region - first]), region_seed(seed, region))
            for region in regions
        ]

    with single_threaded():
        return graph.SizedValue(capture_warnings(call_all))


class DaskRegions(RegionBackend):
    """Regions of samples on the workers of a cluster, in batches.

    Parameters
    ----------
    cluster : Cluster
    trunk : RegionTree
    batches : list of Delayed
        A RegionBatch each, for consecutive regions of the trunk.
    seed : tuple of int
        Seed of the partition.
    """

    n_jobs = 1

    def __init__(
        self, cluster: graph.Cluster, trunk: RegionTree, batches: list[Any], seed: tuple[int, ...]
    ):
        self._cluster, self._batches, self._seed = cluster, batches, seed
        summaries = cluster.compute(summarize_batch, [(batch,) for batch in batches])
        branches, counts, self.have_folds = map(_flat, zip(*summaries, strict=True))
        self.tree, self.sizes = attach_branches(trunk, branches), np.array(counts)
        self._firsts = np.cumsum([0, *(len(part) for _, part, _ in summaries)]).tolist()

    def map(
        self, function: RegionFunction, regions: Sequence[int] | None = None, at_a_time: int = 1
    ) -> list[Any]:
        chosen = range(len(self.sizes)) if regions is None else regions
        groups = groupby(chosen, lambda region: bisect(self._firsts, region) - 1)
        node = graph.shared(function)
        calls = [
            (node, self._seed, self._batches[k], self._firsts[k], [*group]) for k, group in groups
        ]
        if regions is None:
            # Only its own task may keep a batch on the workers from now on.
            self._batches = []
        results = self._cluster.compute(call_in_batch, calls)
        return _flat(reissue(result.value) for result in results)


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
    return graph.group_neighbours(sizes, limit)
