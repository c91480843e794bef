"""Gating functions: how much each kernel counts at each sample."""

from lokl.gates.base import Gate, GateOn, WeightedGate
from lokl.gates.functions import ConstantGate, GaussianGate, GroupGate, SigmoidGate, SoftmaxGate
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
