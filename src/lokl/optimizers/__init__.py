"""How a gate moves: every optimiser takes an objective and yields steps."""

from lokl.optimizers.gates import GateObjective, line_search
from lokl.optimizers.objective import Evaluation, Objective, Step
from lokl.optimizers.reduced_gradient import level, reduced_gradient
from lokl.optimizers.spectral import spectral
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
    closed_form,
)

__all__ = [
    "Entropy",
    "Evaluation",
    "GateObjective",
    "HalfSquaredNorm",
    "NormBall",
    "Objective",
    "Penalised",
    "ProductObjective",
    "Regularizer",
    "Simplex",
    "Step",
    "SumOfWeights",
    "WeightObjective",
    "closed_form",
    "level",
    "line_search",
    "reduced_gradient",
    "spectral",
]
