"""Squared loss on a stored matrix or on features: several costs, and exact leave-one-out decisions.

``min_f,b  |f|^2 / 2 + C/2 sum_j w_j (y_j - f(x_j) - b)^2`` is the least-squares SVM, kernel ridge
regression with an intercept that is not regularised. Its coefficients solve ``(K + diag(1 / (C w)))
a + b = y`` with ``1'a = 0``. With ``s = sqrt(w)`` and ``a = s o B`` this is one matrix for all
costs: ``B = P (s o y)``, where ``P`` inverts ``S K S + I / C`` on the vectors orthogonal to ``s``.
The decision about sample j without it is ``y_j - a_j / M_jj`` with ``M = S P S``.

The matrix is centred, so that nothing cancels if the kernel has a large constant part, and ``s``
becomes an eigenvector with the largest eigenvalue.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.lapack import get_lapack_funcs

from lokl._arrays import Array, column, slices

# Most costs that are solved one by one: an inverse takes a sixth of the time of all eigenvectors.
_FEW_COSTS = 5
# Samples above which the factorisation is in single precision, if the condition number of the
# system is below this; steps of refinement, and the residual that is left.
_LARGE, _WELL_CONDITIONED, _REFINEMENTS, _RESIDUAL = 4000, 1e4, 4, 1e-9
# Negative eigenvalues of this size, in units of the precision and of the largest one, are rounding.
_ROUNDING = 16.0
# Rows of a block of the matrix or of features in double precision.
_BLOCK = 1024

# Yields rows as slices, and their features of shape (n_rows, n_features).
Tiles = Callable[[], Iterator[tuple[slice, Array]]]


@dataclass(frozen=True, eq=False)
class SquaredPath:
    """Solutions with the squared loss at several costs.

    Attributes
    ----------
    costs : array of shape (n_costs,)
    coef : array of shape (n_costs, n_samples, n_targets)
        Signed coefficients; the decision function is ``K coef + intercept``.
    intercept : array of shape (n_costs, n_targets)
    loo : array of shape (n_costs, n_samples, n_targets)
        Exact leave-one-out decisions: of the solution on the same matrix, at the same cost, without
        the sample. For a sample without a weight, the decision of the solution.
    """

    costs: Array
    coef: Array
    intercept: Array
    loo: Array


def squared_path(
    K: Array, Y: Array, costs: Array | Sequence[float], weight: Array | None = None
) -> SquaredPath:
    """Return the solutions on one Gram matrix at several costs, for all targets.

    Parameters
    ----------
    K : array of shape (n_samples, n_samples)
        In single or double precision; it is not changed.
    Y : array of shape (n_samples,) or (n_samples, n_targets)
        Numeric targets, or 1 and -1 for classes.
    costs : sequence of float
        ``C``; up to five are solved by Cholesky factorisations, more by one eigendecomposition.
    weight : array of shape (n_samples,), optional
        Factors of the costs. A weight of 0 leaves a sample out.

    Returns
    -------
    SquaredPath

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.solvers import squared_path
    >>> x = np.array([-1.0, 0.0, 1.0])
    >>> path = squared_path(np.outer(x, x), 2 * x + 1, [1e6])
    >>> path.intercept.round(3), path.loo[0, :, 0].round(3)
    (array([[1.]]), array([-1.,  1.,  3.]))
    """
    Y, costs, weight = _checked(Y, costs, weight)
    present = np.flatnonzero(weight > 0)
    if len(present) == len(weight):
        return _Centred.of(K, weight).path(Y, costs)
    part = _Centred.of(K[np.ix_(present, present)], weight[present]).path(Y[present], costs)
    coef = np.zeros((len(costs), *Y.shape))
    coef[:, present] = part.coef
    loo = np.einsum("jk,ckt->cjt", K[:, present], part.coef, optimize=True)
    loo += part.intercept[:, np.newaxis]
    loo[:, present] = part.loo
    return SquaredPath(costs, coef, part.intercept, loo)


def bordered_inverse(K: Array, cost: float, weight: Array | None = None) -> Array:
    """Return ``M`` with ``a = M y``, (n_samples, n_samples): coefficients of any targets.

    Without sample j the coefficients are ``a - M[:, j] a_j / M_jj``. Parameters as in
    :func:`squared_path`, with positive weights.
    """
    weight = np.ones(len(K)) if weight is None else np.asarray(weight, dtype=np.float64)
    system = _Centred.of(K, weight)
    factor = _Factor.of(system, np.array([cost]), np.float64)
    if isinstance(factor, _Spectrum):
        M = (factor.vectors * factor.inverse[:, 0]) @ factor.vectors.T
    else:
        inverse = np.tril(factor.inverse())
        M = inverse + np.tril(inverse, -1).T
        M -= np.outer(system.unit, system.unit / (system.shift + 1.0 / cost))
    M *= system.scale
    M *= system.scale[:, np.newaxis]
    return np.asarray(M)


@dataclass(eq=False)
class _Centred:
    """``H S K S H + shift uu'`` with ``u = s / |s|`` and ``H = I - uu'``."""

    given: Array  # K
    matrix: Array  # (n, n), in Fortran order
    scale: Array  # s = sqrt(weight), (n,)
    unit: Array  # u, (n,)
    means: Array  # S K S u, (n,)
    size: float  # norm of S K S
    shift: float  # twice a bound of the other eigenvalues

    @classmethod
    def of(cls, K: Array, weight: Array) -> "_Centred":
        scale = np.sqrt(weight)
        unit = scale / np.linalg.norm(scale)
        matrix = np.array(K, dtype=np.float64, order="F")
        if (weight != 1.0).any():
            matrix *= scale
            matrix *= scale[:, np.newaxis]
        size = float(np.linalg.norm(matrix))
        means = matrix @ unit
        # H (matrix) H as one update of rank two.
        half = means - 0.5 * float(unit @ means) * unit
        for part in slices(len(unit), _BLOCK):
            matrix[:, part] -= np.outer(unit, half[part]) + np.outer(half, unit[part])
        shift = 2.0 * float(np.linalg.norm(matrix)) or 1.0
        for part in slices(len(unit), _BLOCK):
            matrix[:, part] += np.outer(unit, shift * unit[part])
        return cls(K, matrix, scale, unit, means, size, shift)

    def path(self, Y: Array, costs: Array) -> SquaredPath:
        """Return the solutions at all costs."""
        targets = self.scale[:, np.newaxis] * Y
        centred = targets - np.outer(self.unit, self.unit @ targets)
        if len(costs) > _FEW_COSTS:
            solved = [self._solve(centred, costs)]
        else:
            solved = [self._solve(centred, costs[i : i + 1]) for i in range(len(costs))]
        B = np.concatenate([b for b, _ in solved], axis=1)
        diagonal = np.concatenate([d for _, d in solved], axis=1)
        intercept = self.unit @ targets - np.einsum("j,jct->ct", self.means, B)
        return _assembled(costs, Y, self.scale, self.unit, B, diagonal, intercept)

    def _solve(self, centred: Array, costs: Array) -> tuple[Array, Array]:
        """Return ``B``, (n, n_costs, n_targets), and the diagonal of ``P``, (n, n_costs)."""
        factorize = _Spectrum.of if len(costs) > 1 else _Factor.of
        condition = 1.0 + 0.5 * self.shift * float(costs.max())
        right = centred[:, np.newaxis]
        if len(self.unit) > _LARGE and condition <= _WELL_CONDITIONED:
            factor = factorize(self, costs, np.float32)
            B = factor.solve(right)
            for _ in range(_REFINEMENTS):
                residual = right - self._applied(B, costs)
                if np.abs(residual).max() <= _RESIDUAL * np.abs(centred).max():
                    return B, factor.diagonal()
                B += factor.solve(residual)
        factor = factorize(self, costs, np.float64)
        return factor.solve(right), factor.diagonal()

    def _applied(self, B: Array, costs: Array) -> Array:
        """Return the system times ``B``, which is orthogonal to ``u``, in double precision."""
        flat = (self.scale[:, np.newaxis, np.newaxis] * B).reshape(len(B), -1)
        product = np.empty_like(flat)
        for part in slices(len(B), _BLOCK):
            product[part] = np.asarray(self.given[part], dtype=np.float64) @ flat
        product *= self.scale[:, np.newaxis]
        product -= np.outer(self.unit, self.unit @ product)
        return np.asarray(product.reshape(B.shape) + B / costs[:, np.newaxis])


@dataclass(eq=False)
class _Factor:
    """Cholesky factor of a system at one cost."""

    system: _Centred
    cost: float
    factor: Array  # (n, n), lower triangle

    @classmethod
    def of(cls, system: _Centred, costs: Array, dtype: Any) -> "_Factor | _Spectrum":
        matrix = np.array(system.matrix, dtype=dtype, order="F")
        matrix.flat[:: len(matrix) + 1] += 1.0 / costs[0]
        potrf = _lapack("potrf", matrix)
        factor, failed = potrf(matrix, lower=1, overwrite_a=1, clean=0)
        if failed:
            # Indefinite, or singular up to rounding.
            return _Spectrum.of(system, costs, np.float64)
        return cls(system, float(costs[0]), factor)

    def solve(self, right: Array) -> Array:
        """Return ``P`` times columns orthogonal to ``u``, (n, 1, n_targets)."""
        potrs = _lapack("potrs", self.factor)
        solution, _ = potrs(self.factor, right[:, 0].astype(self.factor.dtype), lower=1)
        return np.asarray(solution[:, np.newaxis], dtype=np.float64)

    def inverse(self) -> Array:
        """Return the inverse, lower triangle, in the memory of the factor; ``u`` is in it."""
        potri = _lapack("potri", self.factor)
        inverse, _ = potri(self.factor, lower=1, overwrite_c=1)
        return np.asarray(inverse)

    def diagonal(self) -> Array:
        """Return the diagonal of ``P``, (n, 1); the factor is lost."""
        inner = self.system.unit**2 / (self.system.shift + 1.0 / self.cost)
        return (self.inverse().diagonal() - inner)[:, np.newaxis]


@dataclass(eq=False)
class _Spectrum:
    """Eigenvectors of a system orthogonal to ``u``, and the inverse eigenvalues at all costs."""

    vectors: Array  # (n, n - 1)
    inverse: Array  # (n - 1, n_costs)

    @classmethod
    def of(cls, system: _Centred, costs: Array, dtype: Any) -> "_Spectrum":
        matrix = np.array(system.matrix, dtype=dtype, order="F")
        values, vectors = eigh(matrix, overwrite_a=True, check_finite=False, driver="evd")
        # The last vector is u.
        values, vectors = values[:-1].astype(np.float64), vectors[:, :-1]
        precision = np.finfo(np.result_type(system.given, np.float32)).eps
        rounding = _ROUNDING * precision * system.size
        values[(values < 0.0) & (values > -rounding)] = 0.0
        return cls(vectors, 1.0 / (values[:, np.newaxis] + 1.0 / costs))

    def solve(self, right: Array) -> Array:
        """Return ``P`` times columns, (n, n_costs, n_targets)."""
        loads = _turned(self.vectors.T, right) * self.inverse[:, :, np.newaxis]
        return _turned(self.vectors, loads)

    def diagonal(self) -> Array:
        """Return the diagonal of ``P``, (n, n_costs); the vectors are lost."""
        np.square(self.vectors, out=self.vectors)
        return np.asarray(self.vectors @ self.inverse.astype(self.vectors.dtype), dtype=np.float64)


def _lapack(name: str, matrix: Array) -> Any:
    """Return a LAPACK function in the precision of a matrix."""
    return get_lapack_funcs(name, (matrix,))


def _turned(matrix: Array, columns: Array) -> Array:
    """Return a product with all columns of an array of three axes, in double precision."""
    flat = columns.reshape(len(columns), -1).astype(matrix.dtype)
    return (matrix @ flat).astype(np.float64).reshape(len(matrix), *columns.shape[1:])


def squared_path_features(
    Phi: Array, Y: Array, costs: Array | Sequence[float], weight: Array | None = None
) -> SquaredPath:
    """Return the solutions on features with ``K = Phi Phi'``; nothing of size (n, n) is made.

    Parameters
    ----------
    Phi : array of shape (n_samples, n_features)
        In single or double precision.
    Y, costs, weight
        As in :func:`squared_path`.

    Returns
    -------
    SquaredPath
    """
    Y, costs, weight = _checked(Y, costs, weight)

    def tiles() -> Iterator[tuple[slice, Array]]:
        return ((part, Phi[part]) for part in slices(len(Phi), _BLOCK))

    return path_of_tiles(tiles, Phi.shape[1], Y, costs, weight)


def path_of_tiles(
    tiles: Tiles, n_features: int, Y: Array, costs: Array, weight: Array
) -> SquaredPath:
    """Return the solutions on features that come in tiles, in three passes over them.

    With centred features ``F`` and ``F'F = V diag(d) V'``, the matrix is ``P = C (H - F V diag(1 /
    (d + 1/C)) V' F')``.
    """
    scale = np.sqrt(weight)
    unit = scale / np.linalg.norm(scale)
    targets = scale[:, np.newaxis] * Y
    centred = targets - np.outer(unit, unit @ targets)
    mean = np.zeros(n_features)
    for part, tile in tiles():
        mean += (unit[part] * scale[part]) @ tile

    def centred_tile(part: slice, tile: Array) -> Array:
        F = scale[part, np.newaxis] * np.asarray(tile, dtype=np.float64)
        F -= np.outer(unit[part], mean)
        return F

    square, right = np.zeros((n_features, n_features)), np.zeros((n_features, Y.shape[1]))
    for part, tile in tiles():
        F = centred_tile(part, tile)
        square += F.T @ F
        right += F.T @ centred[part]
    values, vectors = eigh(square, overwrite_a=True, check_finite=False, driver="evd")
    inverse = 1.0 / (np.maximum(values, 0.0)[:, np.newaxis] + 1.0 / costs)
    # Weights of the turned features, (n_features, n_costs, n_targets).
    loads = inverse[:, :, np.newaxis] * (vectors.T @ right)[:, np.newaxis]
    B = np.empty((len(Y), len(costs), Y.shape[1]))
    diagonal = np.empty((len(Y), len(costs)))
    for part, tile in tiles():
        turned = centred_tile(part, tile) @ vectors
        B[part] = centred[part, np.newaxis] - _turned(turned, loads)
        diagonal[part] = 1.0 - unit[part, np.newaxis] ** 2 - turned**2 @ inverse
    B *= costs[:, np.newaxis]
    diagonal *= costs
    weights = _turned(vectors, loads)
    intercept = unit @ targets - np.einsum("r,rct->ct", mean, weights)
    path = _assembled(costs, Y, scale, unit, B, diagonal, intercept)
    if (weight == 0.0).any():
        for part, tile in tiles():
            absent = np.flatnonzero(weight[part] == 0.0)
            decision = _turned(tile[absent], weights) + path.intercept
            path.loo[:, part.start + absent] = decision.transpose(1, 0, 2)
    return path


def _assembled(
    costs: Array,
    Y: Array,
    scale: Array,
    unit: Array,
    B: Array,
    diagonal: Array,
    intercept: Array,
) -> SquaredPath:
    """Return the path of scaled coefficients, the diagonal of ``P`` and the scaled intercepts."""
    intercept = intercept / np.linalg.norm(scale)
    coef = scale[:, np.newaxis, np.newaxis] * B
    # Zero without other samples: there is nothing to decide by.
    alone = 1.0 - unit**2 <= _ROUNDING * np.finfo(float).eps
    unusable = (alone | (scale == 0.0))[:, np.newaxis]
    divisor = np.where(unusable, 1.0, scale[:, np.newaxis] * diagonal)[:, :, np.newaxis]
    loo = np.where(unusable[:, np.newaxis], 0.0, Y[:, np.newaxis] - B / divisor)
    return SquaredPath(
        costs, coef.transpose(1, 0, 2), np.asarray(intercept), loo.transpose(1, 0, 2)
    )


def _checked(Y: Any, costs: Any, weight: Any) -> tuple[Array, Array, Array]:
    """Return targets (n, n_targets), costs and weights in double precision."""
    Y = column(np.asarray(Y, dtype=np.float64))
    costs = np.asarray(costs, dtype=np.float64)
    if costs.ndim != 1 or not len(costs) or not ((costs > 0) & np.isfinite(costs)).all():
        raise ValueError(f"costs must be positive, finite numbers, got {costs!r}")
    weight = np.ones(len(Y)) if weight is None else np.asarray(weight, dtype=np.float64)
    if weight.shape != (len(Y),) or not (weight >= 0).all() or not (weight > 0).any():
        raise ValueError(
            f"weights must be one number for each of the {len(Y)} samples, not negative and not "
            "all zero"
        )
    return Y, costs, weight
