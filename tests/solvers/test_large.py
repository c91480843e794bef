"""The exact solver beyond the size that is solved as one matrix."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import SVC, SVR
from solver_cases import assert_solves, budget, on_stored, samples, signs

from lokl.kernels import RBF, Callable, Linear, Polynomial
from lokl.solvers import Exact, epsilon_insensitive, hinge, solve_svc, solve_svr, squared_hinge
from lokl.solvers.exact import BlockSolver

N = 2300
X, SCORE = samples(0, N, d=4)
Y = signs(SCORE)
K = RBF(0.3)(X)

PROBLEMS = {
    "hinge": hinge(Y, 1.0),
    "squared hinge": squared_hinge(Y, 1.0),
    "epsilon-insensitive": epsilon_insensitive(SCORE, 1.0, 0.3),
    "absolute": epsilon_insensitive(SCORE, 0.3, 0.0),
    "rare class": hinge(signs(SCORE - np.quantile(SCORE, 0.985)), 10.0),
    "rare negatives": hinge(signs(SCORE - np.quantile(SCORE, 0.015)), 10.0),
    "mostly absent": hinge(Y, np.where(np.arange(N) % 8 == 0, 1.0, 0.0)),
    "few samples count": epsilon_insensitive(SCORE, 5.0 * (np.arange(N) % 50 == 0), 0.1),
    "costs that differ": hinge(Y, np.linspace(0.0, 2.0, N)),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_solution_is_feasible_and_certified(name):
    solver = Exact(tol=1e-6)
    dual = solver.solve(solver.inner_products(X).gated([RBF(0.3)]), PROBLEMS[name])
    assert_solves(K, PROBLEMS[name], dual, gap=1e-5)


@pytest.mark.parametrize("name", PROBLEMS)
def test_float32_rows_and_default_tolerance_are_good_to_three_digits(name):
    problem = PROBLEMS[name]
    single, double = Exact(), Exact(tol=1e-6)
    gram = single.inner_products(X).gated([RBF(0.3)])
    assert gram.dtype == np.float32
    dual = single.solve(gram, problem)
    assert (problem.lower <= dual.coef).all()
    assert (dual.coef <= problem.upper).all()
    assert abs(dual.coef.sum()) < 1e-9
    best = double.solve(double.inner_products(X).gated([RBF(0.3)]), problem)
    assert abs(dual.objective - best.objective) <= 1e-3 * best.objective
    f, g = (K @ d.coef + d.intercept for d in (dual, best))
    np.testing.assert_allclose(f, g, atol=2e-2)


@pytest.mark.parametrize(
    ("kernel", "theirs", "rounding"),
    [
        (RBF(0.3), {"kernel": "rbf", "gamma": 0.3}, 1e-5),
        (Polynomial(2), {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 1.0}, 1e-3),
        (Linear(), {"kernel": "linear"}, 1e-4),
    ],
    ids=["rbf", "poly", "linear"],
)
def test_decisions_are_those_of_scikit_learn(kernel, theirs, rounding):
    fresh = samples(1, 100, d=4)[0]
    svc = SVC(C=0.5, tol=1e-8, **theirs).fit(X, Y)
    dual = solve_svc(kernel, X, Y, 0.5, tol=1e-7)
    np.testing.assert_allclose(
        kernel(fresh, X) @ dual.coef + dual.intercept, svc.decision_function(fresh), atol=rounding
    )
    svr = SVR(C=0.5, epsilon=0.3, tol=1e-8, **theirs).fit(X, SCORE)
    dual = solve_svr(kernel, X, SCORE, 0.5, epsilon=0.3, tol=1e-7)
    np.testing.assert_allclose(
        kernel(fresh, X) @ dual.coef + dual.intercept, svr.predict(fresh), atol=rounding
    )


@pytest.mark.parametrize(("size", "grows"), [(400, True), (100, False)])
def test_working_sets_grow_if_all_free_coefficients_fit_four_times_the_set(size, grows):
    problem = epsilon_insensitive(SCORE[:1500], 100.0, 0.3)
    gram = Exact(dtype="float64").inner_products(X[:1500]).gated([RBF(2.0)])
    blocks = BlockSolver(gram, problem, size, 1e-5)
    assert blocks.run() <= 1e-5
    n_free = np.count_nonzero(problem.is_free(blocks.state[0]))
    assert 400 < n_free < 1300
    assert (blocks.size >= n_free) == grows
    assert grows or blocks.size == size
    assert_solves(
        RBF(2.0)(X[:1500]), problem, problem.dual(*blocks.state, blocks.steps, True), gap=1e-3
    )


@pytest.mark.parametrize("working_set", [16, 300, 1024, 2290, 10_000])
def test_any_working_set_gives_the_same_answer(working_set):
    dual = solve_svc(RBF(0.3), X, Y, tol=1e-5, working_set=working_set)
    best = solve_svc(RBF(0.3), X, Y, tol=1e-7)
    assert_solves(K, PROBLEMS["hinge"], dual, gap=1e-4)
    np.testing.assert_allclose(K @ dual.coef, K @ best.coef, atol=1e-3)


@pytest.mark.parametrize("n_rows", [3, 50, 1500])
def test_any_memory_gives_the_same_answer(n_rows):
    dual = solve_svc(RBF(0.3), X, Y, 0.1, tol=1e-2, cache_size=budget(n_rows, N, itemsize=4))
    best = solve_svc(RBF(0.3), X, Y, 0.1, tol=1e-6)
    np.testing.assert_allclose(K @ dual.coef, K @ best.coef, atol=5e-2)
    assert best.objective - dual.objective <= dual.gap <= 1e-2 * best.objective


@pytest.mark.parametrize("name", ["hinge", "epsilon-insensitive", "mostly absent"])
def test_every_start_ends_in_the_same_place(name):
    solver, problem = Exact(tol=1e-6), PROBLEMS[name]
    gram = solver.inner_products(X).gated([RBF(0.3)])
    cold = solver.solve(gram, problem)
    warm = solver.solve(gram, problem, np.random.RandomState(0).normal(size=N))
    assert_solves(K, problem, warm, gap=1e-5)
    np.testing.assert_allclose(K @ warm.coef, K @ cold.coef, atol=1e-4)
    assert Exact(tol=1.1e-6).solve(gram, problem, cold.coef).n_iter == 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_linear_kernels_by_explicit_features_are_those_by_rows(dtype, container):
    thin = np.where(np.random.RandomState(0).uniform(size=X.shape) < 0.3, X, 0.0)
    options = {"tol": 1e-4, "dtype": dtype}
    fast = solve_svc([Linear(), Linear().on([0, 1])], container(thin), Y, **options)
    # A function has no explicit features.
    slow = [Callable(lambda A, B: A @ B.T), Callable(lambda A, B: A[:, :2] @ B[:, :2].T)]
    rows = solve_svc(slow, thin, Y, **options)
    gram = 0.5 * (thin @ thin.T + thin[:, :2] @ thin[:, :2].T)
    np.testing.assert_allclose(fast.objective, rows.objective, rtol=1e-4)
    np.testing.assert_allclose(gram @ fast.coef, gram @ rows.coef, atol=5e-3)


def test_a_stored_matrix_is_the_kernel_it_came_from():
    solver = Exact(tol=1e-6)
    there = solver.solve(on_stored(solver, K), PROBLEMS["hinge"])
    here = solver.solve(solver.inner_products(X).gated([RBF(0.3)]), PROBLEMS["hinge"])
    np.testing.assert_allclose(K @ there.coef, K @ here.coef, atol=1e-5)


@pytest.mark.parametrize("kernel", [RBF(0.1), RBF(5.0), Polynomial(2), Linear()], ids=repr)
def test_a_positive_kernel_with_repeated_rows_does_not_warn(kernel):
    wide = samples(0, 1150, d=20)[0]
    y = signs(np.random.RandomState(0).normal(size=N))
    assert solve_svc(kernel, np.vstack([wide, wide]), y, 0.1).converged


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_tolerance_below_rounding_still_ends(dtype):
    dual = solve_svc(RBF(0.3), X, Y, 0.1, tol=1e-9, dtype=dtype)
    assert dual.converged


def test_a_first_sample_without_violation_is_not_the_end():
    # One target out of thousands leaves the tube; an even sample of the data misses it.
    X = np.random.RandomState(0).normal(size=(3000, 2))
    target = np.zeros(3000)
    target[7] = 5.0
    dual = solve_svr(RBF(1.0), X, target)
    assert dual.converged
    assert dual.coef[7] == 1.0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_tolerance_below_the_precision_of_the_rows_ends():
    X = np.random.RandomState(0).normal(size=(300, 3))
    y = np.sign(X[:, 0] * X[:, 1] + 0.3 * X[:, 2])
    few_rows = 80 * 300 * 4 / 2**20
    rough = solve_svc(Polynomial(3), X, y, 10.0, tol=1e-13, dtype="float32", cache_size=few_rows)
    fine = solve_svc(Polynomial(3), X, y, 10.0, tol=1e-8)
    assert rough.objective == pytest.approx(fine.objective, rel=1e-4)
