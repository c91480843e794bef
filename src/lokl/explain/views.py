"""Views of a model: which of its kernels belong to which view, and which samples have it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from lokl._arrays import Array, is_sparse
from lokl._frames import as_pandas
from lokl._warnings import capture_warnings
from lokl.base.estimator import KernelEstimator
from lokl.base.model import fitted_inside
from lokl.kernels import Kernel
from lokl.kernels.columns import present_rows, resolve_columns, take_columns

Views = Mapping[str, Sequence[int]]


def plain(X: Any) -> Any:
    """Return samples without the names of their columns."""
    return X.to_numpy(dtype=float) if hasattr(X, "to_numpy") else X


@dataclass(frozen=True)
class KernelView:
    """One view of a model: kernels on the same columns.

    Attributes
    ----------
    name : str
    kernels : tuple of int
        Empty if the model has dropped all kernels of the view.
    columns : tuple of int or None
        None for all columns.
    """

    name: str
    kernels: tuple[int, ...]
    columns: tuple[int, ...] | None


def named_views(model: Any, views: Views | None) -> Views | None:
    """Return `views`, or those of the tables that a fitted pipeline begins with."""
    if views is None and hasattr(model, "steps"):
        views = getattr(model.steps[0][1], "prepared_views_", None)
    return views


def views_of(model: Any, views: Views | None = None) -> list[KernelView]:
    """Return the views of a fitted estimator.

    Parameters
    ----------
    model : fitted estimator
    views : mapping of str to positions of columns, optional
        A kernel belongs to the view that has all its columns. Without it, kernels on the same
        columns are a view, and other kernels are views by themselves.
    """
    names = [str(name) for name in model.kernel_names_]
    kernels = getattr(model, "kernels_", None)
    if views is not None and len(views) == 1:
        ((name, columns),) = views.items()
        return [KernelView(name, tuple(range(len(names))), tuple(columns))]
    if kernels is None:
        return [KernelView(name, (k,), None) for k, name in enumerate(names)]
    return [
        KernelView(
            name,
            tuple(own),
            kernels[own[0]].columns_used() if views is None else tuple(views[name]),
        )
        for name, own in _kernels_by_view(names, kernels, views)
    ]


def _kernels_by_view(
    names: list[str], kernels: Sequence[Kernel], views: Mapping[str, Any] | None
) -> list[tuple[str, list[int]]]:
    """Return the name and the kernels (positions) of each view."""
    groups: dict[Any, list[int]] = {} if views is None else {view: [] for view in views}
    for k, kernel in enumerate(kernels):
        used = kernel.columns_used()
        if views is None:
            alone = used is None or kernel.is_stored or not kernel.is_view
            groups.setdefault(k if alone else frozenset(used or ()), []).append(k)
            continue
        home = next((v for v, own in views.items() if used and set(used) <= set(own)), None)
        if home is None:
            raise ValueError(
                f"kernel {names[k]!r} reads columns that are not all in one of the views "
                f"{', '.join(map(repr, views))}; put it on the columns of one view with "
                ".on(columns)"
            )
        groups[home].append(k)
    if views is not None:
        return list(groups.items())
    kernels_of = list(groups.values())
    short = [_common_name([names[k] for k in own]) for own in kernels_of]
    if len(set(short)) < len(short):
        short = [", ".join(names[k] for k in own) for own in kernels_of]
    return list(zip(short, kernels_of, strict=True))


def _common_name(names: list[str]) -> str:
    """Return the view of kernels that are named "view: kernel", else all names."""
    starts = {name.partition(": ")[0] for name in names}
    return starts.pop() if len(starts) == 1 else ", ".join(names)


def by_view(values: Array, views: Sequence[KernelView], merge: Any) -> Array:
    """Merge values of kernels, on the last axis, into values of views; 0 without kernels."""
    merged = [
        merge(values[..., view.kernels], axis=-1) if view.kernels else np.zeros(values.shape[:-1])
        for view in views
    ]
    return np.stack(merged, axis=-1)


def weights_by_view(model: Any, X: Any, views: Sequence[KernelView]) -> Array:
    """Return the sum of the weights of the kernels of each view, (n_samples, n_views)."""
    weights = np.asarray(model.weights(X), dtype=float)
    # Weights that differ between classes are averaged.
    return by_view(weights if weights.ndim == 2 else weights.mean(axis=1), views, np.sum)


def present_in(model: Any, X: Any, views: Sequence[KernelView]) -> Array:
    """Return whether samples have each view; not if all columns of the view are NaN."""
    values = plain(X)
    if hasattr(model, "kernels_"):
        return np.column_stack([present_rows(take_columns(values, v.columns)) for v in views])
    if is_sparse(values) or not np.isnan(values).any():
        return np.ones((values.shape[0], len(views)), dtype=bool)
    # The columns of the views are unknown; a missing view has no weight.
    return np.asarray(weights_by_view(model, X, views) > 0)


def without_searches(model: Any) -> Any:
    """Return the pipeline or estimator that searches, AutoMKL and calibration have fitted.

    Nested pipelines become one. Anything else is returned as it is.
    """
    if isinstance(model, Pipeline):
        *others, (name, last) = model.steps
        last = without_searches(last)
        if last is model.steps[-1][1]:
            return model
        inner = last.steps if isinstance(last, Pipeline) else [("model", last)]
        # Names of steps must differ.
        return Pipeline([*others, *((f"{name} {own}", step) for own, step in inner)])
    inside = fitted_inside(model)
    return model if inside is None else without_searches(inside)


def last_step(model: Any) -> KernelEstimator:
    """Return the estimator of lokl that `model` is, or that ends it as a pipeline."""
    last = model[-1] if isinstance(model, Pipeline) else model
    if not isinstance(last, KernelEstimator):
        remedy = "; fit it first" if hasattr(last, "estimator") else ""
        raise ValueError(
            "the model must be an estimator of lokl, or a pipeline that ends in one, got "
            f"{type(last).__name__}{remedy}"
        )
    return last


def feature_names(model: Any, n_features: int) -> tuple[str, ...]:
    """Return the names of the columns that the last step of a fitted pipeline receives.

    Without names these are x0, x1, ...
    """
    names: Sequence[Any] | None = getattr(last_step(model), "feature_names_in_", None)
    if names is None and isinstance(model, Pipeline) and len(model) > 1:
        others = model[:-1]
        if all(hasattr(step, "get_feature_names_out") for _, step in others.steps):
            names = others.get_feature_names_out()
    return tuple(f"x{c}" for c in range(n_features)) if names is None else tuple(map(str, names))


def transformed(model: Any, X: Any) -> Any:
    """Return samples as the last step of a fitted pipeline receives them."""
    is_longer = isinstance(model, Pipeline) and len(model) > 1
    return as_pandas(model[:-1].transform(X) if is_longer else X)


def views_on(
    model: Any, X: Any, y: Any, views: Mapping[str, Any] | None
) -> tuple[dict[str, Kernel], list[KernelView], Array]:
    """Return the views of an estimator, fitted or not, on samples as it receives them.

    Parameters
    ----------
    model : KernelEstimator
    X, y : samples and targets
    views : mapping of str to columns, optional
        As in :func:`views_of`; columns may also be names.

    Returns
    -------
    kernels : dict of str to Kernel
        Kernels of the estimator as they were given.
    views : list of KernelView
        Two or more. Their columns are those that their kernels read.
    present : bool array of shape (n_samples, n_views)
    """
    copy = clone(model)
    data = copy._validate(X, y, None)
    # The fits that follow give the same warnings.
    bound, _ = capture_warnings(data.bound)
    n_samples, n_features = bound.samples.given.shape
    if views is not None:
        table = data.samples.table
        views = {str(view): resolve_columns(own, table).tolist() for view, own in views.items()}
    found, present = [], []
    for name, own in _kernels_by_view(bound.names, bound.kernels, views):
        if not own:
            continue
        used = [bound.kernels[k].columns_used() for k in own]
        read = set().union(*(range(n_features) if c is None else c for c in used))
        found.append(KernelView(name, tuple(own), tuple(sorted(read))))
        has = bound.samples.present
        present.append(np.ones(n_samples, bool) if has is None else has[:, own].any(axis=1))
    if len(found) < 2:
        raise ValueError(
            f"the model must have two or more views, got one: {found[0].name!r}; give each view "
            "its own kernel, with lokl.kernels.per_view(kernel, views)"
        )
    return dict(zip(data.names, data.given_kernels, strict=True)), found, np.column_stack(present)
