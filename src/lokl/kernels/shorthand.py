"""What may be given as a kernel: kernels, words, functions, kernels of Gaussian processes."""

from collections.abc import Callable as Function
from collections.abc import Iterable, Mapping
from typing import Any

from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

from lokl.kernels.base import Kernel
from lokl.kernels.distances import Chi2, Laplacian
from lokl.kernels.dot import RBF, Cosine, Linear, Polynomial, Sigmoid
from lokl.kernels.gaussian_process import GaussianProcess, is_gaussian_process_kernel
from lokl.kernels.stored import Callable

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
