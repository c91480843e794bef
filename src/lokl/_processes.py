"""Work that is done in processes, whatever happens to them."""

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures.process import BrokenProcessPool
from itertools import takewhile
from typing import Any, TypeVar

import joblib

T = TypeVar("T")
Record = dict[str, Any]


def until(seconds: float | None) -> Callable[[], bool]:
    """Return a question that is answered with yes for so many seconds from now, None for ever."""
    begun = time.monotonic()
    return lambda: seconds is None or time.monotonic() - begun < seconds


def by_processes(
    cells: Mapping[str, T],
    jobs: int | None,
    work: Callable[[T], Record],
    key_of: Callable[[Record], str],
    died: Callable[[T, Exception], Record],
    go_on: Callable[[], bool] = lambda: True,
) -> Iterator[Record]:
    """Yield records of cells as they come.

    Parameters
    ----------
    cells : mapping of key to cell
    jobs : int or None
        Processes; None is one, which is this process, -1 all cores.
    work : callable
        Turns a cell into its record.
    key_of : callable
        Key of the cell that a record belongs to.
    died : callable
        Makes the record of a cell whose process died.
    go_on : callable
        Asked before each cell; where it says no, no other cell is begun.
    """
    left = dict(cells)
    while left:
        parallel = joblib.Parallel(n_jobs=jobs, backend="loky", return_as="generator_unordered")
        begun = takewhile(lambda cell: go_on(), list(left.values()))
        try:
            for record in parallel(joblib.delayed(work)(cell) for cell in begun):
                del left[key_of(record)]
                yield record
            return
        except BrokenProcessPool:
            # One of the cells at work killed a process, and which one is not known: one at a
            # time until it is found.
            for record in _one_by_one(list(left.values()), work, died):
                del left[key_of(record)]
                yield record


def _one_by_one(
    cells: list[T], work: Callable[[T], Record], died: Callable[[T, Exception], Record]
) -> Iterator[Record]:
    """Do cells one at a time in a separate process, until one of them kills it."""
    from joblib.externals.loky import ProcessPoolExecutor

    with ProcessPoolExecutor(1) as pool:
        for cell in cells:
            try:
                record = pool.submit(work, cell).result()
            except BrokenProcessPool as reason:
                yield died(cell, reason)
                return
            yield record
