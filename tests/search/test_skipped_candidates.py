"""Searches that do less: candidates skipped, time limited, few rows first; and what they tell."""

import logging
import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_cases import data
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyRegressor
from sklearn.naive_bayes import GaussianNB

from lokl import UniformMKLClassifier
from lokl._deadline import Deadline
from lokl.kernels import RBF
from lokl.search import KernelSearchCV
from lokl.search.evaluation import consecutive_decreases, rows_by_round, subsample
from lokl.search.tasks import SearchTask

pytestmark = pytest.mark.filterwarnings("ignore:the best .* of the grid")

X, y = data(60)


class Known(ClassifierMixin, BaseEstimator):
    """Scores a known function of its settings, and notes which settings were fitted."""

    fitted = []  # noqa: RUF012

    def __init__(self, C=1.0, width=0, shape=lambda C, width: -abs(C)):
        self.C = C
        self.width = width
        self.shape = shape

    def fit(self, X, y):
        Known.fitted.append((self.C, self.width))
        if self.C is None:
            raise ValueError("no cost")
        self.classes_ = np.unique(y)
        return self

    def score(self, X, y):
        return float(self.shape(self.C, self.width))


def hill(C, width):
    return -abs(C - 4) - 2 * abs(width - 6)


@pytest.fixture(autouse=True)
def nothing_fitted():
    Known.fitted = []


def tried(search):
    results = search.cv_results_
    pairs = zip(results["params"], results["skipped"], strict=True)
    return {tuple(params.values()) for params, skipped in pairs if not skipped}


@pytest.mark.parametrize(
    ("scores", "falls"),
    [
        ([], 0),
        ([3.0], 0),
        ([3, 2, 1, 0], 3),
        ([3, 2, 2, 1], 1),
        ([1, 2, 3], 0),
        ([5, 4, 5, 4, 3], 2),
        ([5, math.nan, 4, 3], 1),
    ],
)
def test_equal_and_unknown_scores_are_no_falls(scores, falls):
    assert consecutive_decreases(scores) == falls


def test_a_line_ends_after_three_consecutive_decreases():
    grid = {"C": [9, 8, 7, 6, 5, 4, 3, 2, 1]}
    search = KernelSearchCV(Known(shape=lambda C, _: -abs(C - 3)), grid, adaptive=True, cv=2)
    search.fit(X, y)
    assert search.best_params_ == {"C": 3}
    assert tried(search) == {(C,) for C in range(1, 7)}
    assert {C for C, _ in Known.fitted} == set(range(1, 7))
    results = search.cv_results_
    np.testing.assert_array_equal(np.isnan(results["mean_test_score"]), results["skipped"])
    assert (results["rank_test_score"][results["skipped"]] == 7).all()
    assert len(results["params"]) == 9


