"""Compiled answers of all samples to their decision values, for Newton's method in the primal."""

from collections import namedtuple

from numba import njit

# mypy: ignore-errors
# Types here are numba's, read at compile time.


# Told to users while a loop is compiled.
PURPOSES = {"balance": "Newton's method"}

# Numbers of the problem; coefficients are held near `centre`, with strength `hold`.
Costs = namedtuple("Costs", "target lower upper epsilon ridge centre hold")

# Nothing is compiled to be called from C.
_LOOP = {"cache": True, "nogil": True, "no_cfunc_wrapper": True}
_INNER = {**_LOOP, "no_cpython_wrapper": True}
# Steps to the intercept.
_STEPS = 200


@njit(**_INNER)
def _answer(costs, j, value):
    """Best coefficient of sample `j` at a decision value, and how fast it falls with it."""
    curvature = costs.ridge[j] + costs.hold[j]
    slope = costs.target[j] - value + costs.hold[j] * costs.centre[j]
    if slope > costs.epsilon:
        slope -= costs.epsilon
    elif slope < -costs.epsilon:
        slope += costs.epsilon
    else:
        return 0.0, 0.0 if costs.epsilon > 0.0 else 1.0 / curvature
    if slope >= curvature * costs.upper[j]:
        return costs.upper[j], 0.0
    if slope <= curvature * costs.lower[j]:
        return costs.lower[j], 0.0
    return slope / curvature, 1.0 / curvature


@njit(**_LOOP)
def answers(costs, values, intercept, coef, rates):
    """Write coefficients and rates; return the losses, what holding adds to them included."""
    loss = 0.0
    for j in range(values.shape[0]):
        if costs.lower[j] == 0.0 and costs.upper[j] == 0.0:
            coef[j], rates[j] = 0.0, 0.0
            continue
        value = values[j] + intercept
        u, rate = _answer(costs, j, value)
        coef[j], rates[j] = u, rate
        away = u - costs.centre[j]
        loss += u * (costs.target[j] - value) - costs.epsilon * abs(u)
        loss -= 0.5 * (costs.ridge[j] * u * u + costs.hold[j] * away * away)
    return loss


@njit(**_INNER)
def _total(costs, values, intercept):
    """Sum of all coefficients, and of the rates at which they fall with the intercept."""
    total, rate = 0.0, 0.0
    for j in range(values.shape[0]):
        if costs.lower[j] < 0.0 or costs.upper[j] > 0.0:
            u, own = _answer(costs, j, values[j] + intercept)
            total += u
            rate += own
    return total, rate


@njit(**_LOOP)
def balance(costs, values, intercept):
    """Intercept at which the coefficients sum to zero: their sum falls with it."""
    total, rate = _total(costs, values, intercept)
    low = high = intercept
    step = 1.0
    if total > 0.0:
        while total > 0.0 and step < 1e300:
            low, high = high, high + step
            step *= 2.0
            total, rate = _total(costs, values, high)
    else:
        while total < 0.0 and step < 1e300:
            low, high = low - step, low
            step *= 2.0
            total, rate = _total(costs, values, low)
    # Newton's steps, or halves of the interval that is known to hold it.
    found = 0.5 * (low + high)
    for _ in range(_STEPS):
        total, rate = _total(costs, values, found)
        if total == 0.0:
            break
        if total > 0.0:
            low = max(low, found)
        else:
            high = min(high, found)
        new = found + total / rate if rate > 0.0 else 0.5 * (low + high)
        if not low < new < high:
            new = 0.5 * (low + high)
        if abs(new - found) <= 1e-16 * max(1.0, abs(found)):
            break
        found = new
    return found
