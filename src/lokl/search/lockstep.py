"""Iterators advanced in threads: independent ones, and folds that advance together.

Only the iterators themselves run in other threads. Their items, with their warnings, arrive in the
caller's thread, which makes all decisions.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, TypeVar

from lokl._threads import effective_jobs, single_threaded, started_pool
from lokl._warnings import capture_warnings, reissue

Item = TypeVar("Item")

# Number of steps that a fold may be ahead of the requested one. With none, threads wait for the
# last fold of each step. With more, more work is wasted if the search ends early.
_STEPS_AHEAD = 1
_END: Any = object()


def interleaved(
    iterators: Iterable[Generator[Item, None, None]], max_concurrent: int
) -> Generator[Item, None, None]:
    """Yield the items of several generators as they come, of at most `max_concurrent` at a time.

    A generator is advanced only after its last item has been used.
    """
    if max_concurrent == 1:
        for iterator in iterators:
            yield from iterator
        return
    waiting = iter(iterators)
    running: dict[Future[Any], Generator[Item, None, None]] = {}
    try:
        with started_pool(max_concurrent, "lokl-search") as pool:
            while True:
                while len(running) < max_concurrent and (fresh := next(waiting, None)):
                    running[pool.submit(capture_warnings, next, fresh, _END)] = fresh
                if not running:
                    return
                for done in wait(running, return_when=FIRST_COMPLETED).done:
                    item = reissue(done.result())
                    if item is not _END:
                        yield item
                        iterator = running[done]
                        running[pool.submit(capture_warnings, next, iterator, _END)] = iterator
                    del running[done]
    finally:
        for iterator in running.values():
            iterator.close()


def run_folds_in_lockstep(
    folds: Sequence[Iterator[Item]],
    n_steps: int,
    n_jobs: int | None,
    *,
    first_leads: bool = False,
) -> Generator[list[Item], None, None]:
    """Yield, step by step, the next item of every fold, computed in several threads.

    Threads rather than processes, because the steps of a fold share data and compiled loops
    release the GIL.

    Parameters
    ----------
    folds : sequence of iterators
    n_steps : int
        Number of items of each fold.
    n_jobs : int or None
    first_leads : bool
        Whether the other folds use results of the first one, and do each step after it.
    """
    jobs = min(effective_jobs(n_jobs), len(folds))
    if jobs == 1:
        for _ in range(n_steps):
            yield [next(fold) for fold in folds]
        return
    # The folds use the cores: each solve runs in one thread.
    with single_threaded(), started_pool(jobs, "lokl-folds") as pool:
        steps: list[list[Future[Any]]] = []
        for step in range(n_steps):
            while len(steps) < min(step + 1 + _STEPS_AHEAD, n_steps):
                # The pool starts calls in their order; each waits for calls before it only.
                last: list[Future[Any]] = steps[-1] if steps else []
                new: list[Future[Any]] = []
                for index, fold in enumerate(folds):
                    awaited = [*last[index : index + 1], *(new[:1] if first_leads else [])]
                    new.append(pool.submit(_advance, fold, awaited))
                steps.append(new)
            yield [reissue(item.result()) for item in steps[step]]


def _advance(fold: Iterator[Any], awaited: Sequence[Future[Any]]) -> Any:
    """Return the next item of a fold with its warnings, after other calls have returned."""
    for call in awaited:
        call.result()
    return capture_warnings(next, fold)
