"""Prediction sets and intervals: coverage on generated data, invariances and bad input."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import lokl
from lokl.datasets import make_views
from lokl.explain import PredictionSets, explain
from lokl.kernels import RBF, per_view

SCORES = ("adaptive", "probability")


def classes(seed, n, shares=(0.6, 0.3, 0.1)):
    rng = np.random.RandomState(seed)
    y = rng.choice(len(shares), size=n, p=shares)
    return rng.normal(size=(n, 3)) + 1.2 * np.eye(3)[y], np.array(["a", "b", "c"])[y]


def numbers(seed, n):
    rng = np.random.RandomState(seed)
    X = rng.uniform(-1, 1, size=(n, 2))
    return X, X[:, 0] + (0.1 + np.abs(X[:, 1])) * rng.normal(size=n)


def check_coverage(inside, level):
    """One sample of each repetition is independent: its number inside is binomial."""
    low, high = binom.interval(0.9999, len(inside), level)
    assert low <= np.sum(inside) <= high, np.mean(inside)


def first_inside(sets, X, y):
    return sets.predict_set(X)[0, np.flatnonzero(sets.classes_ == y)[0]]


@pytest.mark.parametrize("score", SCORES)
def test_sets_cover_the_truth_as_often_as_asked(score):
    inside = []
    for seed in range(300):
        X, y = classes(seed, 81)
        sets = PredictionSets(GaussianNB(), alpha=0.2, score=score).fit(X[:80], y[:80])
        inside.append(first_inside(sets, X[80:], y[80]))
    check_coverage(inside, 0.8)


@pytest.mark.parametrize("score", SCORES)
def test_sets_by_class_cover_every_class(score):
    for c, label in enumerate("abc"):
        inside = []
        for seed in range(100):
            X, y = classes(1000 * c + seed, 101, (0.5, 0.3, 0.2))
            X[100] = np.random.RandomState(seed).normal(size=3) + 1.2 * np.eye(3)[c]
            model = PredictionSets(GaussianNB(), 0.2, "class", score=score)
            inside.append(first_inside(model.fit(X[:100], y[:100]), X[100:], label))
        # Small classes are covered more often, because ranks are whole numbers.
        assert np.sum(inside) >= binom.ppf(0.0005, 100, 0.8)


def test_intervals_cover_the_truth_and_follow_the_spread():
    inside, widths = [], []
    for seed in range(200):
        X, y = numbers(seed, 121)
        intervals = PredictionSets(LinearRegression(), 0.2).fit(X[:120], y[:120])
        (low, high), *_ = intervals.predict_interval(X[120:])
        inside.append(low <= y[120] <= high)
        quiet, noisy = np.diff(intervals.predict_interval([[0, 0], [0, 0.9]] @ np.eye(2)))[:, 0]
        widths.append(noisy / quiet)
    check_coverage(inside, 0.8)
    assert np.median(widths) > 1.5


def test_intervals_by_group_cover_every_group():
    inside = {0: [], 1: []}
    for seed in range(100):
        X, y = numbers(seed, 202)
        X = np.column_stack([X, X[:, 1] > 0.5])
        model = PredictionSets(Ridge(), 0.2, by=2).fit(X[:200], y[:200])
        for group, own in inside.items():
            row = 200 + np.flatnonzero(X[200:, 2] == group)[:1]
            if len(row):
                low, high = model.predict_interval(X[row])[0]
                own.append(low <= y[row[0]] <= high)
    for own in inside.values():
        assert np.sum(own) >= binom.ppf(0.0005, len(own), 0.8)


@pytest.mark.parametrize("by", [None, "class"])
@pytest.mark.parametrize("score", SCORES)
def test_orders_of_new_samples_and_names_of_classes_do_not_matter(score, by):
    X, y = classes(0, 150)
    sets = PredictionSets(LogisticRegression(tol=1e-8, max_iter=999), by=by, score=score)
    found = sets.fit(X[:100], y[:100]).predict_set(X[100:])
    order = np.random.RandomState(0).permutation(50)
    np.testing.assert_array_equal(sets.predict_set(X[100:][order]), found[order])
    np.testing.assert_array_equal(sets.predict_set(X[100:101]), found[:1])
    rows = np.arange(100)
    folds = [(np.setdiff1d(rows, test), test) for test in np.split(rows, 5)]
    renamed = np.array(["z", "y", "x"])[np.searchsorted(["a", "b", "c"], y)]
    fits = [clone(sets).set_params(cv=folds).fit(X[:100], own[:100]) for own in (y, renamed)]
    first, second = (own.predict_set(X[100:]) for own in fits)
    np.testing.assert_array_equal(first, second[:, ::-1])


@pytest.mark.parametrize("score", SCORES)
def test_sets_and_intervals_grow_with_the_coverage(score):
    X, y = classes(1, 200)
    sets = PredictionSets(GaussianNB(), score=score).fit(X[:100], y[:100])
    found = [sets.predict_set(X[100:], alpha=alpha) for alpha in (0.5, 0.2, 0.1, 0.05)]
    assert all((small <= large).all() for small, large in pairwise(found))
    X, y = numbers(1, 200)
    intervals = PredictionSets(Ridge()).fit(X[:100], y[:100])
    widths = [np.diff(intervals.predict_interval(X[100:], alpha=alpha)) for alpha in (0.5, 0.1)]
    assert (widths[0] <= widths[1]).all()
    # A unit of the target changes the unit of the intervals only.
    scaled = PredictionSets(Ridge()).fit(X[:100], 7 * y[:100] + 3)
    np.testing.assert_allclose(
        scaled.predict_interval(X[100:]), 7 * intervals.predict_interval(X[100:]) + 3, atol=1e-8
    )


def test_adaptive_sets_contain_the_prediction_and_are_larger_for_harder_samples():
    X, y = classes(2, 400)
    sets = PredictionSets(GaussianNB()).fit(X[:200], y[:200])
    found, probability = sets.predict_set(X[200:]), sets.predict_proba(X[200:])
    predicted = np.searchsorted(sets.classes_, sets.predict(X[200:]))
    assert found[np.arange(200), predicted].mean() > 0.99
    sure = probability.max(axis=1)
    assert found[sure < 0.6].sum(axis=1).mean() > found[sure > 0.9].sum(axis=1).mean() + 0.5


def test_too_few_samples_give_complete_sets_and_infinite_intervals():
    X, y = classes(3, 60, (0.6, 0.3, 0.1))
    sets = PredictionSets(GaussianNB(), 0.01, "class").fit(X, y)
    assert sets.predict_set(X).all()
    X, y = numbers(0, 30)
    assert np.isinf(PredictionSets(Ridge(), 0.01).fit(X, y).predict_interval(X)).all()


def test_coverage_is_reported_by_class_and_by_group():
    X, y = classes(4, 300)
    table = (
        PredictionSets(GaussianNB(), by="class").fit(X[:200], y[:200]).coverage(X[200:], y[200:])
    )
    assert table.rows == ("all", "a", "b", "c")
    assert table["samples"][0] == table["samples"][1:].sum() == 100
    share = table["samples"][1:] / 100
    assert table["coverage"][0] == pytest.approx(share @ table["coverage"][1:])
    frame = pd.DataFrame(X, columns=["p", "q", "r"]).assign(place=np.tile(["in", "out"], 150))
    model = make_pipeline(make_column_transformer((StandardScaler(), ["p", "q"])), GaussianNB())
    sets = PredictionSets(model, by="place")
    table = sets.fit(frame[:200], y[:200]).coverage(frame[200:], y[200:])
    assert table.rows == ("all", "in", "out")


def test_classifiers_without_probabilities_use_their_decisions():
    X, y = classes(5, 200)
    sets = PredictionSets(LinearSVC()).fit(X[:100], y[:100])
    assert sets.coverage(X[100:], y[100:])["coverage"][0] > 0.8
    assert not hasattr(sets, "predict_proba")
    two = PredictionSets(lokl.UniformMKLClassifier()).fit(X[:100], y[:100] == "a")
    assert two.predict_set(X).any(axis=1).all()


def test_explanations_have_sets():
    X, y, views, _ = make_views(160, random_state=0)
    labels = np.array(["no", "yes"])[y]
    vote = lokl.TrustedVoteClassifier(per_view(RBF(0.1), views), C=2, random_state=0)
    sets = PredictionSets(vote).fit(X[:120], labels[:120])
    found = explain(sets, X[120:], labels[120:], columns=True)
    np.testing.assert_array_equal(found.sets, sets.predict_set(X[120:]))
    assert found.views == list(views)
    sample = found.sample_at(3)
    assert set(sample.prediction_set) == set(found.classes[found.sets[3]])
    assert f"90 % prediction set: {', '.join(sample.prediction_set)}." in str(sample)
    assert found.table()["prediction set"][3] == ", ".join(sample.prediction_set)
    model = lokl.UniformMKLRegressor(per_view(RBF(0.1), views), C=2)
    intervals = PredictionSets(model, 0.2).fit(X[:120], X[:120, 0])
    found = explain(intervals, X[120:])
    np.testing.assert_array_equal(found.table()["upper"], intervals.predict_interval(X[120:])[:, 1])
    assert "80 % prediction interval" in str(found.sample_at(0))
    assert explain(vote.fit(X, labels), X[:2]).sets is None


def test_bad_input_is_named():
    X, y = classes(6, 60)
    with pytest.raises(ValueError, match="alpha"):
        PredictionSets(GaussianNB(), alpha=1.0).fit(X, y)
    with pytest.raises(ValueError, match="score"):
        PredictionSets(GaussianNB(), score="margin").fit(X, y)
    with pytest.raises(ValueError, match="by='class'"):
        PredictionSets(Ridge(), by="class").fit(X, X[:, 0])
    with pytest.raises(ValueError, match="one target"):
        PredictionSets(Ridge()).fit(X, X[:, :2])
    with pytest.raises(ValueError, match="one group"):
        PredictionSets(GaussianNB(), by=lambda X: X).fit(X, y)
    assert not hasattr(PredictionSets(Ridge()), "predict_set")
    assert not hasattr(PredictionSets(GaussianNB()), "predict_interval")
