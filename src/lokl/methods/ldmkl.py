"""LD-MKL: one expert for each kernel, trained on samples where it succeeds, and a gated vote."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lokl._arrays import Array
from lokl.base import Classifier, Regressor, Training, setting, settings
from lokl.base.diagnostics import all_saturated
from lokl.base.model import FitDetails, Model, SupportSet
from lokl.base.settings import FLAG, NOT_NEGATIVE, POSITIVE, one_of
from lokl.gram.gated_kernel import average_kernel
from lokl.methods.success import (
    Expert,
    KernelSuccess,
    RegressedSuccess,
    SuccessEstimator,
    Vote,
    learn_success,
    softmax_weights,
    success_at_training,
)
from lokl.solvers import Machines, Problem, Solution, Solver

# Gates this close to 1/m count as equal to it: which side they fall on is rounding.
_TIE = 1e-9


@dataclass(frozen=True, eq=False)
class _Chosen:
    """Training samples with a high weight for one kernel."""

    rows: Array  # positions of the samples
    gate: Array  # (len(rows),), weights of the kernel
    scaled: Array  # weights times the number of kernels that the sample has


@settings
class _LDMKL(SuccessEstimator):
    """Experts trained where they succeed, weighted by their predicted success."""

    gating: str = setting(
        "kernel",
        one_of("kernel", "none", "weight", "literal"),
        "Use of the gate when experts are retrained: it scales the kernel, is ignored, scales the "
        "cost of the samples, or multiplies the final coefficients. The last is the published "
        "equation and performs badly.",
    )
    temperature: float = setting(1.0, POSITIVE, "Of the softmax; below 1 weights are sharper.")
    margin: float = setting(
        0.05,
        NOT_NEGATIVE,
        "An expert is trained on samples with a weight above ``1 / n_kernels - margin``. 0 is the "
        "published rule, under which noise of the regressions decides between kernels that are "
        "equally good.",
    )
    clip: bool = setting(False, FLAG, "Whether success is clipped to [0, 1] before the softmax.")
    intercept: str = setting(
        "keep",
        one_of("keep", "drop"),
        'Whether experts keep their intercepts under "literal" gating.',
    )

    _model_class: ClassVar[type[Model]] = Vote

    def _learn(self, training: Training) -> Vote:
        successes = learn_success(self, training)
        saturated = all_saturated(
            (problem.take(item.single.rows), dual, item.single.gram.diag)
            for item in successes
            for problem, dual in zip(training.problems, item.single.solution.duals, strict=True)
        )
        success = success_at_training(successes, training.n_samples)
        g = softmax_weights(success, self.temperature, self.clip)
        # The weights of a sample without some views are divided among fewer kernels.
        seen = np.isfinite(success).sum(axis=1)
        selected = (g > (1.0 / seen)[:, np.newaxis] - self.margin - _TIE) & (g > 0)
        experts, objective, steps = [], 0.0, 1
        for i, item in enumerate(successes):
            rows = np.flatnonzero(selected[:, i])
            chosen = _Chosen(rows, g[rows, i], (seen * g[:, i])[rows])
            expert, solution = self._retrain(training, item, chosen)
            experts.append(expert)
            if solution is not None:
                objective += solution.objective
                steps = max(steps, solution.n_iter)
        positions = np.unique(np.concatenate([expert.support for expert in experts]))
        return Vote(
            RegressedSuccess([item.regressor for item in successes]),
            self.temperature,
            self.clip,
            experts,
            np.tanh if training.is_classification else None,
            SupportSet.at(positions, training.samples, training.rows),
            objective,
            steps,
            FitDetails(g, saturated),
        )

    def _retrain(
        self, training: Training, success: KernelSuccess, chosen: _Chosen
    ) -> tuple[Expert, Solution | None]:
        """Train the SVMs of a kernel on samples where its weight is high."""
        i = success.single.index
        kernel, name, rows = training.kernels[i], training.names[i], chosen.rows
        problems = [problem.take(rows) for problem in training.problems]
        constant = _constant_decision(problems)
        if constant is not None:
            support, coef = np.empty(0, dtype=np.intp), np.empty((0, len(problems)))
            return Expert(name, kernel, rows, support, coef, constant, None, False), None
        solution = self._solve(training.solver, success, problems, chosen)
        coef, intercept = solution.coef, solution.intercept
        if self.gating == "literal":
            coef = coef * chosen.gate[:, np.newaxis]
            if self.intercept == "drop":
                intercept = np.zeros(len(problems))
        expansion = solution.gram.expansion(
            average_kernel([kernel], [name]), coef, np.zeros(len(problems))
        )
        solution.gram.release()
        support = np.flatnonzero((solution.coef != 0).any(axis=1))
        expert = Expert(
            name,
            kernel,
            rows,
            rows[support],
            solution.coef[support],
            intercept,
            expansion,
            self.gating == "kernel",
        )
        return expert, solution

    def _solve(
        self, solver: Solver, success: KernelSuccess, problems: list[Problem], chosen: _Chosen
    ) -> Solution:
        single = success.single
        gates = np.ones((len(chosen.rows), 1))
        if self.gating == "kernel":
            gates = chosen.scaled[:, np.newaxis]
        elif self.gating == "weight":
            problems = [problem.weighted(chosen.scaled) for problem in problems]
        positions = np.searchsorted(single.rows, chosen.rows)
        inner = single.gram.inner
        if single.kept or len(positions) < len(single.rows):
            inner = inner.take(positions)
        # The SVMs on all samples are good warm starts.
        start = [dual.coef[positions] for dual in single.solution.duals]
        return Machines(solver, problems, start).solve(inner.gated(single.gram.kernels, gates))


def _constant_decision(problems: list[Problem]) -> Array | None:
    """Return the decision of an expert with samples of one class or none, otherwise None."""
    if len(problems[0].target) == 0:
        return np.zeros(len(problems))
    if problems[0].is_classification:
        target = np.column_stack([problem.target for problem in problems])
        if (target == target[0]).all():
            return np.asarray(target[0])
    return None


@settings
class LDMKLClassifier(_LDMKL, Classifier):
    """Localized decisions: one expert for each kernel, trained on samples where it succeeds.

    SVMs are trained on every kernel alone, and their success is regressed on the samples. A softmax
    over the kernels turns predicted success into weights ``g_i(x)``. The SVMs are then trained
    again on samples where their weight is high. The decision is the weighted vote
    ``sum_i g_i(x) tanh f_i(x)``.

    Notes
    -----
    There is no SVM on a combined kernel matrix, so the method suits large data and views of very
    different kinds.

    References
    ----------
    .. [1] J. Moeller, S. Swaminathan, S. Venkatasubramanian. A Unified View of Localized Kernel
       Learning. SIAM International Conference on Data Mining (SDM), 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import LDMKLClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = LDMKLClassifier(random_state=0).fit(scale(X), y)
    >>> bool(model.score(scale(X), y) > 0.95)
    True
    >>> [expert.name for expert in model.experts_]
    ['linear', 'poly2', 'rbf']
    """


@settings
class LDMKLRegressor(_LDMKL, Regressor):
    """Localized decisions for one or several numeric targets: the gated mean of the experts.

    References
    ----------
    .. [1] J. Moeller, S. Swaminathan, S. Venkatasubramanian. A Unified View of Localized Kernel
       Learning. SIAM International Conference on Data Mining (SDM), 2016.

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
