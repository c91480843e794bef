"""Multiplicative weights: the squared hinge to a certified gap, in memory for a few rows.

:class:`MWU` solves an SVM on one kernel. :func:`learn_kernel_weights` learns the weights of several
kernels and the SVM together, in O(m n) memory.
"""

import logging
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lokl._arrays import Array
from lokl._compiled import CompiledModule
from lokl._parameters import check_choice, number_check
from lokl.gram import GatedGram, InnerProducts
from lokl.gram.memory import MEGABYTE, RowCache
from lokl.solvers.base import Solver, is_indefinite, warn_unconverged
from lokl.solvers.exact import Exact
from lokl.solvers.problem import Dual, Problem

_mwu = CompiledModule("lokl.solvers._mwu")

logger = logging.getLogger("lokl")

_check_share = number_check("between 0 and 1", lambda value: 0 < value < 1)

_STEPS = ("pairwise", "faithful")
RATES = ("scale_free", "faithful")
# Rows that are computed ahead when one is missing: of each kind with one kernel, and of each class
# with several.
_ROWS_AHEAD, _KERNEL_ROWS_AHEAD = 16, 8
# Rounds between two checks of the certificate: at first, and then relative to the rounds done.
_FIRST_CHECK, _CHECK_SHARE = 10, 0.05
_MOST_ROUNDS = 1_000_000
# Times that missing rows are computed, if memory is so small that most rounds miss one.
_FETCHES, _FETCHES_PER_SAMPLE = 20_000, 100
# Rounds without a decrease of the objective beyond rounding.
_IDLE_ROUNDS, _IDLE_ROUNDS_PER_SAMPLE = 1000, 10
# A relative decrease of the objective below this is rounding.
_ROUNDING = 1e-12
_INDEFINITE = (
    "the kernel is not positive semidefinite, so the classes have no hulls; use solver='exact', "
    "or repair the kernel (SwMKL: psd='cosine')"
)


@dataclass(eq=False, repr=False)
class MWU(Solver):
    """Distance of two class hulls by multiplicative weights, which with one kernel is Frank-Wolfe.

    Solves the squared hinge: the cost ``C`` of a sample becomes a ridge ``1 / C`` on its diagonal
    entry. Each round uses two rows of the Gram matrix, so memory for a few rows is enough. It stops
    once the primal value is within `epsilon` of the dual value.

    Parameters
    ----------
    epsilon : float, default=0.01
        Certified relative gap: ``primal - dual <= epsilon * primal``.
    step : {"pairwise", "faithful"}, default="pairwise"
        "pairwise" moves mass between two samples of a class by an exact step. "faithful" is the
        published step ``1 / (t + 1)``, with which every sample that was used stays in the support.
    tol : float, default=1e-3
        Violation that is left in regressions. The method does not apply to them, so the exact
        solver solves them.
    cache_size : float, default=64
        Megabytes for stored rows.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of rows.
    max_iter : int, default=-1
        Limit on the rounds; -1 for a million. The solver stops earlier if rounds make no progress,
        or if missing rows are computed too often because `cache_size` is small.

    See Also
    --------
    lokl.solvers.Exact : The default solver.
    lokl.MWUMKLClassifier : Learns weights of kernels in the same way.
    lokl.solvers.solve_svc : Solves a two-class SVM.

    Examples
    --------
    >>> from lokl.kernels import RBF
    >>> from lokl.solvers import MWU, solve_svc
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0]], [1, -1, -1, 1]
    >>> dual = solve_svc(RBF(1.0), X, y, C=10.0, solver=MWU())
    >>> round(dual.objective, 2), dual.converged
    (2.7, True)
    """

    # Regressions have no class hulls; the exact solver solves them.
    losses: ClassVar[tuple[str, ...]] = ("squared_hinge", "epsilon_insensitive", "censored")

    epsilon: float = 0.01
    step: str = "pairwise"
    tol: float = 1e-3
    cache_size: float = 64
    dtype: Any = "auto"
    max_iter: int = -1

    def inner_products(self, X: Any, *, keep: bool = False) -> InnerProducts:
        return self._exact().inner_products(X, keep=keep)

    def _exact(self) -> Exact:
        return Exact(self.tol, self.cache_size, self.dtype)

    def solve(
        self, gram: GatedGram, problem: Problem, start: Array | None = None, ceiling: float = np.inf
    ) -> Dual:
        _check_share("epsilon", self.epsilon)
        check_choice("step", self.step, _STEPS)
        if not problem.is_classification:
            return self._exact().solve(gram, problem, start, ceiling)
        sign = problem.signs
        if np.isfinite(problem.bound[sign != 0]).any() or not (problem.ridge[sign != 0] > 0).all():
            raise ValueError(
                "MWU solves the squared hinge with a finite cost; create the problem with "
                "squared_hinge(y, C), or convert it with as_squared_hinge(problem)"
            )
        if not ((sign > 0).any() and (sign < 0).any()):
            # With one class, the constant decision is optimal.
            return problem.dual(np.zeros(gram.n_samples), problem.target.copy(), 0, True)
        hulls = _Hulls(gram, problem, sign)
        hulls.begin(None if self.step == "faithful" else start)
        return self._descend(hulls, ceiling)

    def _descend(self, hulls: "_Hulls", ceiling: float) -> Dual:
        n, limit = len(hulls.sign), _MOST_ROUNDS if self.max_iter < 0 else self.max_iter
        rounds, check, stuck, best, best_round = 0, _FIRST_CHECK, False, np.inf, 0
        while True:
            dual = hulls.dual(rounds, self.epsilon)
            if dual.converged or dual.objective > ceiling:
                return dual
            if hulls.objective < (1.0 - _ROUNDING) * best:
                best, best_round = hulls.objective, rounds
            # Steps of the published length overshoot, and it takes longer and longer to recover.
            idle = max(_IDLE_ROUNDS, _IDLE_ROUNDS_PER_SAMPLE * n, 0.5 * rounds)
            if stuck or rounds - best_round > idle:
                remedy = "no step makes progress; raise epsilon, or scale the kernels and weights"
                break
            if rounds >= limit:
                remedy = "raise max_iter or epsilon, or scale the kernels"
                break
            if hulls.fetches >= _most_fetches(n):
                remedy = _cache_remedy(self.cache_size, hulls.fetches)
                break
            stop = min(check, limit)
            while rounds < stop and not stuck and hulls.fetches < _most_fetches(n):
                done, stuck = hulls.advance(self.step, rounds, stop - rounds)
                rounds += done
            logger.debug("%d rounds: relative gap %.3g", rounds, dual.gap / _primal(dual))
            check = _next_check(rounds)
        left = _gap_left(dual.gap / _primal(dual), self.epsilon)
        warn_unconverged(f"{rounds} rounds", left, remedy, "MWU")
        return dual


