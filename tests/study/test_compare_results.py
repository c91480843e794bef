"""From records to what they say: rows, who is chosen, what views are worth, findings."""

import re
from pathlib import Path

import numpy as np
import pytest
from compare_cases import bench_of, made_up, read, write_tables
from hypothesis import given
from hypothesis import strategies as st

from lokl.explain.formatting import corrected_interval
from lokl.study.findings import KINDS, findings
from lokl.study.outputs import disagreeing, trusted_where
from lokl.study.results import BEST_VIEW, Results, predictions_csv, results_csv

NAMES = ("AutoMKL", "trusted vote", "uniform mix", "left alone", "right alone", "majority class")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return read(write_tables(tmp_path_factory.mktemp("tables")))


@pytest.fixture(scope="module")
def bench(table):
    return bench_of(table, NAMES, folds=3, repeats=2)


def scores(auto=0.8, vote=0.8, mix=0.8, left=0.6, right=0.5, guess=0.3, spread=0.02):
    # Each candidate has its own luck with the splits.
    luck = np.random.RandomState(0).normal(size=(len(NAMES), 6))
    luck -= luck.mean(axis=1, keepdims=True)
    means = (auto, vote, mix, left, right, guess)
    named = zip(NAMES, means, spread * luck, strict=True)
    return {name: (mean + steps).tolist() for name, mean, steps in named}


@given(means=st.lists(st.floats(0.1, 0.9), min_size=6, max_size=6), spread=st.floats(0.001, 0.05))
def test_the_simplest_within_one_standard_error_is_chosen(table, bench, means, spread):
    results = made_up(bench, table, scores(*means, spread=spread))
    ours = [results.row(name) for name in NAMES[:3]]
    best = max(ours, key=lambda row: row.mean)
    folds = [bench.splits[k] for k in range(6)]
    # Nadeau and Bengio: the variance of the mean is larger than that of independent splits.
    ratio = np.mean([len(left) / len(kept) for kept, left in folds])
    error = np.sqrt((1 / 6 + ratio) * np.var(best.scores, ddof=1))
    near = [row for row in ours if row.mean >= best.mean - error]
    simplest = min(near, key=lambda row: (row.complexity, -row.mean))
    assert results.chosen is simplest
    assert results.rows[0].mean == max(row.mean for row in results.rows)
    for row in results.rows:
        mean, low, high = corrected_interval(row.scores, folds)
        assert row.interval == (mean, max(low, 0.0), min(high, 1.0))


def test_the_best_view_is_chosen_inside(table, bench):
    found = scores()
    inner = {"left alone": {"inner": 0.4}, "right alone": {"inner": 0.6}}
    results = made_up(bench, table, found, **inner)
    assert results.row(BEST_VIEW).scores.tolist() == found["right alone"]
    assert results.best_single.name == "left alone"


def test_what_views_are_worth(table, bench):
    results = made_up(bench, table, scores())
    left, right = results.worth()
    assert left.alone == results.row("left alone").interval
    assert left.loss[0] == pytest.approx(np.mean([0.01 * split for split in range(6)]))
    assert right.without[0] == pytest.approx(results.chosen.mean - right.loss[0])


def test_splits_that_are_not_finished_do_not_count(table, bench):
    whole = made_up(bench, table, scores())
    records = [r for (name, split), r in whole.records.items() if (name, split) != ("AutoMKL", 4)]
    results = Results.of(bench, table, records)
    assert results.splits == [0, 1, 2, 3, 5]
    assert all(len(row.scores) == 5 for row in results.rows)
    assert results.held_out("uniform mix", 0) is not None
    assert results.held_out("uniform mix", 1) is None
    assert "only 5 of 6 folds" in text_of(results, "LOKL015")


def test_tables_have_a_line_for_everything(table, bench):
    results = made_up(bench, table, scores())
    lines = results_csv(results).splitlines()
    assert len(lines) == 1 + 6 * len(NAMES)
    assert lines[0].startswith("candidate,role,repeat,fold,samples,score,")
    lines = predictions_csv(results).splitlines()
    assert len(lines) == 1 + 2 * 45
    assert lines[0] == (
        "id,repeat,fold,class,prediction,probability high,probability low,probability mid,"
        "weight left,weight right,disagreement,status"
    )
    assert [line.split(",")[0] for line in lines[1:46]] == table.ids


def test_samples_whose_views_disagree(table, bench):
    results = made_up(bench, table, scores())
    assert disagreeing(results) == []
    for split in range(6):
        record = results.records["uniform mix", split]
        rest = len(record["alone"]) - 2
        record["disagreement"] = [0.9, 0.6, *[0.1] * rest]
        record["alone"] = [[0, 1], [1, 1], *[[0, -1]] * rest]
    firsts = {table.ids[bench.splits[split][1][0]] for split in range(3)}
    assert set(disagreeing(results)) == firsts


