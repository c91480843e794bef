"""Data and laws for tests of searches."""

import numpy as np
from sklearn.model_selection import GridSearchCV

from lokl.search import KernelSearchCV

COSTS = {"C": [10.0, 0.1, 1.0]}


def data(n, n_classes=2, seed=0):
    """Samples in three columns, and labels that depend on them with some noise."""
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, 3))
    score = X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * rng.normal(size=n)
    ranks = np.argsort(np.argsort(score))
    return X, ranks * n_classes // n


def targets(n, seed=0):
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=n)


def check_like_grid_search(estimator, grid, X, y, fit=None, **settings):
    """Every column and every cell is that of GridSearchCV, times apart."""
    ours = KernelSearchCV(estimator, grid, **settings).fit(X, y, **(fit or {}))
    theirs = GridSearchCV(estimator, grid, **{**settings, "n_jobs": None}).fit(X, y, **(fit or {}))
    assert ours.cv_results_.keys() == theirs.cv_results_.keys()
    for name, column in theirs.cv_results_.items():
        own = ours.cv_results_[name]
        assert len(own) == len(column)
        assert type(own) is type(column)
        if name.startswith("param"):
            assert list(own) == list(column)
            assert getattr(own, "dtype", None) == getattr(column, "dtype", None)
        elif "time" not in name:
            np.testing.assert_allclose(own, column, atol=1e-10, err_msg=name)
    for name in ("best_params_", "best_index_", "n_splits_", "multimetric_"):
        assert getattr(ours, name, None) == getattr(theirs, name, None), name
    assert hasattr(ours, "best_score_") == hasattr(theirs, "best_score_")
    if hasattr(theirs, "best_score_"):
        np.testing.assert_allclose(ours.best_score_, theirs.best_score_)
    if settings.get("refit", True):
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-8)
    if hasattr(theirs, "best_score_") and settings.get("refit", True):
        np.testing.assert_allclose(ours.score(X, y), theirs.score(X, y))
    return ours
