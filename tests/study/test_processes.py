"""Ends of runs with worker processes: signals, killed parents, numbers of workers."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from joblib import cpu_count

from lokl._threads import effective_jobs
from lokl.study.run_folder import Records, RunCell, run_cells

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("default_hangup"),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found in /proc"),
]

# Cells that take far longer than the test, in two workers; the file shows that they have begun.
SCRIPT = """
import signal, sys, time
from dataclasses import dataclass
from pathlib import Path
from lokl.cli.terminal import end_like_interrupt
from lokl.study.run_folder import Records, RunCell, run_cells

signal.signal(signal.SIGINT, signal.default_int_handler)
end_like_interrupt()

@dataclass(frozen=True)
class Nap(RunCell):
    number: int

class Naps(Records):
    cell_type = Nap

def sleep(cell):
    Path(sys.argv[1], str(cell.number)).touch()
    time.sleep(600)

print("ready", flush=True)
run_cells([Nap(k) for k in range(4)], Naps(Path(sys.argv[1], "cells.jsonl")), sleep, jobs=2)
"""


@dataclass(frozen=True)
class Place(RunCell):
    number: int


class Places(Records):
    cell_type = Place
    value_types: ClassVar = {"process": int}


def place(cell):
    return cell.measured(lambda cell: {"process": os.getpid()})


def members(session):
    """Return the ids of the processes of a session that have not ended."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] not in "ZX":
                found.append(int(entry.name))
    return found


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


@pytest.mark.parametrize("begun", [False, True], ids=["starting", "working"])
@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM", "SIGHUP", "SIGKILL"])
def test_workers_end_with_their_parent(number, begun, tmp_path, start_process):
    script = tmp_path / "naps.py"
    script.write_text(SCRIPT)
    process = start_process(
        [sys.executable, str(script), str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        assert process.stdout.readline() == b"ready\n"
        if begun:
            assert wait_for(lambda: (tmp_path / "0").exists() and (tmp_path / "1").exists())
        process.send_signal(getattr(signal, number))
        assert wait_for(lambda: process.poll() is not None)
        assert process.returncode != 0
        assert wait_for(lambda: not members(process.pid)), members(process.pid)
    finally:
        for left in members(process.pid):
            os.kill(left, signal.SIGKILL)


def test_there_are_no_more_jobs_than_four_for_each_core():
    assert effective_jobs(9999) == 4 * cpu_count()
    assert effective_jobs(None) == effective_jobs(1) == 1


def test_there_are_no_more_workers_than_cells(tmp_path):
    parents = run_cells(
        [Place(number) for number in range(3)], Places(tmp_path / "cells.jsonl"), place, jobs=9999
    )
    assert len({record["process"] for record in parents}) <= 3
    assert os.getpid() not in {record["process"] for record in parents}
