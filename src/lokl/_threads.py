"""One small pool of threads for compiled loops and matrix products that release the GIL.

Numba's own parallel regions abort when joblib threads enter them; plain threads do not. Tasks
handed to the pool never wait for other tasks, so callers may be threads themselves.

Work on kernels that do not depend on each other, in threads that share the memory.

Independent pieces of work in threads of their own, each of which works in one thread.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from threading import Barrier, Lock
from typing import Any

import joblib
import numpy as np

from lokl._arrays import Array, is_sparse
from lokl._warnings import apart, together

# Rows of a product that are worth a thread of their own.
_ROWS_A_PRODUCT = 32
# From so many samples, each counted once for every machine that is solved, it pays to silence BLAS,
# which takes half a millisecond.
_MANY_SAMPLES = 1500


def n_threads() -> int:
    """Threads for one solve: the cores of this process, or fewer where the environment says.

    joblib sets ``OMP_NUM_THREADS`` in its workers, so that nested parallelism stays flat. Inside
    of `one_thread` it is one.
    """
    return 1 if _alone.users else _usual_threads()


@lru_cache(maxsize=1)
def _usual_threads() -> int:
    cores = int(joblib.cpu_count())
    for variable in ("LOKL_NUM_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(variable, "")
        if value.isdigit() and int(value) > 0:
            return min(int(value), max(cores, 1))
    return max(cores, 1)


@lru_cache(maxsize=1)
def _pool(process: int) -> ThreadPoolExecutor:
    # Keyed by process: a pool does not survive a fork.
    return ThreadPoolExecutor(_usual_threads(), thread_name_prefix="lokl")


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
    _shared_out(min(n_threads(), size // max(grain, 1)), task, size, grain, *arguments)


def in_shares(task: Callable[[int, int], Any], size: int, grain: int) -> None:
    """Run ``task(start, stop)`` over ``range(size)``, one share a thread, as :func:`in_parallel`.

    For tasks of many small steps: what would be shared out among threads inside of a task stays in
    its thread, which waits for nobody.
    """
    pieces = min(n_threads(), size // max(grain, 1))
    with one_thread() if pieces > 1 else nullcontext():
        _shared_out(pieces, task, size, grain)


def _shared_out(
    pieces: int, task: Callable[..., Any], size: int, grain: int, *arguments: Any
) -> None:
    if pieces < 2:
        if size:
            task(0, size, *arguments)
        return
    grain = max(grain, 1)
    step = -(-size // (pieces * grain)) * grain
    futures = [
        _pool(os.getpid()).submit(_quietly, task, start, min(start + step, size), *arguments)
        for start in range(step, size, step)
    ]
    try:
        task(0, step, *arguments)
    finally:
        # Also after Ctrl-C: nobody may write into the arrays once this call has returned.
        wait(futures)
    for future in futures:
        future.result()


def _quietly(task: Callable[..., Any], *arguments: Any) -> None:
    """Run a task in a thread of the pool, where settings of the caller's thread do not hold.

    Numbers that overflow are looked for in the result, not here.
    """
    with np.errstate(all="ignore"):
        task(*arguments)


@contextmanager
def started_pool(size: int, name: str) -> Iterator[ThreadPoolExecutor]:
    """Threads for tasks that may wait for each other; none of them outlives the block.

    Ctrl-C while a thread is started leaves one that nobody waits for: so all are started before
    there is work for them.
    """
    pool = ThreadPoolExecutor(size, thread_name_prefix=name)
    all_there = Barrier(size + 1)
    try:
        for _ in range(size):
            pool.submit(all_there.wait)
        all_there.wait()
        yield pool
    finally:
        # Also after Ctrl-C: nobody computes any more once this call has returned.
        all_there.abort()
        pool.shutdown(wait=True, cancel_futures=True)


def multiply(left: Any, right: Any, out: Array | None = None) -> Array:
    """``left @ right``, rows of the product shared out among the threads."""
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
    with one_pool(n):
        in_parallel(task, n, _ROWS_A_PRODUCT if n >= _MANY_SAMPLES else max(n, 1))
    return out


class _QuietBlas:
    """Holds the BLAS libraries to one thread while anybody wants it so.

    The number of threads belongs to the process. Whoever comes first saves it, whoever leaves
    last puts it back, and both happen on one thread of their own: threadpoolctl listens to one
    thread only.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="lokl-blas")
        self._before: list[int] = []

    def enter(self) -> None:
        with self._lock:
            if self._users == 0:
                self._thread.submit(self._quieten).result()
            self._users += 1

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._thread.submit(self._restore).result()

    def _quieten(self) -> None:
        self._before = [library.num_threads for library in _blas_libraries()]
        for library in _blas_libraries():
            library.set_num_threads(1)

    def _restore(self) -> None:
        for library, count in zip(_blas_libraries(), self._before, strict=True):
            library.set_num_threads(count)


