"""Walks through a grid, several at a time: each asks for cells, and goes on when it has them.

A walk is a generator. It yields what is to be computed, a function without arguments, and is sent
the result. Only that runs in threads: all decisions are made in the thread of the caller.

Folds that advance together: one candidate in all of them, then the next.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, TypeVar

from joblib import effective_n_jobs

from lokl._threads import n_threads, run_chunked, single_threaded, started_pool
from lokl._warnings import capture_warnings, reissue

Returned = TypeVar("Returned")
Walk = Generator[Callable[[], Any], Any, Returned]


def follow(walk: Walk[Returned]) -> Returned:
    """Go one walk to its end, and return what it returns."""
    try:
        asked = next(walk)
        while True:
            asked = walk.send(asked())
    except StopIteration as end:
        return end.value
    finally:
        walk.close()


def side_by_side(walks: Iterable[Walk[Any]], at_once: int) -> None:
    """Go all walks to their ends, at most so many at a time."""
    if at_once == 1:
        for walk in walks:
            follow(walk)
        return
    waiting = iter(walks)
    under_way: dict[Future[Any], Walk[Any]] = {}

    def go_on(pool: ThreadPoolExecutor, walk: Walk[Any], result: Any) -> None:
        try:
            asked = walk.send(result)
        except StopIteration:
            return
        under_way[pool.submit(capture_warnings, asked)] = walk

    try:
        with started_pool(at_once, "lokl-search") as pool:
            while True:
                while len(under_way) < at_once and (fresh := next(waiting, None)):
                    go_on(pool, fresh, None)
                if not under_way:
                    return
                for done in wait(under_way, return_when=FIRST_COMPLETED).done:
                    result = reissue(done.result())
                    # Only now: a walk under way is closed below.
                    go_on(pool, under_way.pop(done), result)
    finally:
        for walk in under_way.values():
            walk.close()


# Steps that folds may be ahead of the one that is asked for: without any, threads wait for the last
# fold of each step; with more, more is done in vain where the rest is not wanted.
_AHEAD = 1


def in_step(
    folds: Sequence[Iterator[Any]],
    n_steps: int,
    n_jobs: int | None,
    *,
    first_leads: bool = False,
) -> Generator[list[Any], None, None]:
    """Yield what each fold yields next, step by step, each in one of several threads.

    Threads, since a fold keeps what its steps share; compiled loops let each other run. With
    `first_leads`, others take from the first fold, and do a step after it.
    """
    jobs = min(effective_n_jobs(n_jobs), len(folds))
    if jobs == 1:
        for _ in range(n_steps):
            yield [next(fold) for fold in folds]
        return
    chains = _Chains(folds, n_steps, first_leads)
    if first_leads and n_steps:
        # Nobody else can begin: it has all threads.
        chains.done[0].append(capture_warnings(next, folds[0]))
    # The folds have the cores: a solve takes one.
    with single_threaded(), started_pool(jobs, "lokl-folds") as pool:
        under_way: dict[Future[Any], int] = {}
        for step in range(n_steps):
            while not chains.has(step):
                for fold in chains.ready(step, set(under_way.values()))[: jobs - len(under_way)]:
                    under_way[pool.submit(capture_warnings, next, folds[fold])] = fold
                for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                    chains.done[under_way.pop(future)].append(future.result())
            yield [reissue(found[step]) for found in chains.done]


@dataclass(eq=False)
class _Chains:
    """How far each fold has come, and which may do their next step."""

    folds: Sequence[Iterator[Any]]
    n_steps: int
    first_leads: bool
    done: list[list[Any]] = field(init=False)  # what each fold has yielded, and told

    def __post_init__(self) -> None:
        self.done = [[] for _ in self.folds]

    def has(self, step: int) -> bool:
        """Whether all folds have done a step."""
        return all(len(found) > step for found in self.done)

    def ready(self, step: int, busy: set[int]) -> list[int]:
        """Folds that may go on while a step is asked for, those that are behind first."""
        last = min(step + _AHEAD, self.n_steps - 1)

        def may(fold: int) -> bool:
            own = len(self.done[fold])
            waits = self.first_leads and fold > 0 and len(self.done[0]) <= own
            return fold not in busy and own <= last and not waits

        return sorted(
            filter(may, range(len(self.folds))), key=lambda fold: (fold > 0, len(self.done[fold]))
        )


def threads_for(n_jobs: int | None) -> int:
    """How many threads share out work of this library; None is one for each core."""
    return n_threads() if n_jobs is None else int(effective_n_jobs(n_jobs))


def in_threads(threads: int, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Results of functions with their arguments, one after the other or in several threads."""
    if threads == 1:
        return [function(*arguments) for function, *arguments in calls]
    returned: list[Any] = [None] * len(calls)

    def some(start: int, stop: int) -> None:
        for place in range(start, stop):
            returned[place] = capture_warnings(*calls[place])

    run_chunked(some, len(calls), 1)
    return [reissue(one) for one in returned]
