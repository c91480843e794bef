"""Feature scaling under which nearby samples have similar targets.

Every sample is predicted from the other samples of its region by kernel regression,
``f_j = sum_k w_k k(j, k) t_k / sum_k w_k k(j, k)`` with
``k(j, k) = exp(-sum_c s_c^2 (x_jc - x_kc)^2)``. The factors ``s`` minimise the squared error, so
that uninformative columns get small factors (Weinberger and Tesauro, Metric learning for kernel
regression, 2007). On the scaled columns, ``RBF(1.0)`` is then the best kernel for such predictions.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from sklearn.preprocessing import StandardScaler

from lokl._arrays import Array, column, is_sparse, squared_norms
from lokl._survival import deviance_residuals
from lokl._threads import run_calls, single_threaded, threads_for
from lokl.regions.fitting import LocalRegions, RegionData
from lokl.regions.tree import TreeGrower, fill_missing

# Weight of the mean target of a region in every prediction, for samples without close neighbours.
_PRIOR_WEIGHT = 0.3
# Samples of a region that are predicted for training, and again for validation.
_PREDICTED = 600
# Kernel values of one region at a time.
_MOST_VALUES = 2**22
_ROUNDS = 30
# Relative gain of a round that ends the search.
_GAIN = 1e-4


def scale_columns(samples: Any, factors: Array) -> Any:
    """Return samples with every column multiplied by its factor, in the precision of the samples.

    Parameters
    ----------
    samples : {array, CSR matrix, data frame} of shape (n_samples, n_features)
    factors : array of shape (n_features,)
    """
    if hasattr(samples, "iloc"):
        return samples * factors
    factors = factors.astype(samples.dtype)
    if is_sparse(samples):
        return (samples @ sparse.diags_array(factors)).tocsr()
    return samples * factors


def learn_feature_scale(X: Any, data: RegionData, grower: TreeGrower, n_jobs: int | None) -> Array:
    """Learn a non-negative factor for each column in a few regions of the standardised samples.

    Parameters
    ----------
    X : {array, CSR matrix} of shape (n_samples, n_features)
    data : RegionData
        Targets and weights of these samples.
    grower : TreeGrower
    n_jobs : int or None

    Returns
    -------
    factors : array of shape (n_features,)
        Ones if all regions have too few samples.
    """
    unit = standard_factors(X)
    backend = LocalRegions(scale_columns(X, unit), data._replace(samples=X), n_jobs, grower)
    errors = backend.map(KernelRegressionError.in_region, backend.tuning_regions())
    if not errors:
        return np.ones(len(unit))
    with single_threaded():
        return minimize_error(errors, unit, threads_for(n_jobs))


def standard_factors(X: Any) -> Array:
    """Return factors that give every column unit variance, 1 for constant columns."""
    with np.errstate(all="ignore"):
        deviation = StandardScaler(with_mean=False).fit(X).scale_
    return np.asarray(1.0 / np.where(np.isnan(deviation), 1.0, deviation))


@dataclass(frozen=True, eq=False)
class KernelRegressionError:
    """Leave-one-out error of kernel regression in one region, as a function of the factors.

    Attributes
    ----------
    X : {array, CSR matrix} of shape (n_samples, n_features)
        In single precision, without NaN.
    targets : array of shape (n_samples, n_targets)
    weight : array of shape (n_samples,)
    training, validation : arrays of int
        Disjoint sets of samples whose prediction errors are summed.
    """

    X: Any
    targets: Array
    weight: Array
    training: Array
    validation: Array

    @classmethod
    def in_region(cls, data: RegionData, seed: int) -> "KernelRegressionError":
        """Return the error in one region, for samples that are drawn by `seed`."""
        n = data.samples.shape[0]
        count = int(np.clip(_MOST_VALUES // n, 1, min(_PREDICTED, n // 2)))
        order = np.random.default_rng(seed).permutation(n)
        weight = np.ones(n) if data.weight is None else data.weight / data.weight.mean()
        return cls(
            fill_missing(data.samples).astype(np.float32),
            _standard_targets(data).astype(np.float32),
            weight.astype(np.float32),
            np.sort(order[:count]),
            np.sort(order[count : 2 * count]),
        )

    def on_validation(self, factors: Array) -> float:
        """Return the squared error on the validation samples."""
        return float(self._predict(factors, self.validation)[0])

    def with_gradient(self, factors: Array) -> tuple[float, Array]:
        """Return the squared error on the training samples, and its gradient in the factors."""
        error, K, slope, predicted = self._predict(factors, self.training)
        # Derivative of the error in every kernel value, times this value.
        level = (slope * predicted).sum(axis=1, keepdims=True)
        K *= slope.astype(np.float32) @ self.targets.T - level.astype(np.float32)
        # sum_jk K_jk (x_jc - x_kc)^2 is the sum of both squares minus twice the product.
        near = self.X[self.training]
        across = np.asarray(self.X.T @ K.T).T
        rows, columns = K.sum(axis=1, dtype=float), K.sum(axis=0, dtype=float)
        squares = rows @ _squared(near) + columns @ _squared(self.X)
        product = near.multiply(across) if is_sparse(near) else near * across
        differences = np.ravel(squares) - 2.0 * np.ravel(product.sum(axis=0, dtype=float))
        return error, -2.0 * factors * differences

    def _predict(self, factors: Array, rows: Array) -> tuple[float, Array, Array, Array]:
        """Return squared error, weighted kernel values, slopes in the predictions, predictions."""
        K = self._kernel(factors, rows)
        mean = self.weight @ self.targets / self.weight.sum()
        total = K.sum(axis=1, dtype=float)[:, np.newaxis] + _PRIOR_WEIGHT
        predicted = (K @ self.targets + _PRIOR_WEIGHT * mean) / total
        residual, weight = predicted - self.targets[rows], self.weight[rows, np.newaxis]
        slope = 2.0 * weight * residual / total
        return float((weight * residual**2).sum()), K, slope, predicted

    def _kernel(self, factors: Array, rows: Array) -> Array:
        """Return kernel values of some samples with all, times their weights; 0 with itself."""
        scaled = scale_columns(self.X, factors)
        norms = squared_norms(scaled).astype(np.float32)
        products = scaled[rows] @ scaled.T
        K: Array = products.toarray() if is_sparse(products) else products
        K *= 2.0
        K -= norms[rows, np.newaxis]
        K -= norms
        np.exp(np.minimum(K, 0.0, out=K), out=K)
        K *= self.weight
        K[np.arange(len(rows)), rows] = 0.0
        return K


def _standard_targets(data: RegionData) -> Array:
    """Return standardised targets, signs of two classes or indicators of several, (n, tasks).

    The targets of censored times are deviance residuals.
    """
    if data.classes is None:
        y = data.y
        if data.is_censored:
            y = deviance_residuals(y, np.ones(len(y)) if data.weight is None else data.weight)
        y = column(y)
        deviation = y.std(axis=0)
        return np.asarray((y - y.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0))
    if len(data.classes) == 2:
        return np.where(data.y == 1, 1.0, -1.0)[:, np.newaxis]
    return np.asarray(np.eye(len(data.classes))[data.y])


def _squared(X: Any) -> Any:
    return X.multiply(X) if is_sparse(X) else X**2


def minimize_error(errors: list[KernelRegressionError], unit: Array, threads: int) -> Array:
    """Return the factors with the least validation error on the way to the least training error.

    Parameters
    ----------
    errors : list of KernelRegressionError
        Their sum is minimised.
    unit : array of shape (n_features,)
        Factors in units of which the search works, so that units of the columns do not matter.
    threads : int

    Returns
    -------
    factors : array of shape (n_features,)
    """
    # Samples are then about one apart, so that the error depends on every column.
    start = np.full(len(unit), 1.0 / np.sqrt(len(unit)))

    def training(relative: Array) -> tuple[float, Array]:
        calls = [partial(error.with_gradient, relative * unit) for error in errors]
        values, gradients = zip(*run_calls(calls, threads), strict=True)
        return float(sum(values)), sum(gradients) * unit

    def validation(relative: Array) -> float:
        calls = [partial(error.on_validation, relative * unit) for error in errors]
        return float(sum(run_calls(calls, threads)))

    visited = [start]
    # The type stubs of scipy do not cover these arguments.
    search: Any = partial(minimize, method="L-BFGS-B", jac=True)
    options = {"maxiter": _ROUNDS, "ftol": _GAIN}
    search(training, start, callback=lambda x: visited.append(x.copy()), options=options)
    return np.asarray(np.abs(min(visited, key=validation) * unit))
