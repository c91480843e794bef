"""A tree of splits that divides many samples into regions of bounded size."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lokl._arrays import Array, is_sparse, read_only
from lokl._compiled import CompiledModule
from lokl._threads import in_parallel, one_pool

_project = CompiledModule("lokl.clustering._project")

# Samples that a thread is worth.
_GRAIN = 4096
# A direction is found on at most so many samples of a node.
_SAMPLE = 10_000
# Rounds of 2-means: more of them hardly change the direction any more. After a few, splits still
# show the direction they began with, and trees of different seeds cut different neighbours apart.
_ROUNDS, _FEW_ROUNDS = 12, 3
# Where the smaller side of a split has less than this share, other directions are tried.
_FAIR, _TRIES = 0.25, 4


class Share(NamedTuple):
    """The samples of one region, in rising order, and how far each belongs to it."""

    rows: Array
    weight: Array | None  # None: wholly


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
            sides = _sides(share, side, self.bands[node])
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


def grow_tree(
    X: Any,
    max_size: int,
    *,
    overlap: float = 0.0,
    seed: tuple[int, ...] = (0,),
    varied: bool = False,
) -> tuple[RegionTree, list[Share]]:
    """Divide samples until every region has at most `max_size` of them.

    A split is found by 2-means and put where half of the samples are on each side. Samples that are
    equal stay together, however many they are.

    Parameters
    ----------
    X : {array, CSR matrix} of shape (n_samples, n_features)
        NaN is allowed in arrays.
    max_size : int
    overlap : float, default=0
        Share of the samples of a node that belong to both sides of its split.
    seed : tuple of int
        The first directions of 2-means come from it, and from the place in the tree.
    varied : bool, default=False
        Whether trees of different seeds shall be unlike each other, rather than each as good as it
        can be by itself.

    Returns
    -------
    tree : RegionTree
    shares : list of Share
        Those of the samples it was grown from, as ``tree.divide(X)`` returns them.
    """
    splits: list[_Split] = []
    children: list[list[int]] = []
    shares: list[Share] = []
    missing, rounds = _missing(X), _FEW_ROUNDS if varied else _ROUNDS
    # Parent, its side, path from the root, samples: a node has its number when it is looked at.
    waiting: list[tuple[int, int, tuple[int, ...], Share]]
    waiting = [(-1, 0, (1,), Share(np.arange(X.shape[0]), None))]
    # Sums of BLAS would depend on the number of its threads, also for few samples.
    with one_pool(max(X.shape[0], _SAMPLE)):
        while waiting:
            parent, which, path, share = waiting.pop()
            rng = np.random.default_rng((*seed, *path))
            split = None
            if len(share.rows) > max_size:
                split = _find_split(X, share.rows, missing, overlap, rounds, rng)
            number = -1 - len(shares) if split is None else len(splits)
            if parent >= 0:
                children[parent][which] = number
            if split is None:
                shares.append(share)
                continue
            splits.append(split)
            children.append([0, 0])
            sides = _sides(share, split.side, split.band)
            split.side = np.empty(0)
            waiting += [(number, k, (*path, k), sides[k]) for k in (1, 0)]
    return _tree(splits, children, missing), shares


def _tree(splits: "list[_Split]", children: list[list[int]], missing: Array) -> RegionTree:
    count = len(splits)
    return RegionTree(
        np.array([split.direction for split in splits]).reshape(count, len(missing)),
        np.array([split.offset for split in splits]),
        np.array([split.band for split in splits]),
        np.array(children, dtype=np.int32).reshape(count, 2),
        missing,
    )


def projected(X: Any, rows: Array, direction: Array, missing: Array) -> Array:
    """Inner products of some samples with a direction, to the same digits for dense and sparse."""
    out = np.empty(len(rows))
    if is_sparse(X):
        matrix = (read_only(X.data), read_only(X.indices), read_only(X.indptr))
        given = (*matrix, rows, direction, missing, out)
        in_parallel(_project.project_sparse, len(rows), _GRAIN, *given)
    else:
        in_parallel(
            _project.project_dense, len(rows), _GRAIN, read_only(X), rows, direction, missing, out
        )
    return out


@dataclass
class _Split:
    """A split, and where the samples lie that it was made for."""

    direction: Array
    offset: float
    band: float
    side: Array
    balance: float  # share of the samples on the smaller side


def _sides(share: Share, side: Array, band: float) -> tuple[Share, Share]:
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


def _find_split(
    X: Any,
    rows: Array,
    missing: Array,
    overlap: float,
    rounds: int,
    rng: np.random.Generator,
) -> "_Split | None":
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


def _halved(direction: Array, side: Array, overlap: float) -> "_Split | None":
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
    return _Split(direction, offset, _band(side, overlap), side, min(end, n - end) / n)


def _band(side: Array, overlap: float) -> float:
    """Half the width that holds the share `overlap` of the samples; 0 where sides would not end."""
    if overlap == 0.0:
        return 0.0
    band = float(np.quantile(np.abs(side), overlap))
    return band if (side <= -band).any() and (side >= band).any() else 0.0


def _missing(X: Any) -> Array:
    """Mean of each column, without NaN: a missing value speaks for neither side."""
    if is_sparse(X) or not np.isnan(X.sum()):
        return np.zeros(X.shape[1])
    some = X[:: max(1, X.shape[0] // _SAMPLE)]
    known = ~np.isnan(some)
    return np.where(known, some, 0.0).sum(axis=0, dtype=float) / np.maximum(known.sum(axis=0), 1)


def _filled(points: Any, missing: Array) -> Any:
    if is_sparse(points):
        return points
    return np.where(np.isnan(points), missing.astype(points.dtype), points)
