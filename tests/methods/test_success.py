"""SwMKL and LD-MKL: success, gates, repairs, experts and their degenerate cases."""

import numpy as np
import pytest
from estimator_cases import FRESH, X, labels, score
from method_cases import make
from sklearn.datasets import make_blobs
from sklearn.svm import SVC, SVR

from lokl import LDMKLClassifier, SwMKLClassifier
from lokl.gram import GatedGram
from lokl.kernels import RBF, Linear, Polynomial, precomputed
from lokl.methods.ldmkl import Expert, _constant_decision
from lokl.solvers import Exact, hinge

KERNELS = {"line": Linear(), "bump": RBF(0.5)}


def easy(n=60):
    """Classes far apart: every kernel is right everywhere."""
    Z, y = make_blobs(n, centers=[[-3.0, -3.0], [3.0, 3.0]], random_state=0)
    return Z / 3, y


def test_success_is_what_single_machines_get_right():
    y = labels(X)
    model = make("SwMKLClassifier", KERNELS).fit(X, y)
    line = SVC(kernel="linear", tol=1e-8).fit(X, y).predict(X) == y
    bump = SVC(gamma=0.5, tol=1e-8).fit(X, y).predict(X) == y
    np.testing.assert_array_equal(model.success_, np.column_stack([line, bump]))


@pytest.mark.slow
def test_trust_is_regressed_success():
    y = labels(X)
    model = make("LDMKLClassifier", KERNELS).fit(X, y)
    scores = []
    for settings in ({"kernel": "linear"}, {"gamma": 0.5}):
        right = (SVC(**settings, tol=1e-8).fit(X, y).predict(X) == y).astype(float)
        scores.append(SVR(**settings, tol=1e-8).fit(X, right).predict(FRESH))
    weights = np.exp(np.column_stack(scores))
    np.testing.assert_allclose(
        model.weights(FRESH), weights / weights.sum(axis=1, keepdims=True), atol=1e-3
    )


@pytest.mark.filterwarnings("ignore:the class label explains")
@pytest.mark.parametrize("name", ["SwMKLClassifier", "LDMKLClassifier"])
def test_success_on_samples_left_out(name):
    y = labels(X)
    narrow = {"line": Linear(), "narrow": RBF(50.0)}
    seen = make(name, narrow).fit(X, y)
    left_out = make(name, narrow, success="cv").fit(X, y)
    # A narrow kernel knows its own samples by heart, and nothing else.
    assert seen.weights(X)[:, 1].mean() > left_out.weights(X)[:, 1].mean()


@pytest.mark.parametrize("name", ["SwMKLRegressor", "LDMKLRegressor"])
@pytest.mark.parametrize("closeness", ["decay", "within"])
@pytest.mark.parametrize("success", ["train", "cv"])
def test_success_in_regression(name, closeness, success):
    model = make(name, KERNELS, closeness=closeness, success=success).fit(X, score(X))
    assert model.score(X, score(X)) > 0.5
    assert np.isfinite(model.weights(FRESH)).all()


def test_a_common_kernel_for_the_regressions():
    y = labels(X)
    model = make("SwMKLClassifier", KERNELS, success_kernel=RBF(1.0)).fit(X, y)
    assert model.kernel_.gate.base.success.regressors[0].kernel.kernels[0].gamma == 1.0


@pytest.mark.parametrize("name", ["SwMKLClassifier", "LDMKLClassifier", "LDMKLRegressor"])
def test_kernels_in_parallel_are_the_same(name):
    y = labels(X) if name.endswith("Classifier") else score(X)
    one = make(name, KERNELS).fit(X, y)
    two = make(name, KERNELS, n_jobs=2).fit(X, y)
    np.testing.assert_allclose(one.weights(FRESH), two.weights(FRESH), atol=1e-9)


@pytest.mark.parametrize("psd", ["cosine", "pointwise", "clip", "shift"])
def test_repaired_kernels_train_a_convex_machine(psd):
    model = make("SwMKLClassifier", KERNELS, psd=psd).fit(X, labels(X))
    assert model.score(X, labels(X)) > 0.75
    assert np.isfinite(model.decision_function(FRESH)).all()
    assert model.duality_gap_ <= 1e-5 * model.history_[-1]
    np.testing.assert_allclose(model.weights(FRESH).sum(axis=1), 1.0)


