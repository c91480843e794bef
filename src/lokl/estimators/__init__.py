"""One file for each published method."""

from lokl.estimators.clmkl import CLMKLClassifier, CLMKLRegressor
from lokl.estimators.easymkl import EasyMKLClassifier
from lokl.estimators.gmkl import GMKLClassifier, GMKLRegressor
from lokl.estimators.gsmkl import GSMKLClassifier, GSMKLRegressor
from lokl.estimators.ldmkl import LDMKLClassifier, LDMKLRegressor
from lokl.estimators.lmkl import LMKLClassifier, LMKLRegressor
from lokl.estimators.lpmkl import LpMKLClassifier, LpMKLRegressor
from lokl.estimators.mwumkl import MWUMKLClassifier
from lokl.estimators.pcklmkl import PCKLMKLClassifier
from lokl.estimators.samkl import SAMKLClassifier
from lokl.estimators.simplemkl import SimpleMKLClassifier, SimpleMKLRegressor
from lokl.estimators.swmkl import SwMKLClassifier, SwMKLRegressor
from lokl.estimators.uniform import UniformMKLClassifier, UniformMKLRegressor

__all__ = [
    "CLMKLClassifier",
    "CLMKLRegressor",
    "EasyMKLClassifier",
    "GMKLClassifier",
    "GMKLRegressor",
    "GSMKLClassifier",
    "GSMKLRegressor",
    "LDMKLClassifier",
    "LDMKLRegressor",
    "LMKLClassifier",
    "LMKLRegressor",
    "LpMKLClassifier",
    "LpMKLRegressor",
    "MWUMKLClassifier",
    "PCKLMKLClassifier",
    "SAMKLClassifier",
    "SimpleMKLClassifier",
    "SimpleMKLRegressor",
    "SwMKLClassifier",
    "SwMKLRegressor",
    "UniformMKLClassifier",
    "UniformMKLRegressor",
]
