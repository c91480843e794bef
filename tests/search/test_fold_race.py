"""Races over folds: who leaves, and that the best does not."""

import logging
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays
from search_cases import data
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lokl import LMKLClassifier, UniformMKLClassifier
from lokl._deadline import Deadline
from lokl.kernels import RBF
from lokl.search import KernelSearchCV
from lokl.search.evaluation import Evaluation, far_behind, rounds_of_folds
from lokl.search.results import errors_behind
from lokl.search.tasks import CandidateGroup, FitBackend, FoldResult, SearchTask

COSTS, FOLDS, ROWS = 8, 5, 60


class Table(FitBackend):
    """Backend that returns given results, fold by fold."""

    def __init__(self, correct):
        self.correct = correct
        self.requested = []

    def supports(self, task, candidate):
        return True

    def groups(self, task, candidates):
        return [candidates]

    def reports_row_scores(self, task, candidate):
        return True

    def run(self, task, candidates, threads):
        for candidate in candidates:
            results = []
            for split, (fold, _) in enumerate(task.splits):
                correct = self.correct[candidate, fold]
                self.requested.append((candidate, fold))
                score = correct.mean()
                results.append(FoldResult(candidate, split, score, None, 0, 0, row_scores=correct))
            yield results


def race(correct, n_paths, limit=None):
    """Run a race over a table of shape (candidates, folds, rows), costs changing first."""
    costs = len(correct) // n_paths
    candidates = [{"C": i % costs, "width": i // costs} for i in range(len(correct))]
    splits = [(fold, None) for fold in range(correct.shape[1])]
    task = SearchTask(None, candidates, None, None, splits, n_jobs=1)
    race = Evaluation(task, Deadline(limit), adaptive=True)
    backend = Table(correct)
    paths = np.arange(len(correct)).reshape(n_paths, costs)
    race.run([CandidateGroup(backend, task, [*map(int, path)]) for path in paths])
    return race, backend


def hills(seed):
    """Correct predictions of candidates whose accuracy has one maximum along costs.

    Candidates with similar settings are correct on the same rows.
    """
    rng = np.random.RandomState(seed)
    n_paths = 6
    cost, width = np.arange(COSTS), np.arange(n_paths)[:, np.newaxis]
    summit = rng.uniform(0, COSTS, size=(n_paths, 1))
    steep = rng.choice([0.003, 0.01, 0.03])
    chance = rng.uniform(0.6, 0.95) - steep * (
        np.abs(cost - summit) + np.abs(width - rng.uniform(0, n_paths))
    )
    hardness = rng.uniform(size=(1, FOLDS, ROWS))
    noise = 0.1 * rng.normal(size=(n_paths * COSTS, FOLDS, ROWS))
    return chance.reshape(-1, 1, 1) > hardness + noise, n_paths


@given(arrays(bool, (6, 30)))
def test_the_best_never_leaves_and_rows_have_no_order(right):
    known = dict(enumerate(right))
    left = far_behind(known)
    assert int(right.sum(axis=1).argmax()) not in left
    assert far_behind({key: rows[::-1] for key, rows in known.items()}) == left
    behind = np.array([errors_behind(other, right[0]) for other in right])
    assert behind[0] == 0
    np.testing.assert_allclose(behind, [-errors_behind(right[0], other) for other in right])
    assert (np.sign(behind) == np.sign(right[0].sum() - right.sum(axis=1))).all()


def test_few_rows_tell_nothing():
    best = np.ones(6, dtype=bool)
    assert errors_behind(~best, best) < 2.5
    assert far_behind({0: best, 1: ~best}) == set()
    assert far_behind({0: np.ones(7, bool), 1: np.zeros(7, bool)}) == {1}
    assert far_behind({}) == set()


@pytest.mark.parametrize("n_folds", [1, 2, 3, 5, 10])
def test_rounds_have_every_fold_once(n_folds):
    rounds = list(rounds_of_folds(n_folds))
    assert [fold for folds in rounds for fold in folds] == list(range(n_folds))
    assert len(rounds[0]) == 1


def test_who_wins_a_race_is_the_best_of_all_or_as_good():
    same, requested = 0, 0.0
    for seed in range(150):
        right, n_paths = hills(seed)
        scores = right.mean(axis=2)
        means = scores.mean(axis=1)
        best = means.argmax()
        finished, backend = race(right, n_paths)
        error = np.sqrt(means[best] * (1 - means[best]) / (FOLDS * ROWS))
        assert means[finished.best] >= means[best] - error
        same += means[finished.best] == means[best]
        requested += len(backend.requested) / scores.size
        assert set(finished.complete) | set(finished.skipped) == set(range(len(right)))
        assert not set(finished.complete) & set(finished.skipped)
    assert same >= 135
    assert requested < 150 * 0.85


def test_hopeless_candidates_see_one_fold_and_costs_beyond_a_fall_none():
    right = np.ones((2 * 4, FOLDS, ROWS), dtype=bool)
    right[4:, :, ::3] = False  # a line far behind
    right[2:4, :, ::5] = False  # clearly below smaller costs
    finished, backend = race(right, 2)
    requested = [[fold for who, fold in backend.requested if who == i] for i in range(8)]
    assert requested == [[*range(FOLDS)]] * 2 + [[0]] + [[]] + [[0]] * 4
    reasons = " ".join(set(finished.skipped.values()))
    for fact in ("2.5 standard errors", "after 1 of 5 folds", "by 2 standard errors along C"):
        assert fact in reasons
    assert [[result.split for result in finished.complete[i]] for i in (0, 1)] == [
        [*range(FOLDS)]
    ] * 2


def test_out_of_time_the_best_so_far_is_finished():
    right = hills(0)[0]
    finished, backend = race(right, 6, limit=0.0)
    assert backend.requested == [(0, fold) for fold in range(FOLDS)]
    assert list(finished.complete) == [0]
    assert len(finished.complete[0]) == FOLDS


@pytest.fixture(scope="module")
def searches():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    grid = {"C": np.logspace(-2, 3, 8), "kernels": [[RBF(4.0**k)] for k in range(-6, 2)]}
    settings = {"cv": 5, "n_jobs": 1}
    full = KernelSearchCV(UniformMKLClassifier(), grid, **settings).fit(X, y)
    raced = KernelSearchCV(UniformMKLClassifier(), grid, adaptive=True, **settings)
    return X, y, full, raced


@pytest.mark.slow
def test_real_machines_select_the_same(searches):
    X, y, full, raced = searches
    raced.fit(X, y)
    skipped = raced.cv_results_["skipped"]
    assert skipped.sum() > 20
    assert raced.best_params_ == full.best_params_
    for name in ("mean_test_score", "split3_test_score"):
        np.testing.assert_array_equal(
            raced.cv_results_[name][~skipped], full.cv_results_[name][~skipped]
        )
        assert np.isnan(raced.cv_results_[name][skipped]).all()


@pytest.mark.slow
def test_threads_names_of_the_score_and_pipelines_do_not_change_who_leaves(searches):
    X, y, _, raced = searches
    skipped = raced.fit(X, y).cv_results_["skipped"]
    for settings in ({"n_jobs": 2}, {"scoring": "accuracy"}):
        other = KernelSearchCV(**{**raced.get_params(deep=False), **settings, "refit": False})
        np.testing.assert_array_equal(other.fit(X, y).cv_results_["skipped"], skipped)
    pipeline = make_pipeline(StandardScaler(with_std=False), UniformMKLClassifier())
    grid = {f"uniformmklclassifier__{name}": own for name, own in raced.param_grid.items()}
    piped = KernelSearchCV(pipeline, grid, adaptive=True, refit=False, n_jobs=1).fit(X, y)
    np.testing.assert_array_equal(piped.cv_results_["skipped"], skipped)


def test_who_left_is_no_edge_of_the_grid():
    X, y = data(300)
    grid = {"C": [1e-3, 1.0, 2.0, 1e3], "kernels": [[RBF(g)] for g in (1e-4, 0.2, 0.3, 1e4)]}
    search = KernelSearchCV(UniformMKLClassifier(), grid, adaptive=True, refit=False).fit(X, y)
    assert search.best_params_["C"] in (1.0, 2.0)
    assert search.cv_results_["skipped"].any()


@pytest.mark.filterwarnings("ignore:the best .* of the grid")
def test_methods_that_learn_kernels_race_too():
    X, y = data(200)
    grid = {"C": [1e-3, 1.0], "kernels": [[RBF(0.3), RBF(3.0)], [RBF(1e4), RBF(1e5)]]}
    model = LMKLClassifier(max_iter=5, random_state=0)
    with warnings.catch_warnings():
        # Five steps are few.
        warnings.simplefilter("ignore")
        search = KernelSearchCV(model, grid, adaptive=True, cv=3, refit=False).fit(X, y)
    assert search.best_params_["C"] == 1.0
    assert search.cv_results_["skipped"].sum() >= 2


@pytest.mark.filterwarnings("ignore:the SVM is saturated", "ignore:the best .* of the grid")
def test_the_log_says_who_left_and_candidates_that_fail_stay(caplog):
    X, y = data(200)
    grid = {"C": [1e-4, 1.0, -1.0], "kernels": [[RBF(0.3)]]}
    search = KernelSearchCV(
        UniformMKLClassifier(),
        grid,
        adaptive=True,
        cv=3,
        refit=False,
        verbose=1,
        error_score=0.0,
    )
    with caplog.at_level(logging.INFO, logger="lokl"), pytest.warns(match="3 fits failed"):
        search.fit(X, y)
    np.testing.assert_array_equal(search.cv_results_["skipped"], [True, False, False])
    assert any("2.5 standard errors behind the best after 1 of 3" in m for m in caplog.messages)