def test_the_published_kernel_is_not_positive_semidefinite():
    """Opposite gates and features of very different size: eigenvalues -9 and 11."""
    features = [np.array([1.0, 10.0]), np.array([10.0, 1.0])]
    kernels, index = precomputed([np.outer(f, f) for f in features])
    gates = np.array([[1.0, 1e-3], [1e-3, 1.0]])
    gram = GatedGram(kernels, index, gates, dtype="float64", pair_normalized=True)
    values = np.linalg.eigvalsh(gram.block(np.arange(2)))
    np.testing.assert_allclose(values, [-9.0, 11.0], atol=0.1)
    # The pair 1, -1 has the other eigenvector: its curvature is negative.
    problem = hinge(np.array([1.0, -1.0]), 1.0)
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        Exact().solve(gram, problem)


@pytest.mark.parametrize("psd", ["none", "cosine"])
def test_equal_success_is_the_uniform_mix(psd):
    Z, y = easy()
    model = make("SwMKLClassifier", KERNELS, psd=psd).fit(Z, y)
    assert (model.success_ == 1).all()
    np.testing.assert_allclose(model.weights(Z), 0.5)
    uniform = make("UniformMKLClassifier", KERNELS).fit(Z, y)
    np.testing.assert_allclose(model.decision_function(Z), uniform.decision_function(Z), atol=1e-5)


def test_shares_of_a_pair_sum_to_one():
    model = make("SwMKLClassifier", [RBF(0.5), RBF(0.5)], psd="none").fit(X, labels(X))
    np.testing.assert_allclose(model.kernel_(FRESH, X), RBF(0.5)(FRESH, X), atol=1e-6)


@pytest.mark.parametrize("gating", ["kernel", "none", "weight", "literal"])
def test_experts_are_open_to_inspection(gating):
    y = labels(X)
    model = make("LDMKLClassifier", KERNELS, gating=gating, margin=0.0).fit(X, y)
    trust = model.weights(X)
    said = np.zeros(len(X))
    for i, expert in enumerate(model.experts_):
        assert expert.name == model.kernel_names_[i]
        assert set(expert.support) <= set(expert.rows)
        said += trust[:, i] * np.tanh(expert.decide(X, 2 * trust[:, i])[:, 0])
    np.testing.assert_allclose(model.decision_function(X), said, atol=1e-9)
    rows = [set(expert.rows) for expert in model.experts_]
    assert set.union(*rows) == set(range(len(X)))
    # Two kernels divide the samples between them, ties apart: regressions that end on the edge of
    # their tube are exactly equal.
    both = sorted(rows[0] & rows[1])
    np.testing.assert_allclose(trust[both], 0.5, atol=1e-6)
    assert len(both) < len(X) / 2
    union = np.unique(np.concatenate([expert.support for expert in model.experts_]))
    np.testing.assert_array_equal(model.support_, union)
    assert model.support_fraction_ == len(union) / len(X)


@pytest.mark.parametrize("gating", ["kernel", "none", "weight"])
def test_experts_are_machines_on_the_samples_that_trust_them(gating):
    y = labels(X)
    model = make("LDMKLClassifier", KERNELS, gating=gating).fit(X, y)
    scaled = 2 * model.weights(X)
    for i, (kernel, expert) in enumerate(zip(KERNELS.values(), model.experts_, strict=True)):
        rows = expert.rows
        weight = scaled[rows, i]
        K = kernel(X[rows])
        machine = SVC(kernel="precomputed", tol=1e-8)
        if gating == "kernel":
            machine.fit(np.outer(weight, weight) * K, y[rows])
        else:
            machine.fit(K, y[rows], sample_weight=weight if gating == "weight" else None)
        block = kernel(FRESH, X[rows])
        own = 2 * model.weights(FRESH)[:, i]
        if gating == "kernel":
            block = own[:, np.newaxis] * block * weight
        np.testing.assert_allclose(
            expert.decide(FRESH, own)[:, 0], machine.decision_function(block), atol=5e-3
        )


