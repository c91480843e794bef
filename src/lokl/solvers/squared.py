"""Squared loss on a stored matrix or on features: several costs, and exact leave-one-out decisions.

``min_f,b  |f|^2 / 2 + C/2 sum_j w_j (y_j - f(x_j) - b)^2`` is the least-squares SVM, kernel ridge
regression with an intercept that is not regularised. Its coefficients solve ``(K + diag(1 / (C w)))
a + b = y`` with ``1'a = 0``. With ``s = sqrt(w)`` and ``a = s o B`` this is one matrix for all
costs: ``B = P (s o y)``, where ``P`` inverts ``S K S + I / C`` on the vectors orthogonal to ``s``.
The decision about sample j without it is ``y_j - a_j / M_jj`` with ``M = S P S``.

The matrix is centred, so that nothing cancels if the kernel has a large constant part, and ``s``
becomes an eigenvector with the largest eigenvalue.

:class:`Squared` solves :class:`~lokl.solvers.Problem` objects in this way. If neither the Gram
matrix nor few features fit into memory, it uses conjugate gradients on products with the matrix.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh, solve_triangular
from scipy.linalg.lapack import get_lapack_funcs
from sklearn.base import clone

from lokl._arrays import Array, column, evenly_spaced, is_sparse, slices
from lokl._parameters import check_positive
from lokl._threads import limit_blas_for, multiply, run_chunked
from lokl.gram import GatedGram, InnerProducts, LowRankGram
from lokl.gram.memory import MEGABYTE
from lokl.solvers.base import Solver, TolerantSolver, warn_indefinite, warn_unconverged
from lokl.solvers.problem import Dual, Problem

# Most costs that are solved one by one: one inverse is faster than all eigenvectors.
_FEW_COSTS = 3
# Matrices in single precision, and those of more samples than this, are factorised in single
# precision if the condition number of the system is below this; steps of refinement, and the
# residual that is left.
_LARGE, _WELL_CONDITIONED, _REFINEMENTS, _RESIDUAL = 4000, 1e4, 4, 1e-9
# Negative eigenvalues of this size, in units of the precision and of the largest one, are rounding.
_ROUNDING = 16.0
# Largest sum of costs for which kernel values may be in single precision.
_LARGEST_SUM_OF_COSTS = 1e5
# Rows of a block of the matrix or of features in double precision, and the numbers in a block that
# stays in the second-level cache.
_BLOCK, _TILE = 1024, 2**17
# Most features for which a matrix of their products is stored.
_MOST_FEATURES = 5000
# Most Newton steps of the squared hinge.
_HINGE_STEPS = 25
# Most steps of conjugate gradients by default; most landmarks of their preconditioner, the samples
# for each, and the part of the diagonal that is added to the landmarks' matrix.
_MOST_STEPS, _LANDMARKS, _SAMPLES_PER_LANDMARK, _JITTER = 1000, 1000, 8, 1e-6

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

    See Also
    --------
    lokl.solvers.squared_path : Computes it.
    lokl.solvers.squared_hinge_path : With the squared hinge.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.solvers import squared_path
    >>> x = np.array([-1.0, 0.0, 1.0])
    >>> path = squared_path(np.outer(x, x), x, [0.1, 1.0, 10.0])
    >>> path.costs, path.coef.shape
    (array([ 0.1,  1. , 10. ]), (3, 3, 1))
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
        ``C``; up to three are solved by Cholesky factorisations, more by one eigendecomposition.
    weight : array of shape (n_samples,), optional
        Factors of the costs. A weight of 0 leaves a sample out.

    Returns
    -------
    SquaredPath
        Coefficients, intercepts and leave-one-out decisions, by cost.

    See Also
    --------
    lokl.solvers.squared_hinge_path : With the squared hinge.
    lokl.solvers.squared_path_features : On features instead of a matrix.
    lokl.solvers.Squared : The squared loss.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.solvers import squared_path
    >>> x = np.array([-1.0, 0.0, 1.0])
    >>> path = squared_path(np.outer(x, x), 2 * x + 1, [1e6])
    >>> path.intercept.round(3), path.loo[0, :, 0].round(3)
    (array([[1.]]), array([-1.,  1.,  3.]))
    """
    return _path_on_stored(K, *_checked(Y, costs, weight))


