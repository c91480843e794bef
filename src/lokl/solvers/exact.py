"""Exact block solver on rows of the Gram matrix.

Each round takes a working set, solves it by pair moves on its own small matrix, and updates the
gradient of all samples with the rows of the samples that moved. A problem of up to `SMALL` samples
is one working set. Its optimum is then polished to machine precision, and interior point steps
take over if pair moves converge slowly (see :mod:`lokl.solvers.free_set`).

Block SMO has two drivers. This one computes rows by matrix products between compiled calls. A
matrix that is stored as a whole has a compiled driver (:mod:`lokl.solvers._stored`): on paths of 7
to 11 costs with 1,100 to 4,000 samples, the driver on rows takes 1.5 to 3.7 times as long even if
all rows are stored, and it does not release the GIL.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from lokl._arrays import Array, read_only
from lokl._compiled import CompiledModule
from lokl._warnings import warn_once
from lokl.gram import GatedGram, InnerProducts
from lokl.solvers.base import (
    TolerantSolver,
    default_round_limit,
    default_step_limit,
    is_indefinite,
    warn_indefinite,
)
from lokl.solvers.cost_path import solve_on_stored
from lokl.solvers.free_set import interior, newton_steps, polish
from lokl.solvers.problem import Dual, Problem

_smo = CompiledModule("lokl.solvers._smo")

logger = logging.getLogger("lokl")

# Most samples of a problem that is one working set, with its whole matrix in memory.
SMALL = 2048
# Most samples of a problem that is solved in float64.
_PRECISE = 1024
# Smallest working set that starts from a sample of the data, not from the largest violation.
_SAMPLED = 64
# Pair moves of one compiled call: few enough to react to Ctrl-C, fewer if all free coefficients can
# be moved between calls, and fewer if the caller waits for the dual value to exceed a ceiling.
_STEPS_PER_CALL, _STEPS_TO_CLIMB, _STEPS_TO_CEILING = 100_000, 2000, 1000
# Pair moves after which a small problem counts as hard and interior point steps begin, and the
# multiple of these moves after which a problem that they did not solve is given up.
_EASY, _AFTERWARDS = 10_000, 3
# Rounds of polishing, and the violation at which a solution counts as exact.
_POLISH_ROUNDS, _EXACT = 8, 1e-12
# Rounds without progress that end a solve.
_PATIENCE = 200
# Largest gradient, in units of the tolerance, and largest kernel value for which pair moves are
# computed in single precision.
_DIGITS, _LARGE = 1e5, 16.0
# Kernel values above which data counts as unscaled: absolute, and relative to their median.
_UNSCALED, _UNEVEN = 1e4, 1e3


class Exact(TolerantSolver):
    """Block decomposition: one matrix product and many pair moves per round.

    Each round takes a working set, half kept and half the worst violators, solves it by pair moves
    on its own small matrix, and updates the gradient of all samples with the rows of the samples
    that moved. Rows are float32 (float64 for small problems and tight tolerances). Gradient and
    objective are always float64.

    Parameters
    ----------
    tol : float, default=1e-3
        Largest violation of the optimality conditions that is left, as in LibSVM.
    cache_size : float, default=512
        Megabytes for stored rows.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of rows.
    max_iter : int, default=-1
        Limit on pair moves. The default, -1, is far more than problems of this size need on scaled
        data: some seconds of work for a few thousand samples.
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
        work = WorkingSet(gram, problem, self._working_set_size(gram))
        steps_per_call = _STEPS_TO_CLIMB if work.is_whole else _STEPS_PER_CALL
        if np.isfinite(ceiling):
            steps_per_call = _STEPS_TO_CEILING
        climbed = True
        limit, rounds = float(self.max_iter), np.inf
        if limit < 0:
            limit = default_step_limit(gram.n_samples, work.size)
            rounds = default_round_limit(gram.n_samples)
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
                    # Pair moves rarely finish what interior point steps did not.
                    limit = _AFTERWARDS * jump_at if self.max_iter < 0 else limit
                jump_at = np.inf
                continue
            work.select(up, down, state.coef)
            max_steps = min(min(limit, jump_at) - state.steps, steps_per_call)
            moved = work.improve(state, self._inner_tolerance(work, violation), max_steps)
            logger.debug("round %d: violation %.3g", state.rounds, violation)
            if problem.objective(state.coef, state.gradient) > ceiling:
                b = problem.intercept(state.coef, state.gradient)
                return problem.dual(state.coef, state.gradient, state.steps, False, b)
            if state.stalls(problem, violation) or not (moved or work.is_sample):
                break
        state.coef = problem.snap(state.coef, start, state.scale, self.tol)
        if work.is_whole and violation <= self.tol and state.steps:
            violation = work.polish(state, violation, limit)
        self._warn(gram, state, violation, limited=state.steps >= limit)
        return problem.dual(state.coef, state.gradient, state.steps, bool(violation <= self.tol))

    def _check(self) -> None:
        if not np.isfinite(self.tol) or self.tol <= 0:
            raise ValueError(f"tol must be a positive finite number, got {self.tol!r}")
        if self.working_set < 2:
            raise ValueError(f"working_set must be at least 2, got {self.working_set!r}")

    def _inner_tolerance(self, work: "WorkingSet", violation: float) -> float:
        """Return the tolerance of a working set: loose at first, the solver's near the end."""
        if not work.is_whole:
            return max(0.5 * self.tol, 0.1 * violation)
        # In single precision the violation that is reached is a little larger than reported.
        return self.tol if work.is_precise else 0.9 * self.tol

    def solve_subsets(
        self, gram: GatedGram, problems: Sequence[Problem], starts: Sequence[Array] | None = None
    ) -> list[Dual]:
        # Problems in double precision are polished, and so small that they are fast anyway; of a
        # large matrix, most rows are not used by any subset.
        if not (self._is_one_set(gram) and gram.dtype == np.float32 and self.max_iter < 0):
            coefs: Sequence[Array | None] = [None] * len(problems) if starts is None else starts
            return [self.solve(gram, *case) for case in zip(problems, coefs, strict=True)]
        duals = solve_on_stored(gram.whole, problems, starts, self.tol)
        # Hard and indefinite problems are solved, with their warnings, by the driver on rows.
        return [
            self.solve(gram, problem) if dual is None else dual
            for problem, dual in zip(problems, duals, strict=True)
        ]

    def _is_one_set(self, gram: GatedGram) -> bool:
        return gram.n_samples <= SMALL and (gram.fits or not gram.needs_rows)

    def _working_set_size(self, gram: GatedGram) -> int:
        if self._is_one_set(gram):
            return gram.n_samples
        return min(self.working_set, max(gram.capacity, 2)) if gram.needs_rows else self.working_set

    def _warn(self, gram: GatedGram, state: "State", violation: float, limited: bool) -> None:
        if state.is_indefinite:
            warn_indefinite()
        if violation <= self.tol:
            return
        remedy = "scale the data or the kernels, or lower C"
        median = float(np.median(np.abs(gram.diag())))
        if state.scale > _UNSCALED or state.scale > _UNEVEN * median > 0:
            remedy = (
                f"kernel values reach {state.scale:.3g}, so the data is likely not scaled: "
                "standardise the features, or use kernels such as RBF() or .normalized()"
            )
        if limited and self.max_iter >= 0:
            remedy = f"raise max_iter, or {remedy}"
        warn_once(
            "unconverged",
            f"the solver stopped after {state.steps} steps with a violation of {violation:.3g} > "
            f"tol = {self.tol:.3g}; {remedy}",
            ConvergenceWarning,
        )


