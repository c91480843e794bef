"""Problems on which pair moves crawl: bounded by default, and solved where they are small."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from solver_cases import (
    LOSSES,
    assert_solves,
    best_value,
    dual_value,
    gradient,
    make,
    mixed_cost,
    samples,
    signs,
)

from lokl import UniformMKLClassifier
from lokl.kernels import RBF, Linear, Polynomial
from lokl.solvers import Exact, censored, solve_svc, solve_svr
from lokl.solvers.base import default_step_limit
from lokl.solvers.free_set import FeatureMatrix, StoredMatrix, interior

losses = pytest.mark.parametrize("loss", LOSSES)
seeds = st.integers(0, 2**16)


@losses
@given(seed=seeds)
def test_interior_point_steps_come_near_the_optimum(loss, seed):
    K, problem = make(seed, loss, C=mixed_cost(seed, 40))
    coef = interior(StoredMatrix(K), problem)
    assert (problem.lower <= coef).all()
    assert (coef <= problem.upper).all()
    assert abs(coef.sum()) < 1e-4
    best = best_value(K, problem)
    np.testing.assert_allclose(dual_value(K, problem, problem.feasible(coef)), best, rtol=1e-4)


@losses
@given(seed=seeds)
def test_interior_point_steps_on_features_end_where_those_on_the_matrix_do(loss, seed):
    F = np.random.RandomState(seed).normal(size=(40, 3))
    _, problem = make(seed, loss, C=mixed_cost(seed, 40))
    ends = [interior(matrix, problem) for matrix in (FeatureMatrix(F), StoredMatrix(F @ F.T))]
    values = [dual_value(F @ F.T, problem, problem.balanced(coef)) for coef in ends]
    np.testing.assert_allclose(values[0], values[1], rtol=1e-4)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
@given(seed=seeds, size=st.floats(1e-8, 1e4))
def test_a_matrix_of_features_obeys_the_rules_of_the_stored_one(form, seed, size):
    rng = np.random.RandomState(seed)
    F, weight, coef = rng.normal(size=(20, 3)), size * rng.uniform(0.5, 2.0, 20), rng.normal(size=7)
    ours, theirs = FeatureMatrix(form(F)), StoredMatrix(F @ F.T)
    index = rng.permutation(20)[:7]
    for matrix in (ours, ours.take(np.arange(20))):
        np.testing.assert_allclose(matrix.diagonal(), theirs.diagonal())
        np.testing.assert_allclose(matrix.block(index), theirs.block(index), atol=1e-12)
        np.testing.assert_allclose(matrix.dot(coef, index), theirs.dot(coef, index), atol=1e-12)
    # The solution of a system on a side that it can have, whatever its condition.
    solution = rng.normal(size=20)
    side = theirs.dot(solution) + weight * solution
    found = ours.inverse(weight)(side)
    np.testing.assert_allclose(theirs.dot(found) + weight * found, side, atol=1e-9 * max(size, 1.0))


def many_samples(form):
    """Samples of four columns: many more than a pair of coefficients can balance."""
    X, score = samples(0, 2300, d=4)
    if form == "repeated rows":
        X[1150:] = X[:1150]
    if form == "dependent columns":
        X = np.hstack([X, X[:, :1] + X[:, 1:2]])
    if form == "uneven columns":
        X = X * [0.01, 0.1, 1.0, 10.0]
    # Rows of many samples are in single precision.
    return X.astype(np.float32).astype(np.float64), score


@pytest.mark.parametrize("loss", [*LOSSES, "censored"])
@pytest.mark.parametrize(
    "form", ["plain", "repeated rows", "dependent columns", "uneven columns", "sparse"]
)
def test_large_costs_of_linear_kernels_are_solved_in_few_steps(loss, form):
    X, score = many_samples(form)
    cost = 1000 * mixed_cost(1, len(X))
    if loss == "censored":
        problem = censored(score, cost, 0.1, np.arange(len(X)) % 3 > 0)
    else:
        problem = LOSSES[loss](score, cost)
    solver = Exact()
    given_X = sparse.csr_matrix(X) if form == "sparse" else X
    dual = solver.solve(solver.inner_products(given_X).gated([Linear()]), problem)
    assert_solves(X @ X.T, problem, dual, gap=1e-6)
    # Pair moves alone take millions.
    assert dual.n_iter < 30_000


def test_a_matrix_that_is_not_positive_is_left_to_pair_moves():
    _, problem = make(0, "hinge")
    K = -np.eye(40)
    coef = interior(StoredMatrix(K), problem)
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
