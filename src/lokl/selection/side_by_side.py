"""Walks through a grid, several at a time: each asks for cells, and goes on when it has them.

A walk is a generator. It yields what is to be computed, a function without arguments, and is sent
the result. Only that runs in threads: all decisions are made in the thread of the caller.
"""

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from lokl._notices import apart, together
from lokl._threads import started_pool

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
        under_way[pool.submit(apart, asked)] = walk

    try:
        with started_pool(at_once, "lokl-search") as pool:
            while True:
                while len(under_way) < at_once and (fresh := next(waiting, None)):
                    go_on(pool, fresh, None)
                if not under_way:
                    return
                for done in wait(under_way, return_when=FIRST_COMPLETED).done:
                    result = together(done.result())
                    # Only now: a walk under way is closed below.
                    go_on(pool, under_way.pop(done), result)
    finally:
        for walk in under_way.values():
            walk.close()
