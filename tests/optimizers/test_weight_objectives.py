"""Penalised weights and exponents: gradients, certificates, and a general convex solver."""

import clarabel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize

from lokl.gram import GatedGram, InnerProducts
from lokl.kernels import RBF, Linear, Polynomial
from lokl.optimizers import (
    Entropy,
    HalfSquaredNorm,
    Penalised,
    ProductObjective,
    Simplex,
    SumOfWeights,
    level_method,
    reduced_gradient,
    spectral_gradient,
)
from lokl.optimizers.cutting_planes import Planes
from lokl.solvers import Exact, Machines, epsilon_insensitive, hinge

PENALTIES = [
    SumOfWeights(),
    SumOfWeights(simplex=True),
    HalfSquaredNorm(),
    HalfSquaredNorm(simplex=True),
    HalfSquaredNorm(p=1.0),
    HalfSquaredNorm(p=1.5),
    HalfSquaredNorm(simplex=True, p=3.0),
    Entropy(),
]
penalties = pytest.mark.parametrize("penalty", PENALTIES, ids=repr)


def case(n=40, seed=0, regression=False):
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, 3))
    score = X[:, 0] * X[:, 1] + 0.3 * X[:, 2] + 0.2 * rng.normal(size=n)
    kernels = [Linear(), Polynomial(2), RBF(0.5)]
    base = np.ones((n, 3))
    gram = GatedGram(kernels, X, base, dtype="float64")
    y = np.where(score > 0, 1.0, -1.0)
    problem = epsilon_insensitive(score, 2.0, 0.1) if regression else hinge(y, 2.0)
    machines = Machines(Exact(tol=1e-10), [problem])
    return X, y, kernels, {"machines": machines, "gram": gram, "base": base}


def slope_by_differences(value, at, h=1e-5):
    return np.array([(value(at + h * e) - value(at - h * e)) / (2 * h) for e in np.eye(len(at))])


@penalties
@pytest.mark.parametrize("regression", [False, True])
def test_the_gradient_in_the_weights(penalty, regression):
    *_, parts = case(regression=regression)
    objective = Penalised(**parts, regularizer=penalty, strength=0.7)
    d = np.array([0.5, 0.2, 0.9])
    expected = slope_by_differences(lambda w: objective.at(w).objective, d)
    np.testing.assert_allclose(objective.at(d).gradient(), expected, rtol=1e-4, atol=1e-5)


@penalties
def test_weights_that_cost_too_much_are_given_up_and_forgotten(penalty):
    *_, parts = case()
    objective = Penalised(**parts, regularizer=penalty, strength=0.7)
    good, other = penalty.start(3), penalty.project(np.array([0.9, 0.3, 0.1]))
    known = objective.evaluate(good)
    start = list(parts["machines"]._starts)
    value = objective.evaluate(other).objective
    objective.evaluate(good)
    for ceiling in (-1e9, 0.5 * value, value - 1e-6 * abs(value)):
        assert objective.at(other, ceiling) is None
        # The next machines do not begin where these were left.
        np.testing.assert_allclose(parts["machines"]._starts, start, atol=1e-8)
    assert objective.at(other, value + 1e-6 * abs(value)).objective == pytest.approx(value)
    assert objective.evaluate(good).objective == pytest.approx(known.objective, rel=1e-9)


