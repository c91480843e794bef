"""From tables to an answer, in a terminal."""

import csv
import io
import json
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from table_cases import larger
from typer.testing import CliRunner

import lokl
from lokl.cli.app import app
from lokl.kernels import RBF, per_view

runner = CliRunner()


def run(*arguments):
    return runner.invoke(app, [str(argument) for argument in arguments])


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with tables and the model of them."""
    folder = tmp_path_factory.mktemp("tables")
    left, right, labels = larger(folder)
    options = ["--on", "id", "--target", f"{labels}:class", "--method", "trusted vote"]
    done = run("fit", left, right, *options, "-o", model(folder))
    assert done.exit_code == 0, done.output
    assert done.stdout.strip() == str(model(folder))
    printed = " ".join(done.stderr.split())
    for told in ("left.csv 40 x 4", "5 without right", "target class: mid 16", "categories"):
        assert told in printed
    assert "model trusted vote of left, right" in printed
    assert "score not measured" in printed
    return folder


def model(folder):
    return folder / "model.lokl"


def test_predictions_are_those_of_the_model(folder):
    done = run("predict", model(folder), folder / "left.csv", folder / "right.csv")
    assert done.exit_code == 0, done.output
    found = rows(done.stdout)
    assert list(found[0]) == [
        *("id", "prediction", "probability high", "probability low", "probability mid"),
        *("trust left", "trust right", "disagreement", "status"),
    ]
    frame = pd.read_csv(folder / "left.csv").merge(
        pd.read_csv(folder / "right.csv"), on="id", how="left"
    )
    fitted = lokl.load(model(folder))
    assert [row["id"] for row in found] == frame["id"].tolist()
    assert [row["prediction"] for row in found] == fitted.predict(frame).tolist()
    chances = np.array([[float(row[f"probability {c}"]) for c in fitted.classes_] for row in found])
    np.testing.assert_allclose(chances, fitted.predict_proba(frame), rtol=1e-5)
    assert float(found[0]["trust right"]) == 0


def test_batches_give_the_same_predictions(folder, monkeypatch):
    together = run("predict", model(folder), folder / "left.csv", folder / "right.csv")
    # Samples of some batches lack the right table, and therefore have no disagreement.
    monkeypatch.setattr("lokl.cli.models._BATCH", 3)
    apart = run("predict", model(folder), folder / "left.csv", folder / "right.csv")
    for one, other in zip(rows(together.stdout), rows(apart.stdout), strict=True):
        assert one.keys() == other.keys()
        for name, value in one.items():
            if name in ("id", "prediction", "status") or not value:
                assert other[name] == value
            else:
                # Products of matrices of other sizes are rounded differently.
                assert float(other[name]) == pytest.approx(float(value), abs=1e-6)


def test_new_tables_may_lack_views_and_have_more_columns(folder, tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("extra,d,id,e\n1,0.5,N1,-1\n2,,N2,0.1\n")
    done = run("predict", model(folder), path, "--json")
    assert done.exit_code == 0, done.output
    first, second = json.loads(done.stdout)
    assert (first["id"], second["id"]) == ("N1", "N2")
    assert first["trust left"] == 0
    assert first["trust right"] > 0
    assert sum(v for k, v in first.items() if k.startswith("prob")) == pytest.approx(1)
    assert "ignored: extra" in done.stderr


def test_one_sample_in_words(folder):
    files = [folder / "left.csv", folder / "right.csv"]
    done = run("explain", model(folder), *files, "--sample", "S10")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    predicted = re.match(r"S10 is predicted (low|mid|high) with probability 0\.\d\d", lines[0])
    assert {"low": "35 %", "mid": "40 %", "high": "25 %"}[predicted[1]] in lines[1]
    assert "learned from this sample" in lines[2]
    assert lines[3].startswith(f"Evidence of the views for {predicted[1]} over ")
    assert lines[4].split() == ["predicts", "alone", "trust", "alone", "adds"]
    assert lines[5].split()[0] == "left"
    assert lines[6].split()[0] == "right"
    assert "▶" in lines[5] + lines[6]
    left, right, base, total = (
        float(lines[row].split()[cell]) for row, cell in ((5, 5), (6, 5), (7, 2), (8, 1))
    )
    assert base + left + right == pytest.approx(total, abs=0.02)
    assert re.search(r"[Dd]isagreement 0\.\d\d", done.stdout)
    assert re.fullmatch(r"Most similar: S\d\d \(\w+\), S\d\d \(\w+\), S\d\d \(\w+\)", lines[-1])
    assert max(map(len, lines)) <= 80
    done = run("explain", model(folder), *files, "--sample", "S02")
    assert ["right", "missing"] in [line.split() for line in done.stdout.splitlines()]
    found = json.loads(run("explain", model(folder), *files, "--sample", "S02", "--json").stdout)
    assert found["views"][1]["trust"] is None
    assert not found["views"][1]["present"]
    assert found["views"][0]["predicts"] == found["prediction"]
    assert found["status"] in {"agree", "unsure"}


def test_what_a_file_contains(folder):
    done = run("info", model(folder))
    assert done.exit_code == 0, done.output
    for told in (
        "TablePreparation > ColumnScaler > TrustedVoteClassifier",
        "high, low, mid",
        "a, b, c, colour",
    ):
        assert told in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    told = json.loads(run("info", model(folder), "--json").stdout)
    assert told["input"]["kinds"]["colour"] == "categorical"


def test_numbers_and_views_by_pattern(folder, tmp_path):
    frame = pd.read_csv(folder / "left.csv").merge(pd.read_csv(folder / "labels.csv"), on="id")
    frame.to_csv(tmp_path / "one.csv", index=False)
    options = ["--on", "id", "--target", "score", "--view", "x=a,b", "--view", "y=c*"]
    done = run("fit", tmp_path / "one.csv", *options, "-o", tmp_path / "m.lokl", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["model"][2] == "AutoMKLRegressor"
    assert told["input"]["views"] == {"x": ["a", "b"], "y": ["c", "colour", "class"]}
    done = run("explain", tmp_path / "m.lokl", tmp_path / "one.csv", "--sample", "S01")
    assert done.exit_code == 0, done.output
    assert "Contributions of the views to the value" in done.stdout


@pytest.mark.parametrize("method", ["LMKL", "uniform", "LD-MKL"])
def test_methods_without_probabilities_of_their_own_get_them(folder, tmp_path, method):
    options = ["--on", "id", "--target", f"{folder / 'labels.csv'}:class", "--method", method]
    files = [folder / "left.csv", folder / "right.csv"]
    done = run("fit", *files, *options, "-o", tmp_path / "m.lokl")
    assert done.exit_code == 0, done.output
    found = rows(run("predict", tmp_path / "m.lokl", *files).stdout)
    assert {"probability low", "weight left", "weight right"} <= found[0].keys()
    done = run("explain", tmp_path / "m.lokl", *files, "--sample", "S10")
    assert done.exit_code == 0, done.output
    assert "in log-odds" in done.stdout


def test_a_data_set_and_one_view(tmp_path):
    assert run("fit", "iris", "-o", tmp_path / "m.lokl", "--jobs", "1").exit_code == 0
    done = run("predict", tmp_path / "m.lokl", "iris")
    assert list(rows(done.stdout)[0]) == [
        *("id", "prediction", "probability setosa", "probability versicolor"),
        "probability virginica",
    ]
    done = run("explain", tmp_path / "m.lokl", "iris", "--sample", "1")
    shown = r"1 is predicted setosa with probability 0.9\d \(v\w+ 0.0\d, v\w+ 0.0\d\)\.\n"
    assert re.match(shown, done.stdout)


def test_models_that_were_saved_from_python(folder, tmp_path):
    frame = pd.read_csv(folder / "right.csv", index_col="id")
    frame = frame.assign(f=frame["d"] ** 2)
    y = pd.read_csv(folder / "labels.csv", index_col="id").loc[frame.index, "class"]
    views = per_view(RBF(), {"p": ["d", "f"], "q": ["e"]})
    fitted = lokl.TrustedVoteClassifier(views, random_state=0).fit(frame, y)
    lokl.save(fitted, tmp_path / "m.lokl")
    frame.to_csv(tmp_path / "new.csv")
    done = run("predict", tmp_path / "m.lokl", tmp_path / "new.csv", "--on", "id")
    assert done.exit_code == 0, done.output
    assert [row["prediction"] for row in rows(done.stdout)] == fitted.predict(frame).tolist()
    lokl.save(lokl.UniformMKLClassifier().fit(frame.to_numpy(), y), tmp_path / "bare.lokl")
    done = run("predict", tmp_path / "bare.lokl", tmp_path / "new.csv")
    assert done.exit_code == 2
    assert "columns without names" in done.stderr


def error(done, code=2):
    """The only line on standard error."""
    assert done.exit_code == code, done.output
    assert done.stdout == ""
    *_, line = done.stderr.splitlines()
    assert line.startswith("lokl: ")
    return line


def test_bad_input_is_one_line_and_exit_code_2(folder, tmp_path):
    left = folder / "left.csv"
    assert "column class" in error(run("fit", left, "--target", "class"))
    assert "--target" in error(run("fit", left, "-o", tmp_path / "m"))
    assert "--view x: write --view NAME=VALUE" in error(run("fit", left, "--view", "x"))
    assert "--cost" in error(run("fit", "iris", "--cost", "2"))
    assert "--sample" in error(run("explain", model(folder), left))
    assert "'forest'" in error(run("fit", "iris", "--method", "forest"))
    assert "no.csv" in error(run("fit", tmp_path / "no.csv"))
    assert "no sample 'X'" in error(run("explain", model(folder), left, "--sample", "X"))
    assert "No such file" in error(run("info", tmp_path / "no.lokl"))
    assert "not a file of a lokl model" in error(run("predict", left, left))
    broken = tmp_path / "broken.csv"
    broken.write_text("id,d,e\nS1,1,oops\n")
    assert (
        "row 2, column e: 'oops' is not a number; leave the cell empty, or pass --na oops"
        in error(run("predict", model(folder), broken))
    )
    done = run("predict", model(folder), broken, "--na", "oops")
    assert done.exit_code == 0, done.output


def test_a_place_that_cannot_be_written_is_told_before_the_fit(tmp_path):
    (tmp_path / "file").touch()
    for place in (tmp_path, tmp_path / "file" / "m.lokl"):
        done = run("fit", "iris", "-o", place)
        assert str(tmp_path) in error(done)
        assert "target" not in done.stderr


def test_a_file_of_the_model_stays_as_it_was_where_the_fit_fails(folder, tmp_path):
    path = tmp_path / "m.lokl"
    path.write_bytes(model(folder).read_bytes())
    error(run("fit", "iris", "--method", "uniform", "--cost", "-1", "-o", path), code=1)
    assert path.read_bytes() == model(folder).read_bytes()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
def test_an_interruption_is_exit_code_130(tmp_path):
    rng = np.random.RandomState(0)
    frame = pd.DataFrame(rng.normal(size=(4000, 20))).rename(columns=lambda c: f"c{c}")
    frame.assign(y=rng.randint(6, size=4000)).to_csv(tmp_path / "t.csv", index=False)
    options = ["--target", "y", "--method", "LMKL", "--cost", "1000", "-o", tmp_path / "m.lokl"]
    arguments = [sys.executable, "-m", "lokl", "fit", tmp_path / "t.csv", *options]
    with subprocess.Popen(list(map(str, arguments)), stderr=subprocess.PIPE) as process:
        line = b""
        while b"target  y" not in line:  # the table is read, the fit begins
            line = process.stderr.readline()
            assert line
        rest = None
        while rest is None:
            time.sleep(1)
            process.send_signal(signal.SIGINT)
            try:
                rest = process.communicate(timeout=10)[1].decode()
            except subprocess.TimeoutExpired:
                # Numba loses an interrupt that arrives while it loads a compiled loop.
                continue
    # An interrupt inside `exec` makes Python itself end by the signal; a shell shows 130 for both.
    assert process.returncode in (130, -signal.SIGINT), rest
    assert rest.splitlines()[-1] == "lokl: interrupted"
    assert not (tmp_path / "m.lokl").exists()


@pytest.fixture(scope="module")
def folder_with_sets(tmp_path_factory):
    """A folder with tables and models with prediction sets and with intervals."""
    folder = tmp_path_factory.mktemp("sets")
    left, right, labels = larger(folder)
    for target, method in (("class", "trusted vote"), ("score", "uniform")):
        options = ["--on", "id", "--target", f"{labels}:{target}", "--method", method, "--sets"]
        done = run("fit", left, right, *options, "-o", folder / f"{target}.lokl")
        assert done.exit_code == 0, done.output
    return folder


def test_prediction_sets_and_intervals(folder_with_sets):
    folder = folder_with_sets
    files = [folder / "left.csv", folder / "right.csv"]
    counts = []
    for coverage in (0.5, 0.9):
        done = run("predict", folder / "class.lokl", *files, "--coverage", coverage)
        assert done.exit_code == 0, done.output
        sets = [set(row["prediction set"].split(", ")) - {""} for row in rows(done.stdout)]
        assert all(own <= {"low", "mid", "high"} for own in sets)
        counts.append(sum(map(len, sets)))
    assert counts[0] < counts[1]
    (first, *_) = rows(run("predict", folder / "class.lokl", *files).stdout)
    sample = run("explain", folder / "class.lokl", *files, "--sample", first["id"]).stdout
    assert f"90 % prediction set: {first['prediction set']}." in sample
    assert "Columns that matter most: " in sample
    for row in rows(run("predict", folder / "score.lokl", *files).stdout):
        assert float(row["lower"]) < float(row["upper"])


def test_bad_coverages_are_named(folder, folder_with_sets):
    left = folder / "left.csv"
    assert "lokl fit --sets" in error(run("predict", model(folder), left, "--coverage", 0.9))
    stored = folder_with_sets / "class.lokl"
    assert "between 0 and 1" in error(run("predict", stored, left, "--coverage", 90))
