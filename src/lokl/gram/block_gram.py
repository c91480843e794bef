"""Block-diagonal Gram matrices: gates that divide the samples.

If every sample has its gates in one rank alone, for example as a member of one cluster, samples of
different ranks share nothing: ``<h_i(x), h_i(z)> = 0``. Their matrix is block diagonal. Each block
is a Gram matrix of its own, with gates of rank one, and nothing is computed between blocks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lokl._arrays import Array, column
from lokl.gram.gated_gram import GatedGram, InnerProducts
from lokl.gram.memory import MEGABYTE
from lokl.gram.plan import Points, ranks_of

# Rows that the memory of a block holds at least, even if half of it is for inner products.
_FEWEST_ROWS = 4


@dataclass(frozen=True, eq=False)
class _Block:
    """Samples of one rank, and their matrix."""

    rank: int
    rows: Array  # indices of the samples, (n_rows,)
    gram: GatedGram


class BlockGram(GatedGram):
    """The matrix of samples that gates divide; methods as in :class:`GatedGram`.

    Sums for single kernels do not include the gate of the sample itself. Therefore
    :meth:`kernel_sums`, and the gradient of gates that uses them, are computed between all samples.
    """

    _ranks: Array
    _blocks: list[_Block]

    @classmethod
    def divided(cls, inner: InnerProducts, points: Points, ranks: Array) -> "BlockGram":
        """Return the matrix of samples with given ranks (see :func:`~lokl.gram.plan.ranks_of`)."""
        members = {
            int(rank): np.flatnonzero(ranks == rank) for rank in np.unique(ranks[ranks >= 0])
        }
        sizes = np.array([len(rows) for rows in members.values()], dtype=float)
        # Few rows of every block; the rest of the memory in proportion to the size of its matrix.
        least = _FEWEST_ROWS * points.plan.dtype.itemsize * sizes / MEGABYTE
        rest = max(inner.cache_size - least.sum(), 0.0)
        budgets = least + rest * sizes**2 / max(float((sizes**2).sum()), 1.0)
        dtype, blocks = points.plan.dtype, []
        for (rank, rows), budget in zip(members.items(), budgets, strict=True):
            part = InnerProducts(inner.X[rows], cache_size=budget, dtype=dtype, keep=inner.keep)
            blocks.append(_Block(rank, rows, GatedGram.of(part, points.in_rank(rows, rank))))
        return cls._joined(inner, points, ranks, blocks)

    @classmethod
    def _joined(
        cls, inner: InnerProducts, points: Points, ranks: Array, blocks: list[_Block]
    ) -> "BlockGram":
        gram = cls.of(inner, points)
        gram._ranks, gram._blocks = ranks, blocks
        return gram

    @cached_property
    def _positions(self) -> Array:
        """Position of every sample in its block, (n_samples,)."""
        positions = np.zeros(self.n_samples, dtype=np.intp)
        for block in self._blocks:
            positions[block.rows] = np.arange(len(block.rows))
        return positions

    def _with(self, points: Points) -> GatedGram:
        ranks = ranks_of(points.gates)
        if ranks is None or not np.array_equal(ranks, self._ranks):
            return GatedGram.of(self.inner, points)
        blocks = [
            _Block(b.rank, b.rows, b.gram.regated(points.gates[b.rows][:, :, [b.rank]]))
            for b in self._blocks
        ]
        return self._joined(self.inner, points, ranks, blocks)

    @property
    def capacity(self) -> int:
        return sum(block.gram.capacity for block in self._blocks)

    def _compute_whole(self, matrix: Array) -> None:
        matrix[:] = 0.0
        for block in self._blocks:
            matrix[np.ix_(block.rows, block.rows)] = block.gram.whole
            block.gram.release()

    def release(self) -> None:
        super().release()
        for block in self._blocks:
            block.gram.release()

    def cross(self, rows: Array, columns: Array) -> Array:
        memory = self.inner.memory
        if memory.belongs_to(self.points) and memory.whole is not None:
            return super().cross(rows, columns)
        out = np.zeros((len(rows), len(columns)), dtype=self.dtype)
        for block, near in self._members(rows):
            far = np.flatnonzero(self._ranks[columns] == block.rank)
            if len(far):
                positions = self._positions[rows[near]], self._positions[columns[far]]
                out[np.ix_(near, far)] = block.gram.cross(*positions)
        return out

    def _compute(self, index: Array, slab: Array, slots: Array) -> None:
        slab[slots] = self.cross(index, np.arange(self.n_samples))

    def subtract(self, index: Array, coef: Array, target: Array) -> None:
        for block, members in self._members(index):
            part = target[block.rows]
            block.gram.subtract(self._positions[index[members]], coef[members], part)
            target[block.rows] = part

    def dot(self, coef: Array) -> Array:
        columns = column(coef)
        product = np.zeros(columns.shape)
        for block in self._blocks:
            product[block.rows] = block.gram.dot(columns[block.rows])
        return product if coef.ndim == 2 else product[:, 0]

    def kernel_forms(self, coef: Array) -> Array:
        columns = column(coef)
        forms = np.zeros(self.gates.shape[1:])
        for block in self._blocks:
            forms[:, block.rank] = block.gram.kernel_forms(columns[block.rows])[:, 0]
        return forms

    def _members(self, index: Array) -> Iterator[tuple[_Block, Array]]:
        """Yield the blocks of some samples, with the positions of these samples in `index`."""
        ranks = self._ranks[index]
        for block in self._blocks:
            members = np.flatnonzero(ranks == block.rank)
            if len(members):
                yield block, members
