"""Probabilities from decisions: calibration, calibrated classifiers, and how to check them."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils import column_or_1d, get_tags
from sklearn.utils.validation import check_is_fitted

from lokl._arrays import Array
from lokl._frames import as_pandas
from lokl._warnings import DeferredWarnings
from lokl.base import setting, settings
from lokl.base.estimator import ExplanationMixin
from lokl.base.model import FEATURE_ATTRIBUTES, atomic_fit, publish
from lokl.base.settings import anything, check_settings
from lokl.base.targets import ProbabilityMixin
from lokl.base.training import check_weights
from lokl.optimizers.newton import minimize_in_box
from lokl.search.cross_validation import fit_weighted, held_out, make_folds
from lokl.search.tasks import FoldResult, SearchTask

# Keeps slope and offsets small if evidence is weak or cannot separate them.
_RIDGE = 1e-3
# Decisions that vary less than this, relative to their size, are constant.
_CONSTANT = 1e-10
_LARGEST = 1e300


@dataclass(frozen=True, eq=False)
class Calibration:
    """Probabilities of classes, ``softmax_c(slope f_c(x) + offset_c)`` with ``slope >= 0``.

    With two classes, whose decision is one number, that is Platt's sigmoid
    ``1 / (1 + exp(-(slope f + offset)))``, written with decisions ``-f / 2`` and ``f / 2`` of the
    two classes.

    Attributes
    ----------
    slope : float
        Factor of decisions, at least 0.
    offset : array of shape (n_classes,)
        All 0 if offsets would not pay; the most likely class is then the predicted one.

    See Also
    --------
    lokl.search.calibrated : Learns it.

    Examples
    --------
    >>> import numpy as np
    >>> from lokl.search import Calibration
    >>> calibration = Calibration(slope=2.0, offset=np.zeros(2))
    >>> calibration.probabilities(np.array([0.0, 1.0])).round(3)
    array([[0.5  , 0.5  ],
           [0.119, 0.881]])
    """

    slope: float
    offset: Array

    @classmethod
    def learn(
        cls, decision: Array, codes: Array, n_classes: int, weight: Array | None = None
    ) -> "Calibration":
        """Learn from held-out decisions.

        Maximum likelihood, with Platt's targets: a sample of a class with ``N`` samples has target
        probability ``(N + 1) / (N + 2)`` for this class, and the other classes share the rest. So
        the slope is finite even if decisions separate the classes. Offsets are learned only if they
        increase the log likelihood by more than their number (Akaike's criterion). Smaller gains
        are noise, and would change which class is the most likely one.

        Parameters
        ----------
        decision : array of shape (n_samples,), (n_samples, 1) or (n_samples, n_classes)
        codes : int array of shape (n_samples,)
            Index of the class of each sample.
        n_classes : int
            Classes without samples get a small probability.
        weight : array of shape (n_samples,), optional
            A weight of 2 is equivalent to repeating the sample.

        Returns
        -------
        calibration : Calibration
        """
        F = by_class(decision)
        _check_decisions(F, codes, n_classes)
        weight = np.ones(len(F)) if weight is None else np.asarray(weight, dtype=float)
        total = float(weight.sum())
        if not len(F) or not total > 0:
            raise ValueError("calibration needs held-out decisions about samples with a weight")
        share, targets = weight / total, _platt_targets(codes, n_classes, weight)
        # A term that all classes have in common cancels.
        F = F - F.mean(axis=1, keepdims=True)
        plain, plain_loss = _maximize_likelihood(F, targets, share, total, offsets=False)
        centre = share @ F
        shifted, loss = _maximize_likelihood(F - centre, targets, share, total, offsets=True)
        if total * (plain_loss - loss) <= n_classes - 1:
            return plain
        return cls(shifted.slope, shifted.offset - shifted.slope * centre)

    def log_probabilities(self, decision: Array) -> Array:
        """Return the logarithms of the probabilities, (n_samples, n_classes)."""
        F = by_class(decision)
        with np.errstate(over="ignore"):
            scores = np.clip(self.slope * F + self.offset, -_LARGEST, _LARGEST)
        return np.asarray(log_softmax(scores, axis=1))

    def probabilities(self, decision: Array) -> Array:
        """Return the probabilities of the classes, (n_samples, n_classes); rows sum to one."""
        probabilities = np.exp(self.log_probabilities(decision))
        return np.asarray(probabilities / probabilities.sum(axis=1, keepdims=True))


def by_class(decision: Array) -> Array:
    """Return decisions with one column for each class."""
    F = np.asarray(decision, dtype=float)
    if F.ndim == 1 or F.shape[1] == 1:
        return np.column_stack([-0.5 * F.ravel(), 0.5 * F.ravel()])
    return F


def _check_decisions(F: Array, codes: Array, n_classes: int) -> None:
    if F.shape != (len(codes), n_classes):
        raise ValueError(
            f"decisions about {len(codes)} samples of {n_classes} classes must have shape "
            f"{(len(codes), n_classes)}, or one column for two classes; got {F.shape}"
        )
    if not np.isfinite(F).all():
        bad = int(np.flatnonzero(~np.isfinite(F).all(axis=1))[0])
        raise ValueError(f"the decision about sample {bad} is not finite: {F[bad]}")


def _platt_targets(codes: Array, n_classes: int, weight: Array) -> Array:
    """Return the target probabilities of Platt, (n_samples, n_classes)."""
    counts = np.bincount(codes, weights=weight, minlength=n_classes)
    rest = 1.0 / (counts + 2.0)
    targets = np.repeat(rest[codes][:, np.newaxis] / (n_classes - 1), n_classes, axis=1)
    targets[np.arange(len(codes)), codes] = 1.0 - rest[codes]
    return targets


def _maximize_likelihood(
    F: Array, targets: Array, share: Array, total: float, *, offsets: bool
) -> tuple[Calibration, float]:
    """Return the best slope, with offsets if requested, and the remaining mean log loss."""
    n_classes = F.shape[1]
    size = max(float(np.abs(F).max()), np.finfo(float).tiny)
    deviation = float(np.sqrt(share @ ((F / size) ** 2).sum(axis=1)))
    # Constant decisions have no slope.
    scale = size * deviation if deviation > _CONSTANT else np.inf
    loss = _LogLoss(F / scale, targets, share, _RIDGE / total)
    bound = np.full(n_classes, np.inf if offsets else 0.0)
    lower, upper = np.append(0.0, -bound), np.append(np.inf, bound)
    params = minimize_in_box(loss, np.eye(n_classes + 1)[0], lower, upper)
    return Calibration(float(params[0] / scale), params[1:]), loss(params)[0]


@dataclass(frozen=True, eq=False)
class _LogLoss:
    """Mean log loss with a ridge, as a function of slope and offsets."""

    Z: Array  # standardised decisions (n_samples, n_classes)
    targets: Array
    share: Array  # of each sample in the total weight
    ridge: float

    def __call__(self, params: Array) -> tuple[float, Array, Array]:
        """Return value, gradient and curvature."""
        log_probabilities = np.asarray(log_softmax(params[0] * self.Z + params[1:], axis=1))
        loss = -(self.targets * log_probabilities).sum(axis=1)
        value = float(self.share @ loss + 0.5 * self.ridge * (params @ params))
        P = np.exp(log_probabilities)
        residual = self.share[:, np.newaxis] * (P - self.targets)
        gradient = np.append((self.Z * residual).sum(), residual.sum(axis=0))
        # For each sample: covariance, under its probabilities, of the factors of the parameters.
        mean = np.column_stack([(self.Z * P).sum(axis=1), P])
        curvature = -mean.T @ (self.share[:, np.newaxis] * mean)
        curvature[0, 0] += self.share @ (self.Z**2 * P).sum(axis=1)
        across = self.share @ (self.Z * P)
        curvature[0, 1:] += across
        curvature[1:, 0] += across
        curvature[1:, 1:] += np.diag(self.share @ P)
        ridge = self.ridge * np.eye(len(params))
        return value, gradient + self.ridge * params, curvature + ridge


def expected_calibration_error(
    y: Any, proba: Any, n_bins: int = 10, *, classes: Any = None, sample_weight: Any = None
) -> float:
    """Return the mean difference between predicted probabilities and accuracy; 0 is perfect.

    Samples are sorted into bins of equal width by the probability of their most likely class. The
    error is the mean over samples of ``|accuracy - mean probability|`` in their bin.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Labels of samples that were used neither for the model nor for its calibration.
    proba : array-like of shape (n_samples, n_classes), or (n_samples,)
        Probabilities of the classes, or of the second of two.
    n_bins : int, default=10
        Number of bins.
    classes : array-like of shape (n_classes,), optional
        Classes of the columns, ``model.classes_``. None: the sorted labels of `y`.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the samples.

    Returns
    -------
    error : float
        From 0 to 1.

    See Also
    --------
    lokl.search.calibrated : Probabilities from held-out decisions.
    lokl.explain.ReliabilityDisplay : The bins as a figure.

    Examples
    --------
    >>> expected_calibration_error([0, 1, 1, 1], [0.25, 0.75, 0.75, 0.75])
    0.25
    """
    y = np.asarray(y)
    P = check_probabilities(proba, len(y))
    labels = np.unique(y) if classes is None else np.asarray(classes)
    if len(labels) != P.shape[1]:
        raise ValueError(
            f"proba has {P.shape[1]} columns for {len(labels)} classes {labels.tolist()}; pass "
            "the classes of the columns: classes=model.classes_"
        )
    if int(n_bins) != n_bins or n_bins < 1:
        raise ValueError(f"n_bins must be a whole number of at least 1, got {n_bins!r}")
    weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    if weight.shape != (len(y),) or not (weight >= 0).all() or not 0 < weight.sum() < np.inf:
        raise ValueError(
            f"sample_weight must be one number for each of {len(y)} samples, not negative and not "
            f"all zero; got shape {weight.shape}"
        )
    confidence = P.max(axis=1)
    correct = labels[P.argmax(axis=1)] == y
    bins = np.minimum((confidence * n_bins).astype(int), int(n_bins) - 1)
    # |sum of (correct - confidence)| is the number of samples in a bin times their difference.
    excess = np.bincount(bins, weights=weight * (correct - confidence))
    return float(np.abs(excess).sum() / weight.sum())


def check_probabilities(proba: Any, n_samples: int) -> Array:
    """Return probabilities of shape (n_samples, n_classes), or raise ValueError.

    Parameters
    ----------
    proba : array-like of shape (n_samples, n_classes), or (n_samples,)
        Probabilities of the classes, or of the second of two.
    n_samples : int
    """
    P = np.asarray(proba, dtype=float)
    if P.ndim == 1:
        P = np.column_stack([1.0 - P, P])
    if P.ndim != 2 or len(P) != n_samples or not n_samples:
        raise ValueError(f"proba must have a row for each of {n_samples} labels, got {P.shape}")
    bad = ~((P >= 0).all(axis=1) & (np.abs(P.sum(axis=1) - 1) < 1e-6))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"row {row} of proba is {P[row].tolist()}; probabilities must not be negative and must "
            "sum to one (pass the result of predict_proba, not of decision_function)"
        )
    return P


def calibrate_fold_results(
    task: SearchTask, model: Any, fold_results: Sequence[FoldResult]
) -> Calibration | None:
    """Return the calibration of a candidate from its held-out decisions.

    Parameters
    ----------
    task : SearchTask
    model : estimator
        Estimator of one candidate.
    fold_results : sequence of FoldResult
        Its results, one for each split.

    Returns
    -------
    calibration : Calibration or None
        None if the classifier has probabilities of its own, if decisions are unknown, or if some
        class is missing in a fold.
    """
    if not is_classifier(model) or hasattr(model, "predict_proba"):
        return None
    classes, codes = np.unique(np.ravel(task.y), return_inverse=True)
    n_tasks = 1 if len(classes) == 2 else len(classes)
    decisions = [result.decision for result in fold_results if result.decision is not None]
    tests = [task.splits[result.split][1] for result in fold_results]
    expected = [(len(test), n_tasks) for test in tests]
    if not decisions or [decision.shape for decision in decisions] != expected:
        return None
    rows = np.concatenate(tests)
    weights = [v for name, v in task.fit_params.items() if name.endswith("sample_weight")]
    weight = np.asarray(weights[0], dtype=float)[rows] if weights else None
    return Calibration.learn(np.concatenate(decisions), codes[rows], len(classes), weight)


class CalibratedPredictions(ProbabilityMixin):
    """Probabilities from ``calibration_``, or from the model itself."""

    calibration_: Any

    @abstractmethod
    def _call_model(self, name: str, X: Any) -> Any:
        """Return the result of a method of the fitted model."""

    def _class_probabilities(self, X: Any, log: bool) -> Array:
        check_is_fitted(self)
        calibration = self.calibration_
        if calibration is None:
            name = "predict_log_proba" if log else "predict_proba"
            return np.asarray(self._call_model(name, X))
        decision = self._call_model("decision_function", X)
        probabilities: Array = (
            calibration.log_probabilities(decision) if log else calibration.probabilities(decision)
        )
        return probabilities


class WrappedModel(ExplanationMixin):
    """Predictions and explanations of a fitted model inside, alone or at the end of a pipeline."""

    # Attribute that contains the fitted model.
    _inner: ClassVar[str]

    def _call_model(self, name: str, X: Any, **options: Any) -> Any:
        """Return the result of a method of the last step, on samples that the others prepared."""
        check_is_fitted(self)
        model, prepared = getattr(self, self._inner), X
        if isinstance(model, Pipeline) and len(model) > 1:
            prepared = model[:-1].transform(X)
        result = getattr(_last_step(model), name)(prepared, **options)
        # Steps that return arrays lose the index of a data frame.
        has_index = options.get("labels") and hasattr(X, "iloc")
        return result.set_axis(X.index) if has_index else result

    def predict(self, X: Any) -> Array:
        """Return the predictions of the model.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)

        Returns
        -------
        predictions : array of shape (n_samples,), or (n_samples, n_targets)
        """
        return np.asarray(self._call_model("predict", X))

    def _explains(self, quantity: str) -> bool:
        model = vars(self).get(self._inner, getattr(self, "estimator", None))
        return hasattr(_last_step(model), quantity)

    def _explained(self, quantity: str, X: Any, labels: bool) -> Any:
        return self._call_model(quantity, X, labels=labels)


def _last_step(model: Any) -> Any:
    return model[-1] if isinstance(model, Pipeline) else model


@settings
class CalibratedMKLClassifier(
    MetaEstimatorMixin, ClassifierMixin, WrappedModel, CalibratedPredictions, BaseEstimator
):
    """A classifier with probabilities: ``softmax_c(slope f_c(x) + offset_c)``.

    The model is fitted on all samples. Slope and offsets are learned from held-out decisions
    (:func:`lokl.search.held_out`), because decisions about training samples are overconfident. With
    two classes this is Platt's method.

    ``predict``, ``decision_function``, ``weights`` and ``contributions`` are those of the model and
    do not depend on the calibration. If offsets are learned, the most likely class may differ from
    the predicted one. Offsets are learned if held-out decisions are biased towards some classes,
    often because classes differ in size or have a ``class_weight``. The most likely class is
    ``classes_[predict_proba(X).argmax(1)]``.

    Attributes
    ----------
    estimator_ : classifier
        Fitted on all samples.
    calibration_ : Calibration
        Map from decisions to probabilities.
    held_out_ : array of shape (n_samples, n_tasks)
        Held-out decisions that the calibration was learned from.
    classes_ : array of shape (n_classes,)
    kernel_names_ : list of str
        Kernels of the model, if it has any.

    See Also
    --------
    lokl.search.calibrated : Adds probabilities to a fitted model.
    lokl.search.Calibration : The formulas.
    lokl.search.expected_calibration_error : Error of probabilities.

    Notes
    -----
    Probabilities refer to the data with its sample weights. A ``class_weight`` of the model shifts
    its decisions, and calibration reverses that. :class:`Calibration` has the formulas.

    References
    ----------
    .. [1] J. Platt. Probabilistic Outputs for Support Vector Machines and Comparisons to
       Regularized Likelihood Methods. Advances in Large Margin Classifiers, 1999.
    .. [2] H.-T. Lin, C.-J. Lin, R. C. Weng. A Note on Platt's Probabilistic Outputs for Support
       Vector Machines. Machine Learning 68(3):267-276, 2007.
       https://doi.org/10.1007/s10994-007-5018-6

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
        "Splits for held-out decisions: a number of folds, each with all classes as far as their "
        "samples go, a splitter of scikit-learn, or pairs of row numbers.",
        kw_only=False,
    )

    _inner: ClassVar[str] = "estimator_"

    @atomic_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Any:
        """Fit the model, and learn probabilities from held-out decisions.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 is equivalent to repeating the row, 0 to omitting it.
        groups : array-like of shape (n_samples,), optional
            Samples of a group are held out together.

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
            X = as_pandas(X)
            model = fit_weighted(clone(self.estimator), X, y, sample_weight)
            return self._calibrate(model, X, y, sample_weight, groups)

    def _calibrate(self, model: Any, X: Any, y: Any, sample_weight: Any, groups: Any) -> Any:
        """Learn the probabilities of a fitted model."""
        codes = _class_codes(model, y)
        weight = check_weights(sample_weight, np.empty((len(codes), 0)))
        splits = make_folds(self.cv, codes, classification=True, groups=groups)
        decisions = held_out(model, X, y, splits, sample_weight)
        rows = np.unique(np.concatenate([test for _, test in splits]))
        rows = rows[weight[rows] > 0]
        fitted = {
            "estimator_": model,
            "calibration_": Calibration.learn(
                decisions[rows], codes[rows], len(model.classes_), weight[rows]
            ),
            "held_out_": decisions,
            "classes_": model.classes_,
        }
        last = _last_step(model)
        names = {**dict.fromkeys(FEATURE_ATTRIBUTES, model), "kernel_names_": last}
        fitted |= {name: getattr(own, name) for name, own in names.items() if hasattr(own, name)}
        publish(self, fitted)
        return self

    def decision_function(self, X: Any) -> Array:
        """Return the decision values of the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        decision : array of shape (n_samples,), or (n_samples, n_classes) for more than two
        """
        return np.asarray(self._call_model("decision_function", X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.estimator is not None:
            input_tags = get_tags(self.estimator).input_tags
            tags.input_tags.sparse = input_tags.sparse
            tags.input_tags.allow_nan = input_tags.allow_nan
        return tags


def calibrated(
    model: Any, X: Any, y: Any, *, cv: Any = 5, sample_weight: Any = None, groups: Any = None
) -> CalibratedMKLClassifier:
    """Add probabilities to a fitted classifier.

    Copies of the model are fitted on parts of its training samples, and the probabilities are
    learned from their decisions about the rest. The model itself is neither fitted again nor
    modified: ``calibrated(model, X, y).estimator_ is model``.

    Parameters
    ----------
    model : classifier
        A fitted classifier of lokl, or a fitted pipeline that ends in one.
    X, y : samples and labels
        Those that the model was fitted on.
    cv : int, splitter or iterable, default=5
        Splits for held-out decisions.
    sample_weight : array-like of shape (n_samples,), optional
        As in the fit of the model.
    groups : array-like of shape (n_samples,), optional
        Samples of a group are held out together.

    Returns
    -------
    classifier : CalibratedMKLClassifier
        With ``predict_proba`` and the explanations of the model.

    See Also
    --------
    lokl.search.CalibratedMKLClassifier : Fits model and probabilities together.
    lokl.explain.ReliabilityDisplay : Figure of predicted and observed shares.
    sklearn.calibration.CalibratedClassifierCV : Averages models of the folds instead.

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
            f"calibrated needs a fitted model, and this {type(model).__name__} is not fitted: call "
            f"fit first, or use CalibratedMKLClassifier(model).fit(X, y)"
        ) from error
    with DeferredWarnings():
        return CalibratedMKLClassifier(model, cv)._calibrate(
            model, as_pandas(X), y, sample_weight, groups
        )


def _class_codes(model: Any, y: Any) -> Array:
    """Return the class of every sample as an index into ``classes_``."""
    codes_by_label = {label: code for code, label in enumerate(np.asarray(model.classes_).tolist())}
    labels = np.asarray(column_or_1d(y)).tolist()
    unknown = [label for label in labels if label not in codes_by_label]
    if unknown:
        raise ValueError(
            f"label {unknown[0]!r} is not one of the classes of the model: "
            f"{', '.join(map(str, codes_by_label))}"
        )
    codes = np.array([codes_by_label[label] for label in labels], dtype=int)
    missing = np.setdiff1d(np.arange(len(codes_by_label)), codes)
    if len(missing):
        raise ValueError(
            f"y has no sample of class {model.classes_[missing[0]]!r} of the model; pass the "
            "samples and labels that it was fitted on"
        )
    return codes
