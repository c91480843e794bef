"""The exact block solver."""

import logging
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from lokl._arrays import Array
from lokl._compiled import CompiledModule
from lokl._notices import tell
from lokl.gram import GatedGram, InnerProducts
from lokl.solvers.base import TolerantSolver
from lokl.solvers.interior import interior
from lokl.solvers.polish import polish
from lokl.solvers.problem import Dual, Problem

_smo = CompiledModule("lokl.solvers._smo")

logger = logging.getLogger("lokl")

# Problems of up to so many samples are one working set, their whole matrix in memory.
_SMALL = 2048
# Problems of up to so many samples are solved in float64.
_PRECISE = 1024
# Smaller working sets start from the largest violation, not from a sample of the data.
_FEW = 64
# Rounds of polishing a small problem, and the violation at which it counts as exact.
_SHARPEN, _EXACT = 8, 1e-12
# Kernel values above which data counts as not scaled, and how far above their median.
_LARGE, _UNEVEN = 1e4, 1e3
# Rounds without progress that end a solve.
_PATIENCE = 200
# Steps after which a small problem counts as a hard one, for which there are interior point steps.
_EASY = 10_000
# Times so many steps, a problem that they did not solve either is given up.
_AFTERWARDS = 3
# Work that a problem may need by default: entries looked at, and what a step costs beside them.
_WORK, _OVERHEAD = 6e9, 200
# Steps for each sample that a large problem may need at least.
_STEPS_A_SAMPLE = 1000
# Steps of one compiled call: short enough for Ctrl-C to be answered.
_STEPS_A_CALL = 100_000
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
        if not np.isfinite(self.tol) or self.tol <= 0:
            raise ValueError(f"tol must be a positive finite number, got {self.tol!r}")
        if self.working_set < 2:
            raise ValueError(f"working_set must be at least 2, got {self.working_set!r}")
        state = _State.begin(gram, problem, start)
        steps_a_call = _STEPS_A_CALL if np.isinf(ceiling) else _STEPS_TO_CEILING
        work = _WorkingSet(gram, problem, self._size(gram))
        limit: float = self.max_iter
        if limit < 0:
            limit = _enough_steps(gram.n_samples, work.size)
        jump_at = work.jump_at
        while True:
            up, down = problem.violations(state.coef, state.gradient)
            violation = up.max(initial=-np.inf) - down.min(initial=np.inf)
            if violation <= self.tol or state.steps >= limit:
                break
            if state.steps >= jump_at:
                if not state.is_indefinite:
                    work.jump(state)
                    # What interior point steps did not reach, pair moves will not reach soon.
                    limit = _AFTERWARDS * jump_at if self.max_iter < 0 else limit
                jump_at = np.inf
                continue
            work.select(up, down, state.coef)
            # Working sets are solved loosely early on, to the tolerance itself near the end.
            inner_tol = self.tol if work.is_whole else max(0.5 * self.tol, 0.1 * violation)
            moved = work.improve(
                state, inner_tol, min(min(limit, jump_at) - state.steps, steps_a_call)
            )
            logger.debug("round %d: violation %.3g", state.rounds, violation)
            if problem.objective(state.coef, state.gradient) > ceiling:
                return problem.dual(state.coef, state.gradient, state.steps, False)
            if state.stalls(problem, violation) or not (moved or work.is_sample):
                break
        if work.is_whole and violation <= self.tol and state.steps:
            violation = work.sharpen(state, violation, limit)
        self._warn(gram, state, violation, limited=state.steps >= limit)
        if violation <= self.tol:
            return problem.dual(state.coef, state.gradient, state.steps, True)
        # The optimality conditions do not give the intercept yet; the least loss still does.
        b = problem.least_loss_intercept(state.coef, state.gradient)
        return problem.dual(state.coef, state.gradient, state.steps, False, b)

    def _size(self, gram: GatedGram) -> int:
        """Samples of a working set: all of them where the problem is small."""
        if gram.n_samples <= _SMALL and (gram.fits or not gram.needs_rows):
            return gram.n_samples
        return min(self.working_set, max(gram.capacity, 2)) if gram.needs_rows else self.working_set

    def _warn(self, gram: GatedGram, state: "_State", violation: float, limited: bool) -> None:
        if state.is_indefinite:
            tell(
                "indefinite",
                "the kernel is not positive semidefinite; the solution is a stationary point, "
                "not a certified optimum",
            )
        if violation > self.tol:
            remedy = "scale the data or the kernels, or lower C"
            median = float(np.median(np.abs(gram.diag())))
            if state.scale > _LARGE or state.scale > _UNEVEN * median > 0:
                remedy = (
                    f"kernel values reach {state.scale:.3g}, so the data is likely not scaled: "
                    "standardise the features, or use kernels such as RBF() or .normalized()"
                )
            tell(
                "unconverged",
                f"the solver stopped after {state.steps} steps with a violation of "
                f"{violation:.3g} > tol = {self.tol:.3g}; "
                + ("raise max_iter, or " if limited and self.max_iter >= 0 else "")
                + remedy,
                ConvergenceWarning,
            )


