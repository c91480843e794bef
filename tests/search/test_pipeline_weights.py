"""Weights reach every step of a pipeline that asks for them, fold by fold."""

import numpy as np
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

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
