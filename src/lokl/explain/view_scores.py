"""Value of views: scores of each view alone and without it, and permutation importance."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import _safe_indexing, check_random_state, indexable
from sklearn.utils.validation import check_is_fitted

from lokl._arrays import Array, as_samples, is_sparse
from lokl._frames import as_pandas
from lokl._parameters import check_choice
from lokl._warnings import DeferredWarnings
from lokl.explain.results import (
    Interval,
    ScoreLimits,
    SummaryTable,
    corrected_interval,
    interval_columns,
    one_scorer,
    score_limits,
    shared_folds,
)
from lokl.explain.views import (
    KernelView,
    feature_names,
    last_step,
    transformed,
    views_on,
    without_searches,
)
from lokl.kernels import Kernel
from lokl.kernels.columns import present_rows, take_columns
from lokl.search.search import KernelSearchCV
from lokl.solvers.machines import Fold

_SubsetScore = tuple[Array, Interval, Interval, float]
# With more views than this, only single views and all but one are scored, not all subsets.
_FEW = 5


@dataclass(frozen=True, eq=False)
class ViewValue:
    """Value of views to a model; see :func:`view_value`.

    Intervals are 95 % intervals over the folds, widened because folds share training samples
    (Nadeau and Bengio). Those of scores do not leave the range of the score.

    Losses are paired by fold on the same test samples. Samples without any of
    the views of a set are left out of it, in training and in the score; the loss compares both
    models on the remaining samples.

    Attributes
    ----------
    views : SummaryTable
        A row for each view: ``alone``, the score of the model with this view only; ``loss``, the
        loss of the score when the view is removed; both with 95 % intervals (``alone_low``,
        ``alone_high``, ``loss_low``, ``loss_high``); ``samples``, the share of the samples that
        have the view.
    subsets : SummaryTable
        A row for each set of views: ``score`` and ``loss`` against all views, with intervals, and
        ``samples``, the share of the samples that have at least one of the views.
    scores : dict of str to array of shape (n_splits,)
        Score of each subset on each split.

    See Also
    --------
    lokl.explain.view_value : Computes it.
    lokl.explain.ViewValueDisplay : Figure of it.

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
    >>> round(value.views.row("colours")["alone"], 2)
    0.93
    """

    views: SummaryTable
    subsets: SummaryTable
    scores: dict[str, Array]

    def to_frame(self) -> Any:
        """Return the table of views as a data frame (pandas)."""
        return self.views.to_frame()

    def __str__(self) -> str:
        return f"{self.views}\n\n{self.subsets}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return both tables for notebooks."""
        return self.views._repr_html_() + self.subsets._repr_html_()


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

    Every set of views is fitted on the same folds with the settings of the model, so tune it
    before. Kernels of other views are left out, and columns that only they read are set to zero, so
    that no gate can use them.

    Parameters
    ----------
    model : estimator of lokl, or a pipeline that ends in one
        Fitted or not; it is not changed. Of a fitted search or AutoMKL, the chosen model is used.
    X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Labels or targets.
    views : mapping of str to columns, optional
        As returned by :func:`lokl.join_views`: a kernel belongs to the view that has all its
        columns. Without it, kernels on the same columns are one view, and a kernel without
        ``.on(columns)`` is a view by itself.
    cv : int, splitter or iterable of splits, default=5
        Number of folds, or the folds.
    scoring : str, callable or None, default=None
        None is the model's own score: accuracy, or R squared.
    groups : array-like of shape (n_samples,), optional
        Samples of a group are never on both sides of a split.
    n_jobs : int, optional
        Number of parallel jobs of the fits.

    Returns
    -------
    value : ViewValue
        ``print(value)`` shows both tables; ``value.to_frame()`` is a data frame.

    See Also
    --------
    lokl.explain.ViewValue : What it returns.
    lokl.explain.ViewValueDisplay : Figure of it.
    lokl.explain.view_importance : Of a fitted model, without refits.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import UniformMKLClassifier
    >>> from lokl.explain import view_value
    >>> from lokl.kernels import RBF, per_view
    >>> X, y = load_wine(return_X_y=True)
    >>> X = scale(X)
    >>> kernels = per_view(RBF(), {"acids": slice(0, 5), "colours": slice(5, 13)})
    >>> value = view_value(UniformMKLClassifier(kernels, C=10), X, y)
    >>> value.views["alone"].round(2), value.views["loss"].round(2)
    (array([0.78, 0.93]), array([0.02, 0.17]))
    """
    model = without_searches(model)
    X, y = indexable(as_pandas(X), y)
    scorer, seen = one_scorer(last_step(model), scoring), X
    limits = score_limits(last_step(model), scoring)
    if isinstance(model, Pipeline) and len(model) > 1:
        seen = as_pandas(clone(model[:-1]).fit_transform(X, y))
    kernels, found, present = views_on(last_step(model), seen, y, views)
    folds = shared_folds(model, y, cv, groups)
    with DeferredWarnings():
        fitted = [
            clone(model).fit(_safe_indexing(X, train), _safe_indexing(y, train))
            for train, _ in folds
        ]
        scoring_of = _SubsetScoring(
            model, X, y, kernels, found, present, folds, scorer, limits, n_jobs, fitted
        )
        scores = {subset: scoring_of.score(subset) for subset in subsets_tried(len(found))}
    if scoring is None:
        scoring = "accuracy" if is_classifier(model) else "R squared"
    name = scoring if isinstance(scoring, str) else "score"
    title = f"{name} over {len(folds)} splits, with 95 % intervals"
    return _tables(title, [view.name for view in found], scores)


@dataclass(frozen=True, eq=False)
class _SubsetScoring:
    """A model, its views, and models of all views that were fitted on each split."""

    model: Any
    X: Any
    y: Any
    kernels: dict[str, Kernel]
    views: list[KernelView]
    present: Array
    folds: list[Fold]
    scorer: Any
    limits: ScoreLimits
    n_jobs: int | None
    fitted: list[Any]

    def score(self, subset: tuple[int, ...]) -> _SubsetScore:
        """Score the model with some views, and with all of them, on samples that have one.

        Returns
        -------
        scores : array of shape (n_splits,)
        score, loss : Interval
        samples : float
            Share of the samples that have one of the views.
        """
        has = np.asarray(self.present[:, subset].any(axis=1))
        folds = [(train[has[train]], test[has[test]]) for train, test in self.folds]
        self._check(subset, folds)
        tests = [(_safe_indexing(self.X, own), _safe_indexing(self.y, own)) for _, own in folds]
        pairs = zip(self.fitted, tests, strict=True)
        whole = np.array([self.scorer(model, *test) for model, test in pairs])
        scores = whole
        if len(subset) < len(self.views):
            scores = self._refitted_scores(subset, has, folds)
        score = corrected_interval(scores, folds, self.limits)
        loss = corrected_interval(whole - scores, folds)
        return scores, score, loss, float(has.mean())

    def _check(self, subset: tuple[int, ...], folds: list[Fold]) -> None:
        """Raise if too few samples have these views to fit or to score."""
        for k, (train, test) in enumerate(folds):
            classes = len(np.unique(np.asarray(self.y)[train])) if is_classifier(self.model) else 2
            if not len(test) or not len(train) or classes < 2:
                name = " + ".join(self.views[view].name for view in subset)
                of = f" of {classes} class" if classes < 2 else ""
                raise ValueError(
                    f"too few samples have {name!r}: split {k} has {len(train)}{of} to learn from, "
                    f"and {len(test)} to score; use fewer folds, or leave the view out"
                )

    def _refitted_scores(self, subset: tuple[int, ...], has: Array, folds: list[Fold]) -> Array:
        position, rows = np.cumsum(has) - 1, np.flatnonzero(has)
        model, X = self._with_views(subset, _safe_indexing(self.X, rows))
        kind: Any = KernelSearchCV
        search = kind(
            model,
            {},
            cv=[(position[train], position[test]) for train, test in folds],
            scoring=self.scorer,
            refit=False,
            error_score="raise",
            n_jobs=self.n_jobs,
        )
        found = search.fit(X, _safe_indexing(self.y, rows)).cv_results_
        return np.array([found[f"split{k}_test_score"][0] for k in range(len(folds))])

    def _with_views(self, subset: tuple[int, ...], X: Any) -> tuple[Any, Any]:
        """Return the model with the kernels of some views, and samples for it.

        Columns that only the other views read are set to zero.
        """
        kept = {k for view in subset for k in self.views[view].kernels}
        kernels = {n: kernel for k, (n, kernel) in enumerate(self.kernels.items()) if k in kept}
        read = {column for view in subset for column in self.views[view].columns or ()}
        hidden = sorted({c for view in self.views for c in view.columns or ()} - read)
        model = clone(self.model)
        last_step(model).set_params(kernels=clone(kernels, safe=False))
        if not isinstance(model, Pipeline):
            return model, _zero_columns(X, hidden)
        hide = FunctionTransformer(_zero_columns, kw_args={"columns": hidden})
        return Pipeline([*model.steps[:-1], ("hide views", hide), model.steps[-1]]), X


def _zero_columns(X: Any, columns: list[int]) -> Any:
    if not columns:
        return X
    zeros = sparse.csr_array((X.shape[0], len(columns))) if is_sparse(X) else 0.0
    return _with_columns(X, np.array(columns), zeros)


def _with_columns(X: Any, columns: Array, values: Any) -> Any:
    """Return samples with other values in some columns."""
    if is_sparse(X):
        rest = np.setdiff1d(np.arange(X.shape[1]), columns)
        both = sparse.hstack([values, X[:, rest]], format="csr")
        return both[:, np.argsort(np.concatenate([columns, rest]))]
    changed = np.array(X, dtype=float)
    changed[:, columns] = values
    return type(X)(changed, index=X.index, columns=X.columns) if hasattr(X, "iloc") else changed


def subsets_tried(n_views: int) -> list[tuple[int, ...]]:
    """Return the sets of views that are scored, smallest first."""
    sizes = range(1, n_views + 1) if n_views <= _FEW else (1, n_views - 1, n_views)
    return [subset for size in sizes for subset in combinations(range(n_views), size)]


def _subset_name(subset: tuple[int, ...], names: list[str]) -> str:
    if len(subset) == len(names):
        return "all views"
    if len(subset) == len(names) - 1 > 3:
        (removed,) = set(range(len(names))) - set(subset)
        return f"all but {names[removed]}"
    return " + ".join(names[view] for view in subset)


def _tables(title: str, names: list[str], scores: dict[tuple[int, ...], _SubsetScore]) -> ViewValue:
    every, found = range(len(names)), list(scores.values())
    alone = [scores[(view,)] for view in every]
    without = [scores[tuple(other for other in every if other != view)] for view in every]
    subsets = tuple(_subset_name(subset, names) for subset in scores)
    by_view, by_subset = _columns("alone", alone, without), _columns("score", found, found)
    return ViewValue(
        SummaryTable(f"Value of each view: {title}", "view", tuple(names), by_view),
        SummaryTable(f"Sets of views: {title}", "views", subsets, by_subset),
        {name: own[0] for name, own in zip(subsets, found, strict=True)},
    )


def _columns(name: str, sets: list[_SubsetScore], losses: list[_SubsetScore]) -> dict[str, Array]:
    _, scores, _, samples = zip(*sets, strict=True)
    columns = interval_columns(name, scores)
    columns |= interval_columns("loss", [loss for _, _, loss, _ in losses])
    return {**columns, "samples": np.array(samples)}


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
) -> SummaryTable:
    """Compute the loss of the score of a fitted model when a view is shuffled among the samples.

    The columns of a view move together; samples without it stay without it. Unlike
    :func:`view_value` nothing is refitted: this shows what *this* model uses, on samples that it
    should not have been fitted on. For single columns it equals
    :func:`sklearn.inspection.permutation_importance`.

    Parameters
    ----------
    model : fitted estimator of lokl, or a fitted pipeline that ends in one
        In a pipeline, the columns that the last step receives are shuffled. Of a search or AutoMKL,
        the chosen model is used.
    X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Labels or targets.
    of : {"views", "columns"}, default="views"
        Whether to shuffle all columns of a view at a time, or single columns.
    views : mapping of str to columns, optional
        As in :func:`view_value`.
    scoring : str, callable or None, default=None
        None is the model's own score: accuracy, or R squared.
    n_repeats : int, default=10
        Number of times that each is shuffled.
    random_state : int, RandomState or None
        Seed.
    n_jobs : int, optional
        Number of parallel jobs.

    Returns
    -------
    importance : SummaryTable
        A row for each view or column: ``loss``, the mean loss of the score, and ``spread``, its
        standard deviation over the shuffles.

    See Also
    --------
    lokl.explain.view_value : Refits the model.
    sklearn.inspection.permutation_importance : The same for single columns.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import UniformMKLClassifier
    >>> from lokl.explain import view_importance
    >>> from lokl.kernels import RBF, per_view
    >>> X, y = load_wine(return_X_y=True)
    >>> X = scale(X)
    >>> kernels = per_view(RBF(), {"acids": slice(0, 5), "colours": slice(5, 13)})
    >>> model = UniformMKLClassifier(kernels, C=10).fit(X[::2], y[::2])
    >>> table = view_importance(model, X[1::2], y[1::2], random_state=0)
    >>> table.rows, table["loss"].round(2)
    (('acids', 'colours'), array([0.11, 0.52]))
    """
    check_choice("of", of, ("views", "columns"))
    model = without_searches(model)
    estimator: Any = last_step(model)
    check_is_fitted(estimator)
    X, y = indexable(as_pandas(X), y)
    X = transformed(model, X)
    X = X if hasattr(X, "iloc") or is_sparse(X) else as_samples(X)
    if of == "views":
        _, found, _ = views_on(estimator, X, y, views)
        groups = {view.name: view.columns or () for view in found}
    else:
        names = feature_names(model, X.shape[1])
        groups = {name: (c,) for c, name in enumerate(names)}
    scorer = one_scorer(estimator, scoring)
    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max + 1)
    options = (estimator, X, y, scorer, n_repeats, seed)
    scores = Parallel(n_jobs)(
        delayed(_shuffled_scores)(columns, *options) for columns in groups.values()
    )
    losses = scorer(estimator, X, y) - np.array(scores)
    title = f"Loss of the score when {of} are shuffled, {n_repeats} times each"
    columns = {"loss": losses.mean(axis=1), "spread": losses.std(axis=1)}
    return SummaryTable(title, of.removesuffix("s"), tuple(groups), columns)


def _shuffled_scores(
    columns: tuple[int, ...], model: Any, X: Any, y: Any, scorer: Any, n_repeats: int, seed: int
) -> list[float]:
    """Return the scores with some columns shuffled; the same orders for all groups of columns."""
    rng, order, scores = np.random.RandomState(seed), np.arange(X.shape[0]), []
    source = order.copy()
    for _ in range(n_repeats):
        rng.shuffle(order)
        source = source[order]
        scores.append(float(scorer(model, _exchanged(X, np.array(columns), source), y)))
    return scores


def _exchanged(X: Any, columns: Array, order: Array) -> Any:
    """Return samples in a new order of some columns, among the samples that have them."""
    own = take_columns(X, columns)
    has = np.flatnonzero(present_rows(own if is_sparse(own) else np.asarray(own)))
    # The ranks of some entries of a random order are a random order of these entries.
    source = np.arange(X.shape[0])
    source[has] = has[np.argsort(np.argsort(order[has]))]
    return _with_columns(X, columns, own[source] if is_sparse(own) else np.asarray(own)[source])
