"""Gene sets of a model: their contributions to predictions, and groups of sets that overlap."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from lokl._arrays import Array
from lokl.base.model import unwrap
from lokl.explain.by_view import explain
from lokl.explain.columns import bootstrap_importance
from lokl.explain.results import SummaryTable, interval_columns
from lokl.explain.views import Views, named_views


def gene_set_importance(
    model: Any,
    X: Any,
    *,
    views: Views | None = None,
    similarity: float = 0.5,
    n_largest: int = 10,
    n_bootstraps: int = 200,
    random_state: Any = None,
) -> SummaryTable:
    """Return the importance of gene sets, and which of them overlap.

    The importance of a set is the mean absolute contribution of its kernel to the predictions of
    samples. Sets that share most of their columns cannot be told apart by a model: their
    importance is divided among them, and may differ in another model. They are one group.

    Parameters
    ----------
    model : fitted estimator
        With several kernels on parts of a view, for example from
        :func:`lokl.kernels.per_gene_set`.
    X : {array-like, data frame} of shape (n_samples, n_features)
    views : mapping of str to positions of columns, optional
        As for :func:`explain`. Without it, all columns are one view, unless the model was fitted
        by the command.
    similarity : float, default=0.5
        Sets whose Jaccard similarity, shared columns by all columns of both, is at least this
        belong to the group of the most important one of them.
    n_largest : int, default=10
        Rank up to which a set counts as selected.
    n_bootstraps : int, default=200
        Bootstrap samples of the rows.
    random_state : int, RandomState instance or None, default=None
        Seed of the bootstrap samples.

    Returns
    -------
    table : SummaryTable
        The most important set first: ``importance`` with its interval over bootstrap samples of
        the rows; ``selected``, the share of these in which it is among the `n_largest`;
        ``size``, its number of columns; and ``group``, the row of the first set of its group.

    See Also
    --------
    lokl.kernels.per_gene_set : Makes the kernels.
    lokl.explain.column_importance : Importance of single columns.

    Examples
    --------
    >>> import numpy as np
    >>> import lokl
    >>> from lokl.explain import gene_set_importance
    >>> from lokl.kernels import RBF, per_gene_set
    >>> X = np.random.RandomState(0).normal(size=(100, 30))
    >>> genes = [f"G{i}" for i in range(30)]
    >>> sets = {"a": genes[:10], "b": genes[10:20], "c": genes[8:20]}
    >>> model = lokl.UniformMKLClassifier(per_gene_set(RBF(), genes, sets), C=10)
    >>> table = gene_set_importance(model.fit(X, X[:, 10:20].sum(axis=1) > 0), X)
    >>> int(table.row("b")["group"]) == int(table.row("c")["group"])
    True
    """
    learner, Z = unwrap(model, X)
    views = named_views(model, views) or {"all columns": range(Z.shape[1])}
    found = explain(model, X, views=views).gene_sets
    if found is None:
        raise ValueError(
            f"{type(learner).__name__} has no kernels on parts of a view; make them with "
            "lokl.kernels.per_gene_set"
        )
    sizes = np.abs(found.values)
    importance, selected = bootstrap_importance(
        sizes, n_bootstraps, min(n_largest, sizes.shape[1]), check_random_state(random_state)
    )
    order = np.argsort(-sizes.mean(axis=0), kind="stable")
    used = dict(zip(learner.kernel_names_, learner.kernels_, strict=True))
    columns = [set(used[found.columns[k]].columns_used() or ()) for k in order]
    return SummaryTable(
        f"Gene sets: mean absolute contribution, share of top {n_largest}, overlapping sets",
        "gene set",
        tuple(found.columns[k] for k in order),
        {
            **interval_columns("importance", [importance[k] for k in order]),
            "selected": np.array([selected[k] for k in order]),
            "size": np.array([len(own) for own in columns], dtype=float),
            "group": group_overlaps(columns, similarity).astype(float),
        },
    )


def group_overlaps(columns: Sequence[set[int]], similarity: float) -> Array:
    """Return the group of each set: the first set before it that it resembles and that leads one.

    Parameters
    ----------
    columns : sequence of set of int
        Columns of each set, the most important set first.
    similarity : float
        Least Jaccard similarity within a group.

    Returns
    -------
    groups : array of int of shape (n_sets,)
        Position of the set that leads the group, which is its most important one.
    """
    leaders: list[int] = []
    groups = np.empty(len(columns), dtype=np.intp)
    for k, own in enumerate(columns):
        near = (j for j in leaders if len(own & columns[j]) >= similarity * len(own | columns[j]))
        groups[k] = next(near, k)
        if groups[k] == k:
            leaders.append(k)
    return groups
