"""The learned gated kernel is a kernel like any other, also where views are missing."""

import pickle

import numpy as np
import pandas as pd
import pytest
from gram_cases import parts
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import cross_val_predict
from sklearn.svm import SVC

from lokl.gates import ConstantGate, GaussianGate, SigmoidGate, SoftmaxGate
from lokl.gram import GatedKernel
from lokl.kernels import RBF, Kernel, Laplacian, Linear, Polynomial
from lokl.kernels.samples import split_missing

KERNELS = [RBF(0.3), RBF(0.6), Polynomial(2).on([0, 2]), Laplacian(0.2), Linear().normalized()]
VIEWS = [RBF(0.3).on([0, 1]), Linear().on([2]), Laplacian(0.5).on([3, 4]), RBF(0.6).on([0, 1])]
GATES = [ConstantGate(), SoftmaxGate(1.0), SigmoidGate(1.0), GaussianGate()]
every_gate = pytest.mark.parametrize("gate", GATES, ids=repr)
seeds = st.integers(0, 2**16)
few = settings(max_examples=10)


def samples(n, seed, as_csr=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)) * (rng.random((n, 5)) < 0.7)
    return sparse.csr_matrix(X) if as_csr else X


def learned(gate, kernels=KERNELS, pair_normalized=False):
    params = gate.init(samples(9, seed=1), len(kernels), np.random.RandomState(0))
    return GatedKernel(kernels, gate, params, pair_normalized)


def lacking(X, seed):
    """Take views from samples, never all of them."""
    X, rng = X.copy(), np.random.default_rng(seed)
    gone = rng.random((len(X), 3)) < 0.4
    gone[np.arange(len(X)), rng.integers(3, size=len(X))] = False
    for view, columns in enumerate(([0, 1], [2], [3, 4])):
        X[np.ix_(gone[:, view], columns)] = np.nan
    return X, ~gone[:, [0, 1, 2, 0]]


@every_gate
@few
@given(
    seed=seeds,
    n=st.integers(1, 7),
    p=st.integers(1, 5),
    sides=st.tuples(st.booleans(), st.booleans()),
    pair_normalized=st.booleans(),
)
def test_values_are_the_gated_sum(gate, seed, n, p, sides, pair_normalized):
    kernel = learned(gate, pair_normalized=pair_normalized)
    X, Z = samples(n, seed, sides[0]), samples(p, seed + 1, sides[1])
    H, HZ = gate(X, kernel.params), gate(Z, kernel.params)
    K = parts(KERNELS, X, H, Z, HZ, pair_normalized).sum(axis=0)
    assert_allclose(kernel(X, Z), K, rtol=1e-9, atol=1e-10)
    assert_allclose(kernel(Z, X), K.T, rtol=1e-9, atol=1e-10)
    assert_allclose(kernel(X), kernel(X, X), rtol=1e-9, atol=1e-10)
    assert_allclose(kernel.diag(X), kernel(X).diagonal(), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("kernels", [[RBF(0.3)], [Linear()], [RBF(0.3), Linear()]], ids=repr)
@pytest.mark.parametrize("fill", [0.1, 1.0])
def test_dense_and_sparse_samples_compare(kernels, fill):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(2, 6, 12)) * (rng.random((2, 6, 12)) <= fill)
    kernel = GatedKernel(kernels, ConstantGate(), np.ones(len(kernels)))
    expected = sum(k(X, Z) for k in kernels)
    for left in (X, sparse.csr_matrix(X), sparse.csc_matrix(X)):
        for right in (Z, sparse.csr_matrix(Z)):
            assert_allclose(kernel(left, right), expected, rtol=1e-9, atol=1e-12)


@every_gate
@few
@given(seed=seeds, n=st.integers(1, 7), p=st.integers(1, 5))
def test_a_missing_view_has_no_effect(gate, seed, n, p):
    kernel = learned(gate, VIEWS)
    X, present = lacking(samples(n, seed), seed)
    Z, seen = lacking(samples(p, seed + 1), seed + 1)
    filled = [np.nan_to_num(side) for side in (X, Z)]
    H, HZ = gate(filled[0], kernel.params, present), gate(filled[1], kernel.params, seen)
    K = parts(VIEWS, filled[0], H, filled[1], HZ).sum(axis=0)
    assert_allclose(kernel(X, Z), K, rtol=1e-9, atol=1e-12)
    assert_allclose(kernel.diag(X), kernel(X).diagonal(), rtol=1e-9, atol=1e-12)
    read = kernel.samples(X)
    assert_array_equal(read.filled, filled[0])
    assert (kernel.gates(read)[~present] == 0).all()
    # What stands in the place of a missing view is never read.
    alone = ConstantGate()
    trust = GatedKernel(VIEWS, alone, np.ones(4))
    noise = np.where(np.isnan(X), 7.0, X)
    H = alone(X, np.ones(4), present)
    assert_allclose(trust(X), parts(VIEWS, noise, H).sum(axis=0), rtol=1e-9, atol=1e-12)


