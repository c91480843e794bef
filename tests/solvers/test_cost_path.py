"""SVMs on a stored matrix along rising costs: each is the optimum, wherever it started."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from solver_cases import LOSSES, best_value, dual_value, make, mixed_cost, some_point

from lokl.solvers import hinge
from lokl.solvers._smo import climb, raise_costs
from lokl.solvers.cost_path import StoredCostPath

losses = pytest.mark.parametrize("loss", LOSSES)
seeds = st.integers(0, 2**16)
TOL = 1e-6


@pytest.mark.slow
@losses
@given(seed=seeds, n=st.integers(2, 30))
def test_each_stop_is_the_optimum_of_an_interior_point_method(loss, seed, n):
    factor = mixed_cost(seed, n)
    path, before = None, None
    for cost in (0.1, 0.4, 3.0, 50.0):
        K, problem = make(seed, loss, n, cost * factor)
        path = StoredCostPath(K, TOL) if path is None else path
        stop = path.solve(problem, 0.0 if before is None else cost / before)
        before = cost
        assert stop.converged
        assert (problem.lower <= stop.coef).all()
        assert (stop.coef <= problem.upper).all()
        scale = max(np.abs(stop.coef).max(), 1.0)
        assert abs(stop.coef.sum()) < 1e-10 * n * scale
        np.testing.assert_allclose(
            dual_value(K, problem, stop.coef), best_value(K, problem), rtol=1e-4, atol=1e-4
        )
        np.testing.assert_allclose(
            stop.decision, K @ stop.coef + stop.intercept, rtol=1e-8, atol=1e-8 * scale
        )


@given(seed=seeds)
def test_absent_samples_are_left_out_and_get_decisions(seed):
    rng = np.random.RandomState(seed)
    n = 40
    K, problem = make(seed, "hinge", n, np.ones(n))
    kept = rng.permutation(n)[:30]
    y = problem.target
    if len(np.unique(y[kept])) < 2:
        return
    cost = np.zeros(n)
    cost[kept] = 2.0
    whole = StoredCostPath(K, TOL).solve(hinge(y, cost))
    part = StoredCostPath(np.ascontiguousarray(K[np.ix_(kept, kept)]), TOL).solve(
        hinge(y[kept], 2.0)
    )
    assert not whole.coef[np.setdiff1d(np.arange(n), kept)].any()
    expected = K[:, kept] @ part.coef + part.intercept
    np.testing.assert_allclose(whole.decision, expected, atol=1e-3)


def test_single_precision_of_many_samples_agrees_with_double():
    rng = np.random.RandomState(0)
    X = rng.normal(size=(1500, 5))
    y = np.sign(X[:, 0] + 0.5 * rng.normal(size=1500))
    squares = ((X[:, np.newaxis] - X) ** 2).sum(axis=2)
    K = np.exp(-0.2 * squares)
    single, double = StoredCostPath(K.astype(np.float32), 1e-3), StoredCostPath(K, 1e-3)
    before = np.inf
    for cost in (0.01, 1.0, 100.0):
        problem = hinge(y, cost)
        first, second = (path.solve(problem, cost / before) for path in (single, double))
        before = cost
        np.testing.assert_allclose(first.decision, second.decision, atol=5e-3)


def test_equal_violators_do_not_crowd_out_larger_ones():
    # All samples of a class are equal, and a matrix near the identity: most gradients are ties.
    n = 1400
    y = np.where(np.arange(n) % 4 == 0, 1.0, -1.0)
    K = np.eye(n, dtype=np.float32)
    problem = hinge(y, 0.01)
    stop = StoredCostPath(K, 1e-3).solve(problem)
    assert stop.converged
    np.testing.assert_allclose(stop.coef[y > 0], 0.01)


@pytest.mark.slow
@given(seed=seeds, ratio=st.sampled_from([1.5, 4.0, 100.0]))
def test_raised_costs_leave_a_feasible_point_with_its_gradient(seed, ratio):
    K, problem = make(seed, "hinge", 30, mixed_cost(seed, 30))
    path = StoredCostPath(K, TOL)
    path.solve(problem)
    raised = problem.weighted(np.full(30, ratio))
    coef, gradient = (part.copy() for part in path._last[1])
    boxes = problem.box, raised.box
    raise_costs(K, (coef, gradient), problem.target, *boxes, ratio, TOL)
    scale = max(np.abs(coef).max(), 1.0)
    assert (raised.lower <= coef).all()
    assert (coef <= raised.upper).all()
    assert abs(coef.sum()) <= 1e-9 * scale
    np.testing.assert_allclose(gradient, problem.target - K @ coef, atol=1e-8 * scale)


@pytest.mark.slow
@losses
@given(seed=seeds)
def test_climbing_raises_the_objective(loss, seed):
    K, problem = make(seed, loss, 60, 100.0)
    coef = some_point(problem, seed)
    gradient = problem.target - K @ coef - problem.ridge * coef
    before = dual_value(K, problem, coef)
    free = np.flatnonzero(problem.is_free(coef))
    system = (K + np.diag(problem.ridge))[np.ix_(free, free)]
    values, slope = coef[free], (gradient - problem.epsilon * np.sign(coef))[free]
    low, high = (bound[free] for bound in problem.one_sided(coef))
    climb(system, values, slope, low, high, TOL)
    coef[free] = values
    assert dual_value(K, problem, coef) >= before - 1e-9 * abs(before)
    assert (problem.lower <= coef).all()
    assert (coef <= problem.upper).all()
    assert abs(coef.sum()) <= 1e-9 * max(np.abs(coef).sum(), 1.0)
