"""Validation of samples, sample weights and costs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight, validate_data

from lokl._arrays import Array, is_sparse, narrow_indices
from lokl.kernels import Kernel

ALL_ZERO = "all sample weights are zero; at least one sample must count"
# Sums over any number of samples are then finite.
_LARGEST_WEIGHT = 1e100


def check_samples(
    estimator: Any, X: Any, y: Any = None, *, fitting: bool, missing: bool, views: bool = True
) -> Any:
    """Return samples (and targets when fitting) as arrays or CSR matrices.

    Parameters
    ----------
    estimator : estimator
        Number and names of the columns are set when `fitting`, otherwise checked.
    X, y : samples and targets
    fitting : bool
    missing : bool
        Whether NaN is allowed because views may be missing; bound kernels decide which are.
    views : bool, default=True
        Whether NaN would be allowed with other kernels, for the error.
    """
    _refuse_several_tables(X)
    options: dict[str, Any] = {
        "accept_sparse": "csr",
        "dtype": [np.float64, np.float32],
        "ensure_all_finite": "allow-nan",
        "reset": fitting,
    }
    # Infinite values raise an error; overflows of intermediate sums are harmless.
    with np.errstate(all="ignore"):
        if fitting:
            X, y = validate_data(estimator, X, y, multi_output=True, y_numeric=False, **options)
        else:
            X = validate_data(estimator, X, **options)
    if not missing:
        _refuse_nan(X, views, getattr(estimator, "feature_names_in_", None))
    return (_canonical(X), y) if fitting else _canonical(X)


def _refuse_several_tables(X: Any) -> None:
    """Raise ValueError if X is a collection of tables."""
    listed = isinstance(X, list | tuple) and len(X) > 0 and all(map(_is_table, X))
    # DOK matrices of scipy are dictionaries.
    if listed or (isinstance(X, Mapping) and not is_sparse(X)):
        kind = f"{type(X).__name__} of {len(X)} tables"
        raise ValueError(
            f"X must be one table with all columns, got a {kind}; join them with "
            "X, views = lokl.join_views({name: table}), and make kernels of the views with "
            "lokl.kernels.per_view(kernel, views)"
        )


def _is_table(value: Any) -> bool:
    return len(getattr(value, "shape", ())) == 2


def _refuse_nan(X: Any, views: bool, names: Array | None) -> None:
    """Raise ValueError with the position of the first NaN, if there is one."""
    values = X.data if is_sparse(X) else X
    # If the sum is not NaN, no entry is; that is much cheaper to check.
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isnan(values.sum()) or not np.isnan(values).any():
            return
    remedy = ""
    if views:
        remedy = (
            ", or give each view its own kernel with .on(columns): samples may then lack whole "
            "views"
        )
    position = ""
    if not is_sparse(X):
        row, column = np.argwhere(np.isnan(X))[0]
        position = f" (row {row}, column {column if names is None else repr(names[column])})"
    raise ValueError(
        f"Input X contains NaN{position}; impute the values, for example with "
        f"sklearn.impute.SimpleImputer{remedy}"
    )


def _canonical(X: Any) -> Any:
    """Return CSR matrices with sorted, unique entries; the given matrix is not modified."""
    if not is_sparse(X):
        return X
    X = narrow_indices(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def check_weights(sample_weight: Any, X: Any, *, part: bool = False) -> Array:
    """Return one weight per sample, finite, not negative and not all zero.

    With `part`, the weights belong to a part of the samples and may all be zero.
    """
    if sample_weight is None:
        return np.ones(X.shape[0])
    if part and np.shape(sample_weight) == X.shape[:1] and not np.any(sample_weight):
        return np.zeros(X.shape[0])
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, copy=True)
    if not np.isfinite(weight).all() or (weight < 0).any():
        bad = weight[~np.isfinite(weight) | (weight < 0)][0]
        raise ValueError(f"sample weights must be finite and not negative, got {bad}")
    if not part and not (weight > 0).any():
        raise ValueError(ALL_ZERO)
    # Sums of weights must not overflow.
    if float(weight.max()) > _LARGEST_WEIGHT:
        raise ValueError(
            f"sample_weight is too large: {weight.max():.3g}; divide the weights by their mean"
        )
    return np.asarray(weight)


def with_absent_views(X: Any, columns: Any, kernels: Sequence[Kernel], names: Sequence[str]) -> Any:
    """Return a data frame with all training columns, NaN for views of which it has no column.

    `columns` are the names of the training columns or None. A table with unknown columns is
    returned as it is: one may be misspelt, and the error of scikit-learn names it.
    """
    if columns is None or not hasattr(X, "reindex") or not X.columns.is_unique:
        return X
    absent = set(columns) - set(X.columns)
    if not absent or not set(X.columns) <= set(columns):
        return X
    for name, kernel in zip(names, kernels, strict=True):
        used = [str(columns[c]) for c in kernel.columns_used() or ()]
        lacking = [column for column in used if column in absent]
        if lacking and len(lacking) < len(used):
            raise ValueError(
                f"X lacks column {lacking[0]!r} of the view of kernel {name!r}, but not its other "
                "columns; add the column, or drop all columns of the view to mark it as missing"
            )
    return X.reindex(columns=list(columns))


_LEAST_COST = 1e-250


def check_costs(C: float, factors: dict[str, Any], limit: float = 1e100) -> Array:
    """Return the cost of every sample, ``C`` times all factors.

    Raises ValueError if sums of costs, their products with kernel values, or the reciprocal of the
    largest cost could overflow.
    """
    with np.errstate(all="ignore"):
        cost = np.asarray(C * np.prod(np.array(list(factors.values()), dtype=float), axis=0))
        total = float(cost.sum())
    if not total <= limit:
        given = [f"C={C:g}"] + [f"{name} up to {np.max(f):.3g}" for name, f in factors.items()]
        raise ValueError(
            f"the cost of errors is too large: {' times '.join(given)}; the sum over all samples "
            f"may be up to {limit:g}. Lower C, or divide the weights by their mean"
        )
    largest = float(cost.max(initial=0.0))
    if 0.0 < largest < _LEAST_COST:
        raise ValueError(
            f"the cost of errors is too small: C={C:g} times the weights is {largest:.3g} at most, "
            f"and must reach {_LEAST_COST:g}. Raise C, or divide the weights by their mean"
        )
    return cost
