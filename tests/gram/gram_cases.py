"""Lists of kernels, layouts and gates, and the plain sum they must equal."""

from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from lokl import _threads
from lokl.gram import layouts
from lokl.gram.layouts import Dense, Panels, Sparse
from lokl.kernels import (
    RBF,
    Callable,
    Cosine,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Sigmoid,
    rbf_ladder,
)


def product(X, Z):
    return np.asarray((X @ Z.T).todense() if sparse.issparse(X) else X @ Z.T)


# Unbound; by what is special about them in the Gram matrix.
DICTIONARIES = {
    "one": [RBF(0.3)],
    "linear": [Linear()],
    "linear views": [Linear(), Linear().on([0, 2]).normalized("trace"), Cosine().on([1, 3])],
    "Gaussians": [RBF("scale"), RBF(0.5), RBF("median")],
    "ladder": [*rbf_ladder(-4, 3)[::-1], RBF(0.3)],
    "Matern": [Matern(1.5, 0.3), Matern(2.5, 0.3), RBF(0.3), Matern(1.5, 0.2).on([0, 2])],
    "one view": [RBF(0.2), Polynomial(3, 0.1), Linear(), Sigmoid(0.1, -0.1), RBF(0.4), Cosine()],
    "views": [
        *rbf_ladder(-3, 1),
        RBF(0.5).on([0, 1]),
        Polynomial(2).on([1, 0, 3]).normalized("unit_diag"),
        Linear().on([0, 1]).normalized("mean_diag"),
        Polynomial(1).on([3]),
    ],
    "mixed": [
        Laplacian(0.2),
        RBF(0.25).on([2, 3]),
        Linear() * RBF(0.1),
        Linear().normalized("unit_diag"),
        Callable(product).on([0, 1]).normalized("mean_diag"),
    ],
    "Laplacians": [Laplacian(), Laplacian(0.2), Laplacian(0.4), Laplacian("median").on([1, 3])],
    "no dot product": [Linear() * Laplacian(0.1), Callable(product)],
}


def dense(n, rng):
    return rng.normal(size=(n, 14)) + 0.3


def short_rows(n, rng):
    return rng.normal(size=(n, 4)) + 0.3


def few_entries(n, rng):
    return sparse.csr_matrix(rng.normal(size=(n, 14)) * (rng.random((n, 14)) < 0.2))


def full_csr(n, rng):
    return sparse.csr_matrix(rng.normal(size=(n, 14)))


def wide(n, rng):
    return few_entries(n, rng)


# How samples are given, and a layout they can have.
LAYOUTS = {
    dense: Dense,
    short_rows: Panels,
    few_entries: Panels,
    full_csr: Dense,
    wide: Sparse,
}


@contextmanager
def layout_of(make):
    """Lay samples out as the list says, however few they are."""
    # Of overlaps, wide samples have a layout of their own.
    limits = {"_LARGEST_PANELS": 0, "_SPARSE_SHARE": 2.0} if make is wide else {}
    with patch.multiple(layouts, choose_layout=lambda X: LAYOUTS[make], **limits):
        yield


@contextmanager
def threads(count):
    """Let a solve use that many threads, whatever the machine has."""
    _threads._pool.cache_clear()
    with patch.object(_threads, "_process_threads", lambda: count):
        yield
    _threads._pool.cache_clear()


def gates(kind, n, m, rng):
    if kind == "constant":
        return np.tile(rng.random(m), (n, 1))
    if kind == "constant of rank 2":
        return np.tile(rng.random((m, 2)), (n, 1, 1))
    if kind == "partition":
        return np.eye(3)[rng.integers(3, size=n)][:, np.newaxis] * rng.random((m, 3))
    return rng.random((n, m) if kind == "rank 1" else (n, m, 3)) + 0.01


GATES = ["constant", "constant of rank 2", "rank 1", "rank 3", "partition"]
POSITIVE = GATES[:-1]


def as_array(X):
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def parts(kernels, X, H, Z=None, HZ=None, pair_normalized=False):
    """Gated matrix of each kernel, (m, n, p): ``<h_i(x), h_i(z)> k_i(x, z)``."""
    Z, HZ = (X, H) if Z is None else (Z, HZ)
    H, HZ = H.reshape(*H.shape[:2], -1), HZ.reshape(*HZ.shape[:2], -1)
    trust = np.einsum("jir,kir->ijk", H, HZ)
    if pair_normalized:
        trust = trust / trust.sum(axis=0)
    X, Z = as_array(X).astype(np.float64), as_array(Z).astype(np.float64)
    return np.stack([t * kernel(X, Z) for t, kernel in zip(trust, kernels, strict=True)])


def tolerance(expected, dtype):
    """Rounding of single precision is that of the largest entries, not of the smallest."""
    relative = 1e-10 if np.dtype(dtype) == np.float64 else 5e-5
    return {"rtol": relative, "atol": relative * max(np.abs(expected).max(initial=0.0), 1.0)}


every_dictionary = pytest.mark.parametrize("kernels", DICTIONARIES.values(), ids=DICTIONARIES)
every_layout = pytest.mark.parametrize("make", LAYOUTS, ids=lambda make: make.__name__)
both = pytest.mark.parametrize("dtype", ["float32", "float64"])


def problem(kernels, make, kind, n, seed):
    """Bound kernels, samples, gates, and a generator for more."""
    rng = np.random.default_rng(seed)
    X = make(n, rng)
    training = make(30, np.random.default_rng(0))
    return [kernel.bind(training) for kernel in kernels], X, gates(kind, n, len(kernels), rng), rng


def coefficients(n, tasks, rng):
    """Signed, and zero for some samples but the first."""
    coef = rng.normal(size=(n, tasks))
    coef[1:] *= rng.random((n - 1, 1)) < 0.7
    return coef


def close(actual, expected, dtype):
    assert np.shape(actual) == expected.shape
    assert_allclose(actual, expected, **tolerance(expected, dtype))
