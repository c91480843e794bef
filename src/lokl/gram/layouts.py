"""Rows of one matrix in one preallocated slab, the least recently used ones evicted.

Views of samples, that is some of their columns, and how these are laid out for inner products.

Three layouts give the same numbers; the training samples decide which is fastest.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from lokl._arrays import Array, as_dense, is_sparse, squared_norms
from lokl._compiled import CompiledModule
from lokl._threads import multiply, run_chunked
from lokl.kernels.columns import stretched, take_columns

# More than one evicted row among this many missing rows opens more memory.
_RETURNING = 3


class RowCache:
    """At most `capacity` rows of length `width`.

    The slab is reserved at once, never allocated anew, and opened step by step: the first touch of
    fresh memory costs more than computing a row, so more of it is used only once evicted rows are
    asked for again.
    """

    def __init__(self, n_rows: int, width: int, capacity: int, dtype: Any):
        self.capacity = min(capacity, n_rows)
        self.slab = np.empty((self.capacity, width), dtype=dtype)
        self._slot = np.full(n_rows, -1, dtype=np.intp)
        self._owner = np.full(self.capacity, -1, dtype=np.intp)
        self._used_at = np.zeros(self.capacity, dtype=np.int64)
        self._evicted = np.zeros(n_rows, dtype=bool)
        self._clock = 0
        self._filled = 0
        self._open = 0

    def clear(self) -> None:
        """Forget all rows; the slab stays."""
        self._slot[:] = -1
        self._owner[:] = -1
        self._used_at[:] = 0
        self._evicted[:] = False
        self._filled = 0

    def slots(self, index: Array) -> Array:
        """Where rows are stored, -1 for those that are not."""
        return np.asarray(self._slot[index])

    def place(self, index: Array) -> tuple[Array, Array]:
        """Give every row of `index` a slot; return the slots and which rows must be computed.

        At most `capacity` distinct rows may be asked for in one call: they are all kept.
        """
        if len(index) > self.capacity:
            raise ValueError(f"{len(index)} rows do not fit a slab of {self.capacity}")
        self._clock += 1
        slots = self._slot[index]
        missing = slots < 0
        self._used_at[slots[~missing]] = self._clock
        rows = index[missing]
        wanted = len(rows)
        self._widen(len(index), wanted, int(self._evicted[rows].sum()))
        fresh = min(wanted, self._open - self._filled)
        free = np.arange(self._filled, self._filled + fresh)
        self._filled += fresh
        self._used_at[free] = self._clock
        if fresh < wanted:
            oldest = np.argsort(self._used_at[: self._open], kind="stable")[: wanted - fresh]
            self._slot[self._owner[oldest]] = -1
            self._evicted[self._owner[oldest]] = True
            free = np.concatenate([free, oldest])
        slots[missing] = free
        self._slot[rows] = free
        self._owner[free] = rows
        self._used_at[free] = self._clock
        return slots, missing

    def _widen(self, asked: int, missing: int, returning: int) -> None:
        """Open more of the slab for a larger request, or for evicted rows that come back."""
        size = max(self._open, 2 * asked)
        if returning * _RETURNING > missing:
            size = max(size, 2 * self._open)
        self._open = min(size, self.capacity)


_mixing = CompiledModule("lokl.gram._mixing")

TILE = 512
# Inner products pass through a buffer of about this many entries, small enough to stay in a cache
# and to be touched without many page faults; never fewer rows than a matrix product is good at.
_BUFFER, _FEWEST_ROWS, _MOST_ROWS = 2**17, 32, 1024
# Where every kernel is summed by itself, more is done with an entry than fetching it costs.
_SUMS_BUFFER = 2**19
# Measured per entry of a Gram row on one thread, in nanoseconds: one BLAS multiply-add, one
# multiply-add of the panel loop, and the detour of BLAS products through memory.
_DENSE_COST, _PANEL_COST, _DETOUR_COST = 0.032, 0.095, 0.6
_LARGEST_PANELS = 128 * 2**20
# Entries that take as long as to wake a thread for them and to wait for it.
_THREAD_COST = 2**15
# BLAS wakes its threads for every product; for few samples of few columns that never pays.
_FEW_SAMPLES, _FEW_COLUMNS = 2048, 64

# Program, sides and target of the compiled loops.
Work = tuple[Any, Any, Any]
# Columns that kernels look at, None for all; and a number for each of them.
Columns = tuple[int, ...] | None
Numbers = tuple[float, ...] | None


class Layout(ABC):
    """Samples of one view, ready for inner products with others of the same layout."""

    # Whether `mix_half` computes only half of a symmetric matrix.
    halves: ClassVar[bool] = False

    def __init__(self, X: Any):
        self.X = X

    @classmethod
    def of(cls, X: Any, dtype: Any) -> "Layout":
        """Lay out samples, sparse ones as a CSR matrix."""
        if is_sparse(X):
            return cls(sparse.csr_matrix(X, dtype=dtype))
        return cls(np.ascontiguousarray(X, dtype=dtype))

    @abstractmethod
    def dots(self, rows: Array, right: Any, out: Array, begin: int = 0) -> None:
        """Write the inner products of the samples `rows` with the samples of `right`.

        Samples of `right` before `begin`, a multiple of `TILE`, may be left out.
        """

    @property
    def n_samples(self) -> int:
        return int(self.X.shape[0])

    @property
    def width(self) -> int:
        """Columns that one thread takes at a time; narrow where there are few, so that all work."""
        return TILE if self.n_samples > _FEW_SAMPLES else TILE // 4

    @cached_property
    def norms(self) -> Array:
        """Squared norms, in the dtype of the samples."""
        return squared_norms(self.X).astype(self.X.dtype)

    def take(self, index: Array) -> "Layout":
        """Return some of the samples."""
        part = type(self)(self.X[index])
        part.norms = self.norms[index]
        return part

    def products(
        self, rows: Array, right: "Layout", half: bool = False, kept: RowCache | None = None
    ) -> Iterator[tuple[slice, Array]]:
        """Inner products of the samples `rows` with those of `right`, some rows at a time.

        Yields which of the rows, and an array (n_rows, n_right) that the next step overwrites. With
        `half`, columns before the tile of the first of the rows may be left out. `kept` stores
        inner products among all samples, which are then those of `right`.
        """
        pieces = in_pieces(len(rows), right.n_samples, half)
        buffer = np.empty((pieces[0].stop if pieces else 0, right.n_samples), dtype=self.X.dtype)
        for part in pieces:
            if kept is not None and part.stop - part.start <= kept.capacity:
                yield part, self._kept_dots(rows[part], kept)
                continue
            dots = buffer[: part.stop - part.start]
            self.dots(rows[part], right, dots, part.start // TILE * TILE if half else 0)
            yield part, dots

    def _kept_dots(self, rows: Array, kept: RowCache) -> Array:
        """Inner products of the samples `rows` with all samples, computed where not stored."""
        slots, missing = kept.place(rows)
        if missing.any():
            dots = np.empty((int(missing.sum()), self.n_samples), dtype=self.X.dtype)
            self.dots(rows[missing], self, dots)
            kept.slab[slots[missing]] = dots
        return np.asarray(kept.slab[slots])

    def mix(self, rows: Array, right: Any, work: Work, kept: RowCache | None = None) -> None:
        """Write all gated kernels between the samples `rows` and those of `right`."""
        program, sides, target = work
        count = -(-right.n_samples // right.width)
        tiles = _mixing.Tiles(np.arange(count), right.width, half=False)
        for part, dots in self.products(rows, right, kept=kept):
            place = target._replace(rows=target.rows[part])
            products = _mixing.Products(dots, _no_pair(dots.dtype))
            run_chunked(
                *(_mixing.mix, count, 1),
                *(program, products, rows[part], sides, place, tiles),
            )

    def mix_half(self, work: Work) -> None:
        """Write the kernels among all samples, entries on and above the diagonal at least."""
        self.mix(np.arange(self.n_samples), self, work)

    def __getstate__(self) -> dict[str, Any]:
        # Lists and panels are the samples once more.
        return {name: self.__dict__[name] for name in ("X", "norms") if name in self.__dict__}


class Dense(Layout):
    """Rows of an array, products by BLAS."""

    @classmethod
    def of(cls, X: Any, dtype: Any) -> "Dense":
        return cls(np.ascontiguousarray(as_dense(X), dtype=dtype))

    def dots(self, rows: Array, right: Layout, out: Array, begin: int = 0) -> None:
        multiply(self.X[rows], right.X[begin:].T, out[:, begin:])


class Sparse(Layout):
    """Rows of a CSR matrix too wide for panels, products by scipy."""

    @classmethod
    def of(cls, X: Any, dtype: Any) -> "Sparse":
        return cls(sparse.csr_matrix(X, dtype=dtype))

    def dots(self, rows: Array, right: Layout, out: Array, begin: int = 0) -> None:
        multiply(self.X[rows], right.X.T, out)


class Panels(Layout):
    """Sparse or very short rows against transposed pieces of the samples.

    Products are computed in the mixing pass itself, without a detour through memory.
    """

    halves = True

    @cached_property
    def lists(self) -> Any:
        """Entries of each row that are not zero, padded with zeros to a multiple of four."""
        if is_sparse(self.X):
            counts, columns, values = np.diff(self.X.indptr), self.X.indices, self.X.data
        else:
            where = np.flatnonzero(self.X != 0)
            rows, columns = np.divmod(where, self.X.shape[1])
            counts, values = np.bincount(rows, minlength=self.n_samples), self.X.ravel()[where]
        # Behind each row as many zeros as it takes.
        padding = -counts % 4
        pointers = np.concatenate([[0], np.cumsum(counts + padding, dtype=np.int64)])
        indices = np.zeros(pointers[-1], dtype=np.int32)
        entries = np.zeros(pointers[-1], dtype=self.X.dtype)
        place = np.arange(len(values)) + np.repeat(np.cumsum(padding) - padding, counts)
        indices[place] = columns
        entries[place] = values
        return _mixing.Lists(pointers, indices, entries)

    @cached_property
    def panels(self) -> Array:
        """Transposed samples in pieces: (n_panels, n_columns, width)."""
        n, d = self.X.shape
        width = self.width
        panels = np.zeros((max(-(-n // width), 1), d, width), dtype=self.X.dtype)
        for k, panel in enumerate(panels):
            piece = as_dense(self.X[k * width : (k + 1) * width])
            panel[:, : piece.shape[0]] = piece.T
        return panels

    def dots(self, rows: Array, right: Any, out: Array, begin: int = 0) -> None:
        pair = _mixing.SparsePair(self.lists, right.panels)

        def task(start: int, stop: int) -> None:
            _mixing.dots_sparse(begin + start, begin + stop, pair, rows, out)

        run_chunked(task, right.n_samples - begin, right.width)

    def mix(self, rows: Array, right: Any, work: Work, kept: RowCache | None = None) -> None:
        self._mix(rows, right, work, np.arange(len(right.panels)), half=False)

    def mix_half(self, work: Work) -> None:
        # Long and short columns in turn: equal shares of them are equal work.
        count = len(self.panels)
        order = np.empty(count, dtype=np.int64)
        order[::2] = np.arange((count + 1) // 2)
        order[1::2] = np.arange(count - 1, (count + 1) // 2 - 1, -1)
        self._mix(np.arange(self.n_samples), self, work, order, half=True)

    def _mix(self, rows: Array, right: Any, work: Work, order: Array, *, half: bool) -> None:
        program, sides, target = work
        pair = _mixing.SparsePair(self.lists, right.panels)
        products = _mixing.Products(np.empty((0, 0), dtype=self.X.dtype), pair)
        tiles = _mixing.Tiles(order, right.width, half)
        entries = len(rows) * right.width // (2 if half else 1)
        grain = -(-_THREAD_COST // max(entries, 1))
        run_chunked(_mixing.mix, len(order), grain, program, products, rows, sides, target, tiles)


@lru_cache(maxsize=2)
def _no_pair(dtype: Any) -> Any:
    """Return lists and panels of no samples, where inner products are stored."""
    lists = _mixing.Lists(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, dtype))
    return _mixing.SparsePair(lists, np.empty((0, 0, 0), dtype))


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
    """Cut rows into pieces that fit the buffer; `half` is for sums over half of the pairs."""
    size = _SUMS_BUFFER if half else _BUFFER
    step = int(np.clip(size // max(n_columns, 1), _FEWEST_ROWS, _MOST_ROWS))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


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
        return self.layout is Dense and self.stretch is None


class Views:
    """What is known of some samples: each view is decided on, and laid out, once.

    Stretched views are not remembered: a search over the widths of columns makes hundreds of them.
    """

    def __init__(self, X: Any):
        self.X = X
        self._decided: dict[Columns, tuple[type[Layout], Numbers]] = {}
        self._norms: dict[View, tuple[float, float]] = {}
        self._laid_out: dict[tuple[View, Any], Layout] = {}

    def view(self, columns: Columns, stretch: Numbers, movable: bool) -> View:
        """Return the view of kernels, all of which allow samples to be moved together or not."""
        decision = self._decided.get(columns) if stretch is None else None
        if decision is None:
            decision = _decide(_see(self.X, columns, stretch))
            if stretch is None:
                self._decided[columns] = decision
        layout, centre = decision
        # Distances do not change when all samples move, but lose fewer digits near zero.
        return View(columns, stretch, layout, centre if movable else None)

    def norms(self, view: View) -> tuple[float, float]:
        """Return the smallest squared norm above zero and the largest; 0 without samples."""
        if view in self._norms:
            return self._norms[view]
        norms = squared_norms(view.moved(self.X))
        norms = norms[norms > 0]
        found = (float(norms.min()), float(norms.max())) if len(norms) else (0.0, 0.0)
        if view.stretch is None:
            self._norms[view] = found
        return found

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


def _see(X: Any, columns: Columns, stretch: Numbers) -> Any:
    seen = X if columns is None else take_columns(X, np.array(columns, dtype=np.intp))
    return seen if stretch is None else stretched(seen, stretch)


def _decide(seen: Any) -> tuple[type[Layout], Numbers]:
    """Return the layout of samples, and their mean where few enough entries are zero to centre."""
    layout = choose_layout(seen)
    if is_sparse(seen) or np.count_nonzero(seen) <= 0.5 * seen.size:
        return layout, None
    return layout, tuple(seen.mean(axis=0, dtype=np.float64).tolist())
