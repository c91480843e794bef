"""First pass over a collection: validation of every block, and a summary of all of them."""

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import column_or_1d

from lokl._arrays import Array, column, is_sparse
from lokl.base.targets import sorted_classes
from lokl.base.training import check_samples, check_weights
from lokl.regions.dask.blocks import RowBlocks
from lokl.regions.dask.cluster import Cluster, need_dask, shared, task
from lokl.regions.estimators import RegionEstimator
from lokl.regions.model import take


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


@dataclass(frozen=True, eq=False)
class ValidatedBlock:
    """Rows of a block with positive weight.

    Attributes
    ----------
    X : {array, CSR matrix}
        Samples for the trees.
    samples : {array, CSR matrix, data frame}
        The same samples for the estimators.
    y : array
    weight : array or None
    columns : array of str or None
        Names of the columns.
    """

    X: Any
    samples: Any
    y: Array
    weight: Array | None
    columns: Any


def validate_block(model: RegionEstimator, X: Any, y: Any, weight: Any) -> ValidatedBlock:
    """Check rows as ``model.fit`` checks all of them; raise ValueError if they are invalid."""
    # Validation by scikit-learn sets attributes of the estimator, which threads share.
    model = copy.copy(model)
    frame = X if hasattr(X, "iloc") else None
    X, y = check_samples(model, X, y, fitting=True, missing=model._takes_missing(X))
    columns = getattr(model, "feature_names_in_", None)
    if weight is not None:
        weight = check_weights(weight, X, part=True)
        counted = np.flatnonzero(weight > 0)
        frame = None if frame is None else take(frame, counted)
        X, y, weight = take(X, counted), y[counted], weight[counted]
    return ValidatedBlock(X, X if frame is None else frame, y, weight, columns)


@dataclass(frozen=True)
class BlockPosition:
    """Position of a block among all rows, and among the rows with positive weight."""

    start: int
    length: int
    first_counted: int
    n_counted: int

    @contextmanager
    def in_errors(self) -> Iterator[None]:
        """Prefix errors with the rows of the block."""
        try:
            yield
        except ValueError as error:
            last = self.start + self.length - 1
            raise ValueError(f"rows {self.start} to {last} of X: {error}") from error

    def check_lengths(self, **collections: Any) -> None:
        """Raise an error if a block does not have the announced number of rows."""
        for name, values in collections.items():
            if values is not None and values.shape[0] != self.length:
                raise ValueError(
                    f"{name} has {values.shape[0]} rows here, but its chunks announced "
                    f"{self.length}; correct the chunks, or persist a collection that changes "
                    "between readings"
                )


