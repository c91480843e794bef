"""Folds, and held-out decisions of any estimator."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, column_or_1d, indexable
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import _num_samples, has_fit_parameter

from lokl._arrays import Array, column, evenly_spaced
from lokl._frames import as_pandas
from lokl._warnings import DeferredWarnings
from lokl.base.training import check_weights
from lokl.methods.uniformmkl import UniformMKL
from lokl.solvers.machines import Fold, check_any_left, check_fold, mean_decisions


def as_indices(splits: Iterable[Fold]) -> list[Fold]:
    """Return splits, which may be boolean masks, as arrays of row numbers."""

    def rows(selected: Any) -> Array:
        selected = np.asarray(selected)
        return np.flatnonzero(selected) if selected.dtype == bool else selected.astype(int)

    return [(rows(train), rows(test)) for train, test in splits]


def make_folds(
    cv: Any,
    y: Array,
    *,
    classification: bool,
    groups: Any = None,
    rng: np.random.RandomState | None = None,
) -> list[Fold]:
    """Return the training and test rows of each fold.

    Parameters
    ----------
    cv : int, splitter or iterable of splits
        An int is the number of folds. With classes, each fold then contains all classes as far as
        their samples go, without scikit-learn's warning about small classes.
    y : array of shape (n_samples,) or (n_samples, n_targets)
    classification : bool
    groups : array-like of shape (n_samples,), optional
        Samples of a group are in the same fold.
    rng : RandomState, optional
        Shuffles the samples, or the groups, if `cv` is an int.
    """
    X = np.zeros((len(y), 1))
    if not isinstance(cv, Integral):
        return as_indices(check_cv(cv, y, classifier=classification).split(X, y, groups))
    if cv < 2:
        raise ValueError(f"cv must be two or more folds, a splitter or a list of splits, got {cv}")
    n_groups = 0 if groups is None else len(np.unique(np.asarray(groups)))
    if n_groups == 1:
        raise ValueError("groups has 1 group; folds that keep groups together need two or more")
    if classification and groups is None:
        order = np.arange(len(y)) if rng is None else rng.permutation(len(y))
        folds = _stratified_folds(int(cv), y[order])
        return [(np.sort(order[train]), np.sort(order[test])) for train, test in folds]
    kind: Any = KFold
    # A score needs two samples.
    n_folds = min(int(cv), max(2, len(y) // 2))
    if groups is not None:
        n_folds = min(int(cv), n_groups)
        is_small = not classification or np.unique(y, return_counts=True)[1].min() < n_folds
        kind = GroupKFold if is_small else StratifiedGroupKFold
    seed = None if rng is None else rng.randint(2**31 - 1)
    splitter = kind(n_folds, shuffle=rng is not None, random_state=seed)
    return as_indices(splitter.split(X, y, groups))


def _stratified_folds(n_folds: int, y: Array) -> list[Fold]:
    _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    # scikit-learn rejects classes with fewer samples than folds if all classes are that small.
    n_folds = min(n_folds, len(y))
    fold = np.empty(len(y), dtype=int)
    for code, count in enumerate(counts):
        # Neighbours, which are often similar, stay together; small classes start in other folds.
        positions = np.arange(count) * n_folds // count
        fold[codes == code] = (positions + code) % n_folds
    pairs = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(n_folds)]
    return [(train, test) for train, test in pairs if len(train) and len(test)]


def spread_rows(order: Array, codes: Array | None, count: int) -> Array:
    """Return about `count` rows, evenly spaced along an order in each class, two or more of each.

    Parameters
    ----------
    order : array of int
        Rows to choose from.
    codes : array of int of shape (n_samples,), or None
        Class of each sample; None for regression.
    count : int

    Returns
    -------
    rows : array of int
        In the same order.
    """
    if codes is None:
        return np.asarray(order[evenly_spaced(len(order), count)])
    own = codes[order]
    chosen = []
    for code in np.unique(own):
        members = np.flatnonzero(own == code)
        most = max(2, len(members) * count // len(order))
        chosen.append(members[evenly_spaced(len(members), most)])
    return np.asarray(order[np.sort(np.concatenate(chosen))])


def draw_rows(y: Array, count: int, classification: bool, rng: np.random.RandomState) -> Array:
    """Return about `count` random rows in ascending order, with all classes in proportion."""
    codes = np.unique(y, return_inverse=True)[1] if classification else None
    return np.sort(spread_rows(rng.permutation(len(y)), codes, count))


def sample_weight_params(estimator: Any, weight: Any) -> dict[str, Any]:
    """Return the parameters of `fit` that pass weights to an estimator.

    In a pipeline, every step that supports weights gets them, unless it declines them with
    ``set_fit_request(sample_weight=False)``. The last step must support them.

    Returns
    -------
    params : dict
        Empty without weights.
    """
    if weight is None:
        return {}
    steps = estimator.steps if isinstance(estimator, Pipeline) else [("", estimator)]
    if not has_fit_parameter(steps[-1][1], "sample_weight"):
        raise ValueError(f"{type(steps[-1][1]).__name__} does not support sample_weight; omit it")
    return {
        f"{name}__sample_weight" if name else "sample_weight": weight
        for name, step in steps
        if hasattr(step, "fit")
        and has_fit_parameter(step, "sample_weight")
        and not _declines_weights(step)
    }


def _declines_weights(step: Any) -> bool:
    # Only estimators without parts have requests of their own.
    requests = getattr(get_routing_for_object(step), "fit", None)
    return requests is not None and requests.requests.get("sample_weight") is False


def without_routing() -> Any:
    """Return a context in which pipelines take ``step__sample_weight``.

    Estimators that build or fit pipelines are the last consumers of weights, whether or not
    scikit-learn's metadata routing is enabled around them.
    """
    return config_context(enable_metadata_routing=False)


def fit_weighted(estimator: Any, X: Any, y: Any, weight: Any) -> Any:
    """Fit an estimator, with weights for all steps of a pipeline that support them.

    Parameters
    ----------
    estimator : estimator
    X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
    weight : array-like of shape (n_samples,) or None
    """
    params = sample_weight_params(estimator, weight)
    with without_routing():
        return estimator.fit(X, y, **params)


def held_out(
    estimator: Any, X: Any, y: Any, splits: Iterable[Fold], sample_weight: Any = None
) -> Array:
    """Return decisions about samples by models that were fitted without them.

    A method with a fixed kernel (``UniformMKL``) solves all folds on one Gram matrix. Settings that
    depend on the samples, such as ``gamma="scale"``, and balanced class weights are then computed
    from all samples. For any other estimator, a copy is fitted for each fold.

    Parameters
    ----------
    estimator : estimator of lokl, or a pipeline that ends in one
        Fitted or not. A copy of it is fitted.
    X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Labels or targets.
    splits : iterable of (train, test)
        Row numbers, as splitters return them.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the samples.

    Returns
    -------
    decisions : array of shape (n_samples, n_tasks)
        Decision values of classifiers, one column for two classes; predictions of regressors. The
        mean, if a sample is left out several times; 0 for samples that have no weight or are never
        left out. For a class without training samples in a fold the decision is -1.

    See Also
    --------
    lokl.search.calibrated : Probabilities from these decisions.
    sklearn.model_selection.cross_val_predict : The same for any estimator.

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
    folds = as_indices(splits)
    if isinstance(estimator, UniformMKL):
        return clone(estimator)._held_out(X, y, folds, sample_weight)
    X, y = indexable(as_pandas(X), column_or_1d(y) if is_classifier(estimator) else y)
    weight = check_weights(sample_weight, np.empty((_num_samples(X), 0)))
    # A weight of zero is equivalent to omitting the row.
    folds = [(train[weight[train] > 0], test[weight[test] > 0]) for train, test in folds]
    check_any_left(folds)
    decide, n_tasks = _fold_decisions(estimator, X, y, None if sample_weight is None else weight)

    def decisions() -> Iterator[Fold]:
        for train, test in folds:
            check_fold(train, test)
            if len(test):
                yield test, decide(train, test)

    with DeferredWarnings():
        return mean_decisions(decisions(), len(weight), n_tasks)


