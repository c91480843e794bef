"""Multiplicative weights: the squared hinge to a certified gap, in memory of a few rows.

Multiplicative weights with several kernels: shares and machine in one, in O(m n) memory.
"""

import logging
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from lokl._arrays import Array
from lokl._compiled import CompiledModule
from lokl._warnings import warn_once
from lokl.gram import GatedGram, InnerProducts
from lokl.gram.memory import RowCache
from lokl.solvers.base import Solver, enough_fetches, enough_patience, is_indefinite
from lokl.solvers.exact import Exact
from lokl.solvers.problem import Dual, Problem

_mwu = CompiledModule("lokl.solvers._mwu")

logger = logging.getLogger("lokl")

_STEPS = ("pairwise", "faithful")
# Samples of each kind whose rows are computed ahead when a row is missing.
_AHEAD = 16
# Rounds between looks at the certificate: at first, and then as a share of the rounds done.
_FIRST_CHECK, _CHECK_SHARE = 10, 0.05
_MOST_ROUNDS = 1_000_000
# A relative fall of the objective below this is rounding.
_ROUNDING = 1e-12
_INDEFINITE = (
    "the kernel is not positive semidefinite, so the classes have no hulls; use solver='exact', "
    "or repair the kernel (SwMKL: psd='cosine')"
)


class MWU(Solver):
    """Distance of two class hulls by multiplicative weights, which with one kernel is Frank-Wolfe.

    Solves the squared hinge: the cost ``C`` of a sample becomes a ridge ``1 / C`` on its diagonal
    entry. Each round looks at one or two rows of the Gram matrix, so a few rows of memory are
    enough; it stops once the primal value of the machine is within `epsilon` of the dual value.

    Parameters
    ----------
    epsilon : float, default=0.01
        Certified relative gap: ``primal - dual <= epsilon * primal``.
    step : {"pairwise", "faithful"}, default="pairwise"
        Move mass between two samples of a class by an exact step; or the published step
        ``1 / (t + 1)``, with which a sample once touched never leaves.
    tol : float, default=1e-3
        Violation that is left in regressions, which this method cannot do: the exact solver does
        them.
    cache_size : float, default=64
        Megabytes for stored rows.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Of rows.
    max_iter : int, default=-1
        Limit on the rounds, -1 for a million. Rounds that no longer lead further, and rows that
        are computed again and again because `cache_size` holds too few, end the search before.
    """

    # Regressions have no hulls and go to the exact solver.
    losses: ClassVar[tuple[str, ...]] = ("squared_hinge", "epsilon_insensitive")

    def __init__(
        self,
        epsilon: float = 0.01,
        step: str = "pairwise",
        tol: float = 1e-3,
        cache_size: float = 64,
        dtype: Any = "auto",
        max_iter: int = -1,
    ):
        self.epsilon = epsilon
        self.step = step
        self.tol = tol
        self.cache_size = cache_size
        self.dtype = dtype
        self.max_iter = max_iter

    def inner_products(self, X: Any, *, keep: bool = False) -> InnerProducts:
        return self._exact().inner_products(X, keep=keep)

    def with_share_of_memory(self, share: float) -> Solver:
        smaller: Solver = clone(self).set_params(cache_size=share * self.cache_size)
        return smaller

    def _exact(self) -> Exact:
        return Exact(self.tol, self.cache_size, self.dtype)

    def solve(
        self,
        gram: GatedGram,
        problem: Problem,
        start: Array | None = None,
        ceiling: float = float("inf"),
    ) -> Dual:
        if not np.isfinite(self.epsilon) or not 0 < self.epsilon < 1:
            raise ValueError(f"epsilon must be between 0 and 1, got {self.epsilon!r}")
        if self.step not in _STEPS:
            raise ValueError(f"step must be one of {', '.join(_STEPS)}, got {self.step!r}")
        if not problem.is_classification:
            return self._exact().solve(gram, problem, start, ceiling)
        sign = np.where(problem.upper > 0, 1.0, np.where(problem.lower < 0, -1.0, 0.0))
        bounds = np.where(sign > 0, problem.upper, -problem.lower)[sign != 0]
        if np.isfinite(bounds).any() or not (problem.ridge[sign != 0] > 0).all():
            raise ValueError(
                "MWU solves the squared hinge with a finite cost; make the problem with "
                "squared_hinge(y, C), or turn it into one with squared(problem)"
            )
        if not ((sign > 0).any() and (sign < 0).any()):
            # With one class only, the constant decision is optimal.
            return problem.dual(np.zeros(gram.n_samples), problem.target.copy(), 0, True)
        hulls = _Hulls(gram, problem, sign)
        hulls.begin(None if self.step == "faithful" else start)
        return self._descend(hulls, ceiling)

    def _descend(self, hulls: "_Hulls", ceiling: float) -> Dual:
        limit = _MOST_ROUNDS if self.max_iter < 0 else self.max_iter
        limits = _Limits(len(hulls.sign), limit, self.cache_size)
        rounds, check, stuck = 0, _FIRST_CHECK, False
        while True:
            dual = hulls.dual(rounds, self.epsilon)
            if dual.converged or dual.objective > ceiling:
                return dual
            remedy = limits.reached(rounds, hulls, stuck)
            if remedy is not None:
                break
            until = min(check, limit)
            while rounds < until and not stuck and hulls.fetches < limits.fetches:
                done, stuck = hulls.advance(self.step, rounds, until - rounds)
                rounds += done
            logger.debug("%d rounds: relative gap %.3g", rounds, dual.gap / _primal(dual))
            check = rounds + max(_FIRST_CHECK, int(_CHECK_SHARE * rounds))
        warn_once(
            "unconverged",
            f"MWU stopped after {rounds} rounds with a relative gap of "
            f"{dual.gap / _primal(dual):.3g} > epsilon = {self.epsilon:.3g}; {remedy}",
            ConvergenceWarning,
        )
        return dual


