"""One name for a setting and a method."""

from types import MethodType
from typing import Any

from lokl.estimators.machine import GatedMachine


class GateSetting:
    """``LMKLClassifier(gate="sigmoid")`` sets the kind of gate, ``model.gate(X)`` asks it.

    The setting is kept with the other settings and read by ``get_params``; attribute access gives
    the method.

    Parameters
    ----------
    default : str or Gate
    """

    def __init__(self, default: Any):
        self.default = default

    def __set__(self, model: Any, value: Any) -> None:
        vars(model)["gate"] = value

    def __get__(self, model: Any, owner: Any = None) -> Any:
        # Dataclasses ask the class for the default.
        return self.default if model is None else MethodType(GatedMachine.gate, model)
