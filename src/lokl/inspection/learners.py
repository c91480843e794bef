"""The estimator of this library in what is inspected: it alone, or the last step of a pipeline."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from lokl._arrays import Array
from lokl._notices import apart
from lokl.estimators._base.learner import Learner
from lokl.kernels import Kernel
from lokl.kernels.columns import column_names, resolve_columns


def learner_of(model: Any, asked: str) -> Learner:
    """Return the estimator of this library; `asked` is who asks, for the error."""
    last = model[-1] if isinstance(model, Pipeline) else model
    if not isinstance(last, Learner):
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
    learner: Learner, X: Any, y: Any, views: Mapping[str, Any] | None, asked: str
) -> Viewed:
    """Find the views of an estimator on samples that its kernels read.

    Parameters
    ----------
    learner : Learner
        Fitted or not.
    X, y : samples and targets
    views : mapping of str to columns, optional
        A kernel belongs to the view that has all its columns. Without it, kernels on the same
        columns are a view, and a kernel on all columns is one by itself.
    asked : str
        Who asks, for the errors.
    """
    copy = clone(learner)
    data = copy._read(X, y, None)
    # Fits that follow have the same to tell.
    ready, _ = apart(copy._bind, data)
    n_samples, n_features = data.X.shape
    present = ready.samples.present
    if present is None:
        present = np.ones((n_samples, len(ready.kernels)), dtype=bool)
    names = list(data.kernels)
    if views is None:
        groups = _by_columns(names, ready.kernels)
    else:
        known = column_names(data.X if data.frame is None else data.frame)
        columns = {
            str(view): set(resolve_columns(own, n_features, known, data.frame).tolist())
            for view, own in views.items()
        }
        groups = _by_names(names, ready.kernels, columns, asked)
    found = []
    for view, places in groups.items():
        used = [ready.kernels[i].columns_used() for i in places]
        read = {c for own in used for c in (range(n_features) if own is None else own)}
        own = tuple(names[i] for i in places)
        found.append(View(view, own, tuple(sorted(read)), present[:, places].any(axis=1)))
    if len(found) < 2:
        raise ValueError(
            f"{asked} needs a model of two or more views, got one: {found[0].name!r}; give each "
            "view its own kernel, with lokl.kernels.per_view(kernel, views)"
        )
    return Viewed(data.kernels, tuple(found))


def _by_columns(names: list[str], kernels: list[Kernel]) -> dict[str, list[int]]:
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
