"""Newton's method for few variables with bounds, to rounding."""

from collections.abc import Callable

import numpy as np

from lokl._arrays import Array

# Value, gradient and a positive semidefinite curvature at a point.
Smooth = Callable[[Array], tuple[float, Array, Array]]

_ITERATIONS, _HALVINGS = 200, 20
_FLAT = 1e-11
_LEAST_CURVATURE = 1e-10
# A step with a smaller predicted decrease, relative to the value, is the last.
_ROUNDING = 1e-15


def minimize_in_box(function: Smooth, start: Array, lower: Array, upper: Array) -> Array:
    """Return the minimum of a smooth function inside a box.

    Variables at a bound that the gradient pushes outwards are left out of a step. A step that does
    not decrease the function is halved. The gradient ends at rounding, which quasi-Newton methods
    of scipy do not reach, so that equal problems whose sums were taken in another order have equal
    solutions.

    Parameters
    ----------
    function : callable
        Returns value, gradient (n,) and curvature (n, n) at a point (n,).
    start, lower, upper : arrays of shape (n,)
        Equal bounds fix a variable.

    Returns
    -------
    x : array of shape (n,)
    """
    x = np.clip(np.asarray(start, dtype=float), lower, upper)
    value, gradient, curvature = function(x)
    for _ in range(_ITERATIONS):
        held = ((x <= lower) & (gradient >= 0)) | ((x >= upper) & (gradient <= 0))
        free = np.flatnonzero(~held)
        if len(free) == 0 or np.abs(gradient[free]).max() <= _FLAT:
            break
        step = np.zeros_like(x)
        of_free = curvature[np.ix_(free, free)]
        lift = _LEAST_CURVATURE * max(float(of_free.diagonal().max()), 1.0)
        step[free] = -np.linalg.solve(of_free + lift * np.eye(len(free)), gradient[free])
        if -float(gradient @ step) <= _ROUNDING * max(abs(value), 1e-3):
            # The difference of values is below rounding; the gradient is not.
            x = np.clip(x + step, lower, upper)
            break
        moved = _first_decrease(function, x, value, step, lower, upper)
        if moved is None:
            steepest = np.where(held, 0.0, -gradient)
            moved = _first_decrease(function, x, value, steepest, lower, upper)
        if moved is None:
            break
        x, value, gradient, curvature = moved
    return x


def _first_decrease(
    function: Smooth, x: Array, value: float, step: Array, lower: Array, upper: Array
) -> tuple[Array, float, Array, Array] | None:
    """Return the first of ever shorter steps that decreases the function, None if none does."""
    for halving in range(_HALVINGS):
        tried = np.clip(x + 0.5**halving * step, lower, upper)
        evaluated = function(tried)
        if evaluated[0] < value:
            return tried, *evaluated
    return None
