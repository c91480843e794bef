"""Columns of a view: names, positions, slices, masks and selectors become positions."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lokl._arrays import is_sparse


def column_names(X: Any) -> list[str] | None:
    """Column names of a data frame, None for anything without names."""
    columns = getattr(X, "columns", None)
    return None if columns is None else [str(c) for c in columns]


def resolve_columns(
    columns: Any, n_features: int, names: Sequence[str] | None = None, X: Any = None
) -> NDArray[np.intp]:
    """Positions of the selected columns, as a non-empty integer array.

    Parameters
    ----------
    columns : str, int, slice, sequence of them, boolean mask or callable
        A callable is a column selector and gets the data frame `X`.
    n_features : int
        Number of columns of the data.
    names : sequence of str, optional
        Names of the columns.
    X : data frame, optional
        What a callable selector is asked on.
    """
    if callable(columns):
        if not hasattr(X, "columns"):
            raise ValueError(
                "a column selector needs a data frame with column names; "
                f"got {type(X).__name__}. Select by position instead."
            )
        columns = columns(X)
    if isinstance(columns, str | Integral):
        columns = [columns]
    if isinstance(columns, slice):
        if isinstance(columns.start, str) or isinstance(columns.stop, str):
            start = 0 if columns.start is None else _position(columns.start, n_features, names)
            # A slice of names includes its end, as in pandas.
            stop = n_features
            if columns.stop is not None:
                stop = _position(columns.stop, n_features, names) + 1
            positions = np.arange(start, stop, columns.step, dtype=np.intp)
        else:
            positions = np.arange(n_features, dtype=np.intp)[columns]
    else:
        listed = (
            np.asarray(columns).ravel().tolist() if hasattr(columns, "dtype") else list(columns)
        )
        chosen = np.asarray(columns)
        if chosen.dtype == bool:
            if chosen.shape != (n_features,):
                raise ValueError(
                    f"a boolean column mask of length {chosen.size} does not fit "
                    f"{n_features} columns"
                )
            positions = np.flatnonzero(chosen)
        else:
            positions = np.array([_position(c, n_features, names) for c in listed], dtype=np.intp)
    if positions.size == 0:
        raise ValueError(f"the view {columns!r} selects no column of {n_features}")
    return positions


def _position(column: Any, n_features: int, names: Sequence[str] | None) -> int:
    if isinstance(column, str):
        if names is None:
            raise ValueError(
                f"column {column!r} is a name, but the data has no column names; "
                "pass a data frame or select by position"
            )
        found = list(names).index(column) if column in names else -1
        if found < 0:
            known = ", ".join(list(names)[:10])
            raise ValueError(f"unknown column {column!r}; the data has {known}")
        return found
    if isinstance(column, Integral):
        position = int(column)
        if not -n_features <= position < n_features:
            raise ValueError(f"unknown column {position}; the data has {n_features} columns")
        return position % n_features
    raise ValueError(f"a column is a name or a position, got {column!r}")


def take_columns(X: Any, positions: NDArray[np.intp]) -> Any:
    """Return the chosen columns of an array, sparse matrix or data frame."""
    if hasattr(X, "iloc"):
        return X.iloc[:, positions]
    if is_sparse(X):
        return X[:, positions]
    return np.asarray(X)[:, positions]


def stretched(X: Any, factors: Sequence[float]) -> Any:
    """Return samples with every column multiplied by its factor."""
    if is_sparse(X):
        return X @ sparse.diags_array(np.asarray(factors, dtype=float), format="csr")
    return X * np.asarray(factors, dtype=float)
