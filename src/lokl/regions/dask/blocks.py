"""Dask collections as blocks of rows, aligned between samples, targets and weights."""

import pickle
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lokl.regions.dask.cluster import Cluster, need_dask, task


@dataclass(frozen=True, eq=False)
class RowBlocks:
    """Blocks of rows of a collection, in order.

    Attributes
    ----------
    name : str
        Name of the collection in messages.
    parts : list of Delayed
        Blocks: arrays, CSR matrices, data frames or series.
    lengths : tuple of int or None
        Rows of each block, None if unknown.
    width : tuple of int
        Shape of one row: (), or (n_columns,).
    """

    name: str
    parts: list[Any]
    lengths: tuple[int | None, ...]
    width: tuple[int, ...]

    @property
    def n_rows(self) -> int:
        """Number of rows in blocks of known lengths."""
        return sum(length or 0 for length in self.lengths)

    def without_empty(self) -> "RowBlocks":
        """Return the blocks without those that are known to be empty."""
        kept = [index for index, length in enumerate(self.lengths) if length != 0]
        parts, lengths = [self.parts[k] for k in kept], tuple(self.lengths[k] for k in kept)
        return replace(self, parts=parts, lengths=lengths)


def check_samples_collection(X: Any) -> Any:
    """Return a collection of samples whose blocks have all columns."""
    dask = need_dask()
    if isinstance(X, dask.array.Array):
        if X.ndim != 2:
            raise ValueError(f"X must have two axes, samples and features, got shape {X.shape}")
        return X.rechunk({1: -1}) if X.numblocks[1] != 1 else X
    if isinstance(X, dask.dataframe.DataFrame):
        return X
    raise ValueError(
        f"X must be a dask array or a dask data frame, got {type(X).__name__}; for samples in "
        "memory, call the methods of the model, or pass "
        "dask.array.from_array(X, chunks=(100_000, -1))"
    )


def as_row_blocks(values: Any, name: str) -> RowBlocks:
    """Return samples, targets or weights as blocks.

    Parameters
    ----------
    values : dask array, dask data frame, dask series or array
        Samples ("X") must be a collection.
    name : {"X", "y", "sample_weight"}
    """
    dask = need_dask()
    if name == "X":
        values = check_samples_collection(values)
    if isinstance(values, dask.dataframe.DataFrame | dask.dataframe.Series):
        parts = list(values.to_delayed())
        width = (len(values.columns),) if values.ndim == 2 else ()
        return RowBlocks(name, parts, (None,) * len(parts), width)
    if not isinstance(values, dask.array.Array):
        if dask.is_dask_collection(values):
            raise ValueError(
                f"{name} must be a dask array, a dask series or an array, got "
                f"{type(values).__name__}"
            )
        values = np.asarray(values)
        values = dask.array.from_array(values, chunks=values.shape)
    if values.ndim not in (1, 2):
        raise ValueError(f"{name} must have one or two axes, got shape {values.shape}")
    if values.ndim == 2 and values.numblocks[1] != 1:
        values = values.rechunk({1: -1})
    return _array_blocks(name, values)


def _array_blocks(name: str, array: Any) -> RowBlocks:
    lengths = tuple(None if np.isnan(length) else int(length) for length in array.chunks[0])
    width = tuple(int(columns) for columns in array.shape[1:])
    return RowBlocks(name, list(array.to_delayed().ravel()), lengths, width)


def count_rows(cluster: Cluster, collections: Sequence[RowBlocks]) -> list[RowBlocks]:
    """Return blocks of known lengths; unknown lengths are counted in one pass."""
    unknown = [blocks for blocks in collections if None in blocks.lengths]
    parts = [part for blocks in unknown for part in blocks.parts]
    counted = iter(cluster.compute([task(_length)(part) for part in parts]))
    return [
        replace(blocks, lengths=tuple(next(counted) for _ in blocks.parts))
        if None in blocks.lengths
        else blocks
        for blocks in collections
    ]


def _length(part: Any) -> int:
    return int(part.shape[0])


def align_rows(X: RowBlocks, *others: RowBlocks) -> list[RowBlocks]:
    """Return the others in blocks of the same rows as X. All lengths must be known."""
    for other in others:
        if other.n_rows != X.n_rows:
            raise ValueError(
                f"X has {X.n_rows} rows, but {other.name} has {other.n_rows}; they must have the "
                "same number"
            )
    return [_align(X, other) for other in others]


def _align(X: RowBlocks, other: RowBlocks) -> RowBlocks:
    if X.lengths == other.lengths:
        return other
    other = other.without_empty()
    if X.lengths == other.lengths:
        return other
    array, as_array = need_dask().array, task(np.asarray)
    empty = np.empty((0,) * (1 + len(other.width)))
    parts = [
        array.from_delayed(as_array(part), (length, *other.width), meta=empty)
        for part, length in zip(other.parts, other.lengths, strict=True)
    ]
    return _array_blocks(other.name, array.concatenate(parts, axis=0).rechunk({0: X.lengths}))


def group_neighbours(sizes: Iterable[float], limit: float) -> list[tuple[int, int]]:
    """Group consecutive items such that the sizes of a group sum to at most `limit`.

    Returns
    -------
    groups : list of (int, int)
        First index of each group, and the index after its last. Larger items are alone.
    """
    groups: list[tuple[int, int]] = []
    first, total, index = 0, 0.0, -1
    for index, size in enumerate(sizes):
        if index > first and total + size > limit:
            groups.append((first, index))
            first, total = index, 0.0
        total += size
    return [*groups, (first, index + 1)]


@dataclass(frozen=True, eq=False)
class SizedValue:
    """Value that reports its pickled size, which Dask cannot see in objects, to the workers."""

    value: Any
    n_bytes: int

    @classmethod
    def of(cls, value: Any) -> "SizedValue":
        return cls(value, pickled_size(value))

    def __sizeof__(self) -> int:
        return self.n_bytes


def pickled_size(value: Any) -> int:
    """Return the bytes of a model when it is sent to another process, without copying arrays."""
    buffers: list[pickle.PickleBuffer] = []
    try:
        rest = len(pickle.dumps(value, protocol=5, buffer_callback=buffers.append))
    except Exception:
        # Functions of an interactive session are pickled in another way, and are small.
        return 0
    return rest + sum(buffer.raw().nbytes for buffer in buffers)
