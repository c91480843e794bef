"""Multiplicative weights: certificates, published steps, and the solutions of other solvers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from lokl.gram import GatedGram
from lokl.kernels import RBF, Linear, Precomputed, Sigmoid
from lokl.solvers import MWU, Exact, as_squared_hinge, hinge, solve_svc, solve_svr, squared_hinge
from lokl.solvers.mwu import _IDLE_ROUNDS, _most_fetches, smallest


def blobs(n=80, seed=0, apart=0.7):
    rng = np.random.RandomState(seed)
    y = np.where(rng.uniform(size=n) < 0.4, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return rng.normal(size=(n, 3)) + apart * y[:, np.newaxis], y


def gram_of(X, kernel=None, **options):
    return GatedGram([(kernel or RBF(0.5)).bind(X)], X, dtype="float64", **options)


def unfinished(solver, gram, problem):
    with pytest.warns(ConvergenceWarning, match=r"MWU .*\d+ rounds"):
        return solver.solve(gram, problem)


steps = pytest.mark.parametrize("step", ["pairwise", "faithful"])


@steps
@given(
    seed=st.integers(0, 1000),
    C=st.sampled_from([0.1, 1.0, 30.0]),
    epsilon=st.sampled_from([0.1, 0.01]),
)
def test_the_dual_value_is_within_epsilon_of_the_optimum(step, seed, C, epsilon):
    X, y = blobs(50, seed)
    gram, problem = gram_of(X), squared_hinge(y, C)
    found = MWU(epsilon, step).solve(gram, problem)
    optimum = Exact(tol=1e-10).solve(gram, problem).objective
    assert found.converged
    assert 0 <= found.gap <= epsilon * (found.objective + found.gap)
    assert found.objective <= optimum * (1 + 1e-9)
    assert optimum <= found.objective + found.gap + 1e-9
    # Two hulls of equal mass, on the right sides.
    assert abs(found.coef.sum()) <= 1e-12 * np.abs(found.coef).sum()
    assert (found.coef * y >= 0).all()


@steps
def test_at_every_round_the_optimum_lies_between_the_two_values(step):
    X, y = blobs()
    gram, problem = gram_of(X), squared_hinge(y, 1.0)
    optimum = Exact(tol=1e-10).solve(gram, problem).objective
    lower = []
    for rounds in (0, 1, 2, 3, 5, 8, 13, 21, 34):
        found = unfinished(MWU(1e-6, step, max_iter=rounds), gram, problem)
        assert found.n_iter == rounds
        assert (
            found.objective <= optimum * (1 + 1e-12) <= (found.objective + found.gap) * (1 + 1e-9)
        )
        lower.append(found.objective)
    if step == "pairwise":
        assert (np.diff(lower) >= -1e-12).all()


def test_libsvm_on_the_ridged_matrix_is_the_same_svm():
    X, y = blobs(300)
    K = RBF(0.5)(X)
    for C in (0.3, 3.0):
        found = MWU(0.01).solve(gram_of(X), squared_hinge(y, C))
        plain = SVC(kernel="precomputed", C=1e10, tol=1e-8).fit(K + np.eye(len(K)) / C, y)
        u = np.zeros(len(y))
        u[plain.support_] = plain.dual_coef_[0]
        value = np.abs(u).sum() - 0.5 * u @ (K + np.eye(len(K)) / C) @ u
        assert found.objective == pytest.approx(value, rel=0.01)
        decision = K @ u + plain.intercept_
        assert (np.sign(found.decision) == np.sign(decision)).mean() >= 0.99


def test_the_published_step_is_frank_wolfe():
    X, y = blobs(40)
    C, rounds = 2.0, 60
    G = np.outer(y, y) * RBF(0.5)(X) + np.eye(len(y)) / C
    alpha = np.zeros(len(y))
    for side in (1.0, -1.0):
        alpha[np.flatnonzero(y == side)[0]] = 0.5
    for t in range(1, rounds + 1):
        g = G @ alpha
        vertex = np.zeros(len(y))
        for side in (1.0, -1.0):
            members = np.flatnonzero(y == side)
            vertex[members[np.argmin(g[members])]] = 0.5
        alpha += (vertex - alpha) / (t + 1)
    solver = MWU(1e-9, "faithful", max_iter=rounds)
    found = unfinished(solver, gram_of(X), squared_hinge(y, C))
    np.testing.assert_allclose(found.coef, y * alpha / (alpha @ G @ alpha), atol=1e-10)


@given(seed=st.integers(0, 100), scale=st.sampled_from([2.0**-10, 0.5, 64.0]))
def test_scaling_kernel_and_cost_against_each_other_changes_nothing(seed, scale):
    """By powers of two, which do not change the rounding that decides between equal samples."""
    X, y = blobs(40, seed)
    K = RBF(0.5)(X)
    one = solve_svc(K, None, y, 1.0, solver=MWU(1e-3))
    two = solve_svc(scale * K, None, y, 1.0 / scale, solver=MWU(1e-3))
    assert one.n_iter == two.n_iter
    np.testing.assert_allclose(two.decision, one.decision, atol=1e-8)


@steps
def test_a_smaller_epsilon_gives_a_smaller_gap(step):
    X, y = blobs(100)
    gaps = []
    for epsilon in (0.3, 0.1, 0.03, 0.01):
        found = MWU(epsilon, step).solve(gram_of(X), squared_hinge(y, 1.0))
        gaps.append(found.gap / (found.objective + found.gap))
    assert (np.diff(gaps) < 0).all()


@steps
@pytest.mark.parametrize("kernel", [Linear(), RBF(0.5)], ids=repr)
def test_two_rows_of_memory_are_enough(step, kernel):
    X, y = blobs(60)
    problem = squared_hinge(y, 1.0)
    room = 2 * len(y) * 8 / 2**20 + 1e-6
    full = MWU(0.01, step).solve(gram_of(X, kernel), problem)
    small = MWU(0.01, step).solve(gram_of(X, kernel, cache_size=room), problem)
    assert small.n_iter == full.n_iter
    np.testing.assert_allclose(small.coef, full.coef, atol=1e-10)


def test_a_warm_start_is_used():
    X, y = blobs(200, apart=0.4)
    gram, problem = gram_of(X), squared_hinge(y, 1.0)
    cold = MWU(1e-3).solve(gram, problem)
    warm = MWU(1e-3).solve(gram, problem, start=cold.coef)
    assert warm.n_iter == 0
    np.testing.assert_allclose(warm.coef, cold.coef, rtol=1e-9)


def test_it_stops_above_a_ceiling():
    X, y = blobs(100)
    gram, problem = gram_of(X), squared_hinge(y, 1.0)
    full = MWU(1e-4).solve(gram, problem)
    stopped = MWU(1e-4).solve(gram, problem, ceiling=0.8 * full.objective)
    assert stopped.objective > 0.8 * full.objective
    assert stopped.n_iter < full.n_iter


def test_samples_without_cost_have_no_coefficient_but_a_decision():
    X, y = blobs(60)
    cost = np.ones(60)
    cost[::4] = 0.0
    found = MWU(1e-3).solve(gram_of(X), squared_hinge(y, cost))
    kept = cost > 0
    alone = MWU(1e-3).solve(gram_of(X[kept]), squared_hinge(y[kept], 1.0))
    assert (found.coef[~kept] == 0).all()
    np.testing.assert_allclose(found.coef[kept], alone.coef, atol=1e-10)
    outside = RBF(0.5)(X[~kept], X) @ found.coef + found.intercept
    np.testing.assert_allclose(found.decision[~kept], outside, atol=1e-10)


def test_costs_may_differ_by_sample():
    X, y = blobs(80)
    cost = np.random.RandomState(1).uniform(0.2, 5.0, size=80)
    found = MWU(1e-3).solve(gram_of(X), squared_hinge(y, cost))
    optimum = Exact(tol=1e-10).solve(gram_of(X), squared_hinge(y, cost))
    assert found.objective == pytest.approx(optimum.objective, rel=1e-3)


def test_one_class_is_a_constant():
    X = blobs(10)[0]
    found = MWU().solve(gram_of(X), squared_hinge(np.ones(10), 1.0))
    assert (found.coef == 0).all()
    assert found.intercept == 1.0


@steps
def test_one_sample_a_class(step):
    X, y = np.array([[-1.0], [1.0]]), np.array([-1.0, 1.0])
    found = MWU(step=step).solve(gram_of(X, Linear()), squared_hinge(y, 1.0))
    exact = Exact(tol=1e-10).solve(gram_of(X, Linear()), squared_hinge(y, 1.0))
    np.testing.assert_allclose(found.coef, exact.coef, rtol=1e-6)


def test_regression_is_left_to_the_exact_solver():
    X, y = blobs(60)
    target = X[:, 0] + 0.1 * y
    one = solve_svr(RBF(0.5), X, target, solver=MWU(tol=1e-8))
    two = solve_svr(RBF(0.5), X, target, solver="exact", tol=1e-8)
    np.testing.assert_allclose(one.coef, two.coef, atol=1e-8)


def test_the_hinge_becomes_its_square_at_equal_cost():
    y = np.array([1.0, -1.0, 1.0, -1.0])
    cost = np.array([1.0, 2.0, 4.0, 0.0])
    made, known = as_squared_hinge(hinge(y, cost)), squared_hinge(y, cost)
    for name in ("target", "lower", "upper", "ridge"):
        np.testing.assert_array_equal(getattr(made, name), getattr(known, name))
    again = as_squared_hinge(made)
    np.testing.assert_array_equal(again.ridge, made.ridge)
    heavier = made.weighted(np.array([2.0, 1.0, 1.0, 1.0]))
    np.testing.assert_allclose(heavier.ridge[:3], [0.5, 0.5, 0.25])


@pytest.mark.parametrize(
    ("solver", "message"),
    [
        (MWU(epsilon=0.0), "epsilon .*0 and 1, got 0.0"),
        (MWU(epsilon=np.nan), "epsilon .*0 and 1"),
        (MWU(step="fast"), "step .*'pairwise', 'faithful', got 'fast'"),
    ],
)
def test_bad_settings_are_named(solver, message):
    X, y = blobs(10)
    with pytest.raises(ValueError, match=message):
        solver.solve(gram_of(X), squared_hinge(y, 1.0))


def test_the_hinge_itself_is_refused():
    X, y = blobs(10)
    with pytest.raises(ValueError, match="squared_hinge"):
        MWU().solve(gram_of(X), hinge(y, 1.0))


def test_an_indefinite_kernel_is_refused():
    X, y = blobs(40)
    K = Sigmoid(3.0, -2.0)(X)
    K -= 5.0 * np.eye(len(K))
    gram = GatedGram([Precomputed(K)], np.arange(40.0)[:, np.newaxis], dtype="float64")
    with pytest.raises(ValueError, match="not positive semidefinite"):
        MWU(1e-6).solve(gram, squared_hinge(y, 10.0))


def hopeless(n=40):
    """Signs in few columns, and costs that differ by forty orders of magnitude."""
    rng = np.random.RandomState(1)
    X = rng.choice([-1.0, 1.0], size=(n, 5)).astype(np.float32)
    X[:, 3:] = X[:, :2]
    y = np.where(X[:, 0] * X[:, 2] > 0, 1.0, -1.0)
    y[:5] = -y[:5]
    return X, y, rng.permutation(10.0 ** np.linspace(-20, 20, n))


@steps
def test_rounds_without_progress_end(step):
    X, y, cost = hopeless()
    with pytest.warns(ConvergenceWarning, match=r"MWU .*\d+ rounds .*raise epsilon"):
        found = MWU(0.1, step).solve(gram_of(X), squared_hinge(y, cost))
    assert found.n_iter <= 5 * _IDLE_ROUNDS
    assert not found.converged


def test_rows_that_are_computed_too_often_end_the_rounds(monkeypatch):
    monkeypatch.setattr("lokl.solvers.mwu._most_fetches", lambda n_samples: 7)
    X, y = blobs(60)
    gram = gram_of(X, cache_size=0.001)
    with pytest.warns(ConvergenceWarning, match=r"MWU .*cache_size=0\.001 MB.* 7 times"):
        MWU(0.001, cache_size=0.001).solve(gram, squared_hinge(y, 100.0))


def test_limits_are_far_from_what_scaled_data_needs():
    X, y = blobs(200)
    gram = gram_of(X, cache_size=0.01)
    for C in (1.0, 1000.0):
        found = MWU(0.001).solve(gram, squared_hinge(y, C))
        assert found.converged
        assert found.n_iter < _most_fetches(200) / 2


@steps
def test_a_tiny_matrix_is_stored_as_a_whole_whatever_the_budget(step, monkeypatch):
    X, y = blobs(40)
    problem = squared_hinge(y, np.full(40, 10.0))
    expected = MWU(0.01, step=step).solve(gram_of(X), problem)
    small = gram_of(X, cache_size=1e-3)
    assert small.storable < 40
    monkeypatch.setattr(small, "store", None)  # no row is computed by itself
    found = MWU(0.01, step=step).solve(small, problem)
    # Values of single rows and of the whole differ in the last digit.
    np.testing.assert_allclose(found.coef, expected.coef, atol=1e-9)


@given(size=st.integers(1, 3000), count=st.integers(1, 40), seed=st.integers(0, 1000))
def test_the_smallest_of_many_values_are_those_of_a_full_sort(size, count, seed):
    # Rounded, so that some values are equal.
    values = np.round(np.random.RandomState(seed).normal(size=size), 2)
    found = smallest(values, count)
    assert len(set(found)) == len(found) == min(size, count)
    np.testing.assert_array_equal(np.sort(values[found]), np.sort(values)[:count])
