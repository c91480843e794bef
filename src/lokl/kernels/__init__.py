"""Kernels: similarities of two samples, and ways to combine them."""

from typing import TYPE_CHECKING

from lokl._exports import lazy_exports

if TYPE_CHECKING:
    from lokl.kernels.base import Kernel as Kernel
    from lokl.kernels.base import Normalized as Normalized
    from lokl.kernels.base import Product as Product
    from lokl.kernels.base import Sum as Sum
    from lokl.kernels.base import View as View
    from lokl.kernels.clinical import Clinical as Clinical
    from lokl.kernels.dictionaries import per_feature as per_feature
    from lokl.kernels.dictionaries import per_view as per_view
    from lokl.kernels.dictionaries import rbf_ladder as rbf_ladder
    from lokl.kernels.dictionaries import standard as standard
    from lokl.kernels.dot import RBF as RBF
    from lokl.kernels.dot import AdditiveLaplacian as AdditiveLaplacian
    from lokl.kernels.dot import AnisotropicRBF as AnisotropicRBF
    from lokl.kernels.dot import Chi2 as Chi2
    from lokl.kernels.dot import Cosine as Cosine
    from lokl.kernels.dot import DotKernel as DotKernel
    from lokl.kernels.dot import Laplacian as Laplacian
    from lokl.kernels.dot import Linear as Linear
    from lokl.kernels.dot import Matern as Matern
    from lokl.kernels.dot import Polynomial as Polynomial
    from lokl.kernels.dot import Sigmoid as Sigmoid
    from lokl.kernels.gene_sets import per_gene_set as per_gene_set
    from lokl.kernels.gene_sets import read_gmt as read_gmt
    from lokl.kernels.stored import Callable as Callable
    from lokl.kernels.stored import GaussianProcess as GaussianProcess
    from lokl.kernels.stored import Precomputed as Precomputed
    from lokl.kernels.stored import precomputed as precomputed

__getattr__, __all__ = lazy_exports(__name__)
