"""Global methods: what they must equal, and what they do with hard input."""

import clarabel
import numpy as np
import pytest
from estimator_cases import FRESH, X, labels, score
from method_cases import make
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.svm import SVC, SVR

from lokl import (
    CLMKLClassifier,
    EasyMKLClassifier,
    GMKLClassifier,
    GMKLRegressor,
    LDMKLClassifier,
    LpMKLClassifier,
    LpMKLRegressor,
    MWUMKLClassifier,
    SAMKLClassifier,
    SimpleMKLClassifier,
    SimpleMKLRegressor,
    UniformMKLClassifier,
)
from lokl.kernels import RBF, AnisotropicRBF, Linear, Polynomial
from lokl.solvers import MWU, solve_svc

KERNELS = {"line": Linear(), "square": Polynomial(2), "bump": RBF(0.5)}
SCALED = {name: kernel.normalized("mean_diag") for name, kernel in KERNELS.items()}
Y = labels(X, 2)


def test_sparse_weights_have_one_optimum_however_they_are_found():
    """The l_1 ball, the simplex and multiplicative weights solve one problem, one loss given."""
    solver = MWU(epsilon=1e-4)
    alternating = LpMKLClassifier(SCALED, p=1, solver=solver, learn_tol=1e-3).fit(X, Y)
    reduced = SimpleMKLClassifier(SCALED, solver=solver, learn_tol=1e-3).fit(X, Y)
    multiplied = MWUMKLClassifier(SCALED, epsilon=2e-3).fit(X, Y)
    value = reduced.history_[-1]
    assert alternating.history_[-1] == pytest.approx(value, rel=2e-3)
    assert multiplied.history_[-1] == pytest.approx(value, rel=4e-3)
    np.testing.assert_allclose(alternating.weights_, reduced.weights_, atol=0.05)
    np.testing.assert_allclose(multiplied.weights_, reduced.weights_, atol=0.08)


@pytest.mark.parametrize("regression", [False, True])
def test_sparse_weights_under_the_hinge_and_the_tube(regression):
    kind = "Regressor" if regression else "Classifier"
    y = score(X) if regression else Y
    one = make(f"LpMKL{kind}", SCALED, p=1, learn_tol=1e-5).fit(X, y)
    two = make(f"SimpleMKL{kind}", SCALED, learn_tol=1e-5).fit(X, y)
    assert one.history_[-1] == pytest.approx(two.history_[-1], rel=2e-5)
    np.testing.assert_allclose(one.weights_, two.weights_, atol=5e-3)


def test_one_cluster_and_all_kernels_are_the_global_method():
    lp = make("LpMKLClassifier", KERNELS, p=1.5, learn_tol=1e-6).fit(X, Y)
    clustered = CLMKLClassifier(
        KERNELS, p=1.5, n_clusters=1, tol=1e-6, learn_tol=1e-6, random_state=0
    ).fit(X, Y)
    np.testing.assert_allclose(clustered.weights_[0], lp.weights_, atol=1e-3)
    chosen = SAMKLClassifier(KERNELS, p=1.5, tol=1e-6, learn_tol=1e-6, min_kernels=3).fit(X, Y)
    np.testing.assert_allclose(
        chosen.decision_function(FRESH), lp.decision_function(FRESH), atol=5e-3
    )


def test_a_large_norm_is_the_sum_of_the_kernels():
    for p in (np.inf, 500.0):
        model = make("LpMKLClassifier", KERNELS, p=p).fit(X, Y)
        np.testing.assert_allclose(model.weights_, 1.0, atol=0.03)
    total = SVC(kernel=lambda A, B: sum(k(A, B) for k in KERNELS.values()), tol=1e-6).fit(X, Y)
    model = make("LpMKLClassifier", KERNELS, p=np.inf).fit(X, Y)
    np.testing.assert_allclose(
        model.decision_function(FRESH), total.decision_function(FRESH), atol=1e-3
    )


@pytest.mark.parametrize("regularizer", ["l1", "l2", "lp", "entropy"])
@pytest.mark.parametrize("kind", [GMKLClassifier, GMKLRegressor])
def test_learned_weights_are_those_of_the_machine(kind, regularizer):
    y = Y if kind is GMKLClassifier else score(X)
    model = kind(SCALED, regularizer=regularizer, p=1.5, tol=1e-6).fit(X, y)
    assert 0 <= model.duality_gap_ <= 1.1e-3 * model.history_[-1]
    plain = (SVC if kind is GMKLClassifier else SVR)(kernel=model.kernel_, tol=1e-6).fit(X, y)
    values = getattr(model, "decision_function", model.predict)(FRESH)
    expected = getattr(plain, "decision_function", plain.predict)(FRESH)
    np.testing.assert_allclose(values, expected, atol=2e-3)


