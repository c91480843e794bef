"""Readings of the paper: which fits they are, how they are told apart, and how near they come."""

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from lokl.cli.app import app
from lokl.paper import PUBLISHED, TABLES, Cell, RecordFile, make_cells, make_table, run_cell
from lokl.paper.cells import FULL_RUN
from lokl.paper.figures import agreement_figure
from lokl.paper.methods import DICTIONARIES, METHOD_NAMES, READINGS, build
from lokl.paper.published import SETS

runner = CliRunner()


def record(method, accuracy, reading, support=0.5, **others):
    cell = Cell("diabetes_scale", method, "linear, Gaussian, raw", 1.0, reading=reading)
    measured = {"accuracy": accuracy, "support": support, "fit_seconds": 0.1, "error": None}
    return {**vars(cell), **measured, **others}


@pytest.mark.parametrize("name", READINGS)
def test_one_method_of_a_reading_stands_for_each_column(name):
    reading = READINGS[name]
    assert reading.dictionary in DICTIONARIES
    for table, spec in TABLES.items():
        columns = {column for own in PUBLISHED[table].values() for column in own}
        assert columns == set(spec.columns)
        shown = reading.methods(spec.columns, spec.solver)
        assert len(set(shown)) == len(shown)
        assert set(shown) <= set(METHOD_NAMES)
        for column in columns:
            stands = reading.method(column, spec.solver)
            assert stands in shown
            # How tables find the published number.
            assert stands.split(",")[0] == column


def test_the_papers_reading_is_plain_scikit_learn():
    literal = build("SwMKL, literal", "linear, Gaussian, raw", 0.5, 1.0, "exact", 0)
    assert [kernel.label for kernel in literal.kernels] == ["linear", "rbf(0.5)"]
    assert (literal.psd, literal.success_kernel.gamma) == ("none", "auto")
    vote = build("LD-MKL, literal", "linear, Gaussian, raw", 0.5, 1.0, "exact", 0)
    assert (vote.margin, vote.gating, vote.success_kernel.gamma) == (0.0, "none", "auto")
    authors = build("MWUMKL, authors' constants", "linear, Gaussian, raw", 0.5, 1.0, "mwu", 0)
    assert (authors.C, authors.epsilon, authors.rate) == (1000.0, 0.2, "faithful")
    simplex = build("GMKL, simplex", "linear, Gaussian, raw", 0.5, 1.0, "exact", 0)
    X = np.random.RandomState(0).normal(size=(40, 3))
    assert simplex.fit(X, X[:, 0] > 0).weights_.sum() == pytest.approx(1.0)


def test_readings_have_cells_of_their_own():
    both = make_cells("table2", sets=["Liver"], repeats=1, readings=["paper", "lokl"])
    assert len(set(both)) == len(both)
    kinds = {(cell.reading, cell.dictionary) for cell in both}
    assert kinds == {("paper", "linear, Gaussian, raw"), ("lokl", "quadratic, Gaussian")}
    # Without a final kernel matrix that is positive semidefinite there are no class hulls.
    weights = {cell.method for cell in make_cells("table3", repeats=1)}
    assert "SwMKL, repaired" in weights
    assert "SwMKL, literal" not in weights
    # A method of the paper means all that a reading shows for it.
    chosen = make_cells("table4", sets=["Liver"], methods=["UNIFORM"], repeats=1)
    assert {cell.method for cell in chosen} == {"UNIFORM", "UNIFORM, trace"}


def test_the_full_run_has_every_width_and_nested_selection():
    assert ("table2", "nested") in FULL_RUN
    assert {table for table, how in FULL_RUN if how == "paper"} == set(TABLES)
    adult = [cell for cell in make_cells("table2") if cell.data == "a9a"]
    assert len({cell.gamma for cell in adult}) == 9
    assert {name: own.repeats for name, own in SETS.items() if name != "Gisette"} == {
        **dict.fromkeys(("Breast", "Diabetes", "German", "Liver"), 100),
        "Mushroom": 20,
        "Adult": 10,
    }


