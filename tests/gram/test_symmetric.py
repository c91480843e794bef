"""Half of a symmetric matrix is enough: the matrix of all samples, and forms of every kernel."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse

from lokl.gram import GatedGram
from lokl.kernels import RBF, AnisotropicRBF, Laplacian, Linear, Polynomial, rbf_ladder

DICTIONARIES = {
    "one": [RBF(0.3)],
    "mix": [Linear(), Polynomial(2), RBF(0.3)],
    "ladder": rbf_ladder(),
    "views": [Linear().on([0]), RBF(0.5).on([1, 2]), RBF(0.2)],
    "overlaps": [Laplacian(0.5), Laplacian(1.0).on([0, 2]), RBF(0.3)],
    "others": [Linear() * RBF(0.5), RBF(0.3)],
    "stretched": [AnisotropicRBF([0.5, 0.0, 2.0]), RBF(1.0)],
}
dictionaries = pytest.mark.parametrize("kernels", DICTIONARIES.values(), ids=DICTIONARIES)


def case(kernels, n, rank, seed, dtype="float64", layout=np.asarray):
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, 3)) * (rng.uniform(size=(n, 3)) < 0.8)
    H = rng.uniform(size=(n, len(kernels), rank))
    bound = [kernel.bind(X) for kernel in kernels]
    return X, H, bound, GatedGram(bound, layout(X), H, dtype=dtype)


def plain(X, H, kernels):
    return sum(
        np.einsum("jr,kr->jk", H[:, i], H[:, i]) * kernel(X) for i, kernel in enumerate(kernels)
    )


@dictionaries
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
@given(n=st.integers(1, 300), rank=st.integers(1, 2), seed=st.integers(0, 1000))
def test_the_whole_matrix(kernels, layout, n, rank, seed):
    X, H, bound, gram = case(kernels, n, rank, seed, layout=layout)
    assert_allclose(gram.whole, plain(X, H, bound), atol=1e-10)


@dictionaries
@given(n=st.integers(700, 1500), seed=st.integers(0, 1000))
def test_the_whole_matrix_of_more_samples(kernels, n, seed):
    X, H, bound, gram = case(kernels, n, 1, seed, dtype="float32")
    assert_allclose(gram.whole, plain(X, H, bound), atol=2e-4, rtol=1e-4)
    assert_allclose(gram.whole, gram.whole.T, atol=1e-4)


@dictionaries
@pytest.mark.parametrize("tasks", [1, 3])
@given(n=st.integers(1, 900), rank=st.integers(1, 2), seed=st.integers(0, 1000))
def test_forms(kernels, tasks, n, rank, seed):
    X, H, bound, gram = case(kernels, n, rank, seed)
    rng = np.random.RandomState(seed)
    u = rng.normal(size=(n, tasks)) * (rng.uniform(size=(n, 1)) < 0.7)
    expected = [
        [
            sum((u[:, t] * H[:, i, r]) @ K @ (u[:, t] * H[:, i, r]) for t in range(tasks))
            for r in range(rank)
        ]
        for i, K in enumerate(kernel(X) for kernel in bound)
    ]
    assert_allclose(gram.kernel_forms(u), expected, rtol=1e-8, atol=1e-8)
    assert gram.kernel_forms(u).sum() == pytest.approx(
        sum(u[:, t] @ plain(X, H, bound) @ u[:, t] for t in range(tasks)), rel=1e-8, abs=1e-8
    )


@dictionaries
def test_rows_of_every_kernel_by_itself(kernels):
    X, H, bound, gram = case(kernels, 120, 1, 0)
    rows = np.array([5, 0, 119])
    found = gram.rows_by_kernel(rows)
    assert found.shape == (3, len(bound), 120)
    for i, kernel in enumerate(bound):
        expected = np.outer(H[rows, i, 0], H[:, i, 0]) * kernel(X)[rows]
        assert_allclose(found[:, i], expected, atol=1e-12)
