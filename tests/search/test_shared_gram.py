"""Machines on shared matrices: their cells are those of separate fits."""

import subprocess
import sys
import weakref
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ParameterGrid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lokl import UniformMKLClassifier, UniformMKLRegressor
from lokl.gram import mixing
from lokl.kernels import RBF, Linear, Sigmoid
from lokl.search import KernelSearchCV, expected_calibration_error
from lokl.search.backends import bind_by_fold
from lokl.search.shared_gram import GramPool, SharedGramBackend
from lokl.search.tasks import SearchTask
from lokl.solvers import Exact

# Decisions of two machines that are each optimal up to the default tolerance of 1e-3.
CLOSE = 2e-2
# Small grids often have their best on the edge.
pytestmark = pytest.mark.filterwarnings("ignore:the best .* of the grid")


def data(n=60, n_classes=2, seed=0):
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, 4))
    score = X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=n)
    y = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
    # Every class is in every fold.
    y[: 3 * n_classes] = np.tile(np.arange(n_classes), 3)
    return X, y


def task(model, grid, X, y, splits, weight=None):
    search = GridSearchCV(model, grid)
    fit_params = {} if weight is None else {"sample_weight": weight}
    scorers = search._get_scorers()[0]
    candidates = list(ParameterGrid(grid))
    return SearchTask(
        model,
        candidates,
        X,
        y,
        splits,
        fit_params,
        scorers=scorers,
        return_train_score=True,
        n_jobs=1,
    )


def check(model, grid, X, y, weight=None, close=CLOSE):
    splits = list(KFold(3, shuffle=True, random_state=1).split(X))
    asked, backend = task(model, grid, X, y, splits, weight), SharedGramBackend()
    places = list(range(len(asked.candidates)))
    assert all(backend.supports(asked, place) for place in places)
    seen = []
    for group in backend.groups(asked, places):
        for results in backend.run(asked, group, 1):
            for result in results:
                train, test = asked.splits[result.split]
                own = clone(model).set_params(**asked.candidates[result.candidate])
                own.fit(X[train], y[train], None if weight is None else weight[train])
                expected = own._decisions(X[test])
                scale = max(1.0, float(np.abs(expected).max()))
                np.testing.assert_allclose(result.decision, expected, atol=close * scale)
                assert result.error is None
                seen.append((result.candidate, result.split))
    assert sorted(seen) == [(place, split) for place in places for split in range(3)]


GRID = {"C": [10.0, 0.1, 1.0], "kernels": [[RBF(0.3)], [RBF("scale"), Linear()]]}


@settings(max_examples=5)
@given(seed=st.integers(0, 2**16), n_classes=st.integers(2, 4))
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_classes(loss, seed, n_classes):
    check(UniformMKLClassifier(loss=loss), GRID, *data(60, n_classes, seed))


@settings(max_examples=5)
@given(seed=st.integers(0, 2**16), n_targets=st.integers(1, 2))
def test_targets(seed, n_targets):
    X, _ = data(50, seed=seed)
    y = np.sin(X[:, :n_targets]) + 0.1 * X[:, 2:3]
    grid = {**GRID, "epsilon": [0.1, 0.01]}
    check(UniformMKLRegressor(), grid, X, y[:, 0] if n_targets == 1 else y)


@given(seed=st.integers(0, 2**16))
@settings(max_examples=5)
def test_weights_and_class_weights(seed):
    X, y = data(60, 3, seed)
    weight = np.random.RandomState(seed).choice([0.0, 0.5, 1.0, 2.0], size=60)
    weight[:9] = 1.0
    grid = {"C": [0.3, 3.0], "class_weight": [None, "balanced", {0: 2.0}]}
    check(UniformMKLClassifier([RBF(0.5)]), grid, X, y, weight)


def test_sparse_samples_and_missing_views():
    X, y = data()
    check(UniformMKLClassifier([RBF(0.3)]), {"C": [0.1, 10.0]}, sparse.csr_matrix(X), y)
    holes = X.copy()
    holes[::5, :2] = np.nan
    views = [RBF(0.3).on([0, 1]), RBF(0.5).on([2, 3])]
    check(UniformMKLClassifier(views), {"C": [0.1, 10.0]}, holes, y)


