"""A setting out of range is refused, by name and value."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import CompoundKernel, Matern, WhiteKernel

from lokl.kernels import RBF, Chi2, GaussianProcess, Laplacian, Linear, Polynomial, Sigmoid

X = np.random.default_rng(0).random((5, 3))
NOT_POSITIVE = [0, -1.0, np.nan, np.inf, "wide", None, [1.0]]


@pytest.mark.parametrize(
    "kernel",
    [
        kind(gamma=gamma)
        for kind in (RBF, Polynomial, Sigmoid, Laplacian, Chi2)
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


@pytest.mark.parametrize("degree", [0, -2, 1.5, "2", None], ids=repr)
def test_a_degree_is_a_positive_integer(degree):
    with pytest.raises(ValueError, match="degree must be a positive integer, got"):
        Polynomial(degree).bind(X)(X)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Polynomial(coef0=-0.1), "coef0 must be finite and not negative, got -0.1"),
        (Polynomial(coef0=np.nan), "coef0 must be finite and not negative, got nan"),
        (Polynomial(coef0="a"), "coef0 must be finite and not negative, got 'a'"),
        (Sigmoid(coef0=np.inf), "coef0 must be finite, got inf"),
        (Sigmoid(coef0="a"), "coef0 must be finite, got 'a'"),
        (Polynomial(gamma="wide"), "gamma must be a number, 'scale' or 'auto', got 'wide'"),
        (Linear().on(None), r"columns of a view are names, .*, got None; .* without \.on"),
        (Linear().on(1.5), "columns of a view are names, .*, got 1.5"),
        (GaussianProcess(RBF()), "wraps a kernel of sklearn.gaussian_process.kernels, got RBF"),
        (GaussianProcess(WhiteKernel()), "contains WhiteKernel, which is noise"),
        (GaussianProcess(Matern() + 2.0 * WhiteKernel()), "contains WhiteKernel, which is noise"),
        (GaussianProcess(CompoundKernel([Matern()])), "give them as a list"),
        (RBF("wide"), "number, 'scale' or 'auto' or 'median', got 'wide'"),
        (Linear().normalized("max"), "how must be one of none, unit_diag, .*, got 'max'"),
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
def test_what_is_learned_in_training_must_be_bound_first(kernel):
    for use in (kernel, kernel.diag):
        with pytest.raises(ValueError, match=r"training data; call bind\(X\) first"):
            use(X)


def test_histograms_are_not_negative():
    with pytest.raises(ValueError, match=r"features must not be negative, got -0\.5"):
        Chi2().bind(X - X.min() - 0.5)
    with pytest.raises(ValueError, match="negative"):
        Chi2().bind(X)(-X)


def test_samples_are_rows():
    with pytest.raises(ValueError, match=r"rows of a 2-D array, got shape \(3,\)"):
        Linear()(X[0])


@pytest.mark.parametrize("other", [2.0, "rbf", None], ids=repr)
def test_only_kernels_are_added_and_multiplied(other):
    with pytest.raises(TypeError):
        Linear() + other
    with pytest.raises(TypeError):
        Linear() * other
