"""The dual problem against plain formulas."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from solver_cases import (
    LOSSES,
    best_value,
    dual_value,
    gradient,
    make,
    mixed_cost,
    solve,
    some_point,
)

from lokl.solvers import Problem, epsilon_insensitive, hinge, squared_hinge

losses = pytest.mark.parametrize("loss", LOSSES)
seeds = st.integers(0, 2**16)


def primal_loss(loss, target, decision, cost):
    """The losses as their papers write them."""
    margin = np.maximum(1 - target * decision, 0)
    residual = np.abs(target - decision)
    return {
        "hinge": cost * margin,
        "squared hinge": 0.5 * cost * margin**2,
        "epsilon-insensitive": cost * np.maximum(residual - 0.3, 0),
        "absolute": cost * residual,
    }[loss].sum()


@losses
@given(seed=seeds)
def test_violations_are_the_one_sided_slopes_of_the_dual(loss, seed):
    K, problem = make(seed, loss, n=8, C=mixed_cost(seed, 8))
    u = some_point(problem, seed)
    up, down = problem.violations(u, gradient(K, problem, u))
    value, step = dual_value(K, problem, u), 1e-6
    for j, e in enumerate(step * np.eye(len(u))):
        if u[j] < problem.upper[j]:
            rise = (dual_value(K, problem, u + e) - value) / step
            np.testing.assert_allclose(up[j], rise, atol=1e-4)
        else:
            assert up[j] == -np.inf
        if u[j] > problem.lower[j]:
            fall = (value - dual_value(K, problem, u - e)) / step
            np.testing.assert_allclose(down[j], fall, atol=1e-4)
        else:
            assert down[j] == np.inf


@losses
@given(seed=seeds)
def test_objective_is_the_dual_value(loss, seed):
    K, problem = make(seed, loss, n=12, C=mixed_cost(seed, 12))
    u = some_point(problem, seed)
    value = problem.objective(u, gradient(K, problem, u))
    np.testing.assert_allclose(value, dual_value(K, problem, u), rtol=1e-12, atol=1e-12)


@losses
@given(seed=seeds, b=st.floats(-3, 3))
def test_gap_is_primal_minus_dual(loss, seed, b):
    cost = mixed_cost(seed, 12)
    K, problem = make(seed, loss, n=12, C=cost)
    u = some_point(problem, seed)
    f = K @ u + b
    primal = 0.5 * u @ K @ u + primal_loss(loss, problem.target, f, cost)
    gap = problem.gap(u, gradient(K, problem, u), b)
    np.testing.assert_allclose(gap, primal - dual_value(K, problem, u), atol=1e-10)


@losses
@given(seed=seeds)
def test_gap_bounds_the_distance_from_the_optimum(loss, seed):
    K, problem = make(seed, loss, n=12)
    u = some_point(problem, seed)
    g = gradient(K, problem, u)
    gap = problem.gap(u, g, problem.intercept(u, g))
    assert best_value(K, problem) - dual_value(K, problem, u) <= gap + 1e-6


@losses
@given(seed=seeds)
def test_intercept_of_the_optimum_has_the_smallest_loss(loss, seed):
    K, problem = make(seed, loss, n=15)
    dual = solve(K, problem)
    g = gradient(K, problem, dual.coef)
    for move in (-0.1, -1e-3, 1e-3, 0.1):
        moved = problem.gap(dual.coef, g, dual.intercept + move)
        assert dual.gap <= moved + 1e-10


def test_intercept_is_the_mean_over_free_samples():
    problem = epsilon_insensitive(np.array([1.0, 2.0, 3.0, 4.0]), 1.0, 0.5)
    u, g = np.array([0.5, -0.25, 1.0, 0.0]), np.array([2.0, 1.0, 9.0, -9.0])
    assert problem.intercept(u, g) == 0.5 * ((2.0 - 0.5) + (1.0 + 0.5))


def test_intercept_without_free_samples_is_the_middle_of_what_optimality_allows():
    problem = hinge(np.array([1.0, 1.0, -1.0]), 1.0)
    u = np.array([1.0, 0.0, -1.0])
    # up: samples 1 and 2 may rise, with 0.25 and -0.5; down: sample 0 may fall, with 0.75.
    assert problem.intercept(u, np.array([0.75, 0.25, -0.5])) == 0.5


@pytest.mark.parametrize("label", [-1.0, 1.0])
def test_intercept_of_one_class_is_that_class(label):
    problem = hinge(np.full(3, label), 1.0)
    assert problem.intercept(np.zeros(3), problem.target) == label


def test_intercept_without_any_sample_is_zero():
    none = np.zeros(2)
    assert Problem(np.ones(2), none, none, 0.0, none).intercept(none, np.ones(2)) == 0.0


@losses
@given(seed=seeds, sides=st.sampled_from([(-10, 10), (0, 1), (-1, 0)]))
def test_feasible_moves_towards_zero_into_the_boxes_and_onto_the_plane(loss, seed, sides):
    rng = np.random.RandomState(seed)
    _, problem = make(seed, loss, n=20, C=mixed_cost(seed, 20))
    wild = rng.uniform(*sides, size=20)
    kept = wild.copy()
    u = problem.feasible(wild)
    assert (problem.lower <= u).all()
    assert (u <= problem.upper).all()
    assert abs(u.sum()) <= 1e-12
    assert (np.abs(u) <= np.abs(np.clip(wild, problem.lower, problem.upper)) + 1e-15).all()
    assert (u * wild >= 0).all()
    np.testing.assert_array_equal(wild, kept)
    np.testing.assert_allclose(problem.feasible(u), u, atol=1e-14)


@pytest.mark.parametrize(
    ("problem", "classification"),
    [
        (hinge(np.array([1.0, -1.0]), 1.0), True),
        (squared_hinge(np.array([1.0, -1.0]), 1.0), True),
        (epsilon_insensitive(np.array([1.0, -1.0]), 1.0, 0.0), False),
    ],
)
def test_boxes_distinguish_classification_from_regression(problem, classification):
    assert problem.is_classification == classification


@pytest.mark.parametrize("make_problem", [hinge, squared_hinge])
@pytest.mark.parametrize("C", [-1.0, [1.0, -2.0], np.nan, np.inf, 0.0, [0.0, 0.0]])
def test_cost_out_of_range_is_named(make_problem, C):
    with pytest.raises(ValueError, match=r"\bC\b.*, got"):
        make_problem(np.array([1.0, -1.0]), C)


@pytest.mark.parametrize("target", [[1.0, np.nan], [np.inf, 0.0], [[1.0], [2.0]]])
def test_targets_that_are_not_one_finite_number_per_sample_are_rejected(target):
    with pytest.raises(ValueError, match="targets"):
        epsilon_insensitive(np.array(target), 1.0, 0.1)


@pytest.mark.parametrize("epsilon", [-0.1, np.nan, np.inf])
def test_epsilon_out_of_range_is_named(epsilon):
    with pytest.raises(ValueError, match=f"epsilon .*got {epsilon}"):
        epsilon_insensitive(np.array([1.0, 2.0]), 1.0, epsilon)


@losses
@given(seed=seeds)
def test_equal_samples_are_one_sample_of_their_cost_together(loss, seed):
    cost = mixed_cost(seed, 9)
    _, problem = make(seed, loss, n=9, C=cost)
    np.testing.assert_allclose(problem.cost, cost)
    rows = np.random.RandomState(seed).randint(9, size=25)
    first, inverse = np.unique(rows, return_index=True, return_inverse=True)[1:]
    merged = problem.take(rows).merged(first, inverse)
    times = np.bincount(rows, minlength=9)[np.unique(rows)]
    expected = problem.take(np.unique(rows)).weighted(times.astype(float))
    for name in ("target", "lower", "upper", "ridge"):
        np.testing.assert_allclose(getattr(merged, name), getattr(expected, name))
    np.testing.assert_allclose(merged.cost, times * cost[np.unique(rows)])
