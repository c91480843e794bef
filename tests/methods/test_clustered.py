"""C-LMKL, GS-MKL and PCK-LMKL: what they reduce to, and their degenerate cases."""

import numpy as np
import pytest
from estimator_cases import FRESH, X, labels, score
from method_cases import make
from sklearn.svm import SVC

from lokl import CLMKLClassifier
from lokl._arrays import Samples
from lokl.gates import GroupGate, WeightedGate
from lokl.gates.base import rescale_missing
from lokl.kernels import RBF, Linear, Polynomial

KERNELS = [Linear(), Polynomial(2), RBF(0.5)]


def kernel_of(weights, X, Z):
    return sum(w * kernel(X, Z) for w, kernel in zip(weights, KERNELS, strict=True))


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0])
def test_one_cluster_is_l_p_norm_learning(p):
    """Optimality of l_p-norm MKL: no other weights on the sphere have a lower dual value."""
    y = labels(X)
    model = make("CLMKLClassifier", KERNELS, n_clusters=1, p=p, learn_tol=1e-5, max_iter=2000)
    model.fit(X, y)
    weights = model.weights_[0]
    assert np.linalg.norm(weights, ord=p) == pytest.approx(1.0)
    machine = SVC(kernel="precomputed", tol=1e-8).fit(kernel_of(weights, X, X), y)
    np.testing.assert_allclose(
        machine.decision_function(kernel_of(weights, FRESH, X)),
        model.decision_function(FRESH),
        atol=1e-3,
    )
    best = model.history_[-1]
    rng = np.random.RandomState(0)
    for _ in range(5):
        other = rng.dirichlet(np.ones(3))
        other /= np.linalg.norm(other, ord=p)
        K = kernel_of(other, X, X)
        rival = SVC(kernel="precomputed", tol=1e-6).fit(K, y)
        u = np.zeros(len(X))
        u[rival.support_] = rival.dual_coef_[0]
        assert np.abs(u).sum() - 0.5 * u @ K @ u >= best * (1 - 1e-4)


@pytest.mark.parametrize("name", ["CLMKLClassifier", "CLMKLRegressor"])
@pytest.mark.parametrize("clustering", ["exact", "sample", "approximate"])
def test_the_objective_falls_to_a_certified_optimum(name, clustering):
    y = labels(X) if name == "CLMKLClassifier" else score(X)
    model = make(name, KERNELS, clustering=clustering, sample_size=40).fit(X, y)
    assert (np.diff(model.history_) <= 1e-9 * np.abs(model.history_[:-1])).all()
    assert 0 <= model.duality_gap_ <= 2e-3 * abs(model.history_[-1])
    np.testing.assert_allclose(np.linalg.norm(model.weights_, axis=1), 1.0)
    np.testing.assert_allclose(model.clusters_.memberships(FRESH).sum(axis=1), 1.0)


def test_hard_clusters_share_nothing():
    model = make("CLMKLClassifier", KERNELS, hard=True).fit(X, labels(X))
    K, group = model.kernel_(X), model.clusters_.assign(X)
    assert (K[group[:, np.newaxis] != group] == 0).all()
    assert len(set(group)) == 3


