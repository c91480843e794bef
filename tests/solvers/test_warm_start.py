"""Warm starts from other costs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from solver_cases import LOSSES, assert_solves, dual_value, make, on_stored, solve

from lokl.kernels import RBF
from lokl.solvers import Exact, Machines, epsilon_insensitive, hinge
from lokl.solvers.machines import still_optimal, warm_start

losses = pytest.mark.parametrize("loss", LOSSES)
cases = given(seed=st.integers(0, 2**16), ratio=st.floats(0.05, 20.0))


@losses
@settings(max_examples=10)
@cases
def test_a_start_at_a_higher_cost_is_feasible_and_no_worse(loss, seed, ratio):
    K, before = make(seed, loss, C=0.5)
    _, now = make(seed, loss, C=0.5 * max(ratio, 1.0))
    last = solve(K, before)
    start = warm_start(last, before, now)
    np.testing.assert_allclose(now.feasible(start), start, atol=1e-9)
    assert dual_value(K, now, start) >= dual_value(K, now, last.coef) - 1e-9


@losses
@settings(max_examples=10)
@cases
def test_warm_started_machines_solve_their_own_problems(loss, seed, ratio):
    K, before = make(seed, loss, C=0.5)
    _, now = make(seed, loss, C=0.5 * ratio)
    solver = Exact(tol=1e-9)
    gram = on_stored(solver, K)
    earlier = Machines(solver, [before])
    earlier.solve(gram)
    dual = Machines(solver, [now]).warm_start(earlier).solve(gram).duals[0]
    assert_solves(K, now, dual, gap=1e-6)


def test_machines_of_other_problems_are_not_a_start():
    K, problem = make(0, "hinge")
    solver = Exact(tol=1e-9)
    gram = on_stored(solver, K)
    unsolved = Machines(solver, [problem])
    two = Machines(solver, [problem, problem])
    two.solve(gram)
    for earlier in (unsolved, two):
        dual = Machines(solver, [problem]).warm_start(earlier).solve(gram).duals[0]
        assert_solves(K, problem, dual, gap=1e-6)


@losses
@settings(max_examples=10)
@cases
def test_a_solution_is_reused_only_if_it_is_optimal(loss, seed, ratio):
    K, before = make(seed, loss, C=5.0)
    _, now = make(seed, loss, C=5.0 * ratio)
    kept = still_optimal(solve(K, before), now, 1e-6)
    if kept is not None:
        assert_solves(K, now, kept, gap=1e-4)


def test_costs_without_a_sample_at_its_bound_change_nothing():
    K, before = make(0, "hinge", C=1e4)
    _, now = make(0, "hinge", C=1e5)
    last = solve(K + np.eye(len(K)), before)
    assert np.abs(last.coef).max() < before.upper.max()
    kept = still_optimal(last, now, 1e-6)
    assert kept is not None
    assert kept.coef is last.coef
    np.testing.assert_allclose(kept.objective, last.objective)
    np.testing.assert_allclose(kept.decision, last.decision)


def test_machines_on_the_same_matrix_reuse_their_solution():
    K, before = make(0, "hinge", C=1e4)
    _, now = make(0, "hinge", C=1e5)
    solver = Exact(tol=1e-9)
    gram = on_stored(solver, K + np.eye(len(K)))
    earlier = Machines(solver, [before])
    last = earlier.solve(gram).duals[0]
    resumed = Machines(solver, [now]).warm_start(earlier, same_matrix=True)
    first, second = (resumed.solve(gram).duals[0] for _ in range(2))
    assert first.coef is last.coef
    assert_solves(K + np.eye(len(K)), now, second, gap=1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 0.01])
def test_a_start_that_returns_to_zero_leaves_no_support(epsilon):
    K, problem = make(0, "absolute", n=30)
    solver = Exact(tol=1e-9)
    gram = on_stored(solver, K)
    start = solver.solve(gram, problem).coef
    constant = epsilon_insensitive(np.ones(30), np.ones(30), epsilon)
    dual = solver.solve(gram, constant, start)
    assert np.any(start)
    assert not dual.coef.any()
    # Sums of kernel values leave rounding errors, which differ between processors.
    assert dual.intercept == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("counts", [(16, 14), (21, 9), (7, 3)])
def test_the_intercept_of_a_saturated_svm_is_in_the_middle(counts):
    # Balanced weights put every sample at its bound, and sums of them are equal but for rounding.
    y = np.repeat([-1.0, 1.0], counts)
    X = np.random.RandomState(0).normal(size=(len(y), 3)) + 0.5 * y[:, np.newaxis]
    K = RBF(0.3)(X)
    cost = 1e-3 * len(y) / (2.0 * np.repeat(counts, counts))
    solver = Exact(tol=1e-8)
    dual = solver.solve(on_stored(solver, K), hinge(y, cost))
    np.testing.assert_allclose(np.abs(dual.coef), cost)
    raw = K @ dual.coef
    # Between the largest of one class and the smallest of the other that may still be raised.
    low, high = (y - raw)[y < 0].max(), (y - raw)[y > 0].min()
    np.testing.assert_allclose(dual.intercept, 0.5 * (low + high))