def _primal(dual: Dual) -> float:
    return max(dual.objective + dual.gap, np.finfo(float).tiny)


class _Limits:
    """Where rounds end that do not reach the certificate, and what would help."""

    def __init__(self, n_samples: int, rounds: int, cache_size: float):
        self.rounds, self.cache_size = rounds, cache_size
        self.fetches = enough_fetches(n_samples)
        self.patience = enough_patience(n_samples)
        self.best, self.since = np.inf, 0

    def reached(self, rounds: int, hulls: "_Hulls", stuck: bool) -> str | None:
        """Return the remedy where the rounds shall end, None where they go on."""
        if stuck or self._has_stopped_falling(rounds, hulls.objective):
            return "no step leads further; raise epsilon, or scale the kernels and weights"
        if rounds >= self.rounds:
            return "raise max_iter or epsilon, or scale the kernels"
        if hulls.fetches >= self.fetches:
            return few_rows(self.cache_size, hulls.fetches)
        return None

    def _has_stopped_falling(self, rounds: int, objective: float) -> bool:
        if objective < (1.0 - _ROUNDING) * self.best:
            self.best, self.since = objective, rounds
        # Steps of the published length overshoot; the later, the longer until that is made good.
        return rounds - self.since > max(self.patience, 0.5 * rounds)


def few_rows(cache_size: float, fetches: int) -> str:
    """Return the remedy where most rounds miss a row."""
    return (
        f"cache_size={cache_size:g} MB held so few rows that missing ones were computed {fetches} "
        "times; raise cache_size or epsilon, or scale the kernels"
    )


