"""Folds that advance together: one candidate in all of them, then the next."""

from collections.abc import Generator, Iterator, Sequence
from typing import Any

from joblib import effective_n_jobs
from sklearn.utils.parallel import Parallel, delayed

from lokl._notices import apart, together
from lokl._threads import in_parallel, n_threads, one_thread


def in_step(
    folds: Sequence[Iterator[Any]],
    n_steps: int,
    n_jobs: int | None,
    *,
    first_leads: bool = False,
) -> Generator[list[Any], None, None]:
    """Yield what each fold yields next, step by step, one fold a thread.

    Threads, since a fold keeps what its steps share; compiled loops let each other run. With
    `first_leads`, others take from the first fold, which is ahead of them by a step and has all
    threads.
    """
    jobs = min(effective_n_jobs(n_jobs), len(folds))
    if jobs == 1:
        for _ in range(n_steps):
            yield [next(fold) for fold in folds]
        return
    with Parallel(n_jobs=jobs, require="sharedmem") as parallel:
        for _ in range(n_steps):
            first = [next(fold) for fold in folds[:first_leads]]
            # The folds have the cores: a solve takes one.
            with one_thread():
                returned = parallel(delayed(apart)(next, fold) for fold in folds[first_leads:])
            yield [*first, *(together(one) for one in returned)]


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
            returned[place] = apart(*calls[place])

    in_parallel(some, len(calls), 1)
    return [together(one) for one in returned]
