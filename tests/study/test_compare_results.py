"""Results of records: scores, the chosen candidate, the value of views, findings."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from compare_cases import experiment_of, made_up, read, write_tables
from hypothesis import given
from hypothesis import strategies as st

from lokl.study import findings as findings_module
from lokl.study.candidates import VIEW
from lokl.study.findings import findings
from lokl.study.results import BEST_VIEW, Results, predictions_csv, results_csv

NAMES = ("SimpleMKL", "trusted vote", "uniform mix", "left alone", "right alone", "majority class")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return read(write_tables(tmp_path_factory.mktemp("tables")))


@pytest.fixture(scope="module")
def experiment(table):
    return experiment_of(table, NAMES, folds=3, repeats=2)


def scores(simple=0.8, vote=0.8, mix=0.8, left=0.6, right=0.5, guess=0.3, spread=0.02):
    # Each candidate has its own luck with the splits.
    luck = np.random.RandomState(0).normal(size=(len(NAMES), 6))
    luck -= luck.mean(axis=1, keepdims=True)
    means = (simple, vote, mix, left, right, guess)
    named = zip(NAMES, means, spread * luck, strict=True)
    return {name: (mean + steps).tolist() for name, mean, steps in named}


GOALS_ORDER = {"explain": 1, "accuracy": 0, "simple": -1}


@given(
    means=st.lists(st.floats(0.1, 0.9), min_size=6, max_size=6),
    spread=st.floats(0.001, 0.05),
    goal=st.sampled_from(sorted(GOALS_ORDER)),
)
def test_the_goal_chooses_among_models_that_are_not_clearly_worse(
    table, experiment, means, spread, goal
):
    experiment.settings = replace(experiment.settings, goal=goal)
    results = made_up(experiment, table, scores(*means, spread=spread))
    assert results.chosen is not None
    experiment.settings = replace(experiment.settings, goal="explain")
    ours = {name: results.result(name) for name in NAMES[:3]}
    # By hand: the standard error of the mean difference, paired by sample.
    right = {name: np.zeros(len(table.ids)) for name in ours}
    for (name, split), record in results.records.items():
        rows = experiment.splits[split][1]
        if name in ours:
            right[name][rows] += np.array(record["predictions"]) == experiment.samples.y[rows]
    best = max(ours, key=lambda name: right[name].sum())
    near = []
    for name, row in ours.items():
        difference = (right[best] - right[name]) / 2
        if difference.mean() <= difference.std(ddof=1) / np.sqrt(len(difference)) + 1e-12:
            near.append(row)
        assert row.mean == pytest.approx(right[name].mean() / 2)
    assert results.chosen in near
    level = max(GOALS_ORDER[goal] * row.complexity for row in near)
    assert GOALS_ORDER[goal] * results.chosen.complexity == level
    alike = [row.mean for row in near if GOALS_ORDER[goal] * row.complexity == level]
    assert results.chosen.mean == pytest.approx(max(alike), abs=1e-12)
    assert results.leaderboard[0].mean == max(row.mean for row in results.leaderboard)
    assert all(0 <= row.score.low <= row.mean <= row.score.high <= 1 for row in results.leaderboard)


def test_the_reason_names_what_was_preferred(table, experiment):
    def reason(goal="explain", **means):
        experiment.settings = replace(experiment.settings, goal=goal)
        results = made_up(experiment, table, scores(**means))
        return results.chosen.name, results.reason()

    means = {"simple": 0.5, "mix": 0.8, "vote": 0.8}
    name, text = reason(**means)
    assert name == "trusted vote"
    assert "uniform mix is as accurate" in text
    assert text.endswith("cannot say which table to believe.")
    name, text = reason(**{**means, "vote": 0.6})
    assert name == "uniform mix"
    assert "The trusted vote is less accurate (60" in text
    assert reason("simple", **means)[0] == "uniform mix"
    name, text = reason("accuracy", **{**means, "mix": 0.81})
    assert (name, "--goal accuracy" in text) == ("uniform mix", True)
    experiment.settings = replace(experiment.settings, goal="explain")


def test_a_vote_without_trust_has_no_advantage(table, experiment):
    without = {"trusted vote": {"trust": None}}
    results = made_up(experiment, table, scores(simple=0.5), **without)
    assert results.result("trusted vote").complexity < 3


def truth(experiment, split):
    return experiment.samples.y[experiment.splits[split][1]]


def test_the_best_view_is_chosen_inside(table, experiment):
    found = scores()
    inner = {"left alone": {"inner score": 0.4}, "right alone": {"inner score": 0.6}}
    results = made_up(experiment, table, found, **inner)
    assert results.result(BEST_VIEW).score == results.result("right alone").score
    assert results.best(VIEW).name == "left alone"


def test_value_of_views(table, experiment):
    results = made_up(experiment, table, scores())
    left, right = results.view_scores
    assert left.alone == results.result("left alone").score
    assert 0 < left.loss.low < left.loss.mean < 0.15
    assert right.without.mean == pytest.approx(results.chosen.mean - right.loss.mean)
    # Samples that nothing but the view can predict do not count.
    for split in range(6):
        record = results.records["trusted vote", split]
        predictions = np.array(record["predictions"])
        wrong = np.flatnonzero(predictions != truth(experiment, split)).tolist()
        reduced = {"rows": wrong, "predictions": predictions[wrong].tolist(), "probabilities": None}
        record["ablation"] = {"left": reduced}
    left, right = Results(experiment, results.records.values()).view_scores
    assert left.without.mean == left.loss.mean == 0
    assert right.loss is None


def test_splits_that_are_not_finished_do_not_count(table, experiment):
    whole = made_up(experiment, table, scores())
    records = [r for (name, split), r in whole.records.items() if (name, split) != ("SimpleMKL", 4)]
    results = Results(experiment, records)
    assert results.splits == [0, 1, 2, 3, 5]
    assert results.held_out(0) is not None
    assert results.held_out(1) is None
    assert "5 of 6 folds" in text_of(results, "LOKL015")


def test_tables_have_a_line_for_everything(table, experiment):
    results = made_up(experiment, table, scores())
    lines = results_csv(results).splitlines()
    assert len(lines) == 1 + 6 * len(NAMES)
    assert lines[0].startswith(
        "candidate,role,repeat,fold,samples,accuracy,balanced accuracy,AUROC,average precision,"
        "log loss,Brier score,F1,MCC,"
    )
    lines = predictions_csv(results).splitlines()
    assert len(lines) == 1 + 2 * 45
    assert lines[0] == (
        "id,repeat,fold,class,prediction,probability high,probability low,probability mid,"
        "trust left,trust right,disagreement,status"
    )
    assert [line.split(",")[0] for line in lines[1:46]] == table.ids


def test_samples_by_status_and_decisive_view(table, experiment):
    results = made_up(experiment, table, scores())
    assert results.with_status()["agree"] == table.ids
    assert set(results.decisive_for().values()) == {"0 samples"}
    for split in range(3):
        record = results.records["trusted vote", split]
        rest = len(record["status"]) - 2
        record["disagreement"] = [0.6, 0.9, *[0.1] * rest]
        record["status"] = ["contradict", "contradict", *["agree"] * rest]
        labels = experiment.samples.y[experiment.splits[split][1]]
        record["decisive"] = [[label == "low", False] for label in labels]
    results = Results(experiment, results.records.values())
    names = results.with_status()
    assert len(names["contradict"]) == 6
    seconds = {table.ids[experiment.splits[split][1][1]] for split in range(3)}
    # Most disagreement first.
    assert set(names["contradict"][:3]) == seconds
    n_low = int((experiment.samples.y == "low").sum())
    assert results.decisive_for() == {"left": f"{n_low} samples, mostly low", "right": "0 samples"}


def test_constant_weights_are_one_sentence(table, experiment):
    assert made_up(experiment, table, scores()).equal_weights() == ""
    results = made_up(experiment, table, scores(vote=0.5, simple=0.5))
    assert results.chosen.name == "uniform mix"
    assert results.equal_weights() == "All tables count equally."
    for split in range(6):
        record = results.records["uniform mix", split]
        record["weights"] = [[0.8, 0.2] for _ in record["weights"]]
    assert "left 0.80, right 0.20" in Results(experiment, results.records.values()).equal_weights()


def text_of(results, code):
    return next((one.text for one in findings(results) if one.code == code), "")


NOISE = {name: {"warnings": ["saturated", "edge of the grid in model__C"]} for name in NAMES}
WRONG = {"trusted vote": {"probabilities": [[0.4, 0.3, 0.3]] * 15}}


@pytest.mark.parametrize(
    ("code", "told", "changes", "more"),
    [
        ("LOKL002", "C of trusted vote", {}, NOISE),
        ("LOKL003", "left alone may be as good as trusted vote", {"left": 0.8}, {}),
        ("LOKL003", "consider whether right is worth", {"left": 0.8}, {}),
        ("LOKL003", "left alone is clearly better than trusted vote", {"left": 0.95}, {}),
        ("LOKL004", "majority class is clearly better than trusted vote", {"guess": 0.95}, {}),
        ("LOKL005", "majority class may be as good as trusted vote", {"guess": 0.79}, {}),
        ("LOKL008", "saturated", {}, NOISE),
    ],
)
def test_findings_are_told_where_there_is_something(table, experiment, code, told, changes, more):
    assert text_of(made_up(experiment, table, scores()), code) == ""
    changed = made_up(experiment, table, {**scores(), **scores(**changes)}, **more)
    assert told in text_of(changed, code)


def test_probabilities_that_are_off(table, experiment):
    results = made_up(experiment, table, scores())
    for split in range(6):
        record = results.records["trusted vote", split]
        truth = experiment.samples.y[experiment.splits[split][1]]
        is_class = truth[:, None] == np.array(experiment.target.classes)
        record["probabilities"] = np.where(is_class, 0.98, 0.01).tolist()
    assert text_of(results, "LOKL011") == ""
    for split in range(6):
        record = results.records["trusted vote", split]
        record["probabilities"] = [[0.4, 0.3, 0.3]] * len(record["probabilities"])
    assert "0." in text_of(results, "LOKL011")


def test_a_gate_that_a_second_repeat_does_not_confirm(table, experiment):
    results = made_up(experiment, table, scores(vote=0.95))
    assert text_of(results, "LOKL006") == ""
    for split in range(6):
        record = results.records["trusted vote", split]
        record["trust"] = [[0.9, 0.1] if split < 3 else [0.1, 0.9]] * len(record["weights"])
    assert "100%" in text_of(results, "LOKL006")


def test_one_repeat_cannot_confirm_a_gate(table):
    experiment = experiment_of(table, NAMES, folds=3)
    found = {name: own[:3] for name, own in scores(vote=0.95).items()}
    results = made_up(experiment, table, found)
    assert results.chosen.name == "trusted vote"
    assert results.held_out(1) is None
    assert text_of(results, "LOKL006") == ""


def test_a_model_that_is_better_without_a_view(table, experiment):
    results = made_up(experiment, table, scores())
    assert text_of(results, "LOKL007") == ""
    for split in range(6):
        record = results.records["trusted vote", split]
        without = {**record["ablation"]["left"], "predictions": truth(experiment, split).tolist()}
        record["ablation"] = {**record["ablation"], "left": without}
    assert "left" in text_of(results, "LOKL007")
    assert "right" not in text_of(results, "LOKL007")


def test_candidates_that_fail(table, experiment):
    failed = {"SimpleMKL": {"error": "ValueError: no"}}
    results = made_up(experiment, table, scores(), **failed)
    assert results.result("SimpleMKL").failed
    assert results.leaderboard[-1].name == "SimpleMKL"
    assert text_of(results, "LOKL014") == "SimpleMKL failed in 6 of 6 folds: ValueError: no"


def test_copies_and_classes_of_few(tmp_path):
    paths = write_tables(tmp_path)
    table = read(paths)
    table.frame.iloc[1] = table.frame.iloc[0]
    table.target[:] = ["low"] * 3 + ["mid", "high"] * 21
    results = made_up(experiment_of(table, NAMES, repeats=2), table, scores())
    assert text_of(results, "LOKL013").startswith("2 samples")
    assert text_of(results, "LOKL001").endswith(": low 3")


def test_codes_are_sorted_and_documented():
    source = Path(findings_module.__file__).read_text()
    conditions = dict(re.findall(r"^- (LOKL\d+): (.*)$", findings_module.__doc__, re.MULTILINE))
    assert list(conditions) == sorted(set(re.findall(r"LOKL\d+", source)))
    page = (ROOT / "docs/command.md").read_text()
    rows = dict(re.findall(r"^\| `(LOKL\d+)` \| (.*?) \|", page, flags=re.MULTILINE))
    assert rows == conditions
