"""Where many samples are cut in two: splits by 2-means, put at the median."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lokl._arrays import Array, is_sparse, read_only
from lokl._compiled import CompiledModule
from lokl._threads import in_parallel

_project = CompiledModule("lokl.clustering._project")

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
        in_parallel(_project.project_sparse, len(rows), _GRAIN, *given)
    else:
        in_parallel(
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
