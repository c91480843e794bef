"""What a view is worth: alone, and what is lost without it.

Permutation importance of whole views, and of columns, where samples may lack views.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone, is_classifier
from sklearn.inspection import permutation_importance
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from lokl._arrays import Array, as_samples, is_sparse
from lokl._parameters import check_choice
from lokl._warnings import DeferredWarnings
from lokl.explain.formatting import (
    Findings,
    corrected_interval,
    make_folds,
    one_scorer,
    with_interval,
)
from lokl.explain.views import Viewed, fitted_to_see, learner_of, read_views, seen_by_learner
from lokl.kernels.columns import column_names, scale_columns, take_columns
from lokl.kernels.samples import present_rows
from lokl.search.search import KernelSearchCV
from lokl.solvers.machines import Fold

# All subsets of so many views are asked; of more, single views and all but one.
_FEW = 5
_ALL = "all views"


@dataclass(frozen=True, eq=False)
class ViewValue:
    """What views are worth to a model; see :func:`view_value`.

    Intervals are of 95 % over the folds, widened since folds share training samples (Nadeau and
    Bengio). Losses are differences on the same test samples, fold by fold: where the interval is
    above zero, other samples of this kind would show a loss, too. A sample that has none of the
    views of a set is left out of it, in training and in the score; the loss compares both models
    on the samples that are left.

    Attributes
    ----------
    views : Findings
        A row for each view: ``alone``, the score of the model with this view only; ``loss``, how
        far the score falls where the view is withheld; both with 95 % intervals (``alone_low``,
        ``alone_high``, ``loss_low``, ``loss_high``); ``samples``, the share of the samples that
        have the view.
    subsets : Findings
        A row for each set of views that was tried: ``score`` and ``loss`` against all views, with
        intervals, and ``samples``, the share that has at least one of the views.
    scores : dict of str to array of shape (n_splits,)
        Score of each subset on each split.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import UniformMKLClassifier
    >>> from lokl.explain import view_value
    >>> from lokl.kernels import RBF, per_view
    >>> X, y = load_wine(return_X_y=True)
    >>> kernels = per_view(RBF(), {"acids": slice(0, 5), "colours": slice(5, 13)})
    >>> value = view_value(UniformMKLClassifier(kernels, C=10), scale(X), y)
    >>> bool(value.views.row("colours")["alone"] > value.views.row("acids")["alone"])
    True
    """

    views: Findings
    subsets: Findings
    scores: dict[str, Array]

    def to_frame(self) -> Any:
        """Return the table of views as a data frame (pandas)."""
        return self.views.to_frame()

    def __str__(self) -> str:
        return f"{self.views}\n\n{self.subsets}"

    def __repr__(self) -> str:
        return str(self)


def view_value(
    model: Any,
    X: Any,
    y: Any,
    *,
    views: Mapping[str, Any] | None = None,
    cv: Any = 5,
    scoring: Any = None,
    groups: Any = None,
    n_jobs: int | None = None,
) -> ViewValue:
    """Score a model with each view alone, without each view, and with all sets of few views.

    Every set of views is a fit of its own on the same folds, with the settings of the model: tune
    it before. Kernels of other views are left out, and columns that only they read are zero, so
    that no gate can look at them.

    Parameters
    ----------
    model : estimator of lokl, or a pipeline that ends in one
        Fitted or not; it stays as it is.
    X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
    views : mapping of str to columns, optional
        As :func:`lokl.join_views` returns it: a kernel belongs to the view that has all its
        columns. Without it, kernels on the same columns are one view, and a kernel without
        ``.on(columns)`` is a view by itself.
    cv : int, splitter or iterable of splits, default=5
    scoring : str, callable or None, default=None
        None is the model's own score: accuracy, or R squared.
    groups : array-like of shape (n_samples,), optional
        Samples of a group are never on both sides of a split.
    n_jobs : int, optional
        Of the search that fits the folds.

    Returns
    -------
    value : ViewValue
        ``print(value)`` shows both tables; ``value.to_frame()`` is a data frame.
    """
    X, y = indexable(X, y)
    learner, scorer = learner_of(model, "view_value"), one_scorer(model, scoring)
    viewed = read_views(learner, fitted_to_see(model, X, y), y, views, "view_value")
    folds = make_folds(model, X, y, cv, groups)
    with DeferredWarnings():
        fitted = [
            clone(model).fit(_safe_indexing(X, kept), _safe_indexing(y, kept)) for kept, _ in folds
        ]
        comparison = _Comparison(model, X, y, viewed, folds, scorer, n_jobs, fitted)
        tried = {subset: comparison.tried(subset) for subset in subsets_tried(len(viewed.views))}
    title = f"{_called(model, scoring)} over {len(folds)} splits, with 95 % intervals"
    return _tables(title, [view.name for view in viewed.views], tried)


@dataclass(frozen=True, eq=False)
class _Tried:
    """One set of views on all splits."""

    scores: Array  # (n_splits,)
    score: tuple[float, float, float]  # mean, low, high
    loss: tuple[float, float, float]
    samples: float  # share of the samples that have one of the views


@dataclass(frozen=True, eq=False)
class _Comparison:
    """A model with some of its views, on the same splits."""

    model: Any
    X: Any
    y: Any
    viewed: Viewed
    folds: list[Fold]
    scorer: Any
    n_jobs: int | None
    # Models of all views, one for each split: their scores depend on who is asked.
    fitted: list[Any]

    def tried(self, subset: tuple[int, ...]) -> _Tried:
        views = [self.viewed.views[i] for i in subset]
        has = np.any([view.present for view in views], axis=0)
        folds = [(kept[has[kept]], left[has[left]]) for kept, left in self.folds]
        self._check(views, folds)
        whole = self._score_of_all(folds)
        scores = whole
        if len(views) < len(self.viewed.views):
            scores = self._score_of_some(subset, has, folds)
        return _Tried(
            scores,
            corrected_interval(scores, folds),
            corrected_interval(whole - scores, folds),
            float(has.mean()),
        )

    def _check(self, views: list[Any], folds: list[Fold]) -> None:
        """Raise where samples without these views leave nothing to learn or to score."""
        classes = is_classifier(self.model)
        shown = " + ".join(view.name for view in views)
        for k, (kept, left) in enumerate(folds):
            known = len(np.unique(np.asarray(self.y)[kept])) if classes else 2
            if not len(left) or not len(kept) or known < 2:
                of = f" of {known} class" if known < 2 else ""
                raise ValueError(
                    f"too few samples have {shown!r}: split {k} has {len(kept)}{of} to learn from, "
                    f"and {len(left)} to score; use fewer folds, or leave the view out"
                )

    def _score_of_all(self, folds: list[Fold]) -> Array:
        return np.array(
            [
                self.scorer(one, _safe_indexing(self.X, left), _safe_indexing(self.y, left))
                for one, (_, left) in zip(self.fitted, folds, strict=True)
            ]
        )

    def _score_of_some(self, subset: tuple[int, ...], has: Array, folds: list[Fold]) -> Array:
        place = np.cumsum(has) - 1
        rows = np.flatnonzero(has)
        model, X = self._with_only(subset, _safe_indexing(self.X, rows))
        kind: Any = KernelSearchCV
        search = kind(
            model,
            {},
            cv=[(place[kept], place[left]) for kept, left in folds],
            scoring=self.scorer,
            refit=False,
            error_score="raise",
            n_jobs=self.n_jobs,
        ).fit(X, _safe_indexing(self.y, rows))
        found = search.cv_results_
        return np.array([found[f"split{k}_test_score"][0] for k in range(len(folds))])

    def _with_only(self, subset: tuple[int, ...], X: Any) -> tuple[Any, Any]:
        """Return the model with kernels of some views, and samples without the others' columns."""
        views = self.viewed.views
        kept = {name for i in subset for name in views[i].kernels}
        kernels = {name: k for name, k in self.viewed.kernels.items() if name in kept}
        read = {column for i in subset for column in views[i].columns}
        hidden = {column for view in views for column in view.columns} - read
        hide = _Hide(tuple(sorted(hidden)))
        model = clone(self.model)
        if not isinstance(model, Pipeline):
            return model.set_params(kernels=clone(kernels, safe=False)), hide.transform(X)
        last = model[-1].set_params(kernels=clone(kernels, safe=False))
        return Pipeline([*model.steps[:-1], ("hide views", hide), ("model", last)]), X


