"""Prediction sets and intervals with a guaranteed coverage, from held-out predictions (CV+)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import _safe_indexing, check_consistent_length, check_random_state, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from lokl._arrays import Array, as_dense, slices
from lokl._frames import as_pandas
from lokl._parameters import check_choice
from lokl._warnings import capture_warnings
from lokl.base.model import unwrap
from lokl.explain.explanation import class_codes
from lokl.explain.reliability import mean_interval
from lokl.explain.results import SummaryTable, interval_columns
from lokl.explain.views import plain
from lokl.search.calibration import by_class
from lokl.search.cross_validation import make_folds

# Neighbours of a local spread, and the number of them that the overall spread counts as.
_NEIGHBOURS, _PSEUDO_COUNT = 20, 5
# New samples whose neighbours are searched at a time.
_BLOCK = 1000
# Prediction sets by the classes of the samples.
_BY_CLASS = "class"


@dataclass(frozen=True, eq=False)
class _Fold:
    """Model of a fold, and what it says about the samples that it has not seen.

    Attributes
    ----------
    model : fitted estimator
    scores : array of shape (n_left_out,)
        Nonconformity of the true classes, or residuals over the local spread.
    codes : int array of shape (n_left_out,)
        True classes; zeros for regression.
    groups : array of shape (n_left_out,)
        Groups, for sets by group.
    spread : callable or None
        Local spread of samples, for regression.
    """

    model: Any
    scores: Array
    codes: Array
    groups: Array
    spread: Callable[[Any], Array] | None = None


def _if_classifier(model: Any) -> bool:
    return is_classifier(model.model)


def _if_regressor(model: Any) -> bool:
    return not is_classifier(model.model)


class PredictionSets(MetaEstimatorMixin, BaseEstimator):
    """Sets of classes, or intervals, that contain the truth with a chosen probability.

    Copies of a model are fitted on all folds but one, and score the samples of the fold left out.
    A class belongs to the set of a new sample if its score is not among the largest shares `alpha`
    of these scores, each compared by the model of its own fold (CV+). Nothing is assumed of the
    model, only that new samples are drawn as those of the fit.

    Parameters
    ----------
    model : estimator
        Classifier or regressor of one target, alone or in a pipeline; copies are fitted.
    alpha : float, default=0.1
        Share of the samples whose truth may be outside.
    by : "class", column of `X`, callable or None, default=None
        Coverage holds for each class, or for each group of samples, rather than on average. A
        column is a name in a data frame, or a position; a callable returns the group of each sample
        of `X`.
    score : {"adaptive", "probability"}, default="adaptive"
        Nonconformity of a class. "adaptive" is the probability of all classes that are more
        probable than it: sets are never empty and are larger for harder samples. "probability" is
        one less its own probability: sets are smallest on average, and may be empty for samples
        that resemble no class.
    cv : int, splitter or iterable of splits, default=5
        Number of folds, or the folds.
    random_state : int, RandomState or None, default=0
        Seed of the folds.

    Attributes
    ----------
    estimator_ : estimator
        Fitted on all samples; its predictions are those of ``predict``.
    classes_ : array of shape (n_classes,)
        Only for classifiers.

    See Also
    --------
    lokl.explain.risk_coverage : Abstaining instead.
    lokl.search.calibrated : Probabilities.

    Notes
    -----
    The probability that the truth is inside is at least ``1 - 2 alpha`` whatever the data, and
    ``1 - alpha`` or slightly more in practice [1]_ [2]_. Adaptive scores are those of [2]_ without
    randomisation: if the model itself is right more often than ``1 - alpha``, sets have one class
    and their coverage is the accuracy. Sets of a group with fewer than ``1 / alpha - 1`` held-out
    samples contain every class, and intervals are infinite.

    Residuals of a regression are divided by their local spread: the mean over the 20 nearest
    samples of other folds, in the columns that the model receives.

    References
    ----------
    .. [1] R. F. Barber, E. J. Candes, A. Ramdas, R. J. Tibshirani. Predictive inference with the
       jackknife+. Annals of Statistics 49(1), 2021.
    .. [2] Y. Romano, M. Sesia, E. J. Candes. Classification with Valid and Adaptive Coverage.
       NeurIPS, 2020.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import TrustedVoteClassifier
    >>> from lokl.explain import PredictionSets
    >>> X, y = load_wine(return_X_y=True)
    >>> X = scale(X)
    >>> model = TrustedVoteClassifier(["rbf"], C=10, random_state=0)
    >>> sets = PredictionSets(model, alpha=0.05).fit(X[::2], y[::2])
    >>> sets.predict_set(X[1:4])
    array([[ True, False, False],
           [ True, False, False],
           [ True, False, False]])
    """

    def __init__(
        self,
        model: Any,
        alpha: float = 0.1,
        by: Any = None,
        *,
        score: str = "adaptive",
        cv: Any = 5,
        random_state: Any = 0,
    ):
        self.model = model
        self.alpha = alpha
        self.by = by
        self.score = score
        self.cv = cv
        self.random_state = random_state

    def fit(self, X: Any, y: Any, groups: Any = None) -> "PredictionSets":
        """Fit the model on all samples and on the folds.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        groups : array-like of shape (n_samples,), optional
            Samples of a group are left out together.
        """
        check_choice("score", self.score, ("adaptive", "probability"))
        _check_alpha(self.alpha)
        if self._is_by_class and not is_classifier(self.model):
            raise ValueError("by='class' needs a classifier; give the column of a group")
        X, y = indexable(as_pandas(X), y)
        truth, strata = np.asarray(y), self._groups(X)
        if truth.ndim != 1:
            raise ValueError(f"y must have one target, got shape {truth.shape}")
        check_consistent_length(truth, groups)
        folds = make_folds(
            self.cv,
            truth,
            classification=is_classifier(self.model),
            groups=groups,
            rng=check_random_state(self.random_state),
        )
        self.estimator_ = clone(self.model).fit(X, y, **_fit_groups(self.model, groups))
        if is_classifier(self.model):
            self.classes_ = np.asarray(self.estimator_.classes_)
            self._folds = [self._classified(X, y, strata, groups, *fold) for fold in folds]
        else:
            self._folds = self._regressed(X, truth.astype(float), strata, groups, folds)
        return self

    @property
    def _is_by_class(self) -> bool:
        return isinstance(self.by, str) and self.by == _BY_CLASS

    def _groups(self, X: Any) -> Array:
        """Return the group of each sample; zeros without groups."""
        X = as_pandas(X)
        if self.by is None or self._is_by_class:
            return np.zeros(X.shape[0])
        if callable(self.by):
            found = np.asarray(self.by(X))
        elif hasattr(X, "columns"):
            found = np.asarray(X[self.by] if self.by in X.columns else X.iloc[:, self.by])
        else:
            found = as_dense(X[:, [self.by]])[:, 0]
        if found.shape != (X.shape[0],):
            raise ValueError(
                f"by must give one group for each of {X.shape[0]} samples, got {found.shape}"
            )
        return found

    def _classified(
        self, X: Any, y: Any, strata: Array, groups: Any, train: Array, test: Array
    ) -> _Fold:
        """Fit the model of a fold, and score the true classes of the samples left out."""
        model = _fitted(self.model, X, y, groups, train)
        codes = class_codes(np.asarray(y)[test], self.classes_)
        scores = self._scores(model, _safe_indexing(X, test))[np.arange(len(test)), codes]
        return _Fold(model, scores, codes, strata[test])

    def _scores(self, model: Any, X: Any) -> Array:
        """Return the nonconformity of each class, (n_samples, n_classes)."""
        if hasattr(model, "predict_proba"):
            found = np.asarray(model.predict_proba(X))
        else:
            found = softmax(by_class(np.asarray(model.decision_function(X))), axis=1)
        probability = np.zeros((len(found), len(self.classes_)))
        probability[:, class_codes(model.classes_, self.classes_)] = found
        if self.score == "probability":
            return 1.0 - probability
        ahead = probability[:, np.newaxis] > probability[:, :, np.newaxis]
        return np.asarray((ahead * probability[:, np.newaxis]).sum(axis=2))

    def _regressed(
        self, X: Any, y: Array, strata: Array, groups: Any, folds: list[tuple[Array, Array]]
    ) -> list[_Fold]:
        """Fit the models of the folds; residuals are divided by their spread in other folds."""
        models = [_fitted(self.model, X, y, groups, train) for train, _ in folds]
        residuals = [
            np.abs(y[test] - _predicted(model, _safe_indexing(X, test)))
            for model, (_, test) in zip(models, folds, strict=True)
        ]
        found = []
        for k, (model, (_, test)) in enumerate(zip(models, folds, strict=True)):
            others = [j for j in range(len(folds)) if j != k] or [k]
            rows = np.concatenate([folds[j][1] for j in others])
            known = np.concatenate([residuals[j] for j in others])
            spread = _LocalSpread.of(model, _safe_indexing(X, rows), known)
            scores = residuals[k] / spread(_safe_indexing(X, test))
            codes = np.zeros(len(test), dtype=np.intp)
            found.append(_Fold(model, scores, codes, strata[test], spread))
        return found

    def predict(self, X: Any) -> Array:
        """Return the predictions of the model.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        """
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.predict(X))

    @available_if(lambda model: hasattr(getattr(model, "estimator_", model.model), "predict_proba"))
    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the model, (n_samples, n_classes).

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        """
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.predict_proba(X))

    @available_if(_if_classifier)
    def predict_set(self, X: Any, *, alpha: float | None = None) -> Array:
        """Return whether each class belongs to the set of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        alpha : float, optional
            Instead of the `alpha` of the fit.

        Returns
        -------
        sets : bool array of shape (n_samples, n_classes)
            Classes in the order of ``classes_``.
        """
        alpha, strata = self._ready(X, alpha)
        # Held-out samples that conform less than the class, and all that it is compared with.
        smaller, total = np.zeros((2, len(strata), len(self.classes_)))
        for fold in self._folds:
            scores = self._scores(fold.model, X)
            for group in np.unique(strata):
                rows, same = np.flatnonzero(strata == group), fold.groups == group
                for c in range(len(self.classes_)):
                    kept = fold.scores[same & (fold.codes == c)] if self._is_by_class else (
                        fold.scores[same]
                    )  # fmt: skip
                    smaller[rows, c] += np.searchsorted(np.sort(kept), scores[rows, c])
                    total[rows, c] += len(kept)
        return np.asarray(smaller < (1.0 - alpha) * (total + 1.0))

    @available_if(_if_regressor)
    def predict_interval(self, X: Any, *, alpha: float | None = None) -> Array:
        """Return an interval for each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        alpha : float, optional
            Instead of the `alpha` of the fit.

        Returns
        -------
        intervals : array of shape (n_samples, 2)
            Lower and upper limits, infinite if there are too few held-out samples.
        """
        alpha, strata = self._ready(X, alpha)
        centres = [_predicted(fold.model, X) for fold in self._folds]
        spreads = [fold.spread(X) for fold in self._folds if fold.spread is not None]
        out = np.empty((len(strata), 2))
        for row, group in enumerate(strata):
            ends = []
            for centre, spread, fold in zip(centres, spreads, self._folds, strict=True):
                reach = fold.scores[fold.groups == group] * spread[row]
                ends.append(np.stack([centre[row] - reach, centre[row] + reach]))
            low, high = np.concatenate(ends, axis=1)
            # The rank of the limits among the ends; rounding must not raise it.
            rank = int(np.ceil((1.0 - alpha) * (len(low) + 1) - 1e-9))
            if rank > len(low):
                out[row] = -np.inf, np.inf
                continue
            out[row] = (
                -np.partition(-low, rank - 1)[rank - 1],
                np.partition(high, rank - 1)[rank - 1],
            )
        # CV+ can cross if the models of the folds differ more than their residuals.
        return np.sort(out, axis=1)

    def coverage(self, X: Any, y: Any) -> SummaryTable:
        """Return how often the truth is inside, and how large sets are.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            Samples that the model has not seen.
        y : array-like of shape (n_samples,)

        Returns
        -------
        table : SummaryTable
            Rows are all samples and each class, or each group: ``coverage`` with its 95 % interval,
            the mean ``size`` (classes in a set, or length of an interval), and ``samples``.
        """
        X = as_pandas(X)
        check_consistent_length(X, y)
        truth, strata = np.asarray(y), self._groups(X)
        if is_classifier(self.model):
            sets, codes = self.predict_set(X), class_codes(truth, self.classes_)
            inside = sets[np.arange(len(codes)), codes] & (codes >= 0)
            sizes, by = sets.sum(axis=1), truth
        else:
            low, high = self.predict_interval(X).T
            inside, sizes, by = (low <= truth) & (truth <= high), high - low, strata
        if self.by is not None and not self._is_by_class:
            by = strata
        parts = {"all": np.ones(len(truth), dtype=bool)}
        if is_classifier(self.model) or self.by is not None:
            parts |= {str(own): by == own for own in np.unique(by)}
        columns = {
            **interval_columns("coverage", [mean_interval(inside[own]) for own in parts.values()]),
            "size": np.array([sizes[own].mean() for own in parts.values()]),
            "samples": np.array([float(own.sum()) for own in parts.values()]),
        }
        title = f"Coverage at {100 * (1.0 - self.alpha):.3g} %, and size of prediction sets"
        return SummaryTable(title, "samples", tuple(parts), columns)

    def _ready(self, X: Any, alpha: float | None) -> tuple[float, Array]:
        check_is_fitted(self, "estimator_")
        return _check_alpha(self.alpha if alpha is None else alpha), self._groups(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        own = self.model.__sklearn_tags__()
        tags.estimator_type, tags.classifier_tags = own.estimator_type, own.classifier_tags
        tags.regressor_tags, tags.input_tags = own.regressor_tags, own.input_tags
        return tags


def _check_alpha(alpha: Any) -> float:
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha must be between 0 and 1, both excluded, got {alpha!r}")
    return float(alpha)


def _fit_groups(model: Any, groups: Any, rows: Array | None = None) -> dict[str, Any]:
    """Return the groups of some samples as an argument of a fit, for models that take them."""
    if groups is None or not has_fit_parameter(model, "groups"):
        return {}
    return {"groups": np.asarray(groups) if rows is None else np.asarray(groups)[rows]}


def _fitted(model: Any, X: Any, y: Any, groups: Any, rows: Array) -> Any:
    """Return a copy of a model fitted on some samples."""
    fit, part = clone(model).fit, (_safe_indexing(X, rows), _safe_indexing(y, rows))
    # Warnings of the model on all samples are enough.
    return capture_warnings(lambda: fit(*part, **_fit_groups(model, groups, rows)))[0]


def _predicted(model: Any, X: Any) -> Array:
    X = as_pandas(X)
    return np.asarray(model.predict(X), dtype=float).reshape(X.shape[0])


@dataclass(frozen=True, eq=False)
class _LocalSpread:
    """Mean absolute residual of the nearest samples, in the columns that a model receives."""

    model: Any
    stored: Array
    centre: Array
    scale: Array
    residuals: Array

    @classmethod
    def of(cls, model: Any, X: Any, residuals: Array) -> "_LocalSpread":
        """Store samples with known residuals."""
        values = cls._received(model, X)
        centre, scale = values.mean(axis=0), values.std(axis=0)
        scale = np.where(scale > 0, scale, 1.0)
        return cls(model, (values - centre) / scale, centre, scale, residuals)

    @staticmethod
    def _received(model: Any, X: Any) -> Array:
        return np.nan_to_num(np.asarray(as_dense(plain(unwrap(model, X)[1])), dtype=float))

    def __call__(self, X: Any) -> Array:
        """Return the spread at samples, (n_samples,), positive."""
        values = (self._received(self.model, X) - self.centre) / self.scale
        count = min(_NEIGHBOURS, len(self.stored))
        total = np.full(len(values), _PSEUDO_COUNT * float(self.residuals.mean()))
        for rows in slices(len(values), _BLOCK):
            distances = euclidean_distances(values[rows], self.stored)
            near = np.argpartition(distances, count - 1, axis=1)[:, :count]
            total[rows] += self.residuals[near].sum(axis=1)
        return np.asarray(np.maximum(total / (count + _PSEUDO_COUNT), 1e-12))
