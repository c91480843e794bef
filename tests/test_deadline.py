"""Deadlines: time left, and whether it is over."""

import math

from lokl._deadline import Deadline


def test_time_runs_out(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("lokl._deadline.time.monotonic", lambda: now[0])
    deadline = Deadline(2.5)
    assert deadline.remaining() == 2.5
    assert not deadline.passed
    now[0] = 102.5
    assert deadline.passed
    now[0] = 103.0
    assert deadline.remaining() == -0.5


def test_no_limit_never_passes():
    deadline = Deadline(None)
    assert deadline.remaining() == math.inf
    assert not deadline.passed


def test_zero_seconds_have_passed():
    assert Deadline(0.0).passed