def squared_hinge_path(
    K: Array, Y: Array, costs: Array | Sequence[float], weight: Array | None = None
) -> SquaredPath:
    """Return the solutions with the squared hinge on one Gram matrix at several costs.

    Newton steps: the solution with the squared loss on the samples with ``y f(x) < 1`` gives the
    next such samples, until they do not change. The leave-one-out decisions are exact for the
    squared loss on these samples, and approximate for the squared hinge, because leaving out a
    sample may change them.

    Parameters
    ----------
    K : array of shape (n_samples, n_samples)
        Gram matrix; it is not changed.
    Y : array of shape (n_samples,) or (n_samples, n_targets)
        1 and -1.
    costs : sequence of float
        Each solution starts from the one before; ascending costs need the fewest steps.
    weight : array of shape (n_samples,), optional
        Factors of the costs. A weight of 0 leaves a sample out.

    Returns
    -------
    SquaredPath
        NaN where the steps do not converge.

    See Also
    --------
    lokl.solvers.squared_path : With the squared loss.
    lokl.solvers.squared_hinge : The problem of one cost.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.solvers import squared_hinge_path
    >>> x = np.array([-9.0, -1.0, 1.0, 9.0])
    >>> path = squared_hinge_path(np.outer(x, x), np.sign(x), [1e6])
    >>> path.coef[0, :, 0].round(3), path.loo[0, :, 0].round(3)
    (array([ 0. , -0.5,  0.5,  0. ]), array([-9.,  1., -1.,  9.]))
    """
    Y, costs, weight = _checked(Y, costs, weight)
    path = SquaredPath(
        costs,
        np.full((len(costs), *Y.shape), np.nan),
        np.full((len(costs), Y.shape[1]), np.nan),
        np.full((len(costs), *Y.shape), np.nan),
    )
    active = np.repeat((weight > 0)[np.newaxis], Y.shape[1], axis=0)
    for index, cost in enumerate(costs):
        converged = np.zeros(Y.shape[1], dtype=bool)
        for _ in range(_HINGE_STEPS):
            for tasks in _equal_rows(active, np.flatnonzero(~converged)):
                system = _hinge_system(K, Y[:, tasks], cost, weight, active[tasks[0]])
                if system is None:
                    continue
                violating = _violating(system, weight)
                done = (violating == active[tasks[0]]).all(axis=1)
                if done.any():
                    found = system.path()
                    path.coef[index][:, tasks[done]] = found.coef[0][:, done]
                    path.intercept[index, tasks[done]] = found.intercept[0, done]
                    path.loo[index][:, tasks[done]] = found.loo[0][:, done]
                active[tasks], converged[tasks] = violating, done
            if converged.all():
                break
        active[~converged] = weight > 0
    return path


def _equal_rows(active: Array, tasks: Array) -> list[Array]:
    """Divide tasks into groups with equal active samples, which share a factorisation."""
    groups: dict[bytes, list[int]] = {}
    for task in tasks:
        groups.setdefault(active[task].tobytes(), []).append(int(task))
    return [np.array(members) for members in groups.values()]


def _hinge_system(
    K: Array, Y: Array, cost: float, weight: Array, active: Array
) -> "_StoredSystem | None":
    """Return the system of the active samples; None if one class is active alone."""
    if (Y[active].min(axis=0, initial=1.0) == Y[active].max(axis=0, initial=-1.0)).any():
        return None
    return _StoredSystem.of(K, Y, np.array([cost]), np.where(active, weight, 0.0))


def _violating(system: "_StoredSystem", weight: Array) -> Array:
    """Return which samples are inside the margin of each solution, (n_targets, n_samples)."""
    path, Y, cost = system.path(left_out=False), system.Y, system.costs[0]
    active = system.weight > 0
    slack = path.coef[0] / np.where(active, cost * weight, 1.0)[:, np.newaxis]
    # Of absent samples, `loo` has the decision of the solution.
    decision = np.where(active[:, np.newaxis], Y - slack, path.loo[0])
    return np.asarray((Y * decision < 1.0) & (weight > 0)[:, np.newaxis]).T


def _path_on_stored(K: Array, Y: Array, costs: Array, weight: Array) -> SquaredPath:
    """Return the solutions on a stored matrix."""
    return _StoredSystem.of(K, Y, costs, weight).path()


def _groups(costs: Array) -> Array:
    """Return costs in groups that share a factorisation, one in each row."""
    return costs[np.newaxis] if len(costs) > _FEW_COSTS else costs[:, np.newaxis]


def bordered_inverse(
    gram: GatedGram | Array, problems: Sequence[Problem]
) -> tuple[Array, Array] | None:
    """Return ``M`` and ``m`` with coefficients ``a = M y`` and intercepts ``m'y`` of any targets.

    Without sample j the coefficients are ``a - M[:, j] a_j / M_jj``, and the intercept is
    ``b - m_j a_j / M_jj``.

    Parameters
    ----------
    gram : GatedGram or array of shape (n_samples, n_samples)
    problems : sequence of Problem
        Of equal costs. Rows of ``M`` are zero for samples without a cost.

    Returns
    -------
    (M, m) : arrays of shape (n_samples, n_samples) and (n_samples,), or None
        None if the matrix is not stored.
    """
    if isinstance(gram, GatedGram) and (gram.is_low_rank or not gram.fits):
        return None
    Y, cost = _stacked(problems, range(len(problems)))
    return _system_on_gram(gram, Y, cost).bordered_inverse()


