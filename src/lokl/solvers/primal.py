"""Low rank: a machine on explicit features, for many samples.

Newton's method in the primal, for features that do not fit into the memory.

Let ``u_j(f)`` be the best coefficient of a sample at its decision value ``f``, when coefficients
are held near a *centre* ``a``: it maximises ``u (t - f) - epsilon |u| - ridge u^2 / 2 - hold (u -
a)^2 / 2`` in its box. The machine minimises ``|w|^2 / 2`` plus these maxima, which are smooth in
``w``: the gradient is ``w - sum_j u_j phi(x_j)``, and only samples whose coefficient is free have
a part in the second derivative. The squared hinge needs no holding. Other losses are held to the
coefficients that were found before, and less and less so: the proximal point method, which ends at
the machine itself.

The samples are passed over once for a gradient, and once for every conjugate direction of a
Newton step. A preconditioner from a sample of the free rows makes these few.

Dual coordinate descent on stored features: many samples, a machine of low rank.

One coefficient after the other goes to its best value, in the order of a random permutation; the
weights ``w = sum_j u_j phi(x_j)`` go with it, so that a step costs two passes over the features of
one sample. Samples at a bound that will stay there are left alone (*shrinking*): soon few are not.

The intercept is not regularised. Coefficients must then sum to zero, which single steps cannot
keep; instead the intercept is ``b + pull * sum_j u_j``, and after every pass ``b`` is moved to it:
the method of multipliers. Where it ends the sum is zero, and ``b`` is the intercept of the exact
machine, not one that is drawn to zero.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from lokl._arrays import Array
from lokl._compiled import CompiledModule
from lokl._parameters import check_choice, check_count, check_positive
from lokl._threads import multiply
from lokl._warnings import warn_once
from lokl.gram import GatedGram, LowRank, LowRankGram, LowRankProducts
from lokl.gram.memory import MEGABYTE
from lokl.solvers.base import TolerantSolver
from lokl.solvers.exact import Exact
from lokl.solvers.problem import Dual, Problem
from lokl.solvers.working_set import SMALL

logger = logging.getLogger("lokl")

_KINDS = ("landmarks", "fourier")
# Problems of up to so many samples are solved in float64, and tolerances below this.
_PRECISE, _FINE = 1024, 1e-4
# Steps of Newton's method that are far more than it needs.
_MOST_STEPS = 500


class Primal(TolerantSolver):
    """Features of low rank stand for the kernels: time and memory grow with the samples.

    ``k_i(x, z)`` becomes ``<phi_i(x), phi_i(z)>`` with at most `rank` features, and the machine is
    solved to `tol` on these. Gates multiply features as they multiply kernels, so every method
    learns on them as it does on kernels. New samples are compared with the landmarks only.

    Parameters
    ----------
    rank : int, default=1000
        Features of each kernel, at most. From the number of distinct samples on, the answer is
        that of the exact solver.
    features : {"landmarks", "fourier"}, default="landmarks"
        Kernel values with samples that randomly pivoted Cholesky chooses, for any kernel; or waves
        of random directions, for RBF kernels only.
    tol : float, default=1e-3
        Largest violation of the optimality conditions that is left, on the features.
    cache_size : float, default=512
        Megabytes for stored features. Where they do not fit, they are computed again in every
        pass; landmarks and their matrix (``8 rank^2`` bytes for each kernel) come on top.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Of features.
    max_iter : int, default=-1
        Limit on passes over the samples; -1 is far more than problems need on scaled data.
    sample_size : int, default=50000
        Samples that landmarks are chosen from, at most.
    random_state : int, RandomState or None, default=0
        Decides the choice of landmarks or waves.

    Notes
    -----
    Stored features: dual coordinate descent with shrinking, then the exact block solver for what is
    left. Features that do not fit into `cache_size`: Newton's method in the primal, preconditioned
    conjugate gradients on kernel columns that are computed tile by tile. Either way the intercept
    is not regularised, and the duality gap is certified.
    """

    losses: ClassVar[tuple[str, ...]] = ("hinge", "squared_hinge", "epsilon_insensitive")
    is_low_rank: ClassVar[bool] = True

    def __init__(
        self,
        rank: int = 1000,
        features: str = "landmarks",
        tol: float = 1e-3,
        cache_size: float = 512,
        dtype: Any = "auto",
        max_iter: int = -1,
        sample_size: int = 50_000,
        random_state: Any = 0,
    ):
        self.rank = rank
        self.features = features
        self.tol = tol
        self.cache_size = cache_size
        self.dtype = dtype
        self.max_iter = max_iter
        self.sample_size = sample_size
        self.random_state = random_state

    def inner_products(self, X: Any, *, keep: bool = False) -> LowRankProducts:
        how = LowRank(
            check_count("rank", self.rank),
            check_choice("features", self.features, _KINDS),
            check_count("sample_size", self.sample_size),
            int(check_random_state(self.random_state).randint(2**31 - 1)),
        )
        check_positive("cache_size", self.cache_size)
        dtype = self.dtype
        if dtype == "auto" and (X.shape[0] <= _PRECISE or self.tol < _FINE):
            dtype = "float64"
        return LowRankProducts(X, how, cache_size=self.cache_size, dtype=dtype)

    def solve(
        self,
        gram: GatedGram,
        problem: Problem,
        start: Array | None = None,
        ceiling: float = float("inf"),
    ) -> Dual:
        tol = check_positive("tol", self.tol)
        if gram.is_low_rank:
            gram = cast(LowRankGram, gram)
        else:
            gram = self.inner_products(gram.inner.X).gated(gram.kernels, gram.gates)
        if not ((problem.lower < 0).any() and (problem.upper > 0).any()):
            # Coefficients of one sign cannot sum to zero: the constant decision is optimal.
            return problem.dual(np.zeros(gram.n_samples), problem.target.copy(), 0, True)
        exact = Exact(self.tol, self.cache_size, self.dtype)
        if gram.fits and gram.n_samples <= SMALL and self.max_iter < 0:
            # One working set, whose optimum is polished.
            return exact.solve(gram, problem, start, ceiling)
        if not gram.fits:
            limit = _MOST_STEPS if self.max_iter < 0 else self.max_iter
            search = Newton(gram, problem, tol, limit)
            coef, gradient, done = search.solve(start)
            dual = problem.dual(coef, gradient, search.steps, done)
            return self._told(dual, problem, gradient)
        found = descend(gram, problem, start, tol, self.max_iter)
        dual = problem.dual(found.coef, found.gradient, found.passes, found.violation <= tol)
        if dual.converged or found.passes == self.max_iter:
            return self._told(dual, problem, found.gradient)
        logger.debug("descent: %d passes, violation %.3g", found.passes, found.violation)
        finished = exact.solve(gram, problem, found.coef, ceiling)
        return replace(finished, n_iter=found.passes + finished.n_iter)

    def _told(self, dual: Dual, problem: Problem, gradient: Array) -> Dual:
        """Return a machine; where it is not solved, with a warning and the best intercept."""
        if dual.converged:
            return dual
        up, down = problem.violations(dual.coef, gradient)
        remedy = "raise max_iter, or " if self.max_iter >= 0 else ""
        warn_once(
            "unconverged",
            f"the solver stopped after {dual.n_iter} passes with a violation of "
            f"{up.max() - down.min():.3g} > tol = {self.tol:.3g}; {remedy}scale the data or the "
            "kernels, or lower C",
            ConvergenceWarning,
        )
        b = problem.least_loss_intercept(dual.coef, gradient)
        return problem.dual(dual.coef, gradient, dual.n_iter, False, b)


_proximal = CompiledModule("lokl.solvers._proximal")

# Width of the margin within which coefficients are held at first, without and with a start, and how
# it changes: it falls, unless a search was too hard.
_FIRST_WIDTH, _NEXT_WIDTH, _NARROWER, _WIDER = 1.0, 0.1, 0.1, 10.0
# What a search leaves of the gradient, in terms of the tolerance, of the width and of the last move
# of the coefficients; and how many searches there are at most.
_LEFT, _LEFT_OF_WIDTH, _LEFT_OF_MOVE, _SEARCHES = 0.1, 0.01, 0.1, 30
# Steps in a row in which the objective may fall by no more than this, relative.
_PATIENCE, _NOTHING = 3, 1e-14
# Newton steps of one search, conjugate directions of a step, and what they leave of the gradient.
_NEWTON_STEPS, _MOST_DIRECTIONS, _FORCING = 60, 100, 0.05
# Share of the memory for rows whose coefficients are free.
_SHARE = 0.5
# Rows and numbers of the preconditioner, at most.
_MOST_ROWS, _MOST_NUMBERS = 4096, 2**25
# Trials of a search along a direction, and the share of the slope that is left.
_TRIALS, _FLAT = 30, 0.1


# From a vector of weights to another.
Map = Callable[[Array], Array]


@dataclass
class Point:
    """Weights, values at all samples, and what samples answer to them."""

    weights: Array  # (n_weights,)
    values: Array  # (n_samples,), without the intercept
    intercept: float
    coef: Array
    rates: Array
    loss: float = 0.0

    @property
    def objective(self) -> float:
        return 0.5 * float(self.weights @ self.weights) + self.loss


class Newton:
    """The search for one machine on features that are computed tile by tile.

    Parameters
    ----------
    gram : LowRankGram
    problem : Problem
        With samples of both signs.
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
        # No feature vector is longer: what a change of the weights can do to a decision.
        self._length = float(np.sqrt(gram.exact.diag().max(initial=0.0)))
        cost = problem.cost
        self._hold = np.where(np.isinf(np.maximum(-problem.lower, problem.upper)), 0.0, 1.0)
        self._hold /= np.where(cost > 0, cost, 1.0)
        lacks_ridge = (problem.ridge == 0) & (self._hold == 0)
        self._hold[lacks_ridge] = 1.0

    def solve(self, start: Array | None) -> tuple[Array, Array, bool]:
        """Return coefficients, their gradient, and whether violations are below the tolerance."""
        centre = np.zeros(self.gram.n_samples)
        if start is not None:
            centre = self.problem.feasible(np.asarray(start, dtype=np.float64))
        point = self._begin(centre)
        width, moved = _FIRST_WIDTH if start is None else _NEXT_WIDTH, np.inf
        for _ in range(_SEARCHES):
            left = max(_LEFT * self.tol, min(_LEFT_OF_WIDTH * width, _LEFT_OF_MOVE * moved))
            length = self._search(point, self._costs(centre, width), left)
            if length <= width:
                # Else it went astray, and the centre was better.
                moved = width * float(np.abs(self._hold * (point.coef - centre)).max(initial=0.0))
                centre = point.coef.copy()
            width *= _NARROWER if length <= left else _WIDER
            # Beyond the first width, rounding is all that is left to be found.
            ended = self.steps >= self.max_steps or width > _FIRST_WIDTH
            if ended or moved <= self.tol:
                coef, gradient, violation = self._certified(centre)
                if ended or violation <= self.tol:
                    return coef, gradient, violation <= self.tol
        coef, gradient, violation = self._certified(centre)
        return coef, gradient, violation <= self.tol

    def _certified(self, coef: Array) -> tuple[Array, Array, float]:
        """Coefficients that sum to zero, their gradient from two passes, and their violation."""
        problem = self.problem
        coef = balanced(problem, coef)
        gradient = problem.target - self.gram.dot(coef) - problem.ridge * coef
        up, down = problem.violations(coef, gradient)
        return coef, gradient, float(up.max(initial=-np.inf) - down.min(initial=np.inf))

    def _begin(self, coef: Array) -> Point:
        weights, values = np.zeros(self.gram.n_weights), np.zeros(len(coef))
        if coef.any():
            weights = self._back(coef[:, np.newaxis])[:, 0]
            values = self.gram.forward(self._shaped(weights))[:, 0]
        return Point(weights, values, 0.0, coef.copy(), np.zeros(len(coef)))

    def _shaped(self, weights: Array) -> Array:
        return weights.reshape(self.gram.features.size, self.gram.gates.shape[2], 1)

    def _back(self, coef: Array) -> Array:
        """Sums of features, (n_weights, n_columns)."""
        return self.gram.backward(coef).reshape(self.gram.n_weights, coef.shape[1])

    def _costs(self, centre: Array, width: float) -> Any:
        own = self.problem
        return _proximal.Costs(
            own.target, own.lower, own.upper, own.epsilon, own.ridge, centre, width * self._hold
        )

    def _answer(self, point: Point, costs: Any) -> None:
        """Find the intercept and what samples answer, at the values of a point."""
        point.intercept = _proximal.balance(costs, point.values, point.intercept)
        point.loss = _proximal.answers(
            costs, point.values, point.intercept, point.coef, point.rates
        )

    def _search(self, point: Point, costs: Any, left: float) -> float:
        """Go to the minimum for one centre and width by Newton's steps.

        Returns what is left of the gradient, as the change of a decision that it could make.
        """
        self._answer(point, costs)
        length, before, idle = np.inf, np.inf, 0
        for _ in range(min(_NEWTON_STEPS, self.max_steps - self.steps)):
            rate = float(point.rates.sum())
            both = self._back(np.column_stack([point.coef, point.rates]))
            gradient = point.weights - both[:, 0]
            length = self._length * float(np.linalg.norm(gradient))
            falls = point.objective < before - _NOTHING * abs(point.objective)
            before, idle = point.objective, 0 if falls else idle + 1
            if length <= left or idle > _PATIENCE:
                break
            self.steps += 1
            # The intercept goes with the weights: features count around their mean.
            mean = both[:, 1] / rate if rate > 0 else both[:, 1]
            direction = self._direction(point.rates, mean, gradient)
            change = self.gram.forward(self._shaped(direction))[:, 0]
            if not self._line(point, costs, direction, change):
                break
        return length

    def _direction(self, rates: Array, mean: Array, gradient: Array) -> Array:
        """Newton's direction, by conjugate gradients."""
        free = np.flatnonzero(rates)
        precondition = self._preconditioner(free, rates, mean)
        curve = self._curvature(free, rates, mean)
        found, residual = np.zeros_like(gradient), -gradient
        z = precondition(residual)
        search, product = z, float(residual @ z)
        first = np.linalg.norm(residual)
        for _ in range(_MOST_DIRECTIONS):
            curved = curve(search)
            step = product / float(search @ curved)
            found += step * search
            residual = residual - step * curved
            if np.linalg.norm(residual) <= _FORCING * first:
                break
            z = precondition(residual)
            before, product = product, float(residual @ z)
            search = z + product / before * search
        return found

    def _curvature(self, free: Array, rates: Array, mean: Array) -> Map:
        """Products with the second derivative, on stored rows where those that matter are few."""
        total = float(rates.sum())
        room = _SHARE * self.gram.inner.cache_size * MEGABYTE / self.gram.dtype.itemsize
        if len(free) * self.gram.n_weights <= room:
            rows, own = self.gram.gated_rows(free), rates[free]

            def sums(direction: Array) -> Array:
                values = multiply(rows, direction.astype(rows.dtype))
                return multiply(rows.T, (own * values).astype(rows.dtype))

        else:

            def sums(direction: Array) -> Array:
                return self.gram.curved(self._shaped(direction), rates).ravel()

        def curve(direction: Array) -> Array:
            shift = total * float(mean @ direction)
            return np.asarray(direction + sums(direction) - shift * mean)

        return curve

    def _preconditioner(self, free: Array, rates: Array, mean: Array) -> Map:
        """Inverse of the second derivative where a sample of the free rows stands for all."""
        size = self.gram.n_weights
        count = min(len(free), _MOST_ROWS, max(_MOST_NUMBERS // size, 1))
        some = free[np.linspace(0, len(free) - 1, count).astype(np.intp)] if count else free
        if len(some) == 0:
            return lambda residual: residual
        rows = self.gram.gated_rows(some).astype(np.float64) - mean
        rows *= np.sqrt(rates[some] * len(free) / len(some))[:, np.newaxis]
        if len(some) < size:
            small = multiply(rows, rows.T)
            small.flat[:: len(small) + 1] += 1.0
            factor = cho_factor(small, lower=True, overwrite_a=True, check_finite=False)
            return lambda r: r - rows.T @ cho_solve(factor, rows @ r, check_finite=False)
        small = multiply(rows.T, rows)
        small.flat[:: len(small) + 1] += 1.0
        factor = cho_factor(small, lower=True, overwrite_a=True, check_finite=False)
        return lambda r: np.asarray(cho_solve(factor, r, check_finite=False))

    def _line(self, point: Point, costs: Any, direction: Array, change: Array) -> bool:
        """Go along a direction to where the objective no longer falls; False: it never does.

        The objective is convex: between a falling and a rising slope lies the minimum.
        """
        begin, values = point.weights.copy(), point.values.copy()

        def slope(step: float) -> float:
            point.weights = begin + step * direction
            point.values = values + step * change
            self._answer(point, costs)
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


_descent = CompiledModule("lokl.solvers._descent")

# Of the mean diagonal, how far the sum of the coefficients pulls at the intercept.
_PULL = 0.1
# Passes over all samples that descent may take in sum, and passes over whatever is left of them:
# what takes longer is better finished by larger steps.
_ENOUGH, _MOST_PASSES = 60, 900
# Sum of the coefficients that is left, in terms of the tolerance.
_BALANCED = 0.1


@dataclass(frozen=True, eq=False)
class Descended:
    """Where descent has ended."""

    coef: Array  # (n_samples,), feasible
    gradient: Array
    violation: float
    passes: int


def descend(
    gram: LowRankGram, problem: Problem, start: Array | None, tol: float, max_passes: int = -1
) -> Descended:
    """Descend until violations are below the tolerance, or until it takes too long.

    Parameters
    ----------
    gram : LowRankGram
        With features that fit into the memory.
    problem : Problem
        With samples of both signs.
    start : array of shape (n_samples,) or None
    tol : float
    max_passes : int, default=-1
        Limit on the passes; -1 for a number of which there is little gain beyond.
    """
    walk = _Walk.begin(gram, problem, start)
    rng = np.random.RandomState(0)
    limit = _MOST_PASSES if max_passes < 0 else min(max_passes, _MOST_PASSES)
    enough = _ENOUGH * len(walk.order)
    passes, visits = 0, 0
    while passes < limit and visits < enough:
        rng.shuffle(walk.order[: walk.count])
        passes, visits = passes + 1, visits + walk.count
        was_whole = walk.count == len(walk.order)
        violation = walk.sweep()
        if violation > tol or walk.imbalance > _BALANCED * tol:
            continue
        if was_whole:
            break
        walk.unshrink()
    coef = balanced(problem, walk.machine.coef)
    gradient = problem.target - gram.dot(coef) - problem.ridge * coef
    up, down = problem.violations(coef, gradient)
    return Descended(coef, gradient, float(up.max() - down.min()), passes)


@dataclass
class _Walk:
    """The state of descent."""

    gram: LowRankGram
    rows: Any  # named tuples of the compiled loop
    costs: Any
    machine: Any
    balance: Any
    order: Array  # samples that take part
    count: int  # how many of them, from the first on, are not shrunk
    limits: tuple[float, float] = (np.inf, -np.inf)

    @classmethod
    def begin(cls, gram: LowRankGram, problem: Problem, start: Array | None) -> "_Walk":
        diag = gram.diag()
        order = np.flatnonzero((problem.lower < 0) | (problem.upper > 0))
        coef = np.zeros(gram.n_samples)
        if start is not None:
            coef = np.clip(np.asarray(start, dtype=np.float64), problem.lower, problem.upper)
        rows = _descent.Rows(gram.stored_features, gram.gates, gram.features.starts, diag)
        costs = _descent.Costs(
            problem.target, problem.lower, problem.upper, problem.epsilon, problem.ridge
        )
        pull = _PULL * float(diag[order].mean())
        balance = _descent.Balance(0.0, pull if pull > 0 else 1.0, float(coef.sum()))
        machine = _descent.Machine(coef, _weights(gram, coef))
        return cls(gram, rows, costs, machine, balance, order, len(order))

    @property
    def imbalance(self) -> float:
        """How far the sum of the coefficients moves the intercept."""
        return abs(self.balance.pull * self.balance.total)

    def sweep(self) -> float:
        """Pass over the samples that are not shrunk; return the violation that was met."""
        own = self.balance
        self.count, total, most, least = _descent.sweep(
            self.rows, self.costs, self.machine, own, self.order, self.count, self.limits
        )
        offset = own.offset + own.pull * total
        self.balance = _descent.Balance(offset, own.pull, total)
        # Nothing is shrunk on a side on which nothing was met.
        self.limits = (most if most > 0 else np.inf, least if least < 0 else -np.inf)
        return float(most - least)

    def unshrink(self) -> None:
        """Look at all samples again, without what rounding has added to the weights."""
        self.count, self.limits = len(self.order), (np.inf, -np.inf)
        self.machine.weights[:] = _weights(self.gram, self.machine.coef)


def _weights(gram: LowRankGram, coef: Array) -> Array:
    weights = gram.backward(coef[:, np.newaxis])[:, :, 0]
    return np.ascontiguousarray(weights.T, dtype=gram.dtype)


def balanced(problem: Problem, coef: Array) -> Array:
    """Return coefficients that sum to zero; what is missing is taken from those that are free.

    Those at a bound stay there: a tiny step away from it would look like a large violation.
    """
    coef = coef.copy()
    for _ in range(10):
        excess = float(coef.sum())
        if abs(excess) <= 1e-14 * float(np.abs(coef).sum()):
            return coef
        free = np.flatnonzero((coef > problem.lower) & (coef < problem.upper) & (coef != 0))
        floor, ceiling = problem.lower[free], problem.upper[free]
        if problem.epsilon:
            floor = np.where(coef[free] > 0, 0.0, floor)
            ceiling = np.where(coef[free] < 0, 0.0, ceiling)
        if len(free) == 0:
            break
        coef[free] = np.clip(coef[free] - excess / len(free), floor, ceiling)
    return problem.feasible(coef)
