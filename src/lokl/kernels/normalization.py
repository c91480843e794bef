"""Kernels on a common scale, with factors learned on the training samples."""

from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from lokl._arrays import Array, squared_norms
from lokl._notices import tell
from lokl.kernels.base import Kernel, Lookup, Normalization, Term
from lokl.kernels.columns import take_columns
from lokl.kernels.composition import present_rows
from lokl.kernels.magnitudes import squares_vanish


class Normalized(Kernel):
    """A kernel whose scale does not depend on the units of the features.

    Parameters
    ----------
    kernel : Kernel
    how : {"unit_diag", "mean_diag", "trace", "none"}, default="unit_diag"
        "unit_diag" is ``k(x, z) / sqrt(k(x, x) k(z, z))``, 0 for a sample with ``k(x, x) = 0``;
        "mean_diag" divides by the mean of the training diagonal, "trace" by its sum.
        With "trace", values are of order ``1 / n``: raise `C` by the factor ``n`` or the machine
        saturates and predicts the majority class.
    scale : float, optional
        The learned factor of "mean_diag" and "trace"; filled in by :meth:`bind`.
    """

    def __init__(
        self, kernel: Kernel, how: Normalization = "unit_diag", scale: float | None = None
    ):
        self.kernel = kernel
        self.how = how
        self.scale = scale

    def bind(self, X: Any, weight: Array | None = None, frame: Any = None) -> Kernel:
        known = get_args(Normalization)
        if self.how not in known:
            raise ValueError(f"how must be one of {', '.join(known)}, got {self.how!r}")
        kernel = self.kernel.bind(X, weight, frame)
        if self.how == "none" or self.how == "unit_diag":
            return Normalized(kernel, self.how)
        weight = np.ones(X.shape[0]) if weight is None else weight
        used, seen = kernel.columns_used(), X
        if used is not None:
            seen = take_columns(X, np.array(used, dtype=np.intp))
            present = present_rows(seen)
            X, seen, weight = X[present], seen[present], weight[present]
        trace = float(weight @ np.asarray(kernel.diag(X), dtype=float)) if len(weight) else 0.0
        if trace <= 0 and squares_vanish(seen):
            # Samples are refused where they are read, with the remedy.
            return Normalized(kernel, self.how, 0.0)
        if trace <= 0:
            text = f"kernel {self.label!r} is zero on all training samples and gets weight 0"
            tell(text, text)
            return Normalized(kernel, self.how, 0.0)
        total = float(weight.sum()) if self.how == "mean_diag" else 1.0
        return Normalized(kernel, self.how, total / trace)

    def term(self) -> Term | None:
        term = self.kernel.term()
        if term is None:
            return None
        return replace(term, factor=TermFactor(self, term))

    def lookup(self, X: Any) -> Lookup | None:
        found = self.kernel.lookup(X)
        return None if found is None else replace(found, factors=found.factors * self._factor(X))

    def columns_used(self) -> tuple[int, ...] | None:
        return self.kernel.columns_used()

    @property
    def is_view(self) -> bool:
        return self.kernel.is_view

    @property
    def is_stored(self) -> bool:
        return self.kernel.is_stored

    def __call__(self, X: Any, Z: Any = None) -> Array:
        left = self._factor(X)
        right = left if Z is None else self._factor(Z)
        return np.asarray(left[:, np.newaxis] * self.kernel(X, Z) * right)

    def diag(self, X: Any) -> Array:
        return np.asarray(self.kernel.diag(X) * self._factor(X) ** 2)

    @property
    def label(self) -> str:
        return self.kernel.label

    def _factor(self, X: Any) -> Array:
        if self.how == "unit_diag":
            return inverse_root(self.kernel.diag(X))
        return np.full(X.shape[0], self.root_scale())

    def root_scale(self) -> float:
        """Square root of the learned factor."""
        if self.how == "none":
            return 1.0
        if self.scale is None:
            raise ValueError(f"{self!r} learns its scale from training data; call bind(X) first")
        return float(np.sqrt(self.scale))


@dataclass(frozen=True, eq=False)
class TermFactor:
    """Factor of samples that a term has reduced to its columns, with the factor of the term itself.

    An object, not a function: models that are stored in files hold no code.
    """

    kernel: Normalized
    term: Term

    def __call__(self, X: Any) -> Array:
        inner = np.ones(X.shape[0]) if self.term.factor is None else self.term.factor(X)
        if self.kernel.how != "unit_diag":
            return np.asarray(inner * self.kernel.root_scale())
        norms = squared_norms(X)
        return inner * inverse_root(self.term.formula(norms, norms, norms) * inner**2)


def inverse_root(diag: Array) -> Array:
    """``1 / sqrt(diag)``, and 0 where the diagonal is not positive.

    Numbers below the smallest that has all its digits count as zero: their kernel values are
    rounded so far that they are no angles any more, and the square of the root overflows.
    """
    diag = np.asarray(diag, dtype=float)
    counts = diag >= np.finfo(float).tiny
    return np.divide(1.0, np.sqrt(np.maximum(diag, 0.0)), out=np.zeros_like(diag), where=counts)