@dataclass(eq=False)
class _Inverse:
    """``(A + I / C)^-1 = T diag(values) T'`` at some costs.

    ``T`` are the eigenvectors or, at a single cost, the inverse of the Cholesky factor.
    """

    T: Array  # (n, n); the Cholesky factor until `turned`
    values: Array  # (n, n_costs)
    is_factor: bool

    @classmethod
    def of(
        cls, matrix: Callable[[Any], Array], costs: Array, dtype: Any, rounding: float
    ) -> "_Inverse":
        """Factorise; negative eigenvalues up to `rounding` count as zero.

        Parameters
        ----------
        matrix : callable
            Returns A in a given precision, as a new array in Fortran order. Its upper triangle is
            not used.
        costs : array of shape (n_costs,)
        dtype : dtype
        rounding : float
        """
        if len(costs) == 1:
            A = matrix(dtype)
            A.flat[:: len(A) + 1] += 1.0 / costs[0]
            factor, failed = _lapack("potrf", A)(A, lower=1, overwrite_a=1)
            if not failed:
                return cls(factor, np.ones((len(factor), 1), dtype=dtype), True)
            del A, factor
        values, vectors = eigh(matrix(dtype), overwrite_a=True, check_finite=False, driver="evd")
        values = values.astype(np.float64)
        values[(values < 0.0) & (values > -rounding)] = 0.0
        shifted = values[:, np.newaxis] + 1.0 / costs
        if shifted.min(initial=1.0) <= 0.0:
            warn_indefinite()
        return cls(vectors, 1.0 / shifted, False)

    def solve(self, right: Array) -> Array:
        """Return the inverse times columns, (n, n_costs, n_targets) in double precision."""
        if self.is_factor:
            columns = right[:, 0].astype(self.T.dtype)
            solution, _ = _lapack("potrs", self.T)(self.T, columns, lower=1)
            return np.asarray(solution[:, np.newaxis], dtype=np.float64)
        return _turned(self.T, _turned(self.T.T, right) * self.values[:, :, np.newaxis])

    def turned(self) -> Array:
        """Return ``T``; solutions take longer afterwards."""
        if self.is_factor:
            inverse, _ = _lapack("trtri", self.T)(self.T, lower=1, overwrite_c=1)
            self.T, self.is_factor = inverse.T, False
        return self.T

    def squares(self, F: Array | None = None) -> Array:
        """Return the diagonal of ``F (A + I / C)^-1 F'``, (n_rows, n_costs), by default of all."""
        rows = self.turned() if F is None else multiply(F, self.turned())
        values = self.values.astype(rows.dtype)
        squares = np.empty((len(rows), values.shape[1]))
        for part in slices(len(rows), _BLOCK):
            squares[part] = rows[part] ** 2 @ values
        return squares

    def whole(self) -> Array:
        """Return the inverse at a single cost, in place of ``T``."""
        T, values = self.turned(), self.values[:, 0]
        if (values == 1.0).all():
            product, _ = _lapack("lauum", T)(T.T, lower=1, overwrite_c=1)
            matrix = product.T
            for part in _tiles(0, len(matrix), len(matrix)):
                matrix[part.stop :, part] = matrix[part, part.stop :].T
                square = np.triu(matrix[part, part])
                matrix[part, part] = square + np.triu(square, 1).T
            return np.asarray(matrix)
        return multiply(T * values.astype(T.dtype), T.T)