def test_a_product_learns_which_columns_matter():
    rng = np.random.RandomState(0)
    Z = rng.normal(size=(200, 6))
    y = Z[:, 1] * Z[:, 4] > 0
    model = GMKLClassifier(combine="product", C=10.0, regularizer="l1").fit(Z, y)
    assert set(np.argsort(-model.weights_)[:2]) == {1, 4}
    assert model.kernel_names_ == ["product"]
    assert isinstance(model.kernels_[0], AnisotropicRBF)
    assert np.isnan(model.duality_gap_)
    np.testing.assert_array_equal(model.weights(Z), 1.0)
    np.testing.assert_allclose(
        model.contributions(Z)[:, 0] + model.intercept_, model.decision_function(Z)
    )
    fresh = rng.normal(size=(200, 6))
    plain = UniformMKLClassifier([RBF()], C=10.0).fit(Z, y)
    truth = fresh[:, 1] * fresh[:, 4] > 0
    assert model.score(fresh, truth) > plain.score(fresh, truth) + 0.05


def test_a_product_takes_views_of_several_columns_and_sparse_samples():
    kernels = {"left": RBF(0.5).on([0, 1]), "right": RBF(0.2).on([2, 3])}
    model = GMKLClassifier(kernels, combine="product").fit(X, Y)
    gammas = np.asarray(model.kernels_[0].gammas)
    np.testing.assert_allclose(gammas, np.repeat(model.weights_ * [0.5, 0.2], 2))
    again = GMKLClassifier(kernels, combine="product").fit(sparse.csr_matrix(X), Y)
    np.testing.assert_allclose(again.weights_, model.weights_, atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"combine": "mean"}, "combine must be one of"),
        ({"regularizer": "l3"}, "regularizer must be one of"),
        ({"constraint": "ball"}, "constraint must be one of"),
        ({"lam": 0.0}, "lam must be a positive finite number, got 0.0"),
        ({"p": 0.5}, "p must be a number >= 1, got 0.5"),
        ({"p": np.inf}, "p must be finite"),
        ({"regularizer": "entropy", "constraint": "orthant"}, "use constraint='simplex'"),
        ({"combine": "product", "kernels": ["linear"]}, "multiplies RBF kernels, got 'linear'"),
    ],
)
def test_bad_settings_of_gmkl_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        GMKLClassifier(**settings).fit(X, Y)


def test_a_product_needs_every_column():
    holes = X.copy()
    holes[3, 1] = np.nan
    with pytest.raises(ValueError, match="contains NaN"):
        GMKLClassifier(combine="product").fit(holes, Y)


def easy_by_quadratic_program(grams, y, lam):
    n = len(y)
    K = (1 - lam) * np.outer(y, y) * sum(grams) + lam * np.eye(n)
    options = clarabel.DefaultSettings()
    options.verbose = False
    A = sparse.csc_matrix(np.vstack([y > 0, y < 0, -np.eye(n)]).astype(float))
    b = np.concatenate([[1.0, 1.0], np.zeros(n)])
    cones = [clarabel.ZeroConeT(2), clarabel.NonnegativeConeT(n)]
    P = sparse.csc_matrix(np.triu(K))
    g = np.array(clarabel.DefaultSolver(P, np.zeros(n), A, b, cones, options).solve().x)
    forms = np.array([(y * g) @ G @ (y * g) for G in grams])
    return forms / forms.sum()


@pytest.mark.parametrize("lam", [0.01, 0.1, 0.5, 0.9, 1.0])
def test_easy_weights_are_those_of_a_quadratic_program(lam):
    y = np.where(labels(X, 2) == labels(X, 2)[0], 1.0, -1.0)
    model = EasyMKLClassifier(KERNELS, lam=lam, tol=1e-6).fit(X, y)
    wanted = easy_by_quadratic_program([k(X) for k in KERNELS.values()], y, lam)
    np.testing.assert_allclose(model.weights_, wanted, atol=1e-4)


def test_easy_weights_are_the_same_from_multiplicative_weights():
    exact = EasyMKLClassifier(KERNELS, tol=1e-6).fit(X, Y)
    hulls = EasyMKLClassifier(KERNELS, solver=MWU(epsilon=1e-4)).fit(X, Y)
    np.testing.assert_allclose(hulls.weights_, exact.weights_, atol=1e-3)


@pytest.mark.parametrize("lam", [0.0, 1.5, np.nan])
def test_a_bad_balance_is_named(lam):
    with pytest.raises(ValueError, match="lam must be above 0 and at most 1"):
        EasyMKLClassifier(lam=lam).fit(X, Y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be between 0 and 1, got 0.0"),
        ({"rate": "fast"}, "rate must be one of"),
    ],
)
def test_bad_settings_of_mwumkl_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        MWUMKLClassifier(**settings).fit(X, Y)


