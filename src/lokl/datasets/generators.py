"""Generated data sets in which the best kernel depends on the sample."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.utils import check_random_state

from lokl._arrays import Array
from lokl._parameters import check_choice


def make_two_regions(
    n_samples: int = 400, *, gap: float = 0.2, random_state: Any = None
) -> tuple[Array, Array]:
    """Generate two regions of the plane, one for a quadratic and one for a Gaussian kernel.

    On the left, around (-1.6, 0), classes are opposite quadrants. On the right, around (1.6, 0),
    one class is a disc and the other class surrounds it.

    Parameters
    ----------
    n_samples : int, default=400
        Half of them in each region.
    gap : float, default=0.2
        Width of the empty band between the classes.
    random_state : int, RandomState or None, default=None
        Seed.

    Returns
    -------
    X : array of shape (n_samples, 2)
        Points.
    y : array of shape (n_samples,)
        Labels 0 and 1.

    See Also
    --------
    lokl.datasets.make_views : Views instead of regions.
    lokl.explain.BoundaryDisplay : Figure of a model in the plane.

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
    """Draw `count` allowed samples from the square with half side 1.4."""
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
    """Generate views, each of which separates the classes in one region only.

    A view contains two clouds, ``separation`` standard deviations from their middle. In its own
    region they are the classes; elsewhere the cloud of a sample is random. Every view also shows
    the region: regions differ by a shift orthogonal to the direction between the clouds. With
    linear kernels of the views no fixed mix separates the classes; a gate that is linear in X does.

    Parameters
    ----------
    n_samples : int, default=400
        Number of samples.
    n_views : int, default=3
        At least 2; there are as many regions.
    n_features : int, default=4
        Columns of each view, at least 2.
    separation : float, default=2.0
        Distance of each cloud from the middle, in standard deviations of the noise.
    missing : float, default=0.0
        Share of missing views, which are NaN. Every sample keeps one view, so this is at most
        ``1 - 1 / n_views``.
    random_state : int, RandomState or None, default=None
        Seed.

    Returns
    -------
    X : array of shape (n_samples, n_views * n_features)
        Columns of all views.
    y : array of shape (n_samples,)
        Labels 0 and 1.
    views : dict of str to slice
        Columns of each view, for `lokl.kernels.per_view`.
    region : array of shape (n_samples,)
        Index of the view that separates the classes at each sample.

    See Also
    --------
    lokl.datasets.corrupt_views : Makes some views wrong.
    lokl.kernels.per_view : One kernel for each view.

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
    X[_missing_views(rng, n_samples, n_views, missing)] = np.nan
    views = column_slices([f"view {v + 1}" for v in range(n_views)], [n_features] * n_views)
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
    """Draw noise around points in the plane of two random orthonormal directions."""
    across, along = np.linalg.qr(rng.normal(size=(n_features, 2)))[0].T
    noise = rng.normal(size=(len(shift), n_features))
    return np.asarray(noise + np.outer(shift, across) + np.outer(middle, along))


def _missing_views(rng: np.random.RandomState, n_samples: int, n_views: int, share: float) -> Array:
    """Return a mask with exactly that share of views, and one view kept for each sample."""
    removable = np.arange(n_views) != rng.randint(n_views, size=(n_samples, 1))
    candidates = np.flatnonzero(removable)
    count = min(round(share * n_samples * n_views), len(candidates))
    missing = np.zeros(n_samples * n_views, dtype=bool)
    missing[rng.choice(candidates, size=count, replace=False)] = True
    return missing.reshape(n_samples, n_views)


def column_slices(names: Sequence[str], widths: Sequence[int]) -> dict[str, slice]:
    """Return the columns of each view, if views of these widths stand side by side."""
    ends = np.cumsum(widths).tolist()
    return {name: slice(end - w, end) for name, w, end in zip(names, widths, ends, strict=True)}


_SIDE, _DIRECTIONS = 8, 8


def digit_views() -> dict[str, Any]:
    """Describe scikit-learn's digits by pixels, profiles, spectrum and edges."""
    digits = datasets.load_digits()
    images = digits.images
    blocks = {
        "pixels": images.reshape(len(images), -1),
        "profiles": _profiles(images),
        "spectrum": np.abs(np.fft.rfft2(images)).reshape(len(images), -1),
        "edges": _edges(images),
    }
    widths = {name: block.shape[1] for name, block in blocks.items()}
    return {
        "data": np.hstack(list(blocks.values())),
        "target": digits.target,
        "feature_names": [f"{name} {k}" for name, width in widths.items() for k in range(width)],
        "target_names": digits.target_names,
        "views": column_slices(list(widths), list(widths.values())),
    }