@dataclass(eq=False)
class _Centred:
    """``H S K S H + shift uu'`` with ``u = s / |s|`` and ``H = I - uu'``."""

    K: Array
    scale: Array  # s = sqrt(weight), (n,)
    unit: Array  # u, (n,)
    is_weighted: bool  # whether some s is not one
    means: Array  # S K S u, (n,)
    shift: float  # twice a bound of the other eigenvalues
    rounding: float  # size of eigenvalues that are zero up to rounding

    @classmethod
    def of(cls, K: Array, weight: Array) -> "_Centred":
        scale = np.sqrt(weight)
        unit, is_weighted = scale / np.linalg.norm(scale), bool((scale != 1.0).any())
        system = cls(K, scale, unit, is_weighted, np.empty(len(K)), 0.0, 0.0)
        squares = np.empty(len(K))

        def task(start: int, stop: int) -> None:
            for part in _tiles(start, stop, len(system.K)):
                rows = system._rows(part)
                system.means[part] = rows @ system.unit
                squares[part] = np.einsum("jk,jk->j", rows, rows)

        with limit_blas_for(len(K)):
            run_chunked(task, len(K), _rows_of_tile(len(K)))
        square, mean = float(squares.sum()), float(system.unit @ system.means)
        precision = np.finfo(np.result_type(K, np.float32)).eps
        system.rounding = _ROUNDING * float(precision) * np.sqrt(square)
        # Squared norm of the centred matrix.
        rest = square - 2.0 * float(system.means @ system.means) + mean**2
        least = _ROUNDING * np.finfo(float).eps * np.sqrt(square)
        system.shift = 2.0 * max(np.sqrt(max(rest, 0.0)), float(least)) or 1.0
        return system

    def _rows(self, part: slice, first: int = 0) -> Array:
        """Return rows of ``S K S`` in double precision, without the columns before `first`."""
        rows = np.asarray(self.K[part, first:], dtype=np.float64)
        if self.is_weighted:
            rows = self.scale[part, np.newaxis] * rows * self.scale[first:]
        return rows

    def matrix(self, dtype: Any) -> Array:
        """Return the lower triangle of the matrix in some precision, in Fortran order."""
        # The matrix is ``S K S - u h' - h u'``.
        mean = float(self.unit @ self.means)
        half = self.means - 0.5 * (mean + self.shift) * self.unit
        left, right = np.column_stack([self.unit, half]), np.stack([half, self.unit])
        matrix = np.empty(self.K.shape, dtype=dtype)

        def task(start: int, stop: int) -> None:
            for part in _tiles(start, stop, len(matrix)):
                rows, first = self._rows(part, part.start), part.start
                correction = left[part] @ right[:, first:]
                np.subtract(rows, correction, out=matrix[part, first:], casting="same_kind")

        with limit_blas_for(len(matrix)):
            run_chunked(task, len(matrix), _rows_of_tile(len(matrix)))
        return matrix.T

    def solve(self, right: Array, costs: Array) -> tuple[Array, _Inverse]:
        """Return ``B``, (n, n_costs, n_targets), and the factorisation."""
        condition = 1.0 + 0.5 * self.shift * float(costs.max())
        is_single = self.K.dtype == np.float32 or len(self.unit) > _LARGE
        if is_single and condition <= _WELL_CONDITIONED:
            inverse = _Inverse.of(self.matrix, costs, np.float32, self.rounding)
            B = inverse.solve(right)
            if self._refine(B, inverse, right, costs):
                return B, inverse
        inverse = _Inverse.of(self.matrix, costs, np.float64, self.rounding)
        return inverse.solve(right), inverse

    def diagonal(self, inverse: _Inverse, costs: Array) -> Array:
        """Return the diagonal of ``P``, (n, n_costs)."""
        return inverse.squares() - np.outer(self.unit**2, 1.0 / (self.shift + 1.0 / costs))

    def _refine(self, B: Array, inverse: _Inverse, right: Array, costs: Array) -> bool:
        """Improve ``B`` in place with a factor in single precision; return whether it is exact."""
        for _ in range(_REFINEMENTS):
            # The factor is of a matrix with another eigenvalue for u.
            B -= self.unit[:, np.newaxis, np.newaxis] * np.einsum("j,jct->ct", self.unit, B)
            flat = (self.scale[:, np.newaxis, np.newaxis] * B).reshape(len(B), -1)
            product = self.scale[:, np.newaxis] * _product(self.K, flat)
            product -= np.outer(self.unit, self.unit @ product)
            residual = right - product.reshape(B.shape) - B / costs[:, np.newaxis]
            if np.abs(residual).max() <= _RESIDUAL * np.abs(right).max():
                return True
            B += inverse.solve(residual)
        return False


