"""Everything that can be wrong with a table is one line that names it and says what would help."""

import gzip

import numpy as np
import pytest
from table_cases import written

from lokl.tables import TableError, read_table


def told(sources, **options):
    with pytest.raises(TableError) as caught:
        read_table([str(source) for source in sources], **options)
    text = str(caught.value)
    assert "\n" not in text
    return text


@pytest.fixture
def file(tmp_path):
    """Write a file, and return its path."""

    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_a_missing_file(tmp_path):
    path = tmp_path / "nowhere.csv"
    assert told([path]).startswith(f"{path} is neither a file nor a data set; give a path, or")


def test_a_name_that_is_nearly_that_of_a_data_set():
    text = told(["digitss"])
    assert text.startswith("digitss is neither a file nor a data set; did you mean digits? Else")


def test_a_folder(tmp_path):
    assert told([tmp_path]) == f"{tmp_path} is a folder; name a file in it"


@pytest.mark.parametrize("content", ["", "\n\n", "  "])
@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.txt"])
def test_an_empty_file(file, name, content):
    path = file(name, content)
    assert told([path]) == f"{path} is empty"


def test_a_header_alone(file):
    path = file("t.csv", "a,b\n")
    assert told([path]) == f"{path} has a header and no rows"


@pytest.mark.parametrize("name", ["t.csv", "t.txt"])
def test_a_binary_file(file, name):
    path = file(name, b"\x89PNG\r\n\0\0\0")
    assert told([path]).startswith(f"{path} is not text; give CSV, TSV, Parquet")


@pytest.mark.parametrize(
    ("name", "kind"), [("t.parquet", "no Parquet file"), ("t.npz", "no .npz file")]
)
def test_a_file_that_is_not_what_its_name_says(file, name, kind):
    assert kind in told([file(name, b"something else")])


def test_a_compressed_file_that_is_damaged(file):
    path = file("t.csv.gz", gzip.compress(b"a,b\n1,2\n")[:-6])
    assert told([path]).startswith(f"{path} is damaged: it cannot be unpacked")
    assert "cannot be" in told([file("u.csv.bz2", b"plain")])


def test_another_delimiter(file):
    path = file("t.csv", "a;b\n1;2\n")
    assert told([path]) == (
        f"{path}: its cells seem to be divided by ';', not by ','; see --delimiter"
    )
    assert read_table([str(file("u.csv", "a;b\n1;2\n5;3\n"))], delimiter=";").frame.shape == (2, 2)


def test_another_encoding(file):
    path = file("t.csv", "a,y\n1,x\n2,größer\n".encode("latin1"))
    assert told([path]).startswith(f"{path}, row 3: not in UTF-8 (byte 0xf6); save the file in")


def test_rows_that_are_too_long(file):
    path = file("t.csv", "a,b\n1,2\n1,2,3\n")
    assert told([path]) == f"{path}, row 3: 3 cells, but the header has 2"
    path = file("u.csv", "a,b\nP1,1,2\nP2,1,2\n")
    assert told([path]).startswith(f"{path}: rows have more cells than the header, 2; name all")


@pytest.mark.parametrize(
    ("header", "text"),
    [("a,a", "column a is there twice"), ("a,", "row 1: column 2 has no name; name it")],
)
def test_a_header_that_is_no_list_of_names(file, header, text):
    assert text in told([file("t.csv", f"{header}\n1,2\n")])


def test_no_libsvm_text(file):
    path = file("t.txt", "a b c\n1 2 3\n")
    assert told([path]) == (
        f"{path}, row 1: no line of LIBSVM text; name a table .csv or .tsv, or give --delimiter"
    )
    path = file("u.txt", "1 1:2\n1 oops\n")
    assert told([path]) == f"{path}, row 2: no line of LIBSVM text"


def test_arrays_that_are_no_table(tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, a=np.ones((3, 2)), b=np.ones(4))
    assert told([path]) == f"{path}: its arrays are of different length (a: 3, b: 4)"
    np.savez(path, a=np.ones((3, 2, 2)))
    assert told([path]) == f"{path}: array a has 3 axes; a table has two"
    np.savez(path, a=np.array([{}, 1], dtype=object))
    assert "no .npz file of plain arrays" in told([path])


def test_a_word_among_numbers(file):
    rows = "".join(f"P{i},{i * i}\n" for i in range(14))
    path = file("mrna.csv", f"patient,ESR1\n{rows}P14,n/a\n")
    assert told([path], on="patient") == (
        f"{path}, row 16, column ESR1: 'n/a' is not a number; write an empty cell, or --na n/a"
    )
    assert read_table([str(path)], on="patient", na=["n/a"]).frame["ESR1"].isna().sum() == 1
    assert read_table([str(path)], kinds={"ESR1": "categorical"}).kinds["ESR1"] == "categorical"


