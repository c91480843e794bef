"""The dual value of machines on a product of Gaussian kernels with learned exponents."""

from dataclasses import dataclass

import numpy as np

from lokl._arrays import Array
from lokl.gram import GatedGram, InnerProducts
from lokl.kernels import AnisotropicRBF
from lokl.optimizers.objective import Evaluation, Objective
from lokl.optimizers.regularizers import Regularizer
from lokl.solvers import Machines, Solution


@dataclass(frozen=True, eq=False)
class ProductEvaluation(Evaluation):
    """An evaluation that knows the exponents its parameters stand for."""

    exponents: Array

    @property
    def gate_params(self) -> Array:
        return self.exponents


@dataclass(frozen=True, eq=False)
class ProductObjective(Objective[Evaluation]):
    """``J(exp(-sum_i d_i D_i)) + strength r(d)``, where ``D_i`` are squared distances."""

    machines: Machines
    inner: InnerProducts  # of dense training samples
    gammas: Array  # (n_factors, n_features): D_i(x, z) = sum_c gammas_ic (x_c - z_c)^2
    regularizer: Regularizer
    strength: float

    def start(self) -> Array:
        return self.regularizer.start(len(self.gammas))

    def project(self, params: Array) -> Array:
        return self.regularizer.project(params)

    def kernel(self, d: Array) -> AnisotropicRBF:
        """Return the kernel of some exponents."""
        return AnisotropicRBF(np.maximum(d, 0.0) @ self.gammas)

    def at(self, params: Array, ceiling: float = float("inf")) -> Evaluation | None:
        d = self.regularizer.weights(params)
        penalty = self.strength * self.regularizer.value(d)
        gram = self.inner.gated([self.kernel(d)])
        solution = self.machines.solve_below(gram, ceiling - penalty)
        if solution is None:
            return None

        def gradient() -> Array:
            slopes = self.gammas @ self._column_slopes(gram, solution)
            slopes += self.strength * self.regularizer.gradient(d)
            return self.regularizer.pullback(params, np.asarray(slopes))

        objective = solution.objective + penalty
        return ProductEvaluation(params, objective, solution.gap, gradient, solution, d)

    def _column_slopes(self, gram: GatedGram, solution: Solution) -> Array:
        """``sum_jk u_j u_k K_jk (x_jc - x_kc)^2 / 2`` of every column, by one product with K."""
        # Differences do not change when all samples move, but lose fewer digits.
        X = self.inner.X - self.inner.X.mean(axis=0)
        slopes = np.zeros(X.shape[1])
        for u in solution.coef.T:
            products = gram.dot(np.column_stack([u, u[:, np.newaxis] * X]))
            loads = u[:, np.newaxis] * X
            slopes += (loads * X * products[:, :1]).sum(axis=0)
            slopes -= (loads * products[:, 1:]).sum(axis=0)
        return slopes
