"""Duplicate samples merged into one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from lokl.gram import GatedGram
from lokl.kernels import RBF
from lokl.solvers import Exact, squared_hinge
from lokl.solvers.problem import UniqueSamples


def case(n, seed):
    rng = np.random.RandomState(seed)
    X = rng.choice([0.0, -0.0, 1.0, 2.5], size=(n, 2))
    y = rng.choice([-1.0, 1.0], size=n)
    y[:2] = 1.0, -1.0
    return X, y, rng.uniform(0.5, 2.0, size=n)


@given(n=st.integers(2, 40), seed=st.integers(0, 1000), as_sparse=st.booleans())
def test_every_sample_belongs_to_a_unique_one(n, seed, as_sparse):
    X, y, cost = case(n, seed)
    unique = UniqueSamples.find(sparse.csr_matrix(X) if as_sparse else X, squared_hinge(y, cost))
    rows = np.column_stack([X, y]) + 0.0
    assert_array_equal(rows[unique.rows][unique.inverse], rows)
    assert len(np.unique(rows, axis=0)) == len(unique.rows)
    assert_allclose(np.bincount(unique.inverse, unique.share), 1.0)
    total = np.bincount(unique.inverse, cost)
    assert_allclose(1.0 / unique.problem.ridge, total)


@given(n=st.integers(2, 40), seed=st.integers(0, 1000))
def test_the_order_of_rows_does_not_matter(n, seed):
    X, y, cost = case(n, seed)
    order = np.random.RandomState(seed).permutation(n)
    one = UniqueSamples.find(X, squared_hinge(y, cost))
    two = UniqueSamples.find(X[order], squared_hinge(y[order], cost[order]))
    assert_array_equal(X[one.rows] + 0.0, X[order][two.rows] + 0.0)
    assert_allclose(one.problem.ridge, two.problem.ridge)


@given(n=st.integers(4, 40), seed=st.integers(0, 1000))
def test_the_svm_on_unique_samples_is_the_svm_on_all(n, seed):
    X, y, cost = case(n, seed)
    problem = squared_hinge(y, cost)
    unique = UniqueSamples.find(X, problem)
    solver = Exact(tol=1e-10)
    full = solver.solve(GatedGram([RBF(0.5)], X, dtype="float64"), problem)
    part = GatedGram([RBF(0.5)], X[unique.rows], dtype="float64")
    spread = unique.expand(solver.solve(part, unique.problem))
    assert_allclose(spread.objective, full.objective, rtol=1e-8)
    assert_allclose(spread.decision, full.decision, atol=1e-6)
    assert_allclose(RBF(0.5)(X) @ spread.coef + spread.intercept, spread.decision, atol=1e-6)
