"""What two samples share: the kernel protocol and the one-inner-product form."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import BaseEstimator

from lokl._arrays import Array

if TYPE_CHECKING:
    from lokl.kernels.composition import Product, Sum, View
    from lokl.kernels.normalization import Normalized

Normalization = Literal["none", "unit_diag", "mean_diag", "trace"]

# What is done with an inner product, by number: compiled loops know these (lokl.gram._mixing has
# them once more). SQUARE is a Gaussian of twice the gamma of the one before it in a list, hence its
# square; no formula has it, the plan of a Gram matrix puts it in.
LINEAR, POLYNOMIAL, GAUSSIAN, TANH, SQUARE = range(5)


@dataclass(frozen=True)
class Formula:
    """A kernel as an elementwise function of one inner product and two squared norms.

    With ``p = <x, z>``: linear ``p``; polynomial ``(gamma p + coef0) ** degree``; Gaussian
    ``exp(-gamma (|x|^2 + |z|^2 - 2 p))``; tanh ``tanh(gamma p + coef0)``.
    """

    operation: int
    gamma: float = 1.0
    coef0: float = 0.0
    degree: int = 1

    def __call__(self, dot: Array, left: Array, right: Array) -> Array:
        """Kernel values from inner products and the squared norms of both sides."""
        if self.operation == LINEAR:
            return dot
        if self.operation == POLYNOMIAL:
            return np.asarray((self.gamma * dot + self.coef0) ** self.degree)
        if self.operation == GAUSSIAN:
            # Rounding can push a squared distance below zero, a kernel value above one.
            return np.asarray(np.exp(-self.gamma * np.maximum(left + right - 2.0 * dot, 0.0)))
        return np.asarray(np.tanh(self.gamma * dot + self.coef0))


@dataclass(frozen=True)
class Term:
    """A bound kernel taken apart: ``k(x, z) = s(x) s(z) formula(x[columns], z[columns])``.

    Kernels that share ``columns`` and their ``stretch``, a factor of every column, share their
    inner products, which is where the speed of a dictionary of kernels comes from.
    """

    formula: Formula
    columns: tuple[int, ...] | None = None
    stretch: tuple[float, ...] | None = None
    factor: Callable[[Any], Array] | None = None


class Kernel(BaseEstimator, ABC):
    """A positive semidefinite similarity ``k(x, z)``.

    Kernels are settings without results: data-dependent settings such as ``gamma="scale"``
    become numbers in the new object that :meth:`bind` returns.
    """

    @abstractmethod
    def __call__(self, X: Any, Z: Any = None) -> Array:
        """Kernel values of every row of `X` with every row of `Z` (`X` when None)."""

    @abstractmethod
    def diag(self, X: Any) -> Array:
        """Kernel value of every row of `X` with itself."""

    @property
    @abstractmethod
    def label(self) -> str:
        """Short name for tables, plots and ``kernel_names_``."""

    def bind(self, X: Any, weight: Array | None = None, frame: Any = None) -> "Kernel":
        """Return this kernel with data-dependent settings turned into numbers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training samples.
        weight : array of shape (n_samples,), optional
            Sample weights; a weight of 2 counts like the row written twice.
        frame : data frame, optional
            `X` as it was given, for views that select columns by name or selector.
        """
        return self

    def term(self) -> Term | None:
        """Return the one-inner-product form, or None where the kernel has none."""
        return None

    def columns_used(self) -> tuple[int, ...] | None:
        """Columns a bound kernel looks at, None for all: a view that samples may lack."""
        return None

    @property
    def is_view(self) -> bool:
        """Whether the kernel, bound or not, is limited to some columns."""
        return False

    @property
    def is_stored(self) -> bool:
        """Whether samples are row numbers of a stored matrix, which mean nothing by themselves."""
        return False

    def on(self, columns: Any) -> "View":
        """Return this kernel on some columns: names, positions, slice, mask or selector."""
        from lokl.kernels.composition import View

        return View(self, columns)

    def normalized(self, how: Normalization = "unit_diag") -> "Normalized":
        """Return this kernel with its scale fixed; factors are learned in training."""
        from lokl.kernels.normalization import Normalized

        return Normalized(self, how)

    def __add__(self, other: Any) -> "Sum":
        from lokl.kernels.composition import Sum

        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Any) -> "Product":
        from lokl.kernels.composition import Product

        return Product(self, other) if isinstance(other, Kernel) else NotImplemented
