"""Work on kernels that do not depend on each other, in threads that share the memory."""

from collections.abc import Callable, Sequence
from typing import Any

import joblib

from lokl._notices import apart, together


def jobs_for(n_jobs: int | None, n_kernels: int) -> int:
    """How many kernels are worked on at a time."""
    jobs = 1 if n_jobs is None else int(joblib.effective_n_jobs(n_jobs))
    return min(jobs, n_kernels)


def in_threads(jobs: int, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> Any:
    """Results of a function for several arguments; warnings are told by this thread."""
    parallel = joblib.Parallel(n_jobs=jobs, prefer="threads")
    returned = parallel(joblib.delayed(apart)(function, *arguments) for arguments in calls)
    return [together(own) for own in returned]
