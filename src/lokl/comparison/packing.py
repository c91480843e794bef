"""Arrays in lines of JSON, with as many digits as anybody looks at."""

from typing import Any

import numpy as np

from lokl._arrays import Array


def packed(values: Array, digits: int) -> Any:
    """Return nested lists; None for NaN, whole numbers and truth values as they are."""
    values = np.asarray(values)
    if values.dtype.kind != "f":
        return values.tolist()
    lists = np.round(values, digits).astype(object)
    lists[~np.isfinite(values)] = None
    return lists.tolist()


def unpacked(lists: Any) -> Array:
    """Return an array again, NaN for None."""
    values = np.asarray(lists)
    return values.astype(float) if values.dtype == object else values
