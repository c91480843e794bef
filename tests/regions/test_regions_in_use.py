"""Estimators in regions within searches, pipelines and files, and with unusual data."""

import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs, make_moons
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import lokl
from lokl import (
    LpMKLClassifier,
    RegionClassifier,
    RegionRegressor,
    TrustedVoteClassifier,
    UniformMKLClassifier,
)
from lokl.kernels import RBF, per_view
from lokl.search import CalibratedMKLClassifier, KernelSearchCV

X, Y = make_moons(240, noise=0.25, random_state=0)
FRESH = make_moons(60, noise=0.3, random_state=1)[0]
BLOBS, COLOURS = make_blobs(240, centers=6, cluster_std=1.5, random_state=0)
COLOURS = np.array(["red", "green", "blue"])[COLOURS % 3]
VIEWS = per_view(RBF(1.0), {"one": [0, 1], "two": [2, 3]})
WIDE = np.column_stack([X, X[:, ::-1]])


def regions(estimator, **settings):
    return RegionClassifier(estimator, **{"max_region_size": 80, "random_state": 0, **settings})


MODELS = {
    "one kernel": regions(UniformMKLClassifier(["rbf"])),
    "covers and overlap": regions(UniformMKLClassifier(["rbf"]), covers=2, overlap=0.1),
    "weights": regions(LpMKLClassifier(["linear", "rbf"])),
    "tuned together": regions(None, max_region_size=130),
    "tuned each": regions(
        UniformMKLClassifier(["rbf"]), tune="each", param_grid={"C": [1.0, 10.0]}
    ),
    "probabilities": regions(CalibratedMKLClassifier(UniformMKLClassifier(["rbf"]))),
    "votes": regions(TrustedVoteClassifier(["linear", "rbf"])),
    "pipeline": regions(make_pipeline(StandardScaler(), UniformMKLClassifier(["rbf"]))),
}
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


