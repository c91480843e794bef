"""Average of experts: SVMs on each kernel alone, each with a cost of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from lokl._arrays import Array, Samples
from lokl.base import (
    Classifier,
    KernelEstimator,
    Regressor,
    Survival,
    Training,
    setting,
    settings,
)
from lokl.base.diagnostics import warn_if_saturated
from lokl.base.model import Model, SupportSet
from lokl.base.settings import Rule
from lokl.gram.gated_kernel import average_kernel
from lokl.methods.ldmkl import Expert
from lokl.methods.single_kernel import (
    ExpertVote,
    SingleKernelFit,
    for_each_kernel,
)
from lokl.solvers import Solver
from lokl.solvers.squared import leave_one_out

# New samples that are prepared for all kernels at a time.
_BLOCK = 8192


@dataclass(frozen=True, eq=False, kw_only=True)
class AverageVote(ExpertVote):
    """``f(x) = (1/m) sum_i f_i(x)`` over the experts whose view the sample has."""

    def decide(self, samples: Samples) -> Array:
        return np.asarray(self.contributions(samples).sum(axis=1))

    def weights(self, samples: Samples) -> Array:
        seen = np.zeros((samples.n_samples, len(self.experts)))
        for i in range(len(self.experts)):
            seen[samples.rows_seen_by(i), i] = 1.0
        return np.asarray(seen / np.maximum(seen.sum(axis=1, keepdims=True), 1.0))

    def contributions(self, samples: Samples) -> Array:
        return np.concatenate([self._contributions(block) for block in samples.blocks(_BLOCK)])

    def _contributions(self, samples: Samples) -> Array:
        return self.weighted(
            samples,
            [
                expert.decide(samples.seen_by(i), np.ones(len(samples.rows_seen_by(i))))
                for i, expert in enumerate(self.experts)
            ],
        )

    def weighted(self, samples: Samples, decisions: Sequence[Array]) -> Array:
        """Return the decisions of all experts times their weights.

        Parameters
        ----------
        samples : Samples
        decisions : sequence of arrays of shape (n_seen, n_tasks)
            Of each expert, about the samples that have its view.

        Returns
        -------
        contributions : array of shape (n_samples, n_kernels, n_tasks)
        """
        return samples.by_kernel([*decisions]) * self.weights(samples)[:, :, np.newaxis]

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes of an estimator with this model, by name.

        Attributes
        ----------
        intercept_ : array of shape (n_machines,)
            Zero: the contributions of the kernels are the whole decision.
        """
        return {**super().attributes(), "intercept_": np.zeros(self.n_tasks)}


def _check_factors(name: str, value: Any) -> None:
    values = [*value.values()] if isinstance(value, Mapping) else value
    if value is not None and (
        isinstance(values, str)
        or not isinstance(values, Sequence)
        or not all(v > 0 for v in values)
    ):
        raise ValueError(
            f"{name} must be one positive number for each kernel, a mapping of kernel names to "
            f"them, or None, got {value!r}"
        )


@settings
class ExpertAverage(KernelEstimator):
    """SVMs on each kernel alone, whose decisions are averaged."""

    cost_factors: Any = setting(
        None,
        Rule("list of float, mapping of str to float, or None", _check_factors),
        "Factor of `C` for each kernel, in their order or by name. None is 1 for all.",
    )

    _model_class: ClassVar[type[Model]] = AverageVote

    def _learn(self, training: Training) -> AverageVote:
        factors = self._factors(training.names)

        def fit(i: int, solver: Solver) -> tuple[Expert, SingleKernelFit, Array | None]:
            weighted = [
                problem.weighted(np.full(training.n_samples, factors[i]))
                for problem in training.problems
            ]
            solver = solver.precise_for(weighted)
            single = SingleKernelFit.of(replace(training, problems=weighted), i, solver)
            expert, left_out = (
                _expert(training, i, single),
                leave_one_out(single.gram, single.problems),
            )
            if not single.kept:
                single.gram.release()
            return expert, single, left_out

        experts, fits, decisions = zip(*for_each_kernel(training, self.n_jobs, fit), strict=True)
        warn_if_saturated((single.problems, single.solution) for single in fits)
        solutions = [single.solution for single in fits]
        positions = np.unique(np.concatenate([expert.support for expert in experts]))
        vote = AverageVote(
            experts=experts,
            support=SupportSet.at(positions, training.samples, training.rows),
            objective=sum(solution.objective for solution in solutions),
            n_iter=max(1, *(solution.n_iter for solution in solutions)),
        )
        if any(decision is None for decision in decisions):
            return vote
        left_out = vote.weighted(training.samples, decisions).sum(axis=1)
        return replace(vote, left_out=left_out)

    def _factors(self, names: Sequence[str]) -> list[float]:
        """Return the factor of each kernel."""
        given = self.cost_factors
        if given is None:
            return [1.0] * len(names)
        is_mapping = isinstance(given, Mapping)
        if set(given) != set(names) if is_mapping else len(given) != len(names):
            raise ValueError(
                f"cost_factors must have one factor for each of the kernels {list(names)}, "
                f"got {given!r}"
            )
        return [float(given[name]) for name in names] if is_mapping else [*map(float, given)]


