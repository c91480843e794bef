"""Threads of the library: one small pool for loops, calls in threads of their own, and limits.

Compiled loops and matrix products release the GIL, so they gain from plain threads. Numba's own
parallel regions are not used because they abort when joblib threads enter them.

- :func:`run_chunked` divides one loop among the threads of a shared pool. Its tasks never wait for
  each other, so callers may be threads themselves.
- :func:`run_calls` makes independent calls, each in a thread of its own (:func:`started_pool`), and
  passes their warnings on.
- :func:`single_threaded` and :func:`limit_blas_for` hold nested parallelism down.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from threading import Barrier, Lock
from typing import Any, TypeVar

import joblib
import numpy as np

from lokl._arrays import Array, is_sparse
from lokl._warnings import capture_warnings, reissue

T = TypeVar("T")

# Most threads or processes for each core: more only take memory.
_JOBS_PER_CORE = 4
# Fewest rows of a matrix product per thread.
_ROWS_PER_PRODUCT = 32
# Fewest samples, counted once per SVM, for which BLAS is limited to one thread: changing the limit
# takes half a millisecond.
_MANY_SAMPLES = 1500


def n_threads() -> int:
    """Return the number of threads for one solve: the cores of this process, or a lower limit.

    ``LOKL_NUM_THREADS`` and ``OMP_NUM_THREADS`` are such limits. joblib sets the latter in its
    workers, so that parallelism is not nested. Inside :func:`single_threaded` the number is one.
    """
    return 1 if _single.users else _process_threads()


@lru_cache(maxsize=1)
def _process_threads() -> int:
    cores = int(joblib.cpu_count())
    for variable in ("LOKL_NUM_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(variable, "")
        if value.isdigit() and int(value) > 0:
            return min(int(value), max(cores, 1))
    return max(cores, 1)


def threads_for(n_jobs: int | None) -> int:
    """Return the number of threads for `n_jobs`; None means one per core."""
    return n_threads() if n_jobs is None else effective_jobs(n_jobs)


def effective_jobs(n_jobs: int | None) -> int:
    """Return the number of jobs at a time, by joblib's rules and at most four for each core."""
    return min(int(joblib.effective_n_jobs(n_jobs)), _JOBS_PER_CORE * int(joblib.cpu_count()))


@lru_cache(maxsize=1)
def _pool(process: int) -> ThreadPoolExecutor:
    # Keyed by process: a pool does not survive a fork.
    return _started(_process_threads(), "lokl")


