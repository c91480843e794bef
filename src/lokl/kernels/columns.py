"""Columns of a view: positions from names, slices, masks and selectors; samples that have it."""

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lokl._arrays import Array, is_sparse, squared_norms

# If the largest squared norm is below it, squares of single values are no longer exact.
SMALLEST_NORM = 1e-280


def column_names(X: Any) -> list[str] | None:
    """Return the column names of a data frame, None for data without names."""
    columns = getattr(X, "columns", None)
    return None if columns is None else [str(c) for c in columns]


def resolve_columns(columns: Any, X: Any) -> NDArray[np.intp]:
    """Return the positions of the selected columns of samples, a non-empty array.

    Parameters
    ----------
    columns : str, int, slice, sequence of them, boolean mask or callable
        A callable is a column selector of scikit-learn, a function of the data frame `X`.
    X : {array, sparse matrix, data frame} of shape (n_samples, n_features)
        Names and selectors need a data frame.

    Returns
    -------
    positions : array of int of shape (n_columns,)
    """
    n_features, names = X.shape[1], column_names(X)
    if callable(columns):
        if not hasattr(X, "columns"):
            raise ValueError(
                "a column selector needs a data frame with column names; "
                f"got {type(X).__name__}. Select by position instead."
            )
        columns = columns(X)
    if columns is None or not isinstance(columns, str | Integral | slice | Iterable):
        raise ValueError(
            "the columns of a view are names, positions, a slice, a mask or a selector, got "
            f"{columns!r}; for all columns, use the kernel without .on(columns)"
        )
    if isinstance(columns, str | Integral):
        columns = [columns]
    if isinstance(columns, slice):
        positions = _slice_positions(columns, n_features, names)
    elif (mask := np.asarray(columns)).dtype == bool:
        if mask.shape != (n_features,):
            raise ValueError(
                f"a boolean column mask of length {mask.size} does not fit {n_features} columns"
            )
        positions = np.flatnonzero(mask)
    else:
        # Arrays become lists of Python numbers and names; mixed lists stay as they are.
        listed = mask.ravel().tolist() if hasattr(columns, "dtype") else list(columns)
        positions = np.array([_position(c, n_features, names) for c in listed], dtype=np.intp)
    if positions.size == 0:
        raise ValueError(f"the view {columns!r} selects no column of {n_features}")
    return positions


def _slice_positions(
    columns: slice, n_features: int, names: Sequence[str] | None
) -> NDArray[np.intp]:
    start, stop = columns.start, columns.stop
    if not (isinstance(start, str) or isinstance(stop, str)):
        return np.arange(n_features, dtype=np.intp)[columns]
    # A slice of names includes its end, as in pandas.
    first = 0 if start is None else _position(start, n_features, names)
    end = n_features if stop is None else _position(stop, n_features, names) + 1
    return np.arange(first, end, columns.step, dtype=np.intp)


def _position(column: Any, n_features: int, names: Sequence[str] | None) -> int:
    if isinstance(column, str):
        if names is None:
            raise ValueError(
                f"column {column!r} is a name, but the data has no column names; "
                "pass a data frame or select by position"
            )
        if column not in names:
            first_names = ", ".join(list(names)[:10])
            raise ValueError(f"unknown column {column!r}; the data has {first_names}")
        return list(names).index(column)
    if isinstance(column, Integral):
        position = int(column)
        if not -n_features <= position < n_features:
            raise ValueError(f"unknown column {position}; the data has {n_features} columns")
        return position % n_features
    raise ValueError(f"a column is a name or a position, got {column!r}")


def take_columns(
    X: Any, positions: Sequence[int] | NDArray[np.intp] | None, factors: Any = None
) -> Any:
    """Return some columns of an array, sparse matrix or data frame, None for all.

    With `factors`, (n_columns,), every column is multiplied by its factor.
    """
    if positions is not None:
        positions = np.asarray(positions, dtype=np.intp)
        if hasattr(X, "iloc"):
            X = X.iloc[:, positions]
        else:
            X = (X if is_sparse(X) else np.asarray(X))[:, positions]
    return X if factors is None else scale_columns(X, factors)


def scale_columns(X: Any, factors: Sequence[float]) -> Any:
    """Return samples with every column multiplied by its factor, (n_features,)."""
    if is_sparse(X):
        return X @ sparse.diags_array(np.asarray(factors, dtype=float), format="csr")
    return X * np.asarray(factors, dtype=float)


def present_rows(X: Any) -> Array:
    """Return which samples have a view, (n_samples,), from its columns: not if all are NaN."""
    if is_sparse(X) or not np.issubdtype(np.asarray(X).dtype, np.floating):
        return np.ones(X.shape[0], dtype=bool)
    return np.asarray(~np.isnan(np.asarray(X)).all(axis=1))


def squares_vanish(X: Any, norms: Array | None = None) -> bool:
    """Whether samples that are not zero have squared norms too small to compute with."""
    norms = squared_norms(X) if norms is None else norms
    if norms.max(initial=0.0) >= SMALLEST_NORM:
        return False
    values = X.data if is_sparse(X) else np.asarray(X)
    return bool((values != 0).any())
