"""Views of some samples: which columns kernels look at, and how these are laid out."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.extmath import row_norms

from lokl._arrays import Array, as_dense, is_sparse
from lokl.gram.layouts import Layout, choose_layout
from lokl.kernels.columns import stretched, take_columns

Columns = tuple[int, ...] | None
Stretch = tuple[float, ...] | None


@dataclass(frozen=True, eq=False)
class View:
    """Columns that some kernels look at, and the layout of samples for them.

    Attributes
    ----------
    columns : tuple of int or None
        None for all.
    stretch : tuple of float or None
        A factor of every column.
    layout : subclass of Layout
    offset : array of shape (n_columns,) or None
        Subtracted from every sample.
    """

    columns: Columns
    stretch: Stretch
    layout: type[Layout]
    offset: Array | None

    def lay_out(self, X: Any, dtype: Any) -> Layout:
        """Lay out samples."""
        return self.layout.of(self._moved(X), dtype)

    def see(self, X: Any) -> Any:
        """Return samples reduced to the columns, each times its factor."""
        return _see(X, self.columns, self.stretch)

    def norms(self, X: Any) -> Array:
        """Squared norms of samples as they are laid out, in float64."""
        return np.asarray(row_norms(self._moved(X), squared=True), dtype=np.float64)

    def agrees(self, other: "View") -> bool:
        """Whether samples laid out for the one serve the other."""
        if self is other:
            return True
        same = (self.columns, self.stretch, self.layout) == (
            other.columns,
            other.stretch,
            other.layout,
        )
        if self.offset is None or other.offset is None:
            return same and self.offset is other.offset
        return same and np.array_equal(self.offset, other.offset)

    def _moved(self, X: Any) -> Any:
        seen = self.see(X)
        return seen if self.offset is None else as_dense(seen) - self.offset


class Views:
    """What is known of some samples: each view is decided on, and laid out, once.

    Stretched views are not remembered: a search over the widths of columns makes hundreds of them.
    """

    def __init__(self, X: Any):
        self.X = X
        # Of columns: their layout, and whether few enough entries are zero to centre them.
        self._layouts: dict[Columns, tuple[type[Layout], bool]] = {}
        self._views: dict[tuple[Columns, bool], View] = {}
        self._norms: dict[View, Array] = {}
        self._laid_out: dict[tuple[View, Any], Layout] = {}

    def view(self, columns: Columns, stretch: Stretch, movable: bool) -> View:
        """Return the view of kernels, all of which allow samples to be moved together or not."""
        if stretch is not None:
            seen = _see(self.X, columns, stretch)
            return _decide(seen, columns, stretch, choose_layout(seen), movable and _is_full(seen))
        if columns not in self._layouts:
            seen = _see(self.X, columns)
            self._layouts[columns] = choose_layout(seen), _is_full(seen)
        layout, full = self._layouts[columns]
        key = (columns, movable and full)
        if key not in self._views:
            self._views[key] = _decide(_see(self.X, columns), columns, None, layout, key[1])
        return self._views[key]

    def largest_norm(self, view: View) -> float:
        """Return the largest squared norm of a sample; 0 without samples."""
        norms = self._norms.get(view)
        if norms is None:
            norms = view.norms(self.X)
            if view.stretch is None:
                self._norms[view] = norms
        return float(norms.max(initial=0.0))

    def laid_out(self, view: View, dtype: Any) -> Layout:
        """Return the samples laid out for a view."""
        if view.stretch is not None:
            return view.lay_out(self.X, dtype)
        key = (view, dtype)
        if key not in self._laid_out:
            self._laid_out[key] = view.lay_out(self.X, dtype)
        return self._laid_out[key]

    def take(self, rows: Array) -> "Views":
        """Return some of the samples; everything is as decided for all of them."""
        part = Views(self.X[rows])
        part._layouts.update(self._layouts)
        part._views.update(self._views)
        part._norms.update({view: norms[rows] for view, norms in self._norms.items()})
        part._laid_out.update({key: laid.take(rows) for key, laid in self._laid_out.items()})
        return part


def _see(X: Any, columns: Columns, stretch: Stretch = None) -> Any:
    seen = X if columns is None else take_columns(X, np.array(columns, dtype=np.intp))
    return seen if stretch is None else stretched(seen, stretch)


def _is_full(X: Any) -> bool:
    return not is_sparse(X) and bool(np.count_nonzero(X) > 0.5 * X.size)


def _decide(
    seen: Any, columns: Columns, stretch: Stretch, layout: type[Layout], centred: bool
) -> View:
    # Distances do not change when all samples move, but lose fewer digits near zero.
    offset = np.asarray(seen.mean(axis=0, dtype=np.float64)) if centred else None
    return View(columns, stretch, layout, offset)
