"""The kernel protocol, the two forms in which kernels share work, and kernels made of kernels.

A kernel can be called like a function. A Gram matrix of many kernels first looks for a shared form:
a :class:`Term` (a formula of one inner product) or a :class:`Lookup` (rows of a stored matrix).
Kernels are made of kernels on some columns, by sums and products, and on a common scale.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np
from sklearn.base import BaseEstimator

from lokl._arrays import Array, absolute_norms, squared_norms
from lokl._parameters import check_choice, parameter_names
from lokl._warnings import warn_once
from lokl.kernels.columns import present_rows, resolve_columns, squares_vanish, take_columns

if TYPE_CHECKING:
    from lokl.kernels.dot import Formula

Normalization = Literal["none", "unit_diag", "mean_diag", "trace"]
# Metrics whose distances are squared distances of an inner product.
Metric = Literal["l2", "l1"]


@dataclass(frozen=True)
class Term:
    """A formula of one inner product, and the columns it applies to.

    ``k(x, z) = normalizer(x') normalizer(z') formula(<x', z'>, |x'|^2, |z'|^2)``, where ``x'`` is
    the sample x reduced to some columns, each multiplied by its scale. Kernels with the same
    columns, scales and metric share one matrix of inner products.

    Attributes
    ----------
    formula : Formula
    columns : tuple of int, optional
        Columns that the kernel uses; None for all.
    column_scale : tuple of float, optional
        Multiplier of each of these columns; None for 1.
    normalizer : callable, optional
        Returns one factor per reduced sample, (n_samples,); None for 1.
    metric : {"l2", "l1"}, default="l2"
        With "l1", the inner product is the one whose squared distances are L1 distances: half of
        ``|x|_1 + |z|_1 - |x - z|_1``, and L1 norms take the place of squared norms.
    """

    formula: "Formula"
    columns: tuple[int, ...] | None = None
    column_scale: tuple[float, ...] | None = None
    normalizer: Callable[[Any], Array] | None = None
    metric: Metric = "l2"

    @property
    def view(self) -> tuple[tuple[int, ...] | None, tuple[float, ...] | None, Metric]:
        """Columns, scales and metric: kernels for which they are equal share inner products."""
        return self.columns, self.column_scale, self.metric

    @property
    def is_rbf(self) -> bool:
        """Whether the kernel is a Gaussian of Euclidean distances."""
        return self.formula.operation == "gaussian" and self.metric == "l2"

    def reduced(self, X: Any) -> Any:
        """Return samples reduced to the columns, each times its scale."""
        return take_columns(X, self.columns, self.column_scale)


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

    See Also
    --------
    lokl.kernels.DotKernel : Base for kernels that are functions of inner products.
    lokl.kernels.Callable : A kernel from a function.
    lokl.kernels.per_view : One copy of a kernel for each view.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.kernels import RBF, Linear
    >>> kernel = Linear().normalized() + RBF(1.0).on([0])
    >>> kernel(np.array([[1.0, 0.0], [1.0, 1.0]])).round(3)
    array([[2.   , 1.707],
           [1.707, 2.   ]])
    """

    # Parameters that are kernels of which this kernel is made.
    _parts: ClassVar[tuple[str, ...]] = ()

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
        used = [getattr(self, part).columns_used() for part in self._parts]
        if not used or None in used:
            return None
        return used[0] if len(used) == 1 else tuple(sorted(set().union(*used)))

    @property
    def is_view(self) -> bool:
        """Whether the kernel, bound or not, is limited to some columns."""
        parts = [getattr(self, part) for part in self._parts]
        return bool(parts) and all(part.is_view for part in parts)

    @property
    def is_stored(self) -> bool:
        """Whether samples are row indices of a stored matrix and not features."""
        return any(getattr(self, part).is_stored for part in self._parts)

    def on(self, columns: Any) -> "View":
        """Return this kernel on some columns: names, positions, slice, mask or selector."""
        return View(self, columns)

    def normalized(self, how: Normalization = "unit_diag") -> "Normalized":
        """Return this kernel on a scale learned from training data; see :class:`Normalized`."""
        return Normalized(self, how)

    def __add__(self, other: Any) -> "Sum":
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Any) -> "Product":
        return Product(self, other) if isinstance(other, Kernel) else NotImplemented


