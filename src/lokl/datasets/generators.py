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
    """Uniform samples of the square with half side 1.4 that are allowed."""
    kept = np.empty((0, 2))
    while len(kept) < count:
        drawn = rng.uniform(-1.4, 1.4, size=(4 * count, 2))
        kept = np.vstack([kept, drawn[allowed(drawn)]])
    return kept[:count]
