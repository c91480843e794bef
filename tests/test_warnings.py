"""Warnings of a fit: each kind once, with its count, at the user's line."""

import re
import warnings

import joblib
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from lokl import LDMKLClassifier, LMKLClassifier, SwMKLClassifier, UniformMKLClassifier
from lokl._warnings import DeferredWarnings, capture_warnings, reissue, warn_once
from lokl.kernels import RBF, Linear, Sigmoid
from lokl.solvers import Exact, LibSVM, solve_svc

RNG = np.random.RandomState(0)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] + 0.5 * RNG.normal(size=60) > 0).astype(int)


def issued_by(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return caught


def assert_points_here(warning):
    assert warning.filename == __file__


def test_outside_a_fit_warnings_come_at_once():
    caught = issued_by(lambda: [warn_once("kind", f"text {i}") for i in range(3)])
    assert [str(w.message) for w in caught] == ["text 0", "text 1", "text 2"]
    for warning in caught:
        assert_points_here(warning)


def test_in_a_fit_each_kind_comes_once_with_its_count():
    def fit():
        with DeferredWarnings():
            warn_once("one", "first")
            warn_once("two", "only", ConvergenceWarning)
            with DeferredWarnings():
                warn_once("one", "second")
            reissue(capture_warnings(warn_once, "one", "third"))

    caught = issued_by(fit)
    assert [str(w.message) for w in caught] == [
        "third (the last of 3 such warnings in this fit)",
        "only",
    ]
    assert [w.category for w in caught] == [UserWarning, ConvergenceWarning]


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_a_fit_that_fails_raises_its_error_only(failure):
    def fit():
        with DeferredWarnings():
            warn_once("kind", "text")
            raise failure("why")

    # Warnings are errors in this suite: one of them instead of the failure would show.
    with pytest.raises(failure, match="why"):
        fit()
    with pytest.raises(failure, match="why"):
        capture_warnings(fit)
    assert [str(w.message) for w in issued_by(lambda: warn_once("kind", "later"))] == ["later"]


@pytest.mark.parametrize("backend", ["threading", "sequential"])
def test_warnings_of_threads_are_issued_by_the_caller(backend):
    def work():
        with DeferredWarnings():
            parallel = joblib.Parallel(n_jobs=2, backend=backend)
            call = joblib.delayed(capture_warnings)(warn_once, "kind", "text")
            for captured in parallel([call] * 8):
                reissue(captured)

    caught = issued_by(work)
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
def test_a_fit_of_many_svms_warns_once(model):
    caught = issued_by(lambda: model.fit(X, Y))
    assert [w.category for w in caught] == [ConvergenceWarning]
    assert re.search(r"\(the last of \d+ ", str(caught[0].message))
    assert_points_here(caught[0])


def test_each_kind_is_issued():
    model = UniformMKLClassifier([Sigmoid(3.0, -1.0)], C=100.0, max_iter=20)
    caught = issued_by(lambda: model.fit(X, Y))
    assert [w.category for w in caught] == [UserWarning, ConvergenceWarning]


def test_a_warning_as_an_error_leaves_no_half_made_model():
    model = UniformMKLClassifier([RBF(1.0)], C=100.0, max_iter=3)
    with pytest.raises(ConvergenceWarning, match="after 3 steps"):
        model.fit(X, Y)
    assert not hasattr(model, "support_")
    with pytest.warns(ConvergenceWarning, match="after 3 steps") as caught:
        solve_svc(RBF(1.0), X, Y, C=100.0, max_iter=3)
    assert_points_here(caught[0])
