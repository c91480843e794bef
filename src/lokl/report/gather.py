"""How something was made: versions, checksums, and rows that are on both sides of a split.

From a fitted model and samples to the content of a report.
"""

import hashlib
import platform
from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from lokl._arrays import Array, is_sparse
from lokl.base.delegation import unwrapped
from lokl.explain.answers import ViewAnswers, answers_by_view
from lokl.explain.similarity import (
    Alignment,
    Likeness,
    alignment,
    kernel_pca,
    likeness,
    nearest,
    stacked,
)
from lokl.explain.view_value import ViewValue, subsets_tried
from lokl.explain.views import KernelView, Views, views_of
from lokl.report import gather as facts
from lokl.report.content import Candidate, Cases, Interval, Report, Subset, Support, ViewWorth

_LIBRARIES = ("lokl", "numpy", "scipy", "scikit-learn", "numba")
_BLOCK = 1 << 20


def versions() -> dict[str, str]:
    """Return the versions that results depend on, by name."""
    own = {"Python": platform.python_version()}
    return {"versions": ", ".join(f"{name} {v}" for name, v in {**own, **_installed()}.items())}


def _installed() -> dict[str, str]:
    import lokl

    return {name: lokl.__version__ if name == "lokl" else version(name) for name in _LIBRARIES}


def sha256(path: str | Path) -> str:
    """Return the checksum of a file."""
    found = hashlib.sha256()
    with Path(path).open("rb") as file:
        while block := file.read(_BLOCK):
            found.update(block)
    return found.hexdigest()


def duplicates(learned: Any, asked: Any) -> int:
    """Return how many of the samples that a model is asked about equal one it has learned from."""
    known = set(_rows(learned))
    return sum(row in known for row in _rows(asked))


