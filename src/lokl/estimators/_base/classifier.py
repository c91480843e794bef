"""Classes: from labels to problems, and from decisions back to labels."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_class_weight

from lokl._arrays import Array
from lokl._checks import check_not_negative
from lokl.estimators._base.classes import decided_classes, learned_classes
from lokl.estimators._base.finite import check_costs
from lokl.estimators._base.label_trust import warn_if_trust_misleads
from lokl.estimators._base.learner import Learner, Stated
from lokl.estimators._base.probabilities import NoProbabilities
from lokl.estimators._base.refit import all_or_nothing
from lokl.estimators._base.rules import Rule, one_of
from lokl.estimators._base.settings import setting, settings
from lokl.estimators._base.solver_choice import chosen_solver
from lokl.estimators._base.training import Training
from lokl.models import Model
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
        return self._fit_data(self._read(X, y, sample_weight))

    def _fit_data(self, data: Any) -> Any:
        training, model = self._fit_classes(data)
        if self._trust_from_labels:
            warn_if_trust_misleads(self, data, training, model)
        return self

    def _fit_classes(self, data: Any) -> tuple[Training, Model]:
        """Learn from checked data, without a look at what was learned."""
        targets, known = self._stated(data.y, data.weight)
        return self._fit(data, targets, **known)

    def _stated(self, y: Array, weight: Array) -> Stated:
        classes, codes, tie = learned_classes(type(self).__name__, y, weight)
        by_class = self._class_factors(classes, codes, weight)
        cost = check_costs(self.C, {"sample_weight": weight, "class_weight": by_class})
        positive = [1] if len(classes) == 2 else range(len(classes))
        targets = [(np.where(codes == c, 1.0, -1.0), cost) for c in positive]
        return targets, {"classes_": classes, "_tie": tie}

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

    def _tasks(self) -> tuple[str, Sequence[Any]]:
        return "class", self.classes_.tolist()

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
        decision = self._decisions(X)
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
        return self._answers(self._decisions(X))

    def _answers(self, decision: Array) -> Array:
        return decided_classes(decision, self.classes_, self._tie)
