"""Low-rank solver: an SVM on explicit features of the kernels, for many samples.

Two methods share the solver. The choice depends on whether the features fit into memory.

**Dual coordinate descent** on stored features (:func:`descend`). One coefficient after the other
moves to its best value, in random order. The weights ``w = sum_j u_j phi(x_j)`` are updated with
it, so a step costs two passes over the features of one sample. Samples at a bound that will stay
there are skipped (*shrinking*), soon most of them. The intercept is not regularised, so
coefficients must sum to zero, which single steps cannot keep. Instead the intercept is ``b + pull *
sum_j u_j``, and ``b`` is moved to it after every pass (the method of multipliers). At the end the
sum is zero, and ``b`` is the intercept of the exact solution, not one that is shrunk to zero.

**Newton's method in the primal** (:class:`PrimalNewton`) on features that are computed again in
every pass. Let ``u_j(f)`` be the best coefficient of a sample at its decision value ``f`` if
coefficients are held near a *centre* ``a``: it maximises ``u (t - f) - epsilon |u| - ridge u^2 / 2
- hold (u - a)^2 / 2`` in its box. The sum of ``|w|^2 / 2`` and these maxima is smooth in ``w``: its
gradient is ``w - sum_j u_j phi(x_j)``, and only samples with a free coefficient contribute to its
second derivative. The squared hinge needs no holding. Other losses are held near the last
coefficients, less and less: the proximal point method, which ends at the exact solution. One pass
over the samples gives a gradient, and one each conjugate direction of a Newton step. A
preconditioner from a sample of the free rows keeps their number small.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.utils import check_random_state

from lokl._arrays import Array
from lokl._compiled import CompiledModule
from lokl._parameters import check_choice, check_count, check_positive
from lokl._threads import multiply
from lokl.gram import GatedGram, LowRank, LowRankGram, LowRankProducts
from lokl.gram.memory import MEGABYTE
from lokl.solvers.base import warn_unconverged
from lokl.solvers.exact import SMALL, Exact
from lokl.solvers.problem import Dual, Problem
from lokl.solvers.squared import SquaredSolver

_primal = CompiledModule("lokl.solvers._primal")

logger = logging.getLogger("lokl")

_FEATURES = ("landmarks", "fourier")

# Strength of the pull of the coefficients' sum on the intercept, relative to the mean diagonal.
_PULL = 0.1
# Limits on descent: passes over all samples in total, and passes over those not shrunk. Beyond
# them, larger steps finish sooner.
_WHOLE_PASSES, _MOST_PASSES = 60, 900
# Effect of the coefficients' sum on the intercept that is left, in units of the tolerance.
_BALANCED = 0.1

# Default limit on Newton steps, far more than needed.
_MOST_STEPS = 500
# Width of the margin within which coefficients are held at first, without and with a warm start,
# and its factors: it becomes narrower, or wider after a search that failed.
_FIRST_WIDTH, _WARM_WIDTH, _NARROWER, _WIDER = 1.0, 0.1, 0.1, 10.0
# Gradient that a search leaves, relative to the tolerance, to the width and to the last move of the
# coefficients; and the limit on searches.
_LEFT, _LEFT_OF_WIDTH, _LEFT_OF_MOVE, _SEARCHES = 0.1, 0.01, 0.1, 30
# Steps in a row without a relative decrease of the objective by more than this.
_PATIENCE, _NO_DECREASE = 3, 1e-14
# Newton steps of a search, conjugate directions of a step, and the fraction of the gradient left.
_NEWTON_STEPS, _MOST_DIRECTIONS, _FORCING = 60, 100, 0.05
# Fraction of the memory for rows with free coefficients.
_FREE_ROWS_SHARE = 0.5
# Most rows and entries of the preconditioner.
_MOST_ROWS, _MOST_ENTRIES = 4096, 2**25
# Trials of a line search, and the fraction of the slope that is left.
_TRIALS, _FLAT = 30, 0.1


@dataclass(eq=False, repr=False)
class Primal(SquaredSolver):
    """Low-rank features instead of kernels: time and memory grow linearly with the samples.

    ``k_i(x, z)`` becomes ``<phi_i(x), phi_i(z)>`` with at most `rank` features, and the SVM is
    solved to `tol` on them. Gates multiply features as they multiply kernels, so every method works
    on features as it does on kernels. New samples are compared with the landmarks only.

    Parameters
    ----------
    rank : int, default=1000
        Most features of each kernel. With as many as there are unique samples, the solution is
        that of the exact solver.
    features : {"landmarks", "fourier"}, default="landmarks"
        "landmarks" are kernel values with samples chosen by randomly pivoted Cholesky, for any
        kernel. "fourier" are random Fourier features, for RBF kernels only.
    tol : float, default=1e-3
        Largest violation of the optimality conditions on the features that is left.
    cache_size : float, default=512
        Megabytes for stored features. If they do not fit, they are computed again in every pass.
        Landmarks and their matrix take ``8 rank^2`` bytes per kernel in addition.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of features.
    max_iter : int, default=-1
        Limit on passes over the samples. The default, -1, is far more than problems need on scaled
        data.
    sample_size : int, default=50000
        Most samples that landmarks are chosen from.
    random_state : int, RandomState or None, default=0
        Determines the landmarks or the random features.

    See Also
    --------
    lokl.solvers.Exact : The default solver.
    lokl.RegionClassifier : One model in each region, for more samples.
    lokl.gram.LowRank : Settings of features.

    Notes
    -----
    Stored features: dual coordinate descent with shrinking, and the exact block solver if that does
    not converge. Features that do not fit into `cache_size`: Newton's method in the primal, with
    preconditioned conjugate gradients on kernel columns that are computed tile by tile. In both
    cases the intercept is not regularised, and the duality gap is certified. The squared loss is
    one linear system of the size of the features.

    Examples
    --------
    >>> from lokl.kernels import RBF
    >>> from lokl.solvers import Primal, solve_svc
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0]], [1, -1, -1, 1]
    >>> dual = solve_svc(RBF(1.0), X, y, C=10.0, solver=Primal(rank=4))
    >>> round(dual.objective, 2), dual.converged
    (3.12, True)
    """

    is_low_rank: ClassVar[bool] = True

    rank: int = 1000
    features: str = "landmarks"
    tol: float = 1e-3
    cache_size: float = 512
    dtype: Any = "auto"
    max_iter: int = -1
    sample_size: int = 50_000
    random_state: Any = 0

    def inner_products(self, X: Any, *, keep: bool = False) -> LowRankProducts:
        how = LowRank(
            check_count("rank", self.rank),
            check_choice("features", self.features, _FEATURES),
            check_count("sample_size", self.sample_size),
            int(check_random_state(self.random_state).randint(2**31 - 1)),
        )
        check_positive("cache_size", self.cache_size)
        dtype = self.dtype_for(X.shape[0])
        return LowRankProducts(X, how, cache_size=self.cache_size, dtype=dtype)

    def solve(
        self, gram: GatedGram, problem: Problem, start: Array | None = None, ceiling: float = np.inf
    ) -> Dual:
        tol = check_positive("tol", self.tol)
        if not gram.is_low_rank:
            gram = self.inner_products(gram.inner.X).gated(gram.kernels, gram.gates)
        gram = cast(LowRankGram, gram)
        if problem.is_squared:
            return self.solve_together(gram, [problem], [start])[0]
        if not ((problem.lower < 0).any() and (problem.upper > 0).any()):
            # Coefficients of one sign cannot sum to zero, so the constant decision is optimal.
            return problem.dual(np.zeros(gram.n_samples), problem.target.copy(), 0, True)
        exact = Exact(self.tol, self.cache_size, self.dtype)
        if gram.fits and gram.n_samples <= SMALL and self.max_iter < 0:
            # One working set, whose optimum is polished.
            return exact.solve(gram, problem, start, ceiling)
        if gram.fits:
            end = descend(gram, problem, start, tol, self.max_iter)
            if end.violation > tol and end.passes != self.max_iter:
                logger.debug("descent: %d passes, violation %.3g", end.passes, end.violation)
                dual = exact.solve(gram, problem, end.coef, ceiling)
                return replace(dual, n_iter=end.passes + dual.n_iter)
        else:
            limit = _MOST_STEPS if self.max_iter < 0 else self.max_iter
            end = PrimalNewton(gram, problem, tol, limit).solve(start)
        if end.violation > tol:
            remedy = "raise max_iter, or " if self.max_iter >= 0 else ""
            left = f"violation of {end.violation:.3g} > tol = {tol:.3g}"
            remedy += "scale the data or the kernels, or lower C"
            warn_unconverged(f"{end.passes} passes", left, remedy)
        return problem.dual(end.coef, end.gradient, end.passes, end.violation <= tol)


@dataclass(frozen=True, eq=False)
class EndPoint:
    """Feasible coefficients at the end of a method, and their gradient, computed afresh."""

    coef: Array  # (n_samples,)
    gradient: Array  # (n_samples,)
    violation: float
    passes: int

    @classmethod
    def at(cls, gram: LowRankGram, problem: Problem, coef: Array, passes: int) -> "EndPoint":
        """Return the end point after moving coefficients so that they sum to zero."""
        coef = problem.balanced(coef)
        gradient = problem.target - gram.dot(coef) - problem.ridge * coef
        return cls(coef, gradient, problem.violation(coef, gradient), passes)


def _compiled_costs(problem: Problem) -> Any:
    return _primal.Costs(
        problem.target, problem.lower, problem.upper, problem.epsilon, problem.ridge
    )


def descend(
    gram: LowRankGram, problem: Problem, start: Array | None, tol: float, max_passes: int = -1
) -> EndPoint:
    """Solve by coordinate descent, until violations are below `tol` or it takes too long.

    Parameters
    ----------
    gram : LowRankGram
        With features that fit into memory.
    problem : Problem
        With coefficients that can rise and coefficients that can fall.
    start : array of shape (n_samples,) or None
        Warm start.
    tol : float
    max_passes : int, default=-1
        Limit on the passes; -1 for the number beyond which there is little gain.
    """
    descent = _Descent(gram, problem, start)
    rng = np.random.RandomState(0)
    limit = _MOST_PASSES if max_passes < 0 else min(max_passes, _MOST_PASSES)
    most_visits = _WHOLE_PASSES * len(descent.order)
    passes, visits = 0, 0
    while passes < limit and visits < most_visits:
        rng.shuffle(descent.order[: descent.count])
        passes, visits = passes + 1, visits + descent.count
        was_whole = descent.count == len(descent.order)
        violation = descent.sweep()
        if violation > tol or descent.imbalance > _BALANCED * tol:
            continue
        if was_whole:
            break
        descent.unshrink()
    return EndPoint.at(gram, problem, descent.state.coef, passes)


class _Descent:
    """Coordinate descent between two passes.

    Of the indices of present samples in `order`, the first `count` are not shrunk.
    """

    def __init__(self, gram: LowRankGram, problem: Problem, start: Array | None):
        diag, coef = gram.diag(), np.zeros(gram.n_samples)
        if start is not None:
            coef = np.clip(np.asarray(start, dtype=np.float64), problem.lower, problem.upper)
        self.gram, self.order = gram, np.flatnonzero(problem.present)
        self.count, self.limits = len(self.order), (np.inf, -np.inf)
        pull = _PULL * float(diag[self.order].mean())
        # Named tuples of the compiled loop.
        self.rows = _primal.Rows(gram.stored_features, gram.gates, gram.features.starts, diag)
        self.balance = _primal.Balance(0.0, pull if pull > 0 else 1.0, float(coef.sum()))
        self.state = _primal.State(coef, _weights(gram, coef))
        self.costs = _compiled_costs(problem)

    @property
    def imbalance(self) -> float:
        """Effect of the sum of the coefficients on the intercept."""
        return abs(self.balance.pull * self.balance.total)

    def sweep(self) -> float:
        """Pass over the samples that are not shrunk; return their violation."""
        offset, pull, _ = self.balance
        self.count, total, most, least = _primal.sweep(
            self.rows, self.costs, self.state, self.balance, self.order, self.count, self.limits
        )
        self.balance = _primal.Balance(offset + pull * total, pull, total)
        # Nothing is shrunk on a side without violations.
        self.limits = (most if most > 0 else np.inf, least if least < 0 else -np.inf)
        return float(most - least)

    def unshrink(self) -> None:
        """Use all samples again, and recompute the weights without accumulated rounding errors."""
        self.count, self.limits = len(self.order), (np.inf, -np.inf)
        self.state.weights[:] = _weights(self.gram, self.state.coef)


def _weights(gram: LowRankGram, coef: Array) -> Array:
    """Return the weights of coefficients, (rank of the gates, n_features)."""
    weights = gram.backward(coef[:, np.newaxis])[:, :, 0]
    return np.ascontiguousarray(weights.T, dtype=gram.dtype)


# Maps weights to weights, both of shape (n_weights,).
LinearMap = Callable[[Array], Array]


@dataclass
class _PrimalPoint:
    """Weights, decision values of all samples, and their best coefficients at these values."""

    weights: Array  # (n_weights,)
    values: Array  # (n_samples,), decision values without the intercept
    intercept: float
    coef: Array  # (n_samples,)
    rates: Array  # (n_samples,), rates at which coefficients decrease with the values
    loss: float = 0.0

    @property
    def objective(self) -> float:
        return 0.5 * float(self.weights @ self.weights) + self.loss


class PrimalNewton:
    """Newton's method in the primal, on features that are computed tile by tile.

    Parameters
    ----------
    gram : LowRankGram
    problem : Problem
        With coefficients that can rise and coefficients that can fall.
    tol : float
    max_steps : int
        Limit on Newton steps.
    """

    def __init__(self, gram: LowRankGram, problem: Problem, tol: float, max_steps: int):
        self.gram = gram
        self.problem = problem
        self.tol = tol
        self.max_steps = max_steps
        self.steps = 0
        # Length of the longest feature vector: the largest effect of the weights on a decision.
        self._length = float(np.sqrt(gram.exact.diag().max(initial=0.0)))
        cost = problem.cost
        self._hold = np.where(np.isinf(problem.bound), 0.0, 1.0)
        self._hold /= np.where(cost > 0, cost, 1.0)
        lacks_ridge = (problem.ridge == 0) & (self._hold == 0)
        self._hold[lacks_ridge] = 1.0

    def solve(self, start: Array | None) -> EndPoint:
        """Solve the problem from a warm start of shape (n_samples,), or from zero."""
        centre = np.zeros(self.gram.n_samples)
        if start is not None:
            centre = self.problem.feasible(np.asarray(start, dtype=np.float64))
        point = self._begin(centre)
        width, moved = _FIRST_WIDTH if start is None else _WARM_WIDTH, np.inf
        for _ in range(_SEARCHES):
            left = max(_LEFT * self.tol, min(_LEFT_OF_WIDTH * width, _LEFT_OF_MOVE * moved))
            length = self._search(point, self._costs(centre, width), left)
            if length <= width:
                # Otherwise the search failed, and the centre was better.
                moved = width * float(np.abs(self._hold * (point.coef - centre)).max(initial=0.0))
                centre = point.coef.copy()
            width *= _NARROWER if length <= left else _WIDER
            # Beyond the first width, only rounding errors are left.
            ended = self.steps >= self.max_steps or width > _FIRST_WIDTH
            if ended or moved <= self.tol:
                end = EndPoint.at(self.gram, self.problem, centre, self.steps)
                if ended or end.violation <= self.tol:
                    return end
        return EndPoint.at(self.gram, self.problem, centre, self.steps)

    def _begin(self, coef: Array) -> _PrimalPoint:
        weights, values = np.zeros(self.gram.n_weights), np.zeros(len(coef))
        if coef.any():
            weights = self._back(coef[:, np.newaxis])[:, 0]
            values = self.gram.forward(self._shaped(weights))[:, 0]
        return _PrimalPoint(weights, values, 0.0, coef.copy(), np.zeros(len(coef)))

    def _shaped(self, weights: Array) -> Array:
        return weights.reshape(self.gram.features.size, self.gram.gates.shape[2], 1)

    def _back(self, coef: Array) -> Array:
        """Return sums of features, (n_weights, n_columns)."""
        return self.gram.backward(coef).reshape(self.gram.n_weights, coef.shape[1])

    def _costs(self, centre: Array, width: float) -> Any:
        return _primal.HeldCosts(*_compiled_costs(self.problem), centre, width * self._hold)

    def _update(self, point: _PrimalPoint, costs: Any) -> None:
        """Compute intercept, best coefficients and loss at the values of a point."""
        point.intercept = _primal.balance(costs, point.values, point.intercept)
        point.loss = _primal.best_coefs(
            costs, point.values, point.intercept, point.coef, point.rates
        )

    def _search(self, point: _PrimalPoint, costs: Any, left: float) -> float:
        """Minimise for one centre and width by Newton steps.

        Returns the size of the remaining gradient, as the largest change of a decision.
        """
        self._update(point, costs)
        length, before, idle = np.inf, np.inf, 0
        for _ in range(min(_NEWTON_STEPS, self.max_steps - self.steps)):
            rate = float(point.rates.sum())
            both = self._back(np.column_stack([point.coef, point.rates]))
            gradient = point.weights - both[:, 0]
            length = self._length * float(np.linalg.norm(gradient))
            decreases = point.objective < before - _NO_DECREASE * abs(point.objective)
            before, idle = point.objective, 0 if decreases else idle + 1
            if length <= left or idle > _PATIENCE:
                break
            self.steps += 1
            # The intercept moves with the weights, so features are centred at their mean.
            mean = both[:, 1] / rate if rate > 0 else both[:, 1]
            direction = self._direction(point.rates, mean, gradient)
            change = self.gram.forward(self._shaped(direction))[:, 0]
            if not self._line_search(point, costs, direction, change):
                break
        return length

    def _direction(self, rates: Array, mean: Array, gradient: Array) -> Array:
        """Return the Newton direction, (n_weights,), by conjugate gradients."""
        free, size = np.flatnonzero(rates), len(gradient)
        maps = self._curvature(free, rates, mean), self._preconditioner(free, rates, mean)
        curve, inverse = (LinearOperator((size, size), matvec=f, dtype=float) for f in maps)
        left = _FORCING * float(np.linalg.norm(gradient))
        direction, _ = cg(curve, -gradient, maxiter=_MOST_DIRECTIONS, M=inverse, atol=left)
        return np.asarray(direction)

    def _curvature(self, free: Array, rates: Array, mean: Array) -> LinearMap:
        """Return products with the second derivative, on stored rows if the free rows are few."""
        total = float(rates.sum())
        room = _FREE_ROWS_SHARE * self.gram.inner.cache_size * MEGABYTE / self.gram.dtype.itemsize
        if len(free) * self.gram.n_weights <= room:
            rows, free_rates = self.gram.gated_rows(free), rates[free]

            def sums(direction: Array) -> Array:
                values = multiply(rows, direction.astype(rows.dtype))
                return multiply(rows.T, (free_rates * values).astype(rows.dtype))

        else:

            def sums(direction: Array) -> Array:
                return self.gram.curved(self._shaped(direction), rates).ravel()

        def curve(direction: Array) -> Array:
            shift = total * float(mean @ direction)
            return np.asarray(direction + sums(direction) - shift * mean)

        return curve

    def _preconditioner(self, free: Array, rates: Array, mean: Array) -> LinearMap:
        """Return products with the inverse second derivative of a sample of the free rows."""
        size = self.gram.n_weights
        count = min(len(free), _MOST_ROWS, max(_MOST_ENTRIES // size, 1))
        some = free[np.linspace(0, len(free) - 1, count).astype(np.intp)] if count else free
        if len(some) == 0:
            return lambda residual: residual
        rows = self.gram.gated_rows(some).astype(np.float64) - mean
        rows *= np.sqrt(rates[some] * len(free) / len(some))[:, np.newaxis]
        is_wide = len(some) < size
        small = multiply(rows, rows.T) if is_wide else multiply(rows.T, rows)
        small.flat[:: len(small) + 1] += 1.0
        factor = cho_factor(small, lower=True, overwrite_a=True, check_finite=False)
        if is_wide:
            return lambda r: r - rows.T @ cho_solve(factor, rows @ r, check_finite=False)
        return lambda r: np.asarray(cho_solve(factor, r, check_finite=False))

    def _line_search(
        self, point: _PrimalPoint, costs: Any, direction: Array, change: Array
    ) -> bool:
        """Move along a direction to its minimum; return whether the objective decreases at all.

        The objective is convex, so the minimum lies between a negative and a positive slope.
        """
        begin, values = point.weights.copy(), point.values.copy()

        def slope(step: float) -> float:
            point.weights = begin + step * direction
            point.values = values + step * change
            self._update(point, costs)
            return float(point.weights @ direction - point.coef @ change)

        first = float(begin @ direction - point.coef @ change)
        low, high = (0.0, first), (1.0, slope(1.0))
        if not first < 0.0:
            slope(0.0)
            return False
        step = 1.0
        for _ in range(_TRIALS):
            steep = slope(step) if step != 1.0 else high[1]
            if abs(steep) <= _FLAT * abs(first) or (step == 1.0 and steep <= 0.0):
                return True
            if steep < 0.0:
                low = step, steep
            else:
                high = step, steep
            share = low[1] / (low[1] - high[1])
            step = low[0] + np.clip(share, 0.1, 0.9) * (high[0] - low[0])
        return True
