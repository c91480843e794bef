"""Text with other separators, and workbooks, whose sheets are tables."""

import datetime
import json

import openpyxl
import pandas as pd
import pytest
from table_cases import BLOOD, CLINIC, PULSE
from typer.testing import CliRunner

from lokl.cli.app import app
from lokl.datasets import DatasetError, read
from lokl.tables import TableError, read_table

runner = CliRunner()


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("decimal", [".", ","])
def test_separators_are_inferred(tmp_path, delimiter, decimal):
    frame = pd.DataFrame(
        {"iron": [1.5, 2000.25, 12.5], "run": [100, 200, 350], "kind": list("aba")}
    )
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False, sep=delimiter, decimal=decimal)
    found = read(path, "kind")
    assert found.data.tolist() == frame[["iron", "run"]].to_numpy().tolist()
    # What is unusual is noted.
    notes = read_table([str(path)]).notes
    note = next((note for note in notes if note.startswith(f"{path}: ")), "")
    assert ("decimal commas" in note) == (decimal == ",")
    assert ("separated by" in note) == (delimiter != ",")


def test_files_with_other_separators_are_joined(tmp_path):
    BLOOD.to_csv(tmp_path / "blood.csv", index=False, sep=";", decimal=",")
    PULSE.to_csv(tmp_path / "pulse.csv", index=False)
    files = [str(tmp_path / name) for name in ("blood.csv", "pulse.csv")]
    table = read_table(files, on="patient", target="group")
    assert table.frame["iron"].tolist() == BLOOD["iron"].tolist()


@pytest.fixture
def book(tmp_path):
    """A workbook of three tables and an empty sheet."""
    path = tmp_path / "book.xlsx"
    with pd.ExcelWriter(path) as writer:
        for name, frame in {"blood": BLOOD, "pulse": PULSE, "clinic": CLINIC}.items():
            frame.to_excel(writer, sheet_name=name, index=False)
        writer.book.create_sheet("notes")
    return str(path)


def test_sheets_are_views(book):
    table = read_table([book], on="patient", target="ill")
    assert list(table.views) == ["blood", "pulse", "clinic"]
    chosen = read_table(
        [f"{book}:blood", f"{book}:pulse"], on="patient", target=f"{book}:clinic:ill"
    )
    assert chosen.views == {"blood": ["iron", "sugar", "group"], "pulse": ["rest", "run"]}
    assert chosen.target.to_dict() == table.target[chosen.frame.index].to_dict()


@pytest.mark.parametrize("given", ["ill", "clinic:ill", "book.xlsx:clinic:ill"])
def test_a_sheet_of_the_target_alone_is_no_view(tmp_path, given):
    path = tmp_path / "book.xlsx"
    with pd.ExcelWriter(path) as writer:
        BLOOD.to_excel(writer, sheet_name="blood", index=False)
        CLINIC[["patient", "ill"]].to_excel(writer, sheet_name="clinic", index=False)
    table = read_table([str(path)], on="patient", target=given)
    assert list(table.views) == ["blood"]
    assert table.ids == BLOOD["patient"].tolist()


def test_one_sheet_is_named_by_its_file(tmp_path):
    BLOOD.to_excel(tmp_path / "blood.xlsx", index=False)
    table = read_table([str(tmp_path / "blood.xlsx")], on="patient", target="group")
    assert list(table.views) == ["blood"]
    found = read(tmp_path / "blood.xlsx", "group", columns=["iron", "sugar"])
    assert found.data.tolist() == BLOOD[["iron", "sugar"]].to_numpy().tolist()


def write_sheet(path, rows):
    book = openpyxl.Workbook()
    book.active.title = "lab"
    for row in rows:
        book.active.append(row)
    book.save(path)
    return str(path)


def test_numbers_as_ids_match_those_of_text_files(tmp_path):
    path = write_sheet(tmp_path / "lab.xlsx", [["id", "iron"], [7.0, 1.5], [12, 2.5], ["012", 4]])
    (tmp_path / "y.csv").write_text("id,y\n7,a\n12,b\n012,a\n")
    table = read_table([path], on="id", target=f"{tmp_path / 'y.csv'}:y")
    assert table.ids == ["7", "12", "012"]


def test_empty_rows_and_columns_around_a_table(tmp_path):
    rows = [[], [None, "iron", "run"], [None, 1.5, 3], [None, "#N/A", 4], [None, 2.5, None], []]
    path = write_sheet(tmp_path / "lab.xlsx", rows)
    found = read_table([path]).frame
    assert list(found.columns) == ["iron", "run"]
    assert found["iron"].isna().tolist() == [False, True, False]
    assert found["run"].isna().tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("rows", "facts"),
    [
        ([["iron"], *[[k] for k in range(6)], ["#DIV/0!"]], "row 8, column iron: '#DIV/0!'"),
        ([[], ["iron"], [1], [2], [3], [4], ["5,5"], [1]], "row 7, column iron: '5,5'"),
        (
            [["iron"], *[[k] for k in range(6)], [datetime.datetime(2026, 5, 1)]],
            "row 8, column iron: '2026-05-01",
        ),
        ([["iron", None], [1, 2]], "row 1: column 2"),
        ([["iron", "iron"], [1, 2]], "'iron'"),
        ([["iron"]], "no rows"),
        ([[]], "empty"),
    ],
)
def test_errors_name_the_cell_of_a_sheet(tmp_path, rows, facts):
    path = write_sheet(tmp_path / "lab.xlsx", rows)
    with pytest.raises(TableError, match=rf"lab\.xlsx.*{facts}"):
        read_table([path])
    with pytest.raises(TableError, match=rf"lab\.xlsx:lab.*{facts}"):
        read_table([f"{path}:lab"])


def test_errors_name_the_sheet(book, tmp_path):
    with pytest.raises(TableError, match=r"book\.xlsx:plse.*did you mean pulse"):
        read_table([f"{book}:plse"])
    with pytest.raises(TableError, match=r"book\.xlsx:ill.*book\.xlsx:clinic:ill"):
        read_table([f"{book}:blood"], on="patient", target=f"{book}:ill")
    with pytest.raises(DatasetError, match=r"sheets.*book\.xlsx:blood"):
        read(book)
    (tmp_path / "no.xlsx").write_bytes(b"something else")
    with pytest.raises(TableError, match=r"no\.xlsx.*workbook"):
        read_table([str(tmp_path / "no.xlsx")])


def test_dates_are_no_numbers(tmp_path):
    frame = BLOOD.assign(visit=pd.date_range("2026-05-01", periods=12))
    for name, write in (("b.parquet", frame.to_parquet), ("b.feather", frame.to_feather)):
        write(tmp_path / name)
        table = read_table([str(tmp_path / name)], on="patient", target="group")
        assert "visit" not in table.kinds
        assert any("visit" in note for note in table.notes)


def test_a_model_of_sheets(book, tmp_path):
    model, sheets = str(tmp_path / "model.lokl"), [f"{book}:blood", f"{book}:pulse"]
    target = ["--on", "patient", "--target", f"{book}:clinic:ill", "--method", "uniform"]
    assert runner.invoke(app, ["fit", *sheets, *target, "-o", model]).exit_code == 0
    # Of a whole workbook, the model takes the sheets that it knows.
    alike = [
        runner.invoke(app, ["predict", model, *given, "--json"]).stdout
        for given in (sheets, [book])
    ]
    few, all_sheets = ({row["id"]: row for row in json.loads(text)} for text in alike)
    assert len(few) == 12
    assert {name: all_sheets[name] for name in few} == few
