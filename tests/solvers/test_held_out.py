"""SVMs of folds on one Gram matrix."""

import numpy as np
import pytest

from lokl._warnings import DeferredWarnings
from lokl.gram import GatedGram
from lokl.kernels import RBF, Sigmoid
from lokl.solvers import Exact, Machines, Solver, hinge
from lokl.solvers.exact import solve_on_stored
from lokl.solvers.machines import folds_for, held_out_decisions, held_out_solutions


@pytest.mark.parametrize("n_folds", [2, 5])
def test_decisions_come_from_svms_without_the_sample(n_folds):
    rng = np.random.RandomState(0)
    X = rng.normal(size=(40, 2))
    problems = [hinge(np.sign(X[:, k]), 1.0) for k in range(2)]
    gram = GatedGram([RBF(0.5)], X, dtype="float64")
    folds = folds_for(problems, n_folds, 0)
    solver = Exact(tol=1e-6)
    found = np.full((40, 2), np.nan)
    for left, solution in held_out_solutions(solver, gram, problems, folds):
        assert (solution.coef[left] == 0).all()
        found[left] = gram.dot(solution.coef)[left] + solution.intercept
    np.testing.assert_allclose(found, held_out_decisions(solver, gram, problems, folds), atol=1e-6)
    assert np.isfinite(found).all()


# The whole matrix takes 4.6 MB.
@pytest.mark.parametrize("megabytes", [512, 2])
@pytest.mark.parametrize("known", [False, True])
def test_subsets_are_those_of_single_solves(known, megabytes):
    rng = np.random.RandomState(0)
    X = rng.normal(size=(1100, 3))
    noise = 0.3 * rng.normal(size=(1100, 2))
    problems = [hinge(np.sign(X[:, k] + noise[:, k]), 3.0) for k in range(2)]
    solver = Exact(cache_size=megabytes)
    gram = solver.inner_products(X).gated([RBF(0.5)])
    assert gram.dtype == np.float32
    assert gram.fits == (megabytes > 4.6)
    whole = Machines(solver, problems).solve(gram) if known else None
    folds = folds_for(problems, 3, 0)
    found = held_out_decisions(solver, gram, problems, folds, whole)
    alone = Solver.solve_subsets(solver, gram, [problems[0].restrict(folds[0][0])])
    left = folds[0][1]
    np.testing.assert_allclose(found[left, 0], alone[0].decision[left], atol=0.01)
    for kept, solution in held_out_solutions(solver, gram, problems, folds, whole):
        assert all(dual.converged and dual.gap < 0.1 for dual in solution.duals)
        assert (solution.coef[kept] == 0).all()
        np.testing.assert_allclose(solution.coef.sum(axis=0), 0, atol=1e-6)


def test_indefinite_subsets_are_solved_with_a_warning_by_the_driver_on_rows():
    rng = np.random.RandomState(0)
    X = rng.normal(size=(1100, 3))
    problem = hinge(np.sign(X[:, 0] * X[:, 1]), 1.0)
    solver = Exact()
    gram = solver.inner_products(X).gated([Sigmoid(gamma=1.0, coef0=-1.0)])
    (part,) = [problem.restrict(np.arange(800))]
    assert solve_on_stored(gram.whole, [part], None, 1e-3) == [None]
    with pytest.warns(UserWarning, match="not positive semidefinite"), DeferredWarnings():
        (dual,) = solver.solve_subsets(gram, [part])
    assert (dual.coef[800:] == 0).all()
