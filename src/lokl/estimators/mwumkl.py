"""MWUMKL: shares of the kernels by multiplicative weights."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl.estimators.base import Training
from lokl.estimators.duplicates import Distinct
from lokl.estimators.learned_gate import InRounds
from lokl.estimators.machine import Fitted, GatedClassifier
from lokl.estimators.validation import check_choice
from lokl.gates import Weighted
from lokl.gates.weighted import Everywhere, weigh
from lokl.gram import GatedGram
from lokl.optimizers import Machines, Solution, Step
from lokl.solvers import MWU, Dual, Problem, squared
from lokl.solvers.mwu_kernels import RATES, kernel_shares


@dataclass(eq=False, repr=False)
class MWUMKLClassifier(InRounds, GatedClassifier):
    """Multiple kernel learning by multiplicative weights: many kernels, little memory.

    ``k = sum_i w_i k_i`` with ``w >= 0`` and ``sum_i w_i = 1``, squared hinge loss. Every round
    puts more weight on one sample of each class and shifts shares between the kernels; rows of the
    kernels are computed when they are needed, so memory grows with the number of samples, not with
    its square. Stops at a certified relative gap.

    Parameters
    ----------
    kernels : list or mapping of kernels, str or None, default=None
        None is linear, quadratic and RBF on comparable scales (:func:`lokl.kernels.standard`).
        A mapping gives the kernels names.
    C : float, default=1.0
        Cost of squared margin violations, in the scale of the kernels.
    epsilon : float, default=0.01
        Certified relative gap: ``primal - dual <= epsilon * primal``.
    rate : {"scale_free", "faithful"}, default="scale_free"
        Of learning: relative to the kernels' scale, or as published, for kernels of trace one.
    solver : {"mwu", "exact", "libsvm"} or Solver, default="mwu"
        "mwu" keeps the machine that belongs to the shares; others are trained on the learned
        kernel, with the hinge loss.
    tol : float, default=1e-3
        Of other solvers than "mwu".
    max_iter : int, default=1000000
        Limit on the rounds of the method, -1 for none.
    callback : callable, optional
        Called with every :class:`~lokl.optimizers.Step`; the method stops when it returns True.
    cache_size : float, default=64
        Megabytes for rows of all kernels.
    class_weight : dict, "balanced" or None, default=None
        Factors of `C` by class.
    random_state : int, RandomState or None, default=None
        Not used by this method; common to all.
    n_jobs : int or None, default=None
        Not used by this method; common to all.
    verbose : int, default=0
        1 logs a line for every certificate to the logger ``lokl``.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    weights_ : array of shape (n_kernels,)
        Weight of each kernel; they sum to one.
    kernel_ : GatedKernel
        The learned kernel, usable wherever a kernel is: ``SVC(kernel=model.kernel_)``.
    kernels_, kernel_names_ : list
        Kernels with learned settings, and their names.
    support_ : array of shape (n_support,)
        Rows of the training samples that carry a machine.
    support_vectors_ : {array, CSR matrix} of shape (n_support, n_features)
    dual_coef_ : array of shape (n_machines, n_support)
        Signed coefficients; one machine for two classes, else one for each class.
    intercept_ : array of shape (n_machines,)
    support_fraction_ : float
    history_ : array
        Dual value over weights and machine at every certificate.
    duality_gap_ : float
        Certified distance of the machine's primal value from the optimum over weights and machine.
    n_iter_ : int
        Rounds.
    n_features_in_ : int
    feature_names_in_ : array of str
        Where the training samples came with column names.

    Notes
    -----
    With more than two classes each class against the rest has its own shares; the model uses their
    mean, and the certified gap says how much that costs.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from lokl import MWUMKLClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), MWUMKLClassifier()).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    >>> model[-1].weights_.shape
    (3,)
    """

    epsilon: float = field(default=0.01, kw_only=True)
    rate: str = field(default="scale_free", kw_only=True)
    solver: Any = field(default="mwu", kw_only=True)
    max_iter: int = field(default=1_000_000, kw_only=True)
    cache_size: float = field(default=64, kw_only=True)

    def _check(self) -> None:
        super()._check()
        check_choice("rate", self.rate, RATES)
        if not np.isfinite(self.epsilon) or not 0 < self.epsilon < 1:
            raise ValueError(f"epsilon must be between 0 and 1, got {self.epsilon!r}")

    def _learn(self, training: Training) -> Fitted:
        gate = Weighted(Everywhere(len(training.kernels)))
        base = gate.base(training.samples, training.present)
        gram = training.solver.gram(training.kernels, training.X, base)
        walked = [
            self._walk(self._path(training, squared(problem), base), gram, gate, limit=-1)
            for problem in training.problems
        ]
        if len(walked) == 1 and isinstance(training.solver, MWU):
            fitted = walked[0]
        else:
            fitted = self._retrain(training, gram, base, walked)
        self.weights_ = fitted.params[0]
        # Rounds were counted by the solver.
        return replace(fitted, rounds=max(max(d.n_iter for d in w.solution.duals) for w in walked))

    def _path(self, training: Training, problem: Problem, base: Array) -> Iterator[Step]:
        distinct = Distinct.of(training.X, problem)
        rows = distinct.rows
        rounds = kernel_shares(
            training.solver.gram(training.kernels, training.X[rows], base[rows]),
            distinct.problem,
            epsilon=self.epsilon,
            rate=self.rate,
            cache_size=self.cache_size,
            max_iter=2**31 if self.max_iter < 0 else self.max_iter,
        )
        for found in rounds:
            weights = found.shares[np.newaxis]
            solution = Solution([distinct.spread(found.dual)], weigh(base, weights))
            yield Step(weights, found.lower, found.gap, solution)

    def _retrain(
        self, training: Training, gram: GatedGram, base: Array, walked: list[Fitted]
    ) -> Fitted:
        """Machines of all classes on the kernel of the mean shares."""
        weights = np.mean([fitted.params for fitted in walked], axis=0)
        H = weigh(base, weights)
        if isinstance(training.solver, MWU):
            duals = [self._machine(training, problem, H) for problem in training.problems]
            solution = Solution(duals, H)
            lower = sum(fitted.history[-1] for fitted in walked)
            gap = max(solution.objective + solution.gap - lower, 0.0)
        else:
            # Another loss: only the machines themselves are certified.
            solution = Machines(gram, training.solver, training.problems).solve(H)
            lower, gap = solution.objective, solution.gap
        return replace(
            walked[0], params=weights, solution=solution, history=[float(lower)], gap=gap
        )

    @staticmethod
    def _machine(training: Training, problem: Problem, H: Array) -> Dual:
        distinct = Distinct.of(training.X, problem)
        rows = distinct.rows
        gram = training.solver.gram(training.kernels, training.X[rows], H[rows])
        return distinct.spread(training.solver.solve(gram, distinct.problem))
