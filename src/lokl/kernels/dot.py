"""Kernels with a formula, most of them of one inner product: linear, polynomial, RBF, sigmoid.

Most time goes into inner products. A Gram matrix computes them once for all kernels of the same
columns and applies the :class:`Formula` of each kernel to them. L1 distances are squared distances
of an inner product of their own, which Laplacian kernels share. The chi-squared kernel is a formula
of another distance.
"""

from abc import abstractmethod
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from sklearn.metrics.pairwise import (
    chi2_kernel,
    euclidean_distances,
    laplacian_kernel,
    manhattan_distances,
)
from sklearn.utils.extmath import safe_sparse_dot

from lokl._arrays import (
    Array,
    as_dense,
    as_samples,
    evenly_spaced,
    is_sparse,
    squared_norms,
    weighted_quantile,
)
from lokl._compiled import CompiledModule
from lokl._parameters import check_not_negative, check_positive
from lokl._threads import run_chunked
from lokl.kernels.base import Kernel, Normalized, Term

_additive = CompiledModule("lokl.kernels._additive")

# Operations on an inner product. The compiled loops in lokl.gram._mixing have a branch and a number
# for each of them; kernels of a Gram matrix are computed in this order.
Operation = Literal["linear", "polynomial", "gaussian", "tanh", "matern"]
OPERATIONS: tuple[Operation, ...] = get_args(Operation)

# Rows among which a median distance is computed; all pairs of them are.
_MEDIAN_ROWS = 1000
# For L1 distances, which have no matrix product.
_MEDIAN_L1_ROWS = 500
# Exponents up to which the products of two exponentials keep all digits; rows of a block that are
# worth a thread of their own.
_LARGEST_POWER, _ADDED_ROWS = 300.0, 16
# Squared distances below this share of the largest squared norm are rounding.
_ROUNDING = 1e-13


@dataclass(frozen=True)
class Formula:
    """A kernel value from ``p = <x, z>`` and the squared norms of x and z.

    Attributes
    ----------
    operation : {"linear", "polynomial", "gaussian", "tanh", "matern"}
        ``p``, ``(gamma p + coef0) ** degree``, ``exp(-gamma (|x|^2 + |z|^2 - 2 p))``,
        ``tanh(gamma p + coef0)``, or the Matern kernel of the distance times `gamma`, with
        ``nu = degree + 1/2`` for degrees 0, 1 and 2.
    gamma, coef0 : float
    degree : int
    """

    operation: Operation
    gamma: float = 1.0
    coef0: float = 0.0
    degree: int = 1

    def __call__(self, dot: Array, left: Array, right: Array) -> Array:
        """Return kernel values from inner products and the squared norms of both sides.

        The three arrays have the same shape or broadcast to it.
        """
        if self.operation == "linear":
            return dot
        if self.operation == "polynomial":
            return np.asarray((self.gamma * dot + self.coef0) ** self.degree)
        if self.operation == "gaussian":
            # Rounding can push a squared distance below zero, a kernel value above one.
            return np.asarray(np.exp(-self.gamma * np.maximum(left + right - 2.0 * dot, 0.0)))
        if self.operation == "matern":
            squared = np.maximum(left + right - 2.0 * dot, 0.0)
            t = np.sqrt(2.0 * self.degree + 1.0) * self.gamma * np.sqrt(squared)
            linear, square = float(self.degree > 0), float(self.degree > 1) / 3.0
            return np.asarray((1.0 + t * (linear + square * t)) * np.exp(-t))
        return np.asarray(np.tanh(self.gamma * dot + self.coef0))


