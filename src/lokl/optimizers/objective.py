"""What an optimiser needs to know, whatever it optimises, and what it tells about each step."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from lokl._arrays import Array
from lokl.solvers import Solution


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
    """An objective at some parameters.

    Attributes
    ----------
    params : array
        What the optimiser moves.
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

    @property
    def gate_params(self) -> Array:
        """Parameters of the gate, mostly what the optimiser moves."""
        return self.params

    def step(self, gap: float = float("nan")) -> Step:
        """Return the point as an accepted step; what the machines leave open adds to the gap."""
        return Step(self.gate_params, self.objective, gap + self.slack, self.solution)


E = TypeVar("E", bound=Evaluation)


class Objective(ABC, Generic[E]):
    """A function of parameters whose values are optimal dual values of machines.

    Attributes
    ----------
    is_certified : bool
        Whether :meth:`gap` bounds the distance from the optimum, as it does for convex problems.
    """

    is_certified = False

    @abstractmethod
    def start(self) -> Array:
        """Return allowed parameters to start from."""

    @abstractmethod
    def at(self, params: Array, ceiling: float = float("inf")) -> E | None:
        """Solve the machines at parameters; None where the objective is above the ceiling."""

    def project(self, params: Array) -> Array:
        """Return the nearest allowed parameters."""
        return params

    def gap(self, evaluation: E) -> float:
        """Return how far the optimum may lie below a point, the machines there taken as exact."""
        return float("nan")

    def refine(self, precision: float) -> bool:
        """Be told how precise machines must be from now on; say whether that changes values."""
        return False

    def evaluate(self, params: Array) -> E:
        """Solve the machines at parameters, however high the objective."""
        found = self.at(params)
        assert found is not None
        return found