class _Hulls:
    """Two classes as convex hulls, half a unit of mass in each; ``g = G alpha``."""

    def __init__(self, gram: GatedGram, problem: Problem, sign: Array):
        self.gram = gram
        self.problem = problem
        self.sign = sign
        self._sides = [np.flatnonzero(sign == side) for side in (1.0, -1.0)]
        # The loops are compiled for arrays that can be written to.
        self.diag = gram.diag().copy()
        self.alpha = np.zeros(gram.n_samples)
        self.g = np.zeros(gram.n_samples)
        self.curvature = np.inf
        self.fetches = 0  # times that rows were missing
        # So few samples that any budget holds their matrix, but not one for rows.
        tiny = gram.fits and gram.storable < gram.n_samples
        self._whole = (gram.whole.copy(), np.arange(gram.n_samples)) if tiny else None

    @property
    def objective(self) -> float:
        """``alpha' G alpha``, the squared distance of the points in the hulls."""
        return float(self.alpha @ self.g)

    def begin(self, start: Array | None) -> None:
        """Put half a unit in each class, shared out like the coefficients given, if any."""
        alpha = np.zeros(len(self.sign)) if start is None else np.abs(start)
        for side in (1.0, -1.0):
            own = self.sign == side
            if not alpha[own].any():
                # Of all single samples of a class, the one nearest the origin is the best start.
                first = np.flatnonzero(own)[np.argmin((self.diag + self.problem.ridge)[own])]
                alpha[first] = 1.0
            alpha[own] *= 0.5 / alpha[own].sum()
        alpha[self.sign == 0] = 0.0
        self.alpha = alpha
        self.g = self.sign * self.gram.dot(self.sign * alpha) + self.problem.ridge * alpha

    def advance(self, step: str, before: int, rounds: int) -> tuple[int, bool]:
        """Do some rounds, fewer where a row was missing; whether none can lead further."""
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
        """Rows that are missing now, and those that will be asked for next."""
        ahead = []
        for own in self._sides:
            active = own[self.alpha[own] > 0]
            ahead += [own[least(self.g[own], _AHEAD)], active[least(-self.g[active], _AHEAD)]]
        return with_next(first, second, ahead, self.gram.storable)

    def dual(self, rounds: int, epsilon: float) -> Dual:
        """Return the machine of this round, with the intercept of the least primal value."""
        problem, q = self.problem, self.objective
        if not q > 0:
            raise ValueError(_INDEFINITE)
        coef = self.sign * self.alpha / q
        gradient = problem.target - self.sign * self.g / q
        absent = self.sign == 0
        if absent.any():
            gradient[absent] = (problem.target - self.gram.dot(coef))[absent]
        b = problem.best_intercept(coef, gradient)
        gap = problem.gap(coef, gradient, b)
        reached = gap <= epsilon * (problem.objective(coef, gradient) + gap)
        return problem.dual(coef, gradient, rounds, bool(reached), b)


def with_next(first: int, second: int, ahead: list[Array], capacity: int) -> Array:
    """Two missing rows, and as many of the next ones as the memory holds."""
    index, place = np.unique(np.concatenate([[first, second], *ahead]), return_index=True)
    return np.asarray(index[np.argsort(place)][: max(capacity, 2)])


