"""Kernels: similarities of two samples, and ways to combine them."""

from lokl.kernels.algebra import Normalized, Product, Sum, View
from lokl.kernels.base import Kernel
from lokl.kernels.dictionaries import per_feature, per_view, rbf_ladder, standard
from lokl.kernels.distances import Chi2, Laplacian
from lokl.kernels.dot import RBF, AnisotropicRBF, Cosine, DotKernel, Linear, Polynomial, Sigmoid
from lokl.kernels.stored import Callable, GaussianProcess, Precomputed, precomputed

__all__ = [
    "RBF",
    "AnisotropicRBF",
    "Callable",
    "Chi2",
    "Cosine",
    "DotKernel",
    "GaussianProcess",
    "Kernel",
    "Laplacian",
    "Linear",
    "Normalized",
    "Polynomial",
    "Precomputed",
    "Product",
    "Sigmoid",
    "Sum",
    "View",
    "per_feature",
    "per_view",
    "precomputed",
    "rbf_ladder",
    "standard",
]
