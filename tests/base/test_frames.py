"""Tables of other libraries: every estimator gives the same results as with pandas."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import lokl
from lokl import explain
from lokl.kernels import RBF, per_view
from lokl.search import CalibratedMKLClassifier, held_out

IRIS = load_iris(as_frame=True)
X, Y = IRIS.data.iloc[::3].reset_index(drop=True), IRIS.target.iloc[::3].map(str)
VIEWS = {"sepal": list(X.columns[:2]), "petal": list(X.columns[2:])}
UNIFORM = lokl.UniformMKLClassifier(per_view(RBF(), VIEWS))

LIBRARIES = {
    "polars": pl.from_pandas,
    "polars, lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "pyarrow": pa.Table.from_pandas,
}
TARGETS = {"polars": pl.Series, "polars, lazy": pl.Series, "pyarrow": pa.array}
ESTIMATORS = {
    "uniform": UNIFORM,
    "trusted vote": lokl.TrustedVoteClassifier(per_view(RBF(), VIEWS), random_state=0),
    "search": lokl.KernelSearchCV(UNIFORM, {"C": [1.0, 10.0]}, cv=3),
    "automkl": lokl.AutoMKLClassifier(views=VIEWS),
    "calibrated": CalibratedMKLClassifier(UNIFORM, cv=3),
    "regions": lokl.RegionClassifier(UNIFORM, max_region_size=30, random_state=0),
}


@pytest.fixture(params=LIBRARIES)
def library(request):
    return request.param


@pytest.mark.parametrize("name", ESTIMATORS)
def test_results_are_those_of_pandas(library, name):
    table, target = LIBRARIES[library](X), TARGETS[library](Y.tolist())
    expected = ESTIMATORS[name].fit(X, Y).decision_function(X)
    model = ESTIMATORS[name].fit(table, target)
    assert list(model.feature_names_in_) == list(X.columns)
    np.testing.assert_array_equal(model.predict(table), model.predict(X))
    np.testing.assert_array_equal(model.decision_function(table), expected)


def test_weights_have_names(library):
    model = UNIFORM.fit(X, Y)
    pd.testing.assert_frame_equal(
        model.weights(LIBRARIES[library](X), labels=True), model.weights(X, labels=True)
    )


@pytest.mark.parametrize("transform", ["default", "pandas", "polars"])
def test_pipelines(library, transform):
    table = LIBRARIES[library](X)
    # scikit-learn itself does not take lazy tables.
    table = table.collect() if library == "polars, lazy" else table
    kernels = per_view(RBF(), {"sepal": [0, 1], "petal": [2, 3]})
    pipeline = make_pipeline(StandardScaler(), lokl.UniformMKLClassifier(kernels))
    pipeline[0].set_output(transform=transform)
    search = GridSearchCV(pipeline, {"uniformmklclassifier__C": [1.0, 10.0]}, cv=3).fit(table, Y)
    np.testing.assert_array_equal(search.predict(table), search.predict(X))
    explained, expected = (explain.explain(search, samples) for samples in (table, X))
    np.testing.assert_array_equal(explained.contributions, expected.contributions)


def test_functions_of_samples(library):
    table, target, model = LIBRARIES[library](X), TARGETS[library](Y.tolist()), UNIFORM.fit(X, Y)
    for function, options in (
        (explain.view_value, {"cv": 3}),
        (explain.view_importance, {"random_state": 0}),
        (
            lambda model, X, y, **rest: explain.column_importance(model, X, **rest),
            {"random_state": 0},
        ),
        (explain.weight_stability, {"n_repeats": 2, "cv": 3, "random_state": 0}),
    ):
        assert str(function(model, table, target, **options)) == str(
            function(model, X, Y, **options)
        )
    found, expected = (explain.column_importance(model, Z, random_state=0) for Z in (table, X))
    assert str(found) == str(expected)
    assert explain.nearest_samples(model, table, 3, 2) == explain.nearest_samples(model, X, 3, 2)
    splits = [(np.arange(25), np.arange(25, 50))]
    pipeline = make_pipeline(lokl.RegionRegressor(max_region_size=30, random_state=0))
    numbers = np.arange(50.0)
    np.testing.assert_array_equal(
        held_out(pipeline, table, numbers, splits), held_out(pipeline, X, numbers, splits)
    )


@pytest.mark.parametrize("by", [None, "class", "sepal length (cm)"])
def test_prediction_sets(library, by):
    table, target = LIBRARIES[library](X), TARGETS[library](Y.tolist())
    found = explain.PredictionSets(UNIFORM, cv=3, by=by, random_state=0).fit(table, target)
    expected = explain.PredictionSets(UNIFORM, cv=3, by=by, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(found.predict_set(table), expected.predict_set(X))
    assert str(found.coverage(table, target)) == str(expected.coverage(X, Y))


def test_tables_are_joined_by_a_column(library):
    blood = pd.DataFrame({"id": ["a", "b"], "iron": [1.0, 2.0]})
    pulse = pd.DataFrame({"id": ["b", "c"], "rest": [60.0, 70.0]})
    joined, views = lokl.join_views(
        {"blood": LIBRARIES[library](blood), "pulse": LIBRARIES[library](pulse)}, on="id"
    )
    expected, _ = lokl.join_views({"blood": blood, "pulse": pulse}, on="id")
    pd.testing.assert_frame_equal(joined, expected)
    assert views == {"blood": ["iron"], "pulse": ["rest"]}


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        (pd.date_range("2026-05-01", periods=50), "2026-05-01"),
        ([datetime.date(2026, 5, 1)] * 50, "2026-05-01"),
        (pd.to_timedelta(np.arange(50), unit="D"), "0 days"),
        (["1.5"] * 49 + ["mild"], "mild"),
        (pd.Categorical(["mild"] * 50), "mild"),
    ],
)
def test_columns_of_other_values_are_named(library, values, shown):
    frame = X.assign(visit=values)
    for table in (frame, LIBRARIES[library](frame)):
        with pytest.raises(ValueError, match=f"'visit' has '{shown}"):
            lokl.UniformMKLClassifier(["rbf"]).fit(table, Y)
    if shown != "mild":
        with pytest.raises(TypeError, match="'visit'"):
            lokl.AutoMKLClassifier().fit(LIBRARIES[library](frame), Y)


def test_decimal_numbers_are_numbers(library):
    frame = X.assign(price=[Decimal("1.5"), Decimal("2.5")] * 25)
    for kind in (lokl.UniformMKLClassifier(["rbf"]), lokl.AutoMKLClassifier()):
        model = kind.fit(LIBRARIES[library](frame), Y)
        np.testing.assert_array_equal(model.predict(frame), model.predict(frame.astype(float)))
    joined, _ = lokl.join_views({"a": LIBRARIES[library](frame)})
    assert joined["price"].tolist() == [1.5, 2.5] * 25