def test_results_near_the_published_are_counted_for_each_reading():
    # Published: LMKL 74.71 (3.07), SwMKL 77.0 (2.7), LD-MKL 76.7 (2.56), C-LMKL 76.4 (2.4).
    near = [
        record("LMKL", 0.75, "paper"),
        record("SwMKL, literal", 0.80, "paper"),
        record("LD-MKL, literal", 0.60, "paper"),
        # Variants and failures: the first is not counted, the second is, and is not near.
        record("LD-MKL, margin 0", 0.767, "paper"),
        record("C-LMKL", 0.76, "paper", error="ValueError: no"),
    ]
    ours = [record("SwMKL", 0.77, "lokl")]
    table = make_table("table2", [*near, *ours])
    assert [entry.within for entry in table.entries] == [1, 2, 3, 1, None, 1]
    first, second = table.agreement()
    assert vars(first) == {"reading": "paper", "cells": 4, "within_one": 1, "within_two": 2}
    assert vars(second) == {"reading": "lokl", "cells": 1, "within_one": 1, "within_two": 1}
    assert "'paper': 1 of 4 within one published deviation, 2 within two." in table.markdown()
    assert table.as_dict()["agreement"][1]["reading"] == "lokl"
    assert "+3.00 *" in table.markdown()
    assert "-16.70 ‡" in table.markdown()
    assert make_table("table2", near[3:4]).agreement() == []


def test_bold_is_ahead_of_others_of_the_same_reading():
    records = [record("SwMKL, literal", 0.8, "paper"), record("LMKL", 0.7, "paper")]
    records += [record("SwMKL", 0.9, "lokl")]
    bold = [entry.bold for entry in make_table("table2", records).entries]
    assert bold == [True, False, False]


def test_experts_have_a_mean_support_beside_their_union():
    vote = run_cell(Cell("wine", "LD-MKL, literal", "linear, Gaussian, raw", 0.25, reading="paper"))
    assert vote["error"] is None
    assert 0 < vote["expert_support"] <= vote["support"]
    machine = run_cell(Cell("wine", "UNIFORM", "linear, Gaussian, raw", 0.25))
    assert machine["expert_support"] is None
    shown = [
        record("LD-MKL, literal", 0.7, "paper", expert_support=share, split=s)
        for s, share in enumerate((0.3, 0.4))
    ]
    (entry,) = make_table("table4", shown).entries
    assert entry.expert_support == pytest.approx(35.0)
    assert "| 35.00 |" in make_table("table4", shown).markdown()


def test_an_unknown_reading_is_rejected(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_text(json.dumps(record("SwMKL", 0.7, "magic")) + "\n")
    with pytest.raises(ValueError, match=r"line 1 .*'paper', 'lokl', got 'magic'"):
        RecordFile(path)


def test_all_results_are_drawn_against_the_published():
    records = [record("SwMKL, literal", 0.77, "paper"), record("SwMKL", 0.7, "lokl")]
    records += [record("LD-MKL, margin 0", 0.7, "lokl")]
    tables = [make_table(name, records) for name in ("table2", "table4")]
    figure = agreement_figure(tables)
    panels = figure.axes
    assert [axes.get_title() for axes in panels] == [table.title for table in tables]
    (legend,) = figure.legends
    texts = [text.get_text() for text in legend.get_texts()]
    assert texts == ["reading paper", "reading lokl", "SwMKL"]
    # Of Diabetes, 7 points are more than two deviations of 2.7.
    assert [text.get_text() for text in panels[0].texts] == ["Diabetes"]
    points = [bars.lines[0].get_xydata().tolist() for bars in panels[0].containers]
    assert points == [[[77.0, 77.0]], [[77.0, 70.0]]]


def test_names_of_far_off_results_do_not_hide_each_other():
    """Both readings of a method at nearly the same place, and three panels in two rows."""
    records = [
        {**record(method, 0.6 + 0.01 * k, reading), "data": data}
        for k, data in enumerate(("diabetes_scale", "german.numer_scale"))
        for method, reading in (("SwMKL, literal", "paper"), ("SwMKL", "lokl"))
    ]
    figure = agreement_figure([make_table("table2", records)] * 3)
    figure.canvas.draw()
    for axes in figure.axes:
        boxes = [text.get_window_extent() for text in axes.texts]
        assert sorted(text.get_text() for text in axes.texts) == ["Diabetes"] * 2 + ["German"] * 2
        assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])
    first, second, wide = (axes.get_position() for axes in figure.axes)
    assert wide.width > first.width + second.width
    assert wide.y1 < first.y0