@dataclass
class _State:
    """Coefficients and the gradient that belongs to them."""

    coef: Array
    gradient: Array
    scale: float
    single: bool
    steps: int = 0
    rounds: int = 0
    curvature: float = np.inf
    best: float = -np.inf
    least: float = np.inf
    best_round: int = 0

    @classmethod
    def begin(cls, gram: GatedGram, problem: Problem, start: Array | None) -> "_State":
        scale = float(np.abs(gram.diag()).max(initial=0.0))
        single = gram.dtype == np.float32
        if start is None:
            return cls(np.zeros(gram.n_samples), problem.target.copy(), scale, single)
        coef = problem.feasible(np.asarray(start, dtype=np.float64))
        gradient = problem.target - problem.ridge * coef
        support = np.flatnonzero(coef)
        if len(support) and gram.n_samples <= _SMALL and gram.fits:
            # A small problem is solved on the whole matrix anyway, so it serves the start as well.
            gram.subtract_whole(support, coef[support], gradient)
        elif gram.needs_rows and len(support) <= gram.capacity // 2:
            # The solver will ask for these rows, and there is room to keep them.
            gram.subtract(support, coef[support], gradient)
        else:
            gradient -= gram.dot(coef)
        return cls(coef, gradient, scale, single)

    @property
    def is_indefinite(self) -> bool:
        """Whether a pair was met that no positive semidefinite kernel has."""
        return self.curvature < -(1e-3 if self.single else 1e-6) * self.scale

    def stalls(self, problem: Problem, violation: float) -> bool:
        """Whether many rounds have passed without progress: rounding is all that moves."""
        objective = problem.objective(self.coef, self.gradient)
        if objective > self.best + 1e-14 * abs(objective):
            self.best, self.best_round = objective, self.rounds
        # Near the optimum the objective no longer changes in its last digit, while the violation
        # still falls: that is progress, too.
        if violation < 0.9 * self.least:
            self.least, self.best_round = violation, self.rounds
        # With rows in float64 even tiny steps are exact, and many of them may lead to the optimum.
        patience = _PATIENCE if self.single else 100 * _PATIENCE
        return self.rounds - self.best_round >= patience