def test_a_kind_that_does_not_fit(file):
    path = file("t.csv", "a,b\nx,1\ny,5\nx,7\n")
    assert "row 2, column a: 'x' is not a number" in told([path], kinds={"a": "numeric"})
    assert told([path], kinds={"a": "date"}).startswith("column a: unknown kind 'date'; known are")
    assert told([path], kinds={"c": "numeric"}).startswith("no column c, whose kind is told")


def test_an_infinite_number(file):
    path = file("t.csv", "a,b\n1,1\ninf,5\n2,7\n")
    assert told([path]).startswith(f"{path}, row 3, column a: the value is infinite; correct it")


def test_no_such_target(file, tmp_path):
    path = file("t.csv", "a,b\n1,1\n2,5\n")
    assert told([path], target="c") == f"{path} has no column c; it has a, b (see --target)"
    assert told([path], target="no.csv:c") == "--target no.csv:c: there is no file no.csv"
    other = file("u.csv", "id,y\n1,1\n")
    assert told([path], target=f"{other}:z") == (
        f"{other} has no column z; it has id, y (see --target)"
    )
    assert told([path], target="t.csv:z").startswith(f"{path} has no column z")


def test_a_target_in_two_files(file):
    paths = [file(name, "id,v,y\n1,2,a\n2,1,b\n") for name in ("t.csv", "u.csv")]
    assert told(paths, on="id", target="y") == (
        f"column y is in {paths[0]} and in {paths[1]}; give --target {paths[0]}:y"
    )


def test_a_target_that_is_always_the_same(file):
    path = file("t.csv", "a,y\n1,x\n2,x\n7,x\n")
    assert told([path], target="y") == (
        "target y has the same value, 'x', in all 3 rows; a model needs two different ones"
    )


def test_a_target_that_is_always_missing(file):
    path = file("t.csv", "a,y\n1,\n2,\n")
    assert told([path], target="y") == (
        "target y is missing in every row that has values; see --target"
    )


def test_samples_without_any_value(file):
    path = file("t.csv", "a,b,y\n,,x\n,,z\n")
    assert "has no column to learn from" in told([path], target="y")
    path = file("u.csv", "a,b,y\n1,,\n5,,\n,,z\n")
    assert "target y is missing in every row that has values" in told([path], target="y")


def test_a_target_of_words_that_shall_be_numbers(file):
    path = file("t.csv", "a,y\n1,x\n5,z\n")
    assert told([path], target="y", task="numbers") == (
        "target y holds words, such as 'x', not numbers"
    )
    assert told([path], target="y", task="guess").startswith("unknown task 'guess'; known are")


def test_ids_that_are_there_twice_or_not_at_all(file):
    path = file("t.csv", "id,a\nP1,1\nP2,5\nP1,3\n")
    assert told([path], on="id") == (
        f"{path}, rows 2 and 4, column id: 'P1' is there 2 times; keep one row of each sample"
    )
    path = file("u.csv", "id,a\nP1,1\n,5\n")
    assert told([path], on="id").startswith(f"{path}, row 3, column id: no id; name the sample")
    assert told([path], on="name") == f"{path} has no column name; it has id, a"


def test_no_common_ids(tmp_path, file):
    blood, _, _ = written(tmp_path)
    other = file("clinical.csv", "patient,ill\n17,a\n18,b\n")
    assert told([blood], on="patient", target=f"{other}:ill") == (
        f"no patient is in both {blood} and {other} (their ids look like 'P000' and '17'); see --on"
    )


def test_files_of_different_length_need_ids(file):
    paths = [file("t.csv", "a\n1\n5\n"), file("u.csv", "b\n1\n5\n7\n")]
    text = told(paths)
    assert text.startswith(f"files have different numbers of rows ({paths[0]} 2, {paths[1]} 3)")
    assert "--on" in text


def test_two_files_of_one_name(file):
    paths = [file("t.csv", "id,a\n1,2\n"), file("t.tsv", "id\tb\n1\t2\n")]
    assert told(paths, on="id").startswith(f"{paths[0]} and {paths[1]} would both be the view t")


def test_views_that_do_not_divide_the_columns(file):
    path = file("t.csv", "a1,a2,b\n1,2,7\n5,3,8\n6,1,0\n")
    assert told([path], views={"x": "a*", "y": "a1,b"}) == "column a1 is in two views, x and y"
    assert told([path], views={"x": "c*"}) == (
        f"view x: no column of {path} is like c*; there are a1, a2, b"
    )
    # A slip is told, though the rest of the pattern is right.
    assert told([path], target="b", views={"x": "a1,a3"}) == (
        f"view x: no column of {path} is like a3; there are a1, a2"
    )
    other = file("u.csv", "c\n1\n7\n3\n")
    assert told([path, other], views={"x": "a*"}).startswith("--view divides one file; each of")


def test_nothing_to_read():
    assert told([]) == "no files are given"
