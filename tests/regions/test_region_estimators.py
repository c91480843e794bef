"""Estimators in regions: their outputs are those of the models of the regions."""

import pickle
import threading

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_moons
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from lokl import (
    LDMKLClassifier,
    LMKLClassifier,
    LpMKLClassifier,
    RegionClassifier,
    RegionRegressor,
    TrustedVoteClassifier,
    UniformMKLClassifier,
    UniformMKLRegressor,
)
from lokl.kernels import RBF, per_view
from lokl.regions.fitting import regions_in_memory, with_memory_share
from lokl.search import CalibratedMKLClassifier
from lokl.solvers import Exact

X, Y = make_moons(240, noise=0.25, random_state=0)
FRESH = make_moons(90, noise=0.3, random_state=1)[0]
BLOBS, COLOURS = make_blobs(240, centers=6, cluster_std=1.5, random_state=0)
COLOURS = np.array(["red", "green", "blue"])[COLOURS % 3]
TARGET = np.sin(3 * X[:, 0]) + X[:, 1]
ESTIMATOR = UniformMKLClassifier(["linear", "rbf"], C=3.0)


def regions(estimator=ESTIMATOR, **settings):
    return RegionClassifier(estimator, **{"max_region_size": 50, "random_state": 0, **settings})


# Regions of a few samples. Repeated rows and weights of two give different regions there.
SMALL = [
    RegionClassifier(UniformMKLClassifier(["rbf"]), max_region_size=9, random_state=0),
    RegionRegressor(UniformMKLRegressor(["rbf"]), max_region_size=9, covers=2, random_state=0),
]


