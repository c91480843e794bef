"""solve_svc and solve_svr: everything they take, everything they refuse."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel
from solver_cases import samples, signs, stored, whole_gram

from lokl.gram import GatedGram
from lokl.kernels import RBF, Linear, Precomputed
from lokl.solvers import Exact, LibSVM, Solver, hinge, solve_svc, solve_svr, squared_hinge
from lokl.solvers.solve import resolve_solver

X, SCORE = samples(0, n=50)
Y = signs(SCORE)
TIGHT = {"tol": 1e-9}


def assert_same(one, other, atol=1e-7):
    np.testing.assert_allclose(one.coef, other.coef, atol=atol)
    np.testing.assert_allclose(one.intercept, other.intercept, atol=atol)
    np.testing.assert_allclose(one.objective, other.objective, rtol=1e-6)


@pytest.mark.parametrize(
    "given",
    [
        (RBF("scale"), X),
        ("rbf", X),
        (["rbf"], X),
        ({"name": RBF("scale")}, X),
        (["rbf", "rbf"], X),
        (lambda A, B: rbf_kernel(A, B, gamma=1 / (X.shape[1] * X.var())), X),
        ("rbf", X.tolist()),
        ("rbf", sparse.csr_matrix(X)),
        ("rbf", sparse.csc_array(X)),
        (RBF("scale").bind(X)(X), None),
        (Precomputed(RBF("scale").bind(X)(X)), np.arange(50.0)[:, np.newaxis]),
        (GatedGram([RBF("scale").bind(X)], X, dtype="float64"), None),
    ],
    ids=[
        "kernel",
        "string",
        "list",
        "dict",
        "twice",
        "function",
        "lists",
        "csr",
        "csc",
        "array",
        "stored",
        "gram",
    ],
)
@pytest.mark.parametrize("solve", [solve_svc, solve_svr])
def test_all_ways_to_give_a_kernel_are_one(given, solve):
    y = Y if solve is solve_svc else SCORE
    assert_same(solve(*given, y, **TIGHT), solve(RBF("scale"), X, y, **TIGHT))


def test_several_kernels_are_averaged():
    mean = 0.5 * (Linear()(X) + RBF(0.3)(X))
    assert_same(
        solve_svc([Linear(), RBF(0.3)], X, Y, **TIGHT), solve_svc(mean, None, Y, **TIGHT), 1e-6
    )


@pytest.mark.parametrize(
    "labels",
    [(0, 1), (-1, 1), (3, 7), ("no", "yes"), (False, True), (-0.5, 2.5)],
    ids=str,
)
def test_the_larger_label_is_positive(labels):
    y = np.array(labels)[(Y > 0).astype(int)]
    assert_same(solve_svc(RBF(0.3), X, y, **TIGHT), solve_svc(RBF(0.3), X, Y, **TIGHT))
    assert_same(solve_svc(RBF(0.3), X, y.tolist(), **TIGHT), solve_svc(RBF(0.3), X, Y, **TIGHT))


@pytest.mark.parametrize("solver", ["exact", "libsvm", Exact(tol=1e-9), LibSVM(tol=1e-9)], ids=str)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_all_solvers_agree(solver, loss):
    options = TIGHT if isinstance(solver, str) else {}
    dual = solve_svc(RBF(0.3), X, Y, loss=loss, solver=solver, **options)
    problem = {"hinge": hinge, "squared_hinge": squared_hinge}[loss](Y, 1.0)
    best = Exact(tol=1e-9).solve(whole_gram(RBF(0.3)(X), dtype="float64"), problem)
    assert_same(dual, best, atol=1e-5)


@pytest.mark.parametrize("solve", [solve_svc, solve_svr])
def test_costs_may_differ_and_starts_be_given(solve):
    y = Y if solve is solve_svc else SCORE
    cost = np.linspace(0, 2, 50)
    cold = solve(RBF(0.3), X, y, cost, **TIGHT)
    assert cold.coef[0] == 0
    assert (np.abs(cold.coef) <= cost).all()
    assert_same(solve(RBF(0.3), X, y, cost.tolist(), **TIGHT), cold)
    assert_same(solve(RBF(0.3), X, y, cost, start=cold.coef.tolist(), **TIGHT), cold)


def test_epsilon_is_the_free_residual():
    dual = solve_svr(RBF(0.3), X, SCORE, C=1e4, epsilon=0.25, **TIGHT)
    residual = SCORE - RBF(0.3)(X) @ dual.coef - dual.intercept
    free = (dual.coef != 0) & (np.abs(dual.coef) < 1e4)
    assert free.any()
    np.testing.assert_allclose(residual[free], 0.25 * np.sign(dual.coef[free]), atol=1e-6)


def test_arguments_are_left_alone(read_only):
    K, y, cost, start = RBF(0.3)(X), Y.copy(), np.full(50, 2.0), np.full(50, 0.1)
    for part in (K, y, cost, start):
        read_only(part)
    solve_svc(K, None, y, cost, start=start)
    solve_svc(RBF(0.3), read_only(sparse.csr_matrix(X)), y, cost, start=start)
    solve_svr(RBF(0.3), read_only(X.copy()), y, cost, start=start)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((RBF(1.0), X, np.ones(50)), {}, r"two classes, got 1: \[1\.\]"),
        ((RBF(1.0), X, np.arange(50)), {}, r"two classes, got 50: \[0 1 2 3 4\]"),
        ((RBF(1.0), X, Y), {"loss": "logistic"}, "loss .*got 'logistic'"),
        ((RBF(1.0), X, Y), {"solver": "magic"}, "unknown solver 'magic'; .* one of exact, libsvm"),
        ((RBF(1.0), X, Y), {"solver": 3}, "unknown solver 3"),
        ((RBF(1.0), X, Y), {"C": -1.0}, r"\bC\b.*got -1"),
        ((RBF(1.0), X, Y), {"C": np.zeros(50)}, r"\bC\b.*got .*0"),
        ((RBF(1.0), X, Y), {"C": np.ones(3)}, r"\bC\b"),
        ((RBF(1.0), X, Y), {"start": np.ones(3)}, r"\bstart\b"),
        ((RBF(1.0), X, Y), {"start": np.full(50, np.nan)}, r"\bstart\b"),
        ((RBF(1.0), X[:40], Y), {}, r"inconsistent numbers of samples: \[40, 50\]"),
        ((np.eye(40), None, Y), {}, r"inconsistent numbers of samples: \[40, 50\]"),
        ((whole_gram(np.eye(40)), None, Y), {}, "Gram matrix has 40 samples, y has 50"),
        ((np.eye(50)[:, :40], None, Y), {}, r"\(50, 40\)"),
        ((np.triu(np.ones((50, 50))), None, Y), {}, "differ by 1"),
        ((np.full((50, 50), np.nan), None, Y), {}, "finite, but row 0, column 0 is nan"),
        (("circle", X, Y), {}, "'circle'.*linear"),
        (([], X, Y), {}, "kernels is empty"),
        ((RBF(-1.0), X, Y), {}, "gamma must be a positive finite number, got -1"),
        ((RBF(1.0), np.where(X > 2, np.nan, X), Y), {}, "contains NaN"),
        ((RBF(1.0), X, np.column_stack([Y, Y])), {}, "1d array"),
    ],
)
def test_solve_svc_rejects(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        solve_svc(*arguments, **options)


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        (SCORE, {"epsilon": -0.1}, "epsilon .*got -0.1"),
        (SCORE, {"C": -1.0}, r"\bC\b.*got -1"),
        (SCORE, {"solver": "magic"}, "unknown solver 'magic'"),
        (np.full(50, np.nan), {}, "targets"),
        (SCORE[:40], {}, r"inconsistent numbers of samples: \[50, 40\]"),
    ],
)
def test_solve_svr_rejects(y, options, message):
    with pytest.raises(ValueError, match=message):
        solve_svr(RBF(1.0), X, y, **options)


@pytest.mark.parametrize("working_set", [0, 1, -5])
def test_a_working_set_without_a_pair_is_rejected(working_set):
    many, score = samples(0, n=2100)
    with pytest.raises(ValueError, match=f"working_set.*{working_set}"):
        solve_svc(RBF(1.0), many, signs(score), working_set=working_set)


def test_solvers_by_name_take_settings_and_objects_stay():
    exact = resolve_solver("exact", tol=1e-5, cache_size=7)
    assert isinstance(exact, Exact)
    assert (exact.tol, exact.cache_size) == (1e-5, 7)
    assert isinstance(resolve_solver("libsvm"), LibSVM)
    solver = Exact(working_set=77)
    assert resolve_solver(solver) is solver
    with pytest.raises(ValueError, match=r"tol=1e-05 .*tol=1e-05, working_set=77"):
        resolve_solver(solver, tol=1e-5)
    with pytest.raises(ValueError, match=r"tol=1.0, depth=3 .*Exact\(tol=1.0.*\).* depth"):
        solve_svc(RBF(1.0), X, Y, solver=solver, tol=1.0, depth=3)
    with pytest.raises(ValueError, match=r"depth=3 .*Exact\(.*; .*depth"):
        solve_svr(RBF(1.0), X, SCORE, solver=solver, depth=3)


def test_a_loss_is_never_changed_silently():
    with pytest.raises(ValueError, match=r"solver=MWU\(\) .*loss='hinge'"):
        solve_svc(RBF(0.3), X, Y, loss="hinge", solver="mwu")
    squared = solve_svc(RBF(0.3), X, Y, loss="squared_hinge")
    for loss in ("auto", "squared_hinge"):
        mwu = solve_svc(RBF(0.3), X, Y, loss=loss, solver="mwu", epsilon=1e-3)
        np.testing.assert_allclose(mwu.objective, squared.objective, rtol=2e-3)
    assert solve_svc(RBF(0.3), X, Y).objective == solve_svc(RBF(0.3), X, Y, loss="hinge").objective


def test_a_solver_without_regression_is_rejected():
    class Classes(Exact):
        losses = ("hinge",)

    with pytest.raises(ValueError, match=r"solver=Classes\(\).*regression"):
        solve_svr(RBF(0.3), X, SCORE, solver=Classes())


def test_a_solver_of_the_user_is_used():
    class Zero(Solver):
        def solve(self, gram, problem, start=None, ceiling=np.inf):
            return Exact(max_iter=-1, tol=1e6).solve(gram, problem, start)

    dual = solve_svc(*stored(np.eye(50)), Y, solver=Zero())
    assert (dual.coef == 0).all()


@pytest.mark.parametrize("scale", [1e-170, 1e160])
def test_data_out_of_range_is_rejected(scale):
    with pytest.raises(ValueError, match=r"kernel 'rbf'"):
        solve_svc("rbf", X * scale, Y)