@lru_cache(maxsize=1)
def _quiet_blas(process: int) -> _QuietBlas:
    # Keyed by process, like the pool.
    return _QuietBlas()


@lru_cache(maxsize=1)
def _blas_libraries() -> list[Any]:
    # threadpoolctl is a dependency of scikit-learn.
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


@contextmanager
def quiet_blas() -> Iterator[None]:
    """Hold the BLAS libraries to one thread.

    Their threads wait for the next product in a busy loop, some hundredths of a second long, and
    take the cores from loops that run between products: of this process, and of all others.
    """
    quiet = _quiet_blas(os.getpid())
    quiet.enter()
    try:
        yield
    finally:
        quiet.leave()


def one_pool(n_samples: int) -> AbstractContextManager[None]:
    """Let only the threads of this file work, where many samples are to be learned from.

    Few samples are done before it pays to silence the threads of BLAS. A sample counts once for
    every machine that learns from it.
    """
    return quiet_blas() if n_samples >= _MANY_SAMPLES else nullcontext()


class _Alone:
    """Counts who wants this process to work in one thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.users = 0

    def change(self, by: int) -> None:
        with self._lock:
            self.users += by


_alone = _Alone()


@contextmanager
def one_thread() -> Iterator[None]:
    """Do everything in this process in one thread: rounding then depends on nothing but inputs.

    How sums are shared out among threads changes their last digits, and a method that is not
    convex may go another way from there.
    """
    with quiet_blas():
        _alone.change(1)
        try:
            yield
        finally:
            _alone.change(-1)


def jobs_for(n_jobs: int | None, n_kernels: int) -> int:
    """How many kernels are worked on at a time."""
    jobs = 1 if n_jobs is None else int(joblib.effective_n_jobs(n_jobs))
    return min(jobs, n_kernels)


def in_threads(jobs: int, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> Any:
    """Results of a function for several arguments; warnings are told by this thread."""
    parallel = joblib.Parallel(n_jobs=jobs, prefer="threads")
    returned = parallel(joblib.delayed(apart)(function, *arguments) for arguments in calls)
    return [together(own) for own in returned]


def side_by_side(calls: Sequence[Callable[[], Any]], threads: int) -> list[Any]:
    """Results of some calls, begun in their order, at most `threads` at a time.

    Inside a call everything is done in one thread, also where calls follow one another: results do
    not depend on the number of threads.
    """
    with one_thread():
        if threads <= 1 or len(calls) <= 1:
            return [call() for call in calls]
        pool = ThreadPoolExecutor(min(threads, len(calls)), thread_name_prefix="lokl-regions")
        try:
            waiting = [pool.submit(apart, call) for call in calls]
            return [together(one.result()) for one in waiting]
        finally:
            # Also after an error or Ctrl-C: nobody computes once this call has returned.
            pool.shutdown(wait=True, cancel_futures=True)
