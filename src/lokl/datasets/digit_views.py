"""Small images of digits, described in four ways."""

from typing import Any

import numpy as np
from sklearn import datasets

from lokl._arrays import Array

_SIDE, _DIRECTIONS = 8, 8


def digit_views() -> dict[str, Any]:
    """Describe scikit-learn's digits by pixels, profiles, spectrum and edges."""
    theirs = datasets.load_digits()
    images = theirs.images
    described = {
        "pixels": images.reshape(len(images), -1),
        "profiles": _profiles(images),
        "spectrum": np.abs(np.fft.rfft2(images)).reshape(len(images), -1),
        "edges": _edges(images),
    }
    ends = np.cumsum([block.shape[1] for block in described.values()]).tolist()
    slices = map(slice, [0, *ends], ends)
    return {
        "data": np.hstack(list(described.values())),
        "target": theirs.target,
        "feature_names": [
            f"{name} {k}" for name, block in described.items() for k in range(block.shape[1])
        ],
        "target_names": theirs.target_names,
        "views": dict(zip(described, slices, strict=False)),
    }


def _profiles(images: Array) -> Array:
    """Return sums along rows, columns and both diagonals."""
    offsets = range(1 - _SIDE, _SIDE)
    falling = [np.trace(images, k, axis1=1, axis2=2) for k in offsets]
    rising = [np.trace(images[:, :, ::-1], k, axis1=1, axis2=2) for k in offsets]
    return np.hstack([images.sum(axis=1), images.sum(axis=2), np.transpose(falling + rising)])


def _edges(images: Array) -> Array:
    """Return how much edge of each direction each quarter of the image has."""
    down, right = np.gradient(images, axis=(1, 2))
    strength = np.hypot(down, right)
    turn = np.arctan2(down, right) / (2 * np.pi) % 1.0
    direction = np.minimum((_DIRECTIONS * turn).astype(int), _DIRECTIONS - 1)
    half = _SIDE // 2
    return np.stack(
        [
            np.where(direction == k, strength, 0.0)[:, top : top + half, left : left + half].sum(
                axis=(1, 2)
            )
            for top in (0, half)
            for left in (0, half)
            for k in range(_DIRECTIONS)
        ],
        axis=1,
    )