@pytest.mark.slow
@every_model
@pytest.mark.parametrize("n_classes", [2, 3])
def test_saved_models_give_the_same_outputs(model, n_classes, tmp_path):
    data, y = (X, Y) if n_classes == 2 else (BLOBS, COLOURS)
    model.fit(data, y)
    lokl.save(model, tmp_path / "regions.lokl")
    for again in (lokl.load(tmp_path / "regions.lokl"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(
            again.decision_function(FRESH), model.decision_function(FRESH)
        )
        np.testing.assert_array_equal(again.region(FRESH), model.region(FRESH))
        for method in ("weights", "contributions", "predict_proba"):
            assert hasattr(again, method) == hasattr(model, method)
            if hasattr(model, method):
                expected = getattr(model, method)(FRESH)
                np.testing.assert_array_equal(getattr(again, method)(FRESH), expected)


@every_model
def test_scores_are_cross_validated_in_pipelines_as_well(model):
    assert cross_val_score(model, X, Y, cv=3).mean() > 0.8
    assert cross_val_score(make_pipeline(StandardScaler(), model), X, Y, cv=3).mean() > 0.8


@pytest.mark.parametrize("in_pipeline", [False, True])
def test_searches_choose_settings_of_regions_and_of_their_estimators(in_pipeline):
    model, prefix = regions(UniformMKLClassifier([RBF(1.0)])), ""
    if in_pipeline:
        model, prefix = make_pipeline(StandardScaler(), model), "regionclassifier__"
    grid = {f"{prefix}max_region_size": [60, 200], f"{prefix}estimator__C": [0.1, 1.0, 10.0, 1e4]}
    search = KernelSearchCV(model, grid, cv=3).fit(X, Y)
    assert search.best_params_.keys() == grid.keys()
    for index, params in enumerate(search.cv_results_["params"]):
        assert search.cv_results_["mean_test_score"][index] == pytest.approx(
            cross_val_score(model.set_params(**params), X, Y, cv=3).mean()
        )
    assert search.score(X, Y) > 0.85


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("spoil", [False, True], ids=["whole samples", "missing views"])
def test_contributions_and_the_intercept_of_the_region_sum_to_the_decision(n_classes, spoil):
    y = Y if n_classes == 2 else COLOURS
    wide = WIDE.copy() if n_classes == 2 else np.column_stack([BLOBS, BLOBS[:, ::-1]])
    if spoil:
        wide[::5, :2] = np.nan
        wide[1::5, 2:] = np.nan
    model = regions(LpMKLClassifier(VIEWS)).fit(wide, y)
    parts, decision, checked = model.contributions(wide), model.decision_function(wide), 0
    for row, region in enumerate(model.region(wide)):
        estimator = model.estimators_[0][region]
        if estimator is not None and len(estimator.classes_) == n_classes:
            np.testing.assert_allclose(
                parts[row].sum(axis=-1) + np.squeeze(estimator.intercept_),
                decision[row],
                atol=1e-9,
            )
            checked += 1
    assert checked > 100
    if spoil:
        assert (parts[::5, ..., 0] == 0).all()
        assert (parts[1::5, ..., 1] == 0).all()
        assert (model.weights(wide)[::5, 0] == 0).all()


def test_frames_without_the_columns_of_a_view():
    frame = pd.DataFrame(WIDE, columns=list("abcd"))
    frame.loc[::7, ["a", "b"]] = np.nan
    kernels = per_view(RBF(1.0), {"one": ["a", "b"], "two": ["c", "d"]})
    model = regions(UniformMKLClassifier(kernels)).fit(frame, Y)
    decision = model.decision_function(frame[["c", "d"]])
    absent = frame.assign(a=np.nan, b=np.nan)
    np.testing.assert_array_equal(decision, model.decision_function(absent))
    assert (model.weights(absent)[:, 0] == 0).all()


def test_logarithms_of_probabilities():
    model = regions(CalibratedMKLClassifier(UniformMKLClassifier(["rbf"]))).fit(BLOBS, COLOURS)
    chances, logarithms = model.predict_proba(FRESH), model.predict_log_proba(FRESH)
    np.testing.assert_allclose(np.exp(logarithms), chances, atol=1e-15)
    assert not hasattr(regions(UniformMKLClassifier()), "predict_log_proba")


def test_labels_that_are_absent_from_training_count_as_errors():
    model = regions(UniformMKLClassifier(["rbf"])).fit(BLOBS, COLOURS)
    labels = COLOURS.copy()
    labels[:60] = "black"
    assert model.score(BLOBS, labels) <= 0.75


@pytest.mark.parametrize("n", [2, 3, 5])
def test_few_samples_are_one_region(n):
    y = np.arange(n) % 2
    model = RegionClassifier(random_state=0).fit(X[:n], y)
    assert len(model.estimators_[0]) == 1
    assert set(model.predict(FRESH)) <= {0, 1}
    small = RegionClassifier(UniformMKLClassifier(["rbf"]), max_region_size=2, random_state=0)
    assert set(small.fit(X[:n], y).predict(FRESH)) <= {0, 1}
    assert np.isfinite(RegionRegressor(max_region_size=2).fit(X[:n], X[:n, 0]).predict(X)).all()


@pytest.mark.parametrize("covers", [1, 2])
def test_weights_equal_repeated_rows_if_regions_stay_the_same(covers):
    weight = np.random.RandomState(0).randint(1, 4, size=len(X))
    estimator = UniformMKLClassifier([RBF(1.0)], tol=1e-8)
    one = RegionClassifier(estimator, covers=covers, random_state=0).fit(X, Y, weight)
    rows = np.repeat(np.arange(len(X)), weight)
    other = RegionClassifier(estimator, covers=covers, random_state=0).fit(X[rows], Y[rows])
    np.testing.assert_allclose(
        one.decision_function(FRESH), other.decision_function(FRESH), atol=1e-5
    )


@pytest.mark.parametrize("tune", ["shared", "each"])
def test_weights_count_in_tuning(tune):
    weight = np.where(X[:, 0] > 0, 1.0, 0.0)
    grid = {"C": [0.1, 1.0, 10.0]}
    estimator = UniformMKLClassifier([RBF(1.0)])
    model = regions(estimator, max_region_size=120, tune=tune, param_grid=grid)
    weighted = model.fit(X, Y, weight).decision_function(FRESH)
    kept = weight > 0
    again = model.fit(X[kept], Y[kept]).decision_function(FRESH)
    np.testing.assert_allclose(weighted, again, atol=1e-2)


def test_every_region_may_choose_for_itself():
    rng = np.random.RandomState(0)
    easy, hard = rng.normal(size=(150, 2)), rng.normal(size=(150, 2)) + 50
    data = np.vstack([easy, hard])
    y = np.concatenate([easy[:, 0] > 0, np.sin(6 * hard[:, 0]) > 0])
    grid = {"kernels": [[RBF(0.1)], [RBF(20.0)]]}
    model = regions(
        UniformMKLClassifier(C=10.0), max_region_size=150, tune="each", param_grid=grid
    ).fit(data, y)
    widths = {
        index: estimator.kernels_[0].gamma for index, estimator in enumerate(model.estimators_[0])
    }
    assert widths[model.region(easy)[0]] == 0.1
    assert widths[model.region(hard)[0]] == 20.0
    assert model.best_params_ == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "covers"), [(np.asarray, 1), (np.asarray, 2), (sparse.csr_matrix, 1)]
)
def test_nothing_large_is_made(kind, covers):
    """No matrix of samples by samples or samples by regions is allocated."""
    rng = np.random.RandomState(0)
    n, megabytes = 8000, 1.0
    data = rng.normal(size=(n, 3)).astype(np.float32)
    y = data[:, 0] > 0.3 * rng.normal(size=n)
    estimator = UniformMKLClassifier([RBF(0.5)], cache_size=megabytes)
    model = RegionClassifier(estimator, max_region_size=40, covers=covers, random_state=0)
    model.fit(data[:300], y[:300])
    given = kind(data)
    tracemalloc.start()
    model.fit(given, y)
    left, most = tracemalloc.get_traced_memory()
    room = megabytes * 2**20 + 4 * data.nbytes
    assert most - left < room
    # Models cache some arrays at their first prediction.
    model.predict(given)
    tracemalloc.reset_peak()
    model.predict(given)
    left, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most - left < room
    # One byte for each sample and region would not fit.
    assert n * len(model.estimators_[0]) > room


def test_samples_with_missing_views_of_a_calibrated_model():
    wide = WIDE.copy()
    wide[::5, :2] = np.nan
    model = regions(CalibratedMKLClassifier(UniformMKLClassifier(VIEWS))).fit(wide, Y)
    assert model.kernel_names_ == ["one", "two"]
    assert (model.weights(wide)[::5, 0] == 0).all()
    np.testing.assert_allclose(model.predict_proba(wide).sum(axis=1), 1.0)
