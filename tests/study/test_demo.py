"""The demo: tables that are wrong or missing in part, and what becomes of them."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from lokl.cli.app import app
from lokl.study.demo import demo_tables

pytestmark = pytest.mark.slow


def test_tables_of_the_demo_are_wrong_and_missing_in_part(tmp_path):
    patients, digits = demo_tables(tmp_path / "a", seed=3)
    table = patients.settings.read()
    assert list(table.views) == ["blood", "scan", "survey"]
    lacking = table.n_missing()
    assert sum(lacking.values()) == round(0.15 * len(table.frame))
    assert min(lacking.values()) > 0
    assert digits.settings.read().frame.shape[0] == 150
    again, _ = demo_tables(tmp_path / "b", seed=3)
    pd.testing.assert_frame_equal(again.settings.read().frame, table.frame)
    other, _ = demo_tables(tmp_path / "c", seed=4)
    assert not np.array_equal(other.settings.read().frame, table.frame)


@pytest.mark.slow
def test_the_demo_ends_with_a_report(tmp_path):
    arguments = ["demo", "-o", str(tmp_path), "--jobs", "1"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert [line for line in lines if line][-1] == (
        f" report: {tmp_path / 'digits' / 'run' / 'report.html'}"
    )
    for name in ("trusted vote", "uniform mix", "best view", "random forest"):
        assert sum(line.startswith(f" {name} ") for line in lines) == 2
    assert sum(" Disagreement " in line for line in lines) == 2
    told = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    for one in told:
        scores = {row["name"]: row["score"] for row in one["candidates"]}
        assert scores["trusted vote"] > scores["best view"]
