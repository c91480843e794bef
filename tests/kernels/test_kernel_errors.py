"""A setting out of range is refused, by name and value."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import CompoundKernel, WhiteKernel
from sklearn.gaussian_process.kernels import Matern as GaussianProcessMatern

from lokl.kernels import (
    RBF,
    AdditiveLaplacian,
    Chi2,
    GaussianProcess,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Sigmoid,
)

X = np.random.default_rng(0).random((5, 3))
NOT_POSITIVE = [0, -1.0, np.nan, np.inf, "wide", None, [1.0]]


@pytest.mark.parametrize(
    "kernel",
    [
        kind(gamma=gamma)
        for kind in (RBF, Polynomial, Sigmoid, Laplacian, AdditiveLaplacian, Matern, Chi2)
        for gamma in NOT_POSITIVE
        # None is one over the number of features.
        if not (kind is Laplacian and gamma is None)
    ],
    ids=repr,
)
def test_gamma_is_a_positive_number(kernel):
    for composed in (kernel, kernel.on([0]), kernel.normalized("trace"), Linear() + kernel):
        with pytest.raises(ValueError, match="gamma"):
            composed.bind(X)(X)
    with pytest.raises(ValueError, match="gamma"):
        kernel(X)


@pytest.mark.parametrize("nu", [0, 1, 3.5, "1.5", None], ids=repr)
def test_nu_is_one_of_three(nu):
    with pytest.raises(ValueError, match="nu must be"):
        Matern(nu, 1.0).bind(X)
    with pytest.raises(ValueError, match="nu must be"):
        Matern(nu).bind(X)


@pytest.mark.parametrize("degree", [0, -2, 1.5, "2", None], ids=repr)
def test_a_degree_is_a_positive_integer(degree):
    with pytest.raises(ValueError, match="degree"):
        Polynomial(degree).bind(X)(X)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Polynomial(coef0=-0.1), "coef0.*-0.1"),
        (Polynomial(coef0=np.nan), "coef0.*nan"),
        (Polynomial(coef0="a"), "coef0.*'a'"),
        (Sigmoid(coef0=np.inf), "coef0.*inf"),
        (Sigmoid(coef0="a"), "coef0.*'a'"),
        (Polynomial(gamma="wide"), "gamma.*'scale' or 'auto', got 'wide'"),
        (Linear().on(None), r"columns.*None.*\.on"),
        (Linear().on(1.5), "columns.*1.5"),
        (GaussianProcess(RBF()), "sklearn.gaussian_process.kernels.*RBF"),
        (GaussianProcess(WhiteKernel()), "WhiteKernel"),
        (GaussianProcess(GaussianProcessMatern() + 2.0 * WhiteKernel()), "WhiteKernel"),
        (GaussianProcess(CompoundKernel([GaussianProcessMatern()])), "compound.kernels"),
        (RBF("wide"), "gamma.*'scale' or 'auto' or 'median', got 'wide'"),
        (Linear().normalized("max"), "how.*'none', 'unit_diag'.*'max'"),
    ],
    ids=repr,
)
def test_other_settings_are_checked(kernel, message):
    with pytest.raises(ValueError, match=message):
        kernel.bind(X)(X)


@pytest.mark.parametrize(
    "kernel",
    [
        RBF("scale"),
        RBF("median"),
        RBF("auto"),
        Polynomial(gamma="scale"),
        Sigmoid("scale"),
        Linear().normalized("mean_diag"),
        Linear().normalized("trace"),
    ],
    ids=repr,
)
def test_settings_learned_from_data_must_be_bound_first(kernel):
    for use in (kernel, kernel.diag):
        with pytest.raises(ValueError, match=r"bind\(X\)"):
            use(X)


def test_histograms_are_not_negative():
    with pytest.raises(ValueError, match=r"negative.*-0\.5"):
        Chi2().bind(X - X.min() - 0.5)
    with pytest.raises(ValueError, match="negative"):
        Chi2().bind(X)(-X)


def test_samples_are_rows():
    with pytest.raises(ValueError, match=r"\(3,\)"):
        Linear()(X[0])


@pytest.mark.parametrize("other", [2.0, "rbf", None], ids=repr)
def test_only_kernels_are_added_and_multiplied(other):
    with pytest.raises(TypeError):
        Linear() + other
    with pytest.raises(TypeError):
        Linear() * other