@pytest.mark.filterwarnings("ignore:the SVM is saturated")
def test_a_cluster_without_margin_violations_keeps_its_weights():
    """All of one class far away from the rest: no dual mass there, no opinion on kernels."""
    far = np.vstack([X, 100 + 0.1 * X[:20]])
    y = np.concatenate([labels(X), np.ones(20, dtype=int)])
    model = make("CLMKLClassifier", [RBF(0.5), RBF(1.0)], hard=True, n_clusters=2, C=0.01)
    model.fit(far, y)
    assert np.isfinite(model.weights_).all()
    assert np.isfinite(model.decision_function(far)).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_clusters": 0}, "n_clusters must be an integer >= 1, got 0"),
        ({"p": 0.5}, "p must be a number >= 1, got 0.5"),
        ({"clustering": "quick"}, "got 'quick'"),
        ({"sharpness": -1.0}, "sharpness"),
        ({"sample_size": 2.5}, "sample_size must be an integer >= 1, got 2.5"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        CLMKLClassifier(**settings).fit(X, labels(X))


def test_one_group_is_a_global_machine_with_squared_shares():
    model = make("GSMKLClassifier", KERNELS, n_clusters=1).fit(X, labels(X))
    shares = model.weights_[0]
    assert shares.sum() == pytest.approx(1.0)
    machine = SVC(kernel="precomputed", tol=1e-8)
    machine.fit(kernel_of(shares**2, X, X), labels(X))
    np.testing.assert_allclose(
        machine.decision_function(kernel_of(shares**2, FRESH, X)),
        model.decision_function(FRESH),
        atol=1e-3,
    )


def test_groups_have_shares_of_their_own():
    model = make("GSMKLClassifier", KERNELS).fit(X, labels(X))
    np.testing.assert_allclose(model.weights_.sum(axis=1), 1.0)
    group = model.clusters_.assign(FRESH)
    np.testing.assert_allclose(model.weights(FRESH), model.weights_[group])
    assert model.history_[-1] < model.history_[0]


@pytest.mark.parametrize("masked", [False, True])
def test_the_pullback_of_groups_is_the_gradient(masked):
    rng = np.random.RandomState(0)
    groups = rng.randint(3, size=12)
    gate = GroupGate(3)
    params = rng.dirichlet(np.ones(4), size=3)
    G = rng.normal(size=(12, 4))
    present = rng.uniform(size=(12, 4)) < 0.7 if masked else None
    if masked:
        present[np.arange(12), rng.randint(4, size=12)] = True
    gradient = gate.pullback(groups, params, gate(groups, params, present), G)
    for place in np.ndindex(params.shape):
        step = np.zeros_like(params)
        step[place] = 1e-6
        up, down = gate(groups, params + step, present), gate(groups, params - step, present)
        assert gradient[place] == pytest.approx((G * (up - down)).sum() / 2e-6, abs=1e-6)


def test_a_group_that_trusts_only_what_is_missing_trusts_the_rest_alike():
    params, present = np.array([[1.0, 0.0, 0.0]]), np.array([[False, True, True]])
    H = GroupGate(1)(np.zeros(1, dtype=int), params, present)
    np.testing.assert_array_equal(H, [[0.0, 0.5, 0.5]])


def test_weighted_gates_are_roots_of_weights():
    base = np.random.RandomState(0).uniform(size=(5, 3, 2))
    weights = np.array([[1.0, 4.0, 0.0], [9.0, 1.0, 1.0]])
    H = WeightedGate(lambda samples: base, by_rank=True)(np.zeros((5, 1)), weights)
    np.testing.assert_allclose(H[:, :, 0], base[:, :, 0] * [1.0, 2.0, 0.0])
    np.testing.assert_allclose(H[:, :, 1], base[:, :, 1] * [3.0, 1.0, 1.0])


def test_missing_views_keep_the_energy_of_the_rest():
    base = np.ones((1, 4))
    shared = rescale_missing(base, np.array([[True, False, False, False]]))
    np.testing.assert_allclose(shared, [[2.0, 0.0, 0.0, 0.0]])


def test_probabilities_are_shares_of_mean_similarity():
    y = labels(X)
    model = make("PCKLMKLClassifier", [RBF(0.5), RBF(2.0)], p=2.0).fit(X, y)
    H = model.kernel_.gate.base(Samples.of(FRESH))
    for i, gamma in enumerate((0.5, 2.0)):
        K = RBF(gamma)(FRESH, X)
        plus, minus = K[:, y == 1].mean(axis=1), K[:, y == 0].mean(axis=1)
        np.testing.assert_allclose(H[:, i, 1], plus / (plus + minus))
    np.testing.assert_allclose(H.sum(axis=2), 1.0)
    assert np.linalg.norm(model.weights_) == pytest.approx(1.0)


def test_far_away_there_is_no_density_and_no_opinion():
    model = make("PCKLMKLClassifier", [RBF(0.5)]).fit(X, labels(X))
    far = np.full((1, 4), 1e3)
    np.testing.assert_allclose(model.kernel_.gate.base(Samples.of(far)), 0.5)
    assert np.isfinite(model.decision_function(far)).all()


def test_kernels_with_negative_values_become_cosines():
    model = make("PCKLMKLClassifier", [Linear()]).fit(X, labels(X))
    H = model.kernel_.gate.base(Samples.of(FRESH))
    assert ((H >= 0) & (H <= 1)).all()