@dataclass(frozen=True, eq=False)
class TrainingBlocks:
    """Samples, targets and weights in blocks of the same rows.

    Attributes
    ----------
    X, y : RowBlocks
    weight : RowBlocks or None
    counted : tuple of int
        Rows of each block with positive weight.
    """

    X: RowBlocks
    y: RowBlocks
    weight: RowBlocks | None
    counted: tuple[int, ...]

    @property
    def n_counted(self) -> int:
        return sum(self.counted)

    def tasks(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return ``function(*arguments, position, X, y, weight)`` as one task per block."""
        arguments = tuple(shared(argument) for argument in arguments)
        lengths = [length or 0 for length in self.X.lengths]
        starts, firsts = np.cumsum([0, *lengths]).tolist(), np.cumsum([0, *self.counted]).tolist()
        weights = [None] * len(lengths) if self.weight is None else self.weight.parts
        blocks = zip(self.X.parts, self.y.parts, weights, strict=True)
        return [
            task(function)(
                *arguments,
                BlockPosition(starts[k], lengths[k], firsts[k], self.counted[k]),
                *block,
            )
            for k, block in enumerate(blocks)
        ]


@dataclass(frozen=True, eq=False)
class DataSummary:
    """Summary of one block, or of all of them.

    Attributes
    ----------
    n_features : int
    columns : array of str or None
        Names of the columns.
    labels : array of shape (n_classes,)
        Classes; empty for regression.
    label_weights : array of shape (n_classes,)
        Total sample weight of each class.
    moments : Moments or None
        Moments of the targets; None for classification.
    n_bytes : int
        Size of the samples.
    points : {array, CSR matrix}
        Samples from which the trunk of a tree is grown.
    """

    n_features: int
    columns: Any
    labels: Array
    label_weights: Array
    moments: Moments | None
    n_bytes: int
    points: Any


def first_pass(
    cluster: Cluster,
    model: RegionEstimator,
    blocks: TrainingBlocks,
    subsample: Array,
    is_regression: bool,
) -> DataSummary:
    """Validate and summarise all blocks; raise ValueError if one of them is invalid.

    `subsample` are the sorted positions, among the rows with positive weight, of the points.
    """
    tasks = blocks.tasks(_summarize_block, model, subsample, is_regression)
    return _merge_summaries(cluster.compute(tasks))


def _summarize_block(
    model: RegionEstimator,
    subsample: Array,
    is_regression: bool,
    position: BlockPosition,
    X: Any,
    y: Any,
    weight: Any,
) -> DataSummary:
    labels: Array = np.empty(0)
    label_weights: Array = np.empty(0)
    moments = None
    with position.in_errors():
        position.check_lengths(X=X, y=y, sample_weight=weight)
        block = validate_block(model, X, y, weight)
        counts = np.ones(len(block.y)) if block.weight is None else block.weight
        if len(counts) and is_regression:
            moments = Moments.of(column(np.asarray(block.y, dtype=float)), counts)
        elif len(counts):
            labels, codes = sorted_classes(column_or_1d(block.y))
            label_weights = np.bincount(codes, weights=counts, minlength=len(labels))
    ends = (position.first_counted, position.first_counted + position.n_counted)
    first, last = np.searchsorted(subsample, ends)
    points = take(block.X, subsample[first:last] - position.first_counted)
    size = need_dask().sizeof.sizeof(block.samples)
    return DataSummary(X.shape[1], block.columns, labels, label_weights, moments, size, points)


def _merge_summaries(summaries: Sequence[DataSummary]) -> DataSummary:
    first = summaries[0]
    for summary in summaries:
        if _columns(summary) != _columns(first):
            raise ValueError(
                f"blocks of X have different columns: {_columns(first)} and {_columns(summary)}; "
                "give all blocks the same columns in the same order"
            )
    labelled = [summary for summary in summaries if len(summary.labels)] or [first]
    if len({summary.labels.dtype.kind in "US" for summary in labelled}) > 1:
        raise ValueError(
            "labels are numbers in some blocks of y and text in others; convert them to one type, "
            "for instance with y.astype(str)"
        )
    labels, codes = np.unique(
        np.concatenate([summary.labels for summary in labelled]), return_inverse=True
    )
    weights = np.concatenate([summary.label_weights for summary in labelled])
    moments = [summary.moments for summary in summaries if summary.moments is not None]
    return DataSummary(
        first.n_features,
        first.columns,
        labels,
        np.bincount(codes, weights=weights, minlength=len(labels)),
        reduce(Moments.merge, moments) if moments else None,
        sum(summary.n_bytes for summary in summaries),
        stack_rows([summary.points for summary in summaries if summary.points.shape[0]]),
    )


def _columns(summary: DataSummary) -> int | list[str]:
    return summary.n_features if summary.columns is None else list(summary.columns)


def stack_rows(parts: Sequence[Any]) -> Any:
    """Concatenate the rows of arrays, CSR matrices or data frames."""
    if len(parts) == 1:
        return parts[0]
    if hasattr(parts[0], "iloc"):
        import pandas

        return pandas.concat(parts)
    if is_sparse(parts[0]):
        return sparse.vstack(parts, format="csr")
    return np.concatenate(parts)
