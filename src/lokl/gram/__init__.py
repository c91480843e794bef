"""Kernels and gates as one Gram matrix: rows, products and gradients inside a memory budget."""

from lokl.gram.expansion import Expansion
from lokl.gram.gated_gram import GatedGram
from lokl.gram.gated_kernel import GatedKernel
from lokl.gram.inner_products import InnerProducts

__all__ = ["Expansion", "GatedGram", "GatedKernel", "InnerProducts"]
