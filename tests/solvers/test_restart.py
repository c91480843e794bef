"""Starts of machines at other costs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from solver_cases import LOSSES, assert_solves, dual_value, make, on_stored, solve

from lokl.solvers import Exact, Machines
from lokl.solvers.restart import restart, still_optimal

losses = pytest.mark.parametrize("loss", LOSSES)
cases = given(seed=st.integers(0, 2**16), ratio=st.floats(0.05, 20.0))


@losses
@settings(max_examples=10)
@cases
def test_a_start_at_a_higher_cost_is_feasible_and_no_worse(loss, seed, ratio):
    K, before = make(seed, loss, C=0.5)
    _, now = make(seed, loss, C=0.5 * max(ratio, 1.0))
    last = solve(K, before)
    start = restart(last, before, now)
    np.testing.assert_allclose(now.feasible(start), start, atol=1e-9)
    assert dual_value(K, now, start) >= dual_value(K, now, last.coef) - 1e-9


@losses
@settings(max_examples=10)
@cases
def test_machines_that_resume_solve_their_own_problems(loss, seed, ratio):
    K, before = make(seed, loss, C=0.5)
    _, now = make(seed, loss, C=0.5 * ratio)
    solver = Exact(tol=1e-9)
    gram = on_stored(solver, K)
    earlier = Machines(solver, [before])
    earlier.solve(gram)
    dual = Machines(solver, [now]).resume(earlier).solve(gram).duals[0]
    assert_solves(K, now, dual, gap=1e-6)


def test_machines_of_other_problems_are_no_start():
    K, problem = make(0, "hinge")
    solver = Exact(tol=1e-9)
    gram = on_stored(solver, K)
    unsolved = Machines(solver, [problem])
    two = Machines(solver, [problem, problem])
    two.solve(gram)
    for earlier in (unsolved, two):
        dual = Machines(solver, [problem]).resume(earlier).solve(gram).duals[0]
        assert_solves(K, problem, dual, gap=1e-6)


@losses
@settings(max_examples=10)
@cases
def test_an_answer_is_kept_only_where_it_is_the_answer(loss, seed, ratio):
    K, before = make(seed, loss, C=5.0)
    _, now = make(seed, loss, C=5.0 * ratio)
    kept = still_optimal(solve(K, before), now, 1e-6)
    if kept is not None:
        assert_solves(K, now, kept, gap=1e-4)


def test_costs_that_bind_nobody_change_nothing():
    K, before = make(0, "hinge", C=1e4)
    _, now = make(0, "hinge", C=1e5)
    last = solve(K + np.eye(len(K)), before)
    assert np.abs(last.coef).max() < before.upper.max()
    kept = still_optimal(last, now, 1e-6)
    assert kept is not None
    assert kept.coef is last.coef
    np.testing.assert_allclose(kept.objective, last.objective)
    np.testing.assert_allclose(kept.decision, last.decision)


def test_machines_on_the_same_matrix_keep_their_answer():
    K, before = make(0, "hinge", C=1e4)
    _, now = make(0, "hinge", C=1e5)
    solver = Exact(tol=1e-9)
    gram = on_stored(solver, K + np.eye(len(K)))
    earlier = Machines(solver, [before])
    last = earlier.solve(gram).duals[0]
    resumed = Machines(solver, [now]).resume(earlier, same_matrix=True)
    first, second = (resumed.solve(gram).duals[0] for _ in range(2))
    assert first.coef is last.coef
    assert_solves(K + np.eye(len(K)), now, second, gap=1e-6)
