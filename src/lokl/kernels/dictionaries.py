"""Ready lists of kernels, and the names of those that are given to an estimator."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from sklearn.base import clone

from lokl.kernels.base import Kernel
from lokl.kernels.columns import column_names
from lokl.kernels.dot import RBF, Linear, Polynomial
from lokl.kernels.shorthand import as_kernel, is_one_kernel, refuse_matrix


def rbf_ladder(low: int = -4, high: int = 4) -> list[Kernel]:
    """RBF kernels with gamma from ``2^low`` to ``2^high``, a factor of two apart.

    Together they cost little more than one: each is the square of the one before.
    """
    if high < low:
        raise ValueError(f"rbf_ladder needs low <= high, got low={low}, high={high}")
    return [RBF(2.0**power) for power in range(low, high + 1)]


def standard() -> list[Kernel]:
    """Return linear, quadratic and RBF kernels on scales that also suit unscaled data."""
    return [Linear().normalized("mean_diag"), Polynomial(2).normalized("mean_diag"), RBF("scale")]


def per_feature(kernel: Kernel, X: Any) -> dict[str, Kernel]:
    """One copy of `kernel` for each column of `X`, under the column's name."""
    names = column_names(X) or [str(j) for j in range(X.shape[1])]
    return _unique([(name, clone(kernel).on([j])) for j, name in enumerate(names)])


def per_view(kernel: Kernel, views: Mapping[str, Any]) -> dict[str, Kernel]:
    """One copy of `kernel` for each named group of columns."""
    return {name: clone(kernel).on(columns) for name, columns in views.items()}


def named_kernels(kernels: Any) -> dict[str, Kernel]:
    """Kernels by unique name, from a list or mapping of what stands for kernels, one, or None."""
    if kernels is None:
        kernels = standard()
    if is_one_kernel(kernels):
        kernels = [kernels]
    refuse_matrix(kernels)
    if isinstance(kernels, Mapping):
        named = {str(name): as_kernel(kernel) for name, kernel in kernels.items()}
        if len(named) < len(kernels):
            raise ValueError(f"kernels have distinct names, got {[str(name) for name in kernels]}")
    elif isinstance(kernels, Iterable):
        named = _unique([(k if isinstance(k, str) else None, as_kernel(k)) for k in kernels])
    else:
        raise ValueError(f"kernels must be a list or mapping of kernels, got {kernels!r}")
    if not named:
        raise ValueError(
            "kernels is empty; give at least one kernel, or None for the standard three"
        )
    return named


def _unique(kernels: list[tuple[str | None, Kernel]]) -> dict[str, Kernel]:
    labels = [given or kernel.label for given, kernel in kernels]
    counts, named = Counter(labels), {}
    for label, (_, kernel) in zip(labels, kernels, strict=True):
        name, number = label, 0
        while name in named or counts[label] > 1 > number or (number and name in counts):
            number += 1
            name = f"{label} #{number}"
        named[name] = kernel
    return named
