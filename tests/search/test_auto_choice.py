"""What is tried, who wins, and what is told about it."""

import sys
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_wine, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.metrics import log_loss
from sklearn.pipeline import Pipeline

from lokl import AutoMKLClassifier, AutoMKLRegressor, LpMKLClassifier, UniformMKLClassifier
from lokl.datasets import make_views
from lokl.kernels import RBF, Linear, Precomputed, precomputed
from lokl.search import auto_search
from lokl.search.auto_search import (
    FIXED,
    GLOBAL,
    LOCAL,
    Candidate,
    CandidateScore,
    Leaderboard,
    LeaderboardRow,
    MethodSpec,
)
from lokl.search.tasks import FoldResult

X, y = load_wine(return_X_y=True)


def quick(**settings):
    return AutoMKLClassifier(**{"methods": ["UniformMKL"], "cv": 3, "random_state": 0, **settings})


def test_the_table_tells_all_that_was_tried():
    model = AutoMKLClassifier(cv=3, random_state=0).fit(X, y)
    table = model.leaderboard_
    assert isinstance(table, pd.DataFrame)
    assert tuple(table.columns) == LeaderboardRow._fields
    assert {"one kernel", "UNIFORM", "l_p-norm MKL", "SimpleMKL"} <= set(table.method)
    assert table.score.is_monotonic_decreasing
    assert table.error.isna().all()
    assert (table.seconds > 0).all()
    assert table.C.between(2.0**-3, 2.0**9).all()
    assert not table.duplicated(["method", "kernels", "C"]).any()
    assert isinstance(model.best_estimator_, Pipeline)
    np.testing.assert_array_equal(model.best_estimator_.predict(X), model.predict(X))
    assert model.best_method_ in set(table.method)
    assert model.n_samples_fit_ == len(y)


def test_without_pandas_the_table_is_a_list_of_rows(monkeypatch):
    model = quick().fit(X, y)
    monkeypatch.setitem(sys.modules, "pandas", None)
    rows = model.leaderboard_
    assert all(isinstance(row, LeaderboardRow) for row in rows)
    assert rows[0].score == max(row.score for row in rows)


def test_probabilities_come_from_held_out_decisions():
    data, labels = make_classification(300, 5, flip_y=0.2, random_state=0)
    model = quick().fit(data[:200], labels[:200])
    chances = model.predict_proba(data[200:])
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(data[200:])), chances)
    assert log_loss(labels[200:], chances) < 0.6


def test_the_winner_explains_itself():
    table = pd.DataFrame(X, index=[f"wine {i}" for i in range(len(y))])
    table.columns = [f"c{j}" for j in range(X.shape[1])]
    model = quick(methods=[LpMKLClassifier()]).fit(table, y)
    names = model.kernel_names_
    assert model.weights(table).shape == (len(y), len(names))
    parts = model.contributions(table)
    decision = parts.sum(axis=2) + model.intercept_
    np.testing.assert_allclose(decision, model.decision_function(table), atol=1e-8)
    shown = model.weights(table.iloc[:3], labels=True)
    assert list(shown.index) == ["wine 0", "wine 1", "wine 2"]
    assert list(shown.columns) == list(names)
    assert not hasattr(model, "trust")
    assert list(model.feature_names_in_) == list(table.columns)


WHAT_A_VOTE_SAYS = ("trust", "disagreement", "familiarity", "predict_proba_alone")


def test_what_the_winner_has_learned_and_says_is_that_of_the_whole():
    samples, labels, views, _ = make_views(80, random_state=0)
    model = quick(methods=["TrustedVote"], views=views).fit(samples, labels)
    vote, prepared = model.best_estimator_[-1], model.best_estimator_[:-1].transform(samples)
    learned = [name for name in vote._results if name.endswith("_")]
    assert {"intercept_", "support_", "experts_", "weights_"} <= set(learned)
    for name in learned:
        np.testing.assert_equal(getattr(model, name), getattr(vote, name), name)
    for name in WHAT_A_VOTE_SAYS:
        own = getattr(model, name)(samples)
        np.testing.assert_array_equal(own, getattr(vote, name)(prepared), name)
    table = pd.DataFrame(samples, index=[f"sample {i}" for i in range(len(labels))])
    for name in WHAT_A_VOTE_SAYS[:3]:
        shown = getattr(model, name)(table, labels=True)
        assert list(shown.index) == list(table.index)
        np.testing.assert_array_equal(shown, getattr(model, name)(samples))


