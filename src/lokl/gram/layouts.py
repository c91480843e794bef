"""Layouts: samples of one view arranged for fast inner products.

A view is some columns of the samples. Its samples are stored in one of three layouts, which give
the same numbers; the training samples decide which is fastest.

L1 distances are squared distances under another inner product, the *overlap*: the sum of the
smaller of two absolute values over the columns in which both samples are on the same side of an
origin. ``|x - z|_1 = |x|_1 + |z|_1 - 2 overlap(x, z)``, so L1 norms replace squared
norms, and nothing else changes. Each column becomes one column for each side on which there are
samples, so that no entry is negative. The overlap is then a sum of minima, and zeros do not count.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import sparse

from lokl._arrays import (
    Array,
    absolute_norms,
    as_dense,
    evenly_spaced,
    is_sparse,
    slices,
    squared_norms,
    without_duplicates,
)
from lokl._compiled import CompiledModule
from lokl._threads import multiply, n_threads, run_chunked
from lokl.kernels.base import Metric
from lokl.kernels.columns import take_columns

if TYPE_CHECKING:
    from lokl.gram.memory import RowCache

_mixing = CompiledModule("lokl.gram._mixing")

# Columns that the compiled loops process at a time: they stay in the first-level cache. Products
# that are stored need no panel there, so their tiles may be wider: a call takes as long as hundreds
# of entries.
TILE, _WIDE_TILE, _NARROW_TILE = 512, 2048, 128
# Inner products pass through a buffer of about this many entries, small enough to stay in a cache
# and to be touched without many page faults; never fewer rows than BLAS is efficient for. If every
# kernel is summed by itself, more work is done per entry, and the buffer may be larger.
_BUFFER, _SUMS_BUFFER, _FEWEST_ROWS, _MOST_ROWS = 2**17, 2**19, 32, 1024
# Measured per entry of a Gram row on one thread, in nanoseconds: one BLAS multiply-add, one
# multiply-add of the panel loop, and the detour of BLAS products through memory.
_DENSE_COST, _PANEL_COST, _DETOUR_COST = 0.032, 0.095, 0.6
# Bytes of the largest panels.
_LARGEST_PANELS = 128 * 2**20
# Entries whose computation takes as long as starting a thread and waiting for it.
_THREAD_COST = 2**15
# BLAS starts its threads for every product; for few samples of few columns that never pays.
_FEW_SAMPLES, _FEW_COLUMNS = 2048, 64
# Zeros are listed like other entries if fewer of the entries are zero.
_FULL_SHARE = 0.9
# Samples are centred if more than this share of their entries is not zero.
_DENSE_SHARE = 0.5
# Samples among which the origin of overlaps is chosen.
_ORIGIN_ROWS = 1000
# Bytes of a panel of overlaps that stay in the second-level cache.
_CACHED_PANEL = 2**19
# Overlaps of wide samples are computed from pairs of entries if fewer than this share is not zero.
_SPARSE_SHARE = 0.05

# Program, sides and target of the compiled loops, and whether only half of a symmetric matrix is
# needed.
Work = tuple[Any, Any, Any, bool]
# Columns that kernels use, None for all; and a number for each of them.
Columns = tuple[int, ...] | None
Numbers = tuple[float, ...] | None


class Layout(ABC):
    """Samples of one view, ready for inner products with others of the same layout.

    Parameters
    ----------
    X : {array, CSR matrix} of shape (n_samples, n_columns)
    """

    # Whether `mix` can compute only half of a symmetric matrix.
    halves: ClassVar[bool] = False

    def __init__(self, X: Any):
        self.X = X

    @classmethod
    def of(cls, X: Any, dtype: Any) -> "Layout":
        """Return samples in this layout, sparse ones as a CSR matrix."""
        if is_sparse(X):
            return cls(sparse.csr_matrix(X, dtype=dtype))
        return cls(np.ascontiguousarray(X, dtype=dtype))

    @abstractmethod
    def dots(self, rows: Array, right: Any, out: Array, begin: int = 0) -> None:
        """Write the inner products of the samples `rows` with the samples of `right`.

        Parameters
        ----------
        rows : array of int of shape (n_rows,)
        right : Layout
        out : array of shape (n_rows, n_right)
        begin : int, default=0
            Samples of `right` before it, a multiple of `TILE`, may be left out.
        """

    @property
    def n_samples(self) -> int:
        return int(self.X.shape[0])

    @property
    def width(self) -> int:
        """Columns that one thread takes at a time; fewer for few samples, so all threads work."""
        return TILE if self.n_samples > _FEW_SAMPLES else _NARROW_TILE

    @cached_property
    def norms(self) -> Array:
        """Squared norms, (n_samples,), in the dtype of the samples."""
        return squared_norms(self.X).astype(self.X.dtype)

    def take(self, index: Array) -> "Layout":
        """Return some of the samples."""
        part = type(self)(self.X[index])
        part.norms = self.norms[index]
        return part

    def astype(self, dtype: Any) -> "Layout":
        """Return the samples in another precision."""
        cast = type(self)(self.X.astype(dtype))
        cast.norms = self.norms.astype(dtype)
        return cast

    def products(
        self, rows: Array, right: "Layout", half: bool = False, cache: "RowCache | None" = None
    ) -> Iterator[tuple[slice, Array]]:
        """Yield inner products of the samples `rows` with all samples of `right`.

        Parameters
        ----------
        rows : array of int of shape (n_rows,)
        right : Layout
        half : bool, default=False
            Columns before the tile of the first row of a piece may be left out.
        cache : RowCache, optional
            Stored inner products among all samples; `right` are then the same samples.

        Yields
        ------
        part : slice
            Some of the rows.
        dots : array of shape (n_part, n_right)
            The next step may overwrite it.
        """
        pieces = in_pieces(len(rows), right.n_samples, half)
        buffer = np.empty((pieces[0].stop if pieces else 0, right.n_samples), dtype=self.X.dtype)
        for part in pieces:
            if cache is not None and part.stop - part.start <= cache.capacity:
                yield part, self._cached_dots(rows[part], cache)
                continue
            dots = buffer[: part.stop - part.start]
            self.dots(rows[part], right, dots, part.start // TILE * TILE if half else 0)
            yield part, dots

    def _cached_dots(self, rows: Array, cache: "RowCache") -> Array:
        """Return inner products of the samples `rows` with all samples; missing ones are stored."""
        slots, missing = cache.place(rows)
        if missing.any():
            dots = np.empty((int(missing.sum()), self.n_samples), dtype=self.X.dtype)
            self.dots(rows[missing], self, dots)
            cache.slab[slots[missing]] = dots
        return np.asarray(cache.slab[slots])

    def mix(self, rows: Array, right: Any, work: Work, cache: "RowCache | None" = None) -> None:
        """Write all gated kernels between the samples `rows` and the samples of `right`.

        If only half is needed, `rows` and `right` are all samples, and the entries below the
        diagonal may be left out.
        """
        program, sides, target, _ = work
        share = -(-right.n_samples // (n_threads() * _NARROW_TILE)) * _NARROW_TILE
        width = int(np.clip(share, _NARROW_TILE, _WIDE_TILE))
        count = -(-right.n_samples // width)
        tiles = _mixing.Tiles(np.arange(count), width, half=False)
        for part, dots in self.products(rows, right, cache=cache):
            piece = target._replace(rows=target.rows[part])
            products = _mixing.Products(dots, _no_pair(dots.dtype))
            arguments = (program, products, rows[part], sides, piece, tiles)
            run_chunked(_mixing.mix, count, 1, *arguments)

    def __getstate__(self) -> dict[str, Any]:
        # Lists and panels contain the samples once more.
        return {name: self.__dict__[name] for name in ("X", "norms") if name in self.__dict__}


class Dense(Layout):
    """Rows of an array; products by BLAS."""

    @classmethod
    def of(cls, X: Any, dtype: Any) -> "Dense":
        return cls(np.ascontiguousarray(as_dense(X), dtype=dtype))

    def dots(self, rows: Array, right: Layout, out: Array, begin: int = 0) -> None:
        multiply(self.X[rows], right.X[begin:].T, out[:, begin:])


class Sparse(Layout):
    """Rows of a CSR matrix too wide for panels; products by scipy."""

    @classmethod
    def of(cls, X: Any, dtype: Any) -> "Sparse":
        return cls(sparse.csr_matrix(X, dtype=dtype))

    def dots(self, rows: Array, right: Layout, out: Array, begin: int = 0) -> None:
        multiply(self.X[rows], right.X.T, out)


class Panels(Layout):
    """Sparse or very short rows, multiplied with transposed pieces of the samples.

    Products are computed in the mixing pass itself, without a detour through memory.
    """

    halves = True
    # Whether overlaps replace inner products.
    overlap: ClassVar[bool] = False

    @cached_property
    def lists(self) -> Any:
        """Entries of each row that are not zero, padded with zeros to a multiple of four.

        Rows with few zeros have all their entries.
        """
        n, d = self.X.shape
        if not is_sparse(self.X) and np.count_nonzero(self.X) > _FULL_SHARE * n * d:
            length = -(-d // 4) * 4
            pointers = np.arange(0, n * length + 1, length)
            indices = np.zeros((n, length), dtype=np.int32)
            entries = np.zeros((n, length), dtype=self.X.dtype)
            indices[:, :d] = np.arange(d)
            entries[:, :d] = self.X
            return _mixing.Lists(pointers, indices.ravel(), entries.ravel())
        if is_sparse(self.X):
            counts, columns, values = np.diff(self.X.indptr), self.X.indices, self.X.data
        else:
            nonzero = np.flatnonzero(self.X != 0)
            rows, columns = np.divmod(nonzero, self.X.shape[1])
            counts, values = np.bincount(rows, minlength=self.n_samples), self.X.ravel()[nonzero]
        padding = -counts % 4
        pointers = np.concatenate([[0], np.cumsum(counts + padding, dtype=np.int64)])
        indices = np.zeros(pointers[-1], dtype=np.int32)
        entries = np.zeros(pointers[-1], dtype=self.X.dtype)
        positions = np.arange(len(values)) + np.repeat(np.cumsum(padding) - padding, counts)
        indices[positions] = columns
        entries[positions] = values
        return _mixing.Lists(pointers, indices, entries)

    @cached_property
    def panels(self) -> Array:
        """Transposed samples in pieces, (n_panels, n_columns, width)."""
        n, d = self.X.shape
        width = self.width
        panels = np.zeros((max(-(-n // width), 1), d, width), dtype=self.X.dtype)
        for k, panel in enumerate(panels):
            piece = as_dense(self.X[k * width : (k + 1) * width])
            panel[:, : piece.shape[0]] = piece.T
        return panels

    def dots(self, rows: Array, right: Any, out: Array, begin: int = 0) -> None:
        pair = _mixing.SparsePair(self.lists, right.panels, self.overlap)

        def task(start: int, stop: int) -> None:
            _mixing.dots_sparse(begin + start, begin + stop, pair, rows, out)

        run_chunked(task, right.n_samples - begin, right.width)

    def mix(self, rows: Array, right: Any, work: Work, cache: "RowCache | None" = None) -> None:
        program, sides, target, half = work
        order = np.arange(len(right.panels))
        if half:
            # Long and short columns alternate, so that equal numbers of them are equal work.
            order = np.where(order % 2, len(order) - 1 - order // 2, order // 2)
        pair = _mixing.SparsePair(self.lists, right.panels, self.overlap)
        products = _mixing.Products(np.empty((0, 0), dtype=self.X.dtype), pair)
        tiles = _mixing.Tiles(order, right.width, half)
        entries = len(rows) * right.width // (2 if half else 1)
        grain = -(-_THREAD_COST // max(entries, 1))
        run_chunked(_mixing.mix, len(order), grain, program, products, rows, sides, target, tiles)


class Overlaps(Panels):
    """Sparse rows without negative entries, for overlaps in panels."""

    overlap = True

    @property
    def width(self) -> int:
        panel = self.X.shape[1] * TILE * self.X.dtype.itemsize
        return super().width if panel <= _CACHED_PANEL else TILE // 4

    def mix(self, rows: Array, right: Any, work: Work, cache: "RowCache | None" = None) -> None:
        if cache is None:
            super().mix(rows, right, work)
        else:
            Layout.mix(self, rows, right, work, cache)


class SparseOverlaps(Panels):
    """Sparse rows without negative entries, too wide for panels; overlaps of pairs of entries."""

    halves = False

    @cached_property
    def columns(self) -> Any:
        """Entries of each column."""
        X = sparse.csc_matrix(self.X)
        samples = X.indices.astype(np.int32, copy=False)
        return _mixing.Columns(X.indptr.astype(np.int64), samples, X.data)

    def dots(self, rows: Array, right: Any, out: Array, begin: int = 0) -> None:
        run_chunked(_mixing.dots_by_column, len(rows), 1, self.lists, right.columns, rows, out)

    def mix(self, rows: Array, right: Any, work: Work, cache: "RowCache | None" = None) -> None:
        Layout.mix(self, rows, right, work, cache)


@lru_cache(maxsize=2)
def _no_pair(dtype: Any) -> Any:
    """Return empty lists and panels, for inner products that are stored."""
    lists = _mixing.Lists(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, dtype))
    return _mixing.SparsePair(lists, np.empty((0, 0, 0), dtype), False)


def choose_layout(X: Any) -> type[Layout]:
    """Return the fastest layout for inner products among samples like `X`."""
    n, d = X.shape
    filled = (X.nnz if is_sparse(X) else np.count_nonzero(X)) / max(n, 1)
    fits = 4 * n * d <= _LARGEST_PANELS
    few = n <= _FEW_SAMPLES and d <= _FEW_COLUMNS
    if few or (fits and filled * _PANEL_COST < d * _DENSE_COST + _DETOUR_COST):
        return Panels
    return Sparse if is_sparse(X) and not (fits and filled > d / 4) else Dense


def in_pieces(n_rows: int, n_columns: int, half: bool = False) -> list[slice]:
    """Return slices of rows that fit the buffer; `half` is for sums over half of the pairs."""
    size = _SUMS_BUFFER if half else _BUFFER
    most = min(max(size // max(n_columns, 1), _FEWEST_ROWS), _MOST_ROWS)
    return slices(n_rows, most)


@dataclass(frozen=True)
class ViewSpec:
    """Columns that some kernels use, and how their samples are laid out.

    Samples laid out for one view serve every view that equals it.

    Attributes
    ----------
    columns : tuple of int or None
        Positions; None for all.
    column_scale : tuple of float or None
        Multiplier of every column; None for 1.
    layout : type of Layout
    offset : tuple of float or None
        Subtracted from every sample; None for 0.
    stores_products : bool
        Whether inner products are worth storing. Few entries are multiplied faster than products
        are read from memory, and views with scaled columns are rarely used again.
    sides : bytes or None
        For overlaps: whether training samples are above (1), below (2) or on both sides (3) of the
        offset in each column. None for inner products.
    """

    columns: Columns
    column_scale: Numbers
    layout: type[Layout]
    offset: Numbers
    stores_products: bool
    sides: bytes | None = None

    def select(self, X: Any) -> Any:
        """Return samples reduced to the columns, each times its scale."""
        return take_columns(X, self.columns, self.column_scale)

    def centred(self, X: Any) -> Any:
        """Return the selected columns of samples minus the offset."""
        values = self.select(X)
        return values if self.offset is None else as_dense(values) - np.array(self.offset)

    def norms(self, X: Any) -> Array:
        """Return squared norms of samples, or L1 norms for overlaps, (n_samples,), in float64."""
        values = self.centred(X)
        return squared_norms(values) if self.sides is None else absolute_norms(values)

    def laid_out(self, X: Any, dtype: Any) -> Layout:
        """Return samples in the layout of this view."""
        values = self.centred(X)
        if self.sides is None:
            return self.layout.of(values, dtype)
        layout = self.layout.of(_divided(values, self.sides), dtype)
        # A new sample on a side without training samples overlaps none of them, but is far away.
        layout.norms = absolute_norms(values).astype(dtype)
        return layout


class SampleLayouts:
    """Samples in all layouts that were needed so far: each view is laid out once.

    Views with scaled columns are not stored, because a search over column widths makes hundreds of
    them.

    Parameters
    ----------
    X : {array, CSR matrix} of shape (n_samples, n_features)
    """

    def __init__(self, X: Any):
        self.X = X
        self._choices: dict[tuple[Columns, Metric], tuple[Any, ...]] = {}
        self._norms: dict[ViewSpec, tuple[float, float]] = {}
        self._layouts: dict[tuple[ViewSpec, Any], Layout] = {}

    def view(
        self,
        columns: Columns,
        column_scale: Numbers = None,
        metric: Metric = "l2",
        can_centre: bool = False,
    ) -> ViewSpec:
        """Return the view of kernels; `can_centre` if an offset does not change their values."""
        key = columns, metric
        choice = self._choices.get(key) if column_scale is None else None
        if choice is None:
            values = take_columns(self.X, columns, column_scale)
            choice = _choose_overlaps(values) if metric == "l1" else _choose_products(values)
            if column_scale is None:
                self._choices[key] = choice
        layout, centre, stores, sides = choice
        # Distances between centred samples lose fewer digits. Overlaps depend on their origin.
        offset = centre if can_centre or metric == "l1" else None
        return ViewSpec(columns, column_scale, layout, offset, stores and not column_scale, sides)

    def norms(self, view: ViewSpec) -> tuple[float, float]:
        """Return the smallest norm of a view above zero and the largest; 0 without samples."""
        if view in self._norms:
            return self._norms[view]
        norms = view.norms(self.X)
        norms = norms[norms > 0]
        limits = (float(norms.min()), float(norms.max())) if len(norms) else (0.0, 0.0)
        if view.column_scale is None:
            self._norms[view] = limits
        return limits

    def laid_out(self, view: ViewSpec, dtype: Any) -> Layout:
        """Return the samples laid out for a view."""
        if (view, dtype) in self._layouts:
            return self._layouts[view, dtype]
        layout = view.laid_out(self.X, dtype)
        if view.column_scale is None:
            self._layouts[view, dtype] = layout
        return layout

    def take(self, rows: Array, X: Any) -> "SampleLayouts":
        """Return the layouts of the samples ``X = self.X[rows]``, chosen as for all samples."""
        part = SampleLayouts(X)
        part._choices.update(self._choices)
        part._layouts.update({key: layout.take(rows) for key, layout in self._layouts.items()})
        return part


def _choose_products(X: Any) -> tuple[Any, ...]:
    """Return layout, offset, whether to store products, and no sides, for inner products."""
    layout = choose_layout(X)
    return layout, _centre(X), layout is Dense, None


def _choose_overlaps(X: Any) -> tuple[Any, ...]:
    """Return layout, offset, whether to store overlaps, and sides, for overlaps."""
    n, d = X.shape
    origin = None if is_sparse(X) or n == 0 else _origin(X)
    zero = 0.0 if origin is None else np.array(origin)
    codes = np.zeros(d, dtype=np.uint8)
    if n:
        most, least = X.max(axis=0), X.min(axis=0)
        if is_sparse(X):
            most, least = most.toarray().ravel(), least.toarray().ravel()
        codes = ((most > zero) + 2 * (least < zero)).astype(np.uint8)
    entries = X.nnz if is_sparse(X) else (zero != X).sum()
    fits = 4 * n * d <= _LARGEST_PANELS
    by_pairs = not fits and entries < _SPARSE_SHARE * n * d
    stores = by_pairs or entries / max(n, 1) * _PANEL_COST > 2 * _DETOUR_COST
    return SparseOverlaps if by_pairs else Overlaps, origin, stores, codes.tobytes()


def _origin(X: Array) -> Numbers:
    """Return a value near the median of each column that occurs in it.

    A value of more than half of the samples becomes zero and is skipped.
    """
    some = X[evenly_spaced(len(X), _ORIGIN_ROWS)]
    middle = (len(some) - 1) // 2
    return tuple(np.partition(some, middle, axis=0)[middle].tolist())


def _divided(X: Any, sides: bytes) -> Any:
    """Return absolute values in one column for each side of each column, as a CSR matrix.

    Sides without a column are left out.
    """
    codes = np.frombuffer(sides, dtype=np.uint8)
    exists = np.stack([codes & 1, codes & 2], axis=1).astype(bool)
    positions = np.where(exists, np.cumsum(exists).reshape(exists.shape) - 1, -1)
    if is_sparse(X):
        X = without_duplicates(X)
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        columns, values = X.indices, X.data
    else:
        rows, columns = np.nonzero(X)
        values = X[rows, columns]
    targets = positions[columns, (values < 0).astype(np.intp)]
    kept = (targets >= 0) & (values != 0)
    counts = np.bincount(rows[kept], minlength=X.shape[0])
    pointers = np.concatenate([[0], np.cumsum(counts)])
    entries = np.abs(values[kept]), targets[kept].astype(np.int32), pointers
    return sparse.csr_matrix(entries, shape=(X.shape[0], int(exists.sum())))


def _centre(X: Any) -> Numbers:
    """Return the mean of samples, or None if too many entries are zero to centre them."""
    if is_sparse(X) or np.count_nonzero(X) <= _DENSE_SHARE * X.size:
        return None
    return tuple(X.mean(axis=0, dtype=np.float64).tolist())
