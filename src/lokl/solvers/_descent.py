"""Compiled passes of dual coordinate descent over stored features."""

from collections import namedtuple

from numba import njit

# mypy: ignore-errors
# Types here are numba's, read at compile time.


# Told to users while a loop is compiled.
PURPOSES = {"sweep": "coordinate descent"}

# Features without gates (n_samples, n_features), gates (n_samples, n_kernels, rank), where the
# features of each kernel start, and the diagonal of the gated matrix.
Rows = namedtuple("Rows", "features gates starts diag")
# Numbers of the problem.
Costs = namedtuple("Costs", "target lower upper epsilon ridge")
# Coefficients, and the weights (rank, n_features) that belong to them.
Machine = namedtuple("Machine", "coef weights")
# The intercept is ``offset + pull * total`` with the sum of all coefficients.
Balance = namedtuple("Balance", "offset pull total")

# Nothing is compiled to be called from C.
_LOOP = {"cache": True, "nogil": True, "no_cfunc_wrapper": True}
_INNER = {**_LOOP, "no_cpython_wrapper": True}


@njit(**_INNER, fastmath={"nsz", "contract", "reassoc"})
def _inner(a, b):
    total = a.dtype.type(0.0)
    for k in range(a.shape[0]):
        total += a[k] * b[k]
    return total


@njit(**_INNER, fastmath={"nsz", "contract"})
def _add(factor, source, target):
    for k in range(source.shape[0]):
        target[k] += factor * source[k]


@njit(**_INNER)
def _value(rows, weights, j):
    """Value of the function of some weights at sample `j`."""
    total = 0.0
    features = rows.features[j]
    for i in range(rows.starts.shape[0] - 1):
        first, last = rows.starts[i], rows.starts[i + 1]
        for r in range(weights.shape[0]):
            gate = rows.gates[j, i, r]
            if gate != 0.0:
                total += gate * _inner(features[first:last], weights[r, first:last])
    return total


@njit(**_INNER)
def _move(rows, weights, j, change):
    """Carry the change of a coefficient over to the weights."""
    features = rows.features[j]
    for i in range(rows.starts.shape[0] - 1):
        first, last = rows.starts[i], rows.starts[i + 1]
        for r in range(weights.shape[0]):
            factor = features.dtype.type(change * rows.gates[j, i, r])
            if factor != 0.0:
                _add(factor, features[first:last], weights[r, first:last])


@njit(**_LOOP)
def sweep(rows, costs, machine, balance, order, count, limits):
    """Move the coefficients of ``order[:count]`` to their best values, one after the other.

    A sample at a bound whose gradient points out of its box by more than `limits` is put behind
    the others of `order` and left alone. Returns how many are not, the sum of all coefficients,
    and the largest gain of a rise and the least of a fall that were met.
    """
    highest, lowest = limits
    most, least = 0.0, 0.0
    total, k = balance.total, 0
    while k < count:
        j = order[k]
        u = machine.coef[j]
        intercept = balance.offset + balance.pull * total
        gradient = costs.target[j] - costs.ridge[j] * u - intercept
        gradient -= _value(rows, machine.weights, j)
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
            machine.coef[j] = best
            total += best - u
            _move(rows, machine.weights, j, best - u)
        k += 1
    return count, total, most, least