def test_weights_are_repeated_rows():
    X, y = data(40)
    folds = [(np.arange(0, 30), np.arange(30, 40)), (np.arange(10, 40), np.arange(10))]
    weight = np.random.RandomState(0).randint(1, 3, size=40)
    often = np.repeat(np.arange(40), weight)
    repeated = [
        tuple(np.flatnonzero(np.isin(often, part)) for part in (train, test))
        for train, test in folds
    ]
    model, grid = UniformMKLClassifier([RBF(0.3)]), {"C": [0.1, 1.0, 10.0]}
    search = KernelSearchCV(model, grid, cv=folds).fit(X, y, sample_weight=weight)
    other = KernelSearchCV(model, grid, cv=repeated).fit(X[often], y[often])
    first = search.best_estimator_.set_params(C=1.0).fit(X, y, weight).decision_function(X)
    second = other.best_estimator_.set_params(C=1.0).fit(X[often], y[often]).decision_function(X)
    np.testing.assert_allclose(first, second, atol=CLOSE)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_scores_are_those_of_a_grid_search(n_jobs):
    X, y = data(120, 3)
    grid = {"C": np.logspace(-1, 2, 4), "kernels__rbf__gamma": [0.1, 1.0]}
    model = UniformMKLClassifier(["rbf"])
    for scores in (None, "f1_macro"):
        ours, theirs = (
            kind(model, grid, scoring=scores, cv=4, n_jobs=n_jobs, refit=False).fit(X, y)
            for kind in (KernelSearchCV, GridSearchCV)
        )
        gap = ours.cv_results_["mean_test_score"] - theirs.cv_results_["mean_test_score"]
        # A sample on the boundary may go either way.
        assert np.abs(gap).max() <= 0.03


def test_groups_stay_together():
    X, y = data(90)
    groups = np.arange(90) // 3
    model, grid = UniformMKLClassifier([RBF(0.3)]), {"C": [0.1, 1.0]}
    ours, theirs = (
        kind(model, grid, cv=GroupKFold(3)).fit(X, y, groups=groups)
        for kind in (KernelSearchCV, GridSearchCV)
    )
    gap = ours.cv_results_["mean_test_score"] - theirs.cv_results_["mean_test_score"]
    assert np.abs(gap).max() <= 0.03


def test_matrices_are_shared(monkeypatch):
    made = []
    plain = mixing.fill_symmetric
    monkeypatch.setattr(mixing, "fill_symmetric", lambda *given: made.append(1) or plain(*given))
    X, y = data()
    model = UniformMKLClassifier()
    grid = {"C": [0.1, 1.0, 10.0], "kernels": [[RBF(g)] for g in (0.1, 0.3, 1.0)]}
    KernelSearchCV(model, grid, cv=3, refit=False).fit(X, y)
    assert len(made) == 3
    made.clear()
    # Widths that follow from the samples of a fold differ by fold.
    KernelSearchCV(model, {"C": [0.1, 1.0], "kernels": [["rbf"]]}, cv=3, refit=False).fit(X, y)
    assert len(made) == 3


@settings(max_examples=5)
@given(seed=st.integers(0, 2**16), n_classes=st.integers(2, 3))
@pytest.mark.parametrize("megabytes", [0.003, 0.01])
def test_matrices_that_do_not_fit(megabytes, seed, n_classes):
    check(UniformMKLClassifier(cache_size=megabytes), GRID, *data(60, n_classes, seed))


def test_rows_of_a_matrix_that_does_not_fit_are_shared_by_folds_and_costs(monkeypatch):
    computed = []
    plain = mixing.fill

    def fill(left, rows, right, *others):
        if left is right:
            computed.extend(rows)
        plain(left, rows, right, *others)

    monkeypatch.setattr(mixing, "fill", fill)
    X, y = data(100)
    # All rows but one.
    model = UniformMKLClassifier([RBF(0.3)], cache_size=99 * 100 * 4 / 2**20)
    grid = {"C": [0.1, 1.0, 10.0]}
    KernelSearchCV(model, grid, cv=5, refit=False).fit(X, y)
    assert 0 < len(computed) < 2 * 100


def test_memory_counts_bytes_and_lines_that_run_side_by_side():
    X, y = data(100)
    splits = list(KFold(3).split(X))
    grid = {"C": [1.0], "kernels": [[RBF(0.1)], [RBF(1.0)], [RBF("scale")]]}
    room = 2.5 * 100**2 * 4 / 2**20
    for dtype, at_once in (("float32", [2, 2, 1]), ("float64", [1, 1, 1])):
        model = UniformMKLClassifier(solver=Exact(cache_size=room, dtype=dtype))
        asked, backend = replace(task(model, grid, X, y, splits), n_jobs=8), SharedGramBackend()
        found = [backend.max_concurrent_groups(asked, [candidate]) for candidate in range(3)]
        assert found == at_once
        backend.max_concurrent_groups(asked, [0])
        _, grams = backend._prepare(asked, [0])
        assert all(gram.fits for gram in grams)
        distinct = {id(gram): gram.inner.cache_size for gram in grams}
        assert sum(distinct.values()) * at_once[0] <= room


