"""Dual coordinate descent on stored features: many samples, a machine of low rank.

One coefficient after the other goes to its best value, in the order of a random permutation; the
weights ``w = sum_j u_j phi(x_j)`` go with it, so that a step costs two passes over the features of
one sample. Samples at a bound that will stay there are left alone (*shrinking*): soon few are not.

The intercept is not regularised. Coefficients must then sum to zero, which single steps cannot
keep; instead the intercept is ``b + pull * sum_j u_j``, and after every pass ``b`` is moved to it:
the method of multipliers. Where it ends the sum is zero, and ``b`` is the intercept of the exact
machine, not one that is drawn to zero.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl._compiled import CompiledModule
from lokl.gram import LowRankGram
from lokl.solvers.problem import Problem

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
