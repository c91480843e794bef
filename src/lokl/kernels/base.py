"""What every kernel can do, and how kernels of one inner product say what they make of it."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import BaseEstimator

from lokl._arrays import Array
from lokl._parameters import parameter_names

if TYPE_CHECKING:
    from lokl.kernels.algebra import Normalized, Product, Sum, View

Normalization = Literal["none", "unit_diag", "mean_diag", "trace"]

# What is done with an inner product, as numbers, because compiled loops branch on them
# (lokl.gram._mixing has the same list). SQUARE is for lists of Gaussians: where gamma is twice that
# of the kernel before, squaring its values is cheaper than another exponential. No kernel asks for
# it; the plan of a Gram matrix puts it in where it applies.
LINEAR, POLYNOMIAL, GAUSSIAN, TANH, SQUARE = range(5)


@dataclass(frozen=True)
class Formula:
    """What a kernel makes of the inner product ``p = <x, z>`` and the squared norms of x and z.

    Most time goes into inner products: a Gram matrix computes them once and applies the formulas
    of all kernels to them. LINEAR is ``p``, POLYNOMIAL ``(gamma p + coef0) ** degree``, GAUSSIAN
    ``exp(-gamma (|x|^2 + |z|^2 - 2 p))`` and TANH ``tanh(gamma p + coef0)``.
    """

    operation: int  # LINEAR, POLYNOMIAL, GAUSSIAN or TANH of this module
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
    """A formula and where it applies: ``k(x, z) = factor(x') factor(z') formula(x', z')``.

    Here ``x'`` is the sample x reduced to some columns, each multiplied by its stretch. Kernels
    with the same columns and stretch share one matrix of inner products.
    """

    formula: Formula
    columns: tuple[int, ...] | None = None  # that the kernel looks at; None for all
    stretch: tuple[float, ...] | None = None  # a multiplier for each column; None for 1
    factor: Callable[[Any], Array] | None = None  # one number a sample, a normalisation; None for 1


@dataclass(frozen=True, eq=False)
class Lookup:
    """Samples of a stored matrix: ``k(x, z) = factor(x) factor(z) matrix[row(x), row(z)]``."""

    matrix: Array  # (n_all, n_all)
    rows: Array  # (n_samples,), of int
    factors: Array  # (n_samples,)


class Kernel(BaseEstimator, ABC):
    """A positive semidefinite similarity ``k(x, z)``.

    A kernel holds settings and learns nothing itself: :meth:`bind` returns a new kernel in which
    settings that depend on the data, such as ``gamma="scale"``, are numbers.
    """

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return parameter_names(cls)

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
        """Return the form that shares inner products, or None where the kernel has none."""
        return None

    def lookup(self, X: Any) -> Lookup | None:
        """Where the values of a bound kernel are stored, or None where they are not."""
        return None

    def columns_used(self) -> tuple[int, ...] | None:
        """Columns that a bound kernel looks at, None for all; a sample may lack all of them."""
        return None

    @property
    def is_view(self) -> bool:
        """Whether the kernel, bound or not, is limited to some columns."""
        return False

    @property
    def is_stored(self) -> bool:
        """Whether samples are row numbers of a stored matrix, so that their values say nothing."""
        return False

    def on(self, columns: Any) -> "View":
        """Return this kernel on some columns: names, positions, slice, mask or selector."""
        from lokl.kernels.algebra import View

        return View(self, columns)

    def normalized(self, how: Normalization = "unit_diag") -> "Normalized":
        """Return this kernel on a scale that training data fix; see :class:`Normalized`."""
        from lokl.kernels.algebra import Normalized

        return Normalized(self, how)

    def __add__(self, other: Any) -> "Sum":
        from lokl.kernels.algebra import Sum

        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Any) -> "Product":
        from lokl.kernels.algebra import Product

        return Product(self, other) if isinstance(other, Kernel) else NotImplemented
