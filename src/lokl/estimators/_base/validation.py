"""Data that enters an estimator."""

from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight, validate_data

from lokl._arrays import Array, is_sparse


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
