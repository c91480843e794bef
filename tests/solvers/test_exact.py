"""The exact solver on small problems: every law on the whole matrix and in blocks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, SVR
from solver_cases import (
    LOSSES,
    assert_solves,
    best_value,
    budget,
    make,
    mixed_cost,
    samples,
    signs,
    solve,
    stored,
    whole_gram,
)

from lokl.kernels import RBF, Callable, Linear, Polynomial, Sigmoid
from lokl.solvers import Exact, LibSVM, epsilon_insensitive, hinge, solve_svc, solve_svr

losses = pytest.mark.parametrize("loss", LOSSES)
# Less memory than the whole matrix makes the solver work in blocks.
paths = pytest.mark.parametrize("rows", [None, 0.3], ids=["whole", "blocks"])
seeds = st.integers(0, 2**16)
few = settings(max_examples=10)


def memory(rows, n):
    return {} if rows is None else {"cache_size": budget(max(int(rows * n), 3), n)}


@losses
@paths
@given(seed=seeds, n=st.integers(4, 40))
def test_solution_is_feasible_certified_and_the_best(loss, rows, seed, n):
    K, problem = make(seed, loss, n, mixed_cost(seed, n))
    dual = solve(K, problem, **memory(rows, n))
    assert_solves(K, problem, dual, gap=1e-6)
    np.testing.assert_allclose(dual.objective, best_value(K, problem), rtol=1e-6, atol=1e-6)


@losses
@few
@given(seed=seeds)
def test_looser_tolerance_is_kept_and_certified(loss, seed):
    K, problem = make(seed, loss)
    tight = solve(K, problem)
    for tol in (1e-1, 1e-3, 1e-5):
        dual = solve(K, problem, tol=tol, cache_size=budget(10, len(K)))
        assert_solves(K, problem, dual, gap=np.inf)
        up, down = problem.violations(dual.coef, problem.target - _ridged(K, problem) @ dual.coef)
        assert up.max() - down.min() <= tol + 1e-9
        assert tight.objective - dual.objective <= dual.gap + 1e-9


def _ridged(K, problem):
    return K + np.diag(problem.ridge)


@losses
@given(seed=seeds)
def test_libsvm_finds_the_same(loss, seed):
    # LibSVM keeps kernel values in float32; on values that float32 holds it loses nothing.
    K, problem = make(seed, loss, C=mixed_cost(seed, 40))
    K = (K + 0.1 * np.eye(40)).astype(np.float32).astype(float)
    libsvm, gram = LibSVM(tol=1e-9), whole_gram(K)
    theirs, ours = libsvm.solve(gram, problem), solve(K, problem)
    assert_solves(K, problem, theirs, gap=1e-6, slack=1e-12)
    np.testing.assert_allclose(ours.objective, theirs.objective, rtol=1e-8)
    np.testing.assert_allclose(ours.coef, theirs.coef, atol=1e-6)
    np.testing.assert_allclose(
        K @ ours.coef + ours.intercept, K @ theirs.coef + theirs.intercept, atol=1e-6
    )


@pytest.mark.parametrize(
    ("kernel", "theirs", "rounding"),
    [
        (RBF(0.3), {"kernel": "rbf", "gamma": 0.3}, 1e-5),
        (Polynomial(2), {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 1.0}, 1e-3),
        (Linear(), {"kernel": "linear"}, 1e-4),
    ],
    ids=["rbf", "poly", "linear"],
)
@pytest.mark.parametrize("C", [0.1, 2.0])
def test_decisions_are_those_of_scikit_learn(kernel, theirs, rounding, C):
    X, score = samples(3, n=150)
    fresh = samples(4, n=50)[0]
    y = signs(score)
    svc = SVC(C=C, tol=1e-9, **theirs).fit(X, y)
    dual = solve_svc(kernel, X, y, C, tol=1e-9)
    np.testing.assert_allclose(
        kernel(fresh, X) @ dual.coef + dual.intercept, svc.decision_function(fresh), atol=rounding
    )
    svr = SVR(C=C, epsilon=0.2, tol=1e-9, **theirs).fit(X, score)
    dual = solve_svr(kernel, X, score, C, epsilon=0.2, tol=1e-9)
    np.testing.assert_allclose(
        kernel(fresh, X) @ dual.coef + dual.intercept, svr.predict(fresh), atol=rounding
    )


@losses
@paths
@few
@given(seed=seeds, size=st.sampled_from([0.0, 1e-3, 1.0, 100.0]))
def test_every_start_ends_in_the_same_place(loss, rows, seed, size):
    K, problem = make(seed, loss, C=mixed_cost(seed, 40))
    cold = solve(K, problem, **memory(rows, 40))
    start = cold.coef + size * np.random.RandomState(seed).normal(size=40)
    kept = start.copy()
    warm = solve(K, problem, start, **memory(rows, 40))
    assert_solves(K, problem, warm, gap=1e-6)
    np.testing.assert_allclose(warm.coef, cold.coef, atol=1e-6)
    np.testing.assert_array_equal(start, kept)


@losses
@paths
@given(seed=seeds)
def test_the_solution_is_left_alone(loss, rows, seed):
    K, problem = make(seed, loss, C=1.7)
    cold = solve(K, problem, tol=1e-6, **memory(rows, 40))
    warm = solve(K, problem, cold.coef, tol=1.1e-6, **memory(rows, 40))
    assert warm.n_iter == 0
    np.testing.assert_allclose(warm.coef, cold.coef, atol=1e-15)


@losses
@pytest.mark.parametrize("n_rows", [2, 3, 4, 7, 20, 59, 60, 1000])
def test_any_memory_gives_the_same_answer(loss, n_rows):
    K, problem = make(1, loss, n=60)
    dual = solve(K, problem, tol=1e-8, cache_size=budget(n_rows, 60))
    assert_solves(K, problem, dual, gap=1e-6)
    np.testing.assert_allclose(dual.coef, solve(K, problem).coef, atol=1e-5)


@paths
@pytest.mark.parametrize("share", [0.03, 0.1])
def test_one_rare_class_changes_nothing(rows, share):
    X, score = samples(0, n=300)
    y = np.where(score > np.quantile(score, 1 - share), 1.0, -1.0)
    K = RBF(0.5)(X)
    problem = hinge(y, 10.0)
    assert_solves(K, problem, solve(K, problem, tol=1e-6, **memory(rows, 300)), gap=1e-4)


@paths
@few
@given(seed=seeds, scale=st.floats(1e-2, 1e2))
def test_scaled_kernel_is_scaled_cost(rows, seed, scale):
    K, problem = make(seed, "hinge", C=2.0 * scale)
    wide = solve(K, problem, **memory(rows, 40))
    scaled = solve(scale * K, hinge(problem.target, 2.0), **memory(rows, 40))
    np.testing.assert_allclose(scale * scaled.coef, wide.coef, rtol=1e-5, atol=1e-5 * scale)
    np.testing.assert_allclose(scaled.intercept, wide.intercept, atol=1e-5)


@losses
@paths
@few
@given(seed=seeds, shift=st.floats(0, 100))
def test_a_constant_added_to_the_kernel_changes_nothing(loss, rows, seed, shift):
    K, problem = make(seed, loss)
    plain, shifted = (solve(k, problem, **memory(rows, 40)) for k in (K, K + shift))
    np.testing.assert_allclose(shifted.coef, plain.coef, atol=1e-6)
    np.testing.assert_allclose(shifted.intercept, plain.intercept, atol=1e-6)


@losses
@paths
@few
@given(seed=seeds)
def test_the_order_of_rows_does_not_matter(loss, rows, seed):
    X, score = samples(seed)
    order = np.random.RandomState(seed).permutation(40)
    K = RBF(0.5)(X)
    plain = solve(K, LOSSES[loss](score, 2.0), **memory(rows, 40))
    moved = solve(K[order][:, order], LOSSES[loss](score[order], 2.0), **memory(rows, 40))
    np.testing.assert_allclose(moved.coef, plain.coef[order], atol=1e-6)


@losses
@given(seed=seeds)
def test_repeated_rows_are_weights(loss, seed):
    X, score = samples(seed, n=20)
    weight = np.random.RandomState(seed).randint(0, 4, size=20)
    weight[:2] = 1
    again = np.repeat(np.arange(20), weight)
    problem, repeated = LOSSES[loss](score, weight), LOSSES[loss](score[again], 1.0)
    K = RBF(0.5)(X)
    weighted, plain = solve(K, problem), solve(K[again][:, again], repeated)
    np.testing.assert_allclose(np.bincount(again, plain.coef, 20), weighted.coef, atol=1e-6)
    np.testing.assert_allclose(plain.objective, weighted.objective, rtol=1e-8)


@losses
@paths
@few
@given(seed=seeds)
def test_a_sample_without_cost_is_absent(loss, rows, seed):
    cost = mixed_cost(seed, 40)
    there = np.flatnonzero(cost)
    K, problem = make(seed, loss, C=cost)
    fewer = LOSSES[loss](problem.target[there], cost[there])
    zeros = solve(K, problem, **memory(rows, 40))
    less = solve(K[there][:, there], fewer)
    assert (zeros.coef[cost == 0] == 0).all()
    np.testing.assert_allclose(zeros.coef[there], less.coef, atol=1e-6)
    np.testing.assert_allclose(zeros.objective, less.objective, rtol=1e-8)
    np.testing.assert_allclose(zeros.gap, less.gap, atol=1e-6)


@pytest.mark.parametrize("value", [0.0, -3.0, 1e6, 1e-6])
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_a_constant_target_is_the_answer_without_support(value, epsilon):
    K, _ = make(0, "absolute", n=10)
    dual = solve(K, epsilon_insensitive(np.full(10, value), 1.0, epsilon))
    assert (dual.coef == 0).all()
    np.testing.assert_allclose(dual.intercept, value, rtol=1e-15, atol=1e-16)
    assert dual.gap <= 1e-9 * max(abs(value), 1)


@given(seed=seeds, epsilon=st.floats(0.1, 10))
def test_a_target_inside_the_tube_is_its_middle_without_support(seed, epsilon):
    K, _ = make(seed, "absolute", n=10)
    target = np.random.RandomState(seed).uniform(-epsilon, epsilon, size=10) + 5
    dual = solve(K, epsilon_insensitive(target, 1.0, epsilon))
    assert (dual.coef == 0).all()
    np.testing.assert_allclose(dual.intercept, 0.5 * (target.min() + target.max()))


@pytest.mark.parametrize("label", [-1.0, 1.0])
@pytest.mark.parametrize("solver", [Exact(), LibSVM()], ids=["exact", "libsvm"])
def test_one_class_is_the_constant_of_that_class(label, solver):
    K, _ = make(0, "hinge", n=5)
    dual = solver.solve(whole_gram(K), hinge(np.full(5, label), 1.0))
    assert (dual.coef == 0).all()
    assert dual.intercept == label
    assert dual.objective == dual.gap == 0


@losses
@pytest.mark.parametrize("n", [1, 2, 3])
def test_tiny_problems_are_solved(loss, n):
    K, problem = make(0, loss, n)
    assert_solves(K, problem, solve(K, problem), gap=1e-9)


@losses
@paths
def test_too_few_steps_warn_and_leave_a_feasible_answer(loss, rows):
    K, problem = make(0, loss)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        dual = solve(K, problem, max_iter=3, **memory(rows, 40))
    assert dual.n_iter == 3
    assert not dual.converged
    assert (problem.lower <= dual.coef).all()
    assert (dual.coef <= problem.upper).all()
    assert abs(dual.coef.sum()) < 1e-12
    assert dual.gap > 1e-3


@losses
@paths
def test_just_default_step_limit_do_not_warn(loss, rows):
    K, problem = make(0, loss)
    free = solve(K, problem, **memory(rows, 40))
    limited = solve(K, problem, max_iter=free.n_iter, **memory(rows, 40))
    np.testing.assert_array_equal(limited.coef, free.coef)
    assert limited.converged


def test_libsvm_with_too_few_steps_warns():
    K, problem = make(0, "hinge")
    with pytest.warns(ConvergenceWarning, match="LibSVM .*3 steps.*max_iter"):
        dual = LibSVM(max_iter=3).solve(whole_gram(K), problem)
    assert not dual.converged


@paths
@few
@given(seed=seeds)
def test_an_indefinite_matrix_warns_and_ends_at_a_stationary_point(rows, seed):
    rng = np.random.RandomState(seed)
    K, problem = make(seed, "hinge")
    noise = rng.normal(size=(40, 40))
    K = K + noise + noise.T
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        dual = solve(K, problem, tol=1e-6, **memory(rows, 40))
    assert dual.converged
    up, down = problem.violations(dual.coef, problem.target - K @ dual.coef)
    assert up.max() - down.min() <= 1e-6 + 1e-9


@paths
def test_the_sigmoid_kernel_warns_and_ends(rows):
    X, score = samples(0, n=60)
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        dual = solve_svc(Sigmoid(2.0, -1.0), X, signs(score), 10.0, **memory(rows, 60))
    assert dual.converged


@pytest.mark.parametrize("kernel", [RBF(0.5), Polynomial(3), Linear()], ids=["rbf", "poly", "lin"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@paths
def test_a_positive_kernel_with_repeated_rows_does_not_warn(kernel, dtype, rows):
    X, _ = samples(0, n=50)
    y = signs(np.random.RandomState(0).normal(size=100))
    options = {"dtype": dtype, **memory(rows, 100)}
    assert solve_svc(kernel, np.vstack([X, X]), y, 1.0, **options).converged


@losses
def test_float32_rows_lose_only_their_digits(loss):
    K, problem = make(0, loss)
    single = solve(K, problem, dtype="float32", tol=1e-6)
    np.testing.assert_allclose(single.coef, solve(K, problem).coef, atol=1e-4)
    assert single.coef.dtype == np.float64


@pytest.mark.parametrize("loss", ["hinge", "epsilon-insensitive"])
def test_problems_on_one_gram_share_rows(loss):
    X, score = samples(0, n=80)
    widths = []

    def watched(A, B):
        widths.append((len(A), len(B)))
        return RBF(0.5)(A, B)

    solver = Exact(tol=1e-6, cache_size=budget(70, 80))
    gram = solver.inner_products(X).gated([Callable(watched)])
    first = solver.solve(gram, LOSSES[loss](score, 0.5))
    assert any(right == 80 for _, right in widths)
    widths.clear()
    again = solver.solve(gram, LOSSES[loss](score, 0.5))
    assert all(right < 80 for left, right in widths if left > 1)
    np.testing.assert_array_equal(again.coef, first.coef)


def test_a_solve_does_not_depend_on_what_the_gram_did_before():
    X, score = samples(0, n=80)
    solver = Exact(tol=1e-6, cache_size=budget(20, 80))
    used = solver.inner_products(X).gated([RBF(0.5)])
    for target in (X[:, 0], X[:, 1], score):
        dual = solver.solve(used, epsilon_insensitive(target, 1.0, 0.1))
        fresh = solver.solve(
            solver.inner_products(X).gated([RBF(0.5)]), epsilon_insensitive(target, 1.0, 0.1)
        )
        np.testing.assert_allclose(dual.coef, fresh.coef, atol=1e-10)


@pytest.mark.parametrize("tol", [0.0, -1.0, np.nan, np.inf])
def test_tolerance_out_of_range_is_named(tol):
    K, problem = make(0, "hinge", n=5)
    with pytest.raises(ValueError, match=f"tol .*got {tol}"):
        solve(K, problem, tol=tol)


@pytest.mark.parametrize("n_rows", [0, 1])
def test_memory_below_two_rows_is_rejected_with_the_least_size(n_rows):
    K, problem = make(0, "hinge", n=60)
    with pytest.raises(ValueError, match=r"cache_size.*0\.00092 MB"):
        solve(K, problem, cache_size=budget(n_rows, 60))


def test_gram_is_double_for_small_or_tight_problems_unless_set():
    kernels, X = stored(np.eye(3))
    assert Exact().inner_products(X).gated(kernels).dtype == np.float64
    assert Exact(dtype="float32").inner_products(X).gated(kernels).dtype == np.float32
    many = np.zeros((2100, 1))
    assert Exact().inner_products(many).gated([RBF(1.0)]).dtype == np.float32
    assert Exact(tol=1e-6).inner_products(many).gated([RBF(1.0)]).dtype == np.float64
    assert Exact(dtype="float64").inner_products(many).gated([RBF(1.0)]).dtype == np.float64


@pytest.mark.parametrize("n", [60, 2500])
def test_a_solver_stops_above_the_ceiling(n):
    rng = np.random.RandomState(0)
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
    gram = Exact().inner_products(X).gated([RBF(0.5)])
    full = Exact().solve(gram, hinge(y, 1.0))
    early = Exact().solve(gram, hinge(y, 1.0), ceiling=0.2 * full.objective)
    assert early.objective > 0.2 * full.objective
    assert early.n_iter <= full.n_iter
    assert not early.converged
    same = Exact().solve(gram, hinge(y, 1.0), ceiling=2 * full.objective)
    assert same.objective == pytest.approx(full.objective, rel=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_linear_kernel_of_large_cost_needs_few_pair_moves(dtype):
    # Few coefficients are free and their matrix is nearly singular: pair moves alone are 40,000.
    rng = np.random.RandomState(0)
    X = rng.normal(size=(400, 10))
    y = signs(X[:, 0] + X[:, 1] ** 2 - 1.0 + 0.5 * rng.normal(size=400))
    dual = solve_svc(Linear(), X, y, C=10.0, dtype=dtype)
    assert dual.converged
    assert dual.n_iter < 20_000
    # From a solution whose bounds are scaled, all free coefficients are nearly right.
    larger = solve_svc(Linear(), X, y, C=40.0, dtype=dtype, start=4.0 * dual.coef)
    assert larger.converged
    assert larger.n_iter < 10_000
