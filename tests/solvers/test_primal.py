"""SVMs on low-rank features: against plain twins, other solvers and the exact solver."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC
from solver_cases import (
    LOSSES,
    assert_solves,
    best_value,
    dual_value,
    mixed_cost,
    samples,
    signs,
    some_point,
)

from lokl.gram import GatedGram
from lokl.kernels import RBF, Laplacian, Linear, Polynomial
from lokl.solvers import Exact, Primal, epsilon_insensitive, hinge, solve_svc, solve_svr
from lokl.solvers import _primal as loops
from lokl.solvers.primal import PrimalNewton, descend

seeds = st.integers(0, 2**16)
losses = pytest.mark.parametrize("loss", LOSSES)
# Megabytes that are enough for the features of these samples, and too few.
STORED, COMPUTED = 512, 0.01
either = pytest.mark.parametrize("cache_size", [STORED, COMPUTED], ids=["stored", "computed"])


def kernels():
    return [Linear(), RBF(0.5), Polynomial(2, 0.5)]


def gates(n, rank, seed=0):
    """Gates with zeros, but at least one positive gate per sample."""
    rng = np.random.RandomState(seed)
    H = rng.uniform(size=(n, 3, rank)) * (rng.uniform(size=(n, 3, rank)) < 0.7)
    H[:, 1, 0] += 0.1
    return H


def made(seed=0, n=80, rank=12, gate_rank=2, cache_size=STORED, **settings):
    X, score = samples(seed, n)
    solver = Primal(rank, cache_size=cache_size, **{"tol": 1e-7, **settings})
    return solver, solver.inner_products(X).gated(kernels(), gates(n, gate_rank, seed)), score


def matrix(gram):
    """The matrix of the features, by the plain product."""
    rows = gram.gated_rows(np.arange(gram.n_samples)).astype(float)
    return rows @ rows.T


def plain_sweep(Phi, problem, coef, offset, pull, order, limits):
    """The compiled pass in numpy, on gated features; returns as it does, and the weights."""
    coef, left, most, least = coef.copy(), [], 0.0, 0.0
    queue = list(order)
    while queue:
        j = queue.pop(0)
        u = coef[j]
        gradient = problem.target[j] - problem.ridge[j] * u - offset - pull * coef.sum()
        gradient -= Phi[j] @ (Phi.T @ coef)
        up = gradient - (problem.epsilon if u >= 0 else -problem.epsilon)
        down = gradient - (problem.epsilon if u > 0 else -problem.epsilon)
        rises, falls = u < problem.upper[j], u > problem.lower[j]
        if not (rises and up >= limits[1]) and not (falls and down <= limits[0]):
            # The last sample takes its position.
            queue = queue[-1:] + queue[:-1]
            continue
        left.append(j)
        most, least = max(most, up * rises), min(least, down * falls)
        H = Phi[j] @ Phi[j] + pull + problem.ridge[j]
        z = H * u + gradient
        best = np.sign(z) * max(abs(z) - problem.epsilon, 0.0) / H
        coef[j] = np.clip(best, problem.lower[j], problem.upper[j])
    return coef, left, most, least


@pytest.mark.slow
@losses
@pytest.mark.parametrize(("dtype", "rounding"), [("float64", 1e-9), ("float32", 1e-3)])
@settings(max_examples=8)
@given(seed=seeds, limit=st.sampled_from([np.inf, 0.5]))
def test_a_pass_of_descent_is_that_of_the_plain_twin(loss, dtype, rounding, seed, limit):
    _, gram, score = made(seed, 15, 6, dtype=dtype)
    problem = LOSSES[loss](score, mixed_cost(seed, 15))
    coef, order = some_point(problem, seed), np.arange(15)
    Phi = gram.gated_rows(np.arange(15)).astype(float)
    twin = plain_sweep(Phi, problem, coef, 0.3, 0.2, order, (limit, -limit))
    weights = np.ascontiguousarray(gram.backward(coef[:, np.newaxis])[:, :, 0].T, dtype=dtype)
    rows = loops.Rows(gram.stored_features, gram.gates, gram.features.starts, gram.diag())
    costs = loops.Costs(
        problem.target, problem.lower, problem.upper, problem.epsilon, problem.ridge
    )
    balance = loops.Balance(0.3, 0.2, float(coef.sum()))
    state = loops.State(coef, weights)
    count, total, most, least = loops.sweep(rows, costs, state, balance, order, 15, (limit, -limit))
    close = {"rtol": rounding, "atol": rounding * max(np.abs(coef).max(), 1.0)}
    if limit == 0.5 and order[:count].tolist() != twin[1] and dtype == "float32":
        # Rounding changed which samples are shrunk.
        return
    assert order[:count].tolist() == twin[1]
    np.testing.assert_allclose(coef, twin[0], **close)
    np.testing.assert_allclose([total, most, least], [twin[0].sum(), *twin[2:]], **close)
    flat = gram.backward(coef[:, np.newaxis])[:, :, 0].T
    np.testing.assert_allclose(weights, flat, atol=10 * close["atol"])


@losses
@settings(max_examples=10)
@given(seed=seeds, width=st.sampled_from([0.1, 1.0]))
@example(seed=691, width=0.1)
@example(seed=12676, width=0.1)
def test_best_coefficients_at_decisions_are_the_best_of_a_grid(loss, seed, width):
    """Against a fine grid of coefficients, and their sum against zero."""
    rng = np.random.RandomState(seed)
    problem = LOSSES[loss](samples(seed, 12)[1], mixed_cost(seed, 12))
    centre = some_point(problem, seed)
    hold = np.where(problem.ridge > 0, 0.0, width)
    costs = loops.HeldCosts(
        *(problem.target, problem.lower, problem.upper, problem.epsilon, problem.ridge),
        *(centre, hold),
    )
    values = rng.normal(size=12)
    b = loops.balance(costs, values, 0.0)
    coef, rates = np.empty(12), np.empty(12)
    loss_value = loops.best_coefs(costs, values, b, coef, rates)
    assert abs(coef.sum()) <= 1e-9 * max(np.abs(coef).max(), 1.0)

    def gain(u):
        linear = u * (problem.target - values - b) - problem.epsilon * np.abs(u)
        return linear - 0.5 * (problem.ridge * u**2 + hold * (u - centre) ** 2)

    np.testing.assert_allclose(loss_value, gain(coef)[problem.cost > 0].sum(), rtol=1e-9)
    for share in np.linspace(0, 1, 41):
        low, high = np.maximum(problem.lower, -50), np.minimum(problem.upper, 50)
        assert (gain(coef) >= gain(low + share * (high - low)) - 1e-9).all()
    # At a kink the rate is one of the two slopes.
    step, around = 1e-7, np.empty((2, 12))
    for side, shifted in zip((-step, step), around, strict=True):
        loops.best_coefs(costs, values, b + side, shifted, np.empty(12))
    slopes = np.array([around[0] - coef, coef - around[1]]) / step
    slack = 1e-4 * max(rates.max(), 1)
    assert (slopes.min(axis=0) - slack <= rates).all()
    assert (rates <= slopes.max(axis=0) + slack).all()


@losses
@either
@pytest.mark.parametrize("C", [0.1, 5.0])
@settings(max_examples=3)
@given(seed=seeds, gate_rank=st.integers(1, 2))
@example(seed=40494, gate_rank=2)
def test_solutions_are_certified_on_the_matrix_of_the_features(
    loss, cache_size, C, seed, gate_rank
):
    solver, gram, score = made(seed, cache_size=cache_size, gate_rank=gate_rank)
    problem = LOSSES[loss](score, C * mixed_cost(seed, 80))
    dual, K = solver.solve(gram, problem), matrix(gram)
    assert gram.fits == (cache_size == STORED)
    assert_solves(K, problem, dual, gap=1e-5)
    assert dual.objective == pytest.approx(best_value(K, problem), rel=1e-6, abs=1e-6)
    np.testing.assert_allclose(dual.decision, K @ dual.coef + dual.intercept, atol=1e-7)


@losses
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_descent_reaches_the_solution_of_the_exact_solver_on_the_same_features(loss, dtype):
    X, score = samples(0, 500)
    solver = Primal(60, dtype=dtype)
    gram = solver.inner_products(X).gated([RBF(0.5)])
    problem = LOSSES[loss](score, 0.2 * mixed_cost(0, 500))
    found, best = descend(gram, problem, None, 1e-3), Exact(tol=1e-3).solve(gram, problem)
    assert found.violation <= 1e-3
    dual = problem.dual(found.coef, found.gradient, found.passes, True)
    assert (problem.lower <= dual.coef).all()
    assert (dual.coef <= problem.upper).all()
    assert abs(dual.coef.sum()) < 1e-10
    assert 0 <= dual.gap <= 1e-3 * dual.objective
    assert dual.objective == pytest.approx(best.objective, rel=1e-4)
    np.testing.assert_allclose(dual.decision, best.decision, atol=2e-2)
    assert abs(dual.intercept - best.intercept) < 1e-2


def test_descent_leaves_few_free_coefficients():
    X, score = samples(0, 2000)
    solver = Primal(30, tol=1e-2)
    gram = solver.inner_products(X).gated([RBF(0.5)])
    found = descend(gram, hinge(signs(score), 1.0), None, 1e-2)
    assert found.violation <= 1e-2
    free = np.count_nonzero((found.coef != 0) & (np.abs(found.coef) < 1.0))
    # At the optimum no more coefficients are free than there are features and an intercept.
    assert free <= 2 * 31


@pytest.mark.parametrize("n", [300, 2300])
@losses
def test_many_samples_are_solved(loss, n):
    """Kernel values so uneven that descent alone would take long."""
    X, score = samples(0, n)
    solver = Primal(80, tol=1e-3)
    gram = solver.inner_products(X).gated([RBF(0.5), Polynomial(2)])
    problem = LOSSES[loss](score, 1.0)
    dual = solver.solve(gram, problem)
    assert dual.converged
    best = Exact(tol=1e-4).solve(gram, problem)
    assert dual.objective == pytest.approx(best.objective, rel=1e-3)
    assert dual.gap <= 1e-2 * dual.objective


@losses
def test_features_that_do_not_fit_give_the_same_solution(loss):
    X, score = samples(0, 1500)
    problem = LOSSES[loss](score, np.linspace(0.1, 2.0, 1500))
    found = []
    for cache_size in (512, 0.3):
        solver = Primal(60, tol=1e-4, cache_size=cache_size, sample_size=300)
        gram = solver.inner_products(X).gated([RBF(0.5), Linear()])
        assert gram.fits == (cache_size == 512)
        found.append(solver.solve(gram, problem))
        assert found[-1].converged
    np.testing.assert_allclose(found[1].decision, found[0].decision, atol=2e-3)
    assert found[1].objective == pytest.approx(found[0].objective, rel=1e-5)


@pytest.mark.parametrize("squared", [True, False])
@pytest.mark.parametrize("rows", [8, 4096])
def test_any_preconditioner_gives_the_same_answer(rows, squared, monkeypatch):
    monkeypatch.setattr("lokl.solvers.primal._MOST_ROWS", rows)
    solver, gram, score = made(cache_size=COMPUTED, n=200, rank=40)
    loss = "squared hinge" if squared else "hinge"
    problem = LOSSES[loss](score, 1.0)
    assert_solves(matrix(gram), problem, solver.solve(gram, problem), gap=1e-5)


@either
@losses
def test_every_start_ends_in_the_same_place(loss, cache_size):
    solver, gram, score = made(cache_size=cache_size)
    problem = LOSSES[loss](score, 1.0)
    cold = solver.solve(gram, problem)
    for start in (np.random.RandomState(0).normal(size=80), cold.coef):
        warm = solver.solve(gram, problem, start)
        np.testing.assert_allclose(warm.decision, cold.decision, atol=1e-5)


def test_a_start_saves_passes_of_descent():
    X, score = samples(0, 2500)
    solver = Primal(50)
    gram = solver.inner_products(X).gated([RBF(0.5)])
    problem = hinge(signs(score), 1.0)
    cold = solver.solve(gram, problem)
    assert solver.solve(gram, problem, cold.coef).n_iter < 0.5 * cold.n_iter


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@losses
def test_with_a_feature_for_each_sample_it_is_the_exact_svm(loss, kind, seed):
    X, score = samples(seed, 60)
    X = np.vstack([X, X[:20]])
    score = np.concatenate([score, score[:20]])
    problem = LOSSES[loss](score, mixed_cost(seed, 80))
    X = sparse.csr_matrix(np.where(np.abs(X) > 0.3, X, 0.0)) if kind == "sparse" else X
    every = [Linear(), RBF(0.5), Laplacian(0.3) if kind == "dense" else Polynomial(2)]
    H = gates(80, 1, seed)
    duals = [
        solver.solve(solver.inner_products(X).gated(every, H), problem)
        for solver in (Exact(tol=1e-8), Primal(60, tol=1e-8))
    ]
    np.testing.assert_allclose(duals[1].decision, duals[0].decision, atol=1e-6)
    np.testing.assert_allclose(duals[1].objective, duals[0].objective, rtol=1e-8)


def test_the_objective_comes_down_to_the_exact_one_with_the_rank():
    """Features take away from the kernel, so that the dual value is larger."""
    X, score = samples(0, 400)
    best = solve_svc(RBF(1.0), X, score > 0, tol=1e-6)
    before = np.inf
    for rank in (5, 20, 80, 400):
        dual = solve_svc(RBF(1.0), X, score > 0, solver=Primal(rank, tol=1e-6))
        assert best.objective - 1e-4 <= dual.objective < before
        before = dual.objective
    assert before == pytest.approx(best.objective, rel=1e-6)


@pytest.mark.slow
def test_the_intercept_is_not_shrunk_to_zero():
    """A linear SVM far from the origin, where a regularised intercept would differ."""
    X, score = samples(0, 2200)
    exact = solve_svr(Linear(), X, score + 100.0, tol=1e-4)
    ours = solve_svr(Linear(), X, score + 100.0, solver=Primal(10, tol=1e-4))
    assert abs(ours.intercept - exact.intercept) < 1e-3
    np.testing.assert_allclose(ours.decision, exact.decision, atol=5e-3)
    y = np.where(X[:, 0] + 3.0 > 0.5, 1.0, -1.0)
    drawn = LinearSVC(C=1.0, loss="hinge", dual=True, max_iter=10**6).fit(X + 3.0, y)
    duals = [
        solve_svc(Linear(), X + 3.0, y, solver=solver)
        for solver in (Exact(tol=1e-4), Primal(10, tol=1e-4))
    ]
    # The test can detect a regularised intercept.
    assert abs(drawn.intercept_[0] - duals[0].intercept) > 1e-2
    assert abs(duals[1].intercept - duals[0].intercept) < 5e-3


@pytest.mark.parametrize("cache_size", [512, 0.05])
def test_one_class_and_samples_without_cost(cache_size):
    X, _ = samples(0, 50)
    solver = Primal(10, cache_size=cache_size)
    gram = solver.inner_products(X).gated([RBF(0.5)])
    dual = solver.solve(gram, hinge(np.ones(50), 1.0))
    assert dual.converged
    assert not dual.coef.any()
    assert (dual.decision == 1.0).all()
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    cost = np.where(np.arange(50) < 30, 1.0, 0.0)
    some = solver.solve(gram, hinge(y, cost))
    assert not some.coef[30:].any()
    few = Exact(tol=1e-6).solve(gram, hinge(y, cost))
    np.testing.assert_allclose(some.decision, few.decision, atol=5e-3)


@pytest.mark.parametrize("kernel", [Linear(), RBF(0.5)])
def test_equal_samples_have_a_constant_decision(kernel):
    target = np.where(np.arange(2500) % 3 == 0, 1.0, -1.0)
    dual = solve_svc(kernel, np.ones((2500, 2)), target, solver="primal")
    np.testing.assert_allclose(dual.decision, -1.0, atol=2e-3)


def test_kernel_values_of_zero_leave_the_intercept():
    dual = solve_svr(Linear(), np.zeros((2500, 2)), np.linspace(0, 1, 2500), solver="primal")
    np.testing.assert_allclose(dual.decision, 0.5, atol=0.2)


def test_fourier_features_come_close_to_the_exact_solution():
    X, score = samples(0, 600)
    y = score > 0
    exact = solve_svc(RBF(0.3), X, y, tol=1e-5)
    found = solve_svc(RBF(0.3), X, y, solver=Primal(2000, features="fourier", tol=1e-5))
    assert np.mean(np.sign(found.decision) == np.sign(exact.decision)) > 0.97
    assert found.objective == pytest.approx(exact.objective, rel=0.02)


def test_an_exact_gram_matrix_is_solved_on_features_of_its_kernels():
    X, score = samples(0, 100)
    gram = GatedGram(kernels(), X, gates(100, 1))
    problem = hinge(signs(score), 1.0)
    found, best = (s(tol=1e-7).solve(gram, problem) for s in (Primal, Exact))
    np.testing.assert_allclose(found.decision, best.decision, atol=1e-5)
    same = solve_svc(gram, None, score > 0, solver="primal", tol=1e-7)
    np.testing.assert_allclose(same.decision, best.decision, atol=1e-5)


def test_the_seed_determines_the_solution():
    X, score = samples(0, 300)
    objectives = [
        solve_svc(RBF(0.5), X, score > 0, solver=Primal(20, random_state=seed)).objective
        for seed in (0, 0, 1)
    ]
    assert objectives[0] == objectives[1] != objectives[2]


@pytest.mark.parametrize("cache_size", [512, 0.05])
def test_too_few_passes_warn_and_leave_a_feasible_solution(cache_size):
    X, score = samples(0, 400)
    solver = Primal(30, tol=1e-9, max_iter=2, cache_size=cache_size)
    gram, problem = solver.inner_products(X).gated([RBF(0.5)]), hinge(signs(score), 10.0)
    with pytest.warns(ConvergenceWarning, match=r"2 passes .*max_iter"):
        dual = solver.solve(gram, problem)
    assert not dual.converged
    assert dual.n_iter == 2
    assert abs(dual.coef.sum()) < 1e-9
    assert (problem.lower <= dual.coef).all()
    assert (dual.coef <= problem.upper).all()
    assert dual.gap >= dual_value(matrix(gram), problem, dual.coef) * 1e-9


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rank": 0}, "rank .*got 0"),
        ({"rank": 2.5}, "rank .*got 2.5"),
        ({"features": "wavelets"}, "features .*'landmarks', 'fourier', got 'wav"),
        ({"sample_size": -1}, "sample_size .*got -1"),
        ({"tol": -1.0}, "tol .*got -1.0"),
        ({"cache_size": 0}, "cache_size .*got 0"),
        ({"random_state": "x"}, "seed"),
    ],
)
def test_settings_that_make_no_sense_are_named(settings, message):
    X, score = samples(0, 20)
    with pytest.raises(ValueError, match=message):
        solve_svc(RBF(0.5), X, score > 0, solver=Primal(**settings))


@settings(max_examples=20)
@given(seed=seeds, excess=st.floats(-1e-3, 1e-3))
def test_excess_is_taken_from_free_coefficients(seed, excess):
    rng = np.random.RandomState(seed)
    problem = epsilon_insensitive(rng.normal(size=30), 1.0, 0.1)
    coef = some_point(problem, seed)
    free = (np.abs(coef) < 1.0) & (coef != 0)
    coef[np.flatnonzero(free)[:1]] += excess
    coef = np.clip(coef, -1.0, 1.0)
    found = problem.balanced(coef)
    assert abs(found.sum()) <= 1e-12
    assert (np.abs(found) <= 1.0).all()
    if free.sum() > 2 and np.abs(coef[free]).min() > 1e-3:
        np.testing.assert_array_equal(found[~free], coef[~free])
        np.testing.assert_allclose(found, coef, atol=2e-3)


def test_newton_steps_of_a_squared_hinge_are_few():
    X, score = samples(0, 1200)
    solver = Primal(60, cache_size=0.2)
    gram = solver.inner_products(X).gated([RBF(0.5)])
    search = PrimalNewton(gram, LOSSES["squared hinge"](score, 10.0), 1e-3, 500)
    assert search.solve(None).violation <= 1e-3
    assert search.steps <= 15