@pytest.mark.parametrize("regression", [False, True])
def test_the_gradient_in_the_exponents(regression):
    X, _, _, parts = case(regression=regression)
    gammas = np.array([[0.5, 0.0, 0.0], [0.0, 0.3, 0.0], [0.0, 0.2, 0.4]])
    inner = InnerProducts(X, dtype="float64")
    objective = ProductObjective(parts["machines"], inner, gammas, HalfSquaredNorm(), 0.7)
    d = np.array([0.5, 0.2, 0.9])
    expected = slope_by_differences(lambda w: objective.at(w).objective, d)
    np.testing.assert_allclose(objective.at(d).gradient(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@penalties
@given(z=st.lists(st.floats(-3, 3), min_size=3, max_size=3))
def test_no_weights_are_below_the_bound_of_the_penalty(penalty, z):
    z = np.array(z)
    lowest = penalty.lowest(z)
    rng = np.random.RandomState(0)
    tried = rng.exponential(size=(200, 3)) * rng.choice([0.0, 1.0, 3.0], size=(200, 3))
    tried = [penalty.weights(penalty.project(d)) for d in tried]
    values = [penalty.value(d) - z @ d for d in tried]
    assert min(values) >= lowest - 1e-9
    if np.isfinite(lowest):
        # And the bound is reached: no other would do.
        at = penalty.start(3)
        for _ in range(3000):
            d = penalty.weights(at)
            at = penalty.project(at - 0.05 * penalty.pullback(at, penalty.gradient(d) - z))
        d = penalty.weights(at)
        assert penalty.value(d) - z @ d <= lowest + 0.02


def conic_optimum(grams, y, C, penalty, strength):
    """Least of ``J(d) + strength r(d)``, by the dual: a smooth convex function of d, restarted."""
    n, m = len(y), len(grams)

    def dual(d):
        K = np.outer(y, y) * sum(w * K for w, K in zip(d, grams, strict=True))
        options = clarabel.DefaultSettings()
        options.verbose = False
        A = sparse.csc_matrix(np.vstack([y[np.newaxis], -np.eye(n), np.eye(n)]))
        b = np.concatenate([[0.0], np.zeros(n), np.full(n, C)])
        cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(2 * n)]
        P = sparse.csc_matrix(np.triu(K + 1e-12 * np.eye(n)))
        solution = clarabel.DefaultSolver(P, -np.ones(n), A, b, cones, options).solve()
        a = np.array(solution.x)
        S = np.array([(a * y) @ G @ (a * y) for G in grams])
        value = -solution.obj_val + strength * penalty.value(d)
        return value, strength * penalty.gradient(d) - 0.5 * S

    constraint = {"type": "eq", "fun": lambda d: d.sum() - 1.0, "jac": lambda d: np.ones(m)}
    found = minimize(
        dual,
        np.full(m, 1.0 / m),
        jac=True,
        method="SLSQP",
        bounds=[(1e-9, None)] * m,
        constraints=[constraint] if penalty.simplex else [],
        options={"maxiter": 300, "ftol": 1e-12},
    )
    return found.fun


@penalties
def test_the_optimum_is_that_of_general_solvers(penalty):
    X, y, kernels, parts = case()
    objective = Penalised(**parts, regularizer=penalty, strength=2.0)
    *_, step = spectral_gradient(objective, 1e-5)
    wanted = conic_optimum([k(X) for k in kernels], y, 2.0, penalty, 2.0)
    assert step.objective == pytest.approx(wanted, rel=1e-4)
    assert step.objective - step.gap <= wanted * (1 + 1e-6)


@settings(max_examples=10)
@given(seed=st.integers(0, 1000), rough=st.booleans())
def test_every_certificate_holds(seed, rough):
    *_, parts = case(seed=seed)
    objective = Penalised(**parts, regularizer=HalfSquaredNorm())
    if not rough:
        objective.refine = lambda precision: False
    steps = list(spectral_gradient(objective, 1e-4))
    least = steps[-1].objective
    assert steps[-1].gap <= 1e-4 * least
    for step in steps:
        # What rough machines report lies below the truth by no more than their own gap.
        assert step.objective + step.solution.gap - step.gap <= least * (1 + 1e-9)
    assert parts["machines"].solver.tol == 1e-10


@settings(max_examples=10)
@given(seed=st.integers(0, 1000))
def test_reduced_gradient_falls_on_the_simplex_to_a_certified_gap(seed):
    *_, parts = case(seed=seed)
    steps = list(reduced_gradient(Simplex(**parts), tol=1e-4))
    values = np.array([step.objective for step in steps])
    assert (np.diff(values) < 0).all()
    for step in steps:
        assert step.params.sum() == pytest.approx(1.0)
        assert (step.params >= 0).all()
        assert step.objective - step.gap <= values[-1] + 1e-9
    assert steps[-1].gap <= 1.1e-4 * values[-1]


@settings(max_examples=10)
@given(seed=st.integers(0, 1000), tol=st.sampled_from([1e-2, 1e-4, 1e-8]))
def test_the_level_method_goes_from_any_weights_to_a_certified_gap(seed, tol):
    *_, parts = case(seed=seed)
    *_, best = reduced_gradient(Simplex(**parts), tol=1e-8)
    first = np.random.RandomState(seed).dirichlet(np.full(3, 0.3))[np.newaxis]
    steps = list(level_method(Simplex(**parts, first=first), tol=tol))
    values = np.array([step.objective for step in steps])
    assert (np.diff(values) <= 0).all()
    for step in steps:
        assert step.params.sum() == pytest.approx(1.0)
        assert (step.params >= 0).all()
        assert step.objective - step.gap <= best.objective + 1e-8
    assert values[-1] <= best.objective + 1.1 * max(tol, 1e-6) * values[-1]


def test_an_uninformative_kernel_gets_no_weight():
    rng = np.random.RandomState(0)
    X = rng.normal(size=(60, 2))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    kernels = [Linear().on([0]).bind(X), Linear().on([1]).bind(X)]
    base = np.ones((60, 2))
    machines = Machines(Exact(tol=1e-8), [hinge(y, 1.0)])
    objective = Simplex(machines=machines, gram=GatedGram(kernels, X, base), base=base)
    for step in reduced_gradient(objective, tol=1e-5):
        weights = step.params[0]
    assert weights[0] > 0.95


@given(seed=st.integers(0, 1000), count=st.integers(1, 8), longest=st.floats(0.1, 3.0))
def test_planes_are_lowest_where_they_say(seed, count, longest):
    rng = np.random.RandomState(seed)
    planes, points = Planes(), []
    for _ in range(count):
        weights, S = rng.dirichlet(np.ones(3)), rng.exponential(size=3)
        points.append((float(rng.normal()), weights, S))
        planes.add(*points[-1])
    start, D = rng.dirichlet(np.ones(3)), rng.normal(size=3)

    def height(s):
        d = start + s * D
        return max(value + 0.5 * (weights - d) @ S for value, weights, S in points)

    s, lowest = planes.along(start, D, longest)
    assert 0 <= s <= longest
    assert lowest == pytest.approx(height(s), abs=1e-9)
    grid = np.linspace(0.0, longest, 201)
    assert lowest <= min(height(x) for x in grid) + 1e-9


def test_planes_lie_below_the_objective():
    *_, parts = case()
    objective, planes = Simplex(**parts), Planes()
    for weights in np.random.RandomState(0).dirichlet(np.ones(3), size=6):
        found = objective.evaluate(weights[np.newaxis])
        # Those of other weights first: what they say here must not be above the truth.
        if planes._linear:
            said = planes.along(weights, np.zeros(3), 1.0)[1]
            assert said <= found.objective * (1 + 1e-8)
        planes.add(found.objective, weights, found.forms[0])