class View(Kernel):
    """A kernel on some columns: one description of the samples among several.

    Parameters
    ----------
    kernel : Kernel
        Kernel on the selected columns.
    columns : str, int, slice, sequence of them, boolean mask or selector
        Names need a data frame. After :meth:`bind` these are positions.

    See Also
    --------
    lokl.kernels.per_view : One copy of a kernel for each view.
    lokl.kernels.per_feature : One copy of a kernel for each column.
    lokl.join_views : Tables joined by id, with their columns.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.kernels import Linear, View
    >>> View(Linear(), [0])(np.array([[1.0, 5.0], [2.0, 7.0]]))
    array([[1., 2.],
           [2., 4.]])
    >>> Linear().on([0])
    View(columns=[0], kernel=Linear())
    """

    _parts = ("kernel",)
    is_view = True

    def __init__(self, kernel: Kernel, columns: Any):
        self.kernel = kernel
        self.columns = columns

    def bind(self, X: Any, weight: Array | None = None, frame: Any = None) -> Kernel:
        positions = resolve_columns(self.columns, X if frame is None else frame)
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
        values = take_columns(X, resolve_columns(self.columns, X))
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
        Kernels to add; ``left + right`` makes the same object.

    See Also
    --------
    lokl.kernels.Product : Product of two kernels.
    lokl.UniformMKLClassifier : Average of several kernels.

    Examples
    --------
    >>> from lokl.kernels import RBF, Linear
    >>> (Linear() + RBF(1.0))([[1.0], [0.0]]).round(3)
    array([[2.   , 0.368],
           [0.368, 1.   ]])
    """

    _parts = ("left", "right")
    _sign = "+"
    _combine: Any = np.add

    def __init__(self, left: Kernel, right: Kernel):
        self.left = left
        self.right = right

    def bind(self, X: Any, weight: Array | None = None, frame: Any = None) -> Kernel:
        return type(self)(self.left.bind(X, weight, frame), self.right.bind(X, weight, frame))

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
        Kernels to multiply; ``left * right`` makes the same object.

    See Also
    --------
    lokl.kernels.Sum : Sum of two kernels.
    lokl.kernels.AnisotropicRBF : Product of one kernel for each column.

    Examples
    --------
    >>> from lokl.kernels import RBF, Linear
    >>> (Linear() * RBF(1.0))([[1.0], [2.0]]).round(3)
    array([[1.   , 0.736],
           [0.736, 4.   ]])
    """

    _sign = "*"
    _combine: Any = np.multiply


class Normalized(Kernel):
    """A kernel whose scale does not depend on the units of the features.

    Parameters
    ----------
    kernel : Kernel
        Kernel to normalise; ``kernel.normalized(how)`` makes the same object.
    how : {"unit_diag", "mean_diag", "trace", "none"}, default="unit_diag"
        "unit_diag" is ``k(x, z) / sqrt(k(x, x) k(z, z))``, 0 for a sample with ``k(x, x) = 0``;
        "mean_diag" divides by the mean of the training diagonal, "trace" by its sum.
        With "trace", values are of order ``1 / n``: raise `C` by the factor ``n``, or all
        coefficients reach their bound and the SVM predicts the majority class.
    scale : float, optional
        The learned factor of "mean_diag" and "trace"; set by :meth:`bind`.

    See Also
    --------
    lokl.kernels.Cosine : The linear kernel with unit diagonal.
    lokl.search.ColumnScaler : Scales columns instead of kernels.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.kernels import Polynomial
    >>> X = np.array([[1.0, 2.0], [0.0, 3.0]])
    >>> Polynomial(2).normalized()(X).round(3)
    array([[1.   , 0.817],
           [0.817, 1.   ]])
    >>> Polynomial(2).normalized("mean_diag").bind(X).diag(X).round(3)
    array([0.529, 1.471])
    """

    _parts = ("kernel",)

    def __init__(
        self, kernel: Kernel, how: Normalization = "unit_diag", scale: float | None = None
    ):
        self.kernel = kernel
        self.how = how
        self.scale = scale

    def bind(self, X: Any, weight: Array | None = None, frame: Any = None) -> Kernel:
        check_choice("how", self.how, get_args(Normalization))
        kernel = self.kernel.bind(X, weight, frame)
        if self.how in ("none", "unit_diag"):
            return Normalized(kernel, self.how)
        weight = np.ones(X.shape[0]) if weight is None else weight
        used, values = kernel.columns_used(), X
        if used is not None:
            values = take_columns(X, used)
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
        norms = squared_norms(X) if self.term.metric == "l2" else absolute_norms(X)
        return inner * inverse_root(self.term.formula(norms, norms, norms) * inner**2)


def inverse_root(diag: Array) -> Array:
    """Return ``1 / sqrt(diag)``, and 0 for entries that are not positive.

    Denormal numbers count as zero: their kernel values are rounded so far that they are no longer
    cosines, and the square of the root overflows.
    """
    diag = np.asarray(diag, dtype=float)
    counts = diag >= np.finfo(float).tiny
    return np.divide(1.0, np.sqrt(np.maximum(diag, 0.0)), out=np.zeros_like(diag), where=counts)