class _WorkingSet:
    """Samples of one round and the small matrix of their kernel values."""

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
        """Whether one working set holds all samples."""
        return self.size >= self.gram.n_samples

    @property
    def jump_at(self) -> float:
        """Number of pair moves that cost about as much as interior point steps would."""
        if not self.is_whole or self.matrix.dtype != np.float64:
            return np.inf
        return _EASY + self.size**2 // 3

    def jump(self, state: _State) -> None:
        """Go to the optimum by interior point steps, or at least nearer to it."""
        problem = self.problem
        coef = interior(self.matrix, problem)
        if coef is None:
            return
        gradient = problem.target - self.matrix @ coef
        best = polish(self.matrix, problem, coef, gradient, _EXACT * max(state.scale, 1.0))
        if best is not None:
            coef, gradient = best.coef, best.gradient
        else:
            coef = problem.feasible(coef)
            gradient = problem.target - self.matrix @ coef
        if problem.objective(coef, gradient) <= problem.objective(state.coef, state.gradient):
            return
        state.coef, state.gradient = coef, gradient
        up, down = problem.violations(coef, gradient)
        self.sharpen(state, up.max() - down.min(), np.inf)

    def sharpen(self, state: _State, violation: float, limit: float) -> float:
        """Turn an approximate optimum of a small problem into the exact one."""
        if self.matrix.dtype != np.float64:
            return violation
        exact = _EXACT * max(state.scale, 1.0)
        least, safe = violation, (state.coef.copy(), state.gradient.copy())
        for _ in range(_SHARPEN):
            best = polish(self.matrix, self.problem, state.coef, state.gradient, exact)
            if best is None:
                break
            if best.violation <= violation:
                state.coef, state.gradient = best.coef, best.gradient
                violation = best.violation
            if violation < least:
                least, safe = violation, (state.coef.copy(), state.gradient.copy())
            if violation <= exact or state.steps >= limit:
                break
            # The free samples were not all known yet: a few more moves find them.
            if not self.improve(state, 0.1 * violation, min(limit - state.steps, 1000)):
                break
            up, down = self.problem.violations(state.coef, state.gradient)
            violation = up.max() - down.min()
        # A pair move raises the objective but may raise the violation as well: the best is kept.
        state.coef, state.gradient = safe
        return least

    def select(self, up: Array, down: Array, coef: Array) -> None:
        """Keep the better half of the last round, fill up with the worst violators.

        `up` and `down` are used up: chosen samples are struck out, so that none comes twice.
        """
        if self.is_whole:
            return
        self.is_sample = len(self.index) == 0 and self.size >= _FEW and not coef.any()
        if self.is_sample:
            # At first all samples gain alike: an even sample of the data is the best guess.
            risers = _spread(np.flatnonzero(np.isfinite(up)), self.size // 2)
            rest = np.isfinite(down)
            rest[risers] = False
            fallers = _spread(np.flatnonzero(rest), self.size - len(risers))
            self._replace(self.index, np.concatenate([risers, fallers]))
            return
        # The pair with the largest gain must fit beside what is kept.
        most = self.size // 2 if self.size >= 4 else 0
        kept = np.argsort(-self._priority, kind="stable")[:most]
        stay = self.index[kept]
        # In a start from another solution, the free samples are those that will move.
        free = np.empty(0, dtype=np.intp)
        if len(self.index) == 0:
            lower, upper = self.problem.lower, self.problem.upper
            free = _spread(np.flatnonzero((coef > lower) & (coef < upper) & (coef != 0)), most)
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
        """Put new samples in the places of those not kept, and compute only their entries."""
        count = len(kept) + len(new)
        matrix, index = self.matrix, np.empty(count, dtype=np.intp)
        places = np.zeros(count, dtype=bool)
        stay = kept[kept < count]
        places[stay] = True
        index[stay] = self.index[stay]
        # The set shrank: samples beyond its new end move into free places.
        free = np.flatnonzero(~places)
        movers = kept[kept >= count]
        for place, mover in zip(free[: len(movers)], movers, strict=True):
            matrix[place, :] = matrix[mover, :]
            matrix[:, place] = matrix[:, mover]
            index[place] = self.index[mover]
        free = free[len(movers) :]
        index[free] = new
        self.index = index
        _smo.place_symmetric(matrix, free, self.gram.cross(new, index))
        matrix[free, free] += self.problem.ridge[new].astype(matrix.dtype)

    def improve(self, state: _State, tol: float, max_steps: float) -> bool:
        """Solve the working set and carry its moves over to the whole problem."""
        index, problem = self.index, self.problem
        count = len(index)
        coef, gradient = state.coef[index], state.gradient[index]
        steps, _, curvature = _smo.smo(
            self.matrix[:count, :count] if count < self.size else self.matrix,
            coef,
            gradient,
            problem.lower[index],
            problem.upper[index],
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
        if count == self.gram.n_samples:
            state.gradient[index] = gradient
        else:
            self.gram.subtract(index[moved], change[moved], state.gradient)
            state.gradient[index] -= problem.ridge[index] * change
        free = (coef > problem.lower[index]) & (coef < problem.upper[index]) & (coef != 0)
        self._priority = 2.0 * free + (change != 0)
        return steps > 0


def _enough_steps(n_samples: int, working_set: int) -> int:
    """Pair moves that are far more than a problem of this size needs on scaled data."""
    return int(max(_WORK / (working_set + _OVERHEAD), _STEPS_A_SAMPLE * n_samples))


def _spread(positions: Array, count: int) -> Array:
    """Return at most `count` of the positions, evenly spaced."""
    if len(positions) <= count:
        return positions
    return positions[np.linspace(0, len(positions) - 1, count).astype(np.intp)]


def _largest(values: Array, count: int, above: float) -> Array:
    """Positions of the `count` largest values, of those greater than `above`."""
    count = min(count, len(values))
    if count <= 0:
        return np.empty(0, dtype=np.intp)
    positions = np.sort(np.argpartition(-values, count - 1)[:count])
    return positions[values[positions] > above]
