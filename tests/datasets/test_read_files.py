"""Files in memory, read in blocks: the same samples, and little more memory than they take."""

import bz2
import gzip
import io
import tempfile
import tracemalloc
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from dataset_cases import tiny
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from lokl.datasets import DatasetError, load, read
from lokl.datasets.readers import READERS, TableFile
from lokl.datasets.registry import RECORDS
from lokl.tables import read_table

RNG = np.random.RandomState(0)
VALUES = RNG.normal(size=(8_000, 12)).round(3)
LABELS = RNG.randint(0, 3, size=8_000)
BLOCK = 2**14


def write_libsvm(path, zero_based=False):
    text = io.BytesIO()
    dump_svmlight_file(VALUES, LABELS, text, zero_based=zero_based)
    pack = {".bz2": bz2.compress, ".gz": gzip.compress}.get(path.suffix, bytes)
    path.write_bytes(pack(text.getvalue()))
    return path


def write_table(path):
    frame = pd.DataFrame(VALUES, columns=[f"c{j}" for j in range(12)])
    frame = frame.assign(kind=np.array(["a", "b", "c"])[LABELS])
    if path.suffix == ".parquet":
        frame.to_parquet(path, row_group_size=3000)
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")
    return path


@pytest.mark.parametrize("zero_based", [False, True])
@pytest.mark.parametrize("name", ["own", "own.bz2", "own.txt.gz"])
def test_libsvm_text_is_what_scikit_learn_reads(tmp_path, name, zero_based):
    path = write_libsvm(tmp_path / name, zero_based)
    X, y = load_svmlight_file(str(path))
    found = read(path, block_size=BLOCK)
    np.testing.assert_array_equal(found.data, X.toarray())
    np.testing.assert_array_equal(found.target, y)
    csr = read(path, sparse=True, dtype=np.float32, n_features=15, block_size=BLOCK)
    assert csr.data.shape == (8_000, 15)
    assert csr.data.dtype == np.float32
    assert csr.data.indices.dtype == np.int32
    np.testing.assert_allclose(csr.data.toarray()[:, :12], X.toarray(), rtol=1e-6)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.tsv", "t.parquet"])
def test_tables_are_what_pandas_reads(tmp_path, name):
    path = write_table(tmp_path / name)
    found = read(path, "kind", block_size=BLOCK)
    np.testing.assert_array_equal(found.data, VALUES)
    assert list(found.target[:50]) == [["a", "b", "c"][label] for label in LABELS[:50]]
    assert found.feature_names == [f"c{j}" for j in range(12)]
    some = read(path, columns=["c3", "c1"], dtype=np.float32)
    np.testing.assert_array_equal(some.data, VALUES[:, [3, 1]].astype(np.float32))
    assert some.target is None


def test_arrays_of_a_file_are_samples_and_their_target(tmp_path):
    np.savez(tmp_path / "t.npz", near=VALUES[:, :2], far=VALUES[:, 2:], y=LABELS)
    found = read(tmp_path / "t.npz")
    np.testing.assert_array_equal(found.data, VALUES)
    np.testing.assert_array_equal(found.target, LABELS)
    assert found.feature_names[:3] == ["near0", "near1", "far0"]


def test_cells_that_are_missing_values(tmp_path):
    (tmp_path / "t.csv").write_text("a\n1\nn/a\nNA\n")
    with pytest.raises(DatasetError, match="row 3, column a: 'n/a'"):
        read(tmp_path / "t.csv")
    np.testing.assert_array_equal(
        read(tmp_path / "t.csv", na=["n/a"]).data, [[1], [np.nan], [np.nan]]
    )


def test_empty_cells_are_missing_and_cells_may_have_line_breaks(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('note,a,y\n"two\nlines",1,0\nx,,1\n"",3,0\n')
    found = read(path, "y", columns=["a"])
    np.testing.assert_array_equal(found.data, [[1], [np.nan], [3]])
    np.testing.assert_array_equal(found.target, [0, 1, 0])


@pytest.mark.parametrize("name", ["own", "own.gz", "t.csv", "t.tsv", "t.parquet"])
def test_memory_is_that_of_the_samples_and_some_blocks(tmp_path, name):
    is_table = ".csv" in name or ".tsv" in name or ".parquet" in name
    path = (write_table if is_table else write_libsvm)(tmp_path / name)

    def peak():
        tracemalloc.start()
        found = read(path, "kind" if is_table else None, block_size=BLOCK)
        largest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return largest, found

    # The first time imports what it needs.
    peak()
    largest, found = peak()
    # A part of it is for targets, blocks and what pandas and gzip need; twice the data is more.
    assert largest < 1.8 * found.data.nbytes


def test_named_sets_are_read_by_the_same_parser(tmp_path, monkeypatch):
    path = write_libsvm(tmp_path / "tiny")
    record = tiny(text=path.read_bytes())
    monkeypatch.setitem(RECORDS, "tiny", type(record)(**{**vars(record), "n": 8_000, "d": 12}))
    monkeypatch.setenv("LOKL_DATA", str(tmp_path))
    found = load("tiny")
    np.testing.assert_array_equal(found.data, VALUES)
    assert found.checked


@pytest.mark.parametrize(
    ("name", "content", "options", "facts"),
    [
        ("t.csv", b"a,y\n1,0\nx,1\n", {"target": "y"}, r"t\.csv, row 3, column a: 'x'"),
        ("t.csv", b"a,y\n1,0\n", {"target": "z"}, r"t\.csv.*'z'.* a, y"),
        ("t.csv", b"a,y\n1,0\n", {"columns": ["b"]}, r"t\.csv.*'b'"),
        ("t.csv", b"a,y\n", {}, r"t\.csv.* no rows"),
        ("t.csv", b"", {}, r"t\.csv.* empty"),
        ("t.csv", b"a,b\n1,2\n1,2,3,4\n", {}, r"t\.csv, row 3: 4 cells.* 2"),
        ("t.csv", "a,y\n1,ö\n".encode("latin1"), {}, r"t\.csv, row 2: .*0xf6"),
        ("t.csv", b"a\0b", {}, r"t\.csv.* text"),
        ("t.parquet", b"no", {}, r"t\.parquet.* Parquet"),
        ("t.npz", b"no", {}, r"t\.npz.* \.npz file"),
        ("own", b"1 1:2\nhello\n", {}, r"own, row 2: .*LIBSVM.*\.csv"),
        ("own", b"\n", {}, "own.* no rows"),
        ("own", b"1 7:2\n", {"n_features": 5}, "own: column 7 .* 1 to 5.*n_features"),
        ("own.gz", b"no archive", {}, r"own\.gz"),
    ],
)
def test_errors_name_file_and_place(tmp_path, name, content, options, facts):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DatasetError, match=facts):
        read(tmp_path / name, **options)


def test_a_file_that_is_not_there():
    with (
        tempfile.TemporaryDirectory() as folder,
        pytest.raises(DatasetError, match="there is no file"),
    ):
        read(Path(folder, "none.csv"))


def test_a_new_format_is_one_class_and_one_entry(tmp_path, monkeypatch):
    class Lines(TableFile):
        @cached_property
        def frame(self):
            return pd.DataFrame({"a": np.loadtxt(self.path)})

    monkeypatch.setitem(READERS, ".lines", Lines)
    (tmp_path / "t.lines").write_text("1\n2\n")
    np.testing.assert_array_equal(read(tmp_path / "t.lines").data, [[1], [2]])
    table = read_table([str(tmp_path / "t.lines")], kinds={"a": "numeric"})
    assert table.frame["a"].tolist() == [1, 2]
