"""Multiplicative weights with several kernels: shares and machine in one, in O(m n) memory."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from lokl._arrays import Array
from lokl._compiled import CompiledModule
from lokl._notices import tell
from lokl.gram import GatedGram
from lokl.gram.row_cache import RowCache
from lokl.solvers.limits import enough_fetches
from lokl.solvers.mwu import few_rows, least, with_next
from lokl.solvers.problem import Dual, Problem

_mwu = CompiledModule("lokl.solvers._mwu")

_MEGABYTE = 2**20
RATES = ("scale_free", "faithful")
# Samples of each class whose rows are computed ahead when a row is missing.
_AHEAD = 8
_FIRST_CHECK, _CHECK_SHARE = 10, 0.05


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
    tell(
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
        ahead = [own[least(self.g[own], _AHEAD)] for own in self._sides]
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
