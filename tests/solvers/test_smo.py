"""The compiled pair moves against a plain twin and an interior point method."""

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
    plain_smo,
    some_point,
)

from lokl.solvers._smo import place_symmetric, smo

losses = pytest.mark.parametrize("loss", LOSSES)
seeds = st.integers(0, 2**16)


def arguments(K, problem, dtype=np.float64):
    Q = (K + np.diag(problem.ridge)).astype(dtype)
    box = problem.lower, problem.upper, problem.epsilon
    return Q, np.zeros(len(K)), problem.target.copy(), *box


@losses
@pytest.mark.parametrize(("dtype", "rounding"), [(np.float32, 1e-6), (np.float64, 1e-10)])
@given(seed=seeds, n=st.integers(2, 20))
def test_a_step_from_anywhere_is_that_of_the_plain_twin(loss, dtype, rounding, seed, n):
    # One step: after it the two gradients that moved are equal, so that rounding picks the next.
    K, problem = make(seed, loss, n, mixed_cost(seed, n))
    coef = some_point(problem, seed)
    Q, _, _, *box = arguments(K, problem, dtype)
    grad = problem.target - Q.astype(float) @ coef
    twin = plain_smo(Q, coef, grad, *box, 1e-6, 1)
    outcome = smo(Q, coef, grad, *box, 1e-6, 1)
    assert outcome[0] == twin[2]
    for mine, plain in zip((coef, grad, *outcome[1:]), (*twin[:2], *twin[3:]), strict=True):
        np.testing.assert_allclose(mine, plain, rtol=rounding, atol=rounding)


@losses
@given(seed=seeds, n=st.integers(2, 25))
def test_the_end_is_the_optimum_of_an_interior_point_method(loss, seed, n):
    K, problem = make(seed, loss, n, mixed_cost(seed, n))
    Q, coef, grad, *box = arguments(K, problem)
    _, violation, curvature = smo(Q, coef, grad, *box, 1e-10, 10**7)
    assert violation <= 1e-10
    assert curvature > 0
    assert (problem.lower <= coef).all()
    assert (coef <= problem.upper).all()
    assert abs(coef.sum()) < 1e-12
    np.testing.assert_allclose(grad, gradient(K, problem, coef), atol=1e-9)
    best = best_value(K, problem)
    np.testing.assert_allclose(dual_value(K, problem, coef), best, rtol=1e-6, atol=1e-6)


@losses
def test_a_slice_of_a_larger_matrix_gives_the_same(loss):
    K, problem = make(0, loss, n=20)
    Q, coef, grad, *box = arguments(K, problem)
    larger = np.full((30, 40), np.nan)
    larger[:20, :20] = Q
    again, slope = coef.copy(), grad.copy()
    smo(Q, coef, grad, *box, 1e-8, 10**6)
    smo(larger, again, slope, *box, 1e-8, 10**6)
    np.testing.assert_allclose(again, coef, atol=1e-12)


@losses
def test_the_optimum_is_left_alone(loss):
    K, problem = make(1, loss, n=20)
    Q, coef, grad, *box = arguments(K, problem)
    smo(Q, coef, grad, *box, 1e-8, 10**6)
    before = coef.copy()
    steps, violation, _ = smo(Q, coef, grad, *box, 1e-8, 10**6)
    assert steps == 0
    assert violation <= 1e-8
    np.testing.assert_array_equal(coef, before)


def test_absent_samples_have_nothing_to_move():
    none = np.zeros(3)
    steps, violation, _ = smo(np.eye(3), none.copy(), np.ones(3), none, none, 0.0, 1e-3, 100)
    assert steps == 0
    assert violation == -np.inf


@given(seed=seeds)
def test_negative_curvature_is_reported_and_ends_at_bounds(seed):
    K, problem = make(seed, "hinge", n=10)
    Q, coef, grad, *box = arguments(-K, problem)
    _, violation, curvature = smo(Q, coef, grad, *box, 1e-6, 10**5)
    assert curvature < 0
    assert violation <= 1e-6
    assert np.isin(coef, [problem.lower, problem.upper]).sum() >= 9


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(seed=seeds, n=st.integers(1, 12), room=st.integers(0, 5))
def test_a_placed_block_is_in_rows_and_columns(dtype, seed, n, room):
    rng = np.random.RandomState(seed)
    places = rng.permutation(n)[: rng.randint(n + 1)]
    symmetric = rng.normal(size=(n, n)).astype(dtype)
    symmetric += symmetric.T
    matrix = rng.normal(size=(n + room, n + room)).astype(dtype)
    plain = matrix.copy()
    plain[places, :n] = symmetric[places]
    plain[:n, places] = symmetric[places].T
    place_symmetric(matrix, places, symmetric[places])
    np.testing.assert_array_equal(matrix, plain)
