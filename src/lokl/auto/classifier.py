"""A classifier for which everything is chosen."""

from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from lokl._arrays import Array
from lokl.auto.base import AutoMKL, _has
from lokl.estimators._base import setting, settings
from lokl.estimators._base.classifier import _check_class_weight
from lokl.estimators._base.rules import Rule
from lokl.models.described import Attributes
from lokl.selection.calibrated_answers import CalibratedAnswers
from lokl.selection.decisions import class_splits
from lokl.selection.search import _plain_labels


@settings
class AutoMKLClassifier(ClassifierMixin, AutoMKL, CalibratedAnswers):
    """Scaling, kernels, cost and method chosen by cross-validation, for classes.

    Columns are scaled, words become indicators and missing values are filled in inside the folds,
    so that nothing is learned from samples that judge. Then single kernels, uniform mixes and
    methods that learn weights are compared on the same folds, cheap ones first; with several
    `views` also methods that learn whom to trust where. ``leaderboard_`` tells how all of them did.

    Probabilities come from the held-out decisions of the winner, without another fit.

    Notes
    -----
    Kernels of a view are linear and quadratic ones with mean diagonal one, and RBF kernels with
    ``gamma`` from ``2^-5`` to ``2^3`` times the reciprocal of the median squared distance. Costs
    are ``2^-3`` to ``2^9``. With more than 6,000 samples the search is on 4,000 of them, and the
    best few candidates are judged on all.

    Results depend on `random_state` alone, unless there is a `time_limit`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from lokl import AutoMKLClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = AutoMKLClassifier(methods=["UniformMKL"], random_state=0).fit(X, y)
    >>> bool(model.best_score_ > 0.95)
    True
    >>> model.predict_proba(X).shape
    (178, 3)
    """

    class_weight: Any = setting(
        None,
        Rule('dict, "balanced" or None', _check_class_weight),
        "Factors of the cost by class, of methods that are given by name.",
    )

    _kind: ClassVar[str] = "Classifier"

    def _targets(self, y: Any) -> tuple[Array, dict[str, Any]]:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        y = np.asarray(_plain_labels(column_or_1d(y, warn=True)))
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        classes = np.unique(y)
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of two or more classes; the data has one "
                f"class: {classes[0]}"
            )
        return y, {"classes_": classes}

    def _splits(self, y: Array, groups: Any, rng: np.random.RandomState) -> list[Any]:
        if not isinstance(self.cv, int | np.integer):
            return class_splits(self.cv, y, groups)
        order = rng.permutation(len(y))
        shuffled = None if groups is None else np.asarray(groups)[order]
        splits = class_splits(self.cv, y[order], shuffled)
        return [(np.sort(order[kept]), np.sort(order[left])) for kept, left in splits]

    def _unit_cost(self, y: Array, weight: Array) -> float:
        if len(np.unique(y[weight > 0])) < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of two or more classes; all samples of other "
                f"classes than {y[weight > 0][0]} have a sample_weight of 0"
            )
        return 1.0

    def _settings_of_methods(self, unit_cost: float, seed: int) -> dict[str, Any]:
        return {"random_state": seed, "class_weight": self.class_weight}

    @available_if(_has("decision_function"))
    def decision_function(self, X: Any) -> Array:
        """Decision values of the winner.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)

        Returns
        -------
        decision : array of shape (n_samples,), or (n_samples, n_classes) for more than two
        """
        return np.asarray(self._answer("decision_function", X))

    @available_if(_has("opinions"))
    def opinions(self, X: Any) -> Array:
        """Probability of each class by the word of each kernel alone: ``opinions`` of the winner.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)

        Returns
        -------
        opinions : array of shape (n_samples, n_kernels, n_classes)
        """
        return np.asarray(self._answer("opinions", X))

    def _has_probabilities(self) -> bool:
        known = getattr(self, "calibration_", None) is not None
        return known or self._wins_with("predict_proba")

    @classmethod
    def _described(cls) -> Attributes:
        return {
            **super()._described(),
            "calibration_": (
                "Calibration or None",
                "Turns decisions of the winner into probabilities; None where these are unknown.",
            ),
            "classes_": ("array of shape (n_classes,)", ""),
        }
