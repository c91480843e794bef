"""Tables: cells, the choice of a width, the paper's bold rule, and the command."""

import csv
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from typer.testing import CliRunner

from lokl._deadline import Deadline
from lokl.cli.app import app
from lokl.datasets.registry import RECORDS
from lokl.paper import (
    PUBLISHED,
    SETS,
    TABLES,
    Cell,
    RecordFile,
    make_cells,
    make_table,
    recorded_cells,
)
from lokl.paper.cells import SEED
from lokl.paper.methods import DICTIONARIES, GAMMAS, METHOD_NAMES
from lokl.paper.published import breaks_bold_rule

runner = CliRunner()


def record(method="SwMKL", accuracy=0.75, data="diabetes_scale", gamma=1.0, split=0, **others):
    cell = Cell(data, method, "quadratic, Gaussian", gamma, split=split, seed=SEED)
    measured = {"accuracy": accuracy, "support": 0.5, "fit_seconds": 0.1, "error": None}
    return {**vars(cell), **measured, **others}


def test_a_full_table_has_every_cell_once():
    cells = make_cells("table2")
    assert len(set(cells)) == len(cells) == 4 * len(GAMMAS) * (4 * 100 + 2 * 20 + 10)
    assert {cell.solver for cell in cells} == {"exact"}
    assert {cell.solver for cell in make_cells("table3", repeats=1)} == {"mwu"}
    ours = make_cells("table4", repeats=1, readings=["lokl"])
    assert {cell.method for cell in ours} == {*TABLES["table4"].columns, "UNIFORM, trace"}


