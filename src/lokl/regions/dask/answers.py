"""Predictions and scores of fitted models on collections, lazily and block by block.

If a model in regions is too large for a worker, its regions are divided into shards, and samples
are sent to the shards that contain the models of their regions.
"""

import copy
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.validation import check_is_fitted

from lokl._arrays import Array, column, is_sparse
from lokl._threads import single_threaded
from lokl.regions.dask import graph
from lokl.regions.dask.fitting import Moments
from lokl.regions.estimators import RegionEstimator
from lokl.regions.model import PartitionedModel, take

# Larger models are sent to the workers once, instead of through the scheduler with every graph.
_LARGE_MODEL_BYTES = 8 * 2**20
# Models in regions that take a larger share of the memory of a worker are divided into shards.
_LARGEST_MEMORY_SHARE = 0.1
# Bytes of the models of one shard.
_SHARD_BYTES = 64 * 2**20


def predict(model: Any, X: Any, client: Any = None) -> Any:
    """Predict the class or the targets of each sample.

    Parameters
    ----------
    model : fitted estimator
        Any estimator, fitted here or elsewhere. The graph contains it once, whatever the number of
        blocks. A model of more than 8 MB is sent to all workers of the client at once. A model in
        regions that takes more than a tenth of the memory of a worker is divided among the workers,
        and samples are sent to the models of their regions.
    X : dask array or dask data frame of shape (n_samples, n_features)
        Samples.
    client : distributed.Client or None, default=None
        Client whose workers receive a large model; None is the current client. The result itself is
        computed wherever Dask computes it.

    Returns
    -------
    result : dask array
        Result of ``model.predict`` in the chunks of `X`. The chunks have unknown sizes if `X` is a
        data frame.

    See Also
    --------
    lokl.distributed.fit : Fits on collections.
    lokl.distributed.predict_proba : Class probabilities.
    lokl.distributed.score : Accuracy, or R squared.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import make_moons
    >>> from lokl import UniformMKLClassifier, distributed
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = UniformMKLClassifier(["rbf"]).fit(X, y)
    >>> labels = distributed.predict(model, da.from_array(X, chunks=(50, 2)))
    >>> labels.chunks
    ((50, 50, 50, 50),)
    >>> labels.compute()[:5]
    array([0, 1, 1, 0, 1])
    """
    return _call_on_blocks(model, "predict", X, client)


def decision_function(model: Any, X: Any, client: Any = None) -> Any:
    """Return the decision values of each sample.

    Parameters
    ----------
    model : fitted estimator
        As for :func:`predict`.
    X : dask array or dask data frame of shape (n_samples, n_features)
        Samples.
    client : distributed.Client or None, default=None
        As for :func:`predict`.

    Returns
    -------
    result : dask array of shape (n_samples,) or (n_samples, n_classes)
        In the chunks of `X`.

    See Also
    --------
    lokl.distributed.predict : Classes or targets.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import make_moons
    >>> from lokl import UniformMKLClassifier, distributed
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = UniformMKLClassifier(["rbf"]).fit(X, y)
    >>> distributed.decision_function(model, da.from_array(X, chunks=(50, 2))).shape
    (200,)
    """
    return _call_on_blocks(model, "decision_function", X, client)


def predict_proba(model: Any, X: Any, client: Any = None) -> Any:
    """Return the class probabilities of each sample.

    Parameters
    ----------
    model : fitted estimator
        As for :func:`predict`.
    X : dask array or dask data frame of shape (n_samples, n_features)
        Samples.
    client : distributed.Client or None, default=None
        As for :func:`predict`.

    Returns
    -------
    result : dask array of shape (n_samples, n_classes)
        In the chunks of `X`.

    See Also
    --------
    lokl.distributed.predict : Classes or targets.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import make_moons
    >>> from lokl import TrustedVoteClassifier, distributed
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = TrustedVoteClassifier(["rbf"], random_state=0).fit(X, y)
    >>> distributed.predict_proba(model, da.from_array(X, chunks=(50, 2))).shape
    (200, 2)
    """
    return _call_on_blocks(model, "predict_proba", X, client)


def weights(model: Any, X: Any, client: Any = None) -> Any:
    """Return the kernel weights at each sample.

    Parameters
    ----------
    model : fitted estimator
        As for :func:`predict`.
    X : dask array or dask data frame of shape (n_samples, n_features)
        Samples.
    client : distributed.Client or None, default=None
        As for :func:`predict`.

    Returns
    -------
    result : dask array of shape (n_samples, n_kernels)
        In the chunks of `X`.

    See Also
    --------
    lokl.distributed.predict : Classes or targets.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import make_moons
    >>> from lokl import LMKLClassifier, distributed
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = LMKLClassifier(["linear", "rbf"], random_state=0).fit(X, y)
    >>> distributed.weights(model, da.from_array(X, chunks=(50, 2))).shape
    (200, 2)
    """
    return _call_on_blocks(model, "weights", X, client)


