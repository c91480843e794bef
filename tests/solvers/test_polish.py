"""Polishing: from near the optimum to the optimum itself."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from solver_cases import LOSSES, gradient, make, mixed_cost, solve

from lokl.solvers.free_set import StoredMatrix, polish

losses = pytest.mark.parametrize("loss", LOSSES)
seeds = st.integers(0, 2**16)
EXACT = 1e-12


def free_samples(problem, u):
    return np.flatnonzero((u > problem.lower) & (u < problem.upper) & (u != 0))


@losses
@given(seed=seeds, size=st.floats(1e-9, 1e-4))
def test_free_coefficients_that_are_a_little_off_are_put_right(loss, seed, size):
    K, problem = make(seed, loss, C=mixed_cost(seed, 40))
    best = solve(K, problem).coef
    free = free_samples(problem, best)
    if len(free) < 2:
        return
    inside = size * np.minimum(np.abs(best), np.abs(best - problem.lower))[free].min()
    near = best.copy()
    near[free] += min(inside, 1e-4) * np.random.RandomState(seed).uniform(-1, 1, size=len(free))
    kept = near.copy()
    coef, slope, violation = polish(
        StoredMatrix(K), problem, near, gradient(K, problem, near), EXACT
    )
    np.testing.assert_array_equal(near, kept)
    np.testing.assert_allclose(coef, best, atol=1e-8)
    np.testing.assert_allclose(slope, gradient(K, problem, coef), atol=1e-10)
    assert abs(coef.sum()) < 1e-12
    assert violation < 1e-9


@given(seed=seeds)
def test_coefficients_just_off_their_bound_return_to_it(seed):
    K, problem = make(seed, "hinge", C=0.5)
    best = solve(K, problem).coef
    bound = np.flatnonzero(np.abs(best) == 0.5)
    near = best.copy()
    near[bound[0]] *= 1 - 1e-9
    polished = polish(StoredMatrix(K), problem, near, gradient(K, problem, near), EXACT)
    if polished is None:
        assert len(free_samples(problem, near)) < 3
        return
    np.testing.assert_array_equal(polished[0][bound], best[bound])
    np.testing.assert_allclose(polished[0], best, atol=1e-8)


@losses
@given(seed=seeds)
def test_small_problems_are_solved_to_machine_precision(loss, seed):
    K, problem = make(seed, loss, C=mixed_cost(seed, 40))
    dual = solve(K, problem, tol=1e-4)
    if len(free_samples(problem, dual.coef)) < 2:
        return
    assert dual.gap <= 1e-11 * max(dual.objective, 1.0)
    up, down = problem.violations(dual.coef, gradient(K, problem, dual.coef))
    assert up.max() - down.min() <= 1e-10


def test_repeated_rows_share_alike():
    K, problem = make(0, "hinge", n=20)
    index = np.repeat(np.arange(20), 2)
    twice = LOSSES["hinge"](problem.target[index], 1.0)
    dual = solve(K[index][:, index], twice, tol=1e-4)
    assert dual.gap <= 1e-11 * dual.objective
    weighted = solve(K, LOSSES["hinge"](problem.target, 2.0))
    np.testing.assert_allclose(dual.coef.reshape(20, 2).sum(axis=1), weighted.coef, atol=1e-9)


def test_nothing_free_is_nothing_to_polish():
    K, problem = make(0, "hinge")
    assert polish(StoredMatrix(K), problem, np.zeros(40), problem.target, EXACT) is None
