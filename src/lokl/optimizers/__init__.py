"""How a gate moves: generators of steps, each with the machines solved at it."""

from lokl.optimizers.closed_form import closed_form
from lokl.optimizers.line_search import line_search
from lokl.optimizers.machines import Machines, Solution
from lokl.optimizers.objective import GateObjective
from lokl.optimizers.reduced_gradient import reduced_gradient
from lokl.optimizers.spectral import spectral
from lokl.optimizers.steps import Evaluation, Step

__all__ = [
    "Evaluation",
    "GateObjective",
    "Machines",
    "Solution",
    "Step",
    "closed_form",
    "line_search",
    "reduced_gradient",
    "spectral",
]
