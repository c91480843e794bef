"""Choosing among candidates by cross-validation, on work that candidates share."""

from typing import TYPE_CHECKING

from lokl._exports import lazy_exports

if TYPE_CHECKING:
    from lokl.search.auto import AutoMKLClassifier as AutoMKLClassifier
    from lokl.search.auto import AutoMKLRegressor as AutoMKLRegressor
    from lokl.search.auto import AutoMKLSurvival as AutoMKLSurvival
    from lokl.search.calibration import CalibratedMKLClassifier as CalibratedMKLClassifier
    from lokl.search.calibration import Calibration as Calibration
    from lokl.search.calibration import calibrated as calibrated
    from lokl.search.calibration import expected_calibration_error as expected_calibration_error
    from lokl.search.columns import ColumnEncoder as ColumnEncoder
    from lokl.search.columns import ColumnScaler as ColumnScaler
    from lokl.search.cross_validation import held_out as held_out
    from lokl.search.evaluation import Progress as Progress
    from lokl.search.results import LeaderboardRow as LeaderboardRow
    from lokl.search.search import KernelSearchCV as KernelSearchCV

__getattr__, __all__ = lazy_exports(__name__)
