"""Compiled loops of the low-rank solver: coordinate descent, and the pieces of Newton's method.

- :func:`sweep` is one pass of dual coordinate descent over stored features.
- :func:`best_coefs` and :func:`balance` give the best coefficients at given decision values, for
  Newton's method in the primal.
"""

from collections import namedtuple

from numba import njit

from lokl._compiled import INNER, LOOP

# mypy: ignore-errors
# Types here are numba's, read at compile time.


# Shown to users while a loop is compiled.
PURPOSES = {"sweep": "coordinate descent", "balance": "Newton's method"}

# Ungated features (n_samples, n_features), gates (n_samples, n_kernels, rank), the first feature of
# each kernel, and the diagonal of the gated matrix.
Rows = namedtuple("Rows", "features gates starts diag")
# Fields of the problem.
Costs = namedtuple("Costs", "target lower upper epsilon ridge")
# Coefficients (n_samples,), and the weights (rank, n_features) that they give.
State = namedtuple("State", "coef weights")
# The intercept is ``offset + pull * total``, with the sum of all coefficients.
Balance = namedtuple("Balance", "offset pull total")
# Fields of the problem; coefficients are held near `centre`, with strength `hold`.
HeldCosts = namedtuple("HeldCosts", "target lower upper epsilon ridge centre hold")

# Limit on the steps of `balance`.
_BALANCE_STEPS = 200


@njit(**INNER, fastmath={"nsz", "contract", "reassoc"})
def _inner(a, b):
    total = a.dtype.type(0.0)
    for k in range(a.shape[0]):
        total += a[k] * b[k]
    return total


@njit(**INNER, fastmath={"nsz", "contract"})
def _add(factor, source, target):
    for k in range(source.shape[0]):
        target[k] += factor * source[k]


@njit(**INNER)
def _value(rows, weights, j):
    """Return the decision value of sample `j`, without the intercept."""
    total = 0.0
    features = rows.features[j]
    for i in range(rows.starts.shape[0] - 1):
        first, last = rows.starts[i], rows.starts[i + 1]
        for r in range(weights.shape[0]):
            gate = rows.gates[j, i, r]
            if gate != 0.0:
                total += gate * _inner(features[first:last], weights[r, first:last])
    return total


@njit(**INNER)
def _move(rows, weights, j, change):
    """Update the weights after a coefficient has changed."""
    features = rows.features[j]
    for i in range(rows.starts.shape[0] - 1):
        first, last = rows.starts[i], rows.starts[i + 1]
        for r in range(weights.shape[0]):
            factor = features.dtype.type(change * rows.gates[j, i, r])
            if factor != 0.0:
                _add(factor, features[first:last], weights[r, first:last])


@njit(**LOOP)
def sweep(rows, costs, state, balance, order, count, limits):
    """Move the coefficients of ``order[:count]`` to their best values, one after the other.

    A sample at a bound whose gradient points out of its box by more than `limits` is shrunk: it is
    moved behind the others in `order` and skipped. Returns the number of samples that are not
    shrunk, the sum of all coefficients, the largest gain of a rise and the smallest of a fall.
    """
    highest, lowest = limits
    most, least = 0.0, 0.0
    total, k = balance.total, 0
    while k < count:
        j = order[k]
        u = state.coef[j]
        intercept = balance.offset + balance.pull * total
        gradient = costs.target[j] - costs.ridge[j] * u - intercept
        gradient -= _value(rows, state.weights, j)
        up = gradient - (costs.epsilon if u >= 0.0 else -costs.epsilon)
        down = gradient - (costs.epsilon if u > 0.0 else -costs.epsilon)
        may_rise, may_fall = u < costs.upper[j], u > costs.lower[j]
        if (not may_rise or up < lowest) and (not may_fall or down > highest):
            count -= 1
            order[k], order[count] = order[count], j
            continue
        if may_rise:
            most = max(most, up)
        if may_fall:
            least = min(least, down)
        curvature = rows.diag[j] + balance.pull + costs.ridge[j]
        best = curvature * u + gradient
        if best > costs.epsilon:
            best = (best - costs.epsilon) / curvature
        elif best < -costs.epsilon:
            best = (best + costs.epsilon) / curvature
        else:
            best = 0.0
        best = min(max(best, costs.lower[j]), costs.upper[j])
        if best != u:
            state.coef[j] = best
            total += best - u
            _move(rows, state.weights, j, best - u)
        k += 1
    return count, total, most, least


@njit(**INNER)
def _best_coef(costs, j, value):
    """Return the best coefficient of sample `j` at a decision value, and its rate of decrease."""
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


@njit(**LOOP)
def best_coefs(costs, values, intercept, coef, rates):
    """Write the best coefficients and their rates of decrease; return the loss.

    The loss includes the term that holds coefficients near the centre.
    """
    loss = 0.0
    for j in range(values.shape[0]):
        if costs.lower[j] == 0.0 and costs.upper[j] == 0.0:
            coef[j], rates[j] = 0.0, 0.0
            continue
        value = values[j] + intercept
        u, rate = _best_coef(costs, j, value)
        coef[j], rates[j] = u, rate
        away = u - costs.centre[j]
        loss += u * (costs.target[j] - value) - costs.epsilon * abs(u)
        loss -= 0.5 * (costs.ridge[j] * u * u + costs.hold[j] * away * away)
    return loss


@njit(**INNER)
def _totals(costs, values, intercept):
    """Return the sum of all coefficients, and of their rates of decrease with the intercept."""
    total, rate = 0.0, 0.0
    for j in range(values.shape[0]):
        if costs.lower[j] < 0.0 or costs.upper[j] > 0.0:
            u, decrease = _best_coef(costs, j, values[j] + intercept)
            total += u
            rate += decrease
    return total, rate


@njit(**LOOP)
def balance(costs, values, intercept):
    """Return the intercept at which the coefficients sum to zero; their sum decreases with it."""
    total, rate = _totals(costs, values, intercept)
    low = high = intercept
    step = 1.0
    if total > 0.0:
        while total > 0.0 and step < 1e300:
            low, high = high, high + step
            step *= 2.0
            total, rate = _totals(costs, values, high)
    else:
        while total < 0.0 and step < 1e300:
            low, high = low - step, low
            step *= 2.0
            total, rate = _totals(costs, values, low)
    # Newton's steps, or bisection of the interval that contains the root.
    root = 0.5 * (low + high)
    for _ in range(_BALANCE_STEPS):
        total, rate = _totals(costs, values, root)
        if total == 0.0:
            break
        if total > 0.0:
            low = max(low, root)
        else:
            high = min(high, root)
        new = root + total / rate if rate > 0.0 else 0.5 * (low + high)
        if not low < new < high:
            new = 0.5 * (low + high)
        if abs(new - root) <= 1e-16 * max(1.0, abs(root)):
            break
        root = new
    return root
