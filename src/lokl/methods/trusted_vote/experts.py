"""Training samples counted once each, in an order that only kernels decide.

Folds and other draws go by the number of a sample. On distinct samples, ordered by what kernels see
in them, they are the same however rows are ordered or written: as features, as a sparse matrix or
as numbers of a stored one, twice or with a weight of 2.

One expert for each kernel, and what it says about samples that it has not learned from.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from lokl._arrays import Array
from lokl._threads import effective_jobs, run_calls
from lokl.base.fit_cache import FitCache
from lokl.base.training import Training
from lokl.gates import Constant
from lokl.gram import Expansion, GatedGram
from lokl.gram.gated_kernel import average_kernel
from lokl.methods.trusted_vote.model import TrustedExpert
from lokl.methods.trusted_vote.neighbourhood import Closeness, Neighbours, Novelty
from lokl.solvers import Machines, Solution, Solver
from lokl.solvers.exact import names_of_rows
from lokl.solvers.machines import Fold, held_out_decisions, held_out_machines


def deduplicate(training: Training) -> Training:
    """Return the distinct samples with the weights of equal ones added up."""
    names = names_of_rows(training.samples.given, training.targets)
    _, first, inverse = np.unique(names, return_index=True, return_inverse=True)
    once = _merged(training, first, inverse) if len(first) < len(names) else training
    order = np.argsort(_likeness(once), kind="stable")
    return replace(
        once,
        samples=once.samples.take(order),
        rows=once.rows[order],
        problems=[problem.take(order) for problem in once.problems],
        # What earlier fits have left belongs to samples in their own order.
        cache=FitCache(),
    )


def _merged(training: Training, first: Array, inverse: Array) -> Training:
    weight = np.bincount(inverse, weights=training.weight, minlength=len(first))
    return replace(
        training,
        samples=replace(training.samples.take(first), weight=weight),
        rows=training.rows[first],
        problems=[problem.merged(first, inverse) for problem in training.problems],
        cache=FitCache(),
    )


def _likeness(training: Training) -> Array:
    """How like all others each sample is: its row of the averaged kernels, summed."""
    params = np.full(training.n_kernels, 1.0 / training.n_kernels)
    gram = training.gram(Constant().at(training.samples, params))
    return gram.dot(training.weight)


# Samples among which the median distance is found.
_SOME = 500
# Kernel values of one block.
_BLOCK = 2**22


@dataclass(frozen=True, eq=False)
class Together:
    """The machine of all kernels at equal weights, once for each fold and once on all samples."""

    gates: Array  # (n_samples, n_kernels)
    turns: list[Fold]  # samples left out, and the coefficients of machines that do not know them
    base: Array  # (n_samples, n_tasks), intercepts of these machines
    coef: Array  # (n_samples, n_tasks), of the machine on all samples
    intercept: Array  # (n_tasks,)
    objective: float

    @classmethod
    def learn(cls, training: Training, folds: Sequence[Fold]) -> "Together":
        """Solve them all on one Gram matrix."""
        params = np.full(training.n_kernels, 1.0 / training.n_kernels)
        gates = Constant().at(training.samples, params)
        gram = training.gram(gates)
        whole = training.machines().solve(gram)
        everyone, base = np.arange(training.n_samples), np.zeros(whole.coef.shape)
        turns = [] if folds else [(everyone, whole.coef)]
        base[:] = whole.intercept
        others = held_out_machines(training.solver, gram, training.problems, folds, whole)
        for left, solution in others:
            base[left] = solution.intercept
            turns.append((left, solution.coef))
        gram.release()
        return cls(gates, turns, base, whole.coef, whole.intercept, whole.objective)

    @classmethod
    def unasked(cls, training: Training) -> "Together":
        """Return a machine that says nothing."""
        n, tasks = training.n_samples, len(training.problems)
        nothing, everyone = np.zeros((n, tasks)), np.arange(n)
        gates = np.zeros((n, training.n_kernels))
        return cls(gates, [(everyone, nothing)], nothing, nothing, np.zeros(tasks), 0.0)


@dataclass(frozen=True, eq=False)
class HeldOutExpert:
    """An expert, and what it says about training samples when it does not know them."""

    expert: TrustedExpert
    rows: Array  # training samples that have its view
    decision: Array  # (len(rows), n_tasks)
    part: Array  # (len(rows), n_tasks), in the machine of all kernels
    neighbours: Neighbours  # of these samples among each other
    solution: Solution | None  # on all samples that have the view
    diag: Callable[[], Array]  # of its Gram matrix


@dataclass(frozen=True, eq=False)
class ExpertSchool:
    """What every expert is made by."""

    training: Training
    folds: Sequence[Fold]
    together: Together
    novelty: bool
    n_neighbors: int  # 0 where nobody asks for them

    def experts(self, n_jobs: int | None) -> list[HeldOutExpert]:
        """Learn one expert for each kernel."""
        jobs = effective_jobs(n_jobs, self.training.n_kernels)
        solver = self.training.solver
        solver = solver if jobs < 2 else solver.with_share_of_memory(1.0 / jobs)
        kernels = range(self.training.n_kernels)
        return run_calls([partial(self._quietly, i, solver) for i in kernels], jobs)

    def _quietly(self, i: int, solver: Solver) -> HeldOutExpert:
        # What numpy may say is set for each thread.
        with np.errstate(all="ignore"):
            return self._expert(i, solver)

    def _expert(self, i: int, solver: Solver) -> HeldOutExpert:
        training = self.training
        rows = training.samples.rows_seen_by(i)
        if len(rows) == 0:
            return self._nobody(i)
        inner = solver.inner_products(training.samples.seen_by(i).filled)
        gram = inner.gated([training.kernels[i]])
        problems = [problem.take(rows) for problem in training.problems]
        solution = Machines(solver, problems).solve(gram)
        decision = solution.decision
        if self.folds:
            folds = _among(rows, self.folds, training.n_samples)
            decision = held_out_decisions(solver, gram, problems, folds, solution)
        # Who is near is told by the kernel itself, whatever stands for it in machines.
        exact, diag = gram.exact, gram.exact.diag()
        some = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _SOME)).astype(np.intp))
        closeness = Closeness.of(diag, some, exact.block(some))
        part, neighbours = self._around(i, rows, gram, closeness)
        exact.release()
        novelty = Novelty.of(neighbours, training.weight[rows]) if self.novelty else None
        together = self.together.gates[rows, i, np.newaxis] * self.together.coef[rows]
        coef = solution.coef
        carry = np.flatnonzero((np.hstack([coef, together]) != 0).any(axis=1))
        known = np.arange(len(rows)) if self.n_neighbors else carry
        machine, seen = None, known
        if gram.is_low_rank:
            kernel, both = average_kernel(gram.kernels), np.hstack([coef, together])
            machine = Expansion.make(kernel, gram, both, 0.0)
            seen = known if self.n_neighbors else known[:0]
        gram.release()
        expert = TrustedExpert(
            training.names[i],
            training.kernels[i],
            rows[np.flatnonzero((coef != 0).any(axis=1))],
            coef[known],
            together[known],
            solution.intercept,
            gram.points.take(seen) if len(seen) < len(rows) else gram.points,
            closeness,
            novelty,
            (),
            self.n_neighbors,
            machine,
        )
        return HeldOutExpert(expert, rows, decision, part, neighbours, solution, gram.diag)

    def _around(
        self, i: int, rows: Array, gram: GatedGram, closeness: Closeness
    ) -> tuple[Array, Neighbours]:
        """Look at every row of the kernel once: parts of held-out machines, and neighbours."""
        n, together, exact = len(rows), self.together, gram.exact
        diag = exact.diag()
        everyone = np.arange(n)
        part = np.zeros((n, together.coef.shape[1]))
        found, places = [], []
        for left, coef in together.turns:
            own = place_of(rows, left, self.training.n_samples)
            own = own[own >= 0]
            load = together.gates[rows, i, np.newaxis] * coef[rows]
            parts = gram.dot(load) if gram.is_low_rank else None
            step = max(_BLOCK // n, 1)
            for start in range(0, len(own), step):
                some = own[start : start + step]
                K = exact.cross(some, everyone)
                part[some] = K @ load.astype(K.dtype) if parts is None else parts[some]
                near = closeness(K, diag[some], diag) if self.n_neighbors else K
                near[np.arange(len(some)), some] = -1.0
                found.append(Neighbours.among(near, min(self.n_neighbors, n - 1)))
                places.append(some)
        return part, Neighbours.joined(found).at(np.argsort(np.concatenate(places)))

    def _nobody(self, i: int) -> HeldOutExpert:
        """Return the expert of a view that no training sample has."""
        training, tasks = self.training, len(self.training.problems)
        nothing, none = np.zeros((0, tasks)), np.empty(0, dtype=np.intp)
        neighbours = Neighbours(np.empty((0, 0), np.intp), np.empty((0, 0)))
        expert = TrustedExpert(
            training.names[i],
            training.kernels[i],
            none,
            nothing,
            nothing,
            np.zeros(tasks),
            None,
            Closeness(1.0, True),
            None,
            (),
            self.n_neighbors,
        )
        return HeldOutExpert(expert, none, nothing, nothing, neighbours, None, lambda: np.empty(0))


def place_of(rows: Array, wanted: Array, n_samples: int) -> Array:
    """Place of each wanted sample among `rows`, -1 where it is not there."""
    places = np.full(n_samples, -1)
    places[rows] = np.arange(len(rows))
    return np.asarray(places[wanted])


def _among(rows: Array, folds: Sequence[Fold], n_samples: int) -> list[Fold]:
    """Return folds of all samples as folds of some of them."""
    own = []
    for kept, left in folds:
        kept, left = place_of(rows, kept, n_samples), place_of(rows, left, n_samples)
        kept, left = kept[kept >= 0], left[left >= 0]
        # Without anybody to learn from, nothing is decided.
        if len(kept) and len(left):
            own.append((kept, left))
    return own
