"""Problems, references and plain twins that the tests of the solvers share."""

import clarabel
import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel

from lokl.gram import GatedGram
from lokl.kernels import Precomputed
from lokl.solvers import Exact, epsilon_insensitive, hinge, squared_hinge

MEGABYTE = 2**20

LOSSES = {
    "hinge": lambda score, C: hinge(signs(score), C),
    "squared hinge": lambda score, C: squared_hinge(signs(score), C),
    "epsilon-insensitive": lambda score, C: epsilon_insensitive(score, C, 0.3),
    "absolute": lambda score, C: epsilon_insensitive(score, C, 0.0),
}


def signs(score):
    return np.where(score > 0, 1.0, -1.0)


def samples(seed, n=40, d=3):
    """Features and a score that no smooth function fits; the first two scores are of both signs."""
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, d))
    score = X[:, 0] - 0.5 * X[:, -1] ** 2 + 0.5 + 0.7 * rng.normal(size=n)
    score[:2] = np.array([1.0, -1.0])[:n]
    return X, score


def make(seed, loss, n=40, C=2.0):
    """A kernel matrix of full rank and a problem on it."""
    X, score = samples(seed, n)
    return rbf_kernel(X, gamma=0.5), LOSSES[loss](score, C)


def mixed_cost(seed, n):
    """Costs that differ by sample; some samples are absent, the first two never."""
    cost = np.random.RandomState(seed).choice([0.0, 0.3, 1.0, 5.0], size=n)
    cost[:2] = 1.0
    return cost


def some_point(problem, seed):
    """Feasible coefficients: some at zero, some at a bound, some free."""
    rng = np.random.RandomState(seed)
    low, high = np.maximum(problem.lower, -2.0), np.minimum(problem.upper, 2.0)
    share = rng.choice([0.0, 0.0, 1.0, rng.uniform()], size=len(low))
    u = problem.feasible(np.where(rng.uniform(size=len(low)) < 0.5, low, high) * share)
    return np.where(np.abs(u) < 1e-12, 0.0, u)


def solve(K, problem, start=None, **settings):
    """Exact solution on a stored matrix, to a tight tolerance by default."""
    solver = Exact(**{"tol": 1e-9, **settings})
    return solver.solve(on_stored(solver, K), problem, start)


def stored(K):
    return [Precomputed(K)], np.arange(len(K), dtype=float)[:, np.newaxis]


def on_stored(solver, K):
    """A stored matrix in the precision and memory that a solver wants."""
    kernels, index = stored(K)
    return solver.inner_products(index).gated(kernels)


def whole_gram(K, **settings):
    return GatedGram(*stored(K), **settings)


def budget(n_rows, n, itemsize=8):
    """`cache_size` that holds `n_rows` rows of n samples; fewer rows than samples force blocks."""
    return n_rows * n * itemsize / MEGABYTE * (1 + 1e-9)


def dual_value(K, problem, coef):
    Q = K + np.diag(problem.ridge)
    linear = problem.target @ coef - problem.epsilon * np.abs(coef).sum()
    return linear - 0.5 * coef @ Q @ coef


def gradient(K, problem, coef):
    return problem.target - (K + np.diag(problem.ridge)) @ coef


def assert_solves(K, problem, dual, gap, slack=0.0):
    """Feasible, and certified to be within `gap` of the optimum; all from plain formulas."""
    u = dual.coef
    assert (problem.lower - slack <= u).all()
    assert (u <= problem.upper + slack).all()
    assert abs(u.sum()) <= 1e-12 * len(u) * max(np.abs(u).max(), 1.0)
    scale = max(abs(dual.objective), 1.0)
    np.testing.assert_allclose(dual.objective, dual_value(K, problem, u), atol=1e-9 * scale)
    np.testing.assert_allclose(
        dual.gap, problem.gap(u, gradient(K, problem, u), dual.intercept), atol=1e-9 * scale
    )
    assert 0 <= dual.gap <= gap * scale
    assert dual.converged


def best_value(K, problem):
    """Optimal dual value by an interior point method, in ``u`` and bounds ``s >= |u|``.

    Absent samples are left out, so that the feasible set has an interior; without one the method
    stalls. Its own primal and dual values must agree.
    """
    index = np.flatnonzero(problem.lower < problem.upper)
    present = problem.take(index)
    n, identity = len(index), sparse.identity(len(index), format="csc")
    Q = sparse.csc_matrix(np.triu(K[np.ix_(index, index)] + np.diag(present.ridge)))
    P = sparse.csc_matrix(sparse.block_diag([Q, 0 * identity]))
    slope = np.append(-present.target, np.full(n, present.epsilon))
    capped, floored = np.isfinite(present.upper), np.isfinite(present.lower)
    rows = [
        [sparse.csc_matrix(np.ones((1, n))), None],
        [identity, -identity],
        [-identity, -identity],
        [identity[capped], None],
        [-identity[floored], None],
    ]
    limits = np.concatenate([np.zeros(1 + 2 * n), present.upper[capped], -present.lower[floored]])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(len(limits) - 1)]
    A = sparse.csc_matrix(sparse.bmat(rows))
    solution = clarabel.DefaultSolver(P, slope, A, limits, cones, settings).solve()
    assert solution.status == clarabel.SolverStatus.Solved
    np.testing.assert_allclose(solution.obj_val, solution.obj_val_dual, rtol=1e-7, atol=1e-7)
    return -solution.obj_val


def plain_smo(Q, coef, gradient, lower, upper, epsilon, tol, max_steps):
    """The compiled loop in numpy, step by step; works on copies and returns them."""
    coef, gradient, Q = coef.copy(), gradient.copy(), Q.astype(float)
    diag, smallest, steps = Q.diagonal(), np.inf, 0
    while True:
        up = np.where(coef < upper, gradient - np.where(coef >= 0, epsilon, -epsilon), -np.inf)
        down = np.where(coef > lower, gradient - np.where(coef > 0, epsilon, -epsilon), np.inf)
        i = int(up.argmax())
        violation = up[i] - down.min()
        if violation <= tol or steps == max_steps:
            return (
                coef,
                gradient,
                steps,
                violation if up[i] == -np.inf else max(violation, 0.0),
                smallest,
            )
        curvature = diag[i] + diag - 2 * Q[i]
        k = int((np.maximum(up[i] - down, 0) ** 2 / np.maximum(curvature, 1e-12)).argmax())
        smallest = min(smallest, curvature[k])
        ceiling = 0.0 if epsilon and coef[i] < 0 else upper[i]
        floor = 0.0 if epsilon and coef[k] > 0 else lower[k]
        room_up, room_down = ceiling - coef[i], coef[k] - floor
        move = min((up[i] - down[k]) / max(curvature[k], 1e-12), room_up, room_down)
        coef[i] = ceiling if move == room_up else coef[i] + move
        coef[k] = floor if move == room_down else coef[k] - move
        gradient -= move * (Q[i] - Q[k])
        steps += 1
