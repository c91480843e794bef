"""Files become one table, and what was guessed is told."""

import bz2
import gzip

import numpy as np
import pandas as pd
import pytest
from table_cases import BLOOD, CLINIC, PULSE, written

from lokl.tables import read_table


def test_one_file(tmp_path):
    blood, _, _ = written(tmp_path)
    table = read_table([blood], on="patient", target="iron")
    assert table.views == {"blood": ["sugar", "group"]}
    assert table.kinds == {"sugar": "numeric", "group": "categorical"}
    assert table.ids == BLOOD["patient"].tolist()
    assert table.task == "regression"
    assert table.target.tolist() == BLOOD["iron"].tolist()
    assert "categories: group" in table.notes
    assert dict(table.describe())["target"].startswith("iron: numbers from")


def test_several_files_are_views_and_who_lacks_one_lacks_the_view(tmp_path):
    blood, pulse, clinic = written(tmp_path)
    table = read_table([blood, pulse], on="patient", target=f"{clinic}:ill")
    assert table.views == {"blood": ["iron", "sugar", "group"], "pulse": ["rest", "run"]}
    assert table.ids == CLINIC["patient"].tolist()[:12]
    assert table.task == "classification"
    assert set(table.target) == {"yes", "no"}
    lacking = table.frame[table.views["pulse"]].isna().all(axis=1)
    assert set(lacking[lacking].index) == set(BLOOD["patient"]) - set(PULSE["patient"])
    assert dict(table.describe())["read"].endswith("12 samples, 4 without pulse")


def test_groups_come_from_any_file(tmp_path):
    blood, pulse, clinic = written(tmp_path)
    table = read_table(
        [blood, pulse], on="patient", target=f"{clinic}:ill", groups=f"{clinic}:town"
    )
    assert table.groups.tolist() == CLINIC["town"].tolist()[:12]
    assert "town" not in table.frame.columns


ENDINGS = ["csv", "tsv", "parquet", "feather", "xlsx", "csv.gz", "tsv.gz", "tsv.bz2", "csv.bz2"]


def write_as(frame, path):
    kind = path.name.split(".", 1)[1]
    if kind == "parquet":
        frame.to_parquet(path)
    elif kind == "feather":
        frame.to_feather(path)
    elif kind == "xlsx":
        frame.to_excel(path, index=False)
    else:
        text = frame.to_csv(index=False, sep="\t" if kind.startswith("tsv") else ",").encode()
        pack = {"gz": gzip.compress, "bz2": bz2.compress}.get(kind.split(".")[-1], bytes)
        path.write_bytes(pack(text))
    return str(path)


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_format_gives_the_same_table(tmp_path, ending):
    plain = read_table([written(tmp_path)[0]], on="patient", target="group")
    table = read_table(
        [write_as(BLOOD, tmp_path / f"other.{ending}")], on="patient", target="group"
    )
    pd.testing.assert_frame_equal(table.frame, plain.frame)
    assert table.target.tolist() == plain.target.tolist()
    assert table.views == {"other": plain.views["blood"]}


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress])
def test_libsvm_text_brings_its_target(tmp_path, pack):
    ending = {bytes: "", gzip.compress: ".gz", bz2.compress: ".bz2"}[pack]
    path = tmp_path / f"small{ending}"
    path.write_bytes(pack(b"+1 1:0.5 3:2\n-1 2:1\n+1 1:1\n"))
    table = read_table([str(path)])
    assert table.target.tolist() == [1, -1, 1]
    assert table.frame.to_numpy().tolist() == [[0.5, 0, 2], [0, 1, 0], [1, 0, 0]]
    assert table.task == "classification"


def test_arrays_are_views(tmp_path):
    rng = np.random.RandomState(0)
    A, B = rng.normal(size=(6, 2)), rng.normal(size=(6, 3))
    np.savez(tmp_path / "both.npz", near=A, far=B, y=np.array(list("aabbab")))
    table = read_table([str(tmp_path / "both.npz")])
    assert table.views == {"near": ["near0", "near1"], "far": ["far0", "far1", "far2"]}
    assert table.target.tolist() == list("aabbab")
    np.testing.assert_array_equal(table.frame.to_numpy(), np.hstack([A, B]))


