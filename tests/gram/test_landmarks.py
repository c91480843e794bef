"""Randomly pivoted Cholesky: few samples that tell the matrix of all others."""

import numpy as np
import pytest
from gram_cases import DICTIONARIES, dense, gates
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from lokl.gram import InnerProducts, mixing
from lokl.gram.feature_maps import _accepted, choose_landmarks
from lokl.kernels import RBF, Linear

seeds = st.integers(0, 2**16)


def prepared(kernels, X, H=None, dtype="float64"):
    return InnerProducts(X, dtype=dtype).prepare([k.bind(X) for k in kernels], H, False)


def share_left(points, factor):
    """Share of the trace that a factor does not explain."""
    trace = mixing.diag(points).sum()
    return 1.0 - np.sum(factor.astype(float) ** 2) / trace if trace else 0.0


def explained(K, rows):
    """What the columns of some samples tell of a matrix, by the plain formula."""
    return K[:, rows] @ np.linalg.pinv(K[np.ix_(rows, rows)], rcond=1e-10) @ K[rows]


@pytest.mark.parametrize("name", ["one", "ladder", "one view", "mixed"])
@settings(max_examples=5)
@given(seed=seeds, most=st.integers(1, 30))
def test_the_factor_is_what_the_chosen_columns_explain(name, seed, most):
    rng = np.random.default_rng(seed)
    kernels, X = [k for k in DICTIONARIES[name] if "Sigmoid" not in repr(k)], dense(40, rng)
    points = prepared(kernels, X, gates("rank 1", 40, len(kernels), rng))
    gram = InnerProducts(X, dtype="float64").gated(points.plan.kernels, points.gates)
    K = gram.whole
    rows, factor = choose_landmarks(points, most, np.random.RandomState(seed))
    assert len(rows) == len(set(rows)) <= most
    nystrom = explained(K, rows)
    scale = K.diagonal().max()
    np.testing.assert_allclose(factor @ factor.T, nystrom, atol=1e-8 * scale)
    left = 1.0 - np.trace(nystrom) / np.trace(K)
    np.testing.assert_allclose(share_left(points, factor), left, atol=1e-8)


def test_no_more_samples_are_chosen_than_the_matrix_has_dimensions():
    X = np.random.default_rng(0).normal(size=(200, 5))
    points = prepared([Linear()], X)
    rows, factor = choose_landmarks(points, 50, np.random.RandomState(0))
    assert len(rows) == 5
    assert share_left(points, factor) < 1e-12


def test_a_sample_is_chosen_once_however_often_it_is_there():
    X = np.repeat(np.random.default_rng(0).normal(size=(20, 3)), 10, axis=0)
    points = prepared([RBF(0.5)], X)
    rows, factor = choose_landmarks(points, 100, np.random.RandomState(0))
    assert len(np.unique(X[rows], axis=0)) == len(rows) == 20
    assert share_left(points, factor) < 1e-12


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_is_left_falls_with_the_rank_and_faster_than_by_chance(dtype):
    rng = np.random.RandomState(0)
    # Most samples are alike, some are not: a few samples at random miss those.
    X = np.concatenate([0.1 * rng.normal(size=(950, 3)), 4.0 * rng.normal(size=(50, 3))])
    points = prepared([RBF(0.5)], X, dtype=dtype)
    left = [share_left(points, choose_landmarks(points, rank, rng)[1]) for rank in (5, 20, 80)]
    assert left[0] > left[1] > left[2]
    K = RBF(0.5)(X)
    chance = [
        1 - np.trace(explained(K, rng.choice(1000, 20, replace=False))) / 1000 for _ in range(10)
    ]
    assert left[1] < 0.9 * np.mean(chance)


def test_blocks_are_distributed_as_samples_drawn_one_by_one():
    """Second pivots after a given first one, against the residual that they are drawn by."""
    X = np.random.RandomState(0).normal(size=(6, 2))
    K = RBF(0.3)(X)
    rng, counts = np.random.RandomState(1), np.zeros((6, 6))
    for _ in range(6000):
        proposed = rng.choice(6, size=80, p=np.full(6, 1 / 6))
        kept = _accepted(K[np.ix_(proposed, proposed)], np.ones(80), rng)
        first, second = proposed[kept[:2]]
        counts[first, second] += 1
    residual = 1.0 - K**2
    chance = residual / residual.sum(axis=1, keepdims=True) / 6
    off = ~np.eye(6, dtype=bool)
    assert counts[~off].sum() == 0
    assert chisquare(counts[off], counts.sum() * chance[off]).pvalue > 1e-3


def test_a_matrix_of_zeros_has_no_landmarks():
    points = prepared([Linear()], np.zeros((30, 2)))
    rows, factor = choose_landmarks(points, 5, np.random.RandomState(0))
    assert len(rows) == 0
    assert factor.shape == (30, 0)
