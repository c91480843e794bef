"""A fit replaces all that the last one learned, or, where it fails, nothing."""

import numpy as np
import pandas as pd
import pytest
from method_cases import RECORDS, estimators, make
from sklearn.exceptions import NotFittedError

from lokl.kernels import RBF, Callable, Linear

X = np.random.RandomState(0).normal(size=(40, 3))
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
every_estimator = pytest.mark.parametrize("name", RECORDS)


def goal(name, classes=2):
    t = X[:, 0] + 0.3 * X[:, 1] ** 2
    limits = np.quantile(t, [0.4, 0.7][: classes - 1])
    return t if name.endswith("Regressor") else np.digitize(t, limits)


class Interrupting:
    """A kernel function that is interrupted when it is called once too often."""

    def __init__(self, calls):
        self.calls = calls

    def __call__(self, X, Z):
        self.calls -= 1
        if self.calls < 0:
            raise KeyboardInterrupt
        return X @ Z.T


def wrong_targets(name):
    return goal(name) * np.nan if name.endswith("Regressor") else np.zeros(len(X))


# What is changed, the data, the targets and the error. The columns are others than before, so that
# whatever is noted about them early must go back.
FAILURES = {
    "kernels": lambda name: ({"kernels": [RBF(-1.0)]}, X[:, :2], goal(name, 3), ValueError),
    "a setting": lambda name: ({"C": -1.0}, X[:, :2], goal(name, 3), ValueError),
    "targets": lambda name: ({}, X[:, :2], wrong_targets(name), ValueError),
    "samples": lambda name: ({}, X[:, :2] * np.nan, goal(name), ValueError),
    **{
        f"interrupted at call {calls}": lambda name, calls=calls: (
            {"kernels": [Callable(Interrupting(calls)), Linear()]},
            X[:, :2],
            goal(name, 3),
            KeyboardInterrupt,
        )
        for calls in (0, 1)
    },
}


def same(left, right):
    """Whether two states are the same objects, attribute by attribute."""
    return left.keys() == right.keys() and all(left[name] is right[name] for name in left)


@every_estimator
@pytest.mark.parametrize("failure", FAILURES)
def test_a_failed_fit_leaves_the_model_as_it_was(name, failure):
    model = make(name, ["linear", "rbf"], tol=1e-3).fit(FRAME, goal(name))
    expected = model.predict(FRAME)
    settings, Z, y, error = FAILURES[failure](name)
    model.set_params(**settings)
    before = dict(vars(model))
    with pytest.raises(error):
        model.fit(Z, y)
    assert same(vars(model), before)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    np.testing.assert_array_equal(model.predict(FRAME), expected)


@every_estimator
@pytest.mark.parametrize("failure", FAILURES)
def test_a_first_fit_that_fails_leaves_nothing(name, failure):
    settings, Z, y, error = FAILURES[failure](name)
    model = make(name, **{"kernels": ["linear", "rbf"], **settings})
    before = dict(vars(model))
    with pytest.raises(error):
        model.fit(Z, y)
    assert same(vars(model), before)
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize("name", estimators("rounds"))
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, RuntimeError])
def test_an_error_in_the_callback_leaves_the_model_as_it_was(name, error):
    def stop(step):
        raise error("enough")

    model = make(name, ["linear", "rbf"], tol=1e-3).fit(FRAME, goal(name))
    before = dict(vars(model.set_params(callback=stop)))
    with pytest.raises(error, match="enough"):
        model.fit(X[:, :2], goal(name, 3))
    assert same(vars(model), before)


@every_estimator
def test_a_refit_leaves_nothing_of_the_fit_before(name):
    again = make(name, ["linear", "rbf"], tol=1e-3).fit(FRAME, goal(name, 3))
    again.note = "mine"
    first = dict(vars(again))
    again.fit(X[:, :2], goal(name))
    alone = make(name, ["linear", "rbf"], tol=1e-3).fit(X[:, :2], goal(name))
    assert vars(again).keys() - {"note"} == vars(alone).keys()
    assert again.note == "mine"
    kept = {own for own in first if own.endswith("_") and vars(again).get(own) is first[own]}
    assert kept <= {"n_iter_", "duality_gap_", "support_fraction_"}  # plain numbers may be equal
    np.testing.assert_array_equal(again.predict(X[:, :2]), alone.predict(X[:, :2]))
