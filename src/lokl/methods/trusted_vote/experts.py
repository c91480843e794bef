"""Training of the experts: one SVM for each kernel, and its outputs for held-out samples."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from lokl._arrays import Array
from lokl._threads import effective_jobs, run_calls
from lokl.base.fit_cache import FitCache
from lokl.base.training import Training
from lokl.gates import ConstantGate
from lokl.gram import GatedGram
from lokl.gram.gated_kernel import average_kernel
from lokl.methods.trusted_vote.model import TrustedExpert
from lokl.methods.trusted_vote.neighbourhood import Familiarity, KernelSimilarity, Neighbours
from lokl.solvers import Machines, Solution, Solver
from lokl.solvers.machines import Fold, held_out_decisions, held_out_solutions
from lokl.solvers.problem import row_keys

# Samples that estimate the median distance under a kernel.
_SUBSAMPLE = 500
# Kernel values in one block.
_BLOCK = 2**22


def deduplicate(training: Training) -> Training:
    """Merge equal samples and sort the rest by kernel values.

    Folds and other random draws depend on the position of a sample. On distinct samples in an order
    that only the kernels determine, they do not depend on the order of the rows, on their format
    (dense, sparse, or indices of a precomputed matrix), or on whether a row is repeated or has a
    weight of 2.
    """
    names = row_keys(training.samples.given, training.targets)
    _, first, inverse = np.unique(names, return_index=True, return_inverse=True)
    if len(first) < len(names):
        weight = np.bincount(inverse, weights=training.weight, minlength=len(first))
        training = replace(
            training,
            samples=replace(training.samples.take(first), weight=weight),
            rows=training.rows[first],
            problems=[problem.merged(first, inverse) for problem in training.problems],
            cache=FitCache(),
        )
    order = np.argsort(_weighted_kernel_sums(training), kind="stable")
    return replace(
        training,
        samples=training.samples.take(order),
        rows=training.rows[order],
        problems=[problem.take(order) for problem in training.problems],
        # Cached values of earlier fits belong to another order of the samples.
        cache=FitCache(),
    )


def _weighted_kernel_sums(training: Training) -> Array:
    """Weighted row sums of the averaged kernels, (n_samples,)."""
    params = np.full(training.n_kernels, 1.0 / training.n_kernels)
    gram = training.gram(ConstantGate().at(training.samples, params))
    return gram.dot(training.weight)


@dataclass(frozen=True, eq=False)
class JointModel:
    """SVM on the average of all kernels, fitted on all samples and on each fold.

    Attributes
    ----------
    gates : array of shape (n_samples, n_kernels)
    held_out : list of (array of int, array of shape (n_samples, n_tasks))
        Indices of the samples of a fold, and the coefficients of the SVM fitted without them.
    held_out_intercept : array of shape (n_samples, n_tasks)
        Intercept of the SVM that was fitted without the sample.
    coef : array of shape (n_samples, n_tasks)
        Coefficients of the SVM on all samples.
    intercept : array of shape (n_tasks,)
    objective : float
    """

    gates: Array
    held_out: list[Fold]
    held_out_intercept: Array
    coef: Array
    intercept: Array
    objective: float

    @classmethod
    def fit(cls, training: Training, folds: Sequence[Fold]) -> "JointModel":
        """Solve all SVMs on one Gram matrix."""
        params = np.full(training.n_kernels, 1.0 / training.n_kernels)
        gates = ConstantGate().at(training.samples, params)
        gram = training.gram(gates)
        whole = training.machines().solve(gram)
        held_out = [] if folds else [(np.arange(training.n_samples), whole.coef)]
        intercept = np.zeros(whole.coef.shape)
        intercept[:] = whole.intercept
        solutions = held_out_solutions(training.solver, gram, training.problems, folds, whole)
        for left_out, solution in solutions:
            intercept[left_out] = solution.intercept
            held_out.append((left_out, solution.coef))
        gram.release()
        return cls(gates, held_out, intercept, whole.coef, whole.intercept, whole.objective)

    @classmethod
    def zero(cls, training: Training) -> "JointModel":
        """Return a model whose decisions are zero, for votes without a joint model."""
        n, n_tasks = training.n_samples, len(training.problems)
        zeros = np.zeros((n, n_tasks))
        gates = np.zeros((n, training.n_kernels))
        return cls(gates, [(np.arange(n), zeros)], zeros, zeros, np.zeros(n_tasks), 0.0)


@dataclass(frozen=True, eq=False)
class HeldOutExpert:
    """Expert with its held-out outputs for the training samples.

    Attributes
    ----------
    expert : TrustedExpert
    rows : array of int of shape (n_rows,)
        Training samples that have the view.
    decision : array of shape (n_rows, n_tasks)
    contribution : array of shape (n_rows, n_tasks)
        To the held-out decisions of the joint model.
    neighbours : Neighbours
        Of each of these samples among the others.
    solution : Solution or None
        SVM on all samples that have the view, None if there are none.
    diag : callable
        Returns the diagonal of the Gram matrix.
    """

    expert: TrustedExpert
    rows: Array
    decision: Array
    contribution: Array
    neighbours: Neighbours
    solution: Solution | None
    diag: Callable[[], Array]


@dataclass(frozen=True, eq=False)
class ExpertTrainer:
    """Shared inputs of the training of all experts.

    Attributes
    ----------
    training : Training
    folds : sequence of (training indices, held-out indices)
    joint : JointModel
    novelty : bool
        Whether to learn the familiarity of samples.
    n_neighbors : int
        0 if neighbours are not used.
    """

    training: Training
    folds: Sequence[Fold]
    joint: JointModel
    novelty: bool
    n_neighbors: int

    def fit(self, n_jobs: int | None) -> list[HeldOutExpert]:
        """Fit one expert for each kernel."""
        jobs = effective_jobs(n_jobs, self.training.n_kernels)
        solver = self.training.solver
        solver = solver if jobs < 2 else solver.with_share_of_memory(1.0 / jobs)
        kernels = range(self.training.n_kernels)
        return run_calls([partial(self._fit_in_thread, i, solver) for i in kernels], jobs)

    def _fit_in_thread(self, i: int, solver: Solver) -> HeldOutExpert:
        # The error state of numpy is set for each thread.
        with np.errstate(all="ignore"):
            return self._fit_expert(i, solver)

    def _fit_expert(self, i: int, solver: Solver) -> HeldOutExpert:
        training = self.training
        rows = training.samples.rows_seen_by(i)
        if len(rows) == 0:
            return self._empty_expert(i)
        inner = solver.inner_products(training.samples.seen_by(i).filled)
        gram = inner.gated([training.kernels[i]])
        problems = [problem.take(rows) for problem in training.problems]
        solution = Machines(solver, problems).solve(gram)
        decision = solution.decision
        if self.folds:
            folds = _restrict_folds(rows, self.folds, training.n_samples)
            decision = held_out_decisions(solver, gram, problems, folds, solution)
        # Neighbours are those of the kernel itself, even if low-rank features replace it.
        exact, diag = gram.exact, gram.exact.diag()
        some = np.linspace(0, len(rows) - 1, min(len(rows), _SUBSAMPLE)).astype(np.intp)
        some = np.unique(some)
        similarity = KernelSimilarity.from_training(diag, some, exact.block(some))
        contribution, neighbours = self._held_out_pass(i, rows, gram, similarity)
        exact.release()
        familiarity = None
        if self.novelty:
            familiarity = Familiarity.from_training(neighbours, training.weight[rows])
        joint_coef = self.joint.gates[rows, i, np.newaxis] * self.joint.coef[rows]
        coef = solution.coef
        both = np.hstack([coef, joint_coef])
        kept = np.flatnonzero((both != 0).any(axis=1))
        if self.n_neighbors:
            kept = np.arange(len(rows))
        expansion, stored = None, kept
        if gram.is_low_rank:
            expansion = gram.expansion(average_kernel(gram.kernels), both, np.zeros(both.shape[1]))
            stored = kept if self.n_neighbors else kept[:0]
        gram.release()
        expert = TrustedExpert(
            training.names[i],
            training.kernels[i],
            rows[np.flatnonzero((coef != 0).any(axis=1))],
            coef[kept],
            joint_coef[kept],
            solution.intercept,
            gram.points.take(stored) if len(stored) < len(rows) else gram.points,
            similarity,
            familiarity,
            (),
            self.n_neighbors,
            expansion,
        )
        return HeldOutExpert(expert, rows, decision, contribution, neighbours, solution, gram.diag)

    def _held_out_pass(
        self, i: int, rows: Array, gram: GatedGram, similarity: KernelSimilarity
    ) -> tuple[Array, Neighbours]:
        """Compute contributions to the held-out joint decisions, and neighbours, row by row."""
        n, joint, exact = len(rows), self.joint, gram.exact
        diag = exact.diag()
        columns = np.arange(n)
        contribution = np.zeros((n, joint.coef.shape[1]))
        blocks, indices = [], []
        for left_out, coef in joint.held_out:
            fold = positions_in(rows, left_out, self.training.n_samples)
            fold = fold[fold >= 0]
            load = joint.gates[rows, i, np.newaxis] * coef[rows]
            products = gram.dot(load) if gram.is_low_rank else None
            step = max(_BLOCK // n, 1)
            for start in range(0, len(fold), step):
                some = fold[start : start + step]
                K = exact.cross(some, columns)
                joint_part = K @ load.astype(K.dtype) if products is None else products[some]
                contribution[some] = joint_part
                near = similarity(K, diag[some], diag) if self.n_neighbors else K
                near[np.arange(len(some)), some] = -1.0
                blocks.append(Neighbours.nearest(near, min(self.n_neighbors, n - 1)))
                indices.append(some)
        order = np.argsort(np.concatenate(indices))
        return contribution, Neighbours.concatenate(blocks).take(order)

    def _empty_expert(self, i: int) -> HeldOutExpert:
        """Return the expert of a view that no training sample has."""
        training, n_tasks = self.training, len(self.training.problems)
        empty, no_rows = np.zeros((0, n_tasks)), np.empty(0, dtype=np.intp)
        expert = TrustedExpert(
            training.names[i],
            training.kernels[i],
            no_rows,
            empty,
            empty,
            np.zeros(n_tasks),
            None,
            KernelSimilarity(1.0, True),
            None,
            (),
            self.n_neighbors,
        )
        neighbours = Neighbours.none(0)
        return HeldOutExpert(expert, no_rows, empty, empty, neighbours, None, lambda: np.empty(0))


def positions_in(rows: Array, wanted: Array, n_samples: int) -> Array:
    """Return the position of each wanted sample in `rows`, -1 if it is absent."""
    positions = np.full(n_samples, -1)
    positions[rows] = np.arange(len(rows))
    return np.asarray(positions[wanted])


def _restrict_folds(rows: Array, folds: Sequence[Fold], n_samples: int) -> list[Fold]:
    """Restrict folds of all samples to some of them; folds with an empty side are dropped."""
    restricted = []
    for train, test in folds:
        train, test = positions_in(rows, train, n_samples), positions_in(rows, test, n_samples)
        train, test = train[train >= 0], test[test >= 0]
        if len(train) and len(test):
            restricted.append((train, test))
    return restricted
