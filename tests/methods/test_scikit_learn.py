"""scikit-learn's own checks, none of them expected to fail, and its tools around the models."""

import pickle

import joblib
import numpy as np
import pytest
from estimator_cases import FRESH, MACHINES, X, labels, machine, outcome, score
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from lokl import UniformMKLClassifier, UniformMKLRegressor
from lokl.kernels import RBF, Linear
from lokl.solvers import Exact

machines = pytest.mark.parametrize("name", MACHINES)


# One check sets max_iter=1000, which is too few for the tolerance that others need.
@pytest.mark.filterwarnings(
    "ignore:LibSVM stopped after 1000:sklearn.exceptions.ConvergenceWarning"
)
@pytest.mark.slow
@parametrize_with_checks(
    [
        UniformMKLClassifier(),
        UniformMKLRegressor(),
        UniformMKLClassifier(["rbf"]),
        UniformMKLRegressor(["rbf"]),
        UniformMKLClassifier(["rbf"], loss="squared"),
        UniformMKLRegressor(["rbf"], loss="squared"),
        # Weights are repeated rows to seven digits only where both solutions have them.
        UniformMKLClassifier(solver="libsvm", tol=1e-12),
        UniformMKLRegressor(solver="libsvm", tol=1e-12),
    ]
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@machines
@pytest.mark.parametrize("copy", ["pickle", "joblib"])
def test_a_stored_model_decides_the_same(name, copy, tmp_path):
    model, y = machine(name)
    model.fit(X, y)
    if copy == "pickle":
        again = pickle.loads(pickle.dumps(model))
    else:
        joblib.dump(model, tmp_path / "model.joblib")
        again = joblib.load(tmp_path / "model.joblib", mmap_mode="r")
    np.testing.assert_array_equal(outcome(again, FRESH), outcome(model, FRESH))
    np.testing.assert_array_equal(again.weights(FRESH), model.weights(FRESH))
    np.testing.assert_array_equal(again.contributions(FRESH), model.contributions(FRESH))


@machines
def test_a_clone_is_unfitted_and_learns_the_same(name):
    model, y = machine(name, [Linear(), RBF("scale")], solver=Exact(tol=1e-8), tol=1e-3)
    model.fit(X, y)
    again = clone(model)
    assert repr(again) == repr(model)
    assert again.kernels[1].gamma == "scale"
    with pytest.raises(NotFittedError):
        again.predict(X)
    np.testing.assert_array_equal(outcome(again.fit(X, y), FRESH), outcome(model, FRESH))


def test_settings_of_parts_are_settings_of_the_model():
    model = UniformMKLClassifier(solver=Exact())
    assert model.set_params(solver__tol=0.5, C=3.0).get_params()["solver__tol"] == 0.5
    assert model.solver.tol == 0.5


def test_models_say_what_they_are():
    assert is_classifier(UniformMKLClassifier())
    assert is_regressor(UniformMKLRegressor())


def test_a_pipeline_scales_first():
    wild = X * np.array([1e3, 1.0, 1e-2, 5.0]) + 7
    model = make_pipeline(StandardScaler(), UniformMKLClassifier(["rbf"], tol=1e-8))
    direct = UniformMKLClassifier(["rbf"], tol=1e-8).fit(X, labels(X))
    model.fit(wild, labels(X))
    np.testing.assert_allclose(
        model.decision_function(wild), direct.decision_function(X), atol=1e-5
    )


@pytest.mark.parametrize(
    ("model", "y"),
    [(UniformMKLClassifier(["rbf"]), labels(X)), (UniformMKLRegressor(["rbf"]), score(X))],
    ids=["classifier", "regressor"],
)
@pytest.mark.filterwarnings("ignore:the SVM is saturated")
def test_a_grid_search_finds_a_cost_that_learns(model, y):
    search = GridSearchCV(model, {"C": [1e-6, 1.0], "kernels": [["rbf"], ["linear", "rbf"]]}, cv=3)
    search.fit(X, y)
    assert search.best_params_["C"] == 1.0
    assert search.best_score_ > cross_val_score(clone(model).set_params(C=1e-6), X, y, cv=3).mean()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_calibration_gives_probabilities(n_classes):
    y = labels(X, n_classes)
    model = CalibratedClassifierCV(UniformMKLClassifier(["rbf"], C=10.0), cv=3).fit(X, y)
    chance = model.predict_proba(X)
    assert chance.shape == (len(X), n_classes)
    assert (chance >= 0).all()
    np.testing.assert_allclose(chance.sum(axis=1), 1.0)
    assert (chance.argmax(axis=1) == y).mean() > 0.6


@pytest.mark.parametrize("method", ["predict_proba", "predict_log_proba"])
def test_who_asks_for_probabilities_is_told_what_has_them(method):
    model = UniformMKLClassifier(["rbf"])
    assert not hasattr(model, method)
    assert not hasattr(model.fit(X, labels(X)), method)
    assert not hasattr(UniformMKLRegressor(), method)
    message = rf"UniformMKLClassifier has no {method}.*lokl\.search\.calibrated"
    with pytest.raises(AttributeError, match=message):
        getattr(model, method)


def test_several_label_columns_by_a_meta_estimator():
    Y = np.column_stack([labels(X), X[:, 1] > 0])
    model = MultiOutputClassifier(UniformMKLClassifier(["rbf"])).fit(X, Y)
    single = UniformMKLClassifier(["rbf"]).fit(X, Y[:, 1])
    np.testing.assert_array_equal(model.predict(FRESH)[:, 1], single.predict(FRESH))
