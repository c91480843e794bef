"""The gated Gram matrix at its limits: memory, interruptions, precision, nothing to do."""

import re

import numpy as np
import pytest
from gram_cases import (
    LAYOUTS,
    both,
    close,
    dense,
    every_dictionary,
    every_layout,
    gates,
    layout_of,
    parts,
    problem,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from lokl.gram import GatedGram, InnerProducts
from lokl.gram.layouts import Dense
from lokl.kernels import RBF, Callable, Laplacian, Linear, Polynomial, precomputed

seeds = st.integers(0, 2**16)
few = settings(max_examples=6)


@every_dictionary
@few
@given(
    seed=seeds,
    n=st.integers(2, 20),
    capacity=st.integers(2, 30),
    keep=st.booleans(),
    steps=st.lists(st.integers(0, 2**16), min_size=1, max_size=6),
)
def test_memory_changes_no_row(kernels, seed, n, capacity, keep, steps):
    kernels, X, H, _ = problem(kernels, dense, "rank 1", n, seed)
    megabytes = (2 if keep else 1) * capacity * 8 * n / 2**20
    inner = InnerProducts(X, cache_size=megabytes, dtype="float64", keep=keep)
    gram = inner.gated(kernels, H)
    assert 2 <= gram.capacity <= min(n, 2 * capacity)
    for step in steps:
        rng = np.random.default_rng(step)
        if step % 3 == 0:
            H = gates("rank 1", n, len(kernels), rng)
            gram = gram.regated(H)
        K = parts(kernels, X, H).sum(axis=0)
        rows = rng.permutation(n)[: rng.integers(1, n + 1)]
        close(gram.rows(rows), K[rows], "float64")
        target = np.zeros(n)
        gram.subtract(rows, np.ones(len(rows)), target)
        close(target, -K[rows].sum(axis=0), "float64")


@both
@pytest.mark.parametrize("keep", [False, True])
@given(n=st.integers(2, 400))
def test_a_budget_below_two_rows_is_rejected_with_a_budget_that_works(dtype, keep, n):
    X = np.ones((n, 1))
    options = {"dtype": dtype, "keep": keep}
    with pytest.raises(ValueError, match=rf"two rows of the Gram matrix of {n} samples") as error:
        InnerProducts(X, cache_size=1e-6, **options).gated([RBF(1.0)]).rows([0])
    advice = float(re.search("give at least (.*) MB", str(error.value)).group(1))
    gram = InnerProducts(X, cache_size=advice, **options).gated([RBF(1.0)])
    assert gram.rows([0, 1]).shape == (2, n)


@pytest.mark.parametrize("keep", [False, True])
def test_rows_of_an_interrupted_computation_are_not_kept(keep, monkeypatch):
    X = dense(10, np.random.default_rng(0))
    failing = True

    def product(X, Z):
        if failing:
            raise KeyboardInterrupt
        return X @ Z.T

    gram = InnerProducts(X, dtype="float64", keep=keep).gated([RBF(0.1), Callable(product)])
    expected = (RBF(0.1)(X) + X @ X.T) / 2
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            gram.rows([2, 5])
    failing = False
    close(gram.rows(np.arange(10)), expected, "float64")

    with layout_of(dense):
        gram = InnerProducts(X, dtype="float64", keep=keep).gated([RBF(0.1)])
    with monkeypatch.context() as patch:
        patch.setattr(Dense, "dots", lambda *arguments: product(None, None))
        failing = True
        with pytest.raises(KeyboardInterrupt):
            gram.rows([2, 5])
    close(gram.rows(np.arange(10)), RBF(0.1)(X), "float64")


def test_pairs_without_a_common_kernel_have_value_zero():
    X = dense(4, np.random.default_rng(0))
    H = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [0.0, 0.0]])
    kernels = [RBF(0.1), Linear()]
    gram = GatedGram(kernels, X, H, dtype="float64", pair_normalized=True)
    K = gram.rows(np.arange(4))
    assert K[0, 1] == K[1, 0] == 0
    assert (K[3] == 0).all()
    assert_allclose(K[0, 2], RBF(0.1)(X)[0, 2])
    assert_allclose(gram.diag(), K.diagonal())
    assert_allclose(gram.kernel_forms(np.ones(4)).sum(), K.sum())


def test_pair_normalised_gates_have_no_gradient():
    gram = GatedGram([RBF(1.0)], np.ones((3, 2)), pair_normalized=True)
    with pytest.raises(TypeError, match="pair-normalised"):
        gram.gate_gradient(np.ones(3))


