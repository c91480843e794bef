"""Compiled choice of a start, after all costs have been raised."""

import numpy as np
from numba import njit

from lokl.gram._rows import subtract_rows
from lokl.solvers._smo import _offsets

# mypy: ignore-errors
# Types here are numba's, read at compile time.


# Functions that only loops call are compiled without what would unpack their arguments, and nothing
# is compiled to be called from C.
_LOOP = {"cache": True, "nogil": True, "no_cfunc_wrapper": True}
_INNER = {**_LOOP, "no_cpython_wrapper": True}

# Told to users while a loop is compiled.
PURPOSES = {"raise_costs": "selection"}

# Where the next solution is looked for.
STAY, SCALE_ALL, RAISE_BOUNDED = 0, 1, 2


@njit(**_LOOP)
def raise_costs(matrix, machine, target, before, box, epsilon, ratio, tol):
    """Move a solution towards that of the same problem with all bounds multiplied.

    Tried are to stay; to scale all coefficients, as far as the objective grows; and to raise those
    at their bounds alone, as far as it grows. Each is right somewhere: the first where no
    coefficient is at its bound, the second where all are, the third in between. The one with the
    fewest violations is taken.

    Parameters
    ----------
    matrix, machine, epsilon, tol
        As in `solve_stored`.
    target : array of shape (n,)
    before, box : tuple of arrays of shape (n,)
        Bounds of the solution, and those that hold now: `ratio` times larger.
    ratio : float
        Above 1.
    """
    coef, gradient = machine
    n = coef.shape[0]
    linear = quadratic = 0.0
    for j in range(n):
        linear += target[j] * coef[j] - epsilon * abs(coef[j])
        quadratic += coef[j] * (target[j] - gradient[j])
    fewest, way = _violators(coef, gradient, box, epsilon, tol), STAY
    scaled, scaled_gradient = np.empty(n), np.empty(n)
    factor = min(max(linear / quadratic, 1.0), ratio) if quadratic > 0.0 else 1.0
    if factor > 1.0:
        for j in range(n):
            scaled[j] = min(max(factor * coef[j], box[0][j]), box[1][j])
            scaled_gradient[j] = target[j] - factor * (target[j] - gradient[j])
        count = _violators(scaled, scaled_gradient, box, epsilon, tol)
        if count < fewest:
            fewest, way = count, SCALE_ALL
    raised, raised_gradient = _raise_bounded(matrix, machine, before, box, epsilon, ratio)
    if _violators(raised, raised_gradient, box, epsilon, tol) < fewest:
        way = RAISE_BOUNDED
    for j in range(n):
        if way == SCALE_ALL:
            coef[j], gradient[j] = scaled[j], scaled_gradient[j]
        elif way == RAISE_BOUNDED:
            coef[j], gradient[j] = raised[j], raised_gradient[j]
    return way


@njit(**_INNER)
def _raise_bounded(matrix, machine, before, box, epsilon, ratio):
    """Raise the coefficients that were at their bounds, those of the weaker side all the way."""
    coef, gradient = machine
    n = coef.shape[0]
    step = np.zeros(n)
    plus = minus = 0.0
    for j in range(n):
        if coef[j] != 0.0 and (coef[j] <= before[0][j] or coef[j] >= before[1][j]):
            step[j] = (ratio - 1.0) * coef[j]
            plus += max(step[j], 0.0)
            minus -= min(step[j], 0.0)
    raised, raised_gradient = coef.copy(), gradient.copy()
    if plus == 0.0 or minus == 0.0:
        return raised, raised_gradient
    index, change = np.empty(n, np.int64), np.empty(n)
    count = 0
    for j in range(n):
        if step[j] != 0.0:
            # The sum of all coefficients stays zero.
            step[j] *= min(1.0, minus / plus) if step[j] > 0.0 else min(1.0, plus / minus)
            index[count], change[count] = j, step[j]
            count += 1
    product = np.zeros(n)
    subtract_rows(0, product.shape[0], matrix, index[:count], change[:count], product)
    slope = curve = 0.0
    for k in range(count):
        j = index[k]
        slope += change[k] * gradient[j] - epsilon * abs(change[k])
        curve -= change[k] * product[j]
    length = min(max(slope / curve, 0.0), 1.0) if curve > 0.0 else 1.0
    for j in range(n):
        raised[j] = min(max(coef[j] + length * step[j], box[0][j]), box[1][j])
        raised_gradient[j] = gradient[j] + length * product[j]
    return raised, raised_gradient


@njit(**_INNER)
def _violators(coef, gradient, box, epsilon, tol):
    """Number of samples that do not agree with the intercept of the free ones."""
    n = coef.shape[0]
    free = np.empty(n)
    count = 0
    for j in range(n):
        if box[0][j] < coef[j] < box[1][j] and coef[j] != 0.0:
            free[count] = gradient[j] - (epsilon if coef[j] > 0.0 else -epsilon)
            count += 1
    if count == 0:
        return n
    intercept = np.median(free[:count])
    violators = 0
    for j in range(n):
        rise, fall = _offsets(coef[j], box[0][j], box[1][j], epsilon)
        if gradient[j] + rise - intercept > tol or intercept - gradient[j] - fall > tol:
            violators += 1
    return violators