def test_multiplicative_weights_report_rounds_and_certificate():
    seen = []
    model = MWUMKLClassifier(SCALED, callback=seen.append).fit(X, Y)
    assert [step.objective for step in seen] == model.history_.tolist()
    primal = model.history_[-1] + model.duality_gap_
    assert 0 <= model.duality_gap_ <= 0.01 * primal
    assert model.n_iter_ >= len(seen)
    stopped = MWUMKLClassifier(SCALED, callback=lambda step: True).fit(X, Y)
    assert stopped.n_iter_ == 10


def test_multiplicative_weights_of_sparse_samples():
    rare = X * (np.abs(X) > 0.5)
    dense = MWUMKLClassifier(SCALED).fit(rare, Y)
    model = MWUMKLClassifier(SCALED).fit(sparse.csr_matrix(rare), Y)
    assert model.history_[-1] == pytest.approx(dense.history_[-1], rel=0.01)
    assert (model.predict(sparse.csr_matrix(FRESH)) == dense.predict(FRESH)).mean() >= 0.95


def test_multiplicative_weights_for_three_classes_certify_what_sharing_costs():
    y = labels(X, 3)
    model = MWUMKLClassifier(SCALED).fit(X, y)
    assert model.weights_.sum() == pytest.approx(1.0)
    assert model.dual_coef_.shape[0] == 3
    # The best machines under the shared weights lie between the bound and what is certified.
    K = model.kernel_(X)
    best = sum(solve_svc(K, None, y == c, loss="squared_hinge").objective for c in range(3))
    lower = model.history_[-1]
    assert lower <= best <= lower + model.duality_gap_


def imbalanced(n=300):
    return make_classification(
        n, 6, n_informative=4, weights=[0.65], class_sep=1.5, flip_y=0.0, random_state=0
    )


def traced():
    return [k.normalized("trace") for k in (Linear(), Polynomial(2), RBF())]


def test_trace_normalised_kernels_saturate_and_the_user_is_told():
    """Kernels of size 1/n at C = 1: all of the smaller class at its bound, one decision for all."""
    Z, y = imbalanced()
    with pytest.warns(UserWarning, match="the SVM is saturated"):
        model = UniformMKLClassifier(traced()).fit(Z, y)
    share = min(np.mean(y == 0), np.mean(y == 1))
    assert (model.predict(Z) == np.bincount(y).argmax()).all()
    assert model.score(Z, y) == pytest.approx(1 - share)
    assert model.support_fraction_ == pytest.approx(2 * share, abs=0.02)
    # The same kernels on a sane scale, and a cost that makes up for the scale, both learn.
    for cure in (
        UniformMKLClassifier([k.kernel.normalized("mean_diag") for k in traced()]),
        UniformMKLClassifier(traced(), C=float(len(y))),
    ):
        assert cure.fit(Z, y).score(Z, y) > 0.9


def test_every_method_tells_about_saturation():
    Z, y = imbalanced(120)
    for model in (
        LpMKLClassifier(traced()),
        SimpleMKLClassifier(traced()),
        EasyMKLClassifier(traced()),
        CLMKLClassifier(traced(), random_state=0),
        LDMKLClassifier(traced()),
    ):
        with pytest.warns(UserWarning, match="the SVM is saturated"):
            model.fit(Z, y)


@pytest.mark.parametrize("kind", [LpMKLRegressor, SimpleMKLRegressor, GMKLRegressor])
def test_several_targets_share_the_weights(kind):
    targets = np.column_stack([score(X), X[:, 1]])
    model = kind(SCALED).fit(X, targets)
    assert model.predict(FRESH).shape == (len(FRESH), 2)
    assert model.weights_.shape == (3,)


@pytest.mark.parametrize(
    ("name", "settings", "scale"),
    [
        ("LpMKL", {"p": 1}, 1.0),
        ("LpMKL", {"p": 2}, np.sqrt(2.0)),
        ("LpMKL", {"p": np.inf}, 2.0),
        ("SimpleMKL", {}, 1.0),
        ("EasyMKL", {}, 1.0),
        ("GMKL", {"constraint": "simplex"}, 1.0),
        ("GMKL", {"regularizer": "entropy"}, 1.0),
        ("MWUMKL", {"solver": "exact"}, 1.0),
    ],
)
def test_equal_kernels_are_one_kernel_on_the_scale_of_their_weights(name, settings, scale):
    model = make(f"{name}Classifier", [RBF(0.5), RBF(0.5)], C=2.0, **settings).fit(X, Y)
    plain = SVC(gamma=0.5, C=2.0 * scale, tol=1e-6).fit(X, Y)
    np.testing.assert_allclose(
        model.decision_function(FRESH), plain.decision_function(FRESH), atol=1e-3
    )
