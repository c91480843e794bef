"""Report about a fitted model: its explanation, similar samples, views and provenance."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from lokl._arrays import Array, as_samples, is_sparse, row_keys, stack_rows
from lokl._environment import versions
from lokl._frames import as_pandas
from lokl.base.model import unwrap
from lokl.explain.by_view import explain, sample_ids
from lokl.explain.explanation import Explanation
from lokl.explain.gene_sets import gene_set_importance
from lokl.explain.results import Interval, SummaryTable
from lokl.explain.similarity import (
    kernel_alignment,
    kernel_pca,
    nearest_rows,
    sample_similarity,
)
from lokl.explain.view_scores import ViewValue, subsets_tried
from lokl.explain.views import Views, named_views, plain, views_of
from lokl.report.content import (
    LeaderboardEntry,
    Report,
    SampleMap,
    SupportSamples,
    ViewSubset,
    ViewSummary,
)

# Similar samples that are listed.
_NEIGHBOURS = 3


def report_from_model(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    ids: Any = None,
    views: Views | None = None,
    title: str = "",
    training: Sequence[Any] | None = None,
    value: ViewValue | None = None,
    leaderboard: Sequence[LeaderboardEntry] = (),
    audit: Mapping[str, Any] | None = None,
    columns: bool = False,
) -> Report:
    """Return the report about a fitted model on samples that it was not fitted on.

    Parameters
    ----------
    model, X, y, ids, views
        As in :func:`lokl.explain.explain`; the model has views.
    title : str, default=""
        Heading of the page; the name of the model if empty.
    training : (X, y) or (X, y, ids), default=None
        Data that the model was fitted on. Its support samples are listed as neighbours; without
        it, samples of `X` are.
    value : ViewValue, default=None
        Scores of single views and sets of views from :func:`lokl.explain.view_value`.
    leaderboard : sequence of LeaderboardEntry, default=()
        Other models on the same samples, best first.
    audit : mapping, default=None
        More about how the report was made, by name.
    columns : bool, default=False
        Whether to show which columns matter, see :func:`lokl.explain.column_contributions`.

    Returns
    -------
    report : Report
        For :func:`lokl.report.write`.

    See Also
    --------
    lokl.report.write : Writes it.
    lokl.explain.explain : The numbers.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> import lokl.report
    >>> from lokl import TrustedVoteClassifier
    >>> from lokl.kernels import RBF, per_view
    >>> X, y = scale(load_wine().data), load_wine().target
    >>> kernels = per_view(RBF(), {"acids": slice(0, 5), "colours": slice(5, 13)})
    >>> model = TrustedVoteClassifier(kernels, C=10, random_state=0).fit(X[::2], y[::2])
    >>> page = lokl.report.report_from_model(model, X[1::2], y[1::2], training=(X[::2], y[::2]))
    >>> [view.name for view in page.views]
    ['acids', 'colours']
    """
    explanation = explain(model, X, y, views=views, ids=ids, columns=columns)
    if explanation.learned is None and training is not None:
        explanation = replace(explanation, learned=duplicated_rows(training[0], X))
    inner, Z = unwrap(model, X)
    if not explanation.views:
        raise TypeError(
            f"a report needs a model with views, and {type(inner).__name__} has no contributions "
            "and weights of views; give an estimator of lokl"
        )
    used = views_of(inner, named_views(model, views))
    widths = [Z.shape[1] if view.columns is None else len(view.columns) for view in used]
    installed = {name: number for name, number in versions().items() if number}
    classes = [] if explanation.classes is None else list(map(str, explanation.classes.tolist()))
    return Report(
        title=title or f"Explanation of {type(inner).__name__}",
        verdict="",
        score_name="accuracy" if classes else "R squared",
        classes=classes,
        views=view_summaries(explanation, widths, value),
        leaderboard=list(leaderboard),
        subsets=[] if value is None else view_subsets(value),
        explanation=explanation,
        sample_map=sample_map(model, X, explanation, training=training),
        audit={**_model_facts(inner, X, training), **(audit or {}), "versions": installed},
        alignment=known_alignment(model, X, explanation, views),
        gene_sets=known_gene_sets(model, X, explanation.gene_sets, views),
    )


def known_gene_sets(model: Any, X: Any, found: Any, views: Any = None) -> SummaryTable | None:
    """Return the importance of gene sets, None if the model was not fitted on gene sets."""
    if found is None:
        return None
    return gene_set_importance(model, X, views=views, random_state=0)


def sample_map(
    model: Any, X: Any, explanation: Explanation, *, training: Sequence[Any] | None = None
) -> SampleMap:
    """Return positions and neighbours of samples under the learned kernel of a model.

    Parameters
    ----------
    model : fitted estimator of lokl, alone or inside pipelines and searches
        Model whose kernel is used.
    X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        Samples as the model takes them.
    explanation : Explanation
        Explanation of these samples, by this model or by held-out models.
    training : (X, y) or (X, y, ids), default=None
        As in :func:`report_from_model`.

    Returns
    -------
    sample_map : SampleMap
        Positions and neighbours.

    See Also
    --------
    lokl.report.report_from_model : Uses it.
    lokl.explain.KernelMapDisplay : Figure of it.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import UniformMKLClassifier
    >>> from lokl.explain import explain
    >>> from lokl.report import sample_map
    >>> from lokl.kernels import RBF, per_view
    >>> X, y = load_wine(return_X_y=True)
    >>> X = scale(X)
    >>> kernels = per_view(RBF(), {"acids": slice(0, 5), "colours": slice(5, 13)})
    >>> model = UniformMKLClassifier(kernels, C=10).fit(X[::2], y[::2])
    >>> found = sample_map(model, X[1::2], explain(model, X[1::2]))
    >>> found.positions.shape, len(found.neighbours)
    ((89, 2), 89)
    """
    inner, Z = unwrap(model, X)
    rows = np.arange(len(explanation))
    if training is None or not hasattr(inner, "support_vectors_"):
        similarity = sample_similarity(inner, Z)
        neighbours, _ = nearest_rows(similarity, rows, rows, rows, _NEIGHBOURS)
        support = None
    else:
        both, frame = stack_rows([plain(Z), plain(inner.support_vectors_)]), as_pandas(Z)
        if hasattr(frame, "columns"):
            both = type(frame)(both, columns=frame.columns)
        similarity = sample_similarity(inner, both)
        ids, truth = _support_samples(np.asarray(inner.support_), *training)
        # An explained sample that is also a support sample is not its own neighbour.
        row_of = {name: k for k, name in enumerate(explanation.ids)}
        same = np.array([-1] * len(rows) + [row_of.get(name, -1) for name in ids], dtype=np.intp)
        among = np.arange(len(rows), len(same))
        neighbours, values = nearest_rows(similarity, rows, among, same, _NEIGHBOURS)
        support = SupportSamples(ids, truth, values)
    positions, explained = kernel_pca(similarity, len(rows))
    return SampleMap(positions, neighbours, support, explained)


def _support_samples(rows: Array, X: Any, y: Any, ids: Any = None) -> tuple[list[str], Array]:
    """Return names and truth of some training samples.

    Parameters
    ----------
    rows : int array of shape (n_support,)
    X, y, ids
        Training data; see :func:`report_from_model`.

    Returns
    -------
    names : list of str
    truth : array of shape (n_support,)
        Classes, or the first target.
    """
    names, truth = sample_ids(X, ids, _n_rows(X)), np.asarray(y)[rows]
    # Row numbers of training samples would be mistaken for those of the explained samples.
    named = ids is not None or hasattr(X, "columns")
    shown = [names[row] if named else f"training sample {row}" for row in rows]
    return shown, truth if truth.ndim == 1 else truth[:, 0]


def view_summaries(
    explanation: Explanation, columns: Sequence[int], value: ViewValue | None = None
) -> list[ViewSummary]:
    """Return the value of each view, with scores if there are any.

    Parameters
    ----------
    explanation : Explanation
        Explanation with these views.
    columns : sequence of int
        Number of columns of each view.
    value : ViewValue, default=None
        Scores of views with these names.

    Returns
    -------
    summaries : list of ViewSummary
        In the order of the views.

    See Also
    --------
    lokl.report.view_subsets : Scores of sets of views.
    lokl.explain.view_value : The scores.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import UniformMKLClassifier
    >>> from lokl.explain import explain
    >>> from lokl.report import view_summaries
    >>> from lokl.kernels import RBF, per_view
    >>> X, y = load_wine(return_X_y=True)
    >>> X = scale(X)
    >>> kernels = per_view(RBF(), {"acids": slice(0, 5), "colours": slice(5, 13)})
    >>> model = UniformMKLClassifier(kernels, C=10).fit(X, y)
    >>> [(view.name, view.columns) for view in view_summaries(explain(model, X), [5, 8])]
    [('acids', 5), ('colours', 8)]
    """
    missing = 1.0 - explanation.presence.mean(axis=0)
    table = None if value is None else value.views
    summaries = []
    for name, width, share in zip(explanation.views, columns, missing.tolist(), strict=True):
        scores: dict[str, Interval] = {}
        if table is not None and name in table.rows:
            scores = {kind: table.interval(name, kind) for kind in ("alone", "loss")}
        summaries.append(ViewSummary(name, width, **scores, missing=share))
    return summaries


def view_subsets(value: ViewValue) -> list[ViewSubset]:
    """Return the scores of sets of views, best first.

    Parameters
    ----------
    value : ViewValue
        Scores of sets of views.

    Returns
    -------
    subsets : list of ViewSubset
        Best first.

    See Also
    --------
    lokl.report.view_summaries : Value of each view.
    lokl.explain.view_value : The scores.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from lokl import UniformMKLClassifier
    >>> from lokl.explain import view_value
    >>> from lokl.report import view_subsets
    >>> from lokl.kernels import RBF, per_view
    >>> X, y = load_wine(return_X_y=True)
    >>> X = scale(X)
    >>> kernels = per_view(RBF(), {"acids": slice(0, 5), "colours": slice(5, 13)})
    >>> value = view_value(UniformMKLClassifier(kernels, C=10), X, y)
    >>> [subset.views for subset in view_subsets(value)]
    [('acids', 'colours'), ('colours',), ('acids',)]
    """
    names = value.views.rows
    subsets = [
        ViewSubset(tuple(names[view] for view in views), value.subsets.interval(row, "score"))
        for views, row in zip(subsets_tried(len(names)), value.subsets.rows, strict=True)
    ]
    return sorted(subsets, key=lambda subset: -subset.score.mean)


def known_alignment(
    model: Any, X: Any, explanation: Explanation, views: Views | None = None
) -> Any:
    """Return the alignment of kernels on samples whose truth is known, else on all samples.

    Parameters
    ----------
    model, X, views
        As in :func:`lokl.explain.explain`.
    explanation : Explanation
        Explanation of these samples.

    Returns
    -------
    alignment : KernelAlignment or None
        See :func:`lokl.explain.kernel_alignment`.
    """
    rows = np.flatnonzero(explanation.known)
    if not len(rows):
        return kernel_alignment(model, X, None, views)
    return kernel_alignment(model, _safe_indexing(X, rows), explanation.truth_codes[rows], views)


def count_duplicates(training: Any, X: Any) -> int:
    """Return the number of rows of `X` that equal a training row.

    Parameters
    ----------
    training, X : {array-like, sparse matrix, data frame} with the same columns
        NaN equals NaN.
    """
    return int(duplicated_rows(training, X).sum())


def duplicated_rows(training: Any, X: Any) -> Array:
    """Return whether each row of `X` equals a training row; see :func:`count_duplicates`."""
    known = set(_keys(training))
    return np.array([key in known for key in _keys(X)], dtype=bool)


def _keys(X: Any) -> list[Any]:
    """Return values that are equal for equal rows."""
    if is_sparse(X):
        X = X.tocsr().copy()
        X.sum_duplicates()
        X.eliminate_zeros()
    elif np.asarray(X).dtype.kind == "O":
        return [repr(row) for row in np.asarray(X).tolist()]
    else:
        # There are several NaN, with different bytes.
        X = np.where(np.isnan(X), np.nan, X)
    X = as_samples(X)
    return row_keys(X, np.zeros(X.shape[0])).tolist()


def _model_facts(inner: Any, X: Any, training: Sequence[Any] | None) -> dict[str, Any]:
    facts: dict[str, Any] = {"model": type(inner).__name__}
    default = type(inner)().get_params(deep=False)
    facts["settings"] = {
        name: value
        for name, value in inner.get_params(deep=False).items()
        if isinstance(value, str | int | float) and value != default[name]
    } or "defaults"
    if hasattr(inner, "support_fraction_"):
        facts["support"] = f"{100 * float(inner.support_fraction_):.0f} % of the training samples"
    if training is not None:
        facts["training samples"] = _n_rows(training[0])
        duplicates = count_duplicates(training[0], X)
        facts["duplicates across the split"] = f"{duplicates} of {_n_rows(X)}"
    return facts


def _n_rows(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)
