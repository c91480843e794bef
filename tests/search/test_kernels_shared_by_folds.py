"""Kernels that are stored once for all folds change no cell."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from search_cases import check_like_grid_search, data, targets
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, KFold

from lokl import LDMKLClassifier, LDMKLRegressor, LpMKLClassifier, SwMKLClassifier, SwMKLRegressor
from lokl.kernels import RBF, Linear, Polynomial
from lokl.search import KernelSearchCV
from lokl.search.backends import with_stored_kernels
from lokl.search.tasks import SearchTask

pytestmark = [
    pytest.mark.filterwarnings("ignore:the best .* of the grid"),
    pytest.mark.filterwarnings("ignore:the SVM is saturated"),
]

KERNELS = [
    Linear().normalized("mean_diag"),
    Polynomial(2).normalized(),
    RBF(0.5),
    RBF(2.0).on([0, 2]),
]


def task(model, X, y, **changes):
    made = SearchTask(
        estimator=model,
        candidates=[{"C": 0.5, "tol": 1e-3}, {"C": 5.0, "tol": 1e-3}],
        X=X,
        y=y,
        fit_params={},
        score_params={},
        splits=list(KFold(3).split(X)),
        scorers=get_scorer("accuracy"),
        error_score=np.nan,
        return_train_score=False,
        n_jobs=None,
    )
    return replace(made, **changes)


@pytest.mark.slow
@settings(max_examples=6)
@given(
    seed=st.integers(0, 2**16),
    n_classes=st.integers(2, 3),
    kind=st.sampled_from([LDMKLClassifier, SwMKLClassifier]),
    how=st.sampled_from(["dense", "sparse", "weighted"]),
    n_jobs=st.sampled_from([None, 2]),
)
def test_classifiers(seed, n_classes, kind, how, n_jobs):
    X, y = data(45, n_classes, seed)
    weight = np.random.RandomState(seed).choice([0.0, 1.0, 2.5], p=[0.1, 0.6, 0.3], size=45)
    check_like_grid_search(
        kind(KERNELS, tol=1e-8, random_state=0),
        {"C": [0.3, 1.0, 10.0], "class_weight": [None, "balanced"]},
        sparse.csr_matrix(X) if how == "sparse" else X,
        y,
        fit={"sample_weight": weight} if how == "weighted" else {},
        cv=3,
        n_jobs=n_jobs,
        return_train_score=True,
        scoring=["accuracy", "balanced_accuracy"],
        refit="accuracy",
    )


@pytest.mark.parametrize("kind", [LDMKLRegressor, SwMKLRegressor])
def test_regressors(kind):
    X, y = targets(45)
    model = kind(KERNELS, tol=1e-8, random_state=0)
    common = {"param_grid": {"C": [0.5, 5.0], "epsilon": [0.1, 0.01]}, "cv": 3, "refit": False}
    ours, theirs = (
        search(model, **common).fit(X, y).cv_results_["mean_test_score"]
        for search in (KernelSearchCV, GridSearchCV)
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_samples_become_numbers_of_rows():
    X, y = data(30)
    stored = with_stored_kernels(task(LDMKLClassifier(KERNELS), X, y), 0)
    assert stored is not None
    np.testing.assert_array_equal(stored.X[:, 0], np.arange(30))
    assert stored.candidates == [{"C": 0.5}, {"C": 5.0}]
    kernels = stored.estimator.kernels
    for name, kernel in zip(kernels, KERNELS, strict=True):
        expected = kernel.bind(X[:20])(X)
        np.testing.assert_allclose(
            kernels[name].bind(stored.X[:20])(stored.X), expected, atol=1e-6, err_msg=name
        )


def looks_inside(estimator, X, y):
    return float(X[0, 0])


@pytest.mark.parametrize(
    ("model", "changes"),
    [
        (LpMKLClassifier(KERNELS), {}),
        (LDMKLClassifier(KERNELS, success_kernel=Linear()), {}),
        (LDMKLClassifier(KERNELS, solver="libsvm"), {}),
        (LDMKLClassifier([RBF("scale"), Linear()]), {}),
        (LDMKLClassifier(KERNELS, cache_size=0.05), {}),
        (LDMKLClassifier(KERNELS, C=-1.0), {"candidates": [{}]}),
        (LDMKLClassifier(KERNELS), {"scorers": looks_inside}),
        (LDMKLClassifier(KERNELS), {"splits": [(np.arange(40), np.arange(40, 60))]}),
    ],
    ids=["method", "regressions", "solver", "folds differ", "memory", "bad", "scorer", "one split"],
)
def test_other_searches_are_left_alone(model, changes):
    X, y = data(60)
    assert with_stored_kernels(task(model, X, y, **changes), 0) is None


def test_samples_that_lack_a_view():
    X, y = data(30)
    X[:4, 0] = np.nan
    views = {"first": Linear().on([0]), "others": RBF(0.5).on([1, 2])}
    assert with_stored_kernels(task(LDMKLClassifier(views), X, y), 0) is None
