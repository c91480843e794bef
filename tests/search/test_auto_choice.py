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

from lokl import (
    AutoMKLClassifier,
    AutoMKLRegressor,
    LMKLClassifier,
    LpMKLClassifier,
    UniformMKLClassifier,
)
from lokl.datasets import make_views
from lokl.kernels import RBF, Linear, Precomputed, precomputed
from lokl.search import LeaderboardRow, auto, expert_search, families
from lokl.search.method_search import complexity_of
from lokl.search.results import Candidate
from lokl.search.tasks import FoldResult

X, y = load_wine(return_X_y=True)


def quick(**settings):
    return AutoMKLClassifier(**{"methods": ["UniformMKL"], "cv": 3, "random_state": 0, **settings})


def test_the_table_has_all_families_and_their_average():
    model = AutoMKLClassifier().fit(X, y)
    table = model.leaderboard_
    assert isinstance(table, pd.DataFrame)
    assert tuple(table.columns) == LeaderboardRow._fields
    assert {"one kernel", "expert average"} == set(table.method)
    assert table.score.is_monotonic_decreasing
    assert table.score.between(0, 1).all()
    assert table.error.isna().all()
    assert (table.seconds > 0).all()
    assert not table.duplicated(["method", "kernels"]).any()
    assert isinstance(model.best_estimator_, Pipeline)
    np.testing.assert_array_equal(model.best_estimator_.predict(X), model.predict(X))
    final = table[table.method == "expert average"].iloc[0]
    assert final.kernels.split("; ") == model.kernel_names_
    assert model.best_method_ == "expert average"
    assert model.best_score_ == final.score
    assert model.n_samples_fit_ == len(y)


def test_named_methods_are_compared_by_folds():
    model = quick(methods=["UniformMKL", "LpMKL"]).fit(X, y)
    table = model.leaderboard_
    assert {"one kernel", "UNIFORM", "l_p-norm MKL"} == set(table.method)
    assert table.C.between(2.0**-3, 2.0**9).all()
    assert not table.duplicated(["method", "kernels", "C"]).any()


@pytest.mark.parametrize("kind", [AutoMKLClassifier, AutoMKLRegressor])
def test_the_model_does_not_depend_on_the_seed_or_the_order(kind, monkeypatch):
    monkeypatch.setattr(families, "WIDTH_ROWS", 80)
    rng = np.random.RandomState(0)
    rows, columns = rng.permutation(len(y)), rng.permutation(X.shape[1])
    model = kind(random_state=0).fit(X, y)
    seed = kind(random_state=1).fit(X, y)
    moved = kind().fit(X[rows][:, columns], y[rows])
    np.testing.assert_array_equal(seed.predict(X), model.predict(X))
    answer = "predict" if kind is AutoMKLRegressor else "decision_function"
    np.testing.assert_allclose(
        getattr(moved, answer)(X[:, columns]), getattr(model, answer)(X), atol=1e-6
    )


def test_the_best_rule_keeps_one_kernel():
    model = AutoMKLClassifier(rule="best").fit(X, y)
    assert len(model.kernel_names_) == 1
    assert model.predict_proba(X).shape == (178, 3)


def test_decisions_are_the_sum_of_contributions():
    model = AutoMKLClassifier().fit(X, y)
    parts = model.contributions(X)
    assert parts.shape == (len(y), 3, len(model.kernel_names_))
    np.testing.assert_allclose(
        parts.sum(axis=2) + model.intercept_, model.decision_function(X), atol=1e-8
    )
    np.testing.assert_allclose(model.weights(X).sum(axis=1), 1.0)


def test_class_weights_move_the_boundary():
    rng = np.random.RandomState(0)
    data, labels = rng.normal(size=(200, 2)), rng.rand(200) < 0.2
    plain = AutoMKLClassifier().fit(data, labels)
    balanced = AutoMKLClassifier(class_weight="balanced").fit(data, labels)
    assert balanced.predict(data).mean() > plain.predict(data).mean() + 0.1


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


def scored(model, scores, cost=1.0):
    params = {"model": model, "model__kernels": {"k": RBF()}, "model__C": cost}
    results = [FoldResult(0, k, score, None, 0.1, 0.1) for k, score in enumerate(scores)]
    return Candidate(0, params, results)


def best_of(scores, rule):
    model = AutoMKLClassifier(rule=rule)
    return model._best_candidate(sorted(scores, key=complexity_of))


