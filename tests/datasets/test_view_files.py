"""Views side by side, from files made here."""

import bz2
import io
from dataclasses import replace

import numpy as np
import pytest
from scipy.io import savemat

from lokl.datasets import DatasetError, info, load
from lokl.datasets.registry import RECORDS


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder named by LOKL_DATA, with small sets under the names of two real ones."""
    monkeypatch.setenv("LOKL_DATA", str(tmp_path))
    monkeypatch.setenv("LOKL_CACHE", str(tmp_path / "cache"))
    for name, n, d in (("webkb", 3, 5), ("breast_tcga", 2, 3)):
        monkeypatch.setitem(RECORDS, name, replace(info(name), n=n, d=d, sha256=None))
    (tmp_path / "multiview" / "breast_tcga").mkdir(parents=True)
    return tmp_path


def matlab(last=8.0, labels=(1, 2, 1)):
    cells = np.empty((2, 1), dtype=object)
    cells[0, 0] = np.arange(6, dtype=np.uint8).reshape(3, 2)
    cells[1, 0] = np.array([*range(8), last], dtype=float).reshape(3, 3)
    content = io.BytesIO()
    savemat(content, {"X": cells, "y": np.reshape(labels, (3, 1))})
    return content.getvalue()


@pytest.mark.parametrize("end", ["", ".bz2"])
def test_cells_of_matlab(own, end):
    content = bz2.compress(matlab()) if end else matlab()
    (own / f"multiview/WebKB.mat{end}").write_bytes(content)
    found = load("webkb")
    assert found.views == {"anchor": slice(0, 2), "content": slice(2, 5)}
    np.testing.assert_array_equal(found.data[:, found.views["anchor"]], [[0, 1], [2, 3], [4, 5]])
    assert found.data.dtype == float
    assert found.target.tolist() == [1, 2, 1]


def test_samples_of_matlab_may_be_columns(own):
    cells = np.empty((1, 2), dtype=object)
    cells[0, 0] = np.arange(6.0).reshape(3, 2).T
    cells[0, 1] = np.arange(9.0).reshape(3, 3)
    content = io.BytesIO()
    savemat(content, {"X": cells, "gt": [[1], [2], [1]]})
    (own / "multiview/WebKB.mat").write_bytes(content.getvalue())
    found = load("webkb")
    np.testing.assert_array_equal(found.data[:, found.views["anchor"]], [[0, 1], [2, 3], [4, 5]])
    assert found.target.tolist() == [1, 2, 1]


def test_frames_keep_names(own):
    write_tables(own)
    (own / "multiview/WebKB.mat").write_bytes(matlab())
    found, plain = load("breast_tcga", as_frame=True), load("breast_tcga")
    for part, ids in (("data", ["A", "B"]), ("data_test", ["C"])):
        assert list(found[part].index) == ids
        assert list(found[part].columns) == plain.feature_names
        np.testing.assert_array_equal(found[part], plain[part])
    columns = load("webkb", as_frame=True).data.columns
    assert list(columns) == ["anchor 0", "anchor 1", "content 0", "content 1", "content 2"]


@pytest.mark.parametrize("length", [0, 100, 200, 300])
def test_a_damaged_matlab_file_is_named(own, length):
    (own / "multiview/WebKB.mat").write_bytes(matlab()[:length])
    with pytest.raises(DatasetError, match=r"WebKB\.mat .*webkb"):
        load("webkb")


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"last": np.nan}, "row 3, column 3 of content is nan"),
        ({"last": -np.inf}, "row 3, column 3 of content is -inf"),
        ({"labels": (1, np.nan, 1)}, "row 2, column 1 of the labels is nan"),
    ],
)
def test_a_matlab_file_with_values_that_are_not_finite(own, changes, place):
    (own / "multiview/WebKB.mat").write_bytes(matlab(**changes))
    with pytest.raises(DatasetError, match=rf"WebKB\.mat: {place}"):
        load("webkb")


@pytest.mark.parametrize("file", ["mirna_train.csv", "mrna_test.csv"])
def test_a_table_with_values_that_are_not_finite(own, file):
    write_tables(own)
    (own / "multiview" / "breast_tcga" / file).write_text("sample,gene\nA,0\nB,inf\n")
    with pytest.raises(DatasetError, match=rf"{file}: row 2, column 1 is inf"):
        load("breast_tcga")


def write_tables(own):
    folder = own / "multiview" / "breast_tcga"
    for k, view in enumerate(("mrna", "mirna", "protein")):
        text = f"sample,gene{k}\nA,{k}.5\nB,{k}e-2\n".encode()
        (folder / f"{view}_train.csv.bz2").write_bytes(bz2.compress(text))
    for view in ("mrna", "mirna"):
        (folder / f"{view}_test.csv").write_text("sample,gene\nC,7\n")
    (folder / "subtype_train.csv").write_text("subtype\nBasal\nLumA\n")
    (folder / "subtype_test.csv").write_text("subtype\nHer2\n")
    return folder


def test_tables_with_a_test_part(own):
    folder = write_tables(own)
    found = load("breast_tcga")
    np.testing.assert_array_equal(found.data, [[0.5, 1.5, 2.5], [0, 0.01, 0.02]])
    np.testing.assert_array_equal(found.data_test, [[7, 7, np.nan]])
    assert found.target.tolist() == ["Basal", "LumA"]
    assert found.target_test.tolist() == ["Her2"]
    assert found.views["protein"] == slice(2, 3)
    assert found.feature_names == ["gene0", "gene1", "gene2"]
    assert (found.sample_names, found.sample_names_test) == (["A", "B"], ["C"])
    # A set of which one file is missing is not there.
    (folder / "subtype_test.csv").unlink()
    with pytest.raises(DatasetError, match="breast_tcga"):
        load("breast_tcga", download=False)
