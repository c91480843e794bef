"""Permutation importance of whole views, and of columns, where samples may lack views."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.inspection import permutation_importance
from sklearn.utils import get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from lokl._arrays import Array, as_samples, is_sparse
from lokl._checks import check_choice
from lokl.inspection.findings import Findings
from lokl.inspection.folds import one_scorer
from lokl.inspection.learners import learner_of, read_views, seen_by_learner
from lokl.kernels.columns import column_names, take_columns
from lokl.kernels.composition import present_rows


def view_importance(
    model: Any,
    X: Any,
    y: Any,
    *,
    of: str = "views",
    views: Mapping[str, Any] | None = None,
    scoring: Any = None,
    n_repeats: int = 10,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Findings:
    """How far the score of a fitted model falls where a view is shuffled among the samples.

    The columns of a view move together; samples without it stay without. Unlike :func:`view_value`
    nothing is fitted again: this tells what *this* model makes of a view, on samples that it should
    not have learned from. It calls :func:`sklearn.inspection.permutation_importance`.

    Parameters
    ----------
    model : fitted estimator of lokl, or a fitted pipeline that ends in one
        Of a pipeline, what is shuffled are the columns that the last step sees.
    X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
    of : {"views", "columns"}, default="views"
        What is shuffled at a time: all columns of a view, or each column by itself.
    views : mapping of str to columns, optional
        As in :func:`view_value`.
    scoring : str, callable or None, default=None
        None is the model's own score: accuracy, or R squared.
    n_repeats : int, default=10
        Times that each is shuffled.
    random_state : int, RandomState or None
    n_jobs : int, optional

    Returns
    -------
    importance : Findings
        A row for each view or column: ``loss``, the mean fall of the score, and ``spread``, its
        standard deviation over the shuffles.
    """
    check_choice("of", of, ("views", "columns"))
    learner = learner_of(model, "view_importance")
    check_is_fitted(learner)
    X, y = indexable(X, y)
    seen = _rows(seen_by_learner(model, X))
    groups = _groups(learner, seen, y, of, views)
    shuffled = _Shuffled(learner, seen, tuple(groups.values()))
    result = permutation_importance(
        shuffled,
        shuffled.in_order(),
        y,
        scoring=one_scorer(learner, scoring),
        n_repeats=n_repeats,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    title = f"Loss of the score where {of} are shuffled, {n_repeats} times each"
    columns = {"loss": result.importances_mean, "spread": result.importances_std}
    return Findings(title, of.removesuffix("s"), tuple(groups), columns)


def _rows(X: Any) -> Any:
    """Return samples in a form whose rows and columns can be taken."""
    return X if hasattr(X, "iloc") or is_sparse(X) else as_samples(X)


def _groups(
    learner: Any, X: Any, y: Any, of: str, views: Mapping[str, Any] | None
) -> dict[str, tuple[int, ...]]:
    """Columns that are shuffled together, by name."""
    if of == "views":
        found = read_views(learner, X, y, views, "view_importance").views
        return {view.name: view.columns for view in found}
    names = column_names(X) or [f"x{c}" for c in range(X.shape[1])]
    return {name: (c,) for c, name in enumerate(names)}


def _has(name: str) -> Any:
    return lambda shuffled: hasattr(shuffled.model, name)


class _Shuffled(BaseEstimator):
    """A fitted model whose samples are numbers: whose columns of each group a sample has.

    Column ``g`` of the numbers says for each sample from which other its columns of group ``g``
    come, so that to permute one column of numbers is to permute whole groups of columns.
    """

    def __init__(self, model: Any, X: Any, groups: tuple[tuple[int, ...], ...]):
        self.model = model
        self.X = X
        self.groups = groups

    def in_order(self) -> Array:
        """Numbers of samples that all have their own columns."""
        return np.tile(np.arange(self.X.shape[0])[:, np.newaxis], (1, len(self.groups)))

    def fit(self, X: Any, y: Any = None) -> Any:
        """Nothing is learned."""
        return self

    def samples(self, numbers: Array) -> Any:
        """Return the samples that numbers stand for."""
        X = self.X
        for columns, order in zip(self.groups, np.asarray(numbers).T, strict=True):
            if (order != np.arange(len(order))).any():
                X = _exchanged(X, np.array(columns, dtype=np.intp), order)
        return X

    def predict(self, numbers: Array) -> Any:
        return self.model.predict(self.samples(numbers))

    def score(self, numbers: Array, y: Any) -> float:
        return float(self.model.score(self.samples(numbers), y))

    @available_if(_has("decision_function"))
    def decision_function(self, numbers: Array) -> Any:
        return self.model.decision_function(self.samples(numbers))

    @available_if(_has("predict_proba"))
    def predict_proba(self, numbers: Array) -> Any:
        return self.model.predict_proba(self.samples(numbers))

    @property
    def classes_(self) -> Array:
        return np.asarray(self.model.classes_)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        return get_tags(self.model)


def _exchanged(X: Any, columns: Array, order: Array) -> Any:
    """Return samples of which those that have some columns have exchanged them."""
    own = take_columns(X, columns)
    has = np.flatnonzero(present_rows(own if is_sparse(own) else np.asarray(own)))
    # The order of some of the numbers of a random order is a random order of these.
    source = np.arange(X.shape[0])
    source[has] = has[np.argsort(np.argsort(order[has]))]
    if is_sparse(X):
        rest = np.setdiff1d(np.arange(X.shape[1]), columns)
        both = sparse.hstack([own[source], X[:, rest]], format="csr")
        return both[:, np.argsort(np.concatenate([columns, rest]))]
    moved = np.array(X)
    moved[:, columns] = np.asarray(own)[source]
    return type(X)(moved, index=X.index, columns=X.columns) if hasattr(X, "iloc") else moved
