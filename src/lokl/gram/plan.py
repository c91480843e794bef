"""How a list of kernels is computed, and samples made ready for it."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl._compiled import CompiledModule
from lokl.gram.layouts import Layout, View, Views
from lokl.kernels.base import GAUSSIAN, LINEAR, SQUARE, Kernel, Lookup, Term

_mixing = CompiledModule("lokl.gram._mixing")

# Limits of float32: relative error of a kernel value near 1, and of large values.
_LARGEST_EXPONENT = 1e3
_LARGEST_VALUE = 1e4
_LARGEST_NORM = 1e6
# Squared norms, and kernel values that are normalised, whose products and roots float32 can hold.
_SINGLE_RANGE = (1e-18, 1e18)
# Each squaring doubles the relative error: after so many, a ladder takes a fresh exponential.
_MOST_SQUARINGS = {4: 4, 8: 8}


@dataclass(frozen=True, eq=False)
class Family:
    """Kernels of one view: they share every inner product."""

    view: View
    terms: dict[int, Term]  # by the number of the kernel, Gaussians in rising order of gamma

    @classmethod
    def make(cls, terms: dict[int, Term], views: Views) -> "Family":
        """Put kernels of the same columns in order, and decide on their view."""
        ranks = {i: (term.formula.operation, term.formula.gamma) for i, term in terms.items()}
        ordered = {i: terms[i] for i in sorted(terms, key=lambda i: ranks[i])}
        first, *_ = ordered.values()
        movable = all(t.formula.operation == GAUSSIAN and t.factor is None for t in terms.values())
        return cls(views.view(first.columns, first.stretch, movable), ordered)

    def program(self, dtype: Any, weights: Array | None = None) -> Any:
        """Operations and numbers of its kernels for the compiled loops.

        `weights` (n_kernels,) are the factors of constant gates, both sides multiplied.
        """
        formulas = [term.formula for term in self.terms.values()]
        own = np.zeros(len(formulas)) if weights is None else weights[list(self.terms)]
        return _mixing.Program(
            self._operations(dtype),
            np.array([f.gamma for f in formulas], dtype=dtype),
            np.array([f.coef0 for f in formulas], dtype=dtype),
            np.array([f.degree for f in formulas], dtype=np.int64),
            own.astype(dtype),
        )

    def _operations(self, dtype: Any) -> Array:
        formulas = [term.formula for term in self.terms.values()]
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


@dataclass(frozen=True, eq=False)
class Plan:
    """Bound kernels, grouped for samples like those it was made for."""

    kernels: list[Kernel]
    families: tuple[Family, ...]  # kernels that are functions of one inner product, by view
    others: tuple[int, ...]  # numbers of the kernels that are not
    dtype: Any
    pair_normalized: bool

    @classmethod
    def make(
        cls, kernels: Sequence[Kernel], views: Views, dtype: Any, pair_normalized: bool
    ) -> "Plan":
        """Plan kernels for samples; with dtype "auto", these decide it."""
        shared: dict[Any, dict[int, Term]] = {}
        others = []
        for i, kernel in enumerate(kernels):
            term = kernel.term()
            if term is None:
                others.append(i)
            else:
                shared.setdefault((term.columns, term.stretch), {})[i] = term
        families = tuple(Family.make(terms, views) for terms in shared.values())
        if dtype == "auto":
            single = _fits_single(families, [kernels[i] for i in others], views)
            dtype = np.float32 if single else np.float64
        return cls(list(kernels), families, tuple(others), np.dtype(dtype), pair_normalized)

    @property
    def n_kernels(self) -> int:
        return len(self.kernels)

    @property
    def is_linear(self) -> bool:
        """Whether the Gram matrix is one of explicit features as few as the inputs."""
        terms = [term for family in self.families for term in family.terms.values()]
        linear = all(term.formula.operation == LINEAR for term in terms)
        return linear and not (self.others or self.pair_normalized)

    def scales(self, X: Any) -> Array:
        """Normalisation factors of all kernels, (n_samples, n_kernels); 1 for the others."""
        scales = np.ones((X.shape[0], self.n_kernels))
        for family in self.families:
            factors = {i: t.factor for i, t in family.terms.items() if t.factor is not None}
            seen = family.view.see(X) if factors else None
            for i, factor in factors.items():
                scales[:, i] = factor(seen)
        return scales

    @property
    def preparation(self) -> tuple[Any, ...]:
        """All that samples are made ready by: where it is equal, they serve several plans."""
        layouts = [(family.view, list(family.terms)) for family in self.families]
        scaled = [
            (i, self.kernels[i])
            for family in self.families
            for i, term in family.terms.items()
            if term.factor is not None
        ]
        return self.dtype, self.n_kernels, self.others, layouts, scaled


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
        gated = self._gated[:, :, 0]
        return gated[0] if (gated == gated[0]).all() else None

    @cached_property
    def lookups(self) -> dict[int, Lookup]:
        """Where values of kernels are stored, by the number of the kernel."""
        found = {i: self.plan.kernels[i].lookup(self.X) for i in self.plan.others}
        return {i: lookup for i, lookup in found.items() if lookup is not None}

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


def _fits_single(families: Sequence[Family], others: Sequence[Kernel], views: Views) -> bool:
    """Whether float32 keeps enough digits of all kernels."""
    if views.X.shape[0] == 0:
        return True
    for family in families:
        norms = views.norms(family.view)
        if not all(_term_fits_single(term, *norms) for term in family.terms.values()):
            return False
    sizes = [np.abs(kernel.diag(views.X)).max() for kernel in others]
    return all(size == 0 or _SINGLE_RANGE[0] <= size <= _LARGEST_VALUE for size in sizes)


def _term_fits_single(term: Term, smallest: float, largest: float) -> bool:
    """Whether float32 keeps enough digits for samples of squared norms in this range."""
    if largest == 0:
        return True
    formula, norms = term.formula, np.array([smallest, largest])
    if not _in_single_range(largest):
        return False
    if formula.operation == GAUSSIAN:
        return formula.gamma * largest <= _LARGEST_EXPONENT
    values = np.abs(formula(norms, norms, norms))
    if term.factor is not None:
        # The values of a normalised kernel are small, but its inner products are not, and where a
        # sample is small, its factor is large.
        fits = _in_single_range(values) and _in_single_range(smallest)
        return fits and largest <= _LARGEST_NORM
    small = _SINGLE_RANGE[0] <= values[1] <= _LARGEST_VALUE
    return bool(small and largest <= _LARGEST_NORM)


def _in_single_range(values: Any) -> bool:
    least, most = _SINGLE_RANGE
    return bool(((np.asarray(values) >= least) & (np.asarray(values) <= most)).all())


def as_rank(gates: Array) -> Array:
    """Gate values with the rank as third axis."""
    gates = np.asarray(gates, dtype=np.float64)
    return gates[:, :, np.newaxis] if gates.ndim == 2 else gates
