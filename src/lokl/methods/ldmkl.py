"""LD-MKL: one expert for each kernel, trained where it succeeds, and a gated vote."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lokl._arrays import Array
from lokl.base import Classifier, Regressor, Training, setting, settings
from lokl.base.diagnostics import all_saturated
from lokl.base.model import FitDetails, Model, SupportSet
from lokl.base.settings import FLAG, NOT_NEGATIVE, POSITIVE, one_of
from lokl.gram import Expansion
from lokl.gram.gated_kernel import average_kernel
from lokl.methods.success import (
    Expert,
    JudgedKernel,
    RegressedSuccess,
    SuccessEstimator,
    Vote,
    at_training,
    learn_success,
    softmax_trust,
)
from lokl.solvers import Machines, Problem, Solution, Solver

# Gates this close to 1/m count as equal to it: which side they fall on is rounding.
_TIE = 1e-9


@dataclass(frozen=True, eq=False)
class _Chosen:
    """The samples that trust a kernel."""

    rows: Array  # training samples
    gate: Array  # (len(rows),)
    scaled: Array  # gates times the number of kernels that share the trust of the sample


@settings
class _LDMKL(SuccessEstimator):
    """Experts where they succeed, weighed by where they shall succeed."""

    gating: str = setting(
        "kernel",
        one_of("kernel", "none", "weight", "literal"),
        "What retraining makes of the gate: it scales the kernel, nothing, it scales the cost of "
        "the samples, or it multiplies the finished coefficients. The last is the printed equation "
        "and does badly.",
    )
    temperature: float = setting(1.0, POSITIVE, "Below 1 gates are sharper.")
    margin: float = setting(
        0.05,
        NOT_NEGATIVE,
        "An expert is trained on the samples where its gate is above ``1 / n_kernels - margin``. 0 "
        "is the published rule, under which the noise of the regressions decides between kernels "
        "that are equally good.",
    )
    clip: bool = setting(False, FLAG, "Limit regressed success to [0, 1] before the softmax.")
    intercept: str = setting("keep", one_of("keep", "drop"), 'Of experts under "literal" gating.')

    _model_class: ClassVar[type[Model]] = Vote

    def _learn(self, training: Training) -> Vote:
        judged = learn_success(self, training)
        saturated = all_saturated(
            (problem.take(own.alone.rows), dual, own.alone.gram.diag)
            for own in judged
            for problem, dual in zip(training.problems, own.alone.solution.duals, strict=True)
        )
        success = at_training(judged, training.n_samples)
        g = softmax_trust(success, self.temperature, self.clip)
        # A sample that lacks views shares its trust among fewer kernels.
        seen = np.isfinite(success).sum(axis=1)
        selected = (g > (1.0 / seen)[:, np.newaxis] - self.margin - _TIE) & (g > 0)
        experts, objective, steps = [], 0.0, 1
        for i, own in enumerate(judged):
            rows = np.flatnonzero(selected[:, i])
            chosen = _Chosen(rows, g[rows, i], (seen * g[:, i])[rows])
            expert, solution = self._retrain(training, own, chosen)
            experts.append(expert)
            if solution is not None:
                objective += solution.objective
                steps = max(steps, solution.n_iter)
        places = np.unique(np.concatenate([expert.support for expert in experts]))
        return Vote(
            RegressedSuccess([own.regressor for own in judged]),
            self.temperature,
            self.clip,
            experts,
            np.tanh if training.is_classification else None,
            SupportSet.at(places, training.samples, training.rows),
            objective,
            steps,
            FitDetails(g, saturated),
        )

    def _retrain(
        self, training: Training, judged: JudgedKernel, chosen: _Chosen
    ) -> tuple[Expert, Solution | None]:
        """Train a kernel's machines on the samples that trust it."""
        i = judged.alone.number
        kernel, name, rows = training.kernels[i], training.names[i], chosen.rows
        problems = [problem.take(rows) for problem in training.problems]
        constant = _constant_decision(problems)
        if constant is not None:
            nobody, none = np.empty(0, dtype=np.intp), np.empty((0, len(problems)))
            return Expert(name, kernel, rows, nobody, none, constant, None, False), None
        solution = self._solve(training.solver, judged, problems, chosen)
        coef, intercept = solution.coef, solution.intercept
        if self.gating == "literal":
            coef = coef * chosen.gate[:, np.newaxis]
            if self.intercept == "drop":
                intercept = np.zeros(len(problems))
        expansion = Expansion.make(
            average_kernel([kernel], [name]), solution.gram, coef, np.zeros(len(problems))
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
        self, solver: Solver, judged: JudgedKernel, problems: list[Problem], chosen: _Chosen
    ) -> Solution:
        alone = judged.alone
        gates = np.ones((len(chosen.rows), 1))
        if self.gating == "kernel":
            gates = chosen.scaled[:, np.newaxis]
        elif self.gating == "weight":
            problems = [problem.weighted(chosen.scaled) for problem in problems]
        place = np.searchsorted(alone.rows, chosen.rows)
        inner = alone.gram.inner
        if alone.kept or len(place) < len(alone.rows):
            inner = inner.take(place)
        # The machine on all samples is a good guess at the one on its best samples.
        start = [dual.coef[place] for dual in alone.solution.duals]
        return Machines(solver, problems, start).solve(inner.gated(alone.gram.kernels, gates))


def _constant_decision(problems: list[Problem]) -> Array | None:
    """Decision of an expert without two classes to tell apart: 0, or the one class it knows."""
    if len(problems[0].target) == 0:
        return np.zeros(len(problems))
    if problems[0].is_classification:
        target = np.column_stack([problem.target for problem in problems])
        if (target == target[0]).all():
            return np.asarray(target[0])
    return None


@settings
class LDMKLClassifier(_LDMKL, Classifier):
    """Localized decisions: one expert for each kernel, trained where it succeeds.

    A machine is trained with every kernel alone and its success is regressed on the samples;
    a softmax over the kernels makes gates ``g_i(x)`` of it. Every machine is then trained again on
    the samples that trust it, and the decision is the gated vote ``sum_i g_i(x) tanh f_i(x)``.

    Notes
    -----
    There is no final machine, and no kernel matrix of more than one kernel: the method suits large
    data and views of very different kinds.

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
