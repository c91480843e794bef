"""Classifiers with probabilities, learned from held-out decisions."""

from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils import column_or_1d, get_tags
from sklearn.utils.validation import check_is_fitted

from lokl._arrays import Array
from lokl._notices import Collected
from lokl.estimators._base import setting, settings
from lokl.estimators._base.explained import Explained
from lokl.estimators._base.refit import all_or_nothing, publish
from lokl.estimators._base.rules import anything
from lokl.estimators._base.settings import check_settings
from lokl.estimators._base.validation import check_weights
from lokl.models.described import COLUMNS, Attributes
from lokl.selection.calibrated_answers import CalibratedAnswers
from lokl.selection.calibration import Calibration
from lokl.selection.decisions import class_splits, fit_options, held_out


def _parts(model: Any) -> tuple[Any, Any]:
    """Steps that change samples, None for none, and the model that explains its decisions."""
    if not isinstance(model, Pipeline):
        return None, model
    return model[:-1] if len(model) > 1 else None, model[-1]


@settings
class CalibratedMKLClassifier(CalibratedAnswers, MetaEstimatorMixin, ClassifierMixin, Explained):
    """A classifier with probabilities: ``softmax_c(slope f_c(x) + offset_c)``.

    The model is fitted on all samples. Slope and offsets are learned from decisions about samples
    that were left out (:func:`lokl.selection.held_out`), because decisions about training samples
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
    >>> from lokl.selection import CalibratedMKLClassifier
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

    _attributes: ClassVar[Attributes] = {
        "estimator_": ("classifier", "Fitted on all samples."),
        "calibration_": ("Calibration", "From decisions to probabilities."),
        "held_out_": (
            "array of shape (n_samples, n_tasks)",
            "Held-out decisions that the calibration was learned from.",
        ),
        "classes_": ("array of shape (n_classes,)", ""),
        "kernel_names_": ("list of str", "Of the model, where it has kernels."),
        **COLUMNS,
    }

    @classmethod
    def _described(cls) -> Attributes:
        return cls._attributes

    @all_or_nothing
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
        with Collected():
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
    >>> from lokl.selection import calibrated
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
    with Collected():
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
