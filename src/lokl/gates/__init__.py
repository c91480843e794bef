"""Gates: where each kernel is trusted."""

from lokl.gates.base import Gate, GateOn, Weighted
from lokl.gates.functions import Constant, Gaussian, Groups, Sigmoid, Softmax
from lokl.gates.representation import Represented

__all__ = [
    "Constant",
    "Gate",
    "GateOn",
    "Gaussian",
    "Groups",
    "Represented",
    "Sigmoid",
    "Softmax",
    "Weighted",
]
