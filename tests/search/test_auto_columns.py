"""Columns of any kind: unscaled, skewed, constant, sparse, words, categories and missing values."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_iris, make_classification

from lokl import AutoMKLClassifier, join_views
from lokl.datasets import make_views
from lokl.search.columns import ColumnEncoder, ColumnScaler

X, y = load_iris(return_X_y=True)


def quick(*args, **settings):
    return AutoMKLClassifier(
        *args, **{"methods": ["UniformMKL"], "cv": 3, "random_state": 0, **settings}
    )


@given(seed=st.integers(0, 2**16), power=st.integers(-150, 150), shift=st.floats(-1e3, 1e3))
def test_columns_of_numbers_do_not_depend_on_their_unit(seed, power, shift):
    rows = np.random.RandomState(seed).normal(size=(40, 3))
    plain = ColumnScaler().fit_transform(rows)
    moved = ColumnScaler().fit_transform((rows + shift) * 2.0**power)
    np.testing.assert_allclose(moved, plain, atol=1e-7)


@given(seed=st.integers(0, 2**16))
def test_a_weight_of_two_is_a_row_written_twice(seed):
    rng = np.random.RandomState(seed)
    rows = np.column_stack(
        [
            rng.normal(size=30),
            rng.exponential(size=30) ** 3,
            rng.rand(30) < 0.2,
            rng.poisson(0.3, 30),
        ]
    ).astype(float)
    rows[rng.rand(*rows.shape) < 0.1] = np.nan
    weight = rng.randint(0, 3, size=30)
    weight[0] = 1
    weighted = ColumnScaler().fit(rows, sample_weight=weight)
    repeated = ColumnScaler().fit(np.repeat(rows, weight, axis=0))
    np.testing.assert_allclose(weighted.transform(rows), repeated.transform(rows), atol=1e-9)
    assert np.isfinite(weighted.transform(rows)).all()


def test_a_skewed_column_becomes_normal_scores_and_others_do_not():
    rng = np.random.RandomState(0)
    rows = np.column_stack([rng.lognormal(sigma=2, size=500), rng.normal(size=500)])
    prepare = ColumnScaler(unit=False).fit(rows)
    assert list(prepare.normal_scores_) == [0]
    scaled = prepare.transform(rows)
    np.testing.assert_allclose(scaled.std(axis=0), 1.0, atol=0.02)
    assert np.abs(scaled).max() < 4
    # Values beyond those of training are the ends.
    beyond = prepare.transform(np.array([[1e9, 0.0], [-1e9, 0.0]]))
    assert beyond[0, 0] == scaled[:, 0].max()
    assert beyond[1, 0] == scaled[:, 0].min()


def test_rare_values_are_not_blown_up_and_constants_do_not_count():
    rows = np.zeros((100, 3))
    rows[0, 0] = 1.0
    rows[:50, 1] = 1.0
    rows[:, 2] = 7.0
    scaled = ColumnScaler(unit=False).fit_transform(rows)
    np.testing.assert_allclose(np.ptp(scaled, axis=0), [2.0, 2.0, 0.0])
    new = ColumnScaler(unit=False).fit(rows).transform(np.full((1, 3), 1e6))
    assert new[0, 2] == 0.0


def test_every_view_has_a_median_squared_distance_of_one():
    rng = np.random.RandomState(0)
    rows = rng.normal(size=(150, 7)) * 10.0 ** np.arange(7)
    scaled = ColumnScaler([np.arange(3), np.arange(3, 7)]).fit_transform(rows)
    for own in (scaled[:, :3], scaled[:, 3:]):
        distance = ((own[:, np.newaxis] - own) ** 2).sum(axis=2)
        assert np.median(distance) == pytest.approx(1.0, rel=0.05)


def test_sparse_and_dense_samples_give_the_same_model():
    data = sparse.random_array((120, 30), density=0.1, rng=np.random.default_rng(0), format="csr")
    labels = np.asarray(data[:, [0, 1, 2]].sum(axis=1)).ravel() > 0.1
    both = [quick().fit(samples, labels) for samples in (data, data.toarray())]
    np.testing.assert_array_equal(both[0].decision_function(data), both[1].decision_function(data))


def test_large_sparse_samples_stay_sparse(monkeypatch):
    from lokl.search import columns as reading

    monkeypatch.setattr(reading, "_MAX_DENSE_VALUES", 10)
    data = sparse.random_array((150, 60), density=0.05, rng=np.random.default_rng(0), format="csr")
    labels = np.asarray(data[:, :20].sum(axis=1)).ravel() > 0.4
    reader = ColumnEncoder().fit(data)
    assert sparse.issparse(ColumnScaler().fit_transform(reader.transform(data)))
    model = quick().fit(data, labels)
    assert model.predict(data[:5].toarray()).shape == (5,)


def mixed(n=150, seed=0):
    rng = np.random.RandomState(seed)
    colour = rng.choice(["red", "green", "blue"], n)
    size = rng.lognormal(sigma=2, size=n)
    labels = np.where((colour == "red") ^ (size > 1), "yes", "no")
    table = pd.DataFrame(
        {
            "colour": colour,
            "kind": pd.Categorical(rng.choice([1, 2], n)),
            "flag": rng.rand(n) < 0.5,
            "size": size,
            "count": pd.array(rng.poisson(3, n), dtype="Int64"),
            "same": 1.0,
        }
    )
    table.loc[3, "colour"] = None
    table.loc[4, "size"] = np.nan
    table.loc[5, "count"] = pd.NA
    return table, labels


def test_words_categories_truth_values_and_missing_values_need_no_word():
    table, labels = mixed(300)
    model = quick().fit(table[:200], labels[:200])
    assert model.score(table[200:], labels[200:]) > 0.9
    assert set(model.predict(table)) == {"yes", "no"}
    new = table[:2].copy()
    new["colour"] = ["violet", None]
    assert np.isfinite(model.decision_function(new)).all()


def test_an_array_of_objects_is_read_like_a_data_frame():
    table, labels = mixed()
    frame = quick().fit(table[["colour", "size", "same"]], labels)
    array = quick().fit(table[["colour", "size", "same"]].to_numpy(dtype=object), labels)
    rows = table[["colour", "size", "same"]]
    np.testing.assert_array_equal(
        frame.decision_function(rows), array.decision_function(rows.to_numpy(dtype=object))
    )


def test_names_that_come_out_tell_the_categories():
    table, _ = mixed()
    reader = ColumnEncoder().fit(table)
    assert reader.names_[:5] == ["colour=blue", "colour=green", "colour=red", "kind=1", "kind=2"]
    numbers = reader.transform(table)
    assert numbers.shape == (150, len(reader.names_))
    assert np.isnan(numbers[3, :3]).all()
    many = pd.DataFrame({"id": [f"sample {i}" for i in range(300)]})
    assert ColumnEncoder().fit_transform(many).shape == (300, 100)


def test_values_that_are_neither_numbers_nor_words_are_named():
    table = pd.DataFrame({"when": pd.to_datetime(["2020-01-01", "2021-01-01"] * 20)})
    with pytest.raises(TypeError, match=r"'when'.*must be a string or a number"):
        quick().fit(table, [0, 1] * 20)
    model = quick().fit(X, y)
    wrong = X.astype(object)
    wrong[2, 1] = "wide"
    with pytest.raises(ValueError, match=r"column '1'.*'wide' at row 2"):
        model.predict(wrong)
    infinite = X.copy()
    infinite[7, 2] = np.inf
    with pytest.raises(ValueError, match="infinity at row 7, column 2"):
        model.predict(infinite)


def test_a_whole_missing_view_stays_missing():
    data, labels = make_classification(200, 8, n_informative=6, random_state=0)
    names = [f"s{i}" for i in range(200)]
    first = pd.DataFrame(data[:, :4], index=names).add_prefix("a")
    second = pd.DataFrame(data[:, 4:], index=names).add_prefix("b")
    joined, views = join_views({"first": first, "second": second.iloc[:150]})
    assert joined["b0"].isna().sum() == 50
    joined.iloc[0, 0] = np.nan  # a part of a view is filled in
    model = AutoMKLClassifier(
        views, methods=["UniformMKL", "TrustedVote"], cv=3, rule="best", random_state=0
    ).fit(joined, labels)
    assert model.leaderboard_.error.isna().all()
    both = [name for name in model.kernel_names_ if name.startswith("second")]
    if both:
        lacking = model.weights(joined)[150:, [list(model.kernel_names_).index(n) for n in both]]
        assert (lacking == 0).all()
    assert model.score(joined, labels) > 0.8


@pytest.mark.parametrize("views", [{}, ["a"], 3])
def test_views_that_are_no_mapping_are_named(views):
    with pytest.raises(ValueError, match="views must be a mapping of names to columns"):
        quick(views).fit(X, y)


def test_an_unknown_column_of_a_view_is_named():
    with pytest.raises(ValueError, match="unknown column 9"):
        quick({"a": [0, 9]}).fit(X, y)


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("limit", [None, 1e-3])
def test_every_view_has_a_kernel_so_that_any_may_be_missing(missing, limit):
    X, y, views, _ = make_views(120, missing=missing, random_state=1)
    model = AutoMKLClassifier(views, time_limit=limit, random_state=0)
    if limit is not None:
        # At least one family of each view is needed.
        model.set_params(n_jobs=1)
    model.fit(X, y)
    assert len(model.best_estimator_[-1].kernels_) == len(views)
    for own in views.values():
        alone = np.full_like(X, np.nan)
        alone[:, own] = np.nan_to_num(X[:, own])
        assert np.isfinite(model.predict_proba(alone)).all()