def _profiles(images: Array) -> Array:
    """Return sums along rows, columns and both diagonals."""
    offsets = range(1 - _SIDE, _SIDE)
    falling = [np.trace(images, k, axis1=1, axis2=2) for k in offsets]
    rising = [np.trace(images[:, :, ::-1], k, axis1=1, axis2=2) for k in offsets]
    return np.hstack([images.sum(axis=1), images.sum(axis=2), np.transpose(falling + rising)])


def _edges(images: Array) -> Array:
    """Return the strength of edges by direction in each quarter of the image."""
    down, right = np.gradient(images, axis=(1, 2))
    strength = np.hypot(down, right)
    turn = np.arctan2(down, right) / (2 * np.pi) % 1.0
    direction = np.minimum((_DIRECTIONS * turn).astype(int), _DIRECTIONS - 1)
    by_direction = strength[..., np.newaxis] * (
        direction[..., np.newaxis] == np.arange(_DIRECTIONS)
    )
    quarters = by_direction.reshape(-1, 2, _SIDE // 2, 2, _SIDE // 2, _DIRECTIONS)
    return quarters.sum(axis=(2, 4)).reshape(len(images), -1)


CORRUPTIONS = ("swap", "noise", "missing")


def corrupt_views(
    X: Array,
    y: Array,
    views: Mapping[str, Any],
    how: str = "swap",
    *,
    share: float = 0.4,
    random_state: Any = None,
) -> tuple[Array, Array]:
    """Corrupt one random view of some samples.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Samples.
    y : array of shape (n_samples,)
        Classes; only used by ``how="swap"``.
    views : mapping of str to columns
        Positions, a slice or a mask for each view.
    how : {"swap", "noise", "missing"}, default="swap"
        The view is replaced by the view of a sample of another class, gets normal noise whose
        standard deviation is half the range of each column, or becomes missing (NaN).
    share : float, default=0.4
        Share of samples with a corrupted view.
    random_state : int, RandomState or None, default=None
        Seed.

    Returns
    -------
    X : array of shape (n_samples, n_features)
        A copy.
    corrupted : boolean array of shape (n_samples, n_views)
        Mask of the corrupted views.

    See Also
    --------
    lokl.datasets.make_views : Generates views.
    lokl.TrustedVoteClassifier : Recognises wrong views.

    Examples
    --------
    >>> from lokl.datasets import make_views, corrupt_views
    >>> X, y, views, _ = make_views(100, random_state=0)
    >>> Z, corrupted = corrupt_views(X, y, views, random_state=0)
    >>> Z.shape, corrupted.shape, int(corrupted.sum())
    ((100, 12), (100, 3), 40)
    """
    X, y = np.array(X, dtype=float), np.asarray(y)
    _check_corruption(X, y, how, share)
    rng = check_random_state(random_state)
    columns = [np.arange(X.shape[1])[_positions(view)] for view in views.values()]
    corrupted = np.zeros((len(X), len(columns)), dtype=bool)
    chosen = rng.choice(len(X), round(share * len(X)), replace=False)
    corrupted[chosen, rng.randint(len(columns), size=len(chosen))] = True
    original = X.copy()
    spread = np.ptp(original, axis=0) / 2
    for row, view in np.argwhere(corrupted):
        cells = row, columns[view]
        if how == "swap":
            X[cells] = original[rng.choice(np.flatnonzero(y != y[row])), columns[view]]
        elif how == "noise":
            X[cells] += rng.normal(0.0, spread[columns[view]])
        else:
            X[cells] = np.nan
    return X, corrupted


def _positions(view: Any) -> Any:
    return view if isinstance(view, slice) else np.asarray(view)


def _check_corruption(X: Array, y: Array, how: str, share: float) -> None:
    if X.ndim != 2 or y.shape != X.shape[:1]:
        raise ValueError(
            "X must have rows and columns and y one class for each row, got shapes "
            f"{X.shape} and {y.shape}"
        )
    check_choice("how", how, CORRUPTIONS)
    if not 0 <= share <= 1:
        raise ValueError(f"share must be between 0 and 1, got {share!r}")
    if how == "swap" and len(np.unique(y)) < 2:
        raise ValueError("how='swap' needs samples of two classes, got one class in y")
