"""Probabilities out of calibrated decisions, for all who hold a model with decisions."""

from abc import abstractmethod
from typing import Any

from sklearn.utils.validation import check_is_fitted

from lokl._arrays import Array
from lokl.estimators._base.probabilities import Probabilities


class CalibratedAnswers(Probabilities):
    """Probabilities of ``calibration_``; where that is None, those of the model itself."""

    calibration_: Any

    @abstractmethod
    def _answer(self, name: str, X: Any) -> Any:
        """Ask the model for what it calls `name`."""

    def _chances(self, X: Any, log: bool) -> Array:
        check_is_fitted(self)
        known = self.calibration_
        if known is None:
            chances: Array = self._answer("predict_log_proba" if log else "predict_proba", X)
            return chances
        decision = self._answer("decision_function", X)
        return known.log_probabilities(decision) if log else known.probabilities(decision)
