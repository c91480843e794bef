"""Kernels and gates as one Gram matrix: rows, products and gradients inside a memory budget."""

from lokl.gram.expansion import Expansion
from lokl.gram.gated import GatedGram
from lokl.gram.learned import GatedKernel
from lokl.gram.mixture import Mixture
from lokl.gram.points import Points

__all__ = ["Expansion", "GatedGram", "GatedKernel", "Mixture", "Points"]
