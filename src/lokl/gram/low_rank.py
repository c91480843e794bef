"""Training samples with features of low rank in the place of inner products."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lokl._arrays import Array
from lokl.gram import mixing
from lokl.gram.feature_maps import FeatureMap, FourierMap, LandmarkMap
from lokl.gram.inner_products import InnerProducts
from lokl.gram.landmarks import Landmarks, choose_landmarks
from lokl.gram.plan import Plan, Points
from lokl.gram.tiles import square_norms
from lokl.kernels.base import Kernel

if TYPE_CHECKING:
    from lokl.gram.low_rank_gram import LowRankGram

logger = logging.getLogger("lokl")

MEGABYTE = 2**20
# Samples on which it is measured how far features miss a kernel; and those of which all kernel
# values are compared where the diagonal tells nothing.
_MEASURED, _COMPARED = 4096, 500
# Samples for each landmark that they are chosen from at least, where memory is short.
_CHOICE = 4


@dataclass(frozen=True)
class LowRank:
    """How features are made.

    Attributes
    ----------
    rank : int
        Features of each kernel, at most.
    kind : {"landmarks", "fourier"}
    sample_size : int
        Samples that landmarks are chosen from, at most.
    seed : int
    """

    rank: int
    kind: str = "landmarks"
    sample_size: int = 50_000
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Features:
    """Features of a list of kernels."""

    precise: FeatureMap  # in float64, in which new samples are decided
    own: FeatureMap  # in the precision of the training samples


class LowRankProducts(InnerProducts):
    """Training samples, and features of kernels in the place of inner products.

    Parameters
    ----------
    X : {array, CSR matrix} of shape (n_samples, n_features)
        Without NaN.
    how : LowRank
    cache_size : float, default=512
        Megabytes for stored features. Where they do not fit, columns are computed anew for every
        product; landmarks and their factors come on top.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Of features; "auto" is float32 unless values of the kernels would lose digits in it.
    """

    def __init__(self, X: Any, how: LowRank, *, cache_size: float = 512, dtype: Any = "auto"):
        super().__init__(X, cache_size=cache_size, dtype=dtype)
        self.how = how
        # They depend neither on gates nor on costs, only on the kernels.
        self._made: list[Features] = []
        self._stored: tuple[FeatureMap | None, Array] = (None, np.empty((0, 0)))

    def gated(
        self,
        kernels: Sequence[Kernel],
        gates: Array | None = None,
        *,
        pair_normalized: bool = False,
    ) -> "LowRankGram":
        from lokl.gram.low_rank_gram import LowRankGram

        if pair_normalized:
            raise ValueError(
                "kernels whose pairs are normalised have no features of low rank: their matrix is "
                "not positive semidefinite; use solver='exact'"
            )
        points = self.prepare(kernels, gates, pair_normalized)
        # Made here, where all samples are: parts that are taken of them share these.
        self.features(points)
        return LowRankGram.of(self, points)

    def take(self, rows: Array) -> "LowRankProducts":
        """Return some of the samples, with the features that were made for all of them."""
        views = self._views.take(rows)
        part = LowRankProducts(views.X, self.how, cache_size=self.cache_size, dtype=self.dtype)
        part._views = views
        part._made = list(self._made)
        return part

    def release(self) -> None:
        super().release()
        self._stored = (None, np.empty((0, 0)))

    def features(self, points: Points) -> Features:
        """Return the features of the kernels of some points, made when they are first needed."""
        plan = points.plan
        for made in self._made:
            if _serves(made.own.plan, plan):
                return made
        made = self._make(points)
        # A method that asks for other kernels in between finds both.
        self._made = [*self._made[-1:], made]
        return made

    def stored(self, own: FeatureMap, points: Points) -> Array | None:
        """Features of all samples, computed once; None where they do not fit into the memory."""
        size = points.n_samples * own.size * own.plan.dtype.itemsize
        if size > self.cache_size * MEGABYTE:
            return None
        if self._stored[0] is not own:
            # What was stored goes before the new comes.
            self._stored = (None, np.empty((0, 0)))
            features = np.empty((points.n_samples, own.size), dtype=own.plan.dtype)
            for part, tile in own.tiles(points, np.arange(points.n_samples)):
                own.whiten(tile)
                features[part] = tile
            self._stored = (own, features)
        return self._stored[1]

    def _make(self, points: Points) -> Features:
        rng = np.random.RandomState(self.how.seed)
        n, plan = points.n_samples, points.plan
        # Bound kernels are planned as before, in another precision.
        double = Plan.make(plan.kernels, self._views, np.float64, plan.pair_normalized)
        trusting = points.regated(np.ones((n, plan.n_kernels)))
        if self.how.kind == "fourier":
            precise: FeatureMap = FourierMap.make(double, self.how.rank, points, rng)
            residual = _distance(precise.cast(plan), trusting.take(_spaced(n, _COMPARED)))
        else:
            found = self._landmarks(trusting, rng)
            ones = np.ones((len(found.rows), plan.n_kernels))
            landmarks = Points.make(double, self.X[found.rows], ones)
            precise = LandmarkMap.make(landmarks, found.rows, plan.dtype)
            residual = _missed(precise.cast(plan), trusting.take(_spaced(n, _MEASURED)))
        precise = replace(precise, residual=residual)
        made = Features(precise, precise.cast(plan))
        missed = ", ".join(f"{share:.2g}" for share in residual)
        logger.info("low rank: %s features, missing %s of the kernels", made.own.sizes, missed)
        if self.how.kind != "fourier":
            self._keep(made.own, found)
        return made

    def _landmarks(self, points: Points, rng: np.random.RandomState) -> Landmarks:
        """Choose landmarks: all samples where they are few."""
        n, rank, none = points.n_samples, self.how.rank, np.empty((0, 0))
        if n <= rank:
            return Landmarks(np.arange(n), 0.0, none)
        room = int(self.cache_size * MEGABYTE // (points.plan.dtype.itemsize * rank))
        size = min(n, self.how.sample_size, max(room, _CHOICE * rank))
        sample = np.arange(n) if size == n else np.sort(rng.choice(n, size=size, replace=False))
        part = points.take(sample)
        # All kernels on one scale: landmarks shall tell the values of each of them.
        means = np.maximum(mixing.diag_apart(part).mean(axis=0), 0.0)
        scales = np.divide(1.0, np.sqrt(means), out=np.zeros_like(means), where=means > 0)
        scaled = part.regated(np.broadcast_to(scales, (size, len(scales))))
        found = choose_landmarks(scaled, rank, rng)
        if size < n or len(scales) > 1:
            return replace(found, rows=sample[found.rows], factor=none)
        found.factor[...] *= np.sqrt(means[0])
        return found

    def _keep(self, own: FeatureMap, found: Landmarks) -> None:
        """Store the factor of the search as features, where it is of all samples and one kernel."""
        fits = found.factor.nbytes <= self.cache_size * MEGABYTE
        if found.factor.size and fits and np.array_equal(own.landmarks, found.rows):
            self._stored = (own, found.factor)


def _serves(known: Plan, asked: Plan) -> bool:
    """Whether features that were made for one plan are those of another."""
    views = [[family.view for family in plan.families] for plan in (known, asked)]
    same = known.kernels == asked.kernels and known.dtype == asked.dtype
    return same and views[0] == views[1]


def _spaced(n: int, most: int) -> Array:
    return np.unique(np.linspace(0, max(n - 1, 0), min(n, most)).astype(np.intp))


def _missed(features: FeatureMap, points: Points) -> Array:
    """Share of the trace of each kernel that features do not have."""
    trace = mixing.diag_apart(points).sum(axis=0)
    found = np.zeros(len(trace))
    for _, tile in features.tiles(points, np.arange(points.n_samples)):
        features.whiten(tile)
        found += square_norms(tile, features.spans).sum(axis=0)
    left = np.divide(trace - found, trace, out=np.zeros_like(trace), where=trace > 0)
    return np.clip(left, 0.0, 1.0)


def _distance(features: FeatureMap, points: Points) -> Array:
    """Distance of each kernel's matrix from that of features, relative to its norm."""
    everyone = np.arange(points.n_samples)
    K = mixing.apart(points, everyone, points).astype(np.float64)
    Phi = np.concatenate([tile.copy() for _, tile in features.tiles(points, everyone)])
    found = np.stack([Phi[:, span] @ Phi[:, span].T for span in features.spans], axis=1)
    norm = np.linalg.norm(K, axis=(0, 2))
    return np.asarray(np.linalg.norm(found - K, axis=(0, 2)) / np.where(norm > 0, norm, 1.0))
