"""Errors about tables are one line that names file, row and column."""

import bz2
import gzip
import io
import os
import pickle
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
from table_cases import written

from lokl.datasets import readers
from lokl.tables import TableError, read_table


def check_error(sources, *facts, **options):
    """Check that reading raises one line with these facts, in this order."""
    with pytest.raises(TableError) as caught:
        read_table([str(source) for source in sources], **options)
    text = str(caught.value)
    assert "\n" not in text
    assert re.search(".*".join(re.escape(str(fact)) for fact in facts), text), text


@pytest.fixture
def file(tmp_path):
    """Write a file, and return its path."""

    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_a_missing_file(tmp_path):
    check_error([tmp_path / "nowhere.csv"], tmp_path / "nowhere.csv", "path")
    (tmp_path / "blood.csv").touch()
    check_error([tmp_path / "bloood.csv"], "bloood.csv", "did you mean blood.csv")
    check_error([tmp_path / "none" / "blood.csv"], "blood.csv", "no folder", tmp_path / "none")
    check_error(["digts_view"], "digts_view", "lokl datasets list")


def test_a_name_that_is_nearly_that_of_a_data_set():
    check_error(["digitss"], "digitss", "did you mean digits")


def test_a_folder(tmp_path):
    check_error([tmp_path], tmp_path, "folder")


@pytest.mark.parametrize("content", ["", "\n\n", "  "])
@pytest.mark.parametrize(
    ("name", "fact"), [("t.csv", "empty"), ("t.tsv", "empty"), ("t.txt", "no rows")]
)
def test_an_empty_file(file, name, fact, content):
    path = file(name, content)
    check_error([path], path, fact)


def test_a_header_alone(file):
    path = file("t.csv", "a,b\n")
    check_error([path], path, "no rows")


@pytest.mark.parametrize("name", ["t.csv", "t.txt"])
def test_a_binary_file(file, name):
    path = file(name, b"\x89PNG\r\n\0\0\0")
    check_error([path], path, "text", ".csv, .tsv, .parquet", ".npz")


@pytest.mark.parametrize(("name", "kind"), [("t.parquet", "Parquet"), ("t.npz", ".npz file")])
def test_a_file_that_is_not_what_its_name_says(file, name, kind):
    path = file(name, b"something else")
    check_error([path], path, kind)


def test_a_compressed_file_that_is_damaged(file):
    path = file("t.csv.gz", gzip.compress(b"a,b\n1,2\n")[:-6])
    check_error([path], path)
    path = file("u.csv.bz2", b"plain")
    check_error([path], path)


def test_another_delimiter_than_the_given_one(file):
    path = file("t.csv", "a;b\n1;2\n")
    check_error([path], path, "semicolons", "commas", "--delimiter", delimiter=",")
    check_error([path], path, "semicolons", "'/'", "--delimiter", delimiter="/")
    assert read_table([str(file("u.csv", "a/b\n1/2\n5/3\n"))], delimiter="/").frame.shape == (2, 2)


# A comma may separate thousands, and mixed separators contradict each other.
@pytest.mark.parametrize(("cell", "zinc"), [("1,500", "1"), ("2,5", "1.5")])
def test_numbers_with_commas_that_cannot_be_read(file, cell, zinc):
    path = file("t.csv", f'iron,zinc\n"{cell}",{zinc}\n"1,750",2\n"1,250",3\n')
    check_error([path], path, "row 2, column iron", f"'{cell}'", "decimal point")


def test_another_encoding(file):
    path = file("t.csv", "a,y\n1,x\n2,größer\n".encode("latin1"))
    check_error([path], path, "row 3", "UTF-8", "0xf6")


def test_rows_that_are_too_long(file):
    path = file("t.csv", "a,b\n1,2\n1,2,3\n")
    check_error([path], path, "row 3", "3 cells", "2")
    path = file("u.csv", "a,b\nP1,1,2\nP2,1,2\n")
    check_error([path], path, "header, 2")


@pytest.mark.parametrize(
    ("header", "facts"), [("a,a", ["column", "'a'"]), ("a,", ["row 1", "column 2"])]
)
def test_a_header_that_is_no_list_of_names(file, header, facts):
    path = file("t.csv", f"{header}\n1,2\n")
    check_error([path], path, *facts)


def test_no_libsvm_text(file):
    path = file("t.txt", "a b c\n1 2 3\n")
    check_error([path], path, "row 1", "LIBSVM", ".csv")
    path = file("u.txt", "1 1:2\n1 oops\n")
    check_error([path], path, "row 2", "LIBSVM")


def test_arrays_that_are_no_table(tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, a=np.ones((3, 2)), b=np.ones(4))
    check_error([path], path, "a: 3, b: 4")
    np.savez(path, a=np.ones((3, 2, 2)))
    check_error([path], path, "array a", "3 axes")
    np.savez(path, a=np.array([{}, 1], dtype=object))
    check_error([path], path, ".npz file")


