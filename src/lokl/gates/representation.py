"""Representations: the input of a gate, computed from the samples.

A gate rarely reads raw features. It reads standardised columns, these with all their products, or
any other function of the samples.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from lokl._arrays import Array, Samples, is_sparse, squared_norms
from lokl.gates.base import ComposedGate, Gate

# A column is constant if its variance is below this share of its squared mean: rounding leaves a
# tiny variance, and dividing by it would blow up noise.
_CONSTANT = 1e-12


@dataclass(frozen=True, eq=False)
class Standardized:
    """Columns with mean zero and variance one over the training samples.

    Missing values (NaN) become zero, the mean. Sparse samples are centred implicitly
    (:class:`CenteredSparse`), which is why scikit-learn's scaler is not used.
    """

    columns: Array | None  # positions (n_columns,); None for all
    mean: Array  # (n_columns,)
    scale: Array  # (n_columns,)

    @classmethod
    def learn(cls, X: Any, weight: Array, columns: Array | None = None) -> "Standardized":
        """Learn means and scales.

        Parameters
        ----------
        X : {array, CSR matrix} of shape (n_samples, n_features)
        weight : array of shape (n_samples,)
            A weight of 2 counts like the row written twice.
        columns : array of int, optional
        """
        X = _take(X, columns)
        if is_sparse(X):
            total = weight.sum()
            mean = np.asarray(X.T @ weight) / total
            variance = np.asarray(X.multiply(X).T @ weight) / total - mean**2
        else:
            present = ~np.isnan(X)
            counted = weight[:, np.newaxis] * present
            total = np.maximum(counted.sum(axis=0), np.finfo(float).tiny)
            mean = (counted * np.where(present, X, 0.0)).sum(axis=0) / total
            variance = (counted * np.where(present, X - mean, 0.0) ** 2).sum(axis=0) / total
        constant = variance <= _CONSTANT * np.maximum(mean**2, np.finfo(float).tiny)
        return cls(columns, mean, np.where(constant, 1.0, np.sqrt(np.maximum(variance, 0.0))))

    def __call__(self, X: Any) -> Any:
        X = _take(X, self.columns)
        if is_sparse(X):
            return CenteredSparse(X, self.mean, self.scale)
        Z = (X - self.mean) / self.scale
        return np.where(np.isnan(Z), 0.0, Z)


@dataclass(frozen=True, eq=False)
class Quadratic:
    """All columns, their squares and their products, each standardised."""

    first: Standardized  # of the columns
    second: Standardized  # of the columns with their products

    @classmethod
    def learn(cls, X: Any, weight: Array, columns: Array | None = None) -> "Quadratic":
        """Learn the two standardisations; parameters as in :meth:`Standardized.learn`."""
        first = Standardized.learn(X, weight, columns)
        return cls(first, Standardized.learn(_with_products(first(X)), weight))

    def __call__(self, X: Any) -> Array:
        return np.asarray(self.second(_with_products(self.first(X))))


class CenteredSparse:
    """``(X - mean) / scale`` of a sparse matrix, never stored: only products are needed.

    Indexing returns rows as an array.
    """

    def __init__(self, X: Any, mean: Array, scale: Array, transposed: bool = False):
        self.X = X
        self.mean = mean
        self.scale = scale
        self.transposed = transposed

    @property
    def shape(self) -> tuple[int, int]:
        n, d = self.X.shape
        return (d, n) if self.transposed else (n, d)

    @property
    def T(self) -> "CenteredSparse":  # noqa: N802
        """The transpose, named as in numpy."""
        return CenteredSparse(self.X, self.mean, self.scale, not self.transposed)

    def __getitem__(self, rows: Any) -> Array:
        return np.asarray((self.X[rows].toarray() - self.mean) / self.scale)

    def __matmul__(self, right: Array) -> Array:
        scale = self.scale[:, np.newaxis]
        if self.transposed:
            return np.asarray((self.X.T @ right - np.outer(self.mean, right.sum(axis=0))) / scale)
        scaled = right / scale
        return np.asarray(self.X @ scaled - self.mean @ scaled)

    def squared_norms(self) -> Array:
        """Return the squared norm of every row, (n_samples,)."""
        scaled = self.X @ sparse.diags_array(1.0 / self.scale)
        centre = self.mean / self.scale
        return squared_norms(scaled) - 2.0 * (scaled @ centre) + centre @ centre


def _take(X: Any, columns: Array | None) -> Any:
    return X if columns is None else X[:, columns]


def _with_products(Z: Any) -> Array:
    """Return columns followed by the products of all pairs, each pair once."""
    Z = Z[:]
    left, right = np.triu_indices(Z.shape[1])
    return np.hstack([Z, Z[:, left] * Z[:, right]])


@dataclass(frozen=True, eq=False)
class OfGiven:
    """A representation computed from the rows as given, with NaN for missing views."""

    function: Callable[[Any], Any]

    def __call__(self, samples: Samples) -> Any:
        return self.function(samples.given)


class RepresentationGate(ComposedGate):
    """Any gate on a representation of the samples: ``h_i(x) = gate_i(z(x))``.

    Parameters
    ----------
    gate : Gate
        Gating function of the representation.
    representation : callable
        Takes :class:`~lokl._arrays.Samples` and returns their ``z``, without NaN.
    snap : float, default=0.0
        Gate values below it become 0 and values above ``1 - snap`` become 1. Samples then leave
        out kernels altogether, which makes prediction cheaper. Rows of gates that sum to one still
        do.

    See Also
    --------
    lokl.gates.GateOn : A gate and the columns that it reads.
    lokl.LMKLClassifier : Learns a gate together with the SVM.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl._arrays import Samples
    >>> from lokl.gates import RepresentationGate, SoftmaxGate
    >>> def first_column(samples):
    ...     return samples.filled[:, :1]
    >>> gate = RepresentationGate(SoftmaxGate(), first_column)
    >>> samples = Samples.of(np.array([[-1.0, 5.0], [1.0, 7.0]]))
    >>> gate.at(samples, np.array([[1.0, 0.0], [0.0, 0.0]])).round(3)
    array([[0.269, 0.731],
           [0.731, 0.269]])
    """

    def __init__(self, gate: Gate, representation: Callable[[Samples], Any], snap: float = 0.0):
        self.gate = gate
        self.representation = representation
        self.snap = snap

    @property
    def sums_to_one(self) -> bool:  # type: ignore[override]
        """Whether the gate values of a sample sum to one over the kernels."""
        return self.gate.sums_to_one

    def init(self, X: Any, n_kernels: int, rng: np.random.RandomState) -> Array:
        return self.gate.init(self.representation(Samples.of(X)), n_kernels, rng)

    def at(self, samples: Samples, params: Array) -> Array:
        return self.values(self.representation(samples), params, samples.present)

    def values(self, Z: Any, params: Array, present: Array | None) -> Array:
        """Return gate values of samples whose representation `Z` is computed already."""
        H = self.gate(Z, params, present)
        if not self.snap:
            return H
        total = H.sum(axis=1, keepdims=True)
        H = np.where(self.snap > H, 0.0, np.where(1.0 - self.snap < H, 1.0, H))
        if self.gate.sums_to_one:
            H = H * total / H.sum(axis=1, keepdims=True)
        return H

    def pullback(self, X: Any, params: Array, H: Array, G: Array) -> Array:
        return self.gate.pullback(self.representation(Samples.of(X)), params, H, G)

    def project(self, params: Array) -> Array:
        return self.gate.project(params)
