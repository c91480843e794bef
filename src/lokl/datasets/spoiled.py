"""Views that are wrong, noisy or absent at some samples, to see what a model does about it."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from lokl._arrays import Array

KINDS = ("swap", "noise", "missing")


def spoil_views(
    X: Array,
    y: Array,
    views: Mapping[str, Any],
    how: str = "swap",
    *,
    share: float = 0.4,
    random_state: Any = None,
) -> tuple[Array, Array]:
    """Spoil one random view of some samples.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
    y : array of shape (n_samples,)
        Classes; only ``how="swap"`` looks at them.
    views : mapping of str to columns
        Positions, a slice or a mask for each view.
    how : {"swap", "noise", "missing"}, default="swap"
        The view is replaced by that of a sample of another class, has normal noise added whose
        standard deviation is half the range of each column, or is lost (NaN).
    share : float, default=0.4
        Share of the samples that are spoiled.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    X : array of shape (n_samples, n_features)
        A copy.
    spoiled : boolean array of shape (n_samples, n_views)
        Which views are no longer as they were.

    Examples
    --------
    >>> from lokl.datasets import make_views, spoil_views
    >>> X, y, views, _ = make_views(100, random_state=0)
    >>> Z, spoiled = spoil_views(X, y, views, random_state=0)
    >>> Z.shape, spoiled.shape, int(spoiled.sum())
    ((100, 12), (100, 3), 40)
    """
    X, y = np.array(X, dtype=float), np.asarray(y)
    _check(X, y, how, share)
    rng = check_random_state(random_state)
    columns = [np.arange(X.shape[1])[_positions(view)] for view in views.values()]
    spoiled = np.zeros((len(X), len(columns)), dtype=bool)
    chosen = rng.choice(len(X), round(share * len(X)), replace=False)
    spoiled[chosen, rng.randint(len(columns), size=len(chosen))] = True
    given = X.copy()
    spread = np.ptp(given, axis=0) / 2
    for row, view in np.argwhere(spoiled):
        where = columns[view]
        if how == "swap":
            X[row, where] = given[rng.choice(np.flatnonzero(y != y[row])), where]
        elif how == "noise":
            X[row, where] += rng.normal(0.0, spread[where])
        else:
            X[row, where] = np.nan
    return X, spoiled


def _positions(view: Any) -> Any:
    return view if isinstance(view, slice) else np.asarray(view)


def _check(X: Array, y: Array, how: str, share: float) -> None:
    if X.ndim != 2 or y.shape != X.shape[:1]:
        raise ValueError(
            "X must have rows and columns and y one class for each row, got shapes "
            f"{X.shape} and {y.shape}"
        )
    if how not in KINDS:
        raise ValueError(f"how must be one of {', '.join(KINDS)}, got {how!r}")
    if not 0 <= share <= 1:
        raise ValueError(f"share must be between 0 and 1, got {share!r}")
    if how == "swap" and len(np.unique(y)) < 2:
        raise ValueError("views are swapped between classes, and all samples have the same one")
