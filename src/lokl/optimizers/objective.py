"""Objectives of parameters of a gate, and the one calling convention of all optimisers.

An *objective* maps parameters to the optimal dual value of one or several SVMs, possibly plus a
penalty. An *optimiser* is a generator function ``optimiser(objective, tol) -> iterator of steps``.
It starts at ``objective.start()`` and yields an :class:`OptimizerStep` for every accepted point,
the start included. It returns when the tolerance is met or no progress is possible. The caller
limits the number of steps by not asking for more. Trial points that are rejected are not yielded.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from lokl._arrays import Array
from lokl.solvers import Solution


@dataclass(frozen=True, eq=False)
class OptimizerStep:
    """One accepted point of an optimiser.

    Attributes
    ----------
    params : array
        Parameters of the gate.
    objective : float
        The value that is minimised: the dual value of the SVMs, plus penalties if there are any.
    gap : float
        Certified distance from the optimum of the whole problem; NaN without a certificate.
    solution : Solution
        The SVMs at these parameters.
    """

    params: Array
    objective: float
    gap: float
    solution: Solution


@dataclass(frozen=True, eq=False)
class ObjectiveValue:
    """An objective at some parameters.

    Attributes
    ----------
    params : array
        Parameters that the optimiser moves.
    objective : float
    slack : float
        How far the objective may lie below the true value, because SVMs are solved to a tolerance.
    gradient : callable
        Computes the gradient, with the shape of `params`. Only accepted points need it.
    solution : Solution
    gate_params : array, optional
        Parameters of the gate, if the optimiser moves others.
    """

    params: Array
    objective: float
    slack: float
    gradient: Callable[[], Array]
    solution: Solution
    gate_params: Array | None = None

    def step(self, gap: float = float("nan")) -> OptimizerStep:
        """Return the point as an accepted step; the slack of the SVMs is added to the gap."""
        params = self.params if self.gate_params is None else self.gate_params
        return OptimizerStep(params, self.objective, gap + self.slack, self.solution)


V = TypeVar("V", bound=ObjectiveValue)


class Objective(ABC, Generic[V]):
    """A function of parameters whose values are optimal dual values of SVMs.

    Attributes
    ----------
    is_certified : bool
        Whether :meth:`gap` bounds the distance from the optimum, as for convex problems.
    """

    is_certified = False

    @abstractmethod
    def start(self) -> Array:
        """Return feasible parameters to start from."""

    @abstractmethod
    def at(self, params: Array, ceiling: float = float("inf")) -> V | None:
        """Solve the SVMs at parameters; return None if the objective exceeds the ceiling."""

    def project(self, params: Array) -> Array:
        """Return the nearest feasible parameters."""
        return params

    def gap(self, value: V) -> float:
        """Return how far the optimum may lie below a point whose SVMs are taken as exact."""
        return float("nan")

    def refine(self, precision: float) -> bool:
        """Set the precision of the SVMs from now on; return whether that changes values."""
        return False

    def evaluate(self, params: Array) -> V:
        """Solve the SVMs at parameters, however large the objective."""
        value = self.at(params)
        assert value is not None
        return value
