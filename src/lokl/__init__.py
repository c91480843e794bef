"""Localized multiple kernel learning."""

from typing import TYPE_CHECKING

from lokl._exports import lazy_exports
from lokl._methods import METHODS

if TYPE_CHECKING:
    from lokl._survival import survival_target as survival_target
    from lokl.methods import *  # noqa: F403
    from lokl.persistence import load as load
    from lokl.persistence import save as save
    from lokl.regions import RegionClassifier as RegionClassifier
    from lokl.regions import RegionRegressor as RegionRegressor
    from lokl.regions import RegionSurvival as RegionSurvival
    from lokl.search.auto import AutoMKLClassifier as AutoMKLClassifier
    from lokl.search.auto import AutoMKLRegressor as AutoMKLRegressor
    from lokl.search.auto import AutoMKLSurvival as AutoMKLSurvival
    from lokl.search.search import KernelSearchCV as KernelSearchCV
    from lokl.tables.join import join_views as join_views

__version__ = "0.1.0"

_of_methods = {name: method.module for method in METHODS for name in method.classes}
__getattr__, _names = lazy_exports(__name__, _of_methods)
__all__ = [*_names, "__version__"]