def test_ties_do_not_end_a_line():
    grid = {"C": list(range(9))}
    search = KernelSearchCV(Known(shape=lambda C, _: -(C // 2)), grid, adaptive=True, cv=2)
    assert not search.fit(X, y).cv_results_["skipped"].any()


@given(
    top=st.tuples(st.integers(0, 8), st.integers(0, 8)), slopes=st.tuples(*[st.floats(0.1, 9)] * 2)
)
@pytest.mark.slow
def test_the_best_of_a_single_hill_is_never_skipped(top, slopes):
    def shape(C, width):
        return -slopes[0] * abs(C - top[0]) - slopes[1] * abs(width - top[1])

    grid = {"C": list(range(9)), "width": list(range(9))}
    search = KernelSearchCV(Known(shape=shape), grid, adaptive=True, cv=2, refit=False).fit(X, y)
    assert (search.best_params_["C"], search.best_params_["width"]) == top


def test_candidates_that_fail_end_no_line():
    grid = {"C": [4, 3, 2, 1, 0, None]}
    model = Known(shape=lambda C, _: C)
    search = KernelSearchCV(model, grid, adaptive=True, cv=2, error_score=-5.0)
    with pytest.warns(match="2 fits failed"):
        search.fit(X, y)
    assert not search.cv_results_["skipped"].any()


@pytest.mark.slow
def test_real_machines_adapt_and_find_the_same_best():
    grid = {
        "C": [0.01, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4],
        "kernels": [[RBF(4.0**k)] for k in range(-4, 5)],
    }
    full = KernelSearchCV(UniformMKLClassifier(), grid, cv=3).fit(X, y)
    fast = KernelSearchCV(UniformMKLClassifier(), grid, cv=3, adaptive=True).fit(X, y)
    known = ~fast.cv_results_["skipped"]
    np.testing.assert_allclose(
        fast.cv_results_["mean_test_score"][known], full.cv_results_["mean_test_score"][known]
    )
    assert not known.all()
    assert fast.best_score_ >= full.best_score_ - 0.05


def test_the_log_tells_lines_and_what_was_skipped(caplog):
    grid = {"C": list(range(9)), "width": [5, 6]}
    with caplog.at_level(logging.INFO, logger="lokl"):
        KernelSearchCV(Known(shape=hill), grid, adaptive=True, cv=2, verbose=1).fit(X, y)
    groups = [text for text in caplog.messages if text.startswith("group ")]
    for fact in ("group 1 of 2", "score -2;", "8 of 18 candidates"):
        assert fact in groups[0]
    (skipped,) = [text for text in caplog.messages if text.startswith("skipped")]
    for fact in ("2 of 18", "3 times", "along C"):
        assert fact in skipped
    assert "{'C': 8, 'width': 6}" in skipped
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="lokl"):
        KernelSearchCV(Known(shape=hill), grid, cv=2).fit(X, y)
    assert not caplog.messages


@pytest.mark.parametrize("adaptive", [False, True])
def test_one_candidate_is_tried_however_short_the_time(adaptive):
    grid = {"C": [3, 2, 1], "width": list(range(6))}
    search = KernelSearchCV(Known(), grid, time_limit=1e-9, adaptive=adaptive, cv=2)
    with pytest.warns(UserWarning, match="time_limit=1e-09 .* 1 of 18 candidates"):
        search.fit(X, y)
    assert search.cv_results_["skipped"].sum() == 17
    assert len(Known.fitted) == 2 + 1
    assert tuple(search.best_params_.values()) in tried(search)


def test_the_best_so_far_wins(monkeypatch):
    seconds = iter(range(9, -91, -1))
    monkeypatch.setattr(Deadline, "remaining", lambda deadline: next(seconds))
    search = KernelSearchCV(Known(shape=lambda C, _: C), {"C": list(range(50))}, time_limit=9, cv=2)
    with pytest.warns(UserWarning, match="of 50 candidates"):
        search.fit(X, y)
    assert 1 <= search.best_params_["C"] == (~search.cv_results_["skipped"]).sum() - 1 < 10


def test_enough_time_changes_nothing_and_says_nothing():
    search = KernelSearchCV(Known(), {"C": [1, 2, 3]}, time_limit=1e6, cv=2).fit(X, y)
    assert not search.cv_results_["skipped"].any()


def test_progress_is_told_after_every_candidate():
    told = []
    grid = {"C": [1.0, 0.1], "kernels": ["rbf", "linear"]}
    search = KernelSearchCV(UniformMKLClassifier(), grid, cv=2, callback=told.append).fit(X, y)
    assert [one.done for one in told] == [1, 2, 3, 4]
    # Groups may run at the same time.
    groups = [one.groups_done for one in told]
    assert groups == sorted(groups)
    assert set(groups) <= {0, 1}
    assert {(one.n_groups, one.n_candidates) for one in told} == {(2, 4)}
    assert told[-1].best_score == search.best_score_
    best = [one.best_score for one in told]
    assert best == sorted(best)
    assert told[0].best_params["C"] == 0.1
    assert all(one.seconds >= 0 for one in told)
    with pytest.raises(FrozenInstanceError):
        told[0].done = 3


@pytest.mark.parametrize(
    ("n", "counts"),
    [
        (100, [100]),
        (10_000, [10_000]),
        (10_800, [1_200, 3_600, 10_800]),
        (90_000, [10_000, 30_000, 90_000]),
    ],
)
def test_rounds_have_three_times_more_rows_each(n, counts):
    assert rows_by_round(n) == counts


@given(st.integers(0, 2**16), st.integers(2, 4))
def test_parts_have_all_classes_in_their_shares(seed, n_classes):
    rng = np.random.RandomState(seed)
    labels = rng.randint(n_classes, size=300)
    labels[:n_classes] = np.arange(n_classes)
    task = SearchTask(None, [], labels, labels, [(rng.permutation(300), labels)])
    for n in (33, 100):
        part = subsample(task, n, 300, True).splits[0][0]
        counts = np.bincount(labels[part], minlength=n_classes)
        assert (counts >= 1).all()
        np.testing.assert_allclose(counts, np.bincount(labels) * n / 300, atol=2)
    assert subsample(task, 300, 300, True) is task


def test_halving_on_many_rows():
    rng = np.random.RandomState(0)
    many = rng.normal(size=(10_800, 2))
    labels = (many[:, 0] > 0).astype(int)
    grid = {"var_smoothing": [1e-9, 1e-3, 1e-1, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5]}
    search = KernelSearchCV(GaussianNB(), grid, cv=3, halving=True).fit(many, labels)
    results = search.cv_results_
    assert list(results["iter"]) == [0] * 9 + [1] * 3 + [2]
    assert list(results["n_resources"]) == [1200] * 9 + [3600] * 3 + [10800]
    assert search.best_index_ == 12
    assert search.best_params_ == results["params"][12]
    assert search.best_score_ == results["mean_test_score"][12]
    few = KernelSearchCV(GaussianNB(), grid, cv=3, halving=True).fit(many[:500], labels[:500])
    assert set(few.cv_results_["iter"]) == {0}


def test_halving_tells_of_the_edge_of_the_whole_grid():
    rng = np.random.RandomState(0)
    many = rng.normal(size=(10_800, 1))
    model, grid = Known(shape=lambda C, _: C), {"C": [1, 2, 3, 4]}
    with pytest.warns(UserWarning, match="the best C is 4, the largest"):
        KernelSearchCV(model, grid, cv=2, halving=True).fit(many, many[:, 0] > 0)


def test_the_score_that_decides_steers_the_search():
    def scores(model, X, y):
        return {"first": -model.C, "second": model.C}

    search = KernelSearchCV(
        Known(), {"C": list(range(9))}, cv=2, adaptive=True, scoring=scores, refit="second"
    )
    search.fit(X, y)
    assert search.best_params_ == {"C": 8}
    assert search.set_params(refit="first").fit(X, y).best_params_ == {"C": 0}
    assert search.cv_results_["skipped"].sum() == 5
    assert (search.cv_results_["rank_test_second"][search.cv_results_["skipped"]] == 5).all()


@pytest.mark.parametrize("refit", [True, "third"])
def test_a_function_with_several_scores_needs_a_name_too(refit):
    def scores(model, X, y):
        return {"first": -model.C, "second": model.C}

    search = KernelSearchCV(Known(), {"C": [1, 2]}, cv=2, scoring=scores, refit=refit)
    with pytest.raises(ValueError, match="the parameter refit must be set to a scorer key"):
        search.fit(X, y)


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_processes_end_with_a_search_that_is_stopped(n_jobs):
    grid = {"var_smoothing": [10.0**-k for k in range(20)]}
    search = KernelSearchCV(GaussianNB(), grid, cv=2, n_jobs=n_jobs, time_limit=1e-9)
    with pytest.warns(UserWarning, match="after 1 of 20 candidates"):
        search.fit(X, y)

    def interrupt(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search.set_params(callback=interrupt).fit(X, y)


def test_halving_without_classes_and_out_of_time():
    many = np.random.RandomState(0).normal(size=(10_800, 1))
    grid = {"constant": [0.0, 1.0, 2.0, 3.0]}
    model = DummyRegressor(strategy="constant")
    search = KernelSearchCV(model, grid, cv=2, halving=True).fit(many, many[:, 0])
    assert search.best_params_ == {"constant": 0.0}
    search.time_limit = 1e-9
    with pytest.warns(UserWarning, match="after 1 of 4 candidates;"):
        search.fit(many, many[:, 0])
    assert search.best_index_ == 0