class DotKernel(Kernel):
    """A kernel that is a function of ``<x, z>``, ``|x|^2`` and ``|z|^2``; a base for new kernels.

    Kernels of this kind share their inner products, so many cost little more than one. A subclass
    provides a `label` and :meth:`formula`. ``Formula`` is imported from ``lokl.kernels.dot``.

    See Also
    --------
    lokl.kernels.Kernel : Base of kernels that share nothing.
    lokl.kernels.Callable : Any function of two blocks of samples.

    Examples
    --------
    A polynomial of products of two features, without single features and the constant:

    >>> from lokl.kernels import DotKernel
    >>> from lokl.kernels.dot import Formula
    >>> class Pairs(DotKernel):
    ...     label = "pairs"
    ...
    ...     def __init__(self, gamma=1.0):
    ...         self.gamma = gamma
    ...
    ...     def formula(self):
    ...         return Formula("polynomial", self.gamma, coef0=0.0, degree=2)
    >>> Pairs(0.5)([[1.0, 1.0], [2.0, 0.0]])
    array([[1., 1.],
           [1., 4.]])
    """

    @abstractmethod
    def formula(self) -> Formula:
        """Return the formula of the kernel; settings are checked here."""

    def term(self) -> Term:
        return Term(self.formula())

    def __call__(self, X: Any, Z: Any = None) -> Array:
        term = self.term()
        X = term.reduced(as_samples(X))
        Z = X if Z is None else term.reduced(as_samples(Z))
        dot = safe_sparse_dot(X, Z.T, dense_output=True)
        return term.formula(dot, squared_norms(X)[:, np.newaxis], squared_norms(Z))

    def diag(self, X: Any) -> Array:
        term = self.term()
        norms = squared_norms(term.reduced(as_samples(X)))
        return term.formula(norms, norms, norms)


class GammaKernel(DotKernel):
    """Base of kernels whose `gamma` is a number or a word for a value learned from data."""

    gamma: Any
    gamma_words: ClassVar[tuple[str, ...]] = ("scale", "auto")

    def bind(self, X: Any, weight: Array | None = None, frame: Any = None) -> Kernel:
        if not isinstance(self.gamma, str):
            self.formula()
            return self
        learned = _learned_gamma(self.gamma, X, weight, self.gamma_words)
        return type(self)(**{**self.get_params(deep=False), "gamma": learned})

    def bound_gamma(self) -> float:
        """Return gamma as a number; raise ValueError if it still depends on training data."""
        return _number(type(self).__name__, self.gamma)


class Linear(DotKernel):
    """Inner product: ``k(x, z) = <x, z>``.

    See Also
    --------
    lokl.kernels.Polynomial : Products of features.
    lokl.kernels.RBF : Gaussian of the Euclidean distance.
    lokl.kernels.Cosine : Inner product of normalised samples.
    lokl.explain.feature_weights : Weights of columns in models of linear kernels.

    Examples
    --------
    >>> from lokl.kernels import Linear
    >>> Linear()([[1.0, 2.0], [0.0, 3.0]])
    array([[5., 6.],
           [6., 9.]])
    """

    label = "linear"

    def formula(self) -> Formula:
        return Formula("linear")


class Polynomial(GammaKernel):
    """Products of up to `degree` features: ``k(x, z) = (gamma <x, z> + coef0) ** degree``.

    Parameters
    ----------
    degree : int, default=2
        Largest number of features in a product.
    gamma : float, "scale" or "auto", default=1.0
        "scale" is ``1 / (n_features * X.var())`` and "auto" ``1 / n_features``, as in scikit-learn.
    coef0 : float, default=1.0
        Non-negative; 0 keeps only products of exactly `degree` features.

    See Also
    --------
    lokl.kernels.Linear : Inner product.
    lokl.kernels.RBF : Gaussian of the Euclidean distance.
    sklearn.metrics.pairwise.polynomial_kernel : The same function in scikit-learn.

    Examples
    --------
    >>> from lokl.kernels import Polynomial
    >>> Polynomial(degree=2)([[1.0, 2.0], [0.0, 3.0]])
    array([[ 36.,  49.],
           [ 49., 100.]])
    """

    def __init__(self, degree: int = 2, gamma: Any = 1.0, coef0: float = 1.0):
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0

    def formula(self) -> Formula:
        if not isinstance(self.degree, Integral) or self.degree < 1:
            raise ValueError(f"degree must be a positive integer, got {self.degree!r}")
        coef0 = check_not_negative("coef0", self.coef0)
        return Formula("polynomial", self.bound_gamma(), coef0, int(self.degree))

    @property
    def label(self) -> str:
        return f"poly{self.degree}"


