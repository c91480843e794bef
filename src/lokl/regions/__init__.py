"""Models for many samples: trees divide them into regions, with one model in each region."""

from typing import TYPE_CHECKING

from lokl._exports import lazy_exports

if TYPE_CHECKING:
    from lokl.regions.estimators import RegionClassifier as RegionClassifier
    from lokl.regions.estimators import RegionRegressor as RegionRegressor
    from lokl.regions.estimators import RegionSurvival as RegionSurvival

__getattr__, __all__ = lazy_exports(__name__)