def n_rows(X: Any) -> int:
    """Return the number of samples of a table of any kind."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _rows(X: Any) -> list[bytes]:
    """Return every row as something that equals only its like."""
    if is_sparse(X):
        rows = X.tocsr().copy()
        rows.sum_duplicates()
        rows.eliminate_zeros()
        parts = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
        return [
            rows.indices[a:b].astype(np.int64).tobytes() + rows.data[a:b].astype(float).tobytes()
            for a, b in parts
        ]
    values = np.asarray(X)
    if values.dtype.kind == "O":
        return [repr(row.tolist()).encode() for row in values]
    # Minus zero equals zero, and all NaN mean the same here.
    values = np.where(np.isnan(values), np.nan, values.astype(float) + 0.0)
    return [row.tobytes() for row in values]


# Similar samples that are named.
_NEAR = 3


def cases_of(
    model: Any,
    X: Any,
    y: Any = None,
    ids: Any = None,
    views: Views | None = None,
    *,
    training: Sequence[Any] | None = None,
) -> Cases:
    """Ask a fitted model about samples.

    Parameters
    ----------
    model : fitted estimator of this library
        It may be in a pipeline, a search, or a calibrated classifier.
    X : samples as the model takes them
        Best those that it has not learned from.
    y : array of shape (n_samples,), default=None
        Classes or targets where they are known; None or NaN where a sample has none.
    ids : sequence, default=None
        Names of the samples; the index of a data frame or their numbers if not given.
    views : mapping of str to positions of columns, default=None
        Of the samples as the estimator sees them. Without it, kernels on the same columns are one
        view (:func:`view_names`).
    training : (X, y) or (X, y, ids), default=None
        What the model was fitted on. The samples of it that carry the model are named as
        neighbours; without it, samples of `X` are.
    """
    found = answers_by_view(model, X, views)
    return cases_from(found, model, X, y, ids, training=training)


def cases_from(
    found: ViewAnswers,
    model: Any,
    X: Any,
    y: Any = None,
    ids: Any = None,
    *,
    training: Sequence[Any] | None = None,
) -> Cases:
    """Return the cases of answers that are known; the model says only which samples are alike.

    Parameters
    ----------
    found : ViewAnswers
        Such as answers about samples that were left out.
    model, X, y, ids, training
        As in :func:`cases_of`.
    """
    inner, Z = unwrapped(model, X)
    n = len(found.predicted)
    names = _names(X, ids, n)
    support = None
    if training is not None and hasattr(inner, "support_vectors_"):
        alike = likeness(inner, stacked(Z, inner.support_vectors_))
        support = _support(inner, alike, names, *training)
    else:
        alike = likeness(inner, Z)
    place, explained = kernel_pca(alike, n)
    near: list[list[int]] = [[] for _ in range(n)]
    if support is None:
        near, _ = nearest(alike, n, np.arange(n), np.arange(n), _NEAR)
    own = {field.name for field in fields(Cases)}
    told = {name: value for name, value in vars(found).items() if name in own}
    return Cases(
        **told,
        ids=names,
        truth=_truth(inner, y, n),
        place=place,
        near=near,
        support=support,
        explained=explained,
    )


def view_names(model: Any) -> list[str]:
    """Names of the views of a fitted model, in the order of the columns of its cases."""
    return [view.name for view in views_of(unwrapped(model)[0])]


def worth_of(
    names: Sequence[str],
    columns: Sequence[int],
    cases: Cases,
    value: ViewValue | None = None,
) -> list[ViewWorth]:
    """Return what each view is worth: from the cases, and from fits without it where there are.

    Parameters
    ----------
    names : sequence of str
    columns : sequence of int
        How many columns each view has.
    cases : Cases
    value : ViewValue, default=None
        Of views with these names.
    """
    known = {} if value is None else {name: value.views.row(name) for name in value.views.rows}
    found = []
    for k, (name, count) in enumerate(zip(names, columns, strict=True)):
        has = cases.present[:, k]
        trust = cases.trust[has, k]
        own = known.get(name)
        found.append(
            ViewWorth(
                name,
                count,
                None if own is None else _interval(own, "alone"),
                None if own is None else _interval(own, "loss"),
                float(np.abs(cases.parts[has, k]).mean()) if has.any() else 0.0,
                float(trust.mean()) if has.any() else float("nan"),
                float(1.0 - has.mean()),
            )
        )
    return found


def subsets_of(names: Sequence[str], value: ViewValue) -> list[Subset]:
    """Return the sets of views that were tried, best first; `names` are in the order of `value`."""
    tried = subsets_tried(len(names))
    scores = [_interval(value.subsets.row(row), "score") for row in value.subsets.rows]
    found = [
        Subset(tuple(names[view] for view in own), score)
        for own, score in zip(tried, scores, strict=True)
    ]
    return sorted(found, key=lambda subset: -subset.score.mean)


def alignment_of(model: Any, X: Any, y: Any = None, views: Views | None = None) -> Alignment | None:
    """Return how alike the kernels of the views are, and how like the truth where it is known.

    Parameters
    ----------
    model, X, y, views
        As in :func:`cases_of`.
    """
    inner, Z = unwrapped(model, X)
    truth = _truth(inner, y, Z.shape[0])
    known = truth >= 0 if is_classifier(inner) else np.isfinite(truth)
    if not known.any():
        return alignment(inner, Z, None, views)
    return alignment(inner, Z[known], truth[known], views)


def about(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    ids: Any = None,
    views: Views | None = None,
    title: str = "",
    training: Sequence[Any] | None = None,
    value: ViewValue | None = None,
    leaderboard: Sequence[Candidate] = (),
    audit: Mapping[str, Any] | None = None,
) -> Report:
    """Return the report about a fitted model on samples that it has not learned from.

    Parameters
    ----------
    model, X, y, ids, views, training
        As in :func:`cases_of`.
    title : str, default=""
        Heading of the page; the name of the model if empty.
    value : ViewValue, default=None
        What :func:`lokl.explain.view_value` says of the views: scores of each alone, without
        it, and of sets of views.
    leaderboard : sequence of Candidate, default=()
        Other models on the same samples, best first.
    audit : mapping, default=None
        More to tell about how this was made, by name.

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
    >>> page = lokl.report.about(model, X[1::2], y[1::2], training=(X[::2], y[::2]))
    >>> [view.name for view in page.views]
    ['acids', 'colours']
    """
    inner, Z = unwrapped(model, X)
    cases = cases_of(model, X, y, ids, views, training=training)
    seen = views_of(inner, views)
    names = [view.name for view in seen]
    classes = [str(label) for label in inner.classes_.tolist()] if is_classifier(inner) else []
    return Report(
        title=title or f"What {type(inner).__name__} has learned",
        verdict="",
        score_name="accuracy" if classes else "R squared",
        classes=classes,
        views=worth_of(names, [_width(view, Z) for view in seen], cases, value),
        leaderboard=list(leaderboard),
        subsets=[] if value is None else subsets_of(value.views.rows, value),
        cases=cases,
        audit={**_facts(model, inner, X, training), **(audit or {}), **facts.versions()},
        alignment=alignment_of(model, X, y, views),
    )


def _facts(model: Any, inner: Any, X: Any, training: Sequence[Any] | None) -> dict[str, Any]:
    """Return what can be told about a model and its samples without asking anybody."""
    told: dict[str, Any] = {"model": type(inner).__name__}
    usual = type(inner)().get_params(deep=False)
    told["settings"] = {
        name: value
        for name, value in inner.get_params(deep=False).items()
        if isinstance(value, str | int | float) and value != usual[name]
    } or "as they are by default"
    if hasattr(inner, "support_fraction_"):
        told["support"] = f"{100 * float(inner.support_fraction_):.0f} % of the training samples"
    if training is not None:
        told["rows learned from"] = facts.n_rows(training[0])
        twins = facts.duplicates(training[0], X)
        told["duplicates across the split"] = f"{twins} of {facts.n_rows(X)}"
    return told


def _support(
    inner: Any, alike: Likeness, names: list[str], X: Any, y: Any, ids: Any = None
) -> Support:
    """Name the support samples that are most like each case."""
    rows = np.asarray(inner.support_)
    n, m = len(names), len(rows)
    named = ids is not None or hasattr(X, "columns")
    all_names = _names(X, ids, facts.n_rows(X))
    # Numbers would be those of other samples among the cases.
    own = [all_names[row] if named else f"training sample {row}" for row in rows]
    # A sample that was learned from and is asked about is no neighbour of itself.
    place = {name: k for k, name in enumerate(names)}
    same = np.concatenate([np.full(n, -1), [place.get(name, -1) for name in own]]).astype(np.intp)
    near, how = nearest(alike, n, np.arange(n, n + m), same, _NEAR)
    return Support(own, _truth(inner, np.asarray(y)[rows], m), near, how)


def _names(X: Any, ids: Any, n: int) -> list[str]:
    if ids is None:
        ids = X.index if hasattr(X, "index") and hasattr(X, "columns") else range(n)
    names = [str(name) for name in ids]
    if len(names) != n:
        raise ValueError(f"ids must name {n} samples, got {len(names)}")
    return names


def _truth(model: Any, y: Any, n: int) -> Array:
    """Numbers of classes or targets, and a sign where they are not known."""
    classifies = is_classifier(model)
    if y is None:
        return np.full(n, -1) if classifies else np.full(n, np.nan)
    y = np.asarray(y)
    if len(y) != n:
        raise ValueError(f"y must have a value for each of {n} samples, got {len(y)}")
    if not classifies:
        return np.asarray(y, dtype=float).reshape(n, -1)[:, 0]
    place = {label: code for code, label in enumerate(model.classes_.tolist())}
    return np.array([place.get(label, -1) for label in y.tolist()], dtype=np.intp)


def _width(view: KernelView, Z: Any) -> int:
    return Z.shape[1] if view.columns is None else len(view.columns)


def _interval(row: Mapping[str, float], name: str) -> Interval:
    return Interval(row[name], row[f"{name}_low"], row[f"{name}_high"])
