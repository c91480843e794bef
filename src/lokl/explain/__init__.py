"""Explanations of predictions and of what a model has learned.

Displays need matplotlib, the extra ``plot``.
"""

from typing import TYPE_CHECKING

from lokl._exports import lazy_exports

if TYPE_CHECKING:
    from lokl.explain.by_view import explain as explain
    from lokl.explain.columns import ColumnContributions as ColumnContributions
    from lokl.explain.columns import column_contributions as column_contributions
    from lokl.explain.columns import column_importance as column_importance
    from lokl.explain.displays import ContributionDisplay as ContributionDisplay
    from lokl.explain.displays import KernelMapDisplay as KernelMapDisplay
    from lokl.explain.displays import ReliabilityDisplay as ReliabilityDisplay
    from lokl.explain.displays import RiskCoverageDisplay as RiskCoverageDisplay
    from lokl.explain.displays import TrustDisplay as TrustDisplay
    from lokl.explain.explanation import ColumnContribution as ColumnContribution
    from lokl.explain.explanation import Explanation as Explanation
    from lokl.explain.explanation import SampleExplanation as SampleExplanation
    from lokl.explain.explanation import ViewContribution as ViewContribution
    from lokl.explain.gene_sets import gene_set_importance as gene_set_importance
    from lokl.explain.linear_weights import FeatureWeights as FeatureWeights
    from lokl.explain.linear_weights import feature_weights as feature_weights
    from lokl.explain.model_displays import BoundaryDisplay as BoundaryDisplay
    from lokl.explain.model_displays import ColumnDisplay as ColumnDisplay
    from lokl.explain.model_displays import ConvergenceDisplay as ConvergenceDisplay
    from lokl.explain.model_displays import KernelAlignmentDisplay as KernelAlignmentDisplay
    from lokl.explain.model_displays import SearchDisplay as SearchDisplay
    from lokl.explain.model_displays import ViewValueDisplay as ViewValueDisplay
    from lokl.explain.model_displays import WeightStabilityDisplay as WeightStabilityDisplay
    from lokl.explain.reliability import RiskCoverage as RiskCoverage
    from lokl.explain.reliability import risk_coverage as risk_coverage
    from lokl.explain.results import SummaryTable as SummaryTable
    from lokl.explain.sets import PredictionSets as PredictionSets
    from lokl.explain.similarity import KernelAlignment as KernelAlignment
    from lokl.explain.similarity import kernel_alignment as kernel_alignment
    from lokl.explain.similarity import nearest_samples as nearest_samples
    from lokl.explain.stability import WeightStability as WeightStability
    from lokl.explain.stability import weight_stability as weight_stability
    from lokl.explain.view_scores import ViewValue as ViewValue
    from lokl.explain.view_scores import view_importance as view_importance
    from lokl.explain.view_scores import view_value as view_value

__getattr__, __all__ = lazy_exports(__name__)