def _gap_left(gap: float, epsilon: float) -> str:
    return f"relative gap of {gap:.3g} > epsilon = {epsilon:.3g}"


def _most_fetches(n_samples: int) -> int:
    """Return how often missing rows may be computed."""
    return max(_FETCHES, _FETCHES_PER_SAMPLE * n_samples)


def _primal(dual: Dual) -> float:
    return max(dual.objective + dual.gap, np.finfo(float).tiny)


def _next_check(rounds: int) -> int:
    return rounds + max(_FIRST_CHECK, int(_CHECK_SHARE * rounds))


def _cache_remedy(cache_size: float, fetches: int) -> str:
    return (
        f"with cache_size={cache_size:g} MB, missing rows were computed {fetches} times; raise "
        "cache_size or epsilon, or scale the kernels"
    )


class _Hulls:
    """Mass ``alpha`` of the samples, half a unit in the hull of each class, and ``g = G alpha``."""

    def __init__(self, gram: GatedGram, problem: Problem, sign: Array):
        self.gram = gram
        self.problem = problem
        self.sign = sign
        self._sides = [np.flatnonzero(sign == side) for side in (1.0, -1.0)]
        # A copy, because the loops are compiled for writable arrays.
        self.diag = gram.diag().copy()
        self.alpha = np.zeros(gram.n_samples)
        self.g = np.zeros(gram.n_samples)
        self.curvature = np.inf
        self.fetches = 0  # how often rows were missing
        # Any budget suffices for the whole matrix of so few samples, but not for stored rows.
        tiny = gram.fits and gram.storable < gram.n_samples
        self._whole = (gram.whole.copy(), np.arange(gram.n_samples)) if tiny else None

    @property
    def objective(self) -> float:
        """``alpha' G alpha``, the squared distance between the points in the two hulls."""
        return float(self.alpha @ self.g)

    def begin(self, start: Array | None) -> None:
        """Put half a unit of mass in each class, proportional to a warm start if there is one."""
        alpha = np.zeros(len(self.sign)) if start is None else np.abs(start)
        for side in self._sides:
            if not alpha[side].any():
                # The best single sample of a class is the one closest to the origin.
                alpha[side[np.argmin((self.diag + self.problem.ridge)[side])]] = 1.0
            alpha[side] *= 0.5 / alpha[side].sum()
        alpha[self.sign == 0] = 0.0
        self.alpha = alpha
        self.g = self.sign * self.gram.dot(self.sign * alpha) + self.problem.ridge * alpha

    def advance(self, step: str, before: int, rounds: int) -> tuple[int, bool]:
        """Do some rounds, fewer if a row is missing; return how many, and whether it is stuck."""
        slab, slots = self.gram.stored() if self._whole is None else self._whole
        state = (slab, slots, self.sign, self.alpha, self.g, self.problem.ridge)
        if step == "faithful":
            # The start counts as the first round.
            done, first, second = _mwu.frank_wolfe(*state, before + 1, rounds)
        else:
            done, first, second, curvature = _mwu.pairwise(*state, self.diag, rounds)
            self.curvature = min(self.curvature, curvature)
            scale = float(np.abs(self.diag).max())
            if is_indefinite(self.curvature, scale, slab.dtype == np.float32):
                raise ValueError(_INDEFINITE)
        if first >= 0:
            self.fetches += 1
            self.gram.store(self._wanted(first, second))
        return done, first < 0 and done < rounds

    def _wanted(self, first: int, second: int) -> Array:
        """Return the rows that are missing now, and those that are likely to be needed next."""
        ahead = []
        for side in self._sides:
            active = side[self.alpha[side] > 0]
            ahead.append(side[smallest(self.g[side], _ROWS_AHEAD)])
            ahead.append(active[smallest(-self.g[active], _ROWS_AHEAD)])
        return _with_next(first, second, ahead, self.gram.storable)

    def dual(self, rounds: int, epsilon: float) -> Dual:
        """Return the solution of this round, with the intercept of the least primal value."""
        problem, q = self.problem, self.objective
        if not q > 0:
            raise ValueError(_INDEFINITE)
        coef = self.sign * self.alpha / q
        gradient = problem.target - self.sign * self.g / q
        absent = self.sign == 0
        if absent.any():
            gradient[absent] = (problem.target - self.gram.dot(coef))[absent]
        b = problem.squared_hinge_intercept(coef, gradient)
        gap = problem.gap(coef, gradient, b)
        reached = gap <= epsilon * (problem.objective(coef, gradient) + gap)
        return problem.dual(coef, gradient, rounds, bool(reached), b)


