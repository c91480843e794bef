"""The command as a process: exit codes, encodings, output that is lost, runs at the same time."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lokl.paper import Cell, RecordFile

pytestmark = pytest.mark.slow

LOKL = [sys.executable, "-m", "lokl"]
SMALL = ["table2", "--quick", "--datasets", "Liver", "--methods", "SwMKL", "--jobs", "1"]
FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="the system has no /dev/full")


def lokl(*arguments, **settings):
    environment = {**os.environ, "COLUMNS": "80", **settings.pop("environment", {})}
    settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **settings}
    return subprocess.run([*LOKL, *map(str, arguments)], env=environment, check=False, **settings)


def line_on_stderr(done):
    """The only line on standard error."""
    (line,) = done.stderr.decode().splitlines()
    return line


@pytest.fixture
def own_data(tmp_path, monkeypatch):
    """A folder of data whose Liver has one class only, so that no fit succeeds."""
    folder = tmp_path / "data"
    folder.mkdir()
    row = "1 " + " ".join(f"{column}:0.5" for column in range(1, 7))
    (folder / "liver-disorders_scale").write_text(f"{row}\n" * 345)
    monkeypatch.setenv("LOKL_DATA", str(folder))


@pytest.mark.parametrize("as_json", [False, True])
def test_fits_that_all_fail_are_an_exit_code(tmp_path, own_data, as_json):
    out = tmp_path / "out"
    done = lokl("reproduce", *SMALL, "-o", out, *(["--json"] if as_json else []))
    assert done.returncode == 1
    *_, last = done.stderr.decode().splitlines()
    assert last.startswith("lokl: all 9 fits failed")
    if as_json:
        assert json.loads(done.stdout)["entries"][0]["failures"] == 9
    else:
        assert "failed" in done.stdout.decode()


def test_some_fits_that_fail_are_counted(tmp_path, lokl_data, own_data):
    shutil.copy(lokl_data / "diabetes_scale", os.environ["LOKL_DATA"])
    done = lokl("reproduce", *SMALL, "--datasets", "Diabetes", "-o", tmp_path / "out")
    assert done.returncode == 1
    first, second, *_, last = done.stderr.decode().splitlines()
    assert first.startswith("warning: ")
    assert "liver-disorders_scale" in first
    assert second.startswith("failed: ValueError: ")
    assert last.startswith("lokl: 9 of 18 fits failed")
    words = done.stdout.decode().split()
    assert {"Liver", "Diabetes", "failed"} <= set(words)


def record(**changes):
    """A record of one fit, as plain values."""
    cell = Cell("breast-cancer_scale", "LMKL", "quadratic, Gaussian", 1.0)
    measured = {"accuracy": 0.5, "support": 0.5, "fit_seconds": 0.1, "error": None}
    return {**vars(cell), **measured, **changes}


@pytest.fixture
def recorded(tmp_path):
    """Options that show the table of one fit, without a fit."""
    RecordFile(tmp_path / "records.jsonl").add(record())
    return ["table2", "--recorded", "--seed", "0", "-o", str(tmp_path)]


@pytest.mark.parametrize("options", [[], ["--recorded"]])
@pytest.mark.parametrize("lacking", ["error", "fit_seconds", "method"])
def test_a_record_that_lacks_something_is_one_line(tmp_path, lacking, options):
    damaged = record()
    del damaged[lacking]
    path = tmp_path / "records.jsonl"
    path.write_text(json.dumps(record(split=1)) + "\n" + json.dumps(damaged) + "\n")
    done = lokl("reproduce", *SMALL, *options, "-o", tmp_path)
    assert done.returncode == 2
    assert line_on_stderr(done).startswith(f"lokl: {path}, line 2 ")
    assert lacking in line_on_stderr(done)


@pytest.mark.parametrize("option", ["--datasets", "--methods"])
@pytest.mark.parametrize("value", ["", ",", " , "])
def test_a_list_of_nothing_is_not_everything(tmp_path, option, value):
    done = lokl("reproduce", "table2", option, value, "-o", tmp_path / "out")
    assert done.returncode == 2
    assert f"Invalid value for '{option}'" in done.stderr.decode()
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_is_told_before_the_fits(tmp_path, lokl_data):
    place = tmp_path / "file"
    place.touch()
    for what in (SMALL, ["figure1"]):
        done = lokl("reproduce", *what, "-o", place / "below")
        assert done.returncode == 2
        assert line_on_stderr(done).startswith(f"lokl: cannot write to {place / 'below'}: ")
        assert "--output" in line_on_stderr(done)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_tables_are_readable_in_every_encoding(recorded, encoding):
    settings = {"PYTHONIOENCODING": encoding}
    done = lokl("datasets", "list", environment=settings)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.decode(encoding).splitlines()]
    assert ["iris", "150", "4", "3", "scikit-learn"] in rows
    done = lokl("reproduce", *recorded, environment=settings)
    assert done.returncode == 0, done.stderr
    said = done.stdout.decode(encoding)
    assert "96.58 (1.35)" in said
    assert "?" not in said
    assert "\\" not in said
    sign = {"ascii": "+", "latin-1": "+"}.get(encoding, "†")
    assert f"{sign}: bold in the paper" in " ".join(said.split())


def test_a_name_that_the_encoding_lacks_is_shown_nevertheless(tmp_path):
    done = lokl(
        "reproduce",
        *SMALL,
        "--recorded",
        "-o",
        tmp_path / "ordñer",
        environment={"PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 2
    assert "has no records of table2" in line_on_stderr(done)


@needs_full
@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["datasets", "list"], ["datasets", "list", "--json"]]
)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_on_a_full_disk_is_one_line(arguments, unbuffered):
    with FULL.open("wb") as full:
        done = lokl(*arguments, stdout=full, environment={"PYTHONUNBUFFERED": unbuffered})
    assert done.returncode == 1
    assert line_on_stderr(done) == "cannot write the output: No space left on device"


@needs_full
def test_a_table_on_a_full_disk_is_one_line(recorded):
    with FULL.open("wb") as full:
        done = lokl("reproduce", *recorded, stdout=full)
    assert done.returncode == 1
    assert line_on_stderr(done) == "cannot write the output: No space left on device"


@pytest.mark.parametrize(
    "arguments", [["--help"], ["datasets", "list"], ["datasets", "list", "--json"]]
)
def test_a_reader_that_leaves_is_no_error(arguments):
    read, write = os.pipe()
    os.close(read)
    try:
        done = lokl(*arguments, stdout=write)
    finally:
        os.close(write)
    assert done.stderr == b""
    assert done.returncode == 1


@pytest.mark.skipif(os.name == "nt", reason="Windows has no groups of processes to kill")
def test_a_second_run_in_a_folder_is_refused(tmp_path, lokl_data, start_process):
    """Until the first is killed, although its workers live on for some time."""
    long = ["table2", "--datasets", "Diabetes", "--jobs", "2", "-o", str(tmp_path)]
    first = start_process(
        [*LOKL, "reproduce", *long], stderr=subprocess.DEVNULL, start_new_session=True
    )
    path = tmp_path / "records.jsonl"
    while first.poll() is None and not (path.exists() and path.stat().st_size):
        time.sleep(0.01)
    second = lokl("reproduce", *SMALL, "-o", tmp_path)
    assert second.returncode == 2
    assert str(tmp_path) in line_on_stderr(second)
    assert "--output" in line_on_stderr(second)
    # To look is allowed.
    look = ["table2", "--datasets", "Diabetes", "--recorded", "--json", "-o", tmp_path]
    seen = lokl("reproduce", *look)
    assert seen.returncode == 0, seen.stderr
    assert json.loads(seen.stdout)["entries"]
    assert {record["data"] for record in RecordFile(path)} == {"diabetes_scale"}
    first.kill()
    first.wait()
    try:
        third = lokl("reproduce", *SMALL, "-o", tmp_path)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(first.pid, signal.SIGKILL)
    assert third.returncode == 0, third.stderr
    assert not (tmp_path / "running.lock").exists()