def test_one_standard_error_prefers_the_simple_kind():
    fixed, weights, local = UniformMKLClassifier(), LpMKLClassifier(), LMKLClassifier()
    simple, other = scored(fixed, [0.80, 0.84]), scored(fixed, [0.80, 0.82])
    learned, own = scored(weights, [0.80, 0.88]), scored(local, [0.9, 0.9])
    scores = [other, simple, learned]
    assert best_of(scores, "best") is learned
    assert best_of(scores, "one_se") is simple
    scores.append(own)
    assert best_of(scores, "one_se") is own
    # Of equal ones the smallest cost.
    equal = scored(local, [0.9, 0.9], cost=0.5)
    assert best_of([*scores, equal], "best") is equal


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


def test_several_views_have_a_trusted_vote():
    data, labels, views, _ = make_views(200, random_state=0)
    model = AutoMKLClassifier(views).fit(data, labels)
    assert model.best_method_ == "trusted vote"
    assert [name.split(":")[0] for name in model.kernel_names_] == list(views)
    # Kernels that decay with distance, for which samples can be unfamiliar.
    forms = {name.split(": ")[1].split("(")[0] for name in model.leaderboard_.kernels[1:]}
    assert forms == {"laplacian", "rbf"}
    assert model.trust(data).shape == (200, 3)
    assert model.disagreement(data).shape == (200,)
    named = AutoMKLClassifier(views, methods=["TrustedVote"], cv=3, random_state=0)
    named.fit(data, labels)
    assert named.trust(data).shape[0] == 200
    any_view = AutoMKLClassifier(views, views_policy="any").fit(data, labels)
    assert any_view.best_method_ == "expert average"


def test_time_is_kept_and_the_best_so_far_wins(monkeypatch):
    # A clock that only this test moves: every look at it is a second.
    ticks = iter(range(10**6))
    monkeypatch.setattr(time, "monotonic", lambda: next(ticks))
    model = AutoMKLClassifier(time_limit=16, n_jobs=1).fit(X, y)
    assert 0 < len(model.leaderboard_) < 15
    assert model.score(X, y) > 0.8


def test_named_methods_are_compared_on_a_part_of_many_samples(monkeypatch):
    monkeypatch.setattr(auto, "MANY_ROWS", 200)
    monkeypatch.setattr(auto, "ROWS_OF_PART", 100)
    data, labels = load_breast_cancer(return_X_y=True)
    model = quick().fit(data, labels)
    assert model.leaderboard_.n_samples.between(98, 100).all()
    assert model.n_samples_fit_ == len(labels)
    assert model.predict_proba(data).shape == (569, 2)


@pytest.mark.parametrize("regions", [10**6, 300])
def test_many_samples_have_another_loss_or_regions(monkeypatch, regions):
    monkeypatch.setattr(expert_search, "EXACT_ROWS", 200)
    monkeypatch.setattr(expert_search, "REGION_ROWS", regions)
    data, labels = load_breast_cancer(return_X_y=True)
    model = AutoMKLClassifier(random_state=0).fit(data, labels)
    assert model.best_method_ == ("regions" if regions == 300 else "UNIFORM")
    assert set(model.leaderboard_.n_samples) <= {99, 100}
    assert model.n_samples_fit_ == len(labels)
    assert model.score(data, labels) > 0.95
    assert model.predict_proba(data).shape == (569, 2)


def test_warnings_are_about_the_limit_of_the_user_alone(monkeypatch):
    monkeypatch.setattr(expert_search, "EXACT_ROWS", 200)
    with pytest.warns(UserWarning, match="time_limit=0.001 ") as record:
        AutoMKLClassifier(time_limit=1e-3).fit(*load_breast_cancer(return_X_y=True))
    assert all("time_limit=0.001 " in str(warning.message) for warning in record)


def test_a_short_time_fits_fewer_samples():
    data, labels = load_breast_cancer(return_X_y=True)
    with pytest.warns(UserWarning, match="time_limit=1e-09 .* 569"):
        model = AutoMKLClassifier(time_limit=1e-9).fit(data, labels)
    assert 490 <= model.n_samples_fit_ <= 500
    # Support vectors are rows of all samples, also of those that were left out.
    read = model.best_estimator_[:-1].transform(data)
    np.testing.assert_array_equal(read[model.support_], model.support_vectors_)
    assert model.support_.max() >= model.n_samples_fit_
    assert model.score(data, labels) > 0.9


def test_groups_are_not_divided_by_leave_one_out():
    rng = np.random.RandomState(0)
    groups = np.repeat(np.arange(30), 5)
    # Samples of a group are copies, and labels are chance: only leaving out groups shows that.
    rows = np.repeat(rng.normal(size=(30, 3)), 5, axis=0)
    labels = np.repeat(rng.permutation(np.arange(30) % 2), 5)
    assert AutoMKLClassifier().fit(rows, labels).best_score_ > 0.9
    assert AutoMKLClassifier().fit(rows, labels, groups=groups).best_score_ < 0.8
