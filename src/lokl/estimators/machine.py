"""A support vector machine on one gated kernel: what all single-machine methods share."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl.estimators.base import KernelClassifier, KernelLearner, KernelRegressor, Training
from lokl.estimators.saturation import warn_if_saturated
from lokl.gates import Gate
from lokl.gram import Expansion, GatedGram, GatedKernel
from lokl.optimizers import Solution


@dataclass(eq=False)
class Fitted:
    """A learned gate and the machines on its kernel.

    Attributes
    ----------
    gram : GatedGram
    gate : Gate
    params : array
    solution : Solution
    history : list of float
        Objective after every step.
    gap : float
        Certified distance from the optimum of the method's whole problem, NaN without one.
    rounds : int or None
        Steps of the outer loop, None where there is none.
    """

    gram: GatedGram
    gate: Gate
    params: Array
    solution: Solution
    history: list[float]
    gap: float
    rounds: int | None = None


class GatedMachine(KernelLearner):
    """One machine on one gated kernel."""

    def _keep(self, X: Any, counted: Array, training: Training, learned: Fitted) -> None:
        duals = learned.solution.duals
        coef = learned.solution.coef
        support = np.flatnonzero((coef != 0).any(axis=1))
        self.kernel_ = GatedKernel(
            training.kernels,
            learned.gate,
            learned.params,
            learned.gram.mixture.pair_normalized,
            training.names,
        )
        self.support_ = counted[support]
        self.support_vectors_ = X[self.support_]
        self.dual_coef_ = coef[support].T
        self.intercept_ = np.array([dual.intercept for dual in duals])
        self.support_fraction_ = len(support) / len(counted)
        self.history_ = np.array(learned.history)
        self.duality_gap_ = learned.gap
        self.n_iter_ = learned.rounds or max(1, *(dual.n_iter for dual in duals))
        # The machines may have been solved under other gates than the last ones in place.
        learned.gram.move_gates(learned.solution.gates)
        warn_if_saturated(training.problems, duals, [learned.gram.diag()] * len(duals))
        self._expansion = Expansion.make(self.kernel_, learned.gram, coef, self.intercept_)

    def _decide(self, X: Any) -> Array:
        X = self._validated(X)
        return self._expansion(X)

    def _parts(self, X: Any) -> Array:
        X = self._validated(X)
        return self._expansion.parts(self._expansion.prepare(X))

    def gate(self, X: Any) -> Array:
        """How far each kernel is trusted at each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        trust : array of shape (n_samples, n_kernels)
            Not negative; 0 where a sample lacks the view of a kernel.
        """
        X = self._validated(X)
        _, H = self.kernel_.gates(X)
        return np.asarray(self.kernel_.gate.trust(H))


class GatedClassifier(GatedMachine, KernelClassifier):
    """Classification by one gated kernel."""


class GatedRegressor(GatedMachine, KernelRegressor):
    """Regression by one gated kernel."""