def _with_next(first: int, second: int, ahead: list[Array], capacity: int) -> Array:
    """Return two missing rows, and as many of the next ones as fit into memory."""
    index, position = np.unique(np.concatenate([[first, second], *ahead]), return_index=True)
    return np.asarray(index[np.argsort(position)][: max(capacity, 2)])


def smallest(values: Array, count: int) -> Array:
    """Return the positions of the `count` smallest values, in any order.

    For few of many values this is faster than `np.argpartition`: they are in the blocks with the
    smallest minima, or behind the last block.
    """
    if len(values) <= count:
        return np.arange(len(values))
    width = math.isqrt(len(values) // count)
    blocks = len(values) // width
    minima = values[: blocks * width].reshape(blocks, width).min(axis=1)
    best = np.argpartition(minima, min(count, blocks) - 1)[:count]
    inside = (best[:, np.newaxis] * width + np.arange(width)).ravel()
    candidates = np.append(inside, np.arange(blocks * width, len(values)))
    return np.asarray(candidates[np.argpartition(values[candidates], count - 1)[:count]])


@dataclass(frozen=True, eq=False)
class KernelWeights:
    """Weights of the kernels after some rounds, and the SVM under these weights."""

    weights: Array  # (n_kernels,), they sum to one
    dual: Dual  # on the weighted kernel; its gap is to the optimum under these weights
    lower: float  # dual value over weights and SVM: no weights have an optimum below
    gap: float  # certified distance of the SVM's primal value from `lower`

    @property
    def upper(self) -> float:
        """Primal value of the SVM."""
        return self.lower + self.gap


def learn_kernel_weights(
    gram: GatedGram,
    problem: Problem,
    *,
    epsilon: float = 0.01,
    rate: str = "scale_free",
    cache_size: float = 64,
    max_iter: int = 1_000_000,
) -> Iterator[KernelWeights]:
    """Yield better and better weights of the kernels, up to a certified relative gap.

    Minimises, over weights ``mu`` on the simplex, the optimum of the squared hinge on ``sum_i mu_i
    K_i``, with the kernels ``K_i`` of `gram` under its gates.

    Parameters
    ----------
    gram : GatedGram
        With gates that give every kernel full weight.
    problem : Problem
        With the squared hinge.
    epsilon : float, default=0.01
        The rounds end when ``upper - lower <= epsilon * upper``.
    rate : {"scale_free", "faithful"}, default="scale_free"
        Learning rate: relative to the largest norm, or the published ``-log(1 - epsilon)``, which
        is meant for kernels of trace one. With the published rate there are exactly ``2 log(n) /
        epsilon^2`` rounds, whatever the gap.
    cache_size : float, default=64
        Megabytes for stored rows.
    max_iter : int, default=1000000
        Limit on the rounds.
    """
    n, m = gram.n_samples, len(gram.kernels)
    if not (problem.upper > 0).any() or not (problem.lower < 0).any():
        # With one class, the constant decision is optimal under any weights.
        dual = problem.dual(np.zeros(n), problem.target.copy(), 0, True, problem.target[0])
        yield KernelWeights(np.full(m, 1.0 / m), dual, 0.0, 0.0)
        return
    state = _KernelRounds(gram, problem, cache_size)
    if rate == "faithful":
        speed = -math.log1p(-epsilon)
        max_iter = min(max_iter, math.ceil(2.0 * math.log(max(n, 2)) / epsilon**2))
    else:
        speed = 0.25 * math.log(m * (n + 1)) / epsilon
    check = _FIRST_CHECK
    while True:
        state.advance(min(check, max_iter), speed, rate != "faithful")
        current = state.weights(speed, rate != "faithful", epsilon)
        yield current
        is_last = state.rounds >= max_iter
        if current.dual.converged and (is_last or rate != "faithful"):
            return
        lacks_rows = state.fetches >= state.most_fetches
        if is_last or lacks_rows:
            break
        check = _next_check(state.rounds)
    remedy = "raise max_iter or epsilon"
    if lacks_rows:
        remedy = _cache_remedy(cache_size, state.fetches)
    left = _gap_left(current.gap / current.upper, epsilon)
    who, key = "multiplicative weights", "unconverged weights"
    warn_unconverged(f"{state.rounds} rounds", left, remedy, who, key)


class _KernelRounds:
    """Sums over all rounds: ``a``, the sum of vertices, ``v_i = G_i a`` and ``Q_i = a' G_i a``."""

    def __init__(self, gram: GatedGram, problem: Problem, cache_size: float):
        n, m = gram.n_samples, len(gram.kernels)
        self.gram = gram
        self.problem = problem
        self.sign = problem.signs
        self.a = np.zeros(n)
        self.v = np.zeros((m, n))
        self.Q = np.zeros(m)
        # All gradients are zero at first, so the samples closest to the origin begin.
        self.g = gram.diag() + problem.ridge
        self.rounds = 0
        self._sides = [np.flatnonzero(self.sign == side) for side in (1.0, -1.0)]
        self.fetches, self.most_fetches = 0, _most_fetches(n)
        fit = int(cache_size * MEGABYTE // (m * n * gram.dtype.itemsize))
        self._cache = RowCache(n, m * n, max(fit, 2), gram.dtype)

    def advance(self, stop: int, speed: float, relative: bool) -> None:
        """Continue to round `stop`, or until rows have been missing too often."""
        n, m = len(self.sign), len(self.Q)
        slab = self._cache.slab.reshape(-1, m, n)
        sums = _mwu.Sums(self.sign, self.problem.ridge, self.a, self.v, self.Q, self.g)
        while self.rounds < stop and self.fetches < self.most_fetches:
            slots = self._cache.slots(np.arange(n))
            rest = stop - self.rounds
            done, first, second = _mwu.kernel_rounds(slab, slots, sums, speed, relative, rest)
            self.rounds += done
            if first >= 0:
                self.fetches += 1
                self._fetch(first, second)

    def _fetch(self, first: int, second: int) -> None:
        ahead = [side[smallest(self.g[side], _KERNEL_ROWS_AHEAD)] for side in self._sides]
        index = _with_next(first, second, ahead, self._cache.capacity)
        slots, missing = self._cache.place(index)
        m, n = self.v.shape
        rows = self.gram.rows_by_kernel(index[missing])
        self._cache.slab[slots[missing]] = rows.reshape(len(rows), m * n)

    def weights(self, speed: float, relative: bool, epsilon: float) -> KernelWeights:
        """Return weights, SVM and certificate of this round."""
        mu = _mwu.kernel_weights(self.Q, speed, relative)
        alpha, q = self.a / self.rounds, self.Q / self.rounds**2
        mixed = float(mu @ q)
        lower = 0.5 / float(q.max())
        coef = self.sign * alpha / mixed
        gradient = self.problem.target - self.sign * (mu @ self.v) / self.rounds / mixed
        b = self.problem.squared_hinge_intercept(coef, gradient)
        upper = self.problem.objective(coef, gradient) + self.problem.gap(coef, gradient, b)
        gap = max(upper - lower, 0.0)
        reached = gap <= epsilon * upper
        dual = self.problem.dual(coef, gradient, self.rounds, bool(reached), b)
        return KernelWeights(mu, dual, lower, gap)