class RBF(GammaKernel):
    """Gaussian of the distance: ``k(x, z) = exp(-gamma |x - z|^2)``.

    Parameters
    ----------
    gamma : float, "scale", "auto" or "median", default="scale"
        "scale" is ``1 / (n_features * X.var())`` and "auto" ``1 / n_features`` as in scikit-learn,
        of the columns that the kernel uses; "median" is the reciprocal of the median squared
        distance between training samples (of at most 1000 of them).

    See Also
    --------
    lokl.kernels.Laplacian : Exponential of the L1 distance.
    lokl.kernels.AnisotropicRBF : A width for each column.
    lokl.kernels.Matern : Less smooth functions of the distance.
    lokl.kernels.rbf_ladder : RBF kernels of several widths.

    Examples
    --------
    >>> from lokl.kernels import RBF
    >>> RBF(0.5)([[0.0, 0.0], [1.0, 1.0]]).round(3)
    array([[1.   , 0.368],
           [0.368, 1.   ]])
    >>> RBF("median").bind([[0.0, 0.0], [1.0, 1.0]])
    RBF(gamma=1.0)
    """

    gamma_words = ("scale", "auto", "median")

    def __init__(self, gamma: Any = "scale"):
        self.gamma = gamma

    def formula(self) -> Formula:
        return Formula("gaussian", self.bound_gamma())

    @property
    def label(self) -> str:
        return f"rbf({self.gamma:.3g})" if isinstance(self.gamma, Real) else "rbf"


class Matern(GammaKernel):
    """Function of the distance that is not as smooth as a Gaussian.

    With ``t = sqrt(2 nu) gamma |x - z|``: ``exp(-t)`` for ``nu=0.5``, the Laplacian of Euclidean
    distances; ``(1 + t) exp(-t)`` for ``nu=1.5``; and ``(1 + t + t^2 / 3) exp(-t)`` for ``nu=2.5``.

    Parameters
    ----------
    nu : {0.5, 1.5, 2.5}, default=0.5
        Smoothness. With 0.5, Gram matrices are in double precision unless float32 is asked for.
    gamma : float, "scale", "auto" or "median", default="scale"
        The words mean the square roots of what they mean for :class:`RBF`.

    See Also
    --------
    lokl.kernels.RBF : Gaussian of the Euclidean distance.
    lokl.kernels.Laplacian : Exponential of the L1 distance.
    lokl.kernels.GaussianProcess : Any kernel of scikit-learn's Gaussian processes.

    Examples
    --------
    >>> from lokl.kernels import Matern
    >>> Matern(nu=1.5, gamma=1.0)([[0.0], [1.0]]).round(3)
    array([[1.   , 0.483],
           [0.483, 1.   ]])
    """

    gamma_words = ("scale", "auto", "median")

    def __init__(self, nu: float = 0.5, gamma: Any = "scale"):
        self.nu = nu
        self.gamma = gamma

    def formula(self) -> Formula:
        if self.nu not in (0.5, 1.5, 2.5):
            raise ValueError(f"nu must be 0.5, 1.5 or 2.5, got {self.nu!r}")
        return Formula("matern", self.bound_gamma(), degree=int(self.nu))

    def bind(self, X: Any, weight: Array | None = None, frame: Any = None) -> Kernel:
        bound = super().bind(X, weight, frame)
        if bound is not self:
            bound = Matern(self.nu, float(np.sqrt(bound.gamma)))
            bound.formula()
        return bound

    def __call__(self, X: Any, Z: Any = None) -> Array:
        formula = self.formula()
        Z = None if Z is None else as_samples(Z)
        squared = euclidean_distances(as_samples(X), Z, squared=True)
        return formula(np.zeros_like(squared), squared, np.zeros(1))

    @property
    def label(self) -> str:
        number = f", {self.gamma:.3g}" if isinstance(self.gamma, Real) else ""
        return f"matern({self.nu}{number})"


