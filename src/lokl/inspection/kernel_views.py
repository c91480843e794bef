"""Which kernels of a fitted model belong to which view."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lokl._arrays import Array, is_sparse

Views = Mapping[str, Sequence[int]]


def plain(X: Any) -> Any:
    """Return samples without the names of their columns."""
    return X.to_numpy(dtype=float) if hasattr(X, "to_numpy") else X


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
    trust = np.asarray(model.trust(X) if own else model.gate(X), dtype=float)
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