def _fold_decisions(
    estimator: Any, X: Any, y: Any, weight: Array | None
) -> tuple[Callable[[Array, Array], Array], int]:
    """Return a function of training and test rows, and the number of columns of its result."""
    fit = partial(_fit_rows, estimator, X, y, weight)
    if is_classifier(estimator):
        classes, codes = np.unique(y, return_inverse=True)
        n_tasks = 1 if len(classes) == 2 else len(classes)
        return partial(_class_decisions, fit, X, codes, len(classes)), n_tasks
    return partial(_predictions, fit, X), 1 if np.ndim(y) < 2 else np.shape(y)[1]


def _fit_rows(estimator: Any, X: Any, y: Any, weight: Array | None, rows: Array) -> Any:
    X, y = _safe_indexing(X, rows), _safe_indexing(y, rows)
    return fit_weighted(clone(estimator), X, y, None if weight is None else weight[rows])


def _predictions(fit: Callable[[Array], Any], X: Any, train: Array, test: Array) -> Array:
    return column(np.asarray(fit(train).predict(_safe_indexing(X, test)), dtype=float))


def _class_decisions(
    fit: Callable[[Array], Any], X: Any, codes: Array, n_classes: int, train: Array, test: Array
) -> Array:
    present = np.unique(codes[train])
    by_class = np.full((len(test), n_classes), -1.0)
    if len(present) < 2:
        # Nothing to distinguish: the one class, for every sample.
        by_class[:, present] = 1.0
    else:
        decision = np.asarray(fit(train).decision_function(_safe_indexing(X, test)))
        by_class[:, present] = (
            decision if decision.ndim == 2 else np.column_stack([-decision, decision])
        )
    return by_class[:, 1:] if n_classes == 2 else by_class
