"""Where tasks run: on the workers of a client, or wherever Dask runs them by default."""

import math
import os
from collections.abc import Iterator, Sequence
from typing import Any


def need_dask() -> Any:
    """Return Dask with its arrays and data frames, or say how to get them."""
    try:
        import dask.array
        import dask.dataframe
    except ImportError as error:
        raise ImportError(
            "lokl.regions.dask needs Dask; install it with: pip install 'lokl[dask]'"
        ) from error
    return dask


class Cluster:
    """Runs tasks; what is scheduled where, and again after a loss, is left to Dask.

    Parameters
    ----------
    client : distributed.Client or None
        None is the current client, or Dask's default scheduler where there is none.
    """

    def __init__(self, client: Any = None):
        self._dask = need_dask()
        self.client = _current() if client is None else _checked(client)

    @property
    def n_threads(self) -> int:
        """Tasks at a time."""
        if self.client is None:
            return os.cpu_count() or 1
        return max(1, sum(self.client.nthreads().values()))

    @property
    def memory(self) -> float:
        """Bytes of the smallest worker; infinite where that is not limited, or there is none."""
        if self.client is None:
            return math.inf
        workers = self.client.scheduler_info()["workers"].values()
        return min((own["memory_limit"] or math.inf for own in workers), default=math.inf)

    def persist(self, tasks: Sequence[Any]) -> list[Any]:
        """Keep the results of tasks where they are made."""
        if self.client is None:
            return list(self._dask.persist(*tasks))
        return list(self.client.persist(list(tasks)))

    def compute(self, tasks: Sequence[Any]) -> list[Any]:
        """Return the results of tasks."""
        found: list[Any] = [None] * len(tasks)
        for place, result in self.completed(tasks):
            found[place] = result
        return found

    def completed(self, tasks: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """Yield places and results of tasks as they are done; workers then forget them."""
        if self.client is None:
            yield from enumerate(self._dask.compute(*tasks))
            return
        from distributed import as_completed

        futures = self.client.compute(list(tasks))
        places = {future.key: place for place, future in enumerate(futures)}
        arriving = as_completed(futures, loop=self.client.loop, with_results=True)
        # Nobody else holds on to them, or to what they need.
        del futures, tasks
        for future, result in arriving:
            yield places[future.key], result
            future.release()


def _current() -> Any:
    try:
        from distributed import default_client
    except ImportError:
        return None
    try:
        return default_client()
    except ValueError:
        return None


def _checked(client: Any) -> Any:
    if not (hasattr(client, "persist") and hasattr(client, "nthreads")):
        raise ValueError(
            f"client must be a distributed.Client or None, got {client!r}; for an address, give "
            "distributed.Client(address)"
        )
    if client.asynchronous:
        raise ValueError("client is asynchronous; give one that was made without asynchronous=True")
    return client
