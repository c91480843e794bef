"""Every method on features of low rank: the exact model where the rank suffices, and near it."""

import pickle

import numpy as np
import pytest
from estimator_cases import FRESH, X, labels, samples, score
from method_cases import estimators, make, tolerances
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from lokl import (
    CLMKLClassifier,
    GMKLClassifier,
    LDMKLClassifier,
    LMKLClassifier,
    LpMKLClassifier,
    RegionClassifier,
    SwMKLClassifier,
    UniformMKLClassifier,
    UniformMKLRegressor,
)
from lokl.kernels import RBF, Linear, Polynomial, rbf_ladder
from lokl.search import KernelSearchCV
from lokl.solvers import Exact, Primal

every_method = pytest.mark.parametrize("name", estimators())


def targets(name, n_outputs=1):
    if name.endswith("Classifier"):
        return labels(X, 2 if n_outputs == 1 else 3)
    return score(X) if n_outputs == 1 else np.column_stack([score(X), X[:, 1]])


def decide(model, X):
    return getattr(model, "decision_function", model.predict)(X)


def both(name, kernels=None, **settings):
    """The same model by the exact solver and on features; MWUMKL has another one of its own."""
    return [make(name, kernels, solver=solver, **settings) for solver in ("exact", "primal")]


# scikit-learn's checks have few samples: the features are as many.
@pytest.mark.slow
@parametrize_with_checks(
    [
        UniformMKLClassifier(solver="primal"),
        UniformMKLRegressor(solver="primal"),
        CLMKLClassifier(solver="primal"),
    ]
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@every_method
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_with_a_feature_for_each_sample_the_model_is_the_exact_one(name, n_outputs):
    y = targets(name, n_outputs)
    exact, model = (own.fit(X, y) for own in both(name))
    close = {"atol": tolerances(name).rounding}
    np.testing.assert_allclose(decide(model, FRESH), decide(exact, FRESH), **close)
    np.testing.assert_allclose(model.weights(FRESH), exact.weights(FRESH), **close)
    np.testing.assert_allclose(model.contributions(FRESH), exact.contributions(FRESH), **close)
    np.testing.assert_allclose(model.history_[-1], exact.history_[-1], rtol=1e-5)
    assert model.kernel_residual_.shape == (len(model.kernels_),)
    assert (model.kernel_residual_ < 1e-9).all()
    assert not exact.kernel_residual_.any()


@every_method
def test_weights_missing_views_and_sparse_samples(name):
    """All at once where a method takes them."""
    rng = np.random.RandomState(0)
    y, weight = targets(name), rng.choice([0.0, 0.5, 1.0, 3.0], size=len(X))
    holes, fresh = X.copy(), FRESH.copy()
    holes[::7, :2] = np.nan
    fresh[::5, 2:] = np.nan
    views = {"first": RBF(0.5).on([0, 1]), "second": RBF(0.3).on([2, 3])}
    exact, model = (own.fit(holes, y, sample_weight=weight) for own in both(name, views))
    close = {"atol": 10 * tolerances(name).rounding}
    np.testing.assert_allclose(decide(model, fresh), decide(exact, fresh), **close)
    parts = model.contributions(fresh)
    assert (parts[::5, 1] == 0).all()
    np.testing.assert_allclose(parts.sum(-1) + model.intercept_, decide(model, fresh), atol=1e-8)
    rare = sparse.csr_matrix(X * (np.abs(X) > 0.5))
    exact, model = (own.fit(rare, y, sample_weight=weight) for own in both(name, ["linear", "rbf"]))
    np.testing.assert_allclose(decide(model, FRESH), decide(exact, FRESH), **close)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("name", ["UniformMKL", "LpMKL", "LMKL", "EasyMKL"])
def test_every_loss(name, loss):
    y = labels(X, 3)
    exact, model = (
        own.fit(X, y) for own in both(f"{name}Classifier", loss=loss, class_weight="balanced")
    )
    np.testing.assert_allclose(
        decide(model, FRESH), decide(exact, FRESH), atol=tolerances(f"{name}Classifier").rounding
    )


@every_method
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_few_features_still_make_a_model(name, n_outputs):
    """Parts add up, copies decide the same, and what is missed is told."""
    y = targets(name, n_outputs)
    model = make(name, solver=Primal(15, tol=1e-6), tol=1e-3).fit(X, y)
    decision, parts = decide(model, FRESH), model.contributions(FRESH)
    np.testing.assert_allclose(parts.sum(axis=-1) + model.intercept_, decision, atol=1e-8)
    np.testing.assert_allclose(model.weights(FRESH).sum(axis=1), 1.0)
    linear, square, bump = model.kernel_residual_
    assert linear < 1e-9
    assert square <= bump
    assert 0.0 < bump < 0.6
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(decide(again, FRESH), decision)
    np.testing.assert_array_equal(decide(clone(model).fit(X, y), FRESH), decision)


@pytest.mark.parametrize("name", estimators(without=["vote", "own gate"]))
def test_the_learned_kernel_on_the_support_is_the_decision(name):
    """The kernel that the machine sees is that of the features."""
    model = make(name, solver=Primal(15, tol=1e-6), tol=1e-3).fit(X, targets(name))
    K = model.kernel_(FRESH, model.support_vectors_)
    expected = K @ model.dual_coef_.T + model.intercept_
    np.testing.assert_allclose(decide(model, FRESH), expected[:, 0], atol=1e-6)
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    values = np.linalg.eigvalsh(model.kernel_(X))
    assert values[0] >= -1e-8 * values[-1]


@pytest.mark.parametrize(
    "name", ["UniformMKLClassifier", "LMKLRegressor", "CLMKLClassifier", "LDMKLClassifier"]
)
def test_memory_changes_nothing(name):
    rng = np.random.RandomState(0)
    Z = rng.normal(size=(200, 3))
    y = Z[:, 0] + np.sin(2 * Z[:, 1])
    y = (y > 0).astype(int) if name.endswith("Classifier") else y
    full, little = (
        make(name, ["linear", "rbf"], solver="primal", cache_size=size).fit(Z, y)
        for size in (512, 0.02)
    )
    allowed = tolerances(name).memory
    np.testing.assert_allclose(little.history_[-1], full.history_[-1], rtol=allowed)
    np.testing.assert_allclose(decide(little, Z), decide(full, Z), atol=allowed)


@pytest.mark.parametrize("kind", [UniformMKLClassifier, LpMKLClassifier, LMKLClassifier])
def test_more_features_come_nearer_to_the_exact_model(kind):
    Z, fresh = samples(600, seed=1), samples(300, seed=2)
    y, settings = labels(Z), {"random_state": 0, "C": 3.0}
    exact = kind([RBF(0.3), Linear()], **settings).fit(Z, y).decision_function(fresh)
    distances, residuals = [], []
    for rank in (10, 60, 600):
        model = kind([RBF(0.3), Linear()], solver=Primal(rank), **settings).fit(Z, y)
        distances.append(np.abs(model.decision_function(fresh) - exact).mean())
        residuals.append(model.kernel_residual_[0])
    assert distances[0] > distances[1] > distances[2]
    assert residuals[0] > residuals[1] > residuals[2]
    assert distances[2] < 0.02


def test_a_model_of_many_samples_asks_landmarks_only():
    Z = samples(3000, seed=1)
    y = labels(Z)
    model = UniformMKLClassifier([RBF(0.3)], solver=Primal(40)).fit(Z, y)
    expansion = model._model.expansion
    assert expansion.features.size == 40
    assert len(pickle.dumps(expansion)) < 60_000
    exact = UniformMKLClassifier([RBF(0.3)]).fit(Z, y)
    assert model.score(Z, y) > exact.score(Z, y) - 0.02


def test_fourier_features():
    Z = samples(500, seed=1)
    y = labels(Z)
    solver = Primal(400, features="fourier")
    model = LpMKLClassifier(rbf_ladder(-3, 0), solver=solver).fit(Z, y)
    assert (model.kernel_residual_ > 0).all()
    np.testing.assert_allclose(
        model.contributions(Z).sum(1) + model.intercept_, model.decision_function(Z), atol=1e-8
    )
    exact = LpMKLClassifier(rbf_ladder(-3, 0)).fit(Z, y)
    assert model.score(Z, y) > exact.score(Z, y) - 0.03
    with pytest.raises(ValueError, match=r"features='fourier' are for RBF kernels, got 'linear'"):
        LpMKLClassifier(solver=solver).fit(Z, y)


@pytest.mark.parametrize("psd", ["none", "clip", "shift"])
def test_pairs_that_are_normalised_have_no_features(psd):
    with pytest.raises(ValueError, match=rf"psd='{psd}' divides pair by pair.*psd='cosine'"):
        SwMKLClassifier(psd=psd, solver="primal").fit(X, labels(X))


def test_widths_are_not_learned_on_features():
    with pytest.raises(ValueError, match=r"combine='product'.*combine='sum'"):
        GMKLClassifier(combine="product", solver="primal").fit(X, labels(X))


def test_settings_of_an_object_are_its_own():
    model = UniformMKLClassifier(solver=Primal(30), tol=1e-5)
    with pytest.raises(ValueError, match=r"tol=1e-05 .*solver=Pri"):
        model.fit(X, labels(X))
    assert model.set_params(tol=1e-3, solver__rank=7).solver.rank == 7


@pytest.mark.parametrize("kind", [UniformMKLClassifier, LDMKLClassifier])
def test_a_search_takes_it(kind):
    grid = {"C": [0.01, 1.0, 10.0], "solver": [Primal(20), Exact()]}
    search = KernelSearchCV(kind([RBF(0.5), Polynomial(2)]), grid, cv=3).fit(X, labels(X))
    assert len(search.cv_results_["mean_test_score"]) == 6
    assert search.best_score_ > 0.6


def test_regions_take_it():
    Z = samples(800, seed=1)
    inside = UniformMKLClassifier([RBF(0.3)], solver=Primal(50))
    model = RegionClassifier(inside, max_region_size=300, random_state=0).fit(Z, labels(Z))
    assert model.score(Z, labels(Z)) > 0.8
