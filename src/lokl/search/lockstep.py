"""Concurrent fits: coroutines that request results, and folds that advance together.

A fit coroutine is a generator. It yields functions without arguments, and receives the result of
each. Only these functions run in other threads; all decisions are made in the caller's thread.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, TypeVar

from joblib import effective_n_jobs

from lokl._threads import single_threaded, started_pool
from lokl._warnings import capture_warnings, reissue

Returned = TypeVar("Returned")
FitCoroutine = Generator[Callable[[], Any], Any, Returned]

# Number of steps that a fold may be ahead of the requested one. With none, threads wait for the
# last fold of each step. With more, more work is wasted if the search ends early.
_STEPS_AHEAD = 1


def run_coroutine(coroutine: FitCoroutine[Returned]) -> Returned:
    """Run one coroutine to its end in this thread, and return its result."""
    try:
        call = next(coroutine)
        while True:
            call = coroutine.send(call())
    except StopIteration as end:
        return end.value
    finally:
        coroutine.close()


def run_concurrently(coroutines: Iterable[FitCoroutine[Any]], max_concurrent: int) -> None:
    """Run all coroutines to their ends, at most `max_concurrent` at a time."""
    if max_concurrent == 1:
        for coroutine in coroutines:
            run_coroutine(coroutine)
        return
    waiting = iter(coroutines)
    running: dict[Future[Any], FitCoroutine[Any]] = {}

    def resume(pool: ThreadPoolExecutor, coroutine: FitCoroutine[Any], result: Any) -> None:
        try:
            call = coroutine.send(result)
        except StopIteration:
            return
        running[pool.submit(capture_warnings, call)] = coroutine

    try:
        with started_pool(max_concurrent, "lokl-search") as pool:
            while True:
                while len(running) < max_concurrent and (fresh := next(waiting, None)):
                    resume(pool, fresh, None)
                if not running:
                    return
                for done in wait(running, return_when=FIRST_COMPLETED).done:
                    result = reissue(done.result())
                    # Removed only now: coroutines that are still listed are closed below.
                    resume(pool, running.pop(done), result)
    finally:
        for coroutine in running.values():
            coroutine.close()


def run_folds_in_lockstep(
    folds: Sequence[Iterator[Any]],
    n_steps: int,
    n_jobs: int | None,
    *,
    first_leads: bool = False,
) -> Generator[list[Any], None, None]:
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
    jobs = min(effective_n_jobs(n_jobs), len(folds))
    if jobs == 1:
        for _ in range(n_steps):
            yield [next(fold) for fold in folds]
        return
    scheduler = FoldScheduler(len(folds), n_steps, first_leads)
    if first_leads and n_steps:
        # No other fold can begin, so this step has all threads.
        scheduler.done[0].append(capture_warnings(next, folds[0]))
    # The folds use the cores: each solve runs in one thread.
    with single_threaded(), started_pool(jobs, "lokl-folds") as pool:
        running: dict[Future[Any], int] = {}
        for step in range(n_steps):
            while not scheduler.is_complete(step):
                ready = scheduler.ready(step, set(running.values()))
                for fold in ready[: jobs - len(running)]:
                    running[pool.submit(capture_warnings, next, folds[fold])] = fold
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    scheduler.done[running.pop(future)].append(future.result())
            yield [reissue(items[step]) for items in scheduler.done]


@dataclass(eq=False)
class FoldScheduler:
    """Progress of each fold, and the folds that may start their next step."""

    n_folds: int
    n_steps: int
    first_leads: bool
    done: list[list[Any]] = field(init=False)  # items of each fold with their warnings

    def __post_init__(self) -> None:
        self.done = [[] for _ in range(self.n_folds)]

    def is_complete(self, step: int) -> bool:
        """Whether all folds have done a step."""
        return all(len(items) > step for items in self.done)

    def ready(self, step: int, busy: set[int]) -> list[int]:
        """Return the folds that may advance while `step` is requested, least advanced first."""
        last = min(step + _STEPS_AHEAD, self.n_steps - 1)

        def may_advance(fold: int) -> bool:
            n_done = len(self.done[fold])
            waits = self.first_leads and fold > 0 and len(self.done[0]) <= n_done
            return fold not in busy and n_done <= last and not waits

        return sorted(
            filter(may_advance, range(self.n_folds)),
            key=lambda fold: (fold > 0, len(self.done[fold])),
        )