def test_a_word_among_numbers(file):
    rows = "".join(f"P{i},{i * i}\n" for i in range(14))
    path = file("mrna.csv", f"patient,ESR1\n{rows}P14,n/a\n")
    check_error([path], path, "row 16, column ESR1: 'n/a'", "--na n/a", on="patient")
    assert read_table([str(path)], on="patient", na=["n/a"]).frame["ESR1"].isna().sum() == 1
    assert read_table([str(path)], kinds={"ESR1": "categorical"}).kinds["ESR1"] == "categorical"


def test_a_kind_that_does_not_fit(file):
    path = file("t.csv", "a,b\nx,1\ny,5\nx,7\n")
    check_error([path], "row 2, column a: 'x'", kinds={"a": "numeric"})
    check_error([path], "column a", "'date'", "numeric, categorical", kinds={"a": "date"})
    check_error([path], "column c", kinds={"c": "numeric"})


def test_an_infinite_number(file):
    path = file("t.csv", "a,b\n1,1\ninf,5\n2,7\n")
    check_error([path], path, "row 3, column a", "infinite")


def test_no_such_target(file, tmp_path):
    path = file("t.csv", "a,b\n1,1\n2,5\n")
    check_error([path], path, "column c", "a, b", "--target", target="c")
    check_error([path], "--target no.csv:c", "no.csv", target="no.csv:c")
    other = file("u.csv", "id,y\n1,1\n")
    check_error([path], other, "column z", "id, y", "--target", target=f"{other}:z")
    check_error([path], path, "column z", target="t.csv:z")


def test_a_target_in_two_files(file):
    paths = [file(name, "id,v,y\n1,2,a\n2,1,b\n") for name in ("t.csv", "u.csv")]
    facts = ["column y", paths[0], paths[1], f"--target {paths[0]}:y"]
    check_error(paths, *facts, on="id", target="y")


def test_a_target_that_is_always_the_same(file):
    path = file("t.csv", "a,y\n1,x\n2,x\n7,x\n")
    check_error([path], "target y", "'x'", "3 rows", target="y")


def test_a_target_that_is_always_missing(file):
    path = file("t.csv", "a,y\n1,\n2,\n")
    check_error([path], "target y", "missing", "--target", target="y")


def test_samples_without_any_value(file):
    path = file("t.csv", "a,b,y\n,,x\n,,z\n")
    check_error([path], path, "column", "--target", target="y")
    path = file("u.csv", "a,b,y\n1,,\n5,,\n,,z\n")
    check_error([path], "target y", "missing", target="y")


def test_a_target_of_words_that_shall_be_numbers(file):
    path = file("t.csv", "a,y\n1,x\n5,z\n")
    check_error([path], "target y", "'x'", target="y", task="regression")
    check_error([path], "'guess'", "classification, regression", target="y", task="guess")


def test_ids_that_are_there_twice_or_not_at_all(file):
    path = file("t.csv", "id,a\nP1,1\nP2,5\nP1,3\n")
    check_error([path], path, "rows 2 and 4, column id", "'P1'", on="id")
    path = file("u.csv", "id,a\nP1,1\n,5\n")
    check_error([path], path, "row 3, column id", on="id")
    check_error([path], path, "column name", "id, a", on="name")


def test_no_common_ids(tmp_path, file):
    blood, _, _ = written(tmp_path)
    other = file("clinical.csv", "patient,ill\n17,a\n18,b\n")
    facts = [other, blood, "'P000'", other, "'17'", "--on patient"]
    check_error([blood], *facts, on="patient", target=f"{other}:ill")


def test_files_of_different_length_need_ids(file):
    paths = [file("t.csv", "a\n1\n5\n"), file("u.csv", "b\n1\n5\n7\n")]
    check_error(paths, f"{paths[0]}: 2, {paths[1]}: 3", "--on")


def test_two_files_of_one_name(file):
    paths = [file("t.csv", "id,a\n1,2\n"), file("t.tsv", "id\tb\n1\t2\n")]
    check_error(paths, paths[0], paths[1], "view t", on="id")


def test_views_that_do_not_divide_the_columns(file):
    path = file("t.csv", "a1,a2,b\n1,2,7\n5,3,8\n6,1,0\n")
    check_error([path], "column a1", "x and y", views={"x": "a*", "y": "a1,b"})
    check_error([path], "view x", path, "c*", "a1, a2, b", views={"x": "c*"})
    # A misspelt part is reported, even if the rest of the pattern matches.
    check_error([path], "view x", path, "a3", "a1, a2", target="b", views={"x": "a1,a3"})
    other = file("u.csv", "c\n1\n7\n3\n")
    check_error([path, other], "--view", views={"x": "a*"})


def test_nothing_to_read():
    check_error([], "no files")


def test_the_ids_are_not_another_column(tmp_path):
    paths = written(tmp_path)
    for target in ("patient", f"{paths[2]}:patient"):
        check_error(paths, f"--target {target}", "--on patient", on="patient", target=target)
    options = {"on": "patient", "target": f"{paths[2]}:ill"}
    check_error(paths[:2], "--groups patient", "--on", groups="patient", **options)


