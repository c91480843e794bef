"""Kernels grouped by view: which inner products are shared, and what is done with them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.extmath import row_norms

from lokl._arrays import Array, is_sparse
from lokl.gram.features import Features, Layout, choose_layout
from lokl.kernels.base import GAUSSIAN, LINEAR, SQUARE, Term
from lokl.kernels.columns import stretched, take_columns

# Limits of float32: relative error of a kernel value near 1, and of large values.
_LARGEST_EXPONENT = 1e3
LARGEST_VALUE = 1e4
_LARGEST_NORM = 1e6
_MOST_SQUARINGS = 8


@dataclass(frozen=True, eq=False)
class Group:
    """Kernels of one view: they share every inner product."""

    columns: tuple[int, ...] | None
    stretch: tuple[float, ...] | None
    members: tuple[int, ...]
    terms: tuple[Term, ...]
    layout: Layout
    offset: Array | None
    fits_single: bool

    @classmethod
    def make(cls, kernels: list[tuple[int, Term]], X: Any) -> Any:
        """Plan the kernels (number, term) of one view for training samples `X`."""
        ordered = sorted(kernels, key=lambda k: (k[1].formula.operation, k[1].formula.gamma))
        terms = tuple(term for _, term in ordered)
        columns, stretch = terms[0].columns, terms[0].stretch
        seen = see(X, columns, stretch)
        offset = None
        movable = all(t.formula.operation == GAUSSIAN and t.factor is None for t in terms)
        if movable and not is_sparse(seen) and np.count_nonzero(seen) > 0.5 * seen.size:
            # Distances do not change when all samples move, but lose fewer digits near zero.
            offset = np.asarray(seen.mean(axis=0, dtype=np.float64))
        return cls(
            columns,
            stretch,
            tuple(number for number, _ in ordered),
            terms,
            choose_layout(seen),
            offset,
            _fits_single(terms, seen, offset),
        )

    @property
    def is_linear(self) -> bool:
        return all(term.formula.operation == LINEAR for term in self.terms)

    def features(self, X: Any, dtype: Any) -> Features:
        """Lay out samples for this group."""
        return Features.make(see(X, self.columns, self.stretch), self.layout, dtype, self.offset)

    def scales(self, X: Any) -> Array:
        """Normalisation factors of the members, (n_samples, n_members)."""
        seen = see(X, self.columns, self.stretch)
        scales = np.ones((X.shape[0], len(self.members)))
        for k, term in enumerate(self.terms):
            if term.factor is not None:
                scales[:, k] = term.factor(seen)
        return scales

    def program(self, weights: Array, dtype: Any) -> tuple[Array, ...]:
        """Operations and numbers of the members for the compiled pass."""
        formulas = [term.formula for term in self.terms]
        operations = np.array([f.operation for f in formulas], dtype=np.int64)
        squarings = 0
        for k in range(1, len(formulas)):
            before, this = formulas[k - 1], formulas[k]
            doubled = abs(this.gamma - 2.0 * before.gamma) <= 1e-12 * this.gamma
            ladder = this.operation == before.operation == GAUSSIAN and doubled
            # Each squaring doubles the relative error: every ninth rung starts afresh.
            squarings = squarings + 1 if ladder and squarings < _MOST_SQUARINGS else 0
            if squarings:
                operations[k] = SQUARE
        return (
            operations,
            np.array([f.gamma for f in formulas], dtype=dtype),
            np.array([f.coef0 for f in formulas], dtype=dtype),
            np.array([f.degree for f in formulas], dtype=np.int64),
            weights[list(self.members)].astype(dtype),
        )


def make_groups(terms: Sequence[Term | None], X: Any) -> list[Group]:
    """Group kernels by the columns they look at."""
    views: dict[Any, list[tuple[int, Term]]] = {}
    for i, term in enumerate(terms):
        if term is not None:
            views.setdefault((term.columns, term.stretch), []).append((i, term))
    return [Group.make(kernels, X) for kernels in views.values()]


def see(X: Any, columns: tuple[int, ...] | None, stretch: tuple[float, ...] | None = None) -> Any:
    """Return the samples reduced to the columns of a view, each column times its factor."""
    seen = X if columns is None else take_columns(X, np.array(columns, dtype=np.intp))
    return seen if stretch is None else stretched(seen, stretch)


def _fits_single(terms: tuple[Term, ...], X: Any, offset: Array | None) -> bool:
    """Whether float32 keeps enough digits of every kernel."""
    if X.shape[0] == 0:
        return True
    largest = float(row_norms(X if offset is None else X - offset, squared=True).max())
    for term in terms:
        formula = term.formula
        if formula.operation == GAUSSIAN:
            if formula.gamma * largest > _LARGEST_EXPONENT:
                return False
            continue
        value = float(np.abs(formula(np.array(largest), np.array(largest), np.array(largest))))
        # The values of a normalised kernel are small, but its inner products are not.
        if largest > _LARGEST_NORM or (value > LARGEST_VALUE and term.factor is None):
            return False
    return True
