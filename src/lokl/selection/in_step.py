"""Folds that advance together: one candidate in all of them, then the next."""

from collections.abc import Generator, Iterator, Sequence
from typing import Any

from joblib import effective_n_jobs
from sklearn.utils.parallel import Parallel, delayed

from lokl._notices import apart, together
from lokl._threads import one_thread


def in_step(
    folds: Sequence[Iterator[Any]], n_steps: int, n_jobs: int | None
) -> Generator[list[Any], None, None]:
    """Yield what each fold yields next, step by step, one fold a thread.

    Threads, since a fold keeps what its steps share; compiled loops let each other run.
    """
    jobs = min(effective_n_jobs(n_jobs), len(folds))
    if jobs == 1:
        for _ in range(n_steps):
            yield [next(fold) for fold in folds]
        return
    with Parallel(n_jobs=jobs, require="sharedmem") as parallel:
        for _ in range(n_steps):
            # The folds have the cores: a solve takes one.
            with one_thread():
                returned = parallel(delayed(apart)(next, fold) for fold in folds)
            yield [together(one) for one in returned]
