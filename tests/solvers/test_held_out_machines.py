"""Machines of folds on one Gram matrix."""

import numpy as np
import pytest

from lokl.gram import GatedGram
from lokl.kernels import RBF
from lokl.solvers import Exact, hinge
from lokl.solvers.held_out import folds_for, held_out_decisions, held_out_machines


@pytest.mark.parametrize("n_folds", [2, 5])
def test_machines_that_have_not_seen_a_sample_decide_about_it(n_folds):
    rng = np.random.RandomState(0)
    X = rng.normal(size=(40, 2))
    problems = [hinge(np.sign(X[:, k]), 1.0) for k in range(2)]
    gram = GatedGram([RBF(0.5)], X, dtype="float64")
    folds = folds_for(problems, n_folds, 0)
    solver = Exact(tol=1e-6)
    found = np.full((40, 2), np.nan)
    for left, solution in held_out_machines(solver, gram, problems, folds):
        assert (solution.coef[left] == 0).all()
        found[left] = gram.dot(solution.coef)[left] + solution.intercept
    np.testing.assert_allclose(found, held_out_decisions(solver, gram, problems, folds), atol=1e-6)
    assert np.isfinite(found).all()
