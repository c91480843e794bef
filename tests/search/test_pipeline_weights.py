"""Weights reach every step of a pipeline that asks for them, fold by fold."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import has_fit_parameter

from lokl import UniformMKLClassifier
from lokl.search import KernelSearchCV
from lokl.search.backends import PipelineBackend


def test_transformers_learn_from_the_weights_of_their_fold(monkeypatch):
    X, y = load_iris(return_X_y=True)
    weight = np.random.RandomState(0).randint(1, 20, size=len(y)).astype(float)
    pipeline = Pipeline([("scale", StandardScaler()), ("model", UniformMKLClassifier(["rbf"]))])
    grid, folds = {"model__C": [0.1, 10.0]}, StratifiedKFold(3)
    weights = {"scale__sample_weight": weight, "model__sample_weight": weight}
    taken = []
    known = PipelineBackend.run
    monkeypatch.setattr(PipelineBackend, "run", lambda *args: taken.append(1) or known(*args))
    shared = KernelSearchCV(pipeline, grid, cv=folds).fit(X, y, **weights)
    assert taken
    plain = GridSearchCV(pipeline, grid, cv=folds).fit(X, y, **weights)
    np.testing.assert_allclose(
        shared.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"]
    )
    np.testing.assert_allclose(shared.best_estimator_[0].mean_, plain.best_estimator_[0].mean_)


def test_one_array_of_weights_reaches_all_steps_that_take_weights():
    X, y = load_iris(return_X_y=True)
    weight = np.random.RandomState(0).randint(1, 20, size=len(y)).astype(float)
    pipeline = Pipeline(
        [("scale", StandardScaler()), ("pca", PCA()), ("model", UniformMKLClassifier(["rbf"]))]
    )
    search = KernelSearchCV(pipeline, {"model__C": [0.1]}, cv=3)
    short = clone(search).fit(X, y, sample_weight=weight)
    weights = {"scale__sample_weight": weight, "model__sample_weight": weight}
    long = clone(search).fit(X, y, **weights)
    np.testing.assert_array_equal(short.best_estimator_[0].mean_, long.best_estimator_[0].mean_)
    np.testing.assert_array_equal(short.decision_function(X), long.decision_function(X))
    # The score is weighted as well.
    splits = StratifiedKFold(3).split(X, y)
    train, test = next(splits)
    model = clone(pipeline).set_params(model__C=0.1)
    model.fit(X[train], y[train], **{name: own[train] for name, own in weights.items()})
    assert short.cv_results_["split0_test_score"][0] == pytest.approx(
        model.score(X[test], y[test], sample_weight=weight[test])
    )
    assert has_fit_parameter(search, "sample_weight")
    neighbours = make_pipeline(StandardScaler(), KNeighborsClassifier())
    other = KernelSearchCV(neighbours, {"kneighborsclassifier__n_neighbors": [1, 3]})
    with pytest.raises(ValueError, match="KNeighborsClassifier does not support sample_weight"):
        other.fit(X, y, sample_weight=weight)
