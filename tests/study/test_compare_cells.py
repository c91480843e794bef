"""Cells: folds, candidates, and the record of one candidate on one split."""

import json

import numpy as np
import pandas as pd
import pytest
from compare_cases import experiment_of, read, write_tables
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import (
    accuracy_score,
    log_loss,
    r2_score,
    roc_auc_score,
)

from lokl.search.columns import ColumnScaler
from lokl.search.cross_validation import make_folds
from lokl.study import experiment as experiment_module
from lokl.study.candidates import BASELINE, OURS, VIEW, candidates_for
from lokl.study.experiment import CandidateSplit, columns_of_folds, to_array, to_lists
from lokl.study.results import Results
from lokl.tables import TableError


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    return write_tables(tmp_path_factory.mktemp("tables"))


@given(
    seed=st.integers(0, 2**31 - 1),
    count=st.integers(2, 6),
    n=st.integers(12, 50),
    grouped=st.booleans(),
    numbers=st.booleans(),
)
def test_every_sample_is_left_out_once_and_groups_stay_together(seed, count, n, grouped, numbers):
    rng = np.random.RandomState(seed)
    y = rng.normal(size=n) if numbers else rng.randint(3, size=n)
    groups = np.array([f"g{k // 2}" for k in range(n)]) if grouped else None
    splits = make_folds(count, y, classification=not numbers, groups=groups, rng=rng)
    assert sorted(np.concatenate([left for _, left in splits])) == list(range(n))
    for kept, left in splits:
        assert not set(kept) & set(left)
        assert len(kept) + len(left) == n
        if grouped:
            assert not set(groups[kept]) & set(groups[left])
    if not grouped and not numbers:
        for label in range(3):
            counts = [np.sum(y[left] == label) for _, left in splits]
            assert max(counts) - min(counts) <= 1


@pytest.mark.parametrize("classification", [True, False])
def test_repeats_of_groups_divide_them_anew(classification):
    groups = np.repeat(np.arange(20), 2).astype(str)
    y = np.tile([0, 1], 20)
    rng = np.random.RandomState(0)
    first, second = (
        make_folds(5, y, classification=classification, groups=groups, rng=rng) for _ in range(2)
    )
    assert any(set(a[1]) != set(b[1]) for a, b in zip(first, second, strict=True))


@given(
    values=st.lists(st.floats(allow_nan=True, width=32), min_size=1, max_size=5),
    whole=st.lists(st.integers(-5, 5), min_size=1, max_size=5),
)
def test_arrays_come_back_from_lines_of_json(values, whole):
    array = np.array(values, dtype=float)
    again = to_array(json.loads(json.dumps(to_lists(array), allow_nan=False)))
    expected = np.where(np.isfinite(array), np.round(array, 6), np.nan)
    np.testing.assert_array_equal(again, expected)
    assert to_array(to_lists(np.array(whole))).tolist() == whole


def test_candidates_by_name(paths):
    table = read(paths)
    known = candidates_for(table)
    assert [one.name for one in known] == [
        *("trusted vote", "uniform mix", "left alone", "right alone"),
        *("majority class", "logistic regression", "SVC", "random forest", "gradient boosting"),
    ]
    assert {one.role for one in known} == {OURS, VIEW, BASELINE}
    some = candidates_for(table, ["UniformMKL, views", "forest", "C-LMKL", "uniform"])
    assert [one.name for one in some] == [
        *("uniform mix", "left alone", "right alone", "random forest", "C-LMKL")
    ]
    with pytest.raises(TableError, match=r"'oracle'.* trusted vote, uniform mix"):
        candidates_for(table, ["oracle"])
    # AutoMKL of several views is the trusted vote.
    assert [one.name for one in candidates_for(table, ["AutoMKL", "TrustedVote"])] == [
        "trusted vote"
    ]
    numbers = read(paths, "score")
    assert "ridge regression" in [one.name for one in candidates_for(numbers)]
    with pytest.raises(TableError, match="EasyMKL"):
        candidates_for(numbers, ["EasyMKL"])


@pytest.mark.slow
def test_a_record_of_ours_agrees_with_itself(paths):
    experiment = experiment_of(read(paths), ["trusted vote"])
    record = experiment.run(CandidateSplit("trusted vote", 1))
    assert record["error"] is None, record
    truth = experiment.samples.y[experiment.splits[1][1]]
    chances = np.array(record["probabilities"])
    chances /= chances.sum(axis=1, keepdims=True)
    scores = Results(experiment, [record]).fold_scores(record)
    assert scores["accuracy"] == accuracy_score(truth, record["predictions"])
    assert scores["log loss"] == pytest.approx(log_loss(truth, chances), rel=1e-4)
    area = roc_auc_score(truth, chances, multi_class="ovr")
    assert scores["AUROC"] == pytest.approx(area, rel=1e-4)
    present = np.array(record["presence"])
    lacking = experiment.samples.take(experiment.splits[1][1]).frame[["d", "e"]].isna().all(axis=1)
    np.testing.assert_array_equal(present, np.column_stack([np.ones(len(lacking), bool), ~lacking]))
    trust, alone = np.array(record["trust"]), np.array(record["alone"], dtype=object)
    assert (trust[~present] == 0).all()
    assert set(alone[~present]) == {None}
    assert set(alone[present]) <= set(experiment.target.classes)
    # The decision for the predicted class against the runner-up, in its parts.
    ranked = np.sort(chances, axis=1)
    total = np.array(record["base_values"]) + np.array(record["contributions"]).sum(axis=1)
    np.testing.assert_allclose(np.exp(total), ranked[:, -1] / ranked[:, -2], rtol=0.02)
    # Columns add up to their views, within the rounding of a few numbers.
    columns = columns_of_folds([record["columns"]], np.arange(len(truth)))
    np.testing.assert_allclose(columns.by_view(), np.array(record["contributions"]), atol=1e-5)
    again = experiment.run(CandidateSplit("trusted vote", 1))
    times = {"seconds": 0, "cell seconds": 0}
    assert {**record, **times} == {**again, **times}
    json.dumps(record, allow_nan=False)


