"""Classification and regression: from targets to problems, from decisions to predictions."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar, NoReturn

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import column_or_1d, compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from lokl._arrays import Array, column
from lokl._methods import METHODS, method_of_class
from lokl._parameters import check_not_negative
from lokl.base.estimator import KernelEstimator, Targets
from lokl.base.settings import NOT_NEGATIVE, Rule, one_of, setting, settings
from lokl.base.training import check_costs
from lokl.solvers import Problem, Solver
from lokl.solvers.solve import (
    CLASSIFICATION,
    REGRESSION,
    classification_loss,
    regression_loss,
    regression_problem,
)

# Significant digits of the spread of targets. Further digits depend on the order of summation.
_SPREAD_DIGITS = 6
# Relative spread of targets that are constant but for rounding.
_ROUNDING = 1e-12


def learned_classes(who: str, y: Array, weight: Array | None) -> tuple[Array, Array, int]:
    """Return the sorted classes, the index of the class of every sample, and the class of ties.

    Parameters
    ----------
    who : str
        Name of the estimator, for the error.
    y : array of labels
    weight : array of shape (n_samples,) or None

    Returns
    -------
    classes : array of shape (n_classes,)
    codes : array of int of shape (n_samples,)
    tie : int
        Index of the class that is predicted for a decision of exactly zero.
    """
    y = column_or_1d(y, warn=True) if y.ndim == 2 else y
    classes, codes = sorted_classes(y)
    counts = np.bincount(codes, weights=weight, minlength=len(classes))
    if (counts > 0).sum() < 2:
        others = "; all other samples have a sample_weight of 0" if len(classes) > 1 else ""
        raise ValueError(
            f"{who} needs samples of two or more classes; the data has one class: "
            f"{classes[int(np.argmax(counts))]}{others}"
        )
    # The larger class; of equally large classes, the later one.
    tie = int(len(counts) - 1 - np.argmax(counts[::-1]))
    return classes, codes, tie


def decided_classes(decision: Array, classes: Array, tie: int) -> Array:
    """Return the predicted classes of decisions (n_samples, n_tasks)."""
    if decision.shape[1] > 1:
        return np.asarray(classes[decision.argmax(axis=1)])
    chosen = np.where(decision[:, 0] == 0, tie, decision[:, 0] > 0)
    return np.asarray(classes[chosen.astype(np.intp)])


def sorted_classes(y: Array) -> tuple[Array, Array]:
    """Return the sorted classes, and the index of the class of every sample."""
    if y.dtype == object:
        kinds = sorted({type(label).__name__ for label in y})
        if len(kinds) > 1 and not all(isinstance(label, Real) for label in y):
            raise ValueError(
                f"labels are of several types that have no common order: {', '.join(kinds)}; "
                "convert them to one type, for instance with y.astype(str)"
            )
        # Some tables store numbers as objects.
        y = np.array(y.tolist())
    # Integers and strings are certainly labels. For other types scikit-learn's check takes half a
    # millisecond, as long as training a small SVM.
    discrete = y.dtype.kind in "biuUS" or (y.dtype.kind == "f" and bool((y == np.rint(y)).all()))
    if not discrete:
        check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    # scikit-learn only objects to the number of such classes.
    if discrete and 2 * len(classes) > len(y):
        check_classification_targets(y)
    return classes, codes


class ProbabilityMixin:
    """Class probabilities, documented once."""

    def _has_probabilities(self) -> bool:
        """Return whether there are probabilities, which may depend on the model inside."""
        return True

    @abstractmethod
    def _class_probabilities(self, X: Any, log: bool) -> Array:
        """Return probabilities or their logarithms, (n_samples, n_classes)."""

    @available_if(lambda model: model._has_probabilities())
    def predict_proba(self, X: Any) -> Array:
        """Probability of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        probabilities : array of shape (n_samples, n_classes)
            Rows sum to one; columns in the order of ``classes_``.
        """
        return np.asarray(self._class_probabilities(X, log=False))

    @available_if(lambda model: model._has_probabilities())
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of the probability of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        logarithms : array of shape (n_samples, n_classes)
            Finite even if probabilities underflow; minus infinity for excluded classes.
        """
        return np.asarray(self._class_probabilities(X, log=True))