@dataclass
class State:
    """Coefficients, their gradient, and the progress of a solve."""

    coef: Array  # (n_samples,)
    gradient: Array  # (n_samples,)
    scale: float  # largest kernel value
    single: bool  # whether rows are in single precision
    steps: int = 0
    rounds: int = 0
    curvature: float = np.inf
    best_objective: float = -np.inf
    least_violation: float = np.inf
    best_round: int = 0

    @classmethod
    def begin(cls, gram: GatedGram, problem: Problem, start: Array | None) -> "State":
        """Return the state at a warm start of shape (n_samples,), or at zero."""
        scale = float(np.abs(gram.diag()).max(initial=0.0))
        single = gram.dtype == np.float32
        if start is None:
            return cls(np.zeros(gram.n_samples), problem.target.copy(), scale, single)
        coef = problem.feasible(np.asarray(start, dtype=np.float64))
        gradient = problem.target - problem.ridge * coef
        support = np.flatnonzero(coef)
        if len(support) and gram.n_samples <= SMALL and gram.fits:
            # A small problem is solved on the whole matrix anyway.
            gram.subtract_whole(support, coef[support], gradient)
        elif gram.needs_rows and len(support) <= gram.capacity // 2:
            # The solver will need these rows, and there is room to keep them.
            gram.subtract(support, coef[support], gradient)
        else:
            gradient -= gram.dot(coef)
        return cls(coef, gradient, scale, single)

    @property
    def is_indefinite(self) -> bool:
        return is_indefinite(self.curvature, self.scale, self.single)

    def stalls(self, problem: Problem, violation: float) -> bool:
        """Return whether many rounds have passed in which only rounding errors changed."""
        objective = problem.objective(self.coef, self.gradient)
        if objective > self.best_objective + 1e-14 * abs(objective):
            self.best_objective, self.best_round = objective, self.rounds
        # Near the optimum the last digit of the objective no longer changes, but a falling
        # violation is still progress.
        if violation < 0.9 * self.least_violation:
            self.least_violation, self.best_round = violation, self.rounds
        # With rows in float64 even tiny steps are exact, and many of them may reach the optimum.
        patience = _PATIENCE if self.single else 100 * _PATIENCE
        return self.rounds - self.best_round >= patience


