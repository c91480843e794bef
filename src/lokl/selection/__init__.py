"""Choosing among candidates by cross-validation, on work that candidates share."""

from typing import TYPE_CHECKING

from lokl._exports import lazy_exports

if TYPE_CHECKING:
    from lokl.selection.calibrated_classifier import (
        CalibratedMKLClassifier as CalibratedMKLClassifier,
    )
    from lokl.selection.calibrated_classifier import calibrated as calibrated
    from lokl.selection.calibration import Calibration as Calibration
    from lokl.selection.calibration import expected_calibration_error as expected_calibration_error
    from lokl.selection.decisions import held_out as held_out
    from lokl.selection.progress import Progress as Progress
    from lokl.selection.search import KernelSearchCV as KernelSearchCV

__getattr__, __all__ = lazy_exports(
    __name__,
    {
        "KernelSearchCV": "lokl.selection.search",
        "Progress": "lokl.selection.progress",
        "CalibratedMKLClassifier": "lokl.selection.calibrated_classifier",
        "Calibration": "lokl.selection.calibration",
        "calibrated": "lokl.selection.calibrated_classifier",
        "expected_calibration_error": "lokl.selection.calibration",
        "held_out": "lokl.selection.decisions",
    },
)