@every_gate
def test_it_serves_support_vector_machines(gate):
    X = samples(40, seed=0)
    y = (X[:, 0] * X[:, 2] > 0).astype(int)
    kernel = learned(gate)
    stored = SVC(kernel="precomputed").fit(kernel(X), y)
    direct = SVC(kernel=kernel).fit(X, y)
    Z = samples(9, seed=1)
    assert_allclose(direct.decision_function(Z), stored.decision_function(kernel(Z, X)), atol=1e-6)
    assert cross_val_predict(SVC(kernel=kernel), X, y, cv=2).shape == (40,)


@every_gate
def test_it_is_a_kernel_like_any_other(gate):
    kernel, X = learned(gate), samples(6, seed=2)
    K = kernel(X)
    assert isinstance(kernel, Kernel)
    for copy in (clone(kernel), pickle.loads(pickle.dumps(kernel)), kernel.bind(X)):
        assert_array_equal(copy(X), K)
        assert repr(copy) == repr(kernel)
    assert_allclose((kernel + Linear())(X), K + X @ X.T)
    assert_allclose(kernel.normalized().bind(X).diag(X)[K.diagonal() > 0], 1.0)
    assert_allclose(kernel.on(slice(0, 5)).bind(X)(X), K)
    frame = pd.DataFrame(X, columns=list("abcde"))
    assert_allclose(kernel(frame), K)
    values = np.linalg.eigvalsh(K)
    assert values[0] >= -1e-10 * values[-1]


def test_names_of_kernels_make_the_label():
    kernels, params = [Linear(), RBF(0.5)], np.ones(2)
    assert GatedKernel(kernels, ConstantGate(), params).label == "gated(linear, rbf(0.5))"
    assert GatedKernel(kernels, ConstantGate(), params, names=["a", "b"]).label == "gated(a, b)"


@given(seed=seeds, n=st.integers(1, 8))
def test_missing_views_are_split_off(seed, n):
    X, present = lacking(samples(n, seed), seed)
    before = X.copy()
    filled, seen = split_missing(VIEWS, ["a", "b", "c", "d"], X)
    assert_array_equal(X, before)
    if present.all():
        assert seen is None
    else:
        assert_array_equal(seen, present)
    assert_array_equal(filled, np.nan_to_num(X))


@pytest.mark.parametrize("as_given", [np.asarray, sparse.csr_matrix], ids=["dense", "CSR"])
def test_complete_samples_are_handed_through(as_given):
    X = as_given(samples(4, seed=0))
    filled, present = split_missing(KERNELS, list("abcde"), X)
    assert filled is X
    assert present is None


@pytest.mark.parametrize(
    ("kernels", "gone", "message"),
    [
        ([Linear(), RBF(1.0).on([0])], [(1, [0])], "'first' uses all columns; impute"),
        (VIEWS[:2], [(1, [0])], "sample 1 has a part of the view of kernel 'first' but not"),
        (VIEWS[:2], [(0, [0, 1]), (2, [1])], "sample 2 has a part .* 'first' but not column 1;"),
        (VIEWS[:2], [(1, [2]), (3, [0, 1, 2])], "sample 3 lacks every view"),
        ([Linear().on([0]) + Linear().on([2]), VIEWS[0]], [(0, [2])], "sample 0 has a part of"),
    ],
)
def test_what_cannot_be_missing_is_an_error(kernels, gone, message):
    X = np.random.default_rng(0).normal(size=(5, 5))
    for row, columns in gone:
        X[row, columns] = np.nan
    with pytest.raises(ValueError, match=f"Input X contains NaN.*{message}"):
        split_missing(kernels, ["first", "second"], X)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        GatedKernel(kernels, ConstantGate(), np.ones(2), names=["first", "second"])(X)


def test_an_error_names_the_column():
    X = np.array([[1.0, np.nan, 2.0]])
    with pytest.raises(ValueError, match=r"'first'.*'height'"):
        split_missing([Linear().on([0, 1])], ["first"], X, ["age", "height", "weight"])


def test_missing_values_of_sparse_samples_are_rejected_or_have_no_effect():
    X, _ = lacking(samples(6, seed=3) + 1.0, seed=3)
    kernel = learned(ConstantGate(), VIEWS)
    try:
        values = kernel(sparse.csr_matrix(X))
    except ValueError:
        return
    assert_allclose(values, kernel(X))


def test_a_column_that_no_kernel_reads_may_miss_values():
    X = samples(4, seed=0)
    X[1, 4] = np.nan
    filled, present = split_missing([Linear().on([0])], ["only"], X)
    assert np.isfinite(filled).all()
    assert present.all()


def test_no_samples_give_an_empty_block():
    X, none = samples(3, seed=0), np.empty((0, 5))
    kernel = GatedKernel([RBF(1.0), Linear()], ConstantGate(), np.ones(2))
    assert kernel(none, X).shape == (0, 3)
    assert kernel(X, none).shape == (3, 0)
    assert kernel.diag(none).shape == (0,)
