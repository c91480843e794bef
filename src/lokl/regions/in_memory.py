"""Samples in regions, all of them in the memory of this process."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lokl._arrays import Array
from lokl.clustering.region_tree import Growth, grow_tree
from lokl.models.regions import RegionModel, take
from lokl.regions.divided import Divided, Searched
from lokl.regions.fitting import Fit, Learning, fit_regions, region_seed
from lokl.regions.tuning import has_folds, search_region, spread_of
from lokl.selection.in_step import threads_for


class InMemory(Divided):
    """All samples in one place.

    Parameters
    ----------
    X : {array, CSR matrix}
        What the tree looks at.
    learning : Learning
        The same samples as estimators take them.
    n_jobs : int or None
        Regions at a time.
    growth : Growth
    """

    def __init__(self, X: Any, learning: Learning, n_jobs: int | None, growth: Growth):
        self.tree, self._shares = grow_tree(X, growth)
        self.sizes = np.array([len(rows) for rows, _ in self._shares])
        self._learning, self._n_jobs = learning, n_jobs

    def rows(self, place: int) -> Array:
        """Numbers of the samples of a region."""
        return self._shares[place].rows

    def have_folds(self) -> Sequence[bool]:
        codes = self._learning.codes
        return [
            has_folds(len(rows), None if codes is None else codes[rows]) for rows, _ in self._shares
        ]

    def spreads(self, places: Sequence[int]) -> list[float]:
        samples = self._learning.samples
        return [spread_of(take(samples, self._shares[place].rows)) for place in places]

    def searched(
        self, estimator: Any, grid: Any, places: Sequence[int], seed: tuple[int, ...]
    ) -> list[Searched]:
        return [
            search_region(
                estimator,
                grid,
                self._learning.part(*self._shares[place]),
                region_seed(seed, place),
                self._n_jobs,
            )
            for place in places
        ]

    def fitted(self, estimator: Any, fit: Fit, seed: tuple[int, ...]) -> list[RegionModel]:
        threads = threads_for(self._n_jobs)
        return fit_regions(estimator, self._learning, self._shares, seed, threads, fit)
