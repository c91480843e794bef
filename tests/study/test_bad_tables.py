"""Bad input of the commands that learn is one line, exit code 2, and nothing is written."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from compare_cases import QUICK, asked, write_tables
from typer.testing import CliRunner

import lokl
from lokl.cli.app import app
from lokl.study.run_folder import only_run

pytestmark = pytest.mark.slow

FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="the system has no /dev/full")
A = "id,a,b\nP1,1,4\nP2,5,1\nP3,2,8\nP4,3,3\n"

# Files by name, arguments of the command, and facts that the message contains, with | between them.
BAD = {
    "missing file": ({}, ["no.csv", "--target", "y"], "no.csv"),
    "empty file": ({"t.csv": ""}, ["t.csv", "--target", "y"], "t.csv|empty"),
    "binary file": (
        {"t.csv": b"\x89PNG\r\n\0\0"},
        ["t.csv", "--target", "y"],
        "t.csv|.csv",
    ),
    "other delimiter": (
        {"t.csv": "a;y\n1;2\n"},
        ["t.csv", "--target", "y", "--delimiter", ","],
        "t.csv|semicolons|--delimiter",
    ),
    "other encoding": (
        {"t.csv": "a,y\n1,größer\n".encode("latin1")},
        ["t.csv", "--target", "y"],
        "t.csv, row 2|UTF-8|0xf6",
    ),
    "no target": ({"t.csv": A}, ["t.csv"], "--target"),
    "target that is not there": (
        {"t.csv": A},
        ["t.csv", "--target", "y"],
        "t.csv|y|id, a, b|--target",
    ),
    "target that is always missing": (
        {"t.csv": "a,y\n1,\n2,\n"},
        ["t.csv", "--target", "y"],
        "target y",
    ),
    "one class": (
        {"t.csv": "a,y\n1,x\n2,x\n7,x\n"},
        ["t.csv", "--target", "y"],
        "target y|'x'|3 rows",
    ),
    "constant number": (
        {"t.csv": "a,y\n1,2.5\n2,2.5\n"},
        ["t.csv", "--target", "y", "--task", "regression"],
        "target y|2.5|2 rows",
    ),
    "time without event": ({"t.csv": A}, ["t.csv", "--time", "a"], "--time a|--event"),
    "time and target": (
        {"t.csv": A},
        ["t.csv", "--time", "a", "--event", "b", "--target", "b"],
        "--target b|--time",
    ),
    "one column for time and event": (
        {"t.csv": A},
        ["t.csv", "--time", "a", "--event", "a"],
        "--time|--event|a",
    ),
    "time that is not positive": (
        {"t.csv": "id,a,t,e\nP1,3,2,1\nP2,2,-1,0\n"},
        ["t.csv", "--on", "id", "--time", "t", "--event", "e"],
        "--time t|P2|-1|positive",
    ),
    "time that is no number": (
        {"t.csv": "id,a,t,e\nP1,3,2,1\nP2,2,soon,0\n"},
        ["t.csv", "--on", "id", "--time", "t", "--event", "e"],
        "--time t|P2|'soon'|--na",
    ),
    "event of a strange value": (
        {"t.csv": "id,a,t,e\nP1,3,2,1\nP2,2,1,2\n"},
        ["t.csv", "--on", "id", "--time", "t", "--event", "e"],
        "--event e|P2|2|1 for an observed event",
    ),
    "no event": (
        {"t.csv": "a,t,e\n3,2,0\n2,1,0\n"},
        ["t.csv", "--time", "t", "--event", "e"],
        "--event e|all 2 samples are censored",
    ),
    "times that are all the same": (
        {"t.csv": "a,t,e\n3,2,1\n2,2,1\n"},
        ["t.csv", "--time", "t", "--event", "e"],
        "--time t|order",
    ),
    "times that are always missing": (
        {"t.csv": "a,t,e\n3,,1\n2,,1\n"},
        ["t.csv", "--time", "t", "--event", "e"],
        "time in t|event in e",
    ),
    "id twice": (
        {"t.csv": "id,a,y\nP1,1,x\nP2,5,z\nP1,3,x\n"},
        ["t.csv", "--on", "id", "--target", "y"],
        "t.csv, rows 2 and 4, column id|'P1'",
    ),
    "no common id": (
        {"t.csv": A, "u.csv": "id,y\n1,x\n2,z\n"},
        ["t.csv", "--on", "id", "--target", "u.csv:y"],
        "t.csv|u.csv|'P1'|'1'|--on",
    ),
    "column in two views": (
        {"t.csv": A},
        ["t.csv", "--target", "id", "--view", "x=a*", "--view", "z=a,b"],
        "column a|x and z",
    ),
    "view of no column": (
        {"t.csv": A},
        ["t.csv", "--target", "id", "--view", "x=c*"],
        "view x|t.csv|c*|a, b",
    ),
    "no complete row": (
        {"t.csv": "a,b,y\n,,x\n,,z\n"},
        ["t.csv", "--target", "y"],
        "t.csv",
    ),
    "word among numbers": (
        {"t.csv": "a,y\n" + "".join(f"{k * k},{k % 2}\n" for k in range(9)) + "n/a,1\n"},
        ["t.csv", "--target", "y"],
        "t.csv, row 11, column a|'n/a'|--na n/a",
    ),
    "words that shall be numbers": (
        {"t.csv": "a,y\n1,x\n5,z\n"},
        ["t.csv", "--target", "y", "--task", "regression"],
        "target y|'x'",
    ),
    "class that nobody has": (
        {"t.csv": "a,y\n1,x\n5,z\n2,x\n"},
        ["t.csv", "--target", "y", "--positive", "w"],
        "--positive w|target y|x, z",
    ),
    "view without pattern": ({"t.csv": A}, ["t.csv", "--view", "x"], "--view x|--view NAME"),
    "settings that are none": ({"c.toml": "?"}, ["c.toml"], "c.toml is not"),
    "settings of lost tables": (
        {"c.toml": "[data]\nfiles = ['gone.csv']\ntarget = 'y'\n"},
        ["c.toml"],
        "gone.csv",
    ),
}
WORDS = "id,lab,word\n" + "".join(f"P{k},{k * k},{'xyz'[k % 3]}\n" for k in range(30))
# Misspelt names, and what is suggested instead.
MISSPELT = {
    "file": (["wrods.csv", "--target", "word"], "wrods.csv|words.csv"),
    "data set": (["iriss"], "iriss|iris"),
    "target": (["words.csv", "--target", "wordd"], "wordd|word|--target"),
    "ids": (["words.csv", "--target", "word", "--on", "idd"], "idd|id?|--on"),
    "groups": (["words.csv", "--target", "word", "--groups", "lap"], "lap|lab|--groups"),
    "ids as target": (["words.csv", "--target", "id", "--on", "id"], "--target id|--on id"),
    "class": (["iris", "--positive", "versicolour"], "versicolour|versicolor"),
    "task": (["iris", "--task", "classificaton"], "classification"),
    "kind": (["words.csv", "--target", "word", "--kind", "lab=numerik"], "numerik|numeric"),
    "column of a kind": (["words.csv", "--target", "word", "--kind", "labb=numeric"], "labb|lab?"),
}
ONLY_COMPARE = {
    "misspelt candidate": ({}, ["iris", "--methods", "UNIFORN"], "'UNIFORN'|UNIFORM"),
    "too few samples": (
        {"t.csv": "a,y\n1,x\n5,z\n2,x\n7,z\n"},
        ["t.csv", "--target", "y"],
        "4 samples|5 folds|--folds",
    ),
    "too few groups": (
        {"t.csv": "a,g,y\n" + "".join(f"{k * k},g{k % 2},{k % 2}\n" for k in range(20))},
        ["t.csv", "--target", "y", "--groups", "g"],
        "--groups g has 2 groups",
    ),
    "one fold": ({}, ["iris", "--folds", "1"], "--folds 1 --repeats 2: "),
    "unknown candidate": ({}, ["iris", "--methods", "oracle"], "'oracle'"),
}


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def check_refused(tmp_path, monkeypatch, command, case):
    files, arguments, told = case
    monkeypatch.chdir(tmp_path)
    for name, content in files.items():
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    before = sorted(tmp_path.iterdir())
    done = run(command, *arguments)
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    *_, line = done.stderr.splitlines()
    assert line.startswith("lokl: ")
    assert all(fact in line for fact in told.split("|")), line
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("command", ["fit", "compare"])
@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line(tmp_path, monkeypatch, command, name):
    check_refused(tmp_path, monkeypatch, command, BAD[name])


@pytest.mark.parametrize("command", ["fit", "compare"])
@pytest.mark.parametrize("name", MISSPELT)
def test_names_that_resemble_a_wrong_one_are_suggested(tmp_path, monkeypatch, command, name):
    """Also if the output cannot be written: input is checked first."""
    arguments, told = MISSPELT[name]
    case = {"words.csv": WORDS, "out": ""}, [*arguments, "-o", "out/below"], told
    check_refused(tmp_path, monkeypatch, command, case)


def test_a_misspelt_method_is_told_before_tables_are_read(tmp_path):
    done = run("fit", tmp_path / "no.csv", "--method", "uniformm")
    assert done.exit_code == 2
    assert "UNIFORM" in done.stderr
    assert "no.csv" not in done.stderr


@pytest.mark.parametrize("name", ONLY_COMPARE)
def test_what_cannot_be_compared(tmp_path, monkeypatch, name):
    check_refused(tmp_path, monkeypatch, "compare", ONLY_COMPARE[name])


@pytest.mark.parametrize("command", ["predict", "explain"])
def test_files_that_are_none_of_a_model(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    paths = write_tables(tmp_path)
    more = ["--sample", "S01"] if command == "explain" else []
    for content in (b"something else", b"PK\x05\x06" + bytes(18), b""):
        Path("m.lokl").write_bytes(content)
        done = run(command, "m.lokl", paths["left"], *more)
        assert done.exit_code == 2, done.output
        assert done.stderr.startswith("lokl: m.lokl ")


def test_tables_without_what_the_model_needs(tmp_path):
    paths = write_tables(tmp_path)
    model = tmp_path / "m.lokl"
    done = run("fit", *asked(paths), "--method", "uniform", "-o", model)
    assert done.exit_code == 0, done.output
    path = tmp_path / "new.csv"
    for content, facts in (
        ("id,x\nN1,1\n", (str(path), "a, b, c, colour")),
        ("id,a,b\nN1,1,2\n", ("column c", "left")),
        ("id,d,e\nN1,1,oops\n", (f"{path}, row 2, column e", "'oops'")),
    ):
        path.write_text(content)
        done = run("predict", model, path)
        assert done.exit_code == 2, done.output
        assert all(fact in done.stderr.splitlines()[-1] for fact in facts)
    path.write_text("id,d,e\nN1,1,2\n")
    done = run("predict", model, path)
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("command", ["fit", "compare", "explain"])
def test_places_that_cannot_be_written_are_told_before_the_work(tmp_path, command):
    paths = write_tables(tmp_path)
    (tmp_path / "file").touch()
    place = tmp_path / "file" / "below"
    arguments = asked(paths)
    if command == "explain":
        lokl.save(lokl.UniformMKLClassifier().fit([[0.0], [1.0]], [0, 1]), tmp_path / "m.lokl")
        arguments = [tmp_path / "m.lokl", paths["left"]]
    missing = tmp_path / "no" / "below"
    for output in (place, missing, place.parent if command == "compare" else tmp_path):
        done = run(command, *arguments, "-o", output)
        assert done.exit_code == 2, done.output
        assert not missing.parent.exists()
        (line,) = done.stderr.splitlines()
        assert line.startswith(f"lokl: {tmp_path}")
        assert "folder" in line


def lokl_process(*arguments, **settings):
    command = [sys.executable, "-m", "lokl", *map(str, arguments)]
    settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **settings}
    return subprocess.run(command, check=False, **settings)


@needs_full
def test_a_disk_that_is_full_loses_nothing(tmp_path):
    """First the disk of the results, then that of the output; the next run is whole."""
    resource = pytest.importorskip("resource")
    paths = write_tables(tmp_path)
    out = tmp_path / "run"
    arguments = ["compare", *asked(paths), *QUICK, "--methods", "logistic,majority", "-o", out]

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))

    done = lokl_process(*arguments, preexec_fn=limit)
    assert done.returncode == 1, done.stderr
    *_, line = done.stderr.decode().splitlines()
    assert line.startswith(f"lokl: cannot write to {out}: ")
    assert "fits are in" in line
    assert {place.name for place in out.iterdir()} == {"cells.jsonl", "config.toml"}
    assert (out / "cells.jsonl").read_bytes().endswith(b"\n")
    with FULL.open("wb") as full:
        done = lokl_process(*arguments, stdout=full)
    assert done.returncode == 1
    *_, line = done.stderr.decode().splitlines()
    assert line == "cannot write the output: No space left on device"
    assert (out / "report.html").exists()
    read, write = os.pipe()
    os.close(read)
    try:
        done = lokl_process(*arguments, "--json", stdout=write)
    finally:
        os.close(write)
    assert done.returncode == 1
    assert b"Error" not in done.stderr
    assert run(*arguments).exit_code == 0


def test_a_second_run_in_the_folder_is_refused(tmp_path):
    paths = write_tables(tmp_path)
    out = tmp_path / "run"
    arguments = ["compare", *asked(paths), *QUICK, "--methods", "majority", "-o", out]
    assert run(*arguments).exit_code == 0
    with only_run(out):
        second = run(*arguments)
    assert second.exit_code == 2, second.output
    assert str(out) in second.stderr.splitlines()[-1]
    assert "--output" in second.stderr.splitlines()[-1]


def test_records_that_are_damaged_are_named(tmp_path):
    paths = write_tables(tmp_path)
    out = tmp_path / "run"
    arguments = ["compare", *asked(paths), *QUICK, "--methods", "majority", "-o", out]
    assert run(*arguments).exit_code == 0
    cells = out / "cells.jsonl"
    for damage, told in (
        (b"[]\n", "a record is a JSON object"),
        (b'{"candidate": "x", "split": 0, "permutation": 0, "error": null}\n', "missing: seconds"),
        (b'{"candidate": "x", "split": "0", "permutation": 0, "error": "no"}\n', "split is '0'"),
    ):
        whole = cells.read_bytes()
        cells.write_bytes(whole + damage)
        done = run(*arguments)
        assert done.exit_code == 2, done.output
        assert f"{cells}, line 4 " in done.stderr
        assert told in done.stderr
        cells.write_bytes(whole)