def test_cells_can_be_chosen():
    cells = make_cells(
        "table2",
        sets=["liver"],
        methods=["ld-mkl"],
        repeats=2,
        dictionaries=["nine Gaussians", "quadratic, Gaussian"],
        solver="libsvm",
    )
    assert {cell.data for cell in cells} == {"liver-disorders_scale"}
    assert {cell.method for cell in cells} == {"LD-MKL, literal"}
    assert len(cells) == 2 + 2 * len(GAMMAS)
    nested = make_cells("table2", sets=["Liver"], methods=["SwMKL"], repeats=3, selection="nested")
    assert [(c.gamma, c.selection) for c in nested] == [(None, "nested")] * 3
    two = make_cells("table2", sets=["Liver"], methods=["SwMKL"], repeats=3, gammas=[0.5, 2.0])
    assert [(c.gamma, c.split) for c in two] == [(g, s) for g in (0.5, 2.0) for s in range(3)]
    quick = make_cells("table2", quick=True)
    assert {cell.rows for cell in quick} == {1000}
    assert len(quick) == 7 * 4 * 3 * 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"table": "table5"}, "unknown table 'table5'; did you mean"),
        ({"table": "table2", "sets": ["Diabetis"]}, "did you mean 'Diabetes'"),
        (
            {"table": "table2", "methods": ["LDMKL"]},
            "unknown method 'LDMKL'; did you mean 'LD-MKL'",
        ),
        ({"table": "table2", "dictionaries": ["x"]}, "unknown dictionary 'x'"),
        ({"table": "table2", "readings": ["ours"]}, "unknown reading 'ours'; choose one of"),
        ({"table": "table2", "selection": "test"}, "unknown selection 'test'"),
        ({"table": "table2", "solver": "libsvn"}, "unknown solver 'libsvn'; did you mean 'libsvm'"),
        ({"table": "table2", "gammas": [0.5, 0.3]}, "gamma '0.3'.*0.0625, 0.125"),
    ],
)
def test_names_that_are_not_known(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_cells(**arguments)


def test_the_best_width_is_shown_and_compared():
    records = [record(accuracy=0.70 + 0.01 * s, gamma=0.5, split=s) for s in range(3)]
    records += [record(accuracy=0.76 + 0.01 * s, gamma=2.0, split=s) for s in range(3)]
    (entry,) = make_table("table2", records).entries
    assert (entry.set, entry.method, entry.gamma, entry.splits) == ("Diabetes", "SwMKL", 2.0, 3)
    assert entry.mean == pytest.approx(77.0)
    assert entry.spread == pytest.approx(1.0)
    assert entry.published == 77.0
    assert entry.difference == pytest.approx(0.0)
    assert entry.within == 1
    for order in ((4.0, 0.5, 1.0), (1.0, 4.0, 0.5)):
        (tied,) = make_table("table2", [record(gamma=gamma) for gamma in order]).entries
        assert tied.gamma == 0.5
        records = [record(gamma=gamma) for gamma in order]
        (tied,) = make_table("table2", records, ties="largest").entries
        assert tied.gamma == 4.0
    # Published as 99.99 (0): what rounding may hide is no difference.
    near = make_table("table2", [record("LMKL", accuracy=1.0, data="mushrooms")]).entries[0]
    assert (near.published_spread, near.within) == (0.0, 1)


def test_bold_is_ahead_of_all_others_by_both_deviations():
    def table(ahead, name="table2", **others):
        records = [record("SwMKL", 0.7 + d, split=s) for s, d in enumerate((-0.01, 0.01))]
        records += [
            record("LD-MKL", 0.7 + ahead + d, split=s, **others)
            for s, d in enumerate((-0.01, 0.01))
        ]
        return [entry.bold for entry in make_table(name, records).entries]

    # Both deviations are about 1.41 points.
    assert table(0.028) == [False, False]
    assert table(0.029) == [False, True]
    # Fewer support points are better.
    assert table(0.0, "table4", support=0.4) == [False, True]
    assert table(0.0, "table4", support=0.6) == [True, False]
    assert make_table("table2", [record()]).entries[0].bold is False


def test_a_width_with_few_splits_is_not_the_best_by_luck():
    records = [record(accuracy=0.7, gamma=0.5, split=s) for s in range(3)]
    records += [record(accuracy=0.9, gamma=1.0)]
    (entry,) = make_table("table2", records).entries
    assert (entry.gamma, entry.splits) == (0.5, 3)


def test_what_is_recorded_makes_a_table():
    records = [record(gamma=g, split=s) for g in (2.0, 0.5) for s in range(2)]
    records += [record("LMKL"), record("UNIFORM"), record(solver="mwu"), record(rows=100)]
    ours = {"readings": ["lokl"]}
    cells = recorded_cells("table2", records, **ours)
    assert [(c.method, c.gamma, c.split) for c in cells] == [
        ("LMKL", 1.0, 0),
        ("SwMKL", 0.5, 0),
        ("SwMKL", 0.5, 1),
        ("SwMKL", 2.0, 0),
        ("SwMKL", 2.0, 1),
    ]
    assert [c.solver for c in recorded_cells("table3", records, **ours)] == ["mwu"]
    assert {c.gamma for c in recorded_cells("table2", records, gammas=[0.5], **ours)} == {0.5}
    assert recorded_cells("table2", records, sets=["Liver"], **ours) == []
    assert recorded_cells("table2", records) == []


def test_failures_are_counted_not_hidden():
    records = [record(error="ValueError: no"), record(split=1)]
    (entry,) = make_table("table2", records).entries
    assert (entry.splits, entry.failures) == (1, 1)
    (entry,) = make_table("table2", records[:1]).entries
    assert entry.mean is None
    assert "failed" in make_table("table2", records[:1]).markdown()


def test_a_table_reads_back_from_every_form():
    table = make_table("table2", [record(), record("LMKL", 0.8)])
    rows = list(csv.DictReader(io.StringIO(table.csv())))
    assert [row["method"] for row in rows] == ["SwMKL", "LMKL"]
    assert float(rows[0]["mean"]) == pytest.approx(75.0)
    assert table.as_dict()["entries"][1]["method"] == "LMKL"
    lines = table.markdown().splitlines()
    assert all(line.count("|") == 14 for line in lines if line.startswith("|"))


def test_published_numbers_belong_to_known_sets_and_methods():
    for name, sets in PUBLISHED.items():
        assert set(sets) == set(SETS)
        for values in sets.values():
            assert set(values) <= set(TABLES[name].columns)
            assert all(0 <= value.mean <= 100 and value.spread >= 0 for value in values.values())


def test_where_the_paper_breaks_its_own_rule():
    broken = {
        (table, name, method)
        for table, sets in PUBLISHED.items()
        for name, values in sets.items()
        for method in values
        if breaks_bold_rule(table, name, method)
    }
    assert broken == {
        ("table4", "Breast", "C-LMKL"),
        ("table4", "Diabetes", "SwMKL"),
        ("table4", "Liver", "LMKL"),
    }
    kept = [m for sets in PUBLISHED.values() for v in sets.values() for m in v.values() if m.bold]
    assert len(kept) == 7
    # The least time of a set, and only one of them.
    for table in ("table2", "table3"):
        for values in PUBLISHED[table].values():
            bold = [value.seconds for value in values.values() if value.bold_seconds]
            assert bold in ([], [min(value.seconds for value in values.values())])


def test_marks_of_the_published_numbers_are_shown():
    made = make_table("table4", [record("SwMKL"), record("LD-MKL")])
    assert "| **55.2 (1.3)** † |" in made.markdown()
    assert "| 56.4 (1.3) |" in made.markdown()
    assert "| **0.27** † |" in make_table("table3", [record("LMKL")]).markdown()


@pytest.mark.slow
@pytest.mark.parametrize("dictionary", DICTIONARIES)
@pytest.mark.parametrize("method", METHOD_NAMES)
def test_every_method_and_dictionary_runs(method, dictionary):
    from lokl.paper import run_cell

    done = run_cell(Cell("iris", method, dictionary, 0.25, rows=60))
    assert done["error"] is None
    assert done["accuracy"] > 0.2


def test_normalisation_follows_the_method_and_the_dictionary():
    from lokl.paper.methods import build

    def how(method, dictionary):
        kernels = build(method, dictionary, 1.0, 1.0, "exact", 0).kernels
        return {getattr(kernel, "how", None) for kernel in kernels}

    usual, raw = "quadratic, Gaussian", "linear, Gaussian, raw"
    assert how("SwMKL", usual) == {"mean_diag"}
    assert how("LMKL", usual) == {"unit_diag"}
    assert how("SwMKL", raw) == how("LMKL", raw) == {None}
    for method in ("UNIFORM, trace", "MWUMKL, authors' constants"):
        assert how(method, usual) == how(method, raw) == {"trace"}


def test_nested_selection_chooses_a_width_of_the_grid():
    from lokl.paper import run_cell

    done = run_cell(Cell("iris", "UNIFORM", "quadratic, Gaussian", None, "nested", rows=60))
    assert done["error"] is None
    assert done["chosen_gamma"] in GAMMAS
    assert done["select_seconds"] > 0


def test_the_command_writes_tables_and_goes_on(tmp_path, lokl_data):
    arguments = ["reproduce", "table2", "--quick", "--datasets", "Liver", "--methods", "SwMKL"]
    arguments += ["--methods", "C-LMKL", "--jobs", "1", "-o", str(tmp_path)]
    first = runner.invoke(app, arguments)
    assert first.exit_code == 0, first.output
    assert "Liver" in first.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "records.jsonl",
        "table2-quick.csv",
        "table2-quick.json",
        "table2-quick.md",
    ]
    before = (tmp_path / "records.jsonl").read_bytes()
    assert before.count(b"\n") == 2 * 3 * 3
    second = runner.invoke(app, [*arguments, "--json"])
    assert second.exit_code == 0, second.output
    assert (tmp_path / "records.jsonl").read_bytes() == before
    assert json.loads(second.stdout)["entries"][0]["splits"] == 3
    written = json.loads((tmp_path / "table2-quick.json").read_text())
    assert written["environment"]["cores"] == os.cpu_count()
    assert written["environment"]["numpy"] == np.__version__
    # Records are shown without a fit, also from an archive.
    (tmp_path / "records.jsonl.gz").write_bytes(gzip.compress(before))
    (tmp_path / "records.jsonl").unlink()
    third = runner.invoke(app, ["reproduce", "table2", "--quick", "--recorded", *arguments[-2:]])
    assert third.exit_code == 0, third.output
    assert json.loads((tmp_path / "table2-quick.json").read_text())["entries"] == written["entries"]
    assert not (tmp_path / "records.jsonl").exists()
    # A look at a part of them writes nothing.
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    look = ["reproduce", "table2", "--quick", "--recorded", "--gamma", "1", "--methods", "SwMKL"]
    fourth = runner.invoke(app, [*look, "--json", *arguments[-2:]])
    assert [entry["gamma"] for entry in json.loads(fourth.stdout)["entries"]] == [1.0]
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["table9"], "unknown table or figure 'table9'"),
        (["table2", "--datasets", "Mushrom"], "did you mean 'Mushroom'"),
        (["table2", "--methods", "magic"], "unknown method 'magic'"),
        (["table2", "--reading", "magic"], "choose one of (paper, lokl, both)"),
        (["table2", "--ties", "magic"], "unknown choice of ties 'magic'"),
        (["agreement"], "run a table first"),
        (["table3", "--recorded"], "has no records of table3"),
    ],
)
def test_bad_input_of_the_command(arguments, words, tmp_path):
    result = runner.invoke(app, ["reproduce", *arguments, "-o", str(tmp_path)])
    assert result.exit_code == 2
    assert words in result.stderr
    assert not list(tmp_path.iterdir())


