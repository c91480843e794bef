"""The working set of the exact solver: samples whose coefficients move in one round."""

from dataclasses import dataclass

import numpy as np

from lokl._arrays import Array, read_only
from lokl._compiled import CompiledModule
from lokl.gram import GatedGram
from lokl.solvers.base import is_indefinite
from lokl.solvers.free_set import climb, interior, polish
from lokl.solvers.problem import Problem

_smo = CompiledModule("lokl.solvers._smo")

# Problems of up to so many samples are one working set, their whole matrix in memory.
SMALL = 2048
# Smaller working sets start from the largest violation, not from a sample of the data.
_FEW = 64
# Rounds of polishing a small problem, and the violation at which it counts as exact.
_SHARPEN, _EXACT = 8, 1e-12
# Rounds without progress that end a solve.
_PATIENCE = 200
# Gradients up to so many times the tolerance may be moved in single precision, under kernels whose
# values are not larger than this.
_DIGITS, _LARGE = 1e5, 16.0
# Steps after which a small problem counts as a hard one, for which there are interior point steps.
_EASY = 10_000


@dataclass
class State:
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
    def begin(cls, gram: GatedGram, problem: Problem, start: Array | None) -> "State":
        scale = float(np.abs(gram.diag()).max(initial=0.0))
        single = gram.dtype == np.float32
        if start is None:
            return cls(np.zeros(gram.n_samples), problem.target.copy(), scale, single)
        coef = problem.feasible(np.asarray(start, dtype=np.float64))
        gradient = problem.target - problem.ridge * coef
        support = np.flatnonzero(coef)
        if len(support) and gram.n_samples <= SMALL and gram.fits:
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
        return is_indefinite(self.curvature, self.scale, self.single)

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


class WorkingSet:
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
    def is_precise(self) -> bool:
        """Whether pair moves are computed in double precision."""
        return bool(self.matrix.dtype == np.float64)

    @property
    def jump_at(self) -> float:
        """Number of pair moves that cost about as much as interior point steps would."""
        if not self.is_whole or not self.is_precise:
            return np.inf
        return _EASY + self.size**2 // 3

    def climb(self, state: State) -> None:
        """Move all free coefficients at once, where that raises the objective."""
        problem = self.problem
        found = climb(self.matrix, problem, state.coef, state.gradient)
        if found is not None and problem.objective(*found) > problem.objective(
            state.coef, state.gradient
        ):
            state.coef, state.gradient = found

    def jump(self, state: State) -> None:
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

    def sharpen(self, state: State, violation: float, limit: float) -> float:
        """Turn an approximate optimum of a small problem into the exact one."""
        if not self.is_precise:
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

    def _local(self, state: State, index: Array, tol: float) -> Array:
        """Gradient of the working set in the precision in which its pair moves are computed."""
        gradient = state.gradient[index]
        if self.is_precise or state.scale > _LARGE:
            return gradient
        # Any number may be added to all: half the digits are then enough for the differences.
        centred = gradient - 0.5 * (gradient.min() + gradient.max())
        if np.abs(centred).max() > _DIGITS * tol:
            return gradient
        return centred.astype(np.float32)

    def improve(self, state: State, tol: float, max_steps: float) -> bool:
        """Solve the working set and carry its moves over to the whole problem."""
        index, problem = self.index, self.problem
        count = len(index)
        coef, gradient = state.coef[index], self._local(state, index, tol)
        steps, _, curvature = _smo.smo(
            read_only(self.matrix),
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
        if count < self.gram.n_samples:
            self.gram.subtract(index[moved], change[moved], state.gradient)
            state.gradient[index] -= problem.ridge[index] * change
        elif gradient.dtype == np.float64:
            state.gradient[index] = gradient
        else:
            self.gram.subtract_whole(index[moved], change[moved], state.gradient)
            state.gradient[index] -= problem.ridge[index] * change
        free = (coef > problem.lower[index]) & (coef < problem.upper[index]) & (coef != 0)
        self._priority = 2.0 * free + (change != 0)
        return steps > 0


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
