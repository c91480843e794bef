"""Base classes of estimators: settings, the path from data to a model, classes and targets."""

from lokl.base.estimator import IterativeEstimator, KernelEstimator, OptimizationTrace
from lokl.base.settings import setting, settings
from lokl.base.targets import Classifier, Regressor
from lokl.base.training import Training

__all__ = [
    "Classifier",
    "IterativeEstimator",
    "KernelEstimator",
    "OptimizationTrace",
    "Regressor",
    "Training",
    "setting",
    "settings",
]
