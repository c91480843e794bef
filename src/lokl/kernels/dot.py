"""Kernels that are functions of one inner product: linear, polynomial, RBF, cosine, sigmoid."""

from abc import abstractmethod
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.extmath import safe_sparse_dot

from lokl._arrays import Array, as_samples, is_sparse, squared_norms
from lokl._parameters import check_not_negative, check_positive
from lokl.kernels.base import GAUSSIAN, LINEAR, POLYNOMIAL, TANH, Formula, Kernel, Term
from lokl.kernels.columns import stretched

_MEDIAN_ROWS = 1000


class DotKernel(Kernel):
    """A kernel that is a function of ``<x, z>``, ``|x|^2`` and ``|z|^2``; the base of one's own.

    Kernels of this kind share their inner products, so that many cost little more than one. A
    subclass gives a `label` and :meth:`formula`, which returns a ``Formula``. That one and its
    operations are imported from ``lokl.kernels.base``.

    Examples
    --------
    A polynomial of products of two features, without single features and the constant:

    >>> from lokl.kernels import DotKernel
    >>> from lokl.kernels.base import POLYNOMIAL, Formula
    >>> class Pairs(DotKernel):
    ...     label = "pairs"
    ...
    ...     def __init__(self, gamma=1.0):
    ...         self.gamma = gamma
    ...
    ...     def formula(self):
    ...         return Formula(POLYNOMIAL, self.gamma, coef0=0.0, degree=2)
    >>> Pairs(0.5)([[1.0, 1.0], [2.0, 0.0]])
    array([[1., 1.],
           [1., 4.]])
    """

    @abstractmethod
    def formula(self) -> Formula:
        """Return what the kernel makes of an inner product; settings are checked here."""

    def term(self) -> Term | None:
        return Term(self.formula())

    def __call__(self, X: Any, Z: Any = None) -> Array:
        X = as_samples(X)
        Z = X if Z is None else as_samples(Z)
        dot = safe_sparse_dot(X, Z.T, dense_output=True)
        left = squared_norms(X)[:, np.newaxis]
        right = squared_norms(Z)[np.newaxis, :]
        return self.formula()(dot, left, right)

    def diag(self, X: Any) -> Array:
        norms = squared_norms(as_samples(X))
        return self.formula()(norms, norms, norms)


class Linear(DotKernel):
    """Inner product: ``k(x, z) = <x, z>``."""

    label = "linear"

    def formula(self) -> Formula:
        return Formula(LINEAR)


class Polynomial(DotKernel):
    """Products of up to `degree` features: ``k(x, z) = (gamma <x, z> + coef0) ** degree``.

    Parameters
    ----------
    degree : int, default=2
    gamma : float, "scale" or "auto", default=1.0
        "scale" is ``1 / (n_features * X.var())`` and "auto" ``1 / n_features``, as in scikit-learn.
    coef0 : float, default=1.0
        Non-negative; 0 keeps only products of exactly `degree` features.
    """

    def __init__(self, degree: int = 2, gamma: Any = 1.0, coef0: float = 1.0):
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0

    def bind(self, X: Any, weight: Array | None = None, frame: Any = None) -> Kernel:
        if not isinstance(self.gamma, str):
            return self
        return Polynomial(
            self.degree, _learned_gamma(self.gamma, X, weight, "scale", "auto"), self.coef0
        )

    def formula(self) -> Formula:
        if not isinstance(self.degree, Integral) or self.degree < 1:
            raise ValueError(f"degree must be a positive integer, got {self.degree!r}")
        coef0 = check_not_negative("coef0", self.coef0)
        return Formula(POLYNOMIAL, _known_gamma(self), coef0, int(self.degree))

    @property
    def label(self) -> str:
        return f"poly{self.degree}"


class RBF(DotKernel):
    """Closeness: ``k(x, z) = exp(-gamma |x - z|^2)``.

    Parameters
    ----------
    gamma : float, "scale", "auto" or "median", default="scale"
        "scale" is ``1 / (n_features * X.var())`` and "auto" ``1 / n_features`` as in scikit-learn,
        of the columns that the kernel reads; "median" is the reciprocal of the median squared
        distance between training samples (of at most 1000 of them).
    """

    def __init__(self, gamma: Any = "scale"):
        self.gamma = gamma

    def bind(self, X: Any, weight: Array | None = None, frame: Any = None) -> Kernel:
        if not isinstance(self.gamma, str):
            self.formula()
            return self
        return RBF(_learned_gamma(self.gamma, X, weight, "scale", "auto", "median"))

    def formula(self) -> Formula:
        return Formula(GAUSSIAN, _known_gamma(self))

    @property
    def label(self) -> str:
        return f"rbf({self.gamma:.3g})" if isinstance(self.gamma, Real) else "rbf"


class AnisotropicRBF(Kernel):
    """Closeness with a width for each column: ``k(x, z) = exp(-sum_c gammas_c (x_c - z_c)^2)``.

    The product of one-column RBF kernels; a column of gamma 0 does not count.

    Parameters
    ----------
    gammas : array-like of shape (n_features,)
    """

    label = "anisotropic rbf"

    def __init__(self, gammas: Any):
        self.gammas = gammas

    def bind(self, X: Any, weight: Array | None = None, frame: Any = None) -> Kernel:
        count = len(self._stretch())
        if count != X.shape[1]:
            raise ValueError(f"AnisotropicRBF has {count} gammas, the data {X.shape[1]} columns")
        return self

    def term(self) -> Term | None:
        return Term(Formula(GAUSSIAN), stretch=self._stretch())

    def __call__(self, X: Any, Z: Any = None) -> Array:
        left = stretched(as_samples(X), self._stretch())
        right = None if Z is None else stretched(as_samples(Z), self._stretch())
        return RBF(1.0)(left, right)

    def diag(self, X: Any) -> Array:
        return np.ones(X.shape[0])

    def _stretch(self) -> tuple[float, ...]:
        gammas = np.asarray(self.gammas, dtype=float)
        if gammas.ndim != 1 or not np.isfinite(gammas).all() or (gammas < 0).any():
            raise ValueError(f"gammas are finite numbers >= 0, one a column, got {self.gammas!r}")
        return tuple(np.sqrt(gammas).tolist())


