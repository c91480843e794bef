"""The level method on the simplex: for starts near the optimum, a few machines are enough."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import linprog, minimize

from lokl._arrays import Array
from lokl.optimizers.objective import Step
from lokl.optimizers.reduced_gradient import reduced_gradient
from lokl.optimizers.weight_objective import Simplex, WeightEvaluation, best_weights

# Where between the lower bound and the best value the next point is looked for.
_LEVEL = 0.3
# A gap that one more machine reduces by less than this share is left to the reduced gradient.
_PROGRESS = 1e-3


def level(objective: Simplex, tol: float = 0.01) -> Iterator[Step]:
    """Yield points of falling objective on the simplex, to a certified relative gap.

    Every machine solved so far is a plane below the objective. The next point is the nearest to the
    best one at which all planes are below a level; the lowest point of the planes bounds the
    optimum. It is slow to begin with, when planes are few, and quick near the optimum.

    Parameters
    ----------
    objective : Simplex
        With weights to start from.
    tol : float, default=0.01
        Relative duality gap that ends the search.
    """
    planes = _Model()
    best = current = objective.evaluate(objective.project(objective.start()))
    smallest = np.inf
    while True:
        planes.add(current)
        if current.objective < best.objective:
            best = current
        gap = objective.gap(best)
        if gap > tol * abs(best.objective):
            gap = min(gap, best.objective - planes.bound())
        yield best.step(gap)
        if gap <= tol * abs(best.objective):
            return
        if gap > (1.0 - _PROGRESS) * smallest:
            break
        smallest = gap
        target = best.objective - (1.0 - _LEVEL) * gap
        # The guess of an alternation, which knows scales of kernels, corrected by the planes.
        guess = best_weights(best.weights, best.forms, 1.0)
        current = objective.evaluate(objective.project(planes.below(target, guess)))
    path = reduced_gradient(replace(objective, first=best.weights), tol)
    next(path)
    yield from path


class _Model:
    """The highest of the planes ``linear(u) - d'S(u) / 2``, a function of the weights ``d``."""

    def __init__(self) -> None:
        self._linear: list[float] = []
        self._forms: list[Array] = []
        self._lowest: Array | None = None

    def add(self, found: WeightEvaluation) -> None:
        """Add the plane of machines that were solved."""
        self._linear.append(found.objective + 0.5 * float((found.weights * found.forms).sum()))
        self._forms.append(found.forms[0])

    def bound(self) -> float:
        """Lowest value on the simplex; minus infinity where it was not found."""
        # Values are relative to the largest, so that tolerances are.
        unit = max(self._linear)
        forms, m = np.array(self._forms) / unit, len(self._forms[0])
        found: Any = linprog(
            np.append(np.zeros(m), 1.0),
            A_ub=np.hstack([-0.5 * forms, -np.ones((len(forms), 1))]),
            b_ub=-np.array(self._linear) / unit,
            A_eq=[np.append(np.ones(m), 0.0)],
            b_eq=[1.0],
            bounds=[(0.0, 1.0)] * m + [(None, None)],
        )
        if not found.success:
            return -np.inf
        self._lowest = found.x[:-1]
        # Any mixture of planes is below the objective, however exact the program was solved.
        shares = np.maximum(-found.ineqlin.marginals, 0.0)
        shares = shares / shares.sum()
        return float(shares @ self._linear - 0.5 * (shares @ np.array(self._forms)).max())

    def below(self, target: float, weights: Array) -> Array:
        """Weights nearest to some at which no plane is above the target, (1, n_kernels)."""
        centre = weights[0]
        start = centre if self._lowest is None else self._lowest
        # In units of the target.
        room = 1.0 - np.array(self._linear) / target
        slopes = 0.5 * np.array(self._forms) / target
        constraints: Any = [
            {"type": "eq", "fun": lambda d: d.sum() - 1.0, "jac": lambda d: np.ones(len(d))},
            {"type": "ineq", "fun": lambda d: room + slopes @ d, "jac": lambda d: slopes},
        ]
        found = minimize(
            lambda d: 0.5 * float((d - centre) @ (d - centre)),
            start,
            jac=lambda d: d - centre,
            method="SLSQP",
            bounds=[(0.0, 1.0)] * len(centre),
            constraints=constraints,
        )
        d = np.maximum(found.x if np.isfinite(found.x).all() else start, 0.0)
        return np.asarray(d[np.newaxis] / d.sum())
