"""The front door: from tables to a folder of results, and again."""

import csv
import io
import json
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from compare_cases import FEW, QUICK, asked, write_tables
from typer.testing import CliRunner

import lokl
from lokl.cli.app import app
from lokl.study.settings import load_settings

pytestmark = pytest.mark.slow

runner = CliRunner()
FILES = ("report.html", "results.csv", "predictions.csv", "model.lokl", "config.toml")


def run(*arguments):
    return runner.invoke(app, [str(argument) for argument in arguments])


def without_seconds(text):
    """A table of results without what the machine decides."""
    rows = list(csv.DictReader(io.StringIO(text)))
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A finished comparison: its folder, its tables, and what was printed."""
    folder = tmp_path_factory.mktemp("compare")
    paths = write_tables(folder)
    methods = f"trusted vote,{FEW},forest,majority"
    out = folder / "run"
    printed = run("compare", *asked(paths), *QUICK, "--methods", methods, "-o", out)
    assert printed.exit_code == 0, printed.output
    return out, paths, printed


def test_the_terminal_tells_everything_in_80_columns(done):
    out, _, printed = done
    assert max(map(len, printed.stdout.splitlines())) <= 80 + len(str(out))
    for told in ("accuracy, held out (95 % interval)", "  chosen", "loss without it", "Chosen: "):
        assert told in printed.stdout
    for name in ("trusted vote", "uniform mix", "left alone", "best view", "random forest"):
        assert f" {name} " in printed.stdout
    assert printed.stdout.count("●") + printed.stdout.count("◀") == 8
    assert f"open {out / 'report.html'}" in printed.stdout
    assert all((out / name).stat().st_size for name in FILES)
    told = " ".join(printed.stderr.split())
    assert "read left.csv 45 x 4 · right.csv 40 x 2 joined on id: 45 samples, 5 with" in told
    assert "target class: " in told
    assert "plan 3 folds x 1 repeat, 7 candidates" in told
    assert "\x1b[" not in printed.output


def test_files_agree_with_each_other(done):
    out, paths, _ = done
    results = pd.read_csv(out / "results.csv")
    assert len(results) == 3 * 7
    said = pd.read_csv(out / "predictions.csv", index_col="id")
    known = pd.read_csv(paths["known"], index_col="id").loc[said.index, "class"]
    assert said["class"].tolist() == known.tolist()
    chosen = load_settings(str(out / "config.toml")).model["candidate"]
    right = (said["prediction"] == said["class"]).groupby(said["fold"]).mean()
    own = results[results["candidate"] == chosen].set_index("fold")["accuracy"]
    np.testing.assert_allclose(right, own, rtol=1e-5)
    chances = said.filter(like="probability").sum(axis=1)
    np.testing.assert_allclose(chances, 1.0, atol=1e-5)
    page = (out / "report.html").read_text()
    for word in (*results["candidate"].unique(), "best view", "LOKL", str(out / "config.toml")):
        assert word in page


def test_the_model_is_the_chosen_one(done, tmp_path):
    out, paths, _ = done
    fitted = run("fit", out / "config.toml", "-o", tmp_path / "again.lokl", "--jobs", "2")
    assert fitted.exit_code == 0, fitted.output
    # It is the same on every machine, and says so to those who ask for more cores.
    assert "--jobs" in " ".join(fitted.stderr.split())
    frame = load_settings(str(out / "config.toml")).settings.read().frame
    first, second = lokl.load(out / "model.lokl"), lokl.load(tmp_path / "again.lokl")
    np.testing.assert_array_equal(first.predict_proba(frame), second.predict_proba(frame))
    asked_again = run("predict", out / "model.lokl", paths["left"])
    assert asked_again.exit_code == 0, asked_again.output


def test_samples_of_a_run_are_explained_by_models_that_have_not_seen_them(done):
    out, paths, _ = done
    said = pd.read_csv(out / "predictions.csv", index_col="id")
    shares = said["class"].value_counts(normalize=True)
    for name in said.index[:5]:
        told = run("explain", out, "--sample", name, "--json")
        assert told.exit_code == 0, told.output
        found = json.loads(told.stdout)
        assert found["id"] == name
        assert found["prediction"] == said.loc[name, "prediction"]
        assert found["truth"] == said.loc[name, "class"]
        assert found["status"] == said.loc[name, "status"]
        assert not found["learned"]
        assert found["prior"] == pytest.approx(shares[found["prediction"]])
        for label, chance in found["probabilities"].items():
            assert chance == pytest.approx(said.loc[name, f"probability {label}"], abs=1e-5)
        assert len(found["neighbours"]) == 3
        assert found["unit"] == "log-odds"
        # Samples without the second view have four columns.
        assert len(found["columns"]) in (4, 5)
        assert {column["column"] for column in found["columns"]} <= set("abcde") | {"colour"}
    assert "Columns that matter most: " in run("explain", out, "--sample", name).stdout
    page = (out / "report.html").read_text()
    assert "Which columns matter?" in page
    files = [out / "model.lokl", paths["left"], paths["right"]]
    same = json.loads(run("explain", *files, "--sample", name, "--json").stdout)
    assert same["learned"]


def test_what_cannot_be_explained_in_a_run_is_one_line(done, tmp_path):
    out, paths, _ = done
    for arguments, word in (
        ([out], "--sample"),
        ([out, "--sample", "S0"], "did you mean S"),
        ([out, paths["left"], "--sample", "S01"], "model.lokl"),
        ([out, "--sample", "S01", "-o", tmp_path / "r.html"], "report.html"),
        ([tmp_path, "--sample", "S01"], "config.toml"),
        ([out / "model.lokl", "--sample", "S01"], "model.lokl"),
    ):
        told = run("explain", *arguments)
        assert told.exit_code == 2, told.output
        assert word in told.stderr
        assert len(told.stderr.strip().splitlines()) == 1


def test_a_finished_run_is_shown_again_and_not_repeated(done):
    out, _, printed = done
    before = {name: (out / name).read_bytes() for name in (*FILES, "cells.jsonl")}
    again = run("compare", out / "config.toml", "--json")
    assert again.exit_code == 0, again.output
    assert "21 of 21 fits are in" in " ".join(again.stderr.split())
    for name, content in before.items():
        assert (out / name).read_bytes() == content, name
    told = json.loads(again.stdout)
    assert told["chosen"] in printed.stdout
    assert [view["name"] for view in told["views"]] == ["left", "right"]
    assert {row["role"] for row in told["candidates"]} == {"ours", "view", "baseline"}
    assert set(told["files"]) == set(FILES)


def test_a_rerun_elsewhere_gives_the_same(done, tmp_path):
    out, _, _ = done
    done_again = run("compare", out / "config.toml", "-o", tmp_path / "other", "--jobs", "2")
    assert done_again.exit_code == 0, done_again.output
    for name in ("results.csv", "predictions.csv"):
        first, second = ((place / name).read_text() for place in (out, tmp_path / "other"))
        assert without_seconds(first) == without_seconds(second)


def test_another_goal_needs_no_new_fits(done):
    out, _, _ = done
    # Paths in a settings file are relative to its folder.
    copy = shutil.copytree(out, out.with_name("copy"))
    again = run("compare", copy / "config.toml", "--goal", "simple", "--json")
    assert again.exit_code == 0, again.output
    assert json.loads(again.stdout)["chosen"] == "uniform mix"
    for score in ("log loss", "roc_auc", "neg_brier_score"):
        again = run("compare", copy / "config.toml", "--score", score, "--json")
        assert again.exit_code == 0, again.output
        told = json.loads(again.stdout)
        ranked = [row["score"] for row in told["candidates"] if row["score"] is not None]
        assert ranked == sorted(ranked, reverse=score != "log loss")
    stored = load_settings(str(copy / "config.toml"))
    assert stored.settings.goal == "simple"
    assert stored.model["candidate"] == "uniform mix"
    cells = [(place / "cells.jsonl").read_bytes() for place in (out, copy)]
    assert cells[0] == cells[1]
    line = error(run("compare", out / "config.toml", "--goal", "accurate"))
    assert "'accurate'; did you mean accuracy" in line


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--folds", "4"], "(folds: 3 there, 4 here)"),
        (["--seed", "1"], "(seed: 0 there, 1 here)"),
        (["--methods", "forest"], "(methods: "),
        (["--na", "x"], "(na: [] there, ['x'] here)"),
    ],
)
def test_a_folder_of_other_settings_is_refused(done, options, words):
    out, _, _ = done
    refused = run("compare", out / "config.toml", *options)
    line = error(refused)
    assert line.startswith(f"lokl: {out} ")
    assert words in line


def test_a_comparison_with_other_settings_can_be_overwritten(tmp_path):
    paths, out = write_tables(tmp_path), tmp_path / "run"
    first = [*asked(paths), *QUICK, "--methods", "uniform mix,majority", "-o", out]
    other = [*first[:-4], "--methods", "majority", "-o", out]
    for arguments in (first, other):
        done = run("compare", *arguments, *(["--overwrite"] if arguments is other else []))
        assert done.exit_code == 0, done.output
        (out / "notes.txt").touch()
    # Only files of comparisons are replaced.
    assert (out / "notes.txt").exists()
    assert not (out / "model.lokl").exists()
    assert set(pd.read_csv(out / "results.csv")["candidate"]) == {"majority class"}
    # With the same settings there is nothing to replace.
    cells = (out / "cells.jsonl").read_bytes()
    assert run("compare", *other, "--overwrite").exit_code == 0
    assert (out / "cells.jsonl").read_bytes() == cells
    (out / "config.toml").write_text("damaged")
    line = error(run("compare", *other))
    assert "--overwrite" in line
    assert "--output" in line
    assert run("compare", *other, "--overwrite").exit_code == 0


def test_a_folder_of_other_files_is_refused(done, tmp_path):
    _, paths, _ = done
    (tmp_path / "thesis.txt").touch()
    line = error(run("compare", *asked(paths), "-o", tmp_path))
    assert line.startswith(f"lokl: {tmp_path} ")
    assert "--output" in line
    assert [place.name for place in tmp_path.iterdir()] == ["thesis.txt"]


def error(done, code=2):
    assert done.exit_code == code, done.output
    assert done.stdout == ""
    (line,) = [own for own in done.stderr.splitlines() if own.startswith("lokl: ")]
    assert line == done.stderr.splitlines()[-1]
    return line


def test_numbers_groups_and_one_class_against_all(tmp_path):
    paths = write_tables(tmp_path)
    quick = [*QUICK, "--methods", "uniform mix,ridge"]
    by = f"{paths['known']}:family"
    done = run("compare", *asked(paths, "score"), *quick, "--groups", by, "-o", tmp_path / "a")
    assert done.exit_code == 0, done.output
    assert "R squared, held out" in done.stdout
    said = pd.read_csv(tmp_path / "a" / "predictions.csv", index_col="id")
    family = pd.read_csv(paths["known"], index_col="id")["family"]
    assert (said["fold"].groupby(family.loc[said.index]).nunique() == 1).all()
    quick = [*QUICK, "--methods", "uniform mix", "--positive", "low"]
    done = run("compare", *asked(paths), *quick, "-o", tmp_path / "b")
    assert done.exit_code == 0, done.output
    results = pd.read_csv(tmp_path / "b" / "results.csv")
    assert {"sensitivity", "specificity", "calibration slope"} <= set(results.columns)
    assert re.search(r"^ low: sensitivity \d+ %", done.stdout, re.MULTILINE)
    assert set(pd.read_csv(tmp_path / "b" / "predictions.csv")["class"]) == {"low", "not low"}
    told = run(
        "explain",
        tmp_path / "b" / "model.lokl",
        paths["left"],
        "--sample",
        "S01",
        "--target",
        f"{paths['known']}:class",
        "-o",
        tmp_path / "r.html",
    )
    assert told.exit_code == 0, told.output
    assert "on 45 samples" in (tmp_path / "r.html").read_text()


def test_nothing_of_ours_is_a_comparison_without_a_model(tmp_path):
    paths = write_tables(tmp_path)
    done = run(
        "compare", *asked(paths), *QUICK, "--methods", "logistic,majority", "-o", tmp_path / "run"
    )
    assert done.exit_code == 0, done.output
    assert "chosen" not in done.stdout
    assert not (tmp_path / "run" / "model.lokl").exists()
    assert "No model of lokl" in (tmp_path / "run" / "report.html").read_text()


def test_one_table(tmp_path):
    done = run("compare", "iris", *QUICK, "--methods", "uniform mix,SVC", "-o", tmp_path / "run")
    assert done.exit_code == 0, done.output
    assert "loss without it" not in done.stdout
    assert (tmp_path / "run" / "report.html").exists()


def test_a_limit_of_time_ends_it_early_and_the_rest_can_be_done(tmp_path):
    paths = write_tables(tmp_path)
    arguments = ["compare", *asked(paths), *QUICK, "--methods", "uniform mix", "-o", tmp_path / "r"]
    line = error(run(*arguments, "--time-limit", "0.001"))
    assert "--time-limit" in line
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    calm = run(*arguments[:-1], tmp_path / "calm")
    assert calm.exit_code == 0, calm.output
    for name in ("results.csv", "predictions.csv"):
        first, second = ((tmp_path / place / name).read_text() for place in ("r", "calm"))
        assert without_seconds(first) == without_seconds(second)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
def test_an_interrupted_run_goes_on_to_the_same_results(done, tmp_path, start_process):
    out, paths, _ = done
    methods = f"trusted vote,{FEW},forest,majority"
    rest = [*QUICK, "--methods", methods, "-o", str(tmp_path / "run")]
    command = [sys.executable, "-m", "lokl", "compare", *asked(paths), *rest]
    cells = tmp_path / "run" / "cells.jsonl"
    process = start_process(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while process.poll() is None and not (cells.exists() and cells.read_bytes().count(b"\n") >= 4):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    printed, told = (text.decode() for text in process.communicate())
    # An interrupt inside `exec` makes Python itself end by the signal; a shell shows 130 for both.
    assert process.returncode in (130, -signal.SIGINT), told
    assert printed == ""
    last = told.splitlines()[-1]
    assert re.match(r"lokl: interrupted; \d+ of 21 fits are in ", last)
    assert {place.name for place in (tmp_path / "run").iterdir()} == {"cells.jsonl", "config.toml"}
    # Killed in the middle of a line.
    cells.write_bytes(cells.read_bytes()[:-20])
    finished = run("compare", *asked(paths), *rest)
    assert finished.exit_code == 0, finished.output
    for name in ("results.csv", "predictions.csv"):
        first, second = ((place / name).read_text() for place in (out, tmp_path / "run"))
        assert without_seconds(first) == without_seconds(second)
    assert (out / "predictions.csv").read_bytes() == (
        tmp_path / "run" / "predictions.csv"
    ).read_bytes()
