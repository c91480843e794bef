"""LD-MKL: one expert for each kernel, trained on samples where it succeeds, and a gated vote."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from lokl._arrays import Array, Samples
from lokl.base import Classifier, Regressor, Survival, Training, setting, settings
from lokl.base.diagnostics import warn_if_saturated
from lokl.base.model import Model, SupportSet
from lokl.base.settings import FLAG, NOT_NEGATIVE, POSITIVE, one_of
from lokl.gates.base import masked_softmax
from lokl.gram import Expansion
from lokl.gram.gated_kernel import average_kernel
from lokl.kernels import Kernel
from lokl.methods.single_kernel import (
    ExpertVote,
    RegressedSuccess,
    SingleKernelFit,
    SuccessEstimator,
)
from lokl.solvers import Machines, Problem, Solution
from lokl.solvers.squared import leave_one_out

# Gates this close to 1/m count as equal to it: which side they fall on is rounding.
_TIE = 1e-9


def softmax_weights(success: Array, temperature: float, clip: bool) -> Array:
    """Return the softmax of success over the kernels; 0 for missing views (minus infinity)."""
    missing = np.isneginf(success)
    values = np.clip(success, 0.0, 1.0) if clip else success
    return masked_softmax(np.where(missing, -np.inf, values) / temperature, ~missing)


# New samples that are prepared for all kernels at a time.
_BLOCK = 8192


@dataclass(frozen=True, eq=False)
class Expert:
    """SVMs of one kernel, trained on the samples where its weight is high.

    Attributes
    ----------
    name : str
        Of the kernel.
    kernel : Kernel
    rows : array of int
        Training samples it was trained on.
    support : array of int
        Training samples that are its support vectors.
    coef : array of shape (n_support, n_tasks)
        Signed coefficients.
    intercept : array of shape (n_tasks,)
    expansion : Expansion or None
        Decision function without the gate of the new sample. None if no SVM could be trained; the
        decision is then the intercept, which is zero for an expert that abstains.
    gated : bool
        Whether the kernel sum of a sample is scaled by its own gate.

    See Also
    --------
    lokl.LDMKLClassifier : Its attribute ``experts_`` contains one for each kernel.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from lokl import LDMKLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LDMKLClassifier(["linear", "rbf"], random_state=0).fit(X, y)
    >>> [(expert.name, expert.intercept.shape) for expert in model.experts_]
    [('linear', (3,)), ('rbf', (3,))]
    """

    name: str
    kernel: Kernel
    rows: Array
    support: Array
    coef: Array
    intercept: Array
    expansion: Expansion | None
    gated: bool

    def decide(self, X: Any, gate: Array) -> Array:
        """Return decisions (n_samples, n_tasks) of samples with its view.

        Parameters
        ----------
        X : Samples, or {array, CSR matrix} of shape (n_samples, n_features)
        gate : array of shape (n_samples,)
            Weight of the expert times the number of kernels.
        """
        samples = X if isinstance(X, Samples) else Samples.of(X)
        if self.expansion is None:
            return self.decide_from(np.zeros((samples.n_samples, len(self.intercept))), gate)
        return self.decide_from(self.expansion(samples), gate)

    def decide_from(self, values: Array, gate: Array) -> Array:
        """Return decisions from known kernel sums, (n_samples, n_tasks)."""
        gated = values * gate[:, np.newaxis] if self.gated else values
        return np.asarray(gated + self.intercept)


@dataclass(frozen=True, eq=False, kw_only=True)
class Vote(ExpertVote):
    """``f(x) = sum_i g_i(x) squash(f_i(x))`` with ``g`` a softmax of regressed success."""

    success: RegressedSuccess
    temperature: float  # of the softmax
    clip: bool  # whether success is clipped to [0, 1] before the softmax
    squash: Callable[[Array], Array] | None  # applied to decisions before they are weighted

    def decide(self, samples: Samples) -> Array:
        return np.asarray(self.contributions(samples).sum(axis=1))

    def weights(self, samples: Samples) -> Array:
        return softmax_weights(self.success(samples), self.temperature, self.clip)

    def contributions(self, samples: Samples) -> Array:
        return np.concatenate([self._contributions(block) for block in samples.blocks(_BLOCK)])

    def _contributions(self, samples: Samples) -> Array:
        success, prepared = self.success.prepared(samples)
        g = softmax_weights(success, self.temperature, self.clip)
        # The weights of a sample without some views are divided among fewer kernels.
        count = np.isfinite(success).sum(axis=1)
        parts = []
        for i, expert in enumerate(self.experts):
            rows = samples.rows_seen_by(i)
            values = self._expansion_at(i, samples, prepared[i])
            decision = expert.decide_from(values, (count * g[:, i])[rows])
            parts.append(g[rows, i, np.newaxis] * (self.squash or np.asarray)(decision))
        return samples.by_kernel(parts)

    def _expansion_at(self, i: int, samples: Samples, points: Any) -> Array:
        """Return kernel sums of expert `i`, on the points of its regressor if possible."""
        expansion = self.experts[i].expansion
        if expansion is None:
            return np.zeros((points.n_samples, self.n_tasks))
        if expansion.shares_layout_with(self.success.regressors[i]):
            return np.asarray(expansion.at(points))
        return np.asarray(expansion(samples.seen_by(i)))

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes by name.

        Attributes
        ----------
        intercept_ : array of shape (n_machines,)
            Zero: the contributions of the kernels are the whole decision.
        """
        return {**super().attributes(), "intercept_": np.zeros(self.n_tasks)}


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
        fits, _, success, regressors = self._learn_success(training)
        warn_if_saturated((single.problems, single.solution) for single in fits)
        g = softmax_weights(success, self.temperature, self.clip)
        # The weights of a sample without some views are divided among fewer kernels.
        seen = np.isfinite(success).sum(axis=1)
        retrained = [
            self._retrain(training, i, single, g[:, i], seen) for i, single in enumerate(fits)
        ]
        experts = [expert for expert, _, _ in retrained]
        solutions = [solution for _, solution, _ in retrained if solution is not None]
        positions = np.unique(np.concatenate([expert.support for expert in experts]))
        vote = Vote(
            experts=experts,
            support=SupportSet.at(positions, training.samples, training.rows),
            objective=sum(solution.objective for solution in solutions),
            n_iter=max([1, *(solution.n_iter for solution in solutions)]),
            training_gates=g,
            success=regressors,
            temperature=self.temperature,
            clip=self.clip,
            squash=np.tanh if training.is_classification else None,
        )
        left_out = [(expert, decision) for expert, _, decision in retrained]
        return replace(vote, left_out=_vote_left_out(vote, training.samples, g, left_out))

    def _retrain(
        self, training: Training, i: int, single: SingleKernelFit, gate: Array, seen: Array
    ) -> tuple[Expert, Solution | None, Array | None]:
        """Train the SVMs of kernel `i` on samples with a high weight.

        Also returns the leave-one-out decisions about these samples, if the loss is squared.

        Parameters
        ----------
        training : Training
        i : int
        single : SingleKernelFit
            SVMs of the kernel on all samples that have its view.
        gate : array of shape (n_samples,)
            Weights of the expert.
        seen : array of int of shape (n_samples,)
            Number of kernels whose view a sample has.
        """
        rows = np.flatnonzero((gate > 1.0 / seen - self.margin - _TIE) & (gate > 0))
        gate, seen = gate[rows], seen[rows]
        kernel, name = training.kernels[i], training.names[i]
        problems = [problem.take(rows) for problem in training.problems]
        constant, no_tasks = _constant_decision(problems), np.zeros(len(problems))
        if constant is not None:
            support, coef = np.empty(0, dtype=np.intp), np.empty((0, len(problems)))
            return Expert(name, kernel, rows, support, coef, constant, None, False), None, None
        gates = np.ones((len(rows), 1))
        if self.gating == "kernel":
            gates = (seen * gate)[:, np.newaxis]
        elif self.gating == "weight":
            problems = [problem.weighted(seen * gate) for problem in problems]
        positions, inner = np.searchsorted(single.rows, rows), single.gram.inner
        if single.kept or len(positions) < len(single.rows):
            inner = inner.take(positions)
        # The SVMs on all samples are good warm starts.
        start = [dual.coef[positions] for dual in single.solution.duals]
        machines = Machines(training.solver, problems, start)
        solution = machines.solve(inner.gated(single.gram.kernels, gates))
        coef, intercept = solution.coef, solution.intercept
        if self.gating == "literal":
            coef = coef * gate[:, np.newaxis]
            intercept = no_tasks if self.intercept == "drop" else intercept
        expansion = solution.gram.expansion(average_kernel([kernel], [name]), coef, no_tasks)
        left_out = None if self.gating == "literal" else leave_one_out(solution.gram, problems)
        solution.gram.release()
        support = np.flatnonzero((solution.coef != 0).any(axis=1))
        dual_coef, gated = solution.coef[support], self.gating == "kernel"
        expert = Expert(name, kernel, rows, rows[support], dual_coef, intercept, expansion, gated)
        return expert, solution, left_out


