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

    See Also
    --------
    lokl.optimizers.alternating : An optimiser.
    lokl.optimizers.line_search : An optimiser of gates.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.gram import GatedGram
    >>> from lokl.kernels import RBF, Linear
    >>> from lokl.optimizers import NormBall, alternating
    >>> from lokl.solvers import Exact, Machines, hinge
    >>> X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([1.0, -1.0, -1.0, 1.0])
    >>> base = np.full((4, 2), 1.0)
    >>> gram = GatedGram([Linear(), RBF(1.0)], X, base)
    >>> machines = Machines(Exact(tol=1e-6), [hinge(y, 1.0)])
    >>> steps = list(alternating(NormBall(machines=machines, gram=gram, base=base)))
    >>> steps[-1].params.round(2), round(steps[-1].objective, 3)
    (array([[0., 1.]]), 2.718)
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

    See Also
    --------
    lokl.optimizers.Objective : Computes it.
    lokl.optimizers.OptimizerStep : What an optimiser yields.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.gram import GatedGram
    >>> from lokl.kernels import RBF, Linear
    >>> from lokl.optimizers import Simplex
    >>> from lokl.solvers import Exact, Machines, hinge
    >>> X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([1.0, -1.0, -1.0, 1.0])
    >>> base = np.full((4, 2), 1.0)
    >>> gram = GatedGram([Linear(), RBF(1.0)], X, base)
    >>> machines = Machines(Exact(tol=1e-6), [hinge(y, 1.0)])
    >>> objective = Simplex(machines=machines, gram=gram, base=base)
    >>> value = objective.at(np.array([[0.5, 0.5]]))
    >>> round(value.objective, 3), value.gradient().round(3) + 0.0
    (3.359, array([[ 0.   , -1.282]]))
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

    See Also
    --------
    lokl.optimizers.NormBall : Weights of bounded norm.
    lokl.optimizers.Simplex : Weights that sum to one.
    lokl.optimizers.Penalised : Weights under a penalty.
    lokl.optimizers.GateObjective : Parameters of a gate.
    lokl.optimizers.ObjectiveValue : Its value at some parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.gram import GatedGram
    >>> from lokl.kernels import RBF, Linear
    >>> from lokl.optimizers import NormBall
    >>> from lokl.solvers import Exact, Machines, hinge
    >>> X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([1.0, -1.0, -1.0, 1.0])
    >>> base = np.full((4, 2), 1.0)
    >>> gram = GatedGram([Linear(), RBF(1.0)], X, base)
    >>> machines = Machines(Exact(tol=1e-6), [hinge(y, 1.0)])
    >>> objective = NormBall(machines=machines, gram=gram, base=base)
    >>> value = objective.evaluate(objective.start())
    >>> round(value.objective, 3), round(objective.gap(value), 3)
    (3.093, 0.376)
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
