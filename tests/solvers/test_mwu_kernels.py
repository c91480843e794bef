"""Multiplicative weights with several kernels against the convex program they solve."""

import clarabel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from lokl.gram import GatedGram
from lokl.kernels import RBF, Linear, Polynomial
from lokl.solvers import MWU, squared_hinge
from lokl.solvers.mwu import _KernelRounds, learn_kernel_weights


def case(n=40, seed=0, kernels=None):
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * X[:, 2] + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    kernels = kernels or [Linear(), Polynomial(2), RBF(0.5)]
    bound = [kernel.normalized("mean_diag").bind(X) for kernel in kernels]
    gram = GatedGram(bound, X, np.ones((n, len(bound))), dtype="float64")
    return gram, [kernel(X) for kernel in bound], y


def conic_optimum(grams, y, C):
    """``max 1'a - t / 2 - |a|^2 / (2 C)`` with ``t >= a'Y K_i Y a``, ``y'a = 0``, ``a >= 0``."""
    n = len(y)
    size = n + 1
    P = np.zeros((size, size))
    P[:n, :n] = np.eye(n) / C
    cost = np.concatenate([-np.ones(n), [0.5]])
    rows = [np.concatenate([y, [0.0]])[np.newaxis], -np.eye(n, size)]
    rhs, cones = [np.zeros(1), np.zeros(n)], [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(n)]
    for K in grams:
        values, vectors = np.linalg.eigh(np.outer(y, y) * K)
        kept = values > 1e-10 * values[-1]
        root = (vectors[:, kept] * np.sqrt(values[kept])).T
        block = np.zeros((2 + len(root), size))
        block[:2, n] = -1.0
        block[2:, :n] = -2.0 * root
        right = np.zeros(2 + len(root))
        right[:2] = 1.0, -1.0
        rows.append(block)
        rhs.append(right)
        cones.append(clarabel.SecondOrderConeT(2 + len(root)))
    options = clarabel.DefaultSettings()
    options.verbose = False
    A = sparse.csc_matrix(np.vstack(rows))
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(P), cost, A, np.concatenate(rhs), cones, options
    )
    return -solver.solve().obj_val


@settings(max_examples=8)
@given(seed=st.integers(0, 1000), C=st.sampled_from([0.5, 5.0]))
def test_the_optimum_of_the_conic_solver_lies_between_the_values_at_every_check(seed, C):
    gram, grams, y = case(seed=seed)
    optimum = conic_optimum(grams, y, C)
    for found in learn_kernel_weights(gram, squared_hinge(y, C), epsilon=0.02):
        assert found.lower <= optimum * (1 + 1e-6)
        assert optimum <= found.upper * (1 + 1e-6)
        assert found.weights.sum() == pytest.approx(1.0, abs=1e-12)
        assert (found.weights >= 0).all()
        assert found.dual.objective >= found.lower * (1 - 1e-12)
    assert found.dual.converged
    assert found.lower == pytest.approx(optimum, rel=0.02)


@given(seed=st.integers(0, 1000), rounds=st.integers(1, 40), relative=st.booleans())
def test_sums_over_the_rounds_are_what_they_stand_for(seed, rounds, relative):
    gram, grams, y = case(30, seed)
    problem = squared_hinge(y, 2.0)
    state = _KernelRounds(gram, problem, cache_size=1)
    state.advance(rounds, 5.0, relative)
    assert state.rounds == rounds
    assert state.a[y > 0].sum() == pytest.approx(rounds / 2)
    assert state.a[y < 0].sum() == pytest.approx(rounds / 2)
    G = [np.outer(y, y) * K + np.eye(len(y)) / 2.0 for K in grams]
    np.testing.assert_allclose(state.v, [g @ state.a for g in G], atol=1e-9 * rounds)
    np.testing.assert_allclose(state.Q, [state.a @ g @ state.a for g in G], rtol=1e-9)


def test_two_rows_of_memory_are_enough():
    gram, _, y = case(50)
    problem = squared_hinge(y, 1.0)
    full = list(learn_kernel_weights(gram, problem, epsilon=0.05))
    small = list(learn_kernel_weights(gram, problem, epsilon=0.05, cache_size=1e-9))
    np.testing.assert_allclose(small[-1].dual.coef, full[-1].dual.coef, atol=1e-10)


