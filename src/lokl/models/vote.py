"""A vote of experts: one machine for each kernel, weighed by how far each is trusted."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from lokl._arrays import Array
from lokl._samples import Samples
from lokl.gram import Expansion
from lokl.kernels import Kernel
from lokl.models.base import Model, Support
from lokl.models.described import Attributes
from lokl.models.success import RegressedSuccess, softmax_trust

# New samples are laid out for every kernel at once, so many of them at a time.
_BLOCK = 8192


@dataclass(frozen=True, eq=False)
class Expert:
    """The machine of one kernel, trained on the samples that trust it.

    Attributes
    ----------
    name : str
        Of the kernel.
    kernel : Kernel
    rows : array of int
        Training samples it was trained on.
    support : array of int
        Training samples that carry it.
    coef : array of shape (n_support, n_tasks)
        Signed coefficients.
    intercept : array of shape (n_tasks,)
    expansion : Expansion or None
        The function without the gate of the new sample, None where there is no machine: then the
        intercept is all, zero for an expert that abstains.
    gated : bool
        Whether the decision of a sample is scaled by its own gate.
    """

    name: str
    kernel: Kernel
    rows: Array
    support: Array
    coef: Array
    intercept: Array
    expansion: Expansion | None
    gated: bool

    @property
    def residual(self) -> Array:
        """How far features of low rank miss the kernel, (1,)."""
        return np.zeros(1) if self.expansion is None else self.expansion.residual

    def decide(self, X: Any, trust: Array) -> Array:
        """Decisions (n_samples, n_tasks) of samples that trust it so far (``m g``).

        Parameters
        ----------
        X : Samples, or {array, CSR matrix} of shape (n_samples, n_features)
            With its view.
        trust : array of shape (n_samples,)
        """
        samples = X if isinstance(X, Samples) else Samples.of(X)
        if self.expansion is None:
            return self.say(np.zeros((samples.n_samples, len(self.intercept))), trust)
        return self.say(self.expansion(samples), trust)

    def say(self, values: Array, trust: Array) -> Array:
        """Return the decisions of samples at which the expansion has been computed."""
        gated = values * trust[:, np.newaxis] if self.gated else values
        return np.asarray(gated + self.intercept)


@dataclass(frozen=True, eq=False)
class Vote(Model):
    """``f(x) = sum_i g_i(x) squash(f_i(x))`` with ``g`` a softmax of regressed success."""

    success: RegressedSuccess
    temperature: float  # of the softmax
    clip: bool  # whether success is limited to [0, 1] before the softmax
    experts: list[Expert]
    squash: Callable[[Array], Array] | None  # of decisions, before they are weighed
    support: Support
    objective: float  # sum of the experts' dual values
    n_iter: int
    gates: Array | None = None

    one_intercept: ClassVar[bool] = False
    described: ClassVar[Attributes] = {
        "experts_": (
            "list of Expert",
            "One for each kernel: the samples it was trained on, its support and coefficients.",
        ),
        **Model.described,
        "dual_coef_": (
            "array of shape (n_kernels, n_support) or (n_kernels, n_machines, n_support)",
            "Signed coefficients of the experts.",
        ),
        "intercept_": (
            "array of shape (n_machines,)",
            "Zero: the parts of the kernels are all of the decision.",
        ),
        "history_": ("array", "Dual objective, summed over the experts."),
    }

    @property
    def n_tasks(self) -> int:
        return len(self.experts[0].intercept)

    def decide(self, samples: Samples) -> Array:
        return np.asarray(self.parts(samples).sum(axis=1))

    def trust(self, samples: Samples) -> Array:
        return softmax_trust(self.success(samples), self.temperature, self.clip)

    def without_training(self) -> "Vote":
        return replace(self, gates=None)

    def parts(self, samples: Samples) -> Array:
        parts = np.zeros((samples.n_samples, len(self.experts), self.n_tasks))
        for start in range(0, samples.n_samples, _BLOCK):
            rows = np.arange(start, min(start + _BLOCK, samples.n_samples))
            parts[rows] = self._parts(samples.take(rows))
        return parts

    def _parts(self, samples: Samples) -> Array:
        success, laid_out = self.success.prepared(samples)
        g = softmax_trust(success, self.temperature, self.clip)
        # A sample that lacks views shares its trust among fewer kernels.
        count = np.isfinite(success).sum(axis=1)
        parts = np.zeros((samples.n_samples, len(self.experts), self.n_tasks))
        for i, expert in enumerate(self.experts):
            rows = samples.rows_seen_by(i)
            values = self._expansion_at(i, samples, laid_out[i])
            said = expert.say(values, (count * g[:, i])[rows])
            parts[rows, i] = g[rows, i, np.newaxis] * (self.squash(said) if self.squash else said)
        return parts

    def _expansion_at(self, i: int, samples: Samples, points: Any) -> Array:
        """Expert `i`'s expansion, on the layout that its regressor has made where that serves."""
        expansion = self.experts[i].expansion
        if expansion is None:
            return np.zeros((points.n_samples, self.n_tasks))
        if expansion.shares_layout_with(self.success.regressors[i]):
            return expansion.at(points)
        return expansion(samples.seen_by(i))

    def attributes(self) -> dict[str, Any]:
        places = self.support.places
        coef = np.zeros((len(self.experts), self.n_tasks, len(places)))
        for i, expert in enumerate(self.experts):
            coef[i][:, np.searchsorted(places, expert.support)] = expert.coef.T
        return {
            "experts_": self.experts,
            "kernels_": [expert.kernel for expert in self.experts],
            "kernel_names_": [expert.name for expert in self.experts],
            **self.support.attributes(),
            "dual_coef_": coef[:, 0] if self.n_tasks == 1 else coef,
            "intercept_": np.zeros(self.n_tasks),
            "kernel_residual_": np.concatenate([expert.residual for expert in self.experts]),
            "history_": np.array([self.objective]),
            "n_iter_": self.n_iter,
        }
