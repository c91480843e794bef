"""The plan of a Gram matrix: kernels grouped by view, and samples prepared for them."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl._compiled import CompiledModule
from lokl.gram.layouts import Layout, SampleLayouts, ViewSpec
from lokl.kernels.base import Kernel, Lookup, Term
from lokl.kernels.dot import OPERATIONS, Formula

_mixing = CompiledModule("lokl.gram._mixing")

# Limits of float32: the exponent of a Gaussian, other kernel values, and squared norms. Beyond
# them, the relative error of a kernel value near 1, or of a large value, is too large.
_LARGEST_EXPONENT, _LARGEST_VALUE, _LARGEST_NORM = 1e3, 1e4, 1e6
# Squared norms, and values of kernels that are normalised, whose products and roots fit float32.
_SINGLE_RANGE = (1e-18, 1e18)
# Each squaring doubles the relative error. After this many, a list of Gaussians takes a fresh
# exponential. By the bytes of a number.
_MOST_SQUARINGS = {4: 4, 8: 8}


@dataclass(frozen=True, eq=False)
class Family:
    """Kernels of one view, which share all inner products.

    Attributes
    ----------
    view : ViewSpec
    terms : dict of int to Term
        By the index of the kernel, in rising order of operation and gamma.
    """

    view: ViewSpec
    terms: dict[int, Term]

    @classmethod
    def make(cls, terms: dict[int, Term], layouts: SampleLayouts) -> "Family":
        """Sort kernels of the same columns, and choose their layout."""
        formulas = {i: term.formula for i, term in terms.items()}
        ranks = {i: (OPERATIONS.index(f.operation), f.gamma) for i, f in formulas.items()}
        ordered = {i: terms[i] for i in sorted(terms, key=lambda i: ranks[i])}
        first, *_ = ordered.values()
        # Distances do not change when all samples move.
        can_centre = all(
            t.formula.operation in ("gaussian", "matern") and t.normalizer is None
            for t in terms.values()
        )
        return cls(layouts.view(*first.view, can_centre), ordered)

    def program(self, dtype: Any, weights: Array | None = None) -> Any:
        """Return operations and numbers of the kernels for the compiled loops.

        `weights`, (n_kernels,), are the products of both sides' factors if gates are constant.
        """
        program = _program(tuple(term.formula for term in self.terms.values()), dtype)
        if weights is None:
            return program
        return program._replace(weights=weights[list(self.terms)].astype(dtype))


@lru_cache(maxsize=128)
def _program(formulas: tuple[Formula, ...], dtype: Any) -> Any:
    """Return operations and numbers of kernels, with weights of zero."""
    return _mixing.Program(
        _operations(formulas, dtype),
        np.array([f.gamma for f in formulas], dtype=dtype),
        np.array([f.coef0 for f in formulas], dtype=dtype),
        np.array([f.degree for f in formulas], dtype=np.int64),
        np.zeros(len(formulas), dtype=dtype),
    )


def _operations(formulas: Sequence[Formula], dtype: Any) -> Array:
    """Return the codes of operations, with SQUARE for Gaussians of doubled gamma."""
    most = _MOST_SQUARINGS[np.dtype(dtype).itemsize]
    codes = np.array([_mixing.OPERATIONS[f.operation] for f in formulas], dtype=np.int64)
    squarings = 0
    for k in range(1, len(formulas)):
        before, this = formulas[k - 1], formulas[k]
        is_doubled = abs(this.gamma - 2.0 * before.gamma) <= 1e-12 * this.gamma
        is_square = this.operation == before.operation == "gaussian" and is_doubled
        squarings = squarings + 1 if is_square and squarings < most else 0
        if squarings:
            codes[k] = _mixing.SQUARE
    return codes


@dataclass(frozen=True, eq=False)
class GramPlan:
    """Bound kernels, grouped by the inner products they share.

    Attributes
    ----------
    kernels : list of Kernel
    families : tuple of Family
        Kernels that are functions of one inner product, by view.
    others : tuple of int
        Indices of the other kernels, which are called as they are.
    dtype : numpy dtype
        Precision of kernel values.
    pair_normalized : bool
    """

    kernels: list[Kernel]
    families: tuple[Family, ...]
    others: tuple[int, ...]
    dtype: Any
    pair_normalized: bool

    @classmethod
    def make(
        cls, kernels: Sequence[Kernel], layouts: SampleLayouts, dtype: Any, pair_normalized: bool
    ) -> "GramPlan":
        """Group kernels for samples; with dtype "auto", the samples decide the precision."""
        by_view: dict[Any, dict[int, Term]] = {}
        others = []
        for i, kernel in enumerate(kernels):
            term = kernel.term()
            if term is None:
                others.append(i)
            else:
                by_view.setdefault(term.view, {})[i] = term
        families = tuple(Family.make(terms, layouts) for terms in by_view.values())
        if dtype == "auto":
            single = _fits_single(families, [kernels[i] for i in others], layouts)
            dtype = np.float32 if single else np.float64
        return cls(list(kernels), families, tuple(others), np.dtype(dtype), pair_normalized)

    @property
    def n_kernels(self) -> int:
        return len(self.kernels)

    @property
    def is_linear(self) -> bool:
        """Whether the Gram matrix has explicit features, as few as the inputs."""
        terms = [term for family in self.families for term in family.terms.values()]
        linear = all(term.formula.operation == "linear" for term in terms)
        return linear and not (self.others or self.pair_normalized)

    def normalizers(self, X: Any) -> Array:
        """Return normalisation factors, (n_samples, n_kernels); 1 for the other kernels."""
        factors = np.ones((X.shape[0], self.n_kernels))
        for family in self.families:
            normalizers = {
                i: t.normalizer for i, t in family.terms.items() if t.normalizer is not None
            }
            values = family.view.select(X) if normalizers else None
            for i, normalizer in normalizers.items():
                factors[:, i] = normalizer(values)
        return factors

    @property
    def preparation(self) -> tuple[Any, ...]:
        """All settings that prepare samples: prepared samples serve all plans with equal ones."""
        layouts = [(family.view, list(family.terms)) for family in self.families]
        normalized = [
            (i, self.kernels[i])
            for family in self.families
            for i, term in family.terms.items()
            if term.normalizer is not None
        ]
        return self.dtype, self.n_kernels, self.others, layouts, normalized


@dataclass(eq=False)
class Points:
    """Samples prepared for a plan: laid out for each view, with gates and normalisation.

    Attributes
    ----------
    plan : GramPlan
    X : {array, CSR matrix} of shape (n_samples, n_features) or None
        For the kernels that are not functions of an inner product; None without such kernels.
    layouts : tuple of Layout
        One for each family of the plan.
    gates : array of shape (n_samples, n_kernels, rank)
    normalizers : array of shape (n_samples, n_kernels)
    """

    plan: GramPlan
    X: Any
    layouts: tuple[Layout, ...]
    gates: Array
    normalizers: Array

    @classmethod
    def make(
        cls, plan: GramPlan, X: Any, gates: Array, layouts: SampleLayouts | None = None
    ) -> "Points":
        """Prepare samples; `layouts` reuses layouts of the same samples and keeps new ones."""
        layouts = SampleLayouts(X) if layouts is None else layouts
        laid_out = tuple(layouts.laid_out(family.view, plan.dtype) for family in plan.families)
        others = X if plan.others else None
        return cls(plan, others, laid_out, with_rank(gates), plan.normalizers(X))

    @property
    def n_samples(self) -> int:
        return int(self.gates.shape[0])

    @cached_property
    def factors(self) -> Array:
        """Gates times normalisation, (n_kernels, rank, n_samples)."""
        return np.ascontiguousarray(self._normalized_gates.transpose(1, 2, 0), self.plan.dtype)

    @property
    def _normalized_gates(self) -> Array:
        return np.asarray(self.gates * self.normalizers[:, :, np.newaxis])

    @cached_property
    def sides(self) -> list[Any]:
        """Norms and factors of each family, for the compiled loops."""
        return [
            _mixing.Side(layout.norms, self.factors[list(family.terms)])
            for family, layout in zip(self.plan.families, self.layouts, strict=True)
        ]

    @cached_property
    def weights(self) -> Array | None:
        """One factor per kernel, (n_kernels,), if it is equal for all samples; else None."""
        if self.gates.shape[2] != 1 or self.n_samples == 0:
            return None
        gates = self._normalized_gates[:, :, 0]
        return gates[0] if (gates == gates[0]).all() else None

    @cached_property
    def lookups(self) -> dict[int, Lookup]:
        """Stored values of kernels, by the index of the kernel."""
        lookups = {i: self.plan.kernels[i].lookup(self.X) for i in self.plan.others}
        return {i: lookup for i, lookup in lookups.items() if lookup is not None}

    def take(self, index: Array) -> "Points":
        """Return some of the samples."""
        part = Points(
            self.plan,
            None if self.X is None else self.X[index],
            tuple(layout.take(index) for layout in self.layouts),
            self.gates[index],
            self.normalizers[index],
        )
        if self.weights is not None and part.n_samples:
            part.weights = self.weights
        return part

    def regated(self, gates: Array) -> "Points":
        """Return the same samples under other gates; layouts are shared."""
        return Points(self.plan, self.X, self.layouts, with_rank(gates), self.normalizers)

    def in_rank(self, rows: Array, rank: int) -> "Points":
        """Return samples that have their gates in one rank, with gates of this rank alone."""
        part = self.take(rows)
        return part.regated(part.gates[:, :, [rank]])

    def ungated(self) -> "Points":
        """Return the same samples with all gates one."""
        return self.regated(np.ones((self.n_samples, self.plan.n_kernels)))

    def loads(self, coef: Array) -> Array:
        """Return ``h_ir(j) coef[j, t]``, normalised: (n_samples, n_kernels, rank * n_tasks)."""
        loads = self._normalized_gates[:, :, :, np.newaxis] * coef[:, np.newaxis, np.newaxis, :]
        return loads.reshape(*self.normalizers.shape, self.gates.shape[2] * coef.shape[1])

    def __getstate__(self) -> dict[str, Any]:
        # Cached properties are computed again when needed.
        return {field.name: getattr(self, field.name) for field in fields(self)}


def _fits_single(
    families: Sequence[Family], others: Sequence[Kernel], layouts: SampleLayouts
) -> bool:
    """Whether float32 keeps enough digits of all kernels."""
    if layouts.X.shape[0] == 0:
        return True
    for family in families:
        norms = layouts.norms(family.view)
        if not all(_term_fits_single(term, *norms) for term in family.terms.values()):
            return False
    sizes = [np.abs(kernel.diag(layouts.X)).max() for kernel in others]
    return all(size == 0 or _SINGLE_RANGE[0] <= size <= _LARGEST_VALUE for size in sizes)


def _term_fits_single(term: Term, smallest: float, largest: float) -> bool:
    """Whether float32 keeps enough digits for samples of squared norms in this range."""
    if largest == 0:
        return True
    formula, norms = term.formula, np.array([smallest, largest])
    if not _in_single_range(largest):
        return False
    if formula.operation == "gaussian":
        return formula.gamma * largest <= _LARGEST_EXPONENT
    if formula.operation == "matern":
        # The root of a rounded distance loses half of the digits near zero, unless the kernel is
        # smooth there.
        return formula.degree > 0 and formula.gamma**2 * largest <= _LARGEST_EXPONENT
    values = np.abs(formula(norms, norms, norms))
    if term.normalizer is not None:
        # The values of a normalised kernel are small, but its inner products are not, and the
        # factor of a small sample is large.
        fits = _in_single_range(values) and _in_single_range(smallest)
        return fits and largest <= _LARGEST_NORM
    fits = _SINGLE_RANGE[0] <= values[1] <= _LARGEST_VALUE
    return bool(fits and largest <= _LARGEST_NORM)


def _in_single_range(values: Any) -> bool:
    least, most = _SINGLE_RANGE
    return bool(((np.asarray(values) >= least) & (np.asarray(values) <= most)).all())


def with_rank(gates: Array) -> Array:
    """Return gate values with the rank as third axis, (n_samples, n_kernels, rank)."""
    gates = np.asarray(gates, dtype=np.float64)
    return gates[:, :, np.newaxis] if gates.ndim == 2 else gates


def ranks_of(gates: Array) -> Array | None:
    """Return the one rank in which each sample has its gates, -1 for a sample without any.

    Parameters
    ----------
    gates : array of shape (n_samples, n_kernels, rank)

    Returns
    -------
    ranks : array of shape (n_samples,) or None
        None if there is only one rank, or a sample has gates in several.
    """
    if gates.shape[2] < 2:
        return None
    used = (gates != 0).any(axis=1)
    count = used.sum(axis=1)
    return np.where(count > 0, used.argmax(axis=1), -1) if (count <= 1).all() else None
