"""A gate that looks at something else than the raw samples."""

from collections.abc import Callable
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl._samples import Samples
from lokl.gates.base import ComposedGate, Gate, SettledGate


class Represented(ComposedGate):
    """Any gate on a representation: ``h_i(x) = gate_i(z(x))``.

    Parameters
    ----------
    gate : Gate
    representation : callable
        Takes :class:`~lokl._samples.Samples` and gives their ``z``, which has no NaN.
    snap : float, default=0.0
        Trust below it counts as none, trust above ``1 - snap`` as full. Samples then leave out
        kernels altogether, which makes prediction cheaper. Rows of gates that compete still sum
        to one.
    """

    def __init__(self, gate: Gate, representation: Callable[[Samples], Any], snap: float = 0.0):
        self.gate = gate
        self.representation = representation
        self.snap = snap

    @property
    def competes(self) -> bool:  # type: ignore[override]
        """Whether the trust of a sample in all kernels sums to one."""
        return self.gate.competes

    def init(self, X: Any, n_kernels: int, rng: np.random.RandomState) -> Array:
        return self.gate.init(self.representation(Samples.of(X)), n_kernels, rng)

    def at(self, samples: Samples, params: Array) -> Array:
        return self._snapped(self.gate(self.representation(samples), params, samples.present))

    def settle(self, samples: Samples) -> SettledGate:
        return self.settled(self.representation(samples), samples.present)

    def settled(self, Z: Any, present: Array | None) -> SettledGate:
        """Return the gate at samples whose representation is known."""
        return SettledGate(
            lambda params: self._snapped(self.gate(Z, params, present)),
            lambda params, H, G: self.gate.pullback(Z, params, H, G),
        )

    def _snapped(self, H: Array) -> Array:
        """Round nearly no trust to none and nearly full trust to full."""
        if not self.snap:
            return H
        total = H.sum(axis=1, keepdims=True)
        H = np.where(self.snap > H, 0.0, np.where(1.0 - self.snap < H, 1.0, H))
        if self.gate.competes:
            H = H * total / H.sum(axis=1, keepdims=True)
        return H

    def pullback(self, X: Any, params: Array, H: Array, G: Array) -> Array:
        return self.gate.pullback(self.representation(Samples.of(X)), params, H, G)

    def project(self, params: Array) -> Array:
        return self.gate.project(params)
