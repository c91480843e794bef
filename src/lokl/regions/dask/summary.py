"""Means and sums of squares that can be put together from parts.

One pass over all samples: whether they can be learned from, and what has to be known of them.
"""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import column_or_1d

from lokl._arrays import Array, column, is_sparse
from lokl.base.classifier import sorted_classes
from lokl.base.validation import check_samples, check_weights
from lokl.regions.dask.blocks import Blocks
from lokl.regions.dask.cluster import Cluster, need_dask
from lokl.regions.estimators import InRegions
from lokl.regions.model import take


@dataclass(frozen=True, eq=False)
class Moments:
    """Weight, mean and sum of squared distances from the mean, of each column.

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
        """Moments of rows, not all of which have a weight of zero."""
        mean = np.average(values, axis=0, weights=weight)
        return cls(float(weight.sum()), mean, weight @ (values - mean) ** 2)

    def joined(self, other: "Moments") -> "Moments":
        """Moments of the rows of both; nothing is lost where means are far from zero."""
        weight = self.weight + other.weight
        apart, share = other.mean - self.mean, other.weight / weight
        squares = self.squares + other.squares + apart**2 * self.weight * share
        return Moments(weight, self.mean + apart * share, squares)

    @property
    def variance(self) -> Array:
        return self.squares / self.weight


@dataclass(frozen=True, eq=False)
class Checked:
    """Rows of a block that count: weights of zero are the same as no row.

    Attributes
    ----------
    X : {array, CSR matrix}
        As trees take them.
    samples : {array, CSR matrix, data frame}
        As estimators take them.
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


def checked(model: InRegions, X: Any, y: Any, weight: Any) -> Checked:
    """Check rows as `model.fit` does with all of them; raise a ValueError where they are wrong."""
    # Scikit-learn notes what it sees on the estimator, which is shared among threads.
    noted = copy.copy(model)
    samples = X if hasattr(X, "iloc") else None
    X, y = check_samples(noted, X, y, fitting=True, missing=model._takes_missing(X))
    columns = getattr(noted, "feature_names_in_", None)
    if weight is not None:
        weight = check_weights(weight, X, part=True)
        counted = np.flatnonzero(weight > 0)
        samples = None if samples is None else take(samples, counted)
        X, y, weight = take(X, counted), y[counted], weight[counted]
    return Checked(X, X if samples is None else samples, y, weight, columns)


@dataclass(frozen=True, eq=False)
class Rows:
    """All blocks, with what came before each of them.

    Attributes
    ----------
    X, y, weight : Blocks
        Of the same lengths; `weight` may be None.
    counted : tuple of int
        Rows of each block that have a weight.
    """

    X: Blocks
    y: Blocks
    weight: Blocks | None
    counted: tuple[int, ...]

    @property
    def n_counted(self) -> int:
        return sum(self.counted)

    def tasks(self, function: Any, *arguments: Any) -> list[Any]:
        """One task for each block: ``function(*arguments, block, X, y, weight)``.

        Arguments are in the graph once, however many tasks take them.
        """
        delayed = need_dask().delayed
        shared = [delayed(argument, pure=False, traverse=False) for argument in arguments]
        starts = np.cumsum([0, *self.counted])
        tasks = []
        for place, start in enumerate(self.X.starts()):
            length = self.X.lengths[place]
            block = Block(start, int(length or 0), int(starts[place]), self.counted[place])
            weight = None if self.weight is None else self.weight.parts[place]
            given = (self.X.parts[place], self.y.parts[place], weight)
            tasks.append(delayed(function, pure=False)(*shared, block, *given))
        return tasks


@dataclass(frozen=True)
class Block:
    """Where the rows of a block are among all rows, and among those that count."""

    start: int
    length: int
    first_counted: int
    n_counted: int

    @contextmanager
    def named(self) -> Iterator[None]:
        """Let errors name the rows."""
        try:
            yield
        except ValueError as reason:
            last = self.start + self.length - 1
            raise ValueError(f"rows {self.start} to {last} of X: {reason}") from reason

    def check_lengths(self, **given: Any) -> None:
        """Raise where a collection gives other rows than it said, or gave before."""
        for name, values in given.items():
            if values is not None and values.shape[0] != self.length:
                raise ValueError(
                    f"{name} has {values.shape[0]} rows here, but {self.length} were announced; "
                    "the collection changes from one reading to the next, or its chunks are wrong"
                )


