"""The gated Gram matrix against the plain sum ``sum_i (h_i h_i') o K_i``."""

import numpy as np
import pytest
from gram_cases import (
    DICTIONARIES,
    GATES,
    LAYOUTS,
    POSITIVE,
    both,
    close,
    coefficients,
    dense,
    every_dictionary,
    every_layout,
    few_entries,
    gates,
    layout_of,
    parts,
    problem,
    short_rows,
    threads,
    wide,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel

from lokl.gates import ConstantGate
from lokl.gram import GatedGram, GatedKernel, InnerProducts, mixing
from lokl.gram.layouts import TILE, Dense, Panels, Sparse, choose_layout
from lokl.gram.plan import Points
from lokl.kernels import RBF, Linear, rbf_ladder

seeds = st.integers(0, 2**16)
sizes = st.integers(1, 20)
few = settings(max_examples=6)


@every_layout
def test_samples_have_the_layout_of_the_list(make):
    with layout_of(make):
        gram = GatedGram([RBF(1.0)], make(5, np.random.default_rng(0)))
    assert [type(layout) for layout in gram.points.layouts] == [LAYOUTS[make]]


@pytest.mark.parametrize(
    ("n", "d", "fill", "as_given", "layout"),
    [
        (20, 4, 1.0, np.asarray, Panels),
        (20, 14, 0.2, sparse.csr_matrix, Panels),
        (3000, 100, 0.05, np.asarray, Panels),
        (3000, 100, 0.05, sparse.csr_matrix, Panels),
        (3000, 100, 1.0, np.asarray, Dense),
        (3000, 100, 1.0, sparse.csr_matrix, Dense),
        (0, 4, 1.0, np.asarray, Panels),
    ],
)
def test_the_data_decides_the_layout(n, d, fill, as_given, layout):
    rng = np.random.default_rng(0)
    assert choose_layout(as_given(rng.random((n, d)) * (rng.random((n, d)) < fill))) is layout


def test_a_matrix_of_very_many_columns_stays_sparse():
    narrow = few_entries(40, np.random.default_rng(0)).tocoo()
    X = sparse.csr_matrix((narrow.data, (narrow.row, 10**5 * narrow.col)), shape=(40, 14 * 10**5))
    assert choose_layout(X) is Sparse
    gram = GatedGram([Linear(), RBF(1.0)], X, dtype="float64")
    expected = GatedGram([Linear(), RBF(1.0)], narrow.toarray(), dtype="float64")
    assert_allclose(gram.rows(np.arange(40)), expected.rows(np.arange(40)), atol=1e-12)


@every_dictionary
@every_layout
@both
@few
@given(seed=seeds, n=sizes, kind=st.sampled_from(POSITIVE), pair_normalized=st.booleans())
def test_rows_blocks_and_diagonal(kernels, make, dtype, seed, n, kind, pair_normalized):
    kernels, X, H, rng = problem(kernels, make, kind, n, seed)
    K = parts(kernels, X, H, pair_normalized=pair_normalized).sum(axis=0)
    with layout_of(make):
        gram = GatedGram(kernels, X, H, dtype=dtype, pair_normalized=pair_normalized)
    assert gram.n_samples == n
    assert gram.dtype == dtype
    rows, columns = rng.permutation(n)[: 1 + n // 2], rng.integers(n, size=4)
    close(gram.rows(rows), K[rows], dtype)
    close(gram.rows(np.arange(n)), K, dtype)
    close(gram.rows([0, n - 1, 0]), K[[0, n - 1, 0]], dtype)
    close(gram.block(columns), K[np.ix_(columns, columns)], dtype)
    close(gram.cross(rows, columns), K[np.ix_(rows, columns)], dtype)
    close(gram.diag(), K.diagonal(), dtype)
    close(gram.whole, K, dtype)
    assert not gram.whole.flags.writeable
    out = np.full((2, n), np.nan, dtype=dtype)
    assert gram.rows([n - 1, 0], out) is out
    close(out, K[[n - 1, 0]], dtype)


@every_dictionary
@every_layout
@both
@few
@given(seed=seeds, n=sizes, kind=st.sampled_from(POSITIVE), pair_normalized=st.booleans())
def test_products(kernels, make, dtype, seed, n, kind, pair_normalized):
    kernels, X, H, rng = problem(kernels, make, kind, n, seed)
    each = parts(kernels, X, H, pair_normalized=pair_normalized)
    K = each.sum(axis=0)
    with layout_of(make):
        gram = GatedGram(kernels, X, H, dtype=dtype, pair_normalized=pair_normalized)
    coef = coefficients(n, 3, rng)
    close(gram.dot(coef), K @ coef, dtype)
    close(gram.dot(coef[:, 0]), K @ coef[:, 0], dtype)
    index = np.flatnonzero(coef[:, 1])
    target = rng.normal(size=n)
    expected = target - K @ coef[:, 1]
    gram.subtract(index, coef[index, 1], target)
    close(target, expected, dtype)
    forms = np.einsum("jt,ijk,kt->i", coef, each, coef)
    close(gram.kernel_forms(coef).sum(axis=1), forms, dtype)
    close(gram.kernel_forms(coef[:, 0]).sum(axis=1), coef[:, 0] @ each @ coef[:, 0], dtype)


@every_dictionary
@every_layout
@both
@few
@given(seed=seeds, n=sizes, p=sizes, kind=st.sampled_from(POSITIVE), pair_normalized=st.booleans())
def test_contributions_of_kernels_add_up(kernels, make, dtype, seed, n, p, kind, pair_normalized):
    kernels, X, H, rng = problem(kernels, make, kind, n, seed)
    Z, HZ = make(p, rng), gates(kind, p, len(kernels), rng)
    coef = rng.normal(size=(p, 2))
    with layout_of(make):
        gram = GatedGram(kernels, Z, HZ, dtype=dtype, pair_normalized=pair_normalized)
    kernel = GatedKernel(kernels, ConstantGate(), np.ones(len(kernels)), pair_normalized)
    expansion = gram.expansion(kernel, coef, np.array([1.0, 2.0]))
    points = Points.make(gram.plan, X, H)
    each = parts(kernels, X, H, Z, HZ, pair_normalized)
    contributions = expansion.contributions(points)
    close(contributions, np.einsum("ijk,kt->jit", each, coef), dtype)
    close(expansion.at(points), contributions.sum(axis=1) + np.array([1.0, 2.0]), dtype)
    close(mixing.block(points, gram.points), each.sum(axis=0), dtype)


@every_dictionary
@every_layout
@few
@given(seed=seeds, n=st.integers(1, 5), kind=st.sampled_from(GATES), tasks=st.integers(1, 2))
def test_gate_gradient_is_the_slope_of_the_dual(kernels, make, seed, n, kind, tasks):
    kernels, X, H, rng = problem(kernels, make, kind, n, seed)
    coef = coefficients(n, tasks, rng)
    forms = parts(kernels, X, np.ones((n, len(kernels)))) * (coef @ coef.T)

    def dual(H):
        H = H.reshape(n, len(kernels), -1)
        return -0.5 * np.einsum("jir,kir,ijk->", H, H, forms)

    with layout_of(make):
        gram = GatedGram(kernels, X, H, dtype="float64")
    numeric = np.empty(H.shape)
    for place in np.ndindex(H.shape):
        step = np.zeros(H.shape)
        step[place] = 0.1
        # The dual value is quadratic in the gates: central differences are exact.
        numeric[place] = (dual(H + step) - dual(H - step)) / 0.2
    gradient = gram.gate_gradient(coef[:, 0] if tasks == 1 else coef)
    assert_allclose(gradient.reshape(H.shape), numeric, rtol=1e-7, atol=1e-9)
    # The gradient in log h sums up to the quadratic form.
    assert_allclose((gradient.reshape(H.shape) * H).sum(), -gram.kernel_forms(coef).sum())


@every_dictionary
@every_layout
@few
@given(seed=seeds, n=st.integers(2, 15), kind=st.sampled_from(GATES))
def test_matrix_is_positive_semidefinite(kernels, make, seed, n, kind):
    kernels = [kernel for kernel in kernels if type(kernel).__name__ != "Sigmoid"]
    kernels, X, H, _ = problem(kernels, make, kind, n, seed)
    with layout_of(make):
        K = GatedGram(kernels, X, H, dtype="float64").rows(np.arange(n))
    values = np.linalg.eigvalsh(K)
    assert values[0] >= -1e-10 * max(values[-1], 1.0)


@every_dictionary
@few
@given(data=st.data(), seed=seeds, n=sizes, kind=st.sampled_from(GATES))
def test_the_order_of_kernels_does_not_matter(kernels, data, seed, n, kind):
    kernels, X, H, _ = problem(kernels, dense, kind, n, seed)
    order = data.draw(st.permutations(range(len(kernels))))
    shuffled = GatedGram([kernels[i] for i in order], X, H[:, order], dtype="float64")
    expected = GatedGram(kernels, X, H, dtype="float64")
    close(shuffled.rows(np.arange(n)), expected.rows(np.arange(n)), "float64")
    coef = np.random.default_rng(seed).normal(size=n)
    close(shuffled.kernel_forms(coef), expected.kernel_forms(coef)[list(order)], "float64")


@every_dictionary
@both
@few
@given(seed=seeds, n=st.integers(2, 20), kinds=st.lists(st.sampled_from(GATES), max_size=3))
def test_gates_move(kernels, dtype, seed, n, kinds):
    kernels, X, H, rng = problem(kernels, dense, "rank 1", n, seed)
    inner = InnerProducts(X, dtype=dtype, keep=bool(seed % 2))
    gram = inner.gated(kernels, H)
    coef = rng.normal(size=n)
    for kind in ["constant", *kinds]:
        gram.rows(np.arange(n))
        gram.dot(coef)
        gram.whole.sum()
        H = gates(kind, n, len(kernels), rng)
        gram = gram.regated(H)
        assert gram.inner is inner
        assert gram.regated(H.copy()) is gram
        K = parts(kernels, X, H).sum(axis=0)
        close(gram.rows(np.arange(n)), K, dtype)
        close(gram.dot(coef), K @ coef, dtype)
        close(gram.diag(), K.diagonal(), dtype)
        close(gram.whole, K, dtype)


def test_no_gates_are_the_uniform_combination():
    kernels, X, _, _ = problem(DICTIONARIES["one view"], dense, "rank 1", 9, 0)
    K = np.mean([kernel(X) for kernel in kernels], axis=0)
    close(GatedGram(kernels, X).rows(np.arange(9)), K, "float32")


def test_equal_kernels_under_equal_gates_are_one_kernel():
    X = dense(9, np.random.default_rng(0))
    for pair_normalized in (False, True):
        gram = GatedGram([RBF(0.1)] * 4, X, dtype="float64", pair_normalized=pair_normalized)
        assert_allclose(gram.rows(np.arange(9)), RBF(0.1)(X), rtol=1e-10)


def test_closeness_does_not_depend_on_where_zero_is():
    X = dense(20, np.random.default_rng(0)) + 1e3
    gram = GatedGram([RBF(0.1), RBF(0.7)], X, dtype="float32")
    assert_allclose(
        gram.rows(np.arange(20)),
        (rbf_kernel(X, gamma=0.1) + rbf_kernel(X, gamma=0.7)) / 2,
        atol=1e-4,
    )


@both
@pytest.mark.parametrize("low", [-24, -16, -10, -6, -4])
def test_a_ladder_equals_separate_kernels(low, dtype):
    X = short_rows(25, np.random.default_rng(0))
    ladder = rbf_ladder(low, 1)
    for i, kernel in enumerate(ladder):
        H = np.zeros((25, len(ladder)))
        H[:, i] = 1.0
        K = GatedGram(ladder, X, H, dtype=dtype).rows(np.arange(25))
        atol = 5e-5 if dtype == "float32" else 1e-8
        assert_allclose(K, rbf_kernel(X, gamma=kernel.gamma), atol=atol)


@both
@few
@given(data=st.data(), seed=seeds)
def test_any_gammas_in_any_order_equal_separate_kernels(dtype, data, seed):
    gammas = data.draw(st.lists(st.sampled_from([0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 0.3]), min_size=1))
    rng = np.random.default_rng(seed)
    X, H = short_rows(12, rng), rng.random((12, len(gammas)))
    K = GatedGram([RBF(gamma) for gamma in gammas], X, H, dtype=dtype).rows(np.arange(12))
    expected = sum(
        np.outer(h, h) * rbf_kernel(X, gamma=g) for h, g in zip(H.T, gammas, strict=True)
    )
    close(K, expected, dtype)


@pytest.mark.parametrize("make", [dense, short_rows, few_entries, wide])
@pytest.mark.parametrize("kind", ["constant", "rank 3"])
@pytest.mark.parametrize("keep", [False, True])
def test_several_tiles_on_several_threads(make, kind, keep):
    n = 3 * TILE + 7
    kernels, X, H, rng = problem(DICTIONARIES["views"], make, kind, n, 0)
    rows, coef = rng.permutation(n)[:40], rng.normal(size=n)
    with threads(3), layout_of(make):
        gram = InnerProducts(X, dtype="float64", keep=keep).gated(kernels, H)
        K = parts(kernels, X[rows], H[rows], X, H).sum(axis=0)
        close(gram.rows(rows), K, "float64")
        target = np.zeros(n)
        gram.subtract(rows, coef[:40], target)
        close(target, -coef[:40] @ K, "float64")
        close(gram.dot(coef)[rows], K @ coef, "float64")
        trust = H.reshape(n, len(kernels), -1)
        said = (trust * gram.kernel_sums(coef)[:, :, :, 0]).sum(axis=(1, 2))
        close(said[rows], K @ coef, "float64")


@every_dictionary
@every_layout
@pytest.mark.parametrize("stored", [False, True])
def test_some_samples_have_the_values_of_the_whole_matrix(kernels, make, stored):
    kernels, X, H, _ = problem(kernels, make, POSITIVE[0], 12, 0)
    rows = np.array([3, 11, 0, 4])
    expected = parts(kernels, X, H).sum(axis=0)[np.ix_(rows, rows)]
    with layout_of(make):
        gram = GatedGram(kernels, X, H)
        if stored:
            assert gram.whole.shape == (12, 12)
        part = gram.take(rows)
        for found in (part.block(np.arange(4)), part.whole):
            assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())
