"""Names of parameters, without a look at the constructor each time.

A search copies and configures its estimator for every candidate, and each of its kernels with it.
"""

from functools import lru_cache
from typing import Any

from sklearn.base import BaseEstimator


def parameter_names(cls: Any) -> list[str]:
    """Names of the parameters of a class, as ``BaseEstimator`` reads them off its constructor."""
    return list(_names(cls, cls.__init__))


@lru_cache(maxsize=1024)
def _names(cls: Any, constructor: Any) -> tuple[str, ...]:
    # The constructor of a class may be replaced.
    return tuple(BaseEstimator._get_param_names.__func__(cls))
