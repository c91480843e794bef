"""Gating functions: how much each kernel counts at each sample."""

from lokl.gates.base import (
    ConstantGate,
    Gate,
    GateOn,
    GaussianGate,
    GroupGate,
    SigmoidGate,
    SoftmaxGate,
    WeightedGate,
)
from lokl.gates.representation import RepresentationGate

__all__ = [
    "ConstantGate",
    "Gate",
    "GateOn",
    "GaussianGate",
    "GroupGate",
    "RepresentationGate",
    "SigmoidGate",
    "SoftmaxGate",
    "WeightedGate",
]
