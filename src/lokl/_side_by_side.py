"""Independent pieces of work in threads of their own, each of which works in one thread."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lokl._notices import apart, together
from lokl._threads import one_thread


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
