"""Trees that divide many samples into regions of bounded size.

A split halves its samples along a direction that balanced 2-means finds. A tree has a trunk and
branches. The trunk is grown from a subsample of the rows, which is drawn by row position. All rows
are then sent down the trunk, and a branch is grown in every region of the trunk that receives more
rows than a region may have. Therefore the rows of only one such region need to be in one place at a
time, and the tree does not depend on where the rows are stored.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from lokl._arrays import Array, is_sparse, read_only
from lokl._compiled import CompiledModule
from lokl._threads import run_chunked, single_threaded_blas

_project = CompiledModule("lokl.regions._project")
T = TypeVar("T")

# Samples per thread below which threads do not pay off.
_GRAIN = 4096
# Most samples that a trunk is grown from, and most from which one direction is computed.
_TRUNK_SAMPLE, _DIRECTION_SAMPLE = 50_000, 10_000
# A node of the trunk with fewer sampled rows is not split: its direction would be mostly noise.
_FEWEST_TO_SPLIT = 100
# If the smaller side of a split has a lower share of the samples, random directions are tried.
_BALANCED, _ATTEMPTS = 0.25, 4
# Rounds of 2-means. More hardly change the direction. After a few rounds, the split still depends
# on its random start, so that trees of different seeds separate different neighbours.
_ROUNDS, _ROUNDS_IF_VARIED = 12, 3
# The seed of a split is the path to it: 1 for the root and for each left turn, 2 for each right
# turn. Zeros are avoided because trailing zeros do not change a seed sequence.
_ROOT, _SUBSAMPLE_KEY = (1,), 2


class Membership(NamedTuple):
    """Samples of one region, in increasing order, and their degrees of membership in (0, 1]."""

    rows: Array
    weight: Array | None  # None if every sample belongs entirely to the region

    def select(self, chosen: Array, degree: Array | None = None) -> "Membership":
        """Return the `chosen` samples (boolean mask), their weights multiplied by `degree`."""
        rows, weight = self.rows[chosen], None if self.weight is None else self.weight[chosen]
        if degree is not None:
            weight = degree[chosen] if weight is None else weight * degree[chosen]
        return Membership(rows, weight)

    def split(self, side: Array, band: float) -> "tuple[Membership, Membership]":
        """Return the samples left and right of a split, given their signed distances `side`."""
        if band == 0.0:
            right = side > 0.0
            return self.select(~right), self.select(right)
        degree = np.clip(0.5 + 0.5 * side / band, 0.0, 1.0)
        return self.select(degree < 1.0, 1.0 - degree), self.select(degree > 0.0, degree)


def project(X: Any, rows: Array, direction: Array, fill_values: Array) -> Array:
    """Compute inner products of some samples with a direction.

    Dense and CSR samples give identical results, to the last bit.

    Parameters
    ----------
    X : {array, CSR matrix} of shape (n_samples, n_features)
    rows : array of int, of shape (n_rows,)
    direction : array of shape (n_features,)
    fill_values : array of shape (n_features,)
        Replacements for NaN.

    Returns
    -------
    products : array of shape (n_rows,)
    """
    out = np.empty(len(rows))
    task = _project.project_sparse if is_sparse(X) else _project.project_dense
    arrays = (X.data, X.indices, X.indptr) if is_sparse(X) else (X,)
    matrix = map(read_only, arrays)
    run_chunked(task, len(rows), _GRAIN, *matrix, rows, direction, fill_values, out)
    return out


@dataclass(frozen=True, eq=False)
class RegionTree:
    """Splits that send every sample left or right until it reaches its region.

    ``side(x) = <direction, x> - offset`` is positive for samples on the right. If a split has a
    band, samples within it belong to both sides, with weight ``(1 + side(x) / band) / 2`` on the
    right. The weights of a sample over all regions sum to one. Nodes, and therefore splits and
    regions, are in depth-first order: a split, everything on its left, everything on its right.

    Attributes
    ----------
    directions : array of shape (n_splits, n_features)
    offsets : array of shape (n_splits,)
    bands : array of shape (n_splits,)
        Half the width of the band of each split, 0 if it has none.
    is_split : array of bool, of shape (n_splits + n_regions,)
        Whether each node is a split; all other nodes are regions.
    fill_values : array of shape (n_features,)
        Replacements for NaN.
    """

    directions: Array
    offsets: Array
    bands: Array
    is_split: Array
    fill_values: Array

    @property
    def n_regions(self) -> int:
        return len(self.offsets) + 1

    @property
    def overlaps(self) -> bool:
        """Whether samples may belong to several regions."""
        return bool(self.bands.any())

    def divide(self, X: Any) -> list[Membership]:
        """Return the samples of every region; rows of `X`, {array, CSR matrix}, are samples."""

        def split(index: int, members: Membership) -> tuple[Membership, Membership]:
            side = project(X, members.rows, self.directions[index], self.fill_values)
            side -= self.offsets[index]
            return members.split(side, self.bands[index])

        return self._descend(Membership(np.arange(X.shape[0]), None), split)

    def paths(self) -> list[tuple[int, ...]]:
        """Return the path from the root to each region, see `_ROOT`."""
        return self._descend(_ROOT, lambda _, path: ((*path, 1), (*path, 2)))

    def _descend(self, root: T, split: Callable[[int, T], tuple[T, T]]) -> list[T]:
        """Split a value at every split, given by index; return the part of each region."""
        pending, arrived, index = [root], [], 0
        for is_split in self.is_split:
            value = pending.pop()
            if is_split:
                pending += split(index, value)[::-1]
                index += 1
            else:
                arrived.append(value)
        return arrived

    def assign(self, X: Any) -> Array:
        """Return the index of the region in which each sample has the largest weight, (n,)."""
        region, largest = np.zeros(X.shape[0], dtype=np.int32), np.zeros(X.shape[0])
        for index, (rows, weight) in enumerate(self.divide(X)):
            if weight is None:
                region[rows] = index
                continue
            larger = weight > largest[rows]
            region[rows[larger]], largest[rows[larger]] = index, weight[larger]
        return region


def attach_branches(trunk: RegionTree, branches: Sequence[RegionTree]) -> RegionTree:
    """Return the tree in which each region of the trunk is replaced by its branch."""
    n_splits_before = np.cumsum(trunk.is_split)[~trunk.is_split]

    def insert(values: Array, parts: list[Array]) -> Array:
        positions = np.repeat(n_splits_before, [len(part) for part in parts])
        return np.insert(values, positions, np.concatenate(parts), axis=0)

    return RegionTree(
        insert(trunk.directions, [branch.directions for branch in branches]),
        insert(trunk.offsets, [branch.offsets for branch in branches]),
        insert(trunk.bands, [branch.bands for branch in branches]),
        insert(trunk.is_split[trunk.is_split], [branch.is_split for branch in branches]),
        trunk.fill_values,
    )


@dataclass(frozen=True)
class TreeGrower:
    """Settings and algorithm of tree growth.

    Attributes
    ----------
    max_size : int
        Most samples of a region. Only regions of equal samples may have more.
    overlap : float
        Share of the samples of a node that belong to both sides of its split.
    seed : tuple of int
        Seed of the initial directions of 2-means. The subsample for the trunk depends on its first
        number only, so that several trees can share it.
    varied : bool
        Whether to prefer trees that differ between seeds over splits that are as good as possible.
    """

    max_size: int
    overlap: float = 0.0
    seed: tuple[int, ...] = (0,)
    varied: bool = False

    def grow(self, X: Any) -> tuple[RegionTree, list[Membership]]:
        """Grow a tree for all samples.

        Parameters
        ----------
        X : {array, CSR matrix} of shape (n_samples, n_features)
            NaN is allowed in arrays.

        Returns
        -------
        tree : RegionTree
        members : list of Membership
            Samples of each region, as ``tree.divide(X)`` returns them.
        """
        n = X.shape[0]
        if n <= _TRUNK_SAMPLE:
            return self.grow_trunk(X, n)
        trunk, _ = self.grow_trunk(X[self.subsample(n)], n)
        branches, members = self.grow_branches(X, trunk, range(trunk.n_regions))
        return attach_branches(trunk, branches), members

    def subsample(self, n_samples: int) -> Array:
        """Return the sorted positions of the rows from which the trunk is grown."""
        if n_samples <= _TRUNK_SAMPLE:
            return np.arange(n_samples)
        rng = np.random.default_rng((self.seed[0], _SUBSAMPLE_KEY))
        return np.sort(rng.choice(n_samples, size=_TRUNK_SAMPLE, replace=False, shuffle=False))

    def grow_trunk(self, points: Any, n_samples: int) -> tuple[RegionTree, list[Membership]]:
        """Grow the trunk of a tree for `n_samples` samples from the subsample `points`.

        Returns the trunk, and the points in each of its regions.
        """
        max_size, count = self.max_size, points.shape[0]
        if count < n_samples:
            max_size = max(_FEWEST_TO_SPLIT, self.max_size * count // n_samples)
        everything = Membership(np.arange(count), None)
        return self._grow(points, everything, _ROOT, max_size, _column_means(points))

    def grow_branches(
        self, X: Any, trunk: RegionTree, regions: Sequence[int]
    ) -> tuple[list[RegionTree], list[Membership]]:
        """Divide the samples in some regions of the trunk; one region if they are few enough.

        Returns the branch of each region of the trunk, and the samples in each region of these
        branches.
        """
        members, paths = trunk.divide(X), trunk.paths()
        grown = [
            self._grow(X, members[k], paths[k], self.max_size, trunk.fill_values) for k in regions
        ]
        return [tree for tree, _ in grown], [part for _, parts in grown for part in parts]

    def _grow(
        self,
        X: Any,
        members: Membership,
        path: tuple[int, ...],
        max_size: int,
        fill_values: Array,
    ) -> tuple[RegionTree, list[Membership]]:
        splits: list[_Split] = []
        is_split: list[bool] = []
        regions: list[Membership] = []
        pending = [(path, members)]
        # The result of BLAS sums depends on the number of its threads.
        with single_threaded_blas():
            while pending:
                path, members = pending.pop()
                split = None
                if len(members.rows) > max_size:
                    split = self._find_split(X, members.rows, path, fill_values)
                is_split.append(split is not None)
                if split is None:
                    regions.append(members)
                    continue
                left, right = members.split(split.side, split.band)
                pending += [((*path, 2), right), ((*path, 1), left)]
                splits.append(split._replace(side=None))
        tree = RegionTree(
            np.array([split.direction for split in splits]).reshape(-1, len(fill_values)),
            np.array([split.offset for split in splits]),
            np.array([split.band for split in splits]),
            np.array(is_split),
            fill_values,
        )
        return tree, regions

    def _find_split(
        self, X: Any, rows: Array, path: tuple[int, ...], fill_values: Array
    ) -> "_Split | None":
        """Find a split with samples on both sides; None if all samples are equal."""
        rng = np.random.default_rng((*self.seed, *path))
        sampled = rows
        if len(rows) > _DIRECTION_SAMPLE:
            sampled = rng.choice(rows, size=_DIRECTION_SAMPLE, replace=False, shuffle=False)
            sampled.sort()
        points = fill_missing(X[sampled], fill_values)
        best = None
        for attempt in range(_ATTEMPTS):
            direction = rng.normal(size=X.shape[1])
            if attempt == 0:
                rounds = _ROUNDS_IF_VARIED if self.varied else _ROUNDS
                direction = _two_means(points, direction, rounds)
            side = project(X, rows, direction, fill_values)
            split = _split_at_median(direction, side, self.overlap)
            if split is not None and (best is None or split.balance > best.balance):
                best = split
            if best is not None and best.balance >= _BALANCED:
                break
        return best


class _Split(NamedTuple):
    """A split, and the signed distances of the samples from which it was computed."""

    direction: Array
    offset: float
    band: float
    side: Any
    balance: float  # share of the samples on the smaller side


def _two_means(points: Any, direction: Array, rounds: int) -> Array:
    """Return the direction between the centres of balanced 2-means, which has equal halves."""
    total = _weighted_sum(points, np.ones(points.shape[0], dtype=points.dtype))
    half = points.shape[0] // 2
    for _ in range(rounds):
        side = np.asarray(points @ direction)
        right = np.zeros(len(side), dtype=points.dtype)
        right[np.argpartition(side, half)[half:]] = 1.0
        above = _weighted_sum(points, right)
        count = len(side) - half
        direction, last = above / count - (total - above) / half, direction
        length = np.abs(direction).max()
        if not (length > 0.0 and np.isfinite(length)):
            return last
        direction /= length
    return direction


def _weighted_sum(points: Any, weight: Array) -> Array:
    return np.asarray(points.T @ weight, dtype=np.float64)


def _split_at_median(direction: Array, side: Array, overlap: float) -> _Split | None:
    """Put the split between the halves, or as close to it as equal samples allow."""
    n, ordered = len(side), np.sort(side)
    middle = ordered[n // 2]
    ends = [int(np.searchsorted(ordered, middle, how)) for how in ("left", "right")]
    ends = [end for end in ends if 0 < end < n]
    # Projections of very large values may overflow.
    if not ends or not np.isfinite(ordered[[0, -1]]).all():
        return None
    end = min(ends, key=lambda end: abs(2 * end - n))
    low, high = ordered[end - 1], ordered[end]
    offset = low + 0.5 * (high - low)
    offset = float(low if offset >= high else offset)
    side -= offset
    return _Split(direction, offset, _half_width(side, overlap), side, min(end, n - end) / n)


def _half_width(side: Array, overlap: float) -> float:
    """Return half the width of the band that contains the share `overlap` of the samples.

    It is 0 if one of the sides would have no samples of its own.
    """
    if overlap == 0.0:
        return 0.0
    band = float(np.quantile(np.abs(side), overlap))
    return band if (side <= -band).any() and (side >= band).any() else 0.0


def _column_means(X: Any) -> Array:
    """Return the mean of each column over its values that are not NaN, (n_features,)."""
    if is_sparse(X):
        return np.zeros(X.shape[1])
    with np.errstate(all="ignore"):
        present = ~np.isnan(X)
        means = X.sum(axis=0, dtype=float, where=present) / np.maximum(present.sum(axis=0), 1)
    # Sums of very large values may overflow.
    return np.where(np.isfinite(means), means, 0.0)


def fill_missing(X: Any, fill_values: Array | None = None) -> Any:
    """Return samples with NaN replaced, by column means if `fill_values` is None.

    Arrays come back in C order; CSR matrices, which contain no NaN, as they are.
    """
    if is_sparse(X):
        return X
    fill_values = _column_means(X) if fill_values is None else fill_values
    return np.ascontiguousarray(np.where(np.isnan(X), fill_values.astype(X.dtype), X))
