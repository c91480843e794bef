"""What every method promises, whatever it learns."""

import logging
import pickle

import numpy as np
import pytest
from estimator_cases import FRESH, X, labels, score
from method_cases import (
    CLASSIFIERS,
    REGRESSORS,
    bumps,
    estimators,
    make,
    tolerances,
    two_regions,
    views,
)
from scipy import sparse
from sklearn.base import clone
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import lokl
from lokl.gates import GaussianGate, SigmoidGate
from lokl.kernels import RBF, Linear, Polynomial, precomputed
from lokl.solvers.solve import SOLVERS

every_method = pytest.mark.parametrize("name", estimators())
in_rounds = pytest.mark.parametrize("name", estimators("rounds"))


def targets(name, n_outputs=1):
    if name.endswith("Classifier"):
        return labels(X, 2 if n_outputs == 1 else 3)
    return score(X) if n_outputs == 1 else np.column_stack([score(X), X[:, 1]])


def decide(model, X):
    return getattr(model, "decision_function", model.predict)(X)


@pytest.mark.filterwarnings("ignore:the class label explains")
@parametrize_with_checks(
    [
        *(getattr(lokl, name)() for name in CLASSIFIERS[1:] + REGRESSORS[1:]),
        lokl.LMKLClassifier(gate="sigmoid"),
        lokl.CLMKLClassifier(hard=True, p=1.2),
        lokl.SwMKLClassifier(psd="pointwise"),
        lokl.LDMKLClassifier(gating="weight"),
        lokl.SAMKLClassifier(latent="structural"),
        lokl.GMKLClassifier(combine="product"),
        lokl.GMKLRegressor(regularizer="entropy"),
        lokl.MWUMKLClassifier(solver="exact"),
    ]
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@every_method
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_parts_add_up_to_the_decision(name, n_outputs):
    model = make(name).fit(X, targets(name, n_outputs))
    parts = model.contributions(FRESH)
    np.testing.assert_allclose(
        parts.sum(axis=-1) + model.intercept_, decide(model, FRESH), atol=1e-8
    )
    tasks = 1 if n_outputs == 1 else len(model.intercept_)
    assert parts.shape == ((40, 3) if tasks == 1 else (40, tasks, 3))


@every_method
def test_trust_is_one_row_of_numbers_for_each_sample(name):
    model = make(name).fit(X, targets(name))
    trust = model.weights(FRESH)
    assert trust.shape == (40, 3)
    assert np.isfinite(trust).all()
    assert (trust >= 0).all()
    np.testing.assert_allclose(trust.sum(axis=1), 1.0)
    np.testing.assert_allclose(model.weights(FRESH[7:9]), trust[7:9], atol=1e-12)


@pytest.mark.parametrize("name", estimators(without=["vote"]))
def test_trust_is_that_of_the_learned_kernel_up_to_its_scale(name):
    model = make(name).fit(X, targets(name))
    kernel = model.kernel_
    raw = kernel.gate.kernel_weights(kernel.gates(kernel.samples(FRESH)))
    np.testing.assert_allclose(model.weights(FRESH), raw / raw.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("name", estimators(without=["vote"]))
def test_the_learned_kernel_is_positive_semidefinite(name):
    model = make(name).fit(X, targets(name))
    values = np.linalg.eigvalsh(model.kernel_(X))
    assert values[0] >= -1e-8 * values[-1]


@pytest.mark.parametrize("name", estimators(without=["vote", "own gate"]))
def test_the_learned_kernel_on_the_support_is_the_decision(name):
    model = make(name).fit(X, targets(name))
    K = model.kernel_(FRESH, model.support_vectors_)
    expected = K @ model.dual_coef_.T + model.intercept_
    np.testing.assert_allclose(decide(model, FRESH), expected[:, 0], atol=1e-6)


@pytest.mark.parametrize("name", ["LMKLClassifier", "CLMKLClassifier", "GSMKLClassifier"])
def test_svc_with_the_learned_kernel_is_the_model(name):
    y = targets(name)
    model = make(name).fit(X, y)
    again = SVC(kernel=model.kernel_, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(
        again.decision_function(FRESH), model.decision_function(FRESH), atol=1e-4
    )


@pytest.mark.parametrize("name", estimators(without=["scales alone"]))
def test_one_kernel_is_the_plain_machine(name):
    y = targets(name)
    kind = "UniformMKLClassifier" if name.endswith("Classifier") else "UniformMKLRegressor"
    plain = make(kind, [RBF(0.5)]).fit(X, y)
    # The hinge loss, whatever solver is a method's own.
    model = make(name, [RBF(0.5)], solver="exact").fit(X, y)
    expected = decide(plain, FRESH)
    found = decide(model, FRESH)
    if name == "LDMKLClassifier":
        expected = np.tanh(expected)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("name", ["CLMKLClassifier", "CLMKLRegressor"])
def test_one_kernel_and_one_cluster_is_the_plain_machine(name):
    y = targets(name)
    kind = name.replace("CLMKL", "UniformMKL")
    plain = make(kind, [RBF(0.5)]).fit(X, y)
    model = make(name, [RBF(0.5)], n_clusters=1).fit(X, y)
    np.testing.assert_allclose(decide(model, FRESH), decide(plain, FRESH), atol=1e-5)


@pytest.mark.parametrize("name", estimators(without=["localized", "vote"], kind="Classifier"))
def test_copies_of_a_kernel_are_the_kernel_at_another_cost(name):
    """The same weights everywhere only scale the kernel, which is a scale of the cost."""
    y = targets(name)
    model = make(name, [RBF(0.5), RBF(0.5)], C=2.0, solver="exact").fit(X, y)
    scale = model.kernel_.diag(FRESH)
    np.testing.assert_allclose(scale, scale[0])
    plain = SVC(gamma=0.5, C=2.0 * scale[0], tol=1e-6).fit(X, y)
    np.testing.assert_allclose(decide(model, FRESH), decide(plain, FRESH), atol=1e-4)


@pytest.mark.parametrize("name", estimators("localized", kind="Classifier"))
def test_copies_of_a_kernel_share_its_trust(name):
    """Gates that differ between samples still weigh the same kernel: few decisions change."""
    y = targets(name)
    model = make(name, [RBF(0.5), RBF(0.5)], C=2.0).fit(X, y)
    plain = SVC(gamma=0.5, C=2.0).fit(X, y)
    agreement = (model.predict(FRESH) == plain.predict(FRESH)).mean()
    assert agreement >= tolerances(name).agreement


@pytest.mark.parametrize("name", estimators(without=["ordered"]))
def test_the_order_of_kernels_is_a_matter_of_names(name):
    y = targets(name)
    kernels = {"line": Linear(), "square": Polynomial(2), "bump": RBF(0.5)}
    turned = dict(reversed(kernels.items()))
    one, two = make(name, kernels).fit(X, y), make(name, turned).fit(X, y)
    np.testing.assert_allclose(two.weights(FRESH)[:, ::-1], one.weights(FRESH), atol=1e-5)
    np.testing.assert_allclose(decide(two, FRESH), decide(one, FRESH), atol=1e-5)


@every_method
def test_the_same_seed_gives_the_same_model(name):
    y = targets(name)
    one, two = (make(name, random_state=5).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(decide(one, FRESH), decide(two, FRESH))


@every_method
def test_sparse_samples_are_the_same_samples(name):
    y = targets(name)
    rare = X * (np.abs(X) > 0.5)
    dense = make(name, ["linear", "rbf"]).fit(rare, y)
    model = make(name, ["linear", "rbf"]).fit(sparse.csr_matrix(rare), y)
    np.testing.assert_allclose(
        decide(model, sparse.csr_matrix(FRESH)),
        decide(dense, FRESH),
        atol=tolerances(name).rounding,
    )


@every_method
def test_precomputed_kernels(name):
    """Methods that read kernel values only decide the same from a stored matrix."""
    both = np.vstack([X, FRESH])
    plain = [Linear(), RBF(0.5)]
    kernels, index = precomputed([kernel(both) for kernel in plain])
    y = targets(name)
    model = make(name, kernels).fit(index[: len(X)], y)
    found = decide(model, index[len(X) :])
    assert np.isfinite(found).all()
    # A gate on features would look at what a stored matrix does not have.
    learns_gate = "gating" in model.get_params() and hasattr(model, "kernel_")
    settings = {"gating": "kernel_pca"} if learns_gate else {}
    features = make(name, plain, **settings).fit(X, y)
    np.testing.assert_allclose(found, decide(features, FRESH), atol=tolerances(name).rounding)


@every_method
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_missing_views(name, n_outputs):
    """A sample that lacks a view does not trust it and is decided all the same."""
    y = targets(name, n_outputs)
    holes, fresh = X.copy(), FRESH.copy()
    holes[::7, :2] = np.nan
    fresh[::5, 2:] = np.nan
    kernels = {"first": RBF(0.5).on([0, 1]), "second": RBF(0.5).on([2, 3])}
    model = make(name, kernels).fit(holes, y)
    trust, parts = model.weights(fresh), model.contributions(fresh)
    assert (trust[::5, 1] == 0).all()
    assert (parts[::5, ..., 1] == 0).all()
    np.testing.assert_allclose(trust.sum(axis=1), 1.0)
    assert np.isfinite(decide(model, fresh)).all()
    np.testing.assert_allclose(parts.sum(-1) + model.intercept_, decide(model, fresh), atol=1e-8)


@every_method
def test_a_stored_model_decides_the_same(name):
    model = make(name).fit(X, targets(name))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(decide(again, FRESH), decide(model, FRESH))
    np.testing.assert_array_equal(again.weights(FRESH), model.weights(FRESH))


@pytest.mark.slow
@every_method
def test_memory_changes_nothing(name):
    """Little memory: the model stays, up to the tolerance of machines and rounds."""
    rng = np.random.RandomState(0)
    Z = rng.normal(size=(300, 3))
    y = Z[:, 0] + np.sin(2 * Z[:, 1])
    y = (y > 0).astype(int) if name.endswith("Classifier") else y
    model = make(name, ["linear", "rbf"], cache_size=0.02).fit(Z, y)
    full = make(name, ["linear", "rbf"]).fit(Z, y)
    allowed = tolerances(name).memory
    np.testing.assert_allclose(model.history_[-1], full.history_[-1], rtol=allowed)
    np.testing.assert_allclose(decide(model, Z), decide(full, Z), atol=allowed)


@pytest.mark.parametrize("name", ["LMKLClassifier", "CLMKLClassifier", "SwMKLClassifier"])
def test_libsvm_inside_gives_the_same_machine(name):
    y = targets(name)
    ours = make(name).fit(X, y)
    theirs = make(name, solver="libsvm").fit(X, y)
    np.testing.assert_allclose(ours.history_[-1], theirs.history_[-1], rtol=2e-3)
    assert (ours.predict(FRESH) == theirs.predict(FRESH)).mean() > 0.9


@in_rounds
def test_a_callback_sees_every_round_and_can_stop(name):
    seen = []
    model = make(name, callback=seen.append).fit(X, targets(name))
    assert [step.objective for step in seen] == model.history_.tolist()
    assert len(seen) == model.n_iter_
    for stop in (True, np.True_):
        stopped = make(name, callback=lambda step, stop=stop: stop).fit(X, targets(name))
        assert stopped.n_iter_ == 1
        assert stopped.history_[0] == model.history_[0]
    # Only a truth value is an answer to the question whether to stop.
    again = make(name, callback=lambda step: step.objective).fit(X, targets(name))
    assert again.n_iter_ == model.n_iter_


@in_rounds
def test_a_callback_that_cannot_be_called_is_refused(name):
    with pytest.raises(ValueError, match="callback must be a function of a step or None, got 5"):
        make(name, callback=5).fit(X, targets(name))


@in_rounds
def test_rounds_are_counted_beside_any_solver(name):
    """`max_iter` is the method's own there; what only the solver reads is refused."""
    y = targets(name)
    solver = getattr(lokl, name)().solver
    kind = getattr(lokl.solvers, SOLVERS[solver])
    model = getattr(lokl, name)(solver=kind(), max_iter=7, callback=lambda step: True)
    assert model.fit(X, y).n_iter_ >= 1
    with pytest.raises(ValueError, match=r"tol=1e-05 .*solver="):
        model.set_params(tol=1e-5).fit(X, y)
    model.set_params(tol=1e-3, cache_size=99)
    if name == "MWUMKLClassifier":
        assert model.fit(X, y).n_iter_ >= 1
        return
    with pytest.raises(ValueError, match=r"cache_size=99 .*solver="):
        model.fit(X, y)


@in_rounds
def test_rounds_are_logged_when_asked_for(name, caplog):
    with caplog.at_level(logging.INFO, logger="lokl"):
        model = make(name, verbose=1).fit(X, targets(name))
    rounds = [r for r in caplog.messages if "round" in r]
    assert len(rounds) == model.n_iter_
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="lokl"):
        make(name).fit(X, targets(name))
    assert not [r for r in caplog.messages if "round" in r]


@in_rounds
def test_too_few_rounds_warn(name):
    model = make(name, max_iter=1, learn_tol=1e-9)
    with pytest.warns(UserWarning, match="max_iter=1 rounds"):
        model.fit(X, targets(name))
    assert model.n_iter_ == 1


@pytest.mark.parametrize("name", estimators(without=["localized", "vote"]))
def test_global_methods_trust_every_sample_alike(name):
    model = make(name).fit(X, targets(name))
    weights = getattr(model, "weights_", model.kernel_.params)
    shares = np.tile(weights / weights.sum(), (len(FRESH), 1))
    np.testing.assert_allclose(model.weights(FRESH), shares)
    assert (weights >= 0).all()


@pytest.mark.parametrize(
    "name", ["LMKL", "CLMKL", "SwMKL", "LDMKL", "LpMKL", "SimpleMKL", "GMKL", "EasyMKL", "SAMKL"]
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_multiplicative_weights_inside_any_method(name, n_classes):
    """Another loss, so another machine, but one about as good."""
    y = labels(X, n_classes)
    model = make(f"{name}Classifier", solver="mwu").fit(X, y)
    exact = make(f"{name}Classifier").fit(X, y)
    assert np.isfinite(decide(model, FRESH)).all()
    assert model.score(X, y) > exact.score(X, y) - 0.08


@pytest.mark.parametrize("name", ["LMKL", "CLMKL", "SwMKL", "LDMKL", "GMKL"])
def test_regressions_with_multiplicative_weights_are_exact(name):
    y = score(X)
    model = make(f"{name}Regressor", solver="mwu").fit(X, y)
    np.testing.assert_allclose(
        model.predict(FRESH), make(f"{name}Regressor").fit(X, y).predict(FRESH), atol=1e-5
    )


@pytest.mark.parametrize(
    ("name", "gain", "settings"),
    [
        ("LMKL", 0.12, {}),
        ("CLMKL", 0.12, {"n_clusters": 4}),
        ("GSMKL", 0.04, {"n_clusters": 4}),
        ("SwMKL", 0.02, {"success_kernel": RBF(1.0).on([2])}),
        ("LDMKL", 0.07, {"success_kernel": RBF(1.0).on([2]), "temperature": 0.1}),
    ],
)
def test_localized_methods_beat_the_uniform_mix_where_regions_differ(name, gain, settings):
    """Each view speaks in its own region, and a third kernel can see where a sample lives.

    PCK-LMKL's confidence does not depend on the place, and SAMKL's switches do not find it.
    """
    Z, y = two_regions(400)
    fresh, truth = two_regions(1000, seed=1)
    kernels = {**views(), "where": RBF(0.5).on([2])}
    uniform = make("UniformMKLClassifier", kernels).fit(Z, y).score(fresh, truth)
    model = make(f"{name}Classifier", kernels, tol=1e-3, **settings).fit(Z, y)
    assert model.score(fresh, truth) > uniform + gain


@pytest.mark.parametrize("gate", ["softmax", SigmoidGate(), GaussianGate()], ids=repr)
def test_gates_follow_the_regions(gate):
    Z, y = two_regions(400)
    fresh, truth = two_regions(400, seed=1)
    model = make("LMKLClassifier", views(), gate=gate, tol=1e-3).fit(Z, y)
    trust = model.weights(fresh)
    share = trust[:, 0] / trust.sum(axis=1)
    left = fresh[:, 2] < 0
    assert share[left].mean() > share[~left].mean() + 0.3
    uniform = make("UniformMKLClassifier", views()).fit(Z, y)
    assert model.score(fresh, truth) > uniform.score(fresh, truth) + 0.05


def test_success_follows_the_regions():
    Z, y = two_regions(400)
    fresh, truth = two_regions(400, seed=1)
    near = RBF(1.0).on([2])
    for name in ("SwMKLClassifier", "LDMKLClassifier"):
        model = make(name, bumps(), success_kernel=near, tol=1e-3).fit(Z, y)
        trust = model.weights(fresh)
        left = fresh[:, 2] < 0
        assert trust[left, 0].mean() > trust[~left, 0].mean() + 0.05, name
        uniform = make("UniformMKLClassifier", bumps()).fit(Z, y)
        assert model.score(fresh, truth) >= uniform.score(fresh, truth) - 0.01, name


@every_method
def test_settings_are_what_was_given(name):
    model = make(name, ["rbf"], C=3.0)
    assert model.get_params()["C"] == 3.0
    again = clone(model).fit(X, targets(name))
    assert again.get_params() == model.get_params()
    assert callable(again.weights)


@pytest.mark.filterwarnings("ignore:the class label explains")
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_class_whose_samples_all_have_weight_zero_is_never_named(name):
    rng = np.random.RandomState(0)
    X, y = rng.normal(size=(30, 3)), np.repeat([0, 1, 2], 10)
    weight = np.where(y == 2, 0.0, 1.0)
    model = make(name, ["rbf", "linear"]).fit(X, y, sample_weight=weight)
    assert set(model.predict(X)) <= {0, 1}
