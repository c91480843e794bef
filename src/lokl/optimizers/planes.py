"""Planes below an objective of weights, one for all machines that were solved together."""

from typing import Any

import numpy as np
from scipy.optimize import linprog, minimize

from lokl._arrays import Array


class Planes:
    """What every machine solved so far says about all other weights.

    Coefficients `u` that are feasible once are so always, so the optimum at weights ``d`` is at
    least ``linear(u) - d'S(u) / 2``: a plane below a convex function.
    """

    def __init__(self) -> None:
        self._linear: list[float] = []
        self._forms: list[Array] = []
        self._lowest: Array | None = None  # where the last bound was found

    def add(self, objective: float, weights: Array, forms: Array) -> None:
        """Remember the machines that were solved at some weights."""
        self._linear.append(objective + 0.5 * float(weights @ forms))
        self._forms.append(forms)

    def along(self, start: Array, D: Array, longest: float) -> tuple[float, float]:
        """Where on ``start + s D`` the planes are lowest, and how low."""
        forms = np.array(self._forms)
        heights = np.array(self._linear) - 0.5 * forms @ start
        slopes = -0.5 * forms @ D
        s = 0.0
        while True:
            # The steepest of the planes that are highest here; the next one to rise above it.
            top = float((heights + s * slopes).max())
            touching = heights + s * slopes >= top - 1e-12 * abs(top)
            slope = float(slopes[touching].max())
            if slope >= 0.0:
                return s, top
            steeper = slopes > slope
            with np.errstate(divide="ignore", invalid="ignore"):
                crossing = (top - s * slope - heights[steeper]) / (slopes[steeper] - slope)
            crossing = crossing[crossing > s]
            if not len(crossing) or crossing.min() >= longest:
                return longest, float((heights + longest * slopes).max())
            s = float(crossing.min())

    def bound(self) -> float:
        """Lowest value of the planes on the simplex; minus infinity where it was not found."""
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

    def below(self, target: float, centre: Array) -> Array:
        """Weights on the simplex nearest to some at which no plane is above the target."""
        start = centre if self._lowest is None else self._lowest
        # In units of the target.
        room = 1.0 - np.array(self._linear) / target
        slopes = 0.5 * np.array(self._forms) / target
        constraints: Any = [
            {"type": "eq", "fun": lambda d: d.sum() - 1.0, "jac": lambda d: np.ones(len(d))},
            {"type": "ineq", "fun": lambda d: room + slopes @ d, "jac": lambda d: slopes},
        ]

        def distance(d: Any) -> tuple[float, Any]:
            return 0.5 * float((d - centre) @ (d - centre)), d - centre

        found = minimize(
            distance,
            start,
            jac=True,
            method="SLSQP",
            bounds=[(0.0, 1.0)] * len(centre),
            constraints=constraints,
        )
        d = np.maximum(found.x if np.isfinite(found.x).all() else start, 0.0)
        return np.asarray(d / d.sum())
