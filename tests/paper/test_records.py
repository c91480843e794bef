"""Records of finished cells: nothing is lost, nothing is done twice."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lokl.paper import Cell, RecordFile, run, run_cell

CELLS = [
    Cell("iris", "UNIFORM", "quadratic, Gaussian", gamma, split=s)
    for gamma in (0.25, 1.0)
    for s in range(3)
]
TIMES = ("fit_seconds", "predict_seconds")


def without_times(records):
    kept = [{k: v for k, v in record.items() if k not in TIMES} for record in records]
    return sorted(kept, key=lambda record: json.dumps(record, sort_keys=True))


def test_a_cell_is_a_flat_record_and_comes_back():
    record = run_cell(CELLS[0])
    assert record["error"] is None
    assert 0.8 < record["accuracy"] <= 1.0
    assert 0 < record["support"] <= 1
    assert record["fit_seconds"] > 0
    assert Cell.of(record) == CELLS[0]
    assert not any(isinstance(value, dict) for value in record.values())


def test_equal_cells_give_equal_records():
    assert without_times([run_cell(CELLS[1])]) == without_times([run_cell(CELLS[1])])


def test_a_failure_is_a_record_and_tried_again(tmp_path):
    bad = Cell("iris", "UNIFORM", "quadratic, Gaussian", -1.0)
    record = run_cell(bad)
    assert "gamma must be a positive finite number" in record["error"]
    records = RecordFile(tmp_path / "records.jsonl")
    assert [r["error"] is None for r in run([bad, CELLS[0]], records)] == [False, True]
    again = []
    run([bad, CELLS[0]], RecordFile(tmp_path / "records.jsonl"), on_record=again.append)
    assert [Cell.of(record) for record in again] == [bad]


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_is_done_is_not_done_again(tmp_path, jobs):
    path = tmp_path / "deep" / "records.jsonl"
    seen = []
    first = run(CELLS[:4], RecordFile(path), jobs=jobs, on_record=seen.append)
    assert len(seen) == 4
    again = []
    second = run(CELLS, RecordFile(path), jobs=jobs, on_record=again.append)
    assert len(again) == 2
    assert second[:4] == first
    assert len(path.read_bytes().splitlines()) == 6


@given(cut=st.integers(0, 400))
def test_a_torn_last_line_is_cut_off(tmp_path_factory, cut):
    path = tmp_path_factory.mktemp("torn") / "records.jsonl"
    records = RecordFile(path)
    for k, cell in enumerate(CELLS[:3]):
        records.add({**vars(cell), "accuracy": k / 10, "error": None})
    whole = path.read_bytes()
    path.write_bytes(whole[: max(len(whole) - cut, 0)])
    kept = RecordFile(path)
    lines = path.read_bytes()
    assert lines == whole[: len(lines)]
    assert lines.endswith(b"\n") or not lines
    assert len(kept) == lines.count(b"\n")
    for cell in CELLS[:3]:
        if cell not in kept:
            kept.add({**vars(cell), "accuracy": 0.0, "error": None})
    assert len(RecordFile(path)) == 3


def test_damage_elsewhere_is_named(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_text('{"data": "iris"}\n')
    with pytest.raises(ValueError, match="line 1 is no record"):
        RecordFile(path)
    path.write_text("no json\n")
    with pytest.raises(ValueError, match="line 1 is no record"):
        RecordFile(path)


def test_a_killed_run_goes_on_to_the_same_records(tmp_path):
    """Kill the process at some moment, start again, and compare with a run left alone."""
    code = (
        "from pathlib import Path; from lokl.paper import *; import sys;"
        "cells = [Cell('wine', 'LMKL', 'quadratic, Gaussian', g, split=s) "
        "for g in (0.0625, 0.25, 1.0) for s in range(4)];"
        "run(cells, RecordFile(Path(sys.argv[1])))"
    )
    calm, hunted = tmp_path / "calm.jsonl", tmp_path / "hunted.jsonl"
    subprocess.run([sys.executable, "-c", code, str(calm)], check=True)
    for lines in (1, 4):
        process = subprocess.Popen([sys.executable, "-c", code, str(hunted)])
        until = time.monotonic() + 60
        while time.monotonic() < until and process.poll() is None:
            if hunted.exists() and hunted.read_bytes().count(b"\n") >= lines:
                break
            time.sleep(0.002)
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
        process.wait()
    subprocess.run([sys.executable, "-c", code, str(hunted)], check=True)
    assert without_times(RecordFile(hunted)) == without_times(RecordFile(calm))
    assert len(RecordFile(calm)) == 12
