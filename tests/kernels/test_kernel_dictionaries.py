"""Ready lists of kernels and the shorthand for them."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import Matern
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, sigmoid_kernel

from lokl.kernels import (
    RBF,
    Callable,
    Chi2,
    Cosine,
    Kernel,
    Laplacian,
    Linear,
    Normalized,
    Polynomial,
    Sigmoid,
    per_feature,
    rbf_ladder,
    standard,
)
from lokl.kernels.dictionaries import named_kernels

X = np.random.default_rng(0).normal(size=(8, 3))


@given(low=st.integers(-20, 20), count=st.integers(1, 12))
def test_a_ladder_climbs_by_powers_of_two(low, count):
    gammas = [kernel.gamma for kernel in rbf_ladder(low, low + count - 1)]
    assert gammas == [2.0**power for power in range(low, low + count)]


def test_the_default_ladder_has_nine_rungs():
    assert [kernel.gamma for kernel in rbf_ladder()] == [2.0**power for power in range(-4, 5)]


def test_a_ladder_does_not_climb_down():
    with pytest.raises(ValueError, match="low=2, high=1"):
        rbf_ladder(2, 1)


@pytest.mark.parametrize("units", [1e-6, 1.0, 1e6])
def test_the_standard_kernels_are_on_one_scale_in_any_units(units):
    kernels = [kernel.bind(units * X) for kernel in standard()]
    assert [kernel.label for kernel in kernels[:2]] == ["linear", "poly2"]
    for kernel in kernels:
        assert_allclose(kernel.diag(units * X).mean(), 1.0)


@pytest.mark.parametrize("columns", [["a", "b", "c"], ["a", "a", "b"], [7, 8, 9]], ids=str)
def test_per_feature_gives_every_column_a_kernel(columns):
    frame = pd.DataFrame(X, columns=columns)
    kernels = per_feature(RBF("scale"), frame)
    assert len(kernels) == 3
    assert all(isinstance(name, str) for name in kernels)
    for j, kernel in enumerate(kernels.values()):
        expected = RBF("scale").bind(X[:, [j]])(X[:, [j]])
        assert_allclose(kernel.bind(frame)(frame), expected)


def test_per_feature_uses_the_names_of_the_columns_and_copies_the_kernel():
    kernel = Linear()
    named = per_feature(kernel, pd.DataFrame(X, columns=["u", "v", "w"]))
    assert list(named) == ["u", "v", "w"]
    assert list(per_feature(kernel, X)) == ["0", "1", "2"]
    assert len({id(k.kernel) for k in [*named.values(), Linear().on([0])]}) == 4


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("linear", Linear),
        ("poly2", Polynomial),
        ("poly3", Polynomial),
        ("rbf", RBF),
        ("laplacian", Laplacian),
        ("cosine", Cosine),
        ("sigmoid", Sigmoid),
        ("chi2", Chi2),
        ("poly", Polynomial),
        ("polynomial", Polynomial),
        ("additive_chi2", Callable),
    ],
)
def test_strings_are_shorthand(name, kind):
    for kernels in (name, [name], (name,), {name: name}, iter([name])):
        named = named_kernels(kernels)
        assert list(named) == [name]
        assert type(named[name]) is kind
    if kind is Polynomial:
        assert named[name].degree == (2 if name == "poly2" else 3)
    if kind in (Polynomial, RBF, Sigmoid):
        assert named[name].gamma == "scale"


@pytest.mark.parametrize("name", PAIRWISE_KERNEL_FUNCTIONS)
def test_the_pairwise_kernels_of_scikit_learn_are_known(name):
    X = np.random.default_rng(0).random((7, 3))
    kernel = named_kernels(name)[name].bind(X)
    gamma = getattr(kernel, "gamma", None)
    expected = PAIRWISE_KERNEL_FUNCTIONS[name](X, **({} if gamma is None else {"gamma": gamma}))
    if name == "sigmoid":
        expected = sigmoid_kernel(X, gamma=gamma, coef0=0.0)
    np.testing.assert_allclose(kernel(X), expected, rtol=1e-10)
    if gamma is not None and name not in ("chi2", "laplacian"):
        assert np.isclose(gamma, 1 / (X.shape[1] * X.var()))


def overlap(X, Z):
    return np.minimum(X[:, np.newaxis], Z[np.newaxis]).sum(axis=2)


@pytest.mark.parametrize(
    "given_as", [overlap, Matern(0.5), 2.0 * Matern(0.5)], ids=["function", "Matern", "product"]
)
def test_functions_and_gaussian_process_kernels_are_kernels(given_as):
    X = np.random.default_rng(0).random((7, 3))
    for kernels in (given_as, [given_as], (given_as, "rbf"), {"mine": given_as}):
        name, kernel = next(iter(named_kernels(kernels).items()))
        np.testing.assert_allclose(kernel(X), given_as(X, X))
        np.testing.assert_allclose(kernel.diag(X), given_as(X, X).diagonal())
        assert name == ("mine" if isinstance(kernels, dict) else kernel.label)


def test_none_is_the_standard_three():
    named = named_kernels(None)
    assert list(named) == ["linear", "poly2", "rbf"]
    assert [type(kernel) for kernel in named.values()] == [Normalized, Normalized, RBF]


def test_kernels_of_the_user_are_kept_as_they_are():
    first, second = Linear(), RBF(0.5)
    assert named_kernels(first) == {"linear": first}
    assert list(named_kernels([first, second, "poly2"])) == ["linear", "rbf(0.5)", "poly2"]
    assert named_kernels({"mine": first, 2: second}) == {"mine": first, "2": second}


LABELLED = [
    Linear(),
    RBF(0.1234),
    RBF(0.12341),
    Linear().on("a"),
    Linear().on("a #1"),
    Linear().on("a #1").on("a"),
    Linear().normalized(),
]


@example([LABELLED[3], LABELLED[3], LABELLED[4]])
@given(st.lists(st.sampled_from(["linear", "rbf", *LABELLED]), min_size=1, max_size=8))
def test_a_list_loses_no_kernel_to_a_name(kernels):
    named = named_kernels(kernels)
    assert len(named) == len(kernels)
    for given_as, kernel in zip(kernels, named.values(), strict=True):
        assert isinstance(kernel, Kernel)
        assert isinstance(given_as, str) or kernel is given_as


def test_duplicates_are_numbered():
    assert list(named_kernels(["rbf", "rbf", "linear"])) == ["rbf #1", "rbf #2", "linear"]


@pytest.mark.parametrize(
    ("kernels", "message"),
    [
        ("gauss", "'gauss'.*linear, poly2"),
        (["linear", 3], "kernel 3"),
        ({"mine": "gauss"}, "'gauss'"),
        ([Linear], r"Linear\(\)"),
        ([], "kernels is empty"),
        ({}, "kernels is empty"),
        (7, "kernels.*got 7"),
        ([np.eye(3)], r"\(3, 3\).*precomputed\(\[gram\]\)"),
        (np.eye(3), r"\(3, 3\).*precomputed"),
        ({1: Linear(), "1": RBF()}, "'1'"),
    ],
    ids=str,
)
def test_invalid_lists_of_kernels_are_rejected(kernels, message):
    with pytest.raises(ValueError, match=message):
        named_kernels(kernels)