def test_names_can_be_listed_with_commas(tmp_path, lokl_data):
    arguments = ["reproduce", "table4", "--quick", "--datasets", "liver, diabetes_scale"]
    arguments += ["--methods", "uniform, trace", "--methods", "UNIFORM,SwMKL", "--repeats", "1"]
    result = runner.invoke(app, [*arguments, "--jobs", "1", "-o", str(tmp_path), "--json"])
    assert result.exit_code == 0, result.output
    entries = json.loads(result.stdout)["entries"]
    assert {entry["set"] for entry in entries} == {"Liver", "Diabetes"}
    assert {entry["method"] for entry in entries} == {"UNIFORM, trace", "UNIFORM", "SwMKL, literal"}


@pytest.mark.parametrize("what", ["table2", "figure2"])
def test_sets_that_are_not_here(tmp_path, monkeypatch, what):
    empty = tmp_path / "empty"
    empty.mkdir()
    for variable in ("LOKL_DATA", "LOKL_CACHE"):
        monkeypatch.setenv(variable, str(empty))
    arguments = ["reproduce", what, "--quick", "--no-download", "-o", str(tmp_path / "out")]
    result = runner.invoke(app, arguments)
    assert result.exit_code == 2
    assert "LOKL_DATA" in result.stderr
    assert not (tmp_path / "out").exists()


