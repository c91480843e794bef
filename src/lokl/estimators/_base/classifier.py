"""Classes: from labels to problems, and from decisions back to labels."""

from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import column_or_1d, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from lokl._arrays import Array
from lokl.estimators._base.label_trust import warn_if_trust_repeats_labels
from lokl.estimators._base.learner import Learner
from lokl.estimators._base.probabilities import NoProbabilities
from lokl.estimators._base.refit import all_or_nothing
from lokl.estimators._base.rules import anything
from lokl.estimators._base.settings import setting, settings
from lokl.models.described import Attributes
from lokl.solvers import Problem, hinge


@settings
class Classifier(ClassifierMixin, Learner):
    """Two classes by one machine, more by one machine for each class against the rest."""

    class_weight: Any = setting(
        None, anything('dict, "balanced" or None'), "Factors of `C` by class."
    )

    _is_common = True
    _learned: ClassVar[Attributes] = {"classes_": ("array of shape (n_classes,)", "")}

    predict_proba = NoProbabilities()
    predict_log_proba = NoProbabilities()

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn from labelled samples.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels of any type, two or more classes.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts like the row written twice, 0 like no row.

        Returns
        -------
        self
        """
        data = self._read(X, y, sample_weight)
        self._fit_classes(data)
        if self._trust_from_labels:
            warn_if_trust_repeats_labels(self, data)
        return self

    def _fit_classes(self, data: Any) -> Any:
        """Learn from checked data, without a look at what was learned."""
        weight = data.weight
        y = column_or_1d(data.y, warn=True) if data.y.ndim == 2 else data.y
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
        counts = np.bincount(codes, weights=weight, minlength=len(classes))
        if (counts > 0).sum() < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of two or more classes; the data has one "
                f"class: {classes[int(np.argmax(counts))]}"
            )
        cost = self.C * weight * self._class_factors(classes, y, codes, weight)
        positive = [1] if len(classes) == 2 else range(len(classes))
        targets = [(np.where(codes == c, 1.0, -1.0), cost) for c in positive]
        # Decision values of exactly zero go to the larger class, the later one of equal classes.
        tie = int(len(counts) - 1 - np.argmax(counts[::-1]))
        return self._fit(data, targets, classes_=classes, _tie=tie)

    def _class_factors(self, classes: Array, y: Array, codes: Array, weight: Array) -> Array:
        if self.class_weight is None:
            return np.ones(len(y))
        if self.class_weight == "balanced":
            # Classes are counted with their weights, so that weights act like repeated rows.
            counts = np.bincount(codes, weights=weight)
            factors = np.divide(
                weight.sum(),
                (counts > 0).sum() * counts,
                out=np.zeros_like(counts),
                where=counts > 0,
            )
        else:
            factors = compute_class_weight(self.class_weight, classes=classes, y=y)
        if (np.asarray(factors) < 0).any() or not np.isfinite(factors).all():
            raise ValueError(f"class weights must be finite and not negative, got {factors}")
        return np.asarray(factors[codes])

    def _problem(self, target: Array, cost: Array) -> Problem:
        return hinge(target, cost)

    def _is_flat(self) -> bool:
        return len(self.classes_) == 2

    def decision_function(self, X: Any) -> Array:
        """Signed distance from the boundary, in units of the margin.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        decision : array of shape (n_samples,), or (n_samples, n_classes) for more than two
            Positive values speak for ``classes_[1]``, or for the class of the column.
        """
        samples = self._to_decide(X)
        decision = self._model.decide(samples)
        return decision[:, 0] if self._is_flat() else decision

    def predict(self, X: Any) -> Array:
        """Class of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        labels : array of shape (n_samples,)
        """
        decision = self.decision_function(X)
        if decision.ndim == 2:
            return np.asarray(self.classes_[decision.argmax(axis=1)])
        chosen = np.where(decision == 0, self._tie, decision > 0)
        return np.asarray(self.classes_[chosen.astype(np.intp)])