def contributions(model: Any, X: Any, client: Any = None) -> Any:
    """Return the signed contribution of each kernel.

    Parameters
    ----------
    model : fitted estimator
        As for :func:`predict`.
    X : dask array or dask data frame of shape (n_samples, n_features)
        Samples.
    client : distributed.Client or None, default=None
        As for :func:`predict`.

    Returns
    -------
    result : dask array of shape (n_samples, n_kernels) or (n_samples, n_tasks, n_kernels)
        In the chunks of `X`.

    See Also
    --------
    lokl.distributed.predict : Classes or targets.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import make_moons
    >>> from lokl import UniformMKLClassifier, distributed
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = UniformMKLClassifier(["linear", "rbf"]).fit(X, y)
    >>> distributed.contributions(model, da.from_array(X, chunks=(50, 2))).shape
    (200, 2)
    """
    return _call_on_blocks(model, "contributions", X, client)


def _call_on_blocks(model: Any, method: str, X: Any, client: Any) -> Any:
    """Return the result of a method for every block, as a lazy dask array."""
    check_is_fitted(model)
    if not hasattr(model, method):
        raise ValueError(f"{type(model).__name__} has no {method}")
    cluster, blocks = graph.Cluster(client), graph.as_row_blocks(X, "X")
    with single_threaded():
        # A result without rows, which has the type and the columns of all others.
        empty = np.asarray(getattr(model, method)(_example_row(X)))[:0]
    size = 0 if cluster.client is None else graph.pickled_size(model)
    array = graph.need_dask().array
    if isinstance(model, RegionEstimator) and size > _LARGEST_MEMORY_SHARE * cluster.memory:
        results = _call_on_shards(cluster, model, method, blocks.parts, empty)
    else:
        node = graph.shared(model)
        if size > _LARGE_MODEL_BYTES:
            # Sent once instead of with every graph. Workers pass it on to each other when they need
            # it; Dask's memory manager removes copies that no task waits for.
            node = cluster.client.scatter(model, hash=False)
        results = [graph.task(_call_on_block)(node, method, empty, part) for part in blocks.parts]
    shape = (np.nan, *empty.shape[1:])
    parts = [array.from_delayed(result, shape, meta=empty) for result in results]
    # Lengths are set afterwards, since blocks that are known to be empty would be dropped here.
    whole = array.concatenate(parts, axis=0, allow_unknown_chunksizes=True)
    lengths = tuple(np.nan if length is None else length for length in blocks.lengths)
    whole._chunks = (lengths, *whole.chunks[1:])
    return whole


def _call_on_block(model: Any, method: str, empty: Array, X: Any) -> Array:
    if X.shape[0] == 0:
        return empty
    # Dask uses the other cores for other blocks.
    with single_threaded():
        return np.asarray(getattr(model, method)(X))


def _example_row(X: Any) -> Any:
    """Return one row of the same type as the blocks of a collection."""
    if hasattr(X, "columns"):
        from dask.dataframe.dispatch import meta_nonempty

        return meta_nonempty(X._meta).iloc[:1]
    row = np.zeros((1, X.shape[1]), dtype=X.dtype)
    return sparse.csr_matrix(row) if is_sparse(X._meta) else row


def _call_on_shards(
    cluster: graph.Cluster, model: Any, method: str, blocks: Sequence[Any], empty: Array
) -> list[Any]:
    """Return the result for every block of a model whose regions are divided among the workers."""
    ranges, shards = split_model(model._model)
    estimator = copy.copy(model)
    vars(estimator).update(estimators_=[], _model=_shard(model._model, 0, slice(0)))
    node, results = graph.shared(estimator), []
    # One after the other, since a worker may not have room to receive two at once. The tasks keep
    # the futures, and thereby the shards, alive.
    futures = [cluster.client.scatter(shard, hash=False) for shard in shards]
    for block in blocks:
        samples = graph.task(_sort_samples)(node, ranges, block)
        outputs = [
            graph.task(_compute_shard)(shard, method, samples[k]) for k, shard in enumerate(futures)
        ]
        results.append(graph.task(_combine_shards)(node, method, empty, block, outputs))
    return results


def split_model(model: PartitionedModel) -> tuple[list[tuple[int, slice]], list[graph.SizedValue]]:
    """Divide the models of neighbouring regions into shards of bounded size.

    Returns
    -------
    ranges : list of (int, slice)
        Partition of each shard, and its regions there.
    shards : list of SizedValue
        Models that contain only these regions.
    """
    ranges = [
        (partition, slice(*group))
        for partition, models in enumerate(model.models)
        for group in graph.group_neighbours(map(graph.pickled_size, models), _SHARD_BYTES)
    ]
    return ranges, [graph.SizedValue(_shard(model, *regions)) for regions in ranges]


def _shard(model: PartitionedModel, partition: int, regions: slice) -> PartitionedModel:
    """Return a model with the models of some regions of one partition only."""
    models: list[list[Any]] = [[None] * len(part) for part in model.models]
    models[partition][regions] = model.models[partition][regions]
    return replace(model, models=models)


