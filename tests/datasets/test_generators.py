"""Generated problems: shapes, seeds and the answer they promise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from lokl import LMKLClassifier, UniformMKLClassifier
from lokl.datasets import corrupt_views, info, load, make_two_regions, make_views
from lokl.kernels import RBF, Linear, per_view


@given(
    n_samples=st.integers(1, 40),
    n_views=st.integers(2, 5),
    n_features=st.integers(2, 4),
    share=st.floats(0, 1),
    seed=st.integers(0, 2**16),
)
def test_views(n_samples, n_views, n_features, share, seed):
    missing = share * (1 - 1 / n_views)
    settings = {"n_features": n_features, "missing": missing, "random_state": seed}
    X, y, views, region = make_views(n_samples, n_views, **settings)
    assert X.shape == (n_samples, n_views * n_features)
    assert y.shape == region.shape == (n_samples,)
    assert set(y) <= {0, 1}
    assert set(region) <= set(range(n_views))
    lost = np.stack([np.isnan(X[:, view]).all(axis=1) for view in views.values()], axis=1)
    np.testing.assert_array_equal(np.repeat(lost, n_features, axis=1), np.isnan(X))
    assert lost.sum() == round(missing * n_samples * n_views)
    assert not lost.all(axis=1).any()
    again = make_views(n_samples, n_views, **settings)
    np.testing.assert_array_equal(X, again[0])
    np.testing.assert_array_equal(y, again[1])
    np.testing.assert_array_equal(region, again[3])


def test_each_view_knows_the_class_in_its_own_region_only():
    X, y, views, region = make_views(900, random_state=0)
    for k, kernel in enumerate(per_view(RBF("scale"), views).values()):
        for place in range(3):
            here = np.flatnonzero(region == place)
            train, test = here[::2], here[1::2]
            model = UniformMKLClassifier([kernel]).fit(X[train], y[train])
            score = model.score(X[test], y[test])
            assert score > 0.9 if place == k else score < 0.65


def test_a_gate_finds_the_view_that_knows():
    X, y, views, region = make_views(600, random_state=0)
    kernels = per_view(Linear(), views)
    train, test = slice(0, 300), slice(300, 600)
    fixed = UniformMKLClassifier(kernels).fit(X[train], y[train])
    gated = LMKLClassifier(kernels, random_state=0).fit(X[train], y[train])
    assert fixed.score(X[test], y[test]) < 0.75
    assert gated.score(X[test], y[test]) > 0.92
    assert (gated.weights(X[test]).argmax(axis=1) == region[test]).mean() > 0.95


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_samples": 0}, "got 0, 3 and 4"),
        ({"n_views": 1}, "n_views and n_features of at least 2"),
        ({"n_features": 1}, "n_features of at least 2"),
        ({"missing": 0.7}, r"at most 1 - 1 / n_views = 0\.667.*got 0\.7"),
        ({"missing": -0.1}, "missing must be at least 0"),
        ({"missing": float("nan")}, "missing must be at least 0"),
    ],
)
def test_bad_settings_of_views(settings, words):
    with pytest.raises(ValueError, match=words):
        make_views(**settings)


def test_two_regions_are_repeatable():
    X, y = make_two_regions(101, random_state=3)
    again = make_two_regions(101, random_state=3)
    assert X.shape == (101, 2)
    assert (X[:, 0] < 0).sum() == 50
    np.testing.assert_array_equal(X, again[0])
    np.testing.assert_array_equal(y, again[1])


@pytest.mark.parametrize("settings", [{"n_samples": 3}, {"gap": 1.0}, {"gap": -0.1}])
def test_bad_settings_of_two_regions(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        make_two_regions(**settings)


def test_digits_described_in_four_ways():
    digits, plain = load("digit_views"), load("digits")
    assert digits.data.shape == (1797, info("digit_views").d)
    assert tuple(digits.views) == info("digit_views").views
    assert len(digits.feature_names) == digits.data.shape[1]
    assert_array_equal(digits.target, plain.target)
    assert_array_equal(digits.data[:, digits.views["pixels"]], plain.data)
    widths = [digits.data[:, view].shape[1] for view in digits.views.values()]
    assert sum(widths) == digits.data.shape[1]
    # Sums over rows, columns or diagonals are the whole image, four times.
    profiles = digits.data[:, digits.views["profiles"]].sum(axis=1)
    assert_allclose(profiles, 4 * plain.data.sum(axis=1))
    # The first number of the spectrum is the sum, too.
    assert_allclose(digits.data[:, digits.views["spectrum"]][:, 0], plain.data.sum(axis=1))


@given(
    how=st.sampled_from(["swap", "noise", "missing"]),
    share=st.floats(0, 1),
    seed=st.integers(0, 99),
)
def test_corrupted_views(how, share, seed):
    X, y, views, _ = make_views(60, 3, random_state=seed)
    given_X = X.copy()
    Z, corrupted = corrupt_views(X, y, views, how, share=share, random_state=seed)
    assert_array_equal(X, given_X)
    assert corrupted.sum() == round(share * len(X))
    assert corrupted.sum(axis=1).max(initial=0) <= 1
    for k, view in enumerate(views.values()):
        same = (Z[:, view] == X[:, view]).all(axis=1)
        assert_array_equal(same, ~corrupted[:, k])
        lost = np.isnan(Z[:, view]).all(axis=1)
        assert_array_equal(lost, corrupted[:, k] & (how == "missing"))
        if how == "swap":
            for row in np.flatnonzero(corrupted[:, k]):
                donors = (X[:, view] == Z[row, view]).all(axis=1)
                assert (y[donors] != y[row]).all()
    again, _ = corrupt_views(X, y, views, how, share=share, random_state=seed)
    assert_array_equal(again, Z)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"how": "burn"}, "'swap', 'noise', 'missing', got 'burn'"),
        ({"share": 1.5}, "between 0 and 1, got 1.5"),
        ({"y": np.zeros(60)}, "swap"),
        ({"y": np.zeros(3)}, r"shapes \(60, 12\) and \(3,\)"),
    ],
)
def test_bad_settings_of_corrupted_views(settings, words):
    X, y, views, _ = make_views(60, 3, random_state=0)
    with pytest.raises(ValueError, match=words):
        corrupt_views(**{"X": X, "y": y, "views": views, **settings})
