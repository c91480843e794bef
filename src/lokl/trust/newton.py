"""Few numbers in a box: Newton's method, to rounding."""

from collections.abc import Callable

import numpy as np

from lokl._arrays import Array

# Value, gradient and a positive semidefinite curvature at some numbers.
Smooth = Callable[[Array], tuple[float, Array, Array]]

_ROUNDS, _HALVINGS = 200, 20
_FLAT = 1e-11
_LEAST_CURVATURE = 1e-10
# A step that promises less than this, relative to the value, is the last.
_ROUNDING = 1e-15


def minimize_in_box(function: Smooth, start: Array, lower: Array, upper: Array) -> Array:
    """Return where a smooth function is least inside a box.

    Numbers at a bound that the gradient holds there are left out of a step; a step that does not
    help is halved. Gradients end at rounding, so that equal problems whose sums were taken in
    another order have equal answers.
    """
    x = np.clip(np.asarray(start, dtype=float), lower, upper)
    value, gradient, curvature = function(x)
    for _ in range(_ROUNDS):
        held = ((x <= lower) & (gradient >= 0)) | ((x >= upper) & (gradient <= 0))
        free = np.flatnonzero(~held)
        if len(free) == 0 or np.abs(gradient[free]).max() <= _FLAT:
            break
        step = np.zeros_like(x)
        own = curvature[np.ix_(free, free)]
        lift = _LEAST_CURVATURE * max(float(own.diagonal().max()), 1.0)
        step[free] = -np.linalg.solve(own + lift * np.eye(len(free)), gradient[free])
        if -float(gradient @ step) <= _ROUNDING * max(abs(value), 1e-3):
            # Values can no longer tell which is better; the gradient still can.
            x = np.clip(x + step, lower, upper)
            break
        found = _along(function, x, value, step, lower, upper)
        if found is None:
            steepest = np.where(held, 0.0, -gradient)
            found = _along(function, x, value, steepest, lower, upper)
        if found is None:
            break
        x, value, gradient, curvature = found
    return x


def _along(
    function: Smooth, x: Array, value: float, step: Array, lower: Array, upper: Array
) -> tuple[Array, float, Array, Array] | None:
    """Return the first of ever shorter steps that lowers the function, None where none does."""
    for halving in range(_HALVINGS):
        tried = np.clip(x + 0.5**halving * step, lower, upper)
        found = function(tried)
        if found[0] < value:
            return tried, *found
    return None
