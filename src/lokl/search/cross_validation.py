"""Folds, and held-out decisions of any estimator."""

from collections.abc import Iterable, Iterator, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, column_or_1d, indexable
from sklearn.utils.validation import _num_samples, has_fit_parameter

from lokl._arrays import Array, column
from lokl._warnings import DeferredWarnings
from lokl.base import FixedKernel
from lokl.base.validation import check_weights
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
