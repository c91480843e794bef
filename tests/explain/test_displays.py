"""Drawings of trust and of one decision: what is drawn is what the models say."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from lokl import TrustedVoteClassifier, UniformMKLClassifier, UniformMKLRegressor
from lokl.datasets import load, make_views
from lokl.explain import plot_sample, plot_trust
from lokl.kernels import RBF, per_view


@pytest.fixture(scope="module")
def problem():
    X, y, views, _ = make_views(120, 3, missing=0.2, random_state=0)
    kernels = per_view(RBF("scale"), views)
    return X, y, TrustedVoteClassifier(kernels, 10.0, random_state=0).fit(X, y)


def test_trust_of_every_sample_by_class(problem):
    X, y, model = problem
    ax = plot_trust(model, X, y)
    (image,) = ax.images
    order = np.argsort(y, kind="stable")
    drawn = image.get_array()
    assert_array_equal(np.ma.getdata(drawn), model.trust(X)[order])
    lacks = np.stack([np.isnan(X[:, 4 * k]) for k in range(3)], axis=1)
    assert_array_equal(np.ma.getmaskarray(drawn), lacks[order])
    assert [text.get_text() for text in ax.get_xticklabels()] == list(model.kernel_names_)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["0", "1"]


def test_marked_views_have_a_dot(problem):
    X, _, model = problem
    marked = np.zeros((len(X), 3), dtype=bool)
    marked[5, 2] = True
    (dots,) = plot_trust(model, X, marked=marked).lines
    assert_array_equal(dots.get_xydata(), [[2, 5]])


def test_models_without_trust_show_their_gate(problem):
    X, y, model = problem
    other = UniformMKLClassifier(model.kernels).fit(X, y)
    (image,) = plot_trust(other, X).images
    assert_allclose(np.ma.getdata(image.get_array()), other.weights(X))


def ends(ax):
    return [bar.get_x() + bar.get_width() for bar in ax.patches]


def test_bars_lead_from_zero_to_the_decision(problem):
    X, _, model = problem
    for row in range(5):
        decision = model.decision_function(X[[row]])[0]
        ax = plot_sample(model, X[[row]])
        assert_allclose(ends(ax)[-1], abs(decision))
        likely = model.classes_[int(decision > 0)]
        assert ax.get_title().startswith(f"{likely} rather than ")


def test_of_several_classes_the_best_two_are_compared():
    wine = load("wine")
    X = wine.data / wine.data.std(axis=0)
    views = {"first": slice(0, 6), "rest": slice(6, 13)}
    model = UniformMKLClassifier(per_view(RBF(), views)).fit(X, wine.target)
    ax = plot_sample(model, X[[100]])
    *_, second, first = np.sort(model.decision_function(X[[100]])[0])
    assert_allclose(ends(ax)[-1], first - second, atol=1e-6)


def test_a_prediction_is_the_end_of_the_bars(problem):
    X, _, model = problem
    machine = UniformMKLRegressor(model.kernels).fit(X, np.arange(len(X)) / len(X))
    assert_allclose(ends(plot_sample(machine, X[[3]]))[-1], machine.predict(X[[3]])[0], atol=1e-6)


def test_what_cannot_be_drawn(problem):
    X, y, model = problem
    with pytest.raises(ValueError, match=r"one sample is drawn, got 2; take one with"):
        plot_sample(model, X[:2])
    with pytest.raises(ValueError, match=r"each of 120 samples, got shape \(3,\)"):
        plot_trust(model, X, y[:3])
