"""Which samples have which views: NaN in all columns of a view means it is missing."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lokl._arrays import Array, is_sparse
from lokl._samples import Samples
from lokl.kernels.base import Kernel
from lokl.kernels.magnitudes import check_magnitudes


def read_samples(
    kernels: Sequence[Kernel],
    names: Sequence[str],
    X: Any,
    *,
    columns: Any = None,
    rows: Array | None = None,
    weight: Array | None = None,
    frame: Any = None,
    training: bool = False,
) -> Samples:
    """Return rows as samples of these kernels; arguments are those of :func:`split_missing`.

    The only place that looks for NaN and for numbers that overflow: whatever comes after works on
    the result. Samples of `training` must not vanish either.
    """
    filled, present = split_missing(kernels, names, X, columns, rows)
    check_magnitudes(kernels, names, filled, rows=rows, training=training)
    return Samples(X, filled, present, weight, frame)


def split_missing(
    kernels: Sequence[Kernel],
    names: Sequence[str],
    X: Any,
    columns: Any = None,
    rows: Array | None = None,
) -> tuple[Any, Array | None]:
    """Return samples with 0 for NaN, and which kernels can see which sample, None where all can.

    The zeros never count: a gate is 0 where a kernel cannot see a sample. Kernels are bound. Errors
    call kernels by `names`, columns by `columns` and samples by their numbers in `rows`.
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
    numbers = np.arange(X.shape[0]) if rows is None else rows
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
        present[:, i] = ~seen.all(axis=1)
        partly = np.flatnonzero(seen.any(axis=1) & present[:, i])
        if len(partly):
            column = int(np.array(used)[seen[partly[0]]][0])
            label = column if columns is None else repr(str(columns[column]))
            raise ValueError(
                f"Input X contains NaN: sample {int(numbers[partly[0]])} has a part of the view of "
                f"kernel {names[i]!r} but not column {label}; impute it, or set the whole view to "
                "NaN"
            )
    lost = np.flatnonzero(~present.any(axis=1))
    if len(lost):
        number = int(numbers[lost[0]])
        raise ValueError(f"Input X contains NaN: sample {number} lacks every view; remove it")
    return np.where(missing, 0.0, X), present
