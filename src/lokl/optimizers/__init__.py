"""Optimisers of gates and kernel weights: each takes an objective and yields steps."""

from typing import TYPE_CHECKING

from lokl._exports import lazy_exports

if TYPE_CHECKING:
    from lokl.optimizers.cutting_planes import level_method as level_method
    from lokl.optimizers.cutting_planes import reduced_gradient as reduced_gradient
    from lokl.optimizers.gates import GateObjective as GateObjective
    from lokl.optimizers.gates import line_search as line_search
    from lokl.optimizers.objective import Objective as Objective
    from lokl.optimizers.objective import ObjectiveValue as ObjectiveValue
    from lokl.optimizers.objective import OptimizerStep as OptimizerStep
    from lokl.optimizers.spectral import spectral_gradient as spectral_gradient
    from lokl.optimizers.weights import Entropy as Entropy
    from lokl.optimizers.weights import HalfSquaredNorm as HalfSquaredNorm
    from lokl.optimizers.weights import NormBall as NormBall
    from lokl.optimizers.weights import Penalised as Penalised
    from lokl.optimizers.weights import ProductObjective as ProductObjective
    from lokl.optimizers.weights import Regularizer as Regularizer
    from lokl.optimizers.weights import Simplex as Simplex
    from lokl.optimizers.weights import SumOfWeights as SumOfWeights
    from lokl.optimizers.weights import WeightObjective as WeightObjective
    from lokl.optimizers.weights import alternating as alternating

__getattr__, __all__ = lazy_exports(__name__)
