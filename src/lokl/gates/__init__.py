"""Gates: where each kernel is trusted."""

from lokl.gates.base import Gate
from lokl.gates.constant import Constant
from lokl.gates.gaussian import Gaussian
from lokl.gates.sigmoid import Sigmoid
from lokl.gates.softmax import Softmax

__all__ = ["Constant", "Gate", "Gaussian", "Sigmoid", "Softmax"]
