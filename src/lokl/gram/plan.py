"""How a list of kernels is computed: which of them share inner products, and in what precision."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl._compiled import CompiledModule
from lokl.gram.views import View, Views
from lokl.kernels.base import GAUSSIAN, LINEAR, SQUARE, Kernel, Term

_mixing = CompiledModule("lokl.gram._mixing")

# Limits of float32: relative error of a kernel value near 1, and of large values.
_LARGEST_EXPONENT = 1e3
_LARGEST_VALUE = 1e4
_LARGEST_NORM = 1e6
# Each squaring doubles the relative error: after so many, a ladder takes a fresh exponential.
_MOST_SQUARINGS = {4: 4, 8: 8}


@dataclass(frozen=True, eq=False)
class Family:
    """Kernels of one view: they share every inner product.

    Attributes
    ----------
    view : View
    members : tuple of int
        Numbers of the kernels, Gaussians in rising order of gamma.
    terms : tuple of Term
    """

    view: View
    members: tuple[int, ...]
    terms: tuple[Term, ...]

    @property
    def is_linear(self) -> bool:
        return all(term.formula.operation == LINEAR for term in self.terms)

    def scales(self, X: Any) -> Array:
        """Normalisation factors of the members, (n_samples, n_members)."""
        scales = np.ones((X.shape[0], len(self.members)))
        if any(term.factor is not None for term in self.terms):
            seen = self.view.see(X)
            for k, term in enumerate(self.terms):
                if term.factor is not None:
                    scales[:, k] = term.factor(seen)
        return scales

    def _operations(self, dtype: Any) -> Array:
        formulas = [term.formula for term in self.terms]
        most = _MOST_SQUARINGS[np.dtype(dtype).itemsize]
        operations = np.array([f.operation for f in formulas], dtype=np.int64)
        squarings = 0
        for k in range(1, len(formulas)):
            before, this = formulas[k - 1], formulas[k]
            doubled = abs(this.gamma - 2.0 * before.gamma) <= 1e-12 * this.gamma
            ladder = this.operation == before.operation == GAUSSIAN and doubled
            squarings = squarings + 1 if ladder and squarings < most else 0
            if squarings:
                operations[k] = SQUARE
        return operations

    def program(self, dtype: Any, weights: Array | None = None) -> Any:
        """Operations and numbers of the members for the compiled loops.

        `weights` (n_kernels,) are the factors of constant gates, both sides multiplied.
        """
        formulas = [term.formula for term in self.terms]
        own = np.zeros(len(formulas)) if weights is None else weights[list(self.members)]
        return _mixing.Program(
            self._operations(dtype),
            np.array([f.gamma for f in formulas], dtype=dtype),
            np.array([f.coef0 for f in formulas], dtype=dtype),
            np.array([f.degree for f in formulas], dtype=np.int64),
            own.astype(dtype),
        )

    def fits_single(self, largest: float) -> bool:
        """Whether float32 keeps enough digits for samples of this largest squared norm."""
        for term in self.terms:
            formula = term.formula
            if formula.operation == GAUSSIAN:
                if formula.gamma * largest > _LARGEST_EXPONENT:
                    return False
                continue
            norm = np.array(largest)
            # The values of a normalised kernel are small, but its inner products are not.
            too_large = term.factor is None and np.abs(formula(norm, norm, norm)) > _LARGEST_VALUE
            if largest > _LARGEST_NORM or too_large:
                return False
        return True


@dataclass(frozen=True, eq=False)
class Plan:
    """Bound kernels, grouped for samples like those it was made for.

    Attributes
    ----------
    kernels : list of Kernel
    families : tuple of Family
        Kernels that are functions of one inner product, by view.
    others : tuple of int
        Numbers of the kernels that are not.
    dtype : numpy dtype
    pair_normalized : bool
    """

    kernels: list[Kernel]
    families: tuple[Family, ...]
    others: tuple[int, ...]
    dtype: Any
    pair_normalized: bool

    @classmethod
    def make(
        cls, kernels: Sequence[Kernel], views: Views, dtype: Any, pair_normalized: bool
    ) -> "Plan":
        """Plan kernels for samples; with dtype "auto", these decide it."""
        terms = [kernel.term() for kernel in kernels]
        shared: dict[Any, list[tuple[int, Term]]] = {}
        for i, term in enumerate(terms):
            if term is not None:
                shared.setdefault((term.columns, term.stretch), []).append((i, term))
        families = tuple(_family(members, views) for members in shared.values())
        others = tuple(i for i, term in enumerate(terms) if term is None)
        if dtype == "auto":
            unknown = [kernels[i] for i in others]
            single = _fits_single(families, unknown, views)
            dtype = np.float32 if single else np.float64
        return cls(list(kernels), families, others, np.dtype(dtype), pair_normalized)

    @property
    def n_kernels(self) -> int:
        return len(self.kernels)

    def is_of(self, kernels: Sequence[Kernel], pair_normalized: bool) -> bool:
        """Whether it was made for these very kernels; bound kernels do not change."""
        same = self.pair_normalized == pair_normalized and self.n_kernels == len(kernels)
        return same and all(a is b for a, b in zip(self.kernels, kernels, strict=True))

    @property
    def is_linear(self) -> bool:
        """Whether the Gram matrix is one of explicit features as few as the inputs."""
        return not (self.others or self.pair_normalized) and all(f.is_linear for f in self.families)

    def scales(self, X: Any) -> Array:
        """Normalisation factors of all kernels, (n_samples, n_kernels); 1 for the others."""
        scales = np.ones((X.shape[0], self.n_kernels))
        for family in self.families:
            scales[:, list(family.members)] = family.scales(X)
        return scales

    def agrees(self, other: "Plan") -> bool:
        """Whether samples made ready for the one serve the other."""
        if self is other:
            return True
        mine, yours = self.families, other.families
        return (
            (self.dtype, self.n_kernels, self.others)
            == (other.dtype, other.n_kernels, other.others)
            and [family.members for family in mine] == [family.members for family in yours]
            and all(a.view.agrees(b.view) for a, b in zip(mine, yours, strict=True))
            and all(a is b for a, b in zip(self._scaled(), other._scaled(), strict=True))
        )

    def _scaled(self) -> list[Kernel | None]:
        """Return the kernels with a factor of every sample, None in the place of others."""
        scaled: list[Kernel | None] = [None] * self.n_kernels
        for family in self.families:
            for i, term in zip(family.members, family.terms, strict=True):
                scaled[i] = None if term.factor is None else self.kernels[i]
        return scaled


def _family(members: list[tuple[int, Term]], views: Views) -> Family:
    ordered = sorted(members, key=lambda k: (k[1].formula.operation, k[1].formula.gamma))
    terms = tuple(term for _, term in ordered)
    movable = all(t.formula.operation == GAUSSIAN and t.factor is None for t in terms)
    view = views.view(terms[0].columns, terms[0].stretch, movable)
    return Family(view, tuple(number for number, _ in ordered), terms)


def _fits_single(families: Sequence[Family], others: Sequence[Kernel], views: Views) -> bool:
    """Whether float32 keeps enough digits of all kernels."""
    if views.X.shape[0] == 0:
        return True
    return all(family.fits_single(views.largest_norm(family.view)) for family in families) and all(
        np.abs(kernel.diag(views.X)).max() <= _LARGEST_VALUE for kernel in others
    )
