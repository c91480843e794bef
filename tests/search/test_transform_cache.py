"""Samples that the first steps of a pipeline transform: once a fold, and never another's."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lokl import AutoMKLClassifier
from lokl.search import backends
from lokl.search.backends import TransformCache
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


def test_rows_are_what_the_steps_make_of_them():
    cache = TransformCache()
    steps = make_pipeline(StandardScaler())
    cache.set_source(steps, X, y, {})
    found = cache.transform(TRAIN, TEST)
    own = StandardScaler().fit(X[TRAIN])
    np.testing.assert_allclose(found, own.transform(X))
    assert not hasattr(steps[0], "mean_")


def test_equal_steps_on_the_same_samples_are_fitted_once_a_fold():
    cache = TransformCache()
    for _ in range(3):
        cache.set_source(make_pipeline(Counted(2.0)), X, y, {})
        assert cache.transform(TRAIN, TEST) is cache.transform(TRAIN, TEST)
        cache.transform(TEST, TRAIN)
    assert Counted.fits == 2


@pytest.mark.parametrize(
    "other",
    [
        {"steps": make_pipeline(Counted(3.0))},
        {"X": X.copy()},
        {"y": y.copy()},
        {"fit_params": {"counted__sample_weight": np.ones(60)}},
    ],
    ids=["steps", "samples", "labels", "weights"],
)
def test_what_comes_from_something_else_is_made_anew(other):
    cache = TransformCache()
    first = {"steps": make_pipeline(Counted(2.0)), "X": X, "y": y, "fit_params": {}}
    cache.set_source(**first)
    cache.transform(TRAIN, TEST)
    cache.set_source(**{**first, **other})
    cache.transform(TRAIN, TEST)
    assert Counted.fits == 2
    # Equal numbers of other arrays are other rows.
    cache.transform(TRAIN.copy(), TEST)
    assert Counted.fits == 3


@pytest.mark.parametrize("samples", [X, sparse.csr_matrix(X)], ids=["dense", "sparse"])
def test_no_more_is_kept_than_there_is_memory_for(samples, monkeypatch):
    monkeypatch.setattr(backends, "_KEPT_BYTES", 10)
    cache = TransformCache()
    cache.set_source(make_pipeline(Counted()), samples, y, {})
    for _ in range(2):
        cache.transform(TRAIN, TEST)
    assert Counted.fits == 2


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
