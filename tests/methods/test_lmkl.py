"""LMKL: gradients by differences, gates, representations and degenerate cases."""

import numpy as np
import pandas as pd
import pytest
from estimator_cases import FRESH, X, labels, score
from hypothesis import given
from hypothesis import strategies as st
from method_cases import make, two_regions, views
from numpy.testing import assert_allclose
from scipy import sparse

from lokl import LMKLClassifier
from lokl._arrays import Samples
from lokl.gates import GaussianGate, RepresentationGate, SigmoidGate, SoftmaxGate
from lokl.gates.representation import CenteredSparse, OfGiven, Quadratic, Standardized
from lokl.gram import GatedGram
from lokl.kernels import RBF, Linear, Polynomial, precomputed
from lokl.methods.lmkl import KernelScores, principal_components
from lokl.solvers import Exact, Machines, epsilon_insensitive, hinge, solve_svc, squared_hinge

KERNELS = [Linear(), Polynomial(2), RBF(0.5)]
LOSSES = {
    "hinge": lambda X: hinge(2.0 * labels(X) - 1, 1.0),
    "squared hinge": lambda X: squared_hinge(2.0 * labels(X) - 1, 1.0),
    "epsilon": lambda X: epsilon_insensitive(score(X), 1.0, 0.1),
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("gate", [SoftmaxGate(0.5), SigmoidGate(0.5), GaussianGate()], ids=repr)
def test_the_gradient_of_the_optimal_value_by_differences(gate, loss):
    """The gate looks at other numbers than the kernels do."""
    Z = np.random.RandomState(3).normal(size=(40, 2))
    V = gate.init(Z, 3, np.random.RandomState(0))
    problem = LOSSES[loss](X[:40])
    machines, H = Machines(Exact(tol=1e-11), [problem]), gate(Z, V)
    gram = GatedGram(KERNELS, X[:40], H, dtype="float64")
    solution = machines.solve(gram)
    gradient = gate.pullback(Z, V, H, gram.gate_gradient(solution.coef)[:, :, 0])
    rng = np.random.RandomState(1)
    for _ in range(4):
        direction = rng.normal(size=V.shape)
        step = 1e-5
        moved = [gram.regated(gate(Z, V + s * step * direction)) for s in (1, -1)]
        up, down = (machines.solve(other).objective for other in moved)
        slope = (up - down) / (2 * step)
        assert (gradient * direction).sum() == pytest.approx(slope, rel=2e-4, abs=1e-5)
    if gate.sums_to_one and not isinstance(gate, GaussianGate):
        np.testing.assert_allclose(gradient.sum(axis=1), 0.0, atol=1e-8)


@pytest.mark.parametrize("gate", ["softmax", "sigmoid", "gaussian"])
@pytest.mark.parametrize("name", ["LMKLClassifier", "LMKLRegressor"])
def test_the_objective_falls_in_every_round(name, gate):
    y = labels(X) if name == "LMKLClassifier" else score(X)
    model = make(name, gate=gate).fit(X, y)
    assert len(model.history_) > 1
    assert (np.diff(model.history_) < 0).all()
    assert np.isnan(model.duality_gap_)


def test_constant_gates_are_the_global_machine():
    """Softmax gates that see nothing: weights are their squares."""
    eta = np.array([0.2, 0.5, 0.3])
    y = 2.0 * labels(X) - 1
    gram = GatedGram(KERNELS, X, np.tile(eta, (len(X), 1)), dtype="float64")
    found = Exact(tol=1e-9).solve(gram, hinge(y, 1.0))
    K = sum(w**2 * kernel(X) for w, kernel in zip(eta, KERNELS, strict=True))
    expected = solve_svc(K, None, y, tol=1e-9)
    np.testing.assert_allclose(found.coef, expected.coef, atol=1e-6)


def test_snapped_gates_leave_kernels_out_and_still_sum_to_one():
    Z, y = two_regions()
    snapped = make("LMKLClassifier", views(), tol=1e-3).fit(Z, y).weights(Z)
    smooth = make("LMKLClassifier", views(), tol=1e-3, snap=False).fit(Z, y).weights(Z)
    assert (snapped == 0).any()
    assert not ((snapped > 0) & (snapped < 1e-3)).any()
    assert (smooth > 0).all()
    for trust in (snapped, smooth):
        np.testing.assert_allclose(trust.sum(axis=1), 1.0)


def test_parameters_follow_the_order_of_the_kernels():
    """With start values turned as well, turned kernels learn the turned gate."""

    class Fixed(SoftmaxGate):
        def init(self, X, n_kernels, rng):
            start = np.random.RandomState(0).uniform(-0.01, 0.01, size=(X.shape[1] + 1, n_kernels))
            return start[:, ::-1] if self.scale < 0 else start

    y = labels(X)
    one = make("LMKLClassifier", KERNELS, gate=Fixed(1.0)).fit(X, y)
    two = make("LMKLClassifier", KERNELS[::-1], gate=Fixed(-1.0)).fit(X, y)
    np.testing.assert_allclose(one.kernel_.params, two.kernel_.params[:, ::-1], atol=1e-5)
    np.testing.assert_allclose(
        one.decision_function(FRESH), two.decision_function(FRESH), atol=1e-5
    )


def test_a_sigmoid_gate_of_one_kernel_still_learns():
    model = make("LMKLClassifier", [RBF(0.5)], gate="sigmoid").fit(X, labels(X))
    assert model.n_iter_ > 1
    # Nothing competes with it: more trust makes every machine cheaper.
    assert model.kernel_.gates(model.kernel_.samples(X)).mean() > 0.9
    np.testing.assert_array_equal(model.weights(X), 1.0)


def test_a_sample_that_trusts_no_kernel_shares_its_trust_evenly():
    class Distrust(SigmoidGate):
        def __call__(self, X, params, present=None):
            return super().__call__(X, params, present) * (X[:, :1] < 0)

        def pullback(self, X, params, H, G):
            return np.zeros_like(params)

    kernels = [Linear().on([0, 1]), RBF(0.5).on([2]), RBF(0.5).on([3])]
    model = make("LMKLClassifier", kernels, gate=Distrust()).fit(X, labels(X))
    fresh = FRESH.copy()
    fresh[::3, 3] = np.nan
    trust = model.weights(fresh)
    np.testing.assert_allclose(trust.sum(axis=1), 1.0)
    lost = (model._model.weights(model._validate_for_predict(fresh)) == 0).all(axis=1)
    assert 0 < lost.sum() < len(FRESH)
    seen = ~np.isnan(fresh[lost][:, [0, 2, 3]])
    np.testing.assert_allclose(trust[lost], seen / seen.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("name", ["LMKLClassifier", "LMKLRegressor"])
@pytest.mark.parametrize("gating", ["input", "quadratic", "kernel_pca"])
@pytest.mark.parametrize(
    "gate", [SoftmaxGate(), SigmoidGate(), GaussianGate(), GaussianGate().on([0, 2])], ids=repr
)
def test_every_gate_takes_sparse_samples(name, gate, gating):
    y = labels(X) if name.endswith("Classifier") else score(X)
    dense = make(name, gate=gate, gating=gating, max_iter=-1).fit(X, y)
    thin = make(name, gate=gate, gating=gating, max_iter=-1).fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(
        thin.weights(sparse.csr_matrix(FRESH)), dense.weights(FRESH), atol=1e-3
    )


def test_a_ridge_keeps_the_gate_flat():
    y = labels(X)
    free = make("LMKLClassifier", ridge=0.0).fit(X, y).weights(X)
    flat = make("LMKLClassifier", ridge=1e3).fit(X, y).weights(X)
    assert flat.std(axis=0).max() < 0.5 * free.std(axis=0).max()


def test_several_classes_share_one_gate():
    model = make("LMKLClassifier").fit(X, labels(X, 3))
    assert model.weights(FRESH).shape == (40, 3)
    assert model.decision_function(FRESH).shape == (40, 3)
    assert (np.diff(model.history_) < 0).all()


def test_a_gate_on_columns_looks_at_nothing_else():
    Z, y = two_regions()
    model = make("LMKLClassifier", views(), gate=SoftmaxGate().on([2]), tol=1e-3).fit(Z, y)
    moved = Z.copy()
    moved[:, :2] += 5.0
    np.testing.assert_array_equal(model.weights(moved), model.weights(Z))
    assert model.kernel_.params.shape == (2, 2)


def test_a_gate_on_names():
    Z, y = two_regions()
    frame = pd.DataFrame(Z, columns=["left", "right", "where"])
    kernels = {"a": Linear().on(["left"]), "b": Linear().on(["right"])}
    named = make("LMKLClassifier", kernels, gate=SoftmaxGate().on("where"), tol=1e-3).fit(frame, y)
    placed = make("LMKLClassifier", views(), gate=SoftmaxGate().on([2]), tol=1e-3).fit(Z, y)
    np.testing.assert_allclose(named.weights(frame), placed.weights(Z))


def test_gating_on_squares_and_products():
    """Which kernel is right depends on the product of two columns: no line tells."""
    rng = np.random.RandomState(0)
    n = 400
    where, y = rng.normal(size=(n, 2)), rng.choice([-1.0, 1.0], size=n)
    side = where[:, 0] * where[:, 1] > 0
    told = y + 0.4 * rng.normal(size=n)
    Z = np.column_stack([np.where(side, told, -told), where])
    kernels = {"same": Linear().on([0]), "other": RBF(0.5).on([1, 2])}
    on = SoftmaxGate().on([1, 2])
    plain = make("LMKLClassifier", kernels, gate=on, gating="input", tol=1e-3).fit(Z, y)
    square = make("LMKLClassifier", kernels, gate=on, gating="quadratic", tol=1e-3).fit(Z, y)
    assert square.kernel_.params.shape == (2 + 3 + 1, 2)
    assert square.history_[-1] < plain.history_[-1]


def test_gating_on_a_function():
    y = labels(X)
    given = make("LMKLClassifier", gating=_first_two).fit(X, y)
    assert given.kernel_.params.shape == (3, 3)


def _first_two(Z):
    return np.asarray(Z)[:, :2]


def test_row_numbers_are_no_representation():
    kernels, index = precomputed([kernel(X) for kernel in KERNELS])
    with pytest.raises(ValueError, match="gating='kernel_pca'"):
        LMKLClassifier(kernels, gating="input").fit(index, labels(X))
    mixed = np.hstack([index, X])
    beside = [kernel.on([0]) for kernel in kernels]
    model = make("LMKLClassifier", beside).fit(mixed, labels(X))
    # Four columns of features and the intercept, not the row number.
    assert model.kernel_.params.shape == (5, 3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gate": "hard"}, "softmax, sigmoid, gaussian, got 'hard'"),
        ({"gate": 3}, "got 3"),
        ({"gating": "output"}, "got 'output'"),
        ({"ridge": -1.0}, "ridge must be finite and not negative, got -1"),
        ({"learn_tol": 0.0}, "learn_tol"),
        ({"max_iter": 0}, "max_iter must be an integer >= 1, got 0"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        LMKLClassifier(**settings).fit(X, labels(X))


def test_settings_of_the_gate_are_settings_of_the_model():
    model = LMKLClassifier(gate=SoftmaxGate(0.5))
    assert model.get_params()["gate__scale"] == 0.5
    model.set_params(gate__scale=0.1)
    assert model.get_params()["gate"].scale == 0.1
    model.set_params(gate="gaussian")
    assert model.fit(X, labels(X)).weights(X).shape == (90, 3)


@pytest.mark.parametrize("kind", [Standardized, Quadratic])
def test_weights_are_repeated_rows_in_representations(kind):
    weight = np.random.RandomState(0).randint(1, 4, size=len(X)).astype(float)
    repeated = np.repeat(X, weight.astype(int), axis=0)
    one = kind.learn(X, weight)(FRESH)
    many = kind.learn(repeated, np.ones(len(repeated)))(FRESH)
    np.testing.assert_allclose(one, many, atol=1e-10)


def test_standardised_columns_have_mean_zero_and_variance_one():
    Z = Standardized.learn(3 * X + 7, np.ones(len(X)))(3 * X + 7)
    np.testing.assert_allclose(Z.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(Z.std(axis=0), 1.0)
    constant = np.column_stack([X, np.full(len(X), 1e6 + 0.1)])
    assert np.abs(Standardized.learn(constant, np.ones(len(X)))(constant)).max() < 10


def test_missing_values_are_the_mean():
    holes = X.copy()
    holes[::3, 1] = np.nan
    Z = Standardized.learn(holes, np.ones(len(X)))(holes)
    assert (Z[::3, 1] == 0).all()
    assert Z[1::3, 1].std() > 0.5


def test_centred_sparse_samples_are_never_stored():
    rare = sparse.csr_matrix(X * (np.abs(X) > 0.7))
    scale = Standardized.learn(rare, np.ones(len(X)))
    Z, dense = scale(rare), Standardized.learn(rare.toarray(), np.ones(len(X)))(rare.toarray())
    assert isinstance(Z, CenteredSparse)
    V, D = (
        np.random.RandomState(0).normal(size=(4, 2)),
        np.random.RandomState(1).normal(size=(90, 2)),
    )
    np.testing.assert_allclose(Z @ V, dense @ V)
    np.testing.assert_allclose(Z.T @ D, dense.T @ D)
    np.testing.assert_allclose(Z.squared_norms(), (dense**2).sum(axis=1))
    np.testing.assert_allclose(Z[np.array([3, 5])], dense[[3, 5]])
    assert Z.T.shape == (4, 90)


def test_a_gate_seen_through_a_representation_is_the_gate_on_it():
    scale = Standardized.learn(X, np.ones(len(X)))
    inner = SoftmaxGate(1.0)
    gate = RepresentationGate(inner, OfGiven(scale))
    V = gate.init(X, 3, np.random.RandomState(0))
    H, G = gate(X, V), np.random.RandomState(1).normal(size=(90, 3))
    np.testing.assert_array_equal(H, inner(scale(X), V))
    np.testing.assert_array_equal(gate.pullback(X, V, H, G), inner.pullback(scale(X), V, H, G))
    np.testing.assert_array_equal(gate.project(V), V)


@pytest.mark.parametrize("n", [40, 600])
def test_kernel_scores_are_standardised_and_uncorrelated(n):
    X = np.random.default_rng(0).normal(size=(n, 4))
    scores = KernelScores.learn([RBF(0.1)], Samples.of(X), np.random.RandomState(0), 3)
    Z = scores(Samples.of(X))
    assert Z.shape == (n, 3)
    assert_allclose(Z.mean(axis=0), 0.0, atol=1e-8)
    assert_allclose(Z.var(axis=0), 1.0, rtol=1e-8)
    if n <= 500:
        assert_allclose(Z.T @ Z / n, np.eye(3), atol=1e-6)


@given(seed=st.integers(0, 1000), n=st.integers(2, 20))
def test_principal_components_of_a_linear_kernel_are_those_of_the_samples(seed, n):
    rng = np.random.RandomState(seed)
    X, weight = rng.normal(size=(n, 3)), rng.randint(1, 4, size=n)
    repeated = np.repeat(X, weight, axis=0)
    centre = repeated.mean(axis=0)
    variance, axes = np.linalg.eigh(np.cov(repeated.T, bias=True))
    coef, offset = principal_components(X @ X.T, weight.astype(float), 3)
    k = coef.shape[1]
    assert_allclose((repeated @ X.T @ coef).var(axis=0), variance[::-1][:k], rtol=1e-6)
    fresh = rng.normal(size=(5, 3))
    scores = fresh @ X.T @ coef + offset
    assert_allclose(np.abs(scores), np.abs((fresh - centre) @ axes[:, ::-1][:, :k]), atol=1e-6)
