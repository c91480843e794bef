"""Factors of columns under which samples that are near each other have like targets.

Every sample is predicted from the others of its region, ``f_j = sum_k w_k k(j, k) t_k / sum_k w_k
k(j, k)`` with ``k(j, k) = exp(-sum_c s_c^2 (x_jc - x_kc)^2)``. The factors ``s`` are those with the
least squared error: columns that tell nothing get small ones. One is then the width that is best
for such predictions, as in a kernel ``RBF(1.0)`` on the stretched columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import minimize

from lokl._arrays import Array, is_sparse, squared_norms
from lokl._threads import run_calls, single_threaded

# Weight that the mean target of a region has in every prediction: no sample is left alone.
_MEAN = 0.3
# Samples of a region that are predicted. Some tell where to go, others whether it was worth it.
_ASKED = 600
# Kernel values of one region at a time.
_MOST = 2**22
_ROUNDS = 30
# Relative gain of a round that ends the search.
_GAIN = 1e-4


def stretched(samples: Any, factors: Array) -> Any:
    """Return an array, a CSR matrix or a data frame with every column times its factor."""
    if hasattr(samples, "iloc"):
        return samples * factors
    factors = factors.astype(samples.dtype)
    if is_sparse(samples):
        return (samples @ sparse.diags_array(factors)).tocsr()
    return samples * factors


def standardizing(X: Any) -> Array:
    """Factors that give every column a variance of one, NaN left out; 1 where it has none."""
    if is_sparse(X):
        mean = np.asarray(X.mean(axis=0)).ravel()
        variance = np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2
        known = variance > 1e-12 * mean**2
    else:
        with np.errstate(all="ignore"):
            scale = np.nanmax(np.abs(X), axis=0, initial=0.0).astype(float)
            variance = np.nanvar(X, axis=0, dtype=float)
        known = variance > 1e-12 * scale**2
    deviation = np.sqrt(np.where(known, variance, 1.0))
    return np.asarray(np.where(known, 1.0 / deviation, 1.0), dtype=float)


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """Samples that are near each other, some of which are predicted from the others.

    Attributes
    ----------
    X : {array, CSR matrix} of shape (n_samples, n_features)
        In single precision, without NaN.
    targets : array of shape (n_samples, n_targets)
    weight : array of shape (n_samples,)
    asked, judging : arrays of int
        Samples whose predictions tell the factors, and others that tell how good these are.
    """

    X: Any
    targets: Array
    weight: Array
    asked: Array
    judging: Array

    @classmethod
    def of(cls, X: Any, targets: Array, weight: Array | None, seed: int) -> "Neighbourhood":
        """Take the samples of a region, and draw those that are predicted."""
        n = X.shape[0]
        if not is_sparse(X):
            # A missing value is no difference from the mean.
            known = ~np.isnan(X)
            means = np.where(known, X, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
            X = np.where(known, X, means)
        count = int(np.clip(_MOST // n, 1, min(_ASKED, n // 2)))
        order = np.random.default_rng(seed).permutation(n)
        weight = np.ones(n) if weight is None else weight / weight.mean()
        return cls(
            X.astype(np.float32),
            targets.astype(np.float32),
            weight.astype(np.float32),
            np.sort(order[:count]),
            np.sort(order[count : 2 * count]),
        )

    def judged(self, factors: Array) -> float:
        """Squared error about samples that have no part in the search."""
        return float(self._predicted(factors, self.judging)[0])

    def slopes(self, factors: Array) -> tuple[float, Array]:
        """Squared error about samples that are asked, and its slopes in the factors."""
        value, K, lever, predicted = self._predicted(factors, self.asked)
        # What the error gains by every kernel value, times this value.
        level = (lever * predicted).sum(axis=1, keepdims=True)
        K *= lever.astype(np.float32) @ self.targets.T - level.astype(np.float32)
        # sum_jk K_jk (x_jc - x_kc)^2 is the sum of the squares of both less twice the product.
        near = self.X[self.asked]
        across = np.asarray(self.X.T @ K.T).T
        rows, columns = K.sum(axis=1, dtype=float), K.sum(axis=0, dtype=float)
        squares = rows @ _squared(near) + columns @ _squared(self.X)
        product = near.multiply(across) if is_sparse(near) else near * across
        apart = np.ravel(squares) - 2.0 * np.ravel(product.sum(axis=0, dtype=float))
        return value, -2.0 * factors * apart

    def _predicted(self, factors: Array, rows: Array) -> tuple[float, Array, Array, Array]:
        """Squared error, weighted kernel values, slopes in the predictions, predictions."""
        K = self._kernel(factors, rows)
        mean = self.weight @ self.targets / self.weight.sum()
        total = K.sum(axis=1, dtype=float)[:, np.newaxis] + _MEAN
        predicted = (K @ self.targets + _MEAN * mean) / total
        missed, own = predicted - self.targets[rows], self.weight[rows, np.newaxis]
        return float((own * missed**2).sum()), K, 2.0 * own * missed / total, predicted

    def _kernel(self, factors: Array, rows: Array) -> Array:
        """Kernel values of some samples with all, times the weights of these; 0 with themselves."""
        seen = stretched(self.X, factors)
        norms = squared_norms(seen).astype(np.float32)
        dots = seen[rows] @ seen.T
        K: Array = dots.toarray() if is_sparse(dots) else dots
        K *= 2.0
        K -= norms[rows, np.newaxis]
        K -= norms
        np.exp(np.minimum(K, 0.0, out=K), out=K)
        K *= self.weight
        K[np.arange(len(rows)), rows] = 0.0
        return K


def learn_stretch(parts: Sequence[Neighbourhood], start: Array, threads: int) -> Array:
    """Return a factor of each column, not negative.

    Parameters
    ----------
    parts : sequence of Neighbourhood
    start : array of shape (n_features,)
        Factors to start from. They are the unit in which factors change, so that columns may be in
        any unit.
    threads : int
    """
    # Samples about one apart: every column then has a slope.
    first = np.full(len(start), 1.0 / np.sqrt(len(start)))

    def error(relative: Array) -> tuple[float, Array]:
        calls = [partial(part.slopes, relative * start) for part in parts]
        with single_threaded():
            values, slopes = zip(*run_calls(calls, threads), strict=True)
        return float(sum(values)), sum(slopes) * start

    def judged(relative: Array) -> float:
        calls = [partial(part.judged, relative * start) for part in parts]
        with single_threaded():
            return float(sum(run_calls(calls, threads)))

    best = (judged(first), first)

    def keep(relative: Array) -> None:
        nonlocal best
        now = judged(relative)
        if now < best[0]:
            best = (now, relative.copy())

    # Stubs of scipy do not know what this method takes.
    search: Any = partial(minimize, method="L-BFGS-B", jac=True)
    search(error, first, callback=keep, options={"maxiter": _ROUNDS, "ftol": _GAIN})
    return np.asarray(np.abs(best[1] * start))


def _squared(X: Any) -> Any:
    return X.multiply(X) if is_sparse(X) else X**2
