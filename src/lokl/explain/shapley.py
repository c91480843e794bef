"""Shapley values of the columns of kernel sums, exact where the kernel allows it.

The game of a function ``f(x) = sum_j coef_j k(x, z_j)`` at a sample: the value of some columns is
the function in which all other columns are absent, which means that they are integrated out over
the ``z_j``. How depends on the kernel.

- Products over columns (Gaussian and L1 Laplacian kernels, also anisotropic): the factor of an
  absent column is its mean over some quantiles of the column. If it were 1, as for a column that
  agrees with every ``z_j``, each column without information would shrink the function.
- Sums over columns: likewise their terms. Linear and polynomial kernels: its mean replaces an
  absent column.
- Other kernels: an absent column has its value from some ``z_j``, and values are means over random
  orders of the columns.

Factors of normalised kernels are those of the complete sample.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from lokl._arrays import Array, as_dense, slices
from lokl._compiled import CompiledModule
from lokl._threads import run_chunked
from lokl.kernels import AdditiveLaplacian, Kernel, Normalized, Product, Sum, View
from lokl.kernels.base import Term
from lokl.kernels.dot import Formula

_loops = CompiledModule("lokl.explain._shapley")

# Random orders for each sample, for kernels that need them.
N_ORDERS = 10
# Error of a quadrature rule for one kernel value, and nodes of the largest rule. Beyond its limit,
# kernel values vanish.
_QUADRATURE_ERROR, _MOST_NODES = 1e-13, 64
# Quantiles of a column that an absent one is integrated over.
_N_QUANTILES = 16
# Largest degree of polynomials with exact values.
_HIGHEST_DEGREE = 3
# Numbers in one block of kernel values, and of samples between which only one column differs.
_BLOCK = 2**22


@dataclass(frozen=True, eq=False)
class Sampling:
    """Random orders of columns, for kernels without exact values.

    Attributes
    ----------
    n_orders : int
        Orders for each sample; every second one is the reverse of the one before.
    rng : RandomState
    used : set of str
        Labels of the kernels that needed them.
    """

    n_orders: int
    rng: np.random.RandomState
    used: set[str]


def column_values(kernel: Kernel, X: Any, Z: Any, coef: Array, sampling: Sampling) -> Array:
    """Return Shapley values of the columns of ``sum_j coef_jt k(x, z_j)``.

    Parameters
    ----------
    kernel : Kernel
        Bound.
    X : {array, CSR matrix} of shape (n_samples, n_features)
    Z : {array, CSR matrix} of shape (n_stored, n_features)
    coef : array of shape (n_stored, n_tasks)
    sampling : Sampling

    Returns
    -------
    values : array of shape (n_samples, n_tasks, n_features)
        They add up to the function less its value without any column.
    """
    if kernel.is_stored:
        raise ValueError(
            f"kernel {kernel.label!r} is a stored matrix, whose samples have no columns; columns "
            "need a kernel that is computed from them"
        )
    if isinstance(kernel, View):
        out = np.zeros((X.shape[0], coef.shape[1], X.shape[1]))
        left, right = map(kernel._select, (X, Z))
        inner = column_values(kernel.kernel, left, right, coef, sampling)
        out[:, :, [int(c) for c in kernel.columns]] = inner
        return out
    if isinstance(kernel, Normalized):
        left, right = map(kernel._normalizers, (X, Z))
        inner = column_values(kernel.kernel, X, Z, coef * right[:, np.newaxis], sampling)
        return np.asarray(inner * left[:, np.newaxis, np.newaxis])
    # Products of kernels derive from sums.
    if type(kernel) is Sum:
        parts = (kernel.left, kernel.right)
        return sum(column_values(part, X, Z, coef, sampling) for part in parts)  # type: ignore[return-value]
    left, right = map(as_dense, (X, Z))
    factors = _product_factors(kernel, left.shape[1])
    if factors is not None:
        return _product_values(left, right, coef, *factors)
    term = kernel.term()
    if term is not None and _is_polynomial(term):
        left, right = term.reduced(left), term.reduced(right)
        return _polynomial_values(left, right, coef, term.formula)
    if isinstance(kernel, AdditiveLaplacian):
        return _additive_values(left, right, coef, float(kernel.gamma))
    sampling.used.add(kernel.label)
    return _sampled_values(kernel, left, right, coef, sampling)


def _product_factors(kernel: Kernel, n_columns: int) -> tuple[Array, Array] | None:
    """Return factors of squared and absolute differences in the exponent, None for others.

    Parameters
    ----------
    kernel : Kernel
    n_columns : int

    Returns
    -------
    squared, absolute : arrays of shape (n_columns,)
        ``k(x, z) = exp(-sum_c squared_c (x_c - z_c)^2 + absolute_c |x_c - z_c|)``.
    """
    squared, absolute = np.zeros(n_columns), np.zeros(n_columns)
    if isinstance(kernel, Product):
        both = [_product_factors(part, n_columns) for part in (kernel.left, kernel.right)]
        if both[0] is None or both[1] is None:
            return None
        return both[0][0] + both[1][0], both[0][1] + both[1][1]
    term = kernel.term()
    if term is None or term.normalizer is not None or term.formula.operation != "gaussian":
        return None
    used = slice(None) if term.columns is None else list(term.columns)
    scale = np.ones(1) if term.column_scale is None else np.array(term.column_scale)
    if term.metric == "l1":
        absolute[used] = term.formula.gamma * np.abs(scale)
    else:
        squared[used] = term.formula.gamma * scale**2
    return squared, absolute


def _product_values(X: Array, Z: Array, coef: Array, squared: Array, absolute: Array) -> Array:
    out = np.zeros((len(X), coef.shape[1], X.shape[1]))
    used = np.flatnonzero(squared + absolute)
    if not (len(used) and len(Z)):
        return out
    values = np.zeros((len(X), coef.shape[1], len(used)))
    X, Z = np.ascontiguousarray(X[:, used]), np.ascontiguousarray(Z[:, used])
    squared, absolute = squared[used], absolute[used]
    absent = np.zeros_like(Z)
    for point in column_quantiles(Z):
        step = np.abs(Z - point)
        absent += np.exp(-step * (squared * step + absolute)) / _N_QUANTILES
    absent = np.maximum(absent, _loops.LEAST)
    arguments = X, Z, absent, np.ascontiguousarray(coef), squared, absolute
    run_chunked(_loops.product_values, len(X), 1, *arguments, quadrature_rules(len(used)), values)
    out[:, :, used] = values
    return out


def column_quantiles(Z: Array) -> Array:
    """Return the quantiles of each column that an absent one is integrated over.

    Returns
    -------
    points : array of shape (n_quantiles, n_columns)
    """
    return np.quantile(Z, (np.arange(_N_QUANTILES) + 0.5) / _N_QUANTILES, axis=0)


@lru_cache(maxsize=64)
def quadrature_rules(n_columns: int) -> tuple[Array, Array, Array, Array]:
    """Return Gauss-Legendre rules on [0, 1] for products of ``n_columns - 1`` linear functions.

    With ``n`` nodes, the error for ``prod_c (a_c + t d_c)`` with factors between 0 and 1 is at most
    ``s^2n n!^4 / ((2n + 1) (2n)!^3)`` with ``s = sum_c |d_c|``, and zero for ``2n >= n_columns``.

    Returns
    -------
    limits : array of shape (n_rules,)
        Largest ``s`` that a rule is used for.
    offsets : array of int of shape (n_rules + 1,)
        Its nodes are those from one offset to the next.
    nodes, weights : arrays of shape (n_nodes,)
    """
    sizes = np.arange(4, _MOST_NODES + 1, 4)
    sizes = sizes[: 1 + int((2 * sizes < n_columns).sum())]
    rules = [np.polynomial.legendre.leggauss(int(n)) for n in sizes]
    logs = [
        math.log(_QUADRATURE_ERROR * (2 * n + 1)) + 3 * math.lgamma(2 * n + 1)
        - 4 * math.lgamma(n + 1)
        for n in sizes
    ]  # fmt: skip
    limits = np.exp(np.array(logs) / (2 * sizes))
    limits[-1] = np.inf
    nodes, weights = (np.concatenate(own) for own in zip(*rules, strict=True))
    return limits, np.append(0, np.cumsum(sizes)), 0.5 + 0.5 * nodes, 0.5 * weights


def _is_polynomial(term: Term) -> bool:
    formula = term.formula
    if term.columns is not None or term.normalizer is not None or term.metric != "l2":
        return False
    if formula.operation == "linear":
        return True
    return formula.operation == "polynomial" and formula.degree <= _HIGHEST_DEGREE


def _polynomial_values(X: Array, Z: Array, coef: Array, formula: Formula) -> Array:
    """Return values for ``(gamma <x, z> + coef0) ** degree`` up to degree 3.

    With the mean ``m`` of the stored samples, the terms ``a_c = gamma (x_c - m_c) z_c``, their sum
    ``T``, the sum ``Q`` of their squares and ``b = gamma <m, z> + coef0``, the values of a column
    are ``a``, ``a (T + 2 b)`` and ``a (T^2 + Q / 2 + 3 b T + 3 b^2) - a^2 T / 2``.
    """
    is_linear = formula.operation == "linear"
    gamma, constant = (1.0, 0.0) if is_linear else (formula.gamma, formula.coef0)
    mean = Z.mean(axis=0) if len(Z) else np.zeros(X.shape[1])
    X = gamma * (X - mean)
    if is_linear or formula.degree == 1:
        return np.asarray(X[:, np.newaxis] * (coef.T @ Z))
    shift = gamma * (Z @ mean) + constant
    out = np.empty((len(X), coef.shape[1], X.shape[1]))
    for rows in slices(len(X), max(_BLOCK // max(len(Z), 1), 1)):
        left = X[rows]
        total = left @ Z.T
        linear, square = total + 2.0 * shift, None
        if formula.degree == 3:
            squares = left**2 @ (Z**2).T
            linear = total**2 + 0.5 * squares + 3.0 * shift * (total + shift)
            square = -0.5 * total
        for t, factor in enumerate(coef.T):
            out[rows, t] = left * ((linear * factor) @ Z)
            if square is not None:
                out[rows, t] += left**2 * ((square * factor) @ Z**2)
    return out


def _additive_values(X: Array, Z: Array, coef: Array, gamma: float) -> Array:
    """Return values for the mean of one Laplacian for each column: its terms."""
    out = np.empty((len(X), coef.shape[1], X.shape[1]))
    points = column_quantiles(Z)
    for c in range(X.shape[1]):
        absent = np.exp(-gamma * np.abs(points[:, c, np.newaxis] - Z[:, c])).mean(axis=0)
        for rows in slices(len(X), max(_BLOCK // max(len(Z), 1), 1)):
            terms = np.exp(-gamma * np.abs(X[rows, c, np.newaxis] - Z[:, c])) - absent
            out[rows, :, c] = terms @ coef / X.shape[1]
    return out


def _sampled_values(kernel: Kernel, X: Array, Z: Array, coef: Array, sampling: Sampling) -> Array:
    """Return mean changes of the function as columns go from stored samples to the sample.

    Columns change one after the other, in random orders.
    """
    n_columns, rng = X.shape[1], sampling.rng
    out = np.zeros((len(X), coef.shape[1], n_columns))
    steps = max(_BLOCK // max(n_columns, len(Z), 1), 1)
    for sample, values in zip(X, out, strict=True):
        order = np.arange(n_columns)
        for k in range(sampling.n_orders):
            order = order[::-1] if k % 2 else rng.permutation(n_columns)
            changed = np.argsort(order) < np.arange(n_columns + 1)[:, np.newaxis]
            path = np.where(changed, sample, Z[rng.randint(len(Z))])
            reached = [kernel(path[part], Z) @ coef for part in slices(len(path), steps)]
            values[:, order] += np.diff(np.concatenate(reached), axis=0).T / sampling.n_orders
    return out