class Sigmoid(DotKernel):
    """Hyperbolic tangent: ``k(x, z) = tanh(gamma <x, z> + coef0)``.

    Not positive semidefinite in general; solvers warn and still terminate.

    Parameters
    ----------
    gamma : float, "scale" or "auto", default=1.0
        "scale" is ``1 / (n_features * X.var())`` and "auto" ``1 / n_features``, as in scikit-learn.
    coef0 : float, default=0.0
    """

    label = "sigmoid"

    def __init__(self, gamma: Any = 1.0, coef0: float = 0.0):
        self.gamma = gamma
        self.coef0 = coef0

    def bind(self, X: Any, weight: Array | None = None, frame: Any = None) -> Kernel:
        if not isinstance(self.gamma, str):
            return self
        return Sigmoid(_learned_gamma(self.gamma, X, weight, "scale", "auto"), self.coef0)

    def formula(self) -> Formula:
        if not isinstance(self.coef0, Real) or not np.isfinite(self.coef0):
            raise ValueError(f"coef0 must be finite, got {self.coef0!r}")
        return Formula(TANH, _known_gamma(self), float(self.coef0))


class Cosine(Kernel):
    """Angle: ``k(x, z) = <x, z> / (|x| |z|)``, 0 where a sample is the zero vector."""

    label = "cosine"

    def term(self) -> Term | None:
        return Term(Formula(LINEAR), factor=InverseNorm())

    def __call__(self, X: Any, Z: Any = None) -> Array:
        X = as_samples(X)
        Z = X if Z is None else as_samples(Z)
        dot, inverse_norm = safe_sparse_dot(X, Z.T, dense_output=True), InverseNorm()
        return np.asarray(inverse_norm(X)[:, np.newaxis] * dot * inverse_norm(Z))

    def diag(self, X: Any) -> Array:
        return np.asarray(squared_norms(as_samples(X)) > 0, dtype=float)


@dataclass(frozen=True)
class InverseNorm:
    """One over the norm of every sample, 0 for a sample of zeros.

    An object, not a function: models that are stored in files hold no code.
    """

    def __call__(self, X: Any) -> Array:
        norms = np.sqrt(squared_norms(X))
        return np.divide(1.0, norms, out=np.zeros(len(norms)), where=norms > 0)


def _known_gamma(kernel: Any) -> float:
    """Return the gamma of a kernel, or an error where it is still to be learned."""
    if isinstance(kernel.gamma, str):
        raise ValueError(
            f"{type(kernel).__name__}(gamma={kernel.gamma!r}) depends on training data; call "
            "bind(X) first or give a number"
        )
    return check_positive("gamma", kernel.gamma)


def _learned_gamma(word: str, X: Any, weight: Array | None, *known: str) -> float:
    """Return the gamma that a word means on training samples."""
    if word not in known:
        words = " or ".join(repr(own) for own in known)
        raise ValueError(f"gamma must be a number, {words}, got {word!r}")
    X = as_samples(X)
    if word == "auto":
        return 1.0 / max(X.shape[1], 1)
    spread = _spread(X, weight) if word == "scale" else _median_distance(X, weight)
    # Samples that do not differ leave the width open; scikit-learn takes 1 as well. Data whose
    # squares overflow is refused where samples are read, with the number of the sample.
    return max(1.0 / spread, np.finfo(float).tiny) if spread > 0 else 1.0


def _spread(X: Any, weight: Array | None) -> float:
    """Number of features times the (weighted) variance of all entries."""
    n, d = X.shape
    if n == 0:
        return 0.0
    weight = np.ones(n) if weight is None else weight
    total = weight.sum() * d
    mean = float(weight @ np.asarray(X.sum(axis=1)).ravel()) / total
    # Two passes: E[x^2] - E[x]^2 loses all digits where the mean is far from zero.
    if is_sparse(X):
        moved = X.copy()
        moved.data = (X.data - mean) ** 2
        zeros = d - np.diff(X.indptr)
        squares = np.asarray(moved.sum(axis=1)).ravel() + mean**2 * zeros
    else:
        squares = ((X - mean) ** 2).sum(axis=1)
    variance = float(weight @ squares) / total
    # Equal entries whose mean was rounded have no spread.
    return d * variance if variance > (8 * np.finfo(float).eps * mean) ** 2 * n else 0.0


def _median_distance(X: Any, weight: Array | None) -> float:
    """Weighted median of the squared distances of all pairs of rows, at most 1000 evenly spaced."""
    n = X.shape[0]
    if n == 0:
        return 0.0
    weight = np.ones(n) if weight is None else np.asarray(weight, dtype=float)
    if n > _MEDIAN_ROWS:
        chosen = np.linspace(0, n - 1, _MEDIAN_ROWS).astype(np.intp)
        X, weight = X[chosen], weight[chosen]
    distance = euclidean_distances(X, squared=True).ravel()
    # Equal rows far from zero are a rounding error apart.
    distance[distance <= 1e-13 * float(squared_norms(X).max())] = 0.0
    order = np.argsort(distance, kind="stable")
    mass = np.cumsum(np.outer(weight, weight).ravel()[order])
    return float(distance[order[np.searchsorted(mass, 0.5 * mass[-1])]])