@pytest.mark.slow
@parametrize_with_checks(
    [RegionClassifier(), RegionRegressor(), RegionRegressor(scale_features="shared")]
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    SMALL,
    expected_failed_checks=lambda estimator: {
        "check_sample_weight_equivalence_on_dense_data": "other regions",
        "check_sample_weight_equivalence_on_sparse_data": "other regions",
    },
)
def test_scikit_learn_check_of_small_regions(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "estimator",
    [
        ESTIMATOR,
        LpMKLClassifier(["linear", "rbf"]),
        LMKLClassifier(["linear", "rbf"], random_state=3),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.parametrize("covers", [1, 3])
def test_one_region_is_the_estimator_itself(estimator, covers):
    plain = clone(estimator).fit(X, Y)
    model = RegionClassifier(estimator, covers=covers).fit(X, Y)
    np.testing.assert_array_equal(model.decision_function(FRESH), plain.decision_function(FRESH))
    np.testing.assert_array_equal(model.predict(FRESH), plain.predict(FRESH))
    np.testing.assert_array_equal(model.weights(FRESH), plain.weights(FRESH))
    np.testing.assert_array_equal(model.contributions(FRESH), plain.contributions(FRESH))
    assert len(model.trees_) == 1


def test_one_region_of_targets_is_the_regressor_itself():
    estimator = UniformMKLRegressor(["rbf"])
    targets = np.column_stack([TARGET, -TARGET])
    for y in (TARGET, targets):
        model = RegionRegressor(estimator).fit(X, y)
        np.testing.assert_array_equal(
            model.predict(FRESH), clone(estimator).fit(X, y).predict(FRESH)
        )
        assert model.contributions(FRESH).shape == (*y[:90].shape, 1)


def test_a_region_is_the_estimator_fitted_on_its_samples():
    model = regions().fit(X, Y)
    trained, region = model.region(X), model.region(FRESH)
    assert len(model.estimators_[0]) == len(model.region_sizes_[0]) > 3
    for index in np.unique(region):
        rows, new = trained == index, FRESH[region == index]
        if len(np.unique(Y[rows])) < 2:
            assert model.estimators_[0][index] is None
            assert (model.predict(new) == Y[rows][0]).all()
            continue
        plain = clone(ESTIMATOR).fit(X[rows], Y[rows])
        np.testing.assert_allclose(
            model.decision_function(new), plain.decision_function(new), atol=1e-9
        )
        np.testing.assert_allclose(model.contributions(new), plain.contributions(new), atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    "extra", [{}, {"covers": 3}, {"overlap": 0.2}, {"covers": 2, "overlap": 0.1}]
)
@pytest.mark.parametrize("kind", ["two classes", "three classes", "targets"])
def test_threads_do_not_matter(extra, kind):
    data, y = (BLOBS, COLOURS) if kind == "three classes" else (X, Y)
    answers = []
    for jobs in (1, 2, 3):
        if kind == "targets":
            model = RegionRegressor(
                UniformMKLRegressor(["rbf"]),
                max_region_size=40,
                random_state=0,
                n_jobs=jobs,
                **extra,
            ).fit(X, TARGET)
            answers.append(model.predict(FRESH))
        else:
            model = regions(LDMKLClassifier(["linear", "rbf"]), n_jobs=jobs, **extra).fit(data, y)
            answers.append(model.decision_function(FRESH))
    np.testing.assert_array_equal(answers[0], answers[1])
    np.testing.assert_array_equal(answers[0], answers[2])


def test_order_of_samples_hardly_matters():
    order = np.random.RandomState(0).permutation(len(X))
    estimator = UniformMKLClassifier(["rbf"], tol=1e-8)
    one = regions(estimator).fit(X, Y).decision_function(FRESH)
    other = regions(estimator).fit(X[order], Y[order]).decision_function(FRESH)
    np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("extra", [{"covers": 3}, {"overlap": 0.2}])
def test_means_of_several_regions(extra):
    model = regions(**extra).fit(BLOBS, COLOURS)
    decision = model.decision_function(FRESH)
    assert decision.shape == (90, 3)
    assert (np.abs(decision) <= 1 + 1e-12).all()
    expected, whole = np.zeros((90, 3)), np.ones(90, dtype=bool)
    for tree, fitted in zip(model.trees_, model.estimators_, strict=True):
        for (rows, weight), estimator in zip(tree.divide(FRESH), fitted, strict=True):
            if estimator is None or len(estimator.classes_) < 3:
                whole[rows] = False
            elif len(rows):
                values = np.clip(estimator.decision_function(FRESH[rows]), -1, 1)
                values /= len(model.trees_)
                expected[rows] += values if weight is None else weight[:, np.newaxis] * values
    np.testing.assert_allclose(decision[whole], expected[whole])
    assert whole.any()
    assert model.score(BLOBS, COLOURS) > 0.8
    parts = model.contributions(FRESH)
    assert parts.shape == (90, 3, 2)
    assert np.isfinite(parts).all()


def test_overlap_makes_predictions_continuous():
    x = np.linspace(0, 10, 400)[:, np.newaxis]
    y = np.floor(x[:, 0])
    estimator = UniformMKLRegressor(["linear"], C=100)
    fine = np.linspace(0, 10, 20001)[:, np.newaxis]
    jumps = {}
    for overlap in (0.0, 0.3):
        model = RegionRegressor(estimator, max_region_size=120, overlap=overlap, random_state=0)
        jumps[overlap] = np.abs(np.diff(model.fit(x, y).predict(fine))).max()
    assert jumps[0.3] < 0.01 < 0.1 < jumps[0.0]


def test_regions_predict_only_classes_of_their_training_samples():
    centres = np.array([[0.0, 0], [20, 0], [40, 0], [43, 0]])
    rng = np.random.RandomState(0)
    data = np.repeat(centres, 30, axis=0) + rng.normal(size=(120, 2))
    y = np.repeat(["a", "b", "c", "d"], 30)
    estimator = UniformMKLClassifier(["rbf"])
    model = RegionClassifier(estimator, max_region_size=65, random_state=0).fit(data, y)
    trained = model.region(data)
    noisy = data + 3 * rng.normal(size=data.shape)
    region, predicted = model.region(noisy), model.predict(noisy)
    present = [set(y[trained == index]) for index in range(len(model.estimators_[0]))]
    assert max(map(len, present)) < 4
    for index, classes in enumerate(present):
        assert set(predicted[region == index]) <= classes
    small = RegionClassifier(estimator, max_region_size=31, random_state=0).fit(data, y)
    assert None in small.estimators_[0]
    assert small.score(data, y) > 0.9
    constant = [r for r, fitted in enumerate(small.estimators_[0]) if fitted is None]
    rows = np.isin(small.region(data), constant)
    np.testing.assert_array_equal(small.weights(data)[rows], 1.0)
    np.testing.assert_array_equal(small.contributions(data)[rows], 0.0)
    assert set(np.unique(small.decision_function(data)[rows])) == {-1.0, 1.0}


@pytest.mark.parametrize("covers", [1, 2])
def test_probabilities_if_the_estimator_has_them(covers):
    estimator = CalibratedMKLClassifier(UniformMKLClassifier(["rbf"]))
    for data, y in ((X, Y), (BLOBS, COLOURS)):
        model = regions(estimator, max_region_size=90, covers=covers).fit(data, y)
        probability = model.predict_proba(FRESH)
        assert probability.shape == (90, len(model.classes_))
        np.testing.assert_allclose(probability.sum(axis=1), 1.0)
        if covers > 1:
            likely = model.classes_[probability.argmax(axis=1)]
            np.testing.assert_array_equal(model.predict(FRESH), likely)
    assert not hasattr(regions(), "predict_proba")
    assert hasattr(regions(TrustedVoteClassifier()), "predict_proba") == hasattr(
        TrustedVoteClassifier(), "predict_proba"
    )


def test_sparse_samples_frames_and_precisions_agree():
    model = regions().fit(X, Y)
    decision = model.decision_function(FRESH)
    again = regions().fit(sparse.csr_matrix(X), Y)
    np.testing.assert_allclose(
        again.decision_function(sparse.csr_matrix(FRESH)), decision, atol=1e-6
    )
    frame = pd.DataFrame(X, columns=["a", "b"])
    new = pd.DataFrame(FRESH, columns=["a", "b"], index=np.arange(90) + 1000)
    estimator = UniformMKLClassifier({"first": RBF(1.0).on(["a"]), "second": RBF(1.0).on(["b"])})
    framed = regions(estimator, covers=2).fit(frame, Y)
    assert list(framed.feature_names_in_) == ["a", "b"]
    trust = framed.weights(new, labels=True)
    assert list(trust.columns) == ["first", "second"]
    assert list(trust.index) == list(new.index)
    assert framed.contributions(new, labels=True).shape == (90, 2)


def test_samples_with_missing_views():
    wide = np.column_stack([X, X[:, ::-1]])
    wide[::4, :2] = np.nan
    wide[1::4, 2:] = np.nan
    estimator = UniformMKLClassifier(per_view(RBF(1.0), {"one": [0, 1], "two": [2, 3]}))
    model = regions(estimator, max_region_size=70).fit(wide, Y)
    trust = model.weights(wide)
    assert (trust[::4, 0] == 0).all()
    assert (trust[1::4, 1] == 0).all()
    np.testing.assert_allclose(trust.sum(axis=1), 1.0)
    assert model.score(wide, Y) > 0.75
    with pytest.raises(ValueError, match="contains NaN"):
        regions().fit(wide, Y)


def test_weights_count_and_samples_of_weight_zero_are_ignored():
    weight = np.random.RandomState(0).randint(0, 3, size=len(X)).astype(float)
    model = regions().fit(X, Y, weight)
    kept = weight > 0
    again = regions().fit(X[kept], Y[kept], weight[kept])
    np.testing.assert_array_equal(model.decision_function(FRESH), again.decision_function(FRESH))
    plain = regions().fit(X[kept], Y[kept])
    assert (model.decision_function(FRESH) != plain.decision_function(FRESH)).any()


def test_pickled_models_and_clones_decide_the_same():
    model = regions(covers=2, overlap=0.1).fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(FRESH), model.decision_function(FRESH))
    np.testing.assert_array_equal(
        clone(model).fit(X, Y).decision_function(FRESH), model.decision_function(FRESH)
    )


def test_pipelines_and_estimators_of_others_learn_in_regions():
    pipeline = make_pipeline(StandardScaler(), UniformMKLClassifier(["rbf"]))
    weight = np.ones(len(X))
    model = regions(pipeline).fit(X, Y, weight)
    assert model.score(X, Y) > 0.85
    assert not hasattr(model, "weights")
    with pytest.raises(ValueError, match="decision_function"):
        regions(RandomForestClassifier()).fit(X, Y)


def test_every_region_learns_weights_of_its_own():
    model = regions(LpMKLClassifier(["linear", "rbf"]), max_region_size=80).fit(X, Y)
    weights = [fitted.weights_ for fitted in model.estimators_[0] if fitted is not None]
    assert np.ptp(weights, axis=0).max() > 0.01
    votes = regions(LDMKLClassifier(["linear", "rbf"]), max_region_size=120).fit(X, Y)
    assert votes.weights(FRESH).shape == (90, 2)


def test_memory_is_shared_and_does_not_depend_on_cores():
    assert regions_in_memory(UniformMKLClassifier(cache_size=512), 4000) == 4
    assert regions_in_memory(UniformMKLClassifier(cache_size=1), 4000) == 1
    assert regions_in_memory(UniformMKLClassifier(solver=Exact(cache_size=100)), 100) > 100
    share = with_memory_share(make_pipeline(UniformMKLClassifier(cache_size=100)), 0.25)
    assert share[-1].cache_size == 25
    share = with_memory_share(UniformMKLClassifier(solver=Exact(cache_size=100)), 0.25)
    assert share.solver.cache_size == 25
    assert share.cache_size == UniformMKLClassifier().cache_size
    share.fit(X, Y)
    crowded = regions(UniformMKLClassifier(["rbf"], cache_size=0.01)).fit(X, Y)
    roomy = regions(UniformMKLClassifier(["rbf"])).fit(X, Y)
    np.testing.assert_allclose(
        crowded.decision_function(FRESH), roomy.decision_function(FRESH), atol=1e-2
    )


def test_a_failed_region_leaves_no_thread_and_no_model():
    before = threading.active_count()
    model = regions(UniformMKLClassifier(["rbf"], C=-1.0))
    with pytest.raises(ValueError, match=r"C .*-1\.0"):
        model.fit(X, Y)
    assert not hasattr(model, "trees_")
    assert not [t for t in threading.enumerate() if t.name.startswith("lokl-calls")]
    assert threading.active_count() <= before + 4


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("max_region_size", 1, "max_region_size .*2.* 1"),
        ("covers", 0, "covers .*1.* 0"),
        ("overlap", 0.7, "overlap .* 0 to 0.5, got 0.7"),
        ("overlap", "wide", "overlap .*'wide'"),
        ("tune", "all", "tune .*'shared', 'each'.* got 'all'"),
        ("n_jobs", 0, "n_jobs"),
        ("estimator", "svm", "estimator .*UniformMKLClassifier"),
        ("estimator", UniformMKLClassifier, "estimator .*UniformMKLClassifier"),
        ("estimator", UniformMKLRegressor(), "decision_function"),
    ],
)
def test_errors_name_value_and_remedy(setting, value, words):
    with pytest.raises(ValueError, match=words):
        RegionClassifier(**{setting: value}).fit(X, Y)


def test_one_class_is_rejected():
    with pytest.raises(ValueError, match=r"class.*: 1"):
        RegionClassifier().fit(X, np.ones(len(X)))
