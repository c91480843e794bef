"""Trees that divide many samples into regions of bounded size.

A split halves its samples along a direction that balanced 2-means finds. A tree has a trunk and
branches. The trunk is grown from a subsample of the rows, which is drawn by row position. All rows
are then sent down the trunk, and a branch is grown in every region of the trunk that receives more
rows than a region may have. Therefore the rows of only one such region need to be in one place at a
time, and the tree does not depend on where the rows are stored.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lokl._arrays import Array, is_sparse, read_only
from lokl._compiled import CompiledModule
from lokl._threads import run_chunked, single_threaded_blas

_project = CompiledModule("lokl.regions._project")

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
    right. The weights of a sample over all regions sum to one.

    Attributes
    ----------
    directions : array of shape (n_splits, n_features)
    offsets : array of shape (n_splits,)
    bands : array of shape (n_splits,)
        Half the width of the band of each split, 0 if it has none.
    children : array of shape (n_splits, 2)
        Left and right child of each split: index of a split, or ``-1 - region``.
    fill_values : array of shape (n_features,)
        Replacements for NaN.
    """

    directions: Array
    offsets: Array
    bands: Array
    children: Array
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
        regions: list[Any] = [None] * self.n_regions
        pending = [(0 if len(self.offsets) else -1, Membership(np.arange(X.shape[0]), None))]
        while pending:
            node, members = pending.pop()
            if node < 0:
                regions[-1 - node] = members
                continue
            side = project(X, members.rows, self.directions[node], self.fill_values)
            side -= self.offsets[node]
            sides = members.split(side, self.bands[node])
            pending += [(int(self.children[node, k]), sides[k]) for k in (0, 1)]
        return regions

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


