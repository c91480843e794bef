"""Checks of parameter values, and cached names of parameters.

Each check returns the value, or raises ValueError with the name and the value.
"""

from collections.abc import Sequence
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


def check_positive(name: str, value: Any) -> float:
    """Return a positive finite number."""
    if not isinstance(value, Real) or not np.isfinite(float(value)) or float(value) <= 0:
        raise ValueError(f"{name} must be a positive finite number, got {value!r}")
    return float(value)


def check_not_negative(name: str, value: Any) -> float:
    """Return a finite number of at least zero."""
    if not isinstance(value, Real) or not np.isfinite(float(value)) or float(value) < 0:
        raise ValueError(f"{name} must be finite and not negative, got {value!r}")
    return float(value)


def check_share(name: str, value: Any) -> float:
    """Return a number between zero and one, both excluded."""
    if not isinstance(value, Real) or not 0 < float(value) < 1:
        raise ValueError(f"{name} must be between 0 and 1, got {value!r}")
    return float(value)


def check_norm(name: str, value: Any) -> float:
    """Return the exponent of a norm, a number of at least one or infinity."""
    if not isinstance(value, Real) or not float(value) >= 1:
        raise ValueError(f"{name} must be a number >= 1, got {value!r}")
    return float(value)


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