@dataclass(eq=False)
class _StoredSystem:
    """System of the samples that have a weight, on a stored matrix.

    At a single cost the factorisation is kept: leave-one-out decisions need it after the solution.
    """

    K: Array  # of all samples
    Y: Array
    costs: Array
    weight: Array
    present: Array  # indices of samples that have a weight
    centred: _Centred
    targets: Array  # S y of these samples, (n_present, n_targets)
    _latest: tuple[Array, _Inverse] | None = None

    @classmethod
    def of(cls, K: Array, Y: Array, costs: Array, weight: Array) -> "_StoredSystem":
        present = np.flatnonzero(weight > 0)
        inside = K if len(present) == len(weight) else K.take(present, 0).take(present, 1)
        centred = _Centred.of(inside, weight[present])
        targets = centred.scale[:, np.newaxis] * Y[present]
        return cls(K, Y, costs, weight, present, centred, targets)

    def equals(self, Y: Array, costs: Array, weight: Array) -> bool:
        """Return whether the targets and costs are those of this system."""
        pairs = (self.Y, Y), (self.costs, costs), (self.weight, weight)
        return all(np.array_equal(*pair) for pair in pairs)

    @property
    def megabytes(self) -> float:
        """Size of the factorisation that is kept."""
        return 0.0 if self._latest is None else self._latest[1].T.nbytes / MEGABYTE

    def _solve(self, costs: Array) -> tuple[Array, _Inverse]:
        if self._latest is not None:
            return self._latest
        unit = self.centred.unit
        right = self.targets - np.outer(unit, unit @ self.targets)
        solved = self.centred.solve(right[:, np.newaxis], costs)
        if len(self.costs) == 1:
            self._latest = solved
        return solved

    def path(self, *, left_out: bool = True) -> SquaredPath:
        """Return the solutions; without `left_out`, `loo` is NaN and saves time."""
        B, diagonal = [], []
        for costs in _groups(self.costs):
            solution, inverse = self._solve(costs)
            B.append(solution)
            unknown = np.full((len(solution), len(costs)), np.nan)
            diagonal.append(self.centred.diagonal(inverse, costs) if left_out else unknown)
        joined, centred = np.concatenate(B, axis=1), self.centred
        path = _assembled(
            self.costs,
            self.Y[self.present],
            centred.scale,
            joined,
            np.concatenate(diagonal, axis=1),
            centred.unit @ self.targets - np.einsum("j,jct->ct", centred.means, joined),
        )
        return path if len(self.present) == len(self.weight) else self._expanded(path)

    def _expanded(self, path: SquaredPath) -> SquaredPath:
        """Return the solutions of all samples from those of the samples that have a weight."""
        coef = np.zeros((len(self.costs), *self.Y.shape))
        coef[:, self.present] = path.coef
        loo = np.matmul(self.K, coef) + path.intercept[:, np.newaxis]
        loo[:, self.present] = path.loo
        return SquaredPath(self.costs, coef, path.intercept, loo)

    def bordered_inverse(self) -> tuple[Array, Array]:
        """Return ``M`` and ``m`` at a single cost; the factorisation is used up."""
        inverse, centred = self._solve(self.costs)[1], self.centred
        self._latest = None
        P = inverse.whole()
        unit, scale = centred.unit.astype(P.dtype), centred.scale.astype(P.dtype)
        ridge = 1.0 / float(self.costs[0])
        P -= np.outer(unit, unit / P.dtype.type(centred.shift + ridge))
        means = centred.means - float(centred.unit @ centred.means) * centred.unit
        intercept = centred.unit - P @ means.astype(P.dtype)
        intercept *= centred.scale / np.linalg.norm(centred.scale)
        if centred.is_weighted:
            P *= scale
            P *= scale[:, np.newaxis]
        if len(scale) == len(self.weight):
            return P, intercept
        M, m = np.zeros(self.K.shape, dtype=P.dtype), np.zeros(len(self.weight))
        M[np.ix_(self.present, self.present)], m[self.present] = P, intercept
        return M, m


def _lapack(name: str, matrix: Array) -> Any:
    """Return a LAPACK function in the precision of a matrix."""
    return get_lapack_funcs(name, (matrix,))


def _tiles(start: int, stop: int, width: int) -> list[slice]:
    """Return slices of a few rows of some width that divide ``range(start, stop)``."""
    parts = slices(stop - start, _rows_of_tile(width))
    return [slice(start + part.start, start + part.stop) for part in parts]


