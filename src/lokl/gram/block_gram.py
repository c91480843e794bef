"""Gates that divide the samples: a Gram matrix of blocks, and nothing computed between them.

Where every sample has its gates in one rank alone, as members of one cluster each, samples of
different ranks share nothing: ``<h_i(x), h_i(z)> = 0``. Their matrix is block diagonal. Each block
is a Gram matrix of its own, with gates of rank one.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lokl._arrays import Array, column, read_only
from lokl.gram.gated_gram import GatedGram
from lokl.gram.inner_products import InnerProducts, frozen
from lokl.gram.memory import MEGABYTE
from lokl.gram.plan import Points

# Rows that the memory of a block holds at least, also where half of it is for inner products.
_FEWEST_ROWS = 4


def ranks_of(gates: Array) -> Array | None:
    """Return the one rank in which each sample has its gates, -1 for a sample without any.

    Parameters
    ----------
    gates : array of shape (n_samples, n_kernels, rank)

    Returns
    -------
    ranks : array of shape (n_samples,) or None
        None where there is one rank only, or a sample has gates in several.
    """
    if gates.shape[2] < 2:
        return None
    used = (gates != 0).any(axis=1)
    count = used.sum(axis=1)
    return np.where(count > 0, used.argmax(axis=1), -1) if (count <= 1).all() else None


def in_rank(points: Points, rows: Array, rank: int) -> Points:
    """Return samples that have their gates in one rank, with gates of this rank alone."""
    part = points.take(rows)
    return part.regated(part.gates[:, :, [rank]])


@dataclass(frozen=True, eq=False)
class _Block:
    """Samples of one rank, and the matrix of these."""

    rank: int
    rows: Array
    gram: GatedGram


class BlockGram(GatedGram):
    """The matrix of samples that gates divide: methods as those of any other.

    Single kernels without the gate of the sample itself (:meth:`kernel_sums`, and the gradient of
    gates that is made of them) are not of blocks, and computed between all samples.
    """

    @classmethod
    def divided(cls, inner: InnerProducts, points: Points, ranks: Array) -> "BlockGram":
        """Return the matrix of samples whose ranks are known (see :func:`ranks_of`)."""
        members = {
            int(rank): np.flatnonzero(ranks == rank) for rank in np.unique(ranks[ranks >= 0])
        }
        sizes = np.array([len(rows) for rows in members.values()], dtype=float)
        item = points.plan.dtype.itemsize
        # Few rows of every block, and of what is left as much as it takes for each.
        least = _FEWEST_ROWS * item * sizes / MEGABYTE
        left = max(inner.cache_size - least.sum(), 0.0)
        shares = least + left * sizes**2 / max(float((sizes**2).sum()), 1.0)
        blocks = []
        for (rank, rows), share in zip(members.items(), shares, strict=True):
            own = InnerProducts(
                inner.X[rows], cache_size=share, dtype=points.plan.dtype, keep=inner.keep
            )
            blocks.append(_Block(rank, rows, GatedGram.of(own, in_rank(points, rows, rank))))
        return cls._joined(inner, points, ranks, blocks)

    @classmethod
    def _joined(
        cls, inner: InnerProducts, points: Points, ranks: Array, blocks: list[_Block]
    ) -> "BlockGram":
        gram = cls.__new__(cls)
        gram._set(inner, points)
        gram._ranks, gram._blocks = ranks, blocks
        return gram

    _ranks: Array
    _blocks: list[_Block]

    @cached_property
    def _places(self) -> Array:
        """Place of every sample in its block."""
        places = np.zeros(self.n_samples, dtype=np.intp)
        for block in self._blocks:
            places[block.rows] = np.arange(len(block.rows))
        return places

    def regated(self, gates: Array) -> GatedGram:
        gates = frozen(gates, self.n_samples, self.plan.n_kernels)
        if np.array_equal(gates, self.gates):
            return self
        points = self.points.regated(gates)
        ranks = ranks_of(gates)
        if ranks is None or not np.array_equal(ranks, self._ranks):
            return GatedGram.of(self.inner, points)
        blocks = [
            _Block(own.rank, own.rows, own.gram.regated(gates[own.rows][:, :, [own.rank]]))
            for own in self._blocks
        ]
        return self._joined(self.inner, points, ranks, blocks)

    @property
    def capacity(self) -> int:
        return sum(block.gram.capacity for block in self._blocks)

    @property
    def whole(self) -> Array:
        memory = self._memory
        if memory.whole is None:
            matrix = memory.square(self.dtype)
            matrix[:] = 0.0
            for block in self._blocks:
                matrix[np.ix_(block.rows, block.rows)] = block.gram.whole
                block.gram.release()
            memory.whole = read_only(matrix)
        return memory.whole

    def release(self) -> None:
        super().release()
        for block in self._blocks:
            block.gram.release()

    def cross(self, rows: Array, columns: Array) -> Array:
        memory = self.inner.memory
        if memory.belongs_to(self.points) and memory.whole is not None:
            return super().cross(rows, columns)
        out = np.zeros((len(rows), len(columns)), dtype=self.dtype)
        self._cross(rows, columns, out)
        return out

    def _cross(self, rows: Array, columns: Array, out: Array) -> None:
        for block in self._blocks:
            near = np.flatnonzero(self._ranks[rows] == block.rank)
            far = np.flatnonzero(self._ranks[columns] == block.rank)
            if len(near) and len(far):
                places = self._places[rows[near]], self._places[columns[far]]
                out[np.ix_(near, far)] = block.gram.cross(*places)

    def _compute(self, index: Array, slab: Array, slots: Array) -> None:
        slab[slots] = self.cross(index, np.arange(self.n_samples))

    def subtract(self, index: Array, coef: Array, target: Array) -> None:
        for block, own in self._among(index):
            part = target[block.rows]
            block.gram.subtract(self._places[index[own]], coef[own], part)
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

    def _among(self, index: Array) -> list[tuple[_Block, Array]]:
        """Blocks that some samples are in, with the places of these samples in `index`."""
        ranks = self._ranks[index]
        found = [(block, np.flatnonzero(ranks == block.rank)) for block in self._blocks]
        return [(block, own) for block, own in found if len(own)]
