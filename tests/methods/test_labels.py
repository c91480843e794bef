"""Trust and contributions as tables with names."""

import numpy as np
import pandas as pd
import pytest
from estimator_cases import FRESH, X, labels, score
from method_cases import estimators, make
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lokl import LMKLClassifier, UniformMKLClassifier, UniformMKLRegressor
from lokl.search import calibrated

KERNELS = {"wide": "rbf", "flat": "linear"}
FRAME = pd.DataFrame(FRESH, columns=list("abcd"), index=[f"P{i}" for i in range(len(FRESH))])


def fitted(name, n_classes=2):
    y = score(X) if name.endswith("Regressor") else labels(X, n_classes)
    return make(name, KERNELS).fit(pd.DataFrame(X, columns=list("abcd")), y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", estimators())
def test_labels_are_names_around_the_same_numbers(name):
    model = fitted(name)
    for ask in (model.weights, model.contributions):
        table = ask(FRAME, labels=True)
        assert isinstance(ask(FRAME), np.ndarray)
        np.testing.assert_array_equal(table, ask(FRAME))
        assert list(table.columns) == model.kernel_names_
        assert table.columns.name == "kernel"
        assert table.index.equals(FRAME.index)


def test_several_classes_stand_above_the_kernels():
    names = np.array(["low", "middle", "high"])
    model = UniformMKLClassifier(KERNELS).fit(X, names[labels(X, 3)])
    parts = model.contributions(FRESH, labels=True)
    assert parts.columns.names == ["class", "kernel"]
    assert list(parts["low"].columns) == ["wide", "flat"]
    assert parts.index.equals(pd.RangeIndex(len(FRESH)))
    high = list(model.classes_).index("high")
    np.testing.assert_array_equal(parts["high", "flat"], model.contributions(FRESH)[:, high, 1])
    totals = parts.T.groupby("class").sum().T[list(model.classes_)]
    np.testing.assert_allclose(totals + model.intercept_, model.decision_function(FRESH))
    assert list(model.weights(FRESH, labels=True).columns) == ["wide", "flat"]


@pytest.mark.parametrize("name", ["TrustedVoteClassifier", "TrustedVoteRegressor"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_trust_and_disagreement_have_names_and_the_index(name, n_classes):
    model = fitted(name, n_classes)
    table = model.trust(FRAME, labels=True)
    assert list(table.columns) == model.kernel_names_
    assert table.index.equals(FRAME.index)
    np.testing.assert_array_equal(table, model.trust(FRAME))
    series = model.disagreement(FRAME, labels=True)
    assert series.index.equals(FRAME.index)
    assert series.name == "disagreement"
    np.testing.assert_array_equal(series, model.disagreement(FRAME))
    assert isinstance(model.disagreement(FRAME), np.ndarray)


def test_a_pipeline_reaches_tables_with_the_index_in_one_line():
    frame = pd.DataFrame(X, columns=list("abcd"))
    pipeline = make_pipeline(StandardScaler(), UniformMKLClassifier(KERNELS))
    pipeline.set_output(transform="pandas").fit(frame, labels(X, 3))
    for ask in ("weights", "contributions"):
        table = getattr(pipeline[-1], ask)(pipeline[:-1].transform(FRAME), labels=True)
        assert table.index.equals(FRAME.index)
        assert list(table.columns.get_level_values("kernel"))[:2] == ["wide", "flat"]


def test_several_targets_are_numbered():
    model = UniformMKLRegressor(KERNELS).fit(X, np.column_stack([score(X), X[:, 0]]))
    parts = model.contributions(FRESH, labels=True)
    assert parts.columns.names == ["target", "kernel"]
    np.testing.assert_array_equal(parts[1, "wide"], model.contributions(FRESH)[:, 1, 0])


def test_a_setting_and_a_method_of_one_name_take_labels():
    model = LMKLClassifier(KERNELS, gate="sigmoid", random_state=0).fit(X, labels(X))
    assert list(model.weights(FRESH, labels=True).columns) == ["wide", "flat"]


def test_a_calibrated_pipeline_keeps_the_index():
    y = labels(X)
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = make_pipeline(StandardScaler(), UniformMKLClassifier(KERNELS)).fit(frame, y)
    sure = calibrated(model, frame, y, cv=3)
    table = sure.contributions(FRAME, labels=True)
    assert table.index.equals(FRAME.index)
    np.testing.assert_array_equal(table, sure.contributions(FRAME))
