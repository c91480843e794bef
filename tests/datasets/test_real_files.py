"""Every file of LOKL_DATA is what the registry says."""

import os
from pathlib import Path

import numpy as np
import pytest

from lokl import UniformMKLClassifier
from lokl.datasets import available, info, load
from lokl.datasets.loader import find
from lokl.kernels import RBF, per_view

FOLDER = Path(os.environ.get("LOKL_DATA") or "nowhere")
STORED = [name for name in available() if info(name).files and find(info(name), FOLDER)]
LARGE = "covtype.libsvm.binary.scale"
WIDTHS = {
    "mfeat": [216, 76, 64, 6, 240, 47],
    "protein_fold": [27] * 12,
    "webkb": [1840, 3000],
    "msrc": [24, 576, 512, 256, 254],
    "prokaryotic": [393, 3, 438],
    "scene15": [20, 59, 40],
    "leaves": [64] * 3,
    "bbcsport": [3183, 3203],
    "reuters": [2000] * 5,
    "breast_tcga": [200, 184, 142],
}


@pytest.fixture
def stored(lokl_data, tmp_path, monkeypatch):
    """Load a set of LOKL_DATA."""
    monkeypatch.setenv("LOKL_CACHE", str(tmp_path))

    def read(name):
        return load(name, download=False)

    return read


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n == LARGE else n for n in STORED]
)
def test_shape_classes_and_sha256(stored, name):
    found, record = stored(name), info(name)
    assert found.data.shape == (record.n, record.d)
    counts = dict(zip(*np.unique(found.target, return_counts=True), strict=True))
    assert counts.keys() == record.classes.keys()
    assert all(count in (None, counts[label]) for label, count in record.classes.items())
    assert found.checked or record.sha256 is None


@pytest.mark.parametrize("name", [name for name in WIDTHS if name in STORED])
def test_views_are_side_by_side(stored, name):
    found = stored(name)
    assert tuple(found.views) == info(name).views
    assert [view.stop - view.start for view in found.views.values()] == WIDTHS[name]
    ends = [0, *(view.stop for view in found.views.values())]
    assert [view.start for view in found.views.values()] == ends[:-1]
    assert ends[-1] == found.data.shape[1]
    assert not np.isnan(found.data).any()


@pytest.mark.skipif("breast_tcga" not in STORED, reason="LOKL_DATA has no breast_tcga")
def test_the_test_part_lacks_the_proteins(stored):
    found = stored("breast_tcga")
    missing = np.isnan(found.data_test)
    assert missing[:, found.views["protein"]].all()
    assert not missing[:, : found.views["protein"].start].any()
    assert dict(zip(*np.unique(found.target_test, return_counts=True), strict=True)) == {
        "Basal": 21,
        "Her2": 14,
        "LumA": 35,
    }
    kernels = per_view(RBF("scale"), found.views)
    model = UniformMKLClassifier(kernels, C=10.0).fit(found.data, found.target)
    assert model.score(found.data_test, found.target_test) > 0.8