def run_chunked(
    task: Callable[..., Any], size: int, grain: int, *arguments: Any, serial_tasks: bool = False
) -> None:
    """Run ``task(start, stop, *arguments)`` over ``range(size)``, one chunk per thread.

    Parameters
    ----------
    task : callable
        Must release the GIL to gain anything.
    size : int
    grain : int
        Chunks start at multiples of `grain`. If there are fewer than two such multiples, the task
        runs in the calling thread.
    *arguments
        Passed to every call.
    serial_tasks : bool
        Whether loops inside the task stay in its thread. Set it for tasks of many small steps,
        which would otherwise wait for the shared pool at every step.
    """
    grain = max(grain, 1)
    chunks = min(n_threads(), size // grain)
    if chunks < 2:
        if size:
            task(0, size, *arguments)
        return
    step = -(-size // (chunks * grain)) * grain
    with single_threaded() if serial_tasks else nullcontext():
        futures = [
            _pool(os.getpid()).submit(_run_chunk, task, start, min(start + step, size), *arguments)
            for start in range(step, size, step)
        ]
        try:
            task(0, step, *arguments)
        finally:
            # Also after Ctrl-C: no thread may write into the arrays once this call has returned.
            wait(futures)
        for future in futures:
            future.result()


def _run_chunk(task: Callable[..., Any], *arguments: Any) -> None:
    # Numpy's error state is set per thread. Results are checked for overflow later.
    with np.errstate(all="ignore"):
        task(*arguments)


def run_calls(calls: Sequence[Callable[[], T]], threads: int) -> list[T]:
    """Return the results of independent calls, started in order, at most `threads` at a time.

    Warnings of the calls are issued by the calling thread.
    """
    if threads <= 1 or len(calls) <= 1:
        return [call() for call in calls]
    with started_pool(min(threads, len(calls)), "lokl-calls") as pool:
        futures = [pool.submit(capture_warnings, call) for call in calls]
        return [reissue(future.result()) for future in futures]


@contextmanager
def started_pool(size: int, name: str) -> Iterator[ThreadPoolExecutor]:
    """Open a pool of threads for tasks that may wait for each other; none outlives the block."""
    pool = _started(size, name)
    try:
        yield pool
    finally:
        # Also after an error or Ctrl-C: nothing is computed once the block has ended.
        pool.shutdown(wait=True, cancel_futures=True)


def _started(size: int, name: str) -> ThreadPoolExecutor:
    """Return a pool whose threads have all started.

    If Ctrl-C interrupts the start of a thread, an executor does not know the thread, and the
    interpreter would wait for it in vain when it exits.
    """
    pool = ThreadPoolExecutor(size, thread_name_prefix=name)
    all_started = Barrier(size + 1)
    try:
        for _ in range(size):
            pool.submit(all_started.wait)
        all_started.wait()
    except BaseException:
        all_started.abort()
        pool.shutdown(wait=True, cancel_futures=True)
        raise
    return pool


def multiply(left: Any, right: Any, out: Array | None = None) -> Array:
    """Return ``left @ right`` as a dense array; threads share the rows of the product.

    Parameters
    ----------
    left : {array, sparse matrix} of shape (n, k)
    right : {array, sparse matrix} of shape (k,) or (k, m)
    out : array of shape (n,) or (n, m), optional
        Receives the product.
    """
    if is_sparse(left) or is_sparse(right):
        product = left @ right
        product = product.toarray() if is_sparse(product) else np.asarray(product)
        if out is None:
            return product
        out[...] = product
        return out
    if out is None:
        shape = (left.shape[0], *right.shape[1:])
        out = np.empty(shape, dtype=np.result_type(left, right))

    def task(start: int, stop: int) -> None:
        np.matmul(left[start:stop], right, out=out[start:stop])

    n = left.shape[0]
    with limit_blas_for(n):
        run_chunked(task, n, _ROWS_PER_PRODUCT if n >= _MANY_SAMPLES else max(n, 1))
    return out


class _Limit:
    """A setting of the process that is changed by its first user and restored by its last."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.users = 0

    def __enter__(self) -> None:
        with self._lock:
            if self.users == 0:
                self._change(limited=True)
            self.users += 1

    def __exit__(self, *failure: object) -> None:
        with self._lock:
            self.users -= 1
            if self.users == 0:
                self._change(limited=False)

    def _change(self, *, limited: bool) -> None:
        """Change the setting, or restore it; by default there is none."""


class _BlasLimit(_Limit):
    """Limits the BLAS libraries of the process to one thread.

    OpenMP libraries store their number of threads per calling thread, so one dedicated thread
    makes all changes.
    """

    def __init__(self) -> None:
        super().__init__()
        self._thread = _started(1, "lokl-blas")
        self._restore: Callable[[], Any]

    def _change(self, *, limited: bool) -> None:
        if limited:
            limiter = self._thread.submit(_blas_libraries().limit, limits=1).result()
            self._restore = limiter.restore_original_limits
        else:
            self._thread.submit(self._restore).result()


@lru_cache(maxsize=1)
def _blas_limit(process: int) -> _BlasLimit:
    # Keyed by process, like the pool.
    return _BlasLimit()


@lru_cache(maxsize=1)
def _blas_libraries() -> Any:
    # threadpoolctl is a dependency of scikit-learn.
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def single_threaded_blas() -> AbstractContextManager[None]:
    """Limit the BLAS libraries to one thread inside a block.

    Their threads wait for the next product in a busy loop of some hundredths of a second. This
    takes the cores from compiled loops that run between products.
    """
    return _blas_limit(os.getpid())


def limit_blas_for(n_samples: int) -> AbstractContextManager[None]:
    """Limit BLAS to one thread if there are enough samples for it to pay.

    A sample counts once for every SVM that is fitted to it.
    """
    return single_threaded_blas() if n_samples >= _MANY_SAMPLES else nullcontext()


_single = _Limit()


@contextmanager
def single_threaded() -> Iterator[None]:
    """Do everything in this process in one thread, so that rounding depends only on the inputs.

    The way in which threads share a sum changes its last digits, and a method that is not convex
    may reach a different solution from there.
    """
    with single_threaded_blas(), _single:
        yield
