"""Samples made ready for a list of kernels."""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl._compiled import CompiledModule
from lokl.gram.layouts import Layout
from lokl.gram.plan import Plan
from lokl.gram.views import Views

_mixing = CompiledModule("lokl.gram._mixing")


@dataclass(eq=False)
class Points:
    """Samples: laid out for each view, with gates and the normalisation of each kernel."""

    plan: Plan
    X: Any  # for kernels that are no function of an inner product; None where there is none
    layouts: tuple[Layout, ...]  # one for each family of the plan
    gates: Array  # (n_samples, n_kernels, rank)
    scales: Array  # (n_samples, n_kernels)

    @classmethod
    def make(cls, plan: Plan, X: Any, gates: Array, views: Views | None = None) -> "Points":
        """Prepare samples; `views` has them laid out already, or remembers them for later."""
        views = Views(X) if views is None else views
        layouts = tuple(views.laid_out(family.view, plan.dtype) for family in plan.families)
        return cls(plan, X if plan.others else None, layouts, as_rank(gates), plan.scales(X))

    @property
    def n_samples(self) -> int:
        return int(self.gates.shape[0])

    @cached_property
    def factors(self) -> Array:
        """Gate times normalisation, (n_kernels, rank, n_samples)."""
        return np.ascontiguousarray(self._gated.transpose(1, 2, 0), dtype=self.plan.dtype)

    @property
    def _gated(self) -> Array:
        return np.asarray(self.gates * self.scales[:, :, np.newaxis])

    @cached_property
    def sides(self) -> list[Any]:
        """Norms and factors of each family, for the compiled loops."""
        return [
            _mixing.Side(layout.norms, self.factors[list(family.terms)])
            for family, layout in zip(self.plan.families, self.layouts, strict=True)
        ]

    @cached_property
    def weights(self) -> Array | None:
        """One factor for each kernel where it is the same for all samples, else None."""
        if self.gates.shape[2] != 1 or self.n_samples == 0:
            return None
        gated = self.gates[:, :, 0] * self.scales
        return gated[0] if (gated == gated[0]).all() else None

    def take(self, index: Array) -> "Points":
        """Return some of the samples."""
        part = Points(
            self.plan,
            None if self.X is None else self.X[index],
            tuple(layout.take(index) for layout in self.layouts),
            self.gates[index],
            self.scales[index],
        )
        if self.weights is not None and part.n_samples:
            part.weights = self.weights
        return part

    def regated(self, gates: Array) -> "Points":
        """Return the same samples under other gates; layouts are shared."""
        return Points(self.plan, self.X, self.layouts, as_rank(gates), self.scales)

    def loads(self, coef: Array) -> Array:
        """``h_ir(j) coef[j, t]``, normalised: (n_samples, n_kernels, rank * n_tasks)."""
        loads = self._gated[:, :, :, np.newaxis] * coef[:, np.newaxis, np.newaxis, :]
        return loads.reshape(*self.scales.shape, self.gates.shape[2] * coef.shape[1])

    def __getstate__(self) -> dict[str, Any]:
        # What follows from the rest is made again where it is needed.
        return {field.name: getattr(self, field.name) for field in fields(self)}


def as_rank(gates: Array) -> Array:
    """Gate values with the rank as third axis."""
    gates = np.asarray(gates, dtype=np.float64)
    return gates[:, :, np.newaxis] if gates.ndim == 2 else gates
