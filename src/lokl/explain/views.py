"""Which kernels of a fitted model belong to which view.

The estimator of this library in what is inspected: it alone, or the last step of a pipeline.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from lokl._arrays import Array, is_sparse
from lokl._warnings import capture_warnings
from lokl.base.estimator import KernelEstimator
from lokl.kernels import Kernel
from lokl.kernels.columns import column_names, resolve_columns

Views = Mapping[str, Sequence[int]]


def plain(X: Any) -> Any:
    """Return samples without the names of their columns."""
    return X.to_numpy(dtype=float) if hasattr(X, "to_numpy") else X


def named_views(model: Any, views: Views | None) -> Views | None:
    """Return `views`, or those of the tables that a fitted pipeline begins with."""
    if views is None and hasattr(model, "steps"):
        views = getattr(model.steps[0][1], "prepared_views_", None)
    return views


@dataclass(frozen=True)
class KernelView:
    """One view of a fitted model: kernels on the same columns."""

    name: str
    kernels: tuple[int, ...]  # none where the model has dropped them all
    columns: tuple[int, ...] | None  # None for all


def views_of(model: Any, views: Views | None = None) -> list[KernelView]:
    """Return the views of an estimator.

    Parameters
    ----------
    model : fitted estimator
    views : mapping of str to positions of columns, optional
        A kernel belongs to the view that has all its columns. Without it, kernels on the same
        columns are a view, which kernels that are called "view: kind" name; others are views by
        themselves.
    """
    names = [str(name) for name in model.kernel_names_]
    kernels = getattr(model, "kernels_", None)
    if views is not None and len(views) == 1:
        ((name, columns),) = views.items()
        return [KernelView(name, tuple(range(len(names))), tuple(columns))]
    if kernels is None:
        return [KernelView(name, (k,), None) for k, name in enumerate(names)]
    if views is not None:
        return _by_columns(names, kernels, views)
    groups: dict[Any, list[int]] = {}
    for k, kernel in enumerate(kernels):
        used = kernel.columns_used()
        own: Any = k if used is None or kernel.is_stored or not kernel.is_view else tuple(used)
        groups.setdefault(own, []).append(k)
    return [
        KernelView(_common([names[k] for k in own]), tuple(own), kernels[own[0]].columns_used())
        for own in groups.values()
    ]


def _by_columns(names: list[str], kernels: Any, views: Views) -> list[KernelView]:
    groups: dict[str, list[int]] = {view: [] for view in views}
    for k, kernel in enumerate(kernels):
        used = kernel.columns_used()
        home = next((v for v, own in views.items() if used and set(used) <= set(own)), None)
        if home is None:
            raise ValueError(
                f"kernel {names[k]!r} reads columns of several views, so that their parts cannot "
                f"be told apart; the views are {', '.join(map(repr, views))}"
            )
        groups[home].append(k)
    return [KernelView(view, tuple(own), tuple(views[view])) for view, own in groups.items()]


def _common(names: list[str]) -> str:
    begins = {name.partition(": ")[0] for name in names}
    return begins.pop() if len(begins) == 1 and len(names) > 1 else ", ".join(names)


def by_view(values: Array, views: Sequence[KernelView], merge: Any) -> Array:
    """Return numbers of kernels, on the last axis, as numbers of views; 0 without kernels."""
    found = [
        merge(values[..., view.kernels], axis=-1) if view.kernels else np.zeros(values.shape[:-1])
        for view in views
    ]
    return np.stack(found, axis=-1)


def trust_in_views(model: Any, X: Any, views: Sequence[KernelView]) -> tuple[Array, bool]:
    """Return how far each view is trusted, and whether trust is divided between them."""
    own = hasattr(model, "trust")
    trust = np.asarray(model.trust(X) if own else model.weights(X), dtype=float)
    trust = trust if trust.ndim == 2 else trust.mean(axis=1)
    # Shares of kernels add up; a view is trusted as far as the best of its kernels.
    return by_view(trust, views, np.max if own else np.sum), not own


def present_in(model: Any, X: Any, views: Sequence[KernelView]) -> Array:
    """Return whether samples have views: not where all columns of a view are NaN."""
    values = plain(X)
    present = np.ones((values.shape[0], len(views)), dtype=bool)
    if is_sparse(values) or not np.isnan(values).any():
        return present
    if not hasattr(model, "kernels_"):
        # Who knows no kernels of its own gives no part to a view that is not there.
        return np.asarray(trust_in_views(model, X, views)[0] > 0)
    for k, view in enumerate(views):
        if view.columns:
            present[:, k] = ~np.isnan(values[:, list(view.columns)]).all(axis=1)
    return present


def learner_of(model: Any, asked: str) -> KernelEstimator:
    """Return the estimator of this library; `asked` is who asks, for the error."""
    last = model[-1] if isinstance(model, Pipeline) else model
    if not isinstance(last, KernelEstimator):
        found = getattr(last, "best_estimator_", None)
        remedy = "; give its best_estimator_" if found is not None else ""
        raise ValueError(
            f"{asked} takes an estimator of lokl, or a pipeline that ends in one, got "
            f"{type(last).__name__}{remedy}"
        )
    return last


def seen_by_learner(model: Any, X: Any) -> Any:
    """Return samples as the last step of a fitted pipeline sees them."""
    return model[:-1].transform(X) if isinstance(model, Pipeline) and len(model) > 1 else X


def fitted_to_see(model: Any, X: Any, y: Any) -> Any:
    """Return training samples as the last step of an unfitted pipeline would see them."""
    if isinstance(model, Pipeline) and len(model) > 1:
        return clone(model[:-1]).fit_transform(X, y)
    return X


@dataclass(frozen=True, eq=False)
class View:
    """One view of a model: kernels on the same columns, and who has them."""

    name: str
    kernels: tuple[str, ...]
    columns: tuple[int, ...]  # that its kernels read
    present: Array  # (n_samples,), False where a sample lacks the view


@dataclass(frozen=True, eq=False)
class Viewed:
    """Kernels of an estimator by name, as it was given them, and the views they belong to."""

    kernels: dict[str, Kernel]
    views: tuple[View, ...]


def read_views(
    learner: KernelEstimator, X: Any, y: Any, views: Mapping[str, Any] | None, asked: str
) -> Viewed:
    """Find the views of an estimator on samples that its kernels read.

    Parameters
    ----------
    learner : KernelEstimator
        Fitted or not.
    X, y : samples and targets
    views : mapping of str to columns, optional
        A kernel belongs to the view that has all its columns. Without it, kernels on the same
        columns are a view, and a kernel on all columns is one by itself.
    asked : str
        Who asks, for the errors.
    """
    copy = clone(learner)
    data = copy._validate(X, y, None)
    # Fits that follow have the same to tell.
    (_, kernels, samples), _ = capture_warnings(data.bound)
    n_samples, n_features = data.X.shape
    present = samples.present
    if present is None:
        present = np.ones((n_samples, len(kernels)), dtype=bool)
    names = list(data.kernels)
    if views is None:
        groups = _views_by_columns(names, kernels)
    else:
        known = column_names(data.X if data.frame is None else data.frame)
        columns = {
            str(view): set(resolve_columns(own, n_features, known, data.frame).tolist())
            for view, own in views.items()
        }
        groups = _by_names(names, kernels, columns, asked)
    found = []
    for view, places in groups.items():
        used = [kernels[i].columns_used() for i in places]
        read = {c for own in used for c in (range(n_features) if own is None else own)}
        own = tuple(names[i] for i in places)
        found.append(View(view, own, tuple(sorted(read)), present[:, places].any(axis=1)))
    if len(found) < 2:
        raise ValueError(
            f"{asked} needs a model of two or more views, got one: {found[0].name!r}; give each "
            "view its own kernel, with lokl.kernels.per_view(kernel, views)"
        )
    return Viewed(data.kernels, tuple(found))


def _views_by_columns(names: list[str], kernels: list[Kernel]) -> dict[str, list[int]]:
    """Kernels that were put on the same columns; their names together name the view."""
    groups: dict[Any, list[int]] = {}
    for i, kernel in enumerate(kernels):
        # Without columns of its own, a kernel is its own description of the samples.
        used = kernel.columns_used()
        own: Any = i if used is None or kernel.is_stored else frozenset(used)
        groups.setdefault(own, []).append(i)
    return {", ".join(names[i] for i in places): places for places in groups.values()}


def _by_names(
    names: list[str], kernels: list[Kernel], views: dict[str, set[int]], asked: str
) -> dict[str, list[int]]:
    """Kernels whose columns all belong to a view."""
    groups: dict[str, list[int]] = {view: [] for view in views}
    for i, kernel in enumerate(kernels):
        used = kernel.columns_used()
        home = next((v for v, own in views.items() if used is not None and set(used) <= own), None)
        if home is None:
            raise ValueError(
                f"{asked}: kernel {names[i]!r} reads columns outside of any one of the views "
                f"{', '.join(map(repr, views))}; put it on the columns of one with .on(columns), "
                "or leave views out"
            )
        groups[home].append(i)
    return {view: places for view, places in groups.items() if places}