def test_equal_kernels_behave_like_one():
    gram, _, y = case(40, kernels=[RBF(0.5)] * 3)
    one = GatedGram(gram.kernels[:1], gram.inner.X, np.ones((40, 1)), dtype="float64")
    problem = squared_hinge(y, 1.0)
    *_, several = learn_kernel_weights(gram, problem, epsilon=0.05)
    np.testing.assert_allclose(several.weights, 1 / 3)
    *_, single = learn_kernel_weights(one, problem, epsilon=0.05)
    # More kernels learn faster, but with nothing to learn the samples are the same.
    np.testing.assert_allclose(several.dual.coef, single.dual.coef, atol=1e-10)


def test_one_kernel_is_frank_wolfe():
    gram, grams, y = case(40, kernels=[RBF(0.5)])
    *_, found = learn_kernel_weights(gram, squared_hinge(y, 1.0), epsilon=0.05)
    G = np.outer(y, y) * grams[0] + np.eye(len(y))
    alpha, g = np.zeros(len(y)), np.zeros(len(y))
    for t in range(1, found.dual.n_iter + 1):
        vertex = np.zeros(len(y))
        for side in (1.0, -1.0):
            members = np.flatnonzero(y == side)
            vertex[members[np.argmin(g[members])]] = 0.5
        alpha += (vertex - alpha) / t
        g = G @ alpha
    np.testing.assert_allclose(found.dual.coef, y * alpha / (alpha @ G @ alpha), atol=1e-8)


def test_the_scale_free_rate_does_not_depend_on_scales():
    gram, _, y = case(40)
    scaled = GatedGram(gram.kernels, gram.inner.X, np.full((40, 3), np.sqrt(7.0)), dtype="float64")
    *_, one = learn_kernel_weights(gram, squared_hinge(y, 1.0), epsilon=0.05)
    *_, two = learn_kernel_weights(scaled, squared_hinge(y, 1.0 / 7.0), epsilon=0.05)
    assert one.dual.n_iter == two.dual.n_iter
    np.testing.assert_allclose(two.weights, one.weights, atol=1e-9)
    np.testing.assert_allclose(two.dual.decision, one.dual.decision, atol=1e-8)


def test_the_published_rate_has_a_budget_of_rounds():
    gram, grams, y = case(30)
    unit = GatedGram(
        gram.kernels, gram.inner.X, np.full((30, 3), 1 / np.sqrt(30.0)), dtype="float64"
    )
    with pytest.warns(ConvergenceWarning, match=r"after \d+ rounds"):
        *_, found = learn_kernel_weights(
            unit, squared_hinge(y, 1000.0), epsilon=0.2, rate="faithful"
        )
    assert found.dual.n_iter == np.ceil(2 * np.log(30) / 0.04)
    optimum = conic_optimum([K / 30.0 for K in grams], y, 1000.0)
    assert found.lower <= optimum <= found.upper
    # At a low cost the gap is reached at once, and the rounds continue.
    *_, found = learn_kernel_weights(unit, squared_hinge(y, 0.1), epsilon=0.2, rate="faithful")
    assert found.dual.converged
    assert found.dual.n_iter == np.ceil(2 * np.log(30) / 0.04)


def test_the_svm_under_learned_weights_is_that_of_the_single_kernel_solver():
    gram, _, y = case(60)
    problem = squared_hinge(y, 1.0)
    *_, found = learn_kernel_weights(gram, problem, epsilon=0.005)
    shared = gram.regated(np.tile(np.sqrt(found.weights), (60, 1)))
    alone = MWU(0.001).solve(shared, problem)
    assert found.dual.objective == pytest.approx(alone.objective, rel=0.006)


def test_rows_that_are_computed_too_often_end_the_rounds(monkeypatch):
    monkeypatch.setattr("lokl.solvers.mwu._most_fetches", lambda n_samples: 5)
    gram, _, y = case(60)
    message = r"\d+ rounds .*cache_size=0\.001 MB.* 5 times"
    with pytest.warns(ConvergenceWarning, match=message):
        *_, found = learn_kernel_weights(
            gram, squared_hinge(y, 1.0), epsilon=0.01, cache_size=0.001
        )
    assert 0 < found.lower < found.upper
