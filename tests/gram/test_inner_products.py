"""Many Gram matrices on the same samples: they share what is laid out and one memory."""

import pickle

import numpy as np
import pytest
from gram_cases import (
    DICTIONARIES,
    GATES,
    close,
    coefficients,
    dense,
    every_layout,
    few_entries,
    gates,
    layout_of,
    parts,
    problem,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from lokl._arrays import Samples
from lokl.gates import ConstantGate, SoftmaxGate
from lokl.gram import GatedKernel, InnerProducts
from lokl.kernels import RBF, AnisotropicRBF, Linear, Polynomial

seeds = st.integers(0, 2**16)
LISTS = ["one", "linear views", "Gaussians", "one view", "views", "mixed", "no dot product"]


def ask(gram, K, what, rng):
    """One question, and its answer by an independently computed matrix."""
    n, dtype = gram.n_samples, gram.dtype
    rows = rng.permutation(n)[: rng.integers(1, n + 1)]
    if what == "rows":
        close(gram.rows(rows), K[rows], dtype)
    elif what == "block":
        close(gram.block(rows), K[np.ix_(rows, rows)], dtype)
    elif what == "whole":
        close(gram.whole, K, dtype)
    elif what == "dot":
        coef = coefficients(n, 2, rng)
        close(gram.dot(coef), K @ coef, dtype)
    elif what == "stored":
        gram.store(rows[: gram.capacity])
        slab, slots = gram.stored()
        held = np.flatnonzero(slots >= 0)
        close(slab[slots[held]], K[held], dtype)
    else:
        target, coef = np.zeros(n), rng.normal(size=len(rows))
        gram.subtract(rows, coef, target)
        close(target, -K[:, rows] @ coef, dtype)


QUESTIONS = ["rows", "block", "whole", "dot", "stored", "subtract"]


@every_layout
@settings(max_examples=15)
@given(
    seed=seeds,
    n=st.integers(2, 16),
    keep=st.booleans(),
    dtype=st.sampled_from(["auto", "float32", "float64"]),
    budget=st.integers(2, 12),
    lists=st.lists(st.sampled_from(LISTS), min_size=1, max_size=3),
    steps=st.lists(st.tuples(st.integers(0, 5), st.sampled_from(QUESTIONS)), max_size=12),
)
def test_no_gram_is_ever_stale(make, seed, n, keep, dtype, budget, lists, steps):
    rng = np.random.default_rng(seed)
    X = make(n, rng)
    inner = InnerProducts(X, cache_size=2 * budget * 8 * n / 2**20, dtype=dtype, keep=keep)
    grams = []
    with layout_of(make):
        for name in lists:
            kernels, _, H, _ = problem(DICTIONARIES[name], make, "rank 1", n, seed)
            first = inner.gated(kernels, H)
            grams.append((first, parts(kernels, X, H).sum(axis=0)))
            H = gates(GATES[seed % len(GATES)], n, len(kernels), rng)
            again = first.regated(H) if seed % 2 else inner.gated(kernels, H)
            assert again.plan is first.plan
            grams.append((again, parts(kernels, X, H).sum(axis=0)))
        for number, what in steps:
            ask(*grams[number % len(grams)], what, rng)
            if what == "whole" and number == 5:
                inner.release()


@pytest.mark.parametrize("keep", [False, True])
def test_an_older_gram_asks_again_and_memory_is_reused(keep):
    X = dense(12, np.random.default_rng(0))
    with layout_of(dense):
        inner = InnerProducts(X, dtype="float64", keep=keep)
        old = inner.gated([RBF(0.1)], np.ones((12, 1)))
        new = old.regated(2 * np.ones((12, 1)))
    K = RBF(0.1)(X)
    slab, whole = old.stored()[0], old.whole
    for gram, factor in ((old, 1), (new, 4), (old, 1)):
        close(gram.rows(np.arange(12)), factor * K, "float64")
        close(gram.whole, factor * K, "float64")
        assert gram.stored()[0] is slab
        assert np.shares_memory(gram.whole, whole)
    assert not old.gates.flags.writeable


@pytest.mark.parametrize("make", [dense, few_entries])
def test_lists_of_kernels_share_what_is_laid_out(make):
    X = make(20, np.random.default_rng(0))
    with layout_of(make):
        inner = InnerProducts(X, dtype="float64")
        lists = [[RBF(0.1)], [RBF(0.7), RBF(3.0)], [RBF(0.2).on([0, 1])]]
        narrow, wide, view = (inner.gated(kernels).points.layouts[0] for kernels in lists)
        mixed = inner.gated([RBF(0.1), Linear()]).points.layouts[0]
        again = inner.gated([Polynomial(2)]).points.layouts[0]
        stretched = [inner.gated([AnisotropicRBF(np.ones(14))]).points.layouts[0] for _ in "ab"]
    assert narrow is wide
    assert mixed is again
    assert view is not narrow
    # Dense samples are centred where all kernels are Gaussian.
    assert (mixed is narrow) == (make is few_entries)
    assert stretched[0] is not stretched[1]


def test_kept_inner_products_serve_other_widths_and_gates(monkeypatch):
    X = dense(20, np.random.default_rng(0))
    with layout_of(dense):
        inner = InnerProducts(X, dtype="float64", keep=True)
        first = inner.gated([RBF(0.1)])
        first.rows(np.arange(20))
        monkeypatch.setattr(type(first.points.layouts[0]), "dots", None)
        for gram in (first.regated(3 * np.ones((20, 1))), inner.gated([RBF(0.5), RBF(4.0)])):
            K = parts(gram.kernels, X, gram.gates).sum(axis=0)
            close(gram.rows(np.arange(20)), K, "float64")


@every_layout
@settings(max_examples=10)
@given(seed=seeds, n=st.integers(2, 16), name=st.sampled_from(LISTS), before=st.booleans())
def test_some_of_the_samples(make, seed, n, name, before):
    kernels, X, H, rng = problem(DICTIONARIES[name], make, "rank 1", n, seed)
    rows = rng.permutation(n)[: 1 + n // 2]
    with layout_of(make):
        inner = InnerProducts(X, cache_size=3, dtype="float64", keep=True)
        if before:
            inner.gated(kernels).rows([0])
        part = inner.take(rows)
        gram, all_of_them = part.gated(kernels, H[rows]), inner.gated(kernels, H)
    assert (part.n_samples, part.cache_size, part.keep) == (len(rows), 3, True)
    K = parts(kernels, X, H).sum(axis=0)[np.ix_(rows, rows)]
    for what in QUESTIONS:
        ask(gram, K, what, rng)
    if before:
        views = [[family.view for family in g.plan.families] for g in (gram, all_of_them)]
        assert views[0] == views[1]
        for mine, whole in zip(gram.points.layouts, all_of_them.points.layouts, strict=True):
            assert type(mine) is type(whole)
            assert_array_equal(mine.norms, whole.norms[rows])


@settings(max_examples=10)
@given(seed=seeds, n=st.integers(1, 12), tasks=st.integers(1, 2))
def test_sums_apart_for_each_kernel(seed, n, tasks):
    kernels, X, H, rng = problem(DICTIONARIES["mixed"], dense, "rank 3", n, seed)
    gram = InnerProducts(X, dtype="float64").gated(kernels, H)
    coef = coefficients(n, tasks, rng)
    each = parts(kernels, X, np.ones((n, len(kernels))))
    expected = np.einsum("ipj,jir,jt->pirt", each, H, coef)
    close(gram.kernel_sums(coef), expected, "float64")


def expansion_of(kernels, X, gate, cache_size=512, dtype="float64"):
    params = gate.init(X, len(kernels), np.random.RandomState(0))
    kernel = GatedKernel(kernels, gate, params)
    inner = InnerProducts(X, cache_size=cache_size, dtype=dtype, keep=True)
    gram = inner.gated(kernels, kernel.gates(Samples.of(X)))
    gram.rows(np.arange(len(X)))
    coef = np.zeros((len(X), 2))
    coef[:5] = np.random.RandomState(1).normal(size=(5, 2))
    return gram.expansion(kernel, coef, np.array([0.5, -0.5]))


@pytest.mark.parametrize("gate", [ConstantGate(), SoftmaxGate(1.0)], ids=repr)
def test_a_pickled_expansion_holds_its_points_only(gate):
    X = dense(300, np.random.default_rng(0))
    kernels, Z = [RBF(0.1), Linear()], Samples.of(X[:7])
    sizes = []
    for cache_size in (1, 200):
        expansion = expansion_of(kernels, X, gate, cache_size)
        said = expansion(Z)
        text = pickle.dumps(expansion)
        assert_array_equal(pickle.loads(text)(Z), said)
        sizes.append(len(text))
    assert sizes[0] == sizes[1] < 6000


def test_ungated_contributions_leave_out_the_gates_of_the_samples():
    X = dense(30, np.random.default_rng(0))
    expansion = expansion_of([RBF(0.1), Linear()], X, SoftmaxGate(1.0))
    Z = Samples.of(X[10:17])
    H = expansion.kernel.gates(Z)
    trusting = expansion.contributions(expansion.prepare_ungated(Z))
    assert_allclose(expansion.contributions(expansion.prepare(Z)), H[:, :, np.newaxis] * trusting)


def test_expansions_of_one_view_share_prepared_samples():
    X, Z = np.split(dense(60, np.random.default_rng(0)), 2)
    alone = ConstantGate()
    first, second = (expansion_of([RBF(gamma)], X, alone) for gamma in (0.1, 2.0))
    assert first.shares_layout_with(first)
    assert first.shares_layout_with(second)
    points = first.prepare(Samples.of(Z))
    assert_allclose(second.at(points), second(Samples.of(Z)))
    for other in (
        expansion_of([RBF(0.1).on([0, 1])], X, alone),
        expansion_of([RBF(0.1)], X + 1.0, alone),
        expansion_of([RBF(0.1)], X, alone, dtype="float32"),
        expansion_of([RBF(0.1).normalized()], X, alone),
        expansion_of([RBF(0.1), RBF(0.2)], X, alone),
        expansion_of([RBF(0.1)], X, SoftmaxGate(1.0)),
    ):
        assert not first.shares_layout_with(other)


class Counting(ConstantGate):
    calls = 0

    def __call__(self, X, params, present=None):
        Counting.calls += 1
        return super().__call__(X, params, present)


def test_gates_are_computed_once_for_each_side():
    X = dense(5, np.random.default_rng(0))
    kernel = GatedKernel([RBF(0.1), Linear()], Counting(), np.ones(2))
    for call, expected in (
        (lambda: kernel(X), 1),
        (lambda: kernel(X, X), 2),
        (lambda: kernel.diag(X), 1),
    ):
        Counting.calls = 0
        call()
        assert Counting.calls == expected
