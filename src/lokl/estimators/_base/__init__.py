"""What all methods share: settings, the way from data to a model, classes and targets."""

from lokl.estimators._base.classifier import KernelClassifier
from lokl.estimators._base.learner import KernelLearner
from lokl.estimators._base.regressor import KernelRegressor
from lokl.estimators._base.rounds import Rounds, Walk
from lokl.estimators._base.settings import setting, settings
from lokl.estimators._base.training import Training

__all__ = [
    "KernelClassifier",
    "KernelLearner",
    "KernelRegressor",
    "Rounds",
    "Training",
    "Walk",
    "setting",
    "settings",
]
