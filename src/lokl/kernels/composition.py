"""Kernels made of kernels: on some columns, sums and products."""

from dataclasses import replace
from typing import Any

import numpy as np

from lokl._arrays import Array, is_sparse
from lokl.kernels.base import Kernel, Lookup, Term
from lokl.kernels.columns import column_names, resolve_columns, take_columns


class View(Kernel):
    """A kernel on some columns: one description of the samples among several.

    Parameters
    ----------
    kernel : Kernel
    columns : str, int, slice, sequence of them, boolean mask or selector
        Names need a data frame. After :meth:`bind` these are positions.
    """

    is_view = True

    def __init__(self, kernel: Kernel, columns: Any):
        self.kernel = kernel
        self.columns = columns

    def bind(self, X: Any, weight: Array | None = None, frame: Any = None) -> Kernel:
        source = X if frame is None else frame
        positions = resolve_columns(self.columns, X.shape[1], column_names(source), source)
        seen = take_columns(X, positions)
        present = present_rows(seen)
        if not present.all():
            # A sample that lacks the view has nothing to say about its scale.
            seen = seen[present]
            weight = None if weight is None else weight[present]
        # Inside the view, columns are counted from zero and have the view's own names.
        inner_frame = None if frame is None else take_columns(frame, positions)
        return View(self.kernel.bind(seen, weight, inner_frame), positions.tolist())

    def term(self) -> Term | None:
        term = self.kernel.term()
        return None if term is None else replace(term, columns=self._outside(term.columns))

    def lookup(self, X: Any) -> Lookup | None:
        return self.kernel.lookup(self._seen(X))

    def columns_used(self) -> tuple[int, ...] | None:
        return self._outside(self.kernel.columns_used())

    def _outside(self, inner: tuple[int, ...] | None) -> tuple[int, ...]:
        """Return positions in the data of columns that are counted inside the view."""
        own = tuple(int(c) for c in self.columns)
        return own if inner is None else tuple(own[c] for c in inner)

    @property
    def is_stored(self) -> bool:
        return self.kernel.is_stored

    def __call__(self, X: Any, Z: Any = None) -> Array:
        left = self._seen(X)
        return self.kernel(left, None if Z is None else self._seen(Z))

    def diag(self, X: Any) -> Array:
        return self.kernel.diag(self._seen(X))

    @property
    def label(self) -> str:
        return f"{self.kernel.label} on {_describe(self.columns)}"

    def _seen(self, X: Any) -> Any:
        positions = resolve_columns(self.columns, X.shape[1], column_names(X), X)
        seen = take_columns(X, positions)
        return np.asarray(seen) if hasattr(seen, "iloc") else seen


class Sum(Kernel):
    """``k(x, z) = left(x, z) + right(x, z)``."""

    _sign = "+"
    _combine: Any = np.add

    def __init__(self, left: Kernel, right: Kernel):
        self.left = left
        self.right = right

    def bind(self, X: Any, weight: Array | None = None, frame: Any = None) -> Kernel:
        return type(self)(self.left.bind(X, weight, frame), self.right.bind(X, weight, frame))

    def columns_used(self) -> tuple[int, ...] | None:
        left, right = self.left.columns_used(), self.right.columns_used()
        return None if left is None or right is None else tuple(sorted({*left, *right}))

    @property
    def is_view(self) -> bool:
        return self.left.is_view and self.right.is_view

    @property
    def is_stored(self) -> bool:
        return self.left.is_stored or self.right.is_stored

    def __call__(self, X: Any, Z: Any = None) -> Array:
        return np.asarray(self._combine(self.left(X, Z), self.right(X, Z)))

    def diag(self, X: Any) -> Array:
        return np.asarray(self._combine(self.left.diag(X), self.right.diag(X)))

    @property
    def label(self) -> str:
        return f"{self.left.label} {self._sign} {self.right.label}"


class Product(Sum):
    """``k(x, z) = left(x, z) * right(x, z)``."""

    _sign = "*"
    _combine: Any = np.multiply


def present_rows(X: Any) -> Array:
    """Which samples have this view: False where every value of the row is NaN."""
    if is_sparse(X) or not np.issubdtype(np.asarray(X).dtype, np.floating):
        return np.ones(X.shape[0], dtype=bool)
    return np.asarray(~np.isnan(np.asarray(X)).all(axis=1))


def _describe(columns: Any) -> str:
    if not isinstance(columns, list | tuple | np.ndarray):
        return str(columns)
    return f"{len(columns)} columns" if len(columns) > 3 else ", ".join(map(str, columns))
