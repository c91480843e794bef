"""Rows of one matrix in one preallocated slab, the least recently used ones evicted."""

from typing import Any

import numpy as np

from lokl._arrays import Array

# More than one evicted row among this many missing rows opens more memory.
_RETURNING = 3


class RowCache:
    """At most `capacity` rows of length `width`.

    The slab is reserved at once, never allocated anew, and opened step by step: the first touch of
    fresh memory costs more than computing a row, so more of it is used only once evicted rows are
    asked for again.
    """

    def __init__(self, n_rows: int, width: int, capacity: int, dtype: Any):
        self.capacity = min(capacity, n_rows)
        self.slab = np.empty((self.capacity, width), dtype=dtype)
        self._slot = np.full(n_rows, -1, dtype=np.intp)
        self._owner = np.full(self.capacity, -1, dtype=np.intp)
        self._used_at = np.zeros(self.capacity, dtype=np.int64)
        self._evicted = np.zeros(n_rows, dtype=bool)
        self._clock = 0
        self._filled = 0
        self._open = 0

    def clear(self) -> None:
        """Forget all rows; the slab stays."""
        self._slot[:] = -1
        self._owner[:] = -1
        self._used_at[:] = 0
        self._evicted[:] = False
        self._filled = 0

    def slots(self, index: Array) -> Array:
        """Where rows are stored, -1 for those that are not."""
        return np.asarray(self._slot[index])

    def place(self, index: Array) -> tuple[Array, Array]:
        """Give every row of `index` a slot; return the slots and which rows must be computed.

        At most `capacity` distinct rows may be asked for in one call: they are all kept.
        """
        if len(index) > self.capacity:
            raise ValueError(f"{len(index)} rows do not fit a slab of {self.capacity}")
        self._clock += 1
        slots = self._slot[index]
        missing = slots < 0
        self._used_at[slots[~missing]] = self._clock
        rows = index[missing]
        wanted = len(rows)
        self._widen(len(index), wanted, int(self._evicted[rows].sum()))
        fresh = min(wanted, self._open - self._filled)
        free = np.arange(self._filled, self._filled + fresh)
        self._filled += fresh
        self._used_at[free] = self._clock
        if fresh < wanted:
            oldest = np.argsort(self._used_at[: self._open], kind="stable")[: wanted - fresh]
            self._slot[self._owner[oldest]] = -1
            self._evicted[self._owner[oldest]] = True
            free = np.concatenate([free, oldest])
        slots[missing] = free
        self._slot[rows] = free
        self._owner[free] = rows
        self._used_at[free] = self._clock
        return slots, missing

    def _widen(self, asked: int, missing: int, returning: int) -> None:
        """Open more of the slab for a larger request, or for evicted rows that come back."""
        size = max(self._open, 2 * asked)
        if returning * _RETURNING > missing:
            size = max(size, 2 * self._open)
        self._open = min(size, self.capacity)
