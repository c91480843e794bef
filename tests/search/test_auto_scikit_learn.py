"""Estimators that choose everything keep scikit-learn's contract, without expected failures."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GroupKFold,
    TunedThresholdClassifierCV,
    cross_val_score,
)
from sklearn.multiclass import OneVsRestClassifier, OutputCodeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from lokl import AutoMKLClassifier, AutoMKLRegressor, LpMKLClassifier, UniformMKLClassifier

X, y = load_iris(return_X_y=True)


@pytest.mark.slow
@parametrize_with_checks(
    [
        AutoMKLClassifier(),
        # Weighted samples are equivalent to repeated ones up to the tolerance of the SVMs.
        AutoMKLClassifier(
            cv=2, methods=[UniformMKLClassifier(tol=1e-8), LpMKLClassifier(tol=1e-8)]
        ),
        AutoMKLRegressor(cv=2, methods=["UniformMKL"]),
    ]
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


def test_same_seed_same_model_also_after_clone_and_pickle():
    model = AutoMKLClassifier(cv=3, random_state=3).fit(X, y)
    again = clone(model).fit(X, y)
    restored = pickle.loads(pickle.dumps(model))
    for other in (again, restored):
        np.testing.assert_array_equal(other.decision_function(X), model.decision_function(X))
        np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
        shown = [
            table.drop(columns="seconds") for table in (other.leaderboard_, model.leaderboard_)
        ]
        assert shown[0].equals(shown[1])


@pytest.mark.parametrize(
    "meta",
    [
        CalibratedClassifierCV(AutoMKLClassifier(), cv=2),
        TunedThresholdClassifierCV(AutoMKLClassifier(), cv=2),
        TunedThresholdClassifierCV(AutoMKLClassifier(), cv=2, response_method="predict_proba"),
        FixedThresholdClassifier(AutoMKLClassifier(), threshold=0.3),
        OutputCodeClassifier(AutoMKLClassifier(), random_state=0),
        OneVsRestClassifier(AutoMKLClassifier()),
    ],
)
def test_meta_estimators_take_it_before_it_is_fitted(meta):
    rows, labels = (X[:100], y[:100]) if "Threshold" in type(meta).__name__ else (X, y)
    assert meta.fit(rows[::2], labels[::2]).score(rows[1::2], labels[1::2]) > 0.9


def test_probabilities_and_decisions_are_promised_before_the_fit_and_checked_after():
    auto = AutoMKLClassifier(methods=[RandomForestClassifier(5, random_state=0)], cv=2)
    for name in ("predict_proba", "decision_function"):
        assert hasattr(auto, name)
        with pytest.raises(NotFittedError):
            getattr(auto, name)(X)
    auto.fit(X, y)
    assert hasattr(auto, "predict_proba")
    assert not hasattr(auto, "decision_function")
    assert not hasattr(AutoMKLRegressor(), "decision_function")


def test_it_can_be_cross_validated_itself():
    scores = cross_val_score(AutoMKLClassifier(cv=2, methods=["UniformMKL"], random_state=0), X, y)
    assert scores.mean() > 0.93


@pytest.mark.slow
@pytest.mark.parametrize("kind", [AutoMKLClassifier, AutoMKLRegressor])
def test_groups_stay_together(kind):
    rng = np.random.RandomState(0)
    groups = np.repeat(np.arange(30), 5)
    # Samples of a group are copies, and labels are chance: only folds that divide groups learn.
    rows = np.repeat(rng.normal(size=(30, 3)), 5, axis=0)
    labels = np.repeat(rng.permutation(np.arange(30) % 2), 5)
    model = kind(methods=["UniformMKL"], rule="best", random_state=0)
    apart = model.fit(rows, labels, groups=groups).best_score_
    assert model.fit(rows, labels).best_score_ > 0.9
    assert apart < 0.8
    own = kind(methods=["UniformMKL"], cv=GroupKFold(3), rule="best", random_state=0)
    assert own.fit(rows, labels, groups=groups).best_score_ < 0.8
    with pytest.raises(ValueError, match="1 group"):
        model.fit(rows, labels, groups=np.zeros(150))


def test_a_regressor_does_not_depend_on_the_unit_of_its_target():
    data, target = load_diabetes(return_X_y=True)
    data, target = data[:150], target[:150]
    auto = AutoMKLRegressor(methods=["UniformMKL", "LpMKL"], cv=3, random_state=0)
    model = clone(auto).fit(data, target)
    large = clone(auto).fit(data, 1e6 * target)
    assert model.best_score_ > 0.3
    assert large.kernel_names_ == model.kernel_names_
    np.testing.assert_allclose(large.predict(data), 1e6 * model.predict(data), rtol=1e-3)


def test_several_targets():
    data, target = load_diabetes(return_X_y=True)
    both = np.column_stack([target, -target])[:100]
    model = AutoMKLRegressor(cv=2, methods=["UniformMKL"], random_state=0).fit(data[:100], both)
    assert model.predict(data[:7]).shape == (7, 2)
    assert model.contributions(data[:7]).shape[:2] == (7, 2)