class _NoProbabilities:
    """A missing method; the error names the alternative.

    ``hasattr`` returns False, as scikit-learn expects.
    """

    def __set_name__(self, owner: Any, name: str) -> None:
        self.name = name

    def __get__(self, model: Any, owner: Any) -> NoReturn:
        raise AttributeError(
            f"{owner.__name__} has no {self.name}: decision values are not probabilities; use "
            f"lokl.search.calibrated(model, X, y), which has {self.name}"
        )


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


class ClassDecisionMixin(ClassifierMixin):
    """Decision values and predicted classes of a classifier with ``_decisions(X)``."""

    classes_: Array
    _tie: int  # index of the class for decisions of zero
    _decisions: Any  # new samples to decisions, (n_samples, n_tasks)

    def _is_flat(self) -> bool:
        return len(self.classes_) == 2

    def _tasks(self) -> tuple[str, Sequence[Any]]:
        return "class", self.classes_.tolist()

    def decision_function(self, X: Any) -> Array:
        """Return the decision values.

        For one SVM, they are signed distances from the boundary in units of the margin.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        decision : array of shape (n_samples,), or (n_samples, n_classes) for more than two
            Positive values predict ``classes_[1]``, or the class of the column.
        """
        decision = self._decisions(X)
        return decision[:, 0] if self._is_flat() else decision

    def predict(self, X: Any) -> Array:
        """Predict the class of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        labels : array of shape (n_samples,)
        """
        return self._decode(self._decisions(X))

    def _decode(self, decision: Array) -> Array:
        return decided_classes(decision, self.classes_, self._tie)


@settings
class Classifier(ClassDecisionMixin, KernelEstimator):
    """One SVM for two classes; for more classes, one SVM for each class against the rest.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    """

    loss: str = setting(
        "auto",
        one_of("auto", *CLASSIFICATION),
        'Loss of margin violations: "hinge" is linear in their size, "squared_hinge" quadratic. '
        '"squared" is half the squared distance from 1 or -1 (least-squares SVM), with exact '
        'leave-one-out decisions; some methods do not have it. "auto" is the first that the solver '
        'supports: the hinge, the squared hinge ("mwu"), or the squared loss ("squared").',
    )
    class_weight: Any = setting(
        None,
        Rule('dict, "balanced" or None', _check_class_weight),
        "Factors of `C` by class; classes missing from a dict have 1.",
    )

    _is_common = True

    # Methods with probabilities override these.
    predict_proba: ClassVar[Any] = _NoProbabilities()
    predict_log_proba: ClassVar[Any] = _NoProbabilities()

    def _encode_targets(self, y: Array, weight: Array) -> tuple[Targets, dict[str, Any]]:
        classes, codes, tie = learned_classes(type(self).__name__, y, weight)
        by_class = self._class_factors(classes, codes, weight)
        cost = check_costs(self.C, {"sample_weight": weight, "class_weight": by_class})
        positive = [1] if len(classes) == 2 else range(len(classes))
        targets = [(np.where(codes == c, 1.0, -1.0), cost) for c in positive]
        return targets, {"classes_": classes, "_tie": tie}

    def _class_factors(self, classes: Array, codes: Array, weight: Array) -> Array:
        """Return the factor of the cost of every sample."""
        if self.class_weight is None:
            return np.ones(len(codes))
        if isinstance(self.class_weight, str):
            # Count samples with their weights, so that a weight of 2 equals a repeated row.
            counts = np.bincount(codes, weights=weight)
            # Classes without samples have an infinite count and the factor 0.
            counts[counts == 0] = np.inf
            factors = weight.sum() / (np.isfinite(counts).sum() * counts)
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

    def _problem(self, target: Array, cost: Array, solver: Solver) -> Problem:
        return CLASSIFICATION[self._loss(solver)](target, cost)

    def _loss(self, solver: Solver) -> str:
        """Return the name of the loss that the SVMs minimise."""
        return classification_loss(self.loss, solver)

    def _check_combinations(self, solver: Solver) -> None:
        super()._check_combinations(solver)
        check_squared_loss(self, self._loss(solver))