@pytest.mark.parametrize("value", ["inf", "-Infinity", "9" * 400])
def test_infinite_values(file, value):
    path = file("t.csv", f"id,a,y\nP1,1,0.5\nP2,{value},0.1\nP3,2,7.5\n")
    check_error([path], path, "row 3, column a", "infinite", on="id", target="y")
    path = file("u.csv", f"id,a,y\nP1,1,0.5\nP2,5,{value}\nP3,2,7.5\n")
    check_error([path], "target y, sample P2", "infinite", on="id", target="y")


@pytest.mark.parametrize("column", [2**31, 10**30])
def test_a_column_of_libsvm_text_beyond_all_indices(file, column):
    path = file("t.txt", f"1 1:2\n-1 1:3\n1 {column}:1\n")
    check_error([path], path, "row 3", "LIBSVM")


class Harm:
    """Runs code when it is unpickled."""

    def __reduce__(self):
        return os.system, ("touch HARM",)


def announced(shape):
    """An array whose header announces a shape, followed by few bytes."""
    stream = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.getvalue() + bytes(80)


def test_archives_of_hostile_arrays(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    members = {
        "pickle": pickle.dumps(Harm()),
        "announced": announced((10**8, 10**7)),
        "cut": announced((11,)),
    }
    for name, content in members.items():
        path = tmp_path / f"{name}.npz"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("X.npy", content)
        check_error([path], path, ".npz file")
    arrays = {
        "objects": np.array([Harm()], dtype=object),
        "structured": np.zeros(5, dtype=[("a", float), ("b", int)]),
        "complex": np.zeros((5, 2), dtype=complex),
    }
    for name, array in arrays.items():
        np.savez(tmp_path / f"{name}.npz", X=array)
        check_error([tmp_path / f"{name}.npz"], f"{name}.npz", "array X", "numbers or text")
    np.savez(tmp_path / "t.npz", X=np.zeros((0, 3)), y=np.zeros(0))
    check_error([tmp_path / "t.npz"], "t.npz", "no rows")
    assert not (tmp_path / "HARM").exists()


def test_files_that_unpack_to_much_more_than_their_size(file, tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "_MAX_UNPACKED", 10**6)
    text = b"a,b\n" + b"1,1\n" * 10**6
    for name, pack in (("t.csv.gz", gzip.compress), ("t.csv.bz2", bz2.compress)):
        path = file(name, pack(text))
        check_error([path], path, "200 times")
    np.savez_compressed(tmp_path / "t.npz", X=np.zeros((10**6, 1)))
    check_error([tmp_path / "t.npz"], "t.npz", "200 times")
    with zipfile.ZipFile(tmp_path / "t.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", bytes(10**7))
    check_error([tmp_path / "t.xlsx"], "t.xlsx", "200 times")


def test_line_ends_of_old_computers(file):
    path = file("t.csv", "a,b\r1,2\r3,5\r7,8\r")
    assert read_table([str(path)]).frame.to_numpy().tolist() == [[1, 2], [3, 5], [7, 8]]


@pytest.mark.skipif(os.name == "nt", reason="names of files are text there")
def test_names_that_are_not_in_the_encoding_of_the_system(tmp_path):
    path = os.fsencode(tmp_path) + b"/t\xff\xc3\xa9.csv"
    try:
        Path(os.fsdecode(path)).write_text("a,b\n1,2\n3,5\n")
    except OSError:
        pytest.skip("the file system takes names in UTF-8 only")
    table = read_table([os.fsdecode(path)])
    assert list(table.views) == ["t\N{REPLACEMENT CHARACTER}\xe9"]


def test_rows_are_not_matched_by_their_order_if_ids_differ(file):
    first = file("a.csv", "id,x,y\nP1,1,0\nP2,2,1\nP3,3,0\nP4,5,1\n")
    other = file("b.csv", "id,z\nP2,1.5\nP1,2.5\nP3,3.5\nP4,2.5\n")
    check_error([first, other], "column id", first, other, "--on id", target="y")
    fewer = file("c.csv", "id,z\nP2,1.5\nP3,3.5\n")
    check_error([first, fewer], "column id", "--on id", target="y")
    # The same order is no mistake, and neither are measurements of the same name.
    same = file("d.csv", "id,z\nP1,1.5\nP2,2.5\nP3,3.5\nP4,2.5\n")
    assert len(read_table([str(first), str(same)], target="y").ids) == 4
    again = file("e.csv", "x,z\n2,1.5\n9,2.5\n7,3.5\n8,2.5\n")
    assert len(read_table([str(first), str(again)], target="y").ids) == 4


def test_a_column_that_no_file_has(file):
    paths = [file("a.csv", "id,x\nP1,1\nP2,2\n"), file("b.csv", "id,zebra\nP1,1\nP2,2\n")]
    check_error(paths, "no file", "--target FILE:ill", on="id", target="ill")
    check_error(paths, "no file", "did you mean zebra", on="id", target="zebar")


def test_what_a_file_contains_does_not_control_the_terminal(file):
    path = file("t.csv", "a\n1\n2\n3\n4\n5\n6\n7\n\x1b[2J" + "x" * 5000 + "\n")
    check_error([path], path, "row 9, column a", r"\x1b[2Jxxx")
