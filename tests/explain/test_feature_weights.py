"""Weights of columns are those of the same linear machine."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC

import lokl
from lokl import LMKLClassifier, TrustedVoteClassifier, UniformMKLClassifier, UniformMKLRegressor
from lokl.explain import feature_weights
from lokl.kernels import RBF, Cosine, Linear, per_view
from lokl.solvers import Primal

RNG = np.random.RandomState(0)
X = RNG.normal(size=(80, 6))
Y = (X[:, 0] - 2 * X[:, 3] + 0.5 * RNG.normal(size=80) > 0).astype(int)
THREE = np.digitize(X[:, 0] + X[:, 4], [-0.7, 0.7])
VIEWS = {"left": [0, 1, 2], "right": [3, 4, 5]}


def test_one_linear_kernel_is_the_linear_machine():
    weights = feature_weights(UniformMKLClassifier(["linear"], tol=1e-8).fit(X, Y))
    rival = SVC(kernel="linear", tol=1e-8).fit(X, Y)
    np.testing.assert_allclose(weights.coef, rival.coef_, atol=1e-5)
    np.testing.assert_allclose(weights.intercept, rival.intercept_, atol=1e-5)
    assert weights.tasks == (1,)


@pytest.mark.parametrize("rank", [2, 4, 100])
def test_weights_of_low_rank_are_those_of_its_decisions(rank):
    kernels = per_view(Linear(), VIEWS)
    model = UniformMKLClassifier(kernels, solver=Primal(rank, tol=1e-6)).fit(X, THREE)
    weights = feature_weights(model)
    np.testing.assert_allclose(
        X @ weights.coef.T + weights.intercept, model.decision_function(X), atol=1e-8
    )
    assert (weights.parts[0][:, 3:] == 0).all()


def test_classes_have_the_weights_of_one_machine_each_against_the_rest():
    model = UniformMKLClassifier(["linear"], tol=1e-8, loss="squared_hinge").fit(X, THREE)
    # LinearSVC has twice our squared hinge, and punishes the intercept unless it is scaled up.
    rival = LinearSVC(C=0.5, tol=1e-10, intercept_scaling=100, max_iter=10**6)
    weights = feature_weights(model)
    np.testing.assert_allclose(weights.coef, rival.fit(X, THREE).coef_, atol=2e-2)
    assert weights.tasks == (0, 1, 2)


def test_targets_have_the_weights_of_one_machine_each():
    targets = np.column_stack([X[:, 0], X[:, 1] - X[:, 2]])
    weights = feature_weights(UniformMKLRegressor(["linear"], tol=1e-8).fit(X, targets))
    for k in range(2):
        rival = SVR(kernel="linear", tol=1e-8).fit(X, targets[:, k])
        np.testing.assert_allclose(weights.coef[k], rival.coef_[0], atol=1e-4)
    assert weights.kind == "target"


@pytest.mark.parametrize("name", ["UniformMKL", "LpMKL", "SimpleMKL", "GMKL", "EasyMKL", "MWUMKL"])
@pytest.mark.parametrize("y", [Y, THREE], ids=["two", "three"])
def test_weights_give_the_decisions_of_global_methods(name, y):
    kernels = {
        "left": Linear().on([0, 1, 2]).normalized("mean_diag"),
        "right": Linear().normalized("trace").on([5, 3, 4]),
        "both": Linear().on([0]) + Linear().on([0, 5]),
        "all": Linear().normalized("none"),
    }
    model = getattr(lokl, f"{name}Classifier")(kernels, C=10).fit(X, y)
    weights = feature_weights(model)
    decision = X @ weights.coef.T + weights.intercept
    np.testing.assert_allclose(np.squeeze(decision), model.decision_function(X), atol=1e-4)
    np.testing.assert_allclose(weights.parts.sum(axis=0), weights.coef)
    assert not weights.parts[0][:, 3:].any()
    parts = model.contributions(X)
    own = np.einsum("nc,ktc->ntk", X, weights.parts)
    np.testing.assert_allclose(own.reshape(parts.shape), parts, atol=1e-4)


@settings(max_examples=10)
@given(seed=st.integers(0, 2**16))
def test_weights_are_those_of_whole_samples_where_training_samples_lack_views(seed):
    holes = X.copy()
    rng = np.random.RandomState(seed)
    holes[rng.choice(80, 20, replace=False)[:, np.newaxis], VIEWS["left"]] = np.nan
    model = UniformMKLClassifier(per_view(Linear(), VIEWS)).fit(holes, Y)
    weights = feature_weights(model)
    decision = X @ weights.coef[0] + weights.intercept
    np.testing.assert_allclose(decision, model.decision_function(X), atol=1e-4)


def test_sparse_samples_give_the_same():
    kernels = per_view(Linear(), VIEWS)
    dense = feature_weights(UniformMKLClassifier(kernels, tol=1e-8).fit(X, Y))
    thin = feature_weights(UniformMKLClassifier(kernels, tol=1e-8).fit(sparse.csr_matrix(X), Y))
    np.testing.assert_allclose(thin.coef, dense.coef, atol=1e-5)


def test_columns_have_their_names_also_behind_transformers():
    frame = pd.DataFrame(X, columns=list("abcdef"))
    kernels = per_view(Linear(), VIEWS)
    model = UniformMKLClassifier(kernels).fit(frame, np.where(Y, "ill", "well"))
    weights = feature_weights(model)
    assert weights.features == tuple("abcdef")
    table = weights.to_frame()
    assert table.index.names == ["kernel", "column"]
    assert table.index.tolist()[3] == ("right", "d")
    assert list(table.columns) == ["well"]
    assert table.loc[("right", "d"), "well"] == pytest.approx(weights.coef[0, 3])
    pipeline = make_pipeline(StandardScaler(), UniformMKLClassifier(kernels)).fit(frame, Y)
    behind = feature_weights(pipeline)
    assert behind.features == tuple("abcdef")
    scaled = pipeline[:-1].transform(frame)
    decision = scaled @ behind.coef[0] + behind.intercept
    np.testing.assert_allclose(decision, pipeline.decision_function(frame), atol=1e-4)
    assert feature_weights(UniformMKLClassifier(kernels).fit(X, Y)).features[0] == "x0"


def test_the_page_shows_the_largest():
    weights = feature_weights(UniformMKLClassifier(["linear"]).fit(X, THREE))
    top = weights.largest(2)
    assert set(top.rows) == {"x0", "x4"}
    assert top.columns.keys() == {"0", "1", "2"}
    assert max(map(len, str(weights).splitlines())) <= 80
    assert repr(weights) == str(weights)


def test_what_has_no_weights_says_why():
    halves = per_view(Linear(), VIEWS)
    for model in (LMKLClassifier(halves, random_state=0), TrustedVoteClassifier(halves)):
        with pytest.raises(ValueError, match=r"contributions\(X\)"):
            feature_weights(model.fit(X, Y))
    for kernel in (Cosine(), Linear().normalized().on([0, 1]), Linear().on([0, 1]).normalized()):
        with pytest.raises(ValueError, match="'short'"):
            feature_weights(UniformMKLClassifier({"short": kernel, "plain": Linear()}).fit(X, Y))
    for kernel in (RBF(), Linear() * Linear()):
        with pytest.raises(ValueError, match="'near' is"):
            feature_weights(UniformMKLClassifier({"near": kernel}).fit(X, Y))
    with pytest.raises(NotFittedError):
        feature_weights(UniformMKLClassifier(["linear"]))
