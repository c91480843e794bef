"""Samples that the first steps of a pipeline transform: once a fold, and never another's."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import make_pipeline

from lokl import AutoMKLClassifier, UniformMKLClassifier
from lokl.search import KernelSearchCV, backends
from lokl.search.columns import ColumnScaler

RNG = np.random.RandomState(0)
X, y = RNG.normal(size=(60, 3)), RNG.randint(2, size=60)
TRAIN, TEST = np.arange(40), np.arange(40, 60)


class Counted(TransformerMixin, BaseEstimator):
    """Counts how often it is fitted."""

    fits = 0

    def __init__(self, factor=1.0):
        self.factor = factor

    def fit(self, X, y=None, sample_weight=None):
        type(self).fits += 1
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return self.factor * X


@pytest.fixture(autouse=True)
def _none_fitted():
    Counted.fits = 0


def search(samples=X, n_costs=3):
    grid = {"uniformmklclassifier__C": [10.0**k for k in range(n_costs)]}
    grid["uniformmklclassifier__kernels"] = ["linear", "rbf"]
    model = make_pipeline(Counted(2.0), UniformMKLClassifier())
    return KernelSearchCV(model, grid, cv=[(TRAIN, TEST), (TEST, TRAIN)]).fit(samples, y)


@pytest.mark.parametrize("samples", [X, sparse.csr_matrix(X)], ids=["dense", "sparse"])
@pytest.mark.filterwarnings("ignore:the best .* of the grid")
def test_no_more_is_kept_than_there_is_memory_for(samples, monkeypatch):
    kept = search(samples)
    assert Counted.fits == 2 + 1
    monkeypatch.setattr(backends, "_KEPT_BYTES", 10)
    Counted.fits = 0
    again = search(samples)
    # Twice for each list of kernels.
    assert Counted.fits == 4 + 1
    np.testing.assert_array_equal(
        again.cv_results_["mean_test_score"], kept.cv_results_["mean_test_score"]
    )


@pytest.mark.filterwarnings("ignore:the best .* of the grid")
def test_folds_of_other_rows_are_transformed_again():
    many = np.random.RandomState(0).normal(size=(10_800, 1))
    grid = {"uniformmklclassifier__C": [1.0, 3.0, 9.0]}
    model = make_pipeline(Counted(2.0), UniformMKLClassifier(["linear"]))
    halving = KernelSearchCV(model, grid, cv=2, halving=True, refit=False)
    halving.fit(many, many[:, 0] > 0)
    # Three rounds with more and more rows.
    assert Counted.fits == 6


def test_automkl_prepares_columns_once_a_fold(monkeypatch):
    fits = []
    learn = ColumnScaler.fit

    def fit(self, X, y=None, **others):
        fits.append(len(X))
        return learn(self, X, y, **others)

    monkeypatch.setattr(ColumnScaler, "fit", fit)
    model = AutoMKLClassifier(methods=["UniformMKL", "LpMKL"], cv=3, random_state=0).fit(X, y)
    assert len(set(model.leaderboard_.method)) > 2
    # And once for the model that is kept.
    assert fits == [40, 40, 40, 60]