def test_sets_are_fetched(tmp_path, monkeypatch, lokl_data):
    """From a server on this machine, which has one of two sets."""
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "liver").write_bytes((lokl_data / "liver-disorders_scale").read_bytes())
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    monkeypatch.delenv("LOKL_DATA")
    monkeypatch.setenv("LOKL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    arguments = ["reproduce", "table2", "--quick", "--datasets", "Liver,Breast", "--jobs", "1"]
    arguments += ["--methods", "SwMKL", "-o", str(tmp_path / "out")]
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        address = f"http://127.0.0.1:{server.server_port}"
        for name, page in (("liver-disorders_scale", "liver"), ("breast-cancer_scale", "none")):
            changed = replace(RECORDS[name], url=f"{address}/{page}", files=(page,))
            monkeypatch.setitem(RECORDS, name, changed)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            result = runner.invoke(app, arguments)
        finally:
            server.shutdown()
            thread.join()
    assert result.exit_code == 0, result.output
    assert (tmp_path / "cache" / "liver").exists()
    assert "left out: breast-cancer_scale: " in result.stderr
    assert "404" in result.stderr
    assert "Liver" in result.stdout


SMALL = ["reproduce", "table2", "--quick", "--datasets", "Liver", "--methods", "SwMKL"]


def test_when_time_is_over_what_is_recorded_is_shown(tmp_path, lokl_data, monkeypatch):
    over = [*SMALL, "--jobs", "1", "--time-limit", "60", "-o", str(tmp_path)]
    answers = iter([False, False] + [True] * 50)
    monkeypatch.setattr(Deadline, "passed", property(lambda self: next(answers)))
    first = runner.invoke(app, [*over, "--json"])
    assert first.exit_code == 0, first.output
    assert json.loads(first.stdout)["entries"]
    assert "7 fits are left" in first.stderr
    assert len(RecordFile(tmp_path / "records.jsonl")) == 2
    second = runner.invoke(app, [*over[:-1], str(tmp_path / "other")])
    assert second.exit_code == 1
    assert "60 s; raise --time-limit" in second.stderr
    monkeypatch.undo()
    third = runner.invoke(app, over)
    assert third.exit_code == 0, third.output
    assert "lack of time" not in third.stderr


def test_a_folder_that_cannot_be_written(tmp_path, lokl_data):
    place = tmp_path / "file"
    place.write_text("")
    result = runner.invoke(app, [*SMALL, "--jobs", "1", "-o", str(place)])
    assert result.exit_code in (1, 2)
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_disk_that_is_full(tmp_path, lokl_data):
    """The system refuses to let files grow: earlier records stay, and the run goes on later."""
    resource = pytest.importorskip("resource", reason="limits of file sizes are POSIX")
    arguments = [*SMALL, "--jobs", "1", "-o", str(tmp_path)]
    assert runner.invoke(app, arguments).exit_code == 0
    path = tmp_path / "records.jsonl"
    everything = RecordFile(path)
    five = b"".join(path.read_bytes().splitlines(keepends=True)[:5])
    path.write_bytes(five)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Room for half a record.
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(five) + 100, before[1]))
    try:
        result = runner.invoke(app, arguments)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert result.exit_code == 1
    assert "cannot write" in result.stderr
    assert "5 records" in result.stderr
    assert path.read_bytes() == five
    assert runner.invoke(app, arguments).exit_code == 0
    assert {Cell.of(r) for r in RecordFile(path)} == {Cell.of(r) for r in everything}


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
def test_an_interrupted_run_says_how_to_go_on(tmp_path, lokl_data, start_process):
    arguments = ["table2", "--datasets", "Diabetes", "--jobs", "1", "-o", str(tmp_path)]
    code = (
        "import signal; from lokl.cli import main\n"
        # A process started in the background may have been told to ignore it.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "main()"
    )
    command = [sys.executable, "-c", code, "reproduce", *arguments]
    process = start_process(command, stderr=subprocess.PIPE, text=True)
    path = tmp_path / "records.jsonl"
    while process.poll() is None and not (path.exists() and path.stat().st_size):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert "interrupted" in said
    assert str(tmp_path) in said
    assert len(RecordFile(path)) >= 1


def test_a_scheduler_that_is_not_there(tmp_path, lokl_data):
    arguments = [*SMALL, "--backend", "magic", "-o", str(tmp_path)]
    result = runner.invoke(app, arguments)
    assert result.exit_code == 2
    assert "'magic'" in result.stderr
    assert not list(tmp_path.iterdir())


def test_dask_that_is_not_installed(tmp_path, lokl_data, monkeypatch):
    for name in ("dask", "dask.distributed", "distributed"):
        monkeypatch.setitem(sys.modules, name, None)
    result = runner.invoke(app, [*SMALL, "--backend", "dask", "-o", str(tmp_path)])
    assert result.exit_code == 2
    assert "pip install 'lokl[dask]'" in result.stderr
    assert not list(tmp_path.iterdir())
