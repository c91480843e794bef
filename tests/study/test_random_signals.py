"""Signals at random moments: no process is left, nothing is lost, and resuming gives the same.

Four signals to each command; LOKL_SIGNALS sets another number.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from compare_cases import asked, write_tables
from test_processes import members, wait_for

from lokl.persistence import info

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("default_hangup"),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found in /proc"),
]
COUNT = int(os.environ.get("LOKL_SIGNALS", "4"))
LOKL = [sys.executable, "-m", "lokl"]
# The later ones end at a moment of Python's choice, the last one at any.
SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP", "SIGKILL"]


def interrupted(command, number, seconds, start_process):
    """Run a command in a session of its own and interrupt it; return its exit code."""
    process = start_process(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(getattr(signal, number))
    try:
        assert wait_for(lambda: process.poll() is not None), f"{number} after {seconds} s"
        assert wait_for(lambda: not members(process.pid)), f"{number} after {seconds} s"
    finally:
        for left in members(process.pid):
            os.kill(left, signal.SIGKILL)
    return process.returncode, process.stderr.read().decode()


def seconds_of(command):
    began = time.monotonic()
    subprocess.run(command, check=True, capture_output=True)
    return time.monotonic() - began


def test_a_comparison_resumes_after_any_signal(tmp_path, start_process):
    options = ["--methods", "uniform mix,views", "--folds", "3", "--repeats", "2", "--jobs", "2"]
    command = [*LOKL, "compare", *asked(write_tables(tmp_path)), *options, "-o"]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    duration = seconds_of([*command, whole])
    rng, stored = np.random.RandomState(0), []
    for k in range(COUNT):
        number, moment = SIGNALS[k % 4], rng.uniform(0.0, 1.2 * duration)
        code, text = interrupted([*command, parts], number, moment, start_process)
        assert "Traceback" not in text, text
        assert code in (0, 1, 130, -getattr(signal, number)), text
        records = [path.read_bytes() for path in sorted(parts.glob("*.jsonl"))]
        # A line that was being written may be lost, but no record before it.
        for before, after in zip(stored, records, strict=False):
            assert after.startswith(before[: before.rfind(b"\n") + 1])
        stored = records
    subprocess.run([*command, parts], check=True, capture_output=True)
    assert (parts / "predictions.csv").read_bytes() == (whole / "predictions.csv").read_bytes()


def test_a_model_file_is_whole_or_absent(tmp_path, start_process):
    paths, model = write_tables(tmp_path), tmp_path / "model.lokl"
    command = [*LOKL, "fit", *asked(paths), "--method", "UniformMKL", "-o", str(model)]
    duration = seconds_of(command)
    rng, expected = np.random.RandomState(1), info(model)["method"]
    for k in range(COUNT):
        # The end is when the file is written.
        moment = rng.uniform(0.5, 1.1) * duration
        _, text = interrupted(command, SIGNALS[k % 4], moment, start_process)
        assert "Traceback" not in text, text
        # Whole, either way: its checksum is read.
        assert info(model)["method"] == expected
