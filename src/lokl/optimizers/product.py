"""The dual value of machines on a product of Gaussian kernels with learned exponents."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from lokl._arrays import Array
from lokl.gram import GatedGram
from lokl.kernels import AnisotropicRBF
from lokl.optimizers.machines import Machines, Solution
from lokl.optimizers.regularizers import Regularizer
from lokl.optimizers.steps import Evaluation
from lokl.solvers import Problem, Solver


@dataclass(eq=False)
class ProductObjective:
    """``J(exp(-sum_i d_i D_i)) + strength r(d)``, where ``D_i`` are squared distances.

    Attributes
    ----------
    X : array of shape (n_samples, n_features)
    gammas : array of shape (n_factors, n_features)
        ``D_i(x, z) = sum_c gammas_ic (x_c - z_c)^2``.
    problems : sequence of Problem
    solver : Solver
    regularizer : Regularizer
    strength : float
    """

    X: Array
    gammas: Array
    problems: Sequence[Problem]
    solver: Solver
    regularizer: Regularizer
    strength: float
    _last: list[Array] | None = field(default=None, init=False)

    def kernel(self, d: Array) -> AnisotropicRBF:
        """Return the learned kernel."""
        return AnisotropicRBF(np.maximum(d, 0.0) @ self.gammas)

    def gram(self, d: Array) -> GatedGram:
        """Return its Gram matrix."""
        return self.solver.gram([self.kernel(d)], self.X, np.ones((len(self.X), 1)))

    def at(self, params: Array) -> Evaluation:
        """Objective and gradient at parameters of the exponents."""
        d = self.regularizer.weights(params)
        machines = Machines(self.gram(d), self.solver, self.problems)
        if self._last is not None:
            machines.start(self._last)
        solution = machines.solve(machines.gram.points.gates)
        self._last = [dual.coef for dual in solution.duals]
        objective = solution.objective + self.strength * self.regularizer.value(d)

        def gradient() -> Array:
            slopes = self.gammas @ self._column_slopes(machines.gram, solution)
            machines.gram.release()
            slopes += self.strength * self.regularizer.gradient(d)
            return self.regularizer.pullback(params, np.asarray(slopes))

        return Evaluation(params, objective, solution.gap, gradient, solution)

    def _column_slopes(self, gram: GatedGram, solution: Solution) -> Array:
        """``sum_jk u_j u_k K_jk (x_jc - x_kc)^2 / 2`` of every column, by one product with K."""
        # Differences do not change when all samples move, but lose fewer digits.
        X = self.X - self.X.mean(axis=0)
        slopes = np.zeros(X.shape[1])
        for u in solution.coef.T:
            products = gram.dot(np.column_stack([u, u[:, np.newaxis] * X]))
            loads = u[:, np.newaxis] * X
            slopes += (loads * X * products[:, :1]).sum(axis=0)
            slopes -= (loads * products[:, 1:]).sum(axis=0)
        return slopes
