import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lokl import UniformMKLClassifier, UniformMKLRegressor
from lokl.study import compare


def test_every_model_is_scored_once_in_order():
    X, y = load_iris(return_X_y=True)
    models = {
        "plain": UniformMKLClassifier(["rbf"]),
        "piped": make_pipeline(StandardScaler(), UniformMKLClassifier(["linear"])),
    }
    scores = list(compare(models, X, y, repeats=2))
    assert [score.model for score in scores] == ["plain", "piped"]
    assert all(0.8 < score.accuracy <= 1.0 for score in scores)
    assert all(0.0 < score.support <= 1.0 for score in scores)


def test_one_seed_decides_all_splits():
    X, y = load_iris(return_X_y=True)
    models = {"a": UniformMKLClassifier(["rbf"]), "b": UniformMKLClassifier(["rbf"])}
    first, second = compare(models, X, y, repeats=3, seed=4)
    assert (first.accuracy, first.support) == (second.accuracy, second.support)
    (other,) = compare({"a": models["a"]}, X, y, repeats=3, seed=5)
    assert (other.accuracy, other.support) != (first.accuracy, first.support)


def test_regressors_are_compared_by_their_own_score():
    X, y = load_diabetes(return_X_y=True)
    (score,) = compare({"r": UniformMKLRegressor(["linear"], C=100.0)}, X, y, repeats=1)
    assert 0.2 < score.accuracy < 0.7
    assert score.spread == pytest.approx(0.0)
