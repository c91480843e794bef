"""Where many samples are cut in two: splits by 2-means, put at the median.

A tree of splits that divides many samples into regions of bounded size.

A tree has a trunk and branches. The trunk is grown from a sample of the rows, which are chosen by
their place among all rows; all rows then walk down the trunk, and where more of them meet than a
region may have, a branch is grown from them. So no more than one part of the samples need be in one
place at a time, and the tree is the same wherever they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lokl._arrays import Array, is_sparse, read_only
from lokl._compiled import CompiledModule
from lokl._threads import limit_blas_for, run_chunked

_project = CompiledModule("lokl.regions._project")

# Samples that a thread is worth.
_GRAIN = 4096
# A direction is found on at most so many samples of a node.
_SAMPLE = 10_000
# Where the smaller side of a split has less than this share, other directions are tried.
_FAIR, _TRIES = 0.25, 4


class Share(NamedTuple):
    """The samples of one region, in rising order, and how far each belongs to it."""

    rows: Array
    weight: Array | None  # None: wholly


def projected(X: Any, rows: Array, direction: Array, missing: Array) -> Array:
    """Inner products of some samples with a direction, to the same digits for dense and sparse."""
    out = np.empty(len(rows))
    if is_sparse(X):
        matrix = (read_only(X.data), read_only(X.indices), read_only(X.indptr))
        given = (*matrix, rows, direction, missing, out)
        run_chunked(_project.project_sparse, len(rows), _GRAIN, *given)
    else:
        run_chunked(
            _project.project_dense, len(rows), _GRAIN, read_only(X), rows, direction, missing, out
        )
    return out


@dataclass
class Split:
    """A split, and where the samples lie that it was made for."""

    direction: Array
    offset: float
    band: float
    side: Array
    balance: float  # share of the samples on the smaller side


def sides_of(share: Share, side: Array, band: float) -> tuple[Share, Share]:
    """Samples left and right of a split."""
    if band == 0.0:
        right = side > 0.0
        return _take(share, ~right), _take(share, right)
    part = np.clip(0.5 + 0.5 * side / band, 0.0, 1.0)
    return _take(share, part < 1.0, 1.0 - part), _take(share, part > 0.0, part)


def _take(share: Share, chosen: Array, part: Array | None = None) -> Share:
    rows, weight = share
    if part is None:
        return Share(rows[chosen], None if weight is None else weight[chosen])
    own = part[chosen]
    return Share(rows[chosen], own if weight is None else weight[chosen] * own)


def find_split(
    X: Any,
    rows: Array,
    missing: Array,
    overlap: float,
    rounds: int,
    rng: np.random.Generator,
) -> "Split | None":
    """Find a split with samples on both sides; None where all samples are equal."""
    some = rows
    if len(rows) > _SAMPLE:
        some = np.sort(rng.choice(rows, size=_SAMPLE, replace=False, shuffle=False))
    points = _filled(X[some], missing)
    best = None
    for attempt in range(_TRIES):
        start = rng.normal(size=X.shape[1])
        # Where 2-means has failed, any direction is better.
        direction = start if attempt else _two_means(points, start, rounds)
        side = projected(X, rows, direction, missing)
        split = _halved(direction, side, overlap)
        if split is not None and (best is None or split.balance > best.balance):
            best = split
        if best is not None and best.balance >= _FAIR:
            break
    return best


def _two_means(points: Any, direction: Array, rounds: int) -> Array:
    """Direction from one centre to the other, of two equal halves: balanced 2-means."""
    total = _sum(points, None)
    half = points.shape[0] // 2
    for _ in range(rounds):
        side = np.asarray(points @ direction)
        right = np.zeros(len(side), dtype=points.dtype)
        right[np.argpartition(side, half)[half:]] = 1.0
        above = _sum(points, right)
        count = len(side) - half
        direction, last = above / count - (total - above) / half, direction
        length = np.abs(direction).max()
        if not (length > 0.0 and np.isfinite(length)):
            return last
        direction /= length
    return direction


def _sum(points: Any, weight: Array | None) -> Array:
    weight = np.ones(points.shape[0], dtype=points.dtype) if weight is None else weight
    return np.asarray(points.T @ weight, dtype=np.float64)


def _halved(direction: Array, side: Array, overlap: float) -> "Split | None":
    """Put a split between the halves, or as near to that as equal samples allow."""
    n, ordered = len(side), np.sort(side)
    middle = ordered[n // 2]
    ends = [int(np.searchsorted(ordered, middle, how)) for how in ("left", "right")]
    ends = [end for end in ends if 0 < end < n]
    # Infinite or NaN where numbers overflow.
    if not ends or not np.isfinite(ordered[[0, -1]]).all():
        return None
    end = min(ends, key=lambda end: abs(2 * end - n))
    low, high = ordered[end - 1], ordered[end]
    offset = low + 0.5 * (high - low)
    offset = float(low if offset >= high else offset)
    side -= offset
    return Split(direction, offset, _band(side, overlap), side, min(end, n - end) / n)


def _band(side: Array, overlap: float) -> float:
    """Half the width that holds the share `overlap` of the samples; 0 where sides would not end."""
    if overlap == 0.0:
        return 0.0
    band = float(np.quantile(np.abs(side), overlap))
    return band if (side <= -band).any() and (side >= band).any() else 0.0


def columns_means(X: Any) -> Array:
    """Mean of each column, without NaN: a missing value speaks for neither side."""
    if is_sparse(X):
        return np.zeros(X.shape[1])
    with np.errstate(all="ignore"):
        known = ~np.isnan(X)
        means = X.sum(axis=0, dtype=float, where=known) / np.maximum(known.sum(axis=0), 1)
    # Numbers may be so large that their sum is none.
    return np.where(np.isfinite(means), means, 0.0)


def _filled(points: Any, missing: Array) -> Any:
    """Samples with the mean for NaN, laid out row by row whatever they were."""
    if is_sparse(points):
        return points
    return np.ascontiguousarray(np.where(np.isnan(points), missing.astype(points.dtype), points))


# A trunk is grown from at most so many samples.
SAMPLE = 50_000
# Of them, a node of the trunk has more than so many when it is split: fewer tell too little.
_FEWEST = 100
# Rounds of 2-means: more of them hardly change the direction any more. After a few, splits still
# show the direction they began with, and trees of different seeds cut different neighbours apart.
_ROUNDS, _FEW_ROUNDS = 12, 3
# A split has its random numbers from the path to it, which begins with 1 and goes left by 1 and
# right by 2: a zero at the end of a seed would not be seen. The sample has its own.
_ROOT, _OF_SAMPLE = (1,), 2


@dataclass(frozen=True, eq=False)
class RegionTree:
    """Splits of the samples: a sample walks down, left or right, until it is in its region.

    ``side(x) = <direction, x> - offset`` is positive for samples on the right. Where a split has a
    band, samples in it belong to both sides, ``(1 + side(x) / band) / 2`` of them to the right. So
    the shares of a sample in all regions sum to one.

    Attributes
    ----------
    directions : array of shape (n_splits, n_features)
    offsets : array of shape (n_splits,)
    bands : array of shape (n_splits,)
        Half the width of the band of each split, 0 for none.
    children : array of shape (n_splits, 2)
        What is left and right of a split: the number of a split, or ``-1 - region``.
    missing : array of shape (n_features,)
        What NaN is read as.
    """

    directions: Array
    offsets: Array
    bands: Array
    children: Array
    missing: Array

    @property
    def n_regions(self) -> int:
        return len(self.offsets) + 1

    @property
    def overlaps(self) -> bool:
        """Whether samples may belong to several regions."""
        return bool(self.bands.any())

    def divide(self, X: Any) -> list[Share]:
        """Return the samples of every region."""
        shares: list[Any] = [None] * self.n_regions
        waiting = [(0 if len(self.offsets) else -1, Share(np.arange(X.shape[0]), None))]
        while waiting:
            node, share = waiting.pop()
            if node < 0:
                shares[-1 - node] = share
                continue
            side = projected(X, share.rows, self.directions[node], self.missing)
            side -= self.offsets[node]
            sides = sides_of(share, side, self.bands[node])
            waiting += [(int(self.children[node, k]), sides[k]) for k in (0, 1)]
        return shares

    def assign(self, X: Any) -> Array:
        """Number of the region of every sample, that of its largest share where it has several."""
        region, largest = np.zeros(X.shape[0], dtype=np.int32), np.zeros(X.shape[0])
        for number, (rows, weight) in enumerate(self.divide(X)):
            if weight is None:
                region[rows] = number
                continue
            more = weight > largest[rows]
            region[rows[more]], largest[rows[more]] = number, weight[more]
        return region


class Trunk(NamedTuple):
    """The part of a tree that is grown from a sample of the rows.

    Attributes
    ----------
    tree : RegionTree
        Its regions may have more rows than regions of the whole tree have.
    paths : list of tuple of int
        From the root to each of its regions.
    """

    tree: RegionTree
    paths: list[tuple[int, ...]]


@dataclass(frozen=True)
class Growth:
    """How a tree is grown.

    Attributes
    ----------
    max_size : int
        Most samples of a region.
    overlap : float
        Share of the samples of a node that belong to both sides of its split.
    seed : tuple of int
        The first directions of 2-means come from it; the sample comes from its first number alone,
        so that several covers share one.
    varied : bool
        Whether trees of different seeds shall be unlike each other, rather than each as good as it
        can be by itself.
    """

    max_size: int
    overlap: float = 0.0
    seed: tuple[int, ...] = (0,)
    varied: bool = False

    def sampled(self, n_samples: int) -> Array:
        """Places of the rows that the trunk is grown from, in rising order: all of not too many."""
        if n_samples <= SAMPLE:
            return np.arange(n_samples)
        rng = np.random.default_rng((self.seed[0], _OF_SAMPLE))
        return np.sort(rng.choice(n_samples, size=SAMPLE, replace=False, shuffle=False))

    def trunk(self, points: Any, n_samples: int) -> Trunk:
        """Grow the trunk of a tree for so many samples from those that were sampled."""
        most, count = self.max_size, points.shape[0]
        if count < n_samples:
            most = max(_FEWEST, self.max_size * count // n_samples)
        missing = columns_means(points)
        grown = self._grown(points, Share(np.arange(count), None), _ROOT, most, missing)
        return Trunk(grown.tree(missing), grown.paths)

    def branch(
        self, X: Any, share: Share, path: tuple[int, ...], missing: Array
    ) -> tuple[RegionTree, list[Share]]:
        """Divide the samples that have met at the end of a path, where they are too many."""
        grown = self._grown(X, share, path, self.max_size, missing)
        return grown.tree(missing), grown.shares

    def _grown(
        self, X: Any, share: Share, path: tuple[int, ...], most: int, missing: Array
    ) -> "_Grown":
        """Divide samples until every region has at most so many of them."""
        grown = _Grown([], [], [], [])
        rounds = _FEW_ROUNDS if self.varied else _ROUNDS
        # Parent, its side, path from the root, samples: a node has its number when it is looked at.
        waiting: list[tuple[int, int, tuple[int, ...], Share]] = [(-1, 0, path, share)]
        # Sums of BLAS would depend on the number of its threads, also for few samples.
        with limit_blas_for(max(X.shape[0], SAMPLE)):
            while waiting:
                parent, which, path, share = waiting.pop()
                split = None
                if len(share.rows) > most:
                    rng = np.random.default_rng((*self.seed, *path))
                    split = find_split(X, share.rows, missing, self.overlap, rounds, rng)
                number = grown.add(split, share, path)
                if parent >= 0:
                    grown.children[parent][which] = number
                if split is not None:
                    sides = sides_of(share, split.side, split.band)
                    split.side = np.empty(0)
                    waiting += [(number, k, (*path, k + 1), sides[k]) for k in (1, 0)]
        return grown


def grow_tree(X: Any, growth: Growth) -> tuple[RegionTree, list[Share]]:
    """Divide samples until no region has too many of them.

    A split is found by 2-means and put where half of the samples are on each side. Samples that are
    equal stay together, however many they are.

    Parameters
    ----------
    X : {array, CSR matrix} of shape (n_samples, n_features)
        NaN is allowed in arrays.
    growth : Growth

    Returns
    -------
    tree : RegionTree
    shares : list of Share
        Those of the samples it was grown from, as ``tree.divide(X)`` returns them.
    """
    n = X.shape[0]
    if n <= SAMPLE:
        missing = columns_means(X)
        grown = growth._grown(X, Share(np.arange(n), None), _ROOT, growth.max_size, missing)
        return grown.tree(missing), grown.shares
    trunk = growth.trunk(X[growth.sampled(n)], n)
    branches, shares = [], []
    for path, share in zip(trunk.paths, trunk.tree.divide(X), strict=True):
        branch, own = growth.branch(X, share, path, trunk.tree.missing)
        branches.append(branch)
        shares += own
    return with_branches(trunk.tree, branches), shares


def with_branches(trunk: RegionTree, branches: Sequence[RegionTree]) -> RegionTree:
    """Return the whole tree: where the trunk has a region, it has those of a branch."""
    splits = np.cumsum([len(trunk.offsets), *(len(branch.offsets) for branch in branches)])
    regions = np.cumsum([0, *(branch.n_regions for branch in branches)])
    roots = [
        first if len(branch.offsets) else -1 - region
        for branch, first, region in zip(branches, splits[:-1], regions[:-1], strict=True)
    ]
    children = [_led_on(trunk.children, np.arange(len(trunk.offsets)), roots)]
    for branch, first, region in zip(branches, splits[:-1], regions[:-1], strict=True):
        own = first + np.arange(len(branch.offsets))
        children.append(_led_on(branch.children, own, -1 - region - np.arange(branch.n_regions)))
    parts = [trunk, *branches]
    return RegionTree(
        np.concatenate([part.directions for part in parts]),
        np.concatenate([part.offsets for part in parts]),
        np.concatenate([part.bands for part in parts]),
        np.concatenate(children).astype(np.int32).reshape(-1, 2),
        trunk.missing,
    )


def _led_on(children: Array, splits: Array, regions: Any) -> Array:
    """Children with other numbers of splits and of regions."""
    known = np.concatenate([np.asarray(regions)[::-1], splits]).astype(np.int64)
    return np.asarray(known[children + len(regions)])


@dataclass(frozen=True, eq=False)
class _Grown:
    """What has grown so far."""

    splits: list[Split]
    children: list[list[int]]
    shares: list[Share]
    paths: list[tuple[int, ...]]

    def add(self, split: Split | None, share: Share, path: tuple[int, ...]) -> int:
        """Note a node; return the number of the split, or ``-1 - region``."""
        if split is None:
            self.shares.append(share)
            self.paths.append(path)
            return -len(self.shares)
        self.splits.append(split)
        self.children.append([0, 0])
        return len(self.splits) - 1

    def tree(self, missing: Array) -> RegionTree:
        count = len(self.splits)
        return RegionTree(
            np.array([split.direction for split in self.splits]).reshape(count, len(missing)),
            np.array([split.offset for split in self.splits]),
            np.array([split.band for split in self.splits]),
            np.array(self.children, dtype=np.int32).reshape(count, 2),
            missing,
        )
