"""Permutation test of the chosen model."""

import json

import numpy as np
import pytest
from compare_cases import QUICK, asked, experiment_of, read, write_tables
from typer.testing import CliRunner

from lokl.cli.app import app
from lokl.study.duration import RunClock
from lokl.study.experiment import CandidateSplit
from lokl.study.permutation import PermutationTest, permuted_target
from lokl.tables import TableError

runner = CliRunner()


def run(*arguments):
    return runner.invoke(app, [str(argument) for argument in arguments])


@pytest.mark.parametrize("kind", ["none", "constant", "varying"])
def test_targets_are_exchanged_within_folds_and_groups(kind):
    rng = np.random.RandomState(0)
    group = np.arange(60) // 3
    fold = group % 4
    y = rng.randint(3, size=20)[group] if kind == "constant" else rng.randint(3, size=60)
    groups = None if kind == "none" else group
    moved = 0
    for seed in range(20):
        permuted = permuted_target(y, fold, groups, np.random.RandomState(seed))
        moved += int((permuted != y).sum())
        blocks = group if kind == "varying" else fold
        for block in np.unique(blocks):
            assert sorted(permuted[blocks == block]) == sorted(y[blocks == block])
        if kind == "constant":
            assert all(len(set(permuted[group == one])) == 1 for one in range(20))
        again = permuted_target(y, fold, groups, np.random.RandomState(seed))
        np.testing.assert_array_equal(permuted, again)
    assert moved > 0


def test_all_permutations_of_a_fold_are_equally_likely():
    y, fold = np.array([0, 1, 2, 9]), np.array([0, 0, 0, 1])
    rng = np.random.RandomState(1)
    drawn = [tuple(permuted_target(y, fold, None, rng)[:3]) for _ in range(3000)]
    counts = np.array([drawn.count(one) for one in set(drawn)])
    # Six permutations; five standard deviations of a count of 500.
    assert len(counts) == 6
    assert np.abs(counts - 500).max() < 5 * np.sqrt(3000 * 1 / 6 * 5 / 6)


def test_targets_that_cannot_be_exchanged():
    with pytest.raises(TableError, match="--permutations"):
        permuted_target(np.array([0, 1]), np.array([0, 1]), None, np.random.RandomState(0))


def test_p_values():
    assert PermutationTest(0.9, 0.5, 0.6, 0, 199).p_value == 1 / 200
    assert PermutationTest(0.5, 0.5, 0.6, 199, 199).p_value == 1


def test_permutations_resume_and_end_with_a_p_value(tmp_path):
    paths = write_tables(tmp_path)
    command = ["compare", *asked(paths), *QUICK, "--methods", "uniform mix,majority", "--json"]
    command += ["-o", tmp_path / "run"]
    cells = tmp_path / "run" / "cells.jsonl"
    assert json.loads(run(*command).stdout)["permutation test"] is None
    assert len(cells.read_text().splitlines()) == 6
    # Nothing is fitted again but the chosen model, on three folds of each permutation.
    done = run(*command, "--permutations", 9)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["permutation test"]
    assert len(cells.read_text().splitlines()) == 6 + 3 * 9
    assert found["n_permutations"] == 9
    assert found["p value"] == (1 + found["n_as_good"]) / 10 == 0.1
    assert found["mean"] < found["best"] < found["score"]
    # An interrupted run, whose last permutation is incomplete, gives the same.
    lines = cells.read_text().splitlines(keepends=True)
    cells.write_text("".join(lines[:-4]))
    limited = run(*command, "--permutations", 9, "--time-limit", "0.001")
    assert json.loads(limited.stdout)["permutation test"]["n_permutations"] == 7
    codes = [finding["code"] for finding in json.loads(limited.stdout)["findings"]]
    assert "LOKL015" in codes
    assert "LOKL016" in codes
    again = run(*command, "--permutations", 9)
    assert json.loads(again.stdout)["permutation test"] == found
    # A score is computed from the recorded predictions.
    by_loss = json.loads(run(*command, "--permutations", 9, "--score", "log loss").stdout)
    assert len(cells.read_text().splitlines()) == 6 + 3 * 9
    assert by_loss["permutation test"]["best"] > by_loss["permutation test"]["score"]
    printed = run(*command[:-3], "-o", tmp_path / "run", "--permutations", 9)
    assert "p = 0.1" in " ".join(printed.stdout.split())
    page = (tmp_path / "run" / "report.html").read_text()
    assert "p = 0.1" in page
    assert "permutation test" in page


def test_an_unrelated_target_is_not_significant(tmp_path):
    experiment = experiment_of(read(write_tables(tmp_path)), ["uniform mix"], folds=3)
    rng = np.random.RandomState(3)
    p_values = []
    for _ in range(200):
        # The score of any fixed predictions is one of exchangeable ones.
        actual, *permuted = (
            np.mean(experiment.permuted(rng.randint(1, 10**6)).y == experiment.samples.y)
            for _ in range(20)
        )
        as_good = sum(value >= actual for value in permuted)
        p_values.append(PermutationTest(actual, 0.0, 0.0, as_good, 19).p_value)
    # Never too small: at most the level, with five standard deviations of 200 draws.
    for level in (0.05, 0.2, 0.5):
        assert np.mean(np.array(p_values) <= level) <= level + 5 * np.sqrt(level / 200)


def test_the_clock_learns_which_candidate_is_permuted(tmp_path):
    experiment = experiment_of(read(write_tables(tmp_path)), ["trusted vote", "uniform mix"])
    cells = [CandidateSplit("trusted vote", split, k) for k in (1, 2) for split in range(3)]
    clock = RunClock(cells, experiment.candidates, experiment.samples, jobs=1)
    for cell in cells:
        record = {**vars(cell), "candidate": "uniform mix", "error": None, "cell seconds": 1.0}
        clock.finished(record)
    assert clock.current == ""
