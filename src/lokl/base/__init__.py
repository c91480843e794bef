"""Base classes of estimators: settings, the path from data to a model, classes and targets."""

from lokl.base.classifier import Classifier
from lokl.base.estimator import KernelEstimator
from lokl.base.regressor import Regressor
from lokl.base.settings import setting, settings
from lokl.base.templates import FixedKernel, IterativeEstimator, OptimizationTrace
from lokl.base.training import Training

__all__ = [
    "Classifier",
    "FixedKernel",
    "IterativeEstimator",
    "KernelEstimator",
    "OptimizationTrace",
    "Regressor",
    "Training",
    "setting",
    "settings",
]