def test_the_printed_equation_loses_the_balance_of_the_machine():
    """Why it is not the default: gates times coefficients no longer sum to zero."""
    y = labels(X)
    model = make("LDMKLClassifier", KERNELS, gating="literal", margin=0.0).fit(X, y)
    trust = model.weights(X)
    for i, expert in enumerate(model.experts_):
        assert abs(expert.coef.sum()) < 1e-8
        assert abs((expert.coef[:, 0] * trust[expert.support, i]).sum()) > 1e-3
    dropped = make("LDMKLClassifier", KERNELS, gating="literal", intercept="drop").fit(X, y)
    assert all((expert.intercept == 0).all() for expert in dropped.experts_)


def test_clipped_gates_stay_in_their_interval():
    model = make("LDMKLClassifier", KERNELS, clip=True).fit(X, labels(X))
    trust = model.weights(10 * FRESH)
    assert (trust >= 1 / (1 + np.e) - 1e-9).all()
    assert (trust <= np.e / (1 + np.e) + 1e-9).all()


def test_a_low_temperature_sharpens():
    y = labels(X)
    mild = make("LDMKLClassifier", KERNELS).fit(X, y).weights(FRESH)
    sharp = make("LDMKLClassifier", KERNELS, temperature=0.05).fit(X, y).weights(FRESH)
    assert sharp.max(axis=1).mean() > mild.max(axis=1).mean() + 0.1


def test_perfect_kernels_vote_alike():
    """Every success is one: ties select all samples for all kernels, at any margin."""
    Z, y = easy()
    for margin in (0.0, 0.05):
        model = make("LDMKLClassifier", KERNELS, margin=margin).fit(Z, y)
        np.testing.assert_allclose(model.weights(Z), 0.5)
        assert all(len(expert.rows) == len(Z) for expert in model.experts_)
        votes = [
            np.tanh(make("UniformMKLClassifier", [kernel]).fit(Z, y).decision_function(Z))
            for kernel in KERNELS.values()
        ]
        np.testing.assert_allclose(model.decision_function(Z), np.mean(votes, axis=0), atol=1e-5)


def test_an_expert_without_two_classes_says_what_it_knows():
    """Nothing where nobody trusts it, and else the only class of its samples."""
    rest = np.array([1.0, 1.0, -1.0])
    assert _constant_decision([hinge(rest, 1.0).take(np.array([], dtype=int))]) == [0.0]
    assert _constant_decision([hinge(rest, 1.0).take(np.array([0, 1]))]) == [1.0]
    assert _constant_decision([hinge(rest, 1.0).take(np.array([2]))]) == [-1.0]
    assert _constant_decision([hinge(rest, 1.0)]) is None
    silent = Expert("none", Linear(), [], [], np.empty((0, 1)), np.array([-1.0]), None, False)
    np.testing.assert_array_equal(silent.decide(FRESH, np.ones(40)), -np.ones((40, 1)))


def test_all_kernels_equal_is_the_sign_of_the_plain_machine():
    y = labels(X)
    model = make("LDMKLClassifier", [RBF(0.5), RBF(0.5)]).fit(X, y)
    plain = SVC(gamma=0.5, tol=1e-6).fit(X, y)
    np.testing.assert_array_equal(model.predict(FRESH), plain.predict(FRESH))


def test_three_classes_vote():
    model = make("LDMKLClassifier", {**KERNELS, "square": Polynomial(2)}).fit(X, labels(X, 3))
    assert model.dual_coef_.shape == (3, 3, len(model.support_))
    assert model.score(X, labels(X, 3)) > 0.6


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"success": "test"}, "got 'test'"),
        ({"gating": "output"}, "got 'output'"),
        ({"temperature": 0.0}, "temperature"),
        ({"margin": -0.1}, "margin must be finite and not negative, got -0.1"),
        ({"success_kernel": "rbf"}, "success_kernel must be 'same' or a Kernel"),
        ({"closeness": "far"}, "got 'far'"),
        ({"intercept": None}, "got None"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        LDMKLClassifier(**settings).fit(X, labels(X))


def test_an_unknown_repair_is_named():
    with pytest.raises(ValueError, match="'cosine', 'pointwise', 'none', 'clip', 'shift', got 'x'"):
        SwMKLClassifier(psd="x").fit(X, labels(X))
