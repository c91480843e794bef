"""The loss that is asked for is the loss that is minimised, whatever the method and the solver."""

from typing import ClassVar

import numpy as np
import pytest
from estimator_cases import X, labels
from method_cases import CLASSIFIERS, REGRESSORS
from sklearn.svm import SVC

import lokl
from lokl import EasyMKLClassifier, MWUMKLClassifier, UniformMKLClassifier
from lokl.kernels import RBF, Linear
from lokl.solvers import MWU, Exact, Solver

Y = labels(X)
KERNELS = [Linear(), RBF(0.5)]


class Remembering(Exact):
    """The exact solver, which notes the problems it was given."""

    given: ClassVar[list] = []

    def solve(self, gram, problem, start=None, ceiling=np.inf):
        self.given.append(problem)
        return super().solve(gram, problem, start, ceiling)


class HingeOnly(Exact):
    losses = ("hinge",)


class SquaredOnly(Exact):
    losses = ("squared_hinge",)


def is_squared(problem):
    taken = (problem.lower < 0) | (problem.upper > 0)
    unbounded = np.isinf(np.maximum(-problem.lower, problem.upper)[taken])
    assert unbounded.all() or not unbounded.any()
    np.testing.assert_array_equal(problem.ridge[taken] > 0, unbounded)
    return bool(unbounded.all())


@pytest.mark.parametrize("loss", ["auto", "hinge", "squared_hinge"])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_the_problems_solved_have_the_loss_asked_for(name, loss):
    Remembering.given.clear()
    model = getattr(lokl, name)(KERNELS, loss=loss, solver=Remembering(), random_state=0)
    model.fit(X, Y)
    classes = [is_squared(p) for p in Remembering.given if p.is_classification]
    if name == "EasyMKLClassifier":
        # The distributions of the classes are those of a squared hinge, whatever the loss.
        assert classes.pop(0)
    assert classes
    assert set(classes) == {loss == "squared_hinge"}
    assert model.score(X, Y) > 0.8


@pytest.mark.parametrize("solver", ["exact", "libsvm"])
def test_the_squared_hinge_is_libsvm_on_a_lifted_diagonal(solver):
    model = UniformMKLClassifier([RBF(0.5)], C=2.0, loss="squared_hinge", solver=solver, tol=1e-8)
    model.fit(X, Y)
    K = RBF(0.5)(X)
    other = SVC(C=1e8, kernel="precomputed", tol=1e-9).fit(K + np.eye(len(X)) / 2.0, Y)
    np.testing.assert_allclose(
        model.decision_function(X),
        K[:, other.support_] @ other.dual_coef_[0] + other.intercept_[0],
        atol=1e-5,
    )
    hinge = UniformMKLClassifier([RBF(0.5)], C=2.0, solver=solver, tol=1e-8).fit(X, Y)
    assert len(hinge.support_) < len(model.support_)


def test_multiplicative_weights_minimise_the_squared_hinge_unasked():
    exact = UniformMKLClassifier([RBF(0.5)], loss="squared_hinge").fit(X, Y)
    for loss in ("auto", "squared_hinge"):
        mwu = UniformMKLClassifier([RBF(0.5)], loss=loss, solver=MWU(epsilon=1e-4)).fit(X, Y)
        np.testing.assert_allclose(mwu.decision_function(X), exact.decision_function(X), atol=0.05)


def test_mwumkl_trains_the_machine_that_is_asked_for():
    rounds = MWUMKLClassifier(KERNELS).fit(X, Y)
    squared = MWUMKLClassifier(KERNELS, loss="squared_hinge", solver="exact", tol=1e-8).fit(X, Y)
    hinge = MWUMKLClassifier(KERNELS, solver="exact", tol=1e-8).fit(X, Y)
    for model in (squared, hinge):
        np.testing.assert_array_equal(model.weights_, rounds.weights_)
    # The exact machine is at most as far from the optimum as that of the rounds.
    assert 0 <= squared.duality_gap_ <= rounds.duality_gap_
    np.testing.assert_allclose(squared.decision_function(X), rounds.decision_function(X), atol=0.2)
    assert len(hinge.support_) < len(squared.support_)


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("solver", ["mwu", MWU(epsilon=0.1)], ids=str)
def test_a_loss_that_a_solver_does_not_know_is_refused_before_any_work(name, solver):
    model = getattr(lokl, name)(loss="hinge", solver=solver)
    text = r"solver=MWU\(.*\) .*loss='hinge'.*loss='squared_hinge'.*solver='exact'"
    with pytest.raises(ValueError, match=text):
        model.fit(np.full((3, 2), np.nan), None)


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("loss", ["cubic", None, 2], ids=str)
def test_unknown_losses_are_refused(name, loss):
    with pytest.raises(ValueError, match=f"loss must be one of 'auto', .*, got {loss!r}"):
        getattr(lokl, name)(loss=loss).fit(X, Y)


def test_solvers_without_a_loss_that_a_method_needs_are_refused():
    text = "solver=HingeOnly.*loss='squared_hinge'.*loss='hinge'"
    with pytest.raises(ValueError, match=text):
        UniformMKLClassifier(loss="squared_hinge", solver=HingeOnly()).fit(X, Y)
    with pytest.raises(ValueError, match=text):
        EasyMKLClassifier(solver=HingeOnly()).fit(X, Y)
    assert EasyMKLClassifier(solver=HingeOnly(), lam=1.0).fit(X, Y).score(X, Y) > 0.8

    class Nothing(Solver):
        losses = ()

        def solve(self, gram, problem, start=None, ceiling=np.inf):
            raise AssertionError

    with pytest.raises(ValueError, match=r"loss='auto'.*solver='exact'"):
        UniformMKLClassifier(solver=Nothing()).fit(X, Y)


@pytest.mark.parametrize("name", [*REGRESSORS, "SwMKLClassifier", "LDMKLClassifier"])
def test_solvers_that_know_no_regression_are_refused(name):
    with pytest.raises(ValueError, match=r"SquaredOnly\(\).*regression"):
        getattr(lokl, name)(solver=SquaredOnly()).fit(X, Y)
