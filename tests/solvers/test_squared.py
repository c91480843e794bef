"""The squared loss: solutions equal those of the bordered system, leave-one-out equals refits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel

from lokl import ExpertAverageRegressor, UniformMKLRegressor
from lokl.kernels import RBF, Linear, Precomputed
from lokl.solvers import (
    Exact,
    Machines,
    Primal,
    Squared,
    epsilon_insensitive,
    hinge,
    solve_svc,
    solve_svr,
    squared,
    squared_hinge,
    squared_hinge_path,
    squared_loss,
    squared_path,
    squared_path_features,
)
from lokl.solvers.cost_path import StoredCostPath
from lokl.solvers.squared import leave_one_out

COSTS = [0.03, 1.0, 50.0, 2.0, 7.0, 1000.0]


def bordered(K, Y, cost, weight):
    """Return coefficients and intercept from one dense system of all samples that count."""
    kept = np.flatnonzero(weight > 0)
    n = len(kept)
    system = np.ones((n + 1, n + 1))
    system[:n, :n] = K[np.ix_(kept, kept)] + np.diag(1 / (cost * weight[kept]))
    system[n, n] = 0
    solution = np.linalg.solve(system, np.vstack([Y[kept], np.zeros((1, Y.shape[1]))]))
    coef = np.zeros_like(Y)
    coef[kept] = solution[:n]
    return coef, solution[n]


def case(seed, n=40, weighted=True, features=None):
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, 3))
    # Duplicates, with equal and with other targets.
    X[n // 2 : n // 2 + 4] = X[:4]
    Phi = X if features == "wide" else np.hstack([X, X**2, np.ones((n, 1))])
    K = Phi @ Phi.T if features else rbf_kernel(X, gamma=0.3)
    Y = rng.normal(size=(n, 3))
    Y[:, 0] = np.sign(Y[:, 0])
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], size=n) if weighted else np.ones(n)
    return K, Phi, Y, weight


def check_path(path, K, Y, weight, tol=1e-8):
    for c, cost in enumerate(path.costs):
        coef, intercept = bordered(K, Y, cost, weight)
        np.testing.assert_allclose(path.coef[c], coef, atol=tol * (1 + np.abs(coef).max()))
        np.testing.assert_allclose(path.intercept[c], intercept, atol=tol)
        for j in range(len(Y)):
            without = np.where(np.arange(len(Y)) == j, 0.0, weight)
            coef, intercept = bordered(K, Y, cost, without)
            np.testing.assert_allclose(path.loo[c, j], K[j] @ coef + intercept, atol=tol)


@pytest.mark.parametrize("costs", [COSTS[:1], COSTS[:3], COSTS], ids=len)
@pytest.mark.parametrize("weighted", [False, True])
@given(seed=st.integers(0, 2**16))
def test_a_path_equals_refits(costs, weighted, seed):
    K, _, Y, weight = case(seed, 20, weighted)
    path = squared_path(K, Y, costs, weight if weighted else None)
    check_path(path, K, Y, weight)


@pytest.mark.parametrize("costs", [COSTS[1:2], COSTS], ids=len)
def test_a_path_of_forty_samples_equals_refits(costs):
    K, _, Y, weight = case(3)
    check_path(squared_path(K, Y, costs, weight), K, Y, weight)


@pytest.mark.parametrize("weighted", [False, True])
@given(seed=st.integers(0, 2**16))
def test_a_path_on_features_equals_refits(weighted, seed):
    K, Phi, Y, weight = case(seed, 20, weighted, "low rank")
    check_path(squared_path_features(Phi, Y, COSTS, weight), K, Y, weight, 1e-6)


def test_more_features_than_samples():
    rng = np.random.RandomState(0)
    Phi, Y = rng.normal(size=(12, 30)), rng.normal(size=(12, 2))
    path = squared_path_features(Phi, Y, COSTS)
    check_path(path, Phi @ Phi.T, Y, np.ones(12), 1e-7)


@pytest.mark.parametrize("costs", [[1e5], [1e5] * 6], ids=len)
def test_a_singular_matrix_and_a_large_constant(costs):
    K, _, Y, weight = case(1, features="low rank")
    path, shifted = squared_path(K, Y, costs, weight), squared_path(K + 1e4, Y, costs, weight)
    # The coefficients sum to zero, so a constant in the kernel changes nothing.
    np.testing.assert_allclose(path.loo, shifted.loo, atol=1e-4)
    np.testing.assert_allclose(path.coef.sum(axis=1), 0, atol=1e-6 * np.abs(path.coef).max())
    check_path(path, K, Y, weight, 1e-5)


def test_indefinite_up_to_rounding():
    K = np.ones((30, 30), dtype=np.float32)
    K[0, 0] -= 1e-6
    Y = np.random.RandomState(0).normal(size=30)
    for cost in (1e5, 1e10):
        for costs in ([cost], [cost] * 6):
            path = squared_path(K, Y, costs)
            assert np.isfinite(path.loo).all()
            assert cost > 1e5 or abs(path.intercept[0] - Y.mean()) < 0.1


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("costs", [[1.0, 5.0], COSTS], ids=len)
def test_single_precision_of_many_samples_is_refined(costs, weighted, monkeypatch):
    K, _, Y, weight = case(0, 60, weighted, features="wide")
    K, precisions, factorize = K / 10, [], squared._Inverse.of

    def recorded(matrix, costs, dtype, rounding):
        precisions.append(dtype)
        return factorize(matrix, costs, dtype, rounding)

    monkeypatch.setattr(squared._Inverse, "of", recorded)
    exact = squared_path(K, Y, costs, weight)
    assert set(precisions) == {np.float64}
    precisions.clear()
    monkeypatch.setattr(squared, "_LARGE", 10)
    monkeypatch.setattr(squared, "_WELL_CONDITIONED", 1e6)
    path = squared_path(K, Y, costs, weight)
    assert set(precisions) == {np.float32}
    np.testing.assert_allclose(path.coef, exact.coef, atol=1e-7 * np.abs(exact.coef).max())
    np.testing.assert_allclose(path.loo, exact.loo, atol=1e-2)


def test_one_factorisation_serves_a_solution_and_its_leave_one_out_decisions(monkeypatch):
    _, X, Y, weight = case(2, 90, True, "wide")
    count, factorize = [], squared._Inverse.of
    monkeypatch.setattr(
        squared._Inverse, "of", lambda *given: count.append(given) or factorize(*given)
    )
    solver, problems = Exact(), problems_of(Y, 3.0 * weight)
    gram = solver.inner_products(X).gated([RBF(0.3)])
    Machines(solver, problems).solve(gram)
    left_out = leave_one_out(gram, problems)
    assert len(count) == 1
    reference = squared_path(RBF(0.3)(X), Y, [3.0], weight).loo[0]
    np.testing.assert_allclose(left_out, reference, atol=1e-6)
    # Other costs, other targets, and another matrix in the same memory need their own.
    for others, matrix in (
        (problems_of(Y, 4.0 * weight), gram),
        (problems_of(Y + 1.0, 3.0 * weight), gram),
        (problems, gram.inner.gated([RBF(0.4)])),
    ):
        Machines(solver, problems).solve(gram)
        gamma = matrix.kernels[0].gamma
        reference = squared_path(RBF(gamma)(X), *system_of(others)).loo[0]
        np.testing.assert_allclose(leave_one_out(matrix, others), reference, atol=1e-6)


def hinge_case(seed, n=30):
    """Return a kernel matrix, labels of three classes against the rest, and weights."""
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, 2))
    y = np.where(np.arange(3) == rng.randint(3, size=n)[:, np.newaxis], 1.0, -1.0)
    return RBF(0.5)(X), y, rng.choice([0.0, 1.0, 2.0], size=n)


@given(seed=st.integers(0, 2**16))
def test_squared_hinge_at_several_costs_equals_the_exact_solver(seed):
    K, Y, weight = hinge_case(seed)
    path = squared_hinge_path(K, Y, COSTS, weight)
    for index, cost in enumerate(COSTS):
        for task, y in enumerate(Y.T):
            if not np.isfinite(path.coef[index, :, task]).all():
                continue
            exact = solve_svc(K, None, y, cost * weight, loss="squared_hinge", tol=1e-9)
            atol = 1e-5 * np.abs(exact.coef).max()
            np.testing.assert_allclose(path.coef[index, :, task], exact.coef, atol=atol)
            np.testing.assert_allclose(path.intercept[index, task], exact.intercept, atol=1e-5)


def test_leave_one_out_of_the_squared_hinge_equals_refits_with_the_same_support():
    K, Y, _ = hinge_case(0)
    path, n_equal = squared_hinge_path(K, Y[:, 0], [3.0]), 0
    support = path.coef[0, :, 0] != 0
    for j in range(len(K)):
        without = np.where(np.arange(len(K)) == j, 0.0, 1.0)
        refit = squared_hinge_path(K, Y[:, 0], [3.0], without)
        if ((refit.coef[0, :, 0] != 0) == (support & (without > 0))).all():
            n_equal += 1
            decision = K[j] @ refit.coef[0] + refit.intercept[0]
            np.testing.assert_allclose(path.loo[0, j], decision, atol=1e-8)
    assert n_equal > len(K) / 2


def test_one_class_has_no_squared_hinge_solution():
    path = squared_hinge_path(np.eye(3), np.ones(3), [1.0])
    assert np.isnan(path.coef).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_the_bordered_inverse(weighted):
    K, _, Y, weight = case(5, 15, weighted)
    M, m = squared.bordered_inverse(K, problems_of(Y, 2.0 * weight))
    coef, intercept = bordered(K, Y, 2.0, weight)
    np.testing.assert_allclose(M @ Y, coef, atol=1e-10)
    np.testing.assert_allclose(m @ Y, intercept, atol=1e-10)
    np.testing.assert_allclose(M, M.T, atol=1e-12)
    j = int(np.flatnonzero(weight)[0])
    without = np.where(np.arange(15) == j, 0.0, weight)
    expected = bordered(K, Y, 2.0, without)
    np.testing.assert_allclose(coef - np.outer(M[:, j], coef[j]) / M[j, j], expected[0], atol=1e-10)
    np.testing.assert_allclose(intercept - m[j] * coef[j] / M[j, j], expected[1], atol=1e-10)


def test_one_sample_has_no_leave_one_out_decision():
    for path in (
        squared_path(np.ones((1, 1)), [2.0], [1.0]),
        squared_path_features(np.ones((1, 1)), [2.0], [1.0]),
    ):
        assert [path.coef.item(), path.intercept.item(), path.loo.item()] == [0, 2, 0]


def test_a_matrix_is_not_changed(read_only):
    K, Phi, Y, weight = case(0, 10)
    for costs in (COSTS[:1], COSTS):
        squared_path(read_only(K), read_only(Y), costs, read_only(weight))
        squared_path_features(read_only(Phi), read_only(Y), costs, read_only(weight))


@pytest.mark.parametrize("costs", [[], [0.0], [-1.0], [np.inf], 1.0])
def test_costs_are_checked(costs):
    with pytest.raises(ValueError, match="costs"):
        squared_path(np.eye(3), np.ones(3), costs)


@pytest.mark.parametrize("weight", [[1.0, 2.0], [0.0, 0.0, 0.0], [1.0, -1.0, 1.0]])
def test_weights_are_checked(weight):
    with pytest.raises(ValueError, match="weight"):
        squared_path(np.eye(3), np.ones(3), [1.0], weight)


# Solvers


def problems_of(Y, cost):
    return [squared_loss(target, cost) for target in Y.T]


def system_of(problems):
    """Return targets, one cost, and weights of problems."""
    return np.column_stack([problem.target for problem in problems]), [1.0], problems[0].cost


def check_duals(duals, K, Y, cost, tol=1e-7):
    coef, intercept = bordered(K, Y, 1.0, cost)
    for k, dual in enumerate(duals):
        close = {"atol": tol * (1 + np.abs(coef).max())}
        np.testing.assert_allclose(dual.coef, coef[:, k], **close)
        np.testing.assert_allclose(dual.intercept, intercept[k], atol=tol)
        np.testing.assert_allclose(dual.decision, K @ coef[:, k] + intercept[k], **close)
        value = 0.5 * Y[:, k] @ coef[:, k]
        np.testing.assert_allclose(dual.objective, value, rtol=1e-5, atol=tol)
        assert dual.converged
        assert dual.gap <= max(10 * tol, 1e-9) * (1 + value)


SOLVERS = {
    "squared": Squared(tol=1e-9),
    "exact": Exact(tol=1e-9),
    # Fewer megabytes than the matrix has: conjugate gradients.
    "products": Squared(tol=1e-9, cache_size=0.02),
    "features": Primal(tol=1e-9),
    "features in tiles": Primal(tol=1e-9, rank=30, cache_size=1e-3),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernel", [Linear(), RBF(0.3)], ids=["linear", "rbf"])
@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
def test_every_solver_finds_the_solution_of_all_targets(solver, kernel, weighted):
    _, X, Y, weight = case(2, 90, weighted, "wide")
    gram = solver.inner_products(X).gated([kernel.bind(X)])
    K = gram.block(np.arange(len(X))) if gram.is_low_rank else kernel(X)
    problems = problems_of(Y, 3.0 * weight)
    solution = Machines(solver, problems).solve(gram)
    check_duals(solution.duals, K, Y, 3.0 * weight)
    for alone, dual in zip(problems, solution.duals, strict=True):
        np.testing.assert_allclose(solver.solve(gram, alone).coef, dual.coef, atol=1e-7)
    left_out = leave_one_out(gram, problems)
    if gram.is_low_rank or gram.fits or not gram.needs_rows:
        reference = squared_path(K, Y, [3.0], weight).loo[0]
        np.testing.assert_allclose(left_out, reference, atol=1e-6)
    else:
        assert left_out is None


def test_conjugate_gradients_continue_from_a_start():
    _, X, Y, weight = case(2, 90, True, "wide")
    solver = SOLVERS["products"]
    gram, problem = solver.inner_products(X).gated([RBF(0.3)]), problems_of(Y, 3.0 * weight)[0]
    cold = solver.solve(gram, problem)
    warm = solver.solve(gram, problem, cold.coef)
    assert warm.n_iter < cold.n_iter
    with pytest.warns(UserWarning, match="tol"):
        Squared(tol=1e-9, cache_size=0.02, max_iter=1).solve(gram, problem)


@given(seed=st.integers(0, 2**16))
def test_folds_equal_fits_without_their_samples(seed):
    K, _, Y, weight = case(seed, 20)
    cost, solver = 2.0 * weight + 0.1, Exact()
    gram = solver.inner_products(np.arange(20.0)[:, np.newaxis]).gated([Precomputed(K)])
    kept = [np.arange(0, 20, 2), np.arange(1, 20)]
    problems = [problem.restrict(rows) for rows in kept for problem in problems_of(Y, cost)]
    duals = solver.solve_subsets(gram, problems)
    for i, rows in enumerate(kept):
        present = np.where(np.isin(np.arange(20), rows), cost, 0.0)
        check_duals(duals[3 * i : 3 * i + 3], K, Y, present)
    path = StoredCostPath(K, 1e-6)
    np.testing.assert_allclose(path.solve(problems[0]).coef, duals[0].coef, atol=1e-9)


def test_functions_and_names():
    _, X, Y, _ = case(1, 30, False, "wide")
    labels = Y[:, 0]
    by_name = solve_svc(RBF(0.3), X, labels, C=2.0, solver="squared")
    by_loss = solve_svc(RBF(0.3), X, labels, C=2.0, loss="squared")
    path = squared_path(RBF(0.3)(X), labels, [2.0])
    for dual in (by_name, by_loss, solve_svr(RBF(0.3), X, labels, C=2.0, loss="squared")):
        np.testing.assert_allclose(dual.coef, path.coef[0, :, 0], atol=1e-9)
    for solver in ("libsvm", "mwu"):
        with pytest.raises(ValueError, match="squared"):
            solve_svr(RBF(0.3), X, labels, loss="squared", solver=solver)
    for solve, loss in ((solve_svr, "epsilon_insensitive"), (solve_svc, "hinge")):
        with pytest.raises(ValueError, match=loss):
            solve(RBF(0.3), X, labels, loss=loss, solver="squared")


def test_kinds_of_problems():
    y, cost = np.array([1.0, -1.0, 1.0]), np.array([1.0, 0.0, 2.0])
    problem = squared_loss(y, cost, is_classification=True)
    assert problem.is_squared
    assert problem.is_classification
    assert problem.take(np.array([0, 2])).is_squared
    assert problem.restrict(np.array([2])).is_squared
    np.testing.assert_array_equal(problem.cost, cost)
    np.testing.assert_array_equal(problem.weighted(np.array([2.0, 1.0, 0.0])).cost, [2, 0, 0])
    # The loss is cost / 2 times the squared residual.
    np.testing.assert_allclose(problem.losses(np.zeros(3)), cost / 2)
    assert not squared_hinge(y, cost).is_squared
    assert not hinge(y, cost).is_squared
    assert not epsilon_insensitive(y, cost, 0.0).is_squared


@pytest.mark.parametrize("C", [1.0, 2.0**14])
def test_large_costs_keep_their_digits(C):
    """Repeated samples with a wide kernel: coefficients are large and nearly cancel."""
    rng = np.random.RandomState(0)
    X = rng.randint(3, size=(1600, 3)).astype(float)
    y = X.sum(axis=1) % 2 + rng.normal(size=len(X))
    model = UniformMKLRegressor([RBF(2.0**-6)], C=C, loss="squared").fit(X, y)
    K = RBF(2.0**-6)(X)
    path = squared_path(K, y, [C])
    expected = K @ path.coef[0] + path.intercept
    np.testing.assert_allclose(model.predict(X), expected[:, 0], atol=1e-3)
    experts = ExpertAverageRegressor([RBF(2.0**-6)], cost_factors=[C], loss="squared").fit(X, y)
    np.testing.assert_allclose(experts.predict(X), model.predict(X), atol=1e-3)
