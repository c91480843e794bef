"""Settings chosen for all regions, or in each."""

import numpy as np
import pytest
from sklearn.datasets import make_moons

from lokl import RegionClassifier, RegionRegressor, UniformMKLClassifier, UniformMKLRegressor
from lokl.kernels import RBF

X, Y = make_moons(400, noise=0.2, random_state=0)
TARGET = np.sin(3 * X[:, 0]) + X[:, 1]
GRID = {
    "C": [0.01, 1.0, 10.0, 100.0, 1000.0],
    "kernels": [[RBF(g)] for g in (0.01, 1.0, 4.0, 100.0)],
}


@pytest.mark.slow
def test_the_default_chooses_width_and_cost_of_one_kernel():
    model = RegionClassifier(max_region_size=120, random_state=0).fit(X, Y)
    assert set(model.best_params_) == {"C", "kernels"}
    assert model.score(X, Y) > 0.95
    for fitted in model.estimators_[0]:
        assert model.best_params_["C"] == fitted.C
    regressor = RegionRegressor(max_region_size=120, random_state=0).fit(X, 1000 * TARGET)
    assert regressor.score(X, 1000 * TARGET) > 0.95


def test_a_grid_is_searched_on_a_few_regions():
    estimator = UniformMKLClassifier()
    model = RegionClassifier(estimator, max_region_size=200, param_grid=GRID, random_state=0).fit(
        X, Y
    )
    assert model.best_params_["C"] > 0.01
    assert 0.01 < model.best_params_["kernels"][0].gamma < 100
    again = RegionClassifier(
        estimator, max_region_size=200, param_grid=GRID, random_state=0, n_jobs=1
    )
    assert again.fit(X, Y).best_params_["C"] == model.best_params_["C"]


@pytest.mark.slow
def test_each_region_may_choose_for_itself():
    model = RegionClassifier(
        UniformMKLClassifier(), max_region_size=120, tune="each", param_grid=GRID, random_state=0
    ).fit(X, Y)
    assert model.best_params_ == {}
    costs = {fitted.C for fitted in model.estimators_[0] if fitted is not None}
    assert costs <= set(GRID["C"])
    assert model.score(X, Y) > 0.95
    assert (
        RegionClassifier(max_region_size=120, tune="each", random_state=0).fit(X, Y).score(X, Y)
        > 0.95
    )


def test_a_given_estimator_keeps_its_settings():
    estimator = UniformMKLRegressor(["rbf"], C=7.0)
    for tune in ("shared", "each", None):
        model = RegionRegressor(estimator, max_region_size=120, tune=tune, random_state=0)
        assert {fitted.C for fitted in model.fit(X, TARGET).estimators_[0]} == {7.0}
    plain = RegionClassifier(max_region_size=120, tune=None, random_state=0).fit(X, Y)
    assert plain.best_params_ == {}


def test_a_warning_at_the_edge_of_a_given_grid():
    grid = {"C": [0.01, 0.1, 1.0], "kernels": [[RBF(1.0)]]}
    model = RegionClassifier(
        UniformMKLClassifier(), max_region_size=200, param_grid=grid, random_state=0
    )
    with pytest.warns(UserWarning, match=r"C.*largest") as caught:
        model.fit(X, Y)
    assert len(caught) == 1


def test_regions_with_too_few_samples_are_not_tuned():
    for tune in ("shared", "each"):
        model = RegionClassifier(max_region_size=90, tune=tune, random_state=0).fit(X, Y)
        assert model.best_params_ == {}
        assert {fitted.C for fitted in model.estimators_[0] if fitted is not None} == {1.0}
    rare = np.flatnonzero((Y == 0) | (np.cumsum(Y) <= 4))
    assert RegionClassifier(random_state=0).fit(X[rare], Y[rare]).best_params_ == {}
