"""Gates learned by gradient: the objective, and a line search along the normalised gradient."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl.gates import RepresentationGate
from lokl.gram import GatedGram
from lokl.optimizers.objective import Objective, ObjectiveValue, OptimizerStep
from lokl.solvers import Machines

# A decrease of the objective by less than this share of it counts as none. Gates that are
# saturated move no further, and such decreases would lead to ever longer steps.
_NOISE = 1e-6


@dataclass(frozen=True, eq=False)
class GateObjective(Objective[ObjectiveValue]):
    """``J(V) + ridge / 2 |V|^2``: the dual value of SVMs under the gate of parameters ``V``.

    Attributes
    ----------
    machines : Machines
        SVMs to solve.
    gram : GatedGram
        The kernels on the training samples, under any gate values.
    gate : RepresentationGate
        Gate whose parameters are learned.
    Z : {array, CenteredSparse} of shape (n_samples, ...)
        Representation of the training samples, computed once.
    present : boolean array of shape (n_samples, n_kernels) or None
        Which views the samples have.
    first : array
        Parameters to start from.
    ridge : float, default=0.0
        Factor of the penalty on the parameters.

    See Also
    --------
    lokl.optimizers.line_search : Minimises it.
    lokl.LMKLClassifier : The method that learns gates.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.gates import RepresentationGate, SoftmaxGate
    >>> from lokl.gram import GatedGram
    >>> from lokl.kernels import RBF, Linear
    >>> from lokl.optimizers import GateObjective, line_search
    >>> from lokl.solvers import Exact, Machines, hinge
    >>> X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([1.0, -1.0, -1.0, 1.0])
    >>> gate = RepresentationGate(SoftmaxGate(), lambda samples: samples.filled)
    >>> machines = Machines(Exact(), [hinge(y, 1.0)])
    >>> gram = GatedGram([Linear(), RBF(1.0)], X)
    >>> objective = GateObjective(machines, gram, gate, X, None, first=np.zeros((2, 2)))
    >>> [round(step.objective, 2) for step in line_search(objective)][:3]
    [3.68, 2.72]
    """

    machines: Machines
    gram: GatedGram
    gate: RepresentationGate
    Z: Any
    present: Array | None
    first: Array
    ridge: float = 0.0

    def start(self) -> Array:
        return self.first

    def project(self, params: Array) -> Array:
        return self.gate.project(params)

    def at(self, params: Array, ceiling: float = float("inf")) -> ObjectiveValue | None:
        H = self.gate.values(self.Z, params, self.present)
        penalty = 0.5 * self.ridge * float((params**2).sum())
        solution = self.machines.solve_below(self.gram.regated(H), ceiling - penalty)
        if solution is None:
            return None

        def gradient() -> Array:
            slopes = solution.gram.gate_gradient(solution.coef)[:, :, 0]
            return self.gate.gate.pullback(self.Z, params, H, slopes) + self.ridge * params

        objective = solution.objective + penalty
        return ObjectiveValue(params, objective, solution.gap, gradient, solution)


def line_search(objective: Objective[Any], tol: float = 1e-3) -> Iterator[OptimizerStep]:
    """Descend along the normalised gradient; the objective decreases strictly.

    The first search starts with a step of length one, later ones with the last successful length.
    While the objective decreases the step is doubled, otherwise it is halved. Every trial solves
    the SVMs, so few trials matter more than a good direction.

    Parameters
    ----------
    objective : Objective
        Function to minimise, with the point to start from.
    tol : float, default=1e-3
        Relative decrease of the objective, and length of a step, that end the search.

    Yields
    ------
    step : OptimizerStep
        Accepted point; the last one is the result.

    See Also
    --------
    lokl.optimizers.spectral_gradient : Takes fewer steps on convex objectives.
    lokl.optimizers.GateObjective : Parameters of a gate.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.gram import GatedGram
    >>> from lokl.kernels import RBF, Linear
    >>> from lokl.optimizers import HalfSquaredNorm, Penalised, line_search
    >>> from lokl.solvers import Exact, Machines, hinge
    >>> X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([1.0, -1.0, -1.0, 1.0])
    >>> base = np.full((4, 2), 1.0)
    >>> gram = GatedGram([Linear(), RBF(1.0)], X, base)
    >>> machines = Machines(Exact(tol=1e-6), [hinge(y, 1.0)])
    >>> penalty = HalfSquaredNorm()
    >>> objective = Penalised(machines=machines, gram=gram, base=base, regularizer=penalty)
    >>> steps = list(line_search(objective))
    >>> steps[-1].params.round(2)
    array([[0.  , 1.28]])
    """
    current, length = objective.evaluate(objective.start()), 1.0
    yield current.step()
    while True:
        gradient = current.gradient()
        norm = float(np.linalg.norm(gradient))
        # A slope that promises no more than noise has no direction.
        if not norm * max(length, 1.0) > _NOISE * abs(current.objective):
            return
        best, length = _search(objective, current, gradient / norm, length, tol)
        if best is None:
            return
        decrease = current.objective - best.objective
        current = best
        yield current.step()
        if decrease <= tol * abs(current.objective + decrease):
            return


def _search(
    objective: Objective[Any], current: ObjectiveValue, direction: Array, length: float, tol: float
) -> tuple[ObjectiveValue | None, float]:
    """Return the best point along a direction and its distance; None if no point is better."""

    def better(length: float, than: ObjectiveValue) -> ObjectiveValue | None:
        trial = objective.at(objective.project(current.params - length * direction), than.objective)
        if trial is None:
            return None
        # By more than the solver's tolerance and rounding can explain.
        limit = than.objective - _NOISE * abs(than.objective)
        return trial if trial.objective + trial.slack < limit else None

    best = better(length, current)
    if best is not None:
        while (longer := better(2.0 * length, best)) is not None:
            best, length = longer, 2.0 * length
        return best, length
    while best is None and length >= tol:
        length *= 0.5
        best = better(length, current)
    return best, length
