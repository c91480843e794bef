"""Views of some samples: which columns kernels look at, and how these are laid out."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.extmath import row_norms

from lokl._arrays import Array, as_dense, is_sparse
from lokl.gram.layouts import Layout, choose_layout
from lokl.kernels.columns import stretched, take_columns

Columns = tuple[int, ...] | None
Numbers = tuple[float, ...] | None


@dataclass(frozen=True)
class View:
    """Columns that some kernels look at, and the layout of samples for them.

    Samples laid out for one view serve every view that equals it.
    """

    columns: Columns  # None for all
    stretch: Numbers  # a factor of every column
    layout: type[Layout]
    offset: Numbers  # subtracted from every sample

    def see(self, X: Any) -> Any:
        """Return samples reduced to the columns, each times its factor."""
        return _see(X, self.columns, self.stretch)

    def moved(self, X: Any) -> Any:
        """Return what it sees of samples, the offset subtracted."""
        seen = self.see(X)
        return seen if self.offset is None else as_dense(seen) - np.array(self.offset)

    @property
    def keeps_products(self) -> bool:
        """Whether inner products are worth storing.

        Sparse rows are multiplied faster than their products are read back from memory, and
        stretched views are not asked for again.
        """
        return self.layout.remembers and self.stretch is None


class Views:
    """What is known of some samples: each view is decided on, and laid out, once.

    Stretched views are not remembered: a search over the widths of columns makes hundreds of them.
    """

    def __init__(self, X: Any):
        self.X = X
        self._decided: dict[Columns, tuple[type[Layout], Numbers]] = {}
        self._largest: dict[View, float] = {}
        self._laid_out: dict[tuple[View, Any], Layout] = {}

    def view(self, columns: Columns, stretch: Numbers, movable: bool) -> View:
        """Return the view of kernels, all of which allow samples to be moved together or not."""
        if stretch is not None:
            layout, centre = _decide(_see(self.X, columns, stretch))
        else:
            if columns not in self._decided:
                self._decided[columns] = _decide(_see(self.X, columns))
            layout, centre = self._decided[columns]
        # Distances do not change when all samples move, but lose fewer digits near zero.
        return View(columns, stretch, layout, centre if movable else None)

    def largest_norm(self, view: View) -> float:
        """Return the largest squared norm of a sample; 0 without samples."""
        if view in self._largest:
            return self._largest[view]
        norms = row_norms(view.moved(self.X), squared=True)
        largest = float(norms.max(initial=0.0))
        if view.stretch is None:
            self._largest[view] = largest
        return largest

    def laid_out(self, view: View, dtype: Any) -> Layout:
        """Return the samples laid out for a view."""
        if (view, dtype) in self._laid_out:
            return self._laid_out[view, dtype]
        layout = view.layout.of(view.moved(self.X), dtype)
        if view.stretch is None:
            self._laid_out[view, dtype] = layout
        return layout

    def take(self, rows: Array) -> "Views":
        """Return some of the samples; everything is as decided for all of them."""
        part = Views(self.X[rows])
        part._decided.update(self._decided)
        part._laid_out.update({key: laid.take(rows) for key, laid in self._laid_out.items()})
        return part


def _see(X: Any, columns: Columns, stretch: Numbers = None) -> Any:
    seen = X if columns is None else take_columns(X, np.array(columns, dtype=np.intp))
    return seen if stretch is None else stretched(seen, stretch)


def _decide(seen: Any) -> tuple[type[Layout], Numbers]:
    """Return the layout of samples, and their mean where few enough entries are zero to centre."""
    layout = choose_layout(seen)
    if is_sparse(seen) or np.count_nonzero(seen) <= 0.5 * seen.size:
        return layout, None
    return layout, tuple(seen.mean(axis=0, dtype=np.float64).tolist())
