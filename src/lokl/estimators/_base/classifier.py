"""Classes: from labels to problems, and from decisions back to labels."""

from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import column_or_1d, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from lokl._arrays import Array
from lokl._checks import check_not_negative
from lokl.estimators._base.finite import answer, check_costs
from lokl.estimators._base.label_trust import warn_if_trust_repeats_labels
from lokl.estimators._base.learner import Learner
from lokl.estimators._base.probabilities import NoProbabilities
from lokl.estimators._base.refit import all_or_nothing
from lokl.estimators._base.rules import Rule, one_of
from lokl.estimators._base.settings import setting, settings
from lokl.estimators._base.solver_choice import chosen_solver
from lokl.models.described import Attributes
from lokl.solvers import Problem
from lokl.solvers.losses import CHOICES, CLASSIFICATION, classification_loss


def _check_class_weight(name: str, value: Any) -> None:
    is_balanced = isinstance(value, str) and value == "balanced"
    if value is not None and not is_balanced and not isinstance(value, Mapping):
        raise ValueError(
            f"{name} must be a dict of factors by class, such as {{0: 1.0, 1: 5.0}}, 'balanced' or "
            f"None, got {value!r}"
        )
    if isinstance(value, Mapping):
        for label, factor in value.items():
            check_not_negative(f"{name} of class {label!r}", factor)


@settings
class Classifier(ClassifierMixin, Learner):
    """Two classes by one machine, more by one machine for each class against the rest."""

    loss: str = setting(
        "auto",
        one_of(*CHOICES),
        'What an error beyond the margin costs: "hinge" grows with its size, "squared_hinge" with '
        'its square. "auto" is the hinge, and the squared hinge where the solver knows no other '
        '("mwu").',
    )
    class_weight: Any = setting(
        None,
        Rule('dict, "balanced" or None', _check_class_weight),
        "Factors of `C` by class; classes that a dict does not name have 1.",
    )

    _is_common = True
    _learned: ClassVar[Attributes] = {"classes_": ("array of shape (n_classes,)", "")}

    # Methods with probabilities have methods of these names.
    predict_proba: ClassVar[Any] = NoProbabilities()
    predict_log_proba: ClassVar[Any] = NoProbabilities()

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
        classes, codes = _classes(y)
        counts = np.bincount(codes, weights=weight, minlength=len(classes))
        if (counts > 0).sum() < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of two or more classes; the data has one "
                f"class: {classes[int(np.argmax(counts))]}"
            )
        by_class = self._class_factors(classes, codes, weight)
        cost = check_costs(self.C, {"sample_weight": weight, "class_weight": by_class})
        positive = [1] if len(classes) == 2 else range(len(classes))
        targets = [(np.where(codes == c, 1.0, -1.0), cost) for c in positive]
        # Decision values of exactly zero go to the larger class, the later one of equal classes.
        tie = int(len(counts) - 1 - np.argmax(counts[::-1]))
        return self._fit(data, targets, classes_=classes, _tie=tie)

    def _class_factors(self, classes: Array, codes: Array, weight: Array) -> Array:
        """Factor of the cost of every sample."""
        if self.class_weight is None:
            return np.ones(len(codes))
        if isinstance(self.class_weight, str):
            # Classes are counted with their weights, so that weights act like repeated rows.
            counts = np.bincount(codes, weights=weight)
            factors = np.divide(
                weight.sum(),
                (counts > 0).sum() * counts,
                out=np.zeros_like(counts),
                where=counts > 0,
            )
        else:
            named = dict(self.class_weight)
            factors = np.asarray(compute_class_weight(named, classes=classes, y=classes))
        counted = np.bincount(codes, weights=weight * factors[codes]) > 0
        if counted.sum() < 2:
            raise ValueError(
                f"class_weight={self.class_weight!r} leaves {int(counted.sum())} of {len(classes)} "
                "classes with a weight above zero; two or more are needed"
            )
        return np.asarray(factors[codes])

    def _problem(self, target: Array, cost: Array) -> Problem:
        return CLASSIFICATION[self._loss()](target, cost)

    def _loss(self) -> str:
        """Name of the loss that the machines minimise."""
        return classification_loss(self.loss, chosen_solver(self))

    def _check_together(self) -> None:
        super()._check_together()
        self._loss()

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
        decision = answer(self._model.decide, samples)
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


def _classes(y: Array) -> tuple[Array, Array]:
    """Sort the classes; return them, and the number of the class of every sample."""
    if y.dtype == object:
        kinds = sorted({type(label).__name__ for label in y})
        if len(kinds) > 1 and not all(isinstance(label, Real) for label in y):
            raise ValueError(
                f"labels are of several types that have no common order: {', '.join(kinds)}; "
                "convert them to one type, for instance with y.astype(str)"
            )
        # Numbers as objects, as some tables have them, become numbers.
        y = np.array(y.tolist())
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    return classes, codes