@dataclass(frozen=True, eq=False)
class Seen:
    """What one block, or all of them, have shown.

    Attributes
    ----------
    n_features : int
    columns : array of str or None
    labels : array
        Classes; empty for targets.
    label_weights : array
        How much samples of each class weigh.
    moments : Moments or None
        Of targets.
    n_bytes : int
    points : {array, CSR matrix}
        Samples that the trunk of a tree is grown from.
    """

    n_features: int
    columns: Any
    labels: Array
    label_weights: Array
    moments: Moments | None
    n_bytes: int
    points: Any


def look(cluster: Cluster, model: InRegions, rows: Rows, sampled: Array, has_classes: bool) -> Seen:
    """Look at all blocks; return what they have shown, or raise what is wrong with one of them."""
    tasks = rows.tasks(_look, model, sampled, has_classes)
    return _together(cluster.compute(tasks))


def _look(
    model: InRegions, sampled: Array, has_classes: bool, block: Block, X: Any, y: Any, weight: Any
) -> Seen:
    with block.named():
        block.check_lengths(X=X, y=y, sample_weight=weight)
        found = checked(model, X, y, weight)
        own = np.ones(len(found.y)) if found.weight is None else found.weight
        labels: Array = np.empty(0)
        sums: Array = np.empty(0)
        moments = None
        if has_classes and len(own):
            labels, codes = sorted_classes(one_column(found.y))
            sums = np.bincount(codes, weights=own, minlength=len(labels))
        elif len(own):
            moments = Moments.of(column(np.asarray(found.y, dtype=float)), own)
    first = np.searchsorted(sampled, block.first_counted)
    last = np.searchsorted(sampled, block.first_counted + block.n_counted)
    points = take(found.X, sampled[first:last] - block.first_counted)
    return Seen(X.shape[1], found.columns, labels, sums, moments, size_of(found.samples), points)


def one_column(y: Array) -> Array:
    """Labels as one column; whether they are was seen when the collection came in."""
    return np.asarray(column_or_1d(y))


def _together(every: Sequence[Seen]) -> Seen:
    first = every[0]
    for seen in every:
        if seen.n_features != first.n_features or not _same(seen.columns, first.columns):
            raise ValueError(
                f"blocks of X differ: one has columns {_told(first)}, another {_told(seen)}"
            )
    classed = [seen for seen in every if len(seen.labels)] or [first]
    kinds = sorted({"text" if seen.labels.dtype.kind in "US" else "number" for seen in classed})
    if len(kinds) > 1:
        raise ValueError(
            "labels are numbers in some blocks of y and text in others, which have no common "
            "order; convert them to one type, for instance with y.astype(str)"
        )
    labels, codes = np.unique(np.concatenate([s.labels for s in classed]), return_inverse=True)
    weights = np.concatenate([seen.label_weights for seen in classed])
    moments = [seen.moments for seen in every if seen.moments is not None]
    return Seen(
        first.n_features,
        first.columns,
        labels,
        np.bincount(codes, weights=weights, minlength=len(labels)),
        reduce(Moments.joined, moments) if moments else None,
        sum(seen.n_bytes for seen in every),
        stacked([seen.points for seen in every if seen.points.shape[0]]),
    )


def _same(one: Any, other: Any) -> bool:
    return (one is None) == (other is None) and (one is None or list(one) == list(other))


def _told(seen: Seen) -> str:
    return str(seen.n_features if seen.columns is None else list(seen.columns))


def stacked(parts: Sequence[Any]) -> Any:
    """Return arrays, CSR matrices or data frames one below the other."""
    if len(parts) == 1:
        return parts[0]
    if hasattr(parts[0], "iloc"):
        import pandas

        return pandas.concat(parts)
    if is_sparse(parts[0]):
        return sparse.vstack(parts, format="csr")
    return np.concatenate(parts)


def size_of(samples: Any) -> int:
    """Bytes of an array, a CSR matrix or a data frame."""
    if hasattr(samples, "memory_usage"):
        return int(samples.memory_usage(index=True).sum())
    if is_sparse(samples):
        return int(samples.data.nbytes + samples.indices.nbytes + samples.indptr.nbytes)
    return int(samples.nbytes)
