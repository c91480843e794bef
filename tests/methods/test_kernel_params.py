"""Kernels of an estimator are parameters like any other: by name, by position, in grids."""

import numpy as np
import pytest
from estimator_cases import X, labels
from sklearn.base import BaseEstimator, clone
from sklearn.gaussian_process.kernels import Matern
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from lokl import GMKLClassifier, LMKLClassifier, UniformMKLClassifier
from lokl.kernels import RBF, Linear, Polynomial, per_view

Y = labels(X)


def overlap(X, Z):
    return np.asarray(X) @ np.asarray(Z).T


@pytest.mark.parametrize(
    ("kernels", "parameter"),
    [
        ({"bump": RBF(1.0), "line": Linear()}, "kernels__bump__gamma"),
        ({"bump": "rbf"}, "kernels__bump__gamma"),
        ({3: RBF(1.0)}, "kernels__3__gamma"),
        ({"a__b": RBF(1.0), "a": Linear()}, "kernels__a__b__gamma"),
        ([Linear(), RBF(1.0)], "kernels__1__gamma"),
        ((Linear(), RBF(1.0)), "kernels__1__gamma"),
        (["linear", "rbf"], "kernels__rbf__gamma"),
        (["linear", "rbf"], "kernels__1__gamma"),
        ([Linear(), "rbf"], "kernels__rbf__gamma"),
        ("rbf", "kernels__rbf__gamma"),
        (RBF(1.0), "kernels__gamma"),
        (None, "kernels__rbf__gamma"),
        (None, "kernels__poly2__kernel__gamma"),
        (per_view(RBF(1.0), {"left": [0, 1]}), "kernels__left__kernel__gamma"),
        ([RBF(1.0).on([0]).normalized()], "kernels__0__kernel__kernel__gamma"),
        ([Matern(), "linear"], "kernels__0__length_scale"),
        (Matern(), "kernels__length_scale"),
    ],
    ids=str,
)
def test_a_parameter_of_a_kernel_is_read_and_set(kernels, parameter):
    model = UniformMKLClassifier(kernels)
    other = UniformMKLClassifier(kernels)
    before, shown = model.get_params(), repr(kernels)
    assert parameter in before
    assert model.set_params(**{parameter: 0.125}) is model
    assert model.get_params()[parameter] == 0.125
    # Neither the caller's kernels nor those of others have changed.
    assert repr(kernels) == shown
    assert other.kernels is kernels
    assert model.kernels is not kernels
    # Once more, and in copies.
    assert clone(model).get_params()[parameter] == 0.125
    assert clone(model).set_params(**{parameter: 2.0}).get_params()[parameter] == 2.0
    assert set(before) <= set(model.get_params()) | {parameter}
    model.fit(X, Y).predict(X)


@pytest.mark.parametrize("kernels", [None, "rbf", ["linear", "rbf"], {"a": "rbf"}], ids=str)
def test_parameters_of_equal_models_are_equal(kernels):
    model = UniformMKLClassifier(kernels)
    assert clone(model).get_params() == model.get_params()


def test_lists_stay_lists_and_names_stay_names():
    model = UniformMKLClassifier((Linear(), RBF(1.0))).set_params(kernels__1__gamma=0.5)
    assert isinstance(model.kernels, tuple)
    assert model.kernels[1].gamma == 0.5
    model = UniformMKLClassifier(["linear", "rbf"]).set_params(kernels__rbf__gamma=0.5)
    assert model.fit(X, Y).kernel_names_ == ["linear", "rbf"]
    assert model.kernels_[1].gamma == 0.5


def test_a_kernel_is_replaced_by_another_and_then_changed():
    model = UniformMKLClassifier({"a": Linear(), "b": RBF(1.0)})
    model.set_params(kernels__a=Polynomial(3), kernels__a__coef0=2.0, kernels__1=overlap, C=7.0)
    assert model.C == 7.0
    assert model.kernels["b"] is overlap
    assert (model.kernels["a"].degree, model.kernels["a"].coef0) == (3, 2.0)
    both = UniformMKLClassifier().set_params(kernels=["poly2", "rbf"], kernels__rbf__gamma=3.0)
    assert both.kernels["rbf"].gamma == 3.0


def test_unknown_names_are_told_with_the_known_ones():
    model = UniformMKLClassifier()
    with pytest.raises(ValueError, match=r"unknown kernel 'rbg' in .*: linear, poly2, rbf"):
        model.set_params(kernels__rbg__gamma=1.0)
    with pytest.raises(ValueError, match=r"unknown kernel '3' in parameter 'kernels__3__gamma'"):
        model.set_params(kernels__3__gamma=1.0)
    with pytest.raises(ValueError, match=r"Invalid parameter 'gama' .*'gamma'"):
        model.set_params(kernels__rbf__gama=1.0)
    with pytest.raises(ValueError, match="kernel 'overlap' is a function and has no parameter"):
        UniformMKLClassifier([overlap]).set_params(kernels__0__gamma=1.0)
    with pytest.raises(ValueError, match="none before fit"):
        GMKLClassifier(combine="product").set_params(kernels__rbf__gamma=1.0)
    assert model.kernels is None


@pytest.mark.parametrize("kernels", [3, [3], ["gauss"], [RBF], {"a": RBF}, np.eye(2)], ids=str)
def test_kernels_that_fit_will_refuse_can_be_looked_at(kernels):
    assert UniformMKLClassifier(kernels).get_params()["kernels"] is kernels


def test_grids_search_over_parameters_of_kernels():
    kernels = {"line": Linear(), "rbf": RBF(1.0)}
    steps = [("scale", StandardScaler()), ("svm", UniformMKLClassifier(kernels))]
    grid = {"svm__kernels__rbf__gamma": [1e-6, 0.3], "svm__C": [1.0]}
    search = GridSearchCV(Pipeline(steps), grid, cv=3).fit(X, Y)
    scores = search.cv_results_["mean_test_score"]
    assert scores[0] != scores[1]
    assert search.best_params_["svm__kernels__rbf__gamma"] == 0.3
    assert search.best_estimator_["svm"].kernels_[1].gamma == 0.3
    assert kernels["rbf"].gamma == 1.0
    alone = GridSearchCV(LMKLClassifier(max_iter=2), {"kernels__rbf__gamma": [0.1]}, cv=2)
    with pytest.warns(UserWarning, match="max_iter"):
        assert alone.fit(X, Y).best_params_ == {"kernels__rbf__gamma": 0.1}


def test_names_are_those_that_scikit_learn_reads_off_constructors():
    class Wider(RBF):
        def __init__(self, gamma=1.0, width=2.0):
            super().__init__(gamma)
            self.width = width

    for kind in (UniformMKLClassifier, LMKLClassifier, RBF, Wider):
        expected = BaseEstimator._get_param_names.__func__(kind)
        assert kind._get_param_names() == expected
        # Nobody can change what others are told.
        kind._get_param_names().clear()
        assert kind._get_param_names() == expected
    with pytest.raises(ValueError, match="Invalid parameter 'gamma' for estimator"):
        UniformMKLClassifier().set_params(C=2.0, gamma=1.0)
