"""Whether two bound kernels give the same values."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lokl.kernels.base import Kernel


def same_kernels(left: Sequence[Kernel], right: Sequence[Kernel]) -> bool:
    """Whether kernels are of the same kinds and have the same settings, one by one."""
    return len(left) == len(right) and all(map(_same, left, right))


def _same(left: Any, right: Any) -> bool:
    if left is right:
        return True
    if isinstance(left, Kernel):
        if type(left) is not type(right):
            return False
        own, other = left.get_params(deep=False), right.get_params(deep=False)
        return all(_same(own[name], other[name]) for name in own)
    # Settings are numbers, words, or arrays of them.
    return bool(np.array_equal(left, right))
