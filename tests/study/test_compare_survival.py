"""Survival tables through every command: compare, fit, predict and explain."""

import io
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import lokl
from lokl.cli.app import app
from lokl.report.sections import survival_section
from lokl.study.comparison import read_results
from lokl.tables import read_table

pytestmark = pytest.mark.slow

runner = CliRunner()
QUICK = ["--folds", "3", "--repeats", "1", "--jobs", "1"]


def run(*arguments):
    return runner.invoke(app, [str(argument) for argument in arguments])


def write_patients(folder, n=90):
    """Paths of two views, of which some patients lack the first, and of their outcomes."""
    rng = np.random.RandomState(0)
    cause = rng.normal(size=(n, 2))
    blood, scan = rng.normal(size=(n, 2)), rng.normal(size=(n, 3))
    blood[:, 0] += 2 * cause[:, 0]
    scan[:, 0] += 2 * cause[:, 1]
    relapse = rng.exponential(size=n) * np.exp(-cause.sum(axis=1))
    last = 3 * rng.uniform(size=n)
    names = [f"P{k:02d}" for k in range(n)]
    known = pd.DataFrame(
        {
            "patient": names,
            "months": np.minimum(relapse, last) + 0.01,
            "state": np.where(relapse <= last, "1:DECEASED", "0:LIVING"),
            "site": [f"site {k % 3}" for k in range(n)],
            "later": [int(k >= 75) for k in range(n)],
        }
    )
    tables = {
        "blood": pd.DataFrame(blood, columns=["iron", "zinc"]).assign(patient=names)[:-4],
        "scan": pd.DataFrame(scan, columns=["size", "edge", "depth"]).assign(patient=names),
        "clinic": known,
    }
    paths = {name: folder / f"{name}.csv" for name in tables}
    for name, table in tables.items():
        table.to_csv(paths[name], index=False)
    return paths


def asked(paths):
    clinic = paths["clinic"]
    outcome = ["--time", f"{clinic}:months", "--event", f"{clinic}:state"]
    return [paths["blood"], paths["scan"], "--on", "patient", *outcome]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("survival")
    paths = write_patients(folder)
    printed = run("compare", *asked(paths), *QUICK, "-o", folder / "run")
    assert printed.exit_code == 0, printed.output
    return folder / "run", paths, printed


def test_the_leaderboard_has_four_scores(done):
    out, _, printed = done
    results = pd.read_csv(out / "results.csv")
    names = [
        *("concordance", "Uno's concordance", "integrated Brier score", "time-dependent AUC"),
    ]
    assert results[names].notna().all(axis=None)
    board = json.loads(run("compare", out / "config.toml", "--json").stdout)
    assert board["score"] == "concordance"
    scores = {row["name"]: row["score"] for row in board["candidates"]}
    assert scores["Kaplan-Meier"] == 0.5
    assert {"trusted vote", "uniform mix", "blood alone", "Cox regression"} <= set(scores)
    assert max(scores.values()) > 0.65
    assert "concordance, held out" in printed.stdout
    assert "target months: times from" in " ".join(printed.stderr.split())


def test_curves_of_held_out_samples_fall(done):
    out, *_ = done
    explanation = read_results(out).held_out()
    curves = explanation.survival
    assert curves.shape == (90, len(explanation.times))
    assert (np.diff(curves, axis=1) <= 1e-6).all()
    assert ((curves >= 0) & (curves <= 1)).all()
    assert explanation.alone_survival.shape == (90, 2, len(explanation.times))
    assert np.isnan(explanation.alone_survival[-1, 0]).all()
    predicted = pd.read_csv(out / "predictions.csv")
    np.testing.assert_allclose(predicted["prediction"], explanation.predictions, rtol=1e-5)
    assert set(predicted["state"]) == {True, False}
    assert (predicted["median time"].dropna() > 0).all()


