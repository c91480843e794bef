"""Checks of samples on entry to the library: missing views, and values that overflow.

NaN in all columns of a view means that the sample lacks the view. Everything after this module
works on samples without NaN and with norms that can be squared.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lokl._arrays import Array, Samples, is_sparse, squared_norms
from lokl.kernels.base import Kernel, Term
from lokl.kernels.columns import SMALLEST_NORM, squares_vanish, take_columns

# Squared norms and kernel values up to this limit leave room for sums over many samples.
_LARGEST = 1e280
_REMEDY = "scale the data, for example with sklearn.preprocessing.StandardScaler"


def read_samples(
    kernels: Sequence[Kernel],
    names: Sequence[str],
    samples: Samples,
    columns: Any = None,
    rows: Array | None = None,
    *,
    training: bool = False,
) -> Samples:
    """Return samples with missing views filled in for bound kernels, after all checks.

    Parameters
    ----------
    samples : Samples
        As given, possibly with NaN.
    kernels, names, columns, rows
        See :func:`split_missing`.
    training : bool, default=False
        Also raise if the samples are so small that all kernel values vanish.
    """
    filled, present = split_missing(kernels, names, samples.given, columns, rows)
    _check_magnitudes(kernels, names, filled, rows, training)
    return replace(samples, filled=filled, present=present)


def split_missing(
    kernels: Sequence[Kernel],
    names: Sequence[str],
    X: Any,
    columns: Any = None,
    rows: Array | None = None,
) -> tuple[Any, Array | None]:
    """Replace NaN by 0 and return which samples have the views of which kernels.

    The zeros have no effect, because the gate of a missing view is 0.

    Parameters
    ----------
    kernels : sequence of Kernel
        Bound kernels.
    names : sequence of str
        Names of the kernels in errors.
    X : {array, CSR matrix} of shape (n_samples, n_features)
    columns : sequence of str, optional
        Names of the columns in errors; None for positions.
    rows : array of int of shape (n_samples,), optional
        Indices of the samples in errors; None for positions.

    Returns
    -------
    filled : {array, CSR matrix} of shape (n_samples, n_features)
    present : boolean array of shape (n_samples, n_kernels) or None
        None if no value is missing.
    """
    if is_sparse(X):
        if np.isnan(X.data).any():
            raise ValueError(
                "Input X contains NaN in a sparse matrix, where entries that are not stored are "
                "zeros; give a dense array to mark missing views"
            )
        return X, None
    missing = np.isnan(X)
    if not missing.any():
        return X, None
    rows = np.arange(X.shape[0]) if rows is None else rows
    present = np.ones((X.shape[0], len(kernels)), dtype=bool)
    for i, kernel in enumerate(kernels):
        present[:, i] = _has_view(kernel.columns_used(), missing, names[i], columns, rows)
    without_view = np.flatnonzero(~present.any(axis=1))
    if len(without_view):
        row = int(rows[without_view[0]])
        raise ValueError(f"Input X contains NaN: sample {row} lacks every view; remove it")
    return np.where(missing, 0.0, X), present


def _has_view(
    used: tuple[int, ...] | None, missing: Array, name: str, columns: Any, rows: Array
) -> Array:
    """Return which samples have the columns `used` by kernel `name`, (n_samples,).

    Raises ValueError if a sample has only some of them, or if the kernel uses all columns.
    """
    if used is None:
        raise ValueError(
            f"Input X contains NaN, and kernel {name!r} uses all columns; impute the values, or "
            "give each view its own kernel with .on(columns): samples may then lack whole views"
        )
    in_view = missing[:, list(used)]
    present = ~in_view.all(axis=1)
    partial = np.flatnonzero(in_view.any(axis=1) & present)
    if len(partial):
        column = int(np.array(used)[in_view[partial[0]]][0])
        label = column if columns is None else repr(str(columns[column]))
        raise ValueError(
            f"Input X contains NaN: sample {int(rows[partial[0]])} has a part of the view of "
            f"kernel {name!r} but not column {label}; impute it, or set the whole view to NaN"
        )
    return np.asarray(present)


def _check_magnitudes(
    kernels: Sequence[Kernel], names: Sequence[str], X: Any, rows: Array | None, training: bool
) -> None:
    """Raise ValueError if a kernel overflows, or if all training samples vanish for it.

    A kernel is evaluated at the sample of the largest norm. Norms are computed once for all kernels
    of the same columns. `X` has no NaN; the other parameters are as in :func:`read_samples`.
    """
    if X.shape[0] == 0:
        return
    largest: dict[Any, tuple[int, float]] = {}
    with np.errstate(all="ignore"):
        for kernel, name in zip(kernels, names, strict=True):
            term = kernel.term()
            columns = kernel.columns_used() if term is None else term.columns
            view = (columns, None if term is None else term.column_scale)
            if view not in largest:
                largest[view] = _largest_norm(X, *view, name, training)
            position, norm = largest[view]
            value = norm
            if not kernel.is_stored and norm <= _LARGEST:
                value = _value_at(kernel, term, X, position, norm)
            if training and term is not None and 0.0 < norm < 1.0 and value < SMALLEST_NORM:
                raise ValueError(_too_small(name, "values of the kernel"))
            if not value <= _LARGEST:
                what = "values of the kernel" if norm <= _LARGEST else "squares of its values"
                row = position if rows is None else int(rows[position])
                raise ValueError(
                    f"sample {row} is too large for kernel {name!r}: {what} overflow; {_REMEDY}"
                )


def _largest_norm(
    X: Any, columns: Any, column_scale: Any, name: str, training: bool
) -> tuple[int, float]:
    """Return position and size of the largest squared norm among samples reduced to columns."""
    view = take_columns(X, columns)
    norms = squared_norms(take_columns(view, None, column_scale))
    position = int(np.argmax(norms))
    if training and squares_vanish(view, norms):
        raise ValueError(_too_small(name, "squares of their values"))
    return position, float(norms[position])


def _too_small(name: str, what: str) -> str:
    return f"the samples are too small for kernel {name!r}: {what} vanish; {_REMEDY}"


def _value_at(kernel: Kernel, term: Term | None, X: Any, position: int, norm: float) -> float:
    """Return the size of the kernel value of one sample with itself, before normalisation."""
    if term is not None:
        square = np.array([norm])
        return float(np.abs(term.formula(square, square, square))[0])
    return float(np.abs(np.asarray(kernel.diag(X[position : position + 1]), dtype=float)[0]))