def check_squared_loss(estimator: Any, loss: str) -> None:
    """Raise ValueError if the method of an estimator does not have the squared loss."""
    method = next(filter(None, map(method_of_class, type(estimator).__mro__)), None)
    if loss == "squared" and method is not None and not method.can("squared loss"):
        names = ", ".join(method.name for method in METHODS if method.can("squared loss"))
        raise ValueError(
            f"{type(estimator).__name__} does not have the squared loss (loss={estimator.loss!r}, "
            f"solver={estimator.solver!r}); use another loss and solver, or one of: {names}"
        )


def target_spread(y: Array, weight: Array | None = None) -> float:
    """Return the unit of costs and tolerances of a regression; see :func:`spread_of_moments`.

    Parameters
    ----------
    y : array of shape (n_samples,) or (n_samples, n_targets)
    weight : array of shape (n_samples,), optional
    """
    mean = np.average(y, axis=0, weights=weight)
    return spread_of_moments(mean, np.average((y - mean) ** 2, axis=0, weights=weight))


def spread_of_moments(mean: Any, variance: Any) -> float:
    """Return the mean standard deviation of the targets, 1 if they are constant but for rounding.

    Parameters
    ----------
    mean, variance : float or array of shape (n_targets,)
    """
    spread = np.sqrt(variance).mean()
    if not spread > _ROUNDING * np.abs(mean).max():
        return 1.0
    return float(f"{spread:.{_SPREAD_DIGITS}g}")


class TargetDecisionMixin(RegressorMixin):
    """Predicted targets of a regressor with ``_decisions(X)``."""

    _one_target: bool  # whether y was given without an axis of targets
    _decisions: Any  # new samples to targets, (n_samples, n_targets)

    def _is_flat(self) -> bool:
        return self._one_target

    def predict(self, X: Any) -> Array:
        """Predict the targets of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        values : array of shape (n_samples,) or (n_samples, n_targets), as in training
        """
        return self._decode(self._decisions(X))

    def _decode(self, decision: Array) -> Array:
        return decision[:, 0] if self._one_target else decision

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags


@settings
class Regressor(TargetDecisionMixin, KernelEstimator):
    """Regression with the epsilon-insensitive or the squared loss, one SVM for each target."""

    epsilon: float = setting(
        0.1, NOT_NEGATIVE, "Residuals up to this size cost nothing; not used by the squared loss."
    )
    loss: str = setting(
        "auto",
        one_of("auto", *REGRESSION),
        'Loss of residuals: "epsilon_insensitive" is linear beyond `epsilon`, "squared" is half '
        "the squared residual (kernel ridge regression with an intercept), with exact "
        'leave-one-out predictions; some methods do not have it. "auto" is the first that the '
        "solver supports.",
    )

    _is_common = True

    def _encode_targets(self, y: Array, weight: Array) -> tuple[Targets, dict[str, Any]]:
        y = np.asarray(y, dtype=np.float64)
        cost = check_costs(self.C, {"sample_weight": weight})
        return [(target, cost) for target in column(y).T], {"_one_target": y.ndim == 1}

    def _check_combinations(self, solver: Solver) -> None:
        super()._check_combinations(solver)
        check_squared_loss(self, regression_loss(self.loss, solver))

    def _problem(self, target: Array, cost: Array, solver: Solver) -> Problem:
        loss = regression_loss(self.loss, solver)
        return regression_problem(loss, target, cost, self.epsilon)

    def _tasks(self) -> tuple[str, Sequence[Any]]:
        return "target", range(len(self.intercept_))