def _rows_of_tile(width: int) -> int:
    return max(_TILE // width, 1)


def _turned(matrix: Array, columns: Array) -> Array:
    """Return a product with all columns of an array of three axes, in double precision."""
    flat = columns.reshape(len(columns), -1).astype(matrix.dtype)
    return multiply(matrix, flat).astype(np.float64).reshape(len(matrix), *columns.shape[1:])


def _product(K: Array, columns: Array) -> Array:
    """Return ``K @ columns`` in double precision, block by block."""
    parts = slices(len(columns), _BLOCK)
    return np.concatenate([np.asarray(K[part], dtype=np.float64) @ columns for part in parts])


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
        As :func:`squared_path` returns it.

    See Also
    --------
    lokl.solvers.squared_path : On a Gram matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.solvers import squared_path_features
    >>> x = np.array([[-1.0], [0.0], [1.0]])
    >>> path = squared_path_features(x, 2 * x[:, 0] + 1, [1e6])
    >>> path.intercept.round(3), path.loo[0, :, 0].round(3)
    (array([[1.]]), array([-1.,  1.,  3.]))
    """
    Y, costs, weight = _checked(Y, costs, weight)

    def tiles() -> Iterator[tuple[slice, Array]]:
        return ((part, Phi[part]) for part in slices(len(Phi), _BLOCK))

    return _path_of_tiles(tiles, Phi.shape[1], Y, costs, weight)


def _path_of_tiles(
    tiles: Tiles, width: int, Y: Array, costs: Array, weight: Array, *, left_out: bool = True
) -> SquaredPath:
    """Return the solutions on features that come in tiles, in a few passes over them.

    With centred features ``F`` of some `width` the matrix is
    ``P = C (H - F (F'F + I / C)^-1 F')``. `loo` is NaN without `left_out`.
    """
    scale = np.sqrt(weight)
    unit = scale / np.linalg.norm(scale)
    targets = scale[:, np.newaxis] * Y
    centred = targets - np.outer(unit, unit @ targets)
    mean = np.zeros(width)
    for part, tile in tiles():
        mean += (unit[part] * scale[part]) @ tile

    def centred_tiles() -> Iterator[tuple[slice, Array]]:
        for part, tile in tiles():
            F = scale[part, np.newaxis] * np.asarray(tile, dtype=np.float64)
            F -= np.outer(unit[part], mean)
            yield part, F

    square, right = np.zeros((width, width)), np.zeros((width, 1, Y.shape[1]))
    for part, F in centred_tiles():
        square += multiply(F.T, F)
        right[:, 0] += F.T @ centred[part]
    rounding = _ROUNDING * float(np.finfo(float).eps * square.trace())
    inverses = [
        _Inverse.of(partial(np.array, square, order="F"), group, np.float64, rounding)
        for group in _groups(costs)
    ]
    loads = np.concatenate([inverse.solve(right) for inverse in inverses], axis=1)
    B = np.empty((len(Y), len(costs), Y.shape[1]))
    diagonal = np.full((len(Y), len(costs)), np.nan)
    for part, F in centred_tiles():
        B[part] = centred[part, np.newaxis] - _turned(F, loads)
        if left_out:
            explained = np.hstack([inverse.squares(F) for inverse in inverses])
            diagonal[part] = 1.0 - unit[part, np.newaxis] ** 2 - explained
    intercept = unit @ targets - np.einsum("r,rct->ct", mean, loads)
    B *= costs[:, np.newaxis]
    path = _assembled(costs, Y, scale, B, diagonal * costs, intercept)
    if left_out and (weight == 0.0).any():
        for part, tile in tiles():
            absent = np.flatnonzero(weight[part] == 0.0)
            decision = _turned(tile[absent], loads) + path.intercept
            path.loo[:, part.start + absent] = decision.transpose(1, 0, 2)
    return path


def _assembled(
    costs: Array,
    Y: Array,
    scale: Array,
    B: Array,
    diagonal: Array,
    intercept: Array,
) -> SquaredPath:
    """Return the path of scaled coefficients, the diagonal of ``P`` and the scaled intercepts."""
    norm = float(np.linalg.norm(scale))
    coef = scale[:, np.newaxis, np.newaxis] * B
    # Zero without other samples: there is nothing to decide by.
    alone = 1.0 - (scale / norm) ** 2 <= _ROUNDING * np.finfo(float).eps
    unusable = (alone | (scale == 0.0))[:, np.newaxis]
    divisor = np.where(unusable, 1.0, scale[:, np.newaxis] * diagonal)[:, :, np.newaxis]
    loo = np.where(unusable[:, np.newaxis], 0.0, Y[:, np.newaxis] - B / divisor)
    return SquaredPath(costs, coef.transpose(1, 0, 2), intercept / norm, loo.transpose(1, 0, 2))


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


# Problems and solvers


class SquaredSolver(TolerantSolver):
    """A solver that also minimises the squared loss, without iterations if memory allows."""

    losses: ClassVar[tuple[str, ...]] = (
        "hinge",
        "squared_hinge",
        "epsilon_insensitive",
        "censored",
        "squared",
    )

    cache_size: float
    max_iter: int

    def inner_products(self, X: Any, *, keep: bool = False) -> InnerProducts:
        dtype = self.dtype_for(X.shape[0])
        return InnerProducts(X, cache_size=self.cache_size, dtype=dtype, keep=keep)

    def precise_for(self, problems: Sequence[Problem]) -> Solver:
        """Return a solver in double precision if rounding errors would change the decisions.

        With the squared loss and the squared hinge, coefficients are residuals times costs, without
        a bound. The rounding errors of all kernel values add up to about their precision times the
        sum of costs.
        """
        sums = [float(p.cost.sum()) for p in problems if np.isinf(p.bound).any()]
        is_precise = max(sums, default=0.0) <= _LARGEST_SUM_OF_COSTS
        if is_precise or self.dtype != "auto":
            return self
        return clone(self).set_params(dtype="float64")

    def solve_together(
        self,
        gram: GatedGram,
        problems: Sequence[Problem],
        starts: Sequence[Array | None] | None = None,
    ) -> list[Dual]:
        if not all(problem.is_squared for problem in problems):
            return super().solve_together(gram, problems, starts)
        # One factorisation serves all.
        limit = _MOST_STEPS if self.max_iter < 0 else self.max_iter
        return solve_squared(gram, problems, check_positive("tol", self.tol), limit, starts)


@dataclass(eq=False, repr=False)
class Squared(SquaredSolver):
    """Squared loss: all classes or targets from one factorisation.

    ``min_f,b |f|^2 / 2 + sum_j C_j (y_j - f(x_j) - b)^2 / 2``: the least-squares SVM, or kernel
    ridge regression with an intercept that is not regularised.

    Parameters
    ----------
    tol : float, default=1e-3
        Largest violation of the optimality conditions that is left by conjugate gradients. A
        factorisation is exact up to rounding.
    cache_size : float, default=512
        Megabytes up to which the Gram matrix is stored and factorised.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of the Gram matrix.
    max_iter : int, default=-1
        Limit on the steps of conjugate gradients; -1 is 1000.

    See Also
    --------
    lokl.solvers.Exact : The default solver.
    lokl.solvers.squared_path : Several costs on one matrix.
    lokl.solvers.solve_svc : Solves a two-class SVM.

    Notes
    -----
    Linear kernels with fewer columns than samples are solved on the columns. A Gram matrix that
    exceeds `cache_size` is never stored: conjugate gradients use its products, preconditioned by
    some of its columns. :class:`Exact` and :class:`Primal` solve problems with the squared loss in
    the same way, the latter on its features.

    Examples
    --------
    >>> from lokl.kernels import RBF
    >>> from lokl.solvers import Squared, solve_svc
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0]], [1, -1, -1, 1]
    >>> dual = solve_svc(RBF(1.0), X, y, C=10.0, solver=Squared())
    >>> round(dual.objective, 2), dual.converged
    (2.7, True)
    """

    losses: ClassVar[tuple[str, ...]] = ("squared",)

    tol: float = 1e-3
    cache_size: float = 512
    dtype: Any = "auto"
    max_iter: int = -1

    def solve(
        self, gram: GatedGram, problem: Problem, start: Array | None = None, ceiling: float = np.inf
    ) -> Dual:
        return self.solve_together(gram, [problem], [start])[0]

    def solve_subsets(
        self, gram: GatedGram, problems: Sequence[Problem], starts: Sequence[Array] | None = None
    ) -> list[Dual]:
        return self.solve_together(gram, problems, starts)


def solve_squared(
    gram: GatedGram | Array,
    problems: Sequence[Problem],
    tol: float,
    limit: int = 0,
    starts: Sequence[Array | None] | None = None,
) -> list[Dual]:
    """Solve problems with the squared loss, those of equal costs together.

    Parameters
    ----------
    gram : GatedGram or array of shape (n_samples, n_samples)
        A stored matrix, or a Gram matrix that may not fit into memory.
    problems : sequence of Problem
    tol : float
        Violation at which conjugate gradients end, and above which a warning is issued.
    limit : int, default=0
        Most steps of conjugate gradients.
    starts : sequence of arrays of shape (n_samples,), optional
    """
    duals: list[Any] = [None] * len(problems)
    for members in _by_cost(problems):
        Y, cost = _stacked(problems, members)
        path, steps = _direct_path(gram, Y, cost, left_out=False), 1
        if path is not None:
            coef, intercept = path.coef[0], path.intercept[0]
        else:
            assert isinstance(gram, GatedGram)
            begin = [None if starts is None else starts[i] for i in members]
            coef, intercept, steps = _by_products(gram, Y, cost, begin, tol, limit)
        if isinstance(gram, GatedGram):
            is_whole = path is not None and gram.needs_rows and not gram.is_low_rank
            product = _product(gram.whole, coef) if is_whole else gram.dot(coef)
        else:
            product = _product(gram, coef)
        for i, u, f, b in zip(members, coef.T, product.T, intercept, strict=True):
            gradient = problems[i].target - f - problems[i].ridge * u
            violation = problems[i].violation(u, gradient)
            if violation > tol:
                left = f"violation of {violation:.3g} > tol = {tol:.3g}"
                remedy = "scale the data or the kernels, or lower C"
                warn_unconverged(f"{steps} steps", left, remedy)
            duals[i] = problems[i].dual(u, gradient, steps, violation <= tol, float(b))
    return duals


def leave_one_out(gram: GatedGram, problems: Sequence[Problem]) -> Array | None:
    """Return the exact leave-one-out decisions of problems with the squared loss.

    Parameters
    ----------
    gram : GatedGram
    problems : sequence of Problem

    Returns
    -------
    decisions : array of shape (n_samples, n_problems) or None
        None for other losses, and if neither the matrix nor few features fit into memory.
    """
    if not all(problem.is_squared for problem in problems):
        return None
    decisions = np.empty((gram.n_samples, len(problems)))
    for members in _by_cost(problems):
        path = _direct_path(gram, *_stacked(problems, members), left_out=True)
        if path is None:
            return None
        decisions[:, members] = path.loo[0]
    return decisions


def _by_cost(problems: Sequence[Problem]) -> list[list[int]]:
    """Return the indices of problems in groups with equal costs."""
    groups: dict[bytes, list[int]] = {}
    for i, problem in enumerate(problems):
        groups.setdefault(problem.cost.tobytes(), []).append(i)
    return list(groups.values())


def _stacked(problems: Sequence[Problem], members: Sequence[int]) -> tuple[Array, Array]:
    """Return targets (n_samples, n_members) and the cost of each sample."""
    return np.column_stack([problems[i].target for i in members]), problems[members[0]].cost


def _direct_path(
    gram: GatedGram | Array, Y: Array, cost: Array, *, left_out: bool
) -> SquaredPath | None:
    """Return the solution by a factorisation, None if it needs too much memory."""
    if isinstance(gram, GatedGram) and (width := _width(gram)) <= _MOST_FEATURES:
        largest = float(cost.max())
        costs, weight = np.array([largest]), cost / largest

        def tiles() -> Iterator[tuple[slice, Array]]:
            parts = slices(gram.n_samples, _BLOCK)
            return ((part, _feature_rows(gram, part)) for part in parts)

        return _path_of_tiles(tiles, int(width), Y, costs, weight, left_out=left_out)
    if isinstance(gram, GatedGram) and not gram.fits:
        return None
    system = _system_on_gram(gram, Y, cost)
    path = system.path(left_out=left_out)
    if isinstance(gram, GatedGram):
        memory = gram.inner.memory
        fits = gram.megabytes + system.megabytes <= gram.inner.cache_size
        is_kept = not left_out and fits and memory.belongs_to(gram.points)
        memory.solved = system if is_kept else None
    return path


def _system_on_gram(gram: GatedGram | Array, Y: Array, cost: Array) -> _StoredSystem:
    """Return the system on the whole matrix, the latest one if it is the same."""
    largest = float(cost.max())
    arguments = Y, np.array([largest]), cost / largest
    if not isinstance(gram, GatedGram):
        return _StoredSystem.of(gram, *arguments)
    memory = gram.inner.memory
    solved, memory.solved = memory.solved, None
    if solved is not None and memory.belongs_to(gram.points) and solved.equals(*arguments):
        return solved
    return _StoredSystem.of(gram.whole, *arguments)


def _width(gram: GatedGram) -> float:
    """Return the number of features if it is below the number of samples, else infinity."""
    width = gram.n_samples
    if isinstance(gram, LowRankGram):
        width = gram.n_weights
    elif not gram.needs_rows:
        width = gram.linear_features.shape[1]
    return width if width < gram.n_samples else np.inf


def _feature_rows(gram: GatedGram, part: slice) -> Array:
    """Return the features of some samples, (n_rows, n_features), gates included."""
    if isinstance(gram, LowRankGram):
        return gram.gated_rows(np.arange(part.start, part.stop))
    F = gram.linear_features[part]
    return np.asarray(F.toarray() if is_sparse(F) else F)


def _by_products(
    gram: GatedGram, Y: Array, cost: Array, start: list[Any], tol: float, limit: int
) -> tuple[Array, Array, int]:
    """Return coefficients, intercepts and steps of preconditioned conjugate gradients."""
    scale = np.sqrt(cost)[:, np.newaxis]
    unit = scale / np.linalg.norm(scale)

    def centred(columns: Array) -> Array:
        columns = scale * columns
        return np.asarray(columns - unit * (unit.T @ columns))

    begin = [np.zeros(len(Y)) if coef is None else coef for coef in start]
    B = _ratio(np.column_stack(begin), scale)
    B -= unit * (unit.T @ B)
    R, precondition = centred(Y - gram.dot(scale * B)) - B, _preconditioner(gram, centred, cost)
    D = Z = precondition(R)
    inner, steps = (R * Z).sum(axis=0), 0
    while (np.abs(R) > 0.5 * tol * scale).any() and steps < limit:
        steps += 1
        AD = D + centred(gram.dot(scale * D))
        step = _ratio(inner, (D * AD).sum(axis=0))
        B, R = B + step * D, R - step * AD
        Z = precondition(R)
        before, inner = inner, (R * Z).sum(axis=0)
        D = Z + _ratio(inner, before) * D
    coef = scale * B
    return coef, np.average(Y - gram.dot(coef), axis=0, weights=cost), max(steps, 1)


def _ratio(above: Array, below: Array) -> Array:
    """Return quotients, 0 for divisors that are not positive."""
    divisor = np.broadcast_to(below, above.shape)
    return np.divide(above, divisor, out=np.zeros_like(above), where=divisor > 0)


def _preconditioner(
    gram: GatedGram, centred: Callable[[Array], Array], cost: Array
) -> Callable[[Array], Array]:
    """Return products with the inverse system of a matrix of low rank, from some columns."""
    present = np.flatnonzero(cost > 0)
    count = min(_LANDMARKS, max(len(present) // _SAMPLES_PER_LANDMARK, 1))
    some = present[evenly_spaced(len(present), count)]
    columns = gram.cross(np.arange(gram.n_samples), some).astype(np.float64)
    small = columns[some]
    small.flat[:: count + 1] += _JITTER * max(float(np.abs(small.diagonal()).mean()), 1e-300)
    try:
        factor = np.linalg.cholesky(small)
    except np.linalg.LinAlgError:
        return lambda R: R
    F = centred(solve_triangular(factor, columns.T, lower=True, check_finite=False).T)
    inside = multiply(F.T, F)
    inside.flat[:: count + 1] += 1.0
    inner = cho_factor(inside, lower=True, check_finite=False)
    return lambda R: R - F @ cho_solve(inner, F.T @ R, check_finite=False)
