"""Tasks of Dask, and the workers that run them."""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any


def need_dask() -> Any:
    """Return Dask with its arrays and data frames, or raise an error with the remedy."""
    try:
        import dask.array
        import dask.dataframe
        import dask.sizeof
    except ImportError as error:
        raise ImportError(
            "lokl.distributed needs Dask; install it with: pip install 'lokl[dask]'"
        ) from error
    return dask


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

    def persist(self, tasks: Sequence[Any]) -> list[Any]:
        """Start tasks, and keep their results on the workers."""
        if self.client is None:
            return list(self._dask.persist(*tasks))
        return list(self.client.persist(list(tasks)))

    def compute(self, tasks: Sequence[Any]) -> list[Any]:
        """Return the results of tasks."""
        results: list[Any] = [None] * len(tasks)
        for index, result in self.completed(tasks):
            results[index] = result
        return results

    def completed(self, tasks: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """Yield indices and results of tasks as they are done; workers then drop the results."""
        if self.client is None:
            yield from enumerate(self._dask.compute(*tasks))
            return
        from distributed import as_completed

        futures = self.client.compute(list(tasks))
        indices = {future.key: index for index, future in enumerate(futures)}
        arriving = as_completed(futures, loop=self.client.loop, with_results=True)
        # No other reference may keep the futures, or their inputs, on the workers.
        del futures, tasks
        for future, result in arriving:
            yield indices[future.key], result
            future.release()


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