def _expert(training: Training, i: int, single: SingleKernelFit) -> Expert:
    """Return the expert of kernel `i` from its SVMs."""
    kernel, name, solution = training.kernels[i], training.names[i], single.solution
    no_tasks = np.zeros(solution.coef.shape[1])
    expansion = solution.gram.expansion(average_kernel([kernel], [name]), solution.coef, no_tasks)
    support = np.flatnonzero((solution.coef != 0).any(axis=1))
    return Expert(
        name,
        kernel,
        single.rows,
        single.rows[support],
        solution.coef[support],
        solution.intercept,
        expansion,
        False,
    )


@settings
class ExpertAverageClassifier(ExpertAverage, Classifier):
    """Classification by the average of SVMs on single kernels, each with its own cost.

    ``f(x) = (1/m) sum_i f_i(x)``, with one SVM ``f_i`` for each kernel. The experts share nothing,
    so that kernels on different scalings of the columns, or of different smoothness, keep their own
    cost. With the squared loss this is an average of kernel ridge regressions of the class
    indicators, the model that :class:`lokl.AutoMKLClassifier` fits to one table. A sample without a
    view is decided by the experts of the others.

    References
    ----------
    .. [1] J. Kittler, M. Hatef, R. P. W. Duin, J. Matas. On Combining Classifiers. IEEE
       Transactions on Pattern Analysis and Machine Intelligence 20(3):226-239, 1998.
       https://doi.org/10.1109/34.667881

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from lokl import ExpertAverageClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ExpertAverageClassifier(["linear", "rbf"], cost_factors=[1.0, 10.0]).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.97
    """


@settings
class ExpertAverageRegressor(ExpertAverage, Regressor):
    """Regression by the average of SVMs on single kernels, each with its own cost.

    ``f(x) = (1/m) sum_i f_i(x)``, with one SVM ``f_i`` for each kernel and target.

    References
    ----------
    .. [1] J. Kittler, M. Hatef, R. P. W. Duin, J. Matas. On Combining Classifiers. IEEE
       Transactions on Pattern Analysis and Machine Intelligence 20(3):226-239, 1998.
       https://doi.org/10.1109/34.667881

    Examples
    --------
    >>> import numpy as np
    >>> from lokl import ExpertAverageRegressor
    >>> X = np.linspace(0, 6, 50)[:, np.newaxis]
    >>> model = ExpertAverageRegressor(["rbf"], C=10).fit(X, np.sin(X[:, 0]))
    >>> round(model.score(X, np.sin(X[:, 0])), 2)
    0.99
    """


@settings
class ExpertAverageSurvival(ExpertAverage, Survival):
    """Risk of an event by the average of SVMs on single kernels, each with its own cost.

    ``f(x) = (1/m) sum_i f_i(x)``, with one SVM ``f_i`` for each kernel. With the squared loss it is
    an average of kernel ridge regressions of deviance residuals.

    References
    ----------
    .. [1] J. Kittler, M. Hatef, R. P. W. Duin, J. Matas. On Combining Classifiers. IEEE
       Transactions on Pattern Analysis and Machine Intelligence 20(3):226-239, 1998.
       https://doi.org/10.1109/34.667881
    .. [2] T. M. Therneau, P. M. Grambsch, T. R. Fleming. Martingale-Based Residuals for Survival
       Models. Biometrika 77(1):147-160, 1990.

    Examples
    --------
    >>> import numpy as np
    >>> import lokl
    >>> rng = np.random.RandomState(0)
    >>> X, ends = rng.normal(size=(100, 3)), rng.exponential(size=(100, 2))
    >>> event, censored = ends[:, 0] * np.exp(-2 * X[:, 0]), 3 * ends[:, 1]
    >>> y = lokl.survival_target(event <= censored, np.minimum(event, censored))
    >>> model = lokl.ExpertAverageSurvival(["linear", "rbf"], loss="squared").fit(X, y)
    >>> round(model.score(X, y), 2)
    0.85
    """
