"""Models that take tables as people keep them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import OneHotEncoder
from table_cases import larger

import lokl
from lokl._methods import METHODS
from lokl.explain import explain
from lokl.persistence import info, load, save
from lokl.search.columns import ColumnScaler, frequent_categories
from lokl.tables import TableError, TablePreparation, read_table
from lokl.tables.learning import estimator_class, learn, places_in, preparation_for
from lokl.tables.preparation import schema_of
from lokl.tables.table import read_new


@pytest.fixture
def files(tmp_path):
    return larger(tmp_path)


@pytest.fixture
def table(files):
    left, right, labels = files
    return read_table([left, right], on="id", target=f"{labels}:class")


def test_encoding_is_that_of_scikit_learn_where_nothing_is_missing(table):
    whole = table.frame.dropna()
    prepared = TablePreparation(table.views, table.kinds).fit_transform(whole)
    words = OneHotEncoder(sparse_output=False).fit_transform(whole[["colour"]])
    expected = np.hstack([whole[["a", "b", "c"]], words, whole[["d", "e"]]])
    np.testing.assert_array_equal(prepared, expected)


def test_gaps_are_imputed_once_and_missing_views_stay_missing(table):
    model = learn(table, "uniform")
    preparation, scaler = model[0], model[1]
    prepared = pd.DataFrame(preparation.transform(table.frame), index=table.ids)
    places = preparation.prepared_views_
    assert places == {"left": [0, 1, 2, 3, 4, 5], "right": [6, 7]}
    assert np.isnan(prepared.loc["S03", 1])
    scaled = pd.DataFrame(scaler.transform(prepared.to_numpy()), index=table.ids)
    lacking = scaled[places["right"]].isna()
    assert lacking.all(axis=1).sum() == lacking.any(axis=1).sum() == 5
    assert scaled[places["left"]].notna().all(axis=None)
    # The mean of the column, which is zero once it is scaled.
    assert scaled.loc["S03", 1] == 0
    np.testing.assert_allclose(scaled.mean(), 0, atol=1e-12)


def test_new_words_and_other_orders_of_columns(table):
    preparation = TablePreparation(table.views, table.kinds).fit(table.frame)
    turned = table.frame[table.frame.columns[::-1]]
    np.testing.assert_array_equal(preparation.transform(turned), preparation.transform(table.frame))
    violet = table.frame.assign(colour="violet")
    assert not preparation.transform(violet)[:, 3:6].any()
    without = preparation.transform(table.frame[table.views["left"]])
    assert np.isnan(without[:, 6:]).all()
    with pytest.raises(TableError, match="column b of view left"):
        preparation.transform(table.frame.drop(columns="b"))


def test_a_sample_without_any_value_of_the_only_view(files):
    table = read_table([files[0]], on="id", target=f"{files[2]}:class")
    preparation = TablePreparation(table.views, table.kinds).fit(table.frame)
    nobody = table.frame.copy()
    nobody.loc["S07"] = None
    with pytest.raises(TableError, match="sample S07"):
        preparation.transform(nobody)


# With 40 samples, a gate may repeat the labels, which is reported.
@pytest.mark.filterwarnings("ignore:the class label explains")
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.stem)
def test_every_method_learns_from_tables(table, method, tmp_path):
    model = learn(table, method.name)
    assert (model.predict(table.frame) == table.target).mean() > 0.7
    lokl.save(model, tmp_path / "model.lokl")
    again = lokl.load(tmp_path / "model.lokl")
    np.testing.assert_array_equal(
        again.decision_function(table.frame), model.decision_function(table.frame)
    )
    told = info(tmp_path / "model.lokl")
    assert told["input"]["views"] == table.views
    assert told["input"]["kinds"] == table.kinds
    assert told["target"] == {"name": "class", "classes": ["high", "low", "mid"]}


def test_numbers_are_predicted_too(files):
    table = read_table([files[0], files[1]], on="id", target=f"{files[2]}:score")
    model = learn(table, "trusted vote")
    assert type(model[-1]) is lokl.TrustedVoteRegressor
    assert model.score(table.frame, table.target) > 0.3


def test_everything_is_chosen_unless_a_method_is_asked_for(table, files):
    model = learn(table)
    assert type(model[-1]) is lokl.AutoMKLClassifier
    assert (model.predict(table.frame) == table.target).mean() > 0.8
    # Whoever has any view is answered, and each view has a part of its own.
    kernels = model[-1].best_estimator_[-1].kernels_
    seen = {column for kernel in kernels for column in kernel.columns_used()}
    assert seen == set(range(8))
    np.testing.assert_array_equal(
        model.predict_proba(table.frame), learn(table).predict_proba(table.frame)
    )
    one = read_table([files[1]], on="id", target=f"{files[2]}:score")
    numbers = learn(one, time_limit=60)
    assert type(numbers[-1]) is lokl.AutoMKLRegressor


def test_one_class_against_all_others(table, files):
    left, right, labels = files
    alone = read_table([left, right], on="id", target=f"{labels}:class", positive="mid")
    assert set(alone.target) == {"mid", "not mid"}
    assert (alone.target == "mid").tolist() == (table.target == "mid").tolist()
    model = learn(alone, "uniform")
    assert schema_of(model).merged_class() == "mid"
    new = read_new([left, right], schema_of(model), target=f"{labels}:class")
    assert new.target.loc[alone.target.index].tolist() == alone.target.tolist()
    with pytest.raises(TableError, match=r"--positive big: target class .*high, low, mid"):
        read_table([left, right], on="id", target=f"{labels}:class", positive="big")
    with pytest.raises(TableError, match="--positive big: target score"):
        read_table([left], on="id", target=f"{labels}:score", positive="big")


def test_categories_have_their_columns_before_anything_is_learned(table):
    preparation = preparation_for(table)
    places = places_in(preparation)
    few = table.frame[table.frame["colour"] != "red"]
    encoded = preparation.fit(few).transform(few)
    assert preparation.prepared_views_ == places
    assert encoded.shape[1] == 8
    # A category without training samples is zero for every sample, as an unknown one.
    red = 3 + preparation.categories_["colour"].index("red")
    scaler = ColumnScaler(list(places.values())).fit(encoded)
    assert not scaler.transform(preparation.transform(table.frame))[:, red].any()


def test_of_many_categories_the_most_frequent_count():
    words = [f"w{k:03d}" for k in range(150)] + ["w149"] * 3 + ["w148"] * 2
    found = frequent_categories(words)
    assert len(found) == 100
    assert {"w148", "w149", "w000"} <= set(found)
    assert "w147" not in found


def test_methods_by_any_of_their_names():
    for name in ("trusted vote", "TrustedVote", "trusted-vote", "TrustedVoteClassifier"):
        assert estimator_class(name, "classification") is lokl.TrustedVoteClassifier
    with pytest.raises(TableError, match=r"'forest'.*UNIFORM"):
        estimator_class("forest", "classification")
    for task in ("regression", "survival"):
        with pytest.raises(TableError, match=f"EasyMKL.*{task}"):
            estimator_class("EasyMKL", task)
    assert estimator_class("uniform", "survival") is lokl.UniformMKLSurvival


def test_a_table_without_target_teaches_nothing(files):
    with pytest.raises(TableError, match="--target"):
        learn(read_table([files[0]], on="id"))


def test_new_samples_are_matched_by_name(table, files, tmp_path):
    model = learn(table)
    left, right, _ = files
    new = read_new([right, left], schema_of(model))
    assert new.on == "id"
    order = [new.ids.index(name) for name in table.ids]
    np.testing.assert_array_equal(
        model.decision_function(new.frame)[order], model.decision_function(table.frame)
    )
    frame = pd.read_csv(left).assign(extra=1.0)
    frame.to_csv(tmp_path / "other.csv", index=False)
    alone = read_new([str(tmp_path / "other.csv")], schema_of(model))
    assert any(note.endswith("ignored: extra") for note in alone.notes)
    assert len(model.predict(alone.frame)) == 40


def test_new_samples_that_the_model_cannot_read(table, tmp_path):
    model = learn(table)
    path = tmp_path / "new.csv"
    path.write_text("id,x,y\nS1,1,2\n")
    with pytest.raises(TableError, match=r"new\.csv.* a, b, c"):
        read_new([str(path)], schema_of(model))
    path.write_text("id,d,e\nS1,1,oops\n")
    with pytest.raises(TableError, match="row 2, column e: 'oops'"):
        read_new([str(path)], schema_of(model))


def test_shared_names_of_columns_are_found_again(tmp_path):
    rng = np.random.RandomState(0)
    files = []
    for name in ("left", "right"):
        frame = pd.DataFrame({"id": range(20), "value": rng.normal(size=20)})
        frame["label"] = np.arange(20) % 2
        frame = frame if name == "left" else frame.drop(columns="label")
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
        files.append(str(tmp_path / f"{name}.csv"))
    table = read_table(files, on="id", target="label")
    model = learn(table)
    pd.testing.assert_frame_equal(read_new(files, schema_of(model)).frame, table.frame)


def test_training_rows_are_recognised_in_any_order_and_without_some_views(table):
    preparation = TablePreparation(table.views, table.kinds).fit(table.frame.iloc[::2])
    assert preparation.row_hashes_.dtype == np.uint64
    expected = np.arange(len(table.frame)) % 2 == 0
    turned = table.frame.iloc[::-1, ::-1]
    np.testing.assert_array_equal(preparation.learned_from(turned), expected[::-1])
    # A sample of which one view is asked about is the same sample.
    for columns in table.views.values():
        part = table.frame[columns]
        has = part.notna().any(axis=1).to_numpy()
        assert preparation.learned_from(part)[expected & has].all()
    single = table.frame.select_dtypes("float64").columns
    rounded = table.frame.astype(dict.fromkeys(single, np.float32))
    np.testing.assert_array_equal(preparation.learned_from(rounded), expected)
    # The views of two samples side by side are no sample.
    left, right = table.views.values()
    present = table.frame[left].notna().any(axis=1) & table.frame[right].notna().any(axis=1)
    both = table.frame[present & expected]
    mixed = both.copy()
    mixed[right] = np.roll(both[right].to_numpy(), 1, axis=0)
    assert not preparation.learned_from(mixed).any()


def test_models_keep_their_training_rows_on_disk(table, tmp_path):
    model = learn(
        replace(table, frame=table.frame.iloc[::2], target=table.target.iloc[::2]), "LMKL"
    )
    save(model, tmp_path / "m.lokl")
    found = explain(load(tmp_path / "m.lokl"), table.frame)
    np.testing.assert_array_equal(found.learned, np.arange(len(table.frame)) % 2 == 0)
