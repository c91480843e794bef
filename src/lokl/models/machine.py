"""Machines on one gated kernel: the model of all methods but the votes."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from lokl._arrays import Array
from lokl._samples import Samples
from lokl.gram import Expansion, GatedKernel
from lokl.models.base import Model, Support
from lokl.models.described import Attributes


@dataclass(frozen=True, eq=False)
class GatedMachine(Model):
    """``f(x) = sum_j k(x, x_j) u_j + b`` with ``k = sum_i <h_i(x), h_i(z)> k_i``."""

    kernel: GatedKernel
    expansion: Expansion  # the function of new samples
    support: Support
    dual_coef: Array  # (n_machines, n_support)
    history: Array  # objective after every step of learning
    gap: float  # certified for the method's whole problem, NaN without a certificate
    n_iter: int  # rounds of the method, or steps of the solver where it has none
    learned: Mapping[str, Any] = field(default_factory=dict)  # attributes only some methods have
    gates: Array | None = None

    one_intercept: ClassVar[bool] = True
    described: ClassVar[Attributes] = {
        "kernel_": (
            "GatedKernel",
            "The learned kernel, usable wherever a kernel is: ``SVC(kernel=model.kernel_)``.",
        ),
        **Model.described,
        "dual_coef_": (
            "array of shape (n_machines, n_support)",
            "Signed coefficients; one machine for two classes, else one for each class or target.",
        ),
        "history_": ("array", "Dual objective, summed over the machines."),
        "duality_gap_": ("float", "Certified: the objective is at most this far from the optimum."),
    }

    def decide(self, samples: Samples) -> Array:
        return self.expansion(samples)

    def parts(self, samples: Samples) -> Array:
        return self.expansion.parts(self.expansion.prepare(samples))

    def trust(self, samples: Samples) -> Array:
        return self.trust_of(self.kernel.gates(samples))

    @property
    def gate_freedom(self) -> int:
        return int(np.size(self.kernel.params) // len(self.kernel.kernels))

    def trust_of(self, gates: Array) -> Array:
        flat = gates[:, :, 0] if gates.ndim == 3 and gates.shape[2] == 1 else gates
        return np.asarray(self.kernel.gate.trust(flat))

    def without_training(self) -> "GatedMachine":
        return replace(self, gates=None)

    def attributes(self) -> dict[str, Any]:
        return {
            "kernel_": self.kernel,
            "kernels_": list(self.kernel.kernels),
            "kernel_names_": list(self.kernel.names or ()),
            **self.support.attributes(),
            "dual_coef_": self.dual_coef,
            "intercept_": self.expansion.intercept,
            "kernel_residual_": self.kernel.residual,
            "history_": self.history,
            "duality_gap_": self.gap,
            "n_iter_": self.n_iter,
            **self.learned,
        }
