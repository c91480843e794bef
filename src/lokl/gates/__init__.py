"""Gating functions: how much each kernel counts at each sample."""

from typing import TYPE_CHECKING

from lokl._exports import lazy_exports

if TYPE_CHECKING:
    from lokl.gates.base import ConstantGate as ConstantGate
    from lokl.gates.base import Gate as Gate
    from lokl.gates.base import GateOn as GateOn
    from lokl.gates.base import GaussianGate as GaussianGate
    from lokl.gates.base import GroupGate as GroupGate
    from lokl.gates.base import SigmoidGate as SigmoidGate
    from lokl.gates.base import SoftmaxGate as SoftmaxGate
    from lokl.gates.base import WeightedGate as WeightedGate
    from lokl.gates.representation import RepresentationGate as RepresentationGate

__getattr__, __all__ = lazy_exports(__name__)
