"""Names and equality of parameters, and checks of their values.

Each check returns the value, or raises ValueError with the name and the value.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator


def parameter_names(cls: Any) -> list[str]:
    """Return the names of the parameters of a class, as ``BaseEstimator`` does, but cached.

    A search clones its estimator and all kernels for every candidate; inspecting the constructor
    each time would be slow.
    """
    return list(_names(cls, cls.__init__))


@lru_cache(maxsize=1024)
def _names(cls: Any, constructor: Any) -> tuple[str, ...]:
    # A key of the cache, since the constructor of a class may be replaced.
    return tuple(BaseEstimator._get_param_names.__func__(cls))


def params_equal(left: Any, right: Any) -> bool:
    """Return whether two parameter values are certainly the same.

    Estimators and kernels are equal if all their parameters are. Objects of unknown types are equal
    only if they compare equal or are the same object.
    """
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if hasattr(left, "get_params"):
        return params_equal(left.get_params(deep=False), right.get_params(deep=False))
    if isinstance(left, Mapping):
        same_keys = list(left) == list(right)
        return same_keys and all(params_equal(left[name], right[name]) for name in left)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(params_equal, left, right))
    if isinstance(left, np.ndarray):
        return left.dtype == right.dtype and np.array_equal(left, right)
    equal = left == right
    return isinstance(equal, bool | np.bool_) and bool(equal)


def number_check(words: str, is_valid: Callable[[float], bool]) -> Callable[[str, Any], float]:
    """Return the check of a real number; `words` describe valid numbers in its error."""

    def check(name: str, value: Any) -> float:
        if not isinstance(value, Real) or not is_valid(float(value)):
            raise ValueError(f"{name} must be {words}, got {value!r}")
        return float(value)

    return check


check_positive = number_check("a positive finite number", lambda value: 0 < value < np.inf)
check_not_negative = number_check("finite and not negative", lambda value: 0 <= value < np.inf)


def check_count(name: str, value: Any, least: int = 1) -> int:
    """Return an integer of at least `least`."""
    if not isinstance(value, Integral) or int(value) < least:
        raise ValueError(f"{name} must be an integer >= {least}, got {value!r}")
    return int(value)


def check_choice(name: str, value: Any, choices: Sequence[str]) -> str:
    """Return one of several strings."""
    if not isinstance(value, str) or value not in choices:
        known = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {known}, got {value!r}")
    return value
