"""What every estimator checks before it learns."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, validate_data

from lokl._arrays import Array, is_sparse
from lokl._checks import check_positive as positive


def check_settings(estimator: Any) -> None:
    """Raise where a common constructor parameter is out of range; name value and remedy."""
    for name in ("C", "tol", "cache_size"):
        positive(name, getattr(estimator, name))
    if not isinstance(estimator.max_iter, Integral) or estimator.max_iter < -1:
        raise ValueError(f"max_iter must be an integer >= -1, got {estimator.max_iter!r}")
    epsilon = getattr(estimator, "epsilon", 0.0)
    if not isinstance(epsilon, Real) or not np.isfinite(float(epsilon)) or epsilon < 0:
        raise ValueError(f"epsilon must be finite and not negative, got {epsilon!r}")
    check_random_state(estimator.random_state)


def check_count(name: str, value: Any, least: int = 1) -> int:
    """Return a whole number, or an error that names it."""
    if not isinstance(value, Integral) or int(value) < least:
        raise ValueError(f"{name} must be an integer >= {least}, got {value!r}")
    return int(value)


def check_choice(name: str, value: Any, choices: Sequence[str]) -> str:
    """Return one of some words, or an error that lists them."""
    if value not in choices:
        known = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {known}, got {value!r}")
    return str(value)


def check_norm(name: str, value: Any) -> float:
    """Return the exponent of a norm, a number of at least 1 or infinity."""
    if not isinstance(value, Real) or not float(value) >= 1:
        raise ValueError(f"{name} must be a number >= 1, got {value!r}")
    return float(value)


def check_samples(estimator: Any, X: Any, y: Any = None, *, fitting: bool, missing: bool) -> Any:
    """Return samples (and targets when fitting) as arrays or CSR matrices.

    NaN passes where views may be `missing`: whether samples lack whole views is sorted out once
    the kernels are bound.
    """
    options: dict[str, Any] = {
        "accept_sparse": "csr",
        "dtype": [np.float64, np.float32],
        "ensure_all_finite": "allow-nan" if missing else True,
        "reset": fitting,
    }
    if not fitting:
        return _canonical(validate_data(estimator, X, **options))
    X, y = validate_data(estimator, X, y, multi_output=True, y_numeric=False, **options)
    return _canonical(X), y


def _canonical(X: Any) -> Any:
    """CSR matrices with sorted, unique entries; the caller's matrix is left alone."""
    if is_sparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def check_weights(sample_weight: Any, X: Any) -> Array:
    """Return one weight a sample, finite, not negative and not all zero."""
    if sample_weight is None:
        return np.ones(X.shape[0])
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, copy=True)
    if not np.isfinite(weight).all() or (weight < 0).any():
        bad = weight[~np.isfinite(weight) | (weight < 0)][0]
        raise ValueError(f"sample weights must be finite and not negative, got {bad}")
    if not (weight > 0).any():
        raise ValueError("all sample weights are zero; at least one sample must count")
    return np.asarray(weight)