class Sigmoid(GammaKernel):
    """Hyperbolic tangent: ``k(x, z) = tanh(gamma <x, z> + coef0)``.

    Not positive semidefinite in general; solvers warn and still terminate.

    Parameters
    ----------
    gamma : float, "scale" or "auto", default=1.0
        "scale" is ``1 / (n_features * X.var())`` and "auto" ``1 / n_features``, as in scikit-learn.
    coef0 : float, default=0.0
        Constant term.

    See Also
    --------
    lokl.kernels.Polynomial : Products of features.
    lokl.kernels.RBF : Gaussian of the Euclidean distance.

    Examples
    --------
    >>> from lokl.kernels import Sigmoid
    >>> Sigmoid(gamma=0.5)([[1.0, 0.0], [1.0, 1.0]]).round(3)
    array([[0.462, 0.462],
           [0.462, 0.762]])
    """

    label = "sigmoid"

    def __init__(self, gamma: Any = 1.0, coef0: float = 0.0):
        self.gamma = gamma
        self.coef0 = coef0

    def formula(self) -> Formula:
        if not isinstance(self.coef0, Real) or not np.isfinite(self.coef0):
            raise ValueError(f"coef0 must be finite, got {self.coef0!r}")
        return Formula("tanh", self.bound_gamma(), float(self.coef0))


class AnisotropicRBF(DotKernel):
    """Gaussian with a width for each column: ``k(x, z) = exp(-sum_c gammas_c (x_c - z_c)^2)``.

    It is the product of one-column RBF kernels; a column of gamma 0 has no effect.

    Parameters
    ----------
    gammas : array-like of shape (n_features,)
        Non-negative factor of the squared difference in each column.

    See Also
    --------
    lokl.kernels.RBF : Gaussian of the Euclidean distance.
    lokl.GMKLClassifier : Learns the widths, with ``combine="product"``.

    Examples
    --------
    >>> from lokl.kernels import AnisotropicRBF
    >>> AnisotropicRBF([0.5, 0.0])([[0.0, 0.0], [1.0, 9.0]]).round(3)
    array([[1.   , 0.607],
           [0.607, 1.   ]])
    """

    label = "anisotropic rbf"

    def __init__(self, gammas: Any):
        self.gammas = gammas

    def bind(self, X: Any, weight: Array | None = None, frame: Any = None) -> Kernel:
        count = len(self._column_scale())
        if count != X.shape[1]:
            raise ValueError(f"AnisotropicRBF has {count} gammas, the data {X.shape[1]} columns")
        return self

    def formula(self) -> Formula:
        return Formula("gaussian")

    def term(self) -> Term:
        return Term(self.formula(), column_scale=self._column_scale())

    def _column_scale(self) -> tuple[float, ...]:
        gammas = np.asarray(self.gammas, dtype=float)
        if gammas.ndim != 1 or not np.isfinite(gammas).all() or (gammas < 0).any():
            raise ValueError(
                f"gammas must be finite numbers >= 0, one per column, got {self.gammas!r}"
            )
        return tuple(np.sqrt(gammas).tolist())


class Cosine(Normalized):
    """Cosine of the angle: ``k(x, z) = <x, z> / (|x| |z|)``, 0 if a sample is the zero vector.

    See Also
    --------
    lokl.kernels.Linear : Inner product.
    lokl.kernels.Normalized : A kernel on a scale that does not depend on units.

    Examples
    --------
    >>> from lokl.kernels import Cosine
    >>> Cosine()([[1.0, 0.0], [2.0, 2.0]]).round(3)
    array([[1.   , 0.707],
           [0.707, 1.   ]])
    """

    label = "cosine"

    def __init__(self) -> None:
        super().__init__(Linear())

    def bind(self, X: Any, weight: Array | None = None, frame: Any = None) -> Kernel:
        return self


