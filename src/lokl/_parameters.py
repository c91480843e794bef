"""Names of parameters, without a look at the constructor each time.

A search copies and configures its estimator for every candidate, and each of its kernels with it.

Checks of settings: each returns the value, or raises an error that names it and the remedy.
"""

from collections.abc import Sequence
from functools import lru_cache
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator


def parameter_names(cls: Any) -> list[str]:
    """Names of the parameters of a class, as ``BaseEstimator`` reads them off its constructor."""
    return list(_names(cls, cls.__init__))


@lru_cache(maxsize=1024)
def _names(cls: Any, constructor: Any) -> tuple[str, ...]:
    # The constructor of a class may be replaced.
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
    """Return a number above zero and below one."""
    if not isinstance(value, Real) or not 0 < float(value) < 1:
        raise ValueError(f"{name} must be between 0 and 1, got {value!r}")
    return float(value)


def check_norm(name: str, value: Any) -> float:
    """Return the exponent of a norm, a number of at least one or infinity."""
    if not isinstance(value, Real) or not float(value) >= 1:
        raise ValueError(f"{name} must be a number >= 1, got {value!r}")
    return float(value)


def check_count(name: str, value: Any, least: int = 1) -> int:
    """Return a whole number of at least `least`."""
    if not isinstance(value, Integral) or int(value) < least:
        raise ValueError(f"{name} must be an integer >= {least}, got {value!r}")
    return int(value)


def check_choice(name: str, value: Any, choices: Sequence[str]) -> str:
    """Return one of some words."""
    if not isinstance(value, str) or value not in choices:
        known = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {known}, got {value!r}")
    return value
