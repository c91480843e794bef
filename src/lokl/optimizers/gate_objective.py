"""The optimal dual value as a function of a gate's parameters."""

from collections.abc import Callable
from dataclasses import dataclass

from lokl._arrays import Array
from lokl.gates.base import SettledGate
from lokl.gram import GatedGram
from lokl.optimizers.objective import Evaluation, Objective
from lokl.solvers import Machines


@dataclass(frozen=True, eq=False)
class GateObjective(Objective[Evaluation]):
    """``J(V) + ridge / 2 |V|^2``: machines under the gates that parameters ``V`` give."""

    machines: Machines
    gram: GatedGram  # the kernels on the training samples, under any gates
    gate: SettledGate
    first: Array  # parameters to start from
    nearest: Callable[[Array], Array]  # projects parameters onto those that are allowed
    ridge: float = 0.0

    def start(self) -> Array:
        return self.first

    def project(self, params: Array) -> Array:
        return self.nearest(params)

    def at(self, params: Array, ceiling: float = float("inf")) -> Evaluation | None:
        H = self.gate.values(params)
        penalty = 0.5 * self.ridge * float((params**2).sum())
        solution = self.machines.solve_below(self.gram.regated(H), ceiling - penalty)
        if solution is None:
            return None

        def gradient() -> Array:
            slopes = solution.gram.gate_gradient(solution.coef)[:, :, 0]
            return self.gate.pullback(params, H, slopes) + self.ridge * params

        return Evaluation(params, solution.objective + penalty, solution.gap, gradient, solution)