def least(values: Array, count: int) -> Array:
    """Positions of the smallest values.

    Few of many: they are in those blocks that have the smallest minima, and in what is left over
    behind the last block.
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


_MEGABYTE = 2**20
RATES = ("scale_free", "faithful")
# Samples of each class whose rows are computed ahead when a row is missing.
_ROWS_AHEAD = 8


@dataclass(frozen=True, eq=False)
class Shares:
    """Shares of the kernels after some rounds, and the machine that belongs to them."""

    shares: Array  # (n_kernels,), they sum to one
    dual: Dual  # on the shared kernel; its gap is from the optimum under these shares
    lower: float  # dual value over shares and machine: no shares have an optimum below
    gap: float  # certified distance of the machine's primal value from `lower`

    @property
    def upper(self) -> float:
        """Primal value of the machine."""
        return self.lower + self.gap


def kernel_shares(
    gram: GatedGram,
    problem: Problem,
    *,
    epsilon: float = 0.01,
    rate: str = "scale_free",
    cache_size: float = 64,
    max_iter: int = 1_000_000,
) -> Iterator[Shares]:
    """Yield ever better shares of the kernels, to a certified relative gap.

    Minimises over shares on the simplex the optimum of the squared hinge machine on
    ``sum_i mu_i K_i``, where ``K_i`` are the kernels of `gram` under its own gates.

    Parameters
    ----------
    gram : GatedGram
        Its gates are those of full trust in every kernel.
    problem : Problem
        A squared hinge.
    epsilon : float, default=0.01
        ``upper - lower <= epsilon * upper`` ends the rounds.
    rate : {"scale_free", "faithful"}, default="scale_free"
        Of learning: relative to the largest norm, or the published ``-log(1 - epsilon)``, which
        is meant for kernels of trace one. The published rounds are counted beforehand,
        ``2 log(n) / epsilon^2``, and end there whatever the gap.
    cache_size : float, default=64
        Megabytes for stored rows.
    max_iter : int, default=1000000
        Limit on the rounds.
    """
    n, m = gram.n_samples, len(gram.kernels)
    if not (problem.upper > 0).any() or not (problem.lower < 0).any():
        # With one class only, the constant decision is optimal under any shares.
        dual = problem.dual(np.zeros(n), problem.target.copy(), 0, True, problem.target[0])
        yield Shares(np.full(m, 1.0 / m), dual, 0.0, 0.0)
        return
    state = _Rounds(gram, problem, cache_size)
    if rate == "faithful":
        speed = -math.log1p(-epsilon)
        max_iter = min(max_iter, math.ceil(2.0 * math.log(max(n, 2)) / epsilon**2))
    else:
        speed = 0.25 * math.log(m * (n + 1)) / epsilon
    check = _FIRST_CHECK
    while True:
        state.advance(min(check, max_iter), speed, rate != "faithful")
        found = state.shares(speed, rate != "faithful", epsilon)
        yield found
        ended = state.rounds >= max_iter
        if found.dual.converged and (ended or rate != "faithful"):
            return
        starved = state.fetches >= state.most_fetches
        if ended or starved:
            remedy = few_rows(cache_size, state.fetches) if starved else "raise max_iter or epsilon"
            _warn_of_gap(found, state.rounds, epsilon, remedy)
            return
        check = state.rounds + max(_FIRST_CHECK, int(_CHECK_SHARE * state.rounds))


def _warn_of_gap(found: Shares, rounds: int, epsilon: float, remedy: str) -> None:
    warn_once(
        "unconverged shares",
        f"multiplicative weights stopped after {rounds} rounds with a relative gap of "
        f"{found.gap / found.upper:.3g} > epsilon = {epsilon:.3g}; {remedy}",
        ConvergenceWarning,
    )


class _Rounds:
    """The sums over all rounds: ``a``, ``v_i = G_i a``, ``Q_i = a' G_i a``."""

    def __init__(self, gram: GatedGram, problem: Problem, cache_size: float):
        n, m = gram.n_samples, len(gram.kernels)
        self.gram = gram
        self.problem = problem
        self.sign = np.where(problem.upper > 0, 1.0, np.where(problem.lower < 0, -1.0, 0.0))
        self.a = np.zeros(n)
        self.v = np.zeros((m, n))
        self.Q = np.zeros(m)
        # Before the first round all gradients are zero: the samples nearest the origin begin.
        self.g = gram.diag() + problem.ridge
        self.rounds = 0
        self._sides = [np.flatnonzero(self.sign == side) for side in (1.0, -1.0)]
        self.fetches, self.most_fetches = 0, enough_fetches(n)
        fit = int(cache_size * _MEGABYTE // (m * n * gram.dtype.itemsize))
        self._cache = RowCache(n, m * n, max(fit, 2), gram.dtype)

    def advance(self, until: int, speed: float, relative: bool) -> None:
        """Go on to a number of rounds, or until rows have been missing too often."""
        n, m = len(self.sign), len(self.Q)
        slab = self._cache.slab.reshape(-1, m, n)
        sums = _mwu.Sums(self.sign, self.problem.ridge, self.a, self.v, self.Q, self.g)
        while self.rounds < until and self.fetches < self.most_fetches:
            slots = self._cache.slots(np.arange(n))
            rest = until - self.rounds
            done, first, second = _mwu.kernel_rounds(slab, slots, sums, speed, relative, rest)
            self.rounds += done
            if first >= 0:
                self.fetches += 1
                self._fetch(first, second)

    def _fetch(self, first: int, second: int) -> None:
        ahead = [own[least(self.g[own], _ROWS_AHEAD)] for own in self._sides]
        index = with_next(first, second, ahead, self._cache.capacity)
        slots, missing = self._cache.place(index)
        m, n = self.v.shape
        rows = self.gram.rows_apart(index[missing])
        self._cache.slab[slots[missing]] = rows.reshape(len(rows), m * n)

    def shares(self, speed: float, relative: bool, epsilon: float) -> Shares:
        """Return shares, machine and certificate of this round."""
        mu = _mwu.kernel_shares(self.Q, speed, relative)
        alpha, q = self.a / self.rounds, self.Q / self.rounds**2
        mixed = float(mu @ q)
        lower = 0.5 / float(q.max())
        coef = self.sign * alpha / mixed
        gradient = self.problem.target - self.sign * (mu @ self.v) / self.rounds / mixed
        b = self.problem.best_intercept(coef, gradient)
        upper = self.problem.objective(coef, gradient) + self.problem.gap(coef, gradient, b)
        gap = max(upper - lower, 0.0)
        reached = gap <= epsilon * upper
        dual = self.problem.dual(coef, gradient, self.rounds, bool(reached), b)
        return Shares(mu, dual, lower, gap)
