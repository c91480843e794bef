"""Kernels against independent references, and settings that are learned in training."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_cases import samples
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.spatial.distance import pdist
from sklearn.gaussian_process import kernels as gaussian_process
from sklearn.metrics import pairwise
from sklearn.svm import SVC

from lokl.kernels import (
    RBF,
    AdditiveLaplacian,
    Chi2,
    Cosine,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Sigmoid,
)

seeds = st.integers(0, 2**16)
either = pytest.mark.parametrize("as_given", [np.asarray, sparse.csr_matrix], ids=["dense", "CSR"])


def additive(X, Z, gamma):
    """Mean over the columns; some samples are so far apart that exponentials would overflow."""
    return np.mean(np.exp(-gamma * np.abs(X[:, np.newaxis] - Z)), axis=2)


@pytest.mark.parametrize(
    ("kernel", "reference", "settings"),
    [
        (Linear(), pairwise.linear_kernel, {}),
        (Polynomial(), pairwise.polynomial_kernel, {"degree": 2, "gamma": 1, "coef0": 1}),
        (
            Polynomial(4, 0.5, 2.0),
            pairwise.polynomial_kernel,
            {"degree": 4, "gamma": 0.5, "coef0": 2},
        ),
        (RBF(0.7), pairwise.rbf_kernel, {"gamma": 0.7}),
        (Laplacian(), pairwise.laplacian_kernel, {}),
        (Laplacian(0.3), pairwise.laplacian_kernel, {"gamma": 0.3}),
        (AdditiveLaplacian(0.3), additive, {"gamma": 0.3}),
        (AdditiveLaplacian(1e3), additive, {"gamma": 1e3}),
        *((Matern(nu, 0.4), gaussian_process.Matern(2.5, nu=nu), {}) for nu in (0.5, 1.5, 2.5)),
        (Cosine(), pairwise.cosine_similarity, {}),
        (Sigmoid(0.2, 0.1), pairwise.sigmoid_kernel, {"gamma": 0.2, "coef0": 0.1}),
        (Chi2(0.4), pairwise.chi2_kernel, {"gamma": 0.4}),
    ],
    ids=lambda value: getattr(value, "__name__", repr(value)),
)
@given(seed=seeds, n=st.integers(1, 6), p=st.integers(1, 6))
def test_values_equal_scikit_learn(kernel, reference, settings, seed, n, p):
    X, Z = samples("histograms", n, seed), samples("histograms", p, seed + 1)
    expected = reference(X, Z, **settings)
    assert_allclose(kernel(X, Z), expected, rtol=1e-10, atol=1e-12)
    assert_allclose(kernel.bind(Z)(X, Z), expected, rtol=1e-10, atol=1e-12)


@given(seed=seeds, n=st.integers(1, 6), p=st.integers(1, 6))
def test_sums_and_products_are_those_of_the_values(seed, n, p):
    X, Z = samples("features", n, seed), samples("features", p, seed + 1)
    first, second = Linear(), RBF("median").on([0, 1]).bind(X)
    assert_allclose((first + second)(X, Z), first(X, Z) + second(X, Z))
    assert_allclose((first * second)(X, Z), first(X, Z) * second(X, Z))
    assert_allclose((first * second + first).diag(X), first.diag(X) * (second.diag(X) + 1))
    bound = (first * RBF("median").on([0, 1])).bind(X)
    assert_allclose(bound(X, Z), first(X, Z) * second(X, Z))


@either
@given(seed=seeds, n=st.integers(2, 20), shift=st.sampled_from([0.0, 3.0, -100.0]))
def test_scale_is_the_gamma_of_scikit_learn(as_given, seed, n, shift):
    X = as_given(np.random.default_rng(seed).normal(size=(n, 3)) + shift)
    expected = SVC(gamma="scale").fit(X, np.arange(n) % 2)._gamma
    assert_allclose(RBF("scale").bind(X).gamma, expected, rtol=1e-7)


@either
@given(seed=seeds, n=st.integers(2, 40))
def test_auto_is_the_gamma_of_scikit_learn(as_given, seed, n):
    X = as_given(np.random.default_rng(seed).normal(size=(n, 3)))
    expected = SVC(gamma="auto").fit(X, np.arange(n) % 2)._gamma
    for kernel in (RBF("auto"), Polynomial(gamma="auto"), Sigmoid("auto")):
        assert kernel.bind(X).gamma == expected
    # Of the columns that the kernel reads, not of all.
    assert RBF("auto").on([0, 2]).bind(X).kernel.gamma == 0.5


@either
@given(seed=seeds, n=st.integers(2, 20), shift=st.sampled_from([0.0, 3.0, -100.0]))
def test_scale_of_l1_distances_is_the_sum_of_standard_deviations(as_given, seed, n, shift):
    X = (np.random.default_rng(seed).normal(size=(n, 3)) + shift) * [0.0, 1.0, 7.0]
    assert_allclose(
        Laplacian("scale").bind(as_given(X)).gamma, 1.0 / X.std(axis=0).sum(), rtol=1e-7
    )


@either
@pytest.mark.parametrize(("kind", "metric"), [(RBF, "sqeuclidean"), (Laplacian, "cityblock")])
@given(seed=seeds, n=st.integers(2, 60))
def test_median_is_in_the_middle_of_the_distances(kind, metric, as_given, seed, n):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    distances = pdist(X, metric)
    width = 1.0 / kind("median").bind(as_given(X)).gamma
    assert np.mean(distances < 0.999 * width) <= 0.5 + 1.0 / n
    assert np.mean(distances <= 1.001 * width) >= 0.5 - 1.0 / n


@pytest.mark.parametrize(("kind", "metric"), [(RBF, "sqeuclidean"), (Laplacian, "cityblock")])
def test_median_of_many_samples_is_that_of_some(kind, metric):
    X = np.random.default_rng(0).normal(size=(2500, 2))
    median = np.median(pdist(X, metric))
    assert_allclose(kind("median").bind(X).gamma, 1.0 / median, rtol=0.1)


@either
@pytest.mark.parametrize("shift", [10.0, 100.0, 1000.0])
@pytest.mark.parametrize(
    "kernel", [RBF("scale"), RBF("median"), RBF(0.1) + RBF(0.2), RBF(0.1).normalized()], ids=repr
)
def test_closeness_does_not_depend_on_where_zero_is_in_either_precision(kernel, shift, as_given):
    X = (np.random.default_rng(0).normal(size=(30, 4)) + shift).astype(np.float32)
    expected = kernel.bind(X.astype(np.float64))(X.astype(np.float64))
    assert_allclose(kernel.bind(as_given(X))(as_given(X)), expected, atol=1e-3)


@either
@pytest.mark.parametrize("kind", [RBF, Laplacian])
@pytest.mark.parametrize("gamma", ["scale", "median"])
@given(
    value=st.sampled_from([0.0, 1.0, 0.1, 3.3, -142.857]),
    n=st.integers(1, 15),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_gamma_is_one_where_samples_do_not_differ(as_given, kind, gamma, value, n, dtype):
    X = as_given(np.full((n, 3), value, dtype=dtype))
    assert kind(gamma).bind(X).gamma == 1.0


LEARNED = [
    RBF("scale"),
    RBF("median"),
    Laplacian("scale"),
    Laplacian("median"),
    AdditiveLaplacian(),
    Matern(),
    Linear().normalized("mean_diag"),
    Polynomial(2).normalized("trace"),
    RBF("scale").on([1, 2]),
    (Linear() + RBF("median")).normalized("trace").on([0, 2, 3]),
]


@either
@pytest.mark.parametrize("kernel", LEARNED, ids=repr)
@given(seed=seeds, n=st.integers(3, 12))
def test_weights_count_like_repeated_rows(kernel, as_given, seed, n):
    rng = np.random.default_rng(seed)
    X, weight = rng.normal(size=(n, 4)), rng.integers(0, 4, size=n)
    weight[:2] += 1
    Z = as_given(samples("features", 4, seed))
    weighted = kernel.bind(as_given(X), weight.astype(float))
    repeated = kernel.bind(as_given(np.repeat(X, weight, axis=0)))
    assert_allclose(weighted(Z), repeated(Z), rtol=1e-9, atol=1e-12)


@either
@pytest.mark.parametrize("kernel", LEARNED, ids=repr)
@given(seed=seeds)
def test_unit_weights_are_no_weights(kernel, as_given, seed):
    X = as_given(np.random.default_rng(seed).normal(size=(7, 4)))
    assert_allclose(kernel.bind(X, np.ones(7))(X), kernel.bind(X)(X), rtol=1e-12)


BASES = [
    Linear(),
    Polynomial(3),
    RBF(0.5),
    Cosine(),
    Laplacian(),
    Linear() + RBF("scale"),
    Polynomial(2).on([0, 3]),
    Linear().normalized("unit_diag"),
    Linear().normalized("trace"),
]
every_base = pytest.mark.parametrize("kernel", BASES, ids=repr)


@every_base
@given(seed=seeds, n=st.integers(2, 8))
def test_mean_diagonal_and_trace_of_the_training_matrix_are_one(kernel, seed, n):
    rng = np.random.default_rng(seed)
    X, weight = rng.normal(size=(n, 4)), rng.uniform(0.1, 3.0, size=n)
    mean_diag, trace = kernel.normalized("mean_diag"), kernel.normalized("trace")
    assert_allclose(mean_diag.bind(X)(X).diagonal().mean(), 1.0)
    assert_allclose(np.trace(trace.bind(X)(X)), 1.0)
    assert_allclose(np.average(mean_diag.bind(X, weight).diag(X), weights=weight), 1.0)
    assert_allclose(weight @ trace.bind(X, weight).diag(X), 1.0)


@every_base
@given(seed=seeds)
def test_learned_factors_are_reused_for_other_points(kernel, seed):
    X, Z = np.random.default_rng(seed).normal(size=(2, 6, 4))
    bound = kernel.bind(X)
    for how, factor in (("mean_diag", np.mean), ("trace", np.sum)):
        values = kernel.normalized(how).bind(X)(Z, 3 * Z)
        assert_allclose(values, bound(Z, 3 * Z) / factor(bound.diag(X)), rtol=1e-10)


@every_base
@given(seed=seeds)
def test_unit_diagonal_is_the_cosine_in_feature_space(kernel, seed):
    X, Z = np.random.default_rng(seed).normal(size=(2, 5, 4))
    bound, unit = kernel.bind(X), kernel.normalized("unit_diag").bind(X)
    lengths = np.sqrt(np.outer(bound.diag(X), bound.diag(Z)))
    assert_allclose(unit.diag(X), 1.0)
    assert_allclose(unit(X, Z), bound(X, Z) / lengths, rtol=1e-10)


@pytest.mark.parametrize(
    "kernel", [Linear(), Polynomial(2, coef0=0.0), Linear().on([0, 1]), Cosine()], ids=repr
)
def test_a_zero_vector_has_similarity_zero(kernel):
    X = np.vstack([np.zeros(4), samples("features", 4, seed=0) + 5.0])
    K = kernel.normalized("unit_diag").bind(X)(X)
    assert (K[0] == 0).all()
    assert (K[:, 0] == 0).all()
    assert_allclose(K.diagonal()[1:], 1.0)


@pytest.mark.parametrize("how", ["mean_diag", "trace"])
def test_a_kernel_that_is_zero_in_training_gets_weight_zero(how):
    with pytest.warns(UserWarning, match="'linear' is zero on all training samples"):
        bound = Linear().normalized(how).bind(np.zeros((3, 2)))
    assert (bound(np.ones((2, 2))) == 0).all()


@pytest.mark.parametrize("how", ["mean_diag", "trace", "unit_diag"])
@pytest.mark.parametrize(
    "kernel",
    [Linear(), RBF(1.0), RBF("scale"), Cosine(), Laplacian(), Linear() + Cosine()],
    ids=repr,
)
def test_view_and_normalisation_commute_with_missing_views(kernel, how):
    X = np.random.default_rng(0).normal(size=(9, 4))
    X[[0, 4], 1:3] = np.nan
    present = ~np.isnan(X[:, 1])
    expected = kernel.normalized(how).bind(X[present, 1:3])(X[present, 1:3])
    weight = np.where(present, 1.0, 7.0)
    for view in (kernel.normalized(how).on([1, 2]), kernel.on([1, 2]).normalized(how)):
        assert_allclose(view.bind(X)(X[present]), expected)
        assert_allclose(view.bind(X, weight)(X[present]), expected)
