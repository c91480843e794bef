"""One small pool of threads for compiled loops that release the GIL.

Numba's own parallel regions abort when joblib threads enter them; plain threads do not. Tasks
handed to the pool never wait for other tasks, so callers may be threads themselves.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import lru_cache
from typing import Any

import joblib


@lru_cache(maxsize=1)
def n_threads() -> int:
    """Threads for one solve: the cores of this process, or fewer where the environment says.

    joblib sets ``OMP_NUM_THREADS`` in its workers, so that nested parallelism stays flat.
    """
    cores = int(joblib.cpu_count())
    for variable in ("LOKL_NUM_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(variable, "")
        if value.isdigit() and int(value) > 0:
            return min(int(value), max(cores, 1))
    return max(cores, 1)


@lru_cache(maxsize=1)
def _pool(process: int) -> ThreadPoolExecutor:
    # Keyed by process: a pool does not survive a fork.
    return ThreadPoolExecutor(n_threads(), thread_name_prefix="lokl")


def in_parallel(task: Callable[..., Any], size: int, grain: int, *arguments: Any) -> None:
    """Run ``task(start, stop, *arguments)`` over ``range(size)``, one piece a thread.

    Parameters
    ----------
    task : callable
        Must release the GIL to gain anything.
    size : int
    grain : int
        Pieces start at multiples of `grain`; below two of them the call stays in this thread.
    *arguments
        Handed to every call.
    """
    grain = max(grain, 1)
    pieces = min(n_threads(), size // grain)
    if pieces < 2:
        if size:
            task(0, size, *arguments)
        return
    step = -(-size // (pieces * grain)) * grain
    futures = [
        _pool(os.getpid()).submit(task, start, min(start + step, size), *arguments)
        for start in range(step, size, step)
    ]
    try:
        task(0, step, *arguments)
    finally:
        # Also after Ctrl-C: nobody may write into the arrays once this call has returned.
        wait(futures)
    for future in futures:
        future.result()
