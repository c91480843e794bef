"""The low-rank twin of the Gram matrix, against the plain matrix of its features."""

import pickle

import numpy as np
import pytest
from gram_cases import (
    DICTIONARIES,
    GATES,
    coefficients,
    dense,
    few_entries,
    layout_of,
    problem,
    short_rows,
    threads,
    wide,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.base import clone

from lokl._arrays import Samples
from lokl.gates import ConstantGate, SoftmaxGate
from lokl.gram import (
    GatedGram,
    GatedKernel,
    LowRank,
    LowRankGram,
    LowRankProducts,
    feature_maps,
)
from lokl.kernels import RBF, Cosine, Laplacian, Linear, Polynomial, Precomputed, Sigmoid

seeds = st.integers(0, 2**16)
few = settings(max_examples=4)
# Sigmoids are not positive semidefinite.
DEFINITE = {
    name: [kernel for kernel in kernels if not isinstance(kernel, Sigmoid)]
    for name, kernels in DICTIONARIES.items()
}
every_dictionary = pytest.mark.parametrize("kernels", DEFINITE.values(), ids=DEFINITE)
# Megabytes that hold all features, and none.
stored_or_not = pytest.mark.parametrize("cache_size", [512, 1e-4], ids=["stored", "computed"])
MAKERS = [dense, short_rows, few_entries, wide]


def low_rank(kernels, X, H, rank=1000, dtype="float64", **settings):
    options = {name: settings.pop(name) for name in ("kind", "sample_size") if name in settings}
    return LowRankProducts(X, LowRank(rank, **options), dtype=dtype, **settings).gated(kernels, H)


def of_features(gram):
    """Every gated kernel of the features, (m, n, n), by the plain formula."""
    ones = np.ones((gram.n_samples, gram.plan.n_kernels))
    Phi = gram.regated(ones).gated_rows(np.arange(gram.n_samples)).astype(float)
    trust = np.einsum("jir,kir->ijk", gram.gates, gram.gates)
    return trust * np.stack([Phi[:, span] @ Phi[:, span].T for span in gram.features.spans])


@every_dictionary
@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
@few
@given(seed=seeds, kind=st.sampled_from(GATES), n=st.integers(1, 30))
def test_with_all_samples_as_landmarks_it_is_the_exact_matrix(kernels, make, seed, kind, n):
    with layout_of(make):
        kernels, X, H, rng = problem(kernels, make, kind, n, seed)
        exact, found = GatedGram(kernels, X, H, dtype="float64"), low_rank(kernels, X, H)
        u = coefficients(n, 2, rng)
        scale = max(exact.diag().max(), 1e-300)
        assert_allclose(found.whole, exact.whole, atol=1e-8 * scale)
        assert_allclose(found.diag(), exact.diag(), atol=1e-8 * scale)
        assert_allclose(found.dot(u), exact.dot(u), atol=1e-7 * scale * n)
        sums = exact.kernel_sums(u)
        size = max(np.abs(sums).max(initial=0.0), scale)
        assert_allclose(found.kernel_sums(u), sums, atol=1e-7 * size)
        assert_allclose(found.gate_gradient(u), exact.gate_gradient(u), atol=1e-6 * size)
        forms = exact.kernel_forms(u)
        assert_allclose(found.kernel_forms(u), forms, atol=1e-7 * max(np.abs(forms).max(), scale))
        assert (found.features.residual <= 1e-8).all()


@stored_or_not
@pytest.mark.parametrize("name", ["one", "one view", "views", "mixed"])
@pytest.mark.parametrize("kind", GATES)
@few
@given(seed=seeds)
def test_every_question_is_answered_as_by_the_matrix_of_features(cache_size, name, kind, seed):
    kernels, X, H, rng = problem(DEFINITE[name], dense, kind, 30, seed)
    gram = low_rank(kernels, X, H, rank=8, cache_size=cache_size)
    assert gram.fits == (cache_size > 1)
    apart = of_features(gram)
    K, u = apart.sum(axis=0), coefficients(30, 2, rng)
    scale = np.abs(K).max()
    close = {"rtol": 1e-7, "atol": 1e-9 * scale * 30}
    some, others = np.array([3, 1, 7]), np.array([0, 29, 3, 4])
    assert_allclose(gram.whole, K, **close)
    assert_allclose(gram.block(some), K[np.ix_(some, some)], **close)
    assert_allclose(gram.cross(some, others), K[np.ix_(some, others)], **close)
    assert_allclose(gram.diag(), K.diagonal(), **close)
    assert_allclose(gram.dot(u), K @ u, **close)
    assert_allclose(gram.dot(u[:, 0]), K @ u[:, 0], **close)
    target = u[:, 1].copy()
    gram.subtract(some, u[some, 0], target)
    assert_allclose(target, u[:, 1] - K[:, some] @ u[some, 0], **close)
    sums = np.einsum("jir,jirt->jit", gram.gates, gram.kernel_sums(u))
    assert_allclose(sums, np.einsum("ijk,kt->jit", apart, u), **close)
    forms = np.einsum("jt,ijk,kt->i", u, apart, u)
    assert_allclose(gram.kernel_forms(u).sum(axis=1), forms, **close)
    # -dJ/dh times h, summed over all, is the form once more.
    slopes = np.einsum("jir,jir->i", gram.gates, gram.gate_gradient(u))
    assert_allclose(-slopes, forms, **close)
    weights = gram.backward(u[:, :1])
    scale_of = rng.random(30)
    curved = gram.curved(weights, scale_of)
    assert_allclose(curved, gram.backward(scale_of[:, np.newaxis] * (K @ u[:, :1])), **close)
    if H.ndim == 2:
        assert_allclose(gram.rows_by_kernel(some), apart[:, some].transpose(1, 0, 2), **close)


def test_rows_that_solvers_store_are_those_of_the_features():
    kernels, X, H, _ = problem(DEFINITE["one view"], dense, "rank 1", 30, 0)
    gram = low_rank(kernels, X, H, rank=8)
    assert_allclose(gram.rows([3, 9]), gram.whole[[3, 9]], rtol=1e-10)
    slab, slots = gram.stored()
    assert_allclose(slab[slots[9]], gram.whole[9], rtol=1e-10)


@pytest.mark.parametrize("count", [1, 3])
def test_threads_share_the_work_and_change_nothing(count):
    kernels, X, H, rng = problem(DEFINITE["views"], dense, "rank 1", 300, 0)
    u = coefficients(300, 1, rng)
    with threads(count):
        gram = low_rank(kernels, X, H, rank=200)
        assert_allclose(gram.dot(u), of_features(gram).sum(axis=0) @ u, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["rank 1", "rank 3"])
def test_streams_of_several_threads_are_one(kind, dtype, monkeypatch):
    """Rows that are computed tile by tile: each thread has tiles and sums of its own."""
    monkeypatch.setattr(feature_maps, "_MOST_ROWS", 32)
    kernels, X, H, rng = problem(DEFINITE["views"], dense, kind, 300, 0)
    u, scale = coefficients(300, 3, rng), rng.uniform(size=300)
    answers = []
    for count in (1, 4):
        with threads(count):
            gram = low_rank(kernels, X, H, 200, dtype, cache_size=1e-4)
            assert not gram.fits
            weights = gram.backward(u)
            curved = gram.curved(weights[:, :, :1], scale)
            answers.append([weights, gram.forward(weights), curved, gram.diag()])
            again = gram.backward(scale[:, np.newaxis] * gram.forward(weights[:, :, :1]))
            assert_allclose(curved, again, rtol=1e-6, atol=1e-8)
    for alone, together in zip(*answers, strict=True):
        assert_allclose(together, alone, rtol=1e-9, atol=1e-9 * np.abs(alone).max())


@stored_or_not
@pytest.mark.parametrize("name", ["one", "one view", "ladder"])
def test_single_precision_is_good_to_four_digits(name, cache_size):
    kernels, X, H, rng = problem(DEFINITE[name], dense, "rank 1", 200, 0)
    u = coefficients(200, 1, rng)
    exact = GatedGram(kernels, X, H, dtype="float64").dot(u)
    single = low_rank(kernels, X, H, 500, "float32", cache_size=cache_size)
    assert_allclose(single.dot(u), exact, atol=1e-4 * np.abs(exact).max())


def test_what_the_search_for_landmarks_leaves_are_the_features():
    """One kernel on few samples: the factor is not computed again."""
    X = np.random.default_rng(0).normal(size=(300, 4))
    inner = LowRankProducts(X, LowRank(40), dtype="float64")
    gram = inner.gated([RBF(0.4)])
    kept = gram.stored_features.copy()
    inner.release()
    assert_allclose(gram.stored_features, kept, atol=1e-9)


def test_a_part_of_the_samples_has_the_features_of_all():
    kernels, X, H, _ = problem(DEFINITE["views"], dense, "rank 1", 60, 0)
    inner = LowRankProducts(X, LowRank(10), dtype="float64")
    gram, rows = inner.gated(kernels, H), np.array([5, 3, 40, 41])
    part = inner.take(rows).gated(kernels, H[rows])
    assert part.features is gram.features
    assert_allclose(part.whole, gram.block(rows), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", ["landmarks", "fourier"])
def test_kernels_that_come_back_find_their_features(kind):
    X = np.random.default_rng(0).normal(size=(50, 4))
    inner = LowRankProducts(X, LowRank(10, kind), dtype="float64")
    first, second = [RBF(0.5)], [RBF(0.1), RBF(0.2)]
    one, _, again = inner.gated(first), inner.gated(second), inner.gated(first)
    assert one.features is again.features
    other = inner.gated([RBF(0.5)])
    assert_allclose(other.whole, one.whole)


def test_the_residual_falls_with_the_rank_and_is_that_of_the_trace():
    X = np.random.default_rng(0).normal(size=(400, 4))
    before = np.ones(2)
    for rank in (5, 20, 80, 400):
        gram = low_rank([RBF(0.3), Laplacian(0.3)], X, None, rank)
        apart = of_features(gram) * 2.0
        assert_allclose(gram.features.residual, 1 - np.einsum("ijj->i", apart) / 400, atol=1e-9)
        assert (gram.features.residual < before).all()
        before = gram.features.residual
    assert (before < 1e-8).all()


def test_landmarks_are_chosen_from_a_sample_of_many():
    X = np.random.default_rng(0).normal(size=(500, 2))
    gram = low_rank([RBF(0.3)], X, None, 20, sample_size=100)
    assert gram.features.size == 20
    # Little memory means fewer rows to choose from, but never too few.
    small = low_rank([RBF(0.3)], X, None, 20, cache_size=1e-4)
    assert small.features.size == 20
    assert (small.features.residual < 0.2).all()


def test_kernels_of_any_scale_have_their_share_of_the_landmarks():
    X = np.random.default_rng(0).normal(size=(300, 3))
    large = Linear().normalized("trace").bind(X)
    gram = low_rank([Polynomial(2, 100.0), RBF(0.2), large], X, None, 60)
    assert (gram.features.residual < 0.02).all()


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("cache_size", [512, 1e-4])
def test_a_function_of_new_samples_is_the_sum_over_the_training_samples(kind, cache_size):
    kernels, X, H, rng = problem(DEFINITE["mixed"], dense, kind, 40, 0)
    gram = low_rank(kernels, X, H, 12, cache_size=cache_size)
    u, Z = coefficients(40, 2, rng), dense(9, rng)
    trusts = gram.kernel(ConstantGate(), np.ones(len(kernels)))
    b = np.array([1.0, -1.0])
    ask = gram.expansion(trusts, u, b)
    far, near = (trusts.features.features(trusts._points(samples)) for samples in (Z, X))
    between = [far[:, s] @ near[:, s].T for s in gram.features.spans]
    expected = np.einsum("izj,jir,jt->zt", between, gram.gates, u)
    trusting = ask.prepare_ungated(Samples.of(Z))
    assert_allclose(ask.at(trusting), expected + b, rtol=1e-7, atol=1e-7)
    parts = ask.contributions(trusting)
    assert_allclose(parts.sum(axis=1) + b, ask.at(trusting), rtol=1e-12)
    assert parts.shape == (9, len(kernels), 2)


def test_a_function_keeps_landmarks_and_no_other_samples():
    X = np.random.default_rng(0).normal(size=(3000, 4))
    gram = low_rank([RBF(0.4)], X, None, 50)
    u = np.random.RandomState(0).normal(size=(3000, 1))
    ask = gram.expansion(gram.kernel(ConstantGate(), np.ones(1)), u, np.zeros(1))
    assert len(pickle.dumps(ask)) < 50 * (50 + 20) * 8 + 20_000
    again = pickle.loads(pickle.dumps(ask))
    np.testing.assert_array_equal(again(Samples.of(X[:20])), ask(Samples.of(X[:20])))


def test_the_kernel_is_one_like_any_other():
    X = np.random.default_rng(0).normal(size=(60, 4))
    kernels, gate = [Linear(), RBF(0.4)], SoftmaxGate()
    V = gate.init(X, 2, np.random.RandomState(0))
    gram = low_rank(kernels, X, gate(X, V), 15)
    kernel = gram.kernel(gate, V, ["line", "bump"])
    assert_allclose(kernel(X), gram.whole, rtol=1e-8, atol=1e-10)
    assert_allclose(kernel(X[:5], X), gram.whole[:5], rtol=1e-8, atol=1e-10)
    assert_allclose(kernel.diag(X), gram.diag(), rtol=1e-8)
    assert_allclose(kernel.residual, gram.features.residual)
    assert kernel.label == "low-rank gated(line, bump)"
    assert_allclose(clone(kernel)(X[:5]), kernel(X[:5]))
    # The kernel that the features stand for is the one of the exact matrix.
    exact = GatedKernel(kernels, gate, V)
    assert np.abs(exact(X) - kernel(X)).max() < 0.5
    assert_allclose(gram.exact.whole, exact(X), rtol=1e-10)
    with pytest.raises(TypeError, match="no exact matrix"):
        kernel.gram(Samples.of(X))


@pytest.mark.parametrize("make", [dense, few_entries], ids=lambda make: make.__name__)
def test_waves_come_nearer_to_gaussian_kernels_with_their_number(make):
    X = make(150, np.random.default_rng(0))
    kernels = [RBF(0.1), RBF(0.3).on([0, 1, 2]).bind(X), RBF(0.2).normalized("trace").bind(X)]
    before = np.full(3, np.inf)
    for rank in (16, 256, 4096):
        gram = low_rank(kernels, X, None, rank, kind="fourier")
        assert gram.features.sizes == (rank,) * 3
        assert (gram.features.residual < 0.5 * before).all()
        before = gram.features.residual
        exact = np.stack([kernel(X) for kernel in kernels])
        apart = of_features(gram) * 3.0
        norm = np.linalg.norm(exact, axis=(1, 2))
        assert_allclose(before, np.linalg.norm(apart - exact, axis=(1, 2)) / norm, atol=1e-9)


@pytest.mark.parametrize("kernel", [Linear(), Cosine(), Laplacian(), Precomputed(np.eye(20))])
def test_waves_are_for_gaussian_kernels_only(kernel):
    X = np.arange(20.0)[:, np.newaxis]
    with pytest.raises(ValueError, match=r"features='fourier'.*features='landmarks'"):
        low_rank([kernel.bind(X)], X, None, 8, kind="fourier")


def test_pairs_cannot_be_normalised():
    inner = LowRankProducts(np.eye(3), LowRank(2))
    with pytest.raises(ValueError, match="no features of low rank"):
        inner.gated([RBF(1.0)], pair_normalized=True)


def test_a_kernel_that_is_not_definite_gives_a_warning():
    X = np.random.default_rng(0).normal(size=(40, 3))
    matrix = Sigmoid(1.0, -1.0)(X)
    assert np.linalg.eigvalsh(matrix)[0] < -0.1
    with pytest.warns(UserWarning, match=r"'sigmoid.*' is not positive semidefinite"):
        gram = low_rank([Sigmoid(1.0, -1.0)], X, None)
    assert np.linalg.eigvalsh(gram.whole)[0] > -1e-8


def test_a_matrix_that_does_not_exist_is_not_made_by_the_class_alone():
    gram = low_rank([RBF(1.0)], np.eye(4), None)
    assert isinstance(gram, LowRankGram)
    assert not GatedGram([RBF(1.0)], np.eye(4)).is_low_rank
    assert gram.is_low_rank
    assert gram.regated(np.full((4, 1), 2.0)).features is gram.features
