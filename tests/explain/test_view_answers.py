"""Answers by view: parts add up, kernels of a view count together, and views can be asked alone."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import lokl
from lokl.datasets import make_views
from lokl.explain import answers_by_view, most_alike
from lokl.kernels import RBF, Linear, per_view
from lokl.search import CalibratedMKLClassifier, KernelSearchCV

X, y, VIEWS, _ = make_views(90, missing=0.15, random_state=0)
PLACES = {name: list(range(12))[own] for name, own in VIEWS.items()}
NUMBERS = np.nansum(X[:, ::4], axis=1)
# Two kernels of the first view, one of each other.
KERNELS = {**per_view(RBF(0.1), VIEWS), "more": Linear().on(slice(0, 4))}

CLASSIFIERS = {
    "vote": lokl.TrustedVoteClassifier(KERNELS, C=2, random_state=0),
    "mix": lokl.UniformMKLClassifier(KERNELS, C=2),
    "weights": lokl.SimpleMKLClassifier(KERNELS, C=2),
    "calibrated": CalibratedMKLClassifier(lokl.UniformMKLClassifier(KERNELS, C=2), 3),
    "search": KernelSearchCV(
        make_pipeline(StandardScaler(), lokl.UniformMKLClassifier(KERNELS)),
        {"uniformmklclassifier__C": [0.5, 2.0]},
        cv=3,
    ),
}
quiet = pytest.mark.filterwarnings(
    "ignore:.* samples lack a view", "ignore:the best .* of the grid"
)


@quiet
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_parts_of_views_add_up_to_the_decision(name, classes):
    labels = np.array(["a", "b", "c"])[(y + (X[:, 3] > 1)) % classes]
    model = CLASSIFIERS[name].fit(X, labels)
    told = answers_by_view(model, X, PLACES)
    assert told.views == list(VIEWS)
    decision = np.asarray(model.decision_function(X))
    by_class = decision if decision.ndim == 2 else np.column_stack([np.zeros(len(X)), decision])
    rows = np.arange(len(X))
    others = by_class.copy()
    others[rows, told.predicted] = -np.inf
    expected = by_class[rows, told.predicted] - by_class[rows, others.argmax(axis=1)]
    np.testing.assert_allclose(told.start + told.parts.sum(axis=1), expected, atol=1e-5)
    assert (np.asarray(model.classes_)[told.predicted] == model.predict(X)).all()
    lacking = np.column_stack([np.isnan(X[:, own]).all(axis=1) for own in VIEWS.values()])
    np.testing.assert_array_equal(told.present, ~lacking)
    assert (told.trust[lacking] == 0).all()
    assert (told.says[lacking] == -1).all()
    assert (told.probabilities is None) == (not hasattr(model, "predict_proba"))
    assert told.shares == (not hasattr(model, "trust"))


@quiet
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_view_says_what_is_predicted_without_the_others(name):
    model = CLASSIFIERS[name].fit(X, y)
    told = answers_by_view(model, X, PLACES)
    for view, own in enumerate(PLACES.values()):
        rows = told.present[:, view]
        alone = np.full_like(X, np.nan)
        alone[:, own] = X[:, own]
        chances = model.predict_proba(alone[rows]) if hasattr(model, "predict_proba") else None
        np.testing.assert_array_equal(told.says[rows, view], model.predict(alone[rows]))
        # Whose word is a probability differs by how far these are apart, not by who is ahead.
        if name in ("calibrated", "search"):
            assert 0 < told.disagreement[rows].mean() < 0.5
            assert len(np.unique(told.disagreement)) > 20
        if chances is not None:
            picked = chances[np.arange(rows.sum()), told.says[rows, view]]
            np.testing.assert_allclose(told.sure[rows, view], picked)


def test_views_of_models_that_need_all_columns_are_not_asked_alone():
    """A product of kernels says nothing without one of them: the part of a view is what it says."""
    Z = np.nan_to_num(X)
    model = lokl.GMKLClassifier(per_view(RBF(0.1), VIEWS), combine="product", C=2).fit(Z, y)
    told = answers_by_view(model, Z)
    assert np.isnan(told.sure).all()
    assert (told.says >= 0).all()


@quiet
def test_numbers_by_view():
    for model in (
        lokl.TrustedVoteRegressor(KERNELS, C=10, random_state=0).fit(X, NUMBERS),
        lokl.UniformMKLRegressor(KERNELS, C=10).fit(X, NUMBERS),
    ):
        told = answers_by_view(model, X, PLACES)
        np.testing.assert_allclose(told.start + told.parts.sum(axis=1), model.predict(X), atol=1e-6)
        assert told.probabilities is None
        assert np.isnan(told.says[~told.present]).all()
        assert np.isfinite(told.says[told.present]).all()


def test_without_names_of_views_kernels_on_the_same_columns_are_one():
    model = CLASSIFIERS["vote"].fit(X, y)
    told, named = answers_by_view(model, X), answers_by_view(model, X, PLACES)
    assert [name.split(",")[0] for name in told.views] == list(VIEWS)
    parts = model.contributions(X)
    sign = np.where(told.predicted == 1, 1, -1)
    np.testing.assert_allclose(told.parts[:, 0], sign * (parts[:, 0] + parts[:, 3]))
    frame = pd.DataFrame(X, columns=[f"c{k}" for k in range(12)])
    same = answers_by_view(CLASSIFIERS["vote"].fit(frame, y), frame)
    for field in ("says", "sure", "parts", "trust", "present"):
        np.testing.assert_array_equal(getattr(same, field), getattr(told, field))
        np.testing.assert_array_equal(getattr(named, field), getattr(told, field))


def test_familiarity_tells_what_is_new():
    model = CLASSIFIERS["vote"].fit(X, y)
    far = np.nan_to_num(X[:5]) + 100.0
    assert (answers_by_view(model, far, PLACES).familiar[:, 1:] < 0.1).all()
    near = model.familiarity(X)
    assert near.shape == (90, 4)
    assert (near[np.isnan(X[:, 4])][:, 1] == 0).all()
    assert model.familiarity(X, labels=True).columns.tolist() == list(KERNELS)


def test_a_kernel_of_several_views_cannot_be_told_apart():
    model = lokl.UniformMKLClassifier({"both": RBF().on(slice(0, 8)), "c": RBF().on([9])})
    model.fit(np.nan_to_num(X), y)
    with pytest.raises(ValueError, match="kernel 'both' reads columns of several views"):
        answers_by_view(model, np.nan_to_num(X), PLACES)
    with pytest.raises(TypeError, match="StandardScaler does not tell which view"):
        answers_by_view(StandardScaler().fit(np.nan_to_num(X)), np.nan_to_num(X))


@settings(max_examples=10)
@given(row=st.integers(0, 89), count=st.integers(1, 5))
def test_most_alike_are_the_largest_values_of_the_kernel(row, count):
    Z = np.nan_to_num(X)
    model = lokl.UniformMKLClassifier(["rbf", "poly2"], C=2).fit(Z, y)
    found = most_alike(model, Z, row, count)
    K = model.kernel_(Z)
    likeness = K[row] / np.sqrt(K[row, row] * K.diagonal())
    expected = sorted(np.delete(likeness, row))[::-1][:count]
    np.testing.assert_allclose([value for _, value in found], expected, rtol=1e-6)
    assert row not in [k for k, _ in found]
    vote = CLASSIFIERS["vote"].fit(X, y)
    assert len(most_alike(vote, X, row, count)) == count
