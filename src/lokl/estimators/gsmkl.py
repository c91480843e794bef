"""GS-MKL: groups of samples, each with its own shares of the kernels."""

from dataclasses import dataclass

import numpy as np

from lokl._arrays import Array
from lokl.estimators.base import Training
from lokl.estimators.clmkl import Clustered
from lokl.estimators.machine import Fitted, GatedClassifier, GatedRegressor
from lokl.gates import Groups
from lokl.optimizers import Evaluation, spectral


@dataclass(eq=False, repr=False, kw_only=True)
class _GSMKL(Clustered):
    """Shares ``eta_ci`` of kernel `i` in group `c`, on the simplex, by projected gradient."""

    def _learn(self, training: Training) -> Fitted:
        clusters = self._clusters(training, np.inf)
        gate = Groups(clusters.assign, clusters.n_clusters)
        start = gate.init(training.samples, len(training.kernels), training.rng)
        # Groups do not move: one assignment serves every step.
        labels = gate.assign(training.samples)
        settled = Groups(lambda X: labels, clusters.n_clusters)
        machines = self._machines(training, settled(training.samples, start, training.present))

        def evaluate(shares: Array) -> Evaluation:
            H = settled(training.samples, shares, training.present)
            solution = machines.solve(H)

            def gradient() -> Array:
                machines.gram.move_gates(H)
                slopes = machines.gram.gate_gradient(solution.coef)[:, :, 0]
                return settled.pullback(training.samples, shares, H, slopes)

            return Evaluation(shares, solution.objective, solution.gap, gradient, solution)

        path = spectral(evaluate, start, gate.project, self.learn_tol)
        fitted = self._walk(path, machines, gate)
        self.clusters_ = clusters
        self.weights_ = fitted.params
        return fitted


@dataclass(eq=False, repr=False)
class GSMKLClassifier(_GSMKL, GatedClassifier):
    """Group-sensitive multiple kernel learning for classification."""


@dataclass(eq=False, repr=False)
class GSMKLRegressor(_GSMKL, GatedRegressor):
    """Group-sensitive multiple kernel learning for regression."""
