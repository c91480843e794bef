"""Types and meanings of fitted attributes that several methods share, for the reference.

What learning returns: the model protocol.

Machines on one gated kernel: the model of all methods but the votes.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from lokl._arrays import Array, Samples
from lokl.gram import Expansion, GatedKernel

# Name of an attribute to its type and meaning.
AttributeDocs = dict[str, tuple[str, str]]

# Of every estimator, as scikit-learn notes them.
FEATURE_ATTRIBUTES: AttributeDocs = {
    "n_features_in_": ("int", ""),
    "feature_names_in_": ("array of str", "Where the training samples came with column names."),
}
WEIGHTS_OF_SUM_ONE = ("array of shape (n_kernels,)", "Weight of each kernel; they sum to one.")
WEIGHTS_OF_NORM_ONE = ("array of shape (n_kernels,)", "Weight of each kernel, of norm one.")
FALLING = ("array", "Objective after every round, falling.")
WAVERING = ("array", "Objective after every round; it may rise for a round.")
CERTIFIED = (
    "float",
    "Certified: the objective is at most this far from the optimum over weights and machines.",
)
NOT_CONVEX = ("float", "NaN: the problem is not convex, no distance from the optimum is known.")


class Model(ABC):
    """A learned function of samples that can say what its decisions rest on.

    A task is a class against the rest, the second of two classes, or a target.

    Attributes
    ----------
    attribute_docs : dict
        Type and meaning of each entry of :meth:`attributes`.
    shares_intercept : bool
        Whether one intercept balances the parts of all kernels, so that a sample without one of
        them is out of balance where the parts have large means.
    """

    shares_intercept: ClassVar[bool]
    # Of the training samples, as learning knew them; None once it is over, or where nobody asks.
    gates: Array | None = None

    attribute_docs: ClassVar[AttributeDocs] = {
        "kernels_, kernel_names_": ("list", "Kernels with learned settings, and their names."),
        "support_": (
            "array of shape (n_support,)",
            "Rows of the training samples that carry a machine.",
        ),
        "support_vectors_": ("{array, CSR matrix} of shape (n_support, n_features)", ""),
        "support_fraction_": ("float", "Support rows among the training samples that count."),
        "intercept_": ("array of shape (n_machines,)", ""),
        "kernel_residual_": (
            "array of shape (n_kernels,)",
            'How far features of low rank miss each kernel (``solver="primal"``): share of its '
            "trace; for Fourier features, distance from its matrix. 0 for other solvers.",
        ),
        "n_iter_": ("int", "Steps of the solver."),
    }

    @abstractmethod
    def decide(self, samples: Samples) -> Array:
        """Decision values, (n_samples, n_tasks)."""

    @abstractmethod
    def contributions(self, samples: Samples) -> Array:
        """Part of each kernel in the decision, (n_samples, n_kernels, n_tasks)."""

    @abstractmethod
    def weights(self, samples: Samples) -> Array:
        """How far each kernel is trusted at each sample, (n_samples, n_kernels).

        On the method's own scale; estimators show shares that sum to one.
        """

    @property
    def n_gate_parameters(self) -> int:
        """How many numbers for each kernel the gate has learned; 0 where others decide it."""
        return 0

    def weights_of(self, gates: Array) -> Array:
        """Trust, as :meth:`trust` gives it, of samples whose gate values are known."""
        return gates

    def without_training(self) -> "Model":
        """Return the model without what only the end of learning looks at."""
        return self

    @abstractmethod
    def attributes(self) -> dict[str, Any]:
        """Return what an estimator shows of the model, by name."""


@dataclass(frozen=True, eq=False)
class SupportSet:
    """The training samples that carry a model."""

    places: Array  # among the training samples that count
    rows: Array  # among the rows of the data as given
    vectors: Any  # {array, CSR matrix} of shape (n_support, n_features), as given
    fraction: float  # of the training samples that count

    @classmethod
    def of(cls, coef: Array, samples: Samples, rows: Array) -> "SupportSet":
        """Find the samples with a coefficient, of which there is a column for each machine."""
        return cls.at(np.flatnonzero((coef != 0).any(axis=1)), samples, rows)

    @classmethod
    def at(cls, places: Array, samples: Samples, rows: Array) -> "SupportSet":
        """Return the support at known places."""
        return cls(places, rows[places], samples.given[places], len(places) / samples.n_samples)

    def attributes(self) -> dict[str, Any]:
        """Return what an estimator shows of it."""
        return {
            "support_": self.rows,
            "support_vectors_": self.vectors,
            "support_fraction_": self.fraction,
        }


@dataclass(frozen=True, eq=False)
class GatedMachine(Model):
    """``f(x) = sum_j k(x, x_j) u_j + b`` with ``k = sum_i <h_i(x), h_i(z)> k_i``."""

    kernel: GatedKernel
    expansion: Expansion  # the function of new samples
    support: SupportSet
    dual_coef: Array  # (n_machines, n_support)
    history: Array  # objective after every step of learning
    gap: float  # certified for the method's whole problem, NaN without a certificate
    n_iter: int  # rounds of the method, or steps of the solver where it has none
    learned: Mapping[str, Any] = field(default_factory=dict)  # attributes only some methods have
    gates: Array | None = None

    shares_intercept: ClassVar[bool] = True
    attribute_docs: ClassVar[AttributeDocs] = {
        "kernel_": (
            "GatedKernel",
            "The learned kernel, usable wherever a kernel is: ``SVC(kernel=model.kernel_)``.",
        ),
        **Model.attribute_docs,
        "dual_coef_": (
            "array of shape (n_machines, n_support)",
            "Signed coefficients; one machine for two classes, else one for each class or target.",
        ),
        "history_": ("array", "Dual objective, summed over the machines."),
        "duality_gap_": ("float", "Certified: the objective is at most this far from the optimum."),
    }

    def decide(self, samples: Samples) -> Array:
        return self.expansion(samples)

    def contributions(self, samples: Samples) -> Array:
        return self.expansion.parts(self.expansion.prepare(samples))

    def weights(self, samples: Samples) -> Array:
        return self.weights_of(self.kernel.gates(samples))

    @property
    def n_gate_parameters(self) -> int:
        return int(np.size(self.kernel.params) // len(self.kernel.kernels))

    def weights_of(self, gates: Array) -> Array:
        flat = gates[:, :, 0] if gates.ndim == 3 and gates.shape[2] == 1 else gates
        return np.asarray(self.kernel.gate.kernel_weights(flat))

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