class WorkingSet:
    """Samples of one round and the small matrix of their kernel values.

    Parameters
    ----------
    gram : GatedGram
    problem : Problem
    size : int
        Most samples of a round. If all samples fit, the set is the whole problem.
    """

    def __init__(self, gram: GatedGram, problem: Problem, size: int):
        self.gram = gram
        self.problem = problem
        self.size = size
        self.index = np.empty(0, dtype=np.intp)
        self._priority = np.empty(0)
        self.is_sample = False
        if self.is_whole:
            self.index = np.arange(gram.n_samples)
            self.matrix = gram.whole
            if problem.ridge.any():
                self.matrix = self.matrix + np.diag(problem.ridge).astype(gram.dtype)
        else:
            self.matrix = np.empty((size, size), dtype=gram.dtype)

    @property
    def is_whole(self) -> bool:
        """Whether one working set contains all samples."""
        return self.size >= self.gram.n_samples

    @property
    def is_precise(self) -> bool:
        """Whether pair moves are computed in double precision."""
        return bool(self.matrix.dtype == np.float64)

    @property
    def jump_at(self) -> float:
        """Number of pair moves that cost about as much as interior point steps."""
        if not self.is_whole or not self.is_precise:
            return np.inf
        return _EASY + self.size**2 // 3

    def climb(self, state: State) -> None:
        """Move the free coefficients to their best values if that raises the objective.

        Pair moves need many steps if few coefficients are free and their matrix is nearly singular,
        as with a linear kernel and a large cost. Newton steps need few.
        """
        point = state.coef, state.gradient
        for coef, gradient, is_whole in newton_steps(self.matrix, self.problem, *point):
            point = coef, gradient
            if is_whole:
                break
        self._take_if_better(state, *point)

    def jump(self, state: State) -> None:
        """Move to the optimum, or closer to it, by interior point steps."""
        problem = self.problem
        coef = interior(self.matrix, problem)
        if coef is None:
            return
        gradient = problem.target - self.matrix @ coef
        polished = polish(self.matrix, problem, coef, gradient, _EXACT * max(state.scale, 1.0))
        if polished is not None:
            coef, gradient, _ = polished
        else:
            coef = problem.feasible(coef)
            gradient = problem.target - self.matrix @ coef
        if self._take_if_better(state, coef, gradient):
            self.polish(state, problem.violation(coef, gradient), np.inf)

    def _take_if_better(self, state: State, coef: Array, gradient: Array) -> bool:
        objective = self.problem.objective
        is_better = objective(coef, gradient) > objective(state.coef, state.gradient)
        if is_better:
            state.coef, state.gradient = coef, gradient
        return is_better

    def polish(self, state: State, violation: float, limit: float) -> float:
        """Move a small problem from near the optimum to the optimum; return the violation.

        `limit` is the limit on pair moves.
        """
        if not self.is_precise:
            return violation
        exact = _EXACT * max(state.scale, 1.0)
        least, safe = violation, (state.coef.copy(), state.gradient.copy())
        for _ in range(_POLISH_ROUNDS):
            polished = polish(self.matrix, self.problem, state.coef, state.gradient, exact)
            if polished is None:
                break
            if polished.violation <= violation:
                state.coef, state.gradient, violation = polished
            if violation < least:
                least, safe = violation, (state.coef.copy(), state.gradient.copy())
            if violation <= exact or state.steps >= limit:
                break
            # Some free samples were still missing; a few more moves find them.
            if not self.improve(state, 0.1 * violation, min(limit - state.steps, 1000)):
                break
            violation = self.problem.violation(state.coef, state.gradient)
        # A pair move raises the objective but may also raise the violation, so the best is kept.
        state.coef, state.gradient = safe
        return least

    def select(self, up: Array, down: Array, coef: Array) -> None:
        """Keep the better half of the last round, and fill up with the worst violators.

        `up` and `down`, of shape (n_samples,), are overwritten: selected samples are masked, so
        that none is selected twice.
        """
        if self.is_whole:
            return
        self.is_sample = len(self.index) == 0 and self.size >= _SAMPLED and not coef.any()
        if self.is_sample:
            # At first all samples have the same gain; an even sample of the data is the best guess.
            risers = _evenly_spaced(np.flatnonzero(np.isfinite(up)), self.size // 2)
            rest = np.isfinite(down)
            rest[risers] = False
            fallers = _evenly_spaced(np.flatnonzero(rest), self.size - len(risers))
            self._replace(self.index, np.concatenate([risers, fallers]))
            return
        # The pair with the largest gain must fit in addition to the kept samples.
        most = self.size // 2 if self.size >= 4 else 0
        kept = np.argsort(-self._priority, kind="stable")[:most]
        stay = self.index[kept]
        # After a warm start, the free samples are the most likely to move.
        free = np.empty(0, dtype=np.intp)
        if len(self.index) == 0:
            free = _evenly_spaced(np.flatnonzero(self.problem.is_free(coef)), most)
            stay = free
        low, high = down.min(), up.max()
        room = self.size - len(stay)
        up[stay] = -np.inf
        down[stay] = np.inf
        risers = _largest(up, room // 2, low)
        down[risers] = np.inf
        fallers = _largest(-down, room - len(risers), -high)
        self._replace(kept, np.concatenate([free, risers, fallers]))

    def _replace(self, kept: Array, new: Array) -> None:
        """Put new samples in the positions of those not kept, and compute only their entries."""
        count = len(kept) + len(new)
        matrix, index = self.matrix, np.empty(count, dtype=np.intp)
        taken = np.zeros(count, dtype=bool)
        stay = kept[kept < count]
        taken[stay] = True
        index[stay] = self.index[stay]
        # If the set shrank, samples beyond its new end move into free positions.
        free = np.flatnonzero(~taken)
        movers = kept[kept >= count]
        for position, mover in zip(free[: len(movers)], movers, strict=True):
            matrix[position, :] = matrix[mover, :]
            matrix[:, position] = matrix[:, mover]
            index[position] = self.index[mover]
        free = free[len(movers) :]
        index[free] = new
        self.index = index
        _smo.place_symmetric(matrix, free, self.gram.cross(new, index))
        matrix[free, free] += self.problem.ridge[new].astype(matrix.dtype)

    def _set_gradient(self, state: State, tol: float) -> Array:
        """Return the gradient of the set in the precision of its pair moves."""
        gradient = state.gradient[self.index]
        if self.is_precise or state.scale > _LARGE:
            return gradient
        # A constant may be added to the gradient; half the digits suffice for the differences.
        centred = gradient - 0.5 * (gradient.min() + gradient.max())
        if np.abs(centred).max() > _DIGITS * tol:
            return gradient
        return centred.astype(np.float32)

    def improve(self, state: State, tol: float, max_steps: float) -> bool:
        """Solve the working set, and update the whole problem; return whether anything moved."""
        index, problem = self.index, self.problem.take(self.index)
        coef, gradient = state.coef[index], self._set_gradient(state, tol)
        steps, _, curvature = _smo.smo(
            read_only(self.matrix),
            coef,
            gradient,
            problem.lower,
            problem.upper,
            problem.epsilon,
            tol,
            int(max_steps),
        )
        change = coef - state.coef[index]
        moved = np.flatnonzero(change)
        state.coef[index] = coef
        state.steps += steps
        state.rounds += 1
        state.curvature = min(state.curvature, curvature)
        if len(index) == self.gram.n_samples and gradient.dtype == np.float64:
            state.gradient[index] = gradient
        else:
            is_all = len(index) == self.gram.n_samples
            subtract = self.gram.subtract_whole if is_all else self.gram.subtract
            subtract(index[moved], change[moved], state.gradient)
            state.gradient[index] -= problem.ridge * change
        self._priority = 2.0 * problem.is_free(coef) + (change != 0)
        return bool(steps > 0)


def _evenly_spaced(positions: Array, count: int) -> Array:
    """Return at most `count` of the positions, evenly spaced."""
    if len(positions) <= count:
        return positions
    return positions[np.linspace(0, len(positions) - 1, count).astype(np.intp)]


def _largest(values: Array, count: int, above: float) -> Array:
    """Return the positions of the `count` largest values that exceed `above`."""
    count = min(count, len(values))
    if count <= 0:
        return np.empty(0, dtype=np.intp)
    positions = np.sort(np.argpartition(-values, count - 1)[:count])
    return positions[values[positions] > above]
