"""Samples in regions, wherever they are."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lokl._arrays import Array
from lokl.clustering.region_tree import RegionTree
from lokl.models.regions import RegionModel
from lokl.regions.fitting import Fit


@dataclass(frozen=True, eq=False)
class Searched:
    """Scores of candidates in one region."""

    candidates: list[dict[str, Any]]
    scores: Array
    size: int  # samples of the region


class Divided(ABC):
    """One division of the samples, and what can be asked about its regions where they are.

    Attributes
    ----------
    tree : RegionTree
    sizes : array of int
        Samples of each region.
    """

    tree: RegionTree
    sizes: Array

    @abstractmethod
    def have_folds(self) -> Sequence[bool]:
        """Whether each region has enough samples for cross-validation."""

    @abstractmethod
    def spreads(self, places: Sequence[int]) -> list[float]:
        """Mean squared distance from the mean, in some regions."""

    @abstractmethod
    def searched(
        self, estimator: Any, grid: Any, places: Sequence[int], seed: tuple[int, ...]
    ) -> list[Searched]:
        """Cross-validate all candidates of a grid in some regions; seeds come from the place."""

    @abstractmethod
    def fitted(self, estimator: Any, fit: Fit, seed: tuple[int, ...]) -> list[RegionModel]:
        """Learn in every region; seeds come from the place."""
