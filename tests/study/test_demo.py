"""The demo: tables that are wrong or missing in part, and what becomes of them."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from lokl.cli.app import app
from lokl.study.demo import demo_tables

pytestmark = pytest.mark.slow


def test_some_of_the_new_samples_have_an_exchanged_table(tmp_path):
    patients, digits = demo_tables(tmp_path / "a", seed=3)
    table = patients.settings.read()
    assert list(table.views) == ["blood", "scan", "survey"]
    assert min(table.n_missing().values()) > 0
    assert digits.settings.read().frame.shape[0] == 300
    assert len(patients.exchanged) == len(digits.exchanged) == 96
    new = pd.concat([pd.read_csv(path, index_col="sample") for path in patients.new_files], axis=1)
    assert set(patients.exchanged) <= set(new.dropna().index)
    assert not set(new.index) & set(table.ids)
    again, _ = demo_tables(tmp_path / "b", seed=3)
    pd.testing.assert_frame_equal(again.settings.read().frame, table.frame)
    assert again.exchanged == patients.exchanged
    other, _ = demo_tables(tmp_path / "c", seed=4)
    assert not np.array_equal(other.settings.read().frame, table.frame)


def test_the_demo_finds_the_exchanged_tables(tmp_path):
    arguments = ["demo", "-o", str(tmp_path), "--jobs", "1"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    for name in ("trusted vote", "uniform mix", "best view", "random forest"):
        assert sum(line.startswith(f" {name} ") and "●" in line for line in lines) == 2
    told = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    for one in told:
        scores = {row["name"]: row["score"] for row in one["candidates"]}
        assert scores["trusted vote"] > scores["best view"]
        found = one["exchanged tables"]
        assert found["exchanged"] == 96
        assert found["found"] > 0.6 * found["least_trusted"]
        ending = f"{found['found']} are among the {found['least_trusted']} least trusted."
        assert sum(line.endswith(ending) for line in lines) >= 1
    assert lines[-1].endswith("least trusted.")
