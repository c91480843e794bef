"""MWUMKL: weights of the kernels by multiplicative updates."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl.base import Classifier, IterativeEstimator, OptimizationTrace, Training, setting, settings
from lokl.base.model import GatedMachine
from lokl.base.settings import SHARE, one_of
from lokl.gates import WeightedGate
from lokl.gates.base import EqualGates, apply_weights
from lokl.gram import GatedGram
from lokl.optimizers import OptimizerStep
from lokl.solvers import Dual, Problem, Solution, as_squared_hinge
from lokl.solvers.mwu import RATES, learn_kernel_weights
from lokl.solvers.problem import UniqueSamples

_NO_LIMIT = 2**31


@settings
class MWUMKLClassifier(IterativeEstimator, Classifier):
    """Multiple kernel learning by multiplicative weights: many kernels, little memory.

    ``k = sum_i w_i k_i`` with ``w >= 0`` and ``sum_i w_i = 1``, squared hinge loss. Every round
    increases the dual coefficient of one sample of each class and updates the weights of the
    kernels. Rows of the kernels are computed when needed, so memory grows linearly with the number
    of samples. The rounds stop at a certified relative gap.

    Attributes
    ----------
    weights_ : array of shape (n_kernels,)
        Weight of each kernel; they sum to one.
    history_ : array
        Dual objective over weights and SVM at every certificate.
    duality_gap_ : float
        Certified distance of the primal objective from the optimum over weights and SVM.

    Notes
    -----
    The weights belong to a squared hinge SVM, which is the model. Another solver, such as
    ``solver="exact"``, trains one more SVM on the learned kernel, with the hinge or the given
    `loss`.

    With more than two classes each one-versus-rest problem has its own weights. The model uses
    their mean, and the certified gap includes the difference.

    References
    ----------
    .. [1] J. Moeller, P. Raman, A. Saha, S. Venkatasubramanian. A Geometric Algorithm for Scalable
       Multiple Kernel Learning. International Conference on Artificial Intelligence and Statistics
       (AISTATS), 2014. https://arxiv.org/abs/1206.5580

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import MWUMKLClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = MWUMKLClassifier().fit(scale(X), y)
    >>> round(model.score(scale(X), y), 2)
    1.0
    >>> model.weights_.shape
    (3,)
    """

    epsilon: float = setting(
        0.01, SHARE, "Certified relative gap: ``primal - dual <= epsilon * primal``."
    )
    rate: str = setting(
        "scale_free",
        one_of(*RATES),
        "Learning rate: relative to the scale of the kernels, or as published, for kernels of "
        "trace one and with ``2 log(n) / epsilon^2`` rounds whatever the gap.",
    )
    solver: Any = "mwu"
    max_iter: int = 1_000_000
    cache_size: float = 64

    _stores_rows = True

    def _learn(self, training: Training) -> GatedMachine:
        gate = WeightedGate(EqualGates(training.n_kernels))
        base = gate.base(training.samples)
        gram = training.gram(base)
        traces = [
            self._run(self._path(training, as_squared_hinge(problem), gram, base), limit=-1)
            for problem in training.problems
        ]
        rounds = max(trace.last.solution.n_iter for trace in traces)
        # Solvers with other losses train SVMs of their own on the learned kernel.
        if len(traces) == 1 and "hinge" not in training.solver.losses:
            learned = traces[0].last.params[0]
            return replace(traces[0].model(training, gate, weights_=learned), n_iter=rounds)
        weights = np.mean([trace.last.params for trace in traces], axis=0)
        shared = gram.regated(apply_weights(base, weights))
        if self._loss(training.solver) == "squared_hinge":
            solution, lower, gap = _squared_machines(training, shared, traces)
        else:
            # Another loss: only the SVMs themselves are certified.
            solution = training.machines().solve(shared)
            lower, gap = solution.objective, solution.gap
        model = training.model(gate, weights, solution, weights_=weights[0])
        return replace(model, history=np.array([lower]), gap=gap, n_iter=rounds)

    def _path(
        self, training: Training, problem: Problem, gram: GatedGram, base: Array
    ) -> Iterator[OptimizerStep]:
        distinct = UniqueSamples.find(training.samples.filled, problem)
        rounds = learn_kernel_weights(
            gram.inner.take(distinct.rows).gated(training.kernels, base[distinct.rows]),
            distinct.problem,
            epsilon=self.epsilon,
            rate=self.rate,
            cache_size=self.cache_size,
            max_iter=_NO_LIMIT if self.max_iter < 0 else self.max_iter,
        )
        for certified in rounds:
            weights = certified.weights[np.newaxis]
            solution = Solution(
                [distinct.expand(certified.dual)], gram.regated(apply_weights(base, weights))
            )
            yield OptimizerStep(weights, certified.lower, certified.gap, solution)


def _squared_machines(
    training: Training, gram: GatedGram, traces: list[OptimizationTrace]
) -> tuple[Solution, float, float]:
    """Return SVMs of all classes on the kernel of the mean weights, lower bound and gap."""
    duals: list[Dual] = []
    for problem in training.problems:
        distinct = UniqueSamples.find(training.samples.filled, problem)
        rows = distinct.rows
        part = gram.inner.take(rows).gated(training.kernels, gram.gates[rows])
        duals.append(distinct.expand(training.solver.solve(part, distinct.problem)))
    solution = Solution(duals, gram)
    lower = float(sum(trace.history[-1] for trace in traces))
    return solution, lower, max(solution.objective + solution.gap - lower, 0.0)
