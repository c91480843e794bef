"""Test cohorts that nothing is chosen on, and groups that are held out in turn."""

import json

import numpy as np
import pandas as pd
import pytest
from compare_cases import asked, write_tables
from typer.testing import CliRunner

import lokl
from lokl.cli.app import app
from lokl.study.candidates import candidates_for
from lokl.study.experiment import Experiment
from lokl.study.settings import Settings, load_settings
from lokl.tables import TableError

QUICK = ["--folds", "3", "--repeats", "1", "--jobs", "1", "--methods", "uniform mix,majority"]
runner = CliRunner()


@pytest.fixture
def paths(tmp_path):
    """Tables with a cohort and a site of each sample."""
    paths = write_tables(tmp_path)
    known = pd.read_csv(paths["known"])
    known["cohort"] = np.where(np.arange(len(known)) % 4 == 1, "test", "train")
    known["site"] = [f"site {k % 3}" for k in range(len(known))]
    known.to_csv(paths["known"], index=False)
    return paths


def settings_of(paths, **more):
    files = (paths["left"], paths["right"])
    return Settings(files, on="id", target=f"{paths['known']}:class", **more)


def divided(paths, folder):
    """The same tables in two folders, one of them with the samples of the test cohort."""
    known = pd.read_csv(paths["known"]).set_index("id")
    files = {}
    for kind in ("train", "test"):
        (folder / kind).mkdir()
        for view in ("left", "right"):
            table = pd.read_csv(paths[view])
            files[kind, view] = str(folder / kind / f"{view}.csv")
            own = known.loc[table["id"], "cohort"].to_numpy() == kind
            table[own].to_csv(files[kind, view], index=False)
    return files


@pytest.mark.slow
def test_a_test_cohort_changes_nothing_that_is_chosen(paths, tmp_path):
    files = divided(paths, tmp_path)
    target = ["--on", "id", "--target", f"{paths['known']}:class"]
    train = [files["train", view] for view in ("left", "right")]
    test = [word for view in ("left", "right") for word in ("--test", files["test", view])]
    column = ["--test-column", f"{paths['known']}:cohort"]
    runs = {
        "without": [*train, *target],
        "files": [*train, *target, *test],
        "column": [*asked(paths), *column],
    }
    told = {}
    for name, arguments in runs.items():
        out = tmp_path / name
        done = runner.invoke(app, ["compare", *arguments, *QUICK, "-o", str(out), "--json"])
        assert done.exit_code == 0, done.output
        told[name] = json.loads(done.stdout)
    assert told["without"]["test"] == []
    assert not (tmp_path / "without" / "test_predictions.csv").exists()
    first = (tmp_path / "without" / "predictions.csv").read_text()
    cohort = (tmp_path / "files" / "test_predictions.csv").read_text()
    for name in ("files", "column"):
        assert (tmp_path / name / "predictions.csv").read_text() == first
        assert (tmp_path / name / "test_predictions.csv").read_text() == cohort
    # The model in the folder, which learned from all other samples, predicts the same.
    predicted = pd.read_csv(tmp_path / "column" / "test_predictions.csv", index_col="id")
    stored = load_settings(str(tmp_path / "column" / "config.toml")).settings
    _, table = stored.read_cohorts()
    model = lokl.load(tmp_path / "column" / "model.lokl")
    assert predicted["prediction"].tolist() == model.predict(table.frame).tolist()
    assert predicted["class"].tolist() == table.target.tolist()
    right = (predicted["prediction"] == predicted["class"]).mean()
    (row,) = (row for row in told["column"]["test"] if row["name"] == "uniform mix")
    assert row["score"] == pytest.approx(right)
    assert row["score low"] < right <= row["score high"]
    lines = pd.read_csv(tmp_path / "column" / "results.csv")
    assert lines.loc[lines["fold"] == "test", "samples"].tolist() == [len(predicted)] * 2


def test_each_group_is_held_out_once(paths):
    settings = settings_of(paths, leave_one_group_out=f"{paths['known']}:site")
    table = settings.read()
    experiment = Experiment(table, candidates_for(table, ["majority"]), settings)
    sites = table.groups.to_numpy()
    assert [set(sites[test]) for _, test in experiment.splits] == [{s} for s in sorted(set(sites))]
    for train, test in experiment.splits:
        assert sorted([*train, *test]) == list(range(len(sites)))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"groups": "family", "leave_one_group_out": "site"}, "not both"),
        ({"cohort": "cohort", "test": ("left.csv",)}, "not both"),
        ({"cohort": "known.csv:site"}, "0 of 45 samples"),
        ({"test": ("left.csv",)}, "S00"),
    ],
)
def test_cohorts_that_cannot_be_used(paths, monkeypatch, tmp_path, more, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TableError, match=words):
        settings_of(paths, **more).read_cohorts()


def test_a_class_of_the_cohort_alone_is_named(paths, tmp_path):
    known = pd.read_csv(paths["known"])
    known.loc[1, "class"] = "new"
    known.to_csv(paths["known"], index=False)
    arguments = [*asked(paths), "--test-column", f"{paths['known']}:cohort"]
    done = runner.invoke(app, ["compare", *arguments, *QUICK, "-o", str(tmp_path / "run")])
    assert done.exit_code == 2
    assert "class new of class" in done.stderr