@pytest.mark.parametrize("shape", [(5, 3), (4, 2), (5,), (2, 5)])
def test_gates_of_a_wrong_shape_are_rejected(shape):
    X, kernels = np.ones((5, 2)), [Linear(), RBF(1.0)]
    with pytest.raises(ValueError, match=r"gates.*\(5, 2"):
        GatedGram(kernels, X, np.ones(shape))
    with pytest.raises(ValueError, match=r"gates.*\(5, 2"):
        GatedGram(kernels, X).regated(np.ones(shape))


@pytest.mark.parametrize(
    ("kernels", "scale", "dtype"),
    [
        ([Linear(), RBF(0.1)], 1.0, "float32"),
        ([Linear()], 1e3, "float64"),
        ([Linear().normalized("mean_diag")], 1e2, "float32"),
        ([Linear().normalized("mean_diag")], 1e4, "float64"),
        ([Polynomial(4)], 1.0, "float32"),
        ([Polynomial(4)], 10.0, "float64"),
        ([RBF(1.0)], 1.0, "float32"),
        ([RBF(1e3)], 1.0, "float64"),
        ([RBF(1.0), Laplacian(1.0)], 1.0, "float32"),
    ],
    ids=repr,
)
def test_single_precision_is_chosen_unless_it_loses_digits(kernels, scale, dtype):
    X = scale * np.random.default_rng(0).uniform(-1, 1, size=(20, 3))
    kernels = [kernel.bind(X) for kernel in kernels]
    gram = GatedGram(kernels, X)
    assert gram.dtype == dtype
    K = sum(kernel(X) for kernel in kernels) / len(kernels)
    assert_allclose(gram.rows(np.arange(20)), K, rtol=1e-4, atol=1e-3)


def test_a_stored_matrix_keeps_the_digits_its_kernel_keeps():
    X = 1e4 * np.random.default_rng(0).uniform(1, 2, size=(20, 3))
    stored, index = precomputed([Linear()(X)])
    gram, expected = GatedGram(stored, index), GatedGram([Linear()], X)
    assert gram.dtype == expected.dtype
    assert_allclose(gram.rows(np.arange(20)), expected.rows(np.arange(20)), rtol=1e-12)


@every_dictionary
@every_layout
def test_a_single_sample_and_no_coefficients(kernels, make):
    kernels, X, H, _ = problem(kernels, make, "rank 3", 1, 0)
    with layout_of(make):
        gram = GatedGram(kernels, X, H, dtype="float64")
    K = parts(kernels, X, H).sum(axis=0)
    close(gram.rows([0]), K, "float64")
    close(gram.dot(np.ones(1)), K[0], "float64")
    assert gram.rows([]).shape == (0, 1)
    assert (gram.dot(np.zeros((1, 2))) == 0).all()
    target = np.ones(1)
    gram.subtract(np.array([], dtype=np.intp), np.array([]), target)
    assert target == 1.0


@every_dictionary
def test_machines_without_support_have_no_slope(kernels):
    for make in LAYOUTS:
        bound, X, H, _ = problem(kernels, make, "rank 3", 4, 0)
        with layout_of(make):
            gram = GatedGram(bound, X, H)
        assert (gram.gate_gradient(np.zeros((4, 2))) == np.zeros(H.shape)).all()
        assert (gram.kernel_forms(np.zeros(4)) == np.zeros((len(kernels), 1))).all()


@every_dictionary
def test_blocks_of_no_samples_are_empty(kernels):
    none, some = np.array([], dtype=np.intp), np.arange(4)
    for make in LAYOUTS:
        bound, X, H, _ = problem(kernels, make, "rank 1", 4, 0)
        with layout_of(make):
            gram, empty = GatedGram(bound, X, H), GatedGram(bound, X[none], H[none])
        assert gram.block(none).shape == empty.rows(none).shape == (0, 0)
        assert gram.cross(none, some).shape == (0, 4)
        assert gram.cross(some, none).shape == (4, 0)
        assert empty.diag().shape == empty.dot(np.empty(0)).shape == (0,)


@every_dictionary
@every_layout
def test_samples_and_gates_are_not_written_to(kernels, make, read_only):
    kernels, X, H, rng = problem(kernels, make, "rank 1", 8, 0)
    read_only(X)
    coef = read_only(rng.normal(size=8))
    with layout_of(make):
        gram = InnerProducts(X, keep=True).gated(kernels, read_only(H))
    close(gram.dot(coef), gram.rows(np.arange(8)) @ coef, "float32")
    gram.gate_gradient(coef)
