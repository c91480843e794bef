"""What all methods share: settings, the way from data to a model, classes and targets."""

from lokl.estimators._base.classifier import Classifier
from lokl.estimators._base.fixed_kernel import FixedKernel
from lokl.estimators._base.learner import Learner
from lokl.estimators._base.regressor import Regressor
from lokl.estimators._base.rounds import Rounds, Walk
from lokl.estimators._base.settings import setting, settings
from lokl.estimators._base.training import Training

__all__ = [
    "Classifier",
    "FixedKernel",
    "Learner",
    "Regressor",
    "Rounds",
    "Training",
    "Walk",
    "setting",
    "settings",
]
