"""The last line of defence: what is learned or computed is finite, or it is an error."""

from collections.abc import Callable
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl._samples import Samples

_REMEDY = (
    "scale the data, for example with sklearn.preprocessing.StandardScaler, or choose kernels and "
    "C of a moderate size"
)
# What every answer is made of. Other attributes may be NaN where a sample lacks a view, or where a
# method has no certificate.
_MACHINES = ("dual_coef_", "intercept_", "weights_", "history_")

_LEAST_COST = 1e-250


def check_learned(attributes: dict[str, Any]) -> None:
    """Raise where numbers have overflowed on the way to the attributes of a model."""
    for name in _MACHINES:
        if name in attributes and not np.isfinite(attributes[name]).all():
            raise ValueError(f"numbers have overflowed: {name} is not finite; {_REMEDY}")


def answer(question: Callable[[Samples], Array], samples: Samples) -> Array:
    """Ask a model about samples: finite numbers, or an error that names a sample."""
    with np.errstate(all="ignore"):
        values = np.asarray(question(samples))
    fine = np.isfinite(values)
    if not fine.all():
        bad = int(np.flatnonzero(~fine.reshape(len(values), -1).all(axis=1))[0])
        raise ValueError(f"numbers have overflowed at sample {bad}; {_REMEDY}")
    return values


def check_costs(C: float, factors: dict[str, Any], limit: float = 1e100) -> Array:
    """Return the cost of every sample, ``C`` times all factors; an error names them all.

    Sums of costs, and their products with kernel values, must not overflow; nor must one over the
    largest of them.
    """
    with np.errstate(all="ignore"):
        cost = np.asarray(C * np.prod(np.array(list(factors.values()), dtype=float), axis=0))
        total = float(cost.sum())
    if not total <= limit:
        given = [f"C={C:g}"] + [f"{name} up to {np.max(f):.3g}" for name, f in factors.items()]
        raise ValueError(
            f"the cost of errors is too large: {' times '.join(given)}; the sum over all samples "
            f"may be up to {limit:g}. Lower C, or divide the weights by their mean"
        )
    largest = float(cost.max(initial=0.0))
    if 0.0 < largest < _LEAST_COST:
        raise ValueError(
            f"the cost of errors is too small: C={C:g} times the weights is {largest:.3g} at most, "
            f"and must reach {_LEAST_COST:g}. Raise C, or divide the weights by their mean"
        )
    return cost
