"""Several problems in joint rounds: the same optima and certificates as one problem at a time."""

import numpy as np
import pytest
from solver_cases import assert_solves, gradient, signs

from lokl.kernels import RBF
from lokl.solvers import Exact, hinge, squared_hinge
from lokl.solvers.joint import JointRounds
from lokl.solvers.machines import Machines

N, CLASSES = 2200, 6
RANDOM = np.random.RandomState(0)
LABELS = RANDOM.choice(CLASSES, p=[0.3, 0.3, 0.2, 0.1, 0.09, 0.01], size=N)
X = 1.5 * RANDOM.normal(size=(CLASSES, 3))[LABELS] + 0.6 * RANDOM.normal(size=(N, 3))
KERNELS = [RBF(0.5)]
K = KERNELS[0](X)
SIGNS = [np.where(label == LABELS, 1.0, -1.0) for label in range(CLASSES)]
PROBLEMS = {
    "hinge": [hinge(y, 4.0) for y in SIGNS],
    "squared hinge": [squared_hinge(y, 2.0) for y in SIGNS],
    "costs that differ": [hinge(y, np.linspace(0.0, 4.0, N)) for y in SIGNS],
    "large costs": [hinge(y, 300.0) for y in SIGNS],
    "absent class": [hinge(y, np.where(LABELS == 0, 0.0, 2.0)) for y in SIGNS[1:]] * 2,
}


def gram_of(solver, kernels=KERNELS, samples=X, **settings):
    return solver.inner_products(samples, **settings).gated([k.bind(samples) for k in kernels])


@pytest.mark.parametrize("name", PROBLEMS)
def test_solutions_are_feasible_and_certified(name):
    solver = Exact(tol=1e-5, working_set=400)
    gram = gram_of(solver)
    assert solver._joint_size(gram, PROBLEMS[name]) == 1200
    for problem, dual in zip(
        PROBLEMS[name], solver.solve_together(gram, PROBLEMS[name]), strict=True
    ):
        assert_solves(K, problem, dual, gap=1e-4)


def test_objectives_and_decisions_agree_with_single_solves_in_single_precision():
    # Both objectives are within their gaps of the same optimum, up to rounding of the rows.
    solver, problems = Exact(), PROBLEMS["hinge"]
    gram = gram_of(solver)
    for problem, dual in zip(problems, solver.solve_together(gram, problems), strict=True):
        alone = solver.solve(gram, problem)
        assert abs(dual.objective - alone.objective) <= dual.gap + alone.gap + 1e-4
        # The tolerance is 1e-3 by gradients from rounded rows.
        assert problem.violation(dual.coef, gradient(K, problem, dual.coef)) <= 1.2e-3
        np.testing.assert_allclose(
            dual.decision, K @ dual.coef + dual.intercept, atol=1e-4, rtol=1e-4
        )


def test_warm_starts_need_fewer_moves():
    solver, problems = Exact(), PROBLEMS["hinge"]
    gram = gram_of(solver)
    cold = solver.solve_together(gram, problems)
    warm = solver.solve_together(gram, problems, [dual.coef for dual in cold])
    assert sum(dual.n_iter for dual in warm) <= 0.1 * sum(dual.n_iter for dual in cold)
    for before, after in zip(cold, warm, strict=True):
        np.testing.assert_allclose(after.objective, before.objective, rtol=1e-4)


def test_problems_with_many_free_coefficients_are_solved_on_rows():
    # Under a narrow kernel hardly any samples are similar, and nearly all coefficients are free.
    solver, narrow, problems = Exact(working_set=400), RBF(200.0), PROBLEMS["hinge"]
    gram = gram_of(solver, [narrow])
    rounds = JointRounds(gram, problems, solver.tol, solver._joint_size(gram, problems))
    assert rounds.run() == [None] * CLASSES
    for problem, dual in zip(problems, solver.solve_together(gram, problems), strict=True):
        slopes = gradient(narrow(X), problem, dual.coef)
        assert dual.converged
        assert problem.violation(dual.coef, slopes) <= 1.2e-3


def test_sorted_samples_and_a_sample_without_a_class():
    # The first round sees one sample in three, at equal distances: none of the rarest class.
    order = np.argsort(LABELS, kind="stable")
    rarest = np.flatnonzero(np.arange(N) % 3 == 1)[:2]
    targets = [y[order] for y in SIGNS] + [signs(np.isin(np.arange(N), rarest) - 0.5)]
    problems = [hinge(y, 4.0) for y in targets]
    solver = Exact(tol=1e-5)
    gram = gram_of(solver, samples=X[order])
    for problem, dual in zip(problems, solver.solve_together(gram, problems), strict=True):
        assert_solves(K[np.ix_(order, order)], problem, dual, gap=1e-4)


@pytest.mark.parametrize(
    ("settings", "kernels", "samples", "count", "keep"),
    [
        ({"max_iter": 1000}, [RBF(0.5)], X, 6, False),
        ({"cache_size": 1.0}, [RBF(0.5)], X, 6, False),
        ({"working_set": 128}, [RBF(0.5)], X, 6, False),
        ({}, [RBF(0.5)], X, 4, False),
        ({}, [RBF(2.0**k) for k in range(3)], X, 6, False),
        ({}, [RBF(0.5)], X[:2000], 6, False),
        ({}, [RBF(0.5)], X, 6, True),
    ],
    ids=["limit", "memory", "small sets", "few problems", "many kernels", "few samples", "gates"],
)
def test_other_problems_are_solved_one_at_a_time(settings, kernels, samples, count, keep):
    solver = Exact(**settings)
    problems = [problem.take(np.arange(len(samples))) for problem in PROBLEMS["hinge"][:count]]
    assert solver._joint_size(gram_of(solver, kernels, samples, keep=keep), problems) < 1024


def test_machines_solve_only_what_is_not_known():
    solver, problems = Exact(), PROBLEMS["hinge"]
    gram, asked = gram_of(solver), []

    class Recorded(Exact):
        def solve_together(self, gram, problems, starts=None):
            asked.append(len(problems))
            return super().solve_together(gram, problems, starts)

    first = Machines(Recorded(), problems)
    solution = first.solve(gram)
    again = Machines(Recorded(), problems).warm_start(first, same_matrix=True).solve(gram)
    assert asked == [CLASSES]
    assert again.objective == pytest.approx(solution.objective, rel=1e-12)
    assert solution.gap <= 1e-3 * solution.objective
