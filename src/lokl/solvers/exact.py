"""The exact block solver.

Equal samples counted once, in an order that does not depend on that of the rows.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from lokl._arrays import Array, is_sparse
from lokl._warnings import warn_once
from lokl.gram import GatedGram, InnerProducts
from lokl.solvers.base import (
    TolerantSolver,
    enough_rounds,
    enough_steps,
    tell_of_indefinite_kernels,
)
from lokl.solvers.cost_path import solve_on_stored
from lokl.solvers.problem import Dual, Problem
from lokl.solvers.working_set import SMALL, State, WorkingSet

logger = logging.getLogger("lokl")

# Problems of up to so many samples are solved in float64.
_PRECISE = 1024
# Kernel values above which data counts as not scaled, and how far above their median.
_LARGE, _UNEVEN = 1e4, 1e3
# Times the steps before them, a problem that they did not solve either is given up.
_AFTERWARDS = 3
# Steps of one compiled call: short enough for Ctrl-C to be answered.
_STEPS_A_CALL = 100_000
# Fewer where all free coefficients can be moved at once in between.
_STEPS_TO_CLIMB = 2000
# Fewer where the caller wants to know as soon as the dual value passes a ceiling.
_STEPS_TO_CEILING = 1000


class Exact(TolerantSolver):
    """Block decomposition: one matrix product and many pair moves a round.

    Each round takes a working set, half kept and half the worst violators, solves it by pair moves
    on its own small matrix, and updates the gradient of all samples with the rows of the samples
    that moved. Rows are float32 (float64 for small problems and tight tolerances), gradient and
    objective always float64.

    Parameters
    ----------
    tol : float, default=1e-3
        Largest violation of the optimality conditions that is left, as in LibSVM.
    cache_size : float, default=512
        Megabytes for stored rows.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Of rows.
    max_iter : int, default=-1
        Limit on pair moves; -1 is far more than problems of this size need on scaled data, some
        seconds of work for a few thousand samples.
    working_set : int, default=1024
        Samples of one round.
    """

    def __init__(
        self,
        tol: float = 1e-3,
        cache_size: float = 512,
        dtype: Any = "auto",
        max_iter: int = -1,
        working_set: int = 1024,
    ):
        self.tol = tol
        self.cache_size = cache_size
        self.dtype = dtype
        self.max_iter = max_iter
        self.working_set = working_set

    def inner_products(self, X: Any, *, keep: bool = False) -> InnerProducts:
        dtype = self.dtype
        if dtype == "auto" and (X.shape[0] <= _PRECISE or self.tol < 1e-4):
            dtype = "float64"
        return InnerProducts(X, cache_size=self.cache_size, dtype=dtype, keep=keep)

    def solve(
        self,
        gram: GatedGram,
        problem: Problem,
        start: Array | None = None,
        ceiling: float = float("inf"),
    ) -> Dual:
        self._check()
        state = State.begin(gram, problem, start)
        work = WorkingSet(gram, problem, self._size(gram))
        steps_a_call = _STEPS_TO_CLIMB if work.is_whole else _STEPS_A_CALL
        if np.isfinite(ceiling):
            steps_a_call = _STEPS_TO_CEILING
        climbed = True
        limit, rounds = float(self.max_iter), np.inf
        if limit < 0:
            limit = enough_steps(gram.n_samples, work.size)
            rounds = enough_rounds(gram.n_samples)
        jump_at = work.jump_at
        while True:
            up, down = problem.violations(state.coef, state.gradient)
            violation = up.max(initial=-np.inf) - down.min(initial=np.inf)
            if violation <= self.tol or state.steps >= limit or state.rounds >= rounds:
                break
            if work.is_whole and not climbed:
                work.climb(state)
                climbed = True
                continue
            climbed = False
            if state.steps >= jump_at:
                if not state.is_indefinite:
                    work.jump(state)
                    # What interior point steps did not reach, pair moves will not reach soon.
                    limit = _AFTERWARDS * jump_at if self.max_iter < 0 else limit
                jump_at = np.inf
                continue
            work.select(up, down, state.coef)
            # Working sets are solved loosely early on, to the tolerance itself near the end.
            # What they leave is a little less than that, where it is told in single precision.
            finest = self.tol if work.is_precise else 0.9 * self.tol
            inner_tol = finest if work.is_whole else max(0.5 * self.tol, 0.1 * violation)
            moved = work.improve(
                state, inner_tol, min(min(limit, jump_at) - state.steps, steps_a_call)
            )
            logger.debug("round %d: violation %.3g", state.rounds, violation)
            if problem.objective(state.coef, state.gradient) > ceiling:
                return problem.dual(state.coef, state.gradient, state.steps, False)
            if state.stalls(problem, violation) or not (moved or work.is_sample):
                break
        state.coef = problem.settled(state.coef, start, state.scale, self.tol)
        if work.is_whole and violation <= self.tol and state.steps:
            violation = work.sharpen(state, violation, limit)
        self._warn(gram, state, violation, limited=state.steps >= limit)
        if violation <= self.tol:
            return problem.dual(state.coef, state.gradient, state.steps, True)
        # The optimality conditions do not give the intercept yet; the least loss still does.
        b = problem.least_loss_intercept(state.coef, state.gradient)
        return problem.dual(state.coef, state.gradient, state.steps, False, b)

    def _check(self) -> None:
        if not np.isfinite(self.tol) or self.tol <= 0:
            raise ValueError(f"tol must be a positive finite number, got {self.tol!r}")
        if self.working_set < 2:
            raise ValueError(f"working_set must be at least 2, got {self.working_set!r}")

    def solve_parts(
        self, gram: GatedGram, problems: Sequence[Problem], starts: Sequence[Array] | None = None
    ) -> list[Dual]:
        # Problems in double precision are polished, and so small that they are quick as they are;
        # of a large matrix, most rows are of no use to any part.
        if not (self._is_one_set(gram) and gram.dtype == np.float32 and self.max_iter < 0):
            begin: Sequence[Array | None] = [None] * len(problems) if starts is None else starts
            return [self.solve(gram, *own) for own in zip(problems, begin, strict=True)]
        found = solve_on_stored(gram.whole, problems, starts, self.tol)
        # What is hard or not convex is solved, and told about, in the ordinary way.
        return [
            self.solve(gram, problem) if dual is None else dual
            for problem, dual in zip(problems, found, strict=True)
        ]

    def _is_one_set(self, gram: GatedGram) -> bool:
        return gram.n_samples <= SMALL and (gram.fits or not gram.needs_rows)

    def _size(self, gram: GatedGram) -> int:
        """Samples of a working set: all of them where the problem is small."""
        if self._is_one_set(gram):
            return gram.n_samples
        return min(self.working_set, max(gram.capacity, 2)) if gram.needs_rows else self.working_set

    def _warn(self, gram: GatedGram, state: State, violation: float, limited: bool) -> None:
        if state.is_indefinite:
            tell_of_indefinite_kernels()
        if violation > self.tol:
            remedy = "scale the data or the kernels, or lower C"
            median = float(np.median(np.abs(gram.diag())))
            if state.scale > _LARGE or state.scale > _UNEVEN * median > 0:
                remedy = (
                    f"kernel values reach {state.scale:.3g}, so the data is likely not scaled: "
                    "standardise the features, or use kernels such as RBF() or .normalized()"
                )
            warn_once(
                "unconverged",
                f"the solver stopped after {state.steps} steps with a violation of "
                f"{violation:.3g} > tol = {self.tol:.3g}; "
                + ("raise max_iter, or " if limited and self.max_iter >= 0 else "")
                + remedy,
                ConvergenceWarning,
            )


@dataclass(frozen=True, eq=False)
class Distinct:
    """The distinct samples of a squared hinge problem.

    Rounds that pick single samples treat a row written twice unlike a row of weight 2, and break
    ties by the order of the rows; on distinct samples in a fixed order they do neither.
    """

    rows: Array  # one row of each distinct sample and label, in a fixed order
    inverse: Array  # (n_samples,), place of every sample in `rows`
    share: Array  # (n_samples,), part of the sample in the cost of all its equals
    problem: Problem  # of the distinct samples, costs added up

    @classmethod
    def of(cls, X: Any, problem: Problem) -> "Distinct":
        """Find equal rows with equal labels."""
        names = names_of_rows(X, problem.target)
        _, rows, inverse = np.unique(names, return_index=True, return_inverse=True)
        cost = np.divide(
            1.0, problem.ridge, out=np.zeros_like(problem.ridge), where=problem.ridge > 0
        )
        total = np.bincount(inverse, weights=cost, minlength=len(rows))
        kept = problem.take(rows)
        ridge = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        return cls(rows, inverse, cost / total[inverse], replace(kept, ridge=ridge))

    def spread(self, dual: Dual) -> Dual:
        """Return a machine on the distinct samples as one on all samples."""
        coef = dual.coef[self.inverse] * self.share
        return replace(dual, coef=coef, decision=dual.decision[self.inverse])


def names_of_rows(X: Any, target: Array) -> Array:
    """Bytes that are equal for equal samples with equal targets, of which there may be several."""
    if is_sparse(X):
        starts, stops = X.indptr[:-1], X.indptr[1:]
        parts = [
            X.indices[a:b].tobytes() + X.data[a:b].tobytes() + t.tobytes()
            for a, b, t in zip(starts, stops, target, strict=True)
        ]
        return np.array(parts, dtype=object)
    # Adding zero turns minus zero into zero, which has other bytes.
    table = np.ascontiguousarray(np.column_stack([X, target]) + 0.0)
    return table.view(np.dtype((np.void, table.itemsize * table.shape[1]))).ravel()
