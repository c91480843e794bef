"""Time limits of runs that stop early rather than overrun."""

import math
import time


class Deadline:
    """A point in time, `seconds` after its creation.

    Parameters
    ----------
    seconds : float or None
        None for a deadline that never passes.
    """

    def __init__(self, seconds: float | None):
        self._end = math.inf if seconds is None else time.monotonic() + seconds

    def remaining(self) -> float:
        """Return the seconds that are left: negative after the deadline, infinite without one."""
        return self._end - time.monotonic()

    @property
    def passed(self) -> bool:
        return self.remaining() <= 0.0

    def share(self, fraction: float = 1.0) -> float | None:
        """Return a part of the seconds that are left, a positive number; None without a limit."""
        remaining = self.remaining()
        return None if math.isinf(remaining) else max(fraction * remaining, 1e-3)
