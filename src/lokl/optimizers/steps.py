"""What an optimiser tells about each step."""

from collections.abc import Callable
from dataclasses import dataclass

from lokl._arrays import Array
from lokl.optimizers.machines import Solution


@dataclass(frozen=True, eq=False)
class Step:
    """One accepted step of learning a gate.

    Attributes
    ----------
    params : array
        Parameters of the gate.
    objective : float
        What is minimised: the dual value of the machines, and regularisers where there are any.
    gap : float
        Certified distance from the optimum of the whole problem; NaN where there is no certificate.
    solution : Solution
        The machines at these parameters.
    """

    params: Array
    objective: float
    gap: float
    solution: Solution


@dataclass(frozen=True, eq=False)
class Evaluation:
    """An objective and its gradient at some parameters.

    Attributes
    ----------
    params : array
    objective : float
    slack : float
        How far the objective may lie below the true value, because the machines are not exact.
    gradient : callable
        Computes the gradient, which only accepted points need.
    solution : Solution
    """

    params: Array
    objective: float
    slack: float
    gradient: Callable[[], Array]
    solution: Solution

    def step(self, gap: float = float("nan")) -> Step:
        """Return the point as an accepted step."""
        return Step(self.params, self.objective, gap, self.solution)
