"""What may be given as a kernel: kernels, words, functions, kernels of Gaussian processes.

Ready lists of kernels, and the names of those that are given to an estimator.

Whether two bound kernels give the same values.
"""

from collections import Counter
from collections.abc import Callable as Function
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

from lokl.kernels.base import Kernel
from lokl.kernels.columns import column_names
from lokl.kernels.distances import Chi2, Laplacian
from lokl.kernels.dot import RBF, Cosine, Linear, Polynomial, Sigmoid
from lokl.kernels.stored import Callable, GaussianProcess, is_gaussian_process_kernel

# Words stand for kernels that also suit columns which nobody scaled.
_WORDS: dict[str, Function[[], Kernel]] = {
    "linear": Linear,
    "poly2": lambda: Polynomial(2, "scale"),
    "poly3": lambda: Polynomial(3, "scale"),
    "poly": lambda: Polynomial(3, "scale"),
    "polynomial": lambda: Polynomial(3, "scale"),
    "rbf": RBF,
    "laplacian": Laplacian,
    "cosine": Cosine,
    "sigmoid": lambda: Sigmoid("scale"),
    "chi2": Chi2,
}
WORDS = (*_WORDS, *sorted(PAIRWISE_KERNEL_FUNCTIONS.keys() - _WORDS.keys()))


def is_one_kernel(value: Any) -> bool:
    """Whether a value stands for one kernel, not for a list or mapping of them."""
    if isinstance(value, str | Kernel) or is_gaussian_process_kernel(value):
        return True
    return callable(value) and not isinstance(value, type | Mapping | Iterable)


def as_kernel(value: Any) -> Kernel:
    """Return the kernel that a value stands for."""
    if isinstance(value, Kernel):
        return value
    if isinstance(value, str):
        if value in _WORDS:
            return _WORDS[value]()
        if value in PAIRWISE_KERNEL_FUNCTIONS:
            return Callable(PAIRWISE_KERNEL_FUNCTIONS[value])
    if is_gaussian_process_kernel(value):
        return GaussianProcess(value)
    refuse_matrix(value)
    if isinstance(value, type):
        raise ValueError(f"unknown kernel {value!r}; give an object, {value.__name__}()")
    if callable(value):
        return Callable(value)
    raise ValueError(
        f"unknown kernel {value!r}; give a Kernel or one of {', '.join(WORDS)}; "
        "a function of two arrays is a kernel, too"
    )


def refuse_matrix(value: Any) -> None:
    """Raise where a matrix stands in the place of kernels."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and not isinstance(value, Kernel):
        raise ValueError(
            f"a kernel matrix of shape {shape} is no kernel; kernels, X = "
            "lokl.kernels.precomputed([gram]) gives kernels, and the samples that go with them"
        )


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


def same_kernels(left: Sequence[Kernel], right: Sequence[Kernel]) -> bool:
    """Whether kernels are of the same kinds and have the same settings, one by one."""
    return len(left) == len(right) and all(map(_same, left, right))


def _same(left: Any, right: Any) -> bool:
    if left is right:
        return True
    if isinstance(left, Kernel):
        if type(left) is not type(right):
            return False
        own, other = left.get_params(deep=False), right.get_params(deep=False)
        return all(_same(own[name], other[name]) for name in own)
    # Settings are numbers, words, or arrays of them.
    return bool(np.array_equal(left, right))
