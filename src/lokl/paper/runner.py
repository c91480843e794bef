"""Cells, done in parallel and never twice."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import joblib

from lokl._processes import by_processes
from lokl._threads import one_thread
from lokl.paper.cells import Cell, failed, run_cell
from lokl.paper.records import RecordFile

Work = Callable[[Cell], dict[str, Any]]


def run(
    cells: Sequence[Cell],
    records: RecordFile,
    *,
    jobs: int | None = None,
    backend: str = "processes",
    on_record: Callable[[dict[str, Any]], None] | None = None,
    work: Work = run_cell,
    go_on: Callable[[], bool] = lambda: True,
) -> list[dict[str, Any]]:
    """Do the cells that have no record yet, and return the records that there are then.

    Every record is written when its cell is done: an interrupted run loses only the cells that
    were at work. A cell whose process dies, for lack of memory for example, is a failed cell.

    Parameters
    ----------
    cells : sequence of Cell
    records : RecordFile
    jobs : int or None, default=None
        Processes; None is one, -1 all cores, or all workers of a cluster.
    backend : str, default="processes"
        ``"processes"`` of this machine; ``"dask"``, a Dask cluster on this machine for the time
        of the run; or the address of a Dask scheduler, whose workers need lokl and the data.
    on_record : callable, optional
        Called with every new record.
    work : callable, default=run_cell
        Turns a cell into its record.
    go_on : callable, optional
        Asked before each cell; where it says no, no other cell is begun.
    """
    missing = [cell for cell in dict.fromkeys(cells) if cell not in records]
    # Cells of one split of a data set follow each other: a worker keeps the last split.
    missing.sort(key=lambda cell: (cell.data, cell.split))
    by_key = {cell.key: cell for cell in missing}
    done = by_processes(by_key, jobs, work, records.key_of, _dead, go_on)
    if backend != "processes":
        done = _by_dask(missing, jobs, backend, work, go_on)
    # Every cell limits itself to one thread; for cells in this process, once for all is cheaper.
    with one_thread():
        for record in done if missing else ():
            records.add(record)
            if on_record is not None:
                on_record(record)
    known = (records.get(cell.key) for cell in dict.fromkeys(cells))
    return [record for record in known if record is not None]


def _dead(cell: Cell, reason: Exception) -> dict[str, Any]:
    return failed(cell, f"the process died, perhaps for lack of memory ({reason})")


def _by_dask(
    cells: Sequence[Cell],
    jobs: int | None,
    backend: str,
    work: Work,
    go_on: Callable[[], bool],
) -> Iterator[dict[str, Any]]:
    """Yield records as the workers of a cluster finish them."""
    with _client(backend, jobs) as client:
        from dask.distributed import as_completed

        # Pure calls would bring back the result of a cell that failed before.
        futures = client.map(work, cells, pure=False)
        by_key = {future.key: cell for future, cell in zip(futures, cells, strict=True)}
        for future in as_completed(futures):
            reason = future.exception()
            yield _dead(by_key[future.key], reason) if reason else future.result()
            # The record is on the disk by now, so the scheduler need not keep it.
            future.release()
            if not go_on():
                # What the workers have not begun is not begun any more.
                client.cancel(futures)
                return


@contextmanager
def _client(backend: str, jobs: int | None) -> Iterator[Any]:
    """Connect to a cluster, or to one made for the purpose."""
    try:
        import dask
        from dask.distributed import Client, LocalCluster
    except ImportError as reason:
        raise ImportError(
            f"backend {backend!r} needs Dask; install it with: pip install 'lokl[dask]'"
        ) from reason
    if backend == "dask":
        # One cell at a time for each worker: no other fit disturbs its time and memory, and when a
        # process dies, it is known which cell was at work.
        settings = {
            "distributed.scheduler.allowed-failures": 0,
            "distributed.scheduler.worker-saturation": 1.0,
        }
        count = joblib.effective_n_jobs(jobs)
        with (
            dask.config.set(settings),
            LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            yield client
        return
    try:
        client = Client(backend, timeout=10)
    except (OSError, ValueError) as reason:
        raise ValueError(
            f"no Dask scheduler answers at {backend!r} ({reason}); backends are 'processes', "
            "'dask' for a cluster on this machine, or an address such as tcp://host:8786"
        ) from reason
    with client:
        yield client


def overhead(records: Sequence[dict[str, Any]], seconds: float, jobs: int) -> float:
    """Return what `jobs` processes spent beside fits and predictions, over the time of those."""
    parts = ("select_seconds", "fit_seconds", "predict_seconds")
    busy = math.fsum(r.get(part, 0.0) for r in records if not r["error"] for part in parts)
    return jobs * seconds / busy - 1.0 if busy else math.nan