def _vote_left_out(
    vote: Vote, samples: Samples, g: Array, left_out: list[tuple[Expert, Array | None]]
) -> Array | None:
    """Return the vote of experts that were trained without the sample, (n_samples, n_tasks).

    Weights and experts that were not trained on the sample are those of the vote. None if an expert
    has no leave-one-out decisions.
    """
    trained = [expert.expansion is not None for expert, _ in left_out]
    if not any(trained) or any(
        decision is None and was for (_, decision), was in zip(left_out, trained, strict=True)
    ):
        return None
    parts = vote.contributions(samples)
    for i, (expert, decision) in enumerate(left_out):
        if decision is not None:
            rows = expert.rows
            parts[rows, i] = g[rows, i, np.newaxis] * (vote.squash or np.asarray)(decision)
    return np.asarray(parts.sum(axis=1))


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
       https://arxiv.org/abs/1603.01374

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import LDMKLClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = LDMKLClassifier(random_state=0).fit(scale(X), y)
    >>> round(model.score(scale(X), y), 2)
    1.0
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
       https://arxiv.org/abs/1603.01374

    Examples
    --------
    >>> import numpy as np
    >>> from lokl import LDMKLRegressor
    >>> X = np.linspace(0, 6, 60)[:, np.newaxis]
    >>> from lokl.kernels import RBF
    >>> model = LDMKLRegressor([RBF(0.2), RBF(2.0)], C=10).fit(X, np.sin(X[:, 0]))
    >>> round(model.score(X, np.sin(X[:, 0])), 2)
    0.99
    """


@settings
class LDMKLSurvival(_LDMKL, Survival):
    """Localized decisions on censored times: experts trained where they succeed, and a gated vote.

    As :class:`LDMKLRegressor`. A censored sample has a residual only if its predicted time is too
    early.

    References
    ----------
    .. [1] J. Moeller, S. Swaminathan, S. Venkatasubramanian. A Unified View of Localized Kernel
       Learning. SIAM International Conference on Data Mining (SDM), 2016.
       https://arxiv.org/abs/1603.01374
    .. [2] P. K. Shivaswamy, W. Chu, M. Jansche. A Support Vector Approach to Censored Targets. IEEE
       International Conference on Data Mining (ICDM), 655-660, 2007.
       https://doi.org/10.1109/ICDM.2007.93

    Examples
    --------
    >>> import numpy as np
    >>> import lokl
    >>> from lokl.kernels import RBF
    >>> rng = np.random.RandomState(0)
    >>> X, ends = rng.normal(size=(100, 3)), rng.exponential(size=(100, 2))
    >>> event, censored = ends[:, 0] * np.exp(-2 * X[:, 0]), 3 * ends[:, 1]
    >>> y = lokl.survival_target(event <= censored, np.minimum(event, censored))
    >>> model = lokl.LDMKLSurvival([RBF(0.05), RBF(0.5)]).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.85
    """