def test_columns_of_models_with_other_columns():
    first = {"views": ["v", "w"], "columns": ["a", "b"], "view": [0, 1], "values": [[1.0, 2.0]]}
    second = {"views": ["v", "w"], "columns": ["c", "a"], "view": [0, 0], "values": [[3.0, 4.0]]}
    found = columns_of_folds([first, second], np.array([1, 0]))
    assert found.columns == ["a", "b", "c"]
    assert found.view.tolist() == [0, 1, 0]
    assert found.values.tolist() == [[4.0, 0.0, 3.0], [1.0, 2.0, 0.0]]


def test_columns_are_recorded_once_for_each_sample_and_of_small_tables(paths, monkeypatch):
    experiment = experiment_of(read(paths), ["uniform mix"], repeats=2)
    assert experiment.run(CandidateSplit("uniform mix", 3))["columns"] is None
    monkeypatch.setattr(experiment_module, "MOST_CELLS", 10)
    assert experiment.run(CandidateSplit("uniform mix", 0))["columns"] is None


def test_a_removed_view_is_not_used(paths):
    """By hand: the same settings on the columns that are left."""
    table = read(paths)
    experiment = experiment_of(table, ["uniform mix"])
    record = experiment.run(CandidateSplit("uniform mix", 0))
    kept, left = experiment.splits[0]
    train, test = experiment.samples.take(kept), experiment.samples.take(left)
    model = experiment.candidates["uniform mix"].fit(train).model
    best = model[-1].best_estimator_[-1]
    preparation, X = train.prepared()
    Z = preparation.transform(test.frame)
    columns = train.columns["left"]
    scale = ColumnScaler([np.arange(len(columns))]).fit(X[:, columns])
    kernels = {n: k.kernel for n, k in best.kernels.items() if n.startswith("left")}
    alone = clone(best).set_params(kernels=kernels)
    alone.fit(scale.transform(X[:, columns]), train.y)
    expected = alone.predict(scale.transform(Z[:, columns])).tolist()
    assert record["ablation"]["right"]["predictions"] == expected
    # Samples with only the left view are not predicted without it.
    has = test.frame[["d", "e"]].notna().all(axis=1).to_numpy()
    assert record["ablation"]["left"]["rows"] == np.flatnonzero(has).tolist()


def test_samples_without_the_only_view_get_the_prior(paths):
    experiment = experiment_of(read(paths), ["right"])
    samples = experiment.samples
    fitted = experiment.candidates["right alone"].fit(samples)
    frame = samples.frame
    lacking = frame[["d", "e"]].isna().all(axis=1).to_numpy()
    said, chances = fitted.model.predict(frame), fitted.model.predict_proba(frame)
    usual = pd.Series(samples.y).value_counts(normalize=True)
    assert set(said[lacking]) == {usual.index[0]}
    np.testing.assert_allclose(chances[lacking][0], usual.loc[fitted.model.classes_])
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    assert (said[~lacking] == samples.y[~lacking]).mean() > 0.5


@pytest.mark.slow
def test_numbers_are_judged_by_r_squared(paths):
    experiment = experiment_of(read(paths, "score"), ["uniform mix", "views", "baselines"])
    truth = experiment.samples.y[experiment.splits[0][1]]
    for name in experiment.candidates:
        record = experiment.run(CandidateSplit(name, 0))
        assert record["error"] is None, record
        score = Results(experiment, [record]).fold_scores(record)["R squared"]
        assert score == pytest.approx(r2_score(truth, record["predictions"]), abs=1e-4)
        assert record["probabilities"] is None


def test_many_samples_are_tuned_on_a_part(monkeypatch, paths):
    monkeypatch.setattr("lokl.study.candidates.TUNING_LIMIT", 20)
    monkeypatch.setattr("lokl.study.candidates.TUNING_ROWS", 20)
    experiment = experiment_of(read(paths), ["uniform mix", "logistic"])
    samples = experiment.samples
    assert 18 <= len(samples.tuning_rows()) <= 36
    fitted = experiment.candidates["uniform mix"].fit(samples)
    assert fitted.model.predict_proba(samples.frame).shape == (45, 3)
    assert (fitted.model.predict(samples.frame) == samples.y).mean() > 0.7
    for name in experiment.candidates:
        record = experiment.run(CandidateSplit(name, 0))
        assert record["error"] is None, record


def test_a_cell_that_fails_is_a_record(paths):
    experiment = experiment_of(read(paths), ["uniform mix"])
    frame = experiment.samples.frame
    frame.loc[frame.index[0], "a"] = np.inf
    record = experiment.run(CandidateSplit("uniform mix", int(0 in experiment.splits[0][1])))
    assert record["candidate"] == "uniform mix"
    assert "ValueError: " in record["error"]
