"""Laws that every kernel obeys."""

import pickle
from copy import deepcopy
from inspect import isabstract

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_cases import CASES, samples
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.gaussian_process import kernels as gaussian_process_kernels

import lokl.kernels
from lokl.kernels import RBF, Cosine, Kernel, Laplacian, Linear, Matern, Polynomial

every_kernel = pytest.mark.parametrize("case", CASES, ids=repr)
seeds = st.integers(0, 2**16)
few = settings(max_examples=8)
PUBLIC = {name: getattr(lokl.kernels, name) for name in lokl.kernels.__all__}


def written(kernel):
    return kernel.__repr__(N_CHAR_MAX=10**6)


def test_every_exported_kernel_is_in_the_list():
    exported = {
        c
        for c in PUBLIC.values()
        if isinstance(c, type) and issubclass(c, Kernel) and not isabstract(c)
    }

    def parts(kernel):
        nested = [p for p in kernel.get_params().values() if isinstance(p, Kernel)]
        return {type(kernel), *map(type, nested)}

    assert exported <= set().union(*(parts(case.kernel) for case in CASES))


@every_kernel
@few
@given(seed=seeds, n=st.integers(1, 8), p=st.integers(1, 5))
def test_block_symmetry_and_diagonal(case, seed, n, p):
    kernel, X, Z = case.bound, samples(case.kind, n, seed), samples(case.kind, p, seed + 1)
    K = kernel(X, Z)
    assert K.shape == (n, p)
    assert np.isfinite(K).all()
    assert_allclose(kernel(Z, X), K.T, rtol=1e-10, atol=1e-12)
    assert_allclose(kernel(X), kernel(X, X), rtol=1e-10, atol=1e-12)
    assert_allclose(kernel.diag(X), kernel(X).diagonal(), rtol=1e-10, atol=1e-12)
    assert_allclose(kernel(X[:1], Z), K[:1], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("case", [c for c in CASES if c.psd], ids=repr)
@few
@given(seed=seeds, n=st.integers(1, 12))
def test_matrix_is_positive_semidefinite(case, seed, n):
    values = np.linalg.eigvalsh(case.bound(samples(case.kind, n, seed)))
    assert values[0] >= -1e-10 * max(values[-1], 1e-300)


@every_kernel
@few
@given(seed=seeds, n=st.integers(1, 6))
def test_sparse_equals_dense(case, seed, n):
    X, Z = samples(case.kind, n, seed), samples(case.kind, 3, seed + 1)
    bound = case.kernel.bind(sparse.csr_matrix(case.train))
    S = sparse.csr_matrix(X)
    # A distance of equal samples is the root of a rounding error.
    atol = 1e-7 if isinstance(case.kernel, Matern) else 1e-12
    assert_allclose(bound(S), case.bound(X), rtol=1e-9, atol=atol)
    assert_allclose(bound(S, sparse.csr_matrix(Z)), case.bound(X, Z), rtol=1e-9, atol=atol)
    assert_allclose(bound.diag(S), case.bound.diag(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int32], ids=["bool", "int8", "int32"])
@pytest.mark.parametrize(
    "kernel",
    [Linear(), Polynomial(3), RBF(0.1), Cosine(), Laplacian(0.1), Linear().normalized()],
    ids=repr,
)
def test_numbers_of_any_type_count_as_floats(kernel, dtype):
    X = np.random.default_rng(0).integers(0, 90, size=(6, 4)).astype(dtype)
    expected = kernel(X.astype(float))
    assert_allclose(kernel(X), expected)
    assert_allclose(kernel(sparse.csr_matrix(X)), expected)


@every_kernel
@few
@given(seed=seeds)
def test_single_precision_is_close_to_double(case, seed):
    X = samples(case.kind, 6, seed).astype(np.float32)
    bound = case.kernel.bind(case.train.astype(np.float32))
    expected = case.bound(X.astype(np.float64))
    scale = max(np.abs(expected).max(), 1e-300)
    assert_allclose(bound(X), expected, rtol=1e-4, atol=1e-5 * scale)
    assert_allclose(bound.diag(X), case.bound.diag(X), rtol=1e-4, atol=1e-5 * scale)


@every_kernel
def test_copies_give_the_same_values(case):
    X = samples(case.kind, 5, seed=3)
    expected = case.bound(X)
    for kernel in (case.kernel, case.bound):
        parameters = kernel.get_params(deep=False)
        for copy in (
            clone(kernel),
            deepcopy(kernel),
            pickle.loads(pickle.dumps(kernel)),
            type(kernel)(**parameters),
            clone(kernel).set_params(**parameters),
        ):
            assert type(copy) is type(kernel)
            assert copy is not kernel
            assert written(copy) == written(kernel)
            assert_array_equal(copy.bind(case.train)(X), expected)
    assert isinstance(case.kernel.label, str)
    assert case.kernel.label


# A function has no literal.
@pytest.mark.parametrize(
    "case", [case for case in CASES if "Callable" not in written(case.kernel)], ids=repr
)
def test_repr_can_be_read_back(case):
    names = {**vars(gaussian_process_kernels), **PUBLIC, "np": np, "array": np.array}
    for kernel in (case.kernel, case.bound):
        again = eval(written(kernel), names)
        assert written(again) == written(kernel)


@every_kernel
def test_bind_is_idempotent_and_leaves_the_original_alone(case):
    before = written(case.kernel)
    once = case.kernel.bind(case.train)
    assert written(case.kernel) == before
    inside = written(once)
    twice = once.bind(case.train)
    assert written(once) == inside
    X = samples(case.kind, 5, seed=4)
    assert_allclose(twice(X), once(X), rtol=1e-12)
    assert_allclose(twice.diag(X), once.diag(X), rtol=1e-12)


@every_kernel
def test_read_only_samples_are_read_only(case, read_only):
    X = read_only(samples(case.kind, 6, seed=5))
    assert_allclose(case.kernel.bind(X)(X).diagonal(), case.kernel.bind(X).diag(X))


WITH_TERM = [case for case in CASES if case.bound.term() is not None]


def test_functions_of_one_inner_product_have_a_term():
    without = {
        "AdditiveLaplacian",
        "Chi2",
        "Clinical",
        "Precomputed",
        "Callable",
        "Sum",
        "Product",
        "GaussianProcess",
    }
    for case in CASES:
        assert (case in WITH_TERM) == (not any(f"{w}(" in written(case.kernel) for w in without))


@pytest.mark.parametrize("case", WITH_TERM, ids=repr)
@few
@given(seed=seeds, as_csr=st.booleans())
def test_term_is_the_kernel_taken_apart(case, seed, as_csr):
    kernel, term = case.bound, case.bound.term()
    X, Z = samples(case.kind, 6, seed), samples(case.kind, 4, seed + 1)
    sides, factors = [], []
    for side in (X, Z):
        seen = side if term.columns is None else side[:, list(term.columns)]
        seen = seen if term.column_scale is None else seen * np.array(term.column_scale)
        given_as = sparse.csr_matrix(seen) if as_csr else seen
        factors.append(np.ones(len(side)) if term.normalizer is None else term.normalizer(given_as))
        sides.append(seen)
    left, right = sides
    if term.metric == "l1":
        norms = abs(left).sum(axis=1)[:, np.newaxis], abs(right).sum(axis=1)
        dots = 0.5 * (norms[0] + norms[1] - cdist(left, right, "cityblock"))
    else:
        norms = (left**2).sum(axis=1)[:, np.newaxis], (right**2).sum(axis=1)
        dots = left @ right.T
    values = np.outer(*factors) * term.formula(dots, *norms)
    assert_allclose(values, kernel(X, Z), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("kernel", "columns"),
    [
        (Linear(), None),
        (Linear().on([1]) * RBF(1.0), None),
        (Linear().on([2, 0]), (2, 0)),
        (Linear().on([2, 1]).on([3, 1, 0]), (0, 1)),
        (Linear().on([1]).normalized() + RBF(1.0).on([3, 1]), (1, 3)),
        (Laplacian().on([-1]), (3,)),
    ],
    ids=repr,
)
def test_bound_kernels_tell_the_columns_they_look_at(kernel, columns):
    X = samples("features", 6, seed=0)
    bound = kernel.bind(X)
    assert bound.columns_used() == columns
    other = X + [j not in (columns or range(4)) for j in range(4)]
    assert_allclose(bound(other), bound(X))


@every_kernel
def test_a_view_is_known_as_one_before_and_after_it_is_bound(case):
    assert case.kernel.is_view == case.bound.is_view == (case.bound.columns_used() is not None)
