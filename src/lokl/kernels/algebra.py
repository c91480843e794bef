"""Kernels made of kernels: on some columns, sums and products.

Kernels on a common scale, with factors learned on the training samples.
"""

from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from lokl._arrays import Array, is_sparse, squared_norms
from lokl._warnings import warn_once
from lokl.kernels.base import Kernel, Lookup, Normalization, Term
from lokl.kernels.columns import column_names, resolve_columns, take_columns
from lokl.kernels.samples import squares_vanish


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


class Normalized(Kernel):
    """A kernel whose scale does not depend on the units of the features.

    Parameters
    ----------
    kernel : Kernel
    how : {"unit_diag", "mean_diag", "trace", "none"}, default="unit_diag"
        "unit_diag" is ``k(x, z) / sqrt(k(x, x) k(z, z))``, 0 for a sample with ``k(x, x) = 0``;
        "mean_diag" divides by the mean of the training diagonal, "trace" by its sum.
        With "trace", values are of order ``1 / n``: raise `C` by the factor ``n`` or the machine
        saturates and predicts the majority class.
    scale : float, optional
        The learned factor of "mean_diag" and "trace"; filled in by :meth:`bind`.
    """

    def __init__(
        self, kernel: Kernel, how: Normalization = "unit_diag", scale: float | None = None
    ):
        self.kernel = kernel
        self.how = how
        self.scale = scale

    def bind(self, X: Any, weight: Array | None = None, frame: Any = None) -> Kernel:
        known = get_args(Normalization)
        if self.how not in known:
            raise ValueError(f"how must be one of {', '.join(known)}, got {self.how!r}")
        kernel = self.kernel.bind(X, weight, frame)
        if self.how == "none" or self.how == "unit_diag":
            return Normalized(kernel, self.how)
        weight = np.ones(X.shape[0]) if weight is None else weight
        used, seen = kernel.columns_used(), X
        if used is not None:
            seen = take_columns(X, np.array(used, dtype=np.intp))
            present = present_rows(seen)
            X, seen, weight = X[present], seen[present], weight[present]
        trace = float(weight @ np.asarray(kernel.diag(X), dtype=float)) if len(weight) else 0.0
        if trace <= 0 and squares_vanish(seen):
            # Samples are refused where they are read, with the remedy.
            return Normalized(kernel, self.how, 0.0)
        if trace <= 0:
            text = f"kernel {self.label!r} is zero on all training samples and gets weight 0"
            warn_once(text, text)
            return Normalized(kernel, self.how, 0.0)
        total = float(weight.sum()) if self.how == "mean_diag" else 1.0
        return Normalized(kernel, self.how, total / trace)

    def term(self) -> Term | None:
        term = self.kernel.term()
        if term is None:
            return None
        return replace(term, factor=TermFactor(self, term))

    def lookup(self, X: Any) -> Lookup | None:
        found = self.kernel.lookup(X)
        return None if found is None else replace(found, factors=found.factors * self._factor(X))

    def columns_used(self) -> tuple[int, ...] | None:
        return self.kernel.columns_used()

    @property
    def is_view(self) -> bool:
        return self.kernel.is_view

    @property
    def is_stored(self) -> bool:
        return self.kernel.is_stored

    def __call__(self, X: Any, Z: Any = None) -> Array:
        left = self._factor(X)
        right = left if Z is None else self._factor(Z)
        return np.asarray(left[:, np.newaxis] * self.kernel(X, Z) * right)

    def diag(self, X: Any) -> Array:
        return np.asarray(self.kernel.diag(X) * self._factor(X) ** 2)

    @property
    def label(self) -> str:
        return self.kernel.label

    def _factor(self, X: Any) -> Array:
        if self.how == "unit_diag":
            return inverse_root(self.kernel.diag(X))
        return np.full(X.shape[0], self.root_scale())

    def root_scale(self) -> float:
        """Square root of the learned factor."""
        if self.how == "none":
            return 1.0
        if self.scale is None:
            raise ValueError(f"{self!r} learns its scale from training data; call bind(X) first")
        return float(np.sqrt(self.scale))


@dataclass(frozen=True, eq=False)
class TermFactor:
    """Factor of samples that a term has reduced to its columns, with the factor of the term itself.

    An object, not a function: models that are stored in files hold no code.
    """

    kernel: Normalized
    term: Term

    def __call__(self, X: Any) -> Array:
        inner = np.ones(X.shape[0]) if self.term.factor is None else self.term.factor(X)
        if self.kernel.how != "unit_diag":
            return np.asarray(inner * self.kernel.root_scale())
        norms = squared_norms(X)
        return inner * inverse_root(self.term.formula(norms, norms, norms) * inner**2)


def inverse_root(diag: Array) -> Array:
    """``1 / sqrt(diag)``, and 0 where the diagonal is not positive.

    Numbers below the smallest that has all its digits count as zero: their kernel values are
    rounded so far that they are no angles any more, and the square of the root overflows.
    """
    diag = np.asarray(diag, dtype=float)
    counts = diag >= np.finfo(float).tiny
    return np.divide(1.0, np.sqrt(np.maximum(diag, 0.0)), out=np.zeros_like(diag), where=counts)
