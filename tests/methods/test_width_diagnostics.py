"""Gaussian kernels that miss the data are told of, with the direction to extend them."""

import warnings

import numpy as np
import pytest
from estimator_cases import X, labels

from lokl import SimpleMKLClassifier, UniformMKLClassifier
from lokl.base.diagnostics import warn_of_weight_at_the_end
from lokl.kernels import RBF, Linear, rbf_ladder

Y = labels(X)


@pytest.mark.parametrize(
    ("scale", "words"),
    [
        (1000.0, r"so narrow for the data .*Scale the data, .*rbf_ladder\(low=-2\d\)"),
        (1e-3, r"so wide for the data .*Scale the data, .*rbf_ladder\(high=1\d\)"),
    ],
)
def test_widths_that_miss_the_data_are_told(scale, words):
    with pytest.warns(UserWarning, match=words):
        UniformMKLClassifier(rbf_ladder()).fit(X * scale, Y)
    views = [*(kernel.on([0, 1]) for kernel in rbf_ladder()), RBF(1.0 / scale**2)]
    with pytest.warns(UserWarning, match=words):
        UniformMKLClassifier(views).fit(X * scale, Y)


def test_what_the_warning_suggests_fits():
    with pytest.warns(UserWarning, match="so narrow") as caught:
        UniformMKLClassifier(rbf_ladder()).fit(X * 1000.0, Y)
    low = int(str(caught[0].message).split("low=")[1].split(")")[0])
    model = UniformMKLClassifier(rbf_ladder(low=low)).fit(X * 1000.0, Y)
    assert model.score(X * 1000.0, Y) > 0.8


@pytest.mark.parametrize(
    "kernels",
    [
        [RBF(1e6)],
        [RBF(1e6), RBF("scale")],
        [RBF(1e6), Linear()],
        [RBF(1e-6).normalized("mean_diag"), RBF(1e6).normalized("mean_diag")],
        [RBF(1e6).on([0]), RBF(1e6).on([1])],
    ],
    ids=str,
)
def test_one_width_at_a_time_is_nobodys_business(kernels):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        UniformMKLClassifier(kernels).fit(X, Y)


def test_weight_at_the_end_of_a_ladder_is_told():
    rng = np.random.default_rng(0)
    plane = rng.normal(size=(120, 2))
    board = np.sin(9.0 * plane[:, 0]) * np.sin(9.0 * plane[:, 1]) > 0
    with pytest.warns(UserWarning, match=r"100% .* narrowest, gamma=0.0312: .*ladder\(high=-1\)"):
        SimpleMKLClassifier(rbf_ladder(-8, -5), C=10.0).fit(plane, board)
    kernels = [*rbf_ladder(1, 4), Linear()]
    with pytest.warns(UserWarning, match=r"96% .* widest, gamma=2: .*rbf_ladder\(low=-3\)"):
        warn_of_weight_at_the_end(kernels, np.array([0.48, 0.01, 0.0, 0.01, 0.5]))


@pytest.mark.parametrize(
    "weights",
    [[0.4, 0.1, 0.0, 0.5], [0.0, 0.5, 0.0, 0.5], [0.01, 0.0, 0.0, 0.99], [[0.5, 0.0, 0.0, 0.5]]],
    ids=["shared", "inside", "light", "local"],
)
def test_other_weights_of_a_ladder_are_not_told(weights):
    warn_of_weight_at_the_end([*rbf_ladder(1, 3), Linear()], np.array(weights))
    warn_of_weight_at_the_end([RBF(1.0)] * 4, np.eye(4)[0])


def test_weight_inside_a_ladder_is_not_told():
    model = SimpleMKLClassifier(rbf_ladder(-6, 6)).fit(X, Y)
    assert model.weights_[1:-1].sum() > 0.5
