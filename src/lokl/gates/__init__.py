"""Gates: where each kernel is trusted."""

from lokl.gates.base import Gate, GateOn
from lokl.gates.constant import Constant
from lokl.gates.gaussian import Gaussian
from lokl.gates.groups import Groups
from lokl.gates.represented import Represented
from lokl.gates.sigmoid import Sigmoid
from lokl.gates.softmax import Softmax
from lokl.gates.weighted import Weighted

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