def test_the_command_shows_both_readings_side_by_side(tmp_path, lokl_data):
    where = ["--quick", "--repeats", "1", "--jobs", "1", "-o", str(tmp_path)]
    methods = ["--datasets", "Liver", "--methods", "UNIFORM"]
    done = runner.invoke(app, ["reproduce", "table4", "--reading", "both", *methods, *where])
    assert done.exit_code == 0, done.output
    assert "Reading 'paper': " in done.stdout
    assert "Reading 'lokl': " in done.stdout
    readings = {line["reading"] for line in RecordFile(tmp_path / "records.jsonl")}
    assert readings == {"paper", "lokl"}
    recorded = ["reproduce", "table4", "--quick", "--recorded", "--json", "-o", str(tmp_path)]
    shown = json.loads(runner.invoke(app, recorded).stdout)
    assert [entry["reading"] for entry in shown["entries"]] == ["paper"] * 2 + ["lokl"] * 2
    # A look at one of them leaves the page of both as it is.
    before = (tmp_path / "table4-quick.md").read_bytes()
    shown = json.loads(runner.invoke(app, [*recorded, "--reading", "LOKL"]).stdout)
    assert [entry["reading"] for entry in shown["entries"]] == ["lokl"] * 2
    assert (tmp_path / "table4-quick.md").read_bytes() == before
    # Kernels of trace one name one class at every width.
    gammas = {}
    for ties in ("smallest", "largest"):
        shown = json.loads(runner.invoke(app, [*recorded, "--ties", ties]).stdout)
        gammas[ties] = [e["gamma"] for e in shown["entries"] if e["method"] == "UNIFORM, trace"]
    assert gammas == {"smallest": [0.0625] * 2, "largest": [16.0] * 2}
    assert (tmp_path / "table4-largest-quick.md").exists()
    drawn = runner.invoke(app, ["reproduce", "agreement", "--quick", "-o", str(tmp_path), "--json"])
    assert drawn.exit_code == 0, drawn.output
    counts = json.loads(drawn.stdout)["agreement"]["table4"]
    assert [(own["reading"], own["cells"]) for own in counts] == [("paper", 1), ("lokl", 1)]
    assert (tmp_path / "agreement.svg").exists()


def test_what_other_records_there_are_is_said(tmp_path):
    RecordFile(tmp_path / "records.jsonl").add(record("SwMKL", 0.7, "lokl"))
    done = runner.invoke(app, ["reproduce", "table2", "--recorded", "-o", str(tmp_path)])
    assert done.exit_code == 2
    assert "lokl with seed 0" in done.stderr


def test_the_trusted_vote_stands_beside_the_methods_of_the_paper():
    own = {"methods": ["trusted vote"], "readings": ["lokl"], "gammas": [0.25], "repeats": 1}
    (cell,) = make_cells("table2", sets=["Liver"], **own)
    found = run_cell(replace(cell, data="wine"))
    assert found["error"] is None
    assert 0.5 < found["accuracy"] <= 1.0
    assert 0.0 < found["expert_support"] <= found["support"] <= 1.0
