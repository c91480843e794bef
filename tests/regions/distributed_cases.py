"""Data and models for tests with Dask collections."""

import os
from itertools import pairwise
from pathlib import Path
from uuid import uuid4

import dask.array as da
import numpy as np
from sklearn.datasets import make_blobs, make_moons

from lokl import RegionClassifier, RegionRegressor, UniformMKLClassifier, UniformMKLRegressor

X, Y = make_moons(700, noise=0.25, random_state=0)
FRESH = make_moons(90, noise=0.3, random_state=1)[0]
BLOBS, COLOURS = make_blobs(700, centers=6, cluster_std=1.5, random_state=0)
COLOURS = np.array(["red", "green", "blue"])[COLOURS % 3]
TARGET = np.sin(3 * X[:, 0]) + X[:, 1]


def classifier(estimator=None, **settings):
    estimator = UniformMKLClassifier(["linear", "rbf"], C=3.0) if estimator is None else estimator
    return RegionClassifier(estimator, **{"max_region_size": 90, "random_state": 0, **settings})


def regressor(estimator=None, **settings):
    estimator = UniformMKLRegressor(["rbf"], C=3.0) if estimator is None else estimator
    return RegionRegressor(estimator, **{"max_region_size": 90, "random_state": 0, **settings})


def dask(values, chunks):
    """A dask array in rows of these chunks, some of which may be empty."""
    if isinstance(chunks, int):
        return da.from_array(values, chunks=(chunks, *values.shape[1:]))
    ends, name = np.cumsum([0, *chunks]), f"parts-{uuid4()}"
    parts = {
        (name, index, *[0] * (values.ndim - 1)): values[first:last]
        for index, (first, last) in enumerate(pairwise(ends))
    }
    shape = (tuple(chunks), *((width,) for width in values.shape[1:]))
    # Functions that join arrays leave empty ones out.
    return da.Array(parts, name, shape, meta=values[:0]).map_blocks(np.copy)


def check_same(fitted, plain, fresh=FRESH):
    """Check that two models are equal, to the last bit."""
    assert type(fitted) is type(plain)
    for tree, expected in zip(fitted.trees_, plain.trees_, strict=True):
        for name in ("directions", "offsets", "bands", "is_split", "fill_values"):
            np.testing.assert_array_equal(getattr(tree, name), getattr(expected, name))
    for sizes, expected in zip(fitted.region_sizes_, plain.region_sizes_, strict=True):
        np.testing.assert_array_equal(sizes, expected)
    assert fitted.kernel_names_ == plain.kernel_names_
    assert fitted.n_features_in_ == plain.n_features_in_
    assert set(vars(fitted)) == set(vars(plain))
    np.testing.assert_array_equal(fitted._row_hashes, plain._row_hashes)
    method = "decision_function" if hasattr(plain, "classes_") else "predict"
    np.testing.assert_array_equal(getattr(fitted, method)(fresh), getattr(plain, method)(fresh))


class Fragile(UniformMKLClassifier):
    """Estimator whose first fit of all ends its process."""

    def fit(self, X, y, sample_weight=None):
        # The worker that replaces a lost one does not have the variable.
        if "LOKL_TEST_MARKER" in os.environ:
            die_once(os.environ["LOKL_TEST_MARKER"])
        return super().fit(X, y, sample_weight)


def make_fragile(marker):
    """Make the next fit of a fragile estimator end this process."""
    os.environ["LOKL_TEST_MARKER"] = marker


def die_once(marker):
    """End this process, unless the marker shows that one has ended before."""
    try:
        Path(marker).touch(exist_ok=False)
    except FileExistsError:
        return
    os._exit(9)


def fragile_block(block, marker, block_info=None):
    """Return a block; the second reading of the third block ends the process."""
    if block_info[0]["chunk-location"][0] == 2:
        read_before = Path(f"{marker}.read")
        if read_before.exists():
            die_once(marker)
        read_before.touch()
    return block
