"""Kernels made of kernels: on some columns, sums, products, and on a common scale."""

from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from lokl._arrays import Array, squared_norms
from lokl._warnings import warn_once
from lokl.kernels.base import Kernel, Lookup, Normalization, Term
from lokl.kernels.columns import column_names, resolve_columns, take_columns
from lokl.kernels.samples import present_rows, squares_vanish


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
        values = take_columns(X, positions)
        present = present_rows(values)
        if not present.all():
            # A sample that lacks the view has no effect on its scale.
            values = values[present]
            weight = None if weight is None else weight[present]
        # Inside the view, columns are counted from zero and have the view's own names.
        inner_frame = None if frame is None else take_columns(frame, positions)
        return View(self.kernel.bind(values, weight, inner_frame), positions.tolist())

    def term(self) -> Term | None:
        term = self.kernel.term()
        return None if term is None else replace(term, columns=self._outer(term.columns))

    def lookup(self, X: Any) -> Lookup | None:
        return self.kernel.lookup(self._select(X))

    def columns_used(self) -> tuple[int, ...] | None:
        return self._outer(self.kernel.columns_used())

    @property
    def is_stored(self) -> bool:
        return self.kernel.is_stored

    def __call__(self, X: Any, Z: Any = None) -> Array:
        left = self._select(X)
        return self.kernel(left, None if Z is None else self._select(Z))

    def diag(self, X: Any) -> Array:
        return self.kernel.diag(self._select(X))

    @property
    def label(self) -> str:
        return f"{self.kernel.label} on {_describe(self.columns)}"

    def _outer(self, inner: tuple[int, ...] | None) -> tuple[int, ...]:
        """Return positions in the data of columns that are counted inside the view."""
        columns = tuple(int(c) for c in self.columns)
        return columns if inner is None else tuple(columns[c] for c in inner)

    def _select(self, X: Any) -> Any:
        """Return the columns of the view, (n_samples, n_columns)."""
        positions = resolve_columns(self.columns, X.shape[1], column_names(X), X)
        values = take_columns(X, positions)
        return np.asarray(values) if hasattr(values, "iloc") else values


def _describe(columns: Any) -> str:
    if not isinstance(columns, list | tuple | np.ndarray):
        return str(columns)
    return f"{len(columns)} columns" if len(columns) > 3 else ", ".join(map(str, columns))


class Sum(Kernel):
    """``k(x, z) = left(x, z) + right(x, z)``.

    Parameters
    ----------
    left, right : Kernel
    """

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
    """``k(x, z) = left(x, z) * right(x, z)``.

    Parameters
    ----------
    left, right : Kernel
    """

    _sign = "*"
    _combine: Any = np.multiply


class Normalized(Kernel):
    """A kernel whose scale does not depend on the units of the features.

    Parameters
    ----------
    kernel : Kernel
    how : {"unit_diag", "mean_diag", "trace", "none"}, default="unit_diag"
        "unit_diag" is ``k(x, z) / sqrt(k(x, x) k(z, z))``, 0 for a sample with ``k(x, x) = 0``;
        "mean_diag" divides by the mean of the training diagonal, "trace" by its sum.
        With "trace", values are of order ``1 / n``: raise `C` by the factor ``n``, or all
        coefficients reach their bound and the SVM predicts the majority class.
    scale : float, optional
        The learned factor of "mean_diag" and "trace"; set by :meth:`bind`.
    """

    def __init__(
        self, kernel: Kernel, how: Normalization = "unit_diag", scale: float | None = None
    ):
        self.kernel = kernel
        self.how = how
        self.scale = scale

    def bind(self, X: Any, weight: Array | None = None, frame: Any = None) -> Kernel:
        choices = get_args(Normalization)
        if self.how not in choices:
            raise ValueError(f"how must be one of {', '.join(choices)}, got {self.how!r}")
        kernel = self.kernel.bind(X, weight, frame)
        if self.how in ("none", "unit_diag"):
            return Normalized(kernel, self.how)
        weight = np.ones(X.shape[0]) if weight is None else weight
        used, values = kernel.columns_used(), X
        if used is not None:
            values = take_columns(X, np.array(used, dtype=np.intp))
            present = present_rows(values)
            X, values, weight = X[present], values[present], weight[present]
        trace = float(weight @ np.asarray(kernel.diag(X), dtype=float)) if len(weight) else 0.0
        if trace <= 0:
            # Samples whose squares vanish raise an error with the remedy when they are checked.
            if not squares_vanish(values):
                text = f"kernel {self.label!r} is zero on all training samples and gets weight 0"
                warn_once(text, text)
            return Normalized(kernel, self.how, 0.0)
        total = float(weight.sum()) if self.how == "mean_diag" else 1.0
        return Normalized(kernel, self.how, total / trace)

    def term(self) -> Term | None:
        term = self.kernel.term()
        return None if term is None else replace(term, normalizer=TermNormalizer(self, term))

    def lookup(self, X: Any) -> Lookup | None:
        inner = self.kernel.lookup(X)
        if inner is None:
            return None
        return replace(inner, normalizers=inner.normalizers * self._normalizers(X))

    def columns_used(self) -> tuple[int, ...] | None:
        return self.kernel.columns_used()

    @property
    def is_view(self) -> bool:
        return self.kernel.is_view

    @property
    def is_stored(self) -> bool:
        return self.kernel.is_stored

    def __call__(self, X: Any, Z: Any = None) -> Array:
        left = self._normalizers(X)
        right = left if Z is None else self._normalizers(Z)
        return np.asarray(left[:, np.newaxis] * self.kernel(X, Z) * right)

    def diag(self, X: Any) -> Array:
        return np.asarray(self.kernel.diag(X) * self._normalizers(X) ** 2)

    @property
    def label(self) -> str:
        return self.kernel.label

    def _normalizers(self, X: Any) -> Array:
        """Return the factor of each sample, (n_samples,)."""
        if self.how == "unit_diag":
            return inverse_root(self.kernel.diag(X))
        return np.full(X.shape[0], self.root_scale())

    def root_scale(self) -> float:
        """Return the square root of the learned factor."""
        if self.how == "none":
            return 1.0
        if self.scale is None:
            raise ValueError(f"{self!r} learns its scale from training data; call bind(X) first")
        return float(np.sqrt(self.scale))


@dataclass(frozen=True, eq=False)
class TermNormalizer:
    """Factors of samples that are reduced to the columns of a term, (n_samples,).

    They include the factors of the term itself. An object and not a function, because model files
    contain no code.
    """

    kernel: Normalized
    term: Term

    def __call__(self, X: Any) -> Array:
        inner = np.ones(X.shape[0]) if self.term.normalizer is None else self.term.normalizer(X)
        if self.kernel.how != "unit_diag":
            return np.asarray(inner * self.kernel.root_scale())
        norms = squared_norms(X)
        return inner * inverse_root(self.term.formula(norms, norms, norms) * inner**2)


def inverse_root(diag: Array) -> Array:
    """Return ``1 / sqrt(diag)``, and 0 for entries that are not positive.

    Denormal numbers count as zero: their kernel values are rounded so far that they are no longer
    cosines, and the square of the root overflows.
    """
    diag = np.asarray(diag, dtype=float)
    counts = diag >= np.finfo(float).tiny
    return np.divide(1.0, np.sqrt(np.maximum(diag, 0.0)), out=np.zeros_like(diag), where=counts)