def _sort_samples(estimator: RegionEstimator, ranges: Any, X: Any) -> list[Any]:
    """Return the samples of a block for each shard, None if there are none.

    Samples are tuples: positions of their rows, samples for the trees, samples for the estimators.
    """
    if X.shape[0] == 0:
        return [None] * len(ranges)
    with single_threaded():
        X, samples = estimator._validate_for_predict(X)
        members = [tree.divide(X) for tree in estimator._model.trees]
    result: list[Any] = []
    for partition, regions in ranges:
        rows = np.unique(np.concatenate([rows for rows, _ in members[partition][regions]]))
        chosen = take(X, rows)
        # The same object is sent to another worker only once.
        others = chosen if samples is X else take(samples, rows)
        result.append((rows, chosen, others) if len(rows) else None)
    return result


def _compute_shard(
    shard: graph.SizedValue, output: str, selected: Any
) -> tuple[Array, Array] | None:
    """Return the rows of a shard, and the part of an output that its models compute for them."""
    if selected is None:
        return None
    rows, X, samples = selected
    with single_threaded():
        return rows, np.asarray(shard.value.mean(output, X, samples, 1))


def _combine_shards(
    estimator: RegionEstimator,
    method: str,
    empty: Array,
    X: Any,
    outputs: Sequence[tuple[Array, Array] | None],
) -> Array:
    """Return the result for a block, given the rows and the outputs of all shards."""
    if X.shape[0] == 0:
        return empty
    total = np.zeros((X.shape[0], *estimator._model.shape(method)))
    for rows, values in filter(None, outputs):
        total[rows] += values
    estimator = copy.copy(estimator)
    estimator._model = replace(estimator._model, total=total)
    return np.asarray(getattr(estimator, method)(X))


def score(model: Any, X: Any, y: Any, sample_weight: Any = None, client: Any = None) -> Any:
    """Return the accuracy of a classifier, or R^2 of a regressor, as ``model.score`` does.

    Parameters
    ----------
    model : fitted estimator
        As for :func:`predict`.
    X : dask array or dask data frame of shape (n_samples, n_features)
        Samples.
    y : dask array, dask series or array of shape (n_samples,), or (n_samples, n_targets)
        If its chunks differ from those of `X` and have unknown sizes, rows are counted at once.
    sample_weight : dask array, dask series or array of shape (n_samples,), optional
        Weights of the samples in the mean.
    client : distributed.Client or None, default=None
        As in :func:`predict`.

    Returns
    -------
    score : dask array of shape ()
        Lazy; ``float(score)`` computes it.

    See Also
    --------
    lokl.distributed.predict : Classes or targets.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import make_moons
    >>> from lokl import UniformMKLClassifier, distributed
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = UniformMKLClassifier(["rbf"], C=10).fit(X, y)
    >>> round(float(distributed.score(model, da.from_array(X, chunks=(50, 2)), y)), 2)
    0.99
    """
    check_is_fitted(model)
    if not (is_classifier(model) or is_regressor(model)):
        raise ValueError(f"{type(model).__name__} is neither a classifier nor a regressor")
    # Unknown numbers of rows are counted in X: predictions would have to be computed for that.
    blocks = graph.align_blocks(graph.Cluster(client), X, y, sample_weight, lazy=True)
    predicted = graph.as_row_blocks(predict(model, X, client), "predictions").parts
    columns = [predicted, *(part.parts for part in blocks[1:])]
    parts = [
        graph.task(_sums)(is_classifier(model), *block) for block in zip(*columns, strict=True)
    ]
    result = graph.task(_score)(is_classifier(model), parts)
    return graph.need_dask().array.from_delayed(result, (), dtype=np.float64)


def _sums(
    is_classification: bool, predicted: Array, y: Any, weight: Any = None
) -> tuple[Array, Moments] | None:
    """Return sums over a block, and moments of its targets; None without weight.

    Sums are weights of the correct classes, or weighted squared errors of each target.
    """
    y = np.asarray(y)
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    for name, values in (("y", y), ("sample_weight", weight)):
        if len(values) != len(predicted):
            raise ValueError(
                f"a block of X has {len(predicted)} rows, but the same block of {name} has "
                f"{len(values)}; give both the same chunks"
            )
    if not (weight > 0).any():
        return None
    if is_classification:
        values = targets = column(y.reshape(-1) == predicted).astype(float)
    else:
        targets = column(y.astype(float))
        values = (targets - column(predicted)) ** 2
    return weight @ values, Moments.of(targets, weight)


def _score(is_classification: bool, parts: Sequence[tuple[Array, Moments] | None]) -> Any:
    """Return the accuracy or R^2, given the sums over all blocks."""
    present = [part for part in parts if part is not None]
    if not present:
        return np.float64(np.nan)
    sums = np.sum([part for part, _ in present], axis=0)
    moments = reduce(Moments.merge, [part for _, part in present])
    if is_classification:
        return np.float64(sums[0] / moments.weight)
    # Constant targets are predicted exactly, or not at all.
    total = moments.squares
    share = np.divide(sums, total, out=(sums > 0).astype(float), where=total > 0)
    return np.float64(np.mean(1.0 - share))
