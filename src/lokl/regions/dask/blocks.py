"""Collections as blocks of rows, in order; several of them block by block.

How large something is that was learned.
"""

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lokl.regions.dask.cluster import Cluster, need_dask


@dataclass(frozen=True, eq=False)
class Blocks:
    """Rows of a collection.

    Attributes
    ----------
    name : str
        As messages call the collection.
    parts : list of Delayed
        Each a block of rows: an array, a CSR matrix, a data frame or a series.
    lengths : tuple of int or None
        Rows of each block, None where that is not known yet.
    width : tuple of int
        What comes after the rows in the shape: (), or (n_columns,).
    """

    name: str
    parts: list[Any]
    lengths: tuple[int | None, ...]
    width: tuple[int, ...]

    @property
    def is_known(self) -> bool:
        return None not in self.lengths

    @property
    def n_rows(self) -> int:
        return sum(length or 0 for length in self.lengths)

    def starts(self) -> list[int]:
        """Place of the first row of each block among all rows."""
        return [int(s) for s in np.cumsum([0, *(length or 0 for length in self.lengths[:-1])])]

    def without_empty(self) -> "Blocks":
        """Return the blocks that have rows, where lengths are known."""
        kept = [place for place, length in enumerate(self.lengths) if length != 0]
        parts, lengths = [self.parts[k] for k in kept], tuple(self.lengths[k] for k in kept)
        return Blocks(self.name, parts, lengths, self.width)


def whole_rows(X: Any) -> Any:
    """Return a collection of samples whose blocks have all columns."""
    dask = need_dask()
    if isinstance(X, dask.array.Array):
        if X.ndim != 2:
            raise ValueError(f"X must have two axes, samples and features, got shape {X.shape}")
        return X.rechunk({1: -1}) if X.numblocks[1] != 1 else X
    if isinstance(X, dask.dataframe.DataFrame):
        return X
    raise ValueError(
        f"X must be a dask array or a dask data frame, got {type(X).__name__}; samples in memory "
        "are for the methods of the model itself, or dask.array.from_array(X, chunks=(100_000, -1))"
    )


def samples(X: Any) -> Blocks:
    """Return samples as blocks that have all columns."""
    X = whole_rows(X)
    return _of_frame("X", X) if hasattr(X, "columns") else _of_array("X", X)


def beside(values: Any, name: str) -> Blocks:
    """Return targets or weights, in a collection or in memory, as blocks."""
    dask = need_dask()
    if isinstance(values, dask.dataframe.DataFrame | dask.dataframe.Series):
        return _of_frame(name, values)
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
    return _of_array(name, values)


def _of_array(name: str, array: Any) -> Blocks:
    lengths = tuple(None if np.isnan(length) else int(length) for length in array.chunks[0])
    width = tuple(int(columns) for columns in array.shape[1:])
    return Blocks(name, list(array.to_delayed().ravel()), lengths, width)


def _of_frame(name: str, frame: Any) -> Blocks:
    parts = list(frame.to_delayed())
    width = (len(frame.columns),) if frame.ndim == 2 else ()
    return Blocks(name, parts, (None,) * len(parts), width)


def with_lengths(cluster: Cluster, several: Sequence[Blocks]) -> list[Blocks]:
    """Return blocks whose lengths are known; those that are not are counted, all in one go."""
    length = need_dask().delayed(_length, pure=False)
    unknown = [blocks for blocks in several if not blocks.is_known]
    counted = iter(cluster.compute([length(part) for blocks in unknown for part in blocks.parts]))
    found = []
    for blocks in several:
        lengths = blocks.lengths
        if not blocks.is_known:
            lengths = tuple(next(counted) for _ in blocks.parts)
        found.append(Blocks(blocks.name, blocks.parts, lengths, blocks.width))
    return found


def _length(part: Any) -> int:
    return int(part.shape[0])


def aligned(X: Blocks, *others: Blocks) -> list[Blocks]:
    """Return blocks of others with the rows of those of X, where all lengths are known."""
    for other in others:
        if other.n_rows != X.n_rows:
            raise ValueError(
                f"X has {X.n_rows} rows, but {other.name} has {other.n_rows}: every row of X needs "
                "one"
            )
    return [_with_rows_of(X, other) for other in others]


def _with_rows_of(X: Blocks, other: Blocks) -> Blocks:
    if X.lengths == other.lengths:
        return other
    other = other.without_empty()
    if X.lengths == other.lengths:
        return other
    array, as_array = need_dask().array, need_dask().delayed(np.asarray, pure=False)
    nothing = np.empty((0,) * (1 + len(other.width)))
    parts = [
        array.from_delayed(as_array(part), (length, *other.width), meta=nothing)
        for part, length in zip(other.parts, other.lengths, strict=True)
    ]
    return _of_array(other.name, array.concatenate(parts, axis=0).rechunk({0: X.lengths}))


def pickled_size(learned: Any) -> int:
    """Bytes of a model on its way to another process; arrays are counted where they are."""
    buffers: list[pickle.PickleBuffer] = []
    try:
        rest = len(pickle.dumps(learned, protocol=5, buffer_callback=buffers.append))
    except Exception:
        # Functions of a user's own session go another way, and are small.
        return 0
    return rest + sum(buffer.raw().nbytes for buffer in buffers)
