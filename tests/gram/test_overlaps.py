"""L1 distances through overlaps: any samples, layouts and precisions give the plain kernel."""

import pickle
from unittest.mock import patch

import numpy as np
import pytest
from gram_cases import both
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.svm import SVC, SVR

from lokl import UniformMKLClassifier, UniformMKLRegressor
from lokl.gates import ConstantGate
from lokl.gram import GatedGram, GatedKernel, layouts
from lokl.gram.layouts import Overlaps, SparseOverlaps
from lokl.kernels import RBF, Laplacian, Linear

# The fixture is the same for all cases.
few = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])


def columns_of_all_kinds(n, rng):
    """Binary, constant, mostly one value, of one side, far from zero, and normal columns."""
    return np.column_stack(
        [
            rng.random(n) < 0.5,
            rng.choice([-3.0, 2.0], size=n, p=[0.1, 0.9]),
            np.full(n, 7.0),
            np.where(rng.random(n) < 0.8, 5.0, rng.normal(size=n)),
            rng.exponential(size=n),
            100.0 + rng.normal(size=n),
            *rng.normal(size=(3, n)),
        ]
    ).astype(float)


@pytest.fixture(params=["dense", "CSR", "wide CSR"])
def as_given(request):
    """Samples as an array, or as a CSR matrix in either layout."""
    wide = {"_LARGEST_PANELS": 0, "_SPARSE_SHARE": 2.0} if "wide" in request.param else {}
    with patch.dict(vars(layouts), wide):
        yield np.asarray if request.param == "dense" else sparse.csr_matrix


@both
@given(n=st.integers(1, 40), p=st.integers(0, 9), seed=st.integers(0, 2**16))
@few
def test_values_among_training_samples_and_with_others(as_given, dtype, n, p, seed):
    rng = np.random.default_rng(seed)
    X = columns_of_all_kinds(n, rng)
    # Columns of the others have other values, and values on sides without training samples.
    Z = columns_of_all_kinds(p, rng) + rng.choice([0.0, -4.0, 4.0], size=(p, X.shape[1]))
    kernel = Laplacian(0.1)
    atol = 1e-12 if dtype == "float64" else 1e-4
    gram = GatedGram([kernel], as_given(X), dtype=dtype)
    assert_allclose(gram.rows(np.arange(n)), laplacian_kernel(X, gamma=0.1), atol=atol)
    assert_allclose(gram.whole, laplacian_kernel(X, gamma=0.1), atol=atol)
    gated = GatedKernel([kernel], ConstantGate(), np.ones(1))
    for left, right in ((X, Z), (Z, X), (Z, Z)):
        expected = laplacian_kernel(left, right, gamma=0.1) if len(left) and len(right) else 0.0
        assert_allclose(gated(as_given(left), as_given(right)), expected, atol=1e-12)
    assert (gated.diag(as_given(Z)) == 1.0).all()


def test_expansions_of_new_samples(as_given):
    rng = np.random.default_rng(0)
    X, Z = columns_of_all_kinds(60, rng), 3.0 * columns_of_all_kinds(20, rng)
    y = X[:, -1] > 0
    model = UniformMKLClassifier([Laplacian(0.1)]).fit(as_given(X), y)
    expected = laplacian_kernel(Z, X[model.support_], gamma=0.1) @ np.ravel(model.dual_coef_)
    assert_allclose(
        model.decision_function(as_given(Z)), expected + model.intercept_, rtol=1e-5, atol=1e-5
    )
    again = pickle.loads(pickle.dumps(model))
    assert_allclose(
        again.decision_function(as_given(Z)), model.decision_function(as_given(Z)), rtol=1e-12
    )


@pytest.mark.parametrize(
    ("X", "layout", "stores"),
    [
        (np.eye(30), Overlaps, False),
        (sparse.eye(30, format="csr"), Overlaps, False),
        (np.random.default_rng(0).normal(size=(30, 50)), Overlaps, True),
        (np.random.default_rng(0).normal(size=(30, 2)), Overlaps, False),
        (np.repeat([0.0, 1.0], 15)[:, np.newaxis] * np.ones(200), Overlaps, True),
        (sparse.random(30, 2 * 10**6, density=1e-6, format="csr"), SparseOverlaps, True),
    ],
)
def test_the_data_decides_the_layout(X, layout, stores):
    gram = GatedGram([Laplacian(0.1)], X)
    (family,) = gram.plan.families
    assert (family.view.layout, family.view.stores_products) == (layout, stores)


def test_a_value_of_most_samples_has_no_entries():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((200, 6)) < 0.9, np.arange(6.0), rng.normal(size=(200, 6)))
    gram = GatedGram([Laplacian(0.1)], X)
    (samples,) = gram.points.layouts
    assert samples.X.nnz < 0.2 * X.size


def test_kernels_of_one_metric_share_a_family():
    X = np.random.default_rng(0).normal(size=(20, 4))
    kernels = [Laplacian(0.1), Laplacian(0.2), RBF(0.1), Linear(), Laplacian(0.1).on([1])]
    gram = GatedGram(kernels, X, dtype="float64")
    assert sorted(sorted(family.terms) for family in gram.plan.families) == [[0, 1], [2, 3], [4]]
    assert_allclose(gram.whole, sum(kernel(X) for kernel in kernels) / 5.0, atol=1e-12)


def test_single_precision_is_chosen_unless_it_loses_digits():
    X = np.random.default_rng(0).uniform(size=(20, 3))
    assert GatedGram([Laplacian(1.0)], X).dtype == "float32"
    assert GatedGram([Laplacian(1.0)], 1e3 + X).dtype == "float32"
    far = np.where(np.arange(20)[:, np.newaxis] < 10, X, X + 1e5)
    gram = GatedGram([Laplacian(1.0)], far)
    assert gram.dtype == "float64"
    assert_allclose(gram.whole, laplacian_kernel(far, gamma=1.0), atol=1e-9)


def test_unordered_and_repeated_entries_of_sparse_samples():
    X = sparse.csr_matrix(
        (np.array([1.0, 2.0, -3.0, 4.0]), np.array([3, 0, 3, 1]), np.array([0, 3, 4])), shape=(2, 4)
    )
    before = X.copy()
    gram = GatedGram([Laplacian(0.1)], X, dtype="float64")
    assert_allclose(gram.whole, laplacian_kernel(X.toarray(), gamma=0.1), atol=1e-12)
    assert X.indices.tolist() == before.indices.tolist()


@pytest.mark.parametrize("gamma", [0.05, 0.5])
def test_svms_equal_libsvm_on_the_kernel_matrix(as_given, gamma):
    rng = np.random.default_rng(0)
    X, Z = columns_of_all_kinds(150, rng), columns_of_all_kinds(40, rng)
    score = X[:, -1] + X[:, 0] - X[:, -2] ** 2
    K, KZ = laplacian_kernel(X, gamma=gamma), laplacian_kernel(Z, X, gamma=gamma)
    settings = {"C": 3.0, "tol": 1e-6}
    for ours, peer, y in (
        (UniformMKLClassifier, SVC, score > 0),
        (UniformMKLRegressor, SVR, score),
    ):
        model = ours([Laplacian(gamma)], **settings).fit(as_given(X), y)
        expected = peer(kernel="precomputed", **settings).fit(K, y)
        values = "decision_function" if peer is SVC else "predict"
        assert_allclose(
            getattr(model, values)(as_given(Z)), getattr(expected, values)(KZ), atol=1e-4
        )
        assert (model.predict(as_given(Z)) == model.predict(as_given(Z))).all()
