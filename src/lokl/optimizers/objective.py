"""The optimal dual value as a function of a gate's parameters."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lokl._arrays import Array
from lokl.optimizers.machines import Machines
from lokl.optimizers.steps import Evaluation


@dataclass(frozen=True, eq=False)
class GateObjective:
    """Machines solved at gate values, and the gradient of their dual value.

    Attributes
    ----------
    machines : Machines
    gates : callable
        Gate values of the training samples at parameters.
    pullback : callable
        ``pullback(params, H, slopes)`` turns ``dJ/dH`` into the gradient in the parameters.
    ridge : float
        Adds ``ridge / 2 |params|^2``.
    """

    machines: Machines
    gates: Callable[[Array], Array]
    pullback: Callable[[Array, Array, Array], Array]
    ridge: float = 0.0

    def at(self, params: Array) -> Evaluation:
        """Objective and gradient at parameters."""
        found = self.below(params, np.inf)
        assert found is not None
        return found

    def below(self, params: Array, ceiling: float) -> Evaluation | None:
        """Return the same, or None where the objective is above the ceiling."""
        H = self.gates(params)
        penalty = 0.5 * self.ridge * float((params**2).sum())
        solution = self.machines.solve_below(H, ceiling - penalty)
        if solution is None:
            return None

        def gradient() -> Array:
            gram = self.machines.gram
            gram.move_gates(H)
            slopes = gram.gate_gradient(solution.coef)[:, :, 0]
            return self.pullback(params, H, slopes) + self.ridge * params

        return Evaluation(params, solution.objective + penalty, solution.gap, gradient, solution)
