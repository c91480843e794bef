"""How a gate moves: every optimiser takes an objective and yields steps."""

from lokl.optimizers.closed_form import closed_form
from lokl.optimizers.gate_objective import GateObjective
from lokl.optimizers.level import level
from lokl.optimizers.line_search import line_search
from lokl.optimizers.objective import Evaluation, Objective, Step
from lokl.optimizers.product_objective import ProductObjective
from lokl.optimizers.reduced_gradient import reduced_gradient
from lokl.optimizers.regularizers import Entropy, HalfSquaredNorm, Regularizer, SumOfWeights
from lokl.optimizers.spectral import spectral
from lokl.optimizers.weight_objective import NormBall, Penalised, Simplex, WeightObjective

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
