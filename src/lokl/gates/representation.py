"""What a gate looks at: columns of the samples, standardised, or all their products.

A gate that looks at something else than the raw samples.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from lokl._arrays import Array, Samples, is_sparse
from lokl.gates.base import ComposedGate, Gate, SettledGate


@dataclass(frozen=True, eq=False)
class Standardized:
    """Columns with mean zero and variance one over the training samples.

    Missing values (NaN) become zero, the mean: a view that a sample lacks has no say in its gate.
    """

    columns: Array | None  # to look at, None for all
    mean: Array  # of these columns
    scale: Array

    @classmethod
    def learn(cls, X: Any, weight: Array, columns: Array | None = None) -> "Standardized":
        """Learn means and scales; a weight of 2 counts like the row written twice."""
        X = _seen(X, columns)
        if is_sparse(X):
            total = weight.sum()
            mean = np.asarray(X.T @ weight) / total
            squares = X.multiply(X)
            variance = np.asarray(squares.T @ weight) / total - mean**2
        else:
            there = ~np.isnan(X)
            counted = weight[:, np.newaxis] * there
            total = np.maximum(counted.sum(axis=0), np.finfo(float).tiny)
            mean = (counted * np.where(there, X, 0.0)).sum(axis=0) / total
            variance = (counted * np.where(there, X - mean, 0.0) ** 2).sum(axis=0) / total
        # Rounding leaves a tiny variance in constant columns; dividing by it would blow up noise.
        constant = variance <= 1e-12 * np.maximum(mean**2, np.finfo(float).tiny)
        return cls(columns, mean, np.where(constant, 1.0, np.sqrt(np.maximum(variance, 0.0))))

    def __call__(self, X: Any) -> Any:
        X = _seen(X, self.columns)
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
        """Learn the two standardisations."""
        first = Standardized.learn(X, weight, columns)
        return cls(first, Standardized.learn(_products(first(X)), weight))

    def __call__(self, X: Any) -> Array:
        return np.asarray(self.second(_products(self.first(X))))


class CenteredSparse:
    """``(X - mean) / scale`` of a sparse matrix, never stored: only products are needed."""

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
        """The transpose, as numpy calls it."""
        return CenteredSparse(self.X, self.mean, self.scale, not self.transposed)

    def __matmul__(self, other: Array) -> Array:
        scale = self.scale[:, np.newaxis]
        if self.transposed:
            return np.asarray((self.X.T @ other - np.outer(self.mean, other.sum(axis=0))) / scale)
        scaled = other / scale
        return np.asarray(self.X @ scaled - self.mean @ scaled)

    def square_norms(self) -> Array:
        """Squared norm of every row."""
        scaled = self.X @ sparse.diags_array(1.0 / self.scale)
        middle = self.mean / self.scale
        own = np.asarray(scaled.multiply(scaled).sum(axis=1)).ravel()
        return np.asarray(own - 2.0 * (scaled @ middle) + middle @ middle)

    def rows(self, index: Array) -> Array:
        """Some rows, as an array."""
        return np.asarray((self.X[index].toarray() - self.mean) / self.scale)


def _seen(X: Any, columns: Array | None) -> Any:
    return X if columns is None else X[:, columns]


def _products(Z: Any) -> Array:
    Z = Z if isinstance(Z, np.ndarray) else Z.rows(np.arange(Z.shape[0]))
    left, right = np.triu_indices(Z.shape[1])
    return np.hstack([Z, Z[:, left] * Z[:, right]])


@dataclass(frozen=True, eq=False)
class OfGiven:
    """A representation computed from the rows as given, NaN where a view is missing."""

    function: Callable[[Any], Any]

    def __call__(self, samples: Samples) -> Any:
        return self.function(samples.given)


class Represented(ComposedGate):
    """Any gate on a representation: ``h_i(x) = gate_i(z(x))``.

    Parameters
    ----------
    gate : Gate
    representation : callable
        Takes :class:`~lokl._arrays.Samples` and gives their ``z``, which has no NaN.
    snap : float, default=0.0
        Trust below it counts as none, trust above ``1 - snap`` as full. Samples then leave out
        kernels altogether, which makes prediction cheaper. Rows of gates that compete still sum
        to one.
    """

    def __init__(self, gate: Gate, representation: Callable[[Samples], Any], snap: float = 0.0):
        self.gate = gate
        self.representation = representation
        self.snap = snap

    @property
    def competes(self) -> bool:  # type: ignore[override]
        """Whether the trust of a sample in all kernels sums to one."""
        return self.gate.competes

    def init(self, X: Any, n_kernels: int, rng: np.random.RandomState) -> Array:
        return self.gate.init(self.representation(Samples.of(X)), n_kernels, rng)

    def at(self, samples: Samples, params: Array) -> Array:
        return self._snapped(self.gate(self.representation(samples), params, samples.present))

    def settle(self, samples: Samples) -> SettledGate:
        return self.settled(self.representation(samples), samples.present)

    def settled(self, Z: Any, present: Array | None) -> SettledGate:
        """Return the gate at samples whose representation is known."""
        return SettledGate(
            lambda params: self._snapped(self.gate(Z, params, present)),
            lambda params, H, G: self.gate.pullback(Z, params, H, G),
        )

    def _snapped(self, H: Array) -> Array:
        """Round nearly no trust to none and nearly full trust to full."""
        if not self.snap:
            return H
        total = H.sum(axis=1, keepdims=True)
        H = np.where(self.snap > H, 0.0, np.where(1.0 - self.snap < H, 1.0, H))
        if self.gate.competes:
            H = H * total / H.sum(axis=1, keepdims=True)
        return H

    def pullback(self, X: Any, params: Array, H: Array, G: Array) -> Array:
        return self.gate.pullback(self.representation(Samples.of(X)), params, H, G)

    def project(self, params: Array) -> Array:
        return self.gate.project(params)
