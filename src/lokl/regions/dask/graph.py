"""Graphs of tasks on blocks of rows of Dask collections, and the workers that run them."""

import math
import os
import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lokl._exports import need


def need_dask() -> Any:
    """Return Dask with its arrays and data frames, or raise an error with the remedy."""
    for module in ("dask.array", "dask.dataframe", "dask.sizeof"):
        need(module, "lokl.distributed")
    return need("dask", "lokl.distributed")


def task(function: Callable[..., Any]) -> Any:
    """Return a function whose calls become tasks of a graph."""
    return need_dask().delayed(function, pure=False)


def shared(value: Any) -> Any:
    """Return a value as one node of a graph, however many tasks use it."""
    return need_dask().delayed(value, pure=False, traverse=False)


class Cluster:
    """Runner of tasks. Dask schedules them, and repeats those of lost workers.

    Parameters
    ----------
    client : distributed.Client or None
        None is the current client, or Dask's default scheduler if there is none.
    """

    def __init__(self, client: Any = None):
        self._dask = need_dask()
        self.client = _current_client() if client is None else _checked_client(client)

    @property
    def n_threads(self) -> int:
        """Number of tasks that run at a time."""
        if self.client is None:
            return os.cpu_count() or 1
        return max(1, sum(self.client.nthreads().values()))

    @property
    def memory(self) -> float:
        """Memory of the smallest worker in bytes, infinite without a limit or without workers."""
        if self.client is None:
            return math.inf
        workers = self.client.scheduler_info()["workers"].values()
        return min((worker["memory_limit"] or math.inf for worker in workers), default=math.inf)

    def persist(self, function: Callable[..., Any], calls: list[Any]) -> list[Any]:
        """Start calls, given by their arguments, and keep their results on the workers."""
        tasks = [task(function)(*arguments) for arguments in calls]
        if self.client is None:
            return list(self._dask.persist(*tasks))
        return list(self.client.persist(tasks))

    def compute(self, function: Callable[..., Any], calls: list[Any]) -> list[Any]:
        """Return the results of calls, given by their arguments.

        Workers drop each result as soon as it has arrived. The list is emptied, since no reference
        may keep the arguments on the workers.
        """
        tasks = [task(function)(*arguments) for arguments in calls]
        calls.clear()
        if self.client is None:
            return list(self._dask.compute(*tasks))
        from distributed import as_completed

        futures = self.client.compute(tasks)
        indices = {future.key: index for index, future in enumerate(futures)}
        results = [None] * len(tasks)
        arriving = as_completed(futures, loop=self.client.loop, with_results=True)
        tasks.clear()
        del futures
        for future, result in arriving:
            results[indices[future.key]] = result
            future.release()
        return results


def _current_client() -> Any:
    try:
        from distributed import default_client

        return default_client()
    except (ImportError, ValueError):
        return None


def _checked_client(client: Any) -> Any:
    if not (hasattr(client, "persist") and hasattr(client, "nthreads")):
        raise ValueError(
            f"client must be a distributed.Client or None, got {client!r}; for an address, pass "
            "distributed.Client(address)"
        )
    if client.asynchronous:
        raise ValueError(
            f"client must not be asynchronous; make it without asynchronous=True, got {client!r}"
        )
    return client


class RowBlocks(NamedTuple):
    """Blocks of rows of a collection, in order.

    Attributes
    ----------
    name : str
        Name of the collection in messages.
    parts : list of Delayed
        Blocks: arrays, CSR matrices, data frames or series.
    lengths : list of int or None
        Rows of each block, None if unknown.
    width : tuple of int
        Shape of one row: (), or (n_columns,).
    """

    name: str
    parts: list[Any]
    lengths: list[Any]
    width: tuple[int, ...]


def _check_samples(X: Any) -> None:
    """Raise ValueError unless samples are a collection with two axes."""
    dask = need_dask()
    if isinstance(X, dask.array.Array | dask.dataframe.DataFrame):
        if X.ndim != 2:
            raise ValueError(f"X must have two axes, samples and features, got shape {X.shape}")
        return
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
    name : str
    """
    dask = need_dask()
    if name == "X":
        _check_samples(values)
    if isinstance(values, dask.dataframe.DataFrame | dask.dataframe.Series):
        parts = list(values.to_delayed())
        return RowBlocks(name, parts, [None] * len(parts), values.shape[1:])
    if not isinstance(values, dask.array.Array):
        if dask.is_dask_collection(values):
            raise ValueError(
                f"{name} must be a dask array, a dask series or an array, got "
                f"{type(values).__name__}"
            )
        values = dask.array.from_array(np.asarray(values), chunks=-1)
    if values.ndim not in (1, 2):
        raise ValueError(f"{name} must have one or two axes, got shape {values.shape}")
    if values.ndim == 2 and values.numblocks[1] != 1:
        values = values.rechunk({1: -1})
    lengths = [None if np.isnan(length) else int(length) for length in values.chunks[0]]
    return RowBlocks(name, [*values.to_delayed().ravel()], lengths, (*map(int, values.shape[1:]),))


def align_blocks(
    cluster: Cluster, X: Any, y: Any, weight: Any, *, lazy: bool = False
) -> list[RowBlocks]:
    """Return samples, targets and, unless they are None, weights in blocks of the same rows.

    Unknown lengths are counted in one pass. With `lazy`, they are left unknown if all collections
    have equally many blocks of unknown lengths, which are then supposed to match.
    """
    given = {"X": X, "y": y, "sample_weight": weight}
    collections = [as_row_blocks(v, name) for name, v in given.items() if v is not None]
    if lazy and all(blocks.lengths == collections[0].lengths for blocks in collections):
        return collections
    unknown = [blocks for blocks in collections if None in blocks.lengths]
    counts = iter(cluster.compute(_length, [(p,) for blocks in unknown for p in blocks.parts]))
    for index, blocks in enumerate(collections):
        if None in blocks.lengths:
            collections[index] = blocks._replace(lengths=[next(counts) for _ in blocks.parts])
    samples, *others = collections
    return [samples, *(_align(samples, other) for other in others)]


def _length(part: Any) -> int:
    return int(part.shape[0])


def _align(X: RowBlocks, other: RowBlocks) -> RowBlocks:
    """Return another collection in blocks of the same rows as X. All lengths must be known."""
    if sum(X.lengths) != sum(other.lengths):
        raise ValueError(
            f"X has {sum(X.lengths)} rows, but {other.name} has {sum(other.lengths)}; they must "
            "have the same number"
        )
    if X.lengths == other.lengths:
        return other
    array, as_array = need_dask().array, task(np.asarray)
    empty = np.empty((0,) * (1 + len(other.width)))
    parts = [
        array.from_delayed(as_array(part), (length, *other.width), meta=empty)
        for part, length in zip(other.parts, other.lengths, strict=True)
    ]
    whole = array.concatenate(parts, axis=0)
    return as_row_blocks(whole.rechunk({0: tuple(X.lengths)}), other.name)


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

    def __sizeof__(self) -> int:
        return pickled_size(self.value)


def pickled_size(value: Any) -> int:
    """Return the bytes of a model when it is sent to another process, without copying arrays."""
    cloudpickle = need("cloudpickle", "lokl.distributed")
    buffers: list[pickle.PickleBuffer] = []
    rest = len(cloudpickle.dumps(value, protocol=5, buffer_callback=buffers.append))
    return rest + sum(buffer.raw().nbytes for buffer in buffers)