def test_what_the_winner_has_not_is_missed_by_name():
    model = quick().fit(X, y)
    for name in (*WHAT_A_VOTE_SAYS, "experts_", "feature_names_in_"):
        with pytest.raises(AttributeError, match=name):
            getattr(model, name)
    with pytest.raises(NotFittedError):
        _ = quick().intercept_
    with pytest.raises(NotFittedError):
        _ = quick().leaderboard_


def test_support_is_told_by_rows_as_they_were_given():
    weight = np.random.RandomState(0).randint(0, 2, len(y)).astype(float)
    model = quick().fit(X, y, sample_weight=weight)
    assert (weight[model.support_] > 0).all()
    read = model.best_estimator_[:-1].transform(X)
    np.testing.assert_array_equal(read[model.support_], model.support_vectors_)


def scored(level, scores, cost=1.0):
    spec = MethodSpec("m", None, level)
    results = [FoldResult(0, k, score, None, 0.1, 0.1) for k, score in enumerate(scores)]
    return CandidateScore(Candidate(spec, {"k": RBF()}, cost), results, 100)


def test_one_standard_error_prefers_the_simple_kind():
    simple, other = scored(FIXED, [0.80, 0.84]), scored(FIXED, [0.80, 0.82])
    learned, local = scored(GLOBAL, [0.80, 0.88]), scored(LOCAL, [0.9, 0.9])
    board = Leaderboard([other, simple, learned])
    assert board.best_candidate("best") is learned
    assert board.best_candidate("one_se") is simple
    board.add([local])
    assert board.best_candidate("one_se") is local
    # Of equal ones the smallest cost.
    equal = scored(LOCAL, [0.9, 0.9], cost=0.5)
    board.add([equal])
    assert board.best_candidate("best") is equal


def test_a_lone_peak_along_costs_does_not_win():
    spec = MethodSpec("m", None, FIXED)

    def cost_path(name, scores):
        costs = [4.0**k for k in range(len(scores))]
        results = [[FoldResult(0, k, score, None, 0.1, 0.1) for k in range(2)] for score in scores]
        return [
            CandidateScore(Candidate(spec, {name: RBF()}, cost), own, 100)
            for cost, own in zip(costs, results, strict=True)
        ]

    peak, plateau = (
        cost_path("a", [0.80, 0.86, 0.80, 0.79]),
        cost_path("b", [0.83, 0.85, 0.84, 0.80]),
    )
    board = Leaderboard([*peak, *plateau])
    assert board.best_candidate("best") is peak[1]
    assert board.best_candidate("one_se") is plateau[1]


def test_methods_are_names_or_estimators():
    model = quick(
        methods=["simplemkl", "EasyMKLClassifier", UniformMKLClassifier(tol=1e-4)], cv=2
    ).fit(X, y)
    assert set(model.leaderboard_.method) == {"SimpleMKL", "EasyMKL", "one kernel", "UNIFORM"}
    forest = quick(methods=[RandomForestClassifier(20, random_state=0)]).fit(X, y)
    assert forest.best_method_ == "RandomForestClassifier"
    assert forest.kernel_names_ is None
    assert forest.predict_proba(X).shape == (178, 3)
    assert not hasattr(forest, "decision_function")
    ridge = AutoMKLRegressor(methods=[Ridge()], cv=2).fit(X, X @ np.ones(13))
    assert ridge.best_score_ > 0.9


@pytest.mark.parametrize(
    ("methods", "text"),
    [
        (["nonsense"], "unknown method 'nonsense'"),
        ([], 'methods must be "auto" or a list'),
        (7, 'methods must be "auto" or a list'),
        ([Ridge()], "not a classifier"),
        ([object()], "not a classifier"),
    ],
)
def test_a_wrong_method_is_named(methods, text):
    with pytest.raises(ValueError, match=text):
        quick(methods=methods).fit(X, y)


