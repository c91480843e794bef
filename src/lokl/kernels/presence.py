"""Which samples have which views: NaN in all columns of a view means it is missing."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lokl._arrays import Array, is_sparse
from lokl._samples import Samples
from lokl.kernels.base import Kernel


def read_samples(
    kernels: Sequence[Kernel],
    names: Sequence[str],
    X: Any,
    *,
    columns: Any = None,
    rows: Array | None = None,
    weight: Array | None = None,
    frame: Any = None,
) -> Samples:
    """Return rows as samples of these kernels; parameters as in :func:`split_missing`.

    The only place that looks for NaN: whatever comes after works on the result.
    """
    filled, present = split_missing(kernels, names, X, columns, rows)
    return Samples(X, filled, present, weight, frame)


def split_missing(
    kernels: Sequence[Kernel],
    names: Sequence[str],
    X: Any,
    columns: Any = None,
    rows: Array | None = None,
) -> tuple[Any, Array | None]:
    """Return samples without NaN, and which kernels can see which sample.

    Parameters
    ----------
    kernels : sequence of bound Kernel
    names : sequence of str
        Of the kernels, for error messages.
    X : {array, CSR matrix}
        NaN marks missing values.
    columns : sequence of str, optional
        Names of the columns, for error messages.
    rows : array of int, optional
        Numbers of the samples, for error messages, where they are not 0, 1, 2, ...

    Returns
    -------
    X : as given, with 0 for NaN; gates of 0 keep it out of every result
    present : boolean array of shape (n_samples, n_kernels), or None where nothing is missing
    """
    if is_sparse(X):
        if np.isnan(X.data).any():
            raise ValueError(
                "Input X contains NaN in a sparse matrix, where entries that are not stored are "
                "zeros; give a dense array to mark missing views"
            )
        return X, None
    if not np.isnan(X).any():
        return X, None
    missing = np.isnan(X)
    present = np.ones((X.shape[0], len(kernels)), dtype=bool)
    for i, kernel in enumerate(kernels):
        used = kernel.columns_used()
        if used is None:
            raise ValueError(
                f"Input X contains NaN, and kernel {names[i]!r} uses all columns; "
                "impute the values, or give each view its own kernel with .on(columns): samples "
                "may then lack whole views"
            )
        seen = missing[:, list(used)]
        gone = seen.all(axis=1)
        partly = seen.any(axis=1) & ~gone
        if partly.any():
            first = int(np.flatnonzero(partly)[0])
            row = first if rows is None else int(rows[first])
            column = int(np.array(used)[seen[first]][0])
            label = column if columns is None else repr(str(columns[column]))
            raise ValueError(
                f"Input X contains NaN: sample {row} has a part of the view of kernel "
                f"{names[i]!r} but not column {label}; impute it, or set the whole view to NaN"
            )
        present[:, i] = ~gone
    lost = ~present.any(axis=1)
    if lost.any():
        first = int(np.flatnonzero(lost)[0])
        row = first if rows is None else int(rows[first])
        raise ValueError(f"Input X contains NaN: sample {row} lacks every view; remove it")
    return np.where(missing, 0.0, X), present