def test_the_report_has_curves_by_predicted_risk(done):
    out, *_ = done
    page = (out / "report.html").read_text()
    for told in ('id="at-risk"', "low risk", "high risk", "How long without an event?"):
        assert told in page
    explanation = read_results(out).held_out()
    section = survival_section(explanation)
    groups, y = section["groups"], explanation.truth
    assert [group["at_risk"][0] for group in groups] == [30, 30, 30]
    assert sum(group["events"] for group in groups) == y["event"].sum()
    for group in groups:
        assert group["at_risk"] == sorted(group["at_risk"], reverse=True)
        heights = [height for _, height in group["points"]]
        assert heights == sorted(heights, reverse=True)
        assert heights[0] == 1.0
    # The predicted risks order the groups.
    assert groups[0]["observed"] > groups[2]["observed"]
    assert groups[0]["predicted"] > groups[2]["predicted"]
    assert survival_section(replace(explanation, truth=None)) is None
    assert survival_section(replace(explanation, learned=np.ones(90, dtype=bool))) is None


def test_one_patient_in_the_terminal(done):
    out, *_ = done
    printed = run("explain", out, "--sample", "P03")
    assert printed.exit_code == 0, printed.output
    for told in ("P03 has a predicted risk of", "Median time", "blood", "scan", "base value"):
        assert told in printed.stdout
    assert "event was at" in printed.stdout or "Censored at" in printed.stdout
    found = json.loads(run("explain", out, "--sample", "P03", "--json").stdout)
    assert len(found["times"]) == len(found["survival"])
    total = found["base_value"] + sum(view["contribution"] for view in found["views"])
    assert total == pytest.approx(found["prediction"], abs=1e-4)


def test_models_of_tables_predict_new_samples(done, tmp_path):
    _, paths, _ = done
    model = tmp_path / "m.lokl"
    assert run("fit", *asked(paths), "-o", model).exit_code == 0
    shown = run("info", model)
    assert "concordance" in shown.stdout
    printed = run("predict", model, paths["blood"], paths["scan"])
    assert printed.exit_code == 0, printed.output
    table = pd.read_csv(io.StringIO(printed.stdout))
    assert len(table) == 90
    outcome = pd.read_csv(paths["clinic"])
    y = lokl.survival_target(outcome["state"] == "1:DECEASED", outcome["months"])
    risk = table["prediction"].to_numpy()
    assert lokl.metrics.concordance_index(y["event"], y["time"], risk).cindex > 0.7
    printed = run("explain", model, paths["blood"], paths["scan"], "--sample", "P05")
    assert "alone, median" in printed.stdout, printed.output
    report = tmp_path / "r.html"
    command = ["explain", model, paths["blood"], paths["scan"], paths["clinic"], "-o", report]
    printed = run(*command)
    assert printed.exit_code == 0, printed.output
    assert report.exists()


@pytest.mark.parametrize(
    "more",
    [
        ["--leave-one-group-out", "site"],
        ["--groups", "site"],
        ["--test-column", "later"],
        ["--score", "uno", "--methods", "SimpleMKL,cox"],
    ],
    ids=lambda more: more[0],
)
def test_groups_cohorts_and_other_methods(done, tmp_path, more):
    _, paths, _ = done
    if more[1] in ("site", "later"):
        more = [more[0], f"{paths['clinic']}:{more[1]}", "--methods", "uniform mix,cox"]
    printed = run("compare", *asked(paths), *QUICK, *more, "-o", tmp_path / "run")
    assert printed.exit_code == 0, printed.output
    results = read_results(tmp_path / "run")
    assert len(results.splits) == 3
    if more[0] == "--test-column":
        assert len(results.test_leaderboard) == 2
        assert len(pd.read_csv(tmp_path / "run" / "test_predictions.csv")) == 15


def test_methods_without_censored_times_are_named(done, tmp_path):
    _, paths, _ = done
    for command, option in (("fit", "--method"), ("compare", "--methods")):
        printed = run(command, *asked(paths), option, "LMKL", "-o", tmp_path / "m")
        assert printed.exit_code == 2
        assert "LMKL is not for survival" in printed.stderr.splitlines()[-1]


def test_tables_with_unknown_outcomes_leave_these_samples_out(tmp_path):
    (tmp_path / "t.csv").write_text("a,t,e\n1,2,yes\n4,,yes\n2,3,no\n7,5,\n0,1,no\n")
    table = read_table([str(tmp_path / "t.csv")], time="t", event="e")
    assert table.task == "survival"
    assert table.event.tolist() == [True, False, False]
    assert table.target.tolist() == [2.0, 3.0, 1.0]
    assert any("left out 2 samples" in note for note in table.notes)