class Laplacian(Kernel):
    """Exponential of the L1 distance: ``k(x, z) = exp(-gamma sum_c |x_c - z_c|)``.

    It suits columns on different scales, outliers and columns of noise better than the RBF kernel,
    because a few columns do not dominate the distance.

    Parameters
    ----------
    gamma : float, "scale", "median" or None, default=None
        None is ``1 / n_features``, of the columns that the kernel uses; "scale" is the reciprocal
        of the sum of the columns' standard deviations; "median" is the reciprocal of the median L1
        distance between training samples (of at most 500 of them).

    See Also
    --------
    lokl.kernels.RBF : Gaussian of the Euclidean distance.
    lokl.kernels.AdditiveLaplacian : Sum over columns instead of a product.

    Examples
    --------
    >>> from lokl.kernels import Laplacian
    >>> Laplacian()([[0.0, 0.0], [1.0, 1.0]]).round(3)
    array([[1.   , 0.368],
           [0.368, 1.   ]])
    """

    def __init__(self, gamma: Any = None):
        self.gamma = gamma

    def bind(self, X: Any, weight: Array | None = None, frame: Any = None) -> Kernel:
        if self.gamma is None:
            return Laplacian(1.0 / max(X.shape[1], 1))
        if isinstance(self.gamma, str):
            return Laplacian(_learned_l1_gamma(self.gamma, X, weight))
        check_positive("gamma", self.gamma)
        return self

    def term(self) -> Term | None:
        if self.gamma is None:
            return None
        return Term(Formula("gaussian", _number("Laplacian", self.gamma)), metric="l1")

    def __call__(self, X: Any, Z: Any = None) -> Array:
        X = as_samples(X)
        gamma = None if self.gamma is None else _number("Laplacian", self.gamma)
        return np.asarray(laplacian_kernel(X, None if Z is None else as_samples(Z), gamma=gamma))

    def diag(self, X: Any) -> Array:
        return np.ones(X.shape[0])

    @property
    def label(self) -> str:
        return f"laplacian({self.gamma:.3g})" if isinstance(self.gamma, Real) else "laplacian"


