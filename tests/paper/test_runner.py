"""Cells are done once, wherever they run and whatever happens to their process."""

import json
import os
import subprocess
import sys
import time

import pytest

from lokl.paper import Cell, RecordFile, overhead, run, run_cell

pytestmark = pytest.mark.slow

CELLS = [
    Cell("iris", "UNIFORM", "quadratic, Gaussian", gamma, split=s)
    for gamma in (0.25, 1.0)
    for s in range(3)
]
# What the machine decides.
MEASURED = ("select_seconds", "fit_seconds", "predict_seconds", "fit_memory", "predict_memory")


def without_times(records):
    kept = [{k: v for k, v in record.items() if k not in MEASURED} for record in records]
    return sorted(kept, key=lambda record: json.dumps(record, sort_keys=True))


def test_a_cell_is_a_flat_record_and_comes_back():
    record = run_cell(CELLS[0])
    assert record["error"] is None
    assert 0.8 < record["accuracy"] <= 1.0
    assert 0 < record["support"] <= 1
    assert all(record[name] > 0 for name in ("fit_seconds", "predict_seconds"))
    if sys.platform == "linux":
        assert all(record[name] >= 0 for name in ("fit_memory", "predict_memory"))
    assert Cell.of(record) == CELLS[0]
    assert not any(isinstance(value, dict) for value in record.values())


def test_equal_cells_give_equal_records():
    assert without_times([run_cell(CELLS[1])]) == without_times([run_cell(CELLS[1])])


def test_records_do_not_depend_on_the_number_of_threads(lokl_data):
    """LMKL is not convex: on these splits another rounding leads elsewhere."""
    code = (
        "import json; from lokl.paper import *; "
        "cells = [Cell('diabetes_scale', 'LMKL', 'quadratic, Gaussian', 16.0, split=s) "
        "for s in (4, 11, 15)]; print(json.dumps([run_cell(cell) for cell in cells]))"
    )
    found = []
    for count in ("1", "2"):
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "LOKL_NUM_THREADS")
        environment = {**os.environ, **dict.fromkeys(names, count)}
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            stdout=subprocess.PIPE,
            check=True,
        )
        found.append(without_times(json.loads(done.stdout)))
    assert found[0] == found[1]


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


class After:
    """A deadline that passes with the first record."""

    def __init__(self, seen):
        self.seen = seen

    @property
    def passed(self):
        return bool(self.seen)


@pytest.mark.parametrize("backend", ["processes", "dask"])
def test_a_run_without_time_keeps_what_is_done_and_goes_on(tmp_path, backend):
    path, seen = tmp_path / "records.jsonl", []
    setting = {"jobs": 1, "backend": backend}
    some = run(CELLS, RecordFile(path), on_record=seen.append, deadline=After(seen), **setting)
    assert 1 <= len(some) < len(CELLS)
    assert without_times(some) == without_times(seen) == without_times(RecordFile(path))
    rest = []
    every = run(CELLS, RecordFile(path), on_record=rest.append, **setting)
    assert len(every) == len(CELLS) == len(some) + len(rest)


def test_a_cluster_gives_the_records_of_one_process(tmp_path):
    calm = run(CELLS, RecordFile(tmp_path / "calm.jsonl"))
    seen = []
    path = tmp_path / "dask.jsonl"
    found = run(CELLS, RecordFile(path), jobs=2, backend="dask", on_record=seen.append)
    assert without_times(found) == without_times(seen) == without_times(calm)
    assert without_times(RecordFile(path)) == without_times(calm)


def test_a_cluster_can_be_named_by_its_address(tmp_path):
    from dask.distributed import LocalCluster

    with LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=None, processes=False
    ) as cluster:
        # Workers in threads have a scheduler without a port.
        address = cluster.scheduler_address
        found = run(CELLS[:2], RecordFile(tmp_path / "records.jsonl"), backend=address)
    assert [record["error"] for record in found] == [None, None]


def kill_its_process(cell):
    """Stands for a fit that runs out of memory."""
    if cell.split == 1:
        os._exit(9)
    measured = {"accuracy": 0.5, "support": 0.5, "fit_seconds": 0.1}
    return {**vars(cell), **measured, "error": None}


@pytest.mark.parametrize("backend", ["processes", "dask"])
def test_a_cell_that_takes_its_process_along_is_a_failed_cell(tmp_path, backend):
    records = RecordFile(tmp_path / "records.jsonl")
    found = run(CELLS, records, jobs=2, backend=backend, work=kill_its_process)
    assert [record["error"] is None for record in found] == [True, False, True] * 2
    assert "the process died" in found[1]["error"]
    assert len(RecordFile(tmp_path / "records.jsonl")) == 6


def test_overhead_is_what_is_not_in_fits():
    records = [{"fit_seconds": 3.0, "predict_seconds": 1.0, "error": None}] * 2
    assert overhead([*records, {"error": "no"}], seconds=5.0, jobs=2) == pytest.approx(0.25)
    nested = [{**record, "select_seconds": 1.0} for record in records]
    assert overhead(nested, seconds=5.0, jobs=2) == pytest.approx(0.0)


def test_a_killed_run_goes_on_to_the_same_records(tmp_path, start_process):
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
        process = start_process([sys.executable, "-c", code, str(hunted)])
        until = time.monotonic() + 60
        while time.monotonic() < until and process.poll() is None:
            if hunted.exists() and hunted.read_bytes().count(b"\n") >= lines:
                break
            time.sleep(0.002)
        process.kill()
        process.wait()
    subprocess.run([sys.executable, "-c", code, str(hunted)], check=True)
    assert without_times(RecordFile(hunted)) == without_times(RecordFile(calm))
    assert len(RecordFile(calm)) == 12