class _Hide(TransformerMixin, BaseEstimator):
    """Columns that are zero for every sample tell nothing."""

    def __init__(self, columns: tuple[int, ...]):
        self.columns = columns

    def fit(self, X: Any, y: Any = None) -> "_Hide":
        return self

    def transform(self, X: Any) -> Any:
        if not self.columns:
            return X
        places = list(self.columns)
        if is_sparse(X):
            factors = np.ones(X.shape[1])
            factors[places] = 0.0
            return scale_columns(X, factors.tolist())
        hidden = np.array(X, dtype=float)
        hidden[:, places] = 0.0
        return type(X)(hidden, index=X.index, columns=X.columns) if hasattr(X, "iloc") else hidden

    def __sklearn_is_fitted__(self) -> bool:
        return True


def subsets_tried(n_views: int) -> list[tuple[int, ...]]:
    """Sets of views to try, the smallest first."""
    sizes = range(1, n_views + 1) if n_views <= _FEW else (1, n_views - 1, n_views)
    return [subset for size in sizes for subset in combinations(range(n_views), size)]


def _name(subset: tuple[int, ...], names: list[str]) -> str:
    if len(subset) == len(names):
        return _ALL
    if len(subset) == len(names) - 1 > 3:
        (lost,) = set(range(len(names))) - set(subset)
        return f"all but {names[lost]}"
    return " + ".join(names[i] for i in subset)


def _called(model: Any, scoring: Any) -> str:
    if scoring is None:
        return "accuracy" if is_classifier(model) else "R squared"
    return scoring if isinstance(scoring, str) else "score"


def _tables(title: str, names: list[str], tried: dict[tuple[int, ...], _Tried]) -> ViewValue:
    return ViewValue(
        _table_of_views(f"What each view is worth: {title}", names, tried),
        _table_of_subsets(f"Sets of views: {title}", names, tried),
        {_name(subset, names): one.scores for subset, one in tried.items()},
    )


def _table_of_views(title: str, names: list[str], tried: dict[tuple[int, ...], _Tried]) -> Findings:
    everything = tuple(range(len(names)))
    alone = [tried[(i,)] for i in everything]
    without = [tried[tuple(j for j in everything if j != i)] for i in everything]
    return Findings(
        title,
        "view",
        tuple(names),
        {
            **with_interval("alone", [one.score for one in alone]),
            **with_interval("loss", [one.loss for one in without]),
            "samples": np.array([one.samples for one in alone]),
        },
    )


def _table_of_subsets(
    title: str, names: list[str], tried: dict[tuple[int, ...], _Tried]
) -> Findings:
    return Findings(
        title,
        "views",
        tuple(_name(subset, names) for subset in tried),
        {
            **with_interval("score", [one.score for one in tried.values()]),
            **with_interval("loss", [one.loss for one in tried.values()]),
            "samples": np.array([one.samples for one in tried.values()]),
        },
    )


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