def test_a_method_that_cannot_do_regression_is_named():
    with pytest.raises(ValueError, match="unknown method 'SAMKL'"):
        AutoMKLRegressor(methods=["SAMKL"]).fit(X, y)


def test_a_candidate_that_fails_is_a_row_with_its_error():
    bad = UniformMKLClassifier(class_weight={7: -1.0})
    model = quick(methods=["UniformMKL", bad], cv=2).fit(X, y)
    failed = model.leaderboard_[model.leaderboard_.score.isna()]
    assert len(failed)
    assert failed.error.str.contains("class_weight").all()
    assert model.leaderboard_.score.iloc[0] > 0.9
    with pytest.raises(ValueError, match=r"none of the .* could be fitted.*class_weight"):
        quick(methods=[bad]).fit(X, y)


def test_kernels_of_the_user_are_tried_alone_and_together():
    model = quick(kernels={"wide": RBF(0.01), "plain": Linear()}).fit(X, y)
    assert set(model.leaderboard_.kernels) == {"wide", "plain", "wide, plain"}


def test_stored_matrices_are_left_as_they_are():
    rows = (X - X.mean(0)) / X.std(0)
    kernels, numbers = precomputed([rows @ rows.T, RBF(0.1)(rows)])
    assert all(isinstance(kernel, Precomputed) for kernel in kernels)
    assert quick(kernels=kernels).fit(numbers, y).best_score_ > 0.95


def test_views_are_trusted_where_they_are_right():
    data, labels, views, _ = make_views(200, random_state=0)
    model = AutoMKLClassifier(views, methods=["UniformMKL", "TrustedVote"], cv=3, random_state=0)
    model.fit(data, labels)
    table = model.leaderboard_
    assert {"one kernel", "UNIFORM", "trusted vote"} == set(table.method)
    first = next(iter(views))
    assert table.kernels.str.startswith(f"{first}: rbf").any()
    assert table.kernels.str.contains("all: rbf").any()
    vote = AutoMKLClassifier(views, methods=["TrustedVote"], cv=3, random_state=0)
    vote.fit(data, labels)
    assert vote.trust(data).shape == (200, 3)
    assert vote.disagreement(data).shape == (200,)


def test_time_is_kept_and_the_best_so_far_wins(monkeypatch):
    # A clock that only this test moves: every look at it is a second.
    ticks = iter(range(10**6))
    monkeypatch.setattr(time, "monotonic", lambda: next(ticks))
    model = AutoMKLClassifier(time_limit=8, cv=2, random_state=0).fit(X, y)
    assert 0 < len(model.leaderboard_) < 60
    assert model.score(X, y) > 0.8


def test_with_many_samples_the_search_is_on_a_part_and_few_meet_on_all(monkeypatch):
    monkeypatch.setattr(auto_search, "MANY_ROWS", 200)
    monkeypatch.setattr(auto_search, "ROWS_OF_PART", 100)
    data, labels = load_breast_cancer(return_X_y=True)
    model = quick().fit(data, labels)
    table = model.leaderboard_
    assert set(table.n_samples) == {len(labels), 100} or table.n_samples.nunique() == 2
    final = table[table.n_samples == len(labels)]
    assert 1 <= len(final) <= auto_search.SURVIVORS + 1
    assert model.best_score_ == final.score.iloc[0]
    assert model.n_samples_fit_ == len(labels)
    assert model.predict_proba(data).shape == (569, 2)


def test_where_time_is_too_short_the_last_fit_learns_from_fewer_samples():
    data, labels = load_breast_cancer(return_X_y=True)
    model = quick(time_limit=1e-9, cv=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(auto_search.AutoSearch, "_final_seconds", lambda self, winner: 1e9)
        with pytest.warns(UserWarning, match="time_limit=1e-09 .* 5.. of them"):
            model.fit(data, labels)
    assert 495 <= model.n_samples_fit_ <= 505
    # Support is told by rows of all samples, also of those that were left out.
    read = model.best_estimator_[:-1].transform(data)
    np.testing.assert_array_equal(read[model.support_], model.support_vectors_)
    assert model.support_.max() >= model.n_samples_fit_
    assert model.score(data, labels) > 0.9
