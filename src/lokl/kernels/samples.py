"""Samples so large or so small that kernels cannot be computed: found where data enters.

Which samples have which views: NaN in all columns of a view means it is missing.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lokl._arrays import Array, Samples, is_sparse, squared_norms
from lokl.kernels.base import Kernel
from lokl.kernels.columns import stretched, take_columns

# Squared norms and kernel values up to here leave room for sums over many samples. Where the
# largest squared norm is below the other limit, squares of single values are no longer exact.
_LARGEST, _SMALLEST = 1e280, 1e-280
_REMEDY = "scale the data, for example with sklearn.preprocessing.StandardScaler"


def check_magnitudes(
    kernels: Sequence[Kernel],
    names: Sequence[str],
    X: Any,
    *,
    rows: Array | None = None,
    training: bool = False,
) -> None:
    """Raise where a kernel overflows, or where all training samples vanish for it.

    Norms are found once for all kernels of the same columns. A kernel is tried where the norm is
    largest. `X` is without NaN, errors number the samples by `rows`.
    """
    if X.shape[0] == 0:
        return
    numbers = np.arange(X.shape[0]) if rows is None else rows
    largest: dict[Any, tuple[int, float]] = {}
    with np.errstate(all="ignore"):
        for kernel, name in zip(kernels, names, strict=True):
            term = kernel.term()
            columns = kernel.columns_used() if term is None else term.columns
            seen = (columns, None if term is None else term.stretch)
            if seen not in largest:
                largest[seen] = _largest_norm(X, *seen, name, training)
            place, norm = largest[seen]
            value = norm
            if not kernel.is_stored and norm <= _LARGEST:
                value = _value_at(kernel, term, X, place, norm)
            if training and term is not None and 0.0 < norm < 1.0 and value < _SMALLEST:
                raise ValueError(_too_small(name, "values of the kernel"))
            if not value <= _LARGEST:
                what = "values of the kernel" if norm <= _LARGEST else "squares of its values"
                raise ValueError(
                    f"sample {int(numbers[place])} is too large for kernel {name!r}: {what} "
                    f"overflow; {_REMEDY}"
                )


def _largest_norm(
    X: Any, columns: Any, stretch: Any, name: str, training: bool
) -> tuple[int, float]:
    """Place and size of the largest squared norm among samples reduced to some columns."""
    seen = X if columns is None else take_columns(X, np.array(columns, dtype=np.intp))
    norms = squared_norms(seen if stretch is None else stretched(seen, stretch))
    place = int(np.argmax(norms))
    if training and squares_vanish(seen, norms):
        raise ValueError(_too_small(name, "squares of their values"))
    return place, float(norms[place])


def _too_small(name: str, what: str) -> str:
    return f"the samples are too small for kernel {name!r}: {what} vanish; {_REMEDY}"


def squares_vanish(X: Any, norms: Array | None = None) -> bool:
    """Whether samples that are not zero have squared norms too small to count with."""
    norms = squared_norms(X) if norms is None else norms
    if norms.max(initial=0.0) >= _SMALLEST:
        return False
    values = X.data if is_sparse(X) else np.asarray(X)
    return bool((values != 0).any())


def _value_at(kernel: Kernel, term: Any, X: Any, place: int, norm: float) -> float:
    """Size of the kernel value of one sample with itself, before any normalisation."""
    if term is not None:
        square = np.array([norm])
        return float(np.abs(term.formula(square, square, square))[0])
    return float(np.abs(np.asarray(kernel.diag(X[place : place + 1]), dtype=float)[0]))


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
