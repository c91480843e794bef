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
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh, solve_triangular
from scipy.linalg.blas import dger
from scipy.linalg.lapack import get_lapack_funcs

from lokl._arrays import Array, column, evenly_spaced, is_sparse, slices
from lokl._parameters import check_positive
from lokl._threads import multiply
from lokl.gram import GatedGram, InnerProducts, LowRankGram
from lokl.solvers.base import TolerantSolver, warn_indefinite, warn_unconverged
from lokl.solvers.problem import Dual, Problem

# Most costs that are solved one by one: one inverse is faster than all eigenvectors.
_FEW_COSTS = 3
# Samples above which the factorisation is in single precision, if the condition number of the
# system is below this; steps of refinement, and the residual that is left.
_LARGE, _WELL_CONDITIONED, _REFINEMENTS, _RESIDUAL = 4000, 1e4, 4, 1e-9
# Negative eigenvalues of this size, in units of the precision and of the largest one, are rounding.
_ROUNDING = 16.0
# Rows of a block of the matrix or of features in double precision.
_BLOCK = 1024
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
    Y : array of shape (n_samples,) or (n_samples, n_targets)
        1 and -1.
    costs : sequence of float
        Each solution starts from the one before; ascending costs need the fewest steps.
    weight : array of shape (n_samples,), optional

    Returns
    -------
    SquaredPath
        NaN where the steps do not converge.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.solvers import squared_hinge_path
    >>> x = np.array([-9.0, -1.0, 1.0, 9.0])
    >>> path = squared_hinge_path(np.outer(x, x), np.sign(x), [1e6])
    >>> path.coef[0, :, 0].round(3), path.loo[0, :, 0].round(3)
    (array([ 0. , -0.5,  0.5,  0. ]), array([-9., -9.,  9.,  9.]))
    """
    Y, costs, weight = _checked(Y, costs, weight)
    path = SquaredPath(
        costs,
        np.full((len(costs), *Y.shape), np.nan),
        np.full((len(costs), Y.shape[1]), np.nan),
        np.full((len(costs), *Y.shape), np.nan),
    )
    for task, y in enumerate(Y.T):
        active = weight > 0
        for index, cost in enumerate(costs):
            solution, active = _squared_hinge(K, y, cost, weight, active)
            if solution is None:
                active = weight > 0
                continue
            path.coef[index, :, task] = solution.coef[0, :, 0]
            path.intercept[index, task] = solution.intercept[0, 0]
            path.loo[index, :, task] = solution.loo[0, :, 0]
    return path


def _squared_hinge(
    K: Array, y: Array, cost: float, weight: Array, active: Array
) -> tuple[SquaredPath | None, Array]:
    """Return the solution for one target, None without convergence, and its active samples."""
    costs, targets = np.array([cost]), y[:, np.newaxis]
    for _ in range(_HINGE_STEPS):
        if len(np.unique(y[active])) < 2:
            break
        path = _path_on_stored(K, targets, costs, np.where(active, weight, 0.0))
        slack = path.coef[0, :, 0] / np.where(active, cost * weight, 1.0)
        margin = y * np.where(active, y - slack, path.loo[0, :, 0])
        violating = (margin < 1.0) & (weight > 0)
        if (violating == active).all():
            return path, active
        active = violating
    return None, active


def _path_on_stored(
    K: Array, Y: Array, costs: Array, weight: Array, *, left_out: bool = True
) -> SquaredPath:
    """Return the solutions on a stored matrix; without `left_out`, `loo` is NaN and saves time."""
    present = np.flatnonzero(weight > 0)
    if len(present) < len(weight):
        inside = K[np.ix_(present, present)], Y[present], costs, weight[present]
        part = _path_on_stored(*inside, left_out=left_out)
        coef = np.zeros((len(costs), *Y.shape))
        coef[:, present] = part.coef
        loo = K[:, present] @ part.coef + part.intercept[:, np.newaxis]
        loo[:, present] = part.loo
        return SquaredPath(costs, coef, part.intercept, loo)
    system = _Centred.of(K, weight)
    targets = system.scale[:, np.newaxis] * Y
    right = (targets - np.outer(system.unit, system.unit @ targets))[:, np.newaxis]
    solved = [system.solve(right, group, left_out) for group in _groups(costs)]
    B, diagonal = (np.concatenate(parts, axis=1) for parts in zip(*solved, strict=True))
    intercept = system.unit @ targets - np.einsum("j,jct->ct", system.means, B)
    return _assembled(costs, Y, system.scale, B, diagonal, intercept)


def _groups(costs: Array) -> Array:
    """Return costs in groups that share a factorisation, one in each row."""
    return costs[np.newaxis] if len(costs) > _FEW_COSTS else costs[:, np.newaxis]


def bordered_inverse(K: Array, cost: Array) -> tuple[Array, Array]:
    """Return ``M`` and ``m`` with coefficients ``a = M y`` and intercepts ``m'y`` of any targets.

    Without sample j the coefficients are ``a - M[:, j] a_j / M_jj``, and the intercept is
    ``b - m_j a_j / M_jj``.

    Parameters
    ----------
    K : array of shape (n_samples, n_samples)
    cost : array of shape (n_samples,)
        Cost of each sample; rows of ``M`` are zero for samples without one.
    """
    largest = float(cost.max())
    system = _Centred.of(K, cost / largest)
    inverse = _Inverse.of(system.matrix, np.array([largest]), np.float64, system.rounding)
    T = inverse.turned()
    M = multiply(T * inverse.values[:, 0], T.T)
    M -= np.outer(system.unit, system.unit / (system.shift + 1.0 / largest))
    intercept = (system.unit - M @ system.means) * system.scale / np.linalg.norm(system.scale)
    M *= system.scale
    M *= system.scale[:, np.newaxis]
    return M, intercept


@dataclass(eq=False)
class _Inverse:
    """``(A + I / C)^-1 = T diag(values) T'`` at some costs.

    ``T`` are the eigenvectors or, at a single cost, the inverse of the Cholesky factor.
    """

    T: Array  # (n, n); the Cholesky factor until `turned`
    values: Array  # (n, n_costs)
    is_factor: bool

    @classmethod
    def of(cls, A: Array, costs: Array, dtype: Any, rounding: float) -> "_Inverse":
        """Factorise; negative eigenvalues up to `rounding` count as zero."""
        matrix = np.array(A, dtype=dtype, order="F")
        if len(costs) == 1:
            matrix.flat[:: len(matrix) + 1] += 1.0 / costs[0]
            factor, failed = _lapack("potrf", matrix)(matrix, lower=1, overwrite_a=1)
            if not failed:
                return cls(factor, np.ones((len(factor), 1)), True)
            matrix = np.array(A, dtype=dtype, order="F")
        values, vectors = eigh(matrix, overwrite_a=True, check_finite=False, driver="evd")
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
        return np.asarray(rows**2 @ self.values.astype(rows.dtype), dtype=np.float64)


@dataclass(eq=False)
class _Centred:
    """``H S K S H + shift uu'`` with ``u = s / |s|`` and ``H = I - uu'``."""

    given: Array  # K
    matrix: Array  # (n, n)
    scale: Array  # s = sqrt(weight), (n,)
    unit: Array  # u, (n,)
    means: Array  # S K S u, (n,)
    shift: float  # twice a bound of the other eigenvalues
    rounding: float  # size of eigenvalues that are zero up to rounding

    @classmethod
    def of(cls, K: Array, weight: Array) -> "_Centred":
        scale = np.sqrt(weight)
        unit = scale / np.linalg.norm(scale)
        # The transpose of a symmetric matrix, whose rows are contiguous already.
        matrix = np.array(K.T, dtype=np.float64, order="F")
        if (weight != 1.0).any():
            matrix *= scale
            matrix *= scale[:, np.newaxis]
        precision = np.finfo(np.result_type(K, np.float32)).eps
        rounding = _ROUNDING * float(precision * np.linalg.norm(matrix))
        means = matrix @ unit
        # H (matrix) H as one update of rank two.
        half = means - 0.5 * float(unit @ means) * unit
        matrix = dger(-1.0, unit, half, a=matrix, overwrite_a=1)
        matrix = dger(-1.0, half, unit, a=matrix, overwrite_a=1)
        shift = 2.0 * float(np.linalg.norm(matrix)) or 1.0
        matrix = dger(shift, unit, unit, a=matrix, overwrite_a=1)
        return cls(K, matrix, scale, unit, means, shift, rounding)

    def solve(self, right: Array, costs: Array, left_out: bool) -> tuple[Array, Array]:
        """Return ``B``, (n, n_costs, n_targets), and the diagonal of ``P``, (n, n_costs)."""
        condition = 1.0 + 0.5 * self.shift * float(costs.max())
        is_large = len(self.unit) > _LARGE and condition <= _WELL_CONDITIONED
        for dtype in (np.float32, np.float64)[not is_large :]:
            inverse = _Inverse.of(self.matrix, costs, dtype, self.rounding)
            B = inverse.solve(right)
            if dtype == np.float64 or self._refine(B, inverse, right, costs):
                break
        if not left_out:
            return B, np.full((len(B), len(costs)), np.nan)
        return B, inverse.squares() - np.outer(self.unit**2, 1.0 / (self.shift + 1.0 / costs))

    def _refine(self, B: Array, inverse: _Inverse, right: Array, costs: Array) -> bool:
        """Improve ``B`` in place with a factor in single precision; return whether it is exact."""
        for _ in range(_REFINEMENTS):
            flat = (self.scale[:, np.newaxis, np.newaxis] * B).reshape(len(B), -1)
            product = self.scale[:, np.newaxis] * _product(self.given, flat)
            product -= np.outer(self.unit, self.unit @ product)
            residual = right - product.reshape(B.shape) - B / costs[:, np.newaxis]
            if np.abs(residual).max() <= _RESIDUAL * np.abs(right).max():
                return True
            B += inverse.solve(residual)
        return False


def _lapack(name: str, matrix: Array) -> Any:
    """Return a LAPACK function in the precision of a matrix."""
    return get_lapack_funcs(name, (matrix,))


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
    inverses = [_Inverse.of(square, group, np.float64, rounding) for group in _groups(costs)]
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

    losses: ClassVar[tuple[str, ...]] = ("hinge", "squared_hinge", "epsilon_insensitive", "squared")

    cache_size: float
    max_iter: int

    def inner_products(self, X: Any, *, keep: bool = False) -> InnerProducts:
        dtype = self.dtype_for(X.shape[0])
        return InnerProducts(X, cache_size=self.cache_size, dtype=dtype, keep=keep)

    def solve_together(
        self,
        gram: GatedGram,
        problems: Sequence[Problem],
        starts: Sequence[Array | None] | None = None,
    ) -> list[Dual]:
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

    Notes
    -----
    Linear kernels with fewer columns than samples are solved on the columns. A Gram matrix that
    exceeds `cache_size` is never stored: conjugate gradients use its products, preconditioned by
    some of its columns. :class:`Exact` and :class:`Primal` solve problems with the squared loss in
    the same way, the latter on its features.
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


def _stacked(problems: Sequence[Problem], members: list[int]) -> tuple[Array, Array]:
    """Return targets (n_samples, n_members) and the cost of each sample."""
    return np.column_stack([problems[i].target for i in members]), problems[members[0]].cost


def _direct_path(
    gram: GatedGram | Array, Y: Array, cost: Array, *, left_out: bool
) -> SquaredPath | None:
    """Return the solution by a factorisation, None if it needs too much memory."""
    largest = float(cost.max())
    arguments = Y, np.array([largest]), cost / largest
    if not isinstance(gram, GatedGram):
        return _path_on_stored(gram, *arguments, left_out=left_out)
    if isinstance(gram, LowRankGram):
        width = gram.n_weights
    else:
        width = gram.n_samples if gram.needs_rows else gram.linear_features.shape[1]
    if width < gram.n_samples and width <= _MOST_FEATURES:

        def tiles() -> Iterator[tuple[slice, Array]]:
            parts = slices(gram.n_samples, _BLOCK)
            return ((part, _feature_rows(gram, part)) for part in parts)

        return _path_of_tiles(tiles, width, *arguments, left_out=left_out)
    return _path_on_stored(gram.whole, *arguments, left_out=left_out) if gram.fits else None


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
