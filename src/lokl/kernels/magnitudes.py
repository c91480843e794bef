"""Samples so large or so small that kernels cannot be computed: found where data enters."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lokl._arrays import Array, is_sparse, squared_norms
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
