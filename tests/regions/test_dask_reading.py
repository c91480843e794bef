"""Files as collections: the samples of the file, a block at a time."""

import bz2
import gzip
import io

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed_cases import BLOBS, COLOURS, X, Y, check_same, classifier
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from lokl import datasets
from lokl.datasets import DatasetError
from lokl.distributed import fit, read

BLOCK = 4000


@pytest.fixture(autouse=True)
def plain_scheduler():
    with dask.config.set(scheduler="synchronous"):
        yield


def text_of(data, labels, zero_based=False):
    text = io.BytesIO()
    dump_svmlight_file(data, labels, text, zero_based=zero_based)
    return text.getvalue()


@pytest.mark.parametrize(
    ("end", "pack"), [("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress)]
)
def test_libsvm_text_in_blocks_of_known_lengths(tmp_path, end, pack):
    path = tmp_path / f"own{end}"
    path.write_bytes(pack(text_of(X, Y)))
    data, labels = read(path, block_size=BLOCK, scratch=tmp_path / "scratch")
    assert data.shape == X.shape
    assert data.numblocks[0] > 5
    assert data.chunks[0] == labels.chunks[0]
    plain, y = load_svmlight_file(str(path))
    np.testing.assert_array_equal(data.compute(), plain.toarray())
    np.testing.assert_array_equal(labels.compute(), y)
    assert (tmp_path / "scratch" / "own").exists() == bool(end)
    check_same(fit(classifier(), data, labels), classifier().fit(plain.toarray(), y))


def test_wide_text_becomes_csr_blocks_of_several_files(tmp_path):
    data = sparse.random(300, 80, 0.1, format="csr", random_state=0)
    y = np.arange(300) % 2
    for folder, rows in (("a", slice(0, 200)), ("b", slice(200, 300))):
        (tmp_path / folder).mkdir()
        packed = gzip.compress(text_of(data[rows], y[rows], zero_based=True))
        (tmp_path / folder / "part.gz").write_bytes(packed)
    paths = [tmp_path / folder / "part.gz" for folder in "ab"]
    found, labels = read(paths, block_size=BLOCK, n_features=80)
    assert all(sparse.issparse(block) for block in dask.compute(*found.to_delayed().ravel()))
    np.testing.assert_allclose(found.compute().toarray(), data.toarray())
    np.testing.assert_array_equal(labels.compute(), y)
    dense, _ = read(str(tmp_path / "*" / "part.gz"), sparse=False, dtype=np.float32)
    assert dense.dtype == dense.compute().dtype == np.float32
    model = classifier()
    check_same(fit(model, found, labels), model.fit(found.compute(), y), data)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.tsv", "t.parquet"])
def test_tables_become_data_frames(tmp_path, name):
    frame = pd.DataFrame(BLOBS, columns=["a", "b"]).assign(colour=COLOURS, gap=1)
    path = tmp_path / name
    if name == "t.parquet":
        frame.to_parquet(path, row_group_size=100)
    else:
        frame.to_csv(path, index=False, sep="\t" if "tsv" in name else ",")
    data, labels = read(path, "colour", columns=["a", "b"], block_size=BLOCK)
    assert isinstance(data, dd.DataFrame)
    assert data.npartitions > 2
    np.testing.assert_array_equal(data.compute(), BLOBS)
    check_same(
        fit(classifier(), data, labels),
        classifier().fit(frame[["a", "b"]], COLOURS),
        frame[["a", "b"]],
    )
    whole, nothing = read(path)
    assert nothing is None
    assert list(whole.columns) == ["a", "b", "colour", "gap"]
    assert whole["gap"].dtype == np.float64


def test_gaps_far_down_in_whole_numbers_are_missing_values(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "1,0\n" * 3000 + ",1\n")
    data, y = read(path, "y", block_size=BLOCK)
    assert np.isnan(data.compute()["a"].iloc[-1])
    assert y.compute().iloc[-1] == 1


def test_arrays_become_one_block_for_each_file(tmp_path):
    for k in range(2):
        np.savez(tmp_path / f"{k}.npz", x=X, y=Y)
    data, labels = read(str(tmp_path / "*.npz"))
    assert data.npartitions == 2
    np.testing.assert_array_equal(data.compute(), np.vstack([X, X]))
    np.testing.assert_array_equal(labels.compute(), np.concatenate([Y, Y]))


@pytest.mark.slow
def test_named_sets(lokl_data):
    known = datasets.load("a9a")
    data, labels = read("a9a", block_size=500_000)
    assert isinstance(data, da.Array)
    assert data.numblocks[0] > 3
    assert abs(data.compute() - known.data).max() == 0
    np.testing.assert_array_equal(labels.compute(), known.target)


@pytest.mark.parametrize(
    ("name", "content", "options", "facts"),
    [
        ("own", b"hello\n", {}, r"own, block 1, row 1: .*LIBSVM"),
        ("own", b"\n", {}, r"own has no rows"),
        ("own", b"1 7:1\n", {"n_features": 3}, "column 7 .* 1 to 3.*n_features"),
        ("t.csv", b"a,y\n1,2\n", {"target": "z"}, "'z'.* a, y"),
        ("own.gz", b"no archive", {}, r"own\.gz"),
    ],
)
def test_errors_name_file_and_place(tmp_path, name, content, options, facts):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DatasetError, match=facts):
        read(tmp_path / name, scratch=tmp_path / "scratch", **options)
    # Nothing half-written stays.
    assert not list(tmp_path.glob("scratch/*.part"))


def test_what_is_no_file_is_named(tmp_path):
    with pytest.raises(DatasetError, match=r"none\.csv"):
        read("none.csv")
    with pytest.raises(DatasetError, match=r"iris.*lokl\.datasets\.load"):
        read("iris")
    for name in ("own", "t.csv"):
        (tmp_path / name).write_text("1 1:1\n")
    with pytest.raises(ValueError, match="LIBSVM text and delimited text"):
        read([tmp_path / "own", tmp_path / "t.csv"])
