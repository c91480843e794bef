"""Generated problems in which the right kernel depends on the place."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from lokl._arrays import Array


def make_two_regions(
    n_samples: int = 400, *, gap: float = 0.2, random_state: Any = None
) -> tuple[Array, Array]:
    """Two regions of the plane, one for a quadratic and one for a Gaussian kernel.

    On the left, around (-1.6, 0), classes are opposite quadrants; on the right, around (1.6, 0),
    one class is a disc and the other what lies around it.

    Parameters
    ----------
    n_samples : int, default=400
        Half of them in each region.
    gap : float, default=0.2
        Width of the empty band between the classes.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    X : array of shape (n_samples, 2)
    y : array of shape (n_samples,)
        Labels 0 and 1.

    Examples
    --------
    >>> from lokl.datasets import make_two_regions
    >>> X, y = make_two_regions(100, random_state=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((100, 2), [0, 1])
    """
    if n_samples < 4:
        raise ValueError(f"n_samples must be at least 4, got {n_samples!r}")
    if not 0 <= gap < 1:
        raise ValueError(f"gap must be at least 0 and below 1, got {gap!r}")
    rng = check_random_state(random_state)
    left = n_samples // 2
    quadrants = _sample(rng, left, lambda U: np.abs(U).min(axis=1) > gap / 2)
    disc = _sample(
        rng, n_samples - left, lambda U: np.abs(np.linalg.norm(U, axis=1) - 0.7) > gap / 2
    )
    middle = np.array([1.6, 0.0])
    X = np.vstack([quadrants - middle, disc + middle])
    y = np.concatenate([quadrants.prod(axis=1) > 0, np.linalg.norm(disc, axis=1) < 0.7])
    order = rng.permutation(n_samples)
    return X[order], y[order].astype(int)


def _sample(rng: np.random.RandomState, count: int, allowed: Any) -> Array:
    """Draw from the square with half side 1.4 and keep `count` samples that are allowed."""
    kept = np.empty((0, 2))
    while len(kept) < count:
        drawn = rng.uniform(-1.4, 1.4, size=(4 * count, 2))
        kept = np.vstack([kept, drawn[allowed(drawn)]])
    return kept[:count]


def make_views(
    n_samples: int = 400,
    n_views: int = 3,
    *,
    n_features: int = 4,
    separation: float = 2.0,
    missing: float = 0.0,
    random_state: Any = None,
) -> tuple[Array, Array, dict[str, slice], Array]:
    """Several views, each of which knows the class in one region only.

    A view shows two clouds, ``separation`` standard deviations from their middle. In its own region
    they are the classes; elsewhere the cloud of a sample is random. Every view shows the region,
    too: regions differ by a shift orthogonal to the direction between the clouds. With linear
    kernels of the views no fixed mix can tell the classes apart; a gate that is linear in X can.

    Parameters
    ----------
    n_samples : int, default=400
    n_views : int, default=3
        At least 2; there are as many regions.
    n_features : int, default=4
        Columns of each view, at least 2.
    separation : float, default=2.0
        Distance of each cloud from the middle, in standard deviations of the noise.
    missing : float, default=0.0
        Share of views that samples lack, in NaN; every sample keeps one, so this is at most
        ``1 - 1 / n_views``.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    X : array of shape (n_samples, n_views * n_features)
    y : array of shape (n_samples,)
        Labels 0 and 1.
    views : dict of str to slice
        Columns of each view, for `lokl.kernels.per_view`.
    region : array of shape (n_samples,)
        Position of the view that knows the class.

    Examples
    --------
    >>> from lokl.datasets import make_views
    >>> X, y, views, region = make_views(100, 2, missing=0.25, random_state=0)
    >>> X.shape, views
    ((100, 8), {'view 1': slice(0, 4, None), 'view 2': slice(4, 8, None)})
    """
    _check_views(n_samples, n_views, n_features, missing)
    rng = check_random_state(random_state)
    region = rng.randint(n_views, size=n_samples)
    y = rng.randint(2, size=n_samples)
    middle = 2.0 * separation * (region - (n_views - 1) / 2)
    X = np.empty((n_samples, n_views, n_features))
    for view in range(n_views):
        cloud = np.where(region == view, y, rng.randint(2, size=n_samples))
        X[:, view] = _clouds(rng, separation * (2 * cloud - 1), middle, n_features)
    X[_lost(rng, n_samples, n_views, missing)] = np.nan
    views = {f"view {v + 1}": slice(v * n_features, (v + 1) * n_features) for v in range(n_views)}
    return X.reshape(n_samples, -1), y, views, region


def _check_views(n_samples: int, n_views: int, n_features: int, missing: float) -> None:
    if n_samples < 1 or n_views < 2 or n_features < 2:
        raise ValueError(
            "make_views needs n_samples of at least 1, n_views and n_features of at least 2; "
            f"got {n_samples!r}, {n_views!r} and {n_features!r}"
        )
    if not 0 <= missing <= 1 - 1 / n_views:
        raise ValueError(
            f"missing must be at least 0 and at most 1 - 1 / n_views = {1 - 1 / n_views:.3g}, "
            f"so that every sample keeps a view; got {missing!r}"
        )


def _clouds(rng: np.random.RandomState, shift: Array, middle: Array, n_features: int) -> Array:
    """Draw noise around points that two orthonormal, random directions span."""
    across, along = np.linalg.qr(rng.normal(size=(n_features, 2)))[0].T
    noise = rng.normal(size=(len(shift), n_features))
    return np.asarray(noise + np.outer(shift, across) + np.outer(middle, along))


def _lost(rng: np.random.RandomState, n_samples: int, n_views: int, share: float) -> Array:
    """Mask of lost views: exactly that share of all, and one kept for each sample."""
    may_go = np.arange(n_views) != rng.randint(n_views, size=(n_samples, 1))
    candidates = np.flatnonzero(may_go)
    count = min(round(share * n_samples * n_views), len(candidates))
    lost = np.zeros(n_samples * n_views, dtype=bool)
    lost[rng.choice(candidates, size=count, replace=False)] = True
    return lost.reshape(n_samples, n_views)
