"""One file for each published method; what they share is in ``_base``."""

from typing import TYPE_CHECKING

from lokl._exports import lazy_exports
from lokl._methods import METHODS

if TYPE_CHECKING:
    from lokl.estimators.clmkl import CLMKLClassifier as CLMKLClassifier
    from lokl.estimators.clmkl import CLMKLRegressor as CLMKLRegressor
    from lokl.estimators.easymkl import EasyMKLClassifier as EasyMKLClassifier
    from lokl.estimators.gmkl import GMKLClassifier as GMKLClassifier
    from lokl.estimators.gmkl import GMKLRegressor as GMKLRegressor
    from lokl.estimators.gsmkl import GSMKLClassifier as GSMKLClassifier
    from lokl.estimators.gsmkl import GSMKLRegressor as GSMKLRegressor
    from lokl.estimators.ldmkl import LDMKLClassifier as LDMKLClassifier
    from lokl.estimators.ldmkl import LDMKLRegressor as LDMKLRegressor
    from lokl.estimators.lmkl import LMKLClassifier as LMKLClassifier
    from lokl.estimators.lmkl import LMKLRegressor as LMKLRegressor
    from lokl.estimators.lpmkl import LpMKLClassifier as LpMKLClassifier
    from lokl.estimators.lpmkl import LpMKLRegressor as LpMKLRegressor
    from lokl.estimators.mwumkl import MWUMKLClassifier as MWUMKLClassifier
    from lokl.estimators.pcklmkl import PCKLMKLClassifier as PCKLMKLClassifier
    from lokl.estimators.samkl import SAMKLClassifier as SAMKLClassifier
    from lokl.estimators.simplemkl import SimpleMKLClassifier as SimpleMKLClassifier
    from lokl.estimators.simplemkl import SimpleMKLRegressor as SimpleMKLRegressor
    from lokl.estimators.swmkl import SwMKLClassifier as SwMKLClassifier
    from lokl.estimators.swmkl import SwMKLRegressor as SwMKLRegressor
    from lokl.estimators.trustedvote import TrustedVoteClassifier as TrustedVoteClassifier
    from lokl.estimators.trustedvote import TrustedVoteRegressor as TrustedVoteRegressor
    from lokl.estimators.uniformmkl import UniformMKLClassifier as UniformMKLClassifier
    from lokl.estimators.uniformmkl import UniformMKLRegressor as UniformMKLRegressor

__getattr__, __all__ = lazy_exports(
    __name__, {name: method.module for method in METHODS for name in method.classes}
)
