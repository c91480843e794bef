"""Problems on which pair moves crawl: bounded by default, and solved where they are small."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from solver_cases import LOSSES, best_value, dual_value, gradient, make, mixed_cost, samples, signs

from lokl import UniformMKLClassifier
from lokl.kernels import RBF, Linear, Polynomial
from lokl.solvers import solve_svc, solve_svr
from lokl.solvers.base import default_step_limit
from lokl.solvers.free_set import interior

losses = pytest.mark.parametrize("loss", LOSSES)
seeds = st.integers(0, 2**16)


@losses
@given(seed=seeds)
def test_interior_point_steps_come_near_the_optimum(loss, seed):
    K, problem = make(seed, loss, C=mixed_cost(seed, 40))
    coef = interior(K, problem)
    assert (problem.lower <= coef).all()
    assert (coef <= problem.upper).all()
    assert abs(coef.sum()) < 1e-4
    best = best_value(K, problem)
    np.testing.assert_allclose(dual_value(K, problem, problem.feasible(coef)), best, rtol=1e-4)


def test_a_matrix_that_is_not_positive_is_left_to_pair_moves():
    _, problem = make(0, "hinge")
    K = -np.eye(40)
    coef = interior(K, problem)
    assert coef is None or np.isfinite(coef).all()


def unscaled(seed, n=20):
    X, score = samples(seed, n)
    return 1e4 * X, signs(score), score


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("seed", range(4))
def test_few_rows_of_large_numbers_are_solved(seed, C, loss):
    X, y, _ = unscaled(seed)
    dual = solve_svc(Linear(), X, y, C=C, loss=loss)
    # The same problem in other units is an easy one.
    easy = solve_svc(Linear(), 1e-4 * X, y, C=1e8 * C, loss=loss)
    assert dual.converged
    assert dual.n_iter < 30_000
    np.testing.assert_allclose(dual.objective, easy.objective * 1e-8, rtol=1e-4)


def test_regressions_on_large_numbers_are_solved():
    X, _, target = unscaled(1)
    dual = solve_svr(Linear(), X, target)
    assert dual.converged
    assert dual.gap < 1e-3 * dual.objective


@pytest.mark.parametrize("seed", range(3))
def test_large_numbers_are_learned_as_well_as_scaled_ones(seed):
    X, y, _ = unscaled(seed, n=120)
    model = UniformMKLClassifier([Linear()]).fit(X, y)
    theirs = SVC(kernel="linear", max_iter=100_000)
    with pytest.warns(ConvergenceWarning):
        theirs.fit(X, y)
    assert model.score(X, y) >= theirs.score(X, y) - 0.05


def test_numbers_beyond_precision_end_soon_with_a_warning():
    X, y, _ = unscaled(0, n=120)
    model = UniformMKLClassifier([Polynomial(2)])
    with pytest.warns(ConvergenceWarning, match=r"kernel values reach \d"):
        model.fit(X, y)
    assert model.n_iter_ < 100_000
    assert np.isfinite(model.decision_function(X)).all()


def test_problems_on_scaled_data_have_many_more_steps_than_they_need():
    X, score = samples(0, 300)
    for C in (1.0, 1000.0):
        assert solve_svc(RBF(1.0), X, signs(score), C=C).n_iter < default_step_limit(300, 300) / 100
    assert default_step_limit(20, 20) < 1e8
    assert default_step_limit(30_000, 1024) > 1e7


@pytest.mark.parametrize(
    ("factor", "message"),
    [
        (1.0, r"5 steps .*max_iter"),
        (1e4, r"5 steps .*kernel values reach \d"),
    ],
)
def test_the_warning_names_data_that_is_not_scaled(factor, message):
    X, score = samples(0, 40)
    with pytest.warns(ConvergenceWarning, match=message):
        solve_svc(Linear(), factor * X, signs(score), max_iter=5)


@losses
@given(seed=seeds)
def test_the_intercept_of_the_least_loss_is_no_worse_than_any(loss, seed):
    K, problem = make(seed, loss)
    rng = np.random.RandomState(seed)
    coef = problem.feasible(rng.normal(size=40))
    slope = gradient(K, problem, coef)
    scores = K @ coef
    b = problem.least_loss_intercept(coef, slope)
    least = problem.losses(scores + b).sum()
    for other in np.linspace(-5, 5, 41):
        assert least <= problem.losses(scores + other).sum() * (1 + 1e-9)
