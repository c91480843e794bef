"""Records of benchmarks, and tables of the UCI benchmark from made-up records."""

import pytest
from benchmarks.common import Report
from benchmarks.records import Records
from benchmarks.uci_tables import (
    groups,
    mean_ranks,
    results,
    set_rows,
    show,
    summary_rows,
    svc_tuning,
    won_lost_tied,
)


def record(name, fold, method, accuracy, *, rows=100, log_loss=0.5, error=None):
    about = {"set": name, "fold": fold, "method": method, "error": error}
    if error is not None:
        return about
    measured = {"accuracy": accuracy, "log_loss": log_loss, "cpu_seconds": 2.0, "seconds": 3.0}
    return {**about, **measured, "rows": rows, "train_rows": 3 * rows // 4}


@pytest.fixture
def records():
    return [
        record("large", 0, "AutoMKL", 70.0, rows=2000),
        record("large", 0, "SVC", 60.0, rows=2000, log_loss=None),
        record("small", 0, "AutoMKL", 90.0, log_loss=0.2),
        record("small", 1, "AutoMKL", 80.0, log_loss=0.4),
        record("small", 0, "SVC", 80.0, log_loss=None),
        record("small", 1, "SVC", 90.0, log_loss=None),
        # A fold without the other method.
        record("small", 2, "AutoMKL", 0.0),
        record("other", 0, "AutoMKL", 50.0, rows=700),
    ]


def test_means_are_over_folds_of_all_methods(records):
    sets = results(records)
    assert [(s["set"], s["rows"], s["folds"]) for s in sets] == [
        ("small", 100, 2),
        ("other", 700, 1),
        ("large", 2000, 1),
    ]
    ours = sets[0]["methods"]["AutoMKL"]
    assert ours == pytest.approx(
        {"accuracy": 85.0, "log_loss": 0.3, "cpu_seconds": 4.0, "seconds": 6.0}
    )


def test_sets_without_a_common_fold_are_left_out():
    assert not results([record("a", 0, "AutoMKL", 1.0), record("a", 1, "SVC", 1.0)])


def test_sets_are_grouped_by_rows(records):
    sizes = [1, 700, 701, 1000, 1001]
    sets = results([record(str(n), 0, "SVC", 1.0, rows=n) for n in sizes])
    assert [[s["rows"] for s in members] for members in groups(sets).values()] == [
        [1, 700],
        [701, 1000],
        [1001],
    ]
    assert [len(members) for members in groups(results(records)).values()] == [2, 1]


def test_missing_methods_are_blank_in_the_row_of_a_set(records):
    rows = {row["set"]: row for row in set_rows(results(records), ["AutoMKL", "SVC"])}
    assert rows["other"]["AutoMKL"] == "50.00"
    assert rows["other"]["SVC"] == ""
    assert rows["small"]["SVC"] == "85.00"


def test_summary_counts_ties_and_leaves_out_missing_probabilities(records):
    sets = [s for s in results(records) if s["set"] != "other"]
    ours, svc = summary_rows(sets, ["AutoMKL", "SVC"])
    assert (ours["method"], ours["accuracy"], ours["rank"]) == ("AutoMKL", "77.50", "1.25")
    assert (svc["method"], svc["accuracy"], svc["rank"]) == ("SVC", "72.50", "1.75")
    assert ours["against SVC"] == "1 : 0 : 1"
    assert svc["against SVC"] == ""
    assert (ours["log loss"], svc["log loss"]) == ("0.400", "")
    assert (ours["processor, s"], ours["clock, s"]) == ("6", "9")


def test_ties_are_equal_to_the_last_digits():
    third, same = 100.0 / 3, 100.0 / 3 + 1e-13
    assert won_lost_tied([third, 2.0, 1.0], [same, 1.0, 2.0]) == (1, 1, 1)
    assert mean_ranks({"a": [third], "b": [same], "c": [1.0]}) == {"a": 1.5, "b": 1.5, "c": 3.0}


def test_tuning_of_the_svc_depends_on_the_training_rows():
    found = [svc_tuning(rows) for rows in (1000, 1001, 5000, 5001)]
    assert found == ["5 folds", "2 folds", "2 folds", "2,000 rows, 2 folds"]


def test_only_complete_sets_are_summarised_and_failures_are_noted(records):
    report = Report("uci")
    failure = record("small", 3, "SVC", 0.0, error="ValueError: no")
    show(report, [*records, failure], ["AutoMKL", "SVC", "xRFM"])
    by_set, *summaries = report.tables.values()
    assert [row["set"] for row in by_set] == ["small", "other", "large"]
    assert [[row["accuracy"] for row in rows] for rows in summaries] == [
        ["85.00", "85.00"],
        ["70.00", "60.00"],
    ]
    assert any("ValueError: no" in note for note in report.notes)


def test_an_interrupted_benchmark_finds_its_finished_work(tmp_path):
    """Work is identified by its names and the setting, also after the file is opened again."""
    path = tmp_path / "records.jsonl"
    work = [{"set": name, "split": split} for name in ("a", "b") for split in range(2)]
    for setting in ({"fixed": True}, {"fixed": False}):
        records = Records(path, ("set", "split"), setting)
        for k, one in enumerate(work):
            assert not records.has(**one)
            records.add({**one, "accuracy": float(k)})
            assert records.has(**one)
    again = Records(path, ("set", "split"), {"fixed": True})
    assert all(again.has(**one) for one in work)
    assert not again.has(set="a", split=2)
    assert [record["accuracy"] for record in again.found] == [0.0, 1.0, 2.0, 3.0]