class AdditiveLaplacian(Kernel):
    """Mean of one Laplacian for each column: ``k(x, z) = sum_c exp(-gamma |x_c - z_c|) / d``.

    Functions of it are sums of functions of single columns. It is not shared between kernels: each
    is computed block by block.

    Parameters
    ----------
    gamma : float, "scale" or "median", default="scale"
        "scale" is the reciprocal of the mean of the columns' standard deviations, "median" the
        reciprocal of the median mean absolute difference of training samples (at most 500 of them).

    See Also
    --------
    lokl.kernels.Laplacian : Exponential of the L1 distance.
    lokl.search.AutoMKLClassifier : Tries it among other kernels.

    Examples
    --------
    >>> from lokl.kernels import AdditiveLaplacian
    >>> AdditiveLaplacian(1.0)([[0.0, 0.0], [0.0, 9.0]]).round(3)
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    def __init__(self, gamma: Any = "scale"):
        self.gamma = gamma

    def bind(self, X: Any, weight: Array | None = None, frame: Any = None) -> Kernel:
        if isinstance(self.gamma, str):
            return AdditiveLaplacian(_learned_l1_gamma(self.gamma, X, weight, X.shape[1]))
        check_positive("gamma", self.gamma)
        return self

    def __call__(self, X: Any, Z: Any = None) -> Array:
        gamma = _number("AdditiveLaplacian", self.gamma)
        left = gamma * as_dense(as_samples(X))
        right = left if Z is None else gamma * as_dense(as_samples(Z))
        values = np.zeros((len(left), len(right)))
        if not values.size:
            return values
        least = np.minimum(left.min(axis=0), right.min(axis=0))
        most = np.maximum(left.max(axis=0), right.max(axis=0))
        # exp(-|s - t|) is the smaller of exp(s) exp(-t) and exp(-s) exp(t), unless they overflow.
        middle, wide = 0.5 * least + 0.5 * most, 0.5 * most - 0.5 * least > _LARGEST_POWER
        near, far = (left - middle)[:, ~wide], (right - middle)[:, ~wide].T
        factors = np.stack([np.exp(near), np.exp(-near)]), np.stack([np.exp(-far), np.exp(far)])
        run_chunked(_additive.add_minima, len(left), _ADDED_ROWS, *factors, values)
        for c in np.flatnonzero(wide):
            values += np.exp(-np.abs(left[:, [c]] - right[:, c]))
        return values / left.shape[1]

    def diag(self, X: Any) -> Array:
        return np.ones(X.shape[0])

    @property
    def label(self) -> str:
        number = f"({self.gamma:.3g})" if isinstance(self.gamma, Real) else ""
        return f"additive laplacian{number}"


class Chi2(Kernel):
    """Similarity of histograms: ``k(x, z) = exp(-gamma sum_f (x_f - z_f)^2 / (x_f + z_f))``.

    Parameters
    ----------
    gamma : float, default=1.0
        Features must not be negative.

    See Also
    --------
    lokl.kernels.Laplacian : Exponential of the L1 distance.
    sklearn.metrics.pairwise.chi2_kernel : The same function in scikit-learn.

    Examples
    --------
    >>> from lokl.kernels import Chi2
    >>> Chi2()([[1.0, 0.0], [0.5, 0.5]]).round(3)
    array([[1.   , 0.513],
           [0.513, 1.   ]])
    """

    label = "chi2"

    def __init__(self, gamma: float = 1.0):
        self.gamma = gamma

    def bind(self, X: Any, weight: Array | None = None, frame: Any = None) -> Kernel:
        check_positive("gamma", self.gamma)
        _histograms(X)
        return self

    def __call__(self, X: Any, Z: Any = None) -> Array:
        left = _histograms(X)
        right = None if Z is None else _histograms(Z)
        return np.asarray(chi2_kernel(left, right, gamma=self.gamma))

    def diag(self, X: Any) -> Array:
        return np.ones(X.shape[0])


def _number(kernel: str, gamma: Any) -> float:
    """Return gamma as a number; raise ValueError if it still depends on training data."""
    if isinstance(gamma, str):
        raise ValueError(
            f"{kernel}(gamma={gamma!r}) depends on training data; call bind(X) first or give a "
            "number"
        )
    return check_positive("gamma", gamma)


def _learned_l1_gamma(word: str, X: Any, weight: Array | None, parts: int = 1) -> float:
    """Return the gamma that a word means on training samples, for L1 distances over `parts`."""
    X = as_samples(X)
    if word == "scale":
        spread = _total_deviation(X, weight)
    elif word == "median":
        spread = median_absolute_distance(X, weight)
    else:
        raise ValueError(f"gamma must be a number, 'scale' or 'median', got {word!r}")
    return max(parts / spread, np.finfo(float).tiny) if spread > 0 else 1.0


def _histograms(X: Any) -> Array:
    """Return samples as an array; raise ValueError if a value is negative."""
    # scikit-learn's compiled loop rejects read-only arrays.
    X = np.require(as_dense(as_samples(X)), requirements="W")
    lowest = float(X.min(initial=0.0))
    if lowest < 0:
        raise ValueError(
            f"Chi2 compares histograms: features must not be negative, got {lowest:.6g}; "
            "shift the features or choose another kernel"
        )
    return X


def _learned_gamma(word: str, X: Any, weight: Array | None, words: tuple[str, ...]) -> float:
    """Return the gamma that a word means on training samples."""
    if word not in words:
        allowed = " or ".join(map(repr, words))
        raise ValueError(f"gamma must be a number, {allowed}, got {word!r}")
    X = as_samples(X)
    if word == "auto":
        return 1.0 / max(X.shape[1], 1)
    spread = _total_variance(X, weight) if word == "scale" else median_squared_distance(X, weight)
    # If samples do not differ, gamma is 1, as in scikit-learn. Samples whose squares overflow are
    # rejected where samples are checked, with the index of the sample.
    return max(1.0 / spread, np.finfo(float).tiny) if spread > 0 else 1.0


def _total_variance(X: Any, weight: Array | None) -> float:
    """Return the number of features times the (weighted) variance of all entries."""
    n, d = X.shape
    if n == 0:
        return 0.0
    weight = np.ones(n) if weight is None else weight
    total = weight.sum() * d
    mean = float(weight @ np.asarray(X.sum(axis=1)).ravel()) / total
    # Two passes: E[x^2] - E[x]^2 loses all digits if the mean is far from zero.
    if is_sparse(X):
        squared = X.copy()
        squared.data = (X.data - mean) ** 2
        n_zeros = d - np.diff(X.indptr)
        squares = np.asarray(squared.sum(axis=1)).ravel() + mean**2 * n_zeros
    else:
        squares = ((X - mean) ** 2).sum(axis=1)
    variance = float(weight @ squares) / total
    # Equal entries whose mean was rounded have no variance.
    return d * variance if variance > (8 * np.finfo(float).eps * mean) ** 2 * n else 0.0


def _total_deviation(X: Any, weight: Array | None) -> float:
    """Return the sum of the (weighted) standard deviations of the columns."""
    n = X.shape[0]
    if n == 0:
        return 0.0
    weight = np.ones(n) if weight is None else weight
    total = weight.sum()
    mean = np.asarray(X.T @ weight) / total
    # Two passes, as for the variance.
    if is_sparse(X):
        squared, stored = X.copy(), X.copy()
        squared.data, stored.data = (X.data - mean[X.indices]) ** 2, np.ones(len(X.data))
        squares = squared.T @ weight + mean**2 * (total - stored.T @ weight)
    else:
        squares = weight @ (X - mean) ** 2
    deviations = np.sqrt(np.maximum(squares, 0.0) / total)
    rounding = 8 * np.finfo(float).eps * np.sqrt(n) * np.abs(mean)
    return float(deviations[deviations > rounding].sum())


def median_squared_distance(
    X: Any, weight: Array | None = None, max_rows: int = _MEDIAN_ROWS
) -> float:
    """Return the weighted median of the squared distances of all pairs of rows.

    Parameters
    ----------
    X : {array, CSR matrix} of shape (n_samples, n_features)
    weight : array of shape (n_samples,), optional
        A weight of 2 counts like the row written twice.
    max_rows : int, default=1000
        Evenly spaced rows that are used at most.

    Returns
    -------
    distance : float
        0 if the median pair is equal up to rounding, or without samples.
    """
    if X.shape[0] == 0:
        return 0.0
    X, weight = _some_rows(X, weight, max_rows)
    distance = euclidean_distances(X, squared=True).ravel()
    # Equal rows far from zero are a rounding error apart.
    distance[distance <= _ROUNDING * float(squared_norms(X).max())] = 0.0
    return weighted_quantile(distance, np.outer(weight, weight).ravel(), 0.5)


def median_absolute_distance(
    X: Any, weight: Array | None = None, max_rows: int = _MEDIAN_L1_ROWS
) -> float:
    """Return the weighted median of the L1 distances of all pairs of rows.

    Parameters and result are as in :func:`median_squared_distance`.
    """
    if X.shape[0] == 0:
        return 0.0
    X, weight = _some_rows(X, weight, max_rows)
    distance = manhattan_distances(X).ravel()
    return weighted_quantile(distance, np.outer(weight, weight).ravel(), 0.5)


def _some_rows(X: Any, weight: Array | None, most: int) -> tuple[Any, Array]:
    """Return at most `most` evenly spaced rows and their weights."""
    weight = np.ones(X.shape[0]) if weight is None else np.asarray(weight, dtype=float)
    if X.shape[0] <= most:
        return X, weight
    rows = evenly_spaced(X.shape[0], most)
    return X[rows], weight[rows]
