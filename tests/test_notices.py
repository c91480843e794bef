"""Warnings of a fit: each kind once, with its count, at the user's line."""

import warnings

import joblib
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from lokl import LDMKLClassifier, LMKLClassifier, SwMKLClassifier, UniformMKLClassifier
from lokl._warnings import Collected, apart, tell, together
from lokl.kernels import RBF, Linear, Sigmoid
from lokl.solvers import Exact, LibSVM, solve_svc

RNG = np.random.RandomState(0)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] + 0.5 * RNG.normal(size=60) > 0).astype(int)


def told(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return caught


def assert_points_here(warning):
    assert warning.filename == __file__


def test_outside_a_fit_warnings_come_at_once():
    caught = told(lambda: [tell("kind", f"text {i}") for i in range(3)])
    assert [str(w.message) for w in caught] == ["text 0", "text 1", "text 2"]
    for warning in caught:
        assert_points_here(warning)


def test_in_a_fit_each_kind_comes_once_with_its_count():
    def fit():
        with Collected():
            tell("one", "first")
            tell("two", "only", ConvergenceWarning)
            with Collected():
                tell("one", "second")
            together(apart(tell, "one", "third"))

    caught = told(fit)
    assert [str(w.message) for w in caught] == [
        "third (the last of 3 such warnings in this fit)",
        "only",
    ]
    assert [w.category for w in caught] == [UserWarning, ConvergenceWarning]


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_a_fit_that_fails_tells_its_error_alone(failure):
    def fit():
        with Collected():
            tell("kind", "text")
            raise failure("why")

    # Warnings are errors in this suite: one of them in the place of the failure would show.
    with pytest.raises(failure, match="why"):
        fit()
    with pytest.raises(failure, match="why"):
        apart(fit)
    assert [str(w.message) for w in told(lambda: tell("kind", "later"))] == ["later"]


@pytest.mark.parametrize("backend", ["threading", "sequential"])
def test_threads_tell_what_they_found_where_they_were_called(backend):
    def work():
        with Collected():
            parallel = joblib.Parallel(n_jobs=2, backend=backend)
            for own in parallel(joblib.delayed(apart)(tell, "kind", "text") for _ in range(8)):
                together(own)

    caught = told(work)
    assert [str(w.message) for w in caught] == ["text (the last of 8 such warnings in this fit)"]


@pytest.mark.parametrize(
    "model",
    [
        LMKLClassifier([Linear(), RBF(1.0)], C=100.0, solver=Exact(max_iter=3), random_state=0),
        LMKLClassifier([Linear(), RBF(1.0)], C=100.0, solver=LibSVM(max_iter=3), random_state=0),
        LDMKLClassifier([Linear(), RBF(1.0)], C=100.0, max_iter=3, n_jobs=2, random_state=0),
        SwMKLClassifier([Linear(), RBF(1.0)], C=100.0, max_iter=3, success="cv", random_state=0),
    ],
    ids=["rounds", "LibSVM", "threads", "folds"],
)
def test_a_fit_of_many_machines_warns_once(model):
    caught = told(lambda: model.fit(X, Y))
    assert [w.category for w in caught] == [ConvergenceWarning]
    assert "such warnings in this fit" in str(caught[0].message)
    assert_points_here(caught[0])


def test_kinds_are_told_apart():
    model = UniformMKLClassifier([Sigmoid(3.0, -1.0)], C=100.0, max_iter=20)
    caught = told(lambda: model.fit(X, Y))
    assert [w.category for w in caught] == [UserWarning, ConvergenceWarning]


def test_a_warning_as_an_error_leaves_no_half_made_model():
    model = UniformMKLClassifier([RBF(1.0)], C=100.0, max_iter=3)
    with pytest.raises(ConvergenceWarning, match="stopped after 3 steps"):
        model.fit(X, Y)
    assert not hasattr(model, "support_")
    with pytest.warns(ConvergenceWarning, match="stopped after 3 steps") as caught:
        solve_svc(RBF(1.0), X, Y, C=100.0, max_iter=3)
    assert_points_here(caught[0])
