"""Settings that mean the same, though they may be copies of each other."""

from collections.abc import Mapping
from typing import Any

import numpy as np


def alike(one: Any, other: Any) -> bool:
    """Whether two settings mean the same for certain.

    Copies of parts such as kernels are alike where all their settings are. Objects that nothing is
    known about are alike only where they are equal, or the same.
    """
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if hasattr(one, "get_params"):
        return alike(one.get_params(deep=False), other.get_params(deep=False))
    if isinstance(one, Mapping):
        return list(one) == list(other) and all(alike(one[name], other[name]) for name in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    equal = one == other
    return isinstance(equal, bool | np.bool_) and bool(equal)
