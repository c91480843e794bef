"""One file for each published method."""

from lokl.estimators.clmkl import CLMKLClassifier, CLMKLRegressor
from lokl.estimators.gsmkl import GSMKLClassifier, GSMKLRegressor
from lokl.estimators.ldmkl import LDMKLClassifier, LDMKLRegressor
from lokl.estimators.lmkl import LMKLClassifier, LMKLRegressor
from lokl.estimators.pcklmkl import PCKLMKLClassifier
from lokl.estimators.samkl import SAMKLClassifier
from lokl.estimators.swmkl import SwMKLClassifier, SwMKLRegressor
from lokl.estimators.uniform import UniformMKLClassifier, UniformMKLRegressor

__all__ = [
    "CLMKLClassifier",
    "CLMKLRegressor",
    "GSMKLClassifier",
    "GSMKLRegressor",
    "LDMKLClassifier",
    "LDMKLRegressor",
    "LMKLClassifier",
    "LMKLRegressor",
    "PCKLMKLClassifier",
    "SAMKLClassifier",
    "SwMKLClassifier",
    "SwMKLRegressor",
    "UniformMKLClassifier",
    "UniformMKLRegressor",
]
