"""Kernels of scikit-learn's Gaussian processes."""

import sys
from typing import Any

import numpy as np

from lokl._arrays import Array, as_dense, as_samples
from lokl.kernels.base import Kernel


class GaussianProcess(Kernel):
    """A kernel of ``sklearn.gaussian_process.kernels``, with the hyperparameters it has.

    Nothing is learned from data: an anisotropic or fitted kernel is used as it is, and its
    hyperparameters are searched like any other, as ``kernel__length_scale``.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        Without ``WhiteKernel``, which is noise and no similarity of two samples. Estimators take
        such a kernel also as it is.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import Matern
    >>> from lokl.kernels import GaussianProcess
    >>> GaussianProcess(Matern(nu=0.5))([[0.0], [0.0]])
    array([[1., 1.],
           [1., 1.]])
    """

    def __init__(self, kernel: Any):
        self.kernel = kernel

    def bind(self, X: Any, weight: Array | None = None, frame: Any = None) -> Kernel:
        self._similarity()
        return self

    def __call__(self, X: Any, Z: Any = None) -> Array:
        X = as_dense(as_samples(X))
        return np.asarray(self._similarity()(X, X if Z is None else as_dense(as_samples(Z))))

    def diag(self, X: Any) -> Array:
        return np.asarray(self._similarity().diag(as_dense(as_samples(X))), dtype=float)

    @property
    def label(self) -> str:
        return str(self.kernel)

    def _similarity(self) -> Any:
        """Return the kernel, or an error where it is no similarity of two samples."""
        if not is_gaussian_process_kernel(self.kernel):
            raise ValueError(
                "GaussianProcess wraps a kernel of sklearn.gaussian_process.kernels, "
                f"got {self.kernel!r}"
            )
        for part in (self.kernel, *self.kernel.get_params(deep=True).values()):
            kind = type(part).__name__
            if kind == "WhiteKernel":
                raise ValueError(
                    f"{self.kernel} contains WhiteKernel, which is noise: it says nothing about "
                    "the similarity of two samples. Leave it out; C stands for noise"
                )
            if kind == "CompoundKernel":
                raise ValueError(
                    f"{self.kernel} is several kernels at once; give them as a list, "
                    "kernels=compound.kernels"
                )
        return self.kernel


def is_gaussian_process_kernel(value: Any) -> bool:
    """Whether an object is a kernel of scikit-learn's Gaussian processes."""
    # Who has such a kernel has imported its module; nobody else pays for the import.
    module = sys.modules.get("sklearn.gaussian_process.kernels")
    return module is not None and isinstance(value, module.Kernel)
