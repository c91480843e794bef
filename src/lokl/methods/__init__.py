"""Estimators, one module for each method; shared base classes are in ``lokl.base``."""

from typing import TYPE_CHECKING

from lokl._exports import lazy_exports

if TYPE_CHECKING:
    from lokl.methods.clmkl import CLMKLClassifier as CLMKLClassifier
    from lokl.methods.clmkl import CLMKLRegressor as CLMKLRegressor
    from lokl.methods.easymkl import EasyMKLClassifier as EasyMKLClassifier
    from lokl.methods.expertaverage import ExpertAverageClassifier as ExpertAverageClassifier
    from lokl.methods.expertaverage import ExpertAverageRegressor as ExpertAverageRegressor
    from lokl.methods.expertaverage import ExpertAverageSurvival as ExpertAverageSurvival
    from lokl.methods.gmkl import GMKLClassifier as GMKLClassifier
    from lokl.methods.gmkl import GMKLRegressor as GMKLRegressor
    from lokl.methods.gsmkl import GSMKLClassifier as GSMKLClassifier
    from lokl.methods.gsmkl import GSMKLRegressor as GSMKLRegressor
    from lokl.methods.ldmkl import LDMKLClassifier as LDMKLClassifier
    from lokl.methods.ldmkl import LDMKLRegressor as LDMKLRegressor
    from lokl.methods.ldmkl import LDMKLSurvival as LDMKLSurvival
    from lokl.methods.lmkl import LMKLClassifier as LMKLClassifier
    from lokl.methods.lmkl import LMKLRegressor as LMKLRegressor
    from lokl.methods.lpmkl import LpMKLClassifier as LpMKLClassifier
    from lokl.methods.lpmkl import LpMKLRegressor as LpMKLRegressor
    from lokl.methods.lpmkl import LpMKLSurvival as LpMKLSurvival
    from lokl.methods.mwumkl import MWUMKLClassifier as MWUMKLClassifier
    from lokl.methods.pcklmkl import PCKLMKLClassifier as PCKLMKLClassifier
    from lokl.methods.samkl import SAMKLClassifier as SAMKLClassifier
    from lokl.methods.simplemkl import SimpleMKLClassifier as SimpleMKLClassifier
    from lokl.methods.simplemkl import SimpleMKLRegressor as SimpleMKLRegressor
    from lokl.methods.simplemkl import SimpleMKLSurvival as SimpleMKLSurvival
    from lokl.methods.swmkl import SwMKLClassifier as SwMKLClassifier
    from lokl.methods.swmkl import SwMKLRegressor as SwMKLRegressor
    from lokl.methods.trusted_vote.estimator import TrustedVoteClassifier as TrustedVoteClassifier
    from lokl.methods.trusted_vote.estimator import TrustedVoteRegressor as TrustedVoteRegressor
    from lokl.methods.trusted_vote.estimator import TrustedVoteSurvival as TrustedVoteSurvival
    from lokl.methods.uniformmkl import UniformMKLClassifier as UniformMKLClassifier
    from lokl.methods.uniformmkl import UniformMKLRegressor as UniformMKLRegressor
    from lokl.methods.uniformmkl import UniformMKLSurvival as UniformMKLSurvival

__getattr__, __all__ = lazy_exports(__name__)
