"""UNIFORM against scikit-learn's machines on the kernel it stands for."""

import numpy as np
import pytest
from estimator_cases import (
    FRESH,
    THEIRS,
    TIGHT,
    X,
    labels,
    mean_gram,
    outcome,
    score,
    three_kernels,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC, SVR

from lokl import UniformMKLClassifier, UniformMKLRegressor
from lokl.kernels import RBF, Cosine, Laplacian, Linear, Polynomial, rbf_ladder

WEIGHT = np.random.RandomState(3).choice([0.0, 0.5, 1.0, 3.0], size=len(X))
# scikit-learn's LibSVM keeps kernel values in float32, hence the tolerances.
KERNELS = [
    ("linear", {"kernel": "linear"}, 1e-4),
    (Polynomial(3, 0.5, 2.0), {"kernel": "poly", "degree": 3, "gamma": 0.5, "coef0": 2.0}, 1e-3),
    (RBF(0.3), {"kernel": "rbf", "gamma": 0.3}, 1e-5),
    ("rbf", {"kernel": "rbf", "gamma": "scale"}, 1e-5),
]
one_kernel = pytest.mark.parametrize(
    ("kernel", "theirs", "rounding"), KERNELS, ids=["linear", "poly", "rbf", "scale"]
)


@one_kernel
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 2.0, 1: 0.3}, {1: 4.0}], ids=str)
def test_one_kernel_is_svc(kernel, theirs, rounding, class_weight):
    y = labels(X)
    ours = UniformMKLClassifier([kernel], 0.7, tol=TIGHT, class_weight=class_weight).fit(X, y)
    svc = SVC(C=0.7, tol=THEIRS, class_weight=class_weight, **theirs).fit(X, y)
    np.testing.assert_allclose(outcome(ours, FRESH), outcome(svc, FRESH), atol=rounding)
    np.testing.assert_array_equal(ours.predict(FRESH), svc.predict(FRESH))
    np.testing.assert_array_equal(ours.support_, np.sort(svc.support_))


@pytest.mark.parametrize("class_weight", [None, {0: 2.0, 1: 0.3}], ids=str)
def test_one_kernel_with_weights_is_svc(class_weight):
    y = labels(X)
    there = WEIGHT > 0
    ours = UniformMKLClassifier([RBF(0.3)], 2.0, tol=TIGHT, class_weight=class_weight)
    ours.fit(X, y, WEIGHT)
    svc = SVC(C=2.0, gamma=0.3, tol=THEIRS, class_weight=class_weight)
    svc.fit(X[there], y[there], WEIGHT[there])
    np.testing.assert_allclose(outcome(ours, FRESH), outcome(svc, FRESH), atol=1e-5)
    np.testing.assert_array_equal(ours.support_, np.flatnonzero(there)[np.sort(svc.support_)])


@one_kernel
def test_one_kernel_is_svr(kernel, theirs, rounding):
    t = score(X)
    ours = UniformMKLRegressor([kernel], 0.7, epsilon=0.2, tol=TIGHT).fit(X, t)
    svr = SVR(C=0.7, epsilon=0.2, tol=THEIRS, **theirs).fit(X, t)
    np.testing.assert_allclose(ours.predict(FRESH), svr.predict(FRESH), atol=rounding)


def test_one_kernel_with_weights_is_svr():
    t, there = score(X), WEIGHT > 0
    ours = UniformMKLRegressor([RBF(0.3)], 2.0, tol=TIGHT).fit(X, t, WEIGHT)
    svr = SVR(C=2.0, gamma=0.3, tol=THEIRS).fit(X[there], t[there], WEIGHT[there])
    np.testing.assert_allclose(ours.predict(FRESH), svr.predict(FRESH), atol=1e-5)


@pytest.mark.parametrize("n_classes", [3, 5])
@one_kernel
def test_more_classes_are_one_against_the_rest(kernel, theirs, rounding, n_classes):
    # Every class lies in a direction of its own, so that each machine has something to find.
    rng = np.random.RandomState(0)
    pull = X @ rng.normal(size=(4, n_classes)) + 0.3 * rng.normal(size=(len(X), n_classes))
    y = pull.argmax(axis=1)
    ours = UniformMKLClassifier([kernel], tol=TIGHT).fit(X, y)
    rest = OneVsRestClassifier(SVC(tol=THEIRS, **theirs)).fit(X, y)
    np.testing.assert_allclose(outcome(ours, FRESH), outcome(rest, FRESH), atol=rounding)
    np.testing.assert_array_equal(ours.predict(FRESH), rest.predict(FRESH))


