"""Several problems on one Gram matrix in common rounds, such as each class against the rest.

Each round takes a working set for every problem, with a small matrix of its own, and solves it.
Then one product with the Gram matrix updates the gradients of all problems. A kernel value is
computed once for all of them, and no row is stored: the first touch of memory costs more than the
values that would be in it.

The first round solves all problems on the same sample of the data. The next working sets contain
the samples near the boundary of their problem, which are few if there are many classes.
"""

from collections.abc import Sequence

import numpy as np

from lokl._arrays import Array, evenly_spaced
from lokl._compiled import CompiledModule
from lokl._threads import run_chunked
from lokl.gram import GatedGram
from lokl.solvers.exact import BlockSolver
from lokl.solvers.problem import Dual, Problem

_smo = CompiledModule("lokl.solvers._smo")

# The first round uses at most this share of the samples, and at most this many.
_SHARE, _SAMPLE = 1 / 3, 4000
# Tolerance of the first round, and of later rounds relative to the violation at their start. Pair
# moves cost less than a round, so that later rounds are solved tightly.
_ROUGH, _REST = 0.1, 0.03
# The next working set contains the samples whose moves would lose less than this.
_MARGIN = 0.1
# A problem is left to the solver of single problems if more than this share of a working set is
# free, or after this many rounds.
_FREE, _ROUNDS = 0.9, 12


class JointRounds:
    """Solves problems together, except those that need too many samples at a time.

    Parameters
    ----------
    gram : GatedGram
    problems : sequence of Problem
    tol : float
        Violation of the optimality conditions that is left.
    size : int
        Most samples of a working set. A problem with more free coefficients is left.

    Attributes
    ----------
    coef, gradient : arrays of shape (n_problems, n_samples)
        Coefficients ``u`` and gradient ``t - (K + R) u`` of each problem.
    """

    def __init__(self, gram: GatedGram, problems: Sequence[Problem], tol: float, size: int):
        self.gram, self.problems, self.tol, self.size = gram, problems, tol, size
        shape = len(problems), gram.n_samples
        self.coef, self.gradient = np.zeros(shape), np.array([p.target for p in problems])
        # 3 for free samples of the last working set, as in `BlockSolver`.
        self._rank = np.zeros(shape, dtype=np.int8)
        self._steps, self._violation = np.zeros(shape[0], dtype=np.int64), np.full(shape[0], np.inf)
        self._left = np.zeros(shape[0], dtype=bool)
        self._scale = float(np.abs(gram.diag()).max(initial=0.0))

    def run(self, starts: Sequence[Array | None] | None = None) -> list[Dual | None]:
        """Return the solutions; None for problems that another solver should solve."""
        known = [] if starts is None else [start for start in starts if start is not None]
        if len(known) < len(self.problems):
            self._solve_sample()
        else:
            pairs = zip(self.problems, known, strict=True)
            points = np.array([problem.feasible(start) for problem, start in pairs])
            self._move(np.arange(len(points)), points)
        for _ in range(_ROUNDS):
            todo = self._open()
            if not len(todo):
                break
            self._round(todo)
        self._open()
        return [self._dual(k) for k in range(len(self.problems))]

    def _open(self) -> Array:
        """Return the problems that are neither solved nor left."""
        for k in np.flatnonzero(~self._left).tolist():
            best, low = _smo.extremes((self.coef[k], self.gradient[k]), self.problems[k].box)
            self._violation[k] = best - low
        return np.flatnonzero(~self._left & (self._violation > self.tol))

    def _solve_sample(self) -> None:
        """Solve all problems on the same sample of the data."""
        n = self.gram.n_samples
        index = evenly_spaced(n, min(_SAMPLE, int(_SHARE * n), 2 * self.size))
        matrix, change = self.gram.cross(index, index), np.zeros_like(self.coef)

        def task(begin: int, end: int) -> None:
            for k in range(begin, end):
                change[k, index] = self._solve_set(k, matrix, index, max(_ROUGH, self.tol))

        run_chunked(task, len(change), 1, serial_tasks=True)
        self._move(np.arange(len(change)), change)

    def _round(self, todo: Array) -> None:
        """Solve a working set of each problem, and update the gradients of all samples."""
        change = np.zeros((len(todo), self.gram.n_samples))

        def task(begin: int, end: int) -> None:
            chosen = np.empty(self.gram.n_samples, dtype=bool)
            for t in range(begin, end):
                k = int(todo[t])
                self._select(k, chosen)
                index = np.flatnonzero(chosen)
                tol = max(0.5 * self.tol, _REST * float(self._violation[k]))
                matrix = self.gram.cross(index, index)
                change[t, index] = self._solve_set(k, matrix, index, tol)

        run_chunked(task, len(todo), 1, serial_tasks=True)
        self._move(todo, change)

    def _select(self, k: int, chosen: Array) -> None:
        """Mark the samples near the boundary of a problem, at most `size`."""
        problem, state = self.problems[k], (self.coef[k], self.gradient[k])
        middle = problem.intercept(*state)
        # Both gains are measured from the intercept, and those just below zero count as well.
        span = middle, middle, -min(_MARGIN, float(self._violation[k]))
        _smo.select(state, problem.box, self._rank[k], span, self.size, chosen)

    def _solve_set(self, k: int, matrix: Array, index: Array, tol: float) -> Array:
        """Return the change of the coefficients of some samples that solves their problem."""
        part, coef = self.problems[k].take(index), self.coef[k, index]
        blocks = BlockSolver(matrix, part, None, tol)
        blocks.start_from(coef, self.gradient[k, index])
        blocks.run()
        moved = blocks.state[0]
        self._steps[k] += blocks.steps
        change = np.asarray(moved - self.coef[k, index])
        is_free = part.is_free(moved)
        self._rank[k] = 0
        self._rank[k, index] = 3 * is_free
        self._left[k] |= blocks.is_indefinite or is_free.sum() > _FREE * self.size
        return change

    def _move(self, todo: Array, change: Array) -> None:
        """Add a change of shape (n_todo, n_samples) to the coefficients."""
        self.coef[todo] += change
        self.gradient[todo] -= self.gram.dot(change.T).T
        for k, moved in zip(todo, change, strict=True):
            self.gradient[k] -= self.problems[k].ridge * moved

    def _dual(self, k: int) -> Dual | None:
        if self._left[k] or self._violation[k] > self.tol:
            return None
        problem = self.problems[k]
        coef = problem.snap(self.coef[k], None, self._scale, self.tol)
        return problem.dual(coef, self.gradient[k].copy(), int(self._steps[k]), True)
