"""Alternating minimisation against a general convex solver, and its laws."""

import clarabel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from lokl.gram import GatedGram
from lokl.kernels import RBF, Linear, Polynomial
from lokl.optimizers import NormBall, alternating
from lokl.optimizers.weights import best_weights, dual_norm
from lokl.solvers import Exact, Machines, hinge


def problem(n, rank, seed):
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    c = rng.dirichlet(np.ones(rank), size=n)
    kernels = [Linear(), Polynomial(2), RBF(0.5)]
    base = np.repeat(c[:, np.newaxis, :], len(kernels), axis=1)
    return X, y, kernels, base


def path(X, y, kernels, base, p, tol=1e-6):
    gram = GatedGram(kernels, X, base, dtype="float64")
    machines = Machines(Exact(tol=1e-8), [hinge(y, 1.0)])
    return alternating(NormBall(machines=machines, gram=gram, base=base, by_rank=True, p=p), tol)


def conic_optimum(grams, y, C, p):
    """``max 1'a - sum_l t_l / 2``, ``t_l >= |S_l|_p*``, ``S_li >= |R_li a|^2``, as a cone program.

    Variables: a (n), S (L, m), t (L), and for 1 < p* < inf powers r (L, m) with
    ``S <= r^(1/p*) t^(1 - 1/p*)``, ``sum_i r_li = t_l``.
    """
    n, L, m = len(y), len(grams), len(grams[0])
    a, S, t, r = n, L * m, L, L * m
    size = a + S + t + r
    cost = np.concatenate([-np.ones(n), np.zeros(S), np.full(L, 0.5), np.zeros(r)])
    rows, rhs, cones = [], [], []

    def add(block, right, cone):
        rows.append(sparse.csc_matrix(block))
        rhs.append(right)
        cones.append(cone)

    unit = np.eye(size)
    balance = np.zeros((1, size))
    balance[0, :n] = y
    add(balance, [0.0], clarabel.ZeroConeT(1))
    add(-unit[:n], np.zeros(n), clarabel.NonnegativeConeT(n))
    add(unit[:n], np.full(n, C), clarabel.NonnegativeConeT(n))
    conjugate = np.inf if p == 1 else p / (p - 1.0)
    for g in range(L):
        level = n + S + g
        if np.isfinite(conjugate):
            total = np.zeros((1, size))
            total[0, n + S + L + g * m : n + S + L + (g + 1) * m] = 1.0
            total[0, level] = -1.0
            add(total, [0.0], clarabel.ZeroConeT(1))
        for i in range(m):
            form = n + g * m + i
            values, vectors = np.linalg.eigh(y[:, np.newaxis] * grams[g][i] * y)
            kept = values > 1e-10 * values[-1]
            root = (vectors[:, kept] * np.sqrt(values[kept])).T
            # |root a|^2 <= S as a second-order cone: |(2 root a, S - 1)| <= S + 1.
            block = np.zeros((2 + len(root), size))
            block[0, form], block[1, form] = -1.0, -1.0
            block[2:, :n] = -2.0 * root
            right = np.zeros(2 + len(root))
            right[0], right[1] = 1.0, -1.0
            add(block, right, clarabel.SecondOrderConeT(2 + len(root)))
            if np.isinf(conjugate):
                bound = unit[form] - unit[level]
                add(bound[np.newaxis], [0.0], clarabel.NonnegativeConeT(1))
            else:
                power = np.zeros((3, size))
                power[0, n + S + L + g * m + i] = -1.0
                power[1, level] = -1.0
                power[2, form] = -1.0
                add(power, np.zeros(3), clarabel.PowerConeT(1.0 / conjugate))
    A = sparse.vstack(rows).tocsc()
    options = clarabel.DefaultSettings()
    options.verbose = False
    P = sparse.csc_matrix((size, size))
    solver = clarabel.DefaultSolver(P, cost, A, np.concatenate(rhs), cones, options)
    return -solver.solve().obj_val


@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("p", [1.0, 4 / 3, 2.0, 4.0])
def test_the_optimum_is_that_of_a_conic_solver(p, rank):
    X, y, kernels, base = problem(40, rank, seed=3)
    for step in path(X, y, kernels, base, p, tol=1e-5):
        found = step.objective
    c = base[:, 0]
    grams = [[np.outer(c[:, g], c[:, g]) * k(X) for k in kernels] for g in range(rank)]
    assert found == pytest.approx(conic_optimum(grams, y, 1.0, p), rel=1e-4)


@settings(max_examples=10)
@given(seed=st.integers(0, 1000), rank=st.integers(1, 3), p=st.sampled_from([1.0, 1.3, 2.0, 5.0]))
def test_the_objective_falls_the_gap_certifies_and_weights_stay_on_the_sphere(seed, rank, p):
    steps = []
    for step in path(*problem(30, rank, seed), p, tol=1e-4):
        steps.append(step)
        if len(steps) == 400:
            break
    objectives = np.array([step.objective for step in steps])
    assert (np.diff(objectives) <= 1e-7 * np.abs(objectives[:-1])).all()
    for step in steps:
        assert step.objective - step.gap <= objectives[-1] + 1e-9
        np.testing.assert_allclose(np.linalg.norm(step.params, ord=p, axis=1), 1.0)
    assert steps[-1].gap <= 1.1e-4 * abs(objectives[-1])


@given(
    seed=st.integers(0, 1000),
    p=st.floats(1.0, 8.0),
    m=st.integers(1, 5),
)
def test_weights_are_the_best_on_the_sphere(seed, p, m):
    rng = np.random.RandomState(seed)
    S, old = rng.uniform(0.1, 2.0, size=(2, m)), rng.uniform(0.1, 1.0, size=(2, m))
    new = best_weights(old, S, p)
    norms = (old * np.sqrt(S)) ** 2

    def cost(weights):
        return (norms / weights).sum(axis=1)

    other = rng.uniform(0.05, 1.0, size=(2, m))
    other /= np.linalg.norm(other, ord=p, axis=1, keepdims=True)
    np.testing.assert_allclose(np.linalg.norm(new, ord=p, axis=1), 1.0)
    assert (cost(new) <= cost(other) * (1 + 1e-9)).all()


def test_extreme_norms():
    S, weights = np.array([[4.0, 1.0, 0.0]]), np.full((1, 3), 0.5)
    assert dual_norm(S, 1.0) == 4.0
    assert dual_norm(S, np.inf) == 5.0
    np.testing.assert_array_equal(best_weights(weights, S, np.inf), [[1.0, 1.0, 0.0]])
    # A group without dual mass keeps what it has; a kernel without form has no weight.
    np.testing.assert_array_equal(best_weights(weights, 0 * S, 2.0), weights)
    assert best_weights(weights, S, 2.0)[0, 2] == 0.0
