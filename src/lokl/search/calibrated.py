"""Decisions about every sample by models that have not seen it, whatever the method.

Probabilities out of calibrated decisions, for all who hold a model with decisions.

Classifiers with probabilities, learned from held-out decisions.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, MetaEstimatorMixin, clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, column_or_1d, get_tags, indexable
from sklearn.utils.validation import _num_samples, check_is_fitted, has_fit_parameter

from lokl._arrays import Array, column
from lokl._warnings import DeferredWarnings
from lokl.base import FixedKernel, setting, settings
from lokl.base.classifier import ProbabilityMixin
from lokl.base.delegation import ExplanationMixin
from lokl.base.estimator import atomic_fit, publish
from lokl.base.model import FEATURE_ATTRIBUTES, AttributeDocs
from lokl.base.settings import anything, check_settings
from lokl.base.validation import check_weights
from lokl.search.calibration import Calibration
from lokl.solvers.machines import Fold, check_any_left, check_fold, mean_decisions


def held_out(
    estimator: Any, X: Any, y: Any, splits: Iterable[Fold], sample_weight: Any = None
) -> Array:
    """Decisions about samples by models that were fitted without them.

    A method whose kernel is fixed (``UniformMKL``) solves all folds on one Gram matrix; settings
    that depend on the samples, such as ``gamma="scale"``, and balanced class weights are then those
    of all samples. Of any other estimator a copy is fitted for each fold.

    Parameters
    ----------
    estimator : estimator of lokl, or a pipeline that ends in one
        Fitted or not; it stays as it is.
    X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
    splits : iterable of (learned from, left out)
        Numbers of samples, as splitters give them.
    sample_weight : array-like of shape (n_samples,), optional

    Returns
    -------
    decisions : array of shape (n_samples, n_tasks)
        Decision values of classifiers, one column for two classes; predictions of regressors. The
        mean, where a sample is left out several times; 0 for samples that have no weight or are
        never left out. A class that a fold has no sample of is decided against with -1, as by a
        machine that has seen others only.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import StratifiedKFold
    >>> from lokl import UniformMKLClassifier
    >>> from lokl.search import held_out
    >>> X, y = load_iris(return_X_y=True)
    >>> splits = StratifiedKFold(5).split(X, y)
    >>> held_out(UniformMKLClassifier(["rbf"]), X, y, splits).shape
    (150, 3)
    """
    folds = as_numbers(splits)
    if isinstance(estimator, FixedKernel):
        return clone(estimator)._held_out(X, y, folds, sample_weight)
    X, y = indexable(X, y)
    weight = check_weights(sample_weight, np.empty((_num_samples(X), 0)))
    kind = _Classes if is_classifier(estimator) else _Targets
    decide = kind(estimator, X, y, None if sample_weight is None else weight)
    # A weight of zero is the same as no row at all.
    folds = [(kept[weight[kept] > 0], left[weight[left] > 0]) for kept, left in folds]
    check_any_left(folds)
    with DeferredWarnings():
        return mean_decisions(_told(decide, folds), len(weight), decide.n_tasks)


class _Targets:
    """Predictions of a regressor that learned from some of the samples."""

    def __init__(self, estimator: Any, X: Any, y: Any, weight: Array | None):
        self.estimator, self.X, self.y, self.weight = estimator, X, y, weight
        self.n_tasks = 1 if np.ndim(y) < 2 else np.shape(y)[1]

    def learned(self, kept: Array) -> Any:
        weight = None if self.weight is None else self.weight[kept]
        X, y = _safe_indexing(self.X, kept), _safe_indexing(self.y, kept)
        return clone(self.estimator).fit(X, y, **fit_options(self.estimator, weight))

    def __call__(self, kept: Array, left: Array) -> Array:
        model = self.learned(kept)
        return column(np.asarray(model.predict(_safe_indexing(self.X, left)), dtype=float))


class _Classes(_Targets):
    """Decisions of a classifier that learned from some of the samples."""

    def __init__(self, estimator: Any, X: Any, y: Any, weight: Array | None):
        super().__init__(estimator, X, column_or_1d(y), weight)
        self.classes, self.codes = np.unique(self.y, return_inverse=True)
        self.n_tasks = 1 if len(self.classes) == 2 else len(self.classes)

    def __call__(self, kept: Array, left: Array) -> Array:
        known = np.unique(self.codes[kept])
        by_class = np.full((len(left), len(self.classes)), -1.0)
        if len(known) < 2:
            # Nothing to tell apart: one class, for every sample.
            by_class[:, known] = 1.0
        else:
            model = self.learned(kept)
            decision = np.asarray(model.decision_function(_safe_indexing(self.X, left)))
            by_class[:, known] = (
                decision if decision.ndim == 2 else np.column_stack([-decision, decision])
            )
        return by_class[:, 1:] if len(self.classes) == 2 else by_class


def _told(decide: _Targets, folds: Sequence[Fold]) -> Iterator[Fold]:
    """Yield the samples that a fold leaves out, and the decisions about them."""
    for kept, left in folds:
        check_fold(kept, left)
        if len(left):
            yield left, decide(kept, left)


def fit_options(estimator: Any, weight: Any) -> dict[str, Any]:
    """How `fit` of an estimator, or of the last step of a pipeline, is told weights, if any."""
    if weight is None:
        return {}
    step, last = estimator.steps[-1] if isinstance(estimator, Pipeline) else ("", estimator)
    if not has_fit_parameter(last, "sample_weight"):
        raise ValueError(f"{type(last).__name__} takes no sample_weight; leave it out")
    return {f"{step}__sample_weight" if step else "sample_weight": weight}


def as_numbers(splits: Iterable[Fold]) -> list[Fold]:
    """Return splits, which may be masks, as numbers of samples."""

    def numbers(rows: Any) -> Array:
        rows = np.asarray(rows)
        return np.flatnonzero(rows) if rows.dtype == bool else rows.astype(int)

    return [(numbers(kept), numbers(left)) for kept, left in splits]


def class_splits(cv: Any, y: Array, groups: Any = None) -> list[Fold]:
    """Make splits of samples with classes, as `cv` asks for them.

    A number is that many folds with all classes in each, as far as they go; with `groups`, folds
    keep these together. Other values are what scikit-learn takes.
    """
    if not isinstance(cv, Integral):
        splitter = check_cv(cv, y, classifier=True)
        return as_numbers(splitter.split(np.zeros((len(y), 1)), y, groups))
    if cv < 2:
        raise ValueError(f"cv must be two or more folds, a splitter or a list of splits, got {cv}")
    if groups is not None:
        return _group_splits(int(cv), y, groups)
    # scikit-learn warns of classes with fewer samples than folds, and refuses them if all are so.
    codes = np.unique(y, return_inverse=True)[1]
    n_folds = min(int(cv), len(y))
    fold = np.empty(len(y), dtype=int)
    for number in range(codes.max() + 1):
        own = np.flatnonzero(codes == number)
        # Neighbours, which are often alike, stay together; small classes do not share one fold.
        fold[own] = (np.arange(len(own)) * n_folds // len(own) + number) % n_folds
    return _folds(fold, n_folds)


def _group_splits(n_folds: int, y: Array, groups: Any) -> list[Fold]:
    n_groups = len(np.unique(np.asarray(groups)))
    if n_groups < 2:
        raise ValueError(f"groups name {n_groups} group; folds that keep groups together need two")
    count = min(n_folds, n_groups)
    small = np.unique(y, return_counts=True)[1].min() < count
    splitter = GroupKFold(count) if small else StratifiedGroupKFold(count)
    return list(splitter.split(np.zeros((len(y), 1)), y, groups))


def _folds(fold: Array, n_folds: int) -> list[Fold]:
    pairs = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(n_folds)]
    return [(kept, left) for kept, left in pairs if len(left) and len(kept)]


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
    CalibratedAnswers, MetaEstimatorMixin, ClassifierMixin, ExplanationMixin
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