class GrownTree(NamedTuple):
    """Result of growing a tree, a trunk or a branch.

    Attributes
    ----------
    tree : RegionTree
    paths : list of tuple of int
        Path from the root of the whole tree to each region.
    members : list of Membership
        Samples of each region, as ``tree.divide(X)`` returns them.
    """

    tree: RegionTree
    paths: list[tuple[int, ...]]
    members: list[Membership]


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

    def grow(self, X: Any) -> GrownTree:
        """Grow a tree for all samples.

        Parameters
        ----------
        X : {array, CSR matrix} of shape (n_samples, n_features)
            NaN is allowed in arrays.
        """
        n = X.shape[0]
        if n <= _TRUNK_SAMPLE:
            return self.grow_trunk(X, n)
        trunk = self.grow_trunk(X[self.subsample(n)], n)
        branches = [
            self.grow_branch(X, members, path, trunk.tree.fill_values)
            for path, members in zip(trunk.paths, trunk.tree.divide(X), strict=True)
        ]
        return GrownTree(
            attach_branches(trunk.tree, [branch.tree for branch in branches]),
            [path for branch in branches for path in branch.paths],
            [members for branch in branches for members in branch.members],
        )

    def subsample(self, n_samples: int) -> Array:
        """Return the sorted positions of the rows from which the trunk is grown."""
        if n_samples <= _TRUNK_SAMPLE:
            return np.arange(n_samples)
        rng = np.random.default_rng((self.seed[0], _SUBSAMPLE_KEY))
        return np.sort(rng.choice(n_samples, size=_TRUNK_SAMPLE, replace=False, shuffle=False))

    def grow_trunk(self, points: Any, n_samples: int) -> GrownTree:
        """Grow the trunk of a tree for `n_samples` samples from the subsample `points`."""
        max_size, count = self.max_size, points.shape[0]
        if count < n_samples:
            max_size = max(_FEWEST_TO_SPLIT, self.max_size * count // n_samples)
        everything = Membership(np.arange(count), None)
        return self._grow(points, everything, _ROOT, max_size, _column_means(points))

    def grow_branch(
        self, X: Any, members: Membership, path: tuple[int, ...], fill_values: Array
    ) -> GrownTree:
        """Divide the samples that reached the end of a path; one region if they are few enough."""
        return self._grow(X, members, path, self.max_size, fill_values)

    def _grow(
        self,
        X: Any,
        members: Membership,
        path: tuple[int, ...],
        max_size: int,
        fill_values: Array,
    ) -> GrownTree:
        rounds = _ROUNDS_IF_VARIED if self.varied else _ROUNDS
        splits: list[_Split] = []
        children: list[list[int]] = []
        paths: list[tuple[int, ...]] = []
        regions: list[Membership] = []
        # Parent, its side, path and samples of nodes that have no index yet.
        pending: list[tuple[int, int, tuple[int, ...], Membership]] = [(-1, 0, path, members)]
        # The result of BLAS sums depends on the number of its threads.
        with single_threaded_blas():
            while pending:
                parent, which, path, members = pending.pop()
                split = None
                if len(members.rows) > max_size:
                    rng = np.random.default_rng((*self.seed, *path))
                    split = _find_split(X, members.rows, fill_values, self.overlap, rounds, rng)
                if split is None:
                    regions.append(members)
                    paths.append(path)
                    node = -len(regions)
                else:
                    node = len(splits)
                    sides = members.split(split.side, split.band)
                    split.side = np.empty(0)
                    splits.append(split)
                    children.append([0, 0])
                    pending += [(node, k, (*path, k + 1), sides[k]) for k in (1, 0)]
                if parent >= 0:
                    children[parent][which] = node
        count = len(splits)
        tree = RegionTree(
            np.array([split.direction for split in splits]).reshape(count, len(fill_values)),
            np.array([split.offset for split in splits]),
            np.array([split.band for split in splits]),
            np.array(children, dtype=np.int32).reshape(count, 2),
            fill_values,
        )
        return GrownTree(tree, paths, regions)


def attach_branches(trunk: RegionTree, branches: Sequence[RegionTree]) -> RegionTree:
    """Return the tree in which each region of the trunk is replaced by its branch."""
    splits = np.cumsum([len(trunk.offsets), *(len(branch.offsets) for branch in branches)])
    regions = np.cumsum([0, *(branch.n_regions for branch in branches)])
    roots = [
        first if len(branch.offsets) else -1 - region
        for branch, first, region in zip(branches, splits[:-1], regions[:-1], strict=True)
    ]
    children = [_renumber(trunk.children, np.arange(len(trunk.offsets)), roots)]
    for branch, first, region in zip(branches, splits[:-1], regions[:-1], strict=True):
        indices = first + np.arange(len(branch.offsets))
        leaves = -1 - region - np.arange(branch.n_regions)
        children.append(_renumber(branch.children, indices, leaves))
    trees = [trunk, *branches]
    return RegionTree(
        np.concatenate([tree.directions for tree in trees]),
        np.concatenate([tree.offsets for tree in trees]),
        np.concatenate([tree.bands for tree in trees]),
        np.concatenate(children).astype(np.int32).reshape(-1, 2),
        trunk.fill_values,
    )


def _renumber(children: Array, splits: Array, regions: Any) -> Array:
    """Replace the indices of splits and regions in `children` by other node indices."""
    nodes = np.concatenate([np.asarray(regions)[::-1], splits]).astype(np.int64)
    return np.asarray(nodes[children + len(regions)])


@dataclass
class _Split:
    """A split, and the signed distances of the samples from which it was computed."""

    direction: Array
    offset: float
    band: float
    side: Array
    balance: float  # share of the samples on the smaller side


def _find_split(
    X: Any,
    rows: Array,
    fill_values: Array,
    overlap: float,
    rounds: int,
    rng: np.random.Generator,
) -> _Split | None:
    """Find a split with samples on both sides; None if all samples are equal."""
    sampled = rows
    if len(rows) > _DIRECTION_SAMPLE:
        sampled = np.sort(rng.choice(rows, size=_DIRECTION_SAMPLE, replace=False, shuffle=False))
    points = fill_missing(X[sampled], fill_values)
    best = None
    for attempt in range(_ATTEMPTS):
        start = rng.normal(size=X.shape[1])
        direction = start if attempt else _two_means(points, start, rounds)
        side = project(X, rows, direction, fill_values)
        split = _split_at_median(direction, side, overlap)
        if split is not None and (best is None or split.balance > best.balance):
            best = split
        if best is not None and best.balance >= _BALANCED:
            break
    return best


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
