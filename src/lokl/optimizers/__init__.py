"""Optimisers of gates and kernel weights: each takes an objective and yields steps."""

from lokl.optimizers.gates import GateObjective, line_search
from lokl.optimizers.objective import Objective, ObjectiveValue, OptimizerStep
from lokl.optimizers.reduced_gradient import level_method, reduced_gradient
from lokl.optimizers.spectral import spectral_gradient
from lokl.optimizers.weights import (
    Entropy,
    HalfSquaredNorm,
    NormBall,
    Penalised,
    ProductObjective,
    Regularizer,
    Simplex,
    SumOfWeights,
    WeightObjective,
    alternating,
)

__all__ = [
    "Entropy",
    "GateObjective",
    "HalfSquaredNorm",
    "NormBall",
    "Objective",
    "ObjectiveValue",
    "OptimizerStep",
    "Penalised",
    "ProductObjective",
    "Regularizer",
    "Simplex",
    "SumOfWeights",
    "WeightObjective",
    "alternating",
    "level_method",
    "line_search",
    "reduced_gradient",
    "spectral_gradient",
]