def test_a_data_set_by_its_name():
    table = read_table(["iris"])
    assert table.frame.shape == (150, 4)
    assert sorted(set(table.target)) == ["setosa", "versicolor", "virginica"]


def test_patterns_name_the_views_of_one_file(tmp_path):
    path = tmp_path / "all.csv"
    X = np.random.RandomState(0).normal(size=(5, 5))
    pd.DataFrame(X, columns=["b_iron", "b_sugar", "age", "p_rest", "note"]).to_csv(
        path, index=False
    )
    table = read_table([str(path)], views={"blood": "b_*, age", "pulse": "p_*"})
    assert table.views == {"blood": ["b_iron", "b_sugar", "age"], "pulse": ["p_rest"]}
    assert "in no view, left out: note" in table.notes
    assert "note" not in table.frame.columns
    # A column that has another use cannot be part of a view, and that is told.
    table = read_table([str(path)], groups="age", views={"blood": "b_*, age", "pulse": "p_*"})
    assert table.views == {"blood": ["b_iron", "b_sugar"], "pulse": ["p_rest"]}
    assert "view blood: age is not used as a feature" in table.notes


def test_columns_that_teach_nothing_are_left_out_with_a_word(tmp_path):
    n = 8
    frame = pd.DataFrame(
        {
            "number": range(n),
            "same": 1.0,
            "name": [f"sample {i}" for i in range(n)],
            "empty": np.nan,
            "value": [3.0, 1, 4, 1, 5, 9, 2, 6],
            "y": list("abababab"),
        }
    )
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    table = read_table([str(path)], target="y")
    assert list(table.frame.columns) == ["value"]
    notes = "\n".join(table.notes)
    for told in ("number (ids: they count", "same (constant)", "name (ids: all", "empty (empty)"):
        assert told in notes
    kept = read_table([str(path)], target="y", kinds={"number": "numeric", "value": "categorical"})
    assert kept.kinds == {"number": "numeric", "value": "categorical"}


def test_columns_of_one_name_are_told_apart(tmp_path):
    frame = pd.DataFrame({"id": ["a", "b", "c"], "value": [1.0, 5, 2]})
    for name in ("left", "right"):
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    files = [str(tmp_path / f"{name}.csv") for name in ("left", "right")]
    assert read_table(files, on="id").views == {"left": ["left:value"], "right": ["right:value"]}


def test_ids_are_text_however_they_are_stored(tmp_path):
    frame = pd.DataFrame({"id": [1, 2, 3], "a": [1.0, 5, 2]})
    frame.to_parquet(tmp_path / "numbers.parquet")
    frame.rename(columns={"a": "b"}).to_csv(tmp_path / "words.csv", index=False)
    files = [str(tmp_path / name) for name in ("numbers.parquet", "words.csv")]
    assert read_table(files, on="id").ids == ["1", "2", "3"]
    (tmp_path / "zeros.csv").write_text("id,a\n007,1\n017,5\n008,3\n")
    assert read_table([str(tmp_path / "zeros.csv")], on="id").ids == ["007", "017", "008"]


def test_rows_without_target_are_left_out_with_a_word(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n1,x\n5,\n3,z\n2,x\n")
    table = read_table([str(path)], target="y")
    assert table.ids == ["2", "4", "5"]
    assert "left out 1 samples without target or without values" in table.notes


@pytest.mark.parametrize(
    ("values", "task"),
    [([0, 1, 1, 0], "classification"), ([0.5, 1, 2, 3], "regression"), (range(30), "regression")],
)
def test_what_a_target_holds_is_guessed_and_may_be_told(tmp_path, values, task):
    path = tmp_path / "t.csv"
    a = np.random.RandomState(0).normal(size=len(values))
    pd.DataFrame({"a": a, "y": values}).to_csv(path, index=False)
    assert read_table([str(path)], target="y").task == task
    other = {"classification": "regression", "regression": "classification"}[task]
    assert read_table([str(path)], target="y", task=other).task == other


def test_signs_of_other_languages_and_marks_of_the_byte_order(tmp_path):
    path = tmp_path / "straße.csv"
    path.write_bytes("größe,farbe,y\n1.5,rot,a\n2,blau,b\n3,rot,a\n".encode("utf-8-sig"))
    table = read_table([str(path)], target="y")
    assert list(table.frame.columns) == ["größe", "farbe"]
    assert table.views.keys() == {"straße"}
