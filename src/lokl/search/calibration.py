"""Probabilities from decisions: calibration, calibrated classifiers, and how to check them."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils import column_or_1d, get_tags
from sklearn.utils.validation import check_is_fitted

from lokl._arrays import Array
from lokl._warnings import DeferredWarnings
from lokl.base import setting, settings
from lokl.base.classifier import ProbabilityMixin
from lokl.base.delegation import ExplanationMixin
from lokl.base.model import FEATURE_ATTRIBUTES, AttributeDocs, atomic_fit, publish
from lokl.base.settings import anything, check_settings
from lokl.base.validation import check_weights
from lokl.search.cross_validation import class_splits, fit_options, held_out

# Where evidence is thin, and where scale and offset cannot be told apart, numbers stay small.
_RIDGE = 1e-3
# Decisions that vary less than this, relative to their size, are constant.
_CONSTANT = 1e-10
_LARGEST = 1e300
_ROUNDS = 200
_SHORTEST = 1e-12


@dataclass(frozen=True, eq=False)
class Calibration:
    """Probabilities of classes: ``softmax_c(slope f_c(x) + offset_c)``, the slope not negative.

    With two classes, whose decision is one number, that is Platt's sigmoid
    ``1 / (1 + exp(-(slope f + offset)))``, written as decisions ``-f / 2`` and ``f / 2`` of the two
    classes.

    Attributes
    ----------
    slope : float
    offset : array of shape (n_classes,)
        All 0 where offsets would not pay: the most likely class is then the one of the largest
        decision.
    """

    slope: float
    offset: Array

    @classmethod
    def learn(
        cls, decision: Array, codes: Array, n_classes: int, weight: Array | None = None
    ) -> "Calibration":
        """Learn from decisions about samples that the deciding machines have not seen.

        Maximum likelihood, with Platt's targets: a sample of a class of ``N`` samples belongs to it
        with probability ``(N + 1) / (N + 2)``, the rest is shared by the other classes. So even
        classes that decisions separate altogether have a finite slope. Offsets are learned where
        they gain more than their number in log likelihood (Akaike's criterion): those that gain
        less are noise, and would only make the most likely class another than the predicted one.

        Parameters
        ----------
        decision : array of shape (n_samples,), (n_samples, 1) or (n_samples, n_classes)
        codes : int array of shape (n_samples,)
            Number of the class of each sample.
        n_classes : int
            Classes that no sample has get little, but some, probability.
        weight : array of shape (n_samples,), optional
            A weight of 2 counts like the sample written twice.
        """
        F = _by_class(decision)
        _check(F, codes, n_classes)
        weight = np.ones(len(F)) if weight is None else np.asarray(weight, dtype=float)
        total = float(weight.sum())
        if not len(F) or not total > 0:
            raise ValueError("calibration needs held-out decisions about samples with a weight")
        share, targets = weight / total, _targets(codes, n_classes, weight)
        # What all classes have in common cancels.
        F = F - F.mean(axis=1, keepdims=True)
        plain, plain_loss = _fitted(F, targets, share, total, offsets=False)
        centre = share @ F
        shifted, shifted_loss = _fitted(F - centre, targets, share, total, offsets=True)
        if total * (plain_loss - shifted_loss) <= n_classes - 1:
            return plain
        return cls(shifted.slope, shifted.offset - shifted.slope * centre)

    def log_probabilities(self, decision: Array) -> Array:
        """Logarithms of the probabilities, (n_samples, n_classes)."""
        F = _by_class(decision)
        with np.errstate(over="ignore"):
            scores = np.clip(self.slope * F + self.offset, -_LARGEST, _LARGEST)
        return np.asarray(log_softmax(scores, axis=1))

    def probabilities(self, decision: Array) -> Array:
        """Probabilities of the classes, (n_samples, n_classes); rows sum to one."""
        chance = np.exp(self.log_probabilities(decision))
        return np.asarray(chance / chance.sum(axis=1, keepdims=True))


def _by_class(decision: Array) -> Array:
    """One column for each class."""
    F = np.asarray(decision, dtype=float)
    if F.ndim == 1 or F.shape[1] == 1:
        return np.column_stack([-0.5 * F.ravel(), 0.5 * F.ravel()])
    return F


def _check(F: Array, codes: Array, n_classes: int) -> None:
    if F.shape != (len(codes), n_classes):
        raise ValueError(
            f"decisions of {len(codes)} samples of {n_classes} classes have shape "
            f"{(len(codes), n_classes)}, or one column for two classes; got {F.shape}"
        )
    if not np.isfinite(F).all():
        bad = int(np.flatnonzero(~np.isfinite(F).all(axis=1))[0])
        raise ValueError(f"the decision about sample {bad} is not finite: {F[bad]}")


def _fitted(
    F: Array, targets: Array, share: Array, total: float, *, offsets: bool
) -> tuple[Calibration, float]:
    """Best slope, and offsets where they are wanted, and the mean log loss that is left."""
    n_classes = F.shape[1]
    size = max(float(np.abs(F).max()), np.finfo(float).tiny)
    deviation = float(np.sqrt(share @ ((F / size) ** 2).sum(axis=1)))
    # Decisions that say nothing about samples have no slope.
    scale = size * deviation if deviation > _CONSTANT else np.inf
    objective = _Objective(F / scale, targets, share, _RIDGE / total)
    movable = np.array([True] + n_classes * [offsets])
    params = _minimise(objective, np.eye(n_classes + 1)[0], movable)
    return Calibration(float(params[0] / scale), params[1:]), objective.value(params)


def _targets(codes: Array, n_classes: int, weight: Array) -> Array:
    """Probabilities that Platt wants to be met, (n_samples, n_classes)."""
    counts = np.bincount(codes, weights=weight, minlength=n_classes)
    doubt = 1.0 / (counts + 2.0)
    targets = np.repeat(doubt[codes][:, np.newaxis] / (n_classes - 1), n_classes, axis=1)
    targets[np.arange(len(codes)), codes] = 1.0 - doubt[codes]
    return targets


@dataclass(frozen=True, eq=False)
class _Objective:
    """Mean log loss and a ridge, in one slope and the offsets of standardised decisions."""

    Z: Array
    targets: Array
    share: Array  # of each sample in all weight
    ridge: float

    def value(self, params: Array) -> float:
        loss = -(self.targets * self._logarithms(params)).sum(axis=1)
        return float(self.share @ loss + 0.5 * self.ridge * (params @ params))

    def slope_and_curvature(self, params: Array) -> tuple[Array, Array]:
        P = np.exp(self._logarithms(params))
        rest = self.share[:, np.newaxis] * (P - self.targets)
        slope = np.append((self.Z * rest).sum(), rest.sum(axis=0))
        # Of each sample: the covariance, under its probabilities, of what the parameters multiply.
        mean = np.column_stack([(self.Z * P).sum(axis=1), P])
        curvature = -mean.T @ (self.share[:, np.newaxis] * mean)
        curvature[0, 0] += self.share @ (self.Z**2 * P).sum(axis=1)
        across = self.share @ (self.Z * P)
        curvature[0, 1:] += across
        curvature[1:, 0] += across
        curvature[1:, 1:] += np.diag(self.share @ P)
        return slope + self.ridge * params, curvature + self.ridge * np.eye(len(params))

    def _logarithms(self, params: Array) -> Array:
        return np.asarray(log_softmax(params[0] * self.Z + params[1:], axis=1))


def _minimise(objective: _Objective, params: Array, movable: Array) -> Array:
    """Newton steps with a line search; the first number, the slope, is not negative."""
    for _ in range(_ROUNDS):
        slope, curvature = objective.slope_and_curvature(params)
        free = movable.copy()
        # A slope of zero that would fall further stays.
        free[0] = params[0] > 0 or slope[0] < 0
        newton = np.zeros_like(params)
        newton[free] = -np.linalg.solve(curvature[np.ix_(free, free)], slope[free])
        moved = _walk(objective, params, slope, newton)
        if moved is None:
            # A step that the bound cuts may point uphill; the plain slope never does.
            moved = _walk(objective, params, slope, np.where(free, -slope, 0.0))
        if moved is None:
            break
        length = float(np.abs(moved - params).max())
        params = moved
        if length < _SHORTEST:
            break
    return params


def _walk(objective: _Objective, params: Array, slope: Array, direction: Array) -> Array | None:
    """Longest step, halved until it gains; None where no step does."""
    value = objective.value(params)
    # What rounding takes and gives is no reason to stop before the last digits are right.
    slack = 1e-14 * (1.0 + abs(value))
    length = 1.0
    while length > 1e-8:
        candidate = params + length * direction
        candidate[0] = max(candidate[0], 0.0)
        gain = float(slope @ (candidate - params))
        if gain <= 0 and objective.value(candidate) <= value + 1e-4 * gain + slack:
            return candidate
        length /= 2
    return None


def expected_calibration_error(
    y: Any, proba: Any, n_bins: int = 10, *, classes: Any = None, sample_weight: Any = None
) -> float:
    """How far probabilities are from what they say, on average: 0 is perfect.

    Samples are sorted into bins of equal width by the probability of their most likely class; the
    error is the mean over samples of ``|share of right answers - mean probability|`` in their bin.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Labels of samples that neither model nor calibration has seen.
    proba : array-like of shape (n_samples, n_classes), or (n_samples,)
        Probabilities of the classes, or of the second of two.
    n_bins : int, default=10
    classes : array-like of shape (n_classes,), optional
        Classes of the columns, ``model.classes_``; the sorted labels of `y` where None.
    sample_weight : array-like of shape (n_samples,), optional

    Examples
    --------
    >>> expected_calibration_error([0, 1, 1, 1], [0.25, 0.75, 0.75, 0.75])
    0.25
    """
    y = np.asarray(y)
    P = _probabilities(proba, len(y))
    labels = np.unique(y) if classes is None else np.asarray(classes)
    if len(labels) != P.shape[1]:
        raise ValueError(
            f"proba has {P.shape[1]} columns for {len(labels)} classes {labels.tolist()}; give "
            "the classes of the columns: classes=model.classes_"
        )
    if int(n_bins) != n_bins or n_bins < 1:
        raise ValueError(f"n_bins must be a whole number of at least 1, got {n_bins!r}")
    weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    if weight.shape != (len(y),) or not (weight >= 0).all() or not 0 < weight.sum() < np.inf:
        raise ValueError(
            f"sample_weight is one number for each of {len(y)} samples, not negative and not all "
            f"zero; got shape {weight.shape}"
        )
    confidence = P.max(axis=1)
    right = labels[P.argmax(axis=1)] == y
    bins = np.minimum((confidence * n_bins).astype(int), int(n_bins) - 1)
    # |sum of (right - confidence)| is the number of samples in a bin times their difference.
    away = np.bincount(bins, weights=weight * (right - confidence))
    return float(np.abs(away).sum() / weight.sum())


def _probabilities(proba: Any, n_samples: int) -> Array:
    P = np.asarray(proba, dtype=float)
    if P.ndim == 1:
        P = np.column_stack([1.0 - P, P])
    if P.ndim != 2 or len(P) != n_samples or not n_samples:
        raise ValueError(f"proba has a row for each of {n_samples} labels, got shape {P.shape}")
    bad = ~((P >= 0).all(axis=1) & (np.abs(P.sum(axis=1) - 1) < 1e-6))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"row {row} of proba is {P[row].tolist()}; probabilities are not negative and sum to "
            "one (predict_proba gives them, decision_function does not)"
        )
    return P


class CalibratedAnswers(ProbabilityMixin):
    """Probabilities of ``calibration_``; where that is None, those of the model itself."""

    calibration_: Any

    @abstractmethod
    def _answer(self, name: str, X: Any) -> Any:
        """Ask the model for what it calls `name`."""

    def _class_probabilities(self, X: Any, log: bool) -> Array:
        check_is_fitted(self)
        known = self.calibration_
        if known is None:
            chances: Array = self._answer("predict_log_proba" if log else "predict_proba", X)
            return chances
        decision = self._answer("decision_function", X)
        return known.log_probabilities(decision) if log else known.probabilities(decision)


def _parts(model: Any) -> tuple[Any, Any]:
    """Steps that change samples, None for none, and the model that explains its decisions."""
    if not isinstance(model, Pipeline):
        return None, model
    return model[:-1] if len(model) > 1 else None, model[-1]


@settings
class CalibratedMKLClassifier(
    CalibratedAnswers, MetaEstimatorMixin, ClassifierMixin, ExplanationMixin, BaseEstimator
):
    """A classifier with probabilities: ``softmax_c(slope f_c(x) + offset_c)``.

    The model is fitted on all samples. Slope and offsets are learned from decisions about samples
    that were left out (:func:`lokl.search.held_out`), because decisions about training samples
    are too sure of themselves. With two classes this is Platt's method.

    ``predict``, ``decision_function``, ``gate`` and ``contributions`` are those of the model:
    probabilities do not change what it says. Where offsets are learned, which takes held-out
    decisions that lean to some classes (often where classes are of very different size, or weighted
    by ``class_weight``), the most likely class may be another than the predicted one. Both then
    stand as they are, and ``classes_[predict_proba(X).argmax(1)]`` is the most likely class.

    Notes
    -----
    Probabilities are those of the data with its sample weights; a ``class_weight`` of the model
    moves its decisions, and calibration takes that back. :class:`Calibration` has the formulas.

    References
    ----------
    J. Platt, Probabilistic outputs for support vector machines, 1999. H.-T. Lin, C.-J. Lin and
    R. C. Weng, A note on Platt's probabilistic outputs for support vector machines, 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from lokl import UniformMKLClassifier
    >>> from lokl.search import CalibratedMKLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CalibratedMKLClassifier(UniformMKLClassifier(["rbf"])).fit(X, y)
    >>> model.predict_proba(X[:2]).round(1)
    array([[1., 0., 0.],
           [1., 0., 0.]])
    """

    estimator: Any = setting(
        None,
        anything("classifier"),
        "A classifier of lokl, or a pipeline that ends in one. A copy is fitted.",
        kw_only=False,
    )
    cv: Any = setting(
        5,
        anything("int, splitter or iterable"),
        "What is left out in turn: a number of folds, with all classes in each as far as they go, "
        "a splitter of scikit-learn, or pairs of row numbers.",
        kw_only=False,
    )

    _attributes: ClassVar[AttributeDocs] = {
        "estimator_": ("classifier", "Fitted on all samples."),
        "calibration_": ("Calibration", "From decisions to probabilities."),
        "held_out_": (
            "array of shape (n_samples, n_tasks)",
            "Held-out decisions that the calibration was learned from.",
        ),
        "classes_": ("array of shape (n_classes,)", ""),
        "kernel_names_": ("list of str", "Of the model, where it has kernels."),
        **FEATURE_ATTRIBUTES,
    }

    @classmethod
    def _attribute_docs(cls) -> AttributeDocs:
        return cls._attributes

    @atomic_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Any:
        """Fit the model, and learn probabilities from samples left out.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 counts like the row written twice, 0 like no row.
        groups : array-like of shape (n_samples,), optional
            Samples of one group are left out together.

        Returns
        -------
        self
        """
        check_settings(self)
        if not hasattr(self.estimator, "fit"):
            raise ValueError(
                f"estimator must be a classifier, such as UniformMKLClassifier(), got "
                f"{self.estimator!r}"
            )
        with DeferredWarnings():
            model = clone(self.estimator).fit(X, y, **fit_options(self.estimator, sample_weight))
            return self._calibrate(model, X, y, sample_weight, groups)

    def _calibrate(self, model: Any, X: Any, y: Any, sample_weight: Any, groups: Any) -> Any:
        """Learn the probabilities of a fitted model."""
        codes = _codes(model, y)
        weight = check_weights(sample_weight, np.empty((len(codes), 0)))
        splits = class_splits(self.cv, codes, groups)
        decisions = held_out(model, X, y, splits, sample_weight)
        judged = np.unique(np.concatenate([left for _, left in splits]))
        judged = judged[weight[judged] > 0]
        learned = {
            "estimator_": model,
            "calibration_": Calibration.learn(
                decisions[judged], codes[judged], len(model.classes_), weight[judged]
            ),
            "held_out_": decisions,
            "classes_": model.classes_,
        }
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(model, name):
                learned[name] = getattr(model, name)
        if hasattr(_parts(model)[1], "kernel_names_"):
            learned["kernel_names_"] = _parts(model)[1].kernel_names_
        publish(self, learned)
        return self

    def _answer(self, name: str, X: Any) -> Any:
        return getattr(self.estimator_, name)(X)

    def predict(self, X: Any) -> Array:
        """Class of each sample, as the model says; see the class for its part in probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        labels : array of shape (n_samples,)
        """
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict(X))

    def decision_function(self, X: Any) -> Array:
        """Decision values of the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        decision : array of shape (n_samples,), or (n_samples, n_classes) for more than two
        """
        check_is_fitted(self)
        return np.asarray(self.estimator_.decision_function(X))

    def _explains(self, question: str) -> bool:
        model = getattr(self, "estimator_", self.estimator)
        return hasattr(_parts(model)[1], question)

    def _explained(self, question: str, X: Any, labels: bool) -> Any:
        check_is_fitted(self)
        before, model = _parts(self.estimator_)
        told = getattr(model, question)(X if before is None else before.transform(X), labels=labels)
        # Steps that return arrays lose the index.
        return told.set_axis(X.index) if labels and hasattr(X, "columns") else told

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.estimator is not None:
            own = get_tags(self.estimator)
            tags.input_tags.sparse = own.input_tags.sparse
            tags.input_tags.allow_nan = own.input_tags.allow_nan
        return tags


def calibrated(
    model: Any, X: Any, y: Any, *, cv: Any = 5, sample_weight: Any = None, groups: Any = None
) -> CalibratedMKLClassifier:
    """Give a fitted classifier probabilities.

    Copies of the model are fitted on parts of its training samples and decide on the rest; from
    these decisions the probabilities are learned. The model itself is not fitted again and stays
    as it is: ``calibrated(model, X, y).estimator_ is model``.

    Parameters
    ----------
    model : classifier
        A fitted classifier of lokl, or a fitted pipeline that ends in one.
    X, y : samples and labels
        Those that the model was fitted on.
    cv : int, splitter or iterable, default=5
        What is left out in turn.
    sample_weight : array-like of shape (n_samples,), optional
        As in the fit of the model.
    groups : array-like of shape (n_samples,), optional
        Samples of one group are left out together.

    Returns
    -------
    classifier : CalibratedMKLClassifier
        With ``predict_proba``, and all that the model has to say.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from lokl import UniformMKLClassifier
    >>> from lokl.search import calibrated
    >>> X, y = load_iris(return_X_y=True)
    >>> model = UniformMKLClassifier(["rbf"]).fit(X, y)
    >>> calibrated(model, X, y).predict_proba(X).shape
    (150, 3)
    """
    try:
        check_is_fitted(model)
    except NotFittedError as error:
        raise NotFittedError(
            f"calibrated takes a fitted model, and this {type(model).__name__} is not fitted: call "
            f"fit first, or use CalibratedMKLClassifier(model).fit(X, y)"
        ) from error
    with DeferredWarnings():
        result = CalibratedMKLClassifier(model, cv)
        return result._calibrate(model, X, y, sample_weight, groups)


def _codes(model: Any, y: Any) -> Array:
    """Return the number of the class of every sample."""
    numbers = {label: code for code, label in enumerate(np.asarray(model.classes_).tolist())}
    labels = np.asarray(column_or_1d(y)).tolist()
    unknown = [label for label in labels if label not in numbers]
    if unknown:
        raise ValueError(
            f"label {unknown[0]!r} is none of the classes that the model knows: "
            f"{', '.join(map(str, numbers))}"
        )
    codes = np.array([numbers[label] for label in labels], dtype=int)
    if len(np.unique(codes)) < len(numbers):
        lacking = np.setdiff1d(np.arange(len(numbers)), codes)[0]
        raise ValueError(
            f"y has no sample of class {model.classes_[lacking]!r}, which the model knows; give "
            "the samples and labels that it was fitted on"
        )
    return codes
