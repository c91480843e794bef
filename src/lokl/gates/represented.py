"""A gate that looks at something else than the raw samples."""

from collections.abc import Callable
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl.gates.base import Gate


class Represented(Gate):
    """Any gate on a representation: ``h_i(x) = gate_i(z(x))``.

    Parameters
    ----------
    gate : Gate
    representation : callable
        Gives ``z`` for samples; NaN marks missing values of samples, ``z`` has none.
    snap : float, default=0.0
        Trust below it counts as none, trust above ``1 - snap`` as full. Samples then leave out
        kernels altogether, which makes prediction cheaper. Rows of gates that compete still sum
        to one.
    """

    def __init__(self, gate: Gate, representation: Callable[[Any], Any], snap: float = 0.0):
        self.gate = gate
        self.representation = representation
        self.snap = snap

    @property
    def competes(self) -> bool:  # type: ignore[override]
        """Whether the trust of a sample in all kernels sums to one."""
        return self.gate.competes

    def init(self, X: Any, n_kernels: int, rng: np.random.RandomState) -> Array:
        return self.gate.init(self.representation(X), n_kernels, rng)

    def __call__(self, X: Any, params: Array, present: Array | None = None) -> Array:
        return self.at(self.representation(X), params, present)

    def at(self, Z: Any, params: Array, present: Array | None = None) -> Array:
        """Return gate values where the representation is known already."""
        H = self.gate(Z, params, present)
        if not self.snap:
            return H
        total = H.sum(axis=1, keepdims=True)
        H = np.where(self.snap > H, 0.0, np.where(1.0 - self.snap < H, 1.0, H))
        if self.gate.competes:
            H = H * total / H.sum(axis=1, keepdims=True)
        return H

    def pullback(self, X: Any, params: Array, H: Array, G: Array) -> Array:
        return self.gate.pullback(self.representation(X), params, H, G)

    def project(self, params: Array) -> Array:
        return self.gate.project(params)