def test_trusted_where(table, bench):
    results = made_up(bench, table, scores())
    assert trusted_where(results) == dict.fromkeys(table.views, "the same for all")
    codes = [bench.question.codes(bench.part.y[left]) for _, left in bench.splits]
    results = made_up(bench, table, scores(vote=0.9))
    for split in range(6):
        record = results.records["trusted vote", split]
        record["trust"] = [[0.9, 0.8 if code == 1 else 0.2] for code in codes[split]]
    assert results.chosen.name == "trusted vote"
    assert trusted_where(results) == {"left": "all classes", "right": "low"}


def text_of(results, code):
    return next((one.text for one in findings(results) if one.code == code), "")


NOISE = {
    name: {"notices": {"saturated": "x", "edge of the grid in model__C": "x"}} for name in NAMES
}
WRONG = {"uniform mix": {"probabilities": [[0.4, 0.3, 0.3]] * 15}}


@pytest.mark.parametrize(
    ("code", "told", "changes", "more"),
    [
        ("LOKL002", "the best cost C of uniform mix lies on the edge", {}, NOISE),
        ("LOKL003", "uniform mix is not clearly better than left alone", {"left": 0.8}, {}),
        ("LOKL003", "uniform mix is clearly worse than left alone", {"left": 0.95}, {}),
        ("LOKL004", "uniform mix is clearly worse than majority class", {"guess": 0.95}, {}),
        ("LOKL005", "uniform mix is not clearly better than guessing", {"guess": 0.79}, {}),
        ("LOKL008", "the SVM is saturated", {}, NOISE),
    ],
)
def test_findings_are_told_where_there_is_something(table, bench, code, told, changes, more):
    assert text_of(made_up(bench, table, scores()), code) == ""
    changed = made_up(bench, table, {**scores(), **scores(**changes)}, **more)
    assert text_of(changed, code).startswith(told)


def test_probabilities_that_are_off(table, bench):
    results = made_up(bench, table, scores())
    for split in range(6):
        record = results.records["uniform mix", split]
        codes = bench.question.codes(bench.part.y[bench.splits[split][1]])
        record["probabilities"] = np.where(np.eye(3)[codes] > 0, 0.98, 0.01).tolist()
    assert text_of(results, "LOKL011") == ""
    for split in range(6):
        record = results.records["uniform mix", split]
        record["probabilities"] = [[0.4, 0.3, 0.3]] * len(record["probabilities"])
    assert text_of(results, "LOKL011").startswith("stated probabilities are 0.")


def test_a_gate_that_a_second_repeat_does_not_confirm(table, bench):
    results = made_up(bench, table, scores(vote=0.95))
    assert text_of(results, "LOKL006") == ""
    for split in range(6):
        record = results.records["trusted vote", split]
        record["trust"] = [[0.9, 0.1] if split < 3 else [0.1, 0.9]] * len(record["weights"])
    assert "another one for 100% of the samples" in text_of(results, "LOKL006")


def test_one_repeat_cannot_confirm_a_gate(table):
    bench = bench_of(table, NAMES, folds=3)
    found = {name: own[:3] for name, own in scores(vote=0.95).items()}
    results = made_up(bench, table, found)
    assert results.chosen.name == "trusted vote"
    assert results.held_out("trusted vote", 1) is None
    assert text_of(results, "LOKL006") == ""


def test_a_model_that_is_better_without_a_view(table, bench):
    results = made_up(bench, table, scores())
    assert text_of(results, "LOKL007") == ""
    for split in range(6):
        results.records["uniform mix", split]["withheld"]["left"] = [0.7, 0.8 + 0.001 * split]
    assert text_of(results, "LOKL007").startswith("the model is clearly better without: left")


def test_candidates_that_fail(table, bench):
    failed = {"AutoMKL": {"error": "ValueError: no"}}
    results = made_up(bench, table, scores(), **failed)
    assert results.row("AutoMKL").failed
    assert results.rows[-1].name == "AutoMKL"
    assert text_of(results, "LOKL014") == "AutoMKL failed in 6 of 6 folds: ValueError: no"


def test_copies_and_classes_of_few(tmp_path):
    paths = write_tables(tmp_path)
    table = read(paths)
    table.frame.iloc[1] = table.frame.iloc[0]
    table.target[:] = ["low"] * 3 + ["mid", "high"] * 21
    results = made_up(bench_of(table, NAMES, repeats=2), table, scores())
    assert text_of(results, "LOKL013").startswith("2 samples have the same values as another one")
    assert text_of(results, "LOKL001") == "classes of few samples are hardly judged: low 3"


def test_codes_are_unique_and_documented():
    codes = [kind.code for kind in KINDS]
    assert codes == sorted(set(codes))
    page = (ROOT / "docs/command.md").read_text()
    rows = dict(re.findall(r"^\| `(LOKL\d+)` \| (.*?) \|", page, flags=re.MULTILINE))
    assert rows == {kind.code: kind.condition for kind in KINDS}
