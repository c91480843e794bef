"""The kernel protocol, and the two forms in which kernels share work.

A kernel can be called like a function. A Gram matrix of many kernels first looks for a shared form:
a :class:`Term` (a formula of one inner product) or a :class:`Lookup` (rows of a stored matrix).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sklearn.base import BaseEstimator

from lokl._arrays import Array
from lokl._parameters import parameter_names

if TYPE_CHECKING:
    from lokl.kernels.algebra import Normalized, Product, Sum, View
    from lokl.kernels.dot import Formula

Normalization = Literal["none", "unit_diag", "mean_diag", "trace"]


@dataclass(frozen=True)
class Term:
    """A formula of one inner product, and the columns it applies to.

    ``k(x, z) = normalizer(x') normalizer(z') formula(<x', z'>, |x'|^2, |z'|^2)``, where ``x'`` is
    the sample x reduced to some columns, each multiplied by its scale. Kernels with the same
    columns and scales share one matrix of inner products.

    Attributes
    ----------
    formula : Formula
    columns : tuple of int, optional
        Columns that the kernel uses; None for all.
    column_scale : tuple of float, optional
        Multiplier of each of these columns; None for 1.
    normalizer : callable, optional
        Returns one factor per reduced sample, (n_samples,); None for 1.
    """

    formula: "Formula"
    columns: tuple[int, ...] | None = None
    column_scale: tuple[float, ...] | None = None
    normalizer: Callable[[Any], Array] | None = None


@dataclass(frozen=True, eq=False)
class Lookup:
    """Samples as rows of a stored matrix: ``k(x, z) = f(x) f(z) matrix[row(x), row(z)]``.

    Attributes
    ----------
    matrix : array of shape (n_stored, n_stored)
    rows : array of int of shape (n_samples,)
    normalizers : array of shape (n_samples,)
        The factors ``f``.
    """

    matrix: Array
    rows: Array
    normalizers: Array


class Kernel(BaseEstimator, ABC):
    """A positive semidefinite similarity ``k(x, z)``.

    A kernel stores settings and learns nothing itself: :meth:`bind` returns a new kernel in which
    settings that depend on the data, such as ``gamma="scale"``, are numbers.
    """

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return parameter_names(cls)

    @abstractmethod
    def __call__(self, X: Any, Z: Any = None) -> Array:
        """Return kernel values of all pairs of rows, (n_samples_X, n_samples_Z).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples_X, n_features)
        Z : {array-like, sparse matrix} of shape (n_samples_Z, n_features), optional
            None is `X`.
        """

    @abstractmethod
    def diag(self, X: Any) -> Array:
        """Return the kernel value of every row of `X` with itself, (n_samples,)."""

    @property
    @abstractmethod
    def label(self) -> str:
        """Short name for tables, plots and ``kernel_names_``."""

    def bind(self, X: Any, weight: Array | None = None, frame: Any = None) -> "Kernel":
        """Return this kernel with data-dependent settings replaced by numbers.

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
        """Return the form that shares inner products, or None if the kernel has none."""
        return None

    def lookup(self, X: Any) -> Lookup | None:
        """Return the stored values of a bound kernel for samples, or None if it stores none."""
        return None

    def columns_used(self) -> tuple[int, ...] | None:
        """Return the positions of the columns that a bound kernel uses, None for all.

        A sample may lack all of them, which is a missing view.
        """
        return None

    @property
    def is_view(self) -> bool:
        """Whether the kernel, bound or not, is limited to some columns."""
        return False

    @property
    def is_stored(self) -> bool:
        """Whether samples are row indices of a stored matrix and not features."""
        return False

    def on(self, columns: Any) -> "View":
        """Return this kernel on some columns: names, positions, slice, mask or selector."""
        from lokl.kernels.algebra import View

        return View(self, columns)

    def normalized(self, how: Normalization = "unit_diag") -> "Normalized":
        """Return this kernel on a scale learned from training data; see :class:`Normalized`."""
        from lokl.kernels.algebra import Normalized

        return Normalized(self, how)

    def __add__(self, other: Any) -> "Sum":
        from lokl.kernels.algebra import Sum

        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Any) -> "Product":
        from lokl.kernels.algebra import Product

        return Product(self, other) if isinstance(other, Kernel) else NotImplemented
