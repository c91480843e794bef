"""What learning returns: the model protocol."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lokl._arrays import Array
from lokl._samples import Samples
from lokl.models.described import Attributes


class Model(ABC):
    """A learned function of samples that can say what its decisions rest on.

    A task is a class against the rest, the second of two classes, or a target.

    Attributes
    ----------
    described : dict
        Type and meaning of each entry of :meth:`attributes`.
    one_intercept : bool
        Whether one intercept balances the parts of all kernels, so that a sample without one of
        them is out of balance where the parts have large means.
    """

    one_intercept: ClassVar[bool]
    # Of the training samples, as learning knew them; None once it is over, or where nobody asks.
    gates: Array | None = None

    described: ClassVar[Attributes] = {
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
    def parts(self, samples: Samples) -> Array:
        """Part of each kernel in the decision, (n_samples, n_kernels, n_tasks)."""

    @abstractmethod
    def trust(self, samples: Samples) -> Array:
        """How far each kernel is trusted at each sample, (n_samples, n_kernels).

        On the method's own scale; estimators show shares that sum to one.
        """

    @property
    def gate_freedom(self) -> int:
        """How many numbers for each kernel the gate has learned; 0 where others decide it."""
        return 0

    def trust_of(self, gates: Array) -> Array:
        """Trust, as :meth:`trust` gives it, of samples whose gate values are known."""
        return gates

    def without_training(self) -> "Model":
        """Return the model without what only the end of learning looks at."""
        return self

    @abstractmethod
    def attributes(self) -> dict[str, Any]:
        """Return what an estimator shows of the model, by name."""


@dataclass(frozen=True, eq=False)
class Support:
    """The training samples that carry a model."""

    places: Array  # among the training samples that count
    rows: Array  # among the rows of the data as given
    vectors: Any  # {array, CSR matrix} of shape (n_support, n_features), as given
    fraction: float  # of the training samples that count

    @classmethod
    def of(cls, coef: Array, samples: Samples, rows: Array) -> "Support":
        """Find the samples with a coefficient, of which there is a column for each machine."""
        return cls.at(np.flatnonzero((coef != 0).any(axis=1)), samples, rows)

    @classmethod
    def at(cls, places: Array, samples: Samples, rows: Array) -> "Support":
        """Return the support at known places."""
        return cls(places, rows[places], samples.given[places], len(places) / samples.n_samples)

    def attributes(self) -> dict[str, Any]:
        """Return what an estimator shows of it."""
        return {
            "support_": self.rows,
            "support_vectors_": self.vectors,
            "support_fraction_": self.fraction,
        }