def test_several_kernels_are_the_machine_on_their_average():
    y, t = labels(X), score(X)
    svc = SVC(kernel="precomputed", tol=THEIRS).fit(mean_gram(X, X), y)
    ours = UniformMKLClassifier(three_kernels(), tol=TIGHT).fit(X, y)
    theirs = svc.decision_function(mean_gram(FRESH, X))
    np.testing.assert_allclose(ours.decision_function(FRESH), theirs, atol=1e-4)
    svr = SVR(kernel="precomputed", tol=THEIRS).fit(mean_gram(X, X), t)
    ours = UniformMKLRegressor(three_kernels(), tol=TIGHT).fit(X, t)
    np.testing.assert_allclose(ours.predict(FRESH), svr.predict(mean_gram(FRESH, X)), atol=1e-4)


@pytest.mark.parametrize("kernel", [Linear(), RBF(0.3), Laplacian(), Cosine()], ids=repr)
@pytest.mark.parametrize("m", [2, 7])
def test_identical_kernels_are_one(kernel, m):
    one, many = (UniformMKLClassifier([kernel] * k, tol=TIGHT).fit(X, labels(X)) for k in (1, m))
    np.testing.assert_allclose(outcome(many, FRESH), outcome(one, FRESH), atol=1e-7)


@settings(max_examples=10)
@given(st.permutations(range(4)))
def test_the_order_of_kernels_does_not_matter(order):
    kernels = rbf_ladder(-3, 0)
    plain = UniformMKLClassifier(kernels, tol=TIGHT).fit(X, labels(X))
    moved = UniformMKLClassifier([kernels[i] for i in order], tol=TIGHT).fit(X, labels(X))
    np.testing.assert_allclose(outcome(moved, FRESH), outcome(plain, FRESH), atol=1e-7)
    parts = plain.contributions(FRESH)[:, order]
    np.testing.assert_allclose(moved.contributions(FRESH), parts, atol=1e-7)


def test_several_targets_are_one_by_one():
    T = np.column_stack([score(X), X[:, 1] ** 2, np.full(len(X), 3.0)])
    together = UniformMKLRegressor(three_kernels(), tol=TIGHT).fit(X, T)
    for column, predicted in zip(T.T, together.predict(FRESH).T, strict=True):
        alone = UniformMKLRegressor(three_kernels(), tol=TIGHT).fit(X, column)
        np.testing.assert_allclose(predicted, alone.predict(FRESH), atol=1e-7)
    np.testing.assert_allclose(together.predict(FRESH)[:, 2], 3.0)


def test_the_default_kernels_suit_data_of_any_scale():
    y = labels(X)
    plain = UniformMKLClassifier().fit(X, y)
    assert len(plain.kernels_) == 3
    assert plain.score(X, y) > 0.85
    for scale in (1e-4, 1e4):
        assert UniformMKLClassifier().fit(scale * X, y).score(scale * X, y) > 0.85


@settings(max_examples=10)
@given(seed=st.integers(0, 2**16))
def test_weights_are_repeated_rows_also_when_classes_are_balanced(seed):
    weight = np.random.RandomState(seed).randint(0, 4, size=len(X))
    again = np.repeat(np.arange(len(X)), weight)
    y = labels(X, 3)
    options = {"kernels": None, "class_weight": "balanced", "tol": TIGHT}
    weighted = UniformMKLClassifier(**options).fit(X, y, weight)
    repeated = UniformMKLClassifier(**options).fit(X[again], y[again])
    np.testing.assert_allclose(outcome(weighted, FRESH), outcome(repeated, FRESH), atol=1e-6)


@pytest.mark.parametrize("solver", ["exact", "libsvm"])
def test_a_class_without_weight_is_never_chosen(solver):
    y = labels(X, 3)
    model = UniformMKLClassifier(three_kernels(), solver=solver).fit(X, y, 1.0 * (y != 1))
    assert set(model.predict(X)) == {0, 2}
    np.testing.assert_allclose(model.decision_function(X)[:, 1], -1.0)


@pytest.mark.parametrize(
    ("weight", "winner"), [([1.0, 1.0], "b"), ([3.0, 1.0], "a"), ([1.0, 3.0], "b")], ids=str
)
def test_a_decision_of_exactly_zero_goes_to_the_larger_class(weight, winner):
    model = UniformMKLClassifier(["linear"]).fit([[-1.0], [1.0]], ["a", "b"], weight)
    assert model.decision_function([[0.0]]) == 0.0
    assert model.predict([[0.0]]) == winner
