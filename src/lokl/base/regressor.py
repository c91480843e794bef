"""Regression: numeric targets."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from lokl._arrays import Array
from lokl.base.estimator import KernelEstimator, Targets
from lokl.base.model import atomic_fit
from lokl.base.settings import NOT_NEGATIVE, setting, settings
from lokl.base.validation import check_costs
from lokl.solvers import Problem, Solver, epsilon_insensitive
from lokl.solvers.solve import check_regression


class TargetDecisionMixin(RegressorMixin):
    """Predicted targets of a regressor with ``_decisions(X)``."""

    _one_target: bool  # whether y was given without an axis of targets
    _decisions: Any  # new samples to targets, (n_samples, n_targets)

    def _is_flat(self) -> bool:
        return self._one_target

    def predict(self, X: Any) -> Array:
        """Predict the targets of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        values : array of shape (n_samples,) or (n_samples, n_targets), as in training
        """
        return self._decode(self._decisions(X))

    def _decode(self, decision: Array) -> Array:
        return decision[:, 0] if self._one_target else decision

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags


@settings
class Regressor(TargetDecisionMixin, KernelEstimator):
    """Epsilon-insensitive regression, one SVM for each target."""

    epsilon: float = setting(0.1, NOT_NEGATIVE, "Residuals up to this size cost nothing.")

    _is_common = True

    @atomic_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn from samples with one or several numeric targets.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts like the row written twice, 0 like no row.

        Returns
        -------
        self
        """
        return self._fit(self._validate(X, y, sample_weight))

    def _encode_targets(self, y: Array, weight: Array) -> tuple[Targets, dict[str, Any]]:
        y = np.asarray(y, dtype=np.float64)
        columns = y[:, np.newaxis] if y.ndim == 1 else y
        cost = check_costs(self.C, {"sample_weight": weight})
        return [(column, cost) for column in columns.T], {"_one_target": y.ndim == 1}

    def _check_combinations(self, solver: Solver) -> None:
        super()._check_combinations(solver)
        check_regression(solver)

    def _problem(self, target: Array, cost: Array, solver: Solver) -> Problem:
        return epsilon_insensitive(target, cost, self.epsilon)

    def _tasks(self) -> tuple[str, Sequence[Any]]:
        return "target", range(len(self.intercept_))
