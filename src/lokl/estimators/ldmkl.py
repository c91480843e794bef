"""LD-MKL: one expert for each kernel, trained where it succeeds, and a gated vote."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl._checks import check_positive as positive
from lokl.estimators.base import KernelClassifier, KernelRegressor, Training
from lokl.estimators.saturation import warn_if_saturated
from lokl.estimators.success import (
    RegressedSuccess,
    Single,
    SuccessLearner,
    at_training,
    learn_success,
    sharpened,
)
from lokl.estimators.validation import check_choice
from lokl.gates import Constant
from lokl.gram import Expansion, GatedKernel
from lokl.kernels import Kernel
from lokl.kernels.presence import split_missing
from lokl.optimizers import Machines
from lokl.solvers import Problem

_GATINGS = ("kernel", "none", "weight", "literal")
_INTERCEPTS = ("keep", "drop")
# Gates this close to 1/m count as equal to it: which side they fall on is rounding.
_TIE = 1e-9


@dataclass(frozen=True, eq=False)
class Expert:
    """The machine of one kernel, trained on the samples that trust it.

    Attributes
    ----------
    name : str
        Of the kernel.
    kernel : Kernel
    rows : array of int
        Training samples it was trained on.
    support : array of int
        Training samples that carry it.
    coef : array of shape (n_support, n_tasks)
        Signed coefficients.
    intercept : array of shape (n_tasks,)
    expansion : Expansion or None
        The function without the gate of the new sample, None where there is no machine: then the
        intercept is all, zero for an expert that abstains.
    gated : bool
        Whether the decision of a sample is scaled by its own gate.
    """

    name: str
    kernel: Kernel
    rows: Array
    support: Array
    coef: Array
    intercept: Array
    expansion: Expansion | None
    gated: bool

    def decide(self, X: Any, trust: Array) -> Array:
        """Decisions (n_samples, n_tasks) of samples that trust it so far (``m g``)."""
        if self.expansion is None:
            return np.broadcast_to(self.intercept, (X.shape[0], len(self.intercept)))
        values = self.expansion(X)
        if self.gated:
            values = values * trust[:, np.newaxis]
        return np.asarray(values + self.intercept)


@dataclass(frozen=True, eq=False)
class SoftmaxTrust:
    """Gates of LD-MKL: softmax over the kernels of their regressed success."""

    success: RegressedSuccess
    temperature: float
    clip: bool

    def __call__(self, X: Any, present: Array | None = None) -> Array:
        return sharpened(self.success(X, present), self.temperature, self.clip)


@dataclass(eq=False)
class Vote:
    """Gates and experts."""

    trust: SoftmaxTrust
    experts: list[Expert]
    gates: Array
    objective: float
    n_iter: int


@dataclass(eq=False, repr=False, kw_only=True)
class _LDMKL(SuccessLearner):
    """Experts where they succeed, weighed by where they shall succeed."""

    gating: str = "kernel"
    temperature: float = 1.0
    clip: bool = False
    margin: float = 0.05
    intercept: str = "keep"

    def _check(self) -> None:
        super()._check()
        check_choice("gating", self.gating, _GATINGS)
        check_choice("intercept", self.intercept, _INTERCEPTS)
        positive("temperature", self.temperature)
        if not np.isfinite(self.margin) or self.margin < 0:
            raise ValueError(f"margin must be finite and not negative, got {self.margin!r}")

    def _learn(self, training: Training) -> Vote:
        singles = learn_success(self, training)
        warn_if_saturated(
            [problem.take(single.rows) for single in singles for problem in training.problems],
            [dual for single in singles for dual in single.duals],
            [single.gram.diag() for single in singles for _ in training.problems],
        )
        trust = SoftmaxTrust(
            RegressedSuccess([single.regressor for single in singles]), self.temperature, self.clip
        )
        g = sharpened(at_training(singles, training.n_samples), self.temperature, self.clip)
        # A sample that lacks views shares its trust among fewer kernels.
        seen = np.isfinite(at_training(singles, training.n_samples)).sum(axis=1)
        selected = g > (1.0 / seen)[:, np.newaxis] - self.margin - _TIE
        selected &= g > 0
        experts, objective, steps = [], 0.0, 1
        for i, single in enumerate(singles):
            expert, value, n_iter = self._retrain(
                training, single, i, g[:, i], selected[:, i], seen
            )
            experts.append(expert)
            objective += value
            steps = max(steps, n_iter)
        return Vote(trust, experts, g, objective, steps)

    def _retrain(
        self,
        training: Training,
        single: Single,
        i: int,
        g: Array,
        selected: Array,
        seen: Array,
    ) -> tuple[Expert, float, int]:
        rows = np.flatnonzero(selected)
        problems = [problem.take(rows) for problem in training.problems]
        name, tasks = training.names[i], len(problems)
        constant = _constant_decision(problems)
        nobody = np.empty(0, dtype=np.intp)
        if constant is not None:
            empty = np.empty((0, tasks))
            alone = Expert(name, single.kernel, rows, nobody, empty, constant, None, False)
            return alone, 0.0, 1
        scaled = (seen * g)[rows]
        gates = np.ones((len(rows), 1))
        if self.gating == "kernel":
            gates = scaled[:, np.newaxis]
        elif self.gating == "weight":
            problems = [problem.weighted(scaled) for problem in problems]
        gram = single.gram
        if len(rows) < len(single.rows):
            gram = training.solver.gram([single.kernel], training.X[rows], gates)
        place = np.searchsorted(single.rows, rows)
        machines = Machines(gram, training.solver, problems)
        # The machine on all samples is a good guess at the one on its best samples.
        machines.start([dual.coef[place] for dual in single.duals])
        solution = machines.solve(gates)
        coef = solution.coef
        intercept = np.array([dual.intercept for dual in solution.duals])
        used = coef
        if self.gating == "literal":
            used = coef * g[rows][:, np.newaxis]
            if self.intercept == "drop":
                intercept = np.zeros(tasks)
        kernel = GatedKernel([single.kernel], Constant(), np.ones(1), names=[name])
        expansion = Expansion.make(kernel, gram, used, np.zeros(tasks))
        gram.release()
        support = np.flatnonzero((coef != 0).any(axis=1))
        expert = Expert(
            name,
            single.kernel,
            rows,
            rows[support],
            coef[support],
            intercept,
            expansion,
            self.gating == "kernel",
        )
        steps = max(dual.n_iter for dual in solution.duals)
        return expert, solution.objective, steps

    def _keep(self, X: Any, counted: Array, training: Training, learned: Vote) -> None:
        experts = learned.experts
        support = np.unique(np.concatenate([expert.support for expert in experts]))
        tasks = len(training.problems)
        coef = np.zeros((len(experts), tasks, len(support)))
        for i, expert in enumerate(experts):
            coef[i][:, np.searchsorted(support, expert.support)] = expert.coef.T
        self.experts_ = experts
        self.support_ = counted[support]
        self.support_vectors_ = X[self.support_]
        self.dual_coef_ = coef[:, 0] if tasks == 1 else coef
        # What experts say is squashed and weighed before it is summed: nothing is left to add.
        self.intercept_ = np.zeros(tasks)
        self.support_fraction_ = len(support) / len(counted)
        self.history_ = np.array([learned.objective])
        self.n_iter_ = learned.n_iter
        self._trust = learned.trust

    def _decide(self, X: Any) -> Array:
        return self._parts(X).sum(axis=1)

    def _gates(self, X: Any) -> tuple[Any, Array, Array | None]:
        X = self._validated(X)
        _, present = split_missing(self.kernels_, self.kernel_names_, X)
        return X, self._trust(X, present), present

    def gate(self, X: Any) -> Array:
        """How far each kernel is trusted at each sample; rows sum to one.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        trust : array of shape (n_samples, n_kernels)
        """
        return self._gates(X)[1]

    def _parts(self, X: Any) -> Array:
        X, g, present = self._gates(X)
        parts = np.zeros((X.shape[0], len(self.experts_), len(self.intercept_)))
        count = np.full(X.shape[0], g.shape[1]) if present is None else present.sum(axis=1)
        for i, expert in enumerate(self.experts_):
            rows = np.flatnonzero(g[:, i] > 0)
            if len(rows):
                seen = X if len(rows) == X.shape[0] else X[rows]
                said = self._squash(expert.decide(seen, (count * g[:, i])[rows]))
                parts[rows, i] = g[rows, i, np.newaxis] * said
        return parts

    def _squash(self, decision: Array) -> Array:
        return decision


def _constant_decision(problems: list[Problem]) -> Array | None:
    """Decision of an expert without two classes to tell apart: 0, or the one class it knows."""
    if len(problems[0].target) == 0:
        return np.zeros(len(problems))
    if problems[0].is_classification:
        target = np.column_stack([problem.target for problem in problems])
        if (target == target[0]).all():
            return np.asarray(target[0])
    return None


@dataclass(eq=False, repr=False)
class LDMKLClassifier(_LDMKL, KernelClassifier):
    """Localized decisions: one expert for each kernel, trained where it succeeds.

    A machine is trained with every kernel alone and its success is regressed on the samples;
    a softmax over the kernels makes gates ``g_i(x)`` of it. Every machine is then trained again on
    the samples that trust it, and the decision is the gated vote ``sum_i g_i(x) tanh f_i(x)``.

    Parameters
    ----------
    kernels : list or mapping of kernels, str or None, default=None
        None is linear, quadratic and RBF on comparable scales (:func:`lokl.kernels.standard`).
        A mapping gives the kernels names.
    C : float, default=1.0
        Cost of margin violations.
    gating : {"kernel", "none", "weight", "literal"}, default="kernel"
        What retraining makes of the gate: it scales the kernel, nothing, it scales the cost of the
        samples, or it multiplies the finished coefficients. The last is the printed equation and
        does badly.
    temperature : float, default=1.0
        Below 1 gates are sharper.
    margin : float, default=0.05
        An expert is trained on the samples where its gate is above ``1 / n_kernels - margin``. 0 is
        the published rule, under which the noise of the regressions decides between kernels that
        are equally good.
    clip : bool, default=False
        Limit regressed success to [0, 1] before the softmax.
    intercept : {"keep", "drop"}, default="keep"
        Of experts under "literal" gating.
    success : {"train", "cv"}, default="train"
        Success of a kernel on the training samples themselves, or on samples left out in turn (five
        folds).
    regressor : "same" or Kernel, default="same"
        Kernel of the regressions of success: that of the machine, or one for all.
    closeness : {"decay", "within"}, default="decay"
        Success in regression: ``exp(-residual / median residual)``, or whether the residual is
        within `epsilon`. Not used for classes.
    solver : {"exact", "libsvm", "mwu"} or Solver, default="exact"
    tol : float, default=1e-3
        Largest violation of the optimality conditions that a machine leaves.
    max_iter : int, default=-1
        Limit on the steps of the solver, -1 for none.
    cache_size : float, default=512
        Megabytes for rows of the Gram matrix.
    class_weight : dict, "balanced" or None, default=None
        Factors of `C` by class.
    random_state : int, RandomState or None, default=None
    n_jobs : int or None, default=None
        Kernels that are worked on at a time, in threads that share `cache_size`.
    verbose : int, default=0
        1 logs a line about the fit to the logger ``lokl``.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    experts_ : list of Expert
        One for each kernel: the samples it was trained on, its support and coefficients.
    kernels_, kernel_names_ : list
        Kernels with learned settings, and their names.
    support_ : array of shape (n_support,)
        Rows of the training samples that carry an expert.
    support_vectors_ : {array, CSR matrix} of shape (n_support, n_features)
    dual_coef_ : array of shape (n_kernels, n_support) or (n_kernels, n_machines, n_support)
        Signed coefficients of the experts.
    intercept_ : array of shape (n_machines,)
        Zero: the parts of the kernels are all of the decision.
    support_fraction_ : float
    history_ : array
        Dual objective, summed over the experts.
    n_iter_ : int
        Steps of the solver.
    n_features_in_ : int
    feature_names_in_ : array of str
        Where the training samples came with column names.

    Notes
    -----
    There is no final machine, and no kernel matrix of more than one kernel: the method suits large
    data and views of very different kinds.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from lokl import LDMKLClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), LDMKLClassifier(random_state=0)).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    >>> [expert.name for expert in model[-1].experts_]
    ['linear', 'poly2', 'rbf']
    """

    def _squash(self, decision: Array) -> Array:
        return np.tanh(decision)


@dataclass(eq=False, repr=False)
class LDMKLRegressor(_LDMKL, KernelRegressor):
    """Localized decisions for one or several numeric targets: the gated mean of the experts.

    Settings and attributes are those of :class:`LDMKLClassifier`, and

    Parameters
    ----------
    epsilon : float, default=0.1
        Residuals up to here are free.

    Attributes
    ----------
    dual_coef_ : array of shape (n_kernels, n_support) or (n_kernels, n_targets, n_support)
    intercept_ : array of shape (n_targets,)

    Examples
    --------
    >>> import numpy as np
    >>> from lokl import LDMKLRegressor
    >>> X = np.linspace(0, 6, 60)[:, np.newaxis]
    >>> from lokl.kernels import RBF
    >>> model = LDMKLRegressor([RBF(0.2), RBF(2.0)], C=10).fit(X, np.sin(X[:, 0]))
    >>> bool(model.score(X, np.sin(X[:, 0])) > 0.8)
    True
    """
