"""What a model has learned and how far it can be believed, in numbers and displays.

Displays need matplotlib, the extra ``plot``.
"""

from typing import TYPE_CHECKING

from lokl._exports import lazy_exports

if TYPE_CHECKING:
    from lokl.inspection.alike import most_alike as most_alike
    from lokl.inspection.answers import ViewAnswers as ViewAnswers
    from lokl.inspection.answers import answers_by_view as answers_by_view
    from lokl.inspection.findings import Findings as Findings
    from lokl.inspection.importance import view_importance as view_importance
    from lokl.inspection.regions import plot_regions as plot_regions
    from lokl.inspection.stability import GateStability as GateStability
    from lokl.inspection.stability import gate_stability as gate_stability
    from lokl.inspection.trust_map import plot_sample as plot_sample
    from lokl.inspection.trust_map import plot_trust as plot_trust
    from lokl.inspection.weights import FeatureWeights as FeatureWeights
    from lokl.inspection.weights import feature_weights as feature_weights
    from lokl.inspection.worth import ViewValue as ViewValue
    from lokl.inspection.worth import view_value as view_value

__getattr__, __all__ = lazy_exports(
    __name__,
    {
        "FeatureWeights": "lokl.inspection.weights",
        "Findings": "lokl.inspection.findings",
        "GateStability": "lokl.inspection.stability",
        "ViewAnswers": "lokl.inspection.answers",
        "ViewValue": "lokl.inspection.worth",
        "answers_by_view": "lokl.inspection.answers",
        "feature_weights": "lokl.inspection.weights",
        "gate_stability": "lokl.inspection.stability",
        "most_alike": "lokl.inspection.alike",
        "plot_regions": "lokl.inspection.regions",
        "plot_sample": "lokl.inspection.trust_map",
        "plot_trust": "lokl.inspection.trust_map",
        "view_importance": "lokl.inspection.importance",
        "view_value": "lokl.inspection.worth",
    },
)
