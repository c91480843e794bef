"""From a name to samples and labels."""

import gzip
from dataclasses import replace

import numpy as np
import pytest
from dataset_cases import TEXT, tiny
from scipy import sparse

from lokl.datasets import DatasetError, MissingDatasetError, available, info, load
from lokl.datasets.registry import ALIASES, RECORDS

BUNDLED = ["breast_cancer", "digits", "wine", "iris"]


@pytest.fixture
def own(tmp_path, monkeypatch):
    """An empty folder named by LOKL_DATA, and no other place to look."""
    folder = tmp_path / "own"
    folder.mkdir()
    monkeypatch.setenv("LOKL_DATA", str(folder))
    monkeypatch.setenv("LOKL_CACHE", str(tmp_path / "cache"))
    return folder


@pytest.mark.parametrize("name", BUNDLED)
def test_sets_of_scikit_learn_are_as_the_registry_says(name, own):
    found, record = load(name), info(name)
    assert found.data.shape == (record.n, record.d)
    assert dict(zip(*np.unique(found.target, return_counts=True), strict=True)) == record.classes
    assert len(found.target_names) == len(record.classes)
    assert found.name == name
    assert found.sha256 is None


def test_text_becomes_an_array_or_a_csr_matrix(own, monkeypatch):
    monkeypatch.setitem(RECORDS, "tiny", tiny())
    (own / "tiny").write_bytes(TEXT)
    dense, csr = load("tiny"), load("tiny", sparse=True)
    expected = [[0.5, 0, 2, 0, 0], [0, 1, 0, 0, 0], [1, -4, 1e-3, 0, 0], [0] * 5]
    np.testing.assert_array_equal(dense.data, expected)
    assert sparse.issparse(csr.data)
    assert csr.data.indices.dtype == csr.data.indptr.dtype == np.int32
    np.testing.assert_array_equal(csr.data.toarray(), expected)
    assert dense.target.tolist() == [1, -1, 1, -1]
    assert dense.checked
    assert (dense.source, dense.licence) == ("this test", "none")


@pytest.mark.parametrize(
    ("columns", "filled", "expected"), [(65, 16, True), (64, 1, False), (80, 20, False)]
)
def test_wide_and_nearly_empty_samples_come_as_csr(own, monkeypatch, columns, filled, expected):
    line = "1 " + " ".join(f"{j + 1}:1" for j in range(filled)) + "\n"
    (own / "tiny").write_text(line * 4)
    record = tiny(text=(line * 4).encode())
    monkeypatch.setitem(RECORDS, "tiny", replace(record, d=columns))
    assert sparse.issparse(load("tiny").data) is expected
    assert not sparse.issparse(load("tiny", sparse=False).data)


def test_arrays_become_csr_where_asked(own):
    assert sparse.issparse(load("digits", sparse=True).data)


def test_other_text_under_the_same_name_is_read_and_marked(own, monkeypatch):
    monkeypatch.setitem(RECORDS, "tiny", tiny())
    (own / "tiny").write_bytes(TEXT.replace(b"+1", b"1"))
    with pytest.warns(UserWarning, match="tiny: sha256") as caught:
        found = load("tiny")
    assert caught[0].filename == __file__
    assert not found.checked
    assert found.sha256 != RECORDS["tiny"].sha256


@pytest.mark.parametrize("end", ["", ".gz"])
def test_the_known_text_is_known_plain_and_compressed(own, monkeypatch, end):
    monkeypatch.setitem(RECORDS, "tiny", tiny())
    (own / f"tiny{end}").write_bytes(gzip.compress(TEXT) if end else TEXT)
    assert load("tiny").checked


def test_published_text_is_no_surprise_where_only_a_rebuilt_one_is_known(own, monkeypatch):
    monkeypatch.setitem(RECORDS, "tiny", tiny(published=False))
    (own / "tiny").write_bytes(TEXT.replace(b"+1", b"1"))
    assert not load("tiny").checked
    # Other classes are another set.
    (own / "tiny").write_bytes(TEXT.replace(b"+1", b"2"))
    with pytest.warns(UserWarning, match="tiny: sha256"):
        load("tiny")


@pytest.mark.parametrize(
    ("before", "after", "place"),
    [
        (b"2:-4", b"2:nan", "row 3, column 2 is nan"),
        (b"3:2", b"3:-inf", "row 1, column 3 is -inf"),
        (b"3:2", b"3:1e999", "row 1, column 3 is inf"),
        (b"-1 2", b"nan 2", "row 2, column 1 of the labels is nan"),
    ],
)
def test_values_that_are_not_finite_are_named(own, monkeypatch, before, after, place):
    monkeypatch.setitem(RECORDS, "tiny", tiny())
    (own / "tiny").write_bytes(TEXT.replace(before, after))
    with pytest.raises(DatasetError, match=rf"own.tiny: {place}"):
        load("tiny")


@pytest.mark.parametrize(
    ("content", "facts"),
    [
        (TEXT[:20], r"own.tiny .*2 rows.* 4"),
        (b"1 6:1\n" * 4, "own.tiny .*: column 6 .* 1 to 5"),
        (b"<html>not found</html>\n", "own.tiny .*, row 1"),
    ],
)
def test_another_file_under_the_same_name_is_an_error(own, monkeypatch, content, facts):
    monkeypatch.setitem(RECORDS, "tiny", tiny())
    (own / "tiny").write_bytes(content)
    with pytest.raises(DatasetError, match=facts):
        load("tiny")


def test_a_damaged_archive_is_named(own, monkeypatch):
    monkeypatch.setitem(RECORDS, "tiny", tiny())
    (own / "tiny.gz").write_bytes(gzip.compress(TEXT)[:-9])
    with pytest.raises(DatasetError, match=r"tiny\.gz"):
        load("tiny")


def test_own_folder_must_be_a_folder(own, monkeypatch):
    monkeypatch.setenv("LOKL_DATA", str(own / "nowhere"))
    with pytest.raises(MissingDatasetError, match=r"LOKL_DATA .*nowhere"):
        load("a9a")
    assert load("iris").data.shape == (150, 4)


def test_a_multi_view_set_that_is_not_there_names_its_files(own):
    with pytest.raises(MissingDatasetError, match=r"multiview/WebKB\.mat"):
        load("webkb")


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("a9", "a9a"),
        ("breast-cancer-scale", "breast-cancer_scale"),
        ("german", "german.numer"),
        ("Iris", "iris"),
        ("gisete", "gisette"),
    ],
)
def test_a_misspelt_name_brings_the_nearest(name, near):
    with pytest.raises(ValueError, match=f"unknown data set '{name}'; did you mean .*{near}"):
        load(name)


def test_a_name_like_no_other():
    with pytest.raises(ValueError, match=r"unknown data set 'zzzzzz'; lokl\.datasets\.available"):
        load("zzzzzz")


def test_names_are_unique_and_every_record_is_complete():
    assert len(set(available())) == len(available())
    for name in available():
        record = info(name)
        counts = record.classes.values()
        assert None in counts or sum(counts) == record.n
        assert record.files or record.format == "scikit-learn"
        assert record.url is None or record.url.startswith("https://")
        assert record.sha256 or record.url or record.format == "scikit-learn"


@pytest.mark.parametrize("alias", ALIASES)
def test_aliases_are_names_of_nothing_else(alias):
    assert alias not in available()
    assert info(alias).name == ALIASES[alias]
