"""Gates that divide the samples: a matrix of blocks is the matrix that it stands for."""

import tracemalloc
from unittest.mock import patch

import numpy as np
import pytest
from gram_cases import LAYOUTS, close, coefficients, every_dictionary, layout_of, problem, threads
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from lokl import CLMKLClassifier
from lokl.gram import GatedGram, InnerProducts
from lokl.gram.block_gram import BlockGram
from lokl.gram.plan import ranks_of
from lokl.kernels import RBF, Linear, rbf_ladder
from lokl.solvers import MWU, Exact
from lokl.solvers.problem import hinge, squared_hinge

seeds = st.integers(0, 2**16)
sizes = st.integers(1, 20)


def divided(n, m, rng, n_groups=3):
    """Gates of samples in one group each; some samples trust nothing, some not all kernels."""
    H = np.eye(n_groups)[rng.integers(n_groups, size=n)][:, np.newaxis] * rng.random((m, n_groups))
    H[rng.random(n) < 0.1] = 0.0
    H[:, 0][rng.random(n) < 0.2] = 0.0
    return H


@given(seed=seeds, n=sizes)
def test_ranks_are_found_where_gates_divide(seed, n):
    rng = np.random.default_rng(seed)
    H = divided(n, 2, rng)
    ranks = ranks_of(H)
    for j, rank in enumerate(ranks):
        used = np.flatnonzero((H[j] != 0).any(axis=0))
        assert used.tolist() == ([] if rank < 0 else [rank])
    assert ranks_of(H[:, :, :1]) is None
    assert ranks_of(np.where(np.arange(n)[:, None, None] == n - 1, 1.0, H)) is None


@every_dictionary
@settings(max_examples=15)
@given(
    make=st.sampled_from(list(LAYOUTS)),
    dtype=st.sampled_from(["float32", "float64"]),
    seed=seeds,
    n=sizes,
    megabytes=st.sampled_from([512, 1e-6]),
)
def test_blocks_are_the_matrix_they_stand_for(kernels, make, dtype, seed, n, megabytes):
    kernels, X, _, rng = problem(kernels, make, "rank 1", n, seed)
    H = divided(n, len(kernels), rng)
    with layout_of(make):
        plain = GatedGram(kernels, X, H, dtype=dtype)
        inner = InnerProducts(X, dtype=dtype, cache_size=megabytes, keep=seed % 2 == 1)
        gram = inner.gated(kernels, H)
        assert isinstance(gram, BlockGram)
        # Gates move, and come back.
        other = divided(n, len(kernels), np.random.default_rng(seed + 1))
        moved = gram.regated(2.0 * H)
        close(moved.dot(np.ones(n)), 4.0 * plain.dot(np.ones(n)), dtype)
        close(gram.regated(other).diag(), plain.regated(other).diag(), dtype)
    assert moved.regated(H).gates.shape == H.shape
    assert gram.regated(H) is gram
    everyone = np.arange(n)
    K = plain.rows(everyone).astype(float)
    rows, columns = rng.permutation(n)[: 1 + n // 2], rng.integers(n, size=4)
    close(gram.cross(rows, columns), K[np.ix_(rows, columns)], dtype)
    close(gram.block(columns), K[np.ix_(columns, columns)], dtype)
    close(gram.diag(), K.diagonal(), dtype)
    coef = coefficients(n, 2, rng)
    close(gram.dot(coef), K @ coef, dtype)
    close(gram.dot(coef[:, 0]), K @ coef[:, 0], dtype)
    index = np.flatnonzero(coef[:, 1])
    target = rng.normal(size=n)
    expected = target - K @ coef[:, 1]
    gram.subtract(index, coef[index, 1], target)
    close(target, expected, dtype)
    close(gram.kernel_forms(coef), plain.kernel_forms(coef), dtype)
    close(gram.gate_gradient(coef), plain.gate_gradient(coef), dtype)
    if megabytes > 1:
        close(gram.rows(rows), K[rows], dtype)
        close(gram.whole, K, dtype)
        close(gram.cross(rows, columns), K[np.ix_(rows, columns)], dtype)
        gram.release()
        close(gram.whole, K, dtype)


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("kernels", [rbf_ladder(-2, 0), [Linear()]], ids=["Gaussians", "linear"])
def test_machines_on_blocks_are_those_on_the_matrix(kernels, n_threads):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2300, 3))
    y = np.sign(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=len(X)))
    H = divided(len(X), len(kernels), rng, 20)
    solver, problem_ = Exact(tol=1e-4), hinge(y, 1.0)
    with threads(n_threads):
        dual = solver.solve(solver.inner_products(X).gated(kernels, H), problem_)
        plain = solver.solve(GatedGram(kernels, X, H), problem_)
        # From the coefficients of another cost.
        start = solver.solve(
            solver.inner_products(X).gated(kernels, H), problem_, np.clip(dual.coef, -0.5, 0.5)
        )
    assert dual.gap <= 1e-3 * abs(dual.objective) + 0.1
    assert_allclose(dual.objective, plain.objective, rtol=1e-5)
    assert_allclose(dual.decision, plain.decision, atol=2e-3)
    assert_allclose(start.decision, plain.decision, atol=2e-3)


def test_multiplicative_weights_take_blocks_as_well():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    H = divided(120, 2, rng)
    kernels, problem_ = [RBF(0.5), RBF(1.0)], squared_hinge(np.sign(X[:, 0]), 1.0)
    dual = MWU().solve(InnerProducts(X).gated(kernels, H), problem_)
    plain = MWU().solve(GatedGram(kernels, X, H), problem_)
    assert_allclose(dual.objective, plain.objective, rtol=0.02)


def without_blocks(self, kernels, gates=None, *, pair_normalized=False):
    return GatedGram.of(self, self.prepare(kernels, gates, pair_normalized))


@pytest.mark.parametrize("n", [150, 2200])
def test_hard_clusters_learn_the_same_with_and_without_blocks(n):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 4))
    y = X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n) > 0
    model = CLMKLClassifier(
        [RBF(0.3), RBF(1.0), Linear()], hard=True, n_clusters=8, random_state=0, tol=1e-4
    )
    fresh = rng.normal(size=(50, 4))
    model.fit(X, y)
    told = model.decision_function(fresh), model.contributions(fresh), model.weights_
    with (
        patch.object(InnerProducts, "gated", without_blocks),
        patch("lokl.gram.gated_kernel.ranks_of", lambda gates: None),
    ):
        model.fit(X, y)
        plain = model.decision_function(fresh), model.contributions(fresh), model.weights_
    for one, other in zip(told, plain, strict=True):
        assert_allclose(one, other, atol=5e-3)
    assert_allclose(told[1].sum(axis=1) + model.intercept_, told[0], atol=5e-3)


def test_nothing_is_as_large_as_the_matrix():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3)).astype(np.float32)
    y = X[:, 0] * X[:, 1] > 0
    model = CLMKLClassifier([RBF(0.5), RBF(2.0)], hard=True, n_clusters=20, random_state=0)
    model.fit(X[:300], y[:300])
    tracemalloc.start()
    model.fit(X, y)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 0.5 * 4 * len(X) ** 2