def test_memory_is_handed_on_and_not_kept_for_samples_of_the_past():
    model, pool = UniformMKLClassifier([RBF(0.3)]), GramPool()

    def gram(X, y):
        checked = clone(model)._validate(X, y, None)
        bound = bind_by_fold(checked, [np.arange(60)])
        (found,) = pool.by_fold(checked, bound, 1)
        assert found.fits
        _ = found.whole
        return found

    first = gram(*data(60))
    pool.release([first])
    again = gram(*data(60))
    assert again.inner is first.inner
    pool.release([again])
    past = weakref.ref(first.inner)
    del first, again
    gram(*data(60, seed=1))
    assert past() is None


MEMORY = """
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from lokl import UniformMKLClassifier
from lokl._environment import Peak
from lokl.kernels import RBF
from lokl.search import KernelSearchCV

X = np.random.RandomState(0).normal(size=(3000, 10))
y = (X[:, 0] + X[:, 1] ** 2 > 1).astype(int)
grid = {"C": [0.1, 1.0], "kernels": [[RBF(g)] for g in (0.01, 0.03, 0.1, "scale")]}
piped = {f"uniformmklclassifier__{name}": values for name, values in grid.items()}
for megabytes in (20, 80):
    model = UniformMKLClassifier(cache_size=megabytes)
    for own, values in ((model, grid), (make_pipeline(StandardScaler(), model), piped)):
        search = KernelSearchCV(own, values, refit=False, n_jobs=2)
        # What is compiled or loaded is there before.
        search.fit(X[:1200], y[:1200])
        with Peak(tidy=True) as peak:
            search.fit(X, y)
        print(megabytes, peak.increase)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peaks are counted anew on Linux")
def test_a_search_stays_inside_its_memory():
    command = [sys.executable, "-W", "ignore", "-c", MEMORY]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")
    used = [tuple(map(float, line.split())) for line in told if line]
    assert len(used) == 4
    matrix = 3000**2 * 4 / 2**20
    for megabytes, increase in used:
        assert increase <= megabytes + matrix + 30, used


@pytest.mark.parametrize("megabytes", [512, 0.01])
def test_indefinite_kernels_are_told_once(megabytes):
    X, y = data()
    model = UniformMKLClassifier([Sigmoid(gamma=1.0, coef0=-1.0)], cache_size=megabytes)
    search = KernelSearchCV(model, {"C": [0.1, 1.0, 10.0]}, cv=3, refit=False)
    with pytest.warns(UserWarning, match="not positive semidefinite") as told:
        search.fit(X, y)
    assert len([one for one in told if "semidefinite" in str(one.message)]) == 1


def test_what_must_be_fine_is_left_to_others():
    X, y = data()
    splits = list(KFold(3).split(X))
    for settings_ in ({"tol": 1e-6}, {"solver": "libsvm"}, {"max_iter": 5}):
        asked = task(UniformMKLClassifier(**settings_), {"C": [1.0]}, X, y, splits)
        assert not SharedGramBackend().supports(asked, 0)


@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
def test_a_candidate_that_fails_is_a_cell():
    X, y = data()
    grid = {"C": [1.0, -1.0, 10.0]}
    with pytest.warns(FitFailedWarning, match="3 fits failed out of a total of 9"):
        search = KernelSearchCV(UniformMKLClassifier([RBF(0.3)]), grid, cv=3).fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert np.isnan(scores[1])
    assert np.isfinite(scores[[0, 2]]).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_come_from_held_out_decisions(n_classes):
    X, y = data(300, n_classes)
    grid = {"C": [0.1, 1.0, 10.0]}
    models = (
        UniformMKLClassifier([RBF(0.3)]),
        make_pipeline(StandardScaler(), UniformMKLClassifier([RBF(0.3)])),
    )
    for model, prefix in zip(models, ("", "uniformmklclassifier__"), strict=True):
        own = {prefix + name: values for name, values in grid.items()}
        search = KernelSearchCV(model, own, cv=5).fit(X[:200], y[:200])
        proba = search.predict_proba(X[200:])
        assert proba.shape == (100, n_classes)
        np.testing.assert_allclose(proba.sum(axis=1), 1.0)
        np.testing.assert_allclose(np.log(proba), search.predict_log_proba(X[200:]))
        assert expected_calibration_error(y[200:], proba) < 0.15
        unfitted = KernelSearchCV(model, own, refit=False).fit(X, y)
        assert not hasattr(unfitted, "predict_proba")
