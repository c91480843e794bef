"""Kernels: what two samples share."""

from lokl.kernels.base import Formula, Kernel, Term
from lokl.kernels.composition import Product, Sum, View
from lokl.kernels.dictionaries import named_kernels, per_feature, per_view, rbf_ladder, standard
from lokl.kernels.distances import Chi2, Laplacian
from lokl.kernels.dot import RBF, AnisotropicRBF, Cosine, Linear, Polynomial, Sigmoid
from lokl.kernels.normalization import Normalized
from lokl.kernels.stored import Callable, Precomputed, precomputed

__all__ = [
    "RBF",
    "AnisotropicRBF",
    "Callable",
    "Chi2",
    "Cosine",
    "Formula",
    "Kernel",
    "Laplacian",
    "Linear",
    "Normalized",
    "Polynomial",
    "Precomputed",
    "Product",
    "Sigmoid",
    "Sum",
    "Term",
    "View",
    "named_kernels",
    "per_feature",
    "per_view",
    "precomputed",
    "rbf_ladder",
    "standard",
]
