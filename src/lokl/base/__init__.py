"""Base classes of estimators: settings, the path from data to a model, classes and targets."""

from lokl.base.estimator import IterativeEstimator as IterativeEstimator
from lokl.base.estimator import KernelEstimator as KernelEstimator
from lokl.base.estimator import OptimizationTrace as OptimizationTrace
from lokl.base.settings import setting as setting
from lokl.base.settings import settings as settings
from lokl.base.survival import Survival as Survival
from lokl.base.targets import Classifier as Classifier
from lokl.base.targets import Regressor as Regressor
from lokl.base.training import Training as Training
