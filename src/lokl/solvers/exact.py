"""Exact block solver: block SMO on rows of the Gram matrix, or on a matrix stored as a whole.

Each round takes a working set, half kept and half the worst violators, solves it by pair moves on
its own small matrix, and updates the gradient of all samples with the rows of the samples that
moved. The rounds are the same for a matrix that is stored as a whole, whose blocks are copied, and
for a Gram matrix of which only some rows are stored, whose blocks are computed. Compiled loops
release the GIL, so threads solve several problems on one stored matrix at the same time.

On a stored matrix, and on the features of a linear kernel, all free coefficients also move at once
(:mod:`lokl.solvers.free_set`). The optimum of a small problem is polished to machine precision, and
interior point steps take over if pair moves converge slowly.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lokl._arrays import Array, read_only
from lokl._compiled import CompiledModule
from lokl._parameters import check_count, check_positive
from lokl._threads import n_threads, run_chunked
from lokl.gram import GatedGram
from lokl.gram.memory import MEGABYTE
from lokl.solvers.base import (
    default_step_limit,
    is_indefinite,
    warn_indefinite,
    warn_unconverged,
)
from lokl.solvers.free_set import (
    MOST_FREE,
    FeatureMatrix,
    StoredMatrix,
    SystemMatrix,
    interior,
    newton_steps,
    polish,
)
from lokl.solvers.problem import Dual, Problem
from lokl.solvers.squared import SquaredSolver

_smo = CompiledModule("lokl.solvers._smo")
_mixing = CompiledModule("lokl.gram._mixing")

logger = logging.getLogger("lokl")

# Most samples of a problem that is solved on its whole matrix.
SMALL = 2048
# Kernel values above which data counts as unscaled: absolute, and relative to their median.
_UNSCALED, _UNEVEN = 1e4, 1e3
# Most samples of a problem that is one working set, and the size of working sets on larger stored
# matrices: the block of a set stays in the caches of a core.
_WHOLE, STORED_SET = 1024, 768
# Samples of a working set relative to the support of a warm start, and the fewest.
_SET_PER_SUPPORT, _SMALLEST_SET = 1.25, 192
# Free coefficients relative to a working set on rows, above which it grows; its growth, relative to
# them; and its largest size, relative to its first.
_CROWDED, _ROOM, _LARGEST_GROWTH = 0.9, 1.2, 4
# Working sets of joint rounds relative to the others, the smallest that pays, and the largest work
# per entry of the matrix (`GatedGram.entry_work`) for each problem.
_JOINT_SETS, _SMALLEST_JOINT, _WORK_PER_PROBLEM = 3, 1024, 3.0
# Fraction of the violation that a working set leaves, if it can contain all free coefficients and
# if it cannot.
_LEFT = 0.1, 0.3
# Smallest working set that starts from a sample of the data, not from the largest violation.
_SAMPLED = 64
# Pair moves of one compiled call: few enough to react to Ctrl-C, and fewer if the caller waits for
# the dual value to exceed a ceiling. Pair moves between two moves of all free coefficients, in
# single and in double precision.
_STEPS_PER_CALL, _STEPS_TO_CEILING, _STEPS_TO_CLIMB = 100_000, 1000, (5000, 2000)
# Pair moves after which a problem counts as hard and interior point steps begin, and the multiple
# of these moves after which a small problem that they did not solve is given up.
_EASY, _AFTERWARDS = 10_000, 3
# Interior point steps on features: most columns, operations that take as long as a pair move, and
# the overhead of a sample in operations.
_MOST_COLUMNS, _PER_MOVE, _PER_SAMPLE = 2000, 600, 2000
# Most free coefficients whose matrix is copied to move them at once.
_MOST_COPIED = 2500
# Default limit on rounds, each of which costs as much as thousands of steps in a small set; smaller
# working sets than the last number have cheaper rounds, and need more of them.
_ROUNDS, _ROUNDS_PER_SAMPLE, _USUAL_SET = 5000, 0.1, 16
# Rounds of polishing, and the violation at which a solution counts as exact.
_POLISH_ROUNDS, _EXACT = 8, 1e-12
# Rounds without progress that end a solve.
_PATIENCE = 200
# Largest gradient, in units of the tolerance, and largest kernel value for which pair moves are
# computed in single precision.
_DIGITS, _LARGE = 1e5, 16.0


@dataclass(eq=False, repr=False)
class Exact(SquaredSolver):
    """Block decomposition: one matrix product and many pair moves per round.

    Each round takes a working set, half kept and half the worst violators, solves it by pair moves
    on its own small matrix, and updates the gradient of all samples with the rows of the samples
    that moved. With many classes and a kernel that is quickly computed, all classes share rounds
    with larger working sets, and rows are not stored. Rows are float32 (float64 for small problems
    and tight tolerances). Gradient and objective are always float64. The squared loss is solved as
    by :class:`Squared`.

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
        Samples of one round; up to four times as many if all free coefficients then fit.

    See Also
    --------
    lokl.solvers.LibSVM : LibSVM on the stored matrix.
    lokl.solvers.Primal : Low-rank features instead of kernels.
    lokl.solvers.Squared : The squared loss.
    lokl.solvers.solve_svc : Solves a two-class SVM.

    Examples
    --------
    >>> from lokl.kernels import RBF
    >>> from lokl.solvers import Exact, solve_svc
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0]], [1, -1, -1, 1]
    >>> dual = solve_svc(RBF(1.0), X, y, C=10.0, solver=Exact())
    >>> round(dual.objective, 2), dual.converged
    (3.12, True)
    """

    tol: float = 1e-3
    cache_size: float = 512
    dtype: Any = "auto"
    max_iter: int = -1
    working_set: int = 1024

    def solve(
        self, gram: GatedGram, problem: Problem, start: Array | None = None, ceiling: float = np.inf
    ) -> Dual:
        check_positive("tol", self.tol)
        check_count("working_set", self.working_set, 2)
        if problem.is_squared:
            return self.solve_together(gram, [problem], [start])[0]
        is_small = self._is_small(gram)
        size: int | None = self.working_set
        if is_small:
            size = STORED_SET if gram.n_samples > _WHOLE else None
        elif gram.needs_rows:
            size = min(self.working_set, max(gram.capacity, 2))
        blocks = BlockSolver(gram.whole if is_small else gram, problem, size, self.tol)
        if start is not None:
            blocks.start_from(start)
        violation = blocks.run(self.max_iter, ceiling)
        if ceiling < np.inf and problem.objective(*blocks.state) > ceiling:
            b = problem.intercept(*blocks.state)
            return problem.dual(*blocks.state, blocks.steps, False, b)
        blocks.snap()
        if is_small and blocks.is_precise and violation <= self.tol and blocks.steps:
            violation = blocks.polish(np.inf if self.max_iter < 0 else self.max_iter)
        self._warn(gram, blocks, violation)
        return problem.dual(*blocks.state, blocks.steps, violation <= self.tol)

    def solve_together(
        self,
        gram: GatedGram,
        problems: Sequence[Problem],
        starts: Sequence[Array | None] | None = None,
    ) -> list[Dual]:
        size = self._joint_size(gram, problems)
        if size < _SMALLEST_JOINT:
            return super().solve_together(gram, problems, starts)
        from lokl.solvers.joint import JointRounds

        rounds = JointRounds(gram, problems, check_positive("tol", self.tol), size)
        return [
            self.solve(gram, problems[k], rounds.coef[k]) if dual is None else dual
            for k, dual in enumerate(rounds.run(starts))
        ]

    def _joint_size(self, gram: GatedGram, problems: Sequence[Problem]) -> int:
        """Return the size of working sets in joint rounds; 0 if single problems are faster.

        Joint rounds compute entries again instead of storing rows. That pays if entries are cheap
        compared with the number of problems that need them.
        """
        is_kept = self._is_small(gram) or gram.inner.keep or not gram.needs_rows
        is_joint = not is_kept and not gram.is_low_rank and self.max_iter < 0
        if not is_joint or gram.entry_work > _WORK_PER_PROBLEM * len(problems):
            return 0
        if any(problem.is_squared for problem in problems):
            return 0
        # Every thread has a matrix of its own.
        room = self.cache_size * MEGABYTE / (4 * n_threads() * gram.dtype.itemsize)
        return min(_JOINT_SETS * self.working_set, int(np.sqrt(room)))

    def solve_subsets(
        self, gram: GatedGram, problems: Sequence[Problem], starts: Sequence[Array] | None = None
    ) -> list[Dual]:
        if all(problem.is_squared for problem in problems):
            return self.solve_together(gram, problems, starts)
        # Problems in double precision are polished, and so small that they are fast anyway; of a
        # large matrix, most rows are not used by any subset.
        if not (self._is_small(gram) and gram.dtype == np.float32 and self.max_iter < 0):
            coefs: Sequence[Array | None] = [None] * len(problems) if starts is None else starts
            return [self.solve(gram, *case) for case in zip(problems, coefs, strict=True)]
        duals = solve_on_stored(gram.whole, problems, starts, self.tol)
        # Hard and indefinite problems are solved, with their warnings, by the driver on rows.
        return [
            self.solve(gram, problem) if dual is None else dual
            for problem, dual in zip(problems, duals, strict=True)
        ]

    def _is_small(self, gram: GatedGram) -> bool:
        return gram.n_samples <= SMALL and (gram.fits or not gram.needs_rows)

    def _warn(self, gram: GatedGram, state: "BlockSolver", violation: float) -> None:
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
        if 0 <= self.max_iter <= state.steps:
            remedy = f"raise max_iter, or {remedy}"
        left = f"violation of {violation:.3g} > tol = {self.tol:.3g}"
        warn_unconverged(f"{state.steps} steps", left, remedy)


class BlockSolver:
    """Solves one problem in working sets, from a warm start or from zero.

    Parameters
    ----------
    matrix : array of shape (n_samples, n_samples) or GatedGram
        A stored matrix, or a Gram matrix whose rows are computed when needed.
    problem : Problem
    size : int or None
        Most samples of a working set, on rows up to four times as many if all free coefficients
        then fit; None for all samples of a stored matrix.
    tol : float
        Violation of the optimality conditions that is left.

    Attributes
    ----------
    state : tuple of arrays of shape (n_samples,)
        Coefficients ``u`` and gradient ``t - (K + R) u``.
    steps : int
        Pair moves so far.
    scale : float
        Largest kernel value.
    """

    def __init__(self, matrix: Array | GatedGram, problem: Problem, size: int | None, tol: float):
        self.gram: GatedGram | None = None
        self.matrix: Any = None
        if isinstance(matrix, GatedGram):
            self.gram, diag = matrix, matrix.diag()
        else:
            self.matrix, diag = read_only(matrix), matrix.diagonal()
        self.problem, self.tol = problem, tol
        # For moves of all free coefficients.
        self._system: SystemMatrix | None = None
        if self.gram is None:
            self._system = StoredMatrix(self.matrix)
        elif not (self.gram.needs_rows or self.gram.is_low_rank):
            self._system = FeatureMatrix(self.gram.linear_features)
        n = len(problem.target)
        self.is_precise = matrix.dtype == np.float64
        self.scale = float(np.abs(diag).max(initial=0.0))
        self.state = np.zeros(n), problem.target.copy()
        self._start: Array | None = None
        self.steps = self.rounds = 0
        self._box = problem.box
        # Buffers of compiled loops: boxing a new array takes as long as a small loop.
        self._rank, self._chosen = np.zeros(n, dtype=np.int8), np.zeros(n, dtype=bool)
        self._curvature = self._least = np.inf
        self._best, self._best_round = -np.inf, 0
        self._is_whole = size is None
        self.size = n if size is None else min(size, n)
        self._first_size, self._is_crowded = self.size, False
        self._index = np.arange(n if self._is_whole else 0)
        self._small: Any = self.matrix
        if not self._is_whole:
            self._small = np.empty((self.size, self.size), dtype=matrix.dtype)
        elif problem.ridge.any():
            self._small = self.matrix + np.diag(problem.ridge).astype(matrix.dtype)

    def start_from(self, coef: Array, gradient: Array | None = None) -> None:
        """Start from coefficients of a similar problem, of shape (n_samples,)."""
        if gradient is None:
            problem, gram = self.problem, self.gram
            coef = problem.feasible(np.asarray(coef, dtype=np.float64))
            gradient = problem.target - problem.ridge * coef
            support = np.flatnonzero(coef)
            if gram is None or (gram.needs_rows and len(support) <= gram.capacity // 2):
                # The rounds will need these rows, and there is room to keep them.
                self._subtract(support, coef[support], gradient)
            else:
                gradient -= gram.dot(coef)
        self.state, self._start = (coef, gradient), coef.copy()
        self._rank[self.problem.is_free(coef)] = 3

    @property
    def is_indefinite(self) -> bool:
        """Whether a pair had a curvature that is impossible for a positive semidefinite kernel."""
        return is_indefinite(self._curvature, self.scale, not self.is_precise)

    def run(self, max_steps: int = -1, ceiling: float = np.inf) -> float:
        """Improve until the tolerance or a limit is reached; return the violation.

        Parameters
        ----------
        max_steps : int, default=-1
            Limit on the pair moves; -1 for far more than problems of this size need.
        ceiling : float, optional
            Stop as soon as the objective exceeds this value.
        """
        n = len(self._rank)
        limit, rounds = float(max_steps), np.inf
        if limit < 0:
            limit = default_step_limit(n, self.size)
            rounds = max(_ROUNDS, _ROUNDS_PER_SAMPLE * n) * max(1.0, _USUAL_SET / max(self.size, 1))
        steps_per_call = _STEPS_TO_CEILING if np.isfinite(ceiling) else _STEPS_PER_CALL
        steps_to_climb = _STEPS_TO_CLIMB[self.is_precise] if self._system else np.inf
        climb_at, jump_at = steps_to_climb, self._steps_to_jump()
        while True:
            best, low = _smo.extremes(self.state, self._box)
            violation = best - low
            if violation <= self.tol or self.steps >= limit or self.rounds >= rounds:
                break
            if self.steps >= climb_at:
                climb_at = self.steps + steps_to_climb
                self._climb()
                continue
            if self.steps >= jump_at:
                if not self.is_indefinite:
                    self._jump()
                    # Pair moves rarely finish what interior point steps did not.
                    if max_steps < 0 and self.gram is None:
                        limit = _AFTERWARDS * jump_at
                jump_at = np.inf
                continue
            is_sample = self._select(best, low, 0.5 * self.tol)
            steps = min(min(limit, jump_at, climb_at) - self.steps, steps_per_call)
            moved = self._improve(self._inner_tolerance(violation), steps, 0.5 * (best + low))
            logger.debug("round %d: violation %.3g", self.rounds, violation)
            objective = self.problem.objective(*self.state)
            if objective > ceiling or not (moved or is_sample):
                break
            if self._stalls(objective, violation):
                break
        return float(violation)

    def _steps_to_jump(self) -> float:
        """Return the pair moves that cost about as much as interior point steps."""
        n = len(self._rank)
        if self.gram is None:
            return _EASY + n**2 // 3 if self.is_precise else np.inf
        if isinstance(self._system, FeatureMatrix):
            width = self._system.features.shape[1]
            if width <= _MOST_COLUMNS:
                return _EASY + n * (width**2 + _PER_SAMPLE) // _PER_MOVE
        return np.inf

    def _inner_tolerance(self, violation: float) -> float:
        """Return the tolerance of a working set: loose at first, the solver's near the end."""
        if not self._is_whole:
            # What a set gains is partly lost again if many free coefficients are outside.
            return max(0.5 * self.tol, _LEFT[self._is_crowded] * violation)
        # In single precision the violation that is reached is a little larger than reported.
        return self.tol if self.is_precise else 0.9 * self.tol

    def _stalls(self, objective: float, violation: float) -> bool:
        """Return whether many rounds have passed in which only rounding errors changed."""
        if objective > self._best + 1e-14 * abs(objective):
            self._best, self._best_round = objective, self.rounds
        # Near the optimum the last digit of the objective no longer changes, but a falling
        # violation is still progress.
        if violation < 0.9 * self._least:
            self._least, self._best_round = violation, self.rounds
        # With rows in float64 even tiny steps are exact, and many of them may reach the optimum.
        patience = 100 * _PATIENCE if self.is_precise else _PATIENCE
        return self.rounds - self._best_round >= patience

    def _select(self, best: float, low: float, least: float) -> bool:
        """Choose and load the next working set; return whether it is a mere sample of the data.

        Samples that violate optimality by less than `least` are left out.
        """
        if self._is_whole:
            return False
        self._resize()
        coef, chosen = self.state[0], self._chosen
        is_sample = self.gram is not None and len(self._index) == 0 and not coef.any()
        is_sample = is_sample and self.size >= _SAMPLED
        if is_sample:
            # At first all samples have the same gain; an even sample of the data is the best guess.
            up, down = coef < self.problem.upper, coef > self.problem.lower
            chosen[:] = False
            chosen[_evenly_spaced(np.flatnonzero(up), self.size // 2)] = True
            rest = self.size - int(chosen.sum())
            chosen[_evenly_spaced(np.flatnonzero(down & ~chosen), rest)] = True
        else:
            span = best, low, least
            _smo.select(self.state, self._box, self._rank, span, self.size, chosen)
        if self.matrix is not None:
            self._index = np.flatnonzero(chosen)
            _smo.copy_block(self.matrix, self._index, self._box, self._small)
        else:
            self._replace(chosen)
        return is_sample

    def _resize(self) -> None:
        """Let the working set contain all free coefficients, if these are not too many.

        Pair moves balance the coefficients of a set; what one set balances, the next one disturbs.
        """
        if self.gram is None or not self.gram.needs_rows:
            return
        n_free = int(np.count_nonzero(self.problem.is_free(self.state[0])))
        if n_free <= _CROWDED * self.size:
            return
        size = min(int(_ROOM * n_free), len(self._rank))
        self._is_crowded = size > min(_LARGEST_GROWTH * self._first_size, self.gram.capacity)
        if self._is_crowded:
            self.size = self._first_size
            return
        self.size = size
        if size > len(self._small):
            small = self._small
            self._small = np.empty((size, size), dtype=small.dtype)
            self._small[: len(small), : len(small)] = small

    def _replace(self, chosen: Array) -> None:
        """Put new samples in the positions of those not kept, and compute only their entries."""
        assert self.gram is not None
        kept = np.flatnonzero(chosen[self._index])
        chosen[self._index] = False
        new = np.flatnonzero(chosen)
        count = len(kept) + len(new)
        matrix, index = self._small, np.empty(count, dtype=np.intp)
        taken = np.zeros(count, dtype=bool)
        stay = kept[kept < count]
        taken[stay] = True
        index[stay] = self._index[stay]
        # If the set shrank, samples beyond its new end move into free positions.
        free = np.flatnonzero(~taken)
        movers = kept[kept >= count]
        for position, mover in zip(free[: len(movers)], movers, strict=True):
            matrix[position, :] = matrix[mover, :]
            matrix[:, position] = matrix[:, mover]
            index[position] = self._index[mover]
        free = free[len(movers) :]
        index[free] = new
        self._index = index
        _smo.place_symmetric(matrix, free, self.gram.cross(new, index))
        matrix[free, free] += self.problem.ridge[new].astype(matrix.dtype)

    def _improve(self, tol: float, max_steps: float, middle: float = 0.0) -> bool:
        """Solve the working set, and update the whole problem; return whether anything moved.

        `middle` is subtracted from the gradient, so that single precision suffices for the rest.
        """
        (coef, gradient), index = self.state, self._index
        lower, upper, epsilon, ridge = self._box
        values, least, most = coef[index], lower[index], upper[index]
        set_gradient = gradient[index]
        if not self.is_precise and self.scale <= _LARGE:
            centred = set_gradient - middle
            if np.abs(centred).max() <= _DIGITS * tol:
                set_gradient = centred.astype(np.float32)
        small = read_only(self._small)
        steps, _, curvature = _smo.smo(
            small, values, set_gradient, least, most, epsilon, tol, int(max_steps)
        )
        self.steps += steps
        self.rounds += 1
        self._curvature = min(self._curvature, curvature)
        change = values - coef[index]
        coef[index] = values
        has_moved = change != 0.0
        self._rank[:] = 0
        is_free = (least < values) & (values < most) & (values != 0.0)
        self._rank[index] = 1 + 2 * is_free + has_moved
        if self._is_whole and set_gradient.dtype == np.float64:
            gradient[:] = set_gradient
        else:
            gradient[index] -= ridge[index] * change
            self._subtract(index[has_moved], change[has_moved], gradient)
        return bool(steps > 0)

    def _subtract(self, index: Array, change: Array, gradient: Array) -> None:
        """Compute ``gradient -= K[:, index] @ change``."""
        if self.gram is not None:
            self.gram.subtract(index, change, gradient)
        else:
            _mixing.subtract_rows(0, len(gradient), self.matrix, index, change, gradient)

    def _climb(self) -> None:
        """Move all free coefficients towards their best values.

        Pair moves need many steps if few coefficients are free and their matrix is nearly singular,
        as with a linear kernel and a large cost. Newton steps need few. Hundreds of free
        coefficients are too many for a factor; conjugate gradients move them, which saves about a
        fifth of the time of a cost path.
        """
        problem, (coef, gradient) = self.problem, self.state
        free = np.flatnonzero(problem.is_free(coef))
        if len(free) > MOST_FREE:
            if self.gram is None and not self.is_precise and len(free) <= _MOST_COPIED:
                system = np.empty((len(free), len(free)), dtype=np.float32)
                _smo.copy_block(self.matrix, free, self._box, system)
                values, bounds = coef[free], problem.one_sided(coef)
                slopes = gradient[free] - problem.epsilon * np.sign(values)
                _smo.climb(system, values, slopes, bounds[0][free], bounds[1][free], self.tol)
                change, coef[free] = values - coef[free], values
                gradient[free] -= problem.ridge[free] * change
                self._subtract(free, change, gradient)
            return
        assert self._system is not None
        point = self.state
        for coef, gradient, is_whole in newton_steps(self._system, problem, *point):
            point = coef, gradient
            if is_whole:
                break
        self._take_if_better(*point)

    def _jump(self) -> None:
        """Move to the optimum, or closer to it, by interior point steps."""
        problem, system = self.problem, self._system
        assert system is not None
        coef = interior(system, problem)
        if coef is None:
            return
        gradient = problem.target - system.dot(coef) - problem.ridge * coef
        polished = polish(system, problem, coef, gradient, self._exact)
        if polished is not None:
            coef, gradient, _ = polished
        else:
            coef = problem.balanced(coef)
            gradient = problem.target - system.dot(coef) - problem.ridge * coef
        if self._take_if_better(coef, gradient) and self.gram is None:
            self.polish(np.inf)

    def _take_if_better(self, coef: Array, gradient: Array) -> bool:
        objective = self.problem.objective
        is_better = objective(coef, gradient) > objective(*self.state)
        if is_better:
            self.state = coef, gradient
        return is_better

    @property
    def _exact(self) -> float:
        """Violation that counts as zero."""
        return _EXACT * max(self.scale, 1.0)

    def polish(self, limit: float) -> float:
        """Move from near the optimum to the optimum; return the violation.

        `limit` is the limit on pair moves.
        """
        assert self._system is not None
        violation = self.problem.violation(*self.state)
        least, safe = violation, self.state
        for _ in range(_POLISH_ROUNDS):
            polished = polish(self._system, self.problem, *self.state, self._exact)
            if polished is None:
                break
            if polished[2] <= violation:
                self.state, violation = polished[:2], polished[2]
            if violation < least:
                least, safe = violation, self.state
            if violation <= self._exact or self.steps >= limit:
                break
            # Some free samples were still missing; a few more moves find them.
            self.state = self.state[0].copy(), self.state[1].copy()
            best, low = _smo.extremes(self.state, self._box)
            self._select(best, low, 0.0)
            if not self._improve(0.1 * violation, min(limit - self.steps, 1000)):
                break
            violation = self.problem.violation(*self.state)
        # A pair move raises the objective but may also raise the violation, so the best is kept.
        self.state = safe
        return least

    def snap(self) -> None:
        """Put coefficients within rounding of zero or a bound there."""
        coef, gradient = self.state
        self.state = self.problem.snap(coef, self._start, self.scale, self.tol), gradient


def solve_on_stored(
    matrix: Array, problems: Sequence[Problem], starts: Sequence[Array] | None, tol: float
) -> list[Dual | None]:
    """Solve problems that leave out different samples of one stored matrix, in threads.

    The solution with all samples is close, because most of its support stays. So each problem
    starts from it, with working sets little larger than its support.

    Parameters
    ----------
    matrix : array of shape (n_samples, n_samples)
    problems : sequence of Problem
    starts : sequence of arrays of shape (n_samples,), or None
        Warm start of each problem.
    tol : float
        Violation of the optimality conditions that is left.

    Returns
    -------
    list of Dual or None
        None for problems that another solver should try.
    """
    duals: list[Dual | None] = [None] * len(problems)

    def solve_range(begin: int, end: int) -> None:
        for i in range(begin, end):
            size = STORED_SET
            if starts is not None:
                wanted = _SET_PER_SUPPORT * np.count_nonzero(starts[i])
                size = int(np.clip(wanted, _SMALLEST_SET, STORED_SET))
            blocks = BlockSolver(matrix, problems[i], size, tol)
            if starts is not None:
                blocks.start_from(starts[i])
            if blocks.run() <= tol and not blocks.is_indefinite:
                blocks.snap()
                duals[i] = problems[i].dual(*blocks.state, blocks.steps, True)

    run_chunked(solve_range, len(problems), 1)
    return duals


def _evenly_spaced(positions: Array, count: int) -> Array:
    """Return at most `count` of the positions, evenly spaced."""
    if len(positions) <= count:
        return positions
    return positions[np.linspace(0, len(positions) - 1, count).astype(np.intp)]
